/* random_fill.c - noise in every storage type, as fast as memory takes it.
 *
 * A piece of a tensor is filled by one thread: a few kilobytes of random blocks, made for the piece, then copies of
 * them. Block types are random bytes with their scales set to one value, which gives each quant and each sub-scale
 * every value it may have. */
#include "runtime/formats/random_fill.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

enum { PIECE_BYTES = 8 << 20, PATTERN_BYTES = 256 << 10, THREADS_MAX = 64 };

/* Where the f16 scales of a block stand, and the spread of its numbers when the scale is 1. A second scale is
 * `second` times the first, so that the mean becomes 0. */
/* clang-format off */
static const struct {
    dtype t;
    int scale_at, second_at;
    double second, spread;
} blocks[] = {
    {DT_Q4_0,     0, -1,  0,       4.6}, /* -8 .. 7 */
    {DT_Q4_1,     0,  2, -7.5,     4.6}, /* 0 .. 15, and the second is added */
    {DT_Q5_0,     0, -1,  0,       9.2},
    {DT_Q5_1,     0,  2, -15.5,    9.2},
    {DT_Q8_0,     0, -1,  0,      73.9},
    {DT_Q2_K,    80, 82,  1.5,    13.9}, /* 0 .. 3 times 0 .. 15, less the second times 0 .. 15 */
    {DT_Q3_K,   108, -1,  0,      43.3}, /* -4 .. 3 times -32 .. 31 */
    {DT_Q4_K,     0,  2,  7.5,   258.0}, /* 0 .. 15 times 0 .. 63, less the second times 0 .. 63 */
    {DT_Q5_K,     0,  2, 15.5,   527.0},
    {DT_Q6_K,   208, -1,  0,    1366.0}, /* -32 .. 31 times -128 .. 127 */
    {DT_IQ4_NL,   0, -1,  0,      67.4}, /* the root mean square of its table */
    {DT_IQ4_XS,   0, -1,  0,    1246.0}, /* that, times -32 .. 31 */
};

/* Numbers that are a sign, an exponent and a fraction: random signs and fractions under one exponent. */
static const struct {
    dtype t;
    int bytes, fraction_bits, bias;
} floats[] = {
    {DT_F32,  4, 23, 127},
    {DT_F16,  2, 10, 15},
    {DT_BF16, 2, 7,  127},
};
/* clang-format on */

static uint64_t next(uint64_t *s) /* xorshift64*, Vigna 2016 */
{
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return *s * UINT64_C(2685821657736338717);
}

static void noise(uint64_t *s, unsigned char *to, size_t n)
{
    for (; n >= 8; n -= 8, to += 8) {
        uint64_t x = next(s);
        memcpy(to, &x, 8);
    }
    uint64_t x = next(s);
    memcpy(to, &x, n);
}

/* To half precision, for finite numbers under 65504. */
static uint16_t half_of(double x)
{
    int e;
    double m = frexp(fabs(x), &e); /* m * 2^e, m from 0.5 on */
    unsigned bits = e < -13 ? (unsigned)lrint(ldexp(fabs(x), 24))
                            : (unsigned)((e + 14) << 10) + (unsigned)lrint((m * 2 - 1) * 1024);
    return (uint16_t)(bits | (x < 0 ? 0x8000u : 0));
}

static void put_half(unsigned char *at, double x)
{
    uint16_t h = half_of(x);
    memcpy(at, &h, sizeof h);
}

static void fill_floats(size_t row, double spread, uint64_t *s, unsigned char *to, size_t n)
{
    int bytes = floats[row].bytes, f = floats[row].fraction_bits;
    /* Of 1 to 2 in either direction, the spread is 1.53. */
    int e = (int)lrint(log2(spread / 1.53)) + floats[row].bias;
    uint32_t keep = (1u << (8 * bytes - 1)) | ((1u << f) - 1), exponent = (uint32_t)(e < 1 ? 1 : e)
                                                                          << f;
    for (size_t i = 0; i + (size_t)bytes <= n; i += (size_t)bytes) {
        uint32_t x = ((uint32_t)(next(s) >> 32) & keep) | exponent;
        memcpy(to + i, &x, (size_t)bytes); /* little endian: the low half */
    }
}

