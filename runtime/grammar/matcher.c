/* matcher.c - a text as it grows, token by token. */
#include "runtime/grammar/grammar_impl.h"

#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"

int64_t grammar_tokens(const grammar *g)
{
    return g->v->n_token;
}

/* ---- memory ---- */

size_t grammar_bytes(const grammar *g)
{
    return sizeof *g + automaton_bytes(&g->m) + pda_bytes(&g->p) + g->masks.bytes;
}

/* The same stack in another store. */
static int32_t node_copy(const pda *from, pda *to, int32_t node)
{
    VEC(int32_t) state = {0};
    for (; node != PDA_EMPTY; node = from->node.at[node].parent)
        VEC_PUSH(&state, from->node.at[node].state);
    int32_t n = PDA_EMPTY;
    for (size_t i = state.n; i-- > 0;)
        n = pda_push(to, state.at[i], n);
    VEC_FREE(&state);
    return n;
}

static int32_t set_copy(const pda *from, pda *to, int32_t set)
{
    VEC(int32_t) nodes = {0};
    size_t n;
    const int32_t *m = pda_members(from, set, &n);
    for (size_t i = 0; i < n; i++)
        VEC_PUSH(&nodes, node_copy(from, to, m[i]));
    int32_t copy = pda_set_of(to, nodes.at, n);
    VEC_FREE(&nodes);
    return copy;
}

/* Before a call that may add much: where the caches are full, all but what matchers stand on is forgotten. In a scope of its
 * own, as every call that changes the caches: what it takes stays, whatever becomes of the call around it. False: memory is
 * short, and nothing has changed. */
static bool make_room(grammar *g)
{
    g->p.steps = 0;
    if (pda_bytes(&g->p) + g->masks.bytes <= g->most.cache_bytes && !g->p.full)
        return true;
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0)
        return false;
    pda p;
    mask_cache masks;
    pda_init(&p, &g->m, g->most);
    mask_cache_init(&masks, g->v);
    VEC(int32_t) sets = {0};
    for (matcher *m = g->first; m; m = m->next)
        VEC_PUSH(&sets,
                 m->set == SET_START || m->lost != g->lost ? m->set : set_copy(&g->p, &p, m->set));
    size_t i = 0;
    for (matcher *m = g->first; m; m = m->next)
        m->set = sets.at[i++];
    VEC_FREE(&sets);
    pda_deinit(&g->p);
    mask_cache_deinit(&g->masks);
    g->p = p;
    g->masks = masks;
    return true;
}

/* Memory was short inside a call: the caches may be half made, so they are emptied, and the texts that stood on them cannot go on. */
static weft_status fail_lost(weft_diag *dg, grammar *g, mask_mark before, size_t bytes)
{
    mask_cache_drop(&g->masks, before);
    pda_drop(&g->p);
    g->lost++;
    return diag_fail_memory(dg, bytes);
}

/* ---- matchers ---- */

static void matcher_unlink(void *ctx)
{
    matcher *m = ctx;
    if (m->prev)
        m->prev->next = m->next;
    else
        m->g->first = m->next;
    if (m->next)
        m->next->prev = m->prev;
}

matcher *matcher_create(grammar *g)
{
    matcher *m = mem_alloc(sizeof *m);
    *m = (matcher){.g = g, .set = SET_START, .lost = g->lost, .next = g->first};
    if (g->first)
        g->first->prev = m;
    g->first = m;
    mem_scope_on_fail(matcher_unlink, m);
    return m;
}

matcher *matcher_fork(const matcher *from)
{
    matcher *m = matcher_create(from->g);
    m->set = from->set;
    m->begun = from->begun;
    m->ended = from->ended;
    m->lost = from->lost;
    return m;
}

void matcher_destroy(matcher *m)
{
    if (!m)
        return;
    mem_scope_forget(matcher_unlink, m);
    matcher_unlink(m);
    mem_free(m);
}

void matcher_reset(matcher *m)
{
    m->set = SET_START;
    m->lost = m->g->lost;
    m->begun = m->ended = false;
}

bool matcher_may_end(const matcher *m)
{
    if (m->set == SET_START)
        return m->ended || m->g->start_may_end;
    return m->lost == m->g->lost && (m->ended || pda_may_end(&m->g->p, m->set));
}

bool matcher_must_end(const matcher *m)
{
    size_t n;
    if (m->set == SET_START)
        return m->ended || m->g->start_must_end;
    if (m->lost != m->g->lost)
        return false;
    pda_members(&m->g->p, m->set, &n);
    return m->ended || (n == 1 && pda_may_end(&m->g->p, m->set));
}

