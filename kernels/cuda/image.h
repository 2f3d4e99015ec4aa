/* image.h - the CUDA kernels as libweft_cuda has them: two images that the driver loads, and the texts that they were made of, for
 * images of single plans.
 *
 * The library is plain C and links nothing of NVIDIA's; it is found at run time beside the program. Its only export is
 * weft_cuda. */
#ifndef WEFT_KERNELS_CUDA_IMAGE_H
#define WEFT_KERNELS_CUDA_IMAGE_H

#include <stddef.h>

/* A file of the kernels by the name that it is included by. */
typedef struct {
    const char *name, *text;
} cuda_text_file;

/* All that phase.cu includes, itself among them: texts.cmake lists them. flags: words with a blank between them that any
 * compiler of them is given, such as -fmad=false. */
typedef struct {
    const cuda_text_file *file;
    int n_file;
    const char *flags;
} cuda_texts;
extern const cuda_texts cuda_texts_here;

/* A fatbin, for cuModuleLoadData. */
typedef struct {
    const void *at;
    size_t bytes;
} cuda_fatbin;

/* phases: weft_phases with all kernels, optimised little, which saves the compiler many minutes; grids: the other functions of
 * CUDA_GRIDS (phase.h), and those that choose tokens. */
typedef struct {
    const char *build; /* cuda_build_id of the sources that it was made of */
    cuda_fatbin phases, grids;
    const char *made_for; /* "sm_80 sm_90a compute_80": what it has code for */
    const cuda_texts *texts;
} weft_cuda_image;

/* The library's only function. */
#define CUDA_LIBRARY "libweft_cuda.so"
#define CUDA_ENTRY "weft_cuda"
typedef const weft_cuda_image *weft_cuda_fn(void);

/* The kernel in the image that runs phases of a plan (phase.h). */
#define CUDA_KERNEL_NAME "weft_phases"
#define CUDA_KERNEL_FILE "kernels/cuda/phase.cu"
/* Those that choose tokens, and put them into the next call (choose.h). */
#define CUDA_KERNEL_CHOOSE "weft_choose"
#define CUDA_KERNEL_BEST "weft_best"
#define CUDA_KERNEL_TOKENS "weft_tokens"

/* Of the sources that this program was made of; the numbers of rows of kernels.def and the structures of phase.h have to be
 * the same on both sides. */
const char *cuda_build_id(void);

#endif
