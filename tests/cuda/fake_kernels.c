/* fake_kernels.c - libweft_cuda for the tests' card: of the same build, with the image that its driver takes. */
#include "kernels/cuda/image.h"

const weft_cuda_image *fake_kernels_at(void);

const weft_cuda_image *weft_cuda(void) __attribute__((visibility("default")));
const weft_cuda_image *weft_cuda(void)
{
    static weft_cuda_image it;
    it = *fake_kernels_at();
    it.build = cuda_build_id();
    return &it;
}
