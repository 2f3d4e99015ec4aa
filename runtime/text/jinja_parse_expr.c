/* jinja_parse_expr.c - expressions, one function per level of binding, as in Jinja's own grammar. */
#include "runtime/text/jinja_parse.h"
#include "runtime/text/jinja_run.h"

jexpr *parse_node(parser *p, jexpr_op op)
{
    jexpr *e = ARENA_NEW(p->a, jexpr);
    e->op = op;
    e->begin = p->tok->begin;
    e->end = p->tok->end;
    return e;
}

/* A node over left, of which the operator at op is shown in messages. */
static jexpr *node_over(parser *p, jexpr_op op, jexpr *left, const jtok *at)
{
    jexpr *e = parse_node(p, op);
    e->a = left;
    e->begin = at->begin;
    e->end = at->end;
    return e;
}

typedef VEC(jexpr *) expr_list;
typedef VEC(jarg) arg_list;

static void take_items(parser *p, jexpr *e, expr_list *items)
{
    e->n_item = items->n;
    e->items = ARENA_ARRAY(p->a, jexpr *, items->n);
    if (items->n)
        memcpy(e->items, items->at, items->n * sizeof *items->at);
    VEC_FREE(items);
}

static weft_status chain_check(parser *p, int n)
{
    return n < PARSE_CHAIN_MAX ? WEFT_OK : parse_fail(p, "more than %d operators in a row", n);
}

/* ---- primaries ---- */

/* Items up to a closing bracket, which is taken; a comma may follow the last. */
static weft_status list_until(parser *p, jtok_kind close, bool pairs, expr_list *items,
                              bool *out_comma)
{
    jexpr *e;
    *out_comma = false;
    while (!parse_is(p, close)) {
        WEFT_TRY(parse_expr(p, true, &e));
        VEC_PUSH(items, e);
        if (pairs) {
            WEFT_TRY(parse_expect(p, JTOK_COLON));
            WEFT_TRY(parse_expr(p, true, &e));
            VEC_PUSH(items, e);
        }
        if (!parse_skip(p, JTOK_COMMA))
            break;
        *out_comma = true;
    }
    return parse_expect(p, close);
}

static weft_status parse_bracketed(parser *p, jexpr **out_e)
{
    bool paren = parse_is(p, JTOK_LPAREN), list = parse_is(p, JTOK_LBRACKET), comma;
    jexpr *e = parse_node(p, paren ? JE_TUPLE : list ? JE_LIST : JE_DICT);
    jtok_kind close = paren ? JTOK_RPAREN : list ? JTOK_RBRACKET : JTOK_RBRACE;
    expr_list items = {0};
    p->tok++;
    weft_status st = list_until(p, close, !paren && !list, &items, &comma);
    if (st == WEFT_OK && paren && items.n == 1 && !comma)
        e = items.at[0];
    else if (st == WEFT_OK)
        take_items(p, e, &items);
    VEC_FREE(&items);
    if (st == WEFT_OK)
        *out_e = e;
    return st;
}

static void parse_strings(parser *p, jexpr *e)
{
    strbuf all = {0};
    str first = p->tok->as.s;
    size_t n = 0;
    for (; parse_is(p, JTOK_STR); n++, p->tok++) {
        strbuf_put(&all, p->tok->as.s);
        e->end = p->tok->end;
    }
    e->value = jv_str(n == 1 ? first : arena_str(p->a, strbuf_view(&all)));
    strbuf_free(&all);
}

