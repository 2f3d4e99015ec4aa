/* automaton.h - rules as a pushdown automaton over bytes. Private.
 *
 * Every rule has states of its own. A state reads a byte along an edge, calls another rule and goes on behind it, or is
 * final, where its rule ends. There are no empty moves, every state can be completed, and no rule calls itself before it has
 * read a byte. Within a rule edges are deterministic unless that would take too many states. */
#ifndef WEFT_RUNTIME_GRAMMAR_AUTOMATON_H
#define WEFT_RUNTIME_GRAMMAR_AUTOMATON_H

#include "runtime/grammar/form.h"

enum { AUTO_NONE = -1 };

typedef struct {
    uint8_t lo, hi;
    int32_t to;
} auto_edge;

typedef struct {
    int32_t rule, to;
} auto_call;

typedef struct {
    uint32_t edge, n_edge; /* in automaton.edge */
    uint32_t call, n_call;
    int32_t rule;
    bool final;
    /* A place in a counted repetition: after `index` items; AUTO_NONE: none. */
    int32_t chain, index;
} auto_state;

/* A repetition that is counted by its states. Far from its ends they allow the same tokens. */
typedef struct {
    int64_t min, max; /* -1, -1: its items may be empty, and no two states are alike */
    int32_t rule;     /* its items */
    /* States that nothing leads to: they repeat without end what all states far before min do, and all between min and far
     * before max. AUTO_NONE: none. */
    int32_t loop[2];
    /* Where the repetition is a rule by itself and its items are told apart by their first bytes: the loop[1] of all such
     * repetitions of the same item. AUTO_NONE: it is not so. */
    int32_t same;
} auto_chain;
typedef VEC(auto_chain) auto_chains;

typedef struct {
    int32_t start; /* AUTO_NONE: no text of it */
    /* It is the short item of a repetition: which tokens it allows says little without the place it was called from. */
    bool item;
} auto_rule;

typedef struct {
    VEC(auto_state) state;
    VEC(auto_edge) edge;
    VEC(auto_call) call;
    auto_chains chain;
    auto_rule *rule;
    size_t n_rule;
    int32_t root;
    uint8_t byte_class[256]; /* bytes of one class are on the same edges everywhere */
    int n_class;
} automaton;

/* W1803 past states_max, W1801 for a rule that calls itself first, W1804 if no text matches. Adds rules to f. */
weft_status automaton_build(weft_diag *dg, automaton *m, form *f, size_t states_max) WEFT_MUST_USE;
void automaton_deinit(automaton *m);
size_t automaton_bytes(const automaton *m);

/* ---- between the files of this folder ---- */

/* A rule's states with empty moves, as they are built. */
typedef struct {
    uint8_t lo, hi;
    int32_t from, to;
} nfa_edge;
typedef struct {
    int32_t from, to, rule; /* rule AUTO_NONE: an empty move */
} nfa_move;
typedef struct {
    int32_t chain,
        index; /* index PLACE_LOOP and PLACE_LOOP - 1: loop[0] and loop[1] of the chain */
} nfa_place;
enum { PLACE_LOOP = -1 };

typedef struct {
    const part *body;
    int32_t rule;
} nfa_item;
enum { NFA_KNOWN = 64 };

typedef struct {
    form *f;
    const part *body; /* of the rule */
    nfa_item known[NFA_KNOWN];
    VEC(nfa_edge) edge;
    VEC(nfa_move) move;
    VEC(nfa_place) state;
    VEC(bool) item;     /* by rule: made for a repetition */
    auto_chains *chain; /* the automaton's */
    size_t states_max;
    bool over;
} nfa;

/* nfa.c: state 0 is where the rule starts, state 1 where it ends. */
void nfa_build(nfa *n, const part *body);
/* determine.c: a rule's states into the automaton; the state where it starts, AUTO_NONE past the limit. */
int32_t nfa_determine(const nfa *n, automaton *m, int32_t rule, size_t states_max);
/* trim.c */
void automaton_trim(automaton *m);
int32_t automaton_left_rule(const automaton *m); /* one that calls itself first, or AUTO_NONE */

#endif
