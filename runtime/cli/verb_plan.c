/* verb_plan.c - `weft plan`: what running a model will take, before anything is loaded. */
#include "runtime/base/bandwidth.h"
#include "runtime/base/json_write.h"
#include "runtime/base/memory.h"
#include "runtime/cli/cli.h"
#include "runtime/cli/level_flags.h"
#include "runtime/cli/planned.h"
#include "runtime/engine/plan_sum.h"
#include "runtime/engine/process_memory.h"
#include "runtime/exec/device.h"

#include <inttypes.h>

typedef struct {
    model_flags open;
    level_flags at;
    int64_t sequences, memory;
    double bandwidth;
} plan_options;

/* clang-format off */
static const flag plan_flags[] = {
    PLANNED_FLAG_ROWS(plan_options, "512"),
    FLAG_ROW_INT   (plan_options, sequences,  "parallel",  "np", "N", "1", 1, 65536, "sequences"),
    FLAG_ROW_SIZE  (plan_options, memory,     "memory",    NULL, "SIZE", "0", 0, 9007199254740992.0, "of the machine it is planned for; 0: what is available on this one"),
    FLAG_ROW_FLOAT (plan_options, bandwidth,  "bandwidth", NULL, "GB/S", "0", 0, 1e6, "of that machine's memory; 0: measure this one's"),
    LEVEL_FLAG_ROWS(plan_options, at),
    SLOT_FLAG_ROWS (plan_options, open),
    FLAG_ROW_END   (plan_options),
};

static const char *const examples[] = {
    "weft plan -m model.gguf -c 8192",                        "does it fit, and how fast could it be?",
    "weft plan -m model.gguf -c 32768 -np 8 --kv bf16",       "eight conversations at once",
    "weft plan -m model.gguf --memory 16G --bandwidth 100",   "for another machine",
    "weft plan -m model.gguf --target aarch64-linux-gnu --level dotprod", "with the kernels it would get there",
    "weft plan --random llama-8b:Q4_K_M -c 8192 --memory 8G", "of a model that is not on disk, too",
    "weft plan -m model.gguf --device cuda",                  "on a card, which need not be here",
    "weft plan -m model.gguf --json | jq .memory.total",      "for programs",
    NULL,
};
/* clang-format on */

const verb_page plan_verb_page = {
    plan_flags,
    "Headers are read, tensors are not. A session takes exactly the bytes of `total`: mapped and "
    "cached weights are pages of files, which may be more than memory holds, all else is memory of "
    "its own. `resident` is what a process has in memory whose texts fill the context, without "
    "those weights but with its own code and tables, which are measured. The time is what reading "
    "a token's bytes takes at the bandwidth measured with as many threads, so no run is faster. "
    "Exit status 1, and W0902, if it does not fit.",
    examples,
};

static const double MIB = 1 << 20;

typedef struct {
    const planned *pl;
    bool card; /* of what is on a card; else of what is on the machine itself */
    session_memory mem;
    size_t total,
        own; /* own: what has to fit; without what is mapped, where that may stay in files */
    uint64_t program; /* what the process has besides; 0: not known */
    memory_room available;
    double bandwidth; /* bytes per second */
    plan_phases phases;
    plan_call at[2]; /* decoding at position 0 and at the end of the context */
    plan_work work[2];
    int32_t n_use;
    const plan_use *use;
} account;

/* Where the bytes go, in the order of printing. */
typedef struct {
    const char *key, *name, *what;
    size_t bytes;
} memory_row;

enum { MEMORY_ROWS = 9, CARD_ROWS = 7 };

static bool on_card(const account *ac)
{
    return ac->card;
}

/* Is that one which shares the machine's memory? */
static bool shares_memory(const account *ac)
{
    return ac->card && ac->pl->made.run.dev->kind->host_memory;
}

static const char *card_word(const account *ac)
{
    return shares_memory(ac) ? "the GPU" : "the card";
}

/* The same of a card, whose memory it all is but for the last row. */
static int card_rows(const session_memory *m, memory_row *row)
{
    /* clang-format off */
    const memory_row rows[CARD_ROWS] = {
        {"weights_copied", "weights",  "copied to the card when loaded",                   m->weights_copied},
        {"state",          "state",    "what sequences keep between calls",                m->state},
        {"arena",          "arena",    "activations of a call",                            m->arena},
        {"private",        "blocks",   "values and scratch of each block of threads",      m->scratch},
        {"tables",         "tables",   "steps, pages, batch, addresses",                   m->tables},
        {"host",           "(host)",   "of the machine, beside: tables, copies of outputs", m->host},
        {"adapters",       "adapters", "slots for adapters",                               m->adapters},
    };
    /* clang-format on */
    memcpy(row, rows, sizeof rows);
    return m->adapters > 0 ? CARD_ROWS : CARD_ROWS - 1;
}

