/* scheduler.h - many requests over one session: who has rows in the next call, what becomes of the results.
 *
 *     scheduler_create(dg, session, text, &(sched_options){.on_event = f}, &s);
 *     scheduler_add(dg, s, &(sched_job){.ids = ids, .n_id = n, .pick = sampler_defaults()}, &id);     any thread
 *     while (scheduler_wait(s, SCHED_FOREVER))     sleeps while there is nothing to do; false: drained
 *         scheduler_step(dg, s);                   one call of the session; events of it come before it returns
 *
 * The scheduler owns the session: from scheduler_create to scheduler_destroy nobody else uses it. A step is one call of the
 * session: the next token of every answer that runs, and parts of prompts, as many as the batch, the pages and the wanted time
 * between tokens allow (sched_policy.h has the rules, as a pure function). It knows nothing of HTTP, JSON or chat templates: ids
 * go in, pieces of text come out.
 *
 * Threads: scheduler_add, _cancel, _drain, _reload, _stats and _list may be called by any thread at any time; they only take a
 * lock that is never held while the model runs. One thread at a time calls scheduler_step and scheduler_wait; that thread calls
 * on_event, which must not wait for anything (it may call scheduler_add and scheduler_cancel).
 *
 * Every job that was added gets exactly one event SCHED_ENDED for each of its choices, whatever happens. */
#ifndef WEFT_RUNTIME_SERVE_SCHEDULER_H
#define WEFT_RUNTIME_SERVE_SCHEDULER_H

#include "runtime/engine/generation.h"

typedef struct scheduler scheduler;
typedef uint64_t sched_id; /* from 1, in the order of arrival */

/* ---- what ends a choice ---- */

typedef enum {
#define SCHEDEND(name, text, meaning) SCHED_END_##name,
#include "runtime/serve/sched_end.def"
#undef SCHEDEND
    SCHED_END_COUNT
} sched_end;
const char *sched_end_name(sched_end end);

/* ---- what happens to a job ---- */

typedef enum {
    SCHED_STARTED, /* a choice has its sequence; n_cached tokens of its prompt were there already */
    SCHED_READING, /* a part of the prompt was evaluated; to jobs that ask for it */
    SCHED_PIECE,   /* a token came; its text may be empty */
    SCHED_ENDED,   /* the choice is over: `end` says why. The last piece may have come with it */
} sched_event_kind;

/* Valid during the call of on_event. */
typedef struct {
    sched_event_kind kind;
    sched_id id;
    void *user;     /* of the job */
    int32_t choice; /* 0 to n - 1 */
    /* SCHED_PIECE, and SCHED_ENDED where a token came with the end or text was held back: */
    int32_t token; /* TOK_NONE: none */
    str text;      /* whole characters, no part of a stop text */
    float logprob; /* of token, where n_top >= 0 */
    const token_logprob *top;
    int64_t n_top;
    /* SCHED_ENDED: */
    sched_end end;
    str stop;       /* SCHED_END_STOP: the stop text that came */
    str why;        /* SCHED_END_FAILED, _REFUSED: a message for people */
    weft_code code; /* its row of diag.def */
    double
        logprobs; /* sum over the tokens of the choice, where it was asked for (n_top >= 0, best_of) */
    const float *vector; /* [n_vector]: of a job that embeds, NULL where it failed */
    int64_t n_vector;
    /* Counts, of this choice: */
    int64_t n_prompt, n_cached, n_generated; /* cached: of the prompt, when it began */
    int64_t n_read;                          /* ids of its text that there is state of */
    uint64_t wait_ns, first_ns,
        total_ns; /* from arrival: to its sequence, first token, now; 0: not yet */
} sched_event;

typedef void sched_on_event(void *ctx, const sched_event *ev);

/* ---- a job ---- */

