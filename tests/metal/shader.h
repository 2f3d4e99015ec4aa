/* shader.h - between a shader that is compiled as C++ (msl.h, metalc.py) and what runs it (lanes.c).
 *
 * A library of shaders registers its kernels and function constants while it is loaded. Kernels fetch their arguments, meet
 * and report through the functions below, which lanes.c has. */
#ifndef WEFT_TESTS_METAL_SHADER_H
#define WEFT_TESTS_METAL_SHADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/base/fibres.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a parameter of a kernel is: the attribute behind it. metalc.py has the names. */
typedef enum {
    PARAM_BUFFER,
    PARAM_SHARED, /* [[threadgroup(n)]] */
    PARAM_THREAD_IN_GRID,
    PARAM_THREAD_IN_GROUP,
    PARAM_GROUP_IN_GRID,
    PARAM_THREAD_INDEX,
    PARAM_LANE,
    PARAM_SIMDGROUP,
    PARAM_SIMDGROUPS,
    PARAM_WIDTH,
    PARAM_GROUP_THREADS,
    PARAM_GRID_GROUPS,
    PARAM_GRID_THREADS
} shader_param_kind;

typedef struct {
    shader_param_kind kind;
    int index;
} shader_param;

typedef struct shader_kernel {
    const char *name;
    void (*call)(const shader_param *);
    const shader_param *param;
    int n_param, threads_max; /* threads_max: 0 where the kernel has no such attribute */
    struct shader_kernel *next;
} shader_kernel;

typedef struct shader_constant {
    const char *name;
    int index;
    size_t bytes;
    void *value;
    bool *defined;
    bool optional; /* the shader asks whether it is defined */
    struct shader_constant *next;
} shader_constant;

typedef struct {
    shader_kernel *kernels;
    shader_constant *constants;
    char *shared, *shared_end; /* the kernels' threadgroup variables */
    bool race;                 /* made for race mode */
} shader_library;

/* The library's own symbol is `shader_self`, a shader_library. */

enum { SHADER_BUFFERS = 31, SHADER_DEVICE = 1, SHADER_SHARED = 2 }; /* the last two are mem_flags */

void *shader_buffer(int index, size_t bytes); /* at least so many bytes */
void *shader_shared(int index);
const uint32_t *shader_position(shader_param_kind kind); /* [3] */
uint32_t shader_lane(void);
void shader_group_barrier(int flags, fibre_place at);
void shader_simd_barrier(int flags, fibre_place at);
/* Every lane of the simdgroup that has not ended brings `own`; the last one there runs `join` over [FIBRE_WIDTH]. */
void shader_meet(fibre_place at, void *own, fibre_join *join);
void shader_wrong(fibre_place at, const char *why);
void shader_atomic(void *p, size_t bytes, bool writes); /* for race mode */

#ifdef __cplusplus
}
#endif

#endif
