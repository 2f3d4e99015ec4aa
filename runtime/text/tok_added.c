/* tok_added.c - a tree over the texts of added tokens, walked from each place one can begin.
 *
 * A match that is not taken (a special token in a plain text, a word inside another) still covers
 * its text: the search goes on behind it. That is what Hugging Face's tokenizers do. */
#include "runtime/text/tok_added.h"

#include "runtime/text/tok_unicode.h"

static uint32_t child_of(const tok_added *a, uint32_t node, unsigned char byte)
{
    uint32_t at = node ? a->nodes.at[node].child : a->first[byte];
    while (at && a->nodes.at[at].byte != byte)
        at = a->nodes.at[at].next;
    return at;
}

void added_put(tok_added *a, str text, added_token token)
{
    uint32_t node = 0;
    if (!text.n)
        return;
    if (!a->nodes.n)
        VEC_PUSH(&a->nodes, ((added_node){.token = -1}));
    for (size_t i = 0; i < text.n; i++) {
        unsigned char byte = (unsigned char)text.p[i];
        uint32_t next = child_of(a, node, byte);
        if (!next) {
            next = (uint32_t)a->nodes.n;
            added_node fresh = {.token = -1, .byte = byte};
            if (node) {
                fresh.next = a->nodes.at[node].child;
                a->nodes.at[node].child = next;
            } else {
                a->first[byte] = next;
            }
            VEC_PUSH(&a->nodes, fresh);
        }
        node = next;
    }
    a->nodes.at[node].token = (int32_t)a->tokens.n;
    VEC_PUSH(&a->tokens, token);
}

void added_free(tok_added *a)
{
    VEC_FREE(&a->nodes);
    VEC_FREE(&a->tokens);
}

/* The longest token at `at`: its end, or 0. */
static size_t longest(const added_scan *s, size_t at, const added_token **out_token)
{
    size_t end = 0;
    uint32_t node = 0;
    for (size_t i = at; i < s->text.n; i++) {
        node = child_of(s->a, node, (unsigned char)s->text.p[i]);
        if (!node)
            break;
        if (s->a->nodes.at[node].token >= 0) {
            *out_token = &s->a->tokens.at[s->a->nodes.at[node].token];
            end = i + 1;
        }
    }
    return end;
}

static bool is_word_before(str s, size_t at)
{
    uint32_t cp;
    if (at == 0)
        return false;
    uni_next(s.p + uni_back(s.p, at), &cp);
    return uni_is_word(cp);
}

static bool is_word_after(str s, size_t at)
{
    uint32_t cp;
    if (at == s.n)
        return false;
    uni_next(s.p + at, &cp);
    return uni_is_word(cp);
}

static size_t skip_left(str s, size_t at, size_t stop)
{
    uint32_t cp;
    while (at > stop) {
        size_t before = uni_back(s.p, at);
        uni_next(s.p + before, &cp);
        if (before < stop || !uni_is_space(cp))
            break;
        at = before;
    }
    return at;
}

static size_t skip_right(str s, size_t at)
{
    uint32_t cp;
    while (at < s.n) {
        size_t n = uni_next(s.p + at, &cp);
        if (!uni_is_space(cp))
            break;
        at += n;
    }
    return at;
}

bool added_next(added_scan *s, size_t *out_begin, size_t *out_end, int32_t *out_id)
{
    if (!s->a->tokens.n)
        return false;
    while (s->from < s->text.n) {
        const added_token *token = NULL;
        size_t begin = s->from;
        while (begin < s->text.n && !s->a->first[(unsigned char)s->text.p[begin]])
            begin++;
        size_t end = begin < s->text.n ? longest(s, begin, &token) : 0;
        if (!end) {
            s->from = begin + 1;
            continue;
        }
        s->from = end;
        if ((token->flags & ADDED_SPECIAL) && !s->parse_special)
            continue;
        if ((token->flags & ADDED_SINGLE_WORD) &&
            (is_word_before(s->text, begin) || is_word_after(s->text, end)))
            continue;
        if (token->flags & ADDED_LSTRIP)
            begin = skip_left(s->text, begin, s->done);
        if (begin < s->done) /* another token took this white space */
            begin = s->done;
        if (token->flags & ADDED_RSTRIP)
            end = skip_right(s->text, end);
        s->done = end;
        if (s->from < end)
            s->from = end;
        *out_begin = begin;
        *out_end = end < begin ? begin : end;
        *out_id = token->id;
        return true;
    }
    return false;
}
