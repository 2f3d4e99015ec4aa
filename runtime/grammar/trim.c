/* trim.c - states that no text leads out of go; rules that call themselves before they have read a byte are found. */
#include "runtime/base/mem.h"
#include "runtime/grammar/automaton.h"

/* ---- which states hold, if those that they lead to do ---- */

/* A wish is an edge or a call of a state: the state holds once all that it waits for does. Each waits in the list of
 * what it waits for: an edge for its target, a call for its target and for the start of its rule. */
typedef struct {
    const automaton *m;
    bool *holds;
    int32_t *first;     /* by state: who waits for it */
    int32_t *next;      /* by entry */
    int32_t *wish;      /* by entry */
    int32_t *wish_of;   /* by wish: its state */
    uint8_t *wish_left; /* by wish: how many it waits for */
    int32_t n_entry;
    VEC(int32_t) pending;
} spread;

static void spread_wait(spread *s, int32_t wish, int32_t state)
{
    s->wish[s->n_entry] = wish;
    s->next[s->n_entry] = s->first[state];
    s->first[state] = s->n_entry++;
    s->wish_left[wish]++;
}

static void spread_hold(spread *s, int32_t state)
{
    if (s->holds[state])
        return;
    s->holds[state] = true;
    VEC_PUSH(&s->pending, state);
}

/* From final states back: along edges too, or along calls alone. */
static bool *spread_run(const automaton *m, bool edges)
{
    size_t n_wish = m->edge.n + m->call.n, n_entry = m->edge.n + 2 * m->call.n;
    spread s = {.m = m};
    s.holds = mem_alloc(m->state.n + 1);
    s.first = mem_alloc(mem_product(m->state.n + 1, sizeof *s.first));
    s.next = mem_alloc(mem_product(n_entry + 1, sizeof *s.next));
    s.wish = mem_alloc(mem_product(n_entry + 1, sizeof *s.wish));
    s.wish_of = mem_alloc(mem_product(n_wish + 1, sizeof *s.wish_of));
    s.wish_left = mem_alloc(n_wish + 1);
    memset(s.holds, 0, m->state.n + 1);
    memset(s.wish_left, 0, n_wish + 1);
    for (size_t i = 0; i <= m->state.n; i++)
        s.first[i] = AUTO_NONE;
    for (size_t i = 0; i < m->state.n; i++) {
        const auto_state *a = &m->state.at[i];
        for (uint32_t k = a->edge; edges && k < a->edge + a->n_edge; k++) {
            s.wish_of[k] = (int32_t)i;
            spread_wait(&s, (int32_t)k, m->edge.at[k].to);
        }
        for (uint32_t k = a->call; k < a->call + a->n_call; k++) {
            int32_t wish = (int32_t)(m->edge.n + k), start = m->rule[m->call.at[k].rule].start;
            s.wish_of[wish] = (int32_t)i;
            if (start == AUTO_NONE)
                continue; /* nobody wakes it */
            spread_wait(&s, wish, m->call.at[k].to);
            spread_wait(&s, wish, start);
        }
    }
    for (size_t i = 0; i < m->state.n; i++)
        if (m->state.at[i].final)
            spread_hold(&s, (int32_t)i);
    for (size_t i = 0; edges && i < m->chain.n; i++)
        if (m->chain.at[i].loop[0] != AUTO_NONE) /* it has no end, and is not reached by a text */
            spread_hold(&s, m->chain.at[i].loop[0]);
    while (s.pending.n) {
        int32_t state = s.pending.at[--s.pending.n];
        for (int32_t e = s.first[state]; e != AUTO_NONE; e = s.next[e])
            if (--s.wish_left[s.wish[e]] == 0)
                spread_hold(&s, s.wish_of[s.wish[e]]);
    }
    mem_free(s.first);
    mem_free(s.next);
    mem_free(s.wish);
    mem_free(s.wish_of);
    mem_free(s.wish_left);
    VEC_FREE(&s.pending);
    return s.holds;
}

