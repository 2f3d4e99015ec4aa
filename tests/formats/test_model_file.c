/* test_model_file.c - the suite of runtime/formats/model_file.c, model_hash.c, and real files. */
#include "kernels/ref/dequant.h"
#include "runtime/formats/gguf_write.h"
#include "tests/formats/files.h"
#include <fcntl.h>
#include <math.h>
#include <sys/resource.h>

/* A small GGUF file; `seed` sets its one weight, `ctx` a key. */
static temp_path write_model(const fixture *fx, const char *name, float seed, int64_t ctx)
{
    temp_path p = temp_join(&fx->dir, name);
    gguf_writer *w = gguf_writer_create();
    ck_assert(gguf_writer_key(w, STR("general.architecture"), value_of_str(STR("toy"))));
    ck_assert(gguf_writer_key(w, STR("toy.ctx"), value_of_int(VT_U32, ctx)));
    gguf_writer_tensor_data(w, STR("x"), DT_F32, 1, (int64_t[]){1}, &seed);
    expect_ok(fx->dg, gguf_writer_write(fx->dg, w, p.path));
    gguf_writer_destroy(w);
    return p;
}

static bool same(model_hash a, model_hash b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

START_TEST(every_way_of_opening_gives_the_same)
{
    fixture fx = fixture_create();
    temp_path p = write_model(&fx, "m.gguf", 2.5f, 8);
    model_file *ways[5] = {open_ok(fx.dg, p.path)};
    model_file_options copy = {.no_mmap = true}, lock = {.mlock = true};
    expect_ok(fx.dg, model_file_open(fx.dg, p.path, &copy, &ways[1]));
    expect_ok(fx.dg, model_file_open(fx.dg, p.path, &lock, &ways[2]));
    int fd = open(p.path, O_RDONLY);
    lseek(fd, 7, SEEK_SET);
    expect_ok(fx.dg, model_file_open_fd(fx.dg, fd, "fd", NULL, &ways[3]));
    close(fd);
    model_part whole = model_file_part(ways[0], 0);
    expect_ok(fx.dg, model_file_open_memory(fx.dg, whole.data, whole.bytes, "memory", &ways[4]));
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        const model_tensor *t = model_file_tensor(ways[i], STR("x"));
        int64_t ctx;
        ck_assert(*(const float *)t->data == 2.5f);
        ck_assert(value_int(model_file_key(ways[i], STR("ctx")), &ctx) && ctx == 8);
        ck_assert(same(model_file_hash(ways[i]), model_file_hash(ways[0])));
        ck_assert(same(model_file_identity(ways[i]), model_file_identity(ways[0])));
        ck_assert_uint_eq(model_file_part(ways[i], 0).bytes, whole.bytes);
    }
    ck_assert_str_eq(model_file_path(ways[3]), "fd");
    model_hash stamp;
    ck_assert(!model_file_stamp(ways[4], &stamp));
    for (size_t i = COUNT_OF(ways); i-- > 0;)
        model_file_close(ways[i]);
    model_file_close(NULL);
    fixture_destroy(&fx);
}
END_TEST

/* The value is recorded: caches on disk depend on it. */
START_TEST(the_hash_is_stable_and_sees_the_directory)
{
    fixture fx = fixture_create();
    temp_path a = write_model(&fx, "a.gguf", 1, 8), b = write_model(&fx, "b.gguf", 2, 8),
              c = write_model(&fx, "c.gguf", 1, 9);
    model_file *fa = open_ok(fx.dg, a.path), *fb = open_ok(fx.dg, b.path),
               *fc = open_ok(fx.dg, c.path);
    model_hash ha = model_file_hash(fa), sa, sb;
    ck_assert(same(ha, model_file_hash(fb))); /* other weights: same directory, */
    ck_assert(!same(ha, model_file_hash(fc)));
    ck_assert(model_file_stamp(fa, &sa) && model_file_stamp(fb, &sb));
    ck_assert(!same(sa, sb)); /* but another file */
    ck_assert(!same(sa, ha));
    model_hash ia = model_file_identity(fa);
    ck_assert(!same(ia, ha) && !same(ia, model_file_identity(fb)));
    ck_assert(!same(ia, model_file_identity(fc)));
    ck_assert_uint_eq(ha.lo, UINT64_C(0x974cccc004ab0ba9));
    ck_assert_uint_eq(ha.hi, UINT64_C(0x3a039561cee9daf8));
    model_file_close(fa);
    model_file_close(fb);
    model_file_close(fc);
    fixture_destroy(&fx);
}
END_TEST

