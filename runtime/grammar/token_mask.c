/* token_mask.c - which tokens a set of stacks allows.
 *
 * Most of a token is usually read within the rule on top of a stack, whatever stands below. So what the top allows is worked
 * out once for each state: the tokens that stay inside the rule, and the places in the tree of tokens where the rule can end
 * before a token does. Only from these places on the stack below has a say, and there few branches of the tree are
 * alive. (That the two should be kept apart is XGrammar's idea: Dong et al. 2024.) The mask of a set is kept as a whole. */
#include "runtime/base/mem.h"
#include "runtime/grammar/grammar_impl.h"

enum { LIST_SHARE = 128 }; /* a part with less than one token in this many is a list */

void mask_cache_init(mask_cache *c, const grammar_vocab *v)
{
    *c = (mask_cache){.v = v};
    size_t longest = v->mid.longest > v->first.longest ? v->mid.longest : v->first.longest;
    c->path = mem_alloc(mem_product(longest + 1, sizeof *c->path));
    c->scratch = mem_alloc(mem_product(v->n_word + 1, sizeof *c->scratch));
    VEC_START(&c->part); /* all have a block of their own before the first call (mem_scope.h) */
    VEC_START(&c->part_of);
    VEC_START(&c->stays_in);
    VEC_START(&c->begins);
    VEC_START(&c->mask_of);
    VEC_START(&c->found);
    VEC_START(&c->out);
    VEC_START(&c->branch);
    counted_init(c);
}

static void free_parts(mask_cache *c)
{
    for (size_t i = 0; i < c->part.n; i++) {
        mem_free(c->part.at[i].token);
        mem_free(c->part.at[i].mask);
        mem_free(c->part.at[i].out);
        mem_free(c->part.at[i].branch);
    }
    for (size_t i = 0; i < c->mask_of.n; i++)
        mem_free(c->mask_of.at[i]);
    counted_free(c);
}

mask_mark mask_cache_mark(const mask_cache *c)
{
    return (mask_mark){c->part.n, c->counted.n, c->exit.n, c->kinds.n};
}

void mask_cache_drop(mask_cache *c, mask_mark before)
{
    c->part.n = before.n_part;
    c->counted.n = before.n_counted;
    c->exit.n = before.n_exit;
    c->kinds.n = before.n_kinds;
    free_parts(c); /* the mask of a set is put there last: none is half made */
    c->counted.n = c->counted_of.n = c->exit.n = c->exit_of.n = c->kinds.n = 0;
    c->part.n = c->part_of.n = c->stays_in.n = c->begins.n = c->mask_of.n = 0;
    c->bytes = 0;
}

void mask_cache_deinit(mask_cache *c)
{
    free_parts(c);
    VEC_FREE(&c->part);
    VEC_FREE(&c->part_of);
    VEC_FREE(&c->mask_of);
    VEC_FREE(&c->stays_in);
    VEC_FREE(&c->begins);
    VEC_FREE(&c->branch);
    VEC_FREE(&c->found);
    VEC_FREE(&c->out);
    mem_free(c->path);
    mem_free(c->scratch);
    counted_deinit(c);
}

/* ---- the top of a stack ---- */

/* In a counted repetition, further from its ends than any token is long, all states allow the same. */
static int32_t state_alike(const mask_cache *c, const automaton *m, int32_t state)
{
    const auto_state *s = &m->state.at[state];
    if (s->chain == AUTO_NONE)
        return state;
    const auto_chain *k = &m->chain.at[s->chain];
    if (k->max == INT64_MAX && s->index >= k->min)
        return state; /* the last one repeats without calls */
    int64_t after = s->index + (int64_t)c->v->mid.longest;
    bool before_min = after < k->min, before_max = s->index >= k->min && after < k->max;
    if (!before_min && !before_max)
        return state;
    int32_t loop = k->loop[before_max];
    return loop == AUTO_NONE ? state : loop;
}

/* The stack that stands for the top of `node`, and in *below what is left of it. The item of a repetition counts with the
 * place it is repeated at: alone it is too short to say much. */
