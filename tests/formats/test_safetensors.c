/* test_safetensors.c - the suite of runtime/formats/safetensors.c and safetensors_write.c. */
#include "runtime/formats/safetensors_write.h"
#include "tests/formats/files.h"

/* A file with this header and n bytes of data. */
static temp_path write_raw(const fixture *fx, const char *header, size_t n)
{
    strbuf b = {0};
    put_text(&b, header);
    strbuf_fill(&b, 1, n);
    temp_path p = temp_file(&fx->dir, "x.safetensors", strbuf_view(&b));
    strbuf_free(&b);
    return p;
}

START_TEST(what_is_written_reads_back)
{
    fixture fx = fixture_create();
    arena *a = arena_create();
    temp_path p = temp_join(&fx.dir, "out.safetensors");
    float logits[6] = {1, 2, 3, 4, 5, 6};
    int32_t ids[3] = {7, 8, 9};
    int64_t one = -1;
    unsigned char u8[5] = {1, 2, 3, 4, 5};
    const safetensors_item items[] = {
        {"u8", DT_U8, 1, (int64_t[]){5}, u8},
        {"logits", DT_F32, 2, (int64_t[]){2, 3}, logits},
        {"none", DT_BF16, 2, (int64_t[]){0, 4}, NULL},
        {"one", DT_I64, 0, NULL, &one},
        {"a \"name\"\n", DT_I32, 1, (int64_t[]){3}, ids},
    };
    value_member m[] = {{STR("format"), value_of_str(STR("weft"))}};
    value metadata;
    size_t twice;
    ck_assert(value_of_members(a, m, 1, &metadata, &twice));
    expect_ok(fx.dg, safetensors_write(fx.dg, p.path, items, COUNT_OF(items), &metadata));
    model_file *mf = open_ok(fx.dg, p.path);
    ck_assert_int_eq(model_file_format(mf), MODEL_HF);
    ck_assert_uint_eq(model_file_arch_count(mf), 0);
    ck_assert_ptr_null(model_file_folder(mf));
    str s;
    ck_assert(value_str(model_file_key(mf, STR("format")), &s) && str_eqz(s, "weft"));
    ck_assert_uint_eq(model_file_tensor_count(mf), COUNT_OF(items));
    for (size_t i = 0; i < COUNT_OF(items); i++) {
        const model_tensor *t = model_file_tensor(mf, str_of(items[i].name));
        ck_assert_ptr_nonnull(t);
        ck_assert(t->type == items[i].type && t->rank == items[i].rank);
        for (int k = 0; k < t->rank; k++)
            ck_assert_int_eq(t->shape[k], items[i].shape[k]);
        ck_assert(t->bytes == 0 || memcmp(t->data, items[i].data, t->bytes) == 0);
        ck_assert_uint_eq((uintptr_t)t->data % dtype_row_of(t->type)->bytes, 0);
    }
    ck_assert_int_eq(model_file_tensor(mf, STR("none"))->elems, 0);
    model_file_close(mf);
    expect_ok(fx.dg, safetensors_write(fx.dg, p.path, NULL, 0, NULL));
    mf = open_ok(fx.dg, p.path);
    ck_assert_uint_eq(model_file_tensor_count(mf), 0);
    model_file_close(mf);
    arena_destroy(a);
    fixture_destroy(&fx);
}
END_TEST

/* A header of odd length, as early versions of the reference wrote: the data is not aligned. */
START_TEST(data_may_lie_anywhere)
{
    fixture fx = fixture_create();
    temp_path p = write_raw(
        &fx,
        "{\"t\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[3,11]}, \"__metadata__\":{}}",
        11);
    model_file *mf = open_ok(fx.dg, p.path);
    const model_tensor *t = model_file_tensor_at(mf, 0);
    ck_assert_uint_eq(t->offset % 2, 1);
    ck_assert_ptr_eq(t->data, model_file_part(mf, 0).data + t->offset);
    model_file_close(mf);
    fixture_destroy(&fx);
}
END_TEST

#define T(dtype, shape, offsets)                                                                   \
    "{\"t\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

