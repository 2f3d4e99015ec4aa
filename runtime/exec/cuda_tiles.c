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

cu_result cuda_tiles_of(const exec *e, const cuda_bucket *c, const cuda_phase *p,
                        cuda_unpacking how, const char *unpacked, cuda_tiles *to)
{
    cu_result r = CU_OK;
    for (int32_t i = 0; i < p->n_step && r == CU_OK; i++) {
        const int32_t step = p->step + i;
        const kargs *k = &c->args[step];
        const int64_t in = k->size.linear.in, out = k->size.linear.out;
        const kact act = c->rows[step]->act;
        const bool halves = how == UNPACK_HALVES, own = k->type[1] == (halves ? DT_F16 : DT_BF16);
        const int64_t cols = own || halves ? in : in * cuda_unpacked_parts(k->type[1], act);
        r = tile_of(e, c->steps[step].in[0],
                    in * (halves ? cuda_halves_parts(act) : act_parts(act)), c->steps[step].rows,
                    k->pitch[0], MMA_ROWS, &to->of[i][0]);
        if (r == CU_OK)
            r = tile_of(e, own ? c->steps[step].in[1] : unpacked, cols, out,
                        own ? k->pitch[1] : cols * 2, MMA_COLS, &to->of[i][1]);
        if (!own)
            unpacked += halves ? (size_t)cuda_halves_bytes(out, in)
                               : cuda_unpacked_bytes(e->p, &c->plan->step[step]);
    }
    return r;
}