static int32_t stack_top(mask_cache *c, pda *p, int32_t node, int32_t *below)
{
    pda_node n = p->node.at[node];
    const automaton *m = p->m;
    if (m->rule[m->state.at[n.state].rule].item && n.parent != PDA_EMPTY)
        return pda_push(p, n.state, stack_top(c, p, n.parent, below));
    *below = n.parent;
    return pda_push(p, state_alike(c, m, n.state), PDA_EMPTY);
}

/* Whether every way to complete a character behind `lead` leads from one set to the other. */
static bool char_leads(pda *p, int32_t from, uint8_t lead, int32_t set)
{
    int32_t at = pda_step(p, from, lead);
    int left = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    if (at == set)
        return false; /* then it is no character to the grammar */
    unsigned lo = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    unsigned hi = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    for (; left > 0; left--, lo = 0x80, hi = 0xbf) {
        int32_t to = pda_step(p, at, (uint8_t)lo);
        for (unsigned b = lo + 1; b <= hi; b++)
            if (pda_step(p, at, (uint8_t)b) != to)
                return false;
        at = to;
        if (at == PDA_DEAD)
            return false;
    }
    return at == set;
}

/* What the kinds of characters do to a set. */
static void kinds_make(mask_cache *c, pda *p, int32_t set)
{
    while (c->stays_in.n <= (size_t)set) {
        VEC_PUSH(&c->stays_in, PDA_UNKNOWN);
        VEC_PUSH(&c->begins, 0);
        c->bytes += 2 * sizeof *c->stays_in.at;
    }
    if (c->stays_in.at[set] != PDA_UNKNOWN)
        return;
    int32_t stay = ((1 << BYTE_KINDS) - 1) & ~(1 << KIND_TAIL), begin = 0;
    for (int b = 0; b < 256; b++) {
        int32_t kind = 1 << byte_kind((uint8_t)b), to = pda_step(p, set, (uint8_t)b);
        if (b < 0x80)
            stay &= to == set ? ~0 : ~kind;
        else if (b >= 0xc2 && b <= 0xf4 && stay & kind)
            stay &= char_leads(p, set, (uint8_t)b, set) ? ~0 : ~kind;
        if (to != PDA_DEAD) /* a first byte may stand alone in a token */
            begin |= b < 0x80 ? kind : kind | 1 << KIND_TAIL;
    }
    c->stays_in.at[set] = stay;
    c->begins.at[set] = begin;
}

/* The kinds of characters all of which leave a set as it is. */
int32_t kinds_staying(mask_cache *c, pda *p, int32_t set)
{
    kinds_make(c, p, set);
    return c->stays_in.at[set];
}

int32_t kinds_beginning(mask_cache *c, pda *p, int32_t set)
{
    kinds_make(c, p, set);
    return c->begins.at[set];
}

static void put_token(mask_cache *c, int32_t id, uint64_t *mask)
{
    if (mask)
        mask_set(mask, id);
    else
        VEC_PUSH(&c->found, id);
}

enum { BRANCH_MIN = 4 }; /* nodes: a smaller branch is walked */

/* A set that a byte has just changed is not looked at unless it was before: most are seen once. */
bool mask_whole(mask_cache *c, pda *p, const token_trie *t, uint32_t i, int32_t to, int32_t from)
{
    if (t->end[i] - i < BRANCH_MIN || t->chars[i] & CHARS_CUT)
        return false;
    if (to != from && ((size_t)to >= c->stays_in.n || c->stays_in.at[to] == PDA_UNKNOWN))
        return false;
    return !(t->below[i] & ~kinds_staying(c, p, to));
}

