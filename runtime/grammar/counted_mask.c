/* counted_mask.c - masks inside counted repetitions of characters: strings with a maxLength, [a-z]{2,20}.
 *
 * Every count is another state, and nearly every token of a text is met in another one; but which items a token is made of does not
 * depend on the count. So for each item it is worked out once which tokens are made of it and how many of it they begin; for
 * each place behind the repetition, which tokens go on there and after how many. A mask is what of these the count has room
 * for. Most tokens are made of characters of which each is an item (kinds): those are taken by their length. */
#include "runtime/base/mem.h"
#include "runtime/grammar/grammar_impl.h"

enum { KINDS_KEPT = 16 };

void counted_init(mask_cache *c)
{
    size_t longest = c->v->mid.longest;
    c->item_path = mem_alloc(mem_product(longest + 1, sizeof *c->item_path));
    c->other = mem_alloc(mem_product(c->v->n_word + 1, sizeof *c->other));
    VEC_START(&c->counted);
    VEC_START(&c->counted_of);
    VEC_START(&c->exit);
    VEC_START(&c->exit_of);
    VEC_START(&c->kinds);
    for (int i = 0; i < 3; i++)
        VEC_START(&c->count[i]);
}

static void part_free(counted_part *r)
{
    mem_free(r->odd);
    mem_free(r->out);
    mem_free(r->branch);
}

void counted_free(mask_cache *c)
{
    for (size_t i = 0; i < c->counted.n; i++)
        part_free(&c->counted.at[i]);
    for (size_t i = 0; i < c->exit.n; i++)
        mem_free(c->exit.at[i].token);
    for (size_t i = 0; i < c->kinds.n; i++)
        mem_free(c->kinds.at[i].mask);
}

void counted_deinit(mask_cache *c)
{
    VEC_FREE(&c->counted);
    VEC_FREE(&c->counted_of);
    VEC_FREE(&c->exit);
    VEC_FREE(&c->exit_of);
    VEC_FREE(&c->kinds);
    for (int i = 0; i < 3; i++)
        VEC_FREE(&c->count[i]);
    mem_free(c->item_path);
    mem_free(c->other);
}

/* ---- tokens of some kinds of characters ---- */

/* Valid until the next call. */
static const uint64_t *mask_of_kinds(mask_cache *c, int32_t kinds)
{
    if (kinds == KINDS_TEXT)
        return c->v->plain;
    for (size_t i = 0; i < c->kinds.n; i++)
        if (c->kinds.at[i].kinds == kinds)
            return c->kinds.at[i].mask;
    if (c->kinds.n >= KINDS_KEPT) {
        kinds_mask(c->v, kinds, c->other);
        return c->other;
    }
    size_t bytes = mem_product(c->v->n_word, sizeof(uint64_t));
    kinds_row row = {kinds, mem_alloc(bytes)};
    kinds_mask(c->v, kinds, row.mask);
    VEC_PUSH(&c->kinds, row);
    c->bytes += bytes + sizeof row;
    return row.mask;
}

/* Adds tokens of these kinds with up to n_char characters. */
static void add_kinds(mask_cache *c, int32_t kinds, int64_t n_char, uint64_t *mask)
{
    const token_trie *t = &c->v->mid;
    size_t n =
        n_char < (int64_t)t->longest ? t->chars_from[n_char + 1] : t->chars_from[t->longest + 1];
    size_t all = t->chars_from[t->longest + 1];
    if (n < all / 2) {
        for (size_t i = 0; i < n; i++)
            if (!(t->kinds[t->by_chars[i]] & ~kinds))
                mask_set(mask, t->by_chars[i]);
        return;
    }
    const uint64_t *from = mask_of_kinds(c, kinds);
    uint64_t *to = c->other;
    if (from != to)
        memcpy(to, from, c->v->n_word * sizeof *to);
    for (size_t i = n; i < all; i++)
        to[t->by_chars[i] >> 6] &= ~((uint64_t)1 << (t->by_chars[i] & 63));
    for (size_t i = 0; i < c->v->n_word; i++)
        mask[i] |= to[i];
}

/* ---- the item ---- */

enum { TOKENS, OUTS, BRANCHES };

