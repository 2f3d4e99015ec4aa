/* attend_few_size.h - how attend_few_cuda.cuh cuts its work into units, and its scratch; for the kernel and for the table. */
#ifndef WEFT_KERNELS_CUDA_ATTEND_FEW_SIZE_H
#define WEFT_KERNELS_CUDA_ATTEND_FEW_SIZE_H

#include "kernels/cuda/attend_latent_size.h"
#include "kernels/cuda/few_size.h"

enum {
    FEW_HEADS = 8,      /* query heads of a unit at most, */
    FEW_HEADS_WIDE = 4, /* and of one whose values have more than FEW_WIDE columns */
    FEW_WIDE = 128,
    FEW_PIECES = 8,              /* of a stretch, of which each is a warp's */
    FEW_COLUMNS = 32,            /* of a result, by a warp: a lane each */
    FEW_PAD = 4,                 /* floats in front of columns, for what is kept beside them */
    FEW_AHEAD_BYTES = 16 * 1024, /* of a warp: tiles under way, in calls of several rows; */
    FEW_AHEAD_ALIGN = 512,       /* a row of them at most: where those begin */
    FEW_HELD = 3,                /* stretches of a unit whose pieces wait to be merged, at most */
    FEW_CODES_TILE = 32,         /* positions of a tile where pages are codes */
};

/* Columns of a cell's values as they are computed with: rows of 16-bit numbers are filled up with zeros to one of three widths. */
K_FN int64_t few_width(const kcell *c)
{
    return !cuda_cell_halves(c) ? c->v : c->v <= 64 ? 64 : c->v <= 128 ? 128 : 256;
}

/* A unit is a row's query heads that share one of the cell's, or some of them. */
K_FN cuda_attend_size few_attend_size_of(const kargs *k)
{
    cuda_attend_size s = cuda_attend_size_of(k);
    int64_t most = cuda_cell_latent(k->cell)        ? latent_heads_most(k)
                   : few_width(k->cell) <= FEW_WIDE ? FEW_HEADS
                                                    : FEW_HEADS_WIDE;
    s.parts = (s.group + most - 1) / most;
    s.heads = (s.group + s.parts - 1) / s.parts;
    s.rows = 1;
    return s;
}

K_FN int64_t few_attend_units(const kargs *k)
{
    int64_t units = k->size.attend.rows * k->cell->heads * few_attend_size_of(k).parts;
    return k->choice.attend.part == ATTEND_MERGE    ? k->size.attend.rows * k->size.attend.heads
           : k->choice.attend.part == ATTEND_STATES ? units * ATTEND_STRETCHES
                                                    : units;
}

/* Floats of what a piece has of a query head: largest logit, sum of weights, and from FEW_PAD on the sum of values. */
K_FN int64_t few_piece_floats(int64_t v)
{
    return FEW_PAD + v;
}

/* Of all stretches so far, by warps that have FEW_COLUMNS columns each. */
K_FN int64_t few_all_floats(int64_t heads, int64_t v)
{
    return heads * v / FEW_COLUMNS * (FEW_PAD + FEW_COLUMNS);
}

/* Do a cell's rows lie so that they can be loaded as they are? Of a plan it is not known: its cells have no pages yet. */
K_FN bool few_attend_reads(const kcell *c)
{
    if (cuda_cell_latent(c))
        return c->page_tok > 0 && c->tier[0].page_bytes % 16 == 0;
    return (cuda_cell_halves(c) || (cuda_cell_codes(c) && c->tier[1].page_bytes % 16 == 0)) &&
           c->page_tok > 0 && c->page_tok % CUDA_KEYS == 0 && c->tier[0].page_bytes % 16 == 0;
}

/* Bytes of tiles that are copied ahead; of one row they go to registers. */
K_FN int64_t few_ahead_bytes(const kargs *k)
{
    return k->size.attend.rows > 1 && cuda_cell_halves(k->cell)
               ? FEW_PIECES * FEW_AHEAD_BYTES + FEW_AHEAD_ALIGN
               : 0;
}

/* Stretches whose pieces there is room for, where tiles are copied ahead: each merge is two barriers of the block. */
K_FN int64_t few_held(const kargs *k)
{
    const int64_t heads = few_attend_size_of(k).heads, v = few_width(k->cell);
    const int64_t each = FEW_PIECES * heads * few_piece_floats(v) * (int64_t)sizeof(float);
    const int64_t beside = few_ahead_bytes(k) + few_all_floats(heads, v) * (int64_t)sizeof(float);
    const int64_t most = k->choice.attend.part == ATTEND_WHOLE && few_ahead_bytes(k) > 0
                             ? (FEW_BYTES - beside) / each
                             : 1;
    return most < 1 ? 1 : most > FEW_HELD ? FEW_HELD : most;
}

/* Floats for keys that are codes: steps and middles for each warp, and queries. */
K_FN int64_t few_codes_floats(const kcell *c, int64_t heads)
{
    return c->n_tier > 1 ? FEW_PIECES * c->k + heads * few_piece_floats(c->k) : 0;
}

/* Those, what pieces have, and stretches so far; or what attend_cuda.cuh needs, for cells that are not read here. */
K_FN int64_t few_attend_bytes(const kargs *k)
{
    if (k->choice.attend.part == ATTEND_MERGE)
        return CUDA_MERGE_HEADS * CUDA_MERGE_BYTES;
    cuda_attend_size s = few_attend_size_of(k);
    int64_t own = few_ahead_bytes(k) / (int64_t)sizeof(float) +
                  few_held(k) * FEW_PIECES * s.heads * few_piece_floats(few_width(k->cell)) +
                  few_all_floats(s.heads, few_width(k->cell)) + few_codes_floats(k->cell, s.heads);
    if (cuda_cell_latent(k->cell))
        own = latent_bytes(k, s.heads) / (int64_t)sizeof(float);
    int64_t other = CUDA_KEYS * s.position + s.heads * s.query;
    bool reads = few_attend_reads(k->cell);
    return (own > other || reads ? own : other) * (int64_t)sizeof(float);
}

#endif
