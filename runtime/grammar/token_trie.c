/* token_trie.c - tokens sorted by their bytes, and the tree that they are in this order. */
#include "runtime/grammar/token_trie.h"

#include "runtime/base/mem.h"
#include <stdlib.h>

/* ---- the tree ---- */

uint8_t byte_kind(uint8_t b)
{
    enum {
        SMALL,
        LARGE,
        DIGIT,
        BLANK,
        CONTROL,
        QUOTE,
        BACKSLASH,
        BRACKET,
        MARK,
        TAIL,
        LEAD_2,
        LEAD
    };
    if (b >= 0x80)
        return b < 0xc0 ? TAIL : b < 0xe0 ? LEAD_2 : LEAD;
    if (b < ' ' || b == 0x7f)
        return CONTROL;
    if (strchr("{}[],:", b))
        return BRACKET;
    return b >= 'a' && b <= 'z'   ? SMALL
           : b >= 'A' && b <= 'Z' ? LARGE
           : b >= '0' && b <= '9' ? DIGIT
           : b == ' '             ? BLANK
           : b == '"'             ? QUOTE
           : b == '\\'            ? BACKSLASH
                                  : MARK;
}

typedef struct {
    str text;
    int32_t id;
} sorted_token;

static int sorted_order(const void *a, const void *b)
{
    const sorted_token *x = a, *y = b;
    int c = str_cmp(x->text, y->text);
    return c ? c : x->id < y->id ? -1 : x->id > y->id;
}

static uint32_t node_add(token_trie *t, size_t depth, uint8_t byte)
{
    t->byte[t->n] = byte;
    t->depth[t->n] = (uint16_t)depth;
    t->token[t->n] = TRIE_NO_TOKEN;
    return (uint32_t)t->n++;
}

static void tree_make(token_trie *t, const sorted_token *list, size_t n)
{
    uint32_t path[TOKEN_BYTES_MAX + 1] = {0}; /* nodes of the text before */
    size_t depth = 0;
    str before = STR("");
    node_add(t, 0, 0);
    for (size_t i = 0; i < n; i++) {
        str s = list[i].text;
        size_t same = 0;
        while (same < before.n && same < s.n && before.p[same] == s.p[same])
            same++;
        for (; depth > same; depth--)
            t->end[path[depth]] = (uint32_t)t->n;
        for (; depth < s.n; depth++)
            path[depth + 1] = node_add(t, depth + 1, (uint8_t)s.p[depth]);
        t->same[list[i].id] = t->token[path[depth]];
        t->token[path[depth]] = list[i].id;
        before = s;
    }
    for (; depth > 0; depth--)
        t->end[path[depth]] = (uint32_t)t->n;
    t->end[0] = (uint32_t)t->n;
}

/* What is known of all below each node. */
static void sums_make(token_trie *t, size_t n_token)
{
    size_t n = 0;
    uint32_t path[TOKEN_BYTES_MAX + 1] = {0};
    t->below = mem_alloc(mem_product(t->n, sizeof *t->below));
    t->first = mem_alloc(mem_product(t->n + 1, sizeof *t->first));
    t->order = mem_alloc(mem_product(n_token + 1, sizeof *t->order));
    for (size_t i = 0; i < t->n; i++) {
        t->below[i] = 0;
        t->first[i] = (uint32_t)n;
        for (int32_t id = t->token[i]; id != TRIE_NO_TOKEN; id = t->same[id])
            t->order[n++] = id;
    }
    t->first[t->n] = (uint32_t)n;
    for (size_t i = 1; i < t->n; i++) {
        unsigned kind = 1u << byte_kind(t->byte[i]);
        path[t->depth[i]] = (uint32_t)i;
        for (size_t d = t->depth[i];
             d-- > 0;) { /* those above that have it have it all the way up */
            if (t->below[path[d]] & kind)
                break;
            t->below[path[d]] |= (uint16_t)kind;
        }
    }
}

void token_trie_init(token_trie *t, const str *text, int64_t n_token)
{
    *t = (token_trie){.n = 0};
    sorted_token *list = mem_alloc(mem_product((size_t)n_token + 1, sizeof *list));
    size_t n = 0, bytes = 0, at = 0;
    t->same = mem_alloc(mem_product((size_t)n_token + 1, sizeof *t->same));
    t->text_at = mem_alloc(mem_product((size_t)n_token + 1, sizeof *t->text_at));
    for (int64_t i = 0; i < n_token; i++) {
        t->same[i] = TRIE_NO_TOKEN;
        bytes += text[i].n <= TOKEN_BYTES_MAX ? text[i].n : 0;
    }
    t->text = mem_alloc(bytes + 1);
    for (int64_t i = 0; i < n_token; i++) {
        t->text_at[i] = (uint32_t)at;
        if (text[i].n == 0 || text[i].n > TOKEN_BYTES_MAX)
            continue;
        memcpy(t->text + at, text[i].p, text[i].n);
        list[n++] = (sorted_token){{t->text + at, text[i].n}, (int32_t)i};
        at += text[i].n;
        t->longest = text[i].n > t->longest ? text[i].n : t->longest;
    }
    t->text_at[n_token] = (uint32_t)at;
    qsort(list, n, sizeof *list, sorted_order);
    t->byte = mem_alloc(bytes + 1);
    t->depth = mem_alloc(mem_product(bytes + 1, sizeof *t->depth));
    t->end = mem_alloc(mem_product(bytes + 1, sizeof *t->end));
    t->token = mem_alloc(mem_product(bytes + 1, sizeof *t->token));
    tree_make(t, list, n);
    sums_make(t, n);
    mem_free(list);
}

void token_trie_deinit(token_trie *t)
{
    mem_free(t->byte);
    mem_free(t->depth);
    mem_free(t->end);
    mem_free(t->token);
    mem_free(t->below);
    mem_free(t->first);
    mem_free(t->order);
    mem_free(t->same);
    mem_free(t->text_at);
    mem_free(t->text);
}

/* ---- vocabularies ---- */

grammar_vocab *vocab_new(int64_t n_token)
{
    grammar_vocab *v = mem_alloc(sizeof *v);
    *v = (grammar_vocab){.n_token = n_token, .n_word = ((size_t)n_token + 63) / 64};
    v->ends = mem_alloc(mem_product(v->n_word, sizeof *v->ends));
    memset(v->ends, 0, v->n_word * sizeof *v->ends);
    return v;
}

grammar_vocab *grammar_vocab_of(const str *text, int64_t n_token, const int32_t *ends, size_t n_end)
{
    grammar_vocab *v = vocab_new(n_token);
    str *inside = mem_alloc(mem_product((size_t)n_token + 1, sizeof *inside));
    for (int64_t i = 0; i < n_token; i++)
        inside[i] = text[i];
    for (size_t i = 0; i < n_end; i++)
        if (ends[i] >= 0 && ends[i] < n_token) {
            mask_set(v->ends, ends[i]);
            inside[ends[i]] = STR("");
        }
    token_trie_init(&v->mid, inside, n_token);
    mem_free(inside);
    return v;
}

void grammar_vocab_destroy(grammar_vocab *v)
{
    if (!v)
        return;
    token_trie_deinit(&v->mid);
    token_trie_deinit(&v->first);
    mem_free(v->ends);
    mem_free(v);
}

int64_t grammar_vocab_size(const grammar_vocab *v)
{
    return v->n_token;
}
