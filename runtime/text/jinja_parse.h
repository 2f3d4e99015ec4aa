/* jinja_parse.h - what the parser's two files share. Private to the engine. */
#ifndef WEFT_RUNTIME_TEXT_JINJA_PARSE_H
#define WEFT_RUNTIME_TEXT_JINJA_PARSE_H

#include "runtime/text/jinja_ast.h"
#include "runtime/text/jinja_lex.h"

enum {
    PARSE_DEPTH_MAX = 400,  /* brackets, operators and statements inside each other */
    PARSE_CHAIN_MAX = 1000, /* operators and postfixes in a row: the tree is that deep */
    PARSE_NAMES_MAX = 1024, /* different names of variables: they are searched one by one */
};

typedef struct {
    weft_diag *dg;
    arena *a;
    const source *src;
    const jtok *tok; /* the current one */
    int depth;
    int loops; /* for statements around this place, inside the macro */
    VEC(str) names;
    bool too_many_names;
    jmacro_def *macro; /* the innermost, or NULL */
    size_t n_macro;    /* seen so far */
} parser;

/* W1301 at the current token, or at a node. */
weft_status parse_fail(parser *p, const char *fmt, ...) WEFT_PRINTF(2, 3);
weft_status parse_fail_at(parser *p, uint32_t begin, uint32_t end, const char *fmt, ...)
    WEFT_PRINTF(4, 5);
weft_status parse_enter(parser *p) WEFT_MUST_USE;

static inline bool parse_is(const parser *p, jtok_kind kind)
{
    return p->tok->kind == kind;
}
static inline bool parse_is_word(const parser *p, const char *word)
{
    return p->tok->kind == JTOK_NAME && str_eqz(p->tok->as.s, word);
}
bool parse_skip(parser *p, jtok_kind kind); /* moves on if the token is of that kind */
bool parse_skip_word(parser *p, const char *word);
weft_status parse_expect(parser *p, jtok_kind kind) WEFT_MUST_USE;
weft_status parse_name(parser *p, str *out_name) WEFT_MUST_USE;
uint32_t parse_number_of(parser *p, str name); /* the number of a name */

/* An expression, with or without `x if y`; a tuple without brackets becomes JE_TUPLE. */
weft_status parse_expr(parser *p, bool with_if, jexpr **out_e) WEFT_MUST_USE;
weft_status parse_tuple(parser *p, bool with_if, jexpr **out_e) WEFT_MUST_USE;
/* What is assigned to: a name, name.attribute where allowed, or a tuple of these. */
weft_status parse_target(parser *p, bool with_attr, jexpr **out_e) WEFT_MUST_USE;
/* `a|b(c)|d` without what stands before the first bar, for filter blocks. */
weft_status parse_filter_chain(parser *p, jexpr *input, jexpr **out_e) WEFT_MUST_USE;
weft_status parse_args(parser *p, jexpr *call) WEFT_MUST_USE; /* from the bracket on */
jexpr *parse_node(parser *p, jexpr_op op);

#endif
