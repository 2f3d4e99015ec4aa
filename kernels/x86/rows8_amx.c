/* rows8_amx.c - interleaved weights as bf16 tiles, and their kernels for many rows (ACT_BF1; of BF16 also ACT_BF3T).
 *
 * Number = scale * code + less, in f32, rounded to bf16: 0.1 % of it, where rounding activations to 8 bits costs four
 * times as much. A register holds eight columns of eight rows (codes_avx512.h): a shuffle within its lanes
 * leaves two columns of each row as words of 32 bits, which is the order of half a row of a tile. Nine instructions
 * for the two vector ports make 32 numbers. */
#include "kernels/kernel_decls.h"

#include "kernels/x86/bf16_avx512.h"
#include "kernels/x86/codes_avx512.h"
#include "kernels/x86/panel_amx.h"

enum { BLOCK = 32, BLOCK256 = 256, STEP_BYTES = 4 * 64 }; /* a step: four rows of a tile */

/* Of eight rows, each twice. */
typedef struct {
    __m512 scale, less;
} factors;

X86_INLINE __m512 spread(__m256 s)
{
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(s));
}

X86_INLINE factors factors_of(__m256 scale, int offset, float unit, bool has_min, __m256 min)
{
    factors f = {.scale = spread(_mm256_mul_ps(scale, _mm256_set1_ps(unit)))};
    f.less = has_min ? spread(min) : _mm512_mul_ps(f.scale, _mm512_set1_ps((float)-offset));
    return f;
}

/* Columns 2 pair and 2 pair + 1 of a step: [8 rows][2]. */
X86_INLINE __m512 numbers(__m512i v, int pair, const factors *f)
{
    const int first = 2 * pair | (int)0x80808000, second = first + 1;
    const __m512i at = _mm512_broadcast_i32x4(_mm_setr_epi32(first, second, first + 8, second + 8));
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_shuffle_epi8(v, at)), f->scale, f->less);
}

X86_INLINE void put_step(__m512i a, __m512i b, const factors *fa, const factors *fb, char *to)
{
    for (int pair = 0; pair < 4; pair++) {
        __m512bh both = _mm512_cvtne2ps_pbh(numbers(b, pair, fb), numbers(a, pair, fa));
        memcpy(to + pair * 64, &both, sizeof both);
    }
}

/* ---- a scale for each 32 columns ---- */

X86_INLINE factors factors32(const uint8_t *w, const rows8_block32 *t)
{
    __m256 min = t->has_min ? t->scales(w + 16) : _mm256_setzero_ps();
    return factors_of(t->scales(w), t->offset, t->unit, t->has_min, min);
}

X86_INLINE void unpack32(const uint8_t *a, const uint8_t *b, int64_t first, char *to,
                         tiles_head *head, const rows8_block32 *t)
{
    const factors fa = factors32(a, t), fb = factors32(b, t);
    __m512i va[4], vb[4];
    (void)first, (void)head;
    t->codes(a + t->codes_at, va);
    t->codes(b + t->codes_at, vb);
    for (int step = 0; step < 4; step++)
        put_step(va[step], vb[step], &fa, &fb, to + step * STEP_BYTES);
}

/* ---- a scale for each 256 columns ---- */

/* What a block of eight rows has besides its codes: scales and minima of all groups of columns. */
enum { GROUPS_MAX = 16 };
typedef struct {
    float scale[GROUPS_MAX][8], less[GROUPS_MAX][8];
} head256;
_Static_assert(2 * sizeof(head256) <= sizeof(tiles_head), "two groups of rows");

/* Bytes of two groups times the scales of eight rows, which d has twice. */
X86_INLINE void times_bytes(__m512 d, const uint8_t *bytes, float (*to)[8])
{
    __m512i wide = _mm512_cvtepi8_epi32(x86_load16(bytes));
    _mm512_storeu_ps(to, _mm512_mul_ps(d, _mm512_cvtepi32_ps(wide)));
}

X86_INLINE __m512 twice(__m256 of)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(of), of, 1);
}

X86_INLINE void head_of(const uint8_t *w, const rows8_block256 *t, head256 *h)
{
    uint8_t own[GROUPS_BYTES], mins[GROUPS_BYTES];
    const uint8_t *scale = t->scales(w, own, mins);
    const __m512 d = twice(codes_f16(w)), min = twice(codes_f16(w + 16));
    for (int g = 0; g < t->groups; g += 2) {
        times_bytes(d, scale + g * 8, h->scale + g);
        if (t->has_min)
            times_bytes(_mm512_sub_ps(_mm512_setzero_ps(), min), mins + g * 8, h->less + g);
    }
}

X86_INLINE factors factors256(const head256 *h, int group, const rows8_block256 *t)
{
    return factors_of(_mm256_loadu_ps(h->scale[group]), t->offset, t->unit, t->has_min,
                      _mm256_loadu_ps(h->less[group]));
}

