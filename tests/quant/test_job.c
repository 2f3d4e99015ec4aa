/* test_job.c - checkpoints made on the spot: keys that stay, parts that are joined, types that cannot be read. */
#include "runtime/quant/job.h"

#include "runtime/formats/gguf_write.h"
#include "tests/base/suite.h"
#include <stdlib.h>
#include <unistd.h>

static char folder[64];
static weft_diag *dg;
static arena *a;

static void setup(void)
{
    snprintf(folder, sizeof folder, "/tmp/weft-job-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    dg = diag_create();
    a = arena_create();
}

static void teardown(void)
{
    ck_assert_int_eq(system(arena_printf(a, "rm -rf %s", folder).p), 0);
    diag_destroy(dg);
    arena_destroy(a);
}

static const char *in_folder(const char *name)
{
    return arena_printf(a, "%s/%s", folder, name).p;
}

enum { ROWS = 6, COLUMNS = 256 };

static const float *numbers(int seed)
{
    float *x = ARENA_ARRAY(a, float, ROWS *COLUMNS);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = (float)((i * 7919 + seed * 104729) % 2003) / 1000.0f - 1;
    return x;
}

static const int64_t matrix[] = {ROWS, COLUMNS};

static gguf_writer *begin(void)
{
    gguf_writer *w = gguf_writer_create();
    gguf_writer_key(w, STR("general.architecture"), value_of_str(STR("llama")));
    gguf_writer_key(w, STR("llama.block_count"), value_of_int(VT_U32, 2));
    return w;
}

static void finish(gguf_writer *w, const char *path)
{
    ck_assert_int_eq(gguf_writer_write(dg, w, path), WEFT_OK);
    gguf_writer_destroy(w);
}

/* IN into OUT; what came of it. */
static weft_status quantize(const char *in, const char *out, const char *preset,
                            const mix_rules *rules, const imatrix *im, int threads)
{
    model_file *mf = NULL;
    quant_job *j = NULL;
    quant_write_options how = {.threads = threads};
    weft_status st = model_file_open(dg, in, NULL, &mf);
    if (st == WEFT_OK)
        st = quant_job_create(dg, mf, NULL, &j);
    if (st == WEFT_OK)
        st = quant_job_choose(dg, j, mix_find(preset), rules, im);
    if (st == WEFT_OK)
        st = quant_job_write(dg, j, out, &how);
    quant_job_destroy(j);
    model_file_close(mf);
    return st;
}

static const char *type_of(const model_file *mf, const char *name)
{
    const model_tensor *t = model_file_tensor(mf, str_of(name));
    return t ? dtype_row_of(t->type)->name : "none";
}

START_TEST(keeps_keys)
{
    gguf_writer *w = begin();
    const int32_t list[] = {3, 1, 2};
    const str texts[] = {STR("a"), STR(""), STR("c\xff")};
    gguf_writer_key(w, STR("general.alignment"), value_of_int(VT_U32, 64));
    gguf_writer_key(w, STR("x.list"), value_of_array(VT_I32, list, 3));
    gguf_writer_key(w, STR("x.texts"), value_of_array(VT_STR, texts, 3));
    gguf_writer_key(w, STR("x.i8"), value_of_int(VT_I8, -5));
    gguf_writer_key(w, STR("x.f64"), value_of_float(VT_F64, 0.1));
    gguf_writer_key(w, STR("general.file_type"), value_of_int(VT_U32, 0));
    gguf_writer_key(w, STR("x.last"), value_of_bool(true));
    gguf_writer_tensor_data(w, STR("blk.0.attn_q.weight"), DT_F32, 2, matrix, numbers(1));
    gguf_writer_tensor_data(w, STR("blk.0.attn_norm.weight"), DT_F32, 1, matrix + 1, numbers(2));
    gguf_writer_tensor_data(w, STR("blk.1.table.weight"), DT_I32, 2, matrix, numbers(3));
    gguf_writer_tensor_data(w, STR("output.weight"), DT_F32, 2, matrix, numbers(4));
    finish(w, in_folder("in.gguf"));
    ck_assert_int_eq(quantize(in_folder("in.gguf"), in_folder("out.gguf"), "Q4_0", NULL, NULL, 2),
                     WEFT_OK);
    model_file *in, *out;
    ck_assert_int_eq(model_file_open(dg, in_folder("in.gguf"), NULL, &in), WEFT_OK);
    ck_assert_int_eq(model_file_open(dg, in_folder("out.gguf"), NULL, &out), WEFT_OK);
    const value *before = model_file_keys(in), *after = model_file_keys(out);
    ck_assert_uint_eq(value_count(after), value_count(before) + 1); /* quantization_version */
    for (size_t i = 0; i < value_count(before); i++) {
        const value_member *x = &before->as.object.members[i], *y = &after->as.object.members[i];
        strbuf s = {0}, t = {0};
        json_writer ws = {.out = &s}, wt = {.out = &t};
        value_json(&ws, &x->v, 100);
        value_json(&wt, &y->v, 100);
        ck_assert(str_eq(x->name, y->name) && x->v.type == y->v.type);
        if (str_eqz(x->name, "general.file_type"))
            ck_assert_str_eq(t.p, "2");
        else
            ck_assert_str_eq(s.p, t.p);
        strbuf_free(&s);
        strbuf_free(&t);
    }
    ck_assert_str_eq(type_of(out, "blk.0.attn_q.weight"), "Q4_0");
    ck_assert_str_eq(type_of(out, "blk.0.attn_norm.weight"), "F32");
    ck_assert_str_eq(type_of(out, "blk.1.table.weight"), "I32");
    ck_assert_str_eq(type_of(out, "output.weight"), "Q6_K");
    const model_tensor *x = model_file_tensor(in, STR("blk.1.table.weight")),
                       *y = model_file_tensor(out, STR("blk.1.table.weight"));
    ck_assert_mem_eq(x->data, y->data, x->bytes);
    model_file_close(in);
    model_file_close(out);
}
END_TEST

START_TEST(joins_parts)
{
    for (int i = 0; i < 2; i++) {
        gguf_writer *w = i ? gguf_writer_create() : begin();
        gguf_writer_key(w, STR("split.no"), value_of_int(VT_U16, i));
        gguf_writer_key(w, STR("split.count"), value_of_int(VT_U16, 2));
        gguf_writer_key(w, STR("split.tensors.count"), value_of_int(VT_I32, 2));
        gguf_writer_tensor_data(w, i ? STR("blk.1.ffn_up.weight") : STR("blk.0.ffn_up.weight"),
                                DT_F32, 2, matrix, numbers(i));
        finish(w, in_folder(i ? "m-00002-of-00002.gguf" : "m-00001-of-00002.gguf"));
    }
    ck_assert_int_eq(
        quantize(in_folder("m-00002-of-00002.gguf"), in_folder("out.gguf"), "Q8_0", NULL, NULL, 1),
        WEFT_OK);
    model_file *out;
    ck_assert_int_eq(model_file_open(dg, in_folder("out.gguf"), NULL, &out), WEFT_OK);
    ck_assert_uint_eq(model_file_tensor_count(out), 2);
    ck_assert_ptr_null(model_file_key(out, STR("/split.count")));
    ck_assert_str_eq(type_of(out, "blk.1.ffn_up.weight"), "Q8_0");
    model_file_close(out);
}
END_TEST

START_TEST(cannot_read)
{
    gguf_writer *w = begin();
    gguf_writer_tensor_data(w, STR("blk.0.attn_q.weight"), DT_IQ2_XS, 2, matrix, numbers(1));
    gguf_writer_tensor_data(w, STR("blk.0.attn_k.weight"), DT_I32, 2, matrix, numbers(1));
    finish(w, in_folder("in.gguf"));
    ck_assert_int_eq(quantize(in_folder("in.gguf"), in_folder("out.gguf"), "Q8_0", NULL, NULL, 1),
                     WEFT_ERR_FORMAT);
    ck_assert_int_ne(access(in_folder("out.gguf"), F_OK), 0);
    mix_rules rules = {0};
    VEC_PUSH(&rules, ((mix_rule){STR("*attn_k*"), DT_F16}));
    ck_assert_int_eq(quantize(in_folder("in.gguf"), in_folder("out.gguf"), "Q8_0", &rules, NULL, 1),
                     WEFT_ERR_FORMAT);
    VEC_FREE(&rules);
}
END_TEST

START_TEST(weighs)
{
    gguf_writer *w = begin();
    imatrix *im = imatrix_create(), *narrow = imatrix_create(), *other = imatrix_create();
    gguf_writer_tensor_data(w, STR("blk.0.ffn_up.weight"), DT_F32, 2, matrix, numbers(1));
    finish(w, in_folder("in.gguf"));
    float x[COLUMNS] = {0};
    x[7] = 3;
    for (int i = 0; i < COLUMNS; i++)
        x[i] += 0.01f;
    imatrix_add(im, STR("blk.0.ffn_up.weight"), 1, 0, x, 1, COLUMNS);
    imatrix_add(narrow, STR("blk.0.ffn_up.weight"), 1, 0, x, 1, COLUMNS / 2);
    imatrix_add(other, STR("blk.7.ffn_up.weight"), 1, 0, x, 1, COLUMNS);
    ck_assert_int_eq(quantize(in_folder("in.gguf"), in_folder("a.gguf"), "Q4_K_S", NULL, im, 1),
                     WEFT_OK);
    ck_assert_int_eq(quantize(in_folder("in.gguf"), in_folder("b.gguf"), "Q4_K_S", NULL, NULL, 1),
                     WEFT_OK);
    ck_assert_int_eq(quantize(in_folder("in.gguf"), in_folder("c.gguf"), "Q4_K_S", NULL, narrow, 1),
                     WEFT_ERR_FORMAT);
    ck_assert_int_eq(quantize(in_folder("in.gguf"), in_folder("c.gguf"), "Q4_K_S", NULL, other, 1),
                     WEFT_ERR_FORMAT);
    model_file *with, *without;
    ck_assert_int_eq(model_file_open(dg, in_folder("a.gguf"), NULL, &with), WEFT_OK);
    ck_assert_int_eq(model_file_open(dg, in_folder("b.gguf"), NULL, &without), WEFT_OK);
    const model_tensor *t = model_file_tensor_at(with, 0), *u = model_file_tensor_at(without, 0);
    ck_assert_mem_ne(t->data, u->data, t->bytes);
    model_file_close(with);
    model_file_close(without);
    imatrix_destroy(im);
    imatrix_destroy(narrow);
    imatrix_destroy(other);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("all");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, keeps_keys);
    tcase_add_test(c, joins_parts);
    tcase_add_test(c, cannot_read);
    tcase_add_test(c, weighs);
    return suite_run("job", c, CK_FORK_GETENV);
}
