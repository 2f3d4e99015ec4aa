/* linear_block256_amx.c - linear for many rows with AMX, for the types with 256 numbers to a block (ACT_Q8K).
 *
 * A number is an integer, code times the scale of its group, times d of the block. The integer has up to 13 bits
 * and is split into two bytes, 128 high + low with 0 <= low < 128, and tiles of both are multiplied: the products
 * of all 256 columns are exact and add up inside the tiles, and only then are they stored and scaled. Four
 * multiplications are under way at once: two tiles of activations with the high and the low bytes. Minima are
 * factors of the sums of activations, as everywhere. */
#include "kernels/kernel_decls.h"

#include "kernels/x86/linear_amx.h"

enum { BLOCK = 256, STEPS = BLOCK / AMX_BYTES };

/* Of a panel: for each block the tiles of low and high bytes in turn, the minima, d and m of the sixteen rows. */
enum {
    BLOCK_TILES = 2 * STEPS * AMX_TILE,
    BLOCK_MINS = 8 * AMX_BYTES, /* two 16-bit factors of each row, for each 32 columns */
    BLOCK_PANEL = BLOCK_TILES + BLOCK_MINS + 2 * AMX_BYTES,
};
_Static_assert(TILES_COLS / BLOCK * BLOCK_PANEL <= TILES_PANEL_BYTES, "a panel fits");

/* 32 words, in two registers, as their low and high bytes. */
X86_INLINE void split(__m256i a, __m256i b, uint8_t *low, uint8_t *high)
{
    const __m256i mask = _mm256_set1_epi16(127);
    /* Packing works in halves of a register: the middle quarters change places. */
    __m256i l = _mm256_packs_epi16(_mm256_and_si256(a, mask), _mm256_and_si256(b, mask));
    __m256i h = _mm256_packs_epi16(_mm256_srai_epi16(a, 7), _mm256_srai_epi16(b, 7));
    _mm256_storeu_si256((void *)low, _mm256_permute4x64_epi64(l, 0xd8));
    _mm256_storeu_si256((void *)high, _mm256_permute4x64_epi64(h, 0xd8));
}

/* A run of one row: codes times scales. */
X86_INLINE void unpack_run(const uint8_t *w, const x86_head256 *head, x86_run_fn *codes, int offset,
                           int run, uint8_t *low, uint8_t *high)
{
    __m256i q = _mm256_sub_epi8(codes(w, run), _mm256_set1_epi8((char)offset));
    __m256i scale = x86_scale(head->scale, run);
    __m256i a = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(q));
    __m256i b = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(q, 1));
    a = _mm256_mullo_epi16(a, _mm256_permute2x128_si256(scale, scale, 0x00));
    b = _mm256_mullo_epi16(b, _mm256_permute2x128_si256(scale, scale, 0x11));
    split(a, b, low, high);
}

X86_INLINE void unpack(const amx_work *j, int64_t bytes, x86_head_fn *head, x86_run_fn *codes,
                       x86_less less, int offset)
{
    uint8_t low[STEPS][AMX_TILE], high[STEPS][AMX_TILE], mins[AMX_TILE] = {0}, turned[AMX_TILE];
    uint8_t *to = j->panel;
    for (int64_t b = 0; b < (j->end - j->first) / BLOCK; b++, to += BLOCK_PANEL) {
        float *d = (float *)(void *)(to + BLOCK_TILES + BLOCK_MINS);
        for (int i = 0; i < AMX_ROWS; i++) {
            const uint8_t *w = j->w[i] + b * bytes;
            const x86_head256 h = head(w);
            int64_t at = i * AMX_BYTES;
#define RUN(run)                                                                                   \
    unpack_run(w, &h, codes, offset, run, low[(run) / 2] + at + (run) % 2 * 32,                    \
               high[(run) / 2] + at + (run) % 2 * 32);
            /* clang-format off */
            RUN(0) RUN(1) RUN(2) RUN(3) RUN(4) RUN(5) RUN(6) RUN(7)
            /* clang-format on */
#undef RUN
                d[i] = h.d;
            d[AMX_ROWS + i] = h.m;
            if (less == X86_MIN)
                _mm256_storeu_si256((void *)(mins + at), h.less);
        }
        for (int s = 0; s < STEPS; s++) {
            amx_transpose(low[s], to + 2 * s * AMX_TILE);
            amx_transpose(high[s], to + (2 * s + 1) * AMX_TILE);
        }
        if (less == X86_MIN) {
            amx_transpose(mins, turned);
            memcpy(to + BLOCK_TILES, turned, BLOCK_MINS);
        }
    }
}

/* Where sums wait between blocks: two tiles of them, [16][16] each. */
X86_INLINE float *sums_of(const amx_work *j, int tile)
{
    return (float *)(void *)(j->stored + (4 + tile) * AMX_TILE);
}

