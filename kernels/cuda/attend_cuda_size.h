/* attend_cuda_size.h - how attend_cuda.cuh cuts its work into units, and its scratch; for the kernel and for the table. */
#ifndef WEFT_KERNELS_CUDA_ATTEND_CUDA_SIZE_H
#define WEFT_KERNELS_CUDA_ATTEND_CUDA_SIZE_H

#include "kernels/c/attend_panels_size.h"
#include "kernels/page_form.h"

enum {
    CUDA_KEYS = 32,                /* positions computed together: a warp's lanes */
    CUDA_HEADS = 8,                /* query heads of a unit at most */
    CUDA_QUERIES = 32,             /* vectors of a unit at most, where a call has many rows */
    CUDA_STRETCH = 64,             /* positions of a stretch: so many, or 2, 4, .. times that */
    CUDA_HALVES_STRETCH = 256,     /* the same where rows are halves (cuda_cell_halves), */
    CUDA_HALVES_STRETCHES = 4,     /* and how many stretches of that length a row has at most */
    CUDA_LATENT_STRETCH = 128,     /* the least where rows are latent (cuda_cell_latent), */
    CUDA_LATENT_TILE = 32,         /* of which so many positions are computed together: */
    CUDA_LATENT_K = 576,           /* rows with as many numbers at most, */
    CUDA_LATENT_V = 512,           /* and the first so many of them as value */
    CUDA_ATTEND_BYTES = 96 * 1024, /* of scratch: as many rows to a unit as fit */
    CUDA_MERGE_HEADS = 32,         /* query heads whose stretches are merged at a time at most, */
    CUDA_MERGE_BYTES = 16 * ATTEND_STRETCHES, /* and what is kept of each */
};

typedef struct {
    int64_t group;    /* query heads to a head of the cell */
    int64_t heads;    /* of a unit */
    int64_t parts;    /* units to a head of the cell */
    int64_t rows;     /* of a unit */
    int64_t k, v;     /* floats of a key and a value in scratch */
    int64_t query;    /* floats of a query: vector, weights, two sums and five numbers */
    int64_t position; /* of a position of a block: key, value and where they come from */
} cuda_attend_size;

/* Floats of a vector whose quarters are an odd number: so 16 bytes of eight of them lie in different banks. */
K_FN int64_t cuda_attend_pitch(int64_t n)
{
    return ((n + 3) / 4 | 1) * 4;
}

K_FN cuda_attend_size cuda_attend_size_of(const kargs *k)
{
    cuda_attend_size s = {0};
    s.group = k->size.attend.heads / k->cell->heads;
    s.parts = (s.group + CUDA_HEADS - 1) / CUDA_HEADS;
    s.heads = (s.group + s.parts - 1) / s.parts;
    s.k = cuda_attend_pitch(k->cell->k);
    s.v = cuda_attend_pitch(k->cell->v);
    s.query = s.k + CUDA_KEYS + 2 * s.v + 5;
    s.position = s.k + (k->cell->latent ? 0 : s.v) + 8;
    int64_t room = CUDA_ATTEND_BYTES / 4 - CUDA_KEYS * s.position;
    int64_t most = room / (s.query * s.heads), want = CUDA_QUERIES / s.heads;
    bool few = k->size.attend.rows <= K_ROWS_FEW; /* of which each has units of its own */
    s.rows = few || most < 1 ? 1 : most < want ? most : want;
    return s;
}

K_FN int64_t cuda_attend_units(const kargs *k)
{
    cuda_attend_size s = cuda_attend_size_of(k);
    int64_t units = (k->size.attend.rows + s.rows - 1) / s.rows * k->cell->heads * s.parts;
    return k->choice.attend.part == ATTEND_MERGE    ? k->size.attend.rows * k->size.attend.heads
           : k->choice.attend.part == ATTEND_STATES ? units * ATTEND_STRETCHES
                                                    : units;
}

K_FN int64_t cuda_attend_bytes(const kargs *k)
{
    cuda_attend_size s = cuda_attend_size_of(k);
    if (k->choice.attend.part == ATTEND_MERGE)
        return CUDA_MERGE_HEADS * CUDA_MERGE_BYTES;
    return (CUDA_KEYS * s.position + s.rows * s.heads * s.query) * (int64_t)sizeof(float);
}

/* Are a cell's keys and values rows of 16-bit numbers that a warp could load as they are (attend_few_cuda.cuh)? */
K_FN bool cuda_cell_halves(const kcell *c)
{
    const kcell_tier *t = &c->tier[0];
    return !c->latent && c->n_tier == 1 && c->k == c->v && c->k % 8 == 0 && c->k <= 256 &&
           t->key == t->value && (t->key == KFORM_F16 || t->key == KFORM_BF16);
}

/* Are they latent rows of such numbers that a block could copy as they are (attend_latent_cuda.cuh)? */
K_FN bool cuda_cell_latent(const kcell *c)
{
    const kform form = c->tier[0].key;
    return c->latent && c->n_tier == 1 && c->heads == 1 && c->k % 8 == 0 && c->k <= CUDA_LATENT_K &&
           c->v <= CUDA_LATENT_V && c->v <= c->k && (form == KFORM_F16 || form == KFORM_BF16);
}

K_FN bool cuda_form_codes(kform f)
{
    return f == KFORM_Q8 || f == KFORM_Q4;
}

/* Are its keys and values rows of f16 and, in full pages, codes, that a warp could load as they are
 * (attend_few_codes_cuda.cuh)? Of a plan it is not known. */
K_FN bool cuda_cell_codes(const kcell *c)
{
    const kcell_tier *t = c->tier;
    return !c->latent && c->n_tier == 2 && c->k == c->v &&
           (c->k == 64 || c->k == 128 || c->k == 256) && t[0].key == KFORM_F16 &&
           t[0].value == KFORM_F16 && cuda_form_codes(t[1].key) && cuda_form_codes(t[1].value) &&
           (c->page_tok == PAGE_BLOCK / 2 || (c->page_tok > 0 && c->page_tok % PAGE_BLOCK == 0));
}

/* Positions of a stretch of a row at `pos`; there are no more than ATTEND_STRETCHES. Where a block is quick at one
 * (cuda_cell_halves, cuda_cell_codes), a longer one costs about what one more to merge does: so stretches and their number grow
 * together, up to a number that keeps a card busy. Those of codes are whole blocks of them. Of latent rows there is but one head to
 * share out, so all stretches that there may be are used from where each is some tiles long. */
K_FN int cuda_stretch_len(const kcell *c, int pos)
{
    int len = CUDA_STRETCH, each = cuda_cell_codes(c) ? (int)PAGE_BLOCK : (int)CUDA_KEYS;
    if (cuda_cell_latent(c)) {
        len = (pos / (ATTEND_STRETCHES * CUDA_LATENT_TILE) + 1) * CUDA_LATENT_TILE;
        return len > CUDA_LATENT_STRETCH ? len : CUDA_LATENT_STRETCH;
    }
    if (!cuda_cell_halves(c) && !cuda_cell_codes(c)) {
        while (pos / len >= ATTEND_STRETCHES)
            len *= 2;
        return len;
    }
    if (pos < CUDA_HALVES_STRETCH * CUDA_HALVES_STRETCHES)
        return CUDA_HALVES_STRETCH;
    len = (pos / (ATTEND_STRETCHES * each) + 1) * each;
    return len > 2 * CUDA_HALVES_STRETCH ? len : 2 * CUDA_HALVES_STRETCH;
}

#endif
