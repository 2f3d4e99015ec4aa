/* pda.h - the automaton as it runs: stacks of states, sets of them, and what a byte makes of a set. Private.
 *
 * A stack is a list of frames that ends in the empty one, 0; equal stacks are one node, so a set of stacks is a set of numbers.
 * Sets have numbers too, and what a byte makes of one is remembered: a text is read by one look-up a byte, once its sets
 * are known. Set 0 is empty: the text does not match. A set with the empty stack is a text that may end. */
#ifndef WEFT_RUNTIME_GRAMMAR_PDA_H
#define WEFT_RUNTIME_GRAMMAR_PDA_H

#include "runtime/grammar/automaton.h"

enum {
    PDA_STEPS_MAX = 1 << 24
}; /* some tenths of a second; a text with a form of the usual kinds takes thousands */
enum { PDA_DEAD = 0, PDA_EMPTY = 0, PDA_UNKNOWN = -1 };

typedef struct {
    int32_t state;  /* of the automaton; where its rule goes on */
    int32_t parent; /* a node */
    int32_t depth;
} pda_node;

typedef struct {
    int32_t *slot; /* open addressing: a number, or PDA_UNKNOWN */
    size_t n_slot;
} pda_index;

typedef struct {
    const automaton *m;
    grammar_limits most;
    VEC(pda_node) node; /* 0: the empty stack */
    pda_index node_index;
    VEC(int32_t) member; /* nodes of all sets, each in ascending order */
    VEC(uint32_t) begin; /* by set, and one more */
    pda_index set_index;
    VEC(int32_t) next; /* [sets, classes]: a set, or PDA_UNKNOWN */
    size_t n_set;
    size_t steps; /* of closures in the call being made, which has PDA_STEPS_MAX */
    bool full;    /* memory or steps have run out: what is not known yet counts as dead */
    bool limited; /* a limit on depth or paths has kept something out */
    VEC(int32_t) pending, work; /* scratch */
    VEC(uint32_t) stamp;        /* by node: the closure that has seen it */
    uint32_t turn;
} pda;

void pda_init(pda *p, const automaton *m, grammar_limits most);
void pda_deinit(pda *p);
void pda_drop(pda *p); /* as made, whatever state it was left in; takes no memory */
size_t pda_bytes(const pda *p);

int32_t pda_push(pda *p, int32_t state, int32_t parent); /* the node of this stack */
int32_t pda_start(pda *p);                               /* the set at the beginning of a text */
int32_t pda_closed(pda *p,
                   int32_t node); /* the set of a stack and all that it leads to without a byte */
int32_t pda_set_of(pda *p, int32_t *nodes, size_t n); /* just these; they are put into order */
int32_t pda_step_slow(pda *p, int32_t set, uint8_t byte);

static inline int32_t pda_step(pda *p, int32_t set, uint8_t byte)
{
    int32_t to = p->next.at[(size_t)set * (size_t)p->m->n_class + p->m->byte_class[byte]];
    return to != PDA_UNKNOWN ? to : pda_step_slow(p, set, byte);
}
static inline const int32_t *pda_members(const pda *p, int32_t set, size_t *out_n)
{
    uint32_t b = p->begin.at[set];
    *out_n = p->begin.at[set + 1] - b;
    return p->member.at + b;
}
static inline bool pda_may_end(const pda *p, int32_t set)
{
    uint32_t b = p->begin.at[set];
    return p->begin.at[set + 1] > b && p->member.at[b] == PDA_EMPTY;
}

#endif