void automaton_trim(automaton *m)
{
    bool *useful = spread_run(m, true);
    for (size_t i = 0; i < m->n_rule; i++)
        if (m->rule[i].start != AUTO_NONE && !useful[m->rule[i].start])
            m->rule[i].start = AUTO_NONE;
    for (size_t i = 0; i < m->state.n; i++) {
        auto_state *a = &m->state.at[i];
        uint32_t n_edge = 0, n_call = 0;
        for (uint32_t k = a->edge; k < a->edge + a->n_edge; k++)
            if (useful[m->edge.at[k].to])
                m->edge.at[a->edge + n_edge++] = m->edge.at[k];
        for (uint32_t k = a->call; k < a->call + a->n_call; k++)
            if (useful[m->call.at[k].to] && m->rule[m->call.at[k].rule].start != AUTO_NONE)
                m->call.at[a->call + n_call++] = m->call.at[k];
        a->n_edge = n_edge;
        a->n_call = n_call;
    }
    mem_free(useful);
    bool *empty = spread_run(m, false);
    for (size_t i = 0; i < m->chain.n; i++) {
        int32_t start = m->rule[m->chain.at[i].rule].start;
        if (start == AUTO_NONE || empty[start])
            m->chain.at[i].min = m->chain.at[i].max = -1;
    }
    mem_free(empty);
}

/* ---- rules that call themselves first ---- */

typedef struct {
    const automaton *m;
    const bool *empty; /* by state: its rule can end there without a byte more */
    int32_t *seen;     /* by state */
    VEC(int32_t) pending;
} lefts;

/* Calls `each` with every rule that `rule` can call before it has read a byte. */
static void lefts_of(lefts *l, int32_t rule, void (*each)(void *ctx, int32_t callee), void *ctx)
{
    const automaton *m = l->m;
    if (m->rule[rule].start == AUTO_NONE)
        return;
    l->pending.n = 0;
    VEC_PUSH(&l->pending, m->rule[rule].start);
    l->seen[m->rule[rule].start] = 1;
    for (size_t i = 0; i < l->pending.n; i++) {
        const auto_state *a = &m->state.at[l->pending.at[i]];
        for (uint32_t k = a->call; k < a->call + a->n_call; k++) {
            auto_call c = m->call.at[k];
            each(ctx, c.rule);
            if (l->empty[m->rule[c.rule].start] && !l->seen[c.to]) {
                l->seen[c.to] = 1;
                VEC_PUSH(&l->pending, c.to);
            }
        }
    }
    for (size_t i = 0; i < l->pending.n; i++)
        l->seen[l->pending.at[i]] = 0;
}

typedef struct {
    int32_t *callers;  /* by rule: how many call it first and are still there */
    int step;          /* added to them */
    VEC(int32_t) free; /* rules that nobody calls first */
    const bool *left;  /* by rule: part of a cycle or behind one; NULL while that is worked out */
    int32_t want, found;
} cycle;

static void each_count(void *ctx, int32_t callee)
{
    cycle *c = ctx;
    c->callers[callee] += c->step;
    if (c->step < 0 && c->callers[callee] == 0)
        VEC_PUSH(&c->free, callee);
}

static void each_look(void *ctx, int32_t callee)
{
    cycle *c = ctx;
    c->found = c->found || callee == c->want;
}

/* The rules are taken away from those that nobody calls; what is left is in a cycle or behind one. Going back from any of
 * them as often as there are rules ends in a cycle. */
int32_t automaton_left_rule(const automaton *m)
{
    bool *empty = spread_run(m, false);
    lefts l = {.m = m, .empty = empty, .seen = mem_alloc(mem_product(m->state.n + 1, 4))};
    cycle c = {.callers = mem_alloc(mem_product(m->n_rule + 1, 4)), .step = 1};
    memset(l.seen, 0, (m->state.n + 1) * 4);
    memset(c.callers, 0, (m->n_rule + 1) * 4);
    for (size_t i = 0; i < m->n_rule; i++)
        lefts_of(&l, (int32_t)i, each_count, &c);
    for (size_t i = 0; i < m->n_rule; i++)
        if (c.callers[i] == 0)
            VEC_PUSH(&c.free, (int32_t)i);
    c.step = -1;
    for (size_t i = 0; i < c.free.n; i++)
        lefts_of(&l, c.free.at[i], each_count, &c);
    int32_t bad = AUTO_NONE;
    enum { BACK = 64 }; /* a caller of a caller of one behind a cycle: near enough to name */
    for (size_t i = 0; i < m->n_rule && bad == AUTO_NONE; i++)
        if (c.callers[i] > 0)
            bad = (int32_t)i;
    for (int k = 0; k < BACK && bad != AUTO_NONE; k++) {
        c.want = bad;
        for (size_t i = 0; i < m->n_rule; i++) {
            c.found = 0;
            if (c.callers[i] > 0)
                lefts_of(&l, (int32_t)i, each_look, &c);
            if (c.found) {
                bad = (int32_t)i;
                break;
            }
        }
    }
    mem_free(empty);
    mem_free(l.seen);
    mem_free(c.callers);
    VEC_FREE(&l.pending);
    VEC_FREE(&c.free);
    return bad;
}
