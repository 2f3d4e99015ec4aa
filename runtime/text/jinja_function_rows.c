/* jinja_function_rows.c - the functions of jinja_functions.def. */
#include "runtime/text/jinja_builtins.h"

#include <stdio.h>

enum { RANGE_MAX = 100000 }; /* as in Jinja's sandbox */

weft_status function_raise_exception(jinja_run *r, const jcall *c, jval *out)
{
    str message;
    (void)out;
    WEFT_TRY(value_to_str(r, &c->arg[0], &message));
    return weft_fail(r->dg, W1302, (weft_loc){r->t->src, r->at, r->at_end}, STR_FMT,
                     STR_ARG(message));
}

/* The directives one by one, each through strftime, so that a width cannot ask for megabytes and
 * what C leaves undefined is refused. A dash before the letter, as glibc has it, drops zeros. */
weft_status function_strftime_now(jinja_run *r, const jcall *c, jval *out)
{
    static const char letters[] = "aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyY%";
    str fmt = {0};
    jtext t = {.r = r};
    WEFT_TRY(arg_str(r, c, 0, &fmt));
    for (size_t i = 0; i < fmt.n; i++) {
        char one[4] = {'%'}, text[128];
        if (fmt.p[i] != '%' || i + 1 == fmt.n) {
            text_putc(&t, fmt.p[i]);
            continue;
        }
        size_t n = 1;
        WEFT_TRY(run_step(r, FLOAT_STEPS)); /* the C library's work is as long as for a float */
        if (fmt.p[i + 1] == '-' && i + 2 < fmt.n) {
            one[n++] = '-';
            i++;
        }
        one[n] = fmt.p[++i];
        if (one[n] == 'f') {
            text_putz(&t, "000000");
        } else if (one[n] != 'z' && one[n] != 'Z') { /* a time without zone prints none */
            if (!one[n] || !strchr(letters, one[n]))
                return run_fail(r, "strftime_now does not know %%%c",
                                one[n] > ' ' && one[n] < 0x7f ? one[n] : '?');
            text_put(&t, (str){text, strftime(text, sizeof text, one, &r->now)});
        }
    }
    return text_value(&t, out);
}

/* The pairs of one dict or list of pairs, and then the keywords. */
static weft_status fill_dict(jinja_run *r, const jcall *c, jdict *d)
{
    if (c->n > 1)
        return run_fail(r, "at most one argument without name is taken");
    if (c->n == 1 && c->arg[0].kind == JV_DICT) {
        const jdict *from = c->arg[0].as.dict;
        WEFT_TRY(run_list_room(r, from->n * 4));
        for (size_t i = 0; i < from->n; i++)
            jdict_set(r, d, from->at[i].key, from->at[i].v);
    } else if (c->n == 1) {
        const jlist *pairs, *pair;
        WEFT_TRY(access_items(r, &c->arg[0], &pairs));
        WEFT_TRY(run_list_room(r, pairs->n * 4));
        for (size_t i = 0; i < pairs->n; i++) {
            WEFT_TRY(access_items(r, &pairs->at[i], &pair));
            if (pair->n != 2 || !jv_hashable(r, &pair->at[0]))
                return run_fail(r, "item %zu is not a pair of key and value", i);
            jdict_set(r, d, pair->at[0], pair->at[1]);
        }
    }
    for (size_t i = 0; i < c->n_kw; i++)
        jdict_set_str(r, d, c->kw_name[i], c->kw[i]);
    return WEFT_OK;
}

weft_status function_dict(jinja_run *r, const jcall *c, jval *out)
{
    jdict *d = jdict_new(r);
    WEFT_TRY(fill_dict(r, c, d));
    *out = (jval){.kind = (jkind)c->how, .as.dict = d};
    return WEFT_OK;
}

weft_status function_range(jinja_run *r, const jcall *c, jval *out)
{
    int64_t edge[3] = {0, 0, 1};
    if (c->n > 3 || c->n_kw)
        return run_fail(r, "range takes one to three integers");
    for (size_t i = 0; i < c->n; i++) {
        WEFT_TRY(arg_int(r, c, i, &edge[i]));
        if (c->arg[i].kind == JV_NONE)
            return run_fail(r, "range takes integers, not none");
    }
    if (c->n == 1) {
        edge[1] = edge[0];
        edge[0] = 0;
    }
    if (edge[2] == 0)
        return run_fail(r, "the step of range is zero");
    bool up = edge[2] > 0;
    uint64_t span = 0, step = up ? (uint64_t)edge[2] : 0 - (uint64_t)edge[2];
    if (up ? edge[0] < edge[1] : edge[0] > edge[1])
        span = up ? (uint64_t)edge[1] - (uint64_t)edge[0] : (uint64_t)edge[0] - (uint64_t)edge[1];
    uint64_t n = span ? (span - 1) / step + 1 : 0;
    if (n > RANGE_MAX) {
        char text[64];
        snprintf(text, sizeof text, "range has more than %d numbers", RANGE_MAX);
        return run_limit(r, text);
    }
    WEFT_TRY(run_list_room(r, (size_t)n));
    jlist *l = jlist_new(r, JSEQ_RANGE, (size_t)n);
    for (uint64_t i = 0; i < n; i++)
        jlist_push(r, l, jv_int((int64_t)((uint64_t)edge[0] + i * (uint64_t)edge[2])));
    *out = jv_list(l);
    return WEFT_OK;
}

weft_status function_cycler(jinja_run *r, const jcall *c, jval *out)
{
    jcycler *cy = ARENA_NEW(r->a, jcycler);
    jlist *l = jlist_new(r, JSEQ_LIST, c->n);
    for (size_t i = 0; i < c->n; i++)
        jlist_push(r, l, c->arg[i]);
    cy->items = l;
    *out = (jval){.kind = JV_CYCLER, .as.cycler = cy};
    return WEFT_OK;
}

weft_status function_joiner(jinja_run *r, const jcall *c, jval *out)
{
    jcycler *cy = ARENA_NEW(r->a, jcycler);
    cy->sep = STR(", ");
    WEFT_TRY(arg_str(r, c, 0, &cy->sep));
    *out = (jval){.kind = JV_CYCLER, .as.cycler = cy};
    return WEFT_OK;
}
