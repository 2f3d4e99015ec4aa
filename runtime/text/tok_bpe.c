/* tok_bpe.c - merging, in two ways: short words by looking for the lowest rank each time, long ones
 * with a heap, so that a word of n symbols costs n log n.
 *
 * A heap entry is rank and place in one number; entries go stale when a neighbour merges, and are
 * recognised when they come up, by looking the pair up again. */
#include "runtime/text/tok_bpe.h"

#include "runtime/base/mem.h"
#include "runtime/text/tok_unicode.h"
#include <stdlib.h>

enum {
    SHORT_WORD = 24, /* symbols; measured on English and Russian text */
    SCRATCH_FIRST = 256,
};

#define NOWHERE UINT32_MAX

void bpe_init(bpe *b)
{
    *b = (bpe){.unk = VOCAB_NONE};
    for (int i = 0; i < 256; i++)
        b->of_byte[i] = b->fallback[i] = VOCAB_NONE;
}

void bpe_deinit(bpe *b)
{
    if (!b->borrowed)
        mem_free(b->pairs);
    vocab_map_free(&b->raw);
    VEC_FREE(&b->extra);
    vocab_map_free(&b->extra_map);
    bpe_init(b);
}

void bpe_scratch_free(bpe_scratch *s)
{
    mem_free(s->ids);
    mem_free(s->prev);
    mem_free(s->next);
    mem_free(s->heap);
    strbuf_free(&s->text);
    *s = (bpe_scratch){0};
}

static bpe_pair *pair_slot(const bpe *b, int32_t left, int32_t right)
{
    uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (h ^ h >> 29) & (b->cap - 1);
    while (b->pairs[at].left != VOCAB_NONE &&
           (b->pairs[at].left != left || b->pairs[at].right != right))
        at = (at + 1) & (b->cap - 1);
    return &b->pairs[at];
}

static void pairs_grow(bpe *b)
{
    bpe bigger = {.cap = b->cap ? b->cap * 2 : 1024};
    bigger.pairs = mem_alloc(mem_product(bigger.cap, sizeof *bigger.pairs));
    for (size_t i = 0; i < bigger.cap; i++)
        bigger.pairs[i].left = VOCAB_NONE;
    for (size_t i = 0; i < b->cap; i++)
        if (b->pairs[i].left != VOCAB_NONE)
            *pair_slot(&bigger, b->pairs[i].left, b->pairs[i].right) = b->pairs[i];
    mem_free(b->pairs);
    b->pairs = bigger.pairs;
    b->cap = bigger.cap;
}

static int by_rank(const void *a, const void *b)
{
    const bpe_pair *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->left != y->left)
        return x->left < y->left ? -1 : 1;
    return (x->right > y->right) - (x->right < y->right);
}

void bpe_pairs_place(const bpe *b, bpe_pair *table, size_t cap)
{
    bpe_pair *list = mem_alloc(mem_product(b->n + 1, sizeof *list));
    const bpe placed = {.pairs = table, .cap = cap};
    size_t n = 0;
    for (size_t i = 0; i < b->cap; i++)
        if (b->pairs[i].left != VOCAB_NONE)
            list[n++] = b->pairs[i];
    WEFT_ASSERT(n < cap);
    qsort(list, n, sizeof *list, by_rank);
    for (size_t i = 0; i < cap; i++)
        table[i] = (bpe_pair){.left = VOCAB_NONE};
    for (size_t i = 0; i < n; i++)
        *pair_slot(&placed, list[i].left, list[i].right) = list[i];
    mem_free(list);
}

void bpe_add_pair(bpe *b, int32_t left, int32_t right, uint32_t rank, int32_t id)
{
    if (b->n * 2 >= b->cap)
        pairs_grow(b);
    bpe_pair *p = pair_slot(b, left, right);
    if (p->left != VOCAB_NONE)
        return;
    *p = (bpe_pair){left, right, rank, id};
    b->n++;
}

static const bpe_pair *pair_find(const bpe *b, int32_t left, int32_t right)
{
    if (!b->cap)
        return NULL;
    const bpe_pair *p = pair_slot(b, left, right);
    return p->left == VOCAB_NONE ? NULL : p;
}

static uint32_t rank_of(const bpe *b, int32_t left, int32_t right)
{
    const bpe_pair *p = pair_find(b, left, right);
    return p ? p->rank : NOWHERE;
}

/* What stands for a character without token: ids, all of them from lo to hi. */
typedef struct {
    const bpe *b;
    int32_t lo, hi;
} unknowns;

static unknowns unknowns_of(const bpe *b)
{
    unknowns u = {b, b->unk, b->unk};
    for (int i = 0; b->byte_fallback && i < 256; i++) {
        u.lo = b->fallback[i] < u.lo ? b->fallback[i] : u.lo;
        u.hi = b->fallback[i] > u.hi ? b->fallback[i] : u.hi;
    }
    return u;
}