/* How many there are: that of adapters is there where a session has slots for them. */
static int memory_rows(const account *ac, memory_row *row)
{
    const session_memory *m = &ac->mem;
    if (on_card(ac) && !shares_memory(ac))
        return card_rows(m, row);
    const bool gpu = shares_memory(ac);
    /* clang-format off */
    const memory_row rows[MEMORY_ROWS] = {
        {"weights_mapped",      "weights, mapped",      "read in place in the file",                  m->weights_mapped},
        {"weights_copied",      "weights, copied",      "converted when loaded",                      m->weights_copied},
        {"weights_cached",      "weights, cached",      "interleaved, in a file of the weight cache", m->weights_cached},
        {"weights_interleaved", "weights, interleaved", "interleaved for kernels, in memory",         m->weights_interleaved},
        {"state",               "state",                "what sequences keep between calls",          m->state},
        {"arena",               "arena",                "activations of a call",                      m->arena},
        {"private",             gpu ? "threadgroups" : "threads", gpu ? "values and scratch of each threadgroup" : "values and scratch of each thread", m->scratch},
        {"tables",              "tables",               "steps, pages, batch, addresses",             m->tables},
        {"adapters",            "adapters",             "slots for adapters",                         m->adapters},
    };
    /* clang-format on */
    memcpy(row, rows, sizeof rows);
    return m->adapters > 0 ? MEMORY_ROWS : MEMORY_ROWS - 1;
}

/* In what form activations are multiplied with weights of a type, at decode. */
typedef struct {
    const char *type, *form, *what;
} activation_row;

static activation_row activation_of(dtype type, kact act)
{
    const char *name = dtype_row_of(type)->name;
    if (act == ACT_F32)
        return (activation_row){name, "f32", "as they are"};
    if (act_rounds_bf16(act))
        return (activation_row){name, "bf16", "rounded to bf16"};
    if (act_rounds_near(act))
        return (activation_row){name, "bf16x2", "rounded to two bf16"};
    if (act_is_split(act))
        return (activation_row){name, "bf16x3", "split into three bf16, which is exact"};
    if (act_block(act) > 32)
        return (activation_row){name, "q8k", "rounded to 8 bits in blocks of 256"};
    return (activation_row){name, "q8", "rounded to 8 bits in blocks of 32"};
}

static const plan_kernel *kernel_of(const account *ac, int32_t use)
{
    return &ac->pl->made.p->kernel[ac->use[use].kernel];
}

/* One for each type, of the kernels that read most of it; rows holds DT_COUNT. */
static int activation_rows(const account *ac, activation_row *rows)
{
    int n = 0;
    bool seen[DT_COUNT] = {false};
    for (int32_t i = 0; i < ac->n_use; i++) {
        const plan_kernel *k = kernel_of(ac, i);
        if (k->type == DT_COUNT || seen[k->type])
            continue;
        seen[k->type] = true;
        rows[n++] = activation_of(k->type, k->act);
    }
    return n;
}

static double seconds_of(const account *ac, int i)
{
    return ac->work[i].bytes / ac->bandwidth;
}

/* Are some of its layers on a card and the others on the machine itself? */
static bool divided(const planned *pl)
{
    return pl->made.run.parts != NULL;
}

/* Of a card that is not here nobody knows. --memory is the card's, where there is one. */
static weft_status find_room(weft_diag *dg, const plan_options *o, const account *ac,
                             memory_room *out)
{
    device *d = ac->pl->made.dev;
    if (o->memory && ac->card == (ac->pl->made.run.dev != NULL))
        *out = (memory_room){(uint64_t)o->memory, "on that machine"};
    else if (!ac->card)
        *out = memory_available("");
    else if (d)
        return d->kind->room(dg, d, out);
    else
        *out = (memory_room){UINT64_MAX, shares_memory(ac) ? "on a GPU that is not here"
                                                           : "on a card that is not here"};
    return WEFT_OK;
}

