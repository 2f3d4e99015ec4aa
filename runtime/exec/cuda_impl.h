/* cuda_impl.h - the inside of a CUDA device; private to the cuda_*.c files. */
#ifndef WEFT_RUNTIME_EXEC_CUDA_IMPL_H
#define WEFT_RUNTIME_EXEC_CUDA_IMPL_H

#include "kernels/cuda/choose.h"
#include "kernels/cuda/image.h"
#include "kernels/cuda/few_size.h"
#include "kernels/cuda/phase.h"
#include "runtime/exec/cuda_device.h"
#include "runtime/exec/exec_steps.h"
#include <pthread.h>

enum { CUDA_ALIGN = 256 }; /* of everything on the card, in bytes */

/* Memory that the driver gave: on the card, or of the host where the card can read it. */
typedef struct cuda_block {
    struct cuda_device *d;
    struct cuda_block *next;
    void *p;
    bool host;
} cuda_block;

/* An image of kernels on the card, and the function that runs plans. */
typedef struct {
    cu_module module; /* NULL: there is none */
    cu_function phases;
    size_t shared_bytes; /* of a block, at most, beside what the kernel has by itself */
} cuda_kernel;

/* How calls of few rows are launched: all phases at once, whose blocks wait for each other; as a graph; one phase after the other. Of
 * other calls phases are launches always. */
typedef enum {
    CUDA_CALLS_PERSISTENT,
    CUDA_CALLS_GRAPH,
    CUDA_CALLS_LAUNCHES,
    CUDA_CALLS_COUNT
} cuda_calls;

typedef struct cuda_device {
    device base;
    const cuda_driver *driver; /* NULL: the card is not here */
    int index, blocks;         /* blocks: of a launch */
    cu_device card;
    cu_context context;
    const weft_cuda_image *image;
    const cuda_maker *maker;           /* of images for plans; NULL: none are made */
    cuda_kernel all;                   /* weft_phases of the library: any plan */
    cu_module grids;                   /* its other functions */
    cu_function grid[CUDA_GRID_COUNT]; /* all of both */
    size_t
        shared_bytes[CUDA_GRID_COUNT]; /* that functions may ask for which need much; others: 0 */
    bool bulk;                         /* can weft_bulk run? */
    cu_function choose, best, tokens;  /* of it too */
    cu_stream copies;                  /* for what is done on return */
    bool dependent;                    /* may a launch begin before the one before it ends? */
    bool together;                     /* can the blocks of a launch wait for each other? */
    cuda_calls calls;
    char place[128]; /* "on cuda:0 (NVIDIA H200)" */
    pthread_mutex_t lock;
    cuda_block *held; /* all memory; guarded by lock */
} cuda_device;

static inline cuda_device *cuda_of(const device *d)
{
    return (cuda_device *)(uintptr_t)d;
}

static inline cu_ptr cuda_at(const void *p)
{
    return (cu_ptr)(uintptr_t)p;
}

/* ---- images: cuda_device.c, cuda_made.c ---- */

/* Onto the card, with as much shared memory as a block may have; nothing is there if it fails. The context is current. */
cu_result cuda_kernel_load(const cuda_device *d, const void *image, cuda_kernel *out_k);
void cuda_kernel_free(const cuda_device *d, cuda_kernel *k); /* NULL is fine, and none */
/* A number of the card's, 0 where the driver does not know it. */
int cuda_attribute(const cuda_device *d, cu_attribute which);

/* Images for the buckets of few rows of a plan whose steps are loaded: from disk, or made. Without any the device's own is used, and
 * W1613, a warning, says why. */
void cuda_made_load(weft_diag *dg, const device_load *what, exec *e);
void cuda_made_free(exec *e);

/* ---- calls of the driver ----
 *
 *     WEFT_TRY(cuda_enter(dg, d));
 *     cu_result r = d->driver->...;
 *     return cuda_leave(dg, d, r, "copying to the card");
 */

/* Make the card's context current; every call of the driver's that needs one is between these two. */
weft_status cuda_enter(weft_diag *dg, const cuda_device *d) WEFT_MUST_USE;
/* Not any more; W1610 with what was being done, if r is no success. */
weft_status cuda_leave(weft_diag *dg, const cuda_device *d, cu_result r,
                       const char *doing) WEFT_MUST_USE;
weft_status cuda_fail(weft_diag *dg, const cuda_driver *driver, const char *place, cu_result r,
                      const char *doing);

/* Memory of the card (W0902), or of the host where the card can read it (W1110); NULL for no bytes. */
weft_status cuda_take(weft_diag *dg, cuda_device *d, size_t bytes, bool host,
                      void **out_p) WEFT_MUST_USE;
