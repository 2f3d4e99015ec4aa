/* generation.c - a text that goes on in a session: what its sequence holds of it. */
#include "runtime/engine/generation_impl.h"

#include "runtime/base/mem.h"
#include <string.h>

weft_status generation_change(weft_diag *dg, generation *g, const generation_options *o)
{
    WEFT_TRY(request_change(dg, g->r, &o->how));
    g->key = o->key;
    return WEFT_OK;
}

static weft_status check_seq(weft_diag *dg, const engine *e, int64_t seq)
{
    if (seq < 0 || seq >= e->most.sequences)
        return weft_fail(dg, W1403, WEFT_NOWHERE, "there is no sequence %lld: the session has %lld",
                         (long long)seq, (long long)e->most.sequences);
    return WEFT_OK;
}

request_limits engine_limits(const engine *e)
{
    return (request_limits){
        .vocab = e->vocab, .n_vocab = session_plan_of(e->run)->n_vocab, .context = e->most.context};
}

weft_status generation_create(weft_diag *dg, const engine *e, tok *text,
                              const generation_options *o, generation **out_g)
{
    if (o->seq != GENERATION_NOWHERE)
        WEFT_TRY(check_seq(dg, e, o->seq));
    request_limits most = engine_limits(e);
    request *r;
    WEFT_TRY(request_create(dg, &most, text, &o->how, &r));
    generation *g = mem_alloc(sizeof *g);
    *g = (generation){.e = e, .r = r, .seq = o->seq, .key = o->key};
    *out_g = g;
    return WEFT_OK;
}

void generation_destroy(generation *g)
{
    if (!g)
        return;
    request_destroy(g->r);
    mem_free(g->sum);
    mem_free(g->mean);
    mem_free(g);
}

const request *generation_request(const generation *g)
{
    return g->r;
}

/* ---- prompts ---- */

#define NEVER UINT64_MAX /* it was not looked for yet */

/* Of all that a text's state depends on besides its tokens. */
static uint64_t key_of(const generation *g)
{
    return g->key ^ g->lora;
}

void generation_note_mix(generation *g)
{
    uint64_t key = session_lora_key(g->e->run, g->seq);
    if (g->lora != key)
        g->lora = g->n_held == 0 ? key : GENERATION_MIXED;
}

void generation_look(generation *g)
{
    session *run = g->e->run;
    uint64_t turn = session_prefix_turn(run);
    bool again = g->looked != NEVER;
    if (turn == g->looked || g->n_held != g->n_kept || g->r->n_id < 2 || g->sum)
        return;
    g->looked = turn;
    /* The last token is always evaluated: its logits are wanted. */
    prefix_taken t = session_prefix_take(run, g->seq, key_of(g), g->r->ids, (int64_t)g->r->n_id - 1,
                                         (int64_t)g->n_held, again);
    if (t.length > 0)
        g->n_held = g->n_kept = (size_t)t.length;
    g->part = (size_t)t.common;
}

void generation_keep(generation *g)
{
    session *run = g->e->run;
    if (session_length(run, g->seq) != (int64_t)g->n_held || g->lora == GENERATION_MIXED)
        return; /* somebody else has cut or filled it, or its adapters were changed on the way */
    if (g->n_held > 0 && (g->n_held == g->part || g->n_held == g->r->n_prompt || g->r->ended))
        session_prefix_put(run, g->seq, key_of(g), g->r->ids, (int64_t)g->n_held);
}

weft_status generation_prompt(weft_diag *dg, generation *g, const int32_t *ids, size_t n)
{
    session *run = g->e->run;
    size_t same = 0;
    request_limits most = engine_limits(g->e);
    WEFT_TRY(check_seq(dg, g->e, g->seq));
    WEFT_TRY(request_check(dg, &most, ids, n));
    /* Somebody else may have cut or filled the sequence; then what it holds is not known. Text that was computed with other
     * adapters is of no use. */
    uint64_t lora = session_lora_key(run, g->seq);
    if (session_length(run, g->seq) == (int64_t)g->n_held && g->lora == lora)
        while (same < g->n_held && same + 1 < n && g->r->ids[same] == ids[same])
            same++; /* the last token is always evaluated: its logits are wanted */
    /* A window that the next token would see may be gone; then all is evaluated again. */
    if (same < g->n_held)
        same = (size_t)session_keepable(run, g->seq, (int64_t)same);
    WEFT_TRY(session_truncate(dg, run, g->seq, (int64_t)same));
    g->n_held = g->n_kept = same;
    g->lora = lora;
    g->looked = NEVER;
    g->part = 0;
    request_prompt(g->r, ids, n);
    generation_look(g);
    return WEFT_OK;
}