/* What a process that runs the model has in memory besides: this one has the same. */
static uint64_t program_bytes(const planned *pl)
{
    tok *t = NULL;
    weft_diag *quiet = diag_create(); /* a model without a tokenizer runs on ids */
    weft_status st = pl->m->kind->tokenizer(quiet, pl->m, &t);
    const weight_source *w = pl->m->weights;
    if (w->kind->let_go)
        w->kind->let_go(w); /* pages of its files are mapped weights */
    uint64_t bytes = process_memory(pl->made.p, pl->made.run.n_ctx, NULL, 0);
    if (st == WEFT_OK)
        tok_close(t);
    diag_destroy(quiet);
    return bytes;
}

/* What it takes in memory, on a card or on the machine itself. */
static weft_status sum_up_memory(weft_diag *dg, const plan_options *o, const planned *pl, bool card,
                                 account *ac)
{
    const device *on = card ? pl->made.run.dev : device_cpu();
    *ac = (account){.pl = pl, .card = card};
    WEFT_TRY(session_need_on(dg, pl->made.p, pl->m->weights, &pl->made.run, on, &ac->mem));
    ac->total = session_memory_sum(&ac->mem);
    ac->own = card && on->kind->holds_mapped ? ac->total : session_memory_own(&ac->mem);
    ac->program = card ? 0 : program_bytes(pl); /* what is on a card is not in the process */
    return find_room(dg, o, ac, &ac->available);
}

static weft_status sum_up(weft_diag *dg, const plan_options *o, const planned *pl, arena *a,
                          account *ac)
{
    WEFT_TRY(sum_up_memory(dg, o, pl, pl->made.run.dev != NULL, ac));
    ac->bandwidth = o->bandwidth > 0 ? o->bandwidth * 1e9
                    : on_card(ac)    ? device_rates_of(pl->made.run.dev).bandwidth
                                     : bandwidth_read(pl->made.run.threads);
    ac->phases = plan_phases_of(plan_bucket_for(pl->made.p, 1));
    ac->at[0] = (plan_call){.pos = 0, .n_tok = 1, .n_out = 1};
    ac->at[1] = (plan_call){.pos = pl->made.run.n_ctx - 1, .n_tok = 1, .n_out = 1};
    for (int i = 0; i < 2; i++)
        ac->work[i] = plan_work_of_call(pl->made.p, &ac->at[i]);
    ac->n_use = plan_uses_of_call(pl->made.p, &ac->at[0], a, &ac->use);
    return WEFT_OK;
}

static bool fits(const account *ac)
{
    return ac->own <= ac->available.bytes;
}

/* By how much the mapped weights do not stay in memory. */
static uint64_t read_again(const account *ac)
{
    return fits(ac) && ac->total > ac->available.bytes ? ac->total - ac->available.bytes : 0;
}

/* ---- for people ---- */

static void text_memory(const account *ac, strbuf *out)
{
    memory_row row[MEMORY_ROWS];
    int n_row = memory_rows(ac, row);
    strbuf_add(out, "memory%s\n",
               !divided(ac->pl) ? ""
               : ac->card       ? shares_memory(ac) ? " of the GPU" : " of the card"
                                : " of the machine");
    for (int i = 0; i < n_row; i++)
        strbuf_add(out, "  %-20s %14zu  %10.1f MiB  %s\n", row[i].name, row[i].bytes,
                   (double)row[i].bytes / MIB, row[i].what);
    strbuf_add(out, "  %-20s %14zu  %10.1f MiB\n", "total", ac->total, (double)ac->total / MIB);
    if (ac->program)
        strbuf_add(
            out,
            "  %-20s %14" PRIu64
            "  %10.1f MiB  code, compiled model, tokenizer, sampler: of the process besides\n"
            "  %-20s %14" PRIu64 "  %10.1f MiB  all of it but mapped and cached weights\n",
            "program", ac->program, (double)ac->program / MIB, "resident", ac->own + ac->program,
            (double)(ac->own + ac->program) / MIB);
    if (ac->available.bytes == UINT64_MAX)
        strbuf_add(out, "how much memory %s has is not known\n",
                   on_card(ac) ? card_word(ac) : "this machine");
    else if (fits(ac))
        strbuf_add(out, "fits: %.1f MiB available %s\n", (double)ac->available.bytes / MIB,
                   ac->available.within);
    else
        strbuf_add(out, "does not fit by %.1f MiB: %.1f MiB available %s\n",
                   (double)(ac->own - ac->available.bytes) / MIB, (double)ac->available.bytes / MIB,
                   ac->available.within);
    if (read_again(ac))
        strbuf_add(out,
                   "mapped weights are %.1f MiB more than stays in memory: they are read from "
                   "the disk again for each call, which is slow\n",
                   (double)read_again(ac) / MIB);
}

