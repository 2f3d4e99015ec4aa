/* tok_wordpiece.c - greedy longest match, in one tree of the tokens and one of those that continue. */
#include "runtime/text/tok_wordpiece.h"

#include "runtime/base/utf8.h"

void wordpiece_finish(wordpiece *w, const tok_vocab *v)
{
    VEC(tree_entry) starts = {0}, continues = {0};
    for (size_t id = 0; id < v->tokens.n; id++) {
        str text = v->tokens.at[id].text;
        if (!text.n || vocab_find(v, text) != (int32_t)id)
            continue;
        VEC_PUSH(&starts, ((tree_entry){text, (int32_t)id}));
        if (text.n > w->prefix.n && str_starts(text, w->prefix))
            VEC_PUSH(&continues,
                     ((tree_entry){{text.p + w->prefix.n, text.n - w->prefix.n}, (int32_t)id}));
    }
    tree_make(&w->starts, starts.at, starts.n);
    tree_make(&w->continues, continues.at, continues.n);
    VEC_FREE(&starts);
    VEC_FREE(&continues);
}

void wordpiece_deinit(wordpiece *w)
{
    tree_free(&w->starts);
    tree_free(&w->continues);
}

/* The longest token that word has at `at`; its end, or 0. */
static size_t longest(const wordpiece *w, str word, size_t at, int32_t *out_id)
{
    const tok_tree *t = at ? &w->continues : &w->starts;
    size_t end = 0;
    uint32_t node = 0;
    for (size_t i = at; i < word.n && (node = tree_child(t, node, (unsigned char)word.p[i])); i++) {
        if (t->nodes.at[node].id == VOCAB_NONE)
            continue;
        *out_id = t->nodes.at[node].id;
        end = i + 1;
    }
    return end;
}

weft_status wordpiece_encode(weft_diag *dg, const wordpiece *w, str word, tok_ids *out)
{
    size_t n_before = out->n, at = 0;
    bool known = utf8_count(word) <= w->chars_max;
    while (known && at < word.n) {
        int32_t id;
        size_t end = longest(w, word, at, &id);
        known = end > 0;
        if (!known)
            break;
        VEC_PUSH(out, id);
        at = end;
    }
    if (known)
        return WEFT_OK;
    out->n = n_before;
    if (w->unk == VOCAB_NONE)
        return weft_fail(dg, W1208, WEFT_NOWHERE,
                         "no tokens for the word '" STR_FMT "', and none for unknown words",
                         STR_ARG(((str){word.p, word.n < 100 ? word.n : 100})));
    VEC_PUSH(out, w->unk);
    return WEFT_OK;
}
