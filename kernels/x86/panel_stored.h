/* panel_stored.h - stored weights of every quantised type as panels (kernels/c/panel.h) of unsigned bytes, 16 rows wide.
 *
 * Of 4 columns the bytes of 16 rows lie together, so that 4 activations, repeated as they are loaded, meet 16 rows and no
 * sum across a register is needed:
 *
 *     uint8_t code[steps of 4 columns][16 rows][4]
 *
 * Codes are unsigned, an offset too large; what that adds is known from the sums of the activations and taken away as
 * integers. Bytes that vpmaddubsw would saturate on may be split in two planes of 4 bits, eight rows at a time:
 * code[2 x 8 rows][steps][2: times 16, times 1][8 rows][4].
 *
 * Every file that includes this is built with AVX2, FMA and F16C. */
#ifndef WEFT_KERNELS_X86_PANEL_STORED_H
#define WEFT_KERNELS_X86_PANEL_STORED_H

#include "kernels/act.h"
#include "kernels/c/panel.h"
#include "kernels/x86/unpack.h"

enum { STORED_ROWS = 16, STORED_STEP = 64 /* bytes of 4 columns */, STORED_SUB = 512 /* of 32 */ };

/* Rows of a panel by halves: where they begin; those past the last one are row 0 again. */
typedef struct {
    const uint8_t *at[8];
} stored_half;

X86_INLINE stored_half stored_half_of(const uint8_t *w, int64_t pitch, int64_t rows, int half)
{
    stored_half h;
    for (int r = 0; r < 8; r++)
        h.at[r] = w + (half * 8 + r < rows ? (half * 8 + r) * pitch : 0);
    return h;
}

/* An 8 by 8 matrix of dwords, transposed. */
X86_INLINE void stored_turn(__m256i r[8])
{
    __m256i a[8], b[8];
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm256_unpacklo_epi32(r[i], r[i + 1]);
        a[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int k = 0; k < 2; k++) {
            b[i + 2 * k] = _mm256_unpacklo_epi64(a[i + k], a[i + k + 2]);
            b[i + 2 * k + 1] = _mm256_unpackhi_epi64(a[i + k], a[i + k + 2]);
        }
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x20);
        r[i + 4] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x31);
    }
}

/* 32 columns of eight rows, to where those of the panel's 16 are. */
X86_INLINE void stored_put(__m256i q[8], int planes, int half, uint8_t *to)
{
    const __m256i low = _mm256_set1_epi8(15);
    stored_turn(q);
    for (int s = 0; s < 8; s++) {
        if (planes == 1) {
            _mm256_storeu_si256((void *)(to + s * STORED_STEP + half * 32), q[s]);
            continue;
        }
        uint8_t *at = to + half * STORED_SUB + s * STORED_STEP;
        __m256i high = _mm256_and_si256(_mm256_srli_epi16(q[s], 4), low);
        _mm256_storeu_si256((void *)at, high);
        _mm256_storeu_si256((void *)(at + 32), _mm256_and_si256(q[s], low));
    }
}

/* ---- blocks of 32 ----
 *
 *     code of 32 columns, float d[16], float m[16] where there is a minimum */

typedef struct {
    int bytes; /* of a block */
    x86_unpack32 *unpack;
    bool has_min; /* as well as a scale, both f16; bytes 17: a power of two */
    int offset;   /* what is added to codes */
    int largest;  /* code then */
} stored32;

/* clang-format off */
#define STORED_32(X)                                                                               \
    X(Q8_0,   34, x86_q8_0,   false, 128, 255)                                                     \
    X(Q4_0,   18, x86_q4_0,   false, 8,   15)                                                      \
    X(Q4_1,   20, x86_q4_1,   true,  0,   15)                                                      \
    X(Q5_0,   22, x86_q5_0,   false, 16,  31)                                                      \
    X(Q5_1,   24, x86_q5_1,   true,  0,   31)                                                      \
    X(IQ4_NL, 18, x86_iq4_nl, false, 128, 255)                                                     \
    X(MXFP4,  17, x86_mxfp4,  false, 12,  24)
/* clang-format on */

X86_INLINE int64_t stored32_codes(int planes)
{
    return planes * STORED_SUB;
}
X86_INLINE int64_t stored32_bytes(const stored32 *t, int planes)
{
    return stored32_codes(planes) + (t->has_min ? 2 : 1) * STORED_ROWS * (int)sizeof(float);
}

