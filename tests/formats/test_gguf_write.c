/* test_gguf_write.c - the suite of runtime/formats/gguf_write.c and out_file.c. */
#include "runtime/formats/gguf_write.h"
#include "tests/formats/files.h"
#include <fcntl.h>

static size_t entries_in(const char *folder)
{
    size_t n = 0;
    DIR *d = opendir(folder);
    while (d && readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

START_TEST(what_is_written_reads_back)
{
    fixture fx = fixture_create();
    temp_path p = temp_join(&fx.dir, "a.gguf");
    gguf_writer *w = gguf_writer_create();
    str words[] = {STR("x"), STR(""), STR("\xff\0y")};
    float scores[] = {1, -2};
    value lists[] = {value_of_array(VT_F32, scores, 2), value_of_array(VT_STR, words, 1)};
    value whole[] = {value_of_int(VT_I64, 4), value_of_int(VT_I64, -4)};
    const value_member keys[] = {
        {STR("general.architecture"), value_of_str(STR("toy"))},
        {STR("u8"), value_of_int(VT_U8, 255)},
        {STR("i8"), value_of_int(VT_I8, -128)},
        {STR("u16"), value_of_int(VT_U16, 65535)},
        {STR("i16"), value_of_int(VT_I16, -32768)},
        {STR("u32"), value_of_int(VT_U32, UINT32_MAX)},
        {STR("i32"), value_of_int(VT_I32, INT32_MIN)},
        {STR("u64"), {.type = VT_U64, .as.u = UINT64_MAX}},
        {STR("i64"), value_of_int(VT_I64, INT64_MIN)},
        {STR("f32"), value_of_float(VT_F32, 0.1f)},
        {STR("f64"), value_of_float(VT_F64, 0.1)},
        {STR("bool"), value_of_bool(true)},
        {STR("words"), value_of_array(VT_STR, words, 3)},
        {STR("scores"), value_of_array(VT_F32, scores, 2)},
        {STR("lists"), value_of_array(VT_ARRAY, lists, 2)},
        {STR("whole"), value_of_array(VT_NULL, whole, 2)}, /* as JSON has it */
        {STR("empty"), value_of_array(VT_NULL, NULL, 0)},
    };
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        ck_assert(gguf_writer_key(w, keys[i].name, keys[i].v));
    float a[6] = {1, 2, 3, 4, 5, 6};
    unsigned char q[34] = {9};
    gguf_writer_tensor_data(w, STR("a"), DT_F32, 2, (int64_t[]){2, 3}, a);
    gguf_writer_tensor_data(w, STR("q"), DT_Q8_0, 1, (int64_t[]){32}, q);
    gguf_writer_tensor_data(w, STR("one"), DT_F32, 0, NULL, a + 5);
    expect_ok(fx.dg, gguf_writer_write(fx.dg, w, p.path));

    model_file *mf = open_ok(fx.dg, p.path);
    ck_assert_uint_eq(value_count(model_file_keys(mf)), COUNT_OF(keys));
    strbuf want = {0}, got = {0};
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        const value_member *m = &model_file_keys(mf)->as.object.members[i];
        ck_assert(str_eq(m->name, keys[i].name));
        ck_assert_int_eq(m->v.type, keys[i].v.type);
        value_json(&(json_writer){.out = &want}, &keys[i].v, 100);
        value_json(&(json_writer){.out = &got}, &m->v, 100);
    }
    ck_assert_str_eq(got.p, want.p);
    ck_assert(model_file_key(mf, STR("/u64"))->as.u == UINT64_MAX);
    ck_assert_int_eq(model_file_key(mf, STR("/whole"))->item, VT_I64);
    const model_tensor *t = model_file_tensor(mf, STR("a"));
    ck_assert(t->rank == 2 && t->shape[0] == 2 && t->shape[1] == 3);
    ck_assert(memcmp(t->data, a, sizeof a) == 0);
    ck_assert(memcmp(model_file_tensor(mf, STR("q"))->data, q, sizeof q) == 0);
    ck_assert(*(const float *)model_file_tensor(mf, STR("one"))->data == 6);
    ck_assert_uint_eq(model_file_part(mf, 0).bytes % 32, 0);

    /* And again from what was read: the same file. */
    temp_path p2 = temp_join(&fx.dir, "b.gguf");
    gguf_writer *w2 = gguf_writer_create();
    for (size_t i = 0; i < value_count(model_file_keys(mf)); i++) {
        const value_member *m = &model_file_keys(mf)->as.object.members[i];
        ck_assert(gguf_writer_key(w2, m->name, m->v));
    }
    for (size_t i = 0; i < model_file_tensor_count(mf); i++) {
        t = model_file_tensor_at(mf, i);
        gguf_writer_tensor_data(w2, t->name, t->type, t->rank, t->shape, t->data);
    }
    expect_ok(fx.dg, gguf_writer_write(fx.dg, w2, p2.path));
    model_file *mf2 = open_ok(fx.dg, p2.path);
    model_hash h = model_file_hash(mf), h2 = model_file_hash(mf2);
    ck_assert(h.lo == h2.lo && h.hi == h2.hi);
    model_part one = model_file_part(mf, 0), two = model_file_part(mf2, 0);
    ck_assert(one.bytes == two.bytes && memcmp(one.data, two.data, one.bytes) == 0);
    ck_assert_uint_eq(entries_in(fx.dir.path), 2);

    gguf_writer_destroy(w2);
    gguf_writer_destroy(w);
    model_file_close(mf2);
    model_file_close(mf);
    strbuf_free(&want);
    strbuf_free(&got);
    fixture_destroy(&fx);
}
END_TEST

START_TEST(keys_are_replaced_and_alignment_is_kept_to)
{
    fixture fx = fixture_create();
    temp_path p = temp_join(&fx.dir, "a.gguf");
    gguf_writer *w = gguf_writer_create();
    float x = 3;
    ck_assert(gguf_writer_key(w, STR("general.alignment"), value_of_int(VT_U32, 32)));
    ck_assert(gguf_writer_key(w, STR("k"), value_of_bool(true)));
    ck_assert(gguf_writer_key(w, STR("general.alignment"), value_of_int(VT_U32, 4096)));
    gguf_writer_tensor_data(w, STR("x"), DT_F32, 1, (int64_t[]){1}, &x);
    gguf_writer_tensor_data(w, STR("y"), DT_F32, 1, (int64_t[]){1}, &x);
    expect_ok(fx.dg, gguf_writer_write(fx.dg, w, p.path));
    model_file *mf = open_ok(fx.dg, p.path);
    ck_assert_uint_eq(value_count(model_file_keys(mf)), 2);
    ck_assert_uint_eq(model_file_tensor_at(mf, 0)->offset, 4096);
    ck_assert_uint_eq(model_file_tensor_at(mf, 1)->offset, 8192);
    model_file_close(mf);
    gguf_writer_destroy(w);
    fixture_destroy(&fx);
}
END_TEST

START_TEST(what_gguf_cannot_hold_is_refused)
{
    arena *a = arena_create();
    gguf_writer *w = gguf_writer_create();
    size_t twice;
    value object, mixed[] = {value_of_bool(true), value_of_int(VT_I64, 1)}, null = {0};
    ck_assert(value_of_members(a, NULL, 0, &object, &twice));
    value lists[] = {value_of_array(VT_NULL, mixed, 2)};
    ck_assert(!gguf_writer_key(w, STR("k"), object));
    ck_assert(!gguf_writer_key(w, STR("k"), null));
    ck_assert(!gguf_writer_key(w, STR("k"), lists[0]));
    ck_assert(!gguf_writer_key(w, STR("k"), value_of_array(VT_ARRAY, lists, 1)));
    ck_assert(!gguf_writer_key(w, STR("k"), value_of_array(VT_NULL, &object, 1)));
    value deep[10] = {value_of_bool(true)};
    for (int i = 1; i < 10; i++)
        deep[i] = value_of_array(VT_NULL, &deep[i - 1], 1);
    ck_assert(gguf_writer_key(w, STR("k"), deep[8]));
    ck_assert(!gguf_writer_key(w, STR("k"), deep[9]));
    gguf_writer_destroy(w);
    arena_destroy(a);
}
END_TEST

enum { STREAM_BYTES = 3 << 20 };

static weft_status fill_in_pieces(weft_diag *dg, gguf_sink *to, void *ctx)
{
    unsigned char piece[1021];
    size_t left = STREAM_BYTES, *calls = ctx;
    ++*calls;
    while (left > 0) {
        size_t n = left < sizeof piece ? left : sizeof piece;
        for (size_t i = 0; i < n; i++)
            piece[i] = (unsigned char)((STREAM_BYTES - left + i) % 251);
        WEFT_TRY(gguf_sink_put(dg, to, piece, n));
        left -= n;
    }
    return WEFT_OK;
}

static weft_status fill_and_fail(weft_diag *dg, gguf_sink *to, void *ctx)
{
    (void)ctx;
    WEFT_TRY(gguf_sink_put(dg, to, "abcd", 4));
    return weft_fail(dg, W1012, WEFT_NOWHERE, "the source went away");
}

START_TEST(data_may_be_made_as_it_goes)
{
    fixture fx = fixture_create();
    temp_path p = temp_join(&fx.dir, "a.gguf");
    gguf_writer *w = gguf_writer_create();
    size_t calls = 0;
    gguf_writer_tensor(w, STR("s"), DT_I8, 1, (int64_t[]){STREAM_BYTES}, fill_in_pieces, &calls);
    ck_assert_uint_eq(calls, 0);
    expect_ok(fx.dg, gguf_writer_write(fx.dg, w, p.path));
    ck_assert_uint_eq(calls, 1);
    model_file *mf = open_ok(fx.dg, p.path);
    const unsigned char *data = model_file_tensor_at(mf, 0)->data;
    for (size_t i = 0; i < STREAM_BYTES; i++)
        if (data[i] != i % 251)
            ck_abort_msg("byte %zu", i);
    model_file_close(mf);
    gguf_writer_destroy(w);

    /* A fill that fails leaves the old file, and nothing else. */
    w = gguf_writer_create();
    gguf_writer_tensor(w, STR("s"), DT_F32, 1, (int64_t[]){100}, fill_and_fail, NULL);
    ck_assert_int_eq(gguf_writer_write(fx.dg, w, p.path), WEFT_ERR_FILE);
    expect_one(fx.dg, W1012, "went away");
    diag_reset(fx.dg);
    ck_assert_uint_eq(entries_in(fx.dir.path), 1);
    mf = open_ok(fx.dg, p.path);
    ck_assert_uint_eq(model_file_tensor_at(mf, 0)->bytes, STREAM_BYTES);
    model_file_close(mf);
    gguf_writer_destroy(w);
    fixture_destroy(&fx);
}
END_TEST

START_TEST(bad_targets_are_refused)
{
    fixture fx = fixture_create();
    gguf_writer *w = gguf_writer_create();
    ck_assert_int_ne(gguf_writer_write(fx.dg, w, fx.dir.path), WEFT_OK);
    expect_one(fx.dg, W1002, "it is not a regular file");
    diag_reset(fx.dg);
    ck_assert_int_ne(gguf_writer_write(fx.dg, w, "/dev/null"), WEFT_OK);
    expect_one(fx.dg, W1002, "cannot write /dev/null");
    diag_reset(fx.dg);
    temp_path p = temp_join(&fx.dir, "no/such.gguf");
    ck_assert_int_ne(gguf_writer_write(fx.dg, w, p.path), WEFT_OK);
    expect_one(fx.dg, W1004, "no/such.gguf: no such file or directory");
    diag_reset(fx.dg);

    /* A link stays a link. */
    temp_path target = temp_file(&fx.dir, "target.gguf", STR("old")), at;
    at = temp_join(&fx.dir, "link.gguf");
    ck_assert_int_eq(symlink(target.path, at.path), 0);
    expect_ok(fx.dg, gguf_writer_write(fx.dg, w, at.path));
    struct stat st;
    ck_assert(lstat(at.path, &st) == 0 && S_ISLNK(st.st_mode));
    model_file *mf = open_ok(fx.dg, target.path);
    model_file_close(mf);
    gguf_writer_destroy(w);
    fixture_destroy(&fx);
}
END_TEST

START_TEST(rights_are_those_of_a_new_file)
{
    fixture fx = fixture_create();
    temp_path p = temp_join(&fx.dir, "a.gguf");
    gguf_writer *w = gguf_writer_create();
    mode_t mask = umask(027);
    expect_ok(fx.dg, gguf_writer_write(fx.dg, w, p.path));
    umask(mask);
    struct stat st;
    ck_assert_int_eq(stat(p.path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0640);
    gguf_writer_destroy(w);
    fixture_destroy(&fx);
}
END_TEST

SUITE_MAIN("gguf_write", what_is_written_reads_back, keys_are_replaced_and_alignment_is_kept_to,
           what_gguf_cannot_hold_is_refused, data_may_be_made_as_it_goes, bad_targets_are_refused,
           rights_are_those_of_a_new_file)