void cuda_give(cuda_device *d, void *p); /* NULL is fine */
/* A stream; streams need not be given back in any order. */
weft_status cuda_stream(weft_diag *dg, cuda_device *d, cu_stream *out_s) WEFT_MUST_USE;
void cuda_stream_end(cuda_device *d, cu_stream s); /* NULL is fine */

/* ---- weights: cuda_weights.c ---- */

weft_status cuda_weights_load(weft_diag *dg, device *d, const plan *p, const weight_source *src,
                              const weights_options *opt, weights **out_w);
void cuda_weights_free(weights *w);
weights_memory cuda_weights_need(device *d, const plan *p, const weight_source *src,
                                 const weights_options *opt);
weights_memory cuda_weights_bytes(const weights *w);
weft_status cuda_weights_check(weft_diag *dg, const weights *w);
/* What an operand with weight i is given, on the card. */
const void *cuda_weights_at(const weights *w, int32_t i);

/* Bytes from the host to the card through two blocks of bounded size in turns: one is filled while the other is copied. */
typedef struct cuda_upload cuda_upload;
/* Room for at least `least` bytes at once. */
weft_status cuda_upload_open(weft_diag *dg, cuda_device *d, size_t least,
                             cuda_upload **out_u) WEFT_MUST_USE;
size_t cuda_upload_room(const cuda_upload *u); /* bytes at once, at most */
/* Where to put the next bytes; then n of them go to an address of the card. */
weft_status cuda_upload_begin(weft_diag *dg, cuda_upload *u, char **out_p) WEFT_MUST_USE;
weft_status cuda_upload_send(weft_diag *dg, cuda_upload *u, char *to, size_t n) WEFT_MUST_USE;
/* Wait for all of it; and end. */
weft_status cuda_upload_wait(weft_diag *dg, cuda_upload *u) WEFT_MUST_USE;
void cuda_upload_close(cuda_upload *u); /* NULL is fine */

/* ---- plans ---- */

/* What is made of weights of a phase first: nothing, bf16, or f16, as x is then (kernels/cuda/halves_cuda.cuh). */
typedef enum { UNPACK_NONE, UNPACK_BF16, UNPACK_HALVES } cuda_unpacking;

typedef struct {
    const plan_bucket *plan;
    cuda_kernel made;          /* for this bucket alone; may be none */
    const cuda_kernel *kernel; /* that runs it: this one, or the device's */
    /* In the host's tables; the card's have the same offsets. */
    cuda_shape *shapes;      /* [n_shape]; n_step of room */
    cuda_step *steps;        /* [n_step] */
    cuda_item *items;        /* [n_item] */
    cuda_phase *phases;      /* [n_item] of room */
    cuda_pack *packs;        /* the same; of few rows */
    int64_t *units;          /* [n_item], of the call */
    kargs *args;             /* [n_step], of the call, with the card's addresses */
    exec_spaces *own;        /* [n_step] */
    const kernel_row **rows; /* [n_step] */
    size_t *scratch;         /* [n_step]: bytes that each needs */
    uint8_t *unpacks;        /* [n_item] of room: the cuda_unpacking of each phase of the call */
    uint8_t *grid;           /* [n_item] of room: the cuda_grid of each phase of the call */
    /* [n_item]: of one of the plan's phases that has a value of a block's own which another has too. Looked at where phases with packs are
     * launches of their own. */
    bool *lasts;
    /* [n_item] of room: whether each phase of the graph at hand has such. */
    bool *graph_lasts;
    int32_t *heads; /* [n_step]: of the first of a phase the shape that does what belongs to some
                       heads of its steps (cuda_heads.c), where the image has one; or -1 */
    int32_t n_shape;
    int32_t n_phase;      /* of the call */
    bool packed;          /* phases have packs, and blocks these in shared memory: of few rows */
    bool at_once;         /* and all of them are one launch */
    cu_graph_exec graph;  /* or this one; NULL: there is none yet */
    int32_t graph_phases; /* its nodes */
    size_t local_bytes;   /* of each block: values; scratch is behind them */
    size_t shared;        /* bytes of a block that are in shared memory; 0: all are in the card's */
    size_t ring_x;        /* of the ring, for weights on their way: what is for x; */
    size_t ring_bytes;    /* in all; 0: there is none */
    int ring_slots;       /* of a warp, */
    size_t ring_slot;     /* and the bytes of each: of the largest chunk */
    bool sheets;       /* slots are of all warps, in scratch (few_size.h); by its own image alone */
    size_t sheet_slot; /* bytes of these */
    size_t batch_bytes; /* beside all these: for a copy of the batch */
    /* The call that tables were last made ready for. */
    bool ready, apart; /* apart: with a barrier after every phase, for a watch */
    int64_t n_row[ROWS_FIXED];
    uint64_t lora;
} cuda_bucket;

