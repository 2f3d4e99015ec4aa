/* session.h - a plan, its weights and its state, ready to be given rows: the public header of runtime/exec.
 *
 *     session_create(dg, p, src, &(session_options){.n_ctx = 512, .n_seq = 1}, &s);
 *     session_eval(dg, s, rows, n);
 *     session_output(s, "logits", -1, &logits, &n_row, &width);
 *
 * One thread uses a session at a time; several sessions may run at once and share plan, checkpoint,
 * weights and the process's threads. Evaluating allocates nothing and touches no file but the mapped
 * weights. */
#ifndef WEFT_RUNTIME_EXEC_SESSION_H
#define WEFT_RUNTIME_EXEC_SESSION_H

#include "runtime/exec/adapters.h"
#include "runtime/exec/batch.h"
#include "runtime/exec/device.h"
#include "runtime/kv/prefix_cache.h"

typedef struct session session;

typedef struct {
    int64_t n_ctx;    /* tokens each sequence may hold; at least 1 */
    int64_t n_seq;    /* sequences, numbered from 0; 0: one */
    int64_t page_tok; /* tokens in a page of state; 0: STATE_PAGE_TOK */
    int64_t n_page;   /* 0: enough for all sequences at full length */
    int64_t n_prefix; /* texts whose state is kept for others that begin the same; 0: none */
    int threads;      /* 1 to POOL_THREADS_MAX, the caller among them; 0: one */
    bool pin;         /* keep each thread of the pool on a CPU of its own, where the system can */
    size_t
        bytes_max; /* no more memory than this, mapped weights included; 0: what is available, for
                          all but mapped weights */
    device *dev;   /* NULL: that of w, else the CPU */
    /* Plans to run in place of p, which then only describes the whole: those of the card on dev, the others on the CPU. Without
     * code. NULL: p alone. */
    const plan_parts *parts;
    bool use_cache; /* use interleaved weights that are on disk, and leave them for next time */
    const char *cache_dir;    /* in this folder; NULL or empty: $XDG_CACHE_HOME/weft/weights, else
                                 $HOME/.cache/weft/weights */
    uint64_t cache_bytes_max; /* its files take no more than this together; 0: 64 GiB */
    bool check_cache; /* compare all checksums of what is there, not only if it has changed */
    const code_maker *maker; /* of code to run the plan with; NULL: the executor's own loop */
    /* Of each part, for the same plan, checkpoint and device; NULL: the session loads its own. */
    const weights *w[PLAN_PARTS_MAX];
    weights_progress progress;
    /* As code_options has it, with the ctx of progress. */
    void (*compiling)(void *ctx, uint64_t done, uint64_t total);
    const cancel_flag *cancel; /* stops session_create and session_eval; NULL: nothing does */
} session_options;

/* p, src and what the options name must outlive the session. W1406 for a count that cannot be, W0902
 * before anything is loaded if it takes more than opt->bytes_max, or more than is available; W1412. */
weft_status session_create(weft_diag *dg, const plan *p, const weight_source *src,
                           const session_options *opt, session **out_s) WEFT_MUST_USE;
void session_destroy(session *s); /* NULL is fine */

/* What a session can take, and what is free of its pages now. */
typedef struct {
    int64_t context, sequences;
    int64_t batch;          /* rows in one call */
    int64_t wants;          /* rows of one call that outputs [R] may be asked for */
    int64_t call_sequences; /* sequences in one call */
    int64_t page_tok, pages,
        pages_free; /* of paged cells; 0: each sequence has its cells in one piece */
} session_limits;
session_limits session_most(const session *s);

/* Of the pages of paged cells: those that sequences hold, the others being free or held for texts that nobody uses; of each sequence,
 * [sequences], how many no other one holds, and whether its next row takes a copy of its last one. All 0 where there are none. */
int64_t session_pages_used(const session *s, int64_t *out_alone, bool *out_shares_last);

/* Pages of one tier of the cells that keep the same rows (state.h). */
typedef struct {
    kpolicy_tier tier;
    int64_t page_tok, pages, pages_free;
    size_t page_bytes; /* of all its cells */
} session_tier;

/* How many there are; the first n_max of them to `out`. */
int32_t session_tiers(const session *s, session_tier *out, int32_t n_max);
/* Let pages cross from tier to tier at other ages, as state_change does; texts that were kept for others are dropped. */
weft_status session_kv_change(weft_diag *dg, session *s, const kpolicy *kv) WEFT_MUST_USE;

/* Run the rows; their sequences are longer by them afterwards. On failure (batch_fill and
 * state_reserve say how) nothing has changed, and the outputs are still those of the call before. W1412 if
 * opt->cancel was set before the call was through: no sequence has changed then either, but the call has
 * written over the outputs, so there are none until the next success; it returns once the ranges that threads are in
 * have ended. The same with W1012 if a file of interleaved weights became shorter (weights_check), and with W1110 if memory for either message is
 * short. */
