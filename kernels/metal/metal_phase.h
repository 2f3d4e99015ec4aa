/* metal_phase.h - what a Metal GPU is given to run: the steps of a bucket with addresses, its items and phases; read by the host,
 * as C or C++, and by the shaders, as MSL.
 *
 * The kernel weft_phase (phase.metal) does on a GPU what runtime/exec/exec_run.c does on a processor, with threadgroups in
 * place of threads. It is dispatched once for each phase: a threadgroup first computes the items that every one has to, whole
 * and into memory of its own; the units of all others stand in one line, of which each threadgroup has a share.
 *
 * Numbers have fixed widths, sizes 32 bits (the host sees to it that they fit), scalars are floats: MSL has no double. An
 * address is a pointer to device memory in MSL and 64 bits on the host: what gpuAddress of a buffer gives, plus an offset. All
 * buffers that one leads to are resident when a phase runs. */
#ifndef WEFT_KERNELS_METAL_METAL_PHASE_H
#define WEFT_KERNELS_METAL_METAL_PHASE_H

#ifdef __METAL_VERSION__
#include "kernels/metal/words.msl"
#define METAL_AT(...) device __VA_ARGS__ *
#else
#include "kernels/kernels.h"
#include "kernels/ksample.h"
#define METAL_AT(...) uint64_t
#endif

enum {
    METAL_BLOCK = 256,       /* threads of a threadgroup of weft_phase */
    METAL_SIMDS = 8,         /* and its simdgroups, of 32 threads */
    METAL_GROUPS_MAX = 4096, /* threadgroups of a dispatch: their shares are counted in 32 bits */
    /* Threadgroup memory of weft_phase, bytes: of each kernel a column of metal_kernels.def; of a pipeline what the kernels
     * of its mask need most of. Never 0: sums over a threadgroup go through it. */
    METAL_SHARED_WORDS = 1024,                                 /* sums, and lists of few words */
    METAL_SHARED_TILES = METAL_SHARED_WORDS + 2 * 64 * 36 * 4, /* two tiles of floats */
    METAL_SHARED_REGS = METAL_SHARED_WORDS + 16 * 256 * 4, /* registers of a map, of each thread */
    METAL_SHARED_ATTEND = 28 * 1024,
    METAL_SHARED_MAX = 32 * 1024, /* of any Apple GPU */
    METAL_MASK_WORDS = 2,         /* of 32 rows of metal_kernels.def each */
    METAL_CHOOSE_BLOCK = 1024,    /* threads of a threadgroup of weft_choose, one for each row */
};

/* Indices of the function constants of weft_phase: a bit for each row of metal_kernels.def that the pipeline can run. */
enum { METAL_CONSTANT_ROWS_LOW = 0, METAL_CONSTANT_ROWS_HIGH = 1 };

/* Where arguments are bound: the one structure of a kernel, by setBytes or in a buffer, and threadgroup memory. */
enum { METAL_BUFFER_RUN = 0, METAL_THREADGROUP_SHARED = 0 };

/* n[], word[] and f[] of a step by their names: ksizes, kchoices and kscalars (kernel_ops.h) in 32 bits. */
#define METAL_LIST(...) __VA_ARGS__
#define KOP(...)
typedef union {
    int32_t n[K_SIZES_MAX];
#define KARGS(args, sizes, choices, scalars)                                                       \
    struct {                                                                                       \
        int32_t METAL_LIST sizes;                                                                  \
    } args;
#include "kernels/kernel_ops.def"
#undef KARGS
} metal_sizes;

typedef union {
    int32_t word[K_WORDS_MAX];
#define KARGS(args, sizes, choices, scalars)                                                       \
    struct {                                                                                       \
        int32_t METAL_LIST choices;                                                                \
    } args;
#include "kernels/kernel_ops.def"
#undef KARGS
} metal_choices;

typedef union {
    float f[K_SCALARS_MAX];
#define KARGS(args, sizes, choices, scalars)                                                       \
    struct {                                                                                       \
        float METAL_LIST scalars;                                                                  \
    } args;
#include "kernels/kernel_ops.def"
#undef KARGS
} metal_scalars;
#undef KOP

