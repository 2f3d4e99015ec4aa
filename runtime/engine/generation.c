/* generation.c - one text that goes on: what it is made of, and what each token adds to it. */
#include "runtime/engine/generation_impl.h"

#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include <string.h>

const char *gen_end_name(gen_end end)
{
    static const char *const name[] = {
#define GENEND(name, text, meaning) [GEN_##name] = text,
#include "runtime/engine/gen_end.def"
#undef GENEND
    };
    return name[end];
}

/* ---- creating ---- */

size_t dry_breakers(tok *text, int32_t out[DRY_BREAKERS])
{
    static const char *const texts[DRY_BREAKERS] = {"\n", ":", "\"", "*"};
    size_t n = 0;
    for (int i = 0; i < DRY_BREAKERS; i++) {
        tok_ids one = {0};
        weft_diag *quiet = diag_create(); /* a text without a token is no fault */
        if (tok_encode(quiet, text, str_of(texts[i]), (tok_encode_flags){0}, &one) == WEFT_OK &&
            one.n == 1)
            out[n++] = one.at[0];
        diag_destroy(quiet);
        VEC_FREE(&one);
    }
    return n;
}

static weft_status make_sampler(weft_diag *dg, const generation *g, const sampler_options *given,
                                sampler **out_s)
{
    int32_t breakers[DRY_BREAKERS];
    sampler_options o = *given;
    if (o.dry_multiplier > 0 && !o.dry_breakers) {
        o.n_breaker = dry_breakers(g->text, breakers);
        o.dry_breakers = breakers;
    }
    return sampler_create(dg, &o, g->e->vocab, g->e->most.context, out_s);
}

/* What belongs to an answer goes; the text and what the sequence holds stay. */
static void drop_options(generation *g)
{
    tok_stream_destroy(g->stream);
    stop_deinit(&g->stops);
    sampler_destroy(g->pick);
    mem_free(g->top);
    arena_destroy(g->a);
}

weft_status generation_change(weft_diag *dg, generation *g, const generation_options *o)
{
    sampler *pick;
    WEFT_TRY(make_sampler(dg, g, &o->pick, &pick));
    arena *a = arena_create();
    const char **stops = ARENA_ARRAY(a, const char *, o->n_stop + 1);
    for (size_t i = 0; i < o->n_stop; i++)
        stops[i] = arena_str(a, str_of(o->stops[i])).p;
    token_logprob *top =
        o->n_top > 0 ? mem_alloc(mem_product((size_t)o->n_top, sizeof *top)) : NULL;
    tok_stream *stream = tok_stream_create(g->text, !o->show_special);
    stop_watch watch;
    stop_init(&watch, stops, o->n_stop);
    drop_options(g); /* all memory is taken */
    int64_t seq = g->o.seq;
    g->o = *o;
    g->o.seq = seq;
    g->pick = pick;
    g->a = a;
    g->top = top;
    g->stream = stream;
    g->stops = watch;
    g->ended = GEN_CALLER;
    generation_wait(g);
    return WEFT_OK;
}

weft_status generation_create(weft_diag *dg, const engine *e, tok *text,
                              const generation_options *o, generation **out_g)
{
    if (o->seq < 0 || o->seq >= e->most.sequences)
        return weft_fail(dg, W1403, WEFT_NOWHERE, "there is no sequence %lld: the session has %lld",
                         (long long)o->seq, (long long)e->most.sequences);
    generation *g = mem_alloc(sizeof *g);
    *g = (generation){.e = e, .text = text, .o.seq = o->seq};
    g->ids = mem_alloc(mem_product((size_t)e->most.context + 1, sizeof *g->ids));
    strbuf_start(&g->decoded);
    strbuf_start(&g->shown);
    weft_status st = generation_change(dg, g, o);
    if (st == WEFT_OK)
        *out_g = g;
    else
        generation_destroy(g);
    return st;
}

void generation_destroy(generation *g)
{
    if (!g)
        return;
    drop_options(g);
    strbuf_free(&g->decoded);
    strbuf_free(&g->shown);
    mem_free(g->ids);
    mem_free(g);
}

/* ---- prompts ---- */