static void text_kernels(const account *ac, strbuf *out)
{
    strbuf_add(out, "kernels at decode                steps    MiB/token  MFLOP/token\n");
    for (int32_t i = 0; i < ac->n_use; i++)
        strbuf_add(out, "  %-30s %5d %12.3f %12.3f\n", kernel_of(ac, i)->name,
                   (int)ac->use[i].n_step, ac->use[i].work.bytes / MIB,
                   ac->use[i].work.flops / 1e6);
}

static bool can_round_bf16(const account *ac)
{
    if (on_card(ac) || !backend_cpu_rounding() || ac->pl->made.t->be != backend_cpu_best())
        return false;
    for (int32_t i = 0; i < ac->n_use; i++)
        if (kernel_of(ac, i)->type == DT_BF16)
            return true;
    return false;
}

/* How calls of nine rows and more have activations for BF16 and F16 weights on a card; form NULL: the plan has no such calls. */
static activation_row several_rows(const plan *p)
{
    activation_row row = {0};
    for (int32_t i = 0; i < p->n_kernel && strcmp(p->backend, "cuda") == 0; i++) {
        const plan_kernel *k = &p->kernel[i];
        const bool halves = k->type == DT_BF16 || k->type == DT_F16;
        if (!halves || !act_is_split(k->act) || (row.form && !act_rounds_near(k->act)))
            continue;
        row = activation_of(k->type, k->act);
        row.what = act_rounds_near(k->act) ? "rounded to two bf16, in large calls on sm_90 to one "
                                             "f16; --exact has all of their bits"
                   : act_rounds_bf16(k->act) ? "rounded to one bf16"
                                             : "with all of their bits";
    }
    return row;
}

static void text_several(const plan *p, strbuf *out)
{
    const activation_row several = several_rows(p);
    if (several.form)
        strbuf_add(out, "in calls of 9 rows and more those for BF16 and F16 weights: %s\n",
                   several.what);
}

static void text_activations(const account *ac, strbuf *out)
{
    activation_row row[DT_COUNT];
    int n = activation_rows(ac, row);
    for (int i = 0; i < n; i++)
        strbuf_add(out, "activations for %s weights: %s\n", row[i].type, row[i].what);
    text_several(ac->pl->made.p, out);
    if (can_round_bf16(ac))
        strbuf_add(out,
                   "--round-bf16 would round those for BF16 to bf16: faster, logits off by some "
                   "tenths of a percent\n");
}

static void text_phases(const account *ac, strbuf *out)
{
    const plan_phases *ph = &ac->phases;
    strbuf_add(out, "phases at decode %d", (int)ph->all);
    if (ph->layers && ph->per_layer_min == ph->per_layer_max)
        strbuf_add(out, ": %d in each of %d layers, %d outside\n", (int)ph->per_layer_min,
                   (int)ph->layers, (int)ph->outside);
    else if (ph->layers)
        strbuf_add(out, ": %d to %d in each of %d layers, %d outside\n", (int)ph->per_layer_min,
                   (int)ph->per_layer_max, (int)ph->layers, (int)ph->outside);
    else
        strbuf_putc(out, '\n');
}

/* State by tier, where there are several. */
static state *tiers_of(const account *ac)
{
    const plan *p = ac->pl->made.p;
    const session_options *run = &ac->pl->made.run;
    state_options how = {.n_seq = run->n_seq,
                         .n_ctx = run->n_ctx,
                         .page_tok = run->page_tok,
                         .n_page = run->n_page,
                         .n_prefix = run->n_prefix,
                         .type = p->kv,
                         .kv = p->tiers.n_tier ? &p->tiers : NULL};
    state *st = NULL;
    weft_diag *quiet = diag_create();
    if (state_create(quiet, p, &how, &st) != WEFT_OK)
        st = NULL;
    diag_destroy(quiet);
    return st;
}

