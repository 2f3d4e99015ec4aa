/* lora_ref.c - what adapters add to a product: lora_down gives scale * A x of each slot of a row's mix, one behind the
 * other; lora_up the sum of B times those. What is beyond a mix's slots and a slot's rank is neither written nor read. */
#include "kernels/kernel_decls.h"

#include "kernels/lora_rows.h"

/* Row r of A times x; of an embedding the number that its id has there. */
static float down(const kargs *k, const lora_shape *s, const float *a, int64_t row, int64_t v,
                  int64_t r)
{
    if (s->kind == LORA_EMBED) {
        int32_t id = ((const int32_t *)k->in[2])[row];
        WEFT_ASSERT(id >= 0 && id < s->in);
        return a[lora_a_index(s, r, id)];
    }
    int64_t xs = k->size.lora.x_vectors;
    const float *x = (const float *)k->in[0] + (row * xs + (xs > 1 ? v : 0)) * s->in;
    double sum = 0;
    for (int64_t i = 0; i < s->in; i++)
        sum += (double)a[lora_a_index(s, r, i)] * x[i];
    return (float)sum;
}

void k_lora_down_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const float *site = k->in[1];
    float *out = k->out[0]; /* [rows, vectors, K_MIX_MAX, rank] */
    lora_shape s = lora_shape_of(k);
    int64_t vectors = k->size.lora.vectors;
    (void)t;
    for (int64_t row = begin; row < end; row++) {
        const kmix *m = lora_mix_of(k, row);
        for (int64_t v = 0; v < vectors; v++)
            for (int j = 0; j < m->n; j++) {
                int64_t part = lora_part(k, row, v);
                WEFT_ASSERT(part >= 0 && part < s.parts);
                const float *a = site + lora_a_at(&s, m->slot[j], part);
                float *to = out + ((row * vectors + v) * K_MIX_MAX + j) * s.rank;
                for (int64_t r = 0; r < lora_rank_of(k, m->slot[j]); r++)
                    to[r] = m->scale[j] * down(k, &s, a, row, v, r);
            }
    }
}

void k_lora_up_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    const float *h = k->in[0]; /* [rows, vectors, K_MIX_MAX, rank] */
    const float *site = k->in[1];
    float *out = k->out[0]; /* [rows, vectors, out] */
    lora_shape s = lora_shape_of(k);
    int64_t vectors = k->size.lora.vectors;
    (void)t;
    for (int64_t row = begin; row < end; row++) {
        const kmix *m = lora_mix_of(k, row);
        for (int64_t v = 0; v < vectors; v++)
            for (int64_t c = 0; c < s.out; c++) {
                double sum = 0;
                for (int j = 0; j < m->n; j++) {
                    int64_t part = lora_part(k, row, v);
                    WEFT_ASSERT(part >= 0 && part < s.parts);
                    const float *b = site + lora_b_at(&s, m->slot[j], part);
                    const float *from = h + ((row * vectors + v) * K_MIX_MAX + j) * s.rank;
                    for (int64_t r = 0; r < lora_rank_of(k, m->slot[j]); r++)
                        sum += (double)b[lora_b_index(&s, c, r)] * from[r];
                }
                out[(row * vectors + v) * s.out + c] = (float)sum;
            }
    }
}