typedef struct {
    const int32_t *ids; /* [n_id]: the prompt, copied */
    size_t n_id;
    int64_t
        n; /* choices, each an answer of its own to the one prompt; 0: 1. Choice i has pick.seed + i */
    int64_t
        best_of; /* so many are generated, and the n likeliest told, token by token, when all have ended; 0: n */
    int64_t max_tokens;       /* of an answer; 0: until something else ends it */
    int64_t min_tokens;       /* no end token before this many */
    const char *const *stops; /* [n_stop], copied */
    size_t n_stop;
    bool ignore_end, show_special;
    int64_t
        n_top; /* log-probabilities of this many of the likeliest, and of the token; -1: of none */
    sampler_options pick; /* lists are copied */
    /* What tokens may come (a grammar); NULL: any. The scheduler's from scheduler_add on, also where that fails; each choice
     * has a copy. */
    token_filter *filter;
    const char *
        adapter; /* NULL or "": none. Asked of sched_options.adapter_open when it is needed first */
    float adapter_scale; /* 0: 1 */
    uint32_t
        share; /* whose fair share it counts to: index of a row that scheduler_share set, 0 for anybody */
    int32_t priority;   /* larger ones first, until others have waited longer than patience */
    int64_t timeout_ms; /* from now: then it has ended, SCHED_END_DEADLINE; 0: never */
    bool
        embed; /* read the prompt, and give the mean of the output hidden over its tokens (W1406 if the session has none) */
    bool reading;             /* tell of parts of the prompt too */
    void *user;               /* for events */
    sched_on_event *on_event; /* NULL: that of the scheduler's options, with its ctx */
    void *ctx;
    /* A generation of the caller's, for programs of one text: it has its prompt and its sequence and keeps both, with its own options.
     * The scheduler only steps it, so ids, choices, sampler, stops, filter and adapter above do not count, and there is no event
     * SCHED_STARTED. It is there alone: W1850 beside any other job. NULL: the job is the scheduler's. */
    generation *with;
} sched_job;

/* ---- settings ---- */

typedef struct {
    sched_on_event *on_event;
    void *ctx;
    int64_t queue_max;   /* jobs that wait; 0: 1024. More are refused (W1850) */
    int64_t choices_max; /* n and best_of of a job; 0: 64 */
    int64_t max_itl_ms;  /* no step longer than this, as far as prompts make it long; 0: no bound */
    int64_t patience_ms; /* who has waited longer goes before everybody that came later; 0: 10000 */
    int64_t chunk_min;   /* rows of prompts in a step, however short its time is; 0: 16 */
    /* State of preempted texts: in files of a folder that is memory (such as /dev/shm), and of one on disk. What is cheaper than
     * computing it again goes to the first that has room. NULL or 0: not there. */
    const char *swap_memory_dir, *swap_disk_dir;
    uint64_t swap_memory_bytes, swap_disk_bytes;
    /* Bytes a second that they write and read, until that was measured; 0: 1e9 and 1e8. */
    double swap_memory_bps, swap_disk_bps;
    /* Adapters, by name: open one, and close it when its slot is free again. Called by the stepping thread. Slots are those of
     * the session's plan. NULL: there are none. */
    weft_status (*adapter_open)(void *ctx, weft_diag *dg, const char *name,
                                const adapter_source **out_a);
    void (*adapter_close)(void *ctx, const adapter_source *a);
    void *adapter_ctx;
} sched_options;

/* run and text must outlive it. W1406 if the session gives no logits. */
weft_status scheduler_create(weft_diag *dg, session *run, tok *text, const sched_options *o,
                             scheduler **out_s) WEFT_MUST_USE;
/* Jobs that are there end, SCHED_END_DRAINED, with their events. NULL is fine. */
void scheduler_destroy(scheduler *s);

/* ---- any thread ---- */

/* Queue a job. Refused at once, with no event: W1404 the prompt and a token more do not fit the context or the pages, W1405 a
 * token that is not the model's, W1406 a count out of range, W1407 an adapter where the session has no slots, W1850 the queue is full, W1851 it is draining, W1903 a wrong option of the sampler,
 * W1110. Whether an adapter can be opened is seen later: SCHED_END_REFUSED. */
