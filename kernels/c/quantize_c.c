/* quantize_c.c - activations rounded to 8 bits, block by block, and four rows of them interleaved; or split into a
 * few bf16 each. act.h has the layouts. */
#include "kernels/kernel_decls.h"

#include "kernels/c/half.h"
#include "kernels/c/quantize_impl.h"

/* Eight numbers as one to three bf16 each. A rest that is not finite is 0. */
static void split8(kact act, const float *x, uint16_t part[3][8])
{
    float rest[8];
    for (int i = 0; i < 8; i++) {
        part[0][i] = half_to_bf16(x[i]);
        rest[i] = x[i] - float_of((uint32_t)part[0][i] << 16);
    }
    for (int p = 1; p < act_parts(act); p++)
        for (int i = 0; i < 8; i++) {
            uint16_t h = half_to_bf16(rest[i]);
            part[p][i] = (h & 0x7f80) == 0x7f80 ? 0 : h;
            rest[i] -= float_of((uint32_t)part[p][i] << 16);
        }
}

/* The same from number i on, a multiple of 8, of row r, to their places. */
static void split8_to(kact act, const float *x, int64_t i, int64_t r, uint16_t *to)
{
    uint16_t part[3][8];
    int64_t run = act_run(act) < 8 ? 4 : 8;
    split8(act, x, part);
    for (int64_t p = 0; p < act_parts(act); p++)
        for (int64_t j = 0; j < 8; j += run)
            memcpy(to + act_split_at(act, i + j, p, r), part[p] + j, (size_t)run * sizeof *to);
}

enum { TILED = 32 };

/* The next part of 32 numbers, taken from what is left of them: loops that vectorise. */
static inline void split_next(float *restrict rest, uint16_t *restrict to)
{
    uint32_t part[TILED];
    for (int i = 0; i < TILED; i++) {
        uint32_t h = half_to_bf16(rest[i]);
        part[i] = (h & 0x7f80) == 0x7f80 ? 0 : h;
    }
    for (int i = 0; i < TILED; i++) {
        to[i] = (uint16_t)part[i];
        rest[i] -= float_of(part[i] << 16);
    }
}

/* Three parts of each of 32 numbers, as ACT_BF3T has them. */
static void split_tiled(const float *restrict x, uint16_t *restrict to)
{
    float rest[TILED];
    for (int i = 0; i < TILED; i++) {
        uint32_t h = half_to_bf16(x[i]);
        to[i] = (uint16_t)h;
        rest[i] = x[i] - float_of(h << 16);
    }
    split_next(rest, to + TILED);
    split_next(rest, to + 2 * TILED);
}

/* Numbers [begin, end) of row r of those quantised together; begin is a multiple of 8. */
static void split_part(kact act, const float *x, int64_t begin, int64_t end, int64_t r,
                       uint16_t *to)
{
    const float none[8] = {0};
    int64_t i = begin;
    if (act == ACT_BF1) /* a loop that vectorises */
        for (; i < end / 8 * 8; i++)
            to[i] = half_to_bf16(x[i]);
    for (; act == ACT_BF3T && i + TILED <= end; i += TILED)
        split_tiled(x + i, to + 3 * i);
    for (; i + 8 <= end; i += 8)
        split8_to(act, x + i, i, r, to);
    if (i < end) {
        float last[8] = {0};
        memcpy(last, x + i, (size_t)(end - i) * sizeof *last);
        split8_to(act, last, i, r, to);
        i += 8;
    }
    for (; i % act_fill(act) != 0; i += 8)
        split8_to(act, none, i, r, to);
}

/* Row r of four interleaved ones; x NULL: of zeros. */
static void split_rows8(kact act, const float *x, int64_t n, int64_t r, uint16_t *to)
{
    const float none[8] = {0};
    if (x)
        split_part(act, x, 0, n, r, to);
    for (int64_t i = 0; i < n && !x; i += 8)
        split8_to(act, none, i, r, to);
}

enum { BLOCK_MAX = 256 };

/* Every 8 codes twice. */
static void double_block(const int8_t *codes, int64_t b, int8_t *to)
{
    for (int64_t i = 0; i < b; i += 8)
        for (int copy = 0; copy < 2; copy++)
            memcpy(to + 2 * i + 8 * copy, codes + i, 8);
}

/* By columns, a tile is a multiple of 256: it cuts no block. */
void k_quantize_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    kact act = (kact)k->choice.quantize.act;
    int64_t n = k->size.quantize.width, b = act_block(act);
    kpart part = kpart_of(k, n, begin, end);
    (void)t;
    for (int64_t row = part.row; row < part.row_end; row++) {
        const float *x = (const float *)((const char *)k->in[0] + row * k->pitch[0]); /* [n] */
        char *to = (char *)k->out[0] + row * k->out_pitch[0];
        if (act_is_split(act)) {
            split_part(act, x, part.col, part.col_end, 0, (uint16_t *)to);
            continue;
        }
        int8_t *q = (int8_t *)to;
        float *d = (float *)(uintptr_t)act_d_of(act, to, n);
        int16_t *sum = (int16_t *)(uintptr_t)act_sum(act, to, n);
        for (int64_t i = part.col; i < part.col_end; i += b) {
            int8_t own[BLOCK_MAX], *codes = act_is_double(act) ? own : q + i;
            d[i / b] = quantize_block(x + i, codes, b);
            for (int64_t j = 0; j < b; j += 16)
                sum[(i + j) / 16] = quantize_sum16(codes + j);
            if (act_is_double(act))
                double_block(own, b, q + 2 * i);
        }
    }
}

/* A block of row r, q[b], into its places among the other three. */
static void interleave_block(kact act, const int8_t *q, float d, int64_t col, int64_t r, int64_t n,
                             char *to)
{
    int64_t b = act_block(act);
    float *d4 = (float *)(uintptr_t)act_d4(to, n) + col / b * 8 + r / 2 * 4 + r % 2;
    void *sums = (void *)(uintptr_t)act_sum4(act, to, n);
    d4[0] = d4[2] = d;
    for (int64_t i = 0; i < b; i += 8)
        memcpy(to + (col + i) * 4 + r * 8, q + i, 8);
    for (int64_t i = 0; i < b; i += 32) {
        int sum = quantize_sum16(q + i) + quantize_sum16(q + i + 16);
        if (act == ACT_Q8X4) {
            ((float *)sums)[(col + i) / 32 * 4 + r] = d * (float)sum;
        } else {
            int8_t *two = (int8_t *)sums + col / b * 64 + r * 8 + i / 32;
            two[0] = (int8_t)(sum & 127);
            two[32] = (int8_t)((sum - (sum & 127)) / 128);
        }
    }
}

void k_quantize4_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    kact act = (kact)k->choice.quantize.act;
    int64_t n = k->size.quantize.width, b = act_block(act);
    (void)t;
    for (int64_t quad = begin; quad < end; quad++)
        for (int64_t r = 0; r < 4; r++) {
            int64_t row = quad * 4 + r;
            const float *x = (const float *)((const char *)k->in[0] + row * k->pitch[0]);
            char *to = (char *)k->out[0] + quad * 4 * k->out_pitch[0];
            int8_t q[BLOCK_MAX] = {0};
            if (act_is_split(act)) {
                split_rows8(act, row < k->size.quantize.rows ? x : NULL, n, r, (uint16_t *)to);
                continue;
            }
            for (int64_t i = 0; i < n; i += b) {
                float d = row < k->size.quantize.rows ? quantize_block(x + i, q, b) : 0;
                interleave_block(act, q, d, i, r, n, to);
            }
        }
}