/* Threads of a block of weft_phases, in an image for the bucket; and in that at hand. */
static inline int cuda_made_threads(const cuda_bucket *c)
{
    return c->sheets ? CUDA_WIDE_BLOCK : c->ring_x > 0 ? CUDA_PHASES_BLOCK : CUDA_BLOCK;
}

static inline int cuda_phases_threads(const cuda_bucket *c)
{
    return c->kernel == &c->made ? cuda_made_threads(c)
           : c->ring_x > 0       ? CUDA_PHASES_BLOCK
                                 : CUDA_BLOCK;
}

struct exec {
    cuda_device *d;
    const plan *p;
    device_memory bytes;
    /* Of the host, written between calls: they are copied to the card when they have changed. */
    const kcell *cells;
    const klora *lora;
    size_t lora_bytes;
    const cancel_flag *cancel;
    char *arena, *blocks; /* of the card */
    char *unpacked;       /* behind the blocks: weights of a phase as bf16 */
    size_t block_bytes, local_bytes, unpacked_bytes;
    char *card,
        *host; /* tables: of the card, and of the host, whose first ns bytes are the card's */
    cu_ptr host_seen; /* where the card sees the host's */
    char *
        sent; /* [DEVICE_CALLS][at.ns]: what is on its way to the card, while the tables change again */
    struct { /* offsets in the tables */
        size_t consts, code, cells, lora, batch, gate, cancel, how, from, chosen, best, found, ns,
            stripes, end;
    } at;
    cuda_bucket *buckets;
    cu_stream stream;
    uint32_t turn;              /* calls so far, */
    uint32_t gates;             /* and those that were one launch: a gate is for every other one */
    cuda_call call;             /* what goes with the launch of the one at hand */
    int calls;                  /* whose tokens the card chooses, that are under way */
    int64_t rows[DEVICE_CALLS]; /* outputs of each, by its turn */
    bool in_doubt;              /* not all of the tables may have come to the card */
    cuda_bucket *now;           /* of the call that was begun; NULL: there is none */
    int64_t n_tok;              /* and its rows */
    uint64_t barriers;
    /* What is measured; both NULL before the first time. */
    bool measure;
    step_time **times; /* [n_bucket][n_step] */
    uint64_t *ns;      /* [blocks][n_step_max] */
    device_watch *watch;
    void *watch_ctx;
};

/* Of the largest bucket. */
int32_t cuda_steps_max(const plan *p);

/* cuda_load.c. Weights of squares that are made bf16 before: does weft_squares do without that? How many each becomes, and their
 * bytes, 0 for those that stay as stored. */
bool cuda_decodes(dtype type);
int64_t cuda_unpacked_parts(dtype type, kact act);
size_t cuda_unpacked_bytes(const plan *p, const plan_step *s);
/* May operands of a step be f16, in calls of so many rows? Bytes of weights that become so, 0 for those that stay as stored. */
bool cuda_may_halve(const exec *e, const plan_step *s, int64_t rows);
size_t cuda_halved_bytes(const exec *e, const plan_step *s, int64_t rows);
weft_status cuda_need(weft_diag *dg, device *d, const device_load *what, device_memory *out_m);
weft_status cuda_load(weft_diag *dg, device *d, const device_load *what, exec **out_e);
void cuda_unload(exec *e);

/* cuda_run.c */
weft_status cuda_submit(weft_diag *dg, exec *e, const kbatch *b);
weft_status cuda_wait(weft_diag *dg, exec *e);
/* Queue a call of a new turn, the tokens that it takes from the one before included; next NULL: none. */
cu_result cuda_begin(exec *e, const kbatch *b, const cuda_tokens *next);
/* Copy a part of the host's tables to the card's, as it is now. */
cu_result cuda_push(const exec *e, const void *part, size_t bytes);
/* Of the host, for waiting: look whether the call is cancelled, and tell the card; and sleep a little if it takes long. */
void cuda_look(const exec *e, uint64_t began);
/* Until all that was queued is done. */
cu_result cuda_wait_stream(const exec *e);
/* A call is cancelled, or not any more. */
bool cuda_is_cancelled(const exec *e);
void cuda_cancel_begin(exec *e);

