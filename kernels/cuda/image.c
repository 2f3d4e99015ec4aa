/* image.c - libweft_cuda: the images that nvcc made, as bytes. The assembler takes them in, so that no compiler has to read them. */
#include "kernels/cuda/image.h"

/* Their names are global, and hidden by weft_cuda.map: of a local one aarch64's linkers find the section, not the place in it. */
#define FATBIN(name)                                                                               \
    __asm__(".section .rodata\n"                                                                   \
            ".globl weft_cuda_" #name ", weft_cuda_" #name "_end\n"                                \
            ".balign 64\n"                                                                         \
            "weft_cuda_" #name ":\n"                                                               \
            ".incbin \"" WEFT_CUDA_IMAGES "/" #name ".fatbin\"\n"                                  \
            "weft_cuda_" #name "_end:\n"                                                           \
            ".previous\n");                                                                        \
    extern const char weft_cuda_##name[], weft_cuda_##name##_end[]

FATBIN(phases);
FATBIN(grids);

#define FATBIN_OF(name)                                                                            \
    ((cuda_fatbin){weft_cuda_##name, (size_t)(weft_cuda_##name##_end - weft_cuda_##name)})

weft_cuda_fn weft_cuda;

__attribute__((visibility("default"))) const weft_cuda_image *weft_cuda(void)
{
    static weft_cuda_image image = {.made_for = WEFT_CUDA_MADE_FOR, .texts = &cuda_texts_here};
    image.build = cuda_build_id();
    image.phases = FATBIN_OF(phases);
    image.grids = FATBIN_OF(grids);
    return &image;
}
