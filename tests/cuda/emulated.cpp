/* emulated.cpp - kernels/cuda compiled as C++: its kernel, and each function of it alone. */
#include "tests/cuda/simt.h"
#include "kernels/cuda/phase.cu"

#include "tests/cuda/emulated.h"

enum { RING_X_MOST = 1 << 17 }; /* of the checker's cases */

struct kernel_call {
    kop op;
    kernel_fn *fn;
    const kargs *k;
    const kthread *t;
    int64_t begin, end;
};

/* A ring for it alone, as phases have one; by one thread. */
static void ring_for(const kernel_call *c)
{
    const kargs *k = c->k;
    ring_block *r = block_ring();
    const int64_t n = k->size.linear.in;
    const cuda_cut cut = cuda_cut_of(k->type[1], n, k->pitch[1], k->size.linear.out);
    const bool rings = c->op == KOP_linear && cut.rows > 0 && at_16(k->in[1]) && at_16(k->in[0]);
    ring_open(r, rings ? simt_dynamic() : NULL, cuda_ring_x_bytes(k->type[1], n), RING_SLOTS,
              RING_SLOT_MOST);
    if (!rings)
        return;
    const kpart part = kpart_of(k, k->size.linear.out, c->begin, c->end);
    r->list[0].of[0] = ring_segment{(const char *)k->in[1] + part.col * k->pitch[1], k->pitch[1],
                                    (int32_t)(part.col_end - part.col), cut, (int32_t)part.col};
    r->list[0].n = 1;
}

/* Chunks for those that call the kernel, until they are done. */
static void copy_chunks(void)
{
    ring_block *r = block_ring();
    ring_copier copier = ring_copier_of(r, lane_index());
    while (!*(volatile int32_t *)&r->stop) {
        if (r->memory)
            ring_copy<true>(copier, r->list[0], 0);
        __nanosleep(0);
    }
}

static void call_kernel(void *args)
{
    const kernel_call *c = (const kernel_call *)args;
    if (threadIdx.x == 0)
        ring_for(c);
    __syncthreads();
    if ((int)threadIdx.x >= block_threads()) {
        copy_chunks();
        return;
    }
    c->fn(c->k, c->t, c->begin, c->end);
    block_sync();
    if (threadIdx.x == 0)
        *(volatile int32_t *)&block_ring()->stop = 1;
}

static void run_kernel(kernel_call call)
{
    char error[FIBRE_ERROR_MAX];
    const size_t ring =
        (size_t)cuda_ring_bytes(EMULATED_THREADS / WARP, RING_SLOTS, RING_SLOT_MOST) + RING_X_MOST;
    simt_grid g = {1, EMULATED_THREADS, WARP, ring, call_kernel, &call};
    if (!simt_launch(&g, error))
        emulated_fail(error);
}

#define CUDA_KERNEL(op, type, act, least, most, symbol, ...)                                       \
    void emulated_##symbol(const kargs *k, const kthread *t, int64_t begin, int64_t end)           \
    {                                                                                              \
        run_kernel(kernel_call{KOP_##op, symbol, k, t, begin, end});                               \
    }
#include "kernels/cuda/cuda_kernels.def"
#undef CUDA_KERNEL

void emulated_k_rms_norm_cuda_quantize(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    run_kernel(kernel_call{KOP_rms_norm, k_rms_norm_cuda_quantize, k, t, begin, end});
}

/* What weft_flash and weft_codes do in place of k_attend_flash_cuda, exact and rounded. */
template <bool ROUND> static void call_tiles(void *args)
{
    const kernel_call *c = (const kernel_call *)args;
    const tiles_step s = {c->k, simt_dynamic(), c->begin, c->end, NULL, 0};
    if (flash_codes(c->k->cell))
        codes_run(s, ROUND);
    else if (flash_has(c->k->cell))
        tiles_run(s, ROUND);
    else
        k_attend_flash_cuda(c->k, c->t, c->begin, c->end);
}

template <bool ROUND>
static void run_tiles(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    char error[FIBRE_ERROR_MAX];
    kernel_call call = {KOP_attend, NULL, k, t, begin, end};
    simt_grid g = {1, CUDA_FLASH_BLOCK, 0, FLASH_TILES_BYTES, call_tiles<ROUND>, &call};
    if (!simt_launch(&g, error))
        emulated_fail(error);
}

void emulated_k_attend_tiles_cuda(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    run_tiles<false>(k, t, begin, end);
}

void emulated_k_attend_tiles_round_cuda(const kargs *k, const kthread *t, int64_t begin,
                                        int64_t end)
{
    run_tiles<true>(k, t, begin, end);
}

/* With as much of a cuda_launch as it takes. */
template <class A> static void call_with(void (*grid)(const A), const void *args)
{
    grid(*(const A *)args);
}

#define CUDA_GRID(name, threads_, blocks_)                                                         \
    static void call_##name(void *args)                                                            \
    {                                                                                              \
        call_with(weft_##name, args);                                                              \
    }                                                                                              \
                                                                                                   \
    bool emulated_##name(const cuda_launch *all, int blocks, int threads, int more,                \
                         size_t dynamic_bytes, char *error)                                        \
    {                                                                                              \
        cuda_launch copy = *all;                                                                   \
        simt_grid g = {blocks, threads, more, dynamic_bytes, call_##name, &copy};                  \
        return simt_launch(&g, error);                                                             \
    }
CUDA_GRIDS(CUDA_GRID)
#undef CUDA_GRID

static void call_choose(void *args)
{
    weft_choose(*(const cuda_choice *)args);
}

bool emulated_choose(const cuda_choice *a, int rows, int threads, char *error)
{
    static_assert(CHOOSE_BYTES <= 48 << 10, "what a block has without being asked");
    cuda_choice copy = *a;
    simt_grid g = {
        rows * (a->stripes ? CHOOSE_PARTS : 1), threads, 0, CHOOSE_BYTES, call_choose, &copy};
    return simt_launch(&g, error);
}

static void call_best(void *args)
{
    weft_best(*(const cuda_choice *)args);
}

bool emulated_best(const cuda_choice *a, int rows, int threads, char *error)
{
    cuda_choice copy = *a;
    simt_grid g = {rows * BEST_PARTS, threads, 0, 0, call_best, &copy};
    return simt_launch(&g, error);
}

static void call_tokens(void *args)
{
    weft_tokens(*(const cuda_tokens *)args);
}

bool emulated_tokens(const cuda_tokens *a, int threads, char *error)
{
    cuda_tokens copy = *a;
    simt_grid g = {1, threads, 0, 0, call_tokens, &copy};
    return simt_launch(&g, error);
}