weft_status generation_begin(weft_diag *dg, generation *g, const int32_t *ids, size_t n)
{
    request_limits most = engine_limits(g->e);
    WEFT_ASSERT(g->seq == GENERATION_NOWHERE);
    WEFT_TRY(request_check(dg, &most, ids, n));
    request_prompt(g->r, ids, n);
    return WEFT_OK;
}

weft_status generation_fork(weft_diag *dg, const generation *from, generation *to, bool prompt_only)
{
    if (from == to || from->e->run != to->e->run)
        return weft_fail(dg, W1403, WEFT_NOWHERE,
                         "a generation is forked into another one of the same session");
    if (from->r->n_id == 0)
        return weft_fail(dg, W1406, WEFT_NOWHERE, "a generation without a prompt was forked");
    size_t held = from->n_held; /* the last token of a prompt is evaluated again, for its logits */
    if (prompt_only && held > from->r->n_prompt - 1)
        held = from->r->n_prompt - 1;
    WEFT_TRY(session_fork(dg, from->e->run, from->seq, to->seq, (int64_t)held));
    to->n_held = held;
    to->n_kept = prompt_only ? held : from->n_kept;
    to->looked = from->looked;
    to->lora = from->lora;
    to->part = 0;
    return request_copy(dg, from->r, to->r, prompt_only);
}

/* ---- files ---- */

static uint64_t adapters_of(const generation *g)
{
    return g->key ^ session_lora_key(g->e->run, g->seq);
}

weft_status generation_save(weft_diag *dg, const generation *g, const char *path)
{
    if (g->r->n_id == 0)
        return weft_fail(dg, W1406, WEFT_NOWHERE, "there is no text to save");
    if (g->lora == GENERATION_MIXED)
        return weft_fail(dg, W1418, WEFT_NOWHERE,
                         "parts of the text were computed with different adapters: no sequence "
                         "could go on from its state");
    /* The token that was chosen last is not evaluated yet; one that ends an answer is no text. */
    bool next = g->r->n_id == g->n_held + 1 && g->r->ended != GEN_MODEL;
    session_text text = {.ids = g->r->ids, .n = (int64_t)g->n_held, .next = next};
    return session_save(dg, g->e->run, g->seq, key_of(g), &text, path);
}

weft_status generation_load(weft_diag *dg, generation *g, const char *path)
{
    session_text text;
    WEFT_TRY(session_load(dg, g->e->run, g->seq, adapters_of(g), path, &text));
    g->n_held = g->n_kept = (size_t)text.n; /* at most the context, and one more may come next */
    request_set(g->r, text.ids, g->n_held + (size_t)text.next);
    mem_free(text.ids);
    g->lora = session_lora_key(g->e->run, g->seq);
    return WEFT_OK;
}

/* ---- sequences ---- */

/* Nothing of its text is in a sequence. */
static void forget(generation *g, int64_t seq)
{
    g->seq = seq;
    g->n_held = g->n_kept = 0;
    g->part = 0;
    g->looked = NEVER;
}

/* Cutting to 0 cannot fail where there is the sequence. */
static void empty(session *run, int64_t seq)
{
    weft_diag *quiet = diag_create();
    weft_status st = session_truncate(quiet, run, seq, 0);
    WEFT_ASSERT(st == WEFT_OK);
    diag_destroy(quiet);
}

weft_status generation_place(weft_diag *dg, generation *g, int64_t seq)
{
    WEFT_TRY(check_seq(dg, g->e, seq));
    WEFT_TRY(session_truncate(dg, g->e->run, seq, 0));
    forget(g, seq);
    g->lora = session_lora_key(g->e->run, seq);
    if (g->sum)
        memset(g->sum, 0, (size_t)g->e->hidden * sizeof *g->sum);
    if (g->r->n_id > 1)
        generation_look(g);
    return WEFT_OK;
}

weft_status generation_place_by(weft_diag *dg, generation *g, int64_t seq, const generation *from,
                                size_t length)
{
    WEFT_TRY(check_seq(dg, g->e, seq));
    const request *a = g->r, *b = from->r;
    size_t n = length < from->n_held ? length : from->n_held, same = 0;
    while (same < n && same + 1 < a->n_id && same < b->n_id && a->ids[same] == b->ids[same])
        same++;
    session *run = g->e->run;
    if (g->sum || from->seq < 0 || from->key != g->key || from->lora == GENERATION_MIXED ||
        same == 0 || session_keepable(run, from->seq, (int64_t)same) != (int64_t)same)
        return generation_place(dg, g, seq);
    WEFT_TRY(session_fork(dg, run, from->seq, seq, (int64_t)same)); /* with its adapters */
    forget(g, seq);
    g->n_held = g->n_kept = same;
    g->lora = from->lora;
    return WEFT_OK;
}

