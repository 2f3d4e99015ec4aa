/* nfa.c - a rule's parts into states with empty moves. */
#include "runtime/grammar/automaton.h"

/* A repetition of up to this many is written out; a longer one is a chain of calls, a state for each item. Of characters that
 * many tokens are made of a chain is better sooner, because its states share what they allow (counted_mask.c). */
enum { WRITTEN_OUT = 3, WRITTEN_OUT_CHARS = 32, WRITTEN_OUT_LETTERS = 4, WRITTEN_OUT_ANY = 1 };

static int32_t state_new(nfa *n)
{
    n->over = n->over || n->state.n >= n->states_max;
    if (n->over)
        return 1; /* what is built on it is thrown away */
    VEC_PUSH(&n->state, ((nfa_place){AUTO_NONE, 0}));
    return (int32_t)(n->state.n - 1);
}

static void edge_add(nfa *n, int32_t from, unsigned lo, unsigned hi, int32_t to)
{
    n->over = n->over || n->edge.n >= 8 * n->states_max;
    if (!n->over)
        VEC_PUSH(&n->edge, ((nfa_edge){(uint8_t)lo, (uint8_t)hi, from, to}));
}

static void move_add(nfa *n, int32_t from, int32_t rule, int32_t to)
{
    n->over = n->over || n->move.n >= 8 * n->states_max;
    if (!n->over)
        VEC_PUSH(&n->move, ((nfa_move){from, to, rule}));
}

/* ---- characters as bytes ---- */

/* Where sequences of a set go on: `left` bytes of 80-BF, then `to`. Shared by all ranges of one set. */
typedef struct {
    int32_t at[4];
} any_tail;

static int32_t tail(nfa *n, any_tail *t, int left)
{
    if (t->at[left] == AUTO_NONE) {
        t->at[left] = state_new(n);
        edge_add(n, t->at[left], 0x80, 0xbf, tail(n, t, left - 1));
    }
    return t->at[left];
}

/* The bytes lo[0..len) to hi[0..len), which agree in length: split where the first byte differs. */
static void bytes_between(nfa *n, any_tail *t, int32_t from, const uint8_t *lo, const uint8_t *hi,
                          int len)
{
    static const uint8_t least[3] = {0x80, 0x80, 0x80}, most[3] = {0xbf, 0xbf, 0xbf};
    if (len == 1) {
        edge_add(n, from, lo[0], hi[0], t->at[0]);
        return;
    }
    size_t rest = (size_t)len - 1;
    unsigned first = lo[0], last = hi[0];
    if (first == last) {
        if (memcmp(lo + 1, least, rest) == 0 && memcmp(hi + 1, most, rest) == 0) {
            edge_add(n, from, first, last, tail(n, t, len - 1));
            return;
        }
        int32_t next = state_new(n);
        edge_add(n, from, first, first, next);
        bytes_between(n, t, next, lo + 1, hi + 1, len - 1);
        return;
    }
    if (memcmp(lo + 1, least, rest) != 0) {
        int32_t next = state_new(n);
        edge_add(n, from, first, first, next);
        bytes_between(n, t, next, lo + 1, most, len - 1);
        first++;
    }
    if (memcmp(hi + 1, most, rest) != 0) {
        int32_t next = state_new(n);
        edge_add(n, from, last, last, next);
        bytes_between(n, t, next, least, hi + 1, len - 1);
        last--;
    }
    if (first <= last)
        edge_add(n, from, first, last, tail(n, t, len - 1));
}

static int utf8_put(uint32_t c, uint8_t out[4])
{
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    int len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = len - 1; i > 0; i--, c >>= 6)
        out[i] = (uint8_t)(0x80 | (c & 0x3f));
    out[0] = (uint8_t)(lead[len] | c);
    return len;
}

