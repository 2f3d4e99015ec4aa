/* stored_amx.c - weights as they are stored, as bf16 tiles, and their kernels for many rows: BF16 with activations
 * rounded to bf16 (ACT_BF1, amx_bf16) or in three parts, which is exact (ACT_BF3T, amx), and the quantised
 * types where they are not interleaved (ACT_BF1).
 *
 * 32 numbers of a row fill a register as bf16; sixteen rows of them, turned, are a tile. */
#include "kernels/kernel_decls.h"

#include "kernels/x86/panel_amx.h"
#include "kernels/x86/unpack.h"

enum { LINE = 64, RUN = 32, RUNS_MAX = 8 };

/* a: [16][16] words of 32 bits; to the same, rows for columns. */
X86_INLINE void turn(__m512i a[16], char *to)
{
    __m512i b[16];
    for (int i = 0; i < 16; i += 2) { /* of two rows words 4l, 4l + 1 of lane l, then the others */
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) { /* of four: a[i + c] has word 4l + c of lane l */
        a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
        a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
        a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
        a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
    }
    for (int c = 0; c < 4; c++) { /* lanes of all four fours */
        __m512i low = _mm512_shuffle_i32x4(a[c], a[c + 4], 0x44);
        __m512i high = _mm512_shuffle_i32x4(a[c], a[c + 4], 0xee);
        __m512i low2 = _mm512_shuffle_i32x4(a[c + 8], a[c + 12], 0x44);
        __m512i high2 = _mm512_shuffle_i32x4(a[c + 8], a[c + 12], 0xee);
        b[c] = _mm512_shuffle_i32x4(low, low2, 0x88);
        b[c + 4] = _mm512_shuffle_i32x4(low, low2, 0xdd);
        b[c + 8] = _mm512_shuffle_i32x4(high, high2, 0x88);
        b[c + 12] = _mm512_shuffle_i32x4(high, high2, 0xdd);
    }
    for (int i = 0; i < 16; i++)
        _mm512_storeu_si512(to + i * LINE, b[i]);
}

/* Row i of sixteen; those that are not there are the last one again. */
X86_INLINE const uint8_t *row_of(const uint8_t *w, int64_t pitch, int64_t rows, int64_t i)
{
    return w + (i < rows ? i : rows - 1) * pitch;
}

static void unpack_BF16(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first, int64_t cols,
                        char *to, tiles_head *head)
{
    (void)head;
    const uint8_t *row[TILE_ROWS];
    __m512i a[TILE_ROWS];
    int64_t c = 0;
    for (int i = 0; i < TILE_ROWS; i++)
        row[i] = row_of(w, pitch, rows, i) + first * 2;
    for (; c + TILE_COLS <= cols; c += TILE_COLS, to += TILE_BYTES) {
        for (int i = 0; i < TILE_ROWS; i++)
            a[i] = _mm512_loadu_si512(row[i] + c * 2);
        turn(a, to);
    }
    if (c == cols)
        return;
    for (int i = 0; i < TILE_ROWS; i++) {
        a[i] = _mm512_setzero_si512();
        memcpy(&a[i], row[i] + c * 2, (size_t)(cols - c) * 2);
    }
    turn(a, to);
}

enum { bytes_BF16 = 512, piece_BF16 = RUN }; /* bytes of 256 columns; so below */

/* A block of a row, run by run; runs are a tile apart. */
typedef void block_fn(const uint8_t *w, char *to);

X86_INLINE void unpack_blocks(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first,
                              int64_t cols, char *to, int64_t bytes, int runs, block_fn *block)
{
    char tile[RUNS_MAX * TILE_BYTES] __attribute__((aligned(LINE)));
    w += first / (runs * RUN) * bytes;
    for (int64_t c = 0; c < cols; c += runs * RUN, w += bytes) {
        for (int64_t i = 0; i < TILE_ROWS; i++)
            block(row_of(w, pitch, rows, i), tile + i * LINE);
        for (int run = 0; run < runs; run++, to += TILE_BYTES) {
            __m512i a[TILE_ROWS];
            for (int i = 0; i < TILE_ROWS; i++)
                a[i] = _mm512_loadu_si512(tile + run * TILE_BYTES + i * LINE);
            turn(a, to);
        }
    }
}

/* Integers times d, less something in each half. */
X86_INLINE void put_run(__m512i a, __m512i b, __m512 d, float less_a, float less_b, char *to)
{
    __m512 x = _mm512_fmadd_ps(_mm512_cvtepi32_ps(a), d, _mm512_set1_ps(-less_a));
    __m512 y = _mm512_fmadd_ps(_mm512_cvtepi32_ps(b), d, _mm512_set1_ps(-less_b));
    __m512bh both = _mm512_cvtne2ps_pbh(y, x);
    memcpy(to, &both, sizeof both);
}

