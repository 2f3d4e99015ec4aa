/* panel_stored.h - stored weights of every quantised type as panels of 16 rows (panel_layout.h).
 *
 * Eight rows are unpacked at a time as unpack.h does, and turned as a matrix of 8 by 8 dwords. */
#ifndef WEFT_KERNELS_X86_PANEL_STORED_H
#define WEFT_KERNELS_X86_PANEL_STORED_H

#include "kernels/x86/panel_layout.h"

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

/* 32 columns of eight rows, half of the panel's 16. */
X86_INLINE void stored_put(__m256i q[8], int planes, int half, uint8_t *to)
{
    const __m256i low = _mm256_set1_epi8(15);
    stored_turn(q);
    to += half * planes * PANEL_REG;
    for (int s = 0; s < 8; s++, to += PANEL_STEP) {
        if (planes == 1) {
            _mm256_storeu_si256((void *)to, q[s]);
        } else {
            __m256i high = _mm256_and_si256(_mm256_srli_epi16(q[s], 4), low);
            _mm256_storeu_si256((void *)to, high);
            _mm256_storeu_si256((void *)(to + PANEL_REG), _mm256_and_si256(q[s], low));
        }
    }
}

/* Asks for what lies a panel further on. */
X86_INLINE void stored_hint(const stored_half *h, int64_t at, int64_t pitch, int64_t bytes)
{
    for (int r = 0; r < 8; r++)
        x86_hint_at((const uint8_t *)((uintptr_t)(h->at[r] + at) + PANEL_ROWS * (uintptr_t)pitch),
                    bytes);
}

/* ---- blocks of 32 ---- */

/* type, bytes, unpacking, whether there is a minimum, offset, largest code */
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

typedef struct {
    int bytes;
    x86_unpack32 *unpack;
    int d_bytes; /* of the scale: an f16, or a power of two */
    bool has_min;
    int offset;
} stored32;

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

X86_INLINE void stored32_half(const stored_half *h, int64_t at, int half, const stored32 *t,
                              int planes, uint8_t *to, float *d)
{
    const __m256i offset = _mm256_set1_epi8((char)t->offset);
    __m256i q[8];
#pragma GCC unroll 8
    for (int r = 0; r < 8; r++) {
        const uint8_t *b = h->at[r] + at;
        q[r] = _mm256_add_epi8(t->unpack(b).q, offset);
        stored_keep(b, t->d_bytes, half * 8 + r, d);
        if (t->has_min)
            stored_keep(b + 2, 2, half * 8 + r, d + PANEL_ROWS);
    }
    stored_put(q, planes, half, to);
}

X86_INLINE void stored32_unpack(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first,
                                int64_t cols, uint8_t *panel, const stored32 *t, int planes)
{
    const panel_layout l = panel_layout32(t->has_min, planes);
    uint8_t *end = panel + cols / 32 * l.bytes;
    for (int half = 0; half < 2; half++) {
        stored_half h = stored_half_of(w + first / 32 * t->bytes, pitch, rows, half);
        int64_t at = 0;
        for (uint8_t *to = panel; to < end; to += l.bytes, at += t->bytes) {
            if (at % 64 < t->bytes) /* once a line */
                stored_hint(&h, at, pitch, 1);
            stored32_half(&h, at, half, t, planes, to, (float *)(void *)(to + l.d));
        }
    }
    for (uint8_t *to = panel; to < end; to += l.bytes) {
        float *d = (float *)(void *)(to + l.d);
        stored_convert(d, t->d_bytes);
        if (t->has_min)
            stored_convert(d + PANEL_ROWS, 2);
    }
}

/* ---- blocks of 256 ---- */

/* type, bytes, what unpacks its head and codes, what is to be added to codes, whether there is a minimum, offset then,
 * largest code, groups */
/* clang-format off */
#define STORED_256(X)                                                                              \
    X(Q2_K,   84,  x86_head_q2_k,   x86_run_q2_k,   0,   true,  0,   3,   16)                      \
    X(Q3_K,   110, x86_head_q3_k,   x86_run_q3_k,   0,   false, 4,   7,   16)                      \
    X(Q4_K,   144, x86_head_q4_k,   x86_run_q4_k,   0,   true,  0,   15,  8)                       \
    X(Q5_K,   176, x86_head_q5_k,   x86_run_q5_k,   0,   true,  0,   31,  8)                       \
    X(Q6_K,   210, x86_head_q6_k,   x86_run_q6_k,   0,   false, 32,  63,  16)                      \
    X(IQ4_XS, 136, x86_head_iq4_xs, x86_run_iq4_xs, 128, false, 128, 255, 8)
/* clang-format on */

