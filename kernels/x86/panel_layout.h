/* panel_layout.h - how quantised weights lie in a panel (kernels/c/panel.h): unsigned bytes, as wide as two registers.
 *
 * A register holds 4 columns of each of its rows, so that 4 activations, repeated as they are loaded, meet all of them and no
 * sum across a register is needed. Of 32 columns there are
 *
 *     uint8_t code[2 registers][8 steps of 4 columns][rows of a register][4]
 *
 * Codes are unsigned, an offset too large; what that adds is known from the sums of the activations and taken away as
 * integers. Bytes that vpmaddubsw would saturate on may be two planes of 4 bits, [2 halves of the rows][2 planes: times 16,
 * times 1][8 steps] and so on.
 *
 *     blocks of 32:    code, float d[rows], float m[rows]
 *     blocks of 256:   code of 256 columns,
 *                      scales of groups of 16 or 32 columns: [groups][rows] pairs of equal words, or floats
 *                      int16_t less[groups / 2][rows][2]: of pairs of groups the minimum, or the scale times the offset
 *                      float d[rows], m[rows]
 *
 * A file that includes this says how many rows there are: PANEL_ROWS, 16 or 32. */
#ifndef WEFT_KERNELS_X86_PANEL_LAYOUT_H
#define WEFT_KERNELS_X86_PANEL_LAYOUT_H

#include "kernels/act.h"
#include "kernels/c/panel.h"
#include "kernels/x86/unpack.h"

#ifndef PANEL_ROWS
#define PANEL_ROWS 16
#endif

enum {
    PANEL_LINE = 4 * PANEL_ROWS, /* bytes of a number of each row, or of 4 columns */
    PANEL_STEP = PANEL_LINE / 2, /* of a register */
    PANEL_REG = 8 * PANEL_STEP,  /* of 32 columns of its rows */
    PANEL_SUB = 2 * PANEL_REG    /* of all rows */
};

/* What is to be known of a type. */
typedef struct {
    int offset; /* by how much codes are too large */
    bool has_min;
    int largest; /* code */
    int groups;  /* of a block of 256: 8 or 16 */
} panel_type;

typedef struct {
    int64_t scales, less, d, bytes; /* where they begin; of a block */
} panel_layout;

/* Bytes of a block. */
#define PANEL_BYTES_32(has_min, planes) ((planes)*PANEL_SUB + ((has_min) ? 2 : 1) * PANEL_LINE)
#define PANEL_BYTES_256(groups, planes)                                                            \
    (8 * (planes)*PANEL_SUB + ((groups) + (groups) / 2 + 2) * PANEL_LINE)

X86_INLINE panel_layout panel_layout32(bool has_min, int planes)
{
    return (panel_layout){0, 0, planes * PANEL_SUB, PANEL_BYTES_32(has_min, planes)};
}

X86_INLINE panel_layout panel_layout256(int groups, int planes)
{
    int64_t scales = 8 * planes * PANEL_SUB, less = scales + groups * PANEL_LINE;
    int64_t d = less + groups / 2 * PANEL_LINE;
    return (panel_layout){scales, less, d, PANEL_BYTES_256(groups, planes)};
}

/* ---- activations ---- */

enum { PANEL_COLS = 1024 }; /* of a run, at most */

/* Rows of activations of a tile, from the first column of a run. */
typedef struct {
    const int8_t *q[PANEL_TILE_MAX];
    const float *d[PANEL_TILE_MAX];
    const int16_t *sum[PANEL_TILE_MAX];
} panel_tile;

X86_INLINE panel_tile panel_tile_of(kact act, const panel_acts *x, int count)
{
    panel_tile a;
    for (int i = 0; i < count; i++) {
        a.q[i] = act_q(x->rows[i]) + x->first;
        a.d[i] = act_d(x->rows[i], x->n) + x->first / act_block(act);
        a.sum[i] = act_sum(act, x->rows[i], x->n) + x->first / 16;
    }
    return a;
}

/* What the sums of each block of 32 begin with, and the scales of its activations times their sums, which minima
 * multiply. Whole registers are read and written: past the last block are the padding of a row and room for it. */
X86_INLINE void panel_begin32(const panel_tile *x, int i, int64_t cols, int offset, int32_t *start,
                              bool has_min, float *sums)
{
    const __m256i less = _mm256_set1_epi16((short)-offset), ones = _mm256_set1_epi16(1);
    for (int64_t k = 0; k < cols / 32; k += 8) {
        __m256i sum = x86_load(x->sum[i] + 2 * k);
        if (offset)
            _mm256_storeu_si256((void *)(start + k), _mm256_madd_epi16(sum, less));
        if (has_min) {
            __m256 of_32 = _mm256_cvtepi32_ps(_mm256_madd_epi16(sum, ones));
            _mm256_storeu_ps(sums + k, _mm256_mul_ps(of_32, _mm256_loadu_ps(x->d[i] + k)));
        }
    }
}

/* The same for groups of 16 columns. */
X86_INLINE void panel_begin16(const panel_tile *x, int i, int64_t cols, int offset, int32_t *start)
{
    for (int64_t k = 0; k < cols / 16; k += 8) {
        __m256i sum = _mm256_cvtepi16_epi32(x86_load16(x->sum[i] + k));
        _mm256_storeu_si256((void *)(start + k),
                            _mm256_mullo_epi32(sum, _mm256_set1_epi32(-offset)));
    }
}

/* Sums of 32 columns, as words, from those of 16. */
X86_INLINE void panel_sums32(const int16_t *sum16, int16_t sum[8])
{
    __m256i s = _mm256_madd_epi16(x86_load(sum16), _mm256_set1_epi16(1));
    __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
    _mm_storeu_si128((void *)sum, words);
}

/* Here compilers write to memory what they would keep in registers, for lack of which they would move it to and fro. */
#define PANEL_SPILL() __asm__ volatile("" ::: "memory")

/* ---- kernels ---- */

/* `cols` columns in blocks of so many bytes. */
#define PANEL_FITS(cols, block, bytes)                                                             \
    _Static_assert((cols) / (block) * (bytes) <= PANEL_BYTES, "a panel fits its scratch");

/* For each number of rows of a tile its own code, so that a small tile takes no longer than it has to: multiply is inlined
 * with it and with a panel_type that compilers know. */
#define PANEL_COUNTS(multiply, type, type_of)                                                      \
    static void multiply_##type(const void *panel, const panel_acts *x, float *t)                  \
    {                                                                                              \
        const panel_type of = type_of;                                                             \
        switch (x->count) {                                                                        \
        case 1:                                                                                    \
            multiply(panel, x, t, &of, 1);                                                         \
            break;                                                                                 \
        case 2:                                                                                    \
            multiply(panel, x, t, &of, 2);                                                         \
            break;                                                                                 \
        case 3:                                                                                    \
            multiply(panel, x, t, &of, 3);                                                         \
            break;                                                                                 \
        default:                                                                                   \
            multiply(panel, x, t, &of, 4);                                                         \
        }                                                                                          \
    }

#endif
