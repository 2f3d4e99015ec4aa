/* state_place.c - what a sequence has, table by table, and one that is given as much from elsewhere. */
#include "runtime/kv/state_impl.h"

#include <inttypes.h>

state_span state_span_of(const state *st, int32_t table, int64_t seq)
{
    WEFT_ASSERT(state_has(st, seq) && table >= 0 && table < st->n_table);
    const page_table *t = &st->tables[table].pool.tables[seq];
    return (state_span){.first = t->first, .n = t->n, .stays = t->stays};
}

static bool table_fits(const cell_table *t, int64_t holder, int64_t length)
{
    const page_table *tab = &t->pool.tables[holder];
    int64_t end = table_upper(t, holder, length);
    bool fits = tab->first >= 0 && tab->first <= tab->n && tab->n <= end && tab->stays >= 0 &&
                tab->stays <= tab->first && table_can_keep(t, holder, length, NULL);
    if (!fits || tab->n == end)
        return fits;
    /* What is missing at the end is made of the tier before, as far as somebody sees it; a table has no gaps. */
    int64_t seen = length > t->g->seen ? (length - t->g->seen) / t->g->page_tok : 0;
    int64_t next = tab->first == tab->n && seen > tab->n ? seen : tab->n;
    return t->tier > 0 && (next >= end || t[-1].pool.tables[holder].first <= next);
}

/* Sequence 0 lends its tables: what they say of spans is changed for the questions, and no page of them. */
bool state_spans_fit(state *st, const state_span *spans, int64_t length)
{
    if (length < 0 || length > st->n_ctx)
        return false;
    bool fit = true;
    for (int32_t i = 0; i < st->n_table; i++) {
        page_table *t = &st->tables[i].pool.tables[0];
        st->tables[i].marks[0].first = t->first;
        st->tables[i].marks[0].n = t->n;
        st->tables[i].lent = t->stays;
        t->first = spans[i].first;
        t->n = spans[i].n;
        t->stays = spans[i].stays;
    }
    for (int32_t i = 0; i < st->n_table && fit; i++)
        fit = table_fits(&st->tables[i], 0, length);
    for (int32_t i = 0; i < st->n_table; i++) {
        page_table *t = &st->tables[i].pool.tables[0];
        t->first = st->tables[i].marks[0].first;
        t->n = st->tables[i].marks[0].n;
        t->stays = st->tables[i].lent;
    }
    return fit;
}

int64_t state_span_pinned(const state *st, int32_t table, const state_span *s)
{
    int64_t pinned = st->tables[table].pool.pinned;
    return pinned < s->first ? pinned : s->first;
}

bool state_spans_room(const state *st, const state_span *spans, int64_t seq)
{
    bool room = true;
    for (int32_t i = 0; i < st->n_table && room; i++) {
        const page_pool *p = &st->tables[i].pool;
        int64_t need = spans[i].n - spans[i].first + state_span_pinned(st, i, &spans[i]);
        room = need <= p->n_free + pages_alone(p, &p->tables[seq]);
    }
    return room;
}

void state_place(state *st, int64_t seq, const state_span *spans, int64_t length)
{
    WEFT_ASSERT(state_has(st, seq) && state_spans_fit(st, spans, length));
    st->length[seq] = length;
    for (int32_t i = 0; i < st->n_table; i++) {
        page_pool *p = &st->tables[i].pool;
        page_table *t = &p->tables[seq];
        pages_cut(p, t, 0);
        for (int64_t pinned = state_span_pinned(st, i, &spans[i]); t->n < pinned;)
            pages_take(p, t);
        t->first = t->n = spans[i].first;
        while (t->n < spans[i].n)
            pages_take(p, t);
        t->stays = spans[i].stays;
        st->tables[i].marks[seq].made = INT64_MAX;
    }
}

void state_describe(const state *st, strbuf *out)
{
    static const char *const layouts[] = {"paged", "contiguous", "ring"};
    for (int i = 0; i < st->n_cell; i++) {
        const kcell *c = &st->cells[i];
        const cell_group *g = st->tables[c->table].g;
        strbuf_add(out, "%s: %s of %" PRId64 " heads, %" PRId64 " and %" PRId64 " wide, %s",
                   st->names[i] ? st->names[i] : "cell", c->latent ? "rows" : "keys and values",
                   c->heads, c->k, c->v, layouts[g->layout]);
        if (g->layout == PLAN_RING)
            strbuf_add(out, " of %" PRId64 " rows", g->keep);
        if (g->layout != PLAN_CONTIGUOUS)
            strbuf_add(out, ", pages of %" PRId64, g->page_tok);
        if (c->pinned > 0)
            strbuf_add(out, ", %" PRId64 " pinned", c->pinned);
        strbuf_add(out, ", stored as ");
        kpolicy_print(&g->kv, out);
        strbuf_putc(out, '\n');
    }
}
