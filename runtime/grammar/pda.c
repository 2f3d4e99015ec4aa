/* pda.c - stacks, sets of stacks, and steps. */
#include "runtime/grammar/pda.h"

#include "runtime/base/mem.h"
#include <stdlib.h>

/* ---- numbers for things ---- */

static void index_clear(pda_index *x)
{
    for (size_t i = 0; i < x->n_slot; i++)
        x->slot[i] = PDA_UNKNOWN;
}

static void index_grow(pda_index *x)
{
    size_t n = x->n_slot ? 2 * x->n_slot : 256;
    x->slot = mem_realloc(x->slot, mem_product(n, sizeof *x->slot));
    x->n_slot = n;
    index_clear(x);
}

static void index_put(pda_index *x, uint64_t hash, int32_t number)
{
    size_t i = hash & (x->n_slot - 1);
    while (x->slot[i] != PDA_UNKNOWN)
        i = (i + 1) & (x->n_slot - 1);
    x->slot[i] = number;
}

static uint64_t node_hash(int32_t state, int32_t parent)
{
    uint64_t h = ((uint64_t)(uint32_t)state << 32 | (uint32_t)parent) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

int32_t pda_push(pda *p, int32_t state, int32_t parent)
{
    if (2 * p->node.n >= p->node_index.n_slot) {
        index_grow(&p->node_index);
        for (size_t i = 1; i < p->node.n; i++)
            index_put(&p->node_index, node_hash(p->node.at[i].state, p->node.at[i].parent),
                      (int32_t)i);
    }
    uint64_t h = node_hash(state, parent);
    size_t i = h & (p->node_index.n_slot - 1);
    for (int32_t k; (k = p->node_index.slot[i]) != PDA_UNKNOWN;
         i = (i + 1) & (p->node_index.n_slot - 1))
        if (p->node.at[k].state == state && p->node.at[k].parent == parent)
            return k;
    p->node_index.slot[i] = (int32_t)p->node.n;
    VEC_PUSH(&p->node, ((pda_node){state, parent, p->node.at[parent].depth + 1}));
    VEC_PUSH(&p->stamp, 0);
    return (int32_t)p->node.n - 1;
}

static uint64_t set_hash(const int32_t *nodes, size_t n)
{
    uint64_t h = str_hash((str){(const char *)nodes, n * sizeof *nodes});
    return h ^ h >> 29;
}

static int by_number(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

int32_t pda_set_of(pda *p, int32_t *nodes, size_t n)
{
    if (n > 1)
        qsort(nodes, n, sizeof *nodes, by_number);
    if (2 * p->n_set >= p->set_index.n_slot) {
        index_grow(&p->set_index);
        for (size_t i = 0; i < p->n_set; i++) {
            size_t k;
            const int32_t *m = pda_members(p, (int32_t)i, &k);
            index_put(&p->set_index, set_hash(m, k), (int32_t)i);
        }
    }
    size_t i = set_hash(nodes, n) & (p->set_index.n_slot - 1);
    for (int32_t s; (s = p->set_index.slot[i]) != PDA_UNKNOWN;
         i = (i + 1) & (p->set_index.n_slot - 1)) {
        size_t k;
        const int32_t *m = pda_members(p, s, &k);
        if (k == n && (n == 0 || memcmp(m, nodes, n * sizeof *nodes) == 0))
            return s;
    }
    p->set_index.slot[i] = (int32_t)p->n_set;
    for (size_t k = 0; k < n; k++)
        VEC_PUSH(&p->member, nodes[k]);
    if (p->begin.n == 0)
        VEC_PUSH(&p->begin, 0);
    VEC_PUSH(&p->begin, (uint32_t)p->member.n);
    for (int k = 0; k < p->m->n_class; k++)
        VEC_PUSH(&p->next, n ? PDA_UNKNOWN : PDA_DEAD);
    return (int32_t)p->n_set++;
}

/* The empty stack and the empty set. */
static void pda_begin(pda *p)
{
    VEC_PUSH(&p->node, ((pda_node){AUTO_NONE, PDA_EMPTY, 0}));
    VEC_PUSH(&p->stamp, 0);
    pda_set_of(p, NULL, 0); /* PDA_DEAD */
}

void pda_init(pda *p, const automaton *m, grammar_limits most)
{
    *p = (pda){.m = m, .most = most};
    VEC_START(&p->member); /* all have a block of their own before the first call (mem_scope.h) */
    VEC_START(&p->pending);
    VEC_START(&p->work);
    index_grow(&p->node_index);
    pda_begin(p);
}

void pda_drop(pda *p)
{
    p->node.n = p->stamp.n = p->member.n = p->begin.n = p->next.n = p->n_set = 0;
    p->pending.n = p->work.n = 0;
    p->turn = 0;
    p->full = p->limited = false;
    index_clear(&p->node_index);
    index_clear(&p->set_index);
    pda_begin(p); /* what it needs was there when it was made */
}

void pda_deinit(pda *p)
{
    VEC_FREE(&p->node);
    VEC_FREE(&p->member);
    VEC_FREE(&p->begin);
    VEC_FREE(&p->next);
    VEC_FREE(&p->pending);
    VEC_FREE(&p->work);
    VEC_FREE(&p->stamp);
    mem_free(p->node_index.slot);
    mem_free(p->set_index.slot);
}

size_t pda_bytes(const pda *p)
{
    return p->node.cap * sizeof *p->node.at + p->stamp.cap * sizeof *p->stamp.at +
           (p->member.cap + p->begin.cap + p->next.cap + p->pending.cap + p->work.cap +
            p->node_index.n_slot + p->set_index.n_slot) *
               sizeof(int32_t);
}

/* ---- stacks that lead to others without a byte ---- */

/* A rule ends there and does nothing else: behind it is whatever stands below. */
static bool only_ends(const auto_state *s)
{
    return s->final && s->n_edge == 0 && s->n_call == 0;
}

static int32_t frame(pda *p, int32_t state, int32_t parent)
{
    return only_ends(&p->m->state.at[state]) ? parent : pda_push(p, state, parent);
}

/* Adds to work what p->pending leads to; false past the limits. */
static bool close_all(pda *p)
{
    const automaton *m = p->m;
    size_t steps = 64 * p->most.paths_max;
    while (p->pending.n) {
        int32_t n = p->pending.at[--p->pending.n];
        if (p->stamp.at[n] == p->turn)
            continue;
        p->stamp.at[n] = p->turn;
        p->steps++;
        if (steps-- == 0 || p->work.n > p->most.paths_max)
            return false;
        if (n == PDA_EMPTY) {
            VEC_PUSH(&p->work, PDA_EMPTY);
            continue;
        }
        pda_node at = p->node.at[n];
        const auto_state *s = &m->state.at[at.state];
        if (s->n_edge)
            VEC_PUSH(&p->work, n);
        if (s->final)
            VEC_PUSH(&p->pending, at.parent);
        for (uint32_t k = s->call; k < s->call + s->n_call; k++) {
            auto_call c = m->call.at[k];
            int32_t below = frame(p, c.to, at.parent);
            if (p->node.at[below].depth < p->most.stack_max)
                VEC_PUSH(&p->pending, frame(p, m->rule[c.rule].start, below));
            else
                p->limited = true;
        }
    }
    return true;
}

static void close_begin(pda *p)
{
    p->pending.n = p->work.n = 0;
    if (++p->turn == 0) { /* stamps of four billion closures ago */
        memset(p->stamp.at, 0, p->stamp.n * sizeof *p->stamp.at);
        p->turn = 1;
    }
}

static int32_t close_end(pda *p)
{
    if (!close_all(p)) {
        p->limited = true;
        return PDA_DEAD;
    }
    return pda_set_of(p, p->work.at, p->work.n);
}

int32_t pda_closed(pda *p, int32_t node)
{
    close_begin(p);
    VEC_PUSH(&p->pending, node);
    return close_end(p);
}

int32_t pda_start(pda *p)
{
    return pda_closed(p, frame(p, p->m->rule[p->m->root].start, PDA_EMPTY));
}

int32_t pda_step_slow(pda *p, int32_t set, uint8_t byte)
{
    const automaton *m = p->m;
    size_t at = (size_t)set * (size_t)m->n_class + m->byte_class[byte];
    p->full = p->full || pda_bytes(p) > 2 * p->most.cache_bytes || p->steps > PDA_STEPS_MAX;
    if (p->full)
        return PDA_DEAD;
    close_begin(p);
    for (uint32_t i = p->begin.at[set]; i < p->begin.at[set + 1]; i++) {
        pda_node n = p->node.at[p->member.at[i]];
        if (p->member.at[i] == PDA_EMPTY)
            continue;
        const auto_state *s = &m->state.at[n.state];
        for (uint32_t k = s->edge; k < s->edge + s->n_edge; k++)
            if (m->edge.at[k].lo <= byte && byte <= m->edge.at[k].hi)
                VEC_PUSH(&p->pending, frame(p, m->edge.at[k].to, n.parent));
    }
    int32_t to = close_end(p);
    p->next.at[at] = to;
    return to;
}
