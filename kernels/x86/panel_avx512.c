/* panel_avx512.c - linear and experts for many rows with AVX-512 and VNNI: interleaved weights as panels of 32 rows.
 *
 * Codes come as codes_avx512.h has them, eight columns of eight rows in a register, and are put in the order of a panel,
 * four columns of sixteen rows. */
#include "kernels/kernel_decls.h"

#define PANEL_ROWS 32
#include "kernels/x86/codes_avx512.h"
#include "kernels/x86/panel_vnni.h"

enum { GROUPS = PANEL_ROWS / LAYOUT_GROUP };

/* Where groups of eight rows begin; those past the last one are the first again. */
typedef struct {
    const uint8_t *at[GROUPS];
} interleaved;

X86_INLINE interleaved interleaved_of(const uint8_t *w, int64_t pitch, int64_t rows)
{
    interleaved h;
    for (int g = 0; g < GROUPS; g++)
        h.at[g] = w + (g * LAYOUT_GROUP < rows ? g * pitch : 0);
    return h;
}

/* Asks for what lies a panel further on. */
X86_INLINE void hint(const uint8_t *w, int64_t pitch, int64_t bytes)
{
    x86_hint_at((const uint8_t *)((uintptr_t)w + GROUPS * (uintptr_t)pitch), bytes);
}

/* 32 columns of two groups, a register of rows. */
X86_INLINE void put_codes(const uint8_t *a, const uint8_t *b, codes_fn *codes, uint8_t *to)
{
    __m512i v[4], u[4];
    codes(a, v);
    codes(b, u);
    for (int s = 0; s < 4; s++)
        codes_pair(v[s], u[s], to + s * 2 * PANEL_STEP);
}

X86_INLINE void unpack32(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first, int64_t cols,
                         uint8_t *to, const rows8_block32 *t)
{
    const panel_layout l = panel_layout32(t->has_min, 1);
    const interleaved h = interleaved_of(w + first / 32 * t->bytes, pitch, rows);
    for (int64_t at = 0; at < cols / 32 * t->bytes; at += t->bytes, to += l.bytes) {
        float *d = (float *)(void *)(to + l.d);
        for (int g = 0; g < GROUPS; g += 2)
            put_codes(h.at[g] + at + t->codes_at, h.at[g + 1] + at + t->codes_at, t->codes,
                      to + g / 2 * PANEL_REG);
        for (int g = 0; g < GROUPS; g++, d += LAYOUT_GROUP) {
            hint(h.at[g] + at, pitch, t->bytes);
            _mm256_storeu_ps(d, _mm256_mul_ps(t->scales(h.at[g] + at), _mm256_set1_ps(t->unit)));
            if (t->has_min)
                _mm256_storeu_ps(d + PANEL_ROWS, t->scales(h.at[g] + at + 16));
        }
    }
}

/* Scales and minima of a group's block. */
X86_INLINE void put_scales(const uint8_t *w, const rows8_block256 *t, const panel_layout *l,
                           uint8_t *to)
{
    uint8_t scale8[GROUPS_BYTES], min8[GROUPS_BYTES];
    const uint8_t *scales = t->scales(w, scale8, min8);
    float *scale = (float *)(void *)(to + l->scales), *d = (float *)(void *)(to + l->d);
    for (int g = 0; g < t->groups; g++) {
        __m128i eight = _mm_loadl_epi64((const void *)(scales + g * 8));
        _mm256_storeu_ps(scale + g * PANEL_ROWS, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight)));
    }
    for (int p = 0; p < t->groups / 2 && t->has_min; p++) {
        const uint8_t *at = min8 + p * 16; /* of two groups */
        __m256i one = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)at));
        __m256i two = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(at + 8)));
        one = _mm256_or_si256(one, _mm256_slli_epi32(two, 16));
        _mm256_storeu_si256((void *)(to + l->less + p * PANEL_LINE), one);
    }
    _mm256_storeu_ps(d, _mm256_mul_ps(codes_f16(w), _mm256_set1_ps(t->unit)));
    if (t->has_min)
        _mm256_storeu_ps(d + PANEL_ROWS, codes_f16(w + 16));
}

X86_INLINE void unpack256(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first,
                          int64_t cols, uint8_t *to, const rows8_block256 *t)
{
    const panel_layout l = panel_layout256(t->groups, 1);
    const interleaved h = interleaved_of(w + first / 256 * t->bytes, pitch, rows);
    for (int64_t at = 0; at < cols / 256 * t->bytes; at += t->bytes, to += l.bytes) {
        for (int g = 0; g < GROUPS; g++) {
            hint(h.at[g] + at, pitch, t->bytes);
            put_scales(h.at[g] + at, t, &l, to + g * LAYOUT_GROUP * 4);
        }
        for (int sub = 0; sub < 8; sub++)
            for (int g = 0; g < GROUPS; g += 2) {
                int64_t codes = at + t->codes_at + sub * t->sub_bytes;
                put_codes(h.at[g] + codes, h.at[g + 1] + codes, t->codes,
                          to + sub * PANEL_SUB + g / 2 * PANEL_REG);
            }
    }
}

enum { COLS = 512 }; /* with which a panel takes 20 KB */
PANEL_FITS(COLS, 32, PANEL_BYTES_32(true, 1))
PANEL_FITS(COLS, 256, PANEL_BYTES_256(16, 1))

#define KERNELS(type, act, blocks, groups)                                                         \
    static void unpack_##type(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first,        \
                              int64_t cols, void *panel)                                           \
    {                                                                                              \
        unpack##blocks(w, pitch, rows, first, cols, panel, &rows8_##type);                         \
    }                                                                                              \
    PANEL_COUNTS(multiply##blocks, type,                                                           \
                 ((panel_type){rows8_##type.offset, rows8_##type.has_min, 255, groups}))           \
    static const panel_core core_##type = {                                                        \
        act, PANEL_ROWS, TILE, LAYOUT_GROUP, COLS, unpack_##type, multiply_##type, NULL};          \
    PANEL_KERNELS(type, avx512, &core_##type)

KERNELS(Q8_0, ACT_Q8, 32, 0)
KERNELS(Q4_0, ACT_Q8, 32, 0)
KERNELS(Q4_1, ACT_Q8, 32, 0)
KERNELS(Q5_0, ACT_Q8, 32, 0)
KERNELS(Q5_1, ACT_Q8, 32, 0)
KERNELS(IQ4_NL, ACT_Q8, 32, 0)
KERNELS(MXFP4, ACT_Q8, 32, 0)
KERNELS(Q2_K, ACT_Q8K, 256, 16)
KERNELS(Q3_K, ACT_Q8K, 256, 16)
KERNELS(Q4_K, ACT_Q8K, 256, 8)
KERNELS(Q5_K, ACT_Q8K, 256, 8)
KERNELS(Q6_K, ACT_Q8K, 256, 16)
KERNELS(IQ4_XS, ACT_Q8K, 256, 8)
