/* determine.c - a rule's states without empty moves, and, where that does not take too many, deterministic ones.
 *
 * Core states are those that an edge or a call leads to, and the first; what empty moves lead to becomes theirs. Then sets of
 * core states are made (the subset construction), a call being a symbol as a range of bytes is. Long lists of words and
 * optional properties become trees this way. A rule whose sets pass the room is left as it is: it matches the same. */
#include "runtime/base/mem.h"
#include "runtime/grammar/automaton.h"

#include <stdlib.h>

typedef VEC(int32_t) ints;

typedef struct {
    uint32_t edge, n_edge, call, n_call; /* in own.edge, own.call */
    bool final;
    nfa_place place;
} core_state;

typedef struct {
    const nfa *n;
    int32_t *core_of; /* by state of the NFA; AUTO_NONE: no core state */
    VEC(core_state) core;
    VEC(auto_edge) edge; /* to core states */
    VEC(auto_call) call;
    ints first_edge, next_edge, first_move, next_move; /* lists by `from` */
    bool over;
} own;

static void lists_make(own *o)
{
    const nfa *n = o->n;
    for (size_t i = 0; i < n->state.n; i++) {
        VEC_PUSH(&o->first_edge, AUTO_NONE);
        VEC_PUSH(&o->first_move, AUTO_NONE);
    }
    for (size_t i = 0; i < n->edge.n; i++) {
        VEC_PUSH(&o->next_edge, o->first_edge.at[n->edge.at[i].from]);
        o->first_edge.at[n->edge.at[i].from] = (int32_t)i;
    }
    for (size_t i = 0; i < n->move.n; i++) {
        VEC_PUSH(&o->next_move, o->first_move.at[n->move.at[i].from]);
        o->first_move.at[n->move.at[i].from] = (int32_t)i;
    }
}

static void core_add(own *o, int32_t state)
{
    if (o->core_of[state] != AUTO_NONE)
        return;
    o->core_of[state] = (int32_t)o->core.n;
    VEC_PUSH(&o->core, ((core_state){.place = o->n->state.at[state]}));
}

/* What `state` and all that empty moves lead to from it have. */
static void core_fill(own *o, int32_t state, int32_t *seen, ints *pending)
{
    const nfa *n = o->n;
    int32_t mark = o->core_of[state];
    core_state *c = &o->core.at[mark];
    c->edge = (uint32_t)o->edge.n;
    c->call = (uint32_t)o->call.n;
    pending->n = 0;
    VEC_PUSH(pending, state);
    seen[state] = mark;
    while (pending->n && !o->over) {
        int32_t s = pending->at[--pending->n];
        c->final = c->final || s == 1;
        for (int32_t e = o->first_edge.at[s]; e != AUTO_NONE; e = o->next_edge.at[e]) {
            nfa_edge x = n->edge.at[e];
            VEC_PUSH(&o->edge, ((auto_edge){x.lo, x.hi, o->core_of[x.to]}));
        }
        for (int32_t e = o->first_move.at[s]; e != AUTO_NONE; e = o->next_move.at[e]) {
            nfa_move x = n->move.at[e];
            if (x.rule != AUTO_NONE) {
                VEC_PUSH(&o->call, ((auto_call){x.rule, o->core_of[x.to]}));
            } else if (seen[x.to] != mark) {
                seen[x.to] = mark;
                VEC_PUSH(pending, x.to);
            }
        }
        o->over = o->edge.n + o->call.n > 8 * n->states_max;
    }
    c->n_edge = (uint32_t)o->edge.n - c->edge;
    c->n_call = (uint32_t)o->call.n - c->call;
}

static void own_make(own *o)
{
    const nfa *n = o->n;
    o->core_of = mem_alloc(mem_product(n->state.n, sizeof *o->core_of));
    int32_t *seen = mem_alloc(mem_product(n->state.n, sizeof *seen));
    for (size_t i = 0; i < n->state.n; i++)
        o->core_of[i] = seen[i] = AUTO_NONE;
    lists_make(o);
    core_add(o, 0);
    for (size_t i = 0; i < n->edge.n; i++)
        core_add(o, n->edge.at[i].to);
    for (size_t i = 0; i < n->move.n; i++)
        if (n->move.at[i].rule != AUTO_NONE)
            core_add(o, n->move.at[i].to);
    ints pending = {0};
    for (size_t i = 0; i < n->state.n; i++)
        if (o->core_of[i] != AUTO_NONE)
            core_fill(o, (int32_t)i, seen, &pending);
    VEC_FREE(&pending);
    mem_free(seen);
}

static void own_free(own *o)
{
    mem_free(o->core_of);
    VEC_FREE(&o->core);
    VEC_FREE(&o->edge);
    VEC_FREE(&o->call);
    VEC_FREE(&o->first_edge);
    VEC_FREE(&o->next_edge);
    VEC_FREE(&o->first_move);
    VEC_FREE(&o->next_move);
}