START_TEST(bad_headers_are_refused)
{
    static const struct {
        const char *header;
        weft_code code;
        const char *part;
    } cases[] = {
        {"", W1014, "x.safetensors (header): line 1, column 1 (byte 0): the text ends"},
        {"[]", W1006, "the header is not a JSON object"},
        {"{", W1014, "the text ends within a value"},
        {"{\"t\":3}", W1006, "tensor t: is not described by an object"},
        {"{\"\":{}}", W1006, "a tensor has no name"},
        {"{\"t\":{}}", W1006, "tensor t: dtype is missing or not a string"},
        {T("7", "[1]", "[0,4]"), W1006, "dtype is missing or not a string"},
        {T("\"F4\"", "[1]", "[0,4]"), W1008, "tensor t: has the unknown type F4"},
        {T("\"f32\"", "[1]", "[0,4]"), W1008, "tensor t: has the unknown type f32"},
        {T("\"Q4_0\"", "[32]", "[0,18]"), W1008, "tensor t: has the unknown type Q4_0"},
        {T("\"F32\"", "1", "[0,4]"), W1006, "shape is missing or not a list"},
        {T("\"F32\"", "[-1]", "[0,4]"), W1006, "shape holds something else than whole numbers"},
        {T("\"F32\"", "[0.5]", "[0,4]"), W1006, "shape holds something else than whole numbers"},
        {T("\"F32\"", "[\"1\"]", "[0,4]"), W1006, "shape holds something else"},
        {T("\"F32\"", "[1e40]", "[0,4]"), W1006, "shape holds something else"},
        {T("\"F32\"", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), W1006,
         "has 9 dimensions, at most 8 are allowed"},
        {T("\"F32\"", "[4503599627370496,4503599627370496]", "[0,4]"), W1006,
         "its size overflows: F32 [4503599627370496, 4503599627370496]"},
        {T("\"F32\"", "[1]", "4"), W1006, "data_offsets is missing or not a list of two"},
        {T("\"F32\"", "[1]", "[0]"), W1006, "data_offsets is missing or not a list of two"},
        {T("\"F32\"", "[1]", "[4,0]"), W1006, "data_offsets are not two rising whole numbers"},
        {T("\"F32\"", "[1]", "[-4,0]"), W1006, "data_offsets are not two rising whole numbers"},
        {T("\"F32\"", "[1]", "[0,9223372036854775808]"), W1006, "data_offsets are not two rising"},
        {T("\"F32\"", "[1]", "[0,8]"), W1006, "data_offsets span 8 bytes, type and shape make 4"},
        {T("\"F32\"", "[5]", "[0,20]"), W1005, "tensor t: its 20 bytes from byte "},
        {T("\"F32\"", "[1]", "[9007199254740000,9007199254740004]"), W1005,
         "reach past the end of the file at "},
        {"{\"t\":{\"dtype\":\"I8\",\"shape\":[8],\"data_offsets\":[0,8]},"
         "\"u\":{\"dtype\":\"I8\",\"shape\":[8],\"data_offsets\":[7,15]}}",
         W1006, "tensors t and u overlap: the first ends at byte "},
        {"{\"t\":{\"dtype\":\"I8\",\"shape\":[8],\"data_offsets\":[0,8]},"
         "\"t\":{\"dtype\":\"I8\",\"shape\":[8],\"data_offsets\":[8,16]}}",
         W1010, "the name \"t\" stands twice"},
        {"{\"__metadata__\":[]}", W1006, "__metadata__ is not an object"},
        {"{\"__metadata__\":{\"a\":1}}", W1006, "__metadata__: a is not a string"},
        {"{\"a\":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]}", W1102, "nested more than 16 deep"},
    };
    fixture fx = fixture_create();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        temp_path p = write_raw(&fx, cases[i].header, 16);
        expect_open_fails(fx.dg, p.path, cases[i].code, cases[i].part);
    }
    fixture_destroy(&fx);
}
END_TEST

START_TEST(sizes_that_lie_are_refused)
{
    fixture fx = fixture_create();
    strbuf b = {0};
    put_u64(&b, 3);
    strbuf_put(&b, STR("{}"));
    temp_path p = temp_file(&fx.dir, "x.safetensors", strbuf_view(&b));
    expect_open_fails(fx.dg, p.path, W1005,
                      "its header of 3 bytes would end at byte 11, but the file has 10");
    strbuf_reset(&b);
    put_u64(&b, UINT64_MAX);
    strbuf_put(&b, STR("{}"));
    p = temp_file(&fx.dir, "x.safetensors", strbuf_view(&b));
    expect_open_fails(fx.dg, p.path, W1101, "claims a header of 18446744073709551615 bytes");
    p = temp_file(&fx.dir, "x.safetensors", STR("1234567"));
    expect_open_fails(fx.dg, p.path, W1005, "has 7 bytes, not even the 8");
    p = temp_file(&fx.dir, "x.safetensors", STR(""));
    expect_open_fails(fx.dg, p.path, W1005, "has 0 bytes");
    strbuf_free(&b);
    fixture_destroy(&fx);
}
END_TEST

START_TEST(truncation_at_every_byte_is_refused)
{
    fixture fx = fixture_create();
    strbuf b = {0};
    put_text(&b, "{\"__metadata__\":{\"format\":\"pt\"},"
                 "\"a\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"
                 "\"b\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[8,14]}} ");
    strbuf_fill(&b, 1, 14);
    for (size_t n = 0; n < b.n; n++) {
        temp_path p = temp_file(&fx.dir, "x.safetensors", (str){b.p, n});
        model_file *mf = NULL;
        if (model_file_open(fx.dg, p.path, NULL, &mf) == WEFT_OK || diag_at(fx.dg, 0).code != W1005)
            ck_abort_msg("%zu of %zu bytes: %s", n, b.n, printed(fx.dg, false));
        diag_reset(fx.dg);
    }
    temp_path p = temp_file(&fx.dir, "x.safetensors", strbuf_view(&b));
    model_file_close(open_ok(fx.dg, p.path));
    strbuf_free(&b);
    fixture_destroy(&fx);
}
END_TEST

SUITE_MAIN("safetensors", what_is_written_reads_back, data_may_lie_anywhere,
           bad_headers_are_refused, sizes_that_lie_are_refused, truncation_at_every_byte_is_refused)
