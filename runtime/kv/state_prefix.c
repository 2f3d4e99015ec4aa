/* state_prefix.c - prefixes, which hold pages without being sequences. */
#include "runtime/kv/state_impl.h"

int64_t state_prefixes(const state *st)
{
    return st->n_prefix;
}

/* Its number among those who hold pages. */
static int64_t holder_of(const state *st, int64_t prefix)
{
    WEFT_ASSERT(prefix >= 0 && prefix < st->n_prefix);
    return st->n_seq + prefix;
}

int64_t state_prefix_length(const state *st, int64_t prefix)
{
    return st->length[holder_of(st, prefix)];
}

int64_t state_prefix_keepable(const state *st, int64_t prefix, int64_t length)
{
    return state_holder_keepable(st, holder_of(st, prefix), length);
}

void state_hold(state *st, int64_t seq, int64_t prefix, int64_t length)
{
    WEFT_ASSERT(state_keepable(st, seq, length) == length);
    state_share(st, seq, holder_of(st, prefix), length);
}

void state_take(state *st, int64_t prefix, int64_t seq, int64_t length)
{
    WEFT_ASSERT(state_has(st, seq) && state_prefix_keepable(st, prefix, length) == length);
    state_share(st, holder_of(st, prefix), seq, length);
}

void state_drop(state *st, int64_t prefix)
{
    int64_t h = holder_of(st, prefix);
    st->length[h] = 0;
    state_cut(st, h, 0);
}

int64_t state_prefix_alone(const state *st, int64_t prefix, size_t *out_bytes)
{
    int64_t n = 0, h = holder_of(st, prefix);
    size_t bytes = 0;
    for (int32_t i = 0; i < st->n_table; i++) {
        const cell_table *t = &st->tables[i];
        int64_t alone = pages_alone(&t->pool, &t->pool.tables[h]);
        n += alone;
        bytes += (size_t)alone * t->page_bytes;
    }
    if (out_bytes)
        *out_bytes = bytes;
    return n;
}

void state_prefix_pages(const state *st, int64_t *out_n, size_t *out_bytes)
{
    *out_n = 0;
    *out_bytes = 0;
    for (int32_t i = 0; i < st->n_table; i++) {
        const cell_table *t = &st->tables[i];
        int64_t n = t->pool.n_page - t->pool.n_free - pages_held(&t->pool, st->n_seq);
        *out_n += n;
        *out_bytes += (size_t)n * t->page_bytes;
    }
}

int64_t state_sequence_pages(const state *st, int32_t table, int64_t *out_alone)
{
    return pages_split(&st->tables[table].pool, st->n_seq, out_alone);
}

bool state_shares_last(const state *st, int32_t table, int64_t seq)
{
    const cell_table *t = &st->tables[table];
    const page_table *pages = &t->pool.tables[seq];
    int64_t rest = st->length[seq] % t->g->page_tok;
    return t->tier == 0 && rest > 0 && pages->n > pages->first &&
           pages_shared(&t->pool, pages, pages->n - 1);
}
