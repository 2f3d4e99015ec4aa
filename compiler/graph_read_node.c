/* graph_read_node.c - nodes of the text form: results, operands, attributes. */
#include "compiler/graph_read.h"

/* ---- operands ---- */

weft_status read_value(reader *r, int *out_value)
{
    int64_t id;
    WEFT_TRY(scan_expect(&r->s, '%'));
    WEFT_TRY(scan_int(&r->s, 0, GRAPH_VALUES_MAX - 1, &id));
    if ((size_t)id >= r->g->values.n || r->g->values.at[id].node < 0)
        return SCAN_FAIL(&r->s, "%%%d is not defined before it is used", (int)id);
    *out_value = (int)id;
    return WEFT_OK;
}

static weft_status read_const_ref(reader *r, int *out_id)
{
    int64_t id;
    WEFT_TRY(scan_expect(&r->s, '#'));
    WEFT_TRY(scan_int(&r->s, 0, GRAPH_ROWS_MAX, &id));
    if ((size_t)id >= r->g->consts.n)
        return SCAN_FAIL(&r->s, "there is no constant #%d", (int)id);
    *out_id = (int)id;
    return WEFT_OK;
}

static weft_status read_ref(reader *r, gref *out_ref)
{
    scan *s = &r->s;
    gref ref = {.kind = REF_NUMBER};
    char c = scan_peek(s);
    if (c == '%') {
        ref.kind = REF_VALUE;
        WEFT_TRY(read_value(r, &ref.id));
    } else if (c == '#') {
        ref.kind = REF_CONST;
        WEFT_TRY(read_const_ref(r, &ref.id));
    } else if (scan_accept(s, '@')) {
        ref.kind = REF_WEIGHT;
        WEFT_TRY(read_named(r, &r->weights, "weight", &ref.id));
    } else if (scan_accept(s, '$')) {
        ref.kind = REF_CELL;
        WEFT_TRY(read_named(r, &r->cells, "cell", &ref.id));
    } else if (scan_accept_word(s, "_")) {
        ref.kind = REF_NONE;
    } else if (c == '-' || c == '+' || gtext_is_digit(c)) {
        WEFT_TRY(scan_number(s, &ref.number));
    } else if (scan_accept_word(s, "inf") || scan_accept_word(s, "nan")) {
        s->at = s->begin;
        WEFT_TRY(scan_number(s, &ref.number));
    } else {
        ref.kind = REF_INPUT;
        WEFT_TRY(read_named(r, &r->inputs, "input", &ref.id));
    }
    *out_ref = ref;
    return WEFT_OK;
}

/* ---- attributes ---- */

static weft_status read_truth(reader *r, int64_t *out_truth)
{
    *out_truth = scan_accept_word(&r->s, "true");
    if (*out_truth || scan_accept_word(&r->s, "false"))
        return WEFT_OK;
    return SCAN_FAIL(&r->s, "expected true or false here");
}

static weft_status read_attr(reader *r, gnode *n, const char *op, str name)
{
    int n_attr, i = 0;
    const attr_row *rows = op_attrs(n->op, &n_attr);
    while (i < n_attr && !str_eqz(name, rows[i].name))
        i++;
    if (i == n_attr)
        return SCAN_FAIL(&r->s, "%s has no attribute " STR_FMT, op, STR_ARG(name));
    gattr *a = &n->attr[i];
    if (a->kind != GATTR_NONE)
        return SCAN_FAIL(&r->s, "attribute %s stands here for the second time", rows[i].name);
    switch (rows[i].type) {
    case ATTR_INT:
        a->kind = GATTR_INT;
        return scan_int(&r->s, -INT64_MAX, INT64_MAX, &a->integer);
    case ATTR_FLOAT:
        a->kind = GATTR_FLOAT;
        return scan_number(&r->s, &a->number);
    case ATTR_BOOL:
        a->kind = GATTR_BOOL;
        return read_truth(r, &a->integer);
    case ATTR_VECTOR:
        a->kind = GATTR_REF;
        return read_ref(r, &a->ref);
    case ATTR_WORD:
        break;
    }
    a->kind = GATTR_WORD;
    WEFT_TRY(scan_word(&r->s, &a->word));
    a->word = arena_str(r->g->a, a->word);
    return WEFT_OK;
}

/* An attribute is a word and `=`; an operand is anything else. */
static bool accept_attr(reader *r, str *out_name)
{
    scan *s = &r->s;
    size_t at = s->at;
    if (gtext_is_letter(scan_peek(s)) && scan_word(s, out_name) == WEFT_OK && scan_accept(s, '='))
        return true;
    s->at = at;
    return false;
}