weft_status scheduler_add(weft_diag *dg, scheduler *s, const sched_job *job,
                          sched_id *out_id) WEFT_MUST_USE;
/* End a job, SCHED_END_CANCELLED; at the next step, and at once if it is not there any more. */
void scheduler_cancel(scheduler *s, sched_id id);
/* Take no more jobs. Those that are there go on for at most this long, then end, SCHED_END_DRAINED; scheduler_wait returns false when none
 * is left. */
void scheduler_drain(scheduler *s, int64_t timeout_ms);
/* Open this adapter anew for jobs that begin from now on; those that run keep the one they have. NULL: all. */
weft_status scheduler_reload(weft_diag *dg, scheduler *s, const char *name) WEFT_MUST_USE;
/* The weight of a share, from 1 to SCHED_SHARES_MAX - 1; each has weight 1 until then. W1406 if there is none such. */
enum { SCHED_SHARES_MAX = 1024 };
weft_status scheduler_share(weft_diag *dg, scheduler *s, uint32_t share,
                            double weight) WEFT_MUST_USE;

/* ---- the thread that steps ---- */

#define SCHED_FOREVER INT64_MAX
/* Wait until there is something to do, at most this long: true. False: it is draining, and no job is left. */
bool scheduler_wait(scheduler *s, int64_t timeout_ms);
/* One call of the session, or none if nobody can go on. What concerns single jobs ends those and is no failure; a failure is one of the
 * session itself (W1412: cancelled from outside; all jobs stay as they are). */
weft_status scheduler_step(weft_diag *dg, scheduler *s) WEFT_MUST_USE;
bool scheduler_idle(const scheduler *s); /* no job is there */

/* ---- numbers ---- */

enum {
    SCHED_TIERS = 8
}; /* that are shown: a policy has fewer, and few models have cells of two kinds */

/* A histogram as Prometheus has them: at[i] counts what was at most sched_bucket_s[i] seconds, the last one all. */
enum { SCHED_BUCKETS = 16 };
extern const double sched_bucket_s[SCHED_BUCKETS];
typedef struct {
    uint64_t n, at[SCHED_BUCKETS];
    double sum_s;
} sched_histogram;

typedef struct {
    /* now */
    int64_t waiting, running,
        preempted; /* choices: never begun, with a sequence, without one again */
    int64_t sequences, batch, context; /* of the session */
    int64_t pages, pages_free,
        pages_kept; /* kept: held by texts for others alone; given back where pages are short */
    int64_t page_tok;
    int32_t n_tier;
    session_tier
        tiers[SCHED_TIERS]; /* [n_tier]: pages of state by tier, as session_tiers has them */
    int64_t swap_memory_bytes, swap_disk_bytes;
    int64_t adapters_loaded, adapter_slots;
    int64_t budget_rows; /* prompt rows that the last step was allowed */
    bool draining;
    /* since the beginning */
    uint64_t jobs, refused, ended[SCHED_END_COUNT]; /* ended: choices */
    uint64_t steps, rows_prompt, rows_decode;       /* rows evaluated */
    uint64_t tokens_prompt, tokens_cached, tokens_generated;
    uint64_t preempted_recompute, preempted_memory, preempted_disk;
    uint64_t swapped_in; /* texts that went on with the state of a file */
    uint64_t adapter_loads, adapter_hits;
    sched_histogram first_token, inter_token, queue, step; /* seconds */
    prefix_stats prefixes;
} sched_stats;
sched_stats scheduler_stats(scheduler *s);

/* A choice that is there, for people. */
typedef struct {
    sched_id id;
    int32_t choice, priority;
    uint32_t share;
    enum {
        SCHED_WAITS,
        SCHED_READS,
        SCHED_WRITES,
        SCHED_PREEMPTED
    } state; /* reads its prompt, writes */
    int64_t n_prompt, n_held, n_generated, pages;
    uint64_t age_ns;
    char adapter[64];
} sched_row;
/* How many there are; the first n_max of them to out, oldest first. As of the last step. */
int64_t scheduler_list(scheduler *s, sched_row *out, int64_t n_max);

#endif
