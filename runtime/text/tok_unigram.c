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
    tree_free(&u->tree);
    VEC_FREE(&u->scores);
}

void unigram_scratch_free(unigram_scratch *s)
{
    mem_free(s->steps);
    VEC_FREE(&s->ids);
    VEC_FREE(&s->ends);
    *s = (unigram_scratch){0};
}

void unigram_finish(unigram *u, const tok_vocab *v, uint32_t skip)
{
    VEC(tree_entry) all = {0};
    double least = INFINITY;
    u->skip = skip;
    for (size_t id = 0; id < v->tokens.n; id++) {
        str text = v->tokens.at[id].text;
        if (!text.n || v->tokens.at[id].flags & skip || id >= u->scores.n)
            continue;
        if (u->scores.at[id] < least)
            least = u->scores.at[id];
        if (vocab_find(v, text) == (int32_t)id)
            VEC_PUSH(&all, ((tree_entry){text, (int32_t)id}));
    }
    tree_make(&u->tree, all.at, all.n);
    VEC_FREE(&all);
    u->unk_score = (isfinite(least) ? least : 0) - unknown_penalty;
    vocab_bytes(v, u->fallback);
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
            node = tree_child(&u->tree, node, (unsigned char)piece.p[i]);
            if (!node)
                break;
            int32_t id = u->tree.nodes.at[node].id;
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
