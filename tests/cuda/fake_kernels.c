/* fake_kernels.c - libweft_cuda for the tests' card: of the same build, with the image that its driver takes. */
#include "kernels/cuda/image.h"

const void *fake_image_at(void);

const weft_cuda_image *weft_cuda(void) __attribute__((visibility("default")));
const weft_cuda_image *weft_cuda(void)
{
    static weft_cuda_image it = {.image_bytes = 1, .made_for = "the tests' card"};
    it.build = cuda_build_id();
    it.image = fake_image_at();
    return &it;
}
