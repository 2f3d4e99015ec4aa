/* elf_code.h - an object file of generated code linked into this process.
 *
 * For code that an earlier process left on disk: LLVM can link it too, but loading LLVM takes longer than all the rest of a
 * start. Takes what LLVM writes for x86_64 and aarch64, position-independent; the object may refer to the symbols that come
 * with it and to nothing else. Whatever the bytes are, the loader reads and writes within them and its own memory; what the
 * code does once it is called is another matter, so only objects that nobody else can have written come here. */
#ifndef WEFT_RUNTIME_JIT_ELF_CODE_H
#define WEFT_RUNTIME_JIT_ELF_CODE_H

#include "runtime/exec/plan_code.h"

typedef struct elf_code elf_code;

/* The bytes may go afterwards. name is for messages. W1509: not an object that can be used. */
weft_status elf_code_load(weft_diag *dg, const char *name, const void *object, size_t n,
                          const code_symbol *symbols, size_t n_symbol,
                          elf_code **out_c) WEFT_MUST_USE;
const void *elf_code_find(const elf_code *c, const char *symbol); /* NULL: it defines none such */
size_t elf_code_bytes(const elf_code *c);                         /* of memory that it takes */
void elf_code_unload(elf_code *c);                                /* NULL is fine */

#endif