/* Nothing of an answer is left: decoder, stop texts, piece. */
static void begin_answer(generation *g)
{
    tok_stream_reset(g->stream);
    stop_reset(&g->stops);
    strbuf_reset(&g->shown);
    g->ended = g->o.max_tokens == 0 ? GEN_LENGTH : GEN_NONE;
    generation_wait(g);
}

#define NEVER UINT64_MAX /* it was not looked for yet */

/* Of all that a text's state depends on besides its tokens. */
static uint64_t key_of(const generation *g)
{
    return g->o.key ^ g->lora;
}

void generation_note_mix(generation *g)
{
    uint64_t key = session_lora_key(g->e->run, g->o.seq);
    if (g->lora != key)
        g->lora = g->n_held == 0 ? key : GENERATION_MIXED;
}

void generation_look(generation *g)
{
    session *run = g->e->run;
    uint64_t turn = session_prefix_turn(run);
    bool again = g->looked != NEVER;
    if (turn == g->looked || g->n_held != g->n_kept || g->n_prompt < 2)
        return;
    g->looked = turn;
    /* The last token is always evaluated: its logits are wanted. */
    prefix_taken t = session_prefix_take(run, g->o.seq, key_of(g), g->ids, (int64_t)g->n_prompt - 1,
                                         (int64_t)g->n_held, again);
    if (t.length > 0)
        g->n_held = g->n_kept = (size_t)t.length;
    g->part = (size_t)t.common;
}

void generation_keep(generation *g)
{
    session *run = g->e->run;
    if (session_length(run, g->o.seq) != (int64_t)g->n_held || g->lora == GENERATION_MIXED)
        return; /* somebody else has cut or filled it, or its adapters were changed on the way */
    if (g->n_held > 0 && (g->n_held == g->part || g->n_held == g->n_prompt || g->ended))
        session_prefix_put(run, g->o.seq, key_of(g), g->ids, (int64_t)g->n_held);
}

weft_status generation_prompt(weft_diag *dg, generation *g, const int32_t *ids, size_t n)
{
    session *run = g->e->run;
    size_t same = 0;
    if (n == 0)
        return weft_fail(dg, W1406, WEFT_NOWHERE,
                         "there is nothing to continue: the text has no tokens");
    if (n >= (size_t)g->e->most.context)
        return weft_fail(dg, W1404, WEFT_NOWHERE,
                         "the text has %zu tokens, the context holds %lld and one more is to come",
                         n, (long long)g->e->most.context);
    int64_t n_vocab = session_plan_of(run)->n_vocab;
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (n_vocab > 0 && ids[i] >= n_vocab))
            return weft_fail(dg, W1405, WEFT_NOWHERE,
                             "token %zu of the text is %d; the model has tokens 0 to %lld", i,
                             (int)ids[i], (long long)n_vocab - 1);
    /* Somebody else may have cut or filled the sequence; then what it holds is not known. Text that was computed with other
     * adapters is of no use. */
    uint64_t lora = session_lora_key(run, g->o.seq);
    if (session_length(run, g->o.seq) == (int64_t)g->n_held && g->lora == lora)
        while (same < g->n_held && same + 1 < n && g->ids[same] == ids[same])
            same++; /* the last token is always evaluated: its logits are wanted */
    /* A window that the next token would see may be gone; then all is evaluated again. */
    if (same < g->n_held)
        same = (size_t)session_keepable(run, g->o.seq, (int64_t)same);
    WEFT_TRY(session_truncate(dg, run, g->o.seq, (int64_t)same));
    memmove(g->ids, ids, n * sizeof *ids);
    g->n_held = g->n_kept = same;
    g->n_id = g->n_prompt = n;
    g->lora = lora;
    g->looked = NEVER;
    g->part = 0;
    generation_look(g);
    sampler_reset(g->pick);
    for (size_t i = 0; i < n; i++)
        sampler_accept(g->pick, g->ids[i]);
    begin_answer(g);
    return WEFT_OK;
}

/* Memory was short when the sequence had gone on: the text cannot follow it. */
static weft_status fail_memory(weft_diag *dg, generation *g, const mem_scope *scope)
{
    g->ended = GEN_FAILED;
    generation_wait(g);
    return diag_fail_memory(dg, scope->bytes);
}

