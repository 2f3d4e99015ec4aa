/* jinja_tables.c - the tables of builtins, and finding a row by name. */
#include "runtime/text/jinja_builtins.h"
#include "runtime/text/jinja_chars.h"

static const jrow filters[] = {
#define FILTER(name, fn, how, least, params) {name, filter_##fn, how, least, params},
#include "runtime/text/jinja_filters.def"
#undef FILTER
};
static const jrow tests[] = {
#define KIND(k) (1 << JV_##k)
#define TEST(name, fn, how, least, params) {name, test_##fn, how, least, params},
#include "runtime/text/jinja_tests.def"
#undef TEST
#undef KIND
};
static const jrow functions[] = {
#define FUNCTION(name, fn, how, least, params) {name, function_##fn, how, least, params},
#include "runtime/text/jinja_functions.def"
#undef FUNCTION
};
static const struct {
    jkind kind;
    jrow row;
} methods[] = {
#define METHOD(kind, name, fn, how, least, params)                                                 \
    {JV_##kind, {name, method_##fn, how, least, params}},
#define UNSAFE(kind, name) {JV_##kind, {name, NULL, 0, 0, ""}},
#include "runtime/text/jinja_methods.def"
#undef METHOD
#undef UNSAFE
};

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])

static const jrow *find(const jrow *rows, size_t n, str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eqz(name, rows[i].name))
            return &rows[i];
    return NULL;
}

const jrow *filter_row(str name)
{
    return find(filters, COUNT_OF(filters), name);
}

const jrow *test_row(str name)
{
    return find(tests, COUNT_OF(tests), name);
}

const jrow *function_row(str name)
{
    return find(functions, COUNT_OF(functions), name);
}

const jrow *method_row(const jval *self, str name)
{
    bool frozen = self->kind == JV_LIST && self->as.list->seq != JSEQ_LIST;
    for (size_t i = 0; i < COUNT_OF(methods); i++)
        if (methods[i].kind == self->kind && str_eqz(name, methods[i].row.name))
            return frozen && !methods[i].row.fn ? NULL : &methods[i].row;
    return NULL;
}

bool method_named(str name)
{
    for (size_t i = 0; i < COUNT_OF(methods); i++)
        if (str_eqz(name, methods[i].row.name))
            return true;
    return false;
}

weft_status arg_str(jinja_run *r, const jcall *c, size_t i, str *out)
{
    if (c->arg[i].kind == JV_ABSENT)
        return WEFT_OK;
    if (c->arg[i].kind == JV_UNDEFINED)
        return run_undefined(r, &c->arg[i]);
    if (c->arg[i].kind != JV_STR)
        return run_fail(r, "argument %zu is a string, not %s", i + 1, jv_type(&c->arg[i]));
    *out = c->arg[i].as.s;
    return WEFT_OK;
}

weft_status arg_int(jinja_run *r, const jcall *c, size_t i, int64_t *out)
{
    if (!jv_is_given(&c->arg[i]))
        return WEFT_OK;
    if (c->arg[i].kind == JV_UNDEFINED)
        return run_undefined(r, &c->arg[i]);
    if (!jv_is_integer(&c->arg[i]))
        return run_fail(r, "argument %zu is an integer, not %s", i + 1, jv_type(&c->arg[i]));
    *out = jv_integer(&c->arg[i]);
    return WEFT_OK;
}

bool arg_truth(const jcall *c, size_t i)
{
    return jv_truth(&c->arg[i]);
}