static bool stands_for_unknown(const unknowns *u, int32_t id)
{
    if (id < u->lo || id > u->hi)
        return false;
    bool found = id == u->b->unk;
    for (int i = 0; u->b->byte_fallback && !found && i < 256; i++)
        found = id == u->b->fallback[i];
    return found;
}

bool bpe_merges_unknown(const bpe *b)
{
    unknowns u = unknowns_of(b);
    for (size_t i = 0; i < b->cap; i++)
        if (b->pairs[i].left != VOCAB_NONE &&
            (stands_for_unknown(&u, b->pairs[i].left) || stands_for_unknown(&u, b->pairs[i].right)))
            return true;
    return false;
}

int32_t bpe_whole(const bpe *b, const tok_vocab *v, str piece)
{
    if (piece.n > v->text_max)
        return VOCAB_NONE;
    return b->bytes ? vocab_map_find(&b->raw, piece) : vocab_find(v, piece);
}

static void grow_heap(bpe_scratch *s)
{
    size_t cap = s->heap_cap ? s->heap_cap * 2 : SCRATCH_FIRST;
    s->heap = mem_realloc(s->heap, mem_product(cap, sizeof *s->heap));
    s->heap_cap = cap;
}

/* Room for n symbols. How many a piece has is known only once it is split: a character may be the bytes of its prefix
 * and suffix too. */
static void reserve(bpe_scratch *s, size_t n)
{
    if (n <= s->cap)
        return;
    size_t cap = n < SCRATCH_FIRST ? SCRATCH_FIRST : n + n / 2;
    s->ids = mem_realloc(s->ids, mem_product(cap, sizeof *s->ids));
    s->prev = mem_realloc(s->prev, mem_product(cap, sizeof *s->prev));
    s->next = mem_realloc(s->next, mem_product(cap, sizeof *s->next));
    s->cap = cap;
}

void bpe_scratch_start(bpe_scratch *s)
{
    reserve(s, SCRATCH_FIRST);
    grow_heap(s);
    strbuf_start(&s->text);
}

/* Symbols as they come, with what has no token. */
typedef struct {
    const bpe *b;
    bpe_scratch *s;
    size_t n;
    bool unknown; /* an unknown token waits to be written */
} symbols;

static void symbols_add(symbols *s, int32_t id)
{
    if (s->n == s->s->cap)
        reserve(s->s, s->n + 1);
    s->s->ids[s->n++] = id;
}

static void symbols_settle(symbols *s)
{
    if (s->unknown)
        symbols_add(s, s->b->unk);
    s->unknown = false;
}

static void symbols_put(symbols *s, int32_t id)
{
    symbols_settle(s);
    symbols_add(s, id);
}

/* bytes are those of a character that has no token. */
static void symbols_put_unknown(symbols *s, str bytes)
{
    bool all = s->b->byte_fallback;
    for (size_t i = 0; all && i < bytes.n; i++)
        all = s->b->fallback[(unsigned char)bytes.p[i]] != VOCAB_NONE;
    if (all) { /* an unknown token that waits goes on waiting */
        for (size_t i = 0; i < bytes.n; i++)
            symbols_add(s, s->b->fallback[(unsigned char)bytes.p[i]]);
        return;
    }
    if (s->b->unk == VOCAB_NONE)
        return;
    if (!s->b->fuse_unk)
        symbols_settle(s);
    s->unknown = true;
}

static size_t split_bytes(const bpe *b, bpe_scratch *s, str piece)
{
    symbols to = {.b = b, .s = s};
    for (size_t i = 0; i < piece.n; i++) {
        int32_t id = b->of_byte[(unsigned char)piece.p[i]];
        if (id != VOCAB_NONE)
            symbols_put(&to, id);
        else
            symbols_put_unknown(&to, (str){piece.p + i, 1});
    }
    symbols_settle(&to);
    return to.n;
}

static int32_t find_char(const bpe *b, const tok_vocab *v, str text)
{
    int32_t id = vocab_find(v, text);
    return id == VOCAB_NONE && b->extra.n ? vocab_map_find(&b->extra_map, text) : id;
}

static size_t split_chars(const bpe *b, const tok_vocab *v, bpe_scratch *s, str piece)
{
    symbols to = {.b = b, .s = s};
    for (size_t i = 0, n; i < piece.n; i += n) {
        n = uni_len(piece.p[i]);
        str text = {piece.p + i, n};
        bool first = i == 0, last = i + n == piece.n;
        if ((b->prefix.n && !first) || (b->suffix.n && last)) {
            strbuf_reset(&s->text);
            strbuf_put(&s->text, first ? STR("") : b->prefix);
            strbuf_put(&s->text, text);
            strbuf_put(&s->text, last ? b->suffix : STR(""));
            text = strbuf_view(&s->text);
        }
        int32_t id = find_char(b, v, text);
        if (id != VOCAB_NONE)
            symbols_put(&to, id);
        else
            symbols_put_unknown(&to, text);
    }
    symbols_settle(&to);
    return to.n;
}

