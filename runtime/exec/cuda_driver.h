/* cuda_driver.h - the part of the CUDA driver that Weft uses, as a table of functions found at run time.
 *
 * Nothing of NVIDIA's is needed to build: types and numbers are those of the public "CUDA Driver API", by its names. The table
 * comes from libcuda.so.1, which the driver of a card brings; tests hand in one of their own (cuda_device.h). */
#ifndef WEFT_RUNTIME_EXEC_CUDA_DRIVER_H
#define WEFT_RUNTIME_EXEC_CUDA_DRIVER_H

#include "runtime/base/diag.h"
#include <stddef.h>
#include <stdint.h>

typedef uint64_t
    cu_ptr; /* an address on the card; the same number as the pointer that kernels see */
typedef int cu_device;
typedef struct CUctx_st *cu_context;
typedef struct CUstream_st *cu_stream;
typedef struct CUmod_st *cu_module;
typedef struct CUfunc_st *cu_function;
typedef struct CUgraph_st *cu_graph;
typedef struct CUgraphNode_st *cu_node;
typedef struct CUgraphExec_st *cu_graph_exec; /* one that can be launched */

/* CUresult: those that are told apart. */
typedef enum {
    CU_OK = 0,
    CU_INVALID_VALUE = 1,
    CU_OUT_OF_MEMORY = 2,
    CU_NO_DEVICE = 100,
    CU_INVALID_IMAGE = 200,
    CU_NO_BINARY_FOR_GPU = 209,
    CU_UNSUPPORTED_PTX_VERSION = 222,
    CU_NOT_READY = 600,
    CU_LAUNCH_FAILED = 719,
    CU_RESULT_MAX = 0x7fffffff
} cu_result;

/* CUdevice_attribute */
typedef enum {
    CU_SHARED_PER_BLOCK = 8,
    CU_MULTIPROCESSORS = 16,
    CU_MEMORY_CLOCK_KHZ = 36,
    CU_MEMORY_BUS_BITS = 37,
    CU_CAPABILITY_MAJOR = 75,
    CU_CAPABILITY_MINOR = 76,
    CU_COOPERATIVE_LAUNCH = 95, /* can blocks wait for each other? */
    CU_SHARED_PER_BLOCK_OPTIN = 97,
    CU_ATTRIBUTE_MAX = 0x7fffffff
} cu_attribute;

/* CUfunction_attribute */
typedef enum {
    CU_FUNC_SHARED_BYTES = 1, /* that its code has by itself */
    CU_FUNC_SHARED_DYNAMIC_MAX = 8,
    CU_FUNC_ATTRIBUTE_MAX = 0x7fffffff
} cu_function_attribute;

/* CUlaunchAttribute, with the one that is used: a kernel may begin before the one before it ends, whose results it waits for by
 * itself. */
enum { CU_LAUNCH_DEPENDENT = 6 };

typedef struct {
    int id, fill;
    union {
        int allowed;
        char bytes[64];
    } value;
} cu_launch_attribute;

/* CUlaunchConfig */
typedef struct {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    cu_stream s;
    cu_launch_attribute *attribute;
    unsigned n_attribute;
} cu_launch;

/* CUgraphNodeParams, of a launch; and CUgraphEdgeData: what of the node before is waited for. With these two numbers a kernel may
 * begin before the one before it ends, as with CU_LAUNCH_DEPENDENT; with zeros it does not. */
enum { CU_NODE_KERNEL = 0, CU_PORT_PROGRAMMATIC = 1, CU_EDGE_PROGRAMMATIC = 1 };

typedef struct {
    cu_function f;
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    void **args, **extra; /* as of cuLaunchKernel; they are read at once */
    void *kernel;         /* in place of f; NULL */
    cu_context context;   /* that of f: NULL */
} cu_kernel_node;

typedef struct {
    int type, fill[3];
    union {
        cu_kernel_node kernel;
        int64_t words[29];
    };
    int64_t last;
} cu_node_params;
_Static_assert(sizeof(cu_node_params) == 256, "as the driver has it");

typedef struct {
    unsigned char from_port, to_port, type, fill[5];
} cu_edge;

/* CUtensorMap, and what is asked for: numbers that are bf16; lines of 128 bytes in the order of matrix instructions; L2 that
 * reads 256 bytes. */
typedef struct {
    _Alignas(64) uint64_t word[16];
} cu_tile;
enum { CU_TILE_BF16 = 9, CU_TILE_SWIZZLE_128 = 3, CU_TILE_L2_256 = 3 };

enum { CU_STREAM_NON_BLOCKING = 1 };
enum { CU_HOST_PORTABLE = 1, CU_HOST_DEVICEMAP = 2 };

typedef struct {
#define CUDA_FN(name, suffix, args) cu_result(*name) args;
#include "runtime/exec/cuda_driver.def"
#undef CUDA_FN
} cuda_driver;

/* The oldest driver that will do, as cuDriverGetVersion counts: 13.0, whose compiler the kernels are made with. */
enum { CUDA_VERSION_LEAST = 13000 };

/* The functions of libcuda.so.1, initialised; they stay for the life of the process. W1608 says what is missing and what to
 * install: no driver, one too old, or no card. From any thread. */
weft_status cuda_driver_load(weft_diag *dg, const cuda_driver **out_d) WEFT_MUST_USE;

#endif
