/* lora.h - adapters as kernels see them: slots that hold low-rank matrices for each site of a plan, and mixes of them.
 *
 * A site is a weight to which adapters add the product B A of two small matrices, of at most `rank` rows and columns. Each of
 * a session's slots holds one adapter: A and B of every site, as f32, what is beyond the adapter's own rank not looked at. A
 * mix is what a row of a call uses: some slots, each with a scale. Which adapters a row has is data, as its token is. */
#ifndef WEFT_KERNELS_LORA_H
#define WEFT_KERNELS_LORA_H

#include "kernels/kfn.h"
#include <stddef.h>
#include <stdint.h>

enum {
    K_MIX_MAX = 8,  /* slots in a mix */
    LORA_COLS = 32, /* columns of the result whose numbers of B stand together */
    LORA_LANES = 16 /* rows of A begin at whole ones of these */
};

/* What a site's weight is: which columns of x, and which parts, a row uses. */
typedef enum {
    LORA_LINEAR,      /* one matrix */
    LORA_EXPERTS,     /* one for each expert; ids say which a row takes */
    LORA_HEAD_LINEAR, /* one for each head */
    LORA_EMBED,       /* a row of A transposed for each id, instead of a product */
    LORA_KINDS
} lora_kind;

/* Of a site, with memory for adapters of so many rows of A. */
typedef struct {
    lora_kind kind;
    int64_t in, out; /* of the weight, as a product: A is [rank, in], B [out, rank] */
    int64_t parts;   /* experts or heads; 1 */
    int64_t rank;    /* that a slot has room for */
} lora_shape;

/* ---- how a slot's matrices lie in memory ----
 *
 * For each part A, then B. A: rows of `in` numbers, each row from a whole lane on; of LORA_EMBED a row of `rank` for each id.
 * B: for each LORA_COLS columns of the result `rank` rows of so many numbers, so that a product runs down memory and
 * along columns at once. All counts are of floats. */

K_FN int64_t lora_a_pitch(const lora_shape *s)
{
    return s->kind == LORA_EMBED ? s->rank : (s->in + LORA_LANES - 1) / LORA_LANES * LORA_LANES;
}

K_FN int64_t lora_a_floats(const lora_shape *s)
{
    int64_t n = s->kind == LORA_EMBED ? s->in * s->rank : s->rank * lora_a_pitch(s);
    return (n + LORA_LANES - 1) / LORA_LANES * LORA_LANES;
}

K_FN int64_t lora_b_floats(const lora_shape *s)
{
    return (s->out + LORA_COLS - 1) / LORA_COLS * LORA_COLS * s->rank;
}

K_FN int64_t lora_slot_floats(const lora_shape *s)
{
    return s->parts * (lora_a_floats(s) + lora_b_floats(s));
}

/* A of a part of a slot, and its B; base: of the site. */
K_FN int64_t lora_a_at(const lora_shape *s, int64_t slot, int64_t part)
{
    return slot * lora_slot_floats(s) + part * (lora_a_floats(s) + lora_b_floats(s));
}

K_FN int64_t lora_b_at(const lora_shape *s, int64_t slot, int64_t part)
{
    return lora_a_at(s, slot, part) + lora_a_floats(s);
}

/* Where number [row of A, column of A], [column of the result, row of A] is, from there on. */
K_FN int64_t lora_a_index(const lora_shape *s, int64_t r, int64_t i)
{
    return s->kind == LORA_EMBED ? i * s->rank + r : r * lora_a_pitch(s) + i;
}

K_FN int64_t lora_b_index(const lora_shape *s, int64_t col, int64_t r)
{
    return (col / LORA_COLS * s->rank + r) * LORA_COLS + col % LORA_COLS;
}

/* ---- mixes ---- */

typedef struct {
    int32_t n;
    int32_t slot[K_MIX_MAX]; /* ascending */
    float scale[K_MIX_MAX];
} kmix;

/* The adapters of a session: one block without pointers. Behind the counts the slots that rows of the call at hand use,
 * ascending [n_slot]; the rank that each slot has at each site [n_site][n_slot], 0 where its adapter has nothing; the
 * mixes, of which number 0 is none. KBATCH_SLOT holds the numbers of rows' mixes. */
typedef struct {
    int64_t n_slot, n_site, n_mix;
    int64_t n_used;
    uint64_t version; /* another one whenever `used` or a rank has changed */
    int32_t data[K_ANY_LENGTH];
} klora;

K_FN int32_t *klora_used(klora *l)
{
    return l->data;
}

K_FN int32_t *klora_ranks(klora *l, int64_t site)
{
    return l->data + (1 + site) * l->n_slot;
}

K_FN kmix *klora_mixes(klora *l)
{
    return (kmix *)(void *)(l->data + (1 + l->n_site) * l->n_slot);
}

/* The same to be read. */
K_FN const int32_t *klora_used_of(const klora *l)
{
    return l->data;
}

K_FN const int32_t *klora_ranks_of(const klora *l, int64_t site)
{
    return l->data + (1 + site) * l->n_slot;
}

K_FN const kmix *klora_mix(const klora *l, int64_t i)
{
    return (const kmix *)(const void *)(l->data + (1 + l->n_site) * l->n_slot) + i;
}

/* All of it with these counts, in bytes. */
K_FN size_t klora_bytes(int64_t n_slot, int64_t n_site, int64_t n_mix)
{
    return sizeof(klora) + (size_t)((1 + n_site) * n_slot) * sizeof(int32_t) +
           (size_t)n_mix * sizeof(kmix);
}

#endif
