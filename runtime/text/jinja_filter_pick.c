/* jinja_filter_pick.c - map, select and their kin: filters that apply others to each item. */
#include "runtime/text/jinja_builtins.h"

static weft_status begin(jinja_run *r, const jcall *c, const jlist **items, jlist **made)
{
    static const jlist none = {0};
    *items = &none; /* what is false has no items, even where it could not have any */
    if (jv_truth(&c->self))
        WEFT_TRY(access_items(r, &c->self, items));
    WEFT_TRY(run_list_room(r, (*items)->n));
    *made = jlist_new(r, JSEQ_GENERATOR, (*items)->n);
    return WEFT_OK;
}

static weft_status map_attribute(jinja_run *r, const jcall *c, const jlist *items, jlist *made)
{
    const jval *attribute = NULL, *otherwise = NULL;
    for (size_t i = 0; i < c->n_kw; i++) {
        if (str_eqz(c->kw_name[i], "attribute"))
            attribute = &c->kw[i];
        else if (str_eqz(c->kw_name[i], "default"))
            otherwise = &c->kw[i];
        else
            return run_fail(r, "map has no argument `" STR_FMT "`", STR_ARG(c->kw_name[i]));
    }
    if (!attribute)
        return run_fail(r, "map takes the name of a filter, or attribute=");
    for (size_t i = 0; i < items->n; i++) {
        jval v;
        WEFT_TRY(access_path(r, &items->at[i], attribute, &v));
        jlist_push(r, made, v.kind == JV_UNDEFINED && otherwise ? *otherwise : v);
    }
    return WEFT_OK;
}

weft_status filter_map(jinja_run *r, const jcall *c, jval *out)
{
    const jlist *items;
    jlist *made;
    WEFT_TRY(begin(r, c, &items, &made));
    *out = jv_list(made);
    if (c->n == 0)
        return map_attribute(r, c, items, made);
    const jrow *row = c->arg[0].kind == JV_STR ? filter_row(c->arg[0].as.s) : NULL;
    if (!row)
        return run_fail(r, "map: there is no such filter");
    WEFT_TRY(run_enter(r));
    for (size_t i = 0; i < items->n; i++) {
        jval v;
        WEFT_TRY(call_row(r, row, "filter", &items->at[i], c->arg + 1, c->n - 1, c->kw_name, c->kw,
                          c->n_kw, &v));
        jlist_push(r, made, v);
    }
    run_leave(r);
    return WEFT_OK;
}

/* With an attribute the test looks at that of each item; without a test, truth counts. */
weft_status filter_pick(jinja_run *r, const jcall *c, jval *out)
{
    bool by_attribute = c->how & PICK_ATTR, keep = !(c->how & PICK_REJECT);
    const jlist *items;
    jlist *made;
    const jrow *row = NULL;
    size_t first = by_attribute;
    WEFT_TRY(begin(r, c, &items, &made));
    if (c->n > first) {
        row = c->arg[first].kind == JV_STR ? test_row(c->arg[first].as.s) : NULL;
        if (!row)
            return run_fail(r, "there is no such test");
    }
    WEFT_TRY(run_enter(r));
    for (size_t i = 0; i < items->n; i++) {
        jval v = items->at[i], holds;
        WEFT_TRY(run_step(r, 1));
        if (by_attribute)
            WEFT_TRY(access_path(r, &items->at[i], &c->arg[0], &v));
        holds = v;
        if (row)
            WEFT_TRY(call_row(r, row, "test", &v, c->arg + first + 1, c->n - first - 1, c->kw_name,
                              c->kw, c->n_kw, &holds));
        if (jv_truth(&holds) == keep)
            jlist_push(r, made, items->at[i]);
    }
    run_leave(r);
    *out = jv_list(made);
    return WEFT_OK;
}
