/* tok_bpe_load.c - vocabularies made ready for merging: byte-level ones, and those with scores. */
#include "runtime/base/mem.h"
#include "runtime/text/tok_bpe.h"
#include "runtime/text/tok_unicode.h"
#include <stdlib.h>

/* The bytes that a byte-level text stands for, at `to`; how many, or 0 if one of its characters stands for none. */
static size_t to_bytes(str text, char *to)
{
    uint32_t cp;
    size_t n = 0;
    for (size_t i = 0; i < text.n;) {
        i += uni_next(text.p + i, &cp);
        int byte = uni_to_byte(cp);
        if (byte < 0)
            return 0;
        to[n++] = (char)byte;
    }
    return n;
}

/* What pieces are looked up in as a whole. */
static void make_raw(bpe *b, arena *a, const tok_vocab *v)
{
    size_t most = 0;
    for (size_t id = 0; id < v->tokens.n; id++)
        most += v->tokens.at[id].text.n;
    char *to = arena_alloc(a, most + 1);
    vocab_map_reserve(&b->raw, v->tokens.n);
    for (size_t id = 0; id < v->tokens.n; id++) {
        str text = v->tokens.at[id].text;
        size_t n = text.n && vocab_find(v, text) == (int32_t)id ? to_bytes(text, to) : 0;
        if (n)
            vocab_map_add_new(&b->raw, (str){to, n}, (int32_t)id);
        to += n;
    }
}

void bpe_use_bytes(bpe *b, arena *a, const tok_vocab *v)
{
    strbuf text = {0};
    b->bytes = true;
    for (int byte = 0; byte < 256; byte++) {
        strbuf_reset(&text);
        uni_add(&text, uni_of_byte((unsigned char)byte));
        b->of_byte[byte] = vocab_find(v, strbuf_view(&text));
    }
    strbuf_free(&text);
    if (b->ignore_merges)
        make_raw(b, a, v);
}

typedef struct {
    float score;
    int32_t id;
} scored;

static int by_score(const void *pa, const void *pb)
{
    const scored *a = pa, *b = pb;
    return a->score != b->score ? (a->score > b->score ? -1 : 1) : a->id - b->id;
}

static int32_t half_id(bpe *b, const tok_vocab *v, str half, uint32_t skip)
{
    int32_t id = vocab_find(v, half);
    if (id != VOCAB_NONE)
        return v->tokens.at[id].flags & skip ? VOCAB_NONE : id;
    if (half.n != uni_len(half.p[0]))
        return VOCAB_NONE;
    id = vocab_map_find(&b->extra_map, half);
    if (id == VOCAB_NONE) {
        id = b->extra_first + (int32_t)b->extra.n;
        VEC_PUSH(&b->extra, half);
        vocab_map_add(&b->extra_map, half, id);
    }
    return id;
}

void bpe_pairs_from_scores(bpe *b, const tok_vocab *v, const float *scores, uint32_t skip)
{
    VEC(scored) order = {0};
    b->extra_first = (int32_t)v->tokens.n;
    for (size_t id = 0; id < v->tokens.n; id++) {
        const vocab_token *t = &v->tokens.at[id];
        if (t->text.n && !(t->flags & skip) && vocab_find(v, t->text) == (int32_t)id)
            VEC_PUSH(&order, ((scored){scores[id] == scores[id] ? scores[id] : 0, (int32_t)id}));
    }
    if (order.n)
        qsort(order.at, order.n, sizeof *order.at, by_score);
    uint32_t rank = 0;
    for (size_t k = 0; k < order.n; k++) {
        str text = v->tokens.at[order.at[k].id].text;
        if (k && order.at[k].score != order.at[k - 1].score)
            rank++; /* equal scores: the leftmost pair goes first */
        for (size_t at = uni_len(text.p[0]); at < text.n; at += uni_len(text.p[at])) {
            int32_t left = half_id(b, v, (str){text.p, at}, skip);
            int32_t right = half_id(b, v, (str){text.p + at, text.n - at}, skip);
            if (left != VOCAB_NONE && right != VOCAB_NONE)
                bpe_add_pair(b, left, right, rank, order.at[k].id);
        }
    }
    VEC_FREE(&order);
}