/* ranks[i] is that of the pair i, i + 1. */
static size_t merge_short(const bpe *b, int32_t *ids, size_t n)
{
    uint32_t ranks[SHORT_WORD];
    for (size_t i = 0; i + 1 < n; i++)
        ranks[i] = rank_of(b, ids[i], ids[i + 1]);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (ranks[i] < ranks[best])
                best = i;
        if (ranks[best] == NOWHERE)
            break;
        ids[best] = pair_find(b, ids[best], ids[best + 1])->id;
        memmove(&ids[best + 1], &ids[best + 2], (n - best - 2) * sizeof *ids);
        if (n > best + 2)
            memmove(&ranks[best], &ranks[best + 1], (n - best - 2) * sizeof *ranks);
        n--;
        if (best + 1 < n)
            ranks[best] = rank_of(b, ids[best], ids[best + 1]);
        if (best > 0)
            ranks[best - 1] = rank_of(b, ids[best - 1], ids[best]);
    }
    return n;
}

static void heap_down(uint64_t *heap, size_t n, size_t at)
{
    uint64_t item = heap[at];
    for (size_t child; (child = 4 * at + 1) < n; at = child) {
        size_t end = child + 4 < n ? child + 4 : n, best = child;
        for (size_t i = child + 1; i < end; i++)
            if (heap[i] < heap[best])
                best = i;
        if (heap[best] >= item)
            break;
        heap[at] = heap[best];
        child = best;
    }
    heap[at] = item;
}

static void heap_push(bpe_scratch *s, size_t *n, uint64_t item)
{
    if (*n == s->heap_cap)
        grow_heap(s);
    size_t at = (*n)++;
    for (; at > 0 && s->heap[(at - 1) / 4] > item; at = (at - 1) / 4)
        s->heap[at] = s->heap[(at - 1) / 4];
    s->heap[at] = item;
}

static void push_pair(const bpe *b, bpe_scratch *s, size_t *n, uint32_t left, uint32_t right)
{
    uint32_t rank = rank_of(b, s->ids[left], s->ids[right]);
    if (rank != NOWHERE)
        heap_push(s, n, (uint64_t)rank << 32 | left);
}

static size_t merge_long(const bpe *b, bpe_scratch *s, size_t n)
{
    size_t n_heap = 0;
    for (size_t i = 0; i < n; i++) {
        s->prev[i] = i ? (uint32_t)i - 1 : NOWHERE;
        s->next[i] = i + 1 < n ? (uint32_t)i + 1 : NOWHERE;
    }
    for (size_t i = 0; i + 1 < n; i++)
        push_pair(b, s, &n_heap, (uint32_t)i, (uint32_t)i + 1);
    while (n_heap) {
        uint64_t top = s->heap[0];
        s->heap[0] = s->heap[--n_heap];
        if (n_heap)
            heap_down(s->heap, n_heap, 0);
        uint32_t at = (uint32_t)top, right = s->ids[at] == VOCAB_NONE ? NOWHERE : s->next[at];
        if (right == NOWHERE)
            continue;
        const bpe_pair *p = pair_find(b, s->ids[at], s->ids[right]);
        if (!p || p->rank != top >> 32)
            continue; /* stale */
        s->ids[at] = p->id;
        s->ids[right] = VOCAB_NONE;
        s->next[at] = s->next[right];
        if (s->next[at] != NOWHERE) {
            s->prev[s->next[at]] = at;
            push_pair(b, s, &n_heap, at, s->next[at]);
        }
        if (s->prev[at] != NOWHERE)
            push_pair(b, s, &n_heap, s->prev[at], at);
    }
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        if (s->ids[i] != VOCAB_NONE)
            s->ids[left++] = s->ids[i];
    return left;
}

/* A character without token that no merge took in. */
static void put_extra(const bpe *b, str text, tok_ids *out)
{
    for (size_t i = 0; i < text.n; i++) {
        int32_t id = b->fallback[(unsigned char)text.p[i]];
        if (id == VOCAB_NONE)
            id = b->unk;
        if (id != VOCAB_NONE)
            VEC_PUSH(out, id);
    }
}

void bpe_encode(const bpe *b, const tok_vocab *v, bpe_scratch *s, str piece, tok_ids *out)
{
    reserve(s, piece.n + 1);
    size_t n = b->bytes ? split_bytes(b, s, piece) : split_chars(b, v, s, piece);
    n = n <= SHORT_WORD ? merge_short(b, s->ids, n) : merge_long(b, s, n);
    for (size_t i = 0; i < n; i++) {
        if (b->extra.n && s->ids[i] >= b->extra_first)
            put_extra(b, b->extra.at[s->ids[i] - b->extra_first], out);
        else
            VEC_PUSH(out, s->ids[i]);
    }
}
