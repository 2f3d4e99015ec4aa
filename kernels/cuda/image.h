/* image.h - the CUDA kernels as libweft_cuda has them: one image that the driver loads.
 *
 * The library is plain C and links nothing of NVIDIA's; it is found at run time beside the program. Its only export is
 * weft_cuda. */
#ifndef WEFT_KERNELS_CUDA_IMAGE_H
#define WEFT_KERNELS_CUDA_IMAGE_H

#include <stddef.h>

typedef struct {
    const char *build; /* cuda_build_id of the sources that it was made of */
    const void *image; /* a fatbin, for cuModuleLoadData */
    size_t image_bytes;
    const char *made_for; /* "sm_80 sm_90a compute_80": what it has code for */
} weft_cuda_image;

/* The library's only function. */
#define CUDA_LIBRARY "libweft_cuda.so"
#define CUDA_ENTRY "weft_cuda"
typedef const weft_cuda_image *weft_cuda_fn(void);

/* The kernel in the image that runs phases of a plan (phase.h). */
#define CUDA_KERNEL "weft_phases"

/* Of the sources that this program was made of; the numbers of rows of kernels.def and the structures of phase.h have to be
 * the same on both sides. */
const char *cuda_build_id(void);

#endif