static void build_set(nfa *n, const part *p, int32_t from, int32_t to)
{
    static const uint32_t last_of[] = {0x7f, 0x7ff, 0xffff, 0x10ffff};
    any_tail t = {{to, AUTO_NONE, AUTO_NONE, AUTO_NONE}};
    for (size_t i = 0; i < p->n; i++) {
        uint32_t lo = p->range[i].lo;
        for (int k = 0; k < 4; k++) {
            uint32_t hi = p->range[i].hi < last_of[k] ? p->range[i].hi : last_of[k];
            uint8_t a[4], b[4];
            if (lo > hi)
                continue;
            int len = utf8_put(lo, a);
            utf8_put(hi, b);
            bytes_between(n, &t, from, a, b, len);
            lo = hi + 1;
        }
    }
}

/* ---- parts ---- */

static void build(nfa *n, const part *p, int32_t from, int32_t to);

static void build_bytes(nfa *n, str s, int32_t from, int32_t to)
{
    if (s.n == 0)
        move_add(n, from, AUTO_NONE, to);
    for (size_t i = 0; i < s.n; i++) {
        int32_t next = i + 1 == s.n ? to : state_new(n);
        edge_add(n, from, (uint8_t)s.p[i], (uint8_t)s.p[i], next);
        from = next;
    }
}

/* The least bytes of a part, up to two; rules count as one. */
static int least_bytes(const part *p)
{
    int n = 0, least = 2;
    switch (p->kind) {
    case PART_BYTES:
        return p->bytes.n < 2 ? (int)p->bytes.n : 2;
    case PART_SEQ:
        for (size_t i = 0; i < p->n && n < 2; i++)
            n += least_bytes(p->item[i]);
        return n < 2 ? n : 2;
    case PART_ALT:
        for (size_t i = 0; i < p->n && least > 0; i++) {
            n = least_bytes(p->item[i]);
            least = n < least ? n : least;
        }
        return least;
    case PART_REPEAT:
        n = p->min > 2 ? 2 : (int)p->min;
        return n ? n * least_bytes(p->item[0]) : 0;
    case PART_ORDERED:
        return 0;
    default:
        return 1;
    }
}

static int32_t rule_of(nfa *n, const part *p)
{
    int32_t r = form_rule_add(n->f, STR(""), WEFT_NOWHERE);
    n->f->rules.at[r].body = p;
    return r;
}

static bool same_item(const part *a, const part *b)
{
    if (!a || a->kind != PART_SET || b->kind != PART_SET || a->n != b->n)
        return a == b;
    return memcmp(a->range, b->range, a->n * sizeof *a->range) == 0;
}

/* The rule that stands for a repeated part. One that was repeated not long ago has the same again. */
static int32_t item_rule(nfa *n, const part *p)
{
    if (p->kind == PART_RULE)
        return p->rule;
    uint64_t h = p->kind == PART_SET
                     ? str_hash((str){(const char *)p->range, p->n * sizeof *p->range})
                     : (uintptr_t)p >> 4;
    nfa_item *known = &n->known[h % NFA_KNOWN];
    if (same_item(known->body, p))
        return known->rule;
    int32_t r = rule_of(n, p);
    *known = (nfa_item){p, r};
    while (n->item.n < (size_t)r)
        VEC_PUSH(&n->item, false);
    VEC_PUSH(&n->item, least_bytes(p) < 2);
    return r;
}

static int64_t written_out(const part *x)
{
    static const char_range letters[] = {{'a', 'z'}, {'A', 'Z'}};
    if (x->kind == PART_BYTES)
        return WRITTEN_OUT_CHARS;
    if (x->kind == PART_ALT && least_bytes(x) < 2)
        return WRITTEN_OUT_ANY;
    if (x->kind != PART_SET)
        return WRITTEN_OUT;
    for (size_t i = 0; i < x->n; i++)
        for (size_t k = 0; k < 2; k++)
            if (x->range[i].lo <= letters[k].lo && x->range[i].hi >= letters[k].hi)
                return WRITTEN_OUT_LETTERS;
    return WRITTEN_OUT_CHARS;
}

