/* cuda_tiles.c - tables by which a card copies tiles of x and of weights: of each linear of a phase that weft_bulk runs. The driver
 * makes them in less than a microsecond, so they are made for every launch: addresses and rows are those of the call. */
#include "runtime/exec/cuda_impl.h"

#include "kernels/cuda/mma_size.h"

enum { TILE_ALIGN = 16 }; /* of a matrix and of its rows, for the driver */

static bool is_tiled(const void *at, int64_t pitch)
{
    return (uintptr_t)at % TILE_ALIGN == 0 && pitch % TILE_ALIGN == 0;
}

bool cuda_has_tiles(const exec *e, const cuda_bucket *c, const cuda_phase *p, bool unpacked)
{
    bool tiles = e->d->bulk && p->n_step == p->n_item && p->n_step <= BULK_STEPS;
    for (int32_t i = p->step; i < p->step + p->n_step && tiles; i++) {
        const kargs *k = &c->args[i];
        const cuda_step *s = &c->steps[i];
        tiles = s->rows > 0 && k->size.linear.in % MMA_DEPTH == 0 &&
                is_tiled(s->in[0], k->pitch[0]) &&
                (k->type[1] == DT_BF16 ? is_tiled(s->in[1], k->pitch[1]) : unpacked);
    }
    return tiles;
}

size_t cuda_halves_step(const exec *e, const cuda_bucket *c, int32_t i, bool first)
{
    const cuda_step *s = &c->steps[i];
    const size_t bytes = cuda_halves_bytes(e, &c->plan->step[i], s->rows);
    const bool same = bytes && !first && s->in[0] == s[-1].in[0];
    return same ? bytes - (size_t)cuda_halves_x_bytes(s->rows, c->args[i].size.linear.in) : bytes;
}

bool cuda_has_halves(const exec *e, const cuda_bucket *c, const cuda_phase *p)
{
    bool halves = p->n_step == p->n_item && p->n_step <= BULK_STEPS;
    size_t bytes = 0;
    for (int32_t i = p->step; i < p->step + p->n_step && halves; i++) {
        const size_t own = cuda_halves_step(e, c, i, i == p->step);
        bytes += own;
        halves = own > 0 && is_tiled(c->steps[i].in[0], c->args[i].pitch[0]) &&
                 is_tiled(c->steps[i].in[1], c->args[i].pitch[1]);
    }
    return halves && bytes <= e->unpacked_bytes;
}

static cu_result tile_of(const exec *e, const void *at, int64_t cols, int64_t rows, int64_t pitch,
                         uint32_t box_rows, cuda_tile *to)
{
    const uint64_t size[] = {(uint64_t)cols, (uint64_t)rows}, apart[] = {(uint64_t)pitch};
    const uint32_t box[] = {MMA_DEPTH, box_rows}, step[] = {1, 1};
    cu_tile t = {0};
    cu_result r = e->d->driver->cuTensorMapEncodeTiled(&t, CU_TILE_BF16, 2, (void *)(uintptr_t)at,
                                                       size, apart, box, step, 0,
                                                       CU_TILE_SWIZZLE_128, CU_TILE_L2_256, 0);
    memcpy(to, &t, sizeof *to);
    return r;
}
_Static_assert(sizeof(cuda_tile) == sizeof(cu_tile), "what the driver makes is what kernels get");

/* Of a step whose operands are f16 (halves_after in halves_cuda.cuh has the same places). x: that of the step before it, or NULL; at:
 * where its own begin, then those of the next one. */
static cu_result tiles_of_halves(const exec *e, const cuda_bucket *c, int32_t step, const char **x,
                                 const char **at, cuda_tile to[2])
{
    const kargs *k = &c->args[step];
    const int64_t in = k->size.linear.in, out = k->size.linear.out, rows = c->steps[step].rows;
    if (!*x || c->steps[step].in[0] != c->steps[step - 1].in[0]) {
        *x = *at;
        *at += cuda_halves_x_bytes(rows, in);
    }
    cu_result r = tile_of(e, *x, in * 2, rows, cuda_halves_pitch(in), MMA_ROWS, &to[0]);
    if (r == CU_OK)
        r = tile_of(e, *at, in, out, in * 2, MMA_COLS, &to[1]);
    *at += cuda_halves_w_bytes(out, in);
    return r;
}

cu_result cuda_tiles_of(const exec *e, const cuda_bucket *c, const cuda_phase *p,
                        cuda_unpacking how, const char *unpacked, cuda_tiles *to)
{
    cu_result r = CU_OK;
    const char *x = NULL;
    for (int32_t i = 0; i < p->n_step && r == CU_OK; i++) {
        const int32_t step = p->step + i;
        if (how == UNPACK_HALVES) {
            r = tiles_of_halves(e, c, step, &x, &unpacked, to->of[i]);
            continue;
        }
        const kargs *k = &c->args[step];
        const int64_t in = k->size.linear.in;
        const bool own = k->type[1] == DT_BF16;
        const int64_t cols = own ? in : in * cuda_unpacked_parts(k->type[1], c->rows[step]->act);
        r = tile_of(e, c->steps[step].in[0], in * act_parts(c->rows[step]->act),
                    c->steps[step].rows, k->pitch[0], MMA_ROWS, &to->of[i][0]);
        if (r == CU_OK)
            r = tile_of(e, own ? c->steps[step].in[1] : unpacked, cols, k->size.linear.out,
                        own ? k->pitch[1] : cols * 2, MMA_COLS, &to->of[i][1]);
        unpacked += own ? 0 : cuda_unpacked_bytes(e->p, &c->plan->step[step]);
    }
    return r;
}