/* cuda_launch.c: all phases of a call, as its tables have them; and one of them by itself. */
cu_result cuda_launch_all(exec *e, cuda_bucket *c);
cu_result cuda_launch_one(const exec *e, const cuda_bucket *c, int32_t i);
/* A launch, with its kernel's argument. And that of phase i of a bucket whose phases have packs. */
typedef struct {
    cu_function f;
    unsigned blocks, threads, bytes; /* bytes: of shared memory */
    cuda_launch with;
} cuda_dispatch;
cuda_dispatch cuda_dispatch_packed(const exec *e, const cuda_bucket *c, int32_t i);
/* Is a value of a block in one of a phase's items read in another phase than it is made in? */
bool cuda_outlasts(const cuda_bucket *c, const cuda_phase *p);
/* A launch that may begin before the one before it ends: its kernel waits for what it reads. */
cu_result cuda_launch_after(const exec *e, cu_function f, unsigned blocks, unsigned threads,
                            unsigned bytes, void **args);
/* Of a bucket whose steps are loaded: which of its phases share values of a block (cuda_bucket.lasts). */
void cuda_lasting_find(cuda_bucket *c);
/* Shared memory of a block of weft_squares, and of weft_experts; 0: they cannot run. */
size_t cuda_squares_shared(const exec *e);
size_t cuda_experts_shared(const exec *e, const kargs *k);

/* cuda_graph.c: what the environment asks for, W1618 for what cannot be; the phases of a call as a graph, which is made when there is
 * none of these; and the end of all graphs, when the stream has ended. */
weft_status cuda_calls_find(weft_diag *dg, cuda_device *d) WEFT_MUST_USE;
cu_result cuda_graph_launch(const exec *e, cuda_bucket *c);
void cuda_graphs_free(exec *e);

/* cuda_heads.c: steps before attention that can be one (kernels/cuda/heads_cuda.cuh): which each is, from the phase's first on. */
typedef struct {
    int32_t q, key, keys, values; /* turn queries and a key; append that, and a value */
} cuda_heads;
enum { HEADS_ITEMS = 3, HEADS_STEPS = 4 };
/* Is the phase that item `first` begins these alone? */
bool cuda_heads_of(const exec *e, const cuda_bucket *c, int32_t first, cuda_heads *out_h);
/* Can they be one step in the call at hand? Then a phase's pack has to say so; follows: blocks do that for the heads they attend with,
 * as they have to of several rows. */
bool cuda_heads_are(const cuda_bucket *c, const cuda_phase *p);
void cuda_heads_pack(const exec *e, const cuda_bucket *c, bool follows, cuda_pack *to);
/* Does the one step of an item quantise what the item before it, attention, makes? Then of each row the columns of a head of the cell,
 * where blocks may do that behind attention, as one more step of its phase; else 0. */
int32_t cuda_heads_cols(const exec *e, const cuda_bucket *c, int32_t item);
/* And may several blocks do the same, at the same time? Not where results are in the place of what they are made of. */
bool cuda_heads_may_repeat(const cuda_bucket *c, const cuda_phase *p);
/* Do two rows share bytes? */
bool cuda_rows_meet(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes);

/* cuda_tiles.c: for weft_bulk. Has a phase of squares what its tables are made of, with weights that are bf16 or are made so before? Then
 * the tables; unpacked: where weights that are made so begin. */
bool cuda_has_tiles(const exec *e, const cuda_bucket *c, const cuda_phase *p, bool unpacked);
cu_result cuda_tiles_of(const exec *e, const cuda_bucket *c, const cuda_phase *p,
                        cuda_unpacking how, const char *unpacked, cuda_tiles *to);

/* cuda_halves.c: phases of squares whose operands are all f16. Is there room for the weights of one? When all phases are listed: can
 * what quantises x make it so, for all who read it? Then that is told (cuda_step.code); whether any step has changed. */
bool cuda_has_halves(const exec *e, const cuda_bucket *c, const cuda_phase *p);
bool cuda_halves_made(const cuda_bucket *c, int32_t phase);
bool cuda_halves_tell(const exec *e, cuda_bucket *c);

/* cuda_choose.c */
weft_status cuda_choose(weft_diag *dg, exec *e, const device_choice *c);
weft_status cuda_chosen(weft_diag *dg, exec *e, ksampled *out);
void cuda_drop(exec *e);

/* cuda_profile.c */
void cuda_profile_set(exec *e, bool on);
const step_time *cuda_profile_steps(const exec *e, int32_t bucket);
/* Before and after a call that is measured. */
cu_result cuda_profile_start(exec *e);
weft_status cuda_profile_add(weft_diag *dg, exec *e, const cuda_bucket *b);

#endif
