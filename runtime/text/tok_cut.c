/* tok_cut.c - a set of pairs of characters, and the search for a place whose pair is not in it. */
#include "runtime/text/tok_cut.h"

#include "runtime/base/mem.h"
#include "runtime/text/tok_unicode.h"
#include <stdlib.h>

enum { LOWER_BLOCK = 0x2581 }; /* how SentencePiece writes a space */

static uint64_t pair_of(uint32_t left, uint32_t right)
{
    return (uint64_t)left << 32 | right | UINT64_C(1) << 63;
}

static uint64_t *slot_of(const tok_cut *c, uint64_t pair)
{
    uint64_t h = pair * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (h ^ h >> 31) & (c->cap - 1);
    while (c->pairs[at] && c->pairs[at] != pair)
        at = (at + 1) & (c->cap - 1);
    return &c->pairs[at];
}

static void add(tok_cut *c, uint64_t pair)
{
    if (c->n * 2 >= c->cap) {
        tok_cut bigger = {.cap = c->cap ? c->cap * 2 : 1024};
        bigger.pairs = mem_alloc(mem_product(bigger.cap, sizeof *bigger.pairs));
        memset(bigger.pairs, 0, bigger.cap * sizeof *bigger.pairs);
        for (size_t i = 0; i < c->cap; i++)
            if (c->pairs[i])
                *slot_of(&bigger, c->pairs[i]) = c->pairs[i];
        mem_free(c->pairs);
        c->pairs = bigger.pairs;
        c->cap = bigger.cap;
    }
    uint64_t *slot = slot_of(c, pair);
    c->n += !*slot;
    *slot = pair;
}

void cut_add(tok_cut *c, str token)
{
    uint32_t left, right;
    if (!token.n)
        return;
    for (size_t i = uni_next(token.p, &left); i < token.n; left = right) {
        i += uni_next(token.p + i, &right);
        add(c, pair_of(left, right));
    }
}

void cut_deinit(tok_cut *c)
{
    mem_free(c->pairs);
    *c = (tok_cut){0};
}

static bool is_safe(const tok_cut *c, uint32_t left, uint32_t right)
{
    return !c->cap || !*slot_of(c, pair_of(left, right));
}

/* The next part starts with a character that has a token, so that no run of unknown characters,
 * which may become one token, is cut. */
static bool is_known(const tok_vocab *v, str piece, size_t at)
{
    return vocab_find(v, (str){piece.p + at, uni_len(piece.p[at])}) != VOCAB_NONE;
}

static size_t forced(str piece, size_t from)
{
    size_t at = from + CUT_FORCED_BYTES;
    while (((unsigned char)piece.p[at] & 0xc0) == 0x80)
        at--;
    return at;
}

size_t cut_next(const tok_cut *c, const tok_vocab *v, str piece, size_t from)
{
    uint32_t left = 0, right;
    size_t at = from;
    if (c->forced)
        return piece.n - from > CUT_FORCED_BYTES ? forced(piece, from) : piece.n;
    if (at < piece.n)
        at += uni_next(piece.p + at, &left);
    for (size_t n; at < piece.n; at += n, left = right) {
        n = uni_next(piece.p + at, &right);
        if (right != LOWER_BLOCK && at - from < CUT_ANYWHERE_BYTES)
            continue;
        if (is_safe(c, left, right) && is_known(v, piece, at))
            return at;
        if (at - from >= CUT_FORCED_BYTES)
            return at;
    }
    return piece.n;
}
