/* cpu.h - what this machine's processor can do, found at run time.
 *
 * Every feature has a bit on every architecture, so that tables can name them anywhere; those of a
 * foreign architecture are never found. Where a process must ask the system before it uses a feature (the
 * tiles of AMX on Linux), the first call asks. Thread-safe. */
#ifndef WEFT_RUNTIME_BASE_CPU_H
#define WEFT_RUNTIME_BASE_CPU_H

#include "runtime/base/str.h"

enum {
#define CPU_X86(name, ...) CPU_BIT_##name,
#define CPU_ARM(name, ...) CPU_BIT_##name,
#include "runtime/base/cpu.def"
#undef CPU_X86
#undef CPU_ARM
    CPU_FEATURE_COUNT
};

/* CPU_AVX2, CPU_DOTPROD, ...: to be or-ed together. */
enum {
#define CPU_X86(name, ...) CPU_##name = 1 << CPU_BIT_##name,
#define CPU_ARM(name, ...) CPU_##name = 1 << CPU_BIT_##name,
#include "runtime/base/cpu.def"
#undef CPU_X86
#undef CPU_ARM
};

uint32_t cpu_features(void);           /* the set this process may use */
const char *cpu_feature_name(int bit); /* "avx2" */
void cpu_name(strbuf *out);            /* the maker's name for it; adds nothing if unknown */

#endif
