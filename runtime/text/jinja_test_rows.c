/* jinja_test_rows.c - the functions of jinja_tests.def. */
#include "runtime/text/jinja_builtins.h"

static weft_status answer(bool holds, jval *out)
{
    *out = jv_bool(holds);
    return WEFT_OK;
}

weft_status test_kind(jinja_run *r, const jcall *c, jval *out)
{
    (void)r;
    return answer(1 << c->self.kind & c->how, out);
}

/* A test that only looks at the value c->self. */
#define TEST_OF(fn, holds)                                                                         \
    weft_status test_##fn(jinja_run *r, const jcall *c, jval *out)                                 \
    {                                                                                              \
        const jval *v = &c->self;                                                                  \
        (void)r;                                                                                   \
        return answer(holds, out);                                                                 \
    }

TEST_OF(callable, v->kind == JV_BUILTIN || v->kind == JV_MACRO || v->kind == JV_LOOP ||
                      (v->kind == JV_CYCLER && !v->as.cycler->items))
TEST_OF(false, v->kind == JV_BOOL && !v->as.b)
TEST_OF(filter, v->kind == JV_STR && filter_row(v->as.s) != NULL)
TEST_OF(sequence, (v->kind == JV_LIST && v->as.list->seq <= JSEQ_RANGE) || v->kind == JV_DICT ||
                      v->kind == JV_STR || v->kind == JV_UNDEFINED)
TEST_OF(test, v->kind == JV_STR && test_row(v->as.s) != NULL)
TEST_OF(true, v->kind == JV_BOOL && v->as.b)

weft_status test_all_case(jinja_run *r, const jcall *c, jval *out)
{
    str s;
    WEFT_TRY(value_to_str(r, &c->self, &s));
    WEFT_TRY(run_step(r, s.n / STEP_CHARS));
    return answer(str_is_all_case(s, c->how == TO_UPPER), out);
}

weft_status test_sameas(jinja_run *r, const jcall *c, jval *out)
{
    const jval *a = &c->self, *b = &c->arg[0];
    if (a->kind == JV_LIST || a->kind == JV_DICT)
        return answer(a->kind == b->kind && a->as.list == b->as.list, out);
    return answer(a->kind == b->kind && jv_equal(r, a, b), out);
}

/* odd and even divide by two, divisibleby by its argument. */
weft_status test_remainder(jinja_run *r, const jcall *c, jval *out)
{
    jval by = c->n ? c->arg[0] : jv_int(2), want = jv_int(c->how), m;
    WEFT_TRY(op_binary(r, JE_MOD, &c->self, &by, &m));
    return answer(jv_equal(r, &m, &want), out);
}

weft_status test_compare(jinja_run *r, const jcall *c, jval *out)
{
    bool holds;
    WEFT_TRY(op_compare(r, (jexpr_op)c->how, &c->self, &c->arg[0], &holds));
    return answer(holds, out);
}
