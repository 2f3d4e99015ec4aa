/* stamp.c - the place for the stamp, and the note that names it. */
#include "runtime/program/stamp.h"

/* Volatile: the compiler must not know its values, which are changed after linking. */
extern const volatile program_stamp weft_program_stamp;
__attribute__((used, visibility("hidden")))
const volatile program_stamp weft_program_stamp = {.magic = STAMP_MAGIC};

/* A note whose alignment differs from that of others gets a program header of its own. Its contents: how far the stamp is
 * from here, which the linker knows. */
__asm__(".pushsection .weft, \"a\", %note\n"
        "    .balign 16\n"
        "    .long 5, 8, 0x77656674\n"
        "    .asciz \"Weft\"\n"
        "    .zero 3\n"
        "    .quad weft_program_stamp - .\n"
        "    .popsection\n");

bool stamp_image(const void **out_data, size_t *out_bytes, uint64_t *out_sum)
{
    const volatile program_stamp *s = &weft_program_stamp;
    if (s->delta == 0)
        return false;
    *out_data = (const void *)((uintptr_t)s + (uintptr_t)s->delta);
    *out_bytes = (size_t)s->bytes;
    *out_sum = s->sum;
    return true;
}