static void text_tiers(const account *ac, strbuf *out)
{
    state *st = ac->pl->made.p->tiers.n_tier ? tiers_of(ac) : NULL;
    for (int32_t i = 0; st && i < state_tables(st); i++) {
        kpolicy_tier t = state_table_tier(st, i);
        strbuf_add(out, "state as %s%s%s", kform_name(t.key), t.value != t.key ? "/" : "",
                   t.value != t.key ? kform_name(t.value) : "");
        if (t.last != KPOLICY_REST)
            strbuf_add(out, " last=%" PRId32, t.last);
        int64_t pages = state_pages_count(st, i);
        strbuf_add(out, ": %" PRId64 " page%s of %" PRId64 " tokens, %.1f MiB\n", pages,
                   pages == 1 ? "" : "s", state_page_tokens(st, i),
                   (double)pages * (double)state_page_bytes(st, i) / MIB);
    }
    state_destroy(st);
}

static void text_speed(const account *ac, const plan_options *o, strbuf *out)
{
    if (ac->bandwidth <= 0) {
        strbuf_add(out, "\nhow fast %s reads its memory is not known; --bandwidth says it\n",
                   card_word(ac));
        return;
    }
    strbuf_add(out, "\nmemory is read at %.2f GB/s (%s)\n", ac->bandwidth / 1e9,
               o->bandwidth > 0 ? "as given"
               : on_card(ac)    ? "by what the card is made of"
                                : "measured");
    strbuf_add(out, "decode       MiB/token  MFLOP/token   ms/token      tok/s\n");
    for (int i = 0; i < 2; i++)
        strbuf_add(out, "  at %-7" PRId64 " %9.2f %12.2f %10.3f %10.2f\n", ac->at[i].pos,
                   ac->work[i].bytes / MIB, ac->work[i].flops / 1e6, seconds_of(ac, i) * 1e3,
                   1 / seconds_of(ac, i));
}

static void as_text(const account *ac, const plan_options *o, strbuf *out)
{
    const plan *p = ac->pl->made.p;
    const session_options *run = &ac->pl->made.run;
    int n = on_card(ac) ? device_rates_of(run->dev).blocks : run->threads;
    strbuf_add(out,
               "%s: context %" PRId64 ", %" PRId64 " sequence%s, calls of at most %" PRId64
               " rows, %d %s%s, state in %s, kernels up to %s\n",
               p->model, run->n_ctx, run->n_seq, run->n_seq == 1 ? "" : "s", p->n_tok_max, n,
               shares_memory(ac) ? "threadgroup"
               : on_card(ac)     ? "block"
                                 : "thread",
               n == 1 ? "" : "s", plan_kv_text(p, (char[KPOLICY_TEXT_MAX]){0}), p->level);
    text_memory(ac, out);
    text_tiers(ac, out);
    text_kernels(ac, out);
    text_activations(ac, out);
    text_phases(ac, out);
    strbuf_add(out, "buckets of rows");
    for (int32_t i = 0; i < p->n_bucket; i++)
        strbuf_add(out, " %" PRId64, p->bucket[i].n_tok_max);
    text_speed(ac, o, out);
}

/* ---- for programs ---- */

static void json_memory(json_writer *w, const account *ac)
{
    memory_row row[MEMORY_ROWS];
    int n_row = memory_rows(ac, row);
    json_key_open(w, "memory", '{');
    for (int i = 0; i < n_row; i++)
        json_key_int(w, row[i].key, (int64_t)row[i].bytes);
    json_key_int(w, "total", (int64_t)ac->total);
    json_key_int(w, "own", (int64_t)ac->own);
    if (ac->program) {
        json_key_int(w, "program", (int64_t)ac->program);
        json_key_int(w, "resident", (int64_t)(ac->own + ac->program));
    }
    json_key_int(w, "available",
                 ac->available.bytes < INT64_MAX ? (int64_t)ac->available.bytes : 0);
    json_key_text(w, "within", ac->available.within);
    json_key_bool(w, "fits", fits(ac));
    json_key_int(w, "short", fits(ac) ? 0 : (int64_t)(ac->own - ac->available.bytes));
    json_key_int(w, "read_again", (int64_t)read_again(ac));
    json_close(w, '}');
}