X86_INLINE void unpack256(const uint8_t *a, const uint8_t *b, int64_t first, char *to,
                          tiles_head *head, const rows8_block256 *t)
{
    head256 *ha = (void *)head->bytes, *hb = ha + 1;
    const int halves = t->groups / 8, sub = (int)(first % BLOCK256 / BLOCK);
    if (sub == 0) {
        head_of(a, t, ha);
        head_of(b, t, hb);
    }
    __m512i va[4], vb[4];
    t->codes(a + t->codes_at + sub * t->sub_bytes, va);
    t->codes(b + t->codes_at + sub * t->sub_bytes, vb);
    for (int half = 0; half < halves; half++) {
        const factors fa = factors256(ha, sub * halves + half, t);
        const factors fb = factors256(hb, sub * halves + half, t);
        for (int step = half * 2; step < (half + 1) * 4 / halves; step++)
            put_step(va[step], vb[step], &fa, &fb, to + step * STEP_BYTES);
    }
}

/* ---- BF16: four columns of eight rows to a register ---- */

static void unpack_BF16(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first, int64_t cols,
                        char *to, tiles_head *head)
{
    (void)head;
    const uint8_t *a = w + first / BF16_STEP * BF16_STEP_BYTES,
                  *b = rows > LAYOUT_GROUP ? a + pitch : a;
    const int64_t end = (cols + TILE_COLS - 1) / TILE_COLS * TILE_COLS;
    int64_t c = 0;
    for (; c + BF16_STEP <= cols;
         c += BF16_STEP, a += BF16_STEP_BYTES, b += BF16_STEP_BYTES, to += 2 * 64)
        codes_pair(_mm512_loadu_si512(a), _mm512_loadu_si512(b), to);
    if (c < cols) {
        codes_pair(bf16_rest(a, cols - c), bf16_rest(b, cols - c), to);
        c += BF16_STEP;
        to += 2 * 64;
    }
    memset(to, 0, (size_t)((end - c) / BF16_STEP * 2 * 64));
}

/* ---- kernels ---- */

#define TILES_KERNELS_OF(type, variant, core)                                                      \
    void k_linear_##type##_MANY_##variant(const kargs *k, const kthread *t, int64_t begin,         \
                                          int64_t end)                                             \
    {                                                                                              \
        tiles_linear(k, t, begin, end, &core);                                                     \
    }                                                                                              \
    void k_experts_##type##_MANY_##variant(const kargs *k, const kthread *t, int64_t begin,        \
                                           int64_t end)                                            \
    {                                                                                              \
        tiles_experts(k, t, begin, end, &core);                                                    \
    }

#define TILES_BF16(variant, parts)                                                                 \
    static const tiles_core core_BF16_##variant = {unpack_BF16, TILE_COLS, LAYOUT_GROUP,           \
                                                   LAYOUT_GROUP * 512, parts};                     \
    TILES_KERNELS_OF(BF16, variant, core_BF16_##variant)
TILES_BF16(amx, 3)
TILES_BF16(amx_bf16, 1)

/* From columns and bytes of a block of one row. Two groups of eight rows are unpacked; if there is but one, it stands
 * for both. */
#define TILES_KERNELS(type, size, bytes)                                                           \
    static void unpack_##type(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first,        \
                              int64_t cols, char *to, tiles_head *head)                            \
    {                                                                                              \
        const uint8_t *a = w + first / (size)*LAYOUT_GROUP * (bytes);                              \
        (void)cols;                                                                                \
        unpack##size(a, rows > LAYOUT_GROUP ? a + pitch : a, first, to, head, &rows8_##type);      \
    }                                                                                              \
    static const tiles_core core_##type = {unpack_##type, BLOCK, LAYOUT_GROUP,                     \
                                           LAYOUT_GROUP * 256 / (size) * (bytes), 1};              \
    TILES_KERNELS_OF(type, amx, core_##type)
TILES_KERNELS(Q8_0, 32, 34)
TILES_KERNELS(Q4_0, 32, 18)
TILES_KERNELS(Q4_1, 32, 20)
TILES_KERNELS(Q5_0, 32, 22)
TILES_KERNELS(Q5_1, 32, 24)
TILES_KERNELS(IQ4_NL, 32, 18)
TILES_KERNELS(MXFP4, 32, 17)
TILES_KERNELS(Q2_K, 256, 84)
TILES_KERNELS(Q3_K, 256, 110)
TILES_KERNELS(Q4_K, 256, 144)
TILES_KERNELS(Q5_K, 256, 176)
TILES_KERNELS(Q6_K, 256, 210)
TILES_KERNELS(IQ4_XS, 256, 136)