/* What was decoded of the answer so far. */
static weft_status decode_again(weft_diag *dg, generation *g)
{
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0)
        return fail_memory(dg, g, &scope);
    for (size_t i = g->n_prompt; i < g->n_id; i++) {
        strbuf_reset(&g->decoded);
        tok_stream_put(g->stream, g->ids[i], &g->decoded);
        stop_put(&g->stops, strbuf_view(&g->decoded), &g->shown);
    }
    return WEFT_OK;
}

/* Where a text that was taken over stands, by its own options. */
static gen_end end_so_far(const generation *g, gen_end of_other)
{
    bool length = g->o.max_tokens >= 0 && (int64_t)(g->n_id - g->n_prompt) >= g->o.max_tokens;
    if (of_other == GEN_MODEL || of_other == GEN_CONTEXT || of_other == GEN_FAILED)
        return of_other;
    return g->stops.found >= 0 ? GEN_STOP : length ? GEN_LENGTH : GEN_NONE;
}

weft_status generation_fork(weft_diag *dg, const generation *from, generation *to, bool prompt_only)
{
    if (from == to || from->e->run != to->e->run)
        return weft_fail(dg, W1403, WEFT_NOWHERE,
                         "a generation is forked into another one of the same session");
    if (from->n_id == 0)
        return weft_fail(dg, W1406, WEFT_NOWHERE, "a generation without a prompt was forked");
    size_t held = from->n_held; /* the last token of a prompt is evaluated again, for its logits */
    if (prompt_only && held > from->n_prompt - 1)
        held = from->n_prompt - 1;
    WEFT_TRY(session_fork(dg, from->e->run, from->o.seq, to->o.seq, (int64_t)held));
    to->n_id = prompt_only ? from->n_prompt : from->n_id;
    memcpy(to->ids, from->ids, to->n_id * sizeof *to->ids);
    to->n_held = held;
    to->n_kept = prompt_only ? held : from->n_kept;
    to->n_prompt = from->n_prompt;
    to->looked = from->looked;
    to->lora = from->lora;
    to->part = 0;
    sampler_reset(to->pick);
    for (size_t i = 0; i < to->n_id; i++)
        sampler_accept(to->pick, to->ids[i]);
    begin_answer(to);
    WEFT_TRY(decode_again(dg, to));
    to->ended = end_so_far(to, prompt_only ? GEN_NONE : from->ended);
    generation_wait(to);
    return WEFT_OK;
}

/* ---- files ---- */

static uint64_t adapters_of(const generation *g)
{
    return g->o.key ^ session_lora_key(g->e->run, g->o.seq);
}

weft_status generation_save(weft_diag *dg, const generation *g, const char *path)
{
    if (g->n_id == 0)
        return weft_fail(dg, W1406, WEFT_NOWHERE, "there is no text to save");
    if (g->lora == GENERATION_MIXED)
        return weft_fail(dg, W1418, WEFT_NOWHERE,
                         "parts of the text were computed with different adapters: no sequence "
                         "could go on from its state");
    /* The token that was chosen last is not evaluated yet; one that ends an answer is no text. */
    bool next = g->n_id == g->n_held + 1 && g->ended != GEN_MODEL;
    session_text text = {.ids = g->ids, .n = (int64_t)g->n_held, .next = next};
    return session_save(dg, g->e->run, g->o.seq, key_of(g), &text, path);
}

weft_status generation_load(weft_diag *dg, generation *g, const char *path)
{
    session_text text;
    WEFT_TRY(session_load(dg, g->e->run, g->o.seq, adapters_of(g), path, &text));
    g->n_held = g->n_kept = (size_t)text.n; /* at most the context, and one more may come next */
    g->n_id = g->n_prompt = g->n_held + (size_t)text.next;
    memcpy(g->ids, text.ids, g->n_id * sizeof *g->ids);
    mem_free(text.ids);
    g->lora = session_lora_key(g->e->run, g->o.seq);
    g->ended = GEN_CALLER;
    generation_wait(g);
    return WEFT_OK;
}

/* ---- tokens ---- */

/* What a token adds to the text, or what is left of it when id is TOK_NONE; true: a stop text came. */
static bool add_text(generation *g, int32_t id)
{
    strbuf_reset(&g->decoded);
    if (id == TOK_NONE)
        tok_stream_flush(g->stream, &g->decoded);
    else
        tok_stream_put(g->stream, id, &g->decoded);
    bool stopped = stop_put(&g->stops, strbuf_view(&g->decoded), &g->shown);
    if (id == TOK_NONE && !stopped)
        stop_flush(&g->stops, &g->shown);
    return stopped;
}