static bool at_first(const matcher *m)
{
    return !m->begun && m->g->v->differs;
}

static weft_status fail_full(weft_diag *dg, const grammar *g)
{
    return weft_fail(dg, W1803, WEFT_NOWHERE,
                     "what may follow here takes more than %zu MiB or %d steps to work out",
                     g->most.cache_bytes >> 19, PDA_STEPS_MAX);
}

static bool mask_empty(const uint64_t *mask, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (mask[i])
            return false;
    return true;
}

/* Then m stands on a set. */
static weft_status begin(weft_diag *dg, matcher *m)
{
    grammar *g = m->g;
    if (m->set != SET_START && m->lost != g->lost)
        return weft_fail(dg, W1110, WEFT_NOWHERE, "memory was short, and the text lost its place");
    if (m->set == SET_START)
        m->set = pda_start(&g->p);
    m->lost = g->lost;
    return WEFT_OK;
}

/* In a scope of the function it stands in. */
#define CACHE_SCOPE(dg, g)                                                                         \
    const mask_mark before_ = mask_cache_mark(&(g)->masks);                                        \
    MEM_SCOPE(scope_);                                                                             \
    if (sigsetjmp(scope_.env, 0) != 0)                                                             \
    return fail_lost(dg, g, before_, scope_.bytes)

weft_status matcher_mask(weft_diag *dg, matcher *m, const uint64_t **out_mask)
{
    grammar *g = m->g;
    if (!make_room(g))
        return diag_fail_memory(dg, g->most.cache_bytes);
    CACHE_SCOPE(dg, g);
    const uint64_t *mask = g->v->ends;
    WEFT_TRY(begin(dg, m));
    if (!m->ended)
        mask = at_first(m) ? mask_of_first(&g->masks, &g->p, m->set)
                           : mask_of_set(&g->masks, &g->p, m->set);
    if (!mask)
        return fail_full(dg, g);
    if (mask_empty(mask, g->v->n_word))
        return weft_fail(dg, W1805, WEFT_NOWHERE,
                         g->p.limited
                             ? "no token can follow: the text is nested too deep for the limits"
                             : "no token can follow: the tokenizer lacks one for what must come");
    *out_mask = mask;
    return WEFT_OK;
}

static weft_status accept_end(weft_diag *dg, matcher *m, int32_t id)
{
    if (!matcher_may_end(m))
        return weft_fail(dg, W1805, WEFT_NOWHERE,
                         "end token %d came where the text is not complete", (int)id);
    m->ended = true;
    return WEFT_OK;
}

weft_status matcher_accept(weft_diag *dg, matcher *m, int32_t id)
{
    grammar *g = m->g;
    if (id < 0 || id >= g->v->n_token)
        return weft_fail(dg, W1805, WEFT_NOWHERE, "token %d is not in the vocabulary", (int)id);
    if (mask_has(g->v->ends, id))
        return accept_end(dg, m, id);
    if (!make_room(g))
        return diag_fail_memory(dg, g->most.cache_bytes);
    CACHE_SCOPE(dg, g);
    WEFT_TRY(begin(dg, m));
    str s = token_trie_text(at_first(m) ? &g->v->first : &g->v->mid, id);
    int32_t set = m->ended || s.n == 0 ? PDA_DEAD : m->set;
    for (size_t i = 0; i < s.n && set != PDA_DEAD; i++)
        set = pda_step(&g->p, set, (uint8_t)s.p[i]);
    if (set == PDA_DEAD)
        return g->p.full
                   ? fail_full(dg, g)
                   : weft_fail(dg, W1805, WEFT_NOWHERE, "token %d may not come here", (int)id);
    m->set = set;
    m->begun = true;
    return WEFT_OK;
}

weft_status grammar_match(weft_diag *dg, grammar *g, str text)
{
    if (!make_room(g))
        return diag_fail_memory(dg, g->most.cache_bytes);
    CACHE_SCOPE(dg, g);
    int32_t set = pda_start(&g->p);
    for (size_t i = 0; i < text.n; i++) {
        set = pda_step(&g->p, set, (uint8_t)text.p[i]);
        if (set == PDA_DEAD)
            return g->p.full ? fail_full(dg, g)
                             : weft_fail(dg, W1805, WEFT_NOWHERE,
                                         "the text matches up to byte %zu of %zu", i, text.n);
    }
    if (!pda_may_end(&g->p, set))
        return weft_fail(dg, W1805, WEFT_NOWHERE, "the text is not complete after %zu bytes",
                         text.n);
    return WEFT_OK;
}