static weft_status read_arguments(reader *r, gnode *n, const op_row *op)
{
    scan *s = &r->s;
    bool attrs = false;
    WEFT_TRY(scan_expect(s, '('));
    for (int i = 0; !scan_accept(s, ')'); i++) {
        str name;
        if (i > 0)
            WEFT_TRY(scan_expect(s, ','));
        if (accept_attr(r, &name)) {
            attrs = true;
            WEFT_TRY(read_attr(r, n, op->name, name));
            continue;
        }
        if (attrs)
            return SCAN_FAIL(s, "an operand stands before the attributes");
        if (n->n_in == OP_OPERANDS_MAX)
            return SCAN_FAIL(s, "more than %d operands", OP_OPERANDS_MAX);
        WEFT_TRY(read_ref(r, &n->in[n->n_in]));
        n->n_in++;
    }
    /* Absent operands at the end need not be written. */
    int full = (int)strlen(op->kinds);
    n->n_in = n->n_in < full ? full : n->n_in;
    return WEFT_OK;
}

/* ---- nodes ---- */

weft_status read_layer(reader *r, int *out_layer)
{
    int64_t layer = -1;
    if (scan_accept_word(&r->s, "layer"))
        WEFT_TRY(scan_int(&r->s, 0, GRAPH_LAYERS_MAX - 1, &layer));
    *out_layer = (int)layer;
    return WEFT_OK;
}

/* What passes decided: map 2, then chain 4 or recompute 4, then values 5. */
static weft_status read_marks(reader *r, gnode *n)
{
    scan *s = &r->s;
    int64_t map = 0, chain = 0, values = 0;
    if (scan_accept_word(s, "map"))
        WEFT_TRY(scan_int(s, 1, GRAPH_ROWS_MAX, &map));
    n->recompute = scan_accept_word(s, "recompute");
    if (n->recompute || scan_accept_word(s, "chain"))
        WEFT_TRY(scan_int(s, 1, GRAPH_ROWS_MAX, &chain));
    if (scan_accept_word(s, "values"))
        WEFT_TRY(scan_int(s, 1, GRAPH_ROWS_MAX, &values));
    n->map = (int)map;
    n->chain = (int)chain;
    n->values = (int)values;
    return WEFT_OK;
}

/* %7: f[T, 64], the next result of node n. Values may be numbered in any order, but those of one
 * node follow each other. */
static weft_status read_result(reader *r, gnode *n)
{
    scan *s = &r->s;
    int64_t id;
    gvalue v = {.node = (int)r->g->nodes.n};
    WEFT_TRY(scan_expect(s, '%'));
    WEFT_TRY(scan_int(s, 0, GRAPH_VALUES_MAX - 1, &id));
    if (n->n_out > 0 && id != n->first + n->n_out)
        return SCAN_FAIL(s, "the results of one node are numbered on: %%%d is next",
                         n->first + n->n_out);
    if ((size_t)id < r->g->values.n && r->g->values.at[id].node >= 0)
        return SCAN_FAIL(s, "%%%d is defined twice", (int)id);
    WEFT_TRY(scan_expect(s, ':'));
    WEFT_TRY(read_type(r, &v.type));
    while (r->g->values.n <= (size_t)id) {
        gvalue hole = {.node = -1};
        VEC_PUSH(&r->g->values, hole);
    }
    if (n->n_out++ == 0)
        n->first = (int)id;
    r->g->values.at[id] = v;
    return WEFT_OK;
}

weft_status read_node(reader *r)
{
    scan *s = &r->s;
    gnode n = {.layer = -1};
    str name;
    size_t at = s->at;
    if (r->g->nodes.n == GRAPH_ROWS_MAX)
        return SCAN_FAIL(s, "more than %d nodes", GRAPH_ROWS_MAX);
    do
        WEFT_TRY(read_result(r, &n));
    while (scan_accept(s, ','));
    WEFT_TRY(scan_expect(s, '='));
    WEFT_TRY(scan_word(s, &name));
    const op_row *op = op_find(name);
    if (!op)
        return SCAN_FAIL(s, "there is no op " STR_FMT, STR_ARG(name));
    n.op = op->code;
    WEFT_TRY(read_arguments(r, &n, op));
    WEFT_TRY(read_marks(r, &n));
    WEFT_TRY(read_loc(r, &n.loc));
    WEFT_TRY(read_layer(r, &n.layer));
    VEC_PUSH(&r->g->nodes, n);
    VEC_PUSH(&r->node_at, at);
    return WEFT_OK;
}
