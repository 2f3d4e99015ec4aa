/* metal_driver.h - what Weft asks of Metal, as a table of functions that libweft_metal has.
 *
 * The library alone is made with Metal (metal_driver.cpp), and holds the text of the shaders; programs find it at run time. What
 * fails says why in a metal_why. Functions may be called from any thread, but a queue and its calls are one thread's at a
 * time. */
#ifndef WEFT_RUNTIME_EXEC_METAL_DRIVER_H
#define WEFT_RUNTIME_EXEC_METAL_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct metal_gpu metal_gpu;         /* a device, and the buffers that are resident on it */
typedef struct metal_buffer metal_buffer;   /* memory that host and GPU both see */
typedef struct metal_queue metal_queue;     /* calls in order */
typedef struct metal_shaders metal_shaders; /* all kernels, compiled */
typedef struct metal_pipeline metal_pipeline; /* a kernel with its constants */

/* Why something failed, for people; cut where it is longer. */
typedef struct {
    char text[4096];
} metal_why;

typedef struct {
    char name[96];        /* "Apple M2 Pro" */
    int family;           /* of Apple's GPUs: 7 is M1's; 0: none of them */
    int cores;            /* 0: not known */
    uint64_t working_set; /* bytes that can be resident at once */
    uint64_t buffer_max;  /* bytes of one buffer */
    size_t page_bytes;    /* memory is wrapped in whole ones of these */
} metal_facts;

/* The commands of one call, while they are made and until they were waited for. */
typedef struct {
    void *commands, *encoder;
} metal_call;

typedef struct {
    const char *build; /* metal_build_id of the sources that it was made of */

    int (*count)(void);
    metal_gpu *(*open)(int index, metal_why *why); /* index < count */
    void (*close)(metal_gpu *g);
    void (*facts)(metal_gpu *g, metal_facts *out);
    uint64_t (*allocated)(metal_gpu *g); /* bytes of all buffers, of this process */

    /* The shaders, of which pipelines are made, with this text of maps (metal_maps.h); NULL: none. */
    metal_shaders *(*compile)(metal_gpu *g, const char *maps, metal_why *why);
    void (*shaders_free)(metal_shaders *s);
    /* Of a kernel by its name; constant i is of 32 bits. */
    metal_pipeline *(*pipeline)(metal_shaders *s, const char *name, const uint32_t *constants,
                                int n, metal_why *why);
    void (*pipeline_free)(metal_pipeline *p);
    int (*threads_max)(const metal_pipeline *p); /* of a threadgroup */

    /* Resident until given back. wrap: memory of the host, in whole pages, which stays the caller's. NULL: there is no room. */
    metal_buffer *(*take)(metal_gpu *g, size_t bytes);
    metal_buffer *(*wrap)(metal_gpu *g, const void *p, size_t bytes);
    void (*give)(metal_gpu *g, metal_buffer *b);
    void *(*contents)(const metal_buffer *b);
    uint64_t (*address)(const metal_buffer *b); /* as kernels see it */

    metal_queue *(*queue)(metal_gpu *g, metal_why *why);
    void (*queue_free)(metal_queue *q);
    /* Make a call: dispatches may overlap, but for a barrier between them. Calls of a queue do not. */
    bool (*begin)(metal_queue *q, metal_call *out, metal_why *why);
    /* A kernel with its one structure of arguments, which is read before this returns. shared: bytes of threadgroup memory. */
    void (*dispatch)(metal_call *c, const metal_pipeline *p, const void *args, size_t args_bytes,
                     int groups, int threads, size_t shared);
    void (*barrier)(metal_call *c);
    void (*commit)(metal_queue *q, metal_call *c);
    bool (*is_over)(const metal_call *c);
    /* Until it is over. out_s: how long the GPU took, in seconds. */
    bool (*wait)(metal_call *c, double *out_s, metal_why *why);
} metal_driver;

#ifdef __APPLE__
#define METAL_LIBRARY "libweft_metal.dylib"
#else
#define METAL_LIBRARY "libweft_metal.so"
#endif
#define METAL_ENTRY "weft_metal"
/* The library's only function. */
typedef const metal_driver *weft_metal_fn(void);

/* Of the sources that this program was made of: both sides have to have the same structures and rows of kernels. */
const char *metal_build_id(void);

#ifdef __cplusplus
}
#endif

#endif