static counted *kept(mask_cache *c, int which, size_t *out_n)
{
    size_t n = c->count[which].n;
    counted *list = mem_alloc(mem_product(n + 1, sizeof *list));
    for (size_t i = 0; i < n; i++)
        list[i] = c->count[which].at[i];
    c->bytes += (n + 1) * sizeof *list;
    *out_n = n;
    return list;
}

static void put_token(mask_cache *c, const token_trie *t, uint32_t node, uint32_t n_item,
                      int32_t kinds)
{
    for (int32_t id = t->token[node]; id != TRIE_NO_TOKEN; id = t->same[id])
        if (t->kinds[id] & ~kinds) /* else it is known without */
            VEC_PUSH(&c->count[TOKENS], ((counted){(uint32_t)id, n_item}));
}

/* Begins inside an item. `between` is where one has ended and the next may begin. */
static void walk_items(mask_cache *c, pda *p, const counted_part *r, int32_t set, int32_t between)
{
    const token_trie *t = r->t;
    int32_t *path = c->path, *n_item = c->item_path;
    path[0] = set;
    n_item[0] = 1;
    for (int i = 0; i < 3; i++)
        c->count[i].n = 0;
    for (uint32_t i = 1; i < t->n;) {
        unsigned d = t->depth[i];
        int32_t to = pda_step(p, path[d - 1], t->byte[i]);
        if (to == PDA_DEAD) {
            i = t->end[i];
            continue;
        }
        path[d] = to;
        n_item[d] = n_item[d - 1] + (path[d - 1] == between);
        uint32_t n = (uint32_t)n_item[d];
        if (to == between && mask_whole(c, p, t, i, to, between)) {
            VEC_PUSH(&c->count[BRANCHES], ((counted){i, n}));
            if ((t->kinds[t->order[t->first[i]]] | t->below[i]) & ~r->known)
                for (uint32_t k = i; k < t->end[i]; k++)
                    put_token(c, t, k, n + t->chars[k] - t->chars[i], r->known);
            i = t->end[i];
            continue;
        }
        put_token(c, t, i, n, r->known);
        if (to == between && t->end[i] > i + 1)
            VEC_PUSH(&c->count[OUTS], ((counted){i, n}));
        i++;
    }
}

static counted_part part_make(mask_cache *c, pda *p, int32_t top, int32_t between)
{
    counted_part r = {.kinds = kinds_staying(c, p, between), .t = &c->v->mid};
    const automaton *m = p->m;
    int32_t state = p->node.at[top].state;
    bool starts = state == m->rule[m->state.at[state].rule].start;
    if (starts && (r.kinds & KINDS_TEXT) == KINDS_TEXT) {
        r.kinds = KINDS_TEXT;
        r.t = &c->v->odd;
    }
    if (!r.kinds)
        return r;
    r.known = starts ? r.kinds : 0;
    walk_items(c, p, &r, pda_set_of(p, &top, 1), between);
    r.odd = kept(c, TOKENS, &r.n_odd);
    r.out = kept(c, OUTS, &r.n_out);
    r.branch = kept(c, BRANCHES, &r.n_branch);
    return r;
}

/* The number of the part, or PDA_UNKNOWN where memory or steps have run out. */
static int32_t part_of(mask_cache *c, pda *p, int32_t top, int32_t loop)
{
    while (c->counted_of.n < p->node.n) {
        VEC_PUSH(&c->counted_of, PDA_UNKNOWN);
        c->bytes += sizeof *c->counted_of.at;
    }
    if (c->counted_of.at[top] == PDA_UNKNOWN) {
        counted_part r = part_make(c, p, top, pda_closed(p, loop));
        if (p->full) { /* not all of it */
            part_free(&r);
            return PDA_UNKNOWN;
        }
        VEC_PUSH(&c->counted, r);
        c->bytes += sizeof r;
        c->counted_of.at[top] = (int32_t)c->counted.n - 1;
    }
    return c->counted_of.at[top];
}

/* ---- behind the repetition ---- */