START_TEST(what_is_not_a_model_is_named)
{
    static const struct {
        const char *file;
        str text;
        weft_code code;
        const char *part;
    } cases[] = {
        {"a.bin", STR("PK\3\4 and so on"), W1011,
         "a.bin: is a zip archive (a PyTorch checkpoint?)"},
        {"a.bin", STR("\x80\2}q"), W1011, "is a Python pickle"},
        {"a.bin", STR("tjgg\3\0\0\0"), W1011, "is a GGJT file, the predecessor of GGUF"},
        {"a.bin", STR("hello"), W1011, "is neither GGUF nor safetensors"},
        {"a.bin", STR(""), W1011, "a.bin: is empty"},
        {"a.gguf", STR(""), W1005, "a.gguf: the magic at byte 0 takes 4 bytes"},
        {"a.gguf", STR("GG"), W1005, "a.gguf: the magic"},
        {"a.gguf", STR("FUGG\3\0\0\0"), W1011, "is neither GGUF nor safetensors"},
        {"a.gguf", STR("GGUF"), W1005, "the version at byte 4 takes 4 bytes"},
    };
    fixture fx = fixture_create();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        temp_path p = temp_file(&fx.dir, cases[i].file, cases[i].text);
        expect_open_fails(fx.dg, p.path, cases[i].code, cases[i].part);
    }
    temp_path p = temp_join(&fx.dir, "none.gguf");
    expect_open_fails(fx.dg, p.path, W1001, "none.gguf: no such file");
    expect_open_fails(fx.dg, fx.dir.path, W1001, "config.json: no such file");
    expect_open_fails(fx.dg, "", W1001, "no such file");
    ck_assert_int_eq(mkfifo(p.path, 0600), 0);
    expect_open_fails(fx.dg, p.path, W1002, "is a FIFO");
    fixture_destroy(&fx);
}
END_TEST

enum { CANNOT_TRY = 77 };

static void lock_too_much(void)
{
    weft_diag *dg = diag_create();
    model_file *mf = NULL;
    struct rlimit none = {0, 0};
    const char *path = getenv("WEFT_TEST_MODEL");
    /* Root may lock whatever the limit says. */
    if (setrlimit(RLIMIT_MEMLOCK, &none) != 0 || (geteuid() == 0 && seteuid(65534) != 0))
        _exit(CANNOT_TRY);
#if defined(SUITE_ASAN)
    _exit(CANNOT_TRY); /* the address sanitizer turns mlock into nothing */
#endif
    weft_status status = model_file_open(dg, path, &(model_file_options){.mlock = true}, &mf);
    _exit(status == WEFT_ERR_FILE && diag_at(dg, 0).code == W1013 ? 0 : 1);
}

START_TEST(memory_that_cannot_be_locked_is_an_error)
{
    fixture fx = fixture_create();
    temp_path p = write_model(&fx, "m.gguf", 1, 8);
    setenv("WEFT_TEST_MODEL", p.path, 1);
    int status = child_status(lock_too_much);
    ck_assert(WIFEXITED(status));
    if (WEXITSTATUS(status) == CANNOT_TRY)
        printf("skipped: memory can always be locked here\n");
    else
        ck_assert_int_eq(WEXITSTATUS(status), 0);
    fixture_destroy(&fx);
}
END_TEST

/* As large as an 8B model and all holes: opening must not touch the data. */
START_TEST(opening_does_not_read_the_weights)
{
    fixture fx = fixture_create();
    strbuf b = {0};
    const uint64_t rows = 128256, width = 4096, bytes = rows * width * 2;
    put_head(&b, 3, 16, 0);
    for (uint64_t i = 0; i < 16; i++) {
        char name[16];
        snprintf(name, sizeof name, "blk.%d", (int)i);
        put_tensor(&b, name, 2, (uint64_t[]){width, rows}, 1, i * bytes);
    }
    put_padding(&b, 32);
    temp_path p = temp_file(&fx.dir, "big.gguf", strbuf_view(&b));
    if (truncate(p.path, (off_t)(b.n + 16 * bytes)) == 0) {
        struct rusage before, after;
        getrusage(RUSAGE_SELF, &before);
        model_file *mf = open_ok(fx.dg, p.path);
        getrusage(RUSAGE_SELF, &after);
        ck_assert_int_eq(model_file_tensor_at(mf, 15)->shape[0], (int64_t)rows);
        ck_assert_int_lt(after.ru_maxrss - before.ru_maxrss, 8 << 10);
        model_file_close(mf);
    } else {
        printf("skipped: no sparse files here\n");
    }
    strbuf_free(&b);
    fixture_destroy(&fx);
}
END_TEST

