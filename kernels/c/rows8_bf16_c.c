/* rows8_bf16_c.c - interleaved BF16 weights times activations in f32, on any machine.
 *
 * Nobody interleaves weights for it. Programs that were built for better processors carry weights so, and run on lesser ones by this. */
#include "kernels/kernel_decls.h"

#include "kernels/c/lanes.h"
#include "kernels/c/rows8.h"

enum { STEP = 4, STEP_BYTES = 2 * STEP * LAYOUT_GROUP };

/* Four columns of eight rows: each row has a sum of four lanes. */
LANES_INLINE void add_step(const uint8_t *w, f32x4 x, f32x4 acc[LAYOUT_GROUP])
{
    for (int r = 0; r < LAYOUT_GROUP; r += 2) {
        const floats8 two = floats8_at_bf16(w + r * STEP * 2);
        acc[r] = floats_add_product(acc[r], two.a, x);
        acc[r + 1] = floats_add_product(acc[r + 1], two.b, x);
    }
}

/* A last step of fewer columns, filled up with zeros. */
static void add_rest(const uint8_t *w, const float *x, int64_t n, f32x4 acc[LAYOUT_GROUP])
{
    uint8_t line[STEP_BYTES] = {0};
    float last[STEP] = {0};
    memcpy(last, x, (size_t)n * sizeof *x);
    for (int r = 0; r < LAYOUT_GROUP; r++)
        memcpy(line + r * STEP * 2, w + r * n * 2, (size_t)n * 2);
    add_step(line, floats_at(last), acc);
}

static void group(const uint8_t *w, const void *const *x, int64_t n, float (*sum)[LAYOUT_GROUP])
{
    const float *at = x[0];
    f32x4 acc[LAYOUT_GROUP];
    int64_t c = 0;
    memset(acc, 0, sizeof acc);
    for (; c + STEP <= n; c += STEP, w += STEP_BYTES)
        add_step(w, floats_at(at + c), acc);
    if (c < n)
        add_rest(w, at + c, n - c, acc);
    for (int r = 0; r < LAYOUT_GROUP; r++)
        sum[0][r] = floats_sum(acc[r]);
}

static const rows8_core core = {.of = {[1] = group}};

void k_linear_BF16_ANY_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    (void)t;
    rows8_linear(k, begin, end, &core);
}

void k_experts_BF16_ANY_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    (void)t;
    rows8_experts(k, begin, end, &core);
}

/* A row of a table: four of its numbers at a time, with those of seven others between them. */
void k_embed_BF16_ANY_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const int32_t *ids = k->in[1];
    int64_t n = k->size.embed.width;
    (void)t;
    for (int64_t row = begin; row < end; row++) {
        const uint8_t *w = (const uint8_t *)k->in[0] + ids[row] / LAYOUT_GROUP * k->pitch[0];
        float *to = (float *)(void *)((char *)k->out[0] + row * k->out_pitch[0]);
        int r = ids[row] % LAYOUT_GROUP;
        for (int64_t c = 0; c < n; c += STEP, w += STEP_BYTES) {
            int64_t some = n - c < STEP ? n - c : STEP;
            uint16_t four[STEP];
            memcpy(four, w + r * some * 2, (size_t)some * 2);
            for (int64_t i = 0; i < some; i++) {
                uint32_t bits = (uint32_t)four[i] << 16;
                memcpy(to + c + i, &bits, sizeof bits);
            }
        }
    }
}