/* from is left by an empty move and no edge comes back to it: others may begin there too. */
static void build_repeat(nfa *n, const part *p, int32_t from, int32_t to)
{
    const part *x = p->item[0];
    int64_t counted = p->max == REPEAT_NO_END ? p->min : p->max;
    int32_t at = state_new(n);
    move_add(n, from, AUTO_NONE, at);
    if (counted > (int64_t)n->states_max) {
        n->over = true;
        return;
    }
    bool calls = counted > written_out(x);
    if (calls && p != n->body &&
        least_bytes(x) < 2) { /* a rule by itself: its end is not mixed with what follows */
        move_add(n, at, rule_of(n, p), to);
        return;
    }
    int32_t rule = calls ? item_rule(n, x) : AUTO_NONE, chain = (int32_t)n->chain->n;
    if (calls)
        VEC_PUSH(n->chain, ((auto_chain){.min = p->min,
                                         .max = p->max == REPEAT_NO_END ? INT64_MAX : p->max,
                                         .rule = rule,
                                         .loop = {AUTO_NONE, AUTO_NONE}}));
    for (int k = 0; calls && k < 2 && !n->over; k++) {
        int32_t loop = state_new(n);
        n->state.at[loop] = (nfa_place){chain, PLACE_LOOP - k};
        move_add(n, loop, rule, loop);
        if (k == 1)
            move_add(n, loop, AUTO_NONE, to);
    }
    for (int64_t i = 0; i <= counted && !n->over; i++) {
        if (calls)
            n->state.at[at] = (nfa_place){chain, (int32_t)i};
        if (i >= p->min)
            move_add(n, at, AUTO_NONE, to);
        if (i == counted)
            break;
        int32_t next = state_new(n);
        if (calls)
            move_add(n, at, rule, next);
        else
            build(n, x, at, next);
        at = next;
    }
    if (p->max == REPEAT_NO_END && !n->over) {
        int32_t loop = state_new(n); /* its own, so that a chain's last state stays one */
        move_add(n, at, AUTO_NONE, loop);
        build(n, x, loop, loop);
        move_add(n, loop, AUTO_NONE, to);
    }
}

/* Two tracks: nothing was written yet, and something was. */
static void build_ordered(nfa *n, const part *p, int32_t from, int32_t to)
{
    int32_t none = state_new(n), some = state_new(n);
    move_add(n, from, AUTO_NONE, none);
    for (size_t i = 0; i < p->n && !n->over; i++) {
        int32_t none_next = state_new(n), some_next = state_new(n), begin = state_new(n);
        build(n, p->between, some, begin);
        move_add(n, none, AUTO_NONE, begin);
        build(n, p->item[i], begin, some_next);
        if (p->optional[i]) {
            move_add(n, none, AUTO_NONE, none_next);
            move_add(n, some, AUTO_NONE, some_next);
        }
        none = none_next;
        some = some_next;
    }
    if (p->more && !n->over) {
        int32_t begin = state_new(n), end = state_new(n);
        build(n, p->between, some, begin);
        move_add(n, none, AUTO_NONE, begin);
        build(n, p->more, begin, end);
        int32_t again = state_new(n);
        build(n, p->between, end, again);
        move_add(n, again, AUTO_NONE, begin);
        move_add(n, end, AUTO_NONE, to);
    }
    if (p->min == 0)
        move_add(n, none, AUTO_NONE, to);
    move_add(n, some, AUTO_NONE, to);
}

static void build(nfa *n, const part *p, int32_t from, int32_t to)
{
    if (n->over)
        return;
    switch (p->kind) {
    case PART_NEVER:
        break;
    case PART_BYTES:
        build_bytes(n, p->bytes, from, to);
        break;
    case PART_SET:
        build_set(n, p, from, to);
        break;
    case PART_SEQ:
        for (size_t i = 0; i < p->n; i++) {
            int32_t next = i + 1 == p->n ? to : state_new(n);
            build(n, p->item[i], from, next);
            from = next;
        }
        break;
    case PART_ALT:
        for (size_t i = 0; i < p->n; i++)
            build(n, p->item[i], from, to);
        break;
    case PART_REPEAT:
        build_repeat(n, p, from, to);
        break;
    case PART_RULE:
        move_add(n, from, p->rule, to);
        break;
    case PART_ORDERED:
        build_ordered(n, p, from, to);
        break;
    }
}

void nfa_build(nfa *n, const part *body)
{
    n->edge.n = n->move.n = n->state.n = 0;
    n->body = body;
    state_new(n);
    state_new(n);
    build(n, body, 0, 1);
}