weft_status session_eval(weft_diag *dg, session *s, const batch_row *rows, int64_t n) WEFT_MUST_USE;

/* An output of the last successful session_eval, f32 [n_row, width], valid until the next; index -1 for one
 * without an index. An output [R] has a row for each row that asked for one. False if the plan has no
 * such output or nothing has run. */
bool session_output(const session *s, const char *name, int index, const float **out_data,
                    int64_t *out_n_row, int64_t *out_width) WEFT_MUST_USE;
/* The first n numbers of such an output, copied from the device. W1406 if there are none. */
weft_status session_read(weft_diag *dg, const session *s, const char *name, int index, float *to,
                         int64_t n) WEFT_MUST_USE;

/* ---- tokens that the device chooses (kernels/ksample.h) ----
 *
 * A call of this kind has no outputs: of each row that asked for one, the token comes back that the host's sampler would have
 * chosen. Before it does, the next call can be queued behind it, whose rows are those tokens: then the device does not wait for
 * the host. A call counts when session_chosen has brought its tokens; until then no sequence has changed as far as anybody can
 * see: all other functions of the session first drop the calls under way, as if they had never been. */

bool session_chooses(const session *s); /* can its device? */
/* Begin a call; how[i] is for the i-th row that asks, of which there is one at least. Drops what was under way. Fails as
 * session_eval does, with nothing changed. */
weft_status session_choose(weft_diag *dg, session *s, const batch_row *rows, int64_t n,
                           const ksample *how) WEFT_MUST_USE;
/* Queue the call behind the one under way: the tokens that it will choose, of those rows that have more[i], each at the next
 * position of its sequence. how[i] is as for that call; rng goes on from there. out_begun: false where that cannot be, because
 * the context ends, pages are short, or it could not be undone. On failure nothing is under way. */
weft_status session_choose_next(weft_diag *dg, session *s, const ksample *how, const bool *more,
                                bool *out_begun) WEFT_MUST_USE;
/* The tokens of the oldest call under way, which counts now: one for each row that asked. Fails as session_eval does: no
 * sequence has changed then, and nothing is under way. */
weft_status session_chosen(weft_diag *dg, session *s, ksampled *out) WEFT_MUST_USE;
/* The number of the newest call under way; 0: there is none. */
uint64_t session_under_way(const session *s);
uint64_t session_chosen_count(const session *s); /* tokens so far */
/* Drop the calls under way. */
void session_settle(session *s);

int64_t session_length(const session *s,
                       int64_t seq); /* tokens it holds; 0 if there is none such */
/* Keep the first `length` tokens; the next position is `length`. W1402, W1403; W1408 where a ring no
 * longer has the rows for it, which cannot happen with 0. On failure nothing has changed. */
weft_status session_truncate(weft_diag *dg, session *s, int64_t seq, int64_t length) WEFT_MUST_USE;
/* Let sequence `to` hold the first `length` tokens of `from` instead of what it held. They share memory
 * until one of them goes on. Fails as session_truncate does. */
weft_status session_fork(weft_diag *dg, session *s, int64_t from, int64_t to,
                         int64_t length) WEFT_MUST_USE;
/* How many of the first `length` tokens, all of which it holds, a cut or a fork can keep: all, or 0
 * because of a ring. */
int64_t session_keepable(const session *s, int64_t seq, int64_t length);

/* Rows [begin, end) of `from` behind the `begin` tokens that `to` holds: as state_append_range; W1418 if the two have other adapters. */
weft_status session_append_range(weft_diag *dg, session *s, int64_t from, int64_t to, int64_t begin,
                                 int64_t end) WEFT_MUST_USE;
/* Take rows [begin, end) out of a sequence; those behind move to other positions, which is no exact thing (state_shift.h): out_exact is
 * false then, and true where none are. W1420 names a cell whose rows cannot move. If a copy fails, or memory is short, while rows
 * move, the sequence is cut to `begin`; on any other failure nothing has changed. */
weft_status session_remove_range(weft_diag *dg, session *s, int64_t seq, int64_t begin, int64_t end,
                                 bool *out_exact) WEFT_MUST_USE;

/* The ids of a text: n that a sequence holds, and next (0 or 1) that come behind them. */
typedef struct {
    int32_t *ids;
    int64_t n, next;
} session_text;

/* Write what a sequence holds, which are the ids of this text, to a file, and let one hold what a file has; the ids of out_text are the
 * caller's, for mem_free. They fail as state_file_save, _open and _load do (runtime/kv/state_file.h); W1402 if the sequence does not
 * hold n tokens. */
weft_status session_save(weft_diag *dg, session *s, int64_t seq, uint64_t key,
                         const session_text *text, const char *path) WEFT_MUST_USE;
weft_status session_load(weft_diag *dg, session *s, int64_t seq, uint64_t key, const char *path,
                         session_text *out_text) WEFT_MUST_USE;

