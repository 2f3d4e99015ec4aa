/* emulated.cpp - kernels/cuda compiled as C++: its kernel, and each function of it alone. */
#include "tests/cuda/simt.h"
#include "kernels/cuda/phase.cu"

#include "tests/cuda/emulated.h"

struct kernel_call {
    kernel_fn *fn;
    const kargs *k;
    const kthread *t;
    int64_t begin, end;
};

static void call_kernel(void *args)
{
    const kernel_call *c = (const kernel_call *)args;
    c->fn(c->k, c->t, c->begin, c->end);
}

static void run_kernel(kernel_call call)
{
    char error[FIBRE_ERROR_MAX];
    simt_grid g = {1, EMULATED_THREADS, 0, call_kernel, &call};
    if (!simt_launch(&g, error))
        emulated_fail(error);
}

#define CUDA_KERNEL(op, type, act, least, most, symbol, ...)                                       \
    void emulated_##symbol(const kargs *k, const kthread *t, int64_t begin, int64_t end)           \
    {                                                                                              \
        run_kernel(kernel_call{symbol, k, t, begin, end});                                         \
    }
#include "kernels/cuda/cuda_kernels.def"
#undef CUDA_KERNEL

static void call_phases(void *args)
{
    weft_phases(*(const cuda_run *)args);
}

bool emulated_phases(const cuda_run *r, int blocks, int threads, size_t dynamic_bytes, char *error)
{
    cuda_run copy = *r;
    simt_grid g = {blocks, threads, dynamic_bytes, call_phases, &copy};
    return simt_launch(&g, error);
}
