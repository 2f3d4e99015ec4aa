/* token_trie.c - tokens sorted by their bytes, and the tree that they are in this order. */
#include "runtime/grammar/token_trie.h"

#include "runtime/base/mem.h"
#include "runtime/base/utf8.h"
#include <stdlib.h>

/* ---- the tree ---- */

uint8_t byte_kind(uint8_t b)
{
    if (b >= 0x80)
        return b < 0xc0 ? KIND_TAIL : b < 0xe0 ? KIND_LEAD_2 : KIND_LEAD;
    if (b < ' ' || b == 0x7f)
        return KIND_CONTROL;
    if (strchr("{}[],:", b))
        return KIND_BRACKET;
    return b >= 'a' && b <= 'z'   ? KIND_SMALL
           : b >= 'A' && b <= 'Z' ? KIND_LARGE
           : b >= '0' && b <= '9' ? KIND_DIGIT
           : b == ' '             ? KIND_BLANK
           : b == '"'             ? KIND_QUOTE
           : b == '\\'            ? KIND_BACKSLASH
                                  : KIND_MARK;
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

/* What is known of a node's text as it grows by a byte. */
typedef struct {
    uint32_t node;
    uint16_t begin; /* of its last character */
    uint16_t n_char;
    uint16_t kinds; /* of its characters; KIND_TAIL for one that is not complete */
} prefix;

/* p[d] from p[d - 1] and the bytes text[0..d). Returns the kind of the character that is complete now, as a bit, or 0. */
static unsigned prefix_grow(prefix *p, const char *text, size_t d)
{
    size_t begin = p[d - 1].begin, len = d - begin;
    uint8_t first = (uint8_t)text[begin];
    size_t needed = first < 0xc2 || first > 0xf4 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    bool tail = ((uint8_t)text[d - 1] & 0xc0) == 0x80;
    uint32_t cp;
    if (len < needed && (len == 1 || tail)) {
        p[d].begin = (uint16_t)begin;
        p[d].n_char = p[d - 1].n_char;
        p[d].kinds = p[begin].kinds | 1u << KIND_TAIL;
        return 0;
    }
    bool whole = len == needed && utf8_decode((str){text + begin, len}, &cp) == len;
    unsigned kind = 1u << (whole ? byte_kind(first) : KIND_TAIL);
    p[d].begin = (uint16_t)d;
    p[d].n_char = p[d - 1].n_char + 1;
    p[d].kinds = (uint16_t)(p[begin].kinds | kind);
    return kind;
}

/* Adds a kind to what is below a node of the path and all above it: those that have it have it all the way up. */
static void below_add(token_trie *t, const prefix *path, size_t depth, unsigned kind)
{
    for (size_t d = depth + 1; d-- > 0 && !(t->below[path[d].node] & kind);)
        t->below[path[d].node] |= (uint16_t)kind;
}

/* What is known of each node, and of all below it. */
static void sums_make(token_trie *t, size_t n_token)
{
    size_t n = 0;
    prefix path[TOKEN_BYTES_MAX + 1] = {{0}};
    char text[TOKEN_BYTES_MAX + 1];
    t->below = mem_alloc(mem_product(t->n, sizeof *t->below));
    t->chars = mem_alloc(mem_product(t->n, sizeof *t->chars));
    t->first = mem_alloc(mem_product(t->n + 1, sizeof *t->first));
    t->order = mem_alloc(mem_product(n_token + 1, sizeof *t->order));
    memset(t->below, 0, t->n * sizeof *t->below);
    t->chars[0] = 0;
    for (size_t i = 0; i < t->n; i++) {
        size_t d = t->depth[i];
        t->first[i] = (uint32_t)n;
        if (d > 0) {
            text[d - 1] = (char)t->byte[i];
            path[d].node = (uint32_t)i;
            size_t begin = path[d - 1].begin;
            unsigned kind = prefix_grow(path, text, d);
            t->chars[i] = path[d].n_char | (kind ? 0 : CHARS_CUT);
            if (kind)
                below_add(t, path, kind == 1u << KIND_TAIL ? d - 1 : begin, kind);
            else if (t->token[i] != TRIE_NO_TOKEN)
                below_add(t, path, d - 1, 1u << KIND_TAIL);
        }
        for (int32_t id = t->token[i]; id != TRIE_NO_TOKEN; id = t->same[id]) {
            t->order[n++] = id;
            t->kinds[id] = path[d].kinds;
        }
    }
    t->first[t->n] = (uint32_t)n;
    for (size_t i = 1; i < t->n; i++) /* what follows the middle of a character is its rest */
        if (t->chars[i] & CHARS_CUT && t->end[i] > i + 1)
            t->below[i] |= 1u << KIND_TAIL;
}

/* Tokens by their number of characters. */
static void lengths_make(token_trie *t, size_t n_token)
{
    t->by_chars = mem_alloc(mem_product(n_token + 1, sizeof *t->by_chars));
    t->chars_from = mem_alloc(mem_product(t->longest + 2, sizeof *t->chars_from));
    memset(t->chars_from, 0, (t->longest + 2) * sizeof *t->chars_from);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 1; i < t->n; i++)
            for (int32_t id = t->token[i]; id != TRIE_NO_TOKEN; id = t->same[id]) {
                size_t n_char = t->chars[i] & (CHARS_CUT - 1);
                if (pass == 0)
                    t->chars_from[n_char + 1]++;
                else
                    t->by_chars[t->chars_from[n_char]++] = id;
            }
        for (size_t c = 1; c < t->longest + 2 && pass == 0; c++)
            t->chars_from[c] += t->chars_from[c - 1];
    }
    for (size_t c = t->longest + 1; c > 0; c--) /* each has moved to where the next begins */
        t->chars_from[c] = t->chars_from[c - 1];
    t->chars_from[0] = 0;
}

