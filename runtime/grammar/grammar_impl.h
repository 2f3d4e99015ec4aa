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
} mask_part;

typedef struct {
    const grammar_vocab *v;
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
/* Forget all. The last call was left where memory was short, and the parts from n_part on are gone with it. Takes none itself. */
void mask_cache_drop(mask_cache *c, size_t n_part);
/* What may follow in this set, end tokens included. NULL: memory has run out. */
const uint64_t *mask_of_set(mask_cache *c, pda *p, int32_t set);
/* The same for the first token of a text, where those differ; not kept. */
const uint64_t *mask_of_first(mask_cache *c, pda *p, int32_t set);

#endif