X86_INLINE void put32(const x86_block32 b, char *to)
{
    put_run(_mm512_cvtepi8_epi32(_mm256_castsi256_si128(b.q)),
            _mm512_cvtepi8_epi32(_mm256_extracti128_si256(b.q, 1)), _mm512_set1_ps(b.d), -b.m, -b.m,
            to);
}

/* Code times scale is exact in 16 bits. */
X86_INLINE void put256(const uint8_t *w, char *to, x86_head_fn *head, x86_run_fn *codes,
                       x86_less kind, int offset)
{
    const x86_head256 h = head(w);
    const __m512 d = _mm512_set1_ps(h.d);
    int16_t less[16] = {0};
    if (kind == X86_MIN)
        _mm256_storeu_si256((void *)less, h.less);
    for (int run = 0; run < RUNS_MAX; run++) {
        __m256i q = _mm256_sub_epi8(codes(w, run), _mm256_set1_epi8((char)offset));
        __m256i scale = x86_scale(h.scale, run);
        __m256i a = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(q));
        __m256i b = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(q, 1));
        a = _mm256_mullo_epi16(a, _mm256_permute2x128_si256(scale, scale, 0x00));
        b = _mm256_mullo_epi16(b, _mm256_permute2x128_si256(scale, scale, 0x11));
        put_run(_mm512_cvtepi16_epi32(a), _mm512_cvtepi16_epi32(b), d, h.m * less[2 * run],
                h.m * less[2 * run + 1], to + run * TILE_BYTES);
    }
}

#define UNPACK(name, bytes, runs)                                                                  \
    enum { bytes_##name = 8 / (runs) * (bytes), piece_##name = (runs)*RUN };                       \
    static void unpack_##name(const uint8_t *w, int64_t pitch, int64_t rows, int64_t first,        \
                              int64_t cols, char *to, tiles_head *head)                            \
    {                                                                                              \
        (void)head;                                                                                \
        unpack_blocks(w, pitch, rows, first, cols, to, bytes, runs, block_##name);                 \
    }
#define UNPACK32(name, bytes, has_min)                                                             \
    X86_INLINE void block_##name(const uint8_t *w, char *to)                                       \
    {                                                                                              \
        put32(x86_##name(w), to);                                                                  \
    }                                                                                              \
    UNPACK(name, bytes, 1)
#define UNPACK256(name, bytes, less, offset)                                                       \
    X86_INLINE void block_##name(const uint8_t *w, char *to)                                       \
    {                                                                                              \
        put256(w, to, x86_head_##name, x86_run_##name, less, offset);                              \
    }                                                                                              \
    UNPACK(name, bytes, 8)
X86_BLOCKS_32(UNPACK32)
X86_BLOCKS_256(UNPACK256)

#define LINEAR(type, variant, name, parts)                                                         \
    void k_linear_##type##_##variant(const kargs *k, const kthread *t, int64_t begin, int64_t end) \
    {                                                                                              \
        static const tiles_core core = {unpack_##name, piece_##name, 1, bytes_##name, parts};      \
        tiles_linear(k, t, begin, end, &core);                                                     \
    }
#define EXPERTS(type, variant, name, parts)                                                        \
    void k_experts_##type##_##variant(const kargs *k, const kthread *t, int64_t begin,             \
                                      int64_t end)                                                 \
    {                                                                                              \
        static const tiles_core core = {unpack_##name, piece_##name, 1, bytes_##name, parts};      \
        tiles_experts(k, t, begin, end, &core);                                                    \
    }
LINEAR(BF16, amx, BF16, 3)
LINEAR(BF16, amx_bf16, BF16, 1)
EXPERTS(BF16, amx, BF16, 3)
EXPERTS(BF16, amx_bf16, BF16, 1)
LINEAR(Q8_0, amx, q8_0, 1)
LINEAR(Q4_0, amx, q4_0, 1)
LINEAR(Q4_1, amx, q4_1, 1)
LINEAR(Q5_0, amx, q5_0, 1)
LINEAR(Q5_1, amx, q5_1, 1)
LINEAR(IQ4_NL, amx, iq4_nl, 1)
LINEAR(MXFP4, amx, mxfp4, 1)
LINEAR(Q2_K, amx, q2_k, 1)
LINEAR(Q3_K, amx, q3_k, 1)
LINEAR(Q4_K, amx, q4_k, 1)
LINEAR(Q5_K, amx, q5_k, 1)
LINEAR(Q6_K, amx, q6_k, 1)
LINEAR(IQ4_XS, amx, iq4_xs, 1)