/* What a tile's rows get from a block, whose products are at `low` and, a tile further on, the high ones. */
X86_INLINE void add_block(const amx_work *j, const uint8_t *panel, int64_t block, amx_rows tile,
                          const char *low, bool has_min, float *sum)
{
    const uint8_t *mins = panel + BLOCK_TILES;
    __m512 d = _mm512_loadu_ps(mins + BLOCK_MINS),
           m = _mm512_loadu_ps(mins + BLOCK_MINS + AMX_BYTES);
    for (int i = tile.from; i < j->rows; i++) {
        const char *x = amx_row(j, tile.row + i);
        __m512 dx = _mm512_set1_ps(act_d(x, j->n)[block]);
        __m512i z = _mm512_loadu_si512(low + AMX_TILE + i * AMX_BYTES);
        z = _mm512_add_epi32(_mm512_slli_epi32(z, 7), _mm512_loadu_si512(low + i * AMX_BYTES));
        __m512 s = _mm512_loadu_ps(sum + i * AMX_ROWS);
        s = _mm512_fmadd_ps(_mm512_cvtepi32_ps(z), _mm512_mul_ps(d, dx), s);
        if (has_min) {
            const char *sums = (const char *)(act_sum(ACT_Q8K, x, j->n) + block * 16);
            __m512i taken = _mm512_setzero_si512();
            for (int p = 0; p < 8; p++) {
                int32_t pair; /* of 16-bit sums */
                memcpy(&pair, sums + 4 * p, sizeof pair);
                taken = _mm512_dpwssd_epi32(taken, _mm512_loadu_si512(mins + p * AMX_BYTES),
                                            _mm512_set1_epi32(pair));
            }
            s = _mm512_fnmadd_ps(_mm512_cvtepi32_ps(taken), _mm512_mul_ps(m, dx), s);
        }
        _mm512_storeu_ps(sum + i * AMX_ROWS, s);
    }
}

X86_INLINE void multiply(const amx_work *j, amx_rows a, amx_rows b, bool has_min)
{
    const char *xa = amx_row(j, a.row) + j->first, *xb = amx_row(j, b.row) + j->first;
    int64_t pitch = j->k->pitch[0];
    const uint8_t *panel = j->panel;
    for (int i = a.from; i < j->rows; i++)
        _mm512_storeu_ps(sums_of(j, 0) + i * AMX_ROWS, amx_sum(j, a.row + i));
    for (int i = b.from; i < j->rows; i++)
        _mm512_storeu_ps(sums_of(j, 1) + i * AMX_ROWS, amx_sum(j, b.row + i));
    for (int64_t at = 0; at < j->end - j->first; at += BLOCK, panel += BLOCK_PANEL) {
        AMX_ZERO(0);
        AMX_ZERO(1);
        AMX_ZERO(2);
        AMX_ZERO(3);
        for (int s = 0; s < STEPS; s++) {
            AMX_LOAD(4, xa + at + s * AMX_BYTES, pitch);
            AMX_LOAD(6, panel + 2 * s * AMX_TILE, AMX_BYTES);
            AMX_LOAD(7, panel + (2 * s + 1) * AMX_TILE, AMX_BYTES);
            AMX_DOT_BYTES(0, 4, 6);
            AMX_DOT_BYTES(1, 4, 7);
            AMX_LOAD(5, xb + at + s * AMX_BYTES, pitch);
            AMX_DOT_BYTES(2, 5, 6);
            AMX_DOT_BYTES(3, 5, 7);
        }
        AMX_STORE(0, j->stored, AMX_BYTES);
        AMX_STORE(1, j->stored + AMX_TILE, AMX_BYTES);
        AMX_STORE(2, j->stored + 2 * AMX_TILE, AMX_BYTES);
        AMX_STORE(3, j->stored + 3 * AMX_TILE, AMX_BYTES);
        int64_t block = (j->first + at) / BLOCK;
        add_block(j, panel, block, a, j->stored, has_min, sums_of(j, 0));
        add_block(j, panel, block, b, j->stored + 2 * AMX_TILE, has_min, sums_of(j, 1));
    }
    for (int i = a.from; i < j->rows; i++)
        amx_put(j, a.row + i, _mm512_loadu_ps(sums_of(j, 0) + i * AMX_ROWS));
    for (int i = b.from; i < j->rows; i++)
        amx_put(j, b.row + i, _mm512_loadu_ps(sums_of(j, 1) + i * AMX_ROWS));
}

#define UNPACK(name, bytes, less, offset)                                                          \
    static void unpack_##name(const amx_work *j)                                                   \
    {                                                                                              \
        unpack(j, bytes, x86_head_##name, x86_run_##name, less, offset);                           \
    }                                                                                              \
    static void multiply_##name(const amx_work *j, amx_rows a, amx_rows b)                         \
    {                                                                                              \
        multiply(j, a, b, less == X86_MIN);                                                        \
    }                                                                                              \
    static const amx_kind kind_##name = {AMX_BYTES, BLOCK, bytes, unpack_##name, multiply_##name};
X86_BLOCKS_256(UNPACK)

#define LINEAR(type, name)                                                                         \
    void k_linear_##type##_amx(const kargs *k, const kthread *t, int64_t begin, int64_t end)       \
    {                                                                                              \
        amx_linear(k, t, begin, end, &kind_##name);                                                \
    }
LINEAR(Q2_K, q2_k)
LINEAR(Q3_K, q3_k)
LINEAR(Q4_K, q4_k)
LINEAR(Q5_K, q5_k)
LINEAR(Q6_K, q6_k)
LINEAR(IQ4_XS, iq4_xs)
