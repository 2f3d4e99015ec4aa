/* emulated.h - kernels/cuda as this processor runs it (emulated.cpp). */
#ifndef WEFT_TESTS_CUDA_EMULATED_H
#define WEFT_TESTS_CUDA_EMULATED_H

#include "kernels/cuda/choose.h"
#include "kernels/cuda/phase.h"
#include "tests/cuda/simt_run.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kernels of cuda_kernels.def, each by one block; emulated_k_linear_cuda and so on. Code that cannot go on is told to
 * emulated_fail, which the program defines. */
enum { EMULATED_THREADS = 64 };
#define CUDA_KERNEL(op, type, act, least, most, symbol, ...) kernel_fn emulated_##symbol;
#include "kernels/cuda/cuda_kernels.def"
#undef CUDA_KERNEL
kernel_fn emulated_k_attend_tiles_cuda,
    emulated_k_attend_tiles_round_cuda;      /* by a block of weft_flash or weft_codes */
kernel_fn emulated_k_rms_norm_cuda_quantize; /* of images made for a plan */
void emulated_fail(const char *what);

/* Functions of CUDA_GRIDS with all blocks at once, emulated_phases and so on; more: threads beside those that compute. False: what was wrong, in `error`
 * [FIBRE_ERROR_MAX]. */
#define CUDA_GRID(name, threads_, blocks_)                                                         \
    bool emulated_##name(const cuda_launch *all, int blocks, int threads, int more,                \
                         size_t dynamic_bytes, char *error);
CUDA_GRIDS(CUDA_GRID)
#undef CUDA_GRID

/* weft_choose with a block for each row, or with stripes with several; weft_best, for such as are greedy; weft_tokens. */
bool emulated_choose(const cuda_choice *a, int rows, int threads, char *error);
bool emulated_best(const cuda_choice *a, int rows, int threads, char *error);
bool emulated_tokens(const cuda_tokens *a, int threads, char *error);

#ifdef __cplusplus
}
#endif

#endif