/* Scales, and minima behind them, wait as they were stored in the first half of their place: eight are converted at
 * once, when all of a panel are there. */
X86_INLINE void stored_keep(const uint8_t *w, int bytes, int row, float *d)
{
    uint16_t v = w[0];
    if (bytes == 2)
        memcpy(&v, w, sizeof v);
    memcpy((char *)d + row * 2, &v, sizeof v);
}
X86_INLINE void stored_convert(float *d, int bytes)
{
    __m128i first = x86_load16(d), second = x86_load16(d + 4);
    _mm256_storeu_ps(d, bytes == 2 ? _mm256_cvtph_ps(first) : x86_e8m0(first));
    _mm256_storeu_ps(d + 8, bytes == 2 ? _mm256_cvtph_ps(second) : x86_e8m0(second));
}

/* Asks for what lies a panel further on. */
X86_INLINE void stored_hint(const stored_half *h, int64_t at, int64_t pitch, int64_t bytes)
{
    for (int r = 0; r < 8; r++)
        x86_hint_at((const uint8_t *)((uintptr_t)(h->at[r] + at) + STORED_ROWS * (uintptr_t)pitch),
                    bytes);
}

X86_INLINE void stored32_unpack(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first,
                                int64_t cols, uint8_t *panel, const stored32 *t, int planes)
{
    const __m256i offset = _mm256_set1_epi8((char)t->offset);
    const int d_bytes = t->bytes == 17 ? 1 : 2;
    for (int half = 0; half < 2; half++) {
        stored_half h = stored_half_of(w + first / 32 * t->bytes, pitch, rows, half);
        uint8_t *to = panel;
        for (int64_t at = 0; at < cols / 32 * t->bytes; at += t->bytes) {
            float *d = (float *)(void *)(to + stored32_codes(planes));
            __m256i q[8];
            if (at % 64 < t->bytes) /* once a line */
                stored_hint(&h, at, pitch, 1);
#pragma GCC unroll 8
            for (int r = 0; r < 8; r++) {
                const uint8_t *b = h.at[r] + at;
                q[r] = _mm256_add_epi8(t->unpack(b).q, offset);
                stored_keep(b, d_bytes, half * 8 + r, d);
                if (t->has_min)
                    stored_keep(b + 2, 2, half * 8 + r, d + STORED_ROWS);
            }
            stored_put(q, planes, half, to);
            to += stored32_bytes(t, planes);
        }
    }
    for (int64_t b = 0; b < cols / 32; b++) {
        float *d =
            (float *)(void *)(panel + b * stored32_bytes(t, planes) + stored32_codes(planes));
        stored_convert(d, d_bytes);
        if (t->has_min)
            stored_convert(d + STORED_ROWS, 2);
    }
}

/* ---- blocks of 256 ----
 *
 *     code of 256 columns
 *     int32_t scale[groups of 16 or 32 columns][16]: two words, or a float
 *     int16_t less[groups / 2][16][2]  of pairs of groups: the minimum, or the scale times the offset
 *     float d[16], m[16] */

typedef struct {
    int bytes;
    x86_head_fn *head;
    x86_run_fn *codes;
    bool has_min;
    int offset; /* of codes that are signed, and becomes part of them */
    int groups; /* 8 or 16 */
    int largest;
} stored256;

/* clang-format off */
#define STORED_256(X)                                                                              \
    X(Q2_K,   84,  x86_head_q2_k,   x86_run_q2_k,   true,  0,   16, 3)                             \
    X(Q3_K,   110, x86_head_q3_k,   x86_run_q3_k,   false, 0,   16, 7)                             \
    X(Q4_K,   144, x86_head_q4_k,   x86_run_q4_k,   true,  0,   8,  15)                            \
    X(Q5_K,   176, x86_head_q5_k,   x86_run_q5_k,   true,  0,   8,  31)                            \
    X(Q6_K,   210, x86_head_q6_k,   x86_run_q6_k,   false, 0,   16, 63)                            \
    X(IQ4_XS, 136, x86_head_iq4_xs, x86_run_iq4_xs, false, 128, 8,  255)
/* clang-format on */

