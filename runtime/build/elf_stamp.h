/* elf_stamp.h - attach an image to a linked ELF file, so that the system maps it with the program.
 *
 *     elf_stamp(dg, name, &elf, bytes, sum);  then the image follows in the file
 *
 * The file has a program header to spare (runtime/program/stamp.h). It becomes a read-only segment behind all others. */
#ifndef WEFT_RUNTIME_BUILD_ELF_STAMP_H
#define WEFT_RUNTIME_BUILD_ELF_STAMP_H

#include "runtime/base/diag.h"

/* Change the file `elf`, as the linker made it, and fill it up to where the image begins. image_bytes and image_sum: of
 * image_write_head. W1705 if it is not an ELF file of 64 bits with such a header. */
weft_status elf_stamp(weft_diag *dg, const char *name, strbuf *elf, uint64_t image_bytes,
                      uint64_t image_sum) WEFT_MUST_USE;

#endif
