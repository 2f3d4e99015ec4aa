/* program_lib.h - the small C interface of a shared library that `weft build --lib` makes.
 *
 * The library exports these functions under its own name: program_lib_open is story_open in libstory.so, and so on; runtime/build/lib_header.c
 * writes the header that its users read. One thread at a time uses one of them; several may be open. */
#ifndef WEFT_RUNTIME_PROGRAM_PROGRAM_LIB_H
#define WEFT_RUNTIME_PROGRAM_PROGRAM_LIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct program_lib program_lib;

#define PROGRAM_LIB_API __attribute__((visibility("default"), used))

PROGRAM_LIB_API program_lib *program_lib_open(int threads, char *error, size_t error_bytes);
PROGRAM_LIB_API bool program_lib_sampling(program_lib *s, double temperature, int top_k,
                                          double top_p, uint64_t seed);
PROGRAM_LIB_API bool program_lib_prompt(program_lib *s, const char *text, bool chat);
PROGRAM_LIB_API const char *program_lib_next(program_lib *s);
PROGRAM_LIB_API const char *program_lib_error(const program_lib *s);
PROGRAM_LIB_API void program_lib_close(program_lib *s);

#endif
