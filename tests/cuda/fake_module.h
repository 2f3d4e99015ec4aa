/* fake_module.h - images on the tests' card: the one that it has always, emulated.cpp, and those that fake_nvrtc.c made, each a
 * library that is loaded as any other. */
#ifndef WEFT_TESTS_CUDA_FAKE_MODULE_H
#define WEFT_TESTS_CUDA_FAKE_MODULE_H

#include "runtime/exec/cuda_driver.h"
#include "tests/cuda/emulated.h"

/* emulated_phases of a module. */
typedef bool fake_run_fn(const cuda_launch *all, int blocks, int threads, int more,
                         size_t dynamic_bytes, char *error);
#define FAKE_MADE_ENTRY "made_phases"

extern const char fake_image[];

/* Kernels of an image; those that were made have phases alone. */
typedef enum { FAKE_PHASES, FAKE_CHOOSE, FAKE_BEST, FAKE_TOKENS, FAKE_KERNELS } fake_kernel;
enum { FAKE_FUNCTIONS = FAKE_KERNELS + CUDA_GRID_COUNT - 1 }; /* weft_phases is in both */

struct CUfunc_st {
    fake_kernel kind;
    fake_run_fn *run; /* of phases */
    int shared_asked;
    int threads; /* of a block, whatever the card has; 0: the card's */
};

/* NULL: no image that it knows. */
cu_module fake_module_open(const void *image);
bool fake_module_close(cu_module m); /* false: it is not there */
void fake_module_drop(void);         /* all of them */
/* A function of a module that is there, by its name, and whether a function is such; NULL, false: not. */
cu_function fake_module_function(cu_module m, const char *name);
bool fake_function_is(cu_function f);

#endif