/* The value that the word always has; JV_ABSENT: none. */
static jval constant_of(str word)
{
    /* clang-format off */
    static const struct { const char *word; jkind kind; bool b; } constants[] = {
        {"true",  JV_BOOL, true},  {"True",  JV_BOOL, true},
        {"false", JV_BOOL, false}, {"False", JV_BOOL, false},
        {"none",  JV_NONE, false}, {"None",  JV_NONE, false},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (str_eqz(word, constants[i].word))
            return (jval){.kind = constants[i].kind, .as.b = constants[i].b};
    return (jval){.kind = JV_ABSENT};
}

static void parse_word(parser *p, jexpr *e)
{
    e->text = p->tok->as.s;
    e->value = constant_of(e->text);
    if (e->value.kind == JV_ABSENT) {
        e->op = JE_NAME;
        e->name = parse_number_of(p, e->text);
    }
    p->tok++;
}

static weft_status parse_primary(parser *p, jexpr **out_e)
{
    jexpr *e = parse_node(p, JE_CONST);
    switch (p->tok->kind) {
    case JTOK_NAME:
        parse_word(p, e);
        break;
    case JTOK_STR:
        parse_strings(p, e);
        break;
    case JTOK_INT:
        e->value = jv_int(p->tok++->as.i);
        break;
    case JTOK_FLOAT:
        e->value = jv_float(p->tok++->as.f);
        break;
    case JTOK_LPAREN:
    case JTOK_LBRACKET:
    case JTOK_LBRACE:
        return parse_bracketed(p, out_e);
    default:
        return parse_fail(p, "an expression is expected, not %s", jtok_text(p->tok->kind));
    }
    *out_e = e;
    return WEFT_OK;
}

/* ---- postfixes ---- */

static weft_status parse_arg(parser *p, arg_list *args)
{
    jarg arg = {.kind = JARG_POS};
    bool named = args->n > 0 && args->at[args->n - 1].kind != JARG_POS;
    if (parse_skip(p, JTOK_MUL)) {
        arg.kind = JARG_STAR;
    } else if (parse_skip(p, JTOK_POW)) {
        arg.kind = JARG_STARSTAR;
    } else if (parse_is(p, JTOK_NAME) && p->tok[1].kind == JTOK_ASSIGN) {
        arg.kind = JARG_NAMED;
        arg.name = p->tok->as.s;
        p->tok += 2;
    } else if (named) {
        return parse_fail(p, "an argument without name follows one with a name");
    }
    WEFT_TRY(parse_expr(p, true, &arg.e));
    VEC_PUSH(args, arg);
    return WEFT_OK;
}

weft_status parse_args(parser *p, jexpr *call)
{
    arg_list args = {0};
    weft_status st = parse_expect(p, JTOK_LPAREN);
    while (st == WEFT_OK && !parse_is(p, JTOK_RPAREN)) {
        st = parse_arg(p, &args);
        if (st == WEFT_OK && !parse_skip(p, JTOK_COMMA))
            break;
    }
    call->end = p->tok->end;
    if (st == WEFT_OK)
        st = parse_expect(p, JTOK_RPAREN);
    call->n_arg = args.n;
    call->args = ARENA_ARRAY(p->a, jarg, args.n);
    if (args.n)
        memcpy(call->args, args.at, args.n * sizeof *args.at);
    VEC_FREE(&args);
    return st;
}

/* One of `a`, `a:b`, `a:b:c` with parts left out, inside the brackets of a subscript. */
static weft_status parse_subscript_part(parser *p, jexpr **out_e)
{
    jexpr *slice = parse_node(p, JE_SLICE);
    jexpr **part[3] = {&slice->a, &slice->b, &slice->c};
    int n = 0;
    for (;; n++) {
        if (!parse_is(p, JTOK_COLON) && !parse_is(p, JTOK_RBRACKET) && !parse_is(p, JTOK_COMMA))
            WEFT_TRY(parse_expr(p, true, part[n]));
        if (n == 2 || !parse_skip(p, JTOK_COLON))
            break;
    }
    if (n == 0 && !slice->a)
        return parse_fail(p, "an index is missing");
    *out_e = n == 0 ? slice->a : slice;
    return WEFT_OK;
}

static weft_status parse_subscript(parser *p, jexpr *e)
{
    expr_list parts = {0};
    jexpr *part;
    weft_status st = parse_subscript_part(p, &part);
    if (st == WEFT_OK && parse_is(p, JTOK_COMMA)) {
        jexpr *tuple = parse_node(p, JE_TUPLE);
        VEC_PUSH(&parts, part);
        while (st == WEFT_OK && parse_skip(p, JTOK_COMMA)) {
            st = parse_subscript_part(p, &part);
            if (st == WEFT_OK)
                VEC_PUSH(&parts, part);
        }
        take_items(p, tuple, &parts);
        part = tuple;
        for (size_t i = 0; st == WEFT_OK && i < tuple->n_item; i++)
            if (tuple->items[i]->op == JE_SLICE)
                st = parse_fail(p, "a slice stands alone in its brackets");
    }
    e->b = part;
    e->end = p->tok->end;
    return st == WEFT_OK ? parse_expect(p, JTOK_RBRACKET) : st;
}

static weft_status parse_dot(parser *p, jexpr *e)
{
    e->end = p->tok->end;
    if (parse_is(p, JTOK_INT)) {
        e->op = JE_ITEM;
        e->b = parse_node(p, JE_CONST);
        e->b->value = jv_int(p->tok++->as.i);
        return WEFT_OK;
    }
    WEFT_TRY(parse_name(p, &e->text));
    e->maybe_method = method_named(e->text);
    return WEFT_OK;
}

static weft_status parse_postfix(parser *p, jexpr **e)
{
    for (int n = 0;; n++) {
        WEFT_TRY(chain_check(p, n));
        jexpr *left = *e;
        if (parse_is(p, JTOK_DOT)) {
            *e = node_over(p, JE_ATTR, left, p->tok++);
            WEFT_TRY(parse_dot(p, *e));
        } else if (parse_is(p, JTOK_LBRACKET)) {
            *e = node_over(p, JE_ITEM, left, p->tok++);
            WEFT_TRY(parse_subscript(p, *e));
        } else if (parse_is(p, JTOK_LPAREN)) {
            *e = node_over(p, JE_CALL, left, p->tok);
            WEFT_TRY(parse_args(p, *e));
        } else {
            return WEFT_OK;
        }
        (*e)->begin = left->begin;
    }
}

/* ---- filters and tests ---- */

static weft_status parse_filter(parser *p, jexpr **e)
{
    jexpr *f = node_over(p, JE_FILTER, *e, p->tok);
    WEFT_TRY(parse_name(p, &f->text));
    f->row = filter_row(f->text);
    if (parse_is(p, JTOK_LPAREN))
        WEFT_TRY(parse_args(p, f));
    *e = f;
    return WEFT_OK;
}

weft_status parse_filter_chain(parser *p, jexpr *input, jexpr **out_e)
{
    jexpr *e = input;
    int n = 0;
    do {
        WEFT_TRY(chain_check(p, n++));
        WEFT_TRY(parse_filter(p, &e));
    } while (parse_skip(p, JTOK_PIPE));
    *out_e = e;
    return WEFT_OK;
}

static bool starts_test_argument(const parser *p)
{
    switch (p->tok->kind) {
    case JTOK_STR:
    case JTOK_INT:
    case JTOK_FLOAT:
    case JTOK_LBRACKET:
    case JTOK_LBRACE:
        return true;
    case JTOK_NAME:
        return !parse_is_word(p, "else") && !parse_is_word(p, "or") && !parse_is_word(p, "and") &&
               !parse_is_word(p, "if") && !parse_is_word(p, "is") && !parse_is_word(p, "not") &&
               !parse_is_word(p, "in");
    default:
        return false;
    }
}

static weft_status parse_test(parser *p, jexpr **e)
{
    const jtok *is = p->tok - 1;
    bool negated = parse_skip_word(p, "not");
    jexpr *t = node_over(p, JE_TEST, *e, p->tok);
    WEFT_TRY(parse_name(p, &t->text));
    t->row = test_row(t->text);
    if (parse_is(p, JTOK_LPAREN)) {
        WEFT_TRY(parse_args(p, t));
    } else if (starts_test_argument(p)) {
        t->args = ARENA_NEW(p->a, jarg);
        t->n_arg = 1;
        WEFT_TRY(parse_primary(p, &t->args[0].e));
        WEFT_TRY(parse_postfix(p, &t->args[0].e));
    }
    *e = negated ? node_over(p, JE_NOT, t, is) : t;
    return WEFT_OK;
}

static weft_status parse_filters(parser *p, jexpr **e)
{
    for (int n = 0;; n++) {
        WEFT_TRY(chain_check(p, n));
        if (parse_skip(p, JTOK_PIPE))
            WEFT_TRY(parse_filter(p, e));
        else if (parse_skip_word(p, "is"))
            WEFT_TRY(parse_test(p, e));
        else if (parse_is(p, JTOK_LPAREN)) {
            jexpr *call = node_over(p, JE_CALL, *e, p->tok);
            WEFT_TRY(parse_args(p, call));
            *e = call;
        } else
            return WEFT_OK;
    }
}

/* ---- operators ---- */

static weft_status parse_unary(parser *p, bool with_filter, jexpr **out_e)
{
    jexpr *e;
    WEFT_TRY(parse_enter(p));
    if (parse_is(p, JTOK_SUB) || parse_is(p, JTOK_ADD)) {
        e = parse_node(p, parse_is(p, JTOK_SUB) ? JE_NEG : JE_POS);
        p->tok++;
        WEFT_TRY(parse_unary(p, false, &e->a));
    } else {
        WEFT_TRY(parse_primary(p, &e));
    }
    WEFT_TRY(parse_postfix(p, &e));
    if (with_filter)
        WEFT_TRY(parse_filters(p, &e));
    p->depth--;
    *out_e = e;
    return WEFT_OK;
}

typedef struct {
    jtok_kind token;  /* JTOK_END: the row after the last */
    const char *word; /* of a JTOK_NAME */
    jexpr_op op;
} op_row;

/* clang-format off */
static const op_row pow_ops[] = {{JTOK_POW, NULL, JE_POW}, {JTOK_END, NULL, 0}};
static const op_row mul_ops[] = {
    {JTOK_MUL, NULL, JE_MUL}, {JTOK_DIV, NULL, JE_DIV}, {JTOK_FLOORDIV, NULL, JE_FLOORDIV},
    {JTOK_MOD, NULL, JE_MOD}, {JTOK_END, NULL, 0},
};
static const op_row add_ops[] = {{JTOK_ADD, NULL, JE_ADD}, {JTOK_SUB, NULL, JE_SUB}, {JTOK_END, NULL, 0}};
static const op_row compare_ops[] = {
    {JTOK_EQ, NULL, JE_EQ}, {JTOK_NE, NULL, JE_NE}, {JTOK_LT, NULL, JE_LT}, {JTOK_LE, NULL, JE_LE},
    {JTOK_GT, NULL, JE_GT}, {JTOK_GE, NULL, JE_GE}, {JTOK_NAME, "in", JE_IN}, {JTOK_END, NULL, 0},
};
static const op_row and_ops[] = {{JTOK_NAME, "and", JE_AND}, {JTOK_END, NULL, 0}};
static const op_row or_ops[] = {{JTOK_NAME, "or", JE_OR}, {JTOK_END, NULL, 0}};
/* clang-format on */

static const op_row *op_here(const parser *p, const op_row *ops)
{
    for (; ops->token != JTOK_END; ops++)
        if (parse_is(p, ops->token) && (!ops->word || parse_is_word(p, ops->word)))
            return ops;
    return NULL;
}

typedef weft_status (*level)(parser *p, jexpr **out_e);

/* Operators of one level, which bind to the left. */
static weft_status parse_binary(parser *p, const op_row *ops, level below, jexpr **out_e)
{
    jexpr *e;
    const op_row *row;
    WEFT_TRY(below(p, &e));
    for (int n = 0; (row = op_here(p, ops)) != NULL; n++) {
        WEFT_TRY(chain_check(p, n));
        jexpr *both = node_over(p, row->op, e, p->tok++);
        WEFT_TRY(below(p, &both->b));
        e = both;
    }
    *out_e = e;
    return WEFT_OK;
}

static weft_status parse_operand(parser *p, jexpr **out_e)
{
    return parse_unary(p, true, out_e);
}

static weft_status parse_pow(parser *p, jexpr **out_e)
{
    return parse_binary(p, pow_ops, parse_operand, out_e);
}

static weft_status parse_mul(parser *p, jexpr **out_e)
{
    return parse_binary(p, mul_ops, parse_pow, out_e);
}

static weft_status parse_concat(parser *p, jexpr **out_e)
{
    jexpr *e;
    expr_list parts = {0};
    WEFT_TRY(parse_mul(p, &e));
    if (!parse_is(p, JTOK_CONCAT)) {
        *out_e = e;
        return WEFT_OK;
    }
    jexpr *all = parse_node(p, JE_CONCAT);
    weft_status st = WEFT_OK;
    VEC_PUSH(&parts, e);
    while (st == WEFT_OK && parse_skip(p, JTOK_CONCAT)) {
        st = parse_mul(p, &e);
        if (st == WEFT_OK)
            VEC_PUSH(&parts, e);
    }
    take_items(p, all, &parts);
    *out_e = all;
    return st;
}

static weft_status parse_add(parser *p, jexpr **out_e)
{
    return parse_binary(p, add_ops, parse_concat, out_e);
}

/* The comparison at the current token, which is taken; false if there is none. */
static bool take_comparison(parser *p, jexpr_op *out_op)
{
    const op_row *row = op_here(p, compare_ops);
    if (row) {
        *out_op = row->op;
        p->tok++;
        return true;
    }
    if (parse_is_word(p, "not") && p->tok[1].kind == JTOK_NAME && str_eqz(p->tok[1].as.s, "in")) {
        p->tok += 2;
        *out_op = JE_NOT_IN;
        return true;
    }
    return false;
}

static weft_status parse_compare(parser *p, jexpr **out_e)
{
    jexpr *e;
    arg_list rest = {0};
    jarg next = {0};
    const jtok *op = NULL;
    WEFT_TRY(parse_add(p, &e));
    const jtok *at = p->tok;
    weft_status st = WEFT_OK;
    while (st == WEFT_OK && take_comparison(p, &next.op)) {
        op = op ? op : at;
        st = parse_add(p, &next.e);
        if (st == WEFT_OK)
            VEC_PUSH(&rest, next);
    }
    if (rest.n) {
        e = node_over(p, JE_COMPARE, e, op);
        e->n_arg = rest.n;
        e->args = ARENA_ARRAY(p->a, jarg, rest.n);
        memcpy(e->args, rest.at, rest.n * sizeof *rest.at);
    }
    VEC_FREE(&rest);
    *out_e = e;
    return st;
}

static weft_status parse_not(parser *p, jexpr **out_e)
{
    if (!parse_is_word(p, "not"))
        return parse_compare(p, out_e);
    jexpr *e = parse_node(p, JE_NOT);
    p->tok++;
    WEFT_TRY(parse_enter(p));
    WEFT_TRY(parse_not(p, &e->a));
    p->depth--;
    *out_e = e;
    return WEFT_OK;
}

static weft_status parse_and(parser *p, jexpr **out_e)
{
    return parse_binary(p, and_ops, parse_not, out_e);
}

static weft_status parse_or(parser *p, jexpr **out_e)
{
    return parse_binary(p, or_ops, parse_and, out_e);
}

weft_status parse_expr(parser *p, bool with_if, jexpr **out_e)
{
    jexpr *e;
    WEFT_TRY(parse_enter(p));
    WEFT_TRY(parse_or(p, &e));
    for (int n = 0; with_if && parse_is_word(p, "if"); n++) {
        WEFT_TRY(chain_check(p, n));
        jexpr *cond = parse_node(p, JE_COND);
        p->tok++;
        cond->b = e;
        WEFT_TRY(parse_or(p, &cond->a));
        if (parse_skip_word(p, "else"))
            WEFT_TRY(parse_expr(p, true, &cond->c));
        e = cond;
    }
    p->depth--;
    *out_e = e;
    return WEFT_OK;
}

/* One item, or a tuple of all that have commas between them; a comma may be the last. */
static weft_status parse_items(parser *p, weft_status (*one)(parser *, bool, jexpr **), bool flag,
                               bool (*follows)(parser *), jexpr **out_e)
{
    jexpr *e, *tuple = parse_node(p, JE_TUPLE);
    expr_list items = {0};
    WEFT_TRY(one(p, flag, &e));
    if (!parse_is(p, JTOK_COMMA)) {
        *out_e = e;
        return WEFT_OK;
    }
    weft_status st = WEFT_OK;
    VEC_PUSH(&items, e);
    while (st == WEFT_OK && parse_skip(p, JTOK_COMMA) && follows(p)) {
        st = one(p, flag, &e);
        if (st == WEFT_OK)
            VEC_PUSH(&items, e);
    }
    take_items(p, tuple, &items);
    *out_e = tuple;
    return st;
}

static bool expr_follows(parser *p)
{
    return !parse_is(p, JTOK_TAG_CLOSE) && !parse_is(p, JTOK_VAR_CLOSE);
}

weft_status parse_tuple(parser *p, bool with_if, jexpr **out_e)
{
    return parse_items(p, parse_expr, with_if, expr_follows, out_e);
}

/* ---- targets ---- */

static weft_status parse_one_target(parser *p, bool with_attr, jexpr **out_e)
{
    if (parse_skip(p, JTOK_LPAREN)) {
        WEFT_TRY(parse_enter(p));
        WEFT_TRY(parse_target(p, with_attr, out_e));
        p->depth--;
        return parse_expect(p, JTOK_RPAREN);
    }
    jexpr *e = parse_node(p, JE_NAME);
    WEFT_TRY(parse_name(p, &e->text));
    if (constant_of(e->text).kind != JV_ABSENT)
        return parse_fail_at(p, e->begin, e->end, "cannot assign to `" STR_FMT "`",
                             STR_ARG(e->text));
    e->name = parse_number_of(p, e->text);
    if (with_attr && parse_skip(p, JTOK_DOT)) {
        jexpr *attr = node_over(p, JE_ATTR, e, p->tok);
        WEFT_TRY(parse_name(p, &attr->text));
        e = attr;
    }
    *out_e = e;
    return WEFT_OK;
}

static bool target_follows(parser *p)
{
    return (parse_is(p, JTOK_NAME) || parse_is(p, JTOK_LPAREN)) && !parse_is_word(p, "in");
}

weft_status parse_target(parser *p, bool with_attr, jexpr **out_e)
{
    return parse_items(p, parse_one_target, with_attr, target_follows, out_e);
}