X86_INLINE int64_t stored256_scales(int planes)
{
    return 8 * planes * STORED_SUB;
}
X86_INLINE int64_t stored256_less(const stored256 *t, int planes)
{
    return stored256_scales(planes) + t->groups * STORED_STEP;
}
X86_INLINE int64_t stored256_d(const stored256 *t, int planes)
{
    return stored256_less(t, planes) + t->groups / 2 * STORED_STEP;
}
X86_INLINE int64_t stored256_bytes(const stored256 *t, int planes)
{
    return stored256_d(t, planes) + 2 * STORED_ROWS * (int)sizeof(float);
}

/* Word 0 or 1 of each dword twice, or as a float. */
X86_INLINE __m256i stored_scale(__m256i pairs, int word, bool floats)
{
    if (floats) {
        __m256i high = word ? pairs : _mm256_slli_epi32(pairs, 16);
        return _mm256_castps_si256(_mm256_cvtepi32_ps(_mm256_srai_epi32(high, 16)));
    }
    const __m256i first = _mm256_setr_epi64x(0x0504050401000100, 0x0d0c0d0c09080908,
                                             0x0504050401000100, 0x0d0c0d0c09080908);
    const __m256i second = _mm256_setr_epi64x(0x0706070603020302, 0x0f0e0f0e0b0a0b0a,
                                              0x0706070603020302, 0x0f0e0f0e0b0a0b0a);
    return _mm256_shuffle_epi8(pairs, word ? second : first);
}

/* Scales of eight rows as x86_head256 has them, and what is taken away. */
X86_INLINE void stored_heads(__m256i scale[8], __m256i less[8], const stored256 *t, bool floats,
                             uint8_t *scale_to, uint8_t *less_to)
{
    stored_turn(scale); /* of runs 0, 1; 2, 3; .. then the same of second halves of runs */
    stored_turn(less);
    int per_run = t->groups / 8;
    for (int g = 0; g < t->groups; g++) {
        int run = g / per_run;
        __m256i two = scale[run / 2 + g % per_run * 4];
        _mm256_storeu_si256((void *)(scale_to + g * STORED_STEP),
                            stored_scale(two, run % 2, floats));
    }
    for (int p = 0; p < t->groups / 2; p++) {
        __m256i two = less[p];
        if (t->offset) /* a power of two */
            two = _mm256_mullo_epi16(scale[p], _mm256_set1_epi16((short)t->offset));
        else if (t->groups == 8)
            two = _mm256_blend_epi16(less[2 * p], less[2 * p + 1], 0xaa);
        _mm256_storeu_si256((void *)(less_to + p * STORED_STEP), two);
    }
}

X86_INLINE void stored256_half(const stored_half *h, int64_t at, int half, const stored256 *t,
                               int planes, bool floats, uint8_t *to)
{
    const __m256i offset = _mm256_set1_epi8((char)t->offset);
    float *d = (float *)(void *)(to + stored256_d(t, planes)) + half * 8;
    __m256i scale[8], less[8], q[8];
#pragma GCC unroll 8
    for (int r = 0; r < 8; r++) {
        x86_head256 head = t->head(h->at[r] + at);
        scale[r] = head.scale;
        less[r] = head.less;
        d[r] = head.d;
        d[r + STORED_ROWS] = head.m;
    }
    stored_heads(scale, less, t, floats, to + stored256_scales(planes) + half * 32,
                 to + stored256_less(t, planes) + half * 32);
    /* One by one: what a run shifts by is then known. */
#define RUN(run)                                                                                   \
    {                                                                                              \
        for (int r = 0; r < 8; r++)                                                                \
            q[r] = _mm256_add_epi8(t->codes(h->at[r] + at, run), offset);                          \
        stored_put(q, planes, half, to + (run)*planes * STORED_SUB);                               \
    }
    /* clang-format off */
    RUN(0) RUN(1) RUN(2) RUN(3) RUN(4) RUN(5) RUN(6) RUN(7)
    /* clang-format on */
#undef RUN
}

X86_INLINE void stored256_unpack(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first,
                                 int64_t cols, uint8_t *panel, const stored256 *t, int planes,
                                 bool floats)
{
    for (int half = 0; half < 2; half++) {
        stored_half h = stored_half_of(w + first / 256 * t->bytes, pitch, rows, half);
        uint8_t *to = panel;
        for (int64_t at = 0; at < cols / 256 * t->bytes; at += t->bytes) {
            stored_hint(&h, at, pitch, t->bytes);
            stored256_half(&h, at, half, t, planes, floats, to);
            to += stored256_bytes(t, planes);
        }
    }
}

#endif
