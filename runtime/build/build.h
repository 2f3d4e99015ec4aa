/* build.h - a model into a program: plans for each level, weights in their final bytes, linked and written. For `weft build`. */
#ifndef WEFT_RUNTIME_BUILD_BUILD_H
#define WEFT_RUNTIME_BUILD_BUILD_H

#include "runtime/api/api_open.h"
#include "runtime/build/linker.h"

enum { BUILD_LEVELS_MAX = 16 };

/* Bytes of weights that a program may hold a second time, in another layout, so that plainer processors can run it as well. */
#define BUILD_TWICE_MAX ((uint64_t)32 << 20)

/* How the weights of a program lie. */
typedef enum {
    BUILD_STORED, /* as the checkpoint has them, once for all levels */
    BUILD_EACH,   /* as the kernels of each level want them */
    BUILD_LIKE, /* as one level wants them; others read these, or have BUILD_TWICE_MAX bytes of their own, or are left out */
} build_lie;

/* What --cpu means. */
typedef struct {
    const char *level[BUILD_LEVELS_MAX]; /* from plain to fast */
    int n_level;
    build_lie lie;
    const char *like; /* BUILD_LIKE: one of them */
} build_choice;

/* Generated code for decoding: where LLVM is there, always, never. Without it the program interprets its plan. */
typedef enum { BUILD_CODE_AUTO, BUILD_CODE_LLVM, BUILD_CODE_NONE } build_code_choice;

typedef struct {
    const char *out; /* the file to write */
    const build_target *to;
    const char *cpu;    /* auto, baseline, native, or names of levels with commas; NULL: auto */
    link_options tools; /* lib: a shared library, and its header beside it */
    api_wanted session; /* context and state */
    bool strip, external;
    const char *chat_template; /* a built-in one or a file, in place of the model's; or NULL */
    build_code_choice code;
    const adapter_source *const
        *adapter; /* [n_adapter], which every text uses; session has slots for them */
    const float *scale;
    size_t n_adapter;
    void (*report)(void *ctx, uint64_t done, uint64_t total); /* bytes of weights; may be NULL */
    void *ctx;
    const volatile int *stop; /* not 0 some time: nothing is to be made, W1412; may be NULL */
} build_options;

/* What was made. */
typedef struct {
    uint64_t bytes,
        weights; /* of the file, and of weights; those in a file of their own do not count for the first */
    const char *level[BUILD_LEVELS_MAX];
    int n_level;
    const char *left_out[BUILD_LEVELS_MAX]; /* auto: levels that would need weights of their own */
    int n_left_out;
    bool code;         /* with generated code */
    char without[200]; /* why there is none, where it was to be had if possible */
} build_result;

/* m: of api_model_open. W1412: opt->stop; W1703: something is missing; W1704: no such level; W1705: the linker failed; W1607: there is no
 * LLVM; and what compiling a plan says. Whatever fails leaves no file. */
weft_status build_program(weft_diag *dg, const weft_model *m, const build_options *opt,
                          build_result *out) WEFT_MUST_USE;

/* W1704 with near names; W1904 for `native` of another machine; W1602: WEFT_CPU names what cannot run here. */
weft_status build_levels(weft_diag *dg, const build_target *to, const char *cpu,
                         build_choice *out) WEFT_MUST_USE;

/* lib_header.c: the name of a library's functions from its file (libstory.so: story), and the header of that name. */
void lib_name(const char *path, strbuf *out);
void lib_header(const char *name, const char *file, strbuf *out);

#endif
