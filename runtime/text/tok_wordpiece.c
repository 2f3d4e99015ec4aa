/* tok_wordpiece.c - greedy longest match. */
#include "runtime/text/tok_wordpiece.h"

#include "runtime/base/utf8.h"
#include "runtime/text/tok_unicode.h"

/* The longest token that word has at `at`; its end, or 0. */
static size_t longest(const wordpiece *w, const tok_vocab *v, str word, size_t at, strbuf *text,
                      int32_t *out_id)
{
    size_t prefix = at ? w->prefix.n : 0, end = word.n;
    if (end - at > v->text_max) {
        end = at + v->text_max;
        while (end > at && ((unsigned char)word.p[end] & 0xc0) == 0x80)
            end--;
    }
    strbuf_reset(text);
    strbuf_put(text, (str){w->prefix.p, prefix});
    strbuf_put(text, (str){word.p + at, end - at});
    for (; end > at; end = uni_back(word.p, end)) {
        *out_id = vocab_find(v, (str){text->p, prefix + end - at});
        if (*out_id != VOCAB_NONE)
            return end;
    }
    return 0;
}

weft_status wordpiece_encode(weft_diag *dg, const wordpiece *w, const tok_vocab *v, str word,
                             tok_ids *out)
{
    strbuf text = {0};
    size_t n_before = out->n, at = 0;
    bool known = utf8_count(word) <= w->chars_max;
    while (known && at < word.n) {
        int32_t id;
        size_t end = longest(w, v, word, at, &text, &id);
        known = end > 0;
        if (!known)
            break;
        VEC_PUSH(out, id);
        at = end;
    }
    strbuf_free(&text);
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
