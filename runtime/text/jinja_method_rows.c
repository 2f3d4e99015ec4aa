/* jinja_method_rows.c - methods of lists, dicts, numbers, loops and cyclers. */
#include "runtime/text/jinja_builtins.h"

#include <math.h>

weft_status method_copy(jinja_run *r, const jcall *c, jval *out)
{
    (void)r;
    *out = c->self; /* lists and dicts never change, so a copy is the value */
    return WEFT_OK;
}

weft_status method_list_count(jinja_run *r, const jcall *c, jval *out)
{
    int64_t n = 0;
    WEFT_TRY(run_step(r, c->self.as.list->n / 4));
    for (size_t i = 0; i < c->self.as.list->n; i++)
        n += jv_equal(r, &c->self.as.list->at[i], &c->arg[0]);
    *out = jv_int(n);
    return WEFT_OK;
}

weft_status method_list_index(jinja_run *r, const jcall *c, jval *out)
{
    int64_t n = (int64_t)c->self.as.list->n, begin = 0, end = n;
    WEFT_TRY(arg_int(r, c, 1, &begin));
    WEFT_TRY(arg_int(r, c, 2, &end));
    begin = begin < -n ? 0 : begin < 0 ? begin + n : begin;
    end = end < -n ? 0 : end < 0 ? end + n : end > n ? n : end;
    WEFT_TRY(run_step(r, (uint64_t)n / 4));
    for (int64_t i = begin; i < end; i++) {
        if (!jv_equal(r, &c->self.as.list->at[i], &c->arg[0]))
            continue;
        *out = jv_int(i);
        return WEFT_OK;
    }
    return run_fail(r, "the value is not in the list");
}

weft_status method_dict_get(jinja_run *r, const jcall *c, jval *out)
{
    if (!jv_hashable(r, &c->arg[0]))
        return run_fail(r, "a %s cannot be a key", jv_type(&c->arg[0]));
    const jval *found = jdict_get(r, c->self.as.dict, &c->arg[0]);
    *out = found ? *found : c->arg[1].kind == JV_ABSENT ? jv_none() : c->arg[1];
    return WEFT_OK;
}

weft_status dict_view(jinja_run *r, const jdict *d, jseq seq, jval *out)
{
    WEFT_TRY(run_list_room(r, d->n * (seq == JSEQ_ITEMS ? 5 : 1)));
    jlist *l = jlist_new(r, seq, d->n);
    for (size_t i = 0; i < d->n; i++) {
        if (seq == JSEQ_ITEMS) {
            jlist *pair = jlist_new(r, JSEQ_TUPLE, 2);
            jlist_push(r, pair, d->at[i].key);
            jlist_push(r, pair, d->at[i].v);
            jlist_push(r, l, jv_list(pair));
        } else {
            jlist_push(r, l, seq == JSEQ_KEYS ? d->at[i].key : d->at[i].v);
        }
    }
    *out = jv_list(l);
    return WEFT_OK;
}

weft_status method_dict_view(jinja_run *r, const jcall *c, jval *out)
{
    return dict_view(r, c->self.as.dict, (jseq)c->how, out);
}

weft_status method_bit_length(jinja_run *r, const jcall *c, jval *out)
{
    int64_t n = 0;
    (void)r;
    for (uint64_t x = c->self.as.i < 0 ? 0 - (uint64_t)c->self.as.i : (uint64_t)c->self.as.i; x;
         x >>= 1)
        n++;
    *out = jv_int(n);
    return WEFT_OK;
}

weft_status method_is_integer(jinja_run *r, const jcall *c, jval *out)
{
    (void)r;
    *out = jv_bool(c->self.as.f == floor(c->self.as.f) && !isinf(c->self.as.f));
    return WEFT_OK;
}

weft_status method_loop_cycle(jinja_run *r, const jcall *c, jval *out)
{
    (void)r;
    *out = c->arg[c->self.as.loop->i % c->n];
    return WEFT_OK;
}

weft_status method_loop_changed(jinja_run *r, const jcall *c, jval *out)
{
    jloop *l = c->self.as.loop;
    bool same = l->changed && l->changed->n == c->n;
    for (size_t i = 0; same && i < c->n; i++)
        same = jv_equal(r, &l->changed->at[i], &c->arg[i]);
    if (!same) {
        WEFT_TRY(run_list_room(r, c->n));
        l->changed = jlist_new(r, JSEQ_TUPLE, c->n);
        for (size_t i = 0; i < c->n; i++)
            jlist_push(r, l->changed, c->arg[i]);
    }
    *out = jv_bool(!same);
    return WEFT_OK;
}

weft_status method_cycler_next(jinja_run *r, const jcall *c, jval *out)
{
    jcycler *cy = c->self.as.cycler;
    if (!cy->items)
        return run_fail(r, "a joiner has no `next`");
    *out = cy->items->at[cy->i];
    cy->i = (cy->i + 1) % cy->items->n;
    return WEFT_OK;
}

weft_status method_cycler_reset(jinja_run *r, const jcall *c, jval *out)
{
    (void)r;
    c->self.as.cycler->i = 0;
    *out = jv_none();
    return WEFT_OK;
}
