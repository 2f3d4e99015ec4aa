/* automaton.c - from rules to an automaton: every rule by itself, then what concerns them all. */
#include "runtime/grammar/automaton.h"

#include "runtime/base/mem.h"

void automaton_deinit(automaton *m)
{
    VEC_FREE(&m->state);
    VEC_FREE(&m->edge);
    VEC_FREE(&m->call);
    VEC_FREE(&m->chain);
    mem_free(m->rule);
}

size_t automaton_bytes(const automaton *m)
{
    return m->state.cap * sizeof *m->state.at + m->edge.cap * sizeof *m->edge.at +
           m->call.cap * sizeof *m->call.at + m->chain.cap * sizeof *m->chain.at +
           m->n_rule * sizeof *m->rule;
}

/* Bytes that no edge tells apart are one class. */
static void make_classes(automaton *m)
{
    bool cut[257] = {false};
    for (size_t i = 0; i < m->edge.n; i++)
        cut[m->edge.at[i].lo] = cut[m->edge.at[i].hi + 1] = true;
    int c = 0;
    for (int b = 0; b < 256; b++) {
        c += b > 0 && cut[b];
        m->byte_class[b] = (uint8_t)c;
    }
    m->n_class = c + 1;
}

/* Repetitions whose items are counted alike. An item is over exactly where it can be: none begins another. */
static void share_chains(automaton *m)
{
    int32_t *loop = mem_alloc(mem_product(m->n_rule + 1, sizeof *loop));
    bool *mixed = mem_alloc(m->n_rule + 1);
    for (size_t i = 0; i < m->n_rule; i++) {
        loop[i] = AUTO_NONE;
        mixed[i] = false;
    }
    for (size_t i = 0; i < m->state.n; i++) {
        const auto_state *s = &m->state.at[i];
        if (s->n_call > 0 || (s->final && s->n_edge > 0))
            mixed[s->rule] = true;
    }
    for (size_t i = 0; i < m->chain.n; i++) {
        auto_chain *k = &m->chain.at[i];
        const auto_state *s = k->loop[1] == AUTO_NONE ? NULL : &m->state.at[k->loop[1]];
        k->same = AUTO_NONE;
        if (!s || k->min < 0 || mixed[k->rule] || !m->rule[k->rule].item || !s->final ||
            s->n_edge > 0 || s->n_call != 1 || m->call.at[s->call].rule != k->rule ||
            m->call.at[s->call].to != k->loop[1])
            continue;
        if (loop[k->rule] == AUTO_NONE)
            loop[k->rule] = k->loop[1];
        k->same = loop[k->rule];
    }
    mem_free(loop);
    mem_free(mixed);
}

weft_status automaton_build(weft_diag *dg, automaton *m, form *f, size_t states_max)
{
    *m = (automaton){.root = f->root};
    nfa n = {.f = f, .chain = &m->chain, .states_max = states_max};
    VEC(int32_t) start = {0};
    bool over = form_full(f);
    for (size_t i = 0; i < f->rules.n && !over; i++) { /* repetitions add rules */
        const part *body = f->rules.at[i].body;
        int32_t s = AUTO_NONE;
        if (body) {
            nfa_build(&n, body);
            s = nfa_determine(&n, m, (int32_t)i, states_max);
            over = s == AUTO_NONE;
        }
        VEC_PUSH(&start, s);
    }
    m->n_rule = start.n;
    m->rule = mem_alloc(mem_product(start.n + 1, sizeof *m->rule));
    for (size_t i = 0; i < start.n; i++)
        m->rule[i] = (auto_rule){start.at[i], i < n.item.n && n.item.at[i]};
    VEC_FREE(&start);
    VEC_FREE(&n.edge);
    VEC_FREE(&n.move);
    VEC_FREE(&n.state);
    VEC_FREE(&n.item);
    weft_status st = WEFT_OK;
    if (over) {
        st = weft_fail(dg, W1803, WEFT_NOWHERE,
                       "the grammar takes more than %zu states when its rules are written out",
                       states_max);
    } else {
        automaton_trim(m);
        int32_t left = automaton_left_rule(m);
        if (m->rule[m->root].start == AUTO_NONE)
            st = weft_fail(dg, W1804, WEFT_NOWHERE, "no text matches the grammar");
        else if (left != AUTO_NONE)
            st = weft_fail(dg, W1801, f->rules.at[left].loc,
                           "rule `" STR_FMT "` calls itself before it has read anything",
                           STR_ARG(f->rules.at[left].name));
        else
            make_classes(m);
        if (st == WEFT_OK)
            share_chains(m);
    }
    if (st != WEFT_OK)
        automaton_deinit(m);
    return st;
}
