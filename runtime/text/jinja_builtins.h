/* jinja_builtins.h - the functions behind the tables, and how they read their arguments. Private to
 * the engine. */
#ifndef WEFT_RUNTIME_TEXT_JINJA_BUILTINS_H
#define WEFT_RUNTIME_TEXT_JINJA_BUILTINS_H

#include "runtime/text/jinja_run.h"

/* The column `how` of rows that share a function. Others use CHAR_ classes, sequences (JSEQ_), operators (JE_)
 * or kinds of values. */
enum { TO_LOWER, TO_UPPER, TO_TITLE, TO_CAPITAL, TO_SWAPPED };
enum { JUSTIFY_LEFT, JUSTIFY_RIGHT, JUSTIFY_CENTER };
enum { STRIP_LEFT = 1, STRIP_RIGHT = 2 };
enum { PICK_ATTR = 1, PICK_REJECT = 2 };
/* The last instead of the first; a failure if it is not there. */
enum { AT_END = 1, FIND_MUST = 2 };

/* Declared once per row; several rows may share a function. */
#define FILTER(name, fn, how, least, params)                                                       \
    weft_status filter_##fn(jinja_run *r, const jcall *c, jval *out);
#include "runtime/text/jinja_filters.def"
#undef FILTER
#define TEST(name, fn, how, least, params)                                                         \
    weft_status test_##fn(jinja_run *r, const jcall *c, jval *out);
#include "runtime/text/jinja_tests.def"
#undef TEST
#define METHOD(kind, name, fn, how, least, params)                                                 \
    weft_status method_##fn(jinja_run *r, const jcall *c, jval *out);
#define UNSAFE(kind, name)
#include "runtime/text/jinja_methods.def"
#undef METHOD
#undef UNSAFE
#define FUNCTION(name, fn, how, least, params)                                                     \
    weft_status function_##fn(jinja_run *r, const jcall *c, jval *out);
#include "runtime/text/jinja_functions.def"
#undef FUNCTION

/* Argument i as a string or an integer; where it is absent, what is in *out stays. An integer that is
 * none counts as absent. */
weft_status arg_str(jinja_run *r, const jcall *c, size_t i, str *out) WEFT_MUST_USE;
weft_status arg_int(jinja_run *r, const jcall *c, size_t i, int64_t *out) WEFT_MUST_USE;
bool arg_truth(const jcall *c, size_t i);

/* The first place of part in s at or after byte `from`, or s.n + 1. */
size_t str_find(str s, str part, size_t from);
/* The last place, or s.n + 1; wrong once the fuel is spent, which the next step notices. */
size_t str_find_last(jinja_run *r, str s, str part);
weft_status str_replace(jinja_run *r, str s, str old, str with, int64_t most,
                        jval *out) WEFT_MUST_USE;
weft_status str_in_case(jinja_run *r, str s, int rule, jval *out) WEFT_MUST_USE; /* TO_ */
bool str_is_all_case(str s, bool upper); /* str.isupper(), str.islower() */
weft_status dict_view(jinja_run *r, const jdict *d, jseq seq, jval *out) WEFT_MUST_USE;

#endif
