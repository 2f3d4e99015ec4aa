/* image.c - libweft_cuda: the image that nvcc made, as bytes. The assembler takes it in, so that no compiler has to read it. */
#include "kernels/cuda/image.h"

/* Their names are global, and hidden by weft_cuda.map: of a local one aarch64's linkers find the section, not the place in it. */
__asm__(".section .rodata\n"
        ".globl weft_cuda_bytes, weft_cuda_bytes_end\n"
        ".balign 64\n"
        "weft_cuda_bytes:\n"
        ".incbin \"" WEFT_CUDA_IMAGE "\"\n"
        "weft_cuda_bytes_end:\n"
        ".previous\n");
extern const char weft_cuda_bytes[], weft_cuda_bytes_end[];

weft_cuda_fn weft_cuda;

__attribute__((visibility("default"))) const weft_cuda_image *weft_cuda(void)
{
    static weft_cuda_image image = {
        .image = weft_cuda_bytes, .made_for = WEFT_CUDA_MADE_FOR, .texts = &cuda_texts_here};
    image.build = cuda_build_id();
    image.image_bytes = (size_t)(weft_cuda_bytes_end - weft_cuda_bytes);
    return &image;
}
