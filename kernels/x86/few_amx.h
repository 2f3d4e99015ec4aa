/* few_amx.h - interleaved weights times up to 32 rows of 8-bit activations, in tiles of integers: what is the same however
 * sums are scaled.
 *
 * The rows of activations, where they lie, are one tile or, from 17 on, two; two groups of eight weight rows are unpacked to
 * others, once for both. 256 columns are unpacked, multiplied and scaled in turn, so that neither waits for the other. The
 * two groups come from the two halves of a range: two long streams. */
#ifndef WEFT_KERNELS_X86_FEW_AMX_H
#define WEFT_KERNELS_X86_FEW_AMX_H

#include "kernels/kernel_decls.h"

#include "kernels/act.h"
#include "kernels/x86/amx.h"
#include "kernels/x86/codes_avx512.h"

enum { BLOCK = 32, CHUNK = 256, PARTS_MAX = 8, HALVES = 2 };

/* What two blocks have besides their codes. */
typedef struct {
    uint8_t own[2][GROUPS_BYTES], min[2][GROUPS_BYTES];
    const uint8_t *scale[2]; /* [groups][8 rows] */
} heads256;

typedef struct {
    const uint8_t *w[2];             /* the two groups, at the chunk at hand */
    const void *x[HALVES][AMX_ROWS]; /* the last one again where there are fewer */
    int64_t pitch, n;                /* of x */
    int64_t first, cols;             /* columns of the chunk */
    int halves, rows;                /* of x: rows of each half */
    _Alignas(64) float acc[HALVES][AMX_ROWS][AMX_ROWS]; /* row of x, weight row */
    _Alignas(64) int32_t sums[PARTS_MAX][AMX_ROWS][AMX_ROWS];
    _Alignas(64)
        uint8_t tiles[3][CHUNK / 4][AMX_BYTES]; /* the first alone, where codes are as they are */
} few_work;

/* Of two groups. */
X86_INLINE __m512 both_ps(__m256 a, __m256 b)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(a), b, 1);
}

X86_INLINE __m512i both_bytes(const uint8_t *a, const uint8_t *b)
{
    __m256i low = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)a));
    __m256i high = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)b));
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

X86_INLINE void few_heads(const few_work *j, const rows8_block256 *t, heads256 *h)
{
    for (int i = 0; i < 2; i++) {
        x86_hint(j->w[i], t->codes_at);
        h->scale[i] = t->scales(j->w[i], h->own[i], h->min[i]);
    }
}

/* Codes of 32 columns of the two groups. */
X86_INLINE void few_codes(const few_work *j, const rows8_block256 *t, int sub, __m512i v[2][4])
{
    for (int i = 0; i < 2; i++) {
        const uint8_t *codes = j->w[i] + t->codes_at + sub * t->sub_bytes;
        x86_hint(codes, t->sub_bytes);
        t->codes(codes, v[i]);
    }
}

X86_INLINE const int8_t *few_x(const few_work *j, int half, int64_t at)
{
    return act_q(j->x[half][0]) + j->first + at;
}

X86_INLINE __m512 few_sums(const few_work *j, int64_t part, int row)
{
    return _mm512_cvtepi32_ps(_mm512_loadu_si512(j->sums[part][row]));
}

#define FEW_STORE(c, part) AMX_STORE(c, j->sums[part], AMX_BYTES)

/* ---- the loops around them ---- */

typedef void chunk_fn(few_work *j);

/* Where a half begins: of an odd number of rows the one in the middle is in both, so that tiles have one shape. */
X86_INLINE int64_t few_half(const few_work *j, int half, int64_t row, int64_t end)
{
    return half == 0 ? row : end - j->rows;
}

/* Rows `row` to `end`, at most 32. */
static void few_begin(few_work *j, const kargs *k, int64_t row, int64_t end, int bytes)
{
    j->pitch = k->pitch[0];
    j->n = k->size.linear.in;
    j->halves = end - row > AMX_ROWS ? 2 : 1;
    j->rows = (int)(end - row + j->halves - 1) / j->halves;
    for (int half = 0; half < j->halves; half++)
        for (int i = 0; i < AMX_ROWS; i++) {
            int64_t at = few_half(j, half, row, end) + (i < j->rows ? i : j->rows - 1);
            j->x[half][i] = (const char *)k->in[0] + at * k->pitch[0];
        }
    amx_shape_bytes(j->rows, bytes);
}

/* Results of one weight group, `side` of the two. */
static void few_end(const float (*from)[AMX_ROWS], int rows, const kargs *k, int64_t row,
                    int64_t col, int side)
{
    const float *bias = k->in[2];
    for (int i = 0; i < rows; i++) {
        float *out = (float *)((char *)k->out[0] + (row + i) * k->out_pitch[0]) + col;
        const float *acc = from[i] + side * LAYOUT_GROUP;
        for (int r = 0; r < LAYOUT_GROUP; r++)
            out[r] = acc[r] + (bias ? bias[col + r] : 0);
    }
}

static void few_rows(const kargs *k, const kpart *part, int64_t row, int64_t end, int bytes,
                     chunk_fn *chunk)
{
    few_work j; /* what tiles leave of it unset is multiplied, but not used */
    int64_t groups = (part->col_end - part->col) / LAYOUT_GROUP, half = (groups + 1) / 2;
    few_begin(&j, k, row, end, bytes);
    for (int64_t g = 0; g < half; g++) {
        bool two = g + half < groups; /* else the first stands for both */
        int64_t col[2] = {part->col + g * LAYOUT_GROUP,
                          part->col + (two ? g + half : g) * LAYOUT_GROUP};
        for (int i = 0; i < 2; i++)
            j.w[i] = (const uint8_t *)k->in[1] + col[i] / LAYOUT_GROUP * k->pitch[1];
        memset(j.acc, 0, sizeof j.acc);
        for (j.first = 0; j.first < j.n; j.first += CHUNK) {
            j.cols = j.n - j.first < CHUNK ? j.n - j.first : CHUNK;
            chunk(&j);
        }
        for (int side = 0; side < 1 + two; side++)
            for (int h = 0; h < j.halves; h++)
                few_end((const void *)j.acc[h], j.rows, k, few_half(&j, h, row, end), col[side],
                        side);
    }
    amx_end();
}

static void few_linear(const kargs *k, int64_t begin, int64_t end, int bytes, chunk_fn *chunk)
{
    const int64_t most = HALVES * AMX_ROWS;
    kpart part = kpart_of(k, k->size.linear.out, begin, end);
    for (int64_t row = part.row; row < part.row_end; row += most)
        few_rows(k, &part, row, part.row_end - row < most ? part.row_end : row + most, bytes,
                 chunk);
}

#define FEW_KERNEL(type, word, chunk, bytes)                                                       \
    static void chunk_##type##word(few_work *j)                                                    \
    {                                                                                              \
        chunk(j, &rows8_##type);                                                                   \
    }                                                                                              \
    void k_linear_##type##word##_amx(const kargs *k, const kthread *t, int64_t begin, int64_t end) \
    {                                                                                              \
        (void)t;                                                                                   \
        few_linear(k, begin, end, bytes, chunk_##type##word);                                      \
    }

#endif
