/* codegen.h - the public header of codegen/: plans into native code, by LLVM.
 *
 * All of it is libweft_llvm, a shared library that is loaded when somebody asks for it and exports one function. It has no
 * state of base/ of its own: what it needs of the process that loads it (diagnostics, memory of results) it is given. Every
 * function may be called from any thread, one call at a time for each weft_diag. No LLVM type is seen outside. */
#ifndef WEFT_CODEGEN_CODEGEN_H
#define WEFT_CODEGEN_CODEGEN_H

#include "runtime/exec/plan_code.h"

/* The object of a plan defines one symbol, the prefix and this: a plan_code (runtime/exec/plan_code.h), whose tables have
 * NULL for buckets that were not compiled and for steps that are no maps. It may refer to kernels and to helpers of the
 * executor, by their names. */
#define CODE_SYMBOL "code"

typedef enum { CODE_OBJECT, CODE_ASM, CODE_LLVM } code_form;

typedef struct {
    const plan *p;
    int32_t bucket; /* -1: all */
    /* The target: aarch64-linux-gnu, a name of LLVM for the processor and features as "+avx2,+fma". NULL: this machine's
     * architecture; the architecture's plainest processor; what the plan's level needs. */
    const char *triple, *cpu, *features;
    const char *prefix; /* of the symbol; NULL: none */
    bool pic;           /* may be loaded at any address */
    bool debug;         /* lines of the model file */
    bool
        few_rows; /* functions of buckets only for calls of few rows, which feel what lies between kernels; maps for all */
} code_job;

/* Loaded code. */
typedef struct code code;

/* What the loading process gives: weft_fail and strbuf_put (codegen_host_here). */
typedef struct {
    weft_status (*fail)(weft_diag *dg, weft_code code, weft_loc loc, const char *fmt, ...);
    void (*put)(strbuf *to, str s);
} codegen_host;

typedef struct codegen {
    const char *build; /* codegen_build_id of the sources that it was made of */
    const char *llvm;  /* LLVM's version: "19.1.7" */
    /* The same job gives the same bytes. Adds to `out`; CODE_LLVM and CODE_ASM are text. */
    weft_status (*compile)(weft_diag *dg, const code_job *job, code_form form, strbuf *out);
    /* Links an object of this machine into memory; `symbols` are all that it may refer to. The bytes are copied. */
    weft_status (*load)(weft_diag *dg, const void *object, size_t n, const code_symbol *symbols,
                        size_t n_symbol, code **out_c);
    /* Linking happens here: a symbol that is not there, or one that the object needs and was not given, is an error. */
    weft_status (*find)(weft_diag *dg, code *c, const char *symbol, void **out_p);
    void (*unload)(code *c); /* NULL is fine */
} codegen;

/* The one exported function, "weft_codegen". The host must outlive all use. Whoever loads the library compares `build`
 * with its own codegen_build_id() before anything else: structures are shared. */
typedef const codegen *weft_codegen_fn(const codegen_host *host);
const codegen *weft_codegen(const codegen_host *host);
#define CODEGEN_ENTRY "weft_codegen"
#define CODEGEN_LIBRARY "libweft_llvm.so"

/* A hash of what program and library share, and of the sources of codegen/ (library weft_codegen_id, without LLVM). */
const char *codegen_build_id(void);

static inline codegen_host codegen_host_here(void)
{
    return (codegen_host){.fail = weft_fail, .put = strbuf_put};
}

#endif