typedef struct {
    int bytes;
    x86_head_fn *head;
    x86_run_fn *codes;
    int add;
    int groups;
    bool float_scales; /* what is taken away is then left out, but for minima */
} stored256;

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
X86_INLINE void stored_heads(__m256i scale[8], __m256i less[8], const stored256 *t,
                             uint8_t *scale_to, uint8_t *less_to)
{
    const int per_run = t->groups / 8;
    stored_turn(scale); /* of runs 0, 1; 2, 3; .. then the same of second halves of runs */
    stored_turn(less);
    for (int g = 0; g < t->groups; g++) {
        int run = g / per_run;
        __m256i two = scale[run / 2 + g % per_run * 4];
        _mm256_storeu_si256((void *)(scale_to + g * PANEL_LINE),
                            stored_scale(two, run % 2, t->float_scales));
    }
    for (int p = 0; p < t->groups / 2; p++) {
        __m256i two = less[p];
        if (t->add)
            two = _mm256_mullo_epi16(scale[p], _mm256_set1_epi16((short)t->add));
        else if (t->groups == 8)
            two = _mm256_blend_epi16(less[2 * p], less[2 * p + 1], 0xaa);
        _mm256_storeu_si256((void *)(less_to + p * PANEL_LINE), two);
    }
}

X86_INLINE void stored256_half(const stored_half *h, int64_t at, int half, const stored256 *t,
                               int planes, const panel_layout *l, uint8_t *to)
{
    const __m256i add = _mm256_set1_epi8((char)t->add);
    float *d = (float *)(void *)(to + l->d) + half * 8;
    __m256i scale[8], less[8], q[8];
#pragma GCC unroll 8
    for (int r = 0; r < 8; r++) {
        x86_head256 head = t->head(h->at[r] + at);
        scale[r] = head.scale;
        less[r] = head.less;
        d[r] = head.d;
        d[r + PANEL_ROWS] = head.m;
    }
    stored_heads(scale, less, t, to + l->scales + half * PANEL_STEP,
                 to + l->less + half * PANEL_STEP);
    /* One by one: what a run shifts by is then known. */
#define RUN(run)                                                                                   \
    {                                                                                              \
        for (int r = 0; r < 8; r++)                                                                \
            q[r] = _mm256_add_epi8(t->codes(h->at[r] + at, run), add);                             \
        stored_put(q, planes, half, to + (run)*planes * PANEL_SUB);                                \
    }
    /* clang-format off */
    RUN(0) RUN(1) RUN(2) RUN(3) RUN(4) RUN(5) RUN(6) RUN(7)
    /* clang-format on */
#undef RUN
}

X86_INLINE void stored256_unpack(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first,
                                 int64_t cols, uint8_t *panel, const stored256 *t, int planes)
{
    const panel_layout l = panel_layout256(t->groups, planes);
    for (int half = 0; half < 2; half++) {
        stored_half h = stored_half_of(w + first / 256 * t->bytes, pitch, rows, half);
        uint8_t *to = panel;
        for (int64_t at = 0; at < cols / 256 * t->bytes; at += t->bytes, to += l.bytes) {
            stored_hint(&h, at, pitch, t->bytes);
            stored256_half(&h, at, half, t, planes, &l, to);
        }
    }
}

/* ---- kernels ---- */

/* Those of a variant, from multiply32 and multiply256(panel, acts, t, &type, rows), which are inlined; `planes` of a largest
 * code; scales of blocks of 256 are floats or not. */
#define STORED_CORE(type, act, kind, planes, variant)                                              \
    static void unpack_##type(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first,        \
                              int64_t cols, void *panel)                                           \
    {                                                                                              \
        kind##_unpack(w, pitch, rows, first, cols, panel, &stored_##type, planes);                 \
    }                                                                                              \
    static const panel_core core_##type = {                                                        \
        act, PANEL_ROWS, 4, 1, PANEL_COLS / (planes), unpack_##type, multiply_##type, NULL};       \
    PANEL_KERNELS(type, variant, &core_##type)

#define STORED_KERNELS_32(type, size, unpack, has_min, offset, largest, planes, variant)           \
    static const stored32 stored_##type = {size, unpack, (size) == 17 ? 1 : 2, has_min, offset};   \
    PANEL_FITS(PANEL_COLS / (planes), 32, PANEL_BYTES_32(has_min, planes))                         \
    PANEL_COUNTS(multiply32, type, ((panel_type){offset, has_min, largest, 0}))                    \
    STORED_CORE(type, ACT_Q8, stored32, planes, variant)

#define STORED_KERNELS_256(type, size, head, codes, add, has_min, offset, largest, groups, floats, \
                           planes, variant)                                                        \
    static const stored256 stored_##type = {size, head, codes, add, groups, floats};               \
    PANEL_FITS(PANEL_COLS / (planes), 256, PANEL_BYTES_256(groups, planes))                        \
    PANEL_COUNTS(multiply256, type, ((panel_type){offset, has_min, largest, groups}))              \
    STORED_CORE(type, ACT_Q8K, stored256, planes, variant)

#endif