/* ---- sets of core states ---- */

typedef struct {
    ints member;         /* of all sets, one after the other */
    VEC(uint32_t) begin; /* [n + 1] */
    int32_t *slot;       /* open addressing: a set, or AUTO_NONE */
    size_t n_slot, n;
} set_table;

static int by_number(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

static bool set_is(const set_table *t, int32_t set, const int32_t *at, size_t n)
{
    uint32_t b = t->begin.at[set];
    return t->begin.at[set + 1] - b == n && memcmp(t->member.at + b, at, n * sizeof *at) == 0;
}

static void set_slot_put(set_table *t, int32_t set)
{
    uint32_t b = t->begin.at[set];
    size_t n = t->begin.at[set + 1] - b;
    uint64_t h = str_hash((str){(const char *)(t->member.at + b), n * sizeof(int32_t)});
    size_t i = h & (t->n_slot - 1);
    while (t->slot[i] != AUTO_NONE)
        i = (i + 1) & (t->n_slot - 1);
    t->slot[i] = set;
}

static void set_table_grow(set_table *t)
{
    mem_free(t->slot);
    t->n_slot = t->n_slot ? 2 * t->n_slot : 64;
    t->slot = mem_alloc(mem_product(t->n_slot, sizeof *t->slot));
    for (size_t i = 0; i < t->n_slot; i++)
        t->slot[i] = AUTO_NONE;
    for (size_t i = 0; i < t->n; i++)
        set_slot_put(t, (int32_t)i);
}

/* The set of these, which are put into order here. */
static int32_t set_find(set_table *t, int32_t *at, size_t n)
{
    qsort(at, n, sizeof *at, by_number);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || at[i] != at[i - 1])
            at[kept++] = at[i];
    if (2 * (t->n + 1) > t->n_slot)
        set_table_grow(t);
    uint64_t h = str_hash((str){(const char *)at, kept * sizeof *at});
    size_t i = h & (t->n_slot - 1);
    for (; t->slot[i] != AUTO_NONE; i = (i + 1) & (t->n_slot - 1))
        if (set_is(t, t->slot[i], at, kept))
            return t->slot[i];
    if (t->begin.n == 0)
        VEC_PUSH(&t->begin, 0);
    for (size_t k = 0; k < kept; k++)
        VEC_PUSH(&t->member, at[k]);
    VEC_PUSH(&t->begin, (uint32_t)t->member.n);
    t->slot[i] = (int32_t)t->n;
    return (int32_t)t->n++;
}

static int call_order(const void *a, const void *b)
{
    const auto_call *x = a, *y = b;
    return x->rule != y->rule ? (x->rule < y->rule ? -1 : 1) : x->to < y->to ? -1 : x->to > y->to;
}

typedef struct {
    set_table sets;
    VEC(auto_edge) edge;
    VEC(auto_call) call;
    ints to;
    size_t steps;
} work;

enum { STEPS_MAX = 1 << 25 }; /* of making sets, for one rule: a tenth of a second */

static void put_edge(automaton *m, uint32_t from_edge, unsigned lo, unsigned hi, int32_t to)
{
    if (m->edge.n > from_edge) {
        auto_edge *last = &m->edge.at[m->edge.n - 1];
        if (last->to == to && last->hi + 1u == lo) {
            last->hi = (uint8_t)hi;
            return;
        }
    }
    VEC_PUSH(&m->edge, ((auto_edge){(uint8_t)lo, (uint8_t)hi, to}));
}

/* Edges and calls of one set; targets are numbers of sets, plus base. */
static void set_fill(work *w, const own *o, automaton *m, int32_t set, int32_t base)
{
    w->edge.n = w->call.n = 0;
    bool final = false, cut[257] = {false};
    for (uint32_t i = w->sets.begin.at[set]; i < w->sets.begin.at[set + 1]; i++) {
        const core_state *c = &o->core.at[w->sets.member.at[i]];
        final = final || c->final;
        for (uint32_t k = 0; k < c->n_edge; k++)
            VEC_PUSH(&w->edge, o->edge.at[c->edge + k]);
        for (uint32_t k = 0; k < c->n_call; k++)
            VEC_PUSH(&w->call, o->call.at[c->call + k]);
    }
    auto_state s = m->state.at[base + set];
    s.final = final;
    s.edge = (uint32_t)m->edge.n;
    s.call = (uint32_t)m->call.n;
    for (size_t i = 0; i < w->edge.n; i++)
        cut[w->edge.at[i].lo] = cut[w->edge.at[i].hi + 1] = true;
    for (unsigned lo = 0; lo < 256;) {
        unsigned next = lo + 1;
        while (next < 256 && !cut[next])
            next++;
        w->to.n = 0;
        w->steps += w->edge.n + 1;
        for (size_t i = 0; i < w->edge.n; i++)
            if (w->edge.at[i].lo <= lo && lo <= w->edge.at[i].hi)
                VEC_PUSH(&w->to, w->edge.at[i].to);
        if (w->to.n)
            put_edge(m, s.edge, lo, next - 1, base + set_find(&w->sets, w->to.at, w->to.n));
        lo = next;
    }
    if (w->call.n)
        qsort(w->call.at, w->call.n, sizeof *w->call.at, call_order);
    for (size_t i = 0; i < w->call.n;) {
        int32_t rule = w->call.at[i].rule;
        for (w->to.n = 0; i < w->call.n && w->call.at[i].rule == rule; i++)
            VEC_PUSH(&w->to, w->call.at[i].to);
        VEC_PUSH(&m->call, ((auto_call){rule, base + set_find(&w->sets, w->to.at, w->to.n)}));
    }
    s.n_edge = (uint32_t)m->edge.n - s.edge;
    s.n_call = (uint32_t)m->call.n - s.call;
    m->state.at[base + set] = s;
}

