/* sched_policy.h - who has rows in the next call: a pure function over plain numbers.
 *
 *     sched_decide(&room, items, n, order);      items[i].action and .rows say what is to be done
 *
 * It reads no clock, allocates nothing and remembers nothing, so that tests can ask it about any situation and random arrivals
 * can run against it by the thousand (tests/serve/test_sched_policy.c).
 *
 * The order. Items are ranked, and everything goes by rank: rows, pages, sequences, slots of adapters; who has to give something up
 * is the last by rank.
 *   1. Who arrived more than `patience` ago is late. Late ones come before all others, in the order of arrival.
 *   2. Others: the higher priority first, then the share that was served less, then the order of arrival.
 *
 * A step. Every running item with one id to go gets its row. Prompts get parts, as many rows as the budget has. An item that waits is
 * admitted where a sequence, a slot for its adapter and pages for all of its text are free, beyond what those that run were promised
 * and a page for each. Where they are not, it may take them from running items below it if it is late or their priority is
 * lower. Behind a late item that cannot be admitted nobody else is. A running item that needs a page takes it from the last running
 * one; if it is the last itself, it pauses.
 *
 * So nobody starves. Let x be the first by rank of all that are there and late. It has everything it needs in every step: those below it
 * give way, and nobody is above it. So it ends after at most sched_steps_alone(x) steps. Whoever arrives is late after `patience`,
 * and then only those that arrived before it, and have not ended, come before it: it ends at most
 *     patience + the sum of sched_steps_alone over those and itself
 * after its arrival, whatever else arrives. */
#ifndef WEFT_RUNTIME_SERVE_SCHED_POLICY_H
#define WEFT_RUNTIME_SERVE_SCHED_POLICY_H

#include "runtime/base/status.h"

typedef enum {
    SCHED_PAUSE, /* nothing in this step */
    SCHED_RUN, /* `rows` rows; an item that waits is given a sequence first, and may have 0 rows now */
    SCHED_PREEMPT, /* it gives its sequence and pages back, and waits */
} sched_action;

typedef struct {
    /* who */
    uint64_t order;   /* of arrival; all differ */
    uint64_t arrived; /* time, in the unit of room.now */
    int32_t priority;
    uint32_t share;   /* index of room.served */
    uint32_t adapter; /* 0: none */
    /* where it is */
    bool running; /* it has a sequence */
    bool waits; /* not running: for another prompt to get further; one that is late does not wait */
    int64_t n_id;        /* ids of its text */
    int64_t n_held;      /* of which its sequence has state: less than n_id; 0 where it has none */
    int64_t n_shared;    /* not running: ids whose state others hold in pages that it will share */
    int64_t pages_alone; /* running: that nobody else holds */
    bool
        shares_last; /* running: its last page is not full and somebody else's too, so that its next row takes one more */
    /* what is to be done */
    sched_action action;
    int64_t rows;
} sched_item;

typedef struct {
    uint64_t now, patience;
    int64_t batch;     /* rows of a call */
    int64_t sequences; /* items that may run at once: each can have a row with logits in one call */
    int64_t page_tok;  /* 0: there are no pages, each sequence has its own room */
    int64_t pages_free;  /* or held for texts that nobody uses */
    int64_t prompt_rows; /* rows of prompts where others decode */
    int64_t chunk_min;   /* but so many in any case, where the batch has room; at least 1 */
    int32_t adapter_slots;
    const double *served; /* rows that each share had, by its weight */
} sched_room;

/* order: scratch, [n]; afterwards the items by rank. */
void sched_decide(const sched_room *room, sched_item *items, int32_t n, int32_t *order);

/* Does a come before b? */
bool sched_before(const sched_room *room, const sched_item *a, const sched_item *b);

int64_t sched_pages_of(int64_t page_tok, int64_t n_tok); /* pages that n_tok tokens take */
/* Steps that an item takes at most from when it is the first by rank, if it will have n_tok ids of which n_new are generated. */
int64_t sched_steps_alone(const sched_room *room, int64_t n_tok, int64_t n_new);

/* ---- fair shares: virtual counters (Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024) ---- */

typedef struct {
    double weight;  /* 0 counts as 1 */
    double served;  /* rows / weight */
    int64_t active; /* items that are there */
} sched_shares;

/* An item of share i arrives: one that was away does not come back with the credit of its absence. */
void sched_share_join(sched_shares *all, int32_t n, int32_t i);
void sched_share_charge(sched_shares *all, int32_t i, int64_t rows);

/* ---- how long a step takes: ns = base + row * rows, fitted to the steps so far, the newest counting most ---- */

typedef struct {
    double n, x, y, xx, xy; /* weighted sums: steps, rows, ns, rows^2, rows * ns */
} sched_clock;

void sched_clock_add(sched_clock *c, int64_t rows, uint64_t ns);
void sched_clock_fit(const sched_clock *c, double *out_base_ns, double *out_row_ns);
/* Rows of prompts that a step beside n_decode rows may have so that it takes no longer than max_ns; 0: no bound is set, INT64_MAX. */
int64_t sched_clock_rows(const sched_clock *c, int64_t n_decode, uint64_t max_ns);

/* ---- what becomes of a preempted item's state ---- */

typedef enum { SCHED_RECOMPUTE, SCHED_TO_MEMORY, SCHED_TO_DISK } sched_swap;

typedef struct {
    uint64_t bytes;              /* of its state */
    int64_t tokens;              /* it holds, and will have to evaluate again */
    double row_ns;               /* what a row of a prompt takes */
    double memory_bps, disk_bps; /* bytes a second, both ways; 0: there is no such place */
    uint64_t memory_free, disk_free;
} sched_swap_cost;
sched_swap sched_swap_choose(const sched_swap_cost *c);

#endif
