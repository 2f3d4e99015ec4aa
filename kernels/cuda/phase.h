/* phase.h - what a card is given to run: the steps of a bucket with addresses, its items and phases.
 *
 * The kernel weft_phases (phase.cu) does on a card what runtime/exec/exec_run.c does on a processor, with blocks in place of
 * threads. Of each phase a block first computes the items that every one has to, whole and into memory of its own; the units
 * of all others stand in one line, of which each block has a share. */
#ifndef WEFT_KERNELS_CUDA_PHASE_H
#define WEFT_KERNELS_CUDA_PHASE_H

#include "kernels/cuda/choose.h"
#include "kernels/cuda/ring_size.h"

enum {
    CUDA_BLOCK = 256, /* threads of a block; kernels ask block_threads, a multiple of 32 */
    /* Of weft_phases where weights come through the ring: some warps more, which copy them. */
    CUDA_PHASES_BLOCK = CUDA_BLOCK + 32 * RING_COPIERS,
    CUDA_WIDE_BLOCK = CUDA_BLOCK + 128, /* with sheets four: so many can give registers away */
    CUDA_OWN_BYTES = 4096,              /* shared memory that weft_phases has by itself, at most */
    CUDA_LIGHT_BLOCKS = 4,              /* blocks of weft_light to a multiprocessor, */
    CUDA_DOTS_BLOCKS = 2,               /* and of weft_dots */
    CUDA_FLASH_BLOCK = 384,             /* threads of weft_flash and weft_codes, */
    CUDA_SQUARES_BLOCK = 384,           /* of weft_squares, weft_bulk and weft_experts */
    CUDA_UNPACK_BLOCKS = 4,             /* blocks of weft_unpack to a multiprocessor */
    CUDA_UNPACK_ROWS = 256,             /* of a call, from which on it pays for blocks */
    /* From so many rows on BF16 weights are made f16, which saves a product of each number: */
    CUDA_HALVES_ROWS = 512, /* where a number of x is two f16 then, not three bf16, */
    CUDA_NEAR_ROWS = 512,   /* and one f16, not two bf16 */
    TEAM_WIDTH_MAX = 512,   /* of a vector that a warp does alone (block_cuda.cuh) */
};

/* The functions that a card is launched with, each with a cuda_run: weft_phases runs any phase. A phase that is a launch of its
 * own may do better with another: if its steps are all in cuda_light.def, or linears of one row, or experts by square, or attention
 * by tiles (weft_codes: of pages of codes), or linears by square; and by weft_bulk, if their weights are bf16 and the card can bring tiles by tables (cuda_tiles,
 * its second argument). weft_unpack makes bf16 of the weights of these two before: in calls of so many rows that each would be decoded
 * often, and of types that weft_squares has no code for. Where x is f16 it makes f16 of BF16 ones for weft_bulk.
 *            name     threads             blocks to a multiprocessor */
#define CUDA_GRIDS(X)                                                                              \
    X(phases, CUDA_PHASES_BLOCK, 1)                                                                \
    X(light, CUDA_BLOCK, CUDA_LIGHT_BLOCKS)                                                        \
    X(dots, CUDA_BLOCK, CUDA_DOTS_BLOCKS)                                                          \
    X(experts, CUDA_SQUARES_BLOCK, 1)                                                              \
    X(flash, CUDA_FLASH_BLOCK, 1)                                                                  \
    X(codes, CUDA_FLASH_BLOCK, 1)                                                                  \
    X(squares, CUDA_SQUARES_BLOCK, 1)                                                              \
    X(bulk, CUDA_SQUARES_BLOCK, 1)                                                                 \
    X(unpack, CUDA_BLOCK, CUDA_UNPACK_BLOCKS)

typedef enum {
#define CUDA_GRID(name, threads, blocks) CUDA_GRID_##name,
    CUDA_GRIDS(CUDA_GRID)
#undef CUDA_GRID
        CUDA_GRID_COUNT
} cuda_grid;

/* What many steps have in common, those of all layers as a rule: all of kargs but what cuda_step and cuda_run have. */
typedef struct {
    kargs k;
    int32_t row; /* of cuda_kernels.def: which function */
} cuda_shape;

typedef struct {
    const void *in
        [K_IN_MAX]; /* LOCAL and TILE operands are offsets into the block's memory, until it has found them */
    void *out[K_OUT_MAX];
    union {
        const kinstr *code; /* of a map; of quantize, not NULL: rows become f16 (halves_cuda.cuh) */
        char *base;         /* of the cell's first tier, when the block has found it */
    };
    const kcell *cell;
    int32_t rows;         /* kargs.n[0], of the call */
    int32_t shape;        /* of the bucket's; STEP_NONE: the step before has done this too */
    uint32_t local, tile; /* which operands are such: bit i is in[i], bit K_IN_MAX + i is out[i] */
    int32_t item, number; /* of the bucket: which it belongs to, and which it is */
    int32_t tile_cols;    /* kargs.tile */
    /* Of a linear: sizes, which so need not be in the text of a shape; and if its weights come through the ring how rows are
     * cut (rows 0: they do not). */
    int32_t linear_out, linear_in;
    int32_t
        segment; /* those of the block: which of the phase's that the ring brings, from 0 on; or -1 */
    cuda_cut cut;
    int64_t x_pitch, pitch, out_pitch; /* of x, of the weights */
} cuda_step;