/* Texts that were evaluated before (runtime/kv/prefix_cache.h); where opt->n_prefix is 0 there are none, and nothing happens.
 * session_eval drops those used least recently where pages are short. */
prefix_taken session_prefix_take(session *s, int64_t seq, uint64_t key, const int32_t *ids,
                                 int64_t n, int64_t least, bool again);
void session_prefix_put(session *s, int64_t seq, uint64_t key, const int32_t *ids, int64_t n);
void session_prefix_clear(session *s);
uint64_t session_prefix_turn(const session *s);
prefix_stats session_prefix_stats(const session *s);

/* Adapters, of a session whose plan has slots for them (W1407 if it has none): load one into a slot, empty a slot, let a sequence use a
 * mix of loaded ones from its next row on. They fail as the functions of adapters.h do, and W1403 for a sequence that is not
 * there; on failure nothing has changed. A fork takes the mix of the sequence it came from. The key of a sequence's mix:
 * text computed with another one is not its own. */
weft_status session_lora_load(weft_diag *dg, session *s, int32_t slot,
                              const adapter_source *src) WEFT_MUST_USE;
weft_status session_lora_unload(weft_diag *dg, session *s, int32_t slot) WEFT_MUST_USE;
weft_status session_lora_attach(weft_diag *dg, session *s, int64_t seq, const adapter_use *use,
                                size_t n) WEFT_MUST_USE;
uint64_t session_lora_key(const session *s, int64_t seq);

/* ---- looking into it, part by part (session_look.c) ---- */

const plan *session_plan_of(const session *s); /* the one it was created with */
/* Its parts, in the order in which they run: one, which is that plan, unless it was created with several. */
plan_parts session_plans_of(const session *s);
/* For other sessions of the plan, which end before it. */
const weights *session_weights(const session *s, int32_t part);

/* Measure how long each step takes in the calls from here on, from zero; and stop. Results stay until
 * the next beginning. Not while a call runs. */
void session_profile_begin(session *s);
void session_profile_end(session *s);
/* [n_step] of a bucket of the part's plan; NULL before the first session_profile_begin. */
const step_time *session_profile_steps(const session *s, int32_t part, int32_t bucket);
/* Time that threads of the part's device spent waiting for each other since session_profile_begin, summed over them. */
uint64_t session_wait_ns(const session *s, int32_t part);
/* How often in the last call all threads waited for each other, the end of each part included; as many
 * with one thread as with several. */
uint64_t session_barriers(const session *s);
/* Images of kernels that the device made for the plan; 0: those of all plans run it. */
int32_t session_images(const session *s);

/* Be called after each phase of the part in calls from here on, while nothing runs: what the phase left in the
 * arena, at the offsets of its operands, may be looked at and changed. Of a part that is given values, first with phase -1, when
 * they are there. A failure ends the call as its own. NULL ends watching. For finding faults: it costs two more barriers a phase. */
void session_watch(session *s, int32_t part, device_watch *after_phase, void *ctx);
/* Bytes of the part's arena, copied out and in; also between calls. */
weft_status session_arena_read(weft_diag *dg, const session *s, int32_t part, int64_t offset,
                               void *to, size_t bytes) WEFT_MUST_USE;
weft_status session_arena_write(weft_diag *dg, session *s, int32_t part, int64_t offset,
                                const void *from, size_t bytes) WEFT_MUST_USE;

/* Memory by purpose, in bytes. The weights are counted where they are the session's own. */
typedef struct {
    size_t weights_mapped; /* read in place: the file's pages, not memory of ours */
    size_t weights_copied;
    size_t weights_cached; /* interleaved copies in a mapped file of the weight cache: the same */
    size_t weights_interleaved; /* interleaved copies in memory of ours */
    size_t arena;               /* activations */
    size_t state;               /* cells */
    size_t adapters;            /* their slots */
    size_t scratch;             /* of all threads: values of their own, and what kernels need */
    size_t tables;              /* steps, page tables, batch, tables of addresses */
    /* Where a device has memory of its own, all above is in it; and in the host's are the session's other tables, and copies
     * of the outputs. Else they are in tables. */
    size_t host;
} session_memory;

session_memory session_bytes(const session *s);
/* Of a session in parts, what is on one of its devices. */
session_memory session_bytes_on(const session *s, const device *dev);
/* What session_bytes will say of a session with these options, to the byte, before anything is loaded;
 * opt->bytes_max is not looked at. src NULL: no weight is cached. Fails as session_create does for counts
 * and sizes. */
weft_status session_need(weft_diag *dg, const plan *p, const weight_source *src,
                         const session_options *opt, session_memory *out_m) WEFT_MUST_USE;
weft_status session_need_on(weft_diag *dg, const plan *p, const weight_source *src,
                            const session_options *opt, const device *dev,
                            session_memory *out_m) WEFT_MUST_USE;
size_t session_memory_sum(const session_memory *m);
/* Without what is mapped from files, which the system reads again where memory is short. Both without `host`. */
size_t session_memory_own(const session_memory *m);

#endif