/* A state for the automaton, at this place of a chain. */
static void put_state(automaton *m, auto_state s, nfa_place at)
{
    s.chain = at.index < 0 ? AUTO_NONE : at.chain;
    s.index = at.index;
    if (at.chain != AUTO_NONE && at.index < 0)
        m->chain.at[at.chain].loop[PLACE_LOOP - at.index] = (int32_t)m->state.n;
    VEC_PUSH(&m->state, s);
}

/* False: it would take more than room states. */
static bool put_sets(const own *o, automaton *m, int32_t rule, size_t room)
{
    work w = {.sets = {.n = 0}};
    int32_t base = (int32_t)m->state.n, first = 0;
    size_t edges = m->edge.n, members = 64 * room;
    set_find(&w.sets, &first, 1);
    for (size_t i = 0; i < o->core.n; i++)
        if (o->core.at[i].place.chain != AUTO_NONE && o->core.at[i].place.index < 0)
            set_find(&w.sets, &(int32_t){(int32_t)i}, 1);
    for (size_t i = 0; i < w.sets.n && w.sets.n <= room && w.sets.member.n <= members &&
                       m->edge.n - edges <= 8 * room && w.steps <= STEPS_MAX;
         i++) {
        int32_t only = w.sets.member.at[w.sets.begin.at[i]];
        nfa_place at = {AUTO_NONE, 0};
        if (w.sets.begin.at[i + 1] - w.sets.begin.at[i] == 1)
            at = o->core.at[only].place;
        put_state(m, (auto_state){.rule = rule}, at);
        set_fill(&w, o, m, (int32_t)i, base);
    }
    bool done = m->state.n - (size_t)base == w.sets.n;
    VEC_FREE(&w.edge);
    VEC_FREE(&w.call);
    VEC_FREE(&w.to);
    VEC_FREE(&w.sets.member);
    VEC_FREE(&w.sets.begin);
    mem_free(w.sets.slot);
    return done;
}

static void put_core(const own *o, automaton *m, int32_t rule)
{
    int32_t base = (int32_t)m->state.n;
    for (size_t i = 0; i < o->core.n; i++) {
        const core_state *c = &o->core.at[i];
        auto_state s = {.rule = rule,
                        .final = c->final,
                        .edge = (uint32_t)m->edge.n,
                        .n_edge = c->n_edge,
                        .call = (uint32_t)m->call.n,
                        .n_call = c->n_call};
        for (uint32_t k = 0; k < c->n_edge; k++) {
            auto_edge e = o->edge.at[c->edge + k];
            VEC_PUSH(&m->edge, ((auto_edge){e.lo, e.hi, base + e.to}));
        }
        for (uint32_t k = 0; k < c->n_call; k++) {
            auto_call e = o->call.at[c->call + k];
            VEC_PUSH(&m->call, ((auto_call){e.rule, base + e.to}));
        }
        put_state(m, s, c->place);
    }
}

int32_t nfa_determine(const nfa *n, automaton *m, int32_t rule, size_t states_max)
{
    own o = {.n = n};
    own_make(&o);
    size_t states = m->state.n, edges = m->edge.n, calls = m->call.n;
    bool fits = !o.over && !n->over && states + o.core.n <= states_max;
    if (fits && !put_sets(&o, m, rule, 2 * o.core.n + 64)) {
        m->state.n = states;
        m->edge.n = edges;
        m->call.n = calls;
        put_core(&o, m, rule);
    }
    own_free(&o);
    fits = fits && m->state.n <= states_max && m->edge.n + m->call.n <= 8 * states_max;
    return fits ? (int32_t)states : AUTO_NONE;
}