void mask_walk(mask_cache *c, pda *p, const token_trie *t, uint32_t from, int32_t set,
               uint64_t *mask, bool outs, int32_t known)
{
    int32_t *path = c->path;
    path[t->depth[from]] = set;
    for (uint32_t i = from + 1, end = t->end[from]; i < end;) {
        unsigned d = t->depth[i];
        int32_t to = pda_step(p, path[d - 1], t->byte[i]);
        if (to == PDA_DEAD) {
            i = t->end[i];
            continue;
        }
        path[d] = to;
        bool out = outs && pda_may_end(p, to);
        if (t->end[i] - i >= BRANCH_MIN && mask_whole(c, p, t, i, to, path[d - 1])) {
            if (out)
                VEC_PUSH(&c->branch, i);
            uint32_t k = t->first[i], last = t->first[t->end[i]];
            if (k < last && !((t->kinds[t->order[k]] | t->below[i]) & ~known))
                k = last; /* all of the branch is */
            for (; k < last; k++)
                put_token(c, t->order[k], mask);
            i = t->end[i];
            continue;
        }
        for (int32_t id = t->token[i]; id != TRIE_NO_TOKEN; id = t->same[id])
            put_token(c, id, mask);
        if (out && t->end[i] > i + 1)
            VEC_PUSH(&c->out, i);
        i++;
    }
}

/* Whether all plain characters lead from one set to the other. */
static bool text_leads(pda *p, int32_t from, int32_t to)
{
    for (int b = 0; b < 0x80; b++)
        if (KINDS_TEXT >> byte_kind((uint8_t)b) & 1 && pda_step(p, from, (uint8_t)b) != to)
            return false;
    for (int b = 0xc2; b <= 0xf4; b++)
        if (!char_leads(p, from, (uint8_t)b, to))
            return false;
    return true;
}

/* Whether set is the inside of a text, or up to two characters before it: then all plain tokens are allowed. *ends: the rule may
 * end behind one of them. */
static bool text_inside(mask_cache *c, pda *p, int32_t set, bool *ends)
{
    *ends = false;
    for (int i = 0; i < 3; i++) {
        int32_t next = pda_step(p, set, 'a');
        if (next == PDA_DEAD || pda_step(p, set, ' ') != next)
            return false;
        *ends = *ends || pda_may_end(p, next);
        if (next == set)
            return (kinds_staying(c, p, set) & KINDS_TEXT) == KINDS_TEXT;
        if (!text_leads(p, set, next))
            return false;
        set = next;
    }
    return false;
}

static mask_part part_make(mask_cache *c, pda *p, int32_t top)
{
    mask_part r = {.n_out = 0};
    c->found.n = c->out.n = c->branch.n = 0;
    bool ends;
    int32_t set = pda_set_of(p, &top, 1), known = text_inside(c, p, set, &ends) ? KINDS_TEXT : 0;
    /* The end of a string is no plain character: then only the others have to be looked at. */
    r.t = known && !ends ? &c->v->odd : &c->v->mid;
    mask_walk(c, p, r.t, 0, set, NULL, true, known);
    r.n_token = c->found.n;
    r.n_out = c->out.n;
    r.n_branch = c->branch.n;
    if (known || r.n_token * LIST_SHARE > (size_t)c->v->n_token) {
        r.mask = mem_alloc(mem_product(c->v->n_word, sizeof *r.mask));
        if (known)
            memcpy(r.mask, c->v->plain, c->v->n_word * sizeof *r.mask);
        else
            memset(r.mask, 0, c->v->n_word * sizeof *r.mask);
        for (size_t i = 0; i < c->found.n; i++)
            mask_set(r.mask, c->found.at[i]);
        c->bytes += c->v->n_word * sizeof *r.mask;
    } else {
        r.token = mem_alloc(mem_product(r.n_token + 1, sizeof *r.token));
        for (size_t i = 0; i < r.n_token; i++)
            r.token[i] = c->found.at[i];
        c->bytes += (r.n_token + 1) * sizeof *r.token;
    }
    r.out = mem_alloc(mem_product(r.n_out + 1, sizeof *r.out));
    for (size_t i = 0; i < r.n_out; i++)
        r.out[i] = c->out.at[i];
    r.branch = mem_alloc(mem_product(r.n_branch + 1, sizeof *r.branch));
    for (size_t i = 0; i < r.n_branch; i++)
        r.branch[i] = c->branch.at[i];
    c->bytes += (r.n_out + r.n_branch + 2) * sizeof *r.out + sizeof r;
    return r;
}