/* The same weights in two formats: equal numbers under both names. */
START_TEST(golden_formats_agree)
{
    if (!have_shared("golden/llama-mha/model-bf16.gguf"))
        return;
    weft_diag *dg = diag_create();
    model_file *g = open_ok(dg, SHARED "golden/llama-mha/model-bf16.gguf"),
               *h = open_ok(dg, SHARED "golden/llama-mha");
    ck_assert(str_eqz(model_file_arch(g, 0), "llama"));
    ck_assert(str_eqz(model_file_arch(h, 0), "LlamaForCausalLM"));
    int64_t x, y;
    ck_assert(value_int(model_file_key(g, STR("embedding_length")), &x));
    ck_assert(value_int(model_file_key(h, STR("hidden_size")), &y) && x == y);
    const model_tensor *a = model_file_tensor(g, STR("token_embd.weight")),
                       *b = model_file_tensor(h, STR("model.embed_tokens.weight"));
    ck_assert(a->rank == 2 && b->rank == 2 && a->shape[0] == b->shape[0] && a->shape[1] == y);
    ck_assert(a->elems == b->elems);
    float *fa = malloc(4 * (size_t)a->elems), *fb = malloc(4 * (size_t)b->elems);
    dequant_row(a->type, a->data, fa, a->elems);
    dequant_row(b->type, b->data, fb, b->elems);
    ck_assert(memcmp(fa, fb, 4 * (size_t)a->elems) == 0);
    free(fa);
    free(fb);
    model_file_close(g);
    model_file_close(h);
    diag_destroy(dg);
}
END_TEST

/* Dequantised weights stay near the originals: a type read in the wrong order would not. */
START_TEST(golden_quantised_weights_are_near)
{
    static const struct {
        const char *file;
        double error; /* of the tensor's largest, from the number of levels of the type */
    } cases[] = {{"f16", 1e-3}, {"bf16", 1e-9},  {"q8_0", 0.02},  {"q6_k", 0.06},
                 {"q5_0", 0.1}, {"q5_1", 0.1},   {"q5_k_m", 0.1}, {"q4_0", 0.2},
                 {"q4_1", 0.2}, {"q4_k_m", 0.2}, {"q3_k_m", 0.4}, {"q2_k", 0.6}};
    if (!have_shared("golden/llama-k256/model.safetensors"))
        return;
    weft_diag *dg = diag_create();
    model_file *h = open_ok(dg, SHARED "golden/llama-k256");
    const model_tensor *want = model_file_tensor(h, STR("model.layers.1.mlp.up_proj.weight"));
    float *fw = malloc(4 * (size_t)want->elems), *fq = malloc(4 * (size_t)want->elems);
    dequant_row(want->type, want->data, fw, want->elems);
    double largest = 0;
    for (int64_t i = 0; i < want->elems; i++)
        largest = fmax(largest, fabs((double)fw[i]));
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char path[512];
        snprintf(path, sizeof path, SHARED "golden/llama-k256/model-%s.gguf", cases[i].file);
        model_file *q = open_ok(dg, path);
        const model_tensor *t = model_file_tensor(q, STR("blk.1.ffn_up.weight"));
        ck_assert(t->elems == want->elems);
        dequant_row(t->type, t->data, fq, t->elems);
        double worst = 0;
        for (int64_t k = 0; k < t->elems; k++)
            worst = fmax(worst, fabs((double)fq[k] - (double)fw[k]));
        ck_assert_msg(worst <= cases[i].error * largest, "%s: off by %g of %g", cases[i].file,
                      worst, largest);
        model_file_close(q);
    }
    free(fw);
    free(fq);
    model_file_close(h);
    diag_destroy(dg);
}
END_TEST

START_TEST(real_files_open)
{
    static const struct {
        const char *path;
        const char *arch;
        const char *key;
        size_t tokens;
    } cases[] = {
        {"models/stories15M/stories15M-Q8_0.gguf", "llama", "block_count", 32000},
        {"models/stories-7m", "LlamaForCausalLM", "num_hidden_layers", 0},
        {"tokenizer-vectors/ggml-vocab-deepseek-llm.gguf", "llama", "context_length", 102400},
        {"tokenizer-vectors/ggml-vocab-gpt-2.gguf", "gpt2", "context_length", 50257},
        {"golden/gpt_oss", "GptOssForCausalLM", "rope_scaling.factor", 0},
        {"golden/deepseek_v3/model-f32.gguf", "deepseek2", "block_count", 0},
        {"golden/mixtral", "MixtralForCausalLM", "num_local_experts", 0},
    };
    weft_diag *dg = diag_create();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char path[512];
        snprintf(path, sizeof path, SHARED "%s", cases[i].path);
        if (!have_shared(cases[i].path))
            continue;
        model_file *mf = open_ok(dg, path);
        ck_assert(str_eqz(model_file_arch(mf, 0), cases[i].arch));
        int64_t x;
        ck_assert_msg(value_int(model_file_key(mf, str_of(cases[i].key)), &x) && x > 0, "%s",
                      cases[i].path);
        if (cases[i].tokens)
            ck_assert_uint_eq(value_count(model_file_key(mf, STR("/tokenizer.ggml.tokens"))),
                              cases[i].tokens);
        expect_ok(dg, model_file_check(dg, mf));
        model_file_close(mf);
    }
    diag_destroy(dg);
}
END_TEST

SUITE_MAIN("model_file", every_way_of_opening_gives_the_same,
           the_hash_is_stable_and_sees_the_directory, what_is_not_a_model_is_named,
           memory_that_cannot_be_locked_is_an_error, opening_does_not_read_the_weights,
           golden_formats_agree, golden_quantised_weights_are_near, real_files_open)
