/* jinja_ast.h - a parsed template. Nodes live in the arena of the template; byte offsets are into
 * its source. Private to the engine. */
#ifndef WEFT_RUNTIME_TEXT_JINJA_AST_H
#define WEFT_RUNTIME_TEXT_JINJA_AST_H

#include "runtime/base/source.h"
#include "runtime/text/jinja_value.h"

typedef enum {
    JE_CONST,
    JE_NAME,
    JE_LIST,
    JE_TUPLE,
    JE_DICT, /* items: key, value, key, value */
    JE_CONCAT,
    JE_COMPARE, /* a, then args: one operator and operand each */
    JE_AND,
    JE_OR,
    JE_NOT,
    JE_COND, /* b if a else c */
    JE_ATTR,
    JE_ITEM,
    JE_SLICE, /* only below JE_ITEM, as b: a, b, c are begin, end, step */
    JE_CALL,
    JE_FILTER, /* a is NULL in a filter block */
    JE_TEST,
    JE_NEG,
    JE_POS,
    JE_ADD,
    JE_SUB,
    JE_MUL,
    JE_DIV,
    JE_FLOORDIV,
    JE_MOD,
    JE_POW,
    JE_EQ, /* the comparisons, as operators inside JE_COMPARE */
    JE_NE,
    JE_LT,
    JE_LE,
    JE_GT,
    JE_GE,
    JE_IN,
    JE_NOT_IN,
} jexpr_op;

typedef struct jexpr jexpr;
typedef struct jstmt jstmt;

typedef enum { JARG_POS, JARG_NAMED, JARG_STAR, JARG_STARSTAR } jarg_kind;

typedef struct {
    jarg_kind kind;
    jexpr_op op; /* in JE_COMPARE */
    str name;
    jexpr *e;
} jarg;

struct jexpr {
    jexpr_op op;
    uint32_t begin, end;
    uint32_t name;     /* JE_NAME: its number */
    bool maybe_method; /* JE_ATTR: some kind of value has a method of that name */
    const jrow *row;   /* JE_FILTER, JE_TEST; NULL: there is none of that name */
    str text;          /* the name of a variable, attribute, filter or test */
    jval value;        /* JE_CONST */
    jexpr *a, *b, *c;
    jexpr **items;
    size_t n_item;
    jarg *args;
    size_t n_arg;
};

typedef enum {
    JS_TEXT,
    JS_PRINT,
    JS_FOR,
    JS_IF,
    JS_SET,
    JS_SET_BLOCK,
    JS_MACRO,
    JS_CALL,
    JS_FILTER,
    JS_WITH,
    JS_SCOPE, /* generation: its body in a scope of its own */
    JS_BREAK,
    JS_CONTINUE,
} jstmt_op;

typedef struct {
    str name;
    uint32_t number; /* of the name */
    size_t n_param;
    uint32_t *param;
    str *param_name;
    jexpr **initial; /* NULL: none */
    jstmt *body;
    uint32_t varargs, kwargs, caller;               /* numbers of these names */
    bool takes_varargs, takes_kwargs, takes_caller; /* the body mentions them */
} jmacro_def;

struct jstmt {
    jstmt_op op;
    uint32_t begin, end;
    jstmt *next;
    str text;      /* JS_TEXT */
    jexpr *a;      /* what is printed, tested, iterated, assigned, called; a filter chain */
    jexpr *cond;   /* JS_FOR: the `if` */
    jexpr *target; /* JS_FOR, JS_SET, JS_SET_BLOCK: JE_NAME, JE_ATTR or JE_TUPLE */
    jexpr **names, **values; /* JS_WITH */
    size_t n_with;
    jstmt *body, *other;       /* other: else; of an elif, a single JS_IF */
    uint32_t loop;             /* JS_FOR: the number of the name `loop` */
    bool recursive, has_macro; /* JS_FOR; its body defines one */
    jmacro_def *macro;         /* JS_MACRO, JS_CALL */
};

struct jinja {
    const source *src;
    const jstmt *body;
    const str *names; /* by number */
    size_t n_name;
};

#endif
