/* elf_reloc.h - one place of an object patched, for the architecture this is built for. */
#ifndef WEFT_RUNTIME_JIT_ELF_RELOC_H
#define WEFT_RUNTIME_JIT_ELF_RELOC_H

#include <stdbool.h>
#include <stdint.h>

#include <elf.h>

#if defined(__aarch64__)
enum { ELF_RELOC_MACHINE = EM_AARCH64 };
#elif defined(__x86_64__)
enum { ELF_RELOC_MACHINE = EM_X86_64 };
#else
enum { ELF_RELOC_MACHINE = EM_NONE };
#endif

typedef struct {
    char *at;         /* the place; it is where it will be run */
    uintptr_t symbol; /* the address meant */
    int64_t add;
    uintptr_t got, stub; /* a place that holds that address, and instructions that jump to it */
} elf_place;

int elf_reloc_width(uint32_t type); /* bytes of the place; 0: no such type */
/* False: the address is too far away. */
bool elf_reloc_write(uint32_t type, const elf_place *p);
void elf_stub_write(char *at, uintptr_t target); /* 16 bytes */

#endif