enum { STEP_NONE = -1 };

typedef struct {
    int32_t first, n_step; /* of the bucket's steps */
    int32_t every;         /* not 0: each block computes all of it for itself, or ITEM_FOLLOWS */
    int32_t each;          /* of those that follow: units of the line to one of what is followed */
    int64_t units;         /* of the call */
    int64_t at;            /* where they begin in the line of its phase */
    int64_t grain;         /* units at once, at most; 0: any number */
} cuda_item;

/* A block has what belongs to its units of the line: to every `each` of them `at` units of the item, which so several blocks may
 * have. */
enum { ITEM_FOLLOWS = 2 };

typedef struct {
    int32_t first, n_item; /* those that every block computes come first */
    int32_t step, n_step;  /* all steps of these */
    int64_t units;         /* of its line */
} cuda_phase;

/* A phase with its items and steps. Where blocks wait for each other they have those of some phases in shared memory, in front of
 * their own: tables that come from the card's memory would be waited for at every step. A phase with more is read
 * from there. */
enum { PACK_ITEMS = 12, PACK_STEPS = 16 };

typedef struct {
    cuda_phase at;
    int64_t alone; /* not 0: its steps have all of scratch to themselves (few_sheets_cuda.cuh) */
    cuda_item item[PACK_ITEMS];
    cuda_step step[PACK_STEPS];
} cuda_pack;

/* A step that a block has something of in a phase, and its units: by then it is known what. */
typedef struct {
    int32_t
        what; /* its shape, and below that WORK_BITS where it is in the packs; or one of these: */
    int32_t begin, end;
} cuda_work;

enum {
    WORK_BITS = 12,
    WORK_UNIT = 8 /* bytes */,
    WORKS_END = -1 /* there is none */,
    WORKS_MANY = -2 /* for a list */
};

typedef struct {
    cuda_work of[PACK_STEPS + 1]; /* up to one that ends it */
} cuda_works;

enum {
    PACKS = 3, /* the phase at hand, the next one, and one that is being copied; with a list each */
    PACKS_BYTES = (PACKS * (sizeof(cuda_pack) + sizeof(cuda_works)) + 1023) / 1024 * 1024,
    BATCH_BYTES =
        2048, /* of a batch that comes with a launch; beside a ring a copy of it has as many */
    BATCH_BYTES_FEW = 4096 /* that a copy may have where there is no ring */
};

/* What functions of CUDA_GRIDS are given; addresses are the card's. */
typedef struct {
    const cuda_shape *shape;
    const cuda_step *step;
    const cuda_item *item;
    const cuda_phase *phase;
    const cuda_pack *
        pack; /* the same, where blocks have phases in shared memory; NULL: one phase, from the card's */
    int32_t first,
        end; /* phases of this launch. More than one: all blocks are resident, and wait for each other between them */
    const kbatch *batch;
    const klora *lora;
    char *unpacked; /* weights as bf16, those of the phase's items in turn; NULL: as stored */
    char *
        blocks; /* memory of each block, block_bytes apart; NULL: dynamic shared memory, behind the packs */
    uint64_t block_bytes, local_bytes; /* values, then scratch */
    char *
        values; /* of each block, values_bytes apart, if other launches of the call read them; NULL: in front of scratch */
    uint64_t values_bytes;
    int32_t ring; /* slots of a warp. Not 0: there is a ring in front of the block's memory: */
    uint32_t ring_x, ring_slot; /* so many bytes for x, then the slots, of so many each */
    uint32_t *gate;             /* how many blocks came to it; 0 before the launch, which */
    uint32_t *gate_next;        /* makes that of the next one so */
    const uint32_t
        *cancel;  /* not 0: leave out what is left; memory of the host. NULL: nothing does */
    uint64_t *ns; /* [blocks][n_step]: added to, the time of each step; NULL: not measured */
    int32_t n_step;
    uint32_t batch_bytes; /* behind the packs, for a copy of the batch */
    int32_t halves;       /* what is unpacked is f16, as x is (halves_cuda.cuh) */
} cuda_run;

enum { CUDA_GATES = 2 };

/* A small batch comes with the launch itself: nothing has to be copied before it. */
typedef struct {
    int32_t bytes;          /* of words; 0: it is where cuda_run says */
    int32_t n_from;         /* tokens, of which number i becomes what */
    const ksampled *before; /* row from[i] of the call before chose; -1: it stays */
    int32_t from[CHOOSE_INLINE];
    uint32_t word[BATCH_BYTES / 4];
} cuda_call;

/* The argument of weft_phases; all others take its first part. */
typedef struct {
    cuda_run run;
    cuda_call call;
} cuda_launch;

/* Where a matrix lies, for copies of tiles: what the driver's cuTensorMapEncodeTiled made of it. */
typedef struct {
#ifdef __cplusplus
    alignas(64)
#else
    _Alignas(64)
#endif
        uint64_t word[16];
} cuda_tile;

/* Of each step of a phase: x, and its weights as bf16. Phases of more steps have none. */
enum { BULK_STEPS = 4 };

typedef struct {
    cuda_tile of[BULK_STEPS][2];
} cuda_tiles;

#endif
