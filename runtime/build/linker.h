/* linker.h - objects into a program or a shared library, for any target: finds LLVM's linker and what it takes, and runs it.
 *
 * Programs are static and position-independent, so that they need no file of the machine they run on. Shared libraries take the C
 * library of their host. */
#ifndef WEFT_RUNTIME_BUILD_LINKER_H
#define WEFT_RUNTIME_BUILD_LINKER_H

#include "runtime/base/arena.h"
#include "runtime/base/diag.h"

typedef struct {
    const char *name;    /* "aarch64-linux-gnu" */
    const char *machine; /* as uname calls it */
    const char *emulation, *debian;
    const char *levels; /* of programs for any of its processors, with blanks between them */
} build_target;

extern const build_target build_targets[];
extern const int build_target_n;
/* NULL: the machine at hand. W1704 with near names. */
weft_status build_target_find(weft_diag *dg, const char *name,
                              const build_target **out) WEFT_MUST_USE;
const build_target *build_target_here(void); /* NULL: programs cannot be built for it */

typedef struct {
    const char *linker;  /* a path; NULL: ld.lld of PATH */
    const char *sysroot; /* where the target's /usr is; NULL: here */
    const char *runtime; /* the folder of libweft_core.a; NULL: where Weft was built or installed */
    bool lib;            /* a shared library */
} link_options;

enum { LINK_NEEDS_MAX = 32 };

typedef struct {
    const build_target *to;
    bool lib;
    const char *linker, *sysroot;
    const char *file[LINK_NEEDS_MAX]; /* by rows of link_needs.def */
} link_tools;

/* Everything that linking takes. W1703 names all that is missing, and what to install. In a. */
weft_status link_tools_find(weft_diag *dg, arena *a, const build_target *to,
                            const link_options *opt, link_tools *out) WEFT_MUST_USE;

typedef struct {
    const char *const *object; /* [n_object] files */
    int n_object;
    const char *const
        *keep; /* [n_keep]: symbols of the archives that are needed though nothing refers to them */
    int n_keep;
    const char *const *
        alias; /* [2 * n_alias]: of a shared library: a name that it exports, the function behind it */
    int n_alias;
    const char *exports; /* of a shared library: the file of its version script */
    const char *name;    /* of a shared library, by which programs look for it */
    bool strip; /* leave out names, and of a program what only debuggers and exceptions need */
    const char *discard; /* with strip, of a program: the file of link_discard */
    const char *out;
} link_job;

/* A script for the linker, of the sections that a stripped program does not need. C has no exceptions and no thread is
 * cancelled, so nothing reads the tables that tell how to leave a function. */
extern const char link_discard[];

/* W1705 with what the linker said. */
weft_status link_run(weft_diag *dg, arena *a, const link_tools *tools,
                     const link_job *job) WEFT_MUST_USE;

#endif
