/* test_dtype.c - the suite of runtime/base/dtype.c. */
#include "runtime/base/dtype.h"
#include "tests/base/suite.h"

/* GGMLQuantizationType and GGML_QUANT_SIZES of the Python package gguf 0.19. Its Q8_1 is the one
 * exception: the package has 40 bytes, from when that block held two floats; ggml-common.h has two
 * halves, 36. */
static const struct {
    const char *name;
    uint32_t ggml;
    int64_t elems;
    size_t bytes;
} gguf_rows[] = {
    {"F32", 0, 1, 4},         {"F16", 1, 1, 2},         {"Q4_0", 2, 32, 18},
    {"Q4_1", 3, 32, 20},      {"Q5_0", 6, 32, 22},      {"Q5_1", 7, 32, 24},
    {"Q8_0", 8, 32, 34},      {"Q8_1", 9, 32, 36},      {"Q2_K", 10, 256, 84},
    {"Q3_K", 11, 256, 110},   {"Q4_K", 12, 256, 144},   {"Q5_K", 13, 256, 176},
    {"Q6_K", 14, 256, 210},   {"Q8_K", 15, 256, 292},   {"IQ2_XXS", 16, 256, 66},
    {"IQ2_XS", 17, 256, 74},  {"IQ3_XXS", 18, 256, 98}, {"IQ1_S", 19, 256, 50},
    {"IQ4_NL", 20, 32, 18},   {"IQ3_S", 21, 256, 110},  {"IQ2_S", 22, 256, 82},
    {"IQ4_XS", 23, 256, 136}, {"I8", 24, 1, 1},         {"I16", 25, 1, 2},
    {"I32", 26, 1, 4},        {"I64", 27, 1, 8},        {"F64", 28, 1, 8},
    {"IQ1_M", 29, 256, 56},   {"BF16", 30, 1, 2},       {"TQ1_0", 34, 256, 54},
    {"TQ2_0", 35, 256, 66},   {"MXFP4", 39, 32, 17},    {"NVFP4", 40, 64, 36},
    {"Q1_0", 41, 128, 18},
};

START_TEST(agrees_with_gguf)
{
    size_t n_ggml = 0;
    for (int i = 0; i < DT_COUNT; i++)
        n_ggml += dtype_row_of((dtype)i)->ggml >= 0;
    ck_assert_uint_eq(n_ggml, COUNT_OF(gguf_rows));
    for (size_t i = 0; i < COUNT_OF(gguf_rows); i++) {
        dtype t, named;
        ck_assert(dtype_from_ggml(gguf_rows[i].ggml, &t));
        ck_assert(dtype_from_name(str_of(gguf_rows[i].name), &named));
        ck_assert_int_eq(t, named);
        const dtype_row *row = dtype_row_of(t);
        ck_assert_str_eq(row->name, gguf_rows[i].name);
        if (row->elems != gguf_rows[i].elems || row->bytes != gguf_rows[i].bytes)
            ck_abort_msg("%s has blocks of the wrong size", row->name);
    }
}
END_TEST

START_TEST(safetensors_names)
{
    static const struct {
        const char *name;
        dtype t;
        size_t bytes;
    } rows[] = {
        {"F64", DT_F64, 8}, {"F32", DT_F32, 4},   {"F16", DT_F16, 2},         {"BF16", DT_BF16, 2},
        {"I64", DT_I64, 8}, {"I32", DT_I32, 4},   {"I16", DT_I16, 2},         {"I8", DT_I8, 1},
        {"U8", DT_U8, 1},   {"BOOL", DT_BOOL, 1}, {"F8_E4M3", DT_F8_E4M3, 1}, {"U64", DT_U64, 8},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        dtype t;
        ck_assert(dtype_from_hf(str_of(rows[i].name), &t));
        ck_assert_int_eq(t, rows[i].t);
        ck_assert_uint_eq(dtype_row_of(t)->bytes, rows[i].bytes);
    }
}
END_TEST

START_TEST(rows_are_unique_and_whole)
{
    for (int i = 0; i < DT_COUNT; i++) {
        const dtype_row *a = dtype_row_of((dtype)i);
        ck_assert_int_gt(a->elems, 0);
        ck_assert_uint_gt(a->bytes, 0);
        for (int j = 0; j < i; j++) {
            const dtype_row *b = dtype_row_of((dtype)j);
            ck_assert_str_ne(a->name, b->name);
            ck_assert(a->ggml < 0 || a->ggml != b->ggml);
            ck_assert(!a->hf || !b->hf || strcmp(a->hf, b->hf) != 0);
        }
    }
    ck_assert(dtype_row_of(DT_Q4_K)->is_weight && dtype_row_of(DT_MXFP4_HF)->is_weight);
    ck_assert(!dtype_row_of(DT_IQ1_S)->is_weight && !dtype_row_of(DT_Q8_1)->is_weight);
}
END_TEST

START_TEST(unknown_types_are_not_found)
{
    dtype t = DT_Q4_K;
    static const uint32_t gone[] = {4, 5, 31, 32, 33, 36, 37, 38, 9999, UINT32_MAX};
    for (size_t i = 0; i < COUNT_OF(gone); i++)
        ck_assert(!dtype_from_ggml(gone[i], &t));
    ck_assert(!dtype_from_name(STR("Q4_Z"), &t));
    ck_assert(!dtype_from_name(STR(""), &t));
    ck_assert(!dtype_from_hf(STR("Q4_K"), &t));
    ck_assert_int_eq(t, DT_Q4_K);
}
END_TEST

START_TEST(sizes_of_tensors)
{
    size_t n = 77;
    ck_assert(dtype_bytes(DT_F32, 10, &n) && n == 40);
    ck_assert(dtype_bytes(DT_Q4_K, 0, &n) && n == 0);
    ck_assert(dtype_bytes(DT_Q4_K, 512, &n) && n == 288);
    ck_assert(dtype_bytes(DT_MXFP4_HF, 64, &n) && n == 34);
    n = 77;
    ck_assert(!dtype_bytes(DT_Q4_K, 511, &n));
    ck_assert(!dtype_bytes(DT_F64, INT64_MAX, &n));
    ck_assert_uint_eq(n, 77);
}
END_TEST

SUITE_MAIN("dtype", agrees_with_gguf, safetensors_names, rows_are_unique_and_whole,
           unknown_types_are_not_found, sizes_of_tensors)
