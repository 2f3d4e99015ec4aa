/* jinja_run.h - one rendering: its memory, fuel, scopes and output, and how faults are reported.
 *
 * Everything here is private to the engine. A rendering belongs to one thread. */
#ifndef WEFT_RUNTIME_TEXT_JINJA_RUN_H
#define WEFT_RUNTIME_TEXT_JINJA_RUN_H

#include "runtime/text/jinja.h"
#include "runtime/text/jinja_ast.h"
#include "runtime/text/jinja_value.h"

typedef struct jbinding jbinding;
typedef struct jscope jscope;

struct jbinding {
    uint32_t name;
    jval v;
    jbinding *next;
};

/* What `set` writes to. Loop bodies, macros and blocks open one; the outermost is run->globals. */
struct jscope {
    jscope *up; /* NULL: below are the globals */
    jbinding *first;
    jbinding *spare; /* of earlier rounds of a loop */
};

typedef enum { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE } jflow;

struct jinja_run {
    weft_diag *dg;
    arena *a;
    const jinja *t;
    jinja_limits limits;
    uint64_t fuel; /* steps left */
    int depth;
    uint32_t at, at_end; /* the node at work, for messages */
    strbuf *out;
    size_t out_begin; /* what was in out before */
    jscope *scope;
    jval *globals; /* by name number */
    jflow flow;
    struct tm now;
    size_t args_bytes; /* of arguments that * and ** made, which live outside the arena */
};

struct jmacro {
    const jmacro_def *def;
    jscope *scope; /* where it was defined */
};

struct jloop {
    const jlist *items;
    size_t i;
    int depth0;
    const jstmt *stmt; /* for loop(...) of a recursive one */
    jscope *scope;     /* around the loop */
    jlist *changed;    /* the last arguments of loop.changed, NULL: none yet */
};

struct jcycler {
    const jlist *items; /* NULL: a joiner */
    size_t i;
    str sep;
};

/* The arguments of a builtin. Where its row names parameters, arg has one entry for each, JV_ABSENT
 * if not given; where it says "*", arg has what was given by position and the rest is in kw. */
typedef struct {
    jval self; /* what a filter or test is applied to, or a method's object */
    int how;   /* of the row */
    const jval *arg;
    size_t n;
    const str *kw_name;
    const jval *kw;
    size_t n_kw;
} jcall;

typedef weft_status (*jbuiltin)(jinja_run *r, const jcall *c, jval *out);

/* A row of jinja_filters.def, jinja_tests.def, jinja_methods.def or jinja_functions.def. */
struct jrow {
    const char *name;
    jbuiltin fn; /* NULL: a method that would change its object */
    int how;     /* for rows that share a function: which of them, as that function reads it */
    int least;   /* this many arguments must be given */
    const char *params; /* their names with blanks between, or "*" */
};

const jrow *filter_row(str name); /* NULL: none such */
const jrow *test_row(str name);
const jrow *function_row(str name);
const jrow *method_row(const jval *self, str name);
bool method_named(str name); /* any kind of value has one of that name */

/* W1303 at the node at work: a wrong value. */
weft_status run_fail(jinja_run *r, const char *fmt, ...) WEFT_PRINTF(2, 3);
weft_status run_limit(jinja_run *r, const char *what);  /* W1304 */
weft_status run_undefined(jinja_run *r, const jval *v); /* W1303: an undefined value was used */

/* Take n steps of fuel; false, and no fuel is left, if that is too much. run_step fails then. */
static inline bool run_spend(jinja_run *r, uint64_t n)
{
    bool enough = r->fuel > n;
    r->fuel = enough ? r->fuel - n : 0;
    return enough;
}
weft_status run_step(jinja_run *r, uint64_t n) WEFT_MUST_USE;
/* What work costs, so that a second is the same number of steps or more whatever a template does: every builtin
 * pays run_touch for its value and each argument before it is called (call_row), and so do operators. What takes
 * longer than a look at them pays for the rest itself. */
enum {
    STEP_BYTES = 16,  /* bytes copied, compared or counted for one step */
    STEP_ITEMS = 16,  /* items of a list or dict looked at */
    STEP_CHARS = 4,   /* characters decoded and classified */
    FLOAT_STEPS = 64, /* to print or read one float: up to 17 trials */
};
weft_status run_touch(jinja_run *r,
                      const jval *v) WEFT_MUST_USE; /* v itself, not what its items hold */