static mask_part part_of_top(mask_cache *c, pda *p, int32_t top)
{
    while (c->part_of.n < p->node.n) {
        VEC_PUSH(&c->part_of, PDA_UNKNOWN);
        c->bytes += sizeof *c->part_of.at;
    }
    if (c->part_of.at[top] == PDA_UNKNOWN) {
        mask_part r = part_make(c, p, top);
        if (p->full) { /* not all of it */
            mem_free(r.token);
            mem_free(r.mask);
            mem_free(r.out);
            mem_free(r.branch);
            return (mask_part){.n_out = 0};
        }
        VEC_PUSH(&c->part, r);
        c->part_of.at[top] = (int32_t)(c->part.n - 1);
    }
    return c->part.at[c->part_of.at[top]];
}

/* ---- a set of stacks ---- */

static void add_stack(mask_cache *c, pda *p, int32_t node, uint64_t *mask)
{
    if (counted_add(c, p, node, mask))
        return;
    int32_t below, top = stack_top(c, p, node, &below);
    mask_part r = part_of_top(c, p, top);
    if (r.mask)
        for (size_t i = 0; i < c->v->n_word; i++)
            mask[i] |= r.mask[i];
    else
        for (size_t i = 0; i < r.n_token; i++)
            mask_set(mask, r.token[i]);
    if (below == PDA_EMPTY || r.n_out + r.n_branch == 0)
        return;
    const token_trie *t = r.t;
    int32_t set = pda_closed(p, below);
    int32_t begins =
        kinds_beginning(c, p, set); /* below a node with none of these nothing goes on */
    for (size_t i = 0; i < r.n_out; i++)
        if (t->below[r.out[i]] & begins)
            mask_walk(c, p, t, r.out[i], set, mask, false, 0);
    for (size_t i = 0; i < r.n_branch; i++)
        for (uint32_t k = r.branch[i], end = t->end[k]; k < end;) {
            bool some = t->below[k] & begins;
            if (some && !(t->chars[k] & CHARS_CUT))
                mask_walk(c, p, t, k, set, mask, false, 0);
            k = some ? k + 1 : t->end[k];
        }
}

static void put_ends(const mask_cache *c, const pda *p, int32_t set, uint64_t *mask)
{
    if (pda_may_end(p, set))
        for (size_t i = 0; i < c->v->n_word; i++)
            mask[i] |= c->v->ends[i];
}

const uint64_t *mask_of_set(mask_cache *c, pda *p, int32_t set)
{
    while (c->mask_of.n < p->n_set) {
        VEC_PUSH(&c->mask_of, NULL);
        c->bytes += sizeof *c->mask_of.at;
    }
    if (c->mask_of.at[set])
        return c->mask_of.at[set];
    size_t bytes = c->v->n_word * sizeof(uint64_t), n;
    uint64_t *mask = c->scratch;
    memset(mask, 0, bytes);
    pda_members(p, set, &n);
    for (size_t i = 0; i < n; i++) {
        int32_t node = pda_members(p, set, &n)[i]; /* which moves as sets are added */
        if (node != PDA_EMPTY)
            add_stack(c, p, node, mask);
    }
    put_ends(c, p, set, mask);
    if (p->full)
        return NULL;
    uint64_t *kept = mem_alloc(bytes);
    memcpy(kept, mask, bytes);
    c->bytes += bytes;
    c->mask_of.at[set] = kept;
    return kept;
}

const uint64_t *mask_of_first(mask_cache *c, pda *p, int32_t set)
{
    memset(c->scratch, 0, c->v->n_word * sizeof *c->scratch);
    mask_walk(c, p, &c->v->first, 0, set, c->scratch, false, 0);
    put_ends(c, p, set, c->scratch);
    return p->full ? NULL : c->scratch;
}