/* What ends it behind the token that was added last; GEN_NONE: nothing. */
static gen_end end_of(generation *g, int32_t id)
{
    if (tok_is_end(g->text, id) && !g->o.ignore_end)
        return GEN_MODEL;
    if (add_text(g, id))
        return GEN_STOP;
    if (g->o.max_tokens >= 0 && (int64_t)(g->n_id - g->n_prompt) >= g->o.max_tokens)
        return GEN_LENGTH;
    return (int64_t)g->n_id > g->e->most.context ? GEN_CONTEXT : GEN_NONE;
}

/* The next token, and logits if it was chosen from them here. */
static weft_status take(weft_diag *dg, generation *g, int32_t id, const float *logits)
{
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0)
        return fail_memory(dg, g, &scope);
    int64_t vocab = g->e->vocab;
    if (id < 0) {
        g->ended = g->piece.end = GEN_FAILED;
        return weft_fail(dg, W1410, WEFT_NOWHERE,
                         "no logit behind token %zu is a number that can be chosen", g->n_id);
    }
    gen_piece p = {.id = id};
    sampler_accept(g->pick, id);
    g->ids[g->n_id++] = id;
    if (g->o.n_top >= 0 && logits) {
        p.logprob = logprob_of(logits, vocab, id);
        p.n_top = g->o.n_top ? logprobs_top(logits, vocab, g->top, g->o.n_top) : 0;
        p.top = g->top;
    }
    strbuf_reset(&g->shown);
    p.end = end_of(g, id);
    if (p.end && p.end != GEN_STOP && add_text(g, TOK_NONE))
        p.end = GEN_STOP;
    p.text = strbuf_view(&g->shown);
    g->ended = p.end;
    g->piece = p;
    return WEFT_OK;
}

weft_status generation_take(weft_diag *dg, generation *g, const float *logits)
{
    return take(dg, g, sampler_choose(g->pick, logits), logits);
}

weft_status generation_take_id(weft_diag *dg, generation *g, int32_t id)
{
    return take(dg, g, id, NULL);
}

const char *generation_host_why(const generation *g)
{
    ksample how;
    if (!session_chooses(g->e->run))
        return "its device";
    return g->o.n_top >= 0 ? "log-probabilities" : sampler_for_device(g->pick, &how);
}

bool generation_on_device(const generation *g)
{
    return !generation_host_why(g);
}

bool generation_goes_on(const generation *g)
{
    size_t ids = g->n_id + 1; /* with the token that is not known yet */
    bool last = g->o.max_tokens >= 0 && (int64_t)(ids - g->n_prompt) >= g->o.max_tokens;
    /* What others may take is put where they find it between two calls. */
    bool put = g->e->share && (g->n_id == g->n_prompt || g->n_id == g->part);
    return !last && !put && (int64_t)ids <= g->e->most.context;
}

void generation_stop(generation *g, gen_end end)
{
    strbuf_reset(&g->shown);
    if (g->ended == GEN_NONE)
        g->ended = add_text(g, TOK_NONE) ? GEN_STOP : end;
    generation_keep(g);
    generation_wait(g);
    g->piece.text = strbuf_view(&g->shown);
}

void generation_wait(generation *g)
{
    g->piece = (gen_piece){.id = TOK_NONE, .end = g->ended};
}

const gen_piece *generation_piece(const generation *g)
{
    return &g->piece;
}

const int32_t *generation_ids(const generation *g, size_t *out_n)
{
    *out_n = g->n_id - g->n_prompt;
    return g->ids + g->n_prompt;
}

const int32_t *generation_text(const generation *g, size_t *out_n)
{
    *out_n = g->n_id;
    return g->ids;
}

void generation_progress(const generation *g, int64_t *out_done, int64_t *out_total)
{
    size_t done = g->n_held < g->n_prompt ? g->n_held : g->n_prompt;
    *out_done = (int64_t)(done - g->n_kept);
    *out_total = (int64_t)(g->n_prompt - g->n_kept);
}