/* One search through s for a part of n bytes: memmem may compare up to 256 of them at each place. */
weft_status run_search(jinja_run *r, str s, size_t n) WEFT_MUST_USE;
/* Before bytes more are allocated: fails where the memory of the rendering would pass its limit. */
weft_status run_room(jinja_run *r, size_t bytes) WEFT_MUST_USE;
weft_status run_list_room(jinja_run *r, size_t n) WEFT_MUST_USE; /* n values */
/* One level down, with what is left of the depth checked; every success is paired with run_leave. */
weft_status run_enter(jinja_run *r) WEFT_MUST_USE;
static inline void run_leave(jinja_run *r)
{
    r->depth--;
}

/* Text that grows in the arena. Adding past the limits is noticed at the end, by text_done. */
typedef struct {
    jinja_run *r;
    char *p;
    size_t n, cap;
    bool full;
} jtext;

void text_put(jtext *t, str s);
void text_putz(jtext *t, const char *z);
void text_putc(jtext *t, char c);
void text_fill(jtext *t, str s, int64_t times);
weft_status text_done(jtext *t, str *out) WEFT_MUST_USE;
weft_status text_value(jtext *t, jval *out) WEFT_MUST_USE; /* the same as a string value */

/* jinja_print.c: Python's str() and repr(), and json.dumps(). */
weft_status print_str(jtext *t, const jval *v) WEFT_MUST_USE;
weft_status print_repr(jtext *t, const jval *v) WEFT_MUST_USE;
void print_float(jtext *t, double x);
weft_status value_to_str(jinja_run *r, const jval *v, str *out) WEFT_MUST_USE;

/* jinja_ops.c: operators, comparing, and looking into values. */
weft_status op_binary(jinja_run *r, jexpr_op op, const jval *a, const jval *b,
                      jval *out) WEFT_MUST_USE;
weft_status op_compare(jinja_run *r, jexpr_op op, const jval *a, const jval *b,
                       bool *out) WEFT_MUST_USE;
weft_status op_negate(jinja_run *r, const jval *v, bool minus, jval *out) WEFT_MUST_USE;
weft_status op_order(jinja_run *r, const jval *a, const jval *b, int *out) WEFT_MUST_USE;

/* jinja_access.c */
weft_status access_attr(jinja_run *r, const jval *v, str name, bool maybe_method,
                        jval *out) WEFT_MUST_USE;
weft_status access_item(jinja_run *r, const jval *v, const jval *key, jval *out) WEFT_MUST_USE;
/* An item along a dotted path or number, as map(attribute=...) takes it. */
weft_status access_path(jinja_run *r, const jval *v, const jval *path, jval *out) WEFT_MUST_USE;
weft_status access_slice(jinja_run *r, const jval *v, const jval part[3],
                         jval *out) WEFT_MUST_USE; /* begin, end, step; none where left out */
/* The items of anything iterable: characters of a string, keys of a dict. */
weft_status access_items(jinja_run *r, const jval *v, const jlist **out) WEFT_MUST_USE;
weft_status access_length(jinja_run *r, const jval *v, int64_t *out) WEFT_MUST_USE;
str utf8_char_at(str s, size_t *at); /* the character at byte *at, which moves past it */

/* jinja_format.c: "..." % args, "...".format(...) */
weft_status format_percent(jinja_run *r, str fmt, const jval *args, jval *out) WEFT_MUST_USE;

/* jinja_call.c */
weft_status call_value(jinja_run *r, const jval *f, const jval *arg, size_t n, const str *kw_name,
                       const jval *kw, size_t n_kw, jval *out) WEFT_MUST_USE;
weft_status call_row(jinja_run *r, const jrow *row, const char *what, const jval *self,
                     const jval *arg, size_t n, const str *kw_name, const jval *kw, size_t n_kw,
                     jval *out) WEFT_MUST_USE;

/* jinja_eval.c, jinja_exec.c */
weft_status run_eval(jinja_run *r, const jexpr *e, jval *out) WEFT_MUST_USE;
weft_status run_body(jinja_run *r, const jstmt *body) WEFT_MUST_USE;
/* The same in that scope, with what it prints as a string. */
weft_status run_capture(jinja_run *r, jscope *scope, const jstmt *body, jval *out) WEFT_MUST_USE;
/* What was printed from `begin` on, taken back from the output, as a string. */
weft_status run_take(jinja_run *r, size_t begin, jval *out) WEFT_MUST_USE;
weft_status run_loop(jinja_run *r, const jstmt *s, const jval *over, jscope *up,
                     int depth0) WEFT_MUST_USE;
weft_status run_put(jinja_run *r, str s) WEFT_MUST_USE;
void scope_set(jinja_run *r, jscope *s, uint32_t name, jval v); /* s NULL: a global */

#endif
