/* tok_vocab.c - an open-addressing table from text to id, and tokens by id. */
#include "runtime/text/tok_vocab.h"

#include "runtime/base/clock.h"
#include "runtime/base/mem.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t seed;
static pthread_once_t seed_once = PTHREAD_ONCE_INIT;

static void seed_make(void)
{
    seed = (clock_ns() ^ (uint64_t)(uintptr_t)&seed) * UINT64_C(0x9e3779b97f4a7c15) | 1;
}

static inline uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 x = (unsigned __int128)a * b;
    return (uint64_t)x ^ (uint64_t)(x >> 64);
}

static uint64_t hash_from(uint64_t start, const char *p, size_t n)
{
    uint64_t h = start ^ n, word = 0;
    for (; n >= 8; p += 8, n -= 8) {
        memcpy(&word, p, 8);
        h = mix(h ^ word, UINT64_C(0xa0761d6478bd642f));
    }
    word = 0;
    memcpy(&word, p, n);
    return mix(h ^ word, UINT64_C(0xe7037ed1a0b428db));
}

uint64_t vocab_hash(const char *p, size_t n)
{
    pthread_once(&seed_once, seed_make);
    return hash_from(seed, p, n);
}

static vocab_slot *slot_of(const vocab_map *m, str text)
{
    size_t at = vocab_hash(text.p, text.n) & (m->cap - 1);
    while (m->slots[at].p && (m->slots[at].n != text.n || memcmp(m->slots[at].p, text.p, text.n)))
        at = (at + 1) & (m->cap - 1);
    return &m->slots[at];
}

static void resize(vocab_map *m, size_t cap)
{
    vocab_map bigger = {.cap = cap, .n = m->n};
    bigger.slots = mem_alloc(mem_product(bigger.cap, sizeof *bigger.slots));
    memset(bigger.slots, 0, bigger.cap * sizeof *bigger.slots);
    for (size_t i = 0; i < m->cap; i++)
        if (m->slots[i].p)
            *slot_of(&bigger, (str){m->slots[i].p, m->slots[i].n}) = m->slots[i];
    mem_free(m->slots);
    *m = bigger;
}

void vocab_map_reserve(vocab_map *m, size_t n)
{
    size_t cap = 64;
    while (cap <= n * 2)
        cap *= 2;
    if (cap > m->cap)
        resize(m, cap);
}

void vocab_map_add(vocab_map *m, str text, int32_t id)
{
    WEFT_ASSERT(text.p && text.n <= UINT32_MAX);
    if (m->n * 2 >= m->cap)
        resize(m, m->cap ? m->cap * 2 : 64);
    vocab_slot *s = slot_of(m, text);
    m->n += !s->p;
    *s = (vocab_slot){text.p, (uint32_t)text.n, id};
}

void vocab_map_add_new(vocab_map *m, str text, int32_t id)
{
    WEFT_ASSERT(text.p && text.n <= UINT32_MAX);
    if (m->n * 2 >= m->cap)
        resize(m, m->cap ? m->cap * 2 : 64);
    size_t at = vocab_hash(text.p, text.n) & (m->cap - 1);
    while (m->slots[at].p)
        at = (at + 1) & (m->cap - 1);
    m->n++;
    m->slots[at] = (vocab_slot){text.p, (uint32_t)text.n, id};
}

int32_t vocab_map_find(const vocab_map *m, str text)
{
    if (!m->cap)
        return VOCAB_NONE;
    const vocab_slot *s = slot_of(m, text);
    return s->p ? s->id : VOCAB_NONE;
}

void vocab_map_free(vocab_map *m)
{
    mem_free(m->slots);
    *m = (vocab_map){0};
}

void vocab_put(tok_vocab *v, arena *a, int32_t id, str text, uint32_t flags)
{
    WEFT_ASSERT(id >= 0 && id <= VOCAB_ID_MAX);
    while (v->tokens.n <= (size_t)id)
        VEC_PUSH(&v->tokens, ((vocab_token){0}));
    vocab_token *token = &v->tokens.at[id];
    str copy = arena_str(a, text);
    *token = (vocab_token){copy, copy, flags};
    if (text.n > v->text_max)
        v->text_max = text.n;
    if (text.n)
        vocab_map_add(&v->map, token->text, id);
}

/* The same in every process: images are written by one and read by another. */
static size_t place_of(str text, size_t n_place)
{
    return hash_from(UINT64_C(0x2545f4914f6cdd1d), text.p, text.n) & (n_place - 1);
}

void vocab_place(const tok_vocab *v, int32_t *table, size_t n_place)
{
    for (size_t i = 0; i < n_place; i++)
        table[i] = VOCAB_NONE;
    for (size_t id = 0; id < v->tokens.n; id++) {
        str text = v->tokens.at[id].text;
        if (!text.n || vocab_find(v, text) != (int32_t)id)
            continue;
        size_t at = place_of(text, n_place);
        while (table[at] != VOCAB_NONE)
            at = (at + 1) & (n_place - 1);
        table[at] = (int32_t)id;
    }
}

int32_t vocab_find_placed(const tok_vocab *v, str text)
{
    size_t at = place_of(text, v->n_place);
    for (size_t tries = 0; tries < v->n_place && v->placed[at] != VOCAB_NONE; tries++) {
        const vocab_token *token = vocab_at(v, v->placed[at]);
        if (token && token->text.n && str_eq(token->text, text))
            return v->placed[at];
        at = (at + 1) & (v->n_place - 1);
    }
    return VOCAB_NONE;
}

void vocab_free(tok_vocab *v)
{
    VEC_FREE(&v->tokens);
    vocab_map_free(&v->map);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

int vocab_byte_of(str text)
{
    if (text.n != 6 || memcmp(text.p, "<0x", 3) != 0 || text.p[5] != '>')
        return -1;
    int high = hex_digit(text.p[3]), low = hex_digit(text.p[4]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

void vocab_bytes(const tok_vocab *v, int32_t out_ids[256])
{
    for (int b = 0; b < 256; b++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", (unsigned)b);
        out_ids[b] = vocab_find(v, str_of(text));
    }
}
