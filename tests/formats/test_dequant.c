/* test_dequant.c - every storage type against the recorded results of the Python package gguf
 * (make_dequant_vectors.py), and the half-width floats over all of their values. */
#include "kernels/ref/dequant.h"

#include "tests/base/suite.h"
#include <inttypes.h>
#include <math.h>

#define VECTORS WEFT_SOURCE_DIR "/tests/formats/vectors/"

static unsigned char *read_all(const char *name, size_t *out_n)
{
    char path[1024];
    snprintf(path, sizeof path, VECTORS "%s", name);
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "cannot open %s", path);
    unsigned char *p = malloc(1 << 16);
    *out_n = fread(p, 1, 1 << 16, f);
    ck_assert(feof(f));
    fclose(f);
    return p;
}

/* ck_assert records every pass, which is slow over all numbers; this speaks only on failure. */
#define EXPECT(cond, ...)                                                                          \
    do {                                                                                           \
        if (!(cond))                                                                               \
            ck_abort_msg(__VA_ARGS__);                                                             \
    } while (0)

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void check_equal(const char *type, const float *got, const unsigned char *want, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float w;
        memcpy(&w, want + 4 * i, sizeof w);
        EXPECT(bits_of(got[i]) == bits_of(w) || (isnan(got[i]) && isnan(w)),
               "%s: number %zu is %a, expected %a", type, i, (double)got[i], (double)w);
    }
}

START_TEST(types_match_python)
{
    int n_checked = 0;
    for (int t = 0; t < DT_COUNT; t++) {
        const dtype_row *row = dtype_row_of((dtype)t);
        if (!dequant_has((dtype)t) || row->elems == 1)
            continue;
        char name[32];
        size_t bytes;
        snprintf(name, sizeof name, "%s.bin", row->name);
        unsigned char *file = read_all(name, &bytes);
        size_t n_block = bytes / (row->bytes + 4 * (size_t)row->elems);
        size_t n = n_block * (size_t)row->elems;
        ck_assert(n_block >= 8);
        ck_assert_uint_eq(bytes, n_block * row->bytes + 4 * n);
        float *got = malloc(4 * n + 4);
        got[n] = 77.0f;
        dequant_row((dtype)t, file, got, (int64_t)n);
        check_equal(row->name, got, file + n_block * row->bytes, n);
        ck_assert_float_eq(got[n], 77.0f);

        /* From an odd address, block by block: the same. */
        unsigned char *moved = malloc(n_block * row->bytes + 1);
        memcpy(moved + 1, file, n_block * row->bytes);
        for (size_t b = 0; b < n_block; b++)
            dequant_row((dtype)t, moved + 1 + b * row->bytes, got + b * (size_t)row->elems,
                        row->elems);
        check_equal(row->name, got, file + n_block * row->bytes, n);
        free(moved);
        free(got);
        free(file);
        n_checked++;
    }
    ck_assert_int_eq(n_checked, 13);
}
END_TEST

START_TEST(mxfp4_hf_matches)
{
    size_t bytes;
    unsigned char *file = read_all("MXFP4_HF.bin", &bytes);
    size_t n_block = bytes / (17 + 4 * 32);
    float got[64 * 32];
    ck_assert(n_block >= 8 && n_block <= 64);
    dequant_row_mxfp4_hf(file, file + 16 * n_block, got, (int64_t)(32 * n_block));
    check_equal("MXFP4_HF", got, file + 17 * n_block, 32 * n_block);
    free(file);
}
END_TEST

START_TEST(every_weight_type_is_there)
{
    for (int t = 0; t < DT_COUNT; t++)
        ck_assert_msg(dequant_has((dtype)t) ==
                          (dtype_row_of((dtype)t)->is_weight && t != DT_MXFP4_HF),
                      "%s", dtype_row_of((dtype)t)->name);
}
END_TEST

static uint64_t fnv(uint64_t h, uint32_t x)
{
    for (int i = 0; i < 4; i++)
        h = (h ^ (x >> 8 * i & 255)) * 0x100000001b3u;
    return h;
}

