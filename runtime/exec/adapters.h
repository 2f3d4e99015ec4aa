/* adapters.h - the adapters of a session: slots in the memory of its devices, and who uses which of them.
 *
 * A plan says how many slots there are, of which rank, and for which sites. Loading writes one adapter into a slot; a mix of
 * loaded slots is attached to a sequence and counts from its next row on. So switching is a few numbers in a table: no plan
 * changes, and nothing is allocated. Slots are numbered from 1; 0 is none. One thread uses it at a time, as its session. */
#ifndef WEFT_RUNTIME_EXEC_ADAPTERS_H
#define WEFT_RUNTIME_EXEC_ADAPTERS_H

#include "compiler/plan.h"
#include "runtime/exec/device.h"

typedef struct adapters adapters;

/* What an adapter adds to a weight of the model, or to one expert or head of it: scale * b a. */
typedef struct {
    const char *weight; /* its name in the graph */
    int32_t index;      /* expert or head; -1: the weight has none */
    int64_t rank, in, out;
    const float
        *a; /* [rank, in], in the weight's order of columns; of an embedding a column for each id */
    const float *b; /* [out, rank], in its order of rows */
    double scale;
} adapter_part;

typedef struct {
    const char *name; /* for messages */
    uint64_t hash;    /* of its contents */
    size_t n_part;
    const adapter_part *part;
} adapter_source;

/* A slot, and by how much it counts. */
typedef struct {
    int32_t slot;
    float scale;
} adapter_use;

/* A plan, and the device it runs on. */
typedef struct {
    const plan *p;
    device *dev;
} adapter_home;

/* For n plans that run one after the other, all with the same slots, and so many sequences; plans and devices must outlive it. A slot is
 * in the memory of each, for the weights that the plan there has. That memory is not there until adapters_bind. */
adapters *adapters_create(const adapter_home *home, int32_t n, int64_t n_seq);
weft_status adapters_bind(weft_diag *dg, adapters *a) WEFT_MUST_USE;
void adapters_destroy(adapters *a); /* NULL is fine */

/* Of the slots of plan i on its device, and of tables of the host. */
size_t adapters_bytes(const adapters *a, int32_t i);
size_t adapters_table_bytes(const adapters *a);

/* Write an adapter into a slot, in place of what it held. W1407 for a slot that is not there, W1417 for one that a sequence
 * uses, W0702 for a rank above the slots' or a shape that is not the weight's. On failure nothing has changed, but for a
 * device that cannot be written to: the slot is empty then. What no plan computes, such as logits that nobody wanted, is left out. */
weft_status adapters_load(weft_diag *dg, adapters *a, int32_t slot,
                          const adapter_source *src) WEFT_MUST_USE;
/* Empty a slot; one that is empty stays so. W1407, W1417. */
weft_status adapters_unload(weft_diag *dg, adapters *a, int32_t slot) WEFT_MUST_USE;
bool adapters_has(const adapters *a, int32_t slot); /* is it there, and does it hold an adapter? */

/* Let the rows of a sequence use this mix from here on; n 0: none. A slot that occurs twice counts with the sum of its
 * scales. W1407 for a slot that is empty or not there, W1406 for more than K_MIX_MAX slots or a scale that is no number. On
 * failure nothing has changed. */
weft_status adapters_attach(weft_diag *dg, adapters *a, int64_t seq, const adapter_use *use,
                            size_t n) WEFT_MUST_USE;
/* Let sequence `to` use the mix of `from`. */
void adapters_share(adapters *a, int64_t from, int64_t to);
/* A number that two sequences share if their rows use the same adapters with the same scales; 0: none. */
uint64_t adapters_key(const adapters *a, int64_t seq);

/* The number of the mix that a row uses: of one slot (1 and on, one that holds an adapter), or of its sequence (slot 0). */
int32_t adapters_mix(const adapters *a, int64_t seq, int32_t slot);
/* Find out which slots the rows of a call use, before it runs. */
void adapters_take_rows(adapters *a, const kbatch *b);

/* What a device needs to run the steps of plan i with adapters. */
const klora *adapters_view(const adapters *a, int32_t i);
const void *adapters_memory(const adapters *a, int32_t i);

#endif
