/* grammar_impl.h - the inside of a grammar and its matchers. Private. */
#ifndef WEFT_RUNTIME_GRAMMAR_GRAMMAR_IMPL_H
#define WEFT_RUNTIME_GRAMMAR_GRAMMAR_IMPL_H

#include "runtime/grammar/pda.h"
#include "runtime/grammar/token_trie.h"

/* What the top of a stack allows, whatever stands below it. */
typedef struct {
    int32_t *token; /* [n_token] allowed; NULL: mask */
    size_t n_token;
    uint64_t *mask;
    uint32_t
        *out; /* [n_out]: nodes of the tree behind which the rest must follow what stands below */
    size_t n_out;
    uint32_t *branch; /* [n_branch]: the same holds for each of these nodes and all below it */
    size_t n_branch;
    const token_trie *t; /* that the nodes are of */
} mask_part;

/* The same for the item of a counted repetition (auto_chain.same), whatever its count: each thing with how many items have begun. */
typedef struct {
    uint32_t at; /* a token or a node */
    uint32_t n_item;
} counted;
typedef struct {
    int32_t kinds;       /* each character of these is an item; 0: of none */
    int32_t known;       /* tokens of these are allowed; 0 inside an item */
    const token_trie *t; /* that the nodes are of */
    counted *odd;        /* [n_odd]: the other tokens */
    counted *out;        /* [n_out], [n_branch]: as of a mask_part */
    counted *branch;
    size_t n_odd, n_out, n_branch;
} counted_part;
/* Tokens that go on in a set behind the repetition. */
typedef struct {
    int32_t part, next; /* next: another with the same set */
    counted *token;
    size_t n;
} counted_exit;
typedef struct {
    int32_t kinds;
    uint64_t *mask;
} kinds_row;

typedef struct {
    const grammar_vocab *v;
    VEC(counted_part) counted;
    VEC(int32_t) counted_of; /* by node */
    VEC(counted_exit) exit;
    VEC(int32_t) exit_of; /* by set */
    VEC(kinds_row) kinds;
    VEC(counted) count[3]; /* scratch: tokens, nodes, branches */
    int32_t *item_path;    /* [longest + 1]: scratch */
    uint64_t *other;       /* [n_word]: scratch */
    VEC(mask_part) part;
    VEC(int32_t) part_of; /* by node; PDA_UNKNOWN: not made yet */
    VEC(int32_t)
    stays_in; /* by set: kinds of bytes that leave it as it is; PDA_UNKNOWN: not known yet */
    VEC(int32_t) begins;     /* by set: kinds of bytes that do not end in PDA_DEAD, some of them */
    VEC(uint64_t *) mask_of; /* by set; NULL: not made yet */
    size_t bytes;            /* of parts and masks */
    int32_t *path;           /* [longest + 1]: sets along the way through the tree */
    uint64_t *scratch;       /* [n_word] */
    VEC(int32_t) found;      /* scratch */
    VEC(uint32_t) out, branch; /* scratch */
} mask_cache;

struct grammar {
    const grammar_vocab *v;
    _Atomic int64_t holders;
    grammar_limits most;
    automaton m;
    pda p;
    mask_cache masks;
    matcher *first; /* a list of all that use it */
    uint64_t lost;  /* how often memory was short and the caches were emptied */
    bool start_may_end, start_must_end;
};

enum {
    SET_START = -1
}; /* of a text that has not begun; its number is looked up when it is needed */

struct matcher {
    grammar *g;
    int32_t set;       /* or SET_START */
    bool begun, ended; /* a token came; an end token came */
    uint64_t lost;     /* of the grammar when its set was made: a later one has lost it */
    matcher *prev, *next;
};

/* token_mask.c */
void mask_cache_init(mask_cache *c, const grammar_vocab *v);
void mask_cache_deinit(mask_cache *c);
/* How much there is, before a call. */
typedef struct {
    size_t n_part, n_counted, n_exit, n_kinds;
} mask_mark;
mask_mark mask_cache_mark(const mask_cache *c);
/* Forget all. The last call was left where memory was short, and what it has added is gone with it. Takes none itself. */
void mask_cache_drop(mask_cache *c, mask_mark before);
/* What may follow in this set, end tokens included. NULL: memory has run out. */
const uint64_t *mask_of_set(mask_cache *c, pda *p, int32_t set);
/* The same for the first token of a text, where those differ; not kept. */
const uint64_t *mask_of_first(mask_cache *c, pda *p, int32_t set);

/* ---- between the two files of masks ---- */

/* All tokens below node `from` that set allows into `mask`, or into c->found where that is NULL, and with `outs` the places
 * where the empty stack is reached into c->out and c->branch. Tokens of the kinds `known` are left out where a branch of them is
 * whole. */
void mask_walk(mask_cache *c, pda *p, const token_trie *t, uint32_t from, int32_t set,
               uint64_t *mask, bool outs, int32_t known);
/* Whether all below node i is of kinds that leave `to`, which i leads to from the set `from`, as it is. */
bool mask_whole(mask_cache *c, pda *p, const token_trie *t, uint32_t i, int32_t to, int32_t from);
int32_t kinds_staying(mask_cache *c, pda *p, int32_t set); /* kinds that leave a set as it is */
int32_t kinds_beginning(mask_cache *c, pda *p,
                        int32_t set); /* kinds of which some character may come */

/* counted_mask.c */
void counted_init(mask_cache *c);
void counted_free(mask_cache *c); /* what is kept; not the lists themselves */
void counted_deinit(mask_cache *c);
/* What a stack on top of which is the item of a counted repetition allows. False: it is not one, and nothing was done. */
bool counted_add(mask_cache *c, pda *p, int32_t node, uint64_t *mask);

#endif