static void exit_from(mask_cache *c, pda *p, const token_trie *t, uint32_t node, uint32_t n_item,
                      int32_t set)
{
    c->found.n = 0;
    mask_walk(c, p, t, node, set, NULL, false, 0);
    for (size_t i = 0; i < c->found.n; i++)
        VEC_PUSH(&c->count[TOKENS], ((counted){(uint32_t)c->found.at[i], n_item}));
}

static counted_exit exit_make(mask_cache *c, pda *p, int32_t which, int32_t set)
{
    const counted_part r = c->counted.at[which];
    const token_trie *t = r.t;
    int32_t begins = kinds_beginning(c, p, set);
    c->count[TOKENS].n = 0;
    for (size_t i = 0; i < r.n_out; i++)
        if (t->below[r.out[i].at] & begins)
            exit_from(c, p, t, r.out[i].at, r.out[i].n_item, set);
    for (size_t i = 0; i < r.n_branch; i++)
        for (uint32_t from = r.branch[i].at, k = from, end = t->end[k]; k < end;) {
            bool some = t->below[k] & begins;
            if (some && !(t->chars[k] & CHARS_CUT))
                exit_from(c, p, t, k, r.branch[i].n_item + t->chars[k] - t->chars[from], set);
            k = some ? k + 1 : t->end[k];
        }
    counted_exit e = {.part = which};
    e.token = kept(c, TOKENS, &e.n);
    return e;
}

static int32_t exit_of(mask_cache *c, pda *p, int32_t which, int32_t set)
{
    while (c->exit_of.n <= (size_t)set) {
        VEC_PUSH(&c->exit_of, PDA_UNKNOWN);
        c->bytes += sizeof *c->exit_of.at;
    }
    int32_t k = c->exit_of.at[set];
    while (k != PDA_UNKNOWN && c->exit.at[k].part != which)
        k = c->exit.at[k].next;
    if (k != PDA_UNKNOWN)
        return k;
    counted_exit e = exit_make(c, p, which, set);
    if (p->full) {
        mem_free(e.token);
        return PDA_UNKNOWN;
    }
    e.next = c->exit_of.at[set];
    VEC_PUSH(&c->exit, e);
    c->bytes += sizeof e;
    c->exit_of.at[set] = (int32_t)c->exit.n - 1;
    return c->exit_of.at[set];
}

/* ---- a stack ---- */

static void add_between(const counted *list, size_t n, int64_t min, int64_t max, uint64_t *mask)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].n_item >= min && list[i].n_item <= max)
            mask_set(mask, (int32_t)list[i].at);
}

bool counted_add(mask_cache *c, pda *p, int32_t node, uint64_t *mask)
{
    const automaton *m = p->m;
    pda_node item = p->node.at[node], frame = p->node.at[item.parent];
    int32_t rule = m->state.at[item.state].rule;
    if (item.parent == PDA_EMPTY || !m->rule[rule].item)
        return false;
    const auto_state *s = &m->state.at[frame.state];
    if (s->chain == AUTO_NONE)
        return false;
    const auto_chain *k = &m->chain.at[s->chain];
    if (k->same == AUTO_NONE || k->rule != rule)
        return false;
    int32_t loop = pda_push(p, k->same, PDA_EMPTY), top = pda_push(p, item.state, loop);
    int32_t which = part_of(c, p, top, loop);
    if (which == PDA_UNKNOWN || c->counted.at[which].kinds == 0)
        return false;
    int32_t behind = frame.parent == PDA_EMPTY ? PDA_DEAD : pda_closed(p, frame.parent);
    if (kinds_beginning(c, p, behind) & c->counted.at[which].kinds)
        return false; /* an item may also be what follows */
    int32_t out = exit_of(c, p, which, behind);
    if (out == PDA_UNKNOWN)
        return false;
    /* The item that has begun leads to place `index`, n items lead to index + n - 1. */
    int64_t most = k->max == INT64_MAX ? INT64_MAX : k->max - s->index + 1;
    const counted_part *r = &c->counted.at[which];
    if (r->known)
        add_kinds(c, r->known, most, mask);
    add_between(r->odd, r->n_odd, 1, most, mask);
    add_between(c->exit.at[out].token, c->exit.at[out].n, k->min - s->index + 1, most, mask);
    return true;
}
