/* tok_unigram.c - Viterbi over the tokens that begin at each character.
 *
 * Ties go to the path found first, as in sentencepiece and Hugging Face's tokenizers; scores are
 * doubles there too. Neighbours without token become one unknown token, or its bytes. */
#include "runtime/text/tok_unigram.h"

#include "runtime/base/mem.h"
#include "runtime/text/tok_unicode.h"
#include <math.h>
#include <stdlib.h>

static const double unknown_penalty = 10; /* sentencepiece's kUnkPenalty */

void unigram_deinit(unigram *u)
{
    VEC_FREE(&u->nodes);
    VEC_FREE(&u->scores);
}

void unigram_scratch_free(unigram_scratch *s)
{
    mem_free(s->steps);
    VEC_FREE(&s->ids);
    VEC_FREE(&s->ends);
    *s = (unigram_scratch){0};
}

typedef struct {
    str text;
    int32_t id;
} entry;

static int by_text(const void *a, const void *b)
{
    return str_cmp(((const entry *)a)->text, ((const entry *)b)->text);
}

/* The nodes are laid out level by level: the children of one node are made together. */
typedef struct {
    size_t begin, end; /* of the sorted entries that go through the node */
} part;

static void build_tree(unigram *u, const entry *at, size_t n)
{
    VEC(part) parts = {0}; /* of each node */
    VEC_PUSH(&u->nodes, ((unigram_node){.id = VOCAB_NONE}));
    VEC_PUSH(&parts, ((part){0, n}));
    size_t level_end = 1, depth = 0;
    for (size_t node = 0; node < u->nodes.n; node++) {
        if (node == level_end) {
            level_end = u->nodes.n;
            depth++;
        }
        part p = parts.at[node];
        if (p.begin < p.end && at[p.begin].text.n == depth)
            u->nodes.at[node].id = at[p.begin++].id;
        u->nodes.at[node].child = (uint32_t)u->nodes.n;
        for (size_t i = p.begin, j; i < p.end; i = j) {
            unsigned char byte = (unsigned char)at[i].text.p[depth];
            for (j = i; j < p.end && (unsigned char)at[j].text.p[depth] == byte;)
                j++;
            VEC_PUSH(&u->nodes, ((unigram_node){.byte = byte, .id = VOCAB_NONE}));
            VEC_PUSH(&parts, ((part){i, j}));
            u->nodes.at[node].n_child++;
        }
    }
    VEC_FREE(&parts);
}

void unigram_finish(unigram *u, const tok_vocab *v, uint32_t skip)
{
    VEC(entry) all = {0};
    double least = INFINITY;
    for (size_t id = 0; id < v->tokens.n; id++) {
        str text = v->tokens.at[id].text;
        if (!text.n || v->tokens.at[id].flags & skip || id >= u->scores.n)
            continue;
        if (u->scores.at[id] < least)
            least = u->scores.at[id];
        if (vocab_find(v, text) == (int32_t)id)
            VEC_PUSH(&all, ((entry){text, (int32_t)id}));
    }
    if (all.n)
        qsort(all.at, all.n, sizeof *all.at, by_text);
    build_tree(u, all.at, all.n);
    VEC_FREE(&all);
    u->unk_score = (isfinite(least) ? least : 0) - unknown_penalty;
    vocab_bytes(v, u->fallback);
}

static uint32_t child_of(const unigram *u, uint32_t node, unsigned char byte)
{
    uint32_t low = u->nodes.at[node].child, high = low + u->nodes.at[node].n_child;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (u->nodes.at[mid].byte < byte)
            low = mid + 1;
        else
            high = mid;
    }
    uint32_t end = u->nodes.at[node].child + u->nodes.at[node].n_child;
    return low < end && u->nodes.at[low].byte == byte ? low : 0;
}

static void offer(unigram_step *step, double score, size_t from, int32_t id)
{
    if (step->id == VOCAB_NONE || score > step->score)
        *step = (unigram_step){score, (uint32_t)from, id};
}

static weft_status find_path(weft_diag *dg, const unigram *u, str piece, unigram_step *steps)
{
    for (size_t at = 0; at < piece.n;) {
        size_t n = uni_len(piece.p[at]);
        double here = at ? steps[at].score : 0;
        bool single = false;
        uint32_t node = 0;
        for (size_t i = at; i < piece.n; i++) {
            node = child_of(u, node, (unsigned char)piece.p[i]);
            if (!node)
                break;
            int32_t id = u->nodes.at[node].id;
            if (id == VOCAB_NONE)
                continue;
            offer(&steps[i + 1], here + u->scores.at[id], at, id);
            single |= i + 1 - at == n;
        }
        if (!single && u->unk == VOCAB_NONE)
            return weft_fail(dg, W1208, WEFT_NOWHERE,
                             "no token for '" STR_FMT "', and none for unknown characters",
                             STR_ARG(((str){piece.p + at, n})));
        if (!single)
            offer(&steps[at + n], here + u->unk_score, at, u->unk);
        at += n;
    }
    return WEFT_OK;
}

/* A stretch of unknown characters: together they may be a token after all. */
static void put_unknown(const unigram *u, const tok_vocab *v, str text, tok_ids *out)
{
    int32_t id = vocab_find(v, text);
    bool bytes = u->byte_fallback && id == VOCAB_NONE;
    for (size_t i = 0; bytes && i < text.n; i++)
        bytes = u->fallback[(unsigned char)text.p[i]] != VOCAB_NONE;
    if (!bytes)
        VEC_PUSH(out, id == VOCAB_NONE ? u->unk : id);
    for (size_t i = 0; bytes && i < text.n; i++)
        VEC_PUSH(out, u->fallback[(unsigned char)text.p[i]]);
}

static void grow_steps(unigram_scratch *s, size_t n)
{
    size_t cap = n + n / 4 + 256;
    s->steps = mem_realloc(s->steps, mem_product(cap, sizeof *s->steps));
    s->cap = cap;
}

void unigram_scratch_start(unigram_scratch *s)
{
    grow_steps(s, 0);
    VEC_START(&s->ids);
    VEC_START(&s->ends);
}

weft_status unigram_encode(weft_diag *dg, const unigram *u, const tok_vocab *v, unigram_scratch *s,
                           str piece, tok_ids *out)
{
    if (piece.n + 1 > s->cap)
        grow_steps(s, piece.n);
    for (size_t i = 0; i <= piece.n; i++)
        s->steps[i].id = VOCAB_NONE;
    WEFT_TRY(find_path(dg, u, piece, s->steps));
    s->ids.n = s->ends.n = 0;
    for (size_t at = piece.n; at > 0; at = s->steps[at].from) {
        bool fuse = s->ids.n && s->steps[at].id == u->unk && s->ids.at[s->ids.n - 1] == u->unk;
        if (fuse)
            continue;
        VEC_PUSH(&s->ids, s->steps[at].id);
        VEC_PUSH(&s->ends, (int32_t)at);
    }
    for (size_t k = s->ids.n, begin = 0; k-- > 0; begin = (size_t)s->ends.at[k]) {
        if (s->ids.at[k] == u->unk)
            put_unknown(u, v, (str){piece.p + begin, (size_t)s->ends.at[k] - begin}, out);
        else
            VEC_PUSH(out, s->ids.at[k]);
    }
    return WEFT_OK;
}