static void json_tiers(json_writer *w, const account *ac)
{
    state *st = tiers_of(ac);
    json_key_open(w, "tiers", '[');
    for (int32_t i = 0; st && i < state_tables(st); i++) {
        kpolicy_tier t = state_table_tier(st, i);
        json_open(w, '{');
        json_key_text(w, "keys", kform_name(t.key));
        json_key_text(w, "values", kform_name(t.value));
        json_key_index(w, "last", t.last == KPOLICY_REST ? -1 : t.last);
        json_key_int(w, "page_tokens", state_page_tokens(st, i));
        json_key_int(w, "pages", state_pages_count(st, i));
        json_key_int(w, "bytes", state_pages_count(st, i) * (int64_t)state_page_bytes(st, i));
        json_close(w, '}');
    }
    json_close(w, ']');
    state_destroy(st);
}

static void json_kernels(json_writer *w, const account *ac)
{
    json_key_open(w, "kernels", '[');
    for (int32_t i = 0; i < ac->n_use; i++) {
        json_open(w, '{');
        json_key_text(w, "symbol", kernel_of(ac, i)->name);
        json_key_int(w, "steps", ac->use[i].n_step);
        json_key_double(w, "bytes", ac->use[i].work.bytes);
        json_key_double(w, "flops", ac->use[i].work.flops);
        json_close(w, '}');
    }
    json_close(w, ']');
}

static void json_activations(json_writer *w, const account *ac)
{
    activation_row row[DT_COUNT];
    int n = activation_rows(ac, row);
    json_key_open(w, "activations", '{');
    for (int i = 0; i < n; i++)
        json_key_text(w, row[i].type, row[i].form);
    json_close(w, '}');
}

static void json_several(json_writer *w, const plan *p)
{
    const activation_row several = several_rows(p);
    if (several.form)
        json_key_text(w, "activations_of_9_rows", several.form);
}

static void json_decode(json_writer *w, const account *ac)
{
    json_key_open(w, "decode", '[');
    for (int i = 0; i < 2; i++) {
        json_open(w, '{');
        json_key_int(w, "pos", ac->at[i].pos);
        json_key_double(w, "bytes", ac->work[i].bytes);
        json_key_double(w, "flops", ac->work[i].flops);
        if (ac->bandwidth > 0) {
            json_key_double(w, "seconds", seconds_of(ac, i));
            json_key_double(w, "tok_per_s", 1 / seconds_of(ac, i));
        }
        json_close(w, '}');
    }
    json_close(w, ']');
}

static void as_json(const account *ac, const plan_options *o, strbuf *out)
{
    const plan *p = ac->pl->made.p;
    json_writer w = {.out = out};
    json_open(&w, '{');
    json_key_text(&w, "model", p->model);
    json_key_int(&w, "context", ac->pl->made.run.n_ctx);
    json_key_int(&w, "sequences", ac->pl->made.run.n_seq);
    json_key_int(&w, "rows", p->n_tok_max);
    json_key_int(&w, "threads", ac->pl->made.run.threads);
    json_key_text(&w, "kv", plan_kv_text(p, (char[KPOLICY_TEXT_MAX]){0}));
    json_key_text(&w, "device", p->backend);
    json_key_text(&w, "variant", p->level);
    json_memory(&w, ac);
    json_tiers(&w, ac);
    json_kernels(&w, ac);
    json_activations(&w, ac);
    json_several(&w, p);
    json_key_open(&w, "phases", '{');
    json_key_int(&w, "all", ac->phases.all);
    json_key_int(&w, "layers", ac->phases.layers);
    json_key_int(&w, "per_layer_min", ac->phases.per_layer_min);
    json_key_int(&w, "per_layer_max", ac->phases.per_layer_max);
    json_key_int(&w, "outside", ac->phases.outside);
    json_close(&w, '}');
    json_key_open(&w, "buckets", '[');
    for (int32_t i = 0; i < p->n_bucket; i++)
        json_int(&w, p->bucket[i].n_tok_max);
    json_close(&w, ']');
    json_key_double(&w, "bandwidth", ac->bandwidth);
    json_key_bool(&w, "bandwidth_measured", o->bandwidth <= 0 && !on_card(ac));
    json_decode(&w, ac);
    json_close(&w, '}');
    strbuf_putc(out, '\n');
}

/* ---- layers on a card and on the machine ---- */

/* The plan of the layers that are there; NULL: they are none. */
static const plan *plan_on_card(const planned *pl)
{
    const plan_parts *parts = pl->made.run.parts;
    for (int32_t i = 0; i < parts->n_part; i++)
        if (parts->part[i].card)
            return parts->part[i].p;
    return NULL;
}

