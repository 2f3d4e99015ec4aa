/* jinja_test_rows.c - the functions of jinja_tests.def. */
#include "runtime/text/jinja_builtins.h"

static weft_status answer(bool holds, jval *out)
{
    *out = jv_bool(holds);
    return WEFT_OK;
}

/* A test that only looks at the value c->self. */
#define TEST_OF(fn, holds)                                                                         \
    weft_status test_##fn(jinja_run *r, const jcall *c, jval *out)                                 \
    {                                                                                              \
        const jval *v = &c->self;                                                                  \
        (void)r;                                                                                   \
        return answer(holds, out);                                                                 \
    }

TEST_OF(boolean, v->kind == JV_BOOL)
TEST_OF(callable, v->kind == JV_BUILTIN || v->kind == JV_MACRO || v->kind == JV_LOOP ||
                      (v->kind == JV_CYCLER && !v->as.cycler->items))
TEST_OF(defined, v->kind != JV_UNDEFINED)
TEST_OF(escaped, v->kind == JV_ABSENT) /* there is no markup: never */
TEST_OF(false, v->kind == JV_BOOL && !v->as.b)
TEST_OF(filter, v->kind == JV_STR && filter_row(v->as.s) != NULL)
TEST_OF(float, v->kind == JV_FLOAT)
TEST_OF(integer, v->kind == JV_INT)
TEST_OF(iterable,
        v->kind == JV_LIST || v->kind == JV_DICT || v->kind == JV_STR || v->kind == JV_UNDEFINED)
TEST_OF(mapping, v->kind == JV_DICT)
TEST_OF(none, v->kind == JV_NONE)
TEST_OF(number, jv_is_number(v))
TEST_OF(sequence, (v->kind == JV_LIST && v->as.list->seq <= JSEQ_RANGE) || v->kind == JV_DICT ||
                      v->kind == JV_STR || v->kind == JV_UNDEFINED)
TEST_OF(string, v->kind == JV_STR)
TEST_OF(test, v->kind == JV_STR && test_row(v->as.s) != NULL)
TEST_OF(true, v->kind == JV_BOOL && v->as.b)
TEST_OF(undefined, v->kind == JV_UNDEFINED)

static weft_status in_case(jinja_run *r, const jval *v, bool upper, jval *out)
{
    str s;
    WEFT_TRY(value_to_str(r, v, &s));
    WEFT_TRY(run_step(r, s.n / STEP_CHARS));
    return answer(str_is_all_case(s, upper), out);
}

weft_status test_lower(jinja_run *r, const jcall *c, jval *out)
{
    return in_case(r, &c->self, false, out);
}

weft_status test_upper(jinja_run *r, const jcall *c, jval *out)
{
    return in_case(r, &c->self, true, out);
}

weft_status test_sameas(jinja_run *r, const jcall *c, jval *out)
{
    const jval *a = &c->self, *b = &c->arg[0];
    if (a->kind == JV_LIST || a->kind == JV_DICT)
        return answer(a->kind == b->kind && a->as.list == b->as.list, out);
    return answer(a->kind == b->kind && jv_equal(r, a, b), out);
}

static weft_status remainder_is(jinja_run *r, const jcall *c, const jval *by, int64_t want,
                                jval *out)
{
    jval m;
    jval w = jv_int(want);
    WEFT_TRY(op_binary(r, JE_MOD, &c->self, by, &m));
    return answer(jv_equal(r, &m, &w), out);
}

weft_status test_odd(jinja_run *r, const jcall *c, jval *out)
{
    jval two = jv_int(2);
    return remainder_is(r, c, &two, 1, out);
}

weft_status test_even(jinja_run *r, const jcall *c, jval *out)
{
    jval two = jv_int(2);
    return remainder_is(r, c, &two, 0, out);
}

weft_status test_divisibleby(jinja_run *r, const jcall *c, jval *out)
{
    return remainder_is(r, c, &c->arg[0], 0, out);
}

#define TEST_COMPARE(fn, op)                                                                       \
    weft_status test_##fn(jinja_run *r, const jcall *c, jval *out)                                 \
    {                                                                                              \
        bool holds;                                                                                \
        WEFT_TRY(op_compare(r, op, &c->self, &c->arg[0], &holds));                                 \
        return answer(holds, out);                                                                 \
    }

TEST_COMPARE(in, JE_IN)
TEST_COMPARE(eq, JE_EQ)
TEST_COMPARE(ne, JE_NE)
TEST_COMPARE(lt, JE_LT)
TEST_COMPARE(le, JE_LE)
TEST_COMPARE(gt, JE_GT)
TEST_COMPARE(ge, JE_GE)