/* The beginning of its text, for others: what it holds now, which may be anywhere in it. */
static void keep_all(generation *g)
{
    session *run = g->e->run;
    if (g->n_held > 0 && g->lora != GENERATION_MIXED &&
        session_length(run, g->seq) == (int64_t)g->n_held)
        session_prefix_put(run, g->seq, key_of(g), g->r->ids, (int64_t)g->n_held);
}

void generation_leave(generation *g)
{
    if (g->seq < 0)
        return;
    keep_all(g);
    empty(g->e->run, g->seq);
    forget(g, GENERATION_NOWHERE);
}

weft_status generation_swap_out(weft_diag *dg, generation *g, const char *path)
{
    WEFT_TRY(generation_save(dg, g, path));
    empty(g->e->run, g->seq);
    forget(g, GENERATION_NOWHERE);
    return WEFT_OK;
}

weft_status generation_swap_in(weft_diag *dg, generation *g, int64_t seq, const char *path)
{
    session *run = g->e->run;
    session_text text;
    WEFT_TRY(check_seq(dg, g->e, seq));
    uint64_t lora = session_lora_key(run, seq);
    WEFT_TRY(session_load(dg, run, seq, g->key ^ lora, path, &text));
    size_t n = (size_t)text.n;
    bool same = n < g->r->n_id && memcmp(text.ids, g->r->ids, n * sizeof *text.ids) == 0;
    mem_free(text.ids);
    if (!same) {
        empty(run, seq);
        return weft_fail(dg, W1419, WEFT_NOWHERE, "%s holds another text", path);
    }
    forget(g, seq);
    g->n_held = g->n_kept = n;
    g->lora = lora;
    return WEFT_OK;
}

int64_t generation_seq(const generation *g)
{
    return g->seq;
}

size_t generation_held(const generation *g)
{
    return g->n_held;
}

size_t generation_kept(const generation *g)
{
    return g->n_kept;
}

void generation_part(generation *g, size_t at)
{
    if (at > g->n_held && (g->part <= g->n_held || g->part > at))
        g->part = at;
}

/* ---- embeddings ---- */

weft_status generation_pool(weft_diag *dg, generation *g)
{
    size_t n = (size_t)g->e->hidden;
    WEFT_ASSERT(g->seq == GENERATION_NOWHERE && !g->sum);
    if (n == 0)
        return weft_fail(dg, W1406, WEFT_NOWHERE, "the session has no output hidden");
    g->mean = mem_alloc(mem_product(n, sizeof *g->mean));
    g->sum = mem_alloc(mem_product(n, sizeof *g->sum));
    return WEFT_OK;
}

const float *generation_pooled(generation *g, int64_t *out_width)
{
    *out_width = g->e->hidden;
    if (!g->sum || g->n_held < g->r->n_prompt)
        return NULL;
    for (int64_t i = 0; i < g->e->hidden; i++)
        g->mean[i] = (float)(g->sum[i] / (double)g->n_held);
    return g->mean;
}

/* ---- tokens ---- */

const char *generation_host_why(const generation *g)
{
    return session_chooses(g->e->run) ? request_host_why(g->r) : "its device";
}

bool generation_on_device(const generation *g)
{
    return !generation_host_why(g);
}

bool generation_goes_on(const generation *g)
{
    const request *r = g->r;
    size_t ids = r->n_id + 1; /* with the token that is not known yet */
    bool last = r->o.max_tokens >= 0 && (int64_t)(ids - r->n_prompt) >= r->o.max_tokens;
    /* What others may take is put where they find it between two calls. */
    bool put = g->e->share && (r->n_id == r->n_prompt || r->n_id == g->part);
    return !last && !put && (int64_t)ids <= g->e->most.context;
}

void generation_stop(generation *g, gen_end end)
{
    request_stop(g->r, end);
    if (g->seq >= 0)
        generation_keep(g);
}

const gen_piece *generation_piece(const generation *g)
{
    return request_piece(g->r);
}

const int32_t *generation_ids(const generation *g, size_t *out_n)
{
    *out_n = g->r->n_id - g->r->n_prompt;
    return g->r->ids + g->r->n_prompt;
}

const int32_t *generation_text(const generation *g, size_t *out_n)
{
    return request_ids(g->r, out_n);
}

void generation_progress(const generation *g, int64_t *out_done, int64_t *out_total)
{
    size_t n_prompt = g->r->n_prompt, done = g->n_held < n_prompt ? g->n_held : n_prompt;
    *out_done = (int64_t)(done - g->n_kept);
    *out_total = (int64_t)(n_prompt - g->n_kept);
}
