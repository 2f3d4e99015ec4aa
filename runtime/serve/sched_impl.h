/* sched_impl.h - the inside of a scheduler, for the files of this folder.
 *
 * A job is what was added; each of its answers is a choice, and choices are what the policy sees as items. A choice that never ran is a few
 * words: its generation, with sampler and decoder, is made when it is given its first sequence, and stays while it is preempted. */
#ifndef WEFT_RUNTIME_SERVE_SCHED_IMPL_H
#define WEFT_RUNTIME_SERVE_SCHED_IMPL_H

#include "runtime/base/arena.h"
#include "runtime/base/vec.h"
#include "runtime/engine/generation.h"
#include "runtime/serve/sched_policy.h"
#include "runtime/serve/scheduler.h"
#include <pthread.h>

typedef struct job job;

/* An adapter by name, as of one reading of its file. */
typedef struct sched_adapter {
    char *name;
    uint32_t number;           /* for the policy; from 1 */
    const adapter_source *src; /* NULL: not opened yet */
    int32_t slot;              /* 0: in none */
    int64_t jobs, users;       /* jobs that name it; running choices that use it */
    uint64_t used;             /* when a choice last began with it, in steps */
    bool stale;                /* a reload came: new jobs open it anew */
    struct sched_adapter *next;
} sched_adapter;

/* Where the state of a preempted choice is. */
typedef struct {
    sched_swap way; /* SCHED_RECOMPUTE: nowhere */
    uint64_t number, bytes;
} swap_place;

/* A token that is told later. */
typedef struct {
    int32_t id;
    float logprob;
    size_t text_end, top_end; /* where what came with it ends in `said` and `tops` */
} held_token;

typedef struct {
    job *of;
    int32_t index;
    uint64_t order; /* of arrival */
    generation *g;  /* NULL: it has not begun */
    bool running, ended;
    swap_place swap;
    size_t part; /* not begun: where prompts that wait for it part from its own; 0: nowhere */
    int64_t n_cached, n_generated;
    uint64_t begun_ns, first_ns, last_ns; /* its sequence, its first token, its last; 0: not yet */
    double logprobs;
    /* Where more answers are generated than shown: what will be, when all have ended. */
    strbuf said;
    VEC(held_token) tokens;
    VEC(token_logprob) tops;
    sched_end end;
    weft_code code;
    char why[200];
    int stop_found;
    /* Of the step being made. */
    size_t held_before;
} choice;

struct job {
    sched_id id;
    arena *a;
    sched_job o; /* with copies of all that it points to, but for user and ctx */
    sched_adapter *lora;
    uint64_t arrived_ns, deadline_ns; /* deadline 0: none */
    uint64_t *pages; /* [n_page]: hashes of the beginnings of its prompt that end whole pages */
    size_t n_page;
    int64_t n_choice, n_left; /* to generate, and not ended yet */
    choice *choices;          /* [n_choice] */
    bool counted;             /* in `queued` */
};

typedef VEC(sched_id) sched_ids;

struct scheduler {
    /* Set when it is made. */
    session *run;
    tok *text;
    sched_options o;
    engine e;
    int64_t most; /* choices that run at once */
    int32_t n_slot;
    weft_diag *quiet; /* for what is handled here */

    /* Of the thread that steps. */
    sched_ids ending;   /* cancelled jobs, to be ended in this step */
    VEC(choice *) live; /* all that have not ended, by arrival */
    VEC(sched_item) items;
    VEC(int32_t) order;
    VEC(engine_part) parts;
    VEC(choice *) in_call; /* whose parts those are */
    bool *seq_used;        /* [sequences] */
    int64_t *alone;        /* [sequences] */
    bool *shares_last;     /* [sequences] */
    sched_adapter *adapters;
    uint32_t adapter_number;
    sched_adapter **slot; /* [n_slot + 1]; 0 is none */
    sched_clock clock;
    sched_stats did;
    uint64_t n_order, n_swap;
    double memory_bps, disk_bps; /* measured */
    uint64_t kept_memory, kept_disk;
    double served[SCHED_SHARES_MAX];

    /* Guarded by lock. */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    VEC(job *) inbox;
    sched_ids cancels;
    VEC(char *) reloads; /* names; "" is all */
    sched_id n_job;
    int64_t queued; /* jobs that have not begun */
    int64_t there;  /* jobs that have not ended */
    bool single;    /* a job with a generation of its caller's is there */
    bool draining;
    uint64_t drain_ns; /* when those that are left end */
    sched_shares shares[SCHED_SHARES_MAX];
    sched_stats shown;
    VEC(sched_row) rows;
};

/* ---- sched_choice.c: what happens to one choice ---- */

/* Give it a sequence, with the state that can be had. W1110, or what adapter and sampler fail with: it is to end. */
weft_status choice_begin(weft_diag *dg, scheduler *s, choice *c) WEFT_MUST_USE;
/* Take the sequence away; by the cheapest way to have its state again, or without one. */
void choice_preempt(scheduler *s, choice *c);
/* What a token brought. */
void choice_tell(scheduler *s, choice *c, uint64_t now_ns);
/* It is over. `why` and `code` where something failed. */
void choice_end(scheduler *s, choice *c, sched_end end, str why, weft_code code);
/* A sibling that holds the prompt; NULL: none. out_waits: one is going to. */
choice *choice_sibling(const choice *c, bool *out_waits);
size_t choice_ids(const choice *c); /* of its text */
void job_destroy(job *j);           /* which no list has any more */
/* The newest failure of a collector, for an event. */
str diag_last(const weft_diag *dg, weft_code *out_code);

/* ---- sched_adapters.c ---- */

/* The entry for this name, made if need be; a job more names it. */
sched_adapter *adapter_for(scheduler *s, const char *name);
void adapter_release(scheduler *s, sched_adapter *a); /* a job less; NULL is fine */
/* Into a slot, opened if need be, and used by this sequence. */
weft_status adapter_use_begin(weft_diag *dg, scheduler *s, sched_adapter *a, int64_t seq,
                              float scale) WEFT_MUST_USE;
void adapter_use_end(scheduler *s, sched_adapter *a, int64_t seq);
void adapters_mark_stale(scheduler *s, const char *name); /* "": all */
void adapters_close_all(scheduler *s);

/* ---- sched_swap.c ---- */

/* To memory or disk, if that is cheaper than computing it again and works; false: it was not done. */
bool swap_out(scheduler *s, choice *c);
/* Back into this sequence; false: the state is lost, and nothing else has changed. */
bool swap_in(scheduler *s, choice *c, int64_t seq);
void swap_drop(scheduler *s, choice *c);

/* ---- sched_stats.c ---- */

void histogram_add(sched_histogram *h, uint64_t ns);

#endif