static int64_t layers_on_card(const planned *pl)
{
    const plan *p = plan_on_card(pl);
    int32_t first;
    return p ? plan_layers_of(p, &first) : 0;
}

static void divided_text(const account ac[2], strbuf *out)
{
    const plan *p = ac[0].pl->made.p;
    const session_options *run = &ac[0].pl->made.run;
    strbuf_add(out,
               "%s: context %" PRId64 ", %" PRId64 " sequence%s, calls of at most %" PRId64
               " rows, state in %s, the last %" PRId64
               " of %d layers on a card, the rest on the CPU\n",
               p->model, run->n_ctx, run->n_seq, run->n_seq == 1 ? "" : "s", p->n_tok_max,
               plan_kv_text(p, (char[KPOLICY_TEXT_MAX]){0}), layers_on_card(ac[0].pl),
               (int)plan_phases_of(plan_bucket_for(p, 1)).layers);
    for (int i = 0; i < 2; i++)
        text_memory(&ac[i], out);
    if (plan_on_card(ac[0].pl))
        text_several(plan_on_card(ac[0].pl), out);
}

static void divided_json(const account ac[2], strbuf *out)
{
    const plan *p = ac[0].pl->made.p;
    json_writer w = {.out = out};
    json_open(&w, '{');
    json_key_text(&w, "model", p->model);
    json_key_int(&w, "context", ac[0].pl->made.run.n_ctx);
    json_key_int(&w, "sequences", ac[0].pl->made.run.n_seq);
    json_key_int(&w, "rows", p->n_tok_max);
    json_key_text(&w, "kv", plan_kv_text(p, (char[KPOLICY_TEXT_MAX]){0}));
    json_key_int(&w, "layers_on_card", layers_on_card(ac[0].pl));
    if (plan_on_card(ac[0].pl))
        json_several(&w, plan_on_card(ac[0].pl));
    json_key_open(&w, "devices", '[');
    for (int i = 0; i < 2; i++) {
        json_open(&w, '{');
        json_key_text(&w, "device", ac[i].card ? ac[i].pl->made.run.dev->kind->name : "cpu");
        json_memory(&w, &ac[i]);
        json_close(&w, '}');
    }
    json_close(&w, ']');
    json_close(&w, '}');
    strbuf_putc(out, '\n');
}

/* ---- the verb ---- */

/* W0902, where it does not. */
static weft_status check_fits(weft_diag *dg, const plan_options *o, const account *ac)
{
    if (fits(ac))
        return WEFT_OK;
    return weft_fail(dg, W0902, WEFT_NOWHERE,
                     "%s needs %zu bytes and %" PRIu64 " are available %s: it does not fit "
                     "by %.1f MiB",
                     o->open.random ? o->open.random : o->open.model, ac->own, ac->available.bytes,
                     ac->available.within, (double)(ac->own - ac->available.bytes) / MIB);
}

static weft_status report(cli *c, const plan_options *o, const planned *pl, arena *a)
{
    strbuf out = {0};
    account ac[2] = {{0}};
    if (divided(pl)) {
        WEFT_TRY(sum_up_memory(c->dg, o, pl, true, &ac[0]));
        WEFT_TRY(sum_up_memory(c->dg, o, pl, false, &ac[1]));
        (c->common.json ? divided_json : divided_text)(ac, &out);
    } else {
        WEFT_TRY(sum_up(c->dg, o, pl, a, &ac[0]));
        (c->common.json ? as_json : as_text)(&ac[0], o, &out);
    }
    cli_print_all(c, &out);
    WEFT_TRY(check_fits(c->dg, o, &ac[0]));
    return divided(pl) ? check_fits(c->dg, o, &ac[1]) : WEFT_OK;
}

int verb_plan(cli *c)
{
    const plan_options *o = c->options;
    planned pl = {0};
    arena *a = arena_create();
    planned_options want = {.sequences = o->sequences, .purpose = API_PLANS_MEMORY};
    weft_status st = level_flags_backend(c->dg, &o->at, &want.be);
    if (st == WEFT_OK)
        st = planned_open(c->dg, &o->open, &want, &pl);
    if (st == WEFT_OK)
        st = report(c, o, &pl, a);
    c->common.json = false; /* the document is the plan: messages go to stderr */
    cli_report(c, c->dg);
    planned_close(&pl);
    arena_destroy(a);
    return cli_exit_of(st);
}