START_TEST(halves_match_python)
{
    size_t bytes;
    char *text = (char *)read_all("halves.txt", &bytes);
    uint64_t want_f16, want_bf16;
    text[bytes] = 0;
    ck_assert_int_eq(sscanf(text, "F16 %" SCNx64 " BF16 %" SCNx64, &want_f16, &want_bf16), 2);
    free(text);
    uint64_t f16 = 0xcbf29ce484222325u, bf16 = f16;
    for (uint32_t h = 0; h < 65536; h++) {
        unsigned char raw[2] = {(unsigned char)h, (unsigned char)(h >> 8)};
        float a, b;
        dequant_row(DT_F16, raw, &a, 1);
        dequant_row(DT_BF16, raw, &b, 1);
        f16 = fnv(f16, isnan(a) ? bits_of(a) | 0x400000 : bits_of(a));
        bf16 = fnv(bf16, isnan(b) ? bits_of(b) | 0x400000 : bits_of(b));
    }
    ck_assert_uint_eq(f16, want_f16);
    ck_assert_uint_eq(bf16, want_bf16);
}
END_TEST

/* The value that the format's definition gives, from ldexp. */
START_TEST(f16_is_exact)
{
    for (uint32_t h = 0; h < 65536; h++) {
        float x = f16_to_f32((uint16_t)h);
        int exponent = (int)(h >> 10 & 31), fraction = (int)(h & 1023);
        EXPECT((signbit(x) != 0) == (h >> 15 != 0), "sign of %04x", h);
        if (exponent == 31 && fraction != 0) {
            EXPECT(isnan(x) && (bits_of(x) & 0x7fffff) == (uint32_t)fraction << 13, "NaN %04x", h);
            EXPECT(f32_to_f16(x) == (h | 0x200), "back from NaN %04x", h);
            continue;
        }
        double want = exponent == 31  ? INFINITY
                      : exponent == 0 ? ldexp(fraction, -24)
                                      : ldexp(1024 + fraction, exponent - 25);
        EXPECT((double)fabsf(x) == want, "%04x is %a, expected %a", h, (double)x, want);
        EXPECT(f32_to_f16(x) == h, "back from %04x", h);
    }
}
END_TEST

START_TEST(bf16_is_exact)
{
    for (uint32_t h = 0; h < 65536; h++) {
        float x = bf16_to_f32((uint16_t)h);
        EXPECT(bits_of(x) == h << 16, "%04x", h);
        EXPECT(f32_to_bf16(x) == (isnan(x) ? h | 0x40 : h), "back from %04x", h);
    }
}
END_TEST

/* Between two neighbours of the narrow type, and exactly half way, to nearest and ties to even. */
START_TEST(rounding_is_to_nearest_even)
{
    for (uint32_t h = 0; h < 0x7c00; h++) {
        float low = f16_to_f32((uint16_t)h);
        float high = h == 0x7bff ? 65536.0f : f16_to_f32((uint16_t)(h + 1));
        float mid = (low + high) / 2; /* exact: f32 has 13 bits to spare */
        uint32_t even = h + (h & 1);
        EXPECT(f32_to_f16(mid) == even, "above %04x", h);
        EXPECT(f32_to_f16(-mid) == (0x8000 | even), "below %04x", 0x8000 | h);
        EXPECT(f32_to_f16(from_bits(bits_of(mid) - 1)) == h, "just above %04x", h);
        EXPECT(f32_to_f16(from_bits(bits_of(mid) + 1)) == h + 1, "just below %04x", h + 1);
    }
    for (uint32_t h = 0; h < 0x7f80; h++) {
        EXPECT(f32_to_bf16(from_bits(h << 16 | 0x8000)) == h + (h & 1), "bf16 above %04x", h);
        EXPECT(f32_to_bf16(from_bits(h << 16 | 0x7fff)) == h, "bf16 just above %04x", h);
        EXPECT(f32_to_bf16(from_bits(h << 16 | 0x8001)) == h + 1, "bf16 just below %04x", h + 1);
    }
    ck_assert_uint_eq(f32_to_f16(1e30f), 0x7c00);
    ck_assert_uint_eq(f32_to_f16(-1e30f), 0xfc00);
    ck_assert_uint_eq(f32_to_f16(1e-30f), 0);
    ck_assert_uint_eq(f32_to_f16(-1e-45f), 0x8000);
    ck_assert_uint_eq(f32_to_bf16(from_bits(0x7f800001)), 0x7fc0); /* a NaN stays one */
    ck_assert_uint_eq(f32_to_f16(from_bits(0xff800001)), 0xfe00);
}
END_TEST

SUITE_MAIN("dequant", types_match_python, mxfp4_hf_matches, every_weight_type_is_there,
           halves_match_python, f16_is_exact, bf16_is_exact, rounding_is_to_nearest_even)