/* Of a table of matrices (experts, head_linear): where each is. */
typedef struct {
    METAL_AT(const unsigned char) at;
} metal_address;

/* A state cell (kcell.h). */
typedef struct {
    METAL_AT(char) base;
    int64_t page_bytes;
    int32_t key, value; /* kform */
} metal_tier;

typedef struct {
    metal_tier tier[K_TIERS_MAX];
    int32_t n_tier, table;
    int32_t page_tok, pinned;
    int32_t heads, k, v;
    int32_t latent; /* not 0: one row per token */
} metal_cell;

/* What many steps have in common, those of all layers as a rule: kargs but for what metal_step and metal_run have. n[0] is not
 * looked at: the number of rows is the step's. */
typedef struct {
    metal_sizes size;
    metal_choices choice;
    metal_scalars scalar;
    int32_t type[K_IN_MAX]; /* dtype */
    int32_t pitch[K_IN_MAX];
    int32_t out_pitch[K_OUT_MAX];
    int32_t stride[K_IN_MAX][K_AXES_MAX];
    int32_t cols, tile;
    int32_t n_code;
    int32_t row; /* of metal_kernels.def: which kernel */
} metal_shape;

/* Operands that are a threadgroup's own (LOCAL and TILE spaces) have the address of the first threadgroup's; those of
 * threadgroup i are i * block_bytes further on. An absent operand is 0. A table of matrices (experts, head_linear) is one of
 * metal_address. */
typedef struct {
    METAL_AT(const char) in[K_IN_MAX];
    METAL_AT(char) out[K_OUT_MAX];
    METAL_AT(const kinstr) code; /* of a map */
    METAL_AT(const metal_cell) cell;
    int32_t rows;         /* kargs.n[0], of the call */
    int32_t shape;        /* of the bucket's */
    uint32_t local, tile; /* which operands are such: bit i is in[i], bit K_IN_MAX + i is out[i] */
    uint32_t
        aligned; /* likewise: those that begin, for every threadgroup, at a multiple of 16 bytes, with a pitch that is one; a
                         hint, 0 is right and slower */
    uint32_t fill;
} metal_step;

typedef struct {
    int32_t first, n_step; /* of the bucket's steps */
    int32_t every;         /* not 0: each threadgroup computes all of it for itself */
    int32_t units;         /* of the call */
    int32_t at;            /* where they begin in the line of its phase */
    int32_t grain;         /* units at once, at most; 0: any number */
} metal_item;

typedef struct {
    int32_t first, n_item; /* those that every threadgroup computes come first */
    int32_t units;         /* of its line */
    int32_t fill;
} metal_phase;

/* The argument of weft_phase. */
typedef struct {
    METAL_AT(const metal_shape) shape;
    METAL_AT(const metal_step) step;
    METAL_AT(const metal_item) item;
    METAL_AT(const metal_phase) phase; /* the one to run */
    METAL_AT(const kbatch) batch;
    METAL_AT(const klora) lora; /* 0: the session has none */
    METAL_AT(char) blocks;      /* memory of each threadgroup, block_bytes apart: */
    METAL_AT(const uint32_t)
    cancel; /* not 0 there: leave the phase out; memory of the host. 0: nothing does */
    uint32_t block_bytes, local_bytes; /* values, then scratch */
} metal_run;

/* The argument of weft_choose, which is dispatched with a threadgroup for each row. */
typedef struct {
    METAL_AT(const float) logits;    /* [rows][width] */
    METAL_AT(const ksample) how;     /* [rows] */
    METAL_AT(const ksampled) before; /* of the call before: what ksample.from counts */
    METAL_AT(ksampled) chosen;       /* [rows] */
    int32_t width;
    uint32_t turn;
} metal_choice;

/* The argument of weft_tokens: token i of a batch becomes what row from[i] of the call before chose. */
typedef struct {
    METAL_AT(int32_t) token;      /* [n] */
    METAL_AT(const int32_t) from; /* [n], -1: it stays */
    METAL_AT(const ksampled) before;
    int32_t n, fill;
} metal_tokens;

#endif