void random_blocks(dtype t, double spread, uint64_t seed, unsigned char *to, size_t n)
{
    uint64_t s = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    size_t block = dtype_row_of(t)->bytes;
    for (size_t r = 0; r < sizeof floats / sizeof *floats; r++)
        if (floats[r].t == t) {
            fill_floats(r, spread, &s, to, n);
            return;
        }
    noise(&s, to, n);
    for (size_t r = 0; r < sizeof blocks / sizeof *blocks; r++) {
        if (blocks[r].t != t)
            continue;
        double scale = spread / blocks[r].spread;
        for (size_t i = 0; i + block <= n; i += block) {
            put_half(to + i + blocks[r].scale_at, scale);
            if (blocks[r].second_at >= 0)
                put_half(to + i + blocks[r].second_at, scale * blocks[r].second);
        }
        return;
    }
    WEFT_ASSERT(t == DT_MXFP4); /* a power of two before 4-bit floats, whose spread is 2.93 */
    for (size_t i = 0; i + block <= n; i += block)
        to[i] = (unsigned char)(127 + lrint(log2(spread / 2.93)));
}

/* Vectors are few and short: norms are around 1, biases around 0. */
static void fill_vector(const model_tensor *t, uint64_t seed, float *to)
{
    uint64_t s = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    float about = str_ends(t->name, STR("norm.weight")) ? 1 : 0;
    for (int64_t i = 0; i < t->elems; i++)
        to[i] = about + 0.02f * ((float)(next(&s) >> 40) / (1 << 24) - 0.5f);
}

/* ---- in parallel ---- */

typedef struct {
    const model_file *mf;
    unsigned char *data;
    _Atomic uint64_t next; /* piece, of all tensors counted through */
} job;

static size_t piece_bytes(const model_tensor *t)
{
    size_t block = dtype_row_of(t->type)->bytes;
    return PIECE_BYTES / block * block;
}

static void fill_piece(const job *j, size_t tensor, size_t at, uint64_t seed)
{
    const model_tensor *t = model_file_tensor_at(j->mf, tensor);
    unsigned char *to = j->data + t->offset + at;
    size_t n = t->bytes - at < piece_bytes(t) ? t->bytes - at : piece_bytes(t);
    size_t block = dtype_row_of(t->type)->bytes, pattern = PATTERN_BYTES / block * block;
    if (t->rank < 2) {
        fill_vector(t, seed, (float *)(void *)to);
        return;
    }
    pattern = pattern < n ? pattern : n;
    random_blocks(t->type, 1 / sqrt((double)t->shape[t->rank - 1]), seed, to, pattern);
    for (size_t k = pattern; k < n; k += pattern)
        memcpy(to + k, to, n - k < pattern ? n - k : pattern);
}

static void *fill_some(void *ctx)
{
    job *j = ctx;
    uint64_t mine = atomic_fetch_add(&j->next, 1), piece = 0;
    for (size_t i = 0; i < model_file_tensor_count(j->mf); i++) {
        const model_tensor *t = model_file_tensor_at(j->mf, i);
        size_t step = t->rank < 2 ? t->bytes : piece_bytes(t);
        for (size_t at = 0; at < t->bytes; at += step, piece++)
            if (piece == mine) {
                fill_piece(j, i, at, piece + 1);
                mine = atomic_fetch_add(&j->next, 1);
            }
    }
    return NULL;
}

void random_fill(const model_file *mf, void *data, int threads)
{
    job j = {.mf = mf, .data = data};
    pthread_t more[THREADS_MAX];
    int n = 0;
    for (; n < threads - 1 && n < THREADS_MAX; n++)
        if (pthread_create(&more[n], NULL, fill_some, &j) != 0)
            break;
    fill_some(&j);
    for (int i = 0; i < n; i++)
        pthread_join(more[i], NULL);
}