void token_trie_init(token_trie *t, const str *text, int64_t n_token)
{
    *t = (token_trie){.n = 0};
    sorted_token *list = mem_alloc(mem_product((size_t)n_token + 1, sizeof *list));
    size_t n = 0, bytes = 0, at = 0;
    t->same = mem_alloc(mem_product((size_t)n_token + 1, sizeof *t->same));
    t->text_at = mem_alloc(mem_product((size_t)n_token + 1, sizeof *t->text_at));
    t->kinds = mem_alloc(mem_product((size_t)n_token + 1, sizeof *t->kinds));
    for (int64_t i = 0; i < n_token; i++) {
        t->same[i] = TRIE_NO_TOKEN;
        t->kinds[i] = UINT16_MAX;
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
    lengths_make(t, n);
    mem_free(list);
}

void token_trie_deinit(token_trie *t)
{
    mem_free(t->byte);
    mem_free(t->depth);
    mem_free(t->end);
    mem_free(t->token);
    mem_free(t->below);
    mem_free(t->chars);
    mem_free(t->kinds);
    mem_free(t->by_chars);
    mem_free(t->chars_from);
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
    v->plain = mem_alloc(mem_product(v->n_word, sizeof *v->plain));
    return v;
}

void kinds_mask(const grammar_vocab *v, int32_t kinds, uint64_t *mask)
{
    for (size_t w = 0; w < v->n_word; w++) {
        const uint16_t *k = v->mid.kinds + 64 * w;
        size_t n = (size_t)v->n_token - 64 * w < 64 ? (size_t)v->n_token - 64 * w : 64;
        uint64_t bits = 0;
        for (size_t i = 0; i < n; i++)
            bits |= (uint64_t) !(k[i] & ~kinds) << i;
        mask[w] = bits;
    }
}

void vocab_finish(grammar_vocab *v)
{
    kinds_mask(v, KINDS_TEXT, v->plain);
    str *text = mem_alloc(mem_product((size_t)v->n_token + 1, sizeof *text));
    for (int64_t i = 0; i < v->n_token; i++)
        text[i] = mask_has(v->plain, (int32_t)i) ? STR("") : token_trie_text(&v->mid, (int32_t)i);
    token_trie_init(&v->odd, text, v->n_token);
    mem_free(text);
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
    vocab_finish(v);
    mem_free(inside);
    return v;
}

void grammar_vocab_destroy(grammar_vocab *v)
{
    if (!v)
        return;
    token_trie_deinit(&v->mid);
    token_trie_deinit(&v->odd);
    token_trie_deinit(&v->first);
    mem_free(v->ends);
    mem_free(v->plain);
    mem_free(v);
}

int64_t grammar_vocab_size(const grammar_vocab *v)
{
    return v->n_token;
}
