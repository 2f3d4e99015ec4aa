/* fmt_stmt.c - statements as rows, and the bodies around them. */
#include "dsl/fmt.h"

#include "parser.tab.h"

/* What stands between braces. */
typedef struct {
    ast *const *item;
    uint32_t n;
    const ast *results; /* of a block, or NULL */
} body;

static body body_of_list(const ast *list)
{
    return (body){list->kid, list->n_kid, NULL};
}

/* The bodies of a statement: 0, 1, or 2 for an `if` with an `else`. */
static int bodies_of(const ast *s, body out[2])
{
    enum { ITSELF = -1 }; /* its kids are what stands between the braces */
    /* The slot of the body; no body is in slot 0. */
    static const signed char slot[AST_KIND_COUNT] = {
        [AST_FRAGMENT] = FRAGMENT_BODY, [AST_BLOCK] = BLOCK_BODY,
        [AST_MODEL] = MODEL_BODY,       [AST_PARAMS] = ITSELF,
        [AST_WEIGHTS] = ITSELF,         [AST_STATE] = ITSELF,
        [AST_GROUP] = GROUP_BODY,       [AST_ENTRY] = ENTRY_BODY,
        [AST_REPEAT] = REPEAT_BODY,     [AST_IF] = IF_THEN,
    };
    int at = slot[s->kind];
    if (at == 0)
        return 0;
    out[0] = body_of_list(at == ITSELF ? s : s->kid[at]);
    if (s->kind == AST_BLOCK)
        out[0].results = s->kid[BLOCK_RESULTS];
    if (s->kind != AST_IF || !s->kid[IF_ELSE])
        return 1;
    out[1] = body_of_list(s->kid[IF_ELSE]);
    return 2;
}

static fmt_row_kind row_kind(const ast *s)
{
    static const fmt_row_kind kinds[AST_KIND_COUNT] = {
        /* all others: ROW_PLAIN */
        [AST_LET] = ROW_LET,     [AST_ASSIGN] = ROW_ASSIGN,   [AST_OUTPUT] = ROW_OUTPUT,
        [AST_MATCH] = ROW_MATCH, [AST_TOKENIZER] = ROW_MATCH, [AST_CHAT] = ROW_MATCH,
        [AST_BLOCK] = ROW_BLOCK, [AST_PARAM] = ROW_PARAM,     [AST_WEIGHT] = ROW_WEIGHT,
        [AST_CELL] = ROW_CELL,
    };
    return kinds[s->kind];
}

static bool next_is(const fmt *f, int kind)
{
    return f->tokens.at[f->next].kind == kind;
}

static void put_path(fmt *f)
{
    fmt_put(f);
    while (next_is(f, '.')) {
        fmt_put(f);
        fmt_put(f);
    }
}

/* A word or sign, then the expression it introduces; room is the width of the sign and its space. */
static void put_clause(fmt *f, const ast *n, int room)
{
    fmt_put(f);
    fmt_space(f, 1);
    fmt_expr(f, n, room);
}

static void put_formals(fmt *f, const ast *formals)
{
    fmt_put(f);
    fmt_open(f, 0, false);
    for (uint32_t i = 0; i < formals->n_kid; i++) {
        const ast *formal = formals->kid[i];
        if (i > 0) {
            fmt_put(f);
            fmt_break(f, 1);
        }
        fmt_put(f);
        if (formal->kid[FORMAL_TYPE]) {
            fmt_put(f);
            fmt_space(f, 1);
            fmt_type(f, formal->kid[FORMAL_TYPE]);
        }
        if (formal->kid[FORMAL_DEFAULT]) {
            fmt_space(f, 1);
            put_clause(f, formal->kid[FORMAL_DEFAULT], 3);
        }
    }
    fmt_put(f);
    fmt_close(f);
}

static void put_index(fmt *f, const ast *index)
{
    if (!index)
        return;
    fmt_put(f); /* [ */
    fmt_open(f, 0, false);
    fmt_put_n(f, 2);
    fmt_space(f, 1);
    fmt_expr(f, index->kid[INDEX_LIMIT], 0);
    fmt_put(f);
    fmt_close(f);
}

static void put_strings(fmt *f, uint32_t n)
{
    fmt_open(f, 0, false);
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0) {
            fmt_put(f);
            fmt_break(f, 1);
        }
        fmt_put(f);
    }
    fmt_close(f);
}

/* A line cannot end between two transforms, only inside their brackets. */
static void put_transform_arguments(fmt *f, const ast *list)
{
    fmt_put(f);
    fmt_open(f, FMT_OUTER, false);
    if (list->n_kid > 0)
        fmt_break(f, 0);
    fmt_list(f, list);
    fmt_put(f);
    fmt_close(f);
}

static void put_key(fmt *f, const ast *key)
{
    fmt_put(f);
    for (uint32_t i = 0; i < key->n_kid; i++) {
        const ast *tr = key->kid[i];
        if (tr->kind == AST_MAP) {
            fmt_break(f, 1);
            put_clause(f, tr->kid[MAP_VALUE], 3); /* => */
            continue;
        }
        fmt_space(f, 1);
        fmt_put(f);
        if (tr->kid[TRANSFORM_ARGUMENTS])
            put_transform_arguments(f, tr->kid[TRANSFORM_ARGUMENTS]);
    }
}

/* gguf "a" | "b": the strings stand one below the other where they do not fit on a line. */
static void put_binding(fmt *f, const ast *binding)
{
    fmt_put(f);
    fmt_space(f, 1);
    fmt_open(f, 2, false);
    for (uint32_t i = 0; i < binding->n_kid; i++) {
        if (i > 0) {
            fmt_break(f, 1);
            fmt_put(f);
            fmt_space(f, 1);
        }
        fmt_open(f, -2, false);
        if (binding->kid[i]->kind == AST_KEY)
            put_key(f, binding->kid[i]);
        else
            fmt_put(f);
        fmt_close(f);
    }
    fmt_close(f);
}

/* Bindings in the columns from first on: gguf, hf. One out of order stays in the cell before it. */
static void put_bindings(fmt *f, const ast *bindings, int first)
{
    int column = first - 1;
    for (uint32_t i = 0; i < bindings->n_kid; i++) {
        const ast *binding = bindings->kid[i];
        int own = first + str_eqz(binding->name, "hf");
        if (own > column)
            fmt_cell_begin(f, own, 2);
        else
            fmt_break(f, 2);
        column = own > column ? own : column;
        put_binding(f, binding);
    }
}

static void put_param(fmt *f, const ast *s)
{
    fmt_put(f);
    put_index(f, s->kid[PARAM_INDEX]);
    fmt_cell_begin(f, 1, 1);
    fmt_put(f); /* : */
    fmt_space(f, 1);
    fmt_type(f, s->kid[PARAM_TYPE]);
    put_bindings(f, s->kid[PARAM_BINDINGS], 2);
    if (s->kid[PARAM_DEFAULT]) {
        fmt_cell_begin(f, 4, 2);
        put_clause(f, s->kid[PARAM_DEFAULT], 3);
    }
}

static void put_weight(fmt *f, const ast *s)
{
    const ast *shape = s->kid[WEIGHT_SHAPE], *modifiers = s->kid[WEIGHT_MODIFIERS];
    fmt_put(f);
    fmt_cell_begin(f, 1, 1);
    fmt_put(f);
    if (s->flag)
        fmt_put(f);
    put_index(f, s->kid[WEIGHT_INDEX]);
    fmt_cell_begin(f, 2, 1);
    if (shape->kind == AST_ARROW) {
        fmt_put(f);
        fmt_open(f, 0, false);
        fmt_expr(f, shape->kid[ARROW_IN], 0);
        fmt_break(f, 1);
        put_clause(f, shape->kid[ARROW_OUT], 3);
        fmt_put(f);
        fmt_close(f);
    } else {
        fmt_brackets(f, shape);
    }
    for (uint32_t i = 0; i < modifiers->n_kid; i++) {
        fmt_space(f, 1);
        fmt_put(f);
        if (modifiers->kid[i]->flag)
            fmt_put(f);
        else if (modifiers->kid[i]->kid[MODIFIER_ARGUMENTS])
            fmt_brackets(f, modifiers->kid[i]->kid[MODIFIER_ARGUMENTS]);
    }
    put_bindings(f, s->kid[WEIGHT_BINDINGS], 3);
    if (s->kid[WEIGHT_WHEN]) {
        fmt_cell_begin(f, 5, 2);
        put_clause(f, s->kid[WEIGHT_WHEN], 5);
    }
    if (s->kid[WEIGHT_FALLBACK]) {
        fmt_cell_begin(f, 6, 2);
        put_clause(f, s->kid[WEIGHT_FALLBACK], 3);
    }
}

static void put_cell(fmt *f, const ast *s)
{
    fmt_put(f);
    put_index(f, s->kid[CELL_INDEX]);
    fmt_cell_begin(f, 1, 1);
    fmt_put_n(f, 2); /* : kind */
    fmt_brackets(f, s->kid[CELL_ARGUMENTS]);
    if (s->kid[CELL_WHEN]) {
        fmt_cell_begin(f, 2, 2);
        put_clause(f, s->kid[CELL_WHEN], 5);
    }
}

/* Is the value a call whose arguments could line up with those of a neighbour? */
static bool has_columns(const fmt *f, const ast *s)
{
    const ast *value = s->kid[ASSIGN_VALUE];
    if (f->flat || value->kind != AST_CALL || value->kid[CALL_ARGUMENTS]->n_kid < 2 ||
        value->loc.begin < value->kid[CALL_CALLEE]->loc.begin)
        return false;
    uint32_t end = fmt_token_find(f, s->loc.end);
    for (uint32_t i = f->next; i < end; i++)
        if (f->tokens.at[i].n_comment > 0)
            return false;
    return true;
}

static void put_assign(fmt *f, const ast *s)
{
    const ast *targets = s->kid[ASSIGN_TARGETS], *value = s->kid[ASSIGN_VALUE];
    bool columns = has_columns(f, s);
    for (uint32_t i = 0; i < targets->n_kid; i++) {
        if (i > 0) {
            fmt_put(f);
            fmt_space(f, 1);
        }
        fmt_put(f);
        if (targets->kid[i]->kid[TARGET_TYPE]) {
            fmt_space(f, 1);
            fmt_put(f);
            fmt_space(f, 1);
            fmt_type(f, targets->kid[i]->kid[TARGET_TYPE]);
        }
    }
    if (columns)
        fmt_cell_begin(f, 1, 0);
    fmt_space(f, 1);
    fmt_put(f);
    fmt_space(f, 1);
    if (columns)
        fmt_call_cells(f, value);
    else
        fmt_expr(f, value, 3);
}

static void put_output(fmt *f, const ast *s)
{
    fmt_put_n(f, 2);
    for (uint32_t i = 0; i < s->kid[OUTPUT_INDICES]->n_kid; i++) {
        fmt_put(f);
        fmt_open(f, 0, false);
        fmt_expr(f, s->kid[OUTPUT_INDICES]->kid[i], 0);
        fmt_put(f);
        fmt_close(f);
    }
    fmt_cell_begin(f, 1, 1);
    put_clause(f, s->kid[OUTPUT_VALUE], 3);
}

static void put_import(fmt *f, const ast *s)
{
    fmt_put(f);
    fmt_space(f, 1);
    put_path(f);
    if (s->kid[IMPORT_ALIAS]) {
        fmt_space(f, 1);
        fmt_put_n(f, 2);
    }
}

static void put_match(fmt *f, const ast *s)
{
    fmt_put_n(f, 2);
    fmt_cell_begin(f, 1, 1);
    put_strings(f, s->kid[MATCH_NAMES]->n_kid);
    if (s->kid[MATCH_CONDITION]) {
        fmt_space(f, 1);
        put_clause(f, s->kid[MATCH_CONDITION], 3);
    }
}

/* tokenizer x, chat x */
static void put_named(fmt *f, const ast *s)
{
    (void)s;
    fmt_put(f);
    fmt_cell_begin(f, 1, 1);
    fmt_put(f);
}

static void put_include(fmt *f, const ast *s)
{
    fmt_put(f);
    fmt_space(f, 1);
    put_path(f);
    fmt_brackets(f, s->kid[INCLUDE_ARGUMENTS]);
    fmt_space(f, 1);
    fmt_put_n(f, 2);
}

static void put_let(fmt *f, const ast *s)
{
    fmt_put_n(f, 2);
    fmt_cell_begin(f, 1, 1);
    put_clause(f, s->kid[LET_VALUE], 3);
}

static void put_require(fmt *f, const ast *s)
{
    fmt_put(f);
    fmt_space(f, 1);
    fmt_open(f, 0, false);
    fmt_expr(f, s->kid[REQUIRE_CONDITION], 8);
    if (s->kid[REQUIRE_MESSAGE]) {
        fmt_put(f);
        fmt_break(f, 1);
        fmt_put(f);
    }
    fmt_close(f);
}

static void put_ignore(fmt *f, const ast *s)
{
    fmt_put_n(f, 2);
    fmt_space(f, 1);
    put_strings(f, s->n_kid);
}

/* return a, b */
static void put_return(fmt *f, const ast *s)
{
    fmt_put(f);
    fmt_space(f, 1);
    fmt_list(f, s);
}

/* A statement without a body. */
static void put_simple(fmt *f, const ast *s)
{
    typedef void put_fn(fmt * f, const ast *s);
    static put_fn *const put[AST_KIND_COUNT] = {
        [AST_IMPORT] = put_import,   [AST_MATCH] = put_match,     [AST_TOKENIZER] = put_named,
        [AST_CHAT] = put_named,      [AST_INCLUDE] = put_include, [AST_LET] = put_let,
        [AST_REQUIRE] = put_require, [AST_IGNORE] = put_ignore,   [AST_PARAM] = put_param,
        [AST_WEIGHT] = put_weight,   [AST_CELL] = put_cell,       [AST_ASSIGN] = put_assign,
        [AST_OUTPUT] = put_output,
    };
    put_fn *fn = put[s->kind];
    (fn ? fn : put_return)(f, s);
}

static bool is_word(const ast *n)
{
    return n->kind != AST_BINARY && n->kind != AST_CHOICE && n->kind != AST_UNARY;
}

/* A statement with a body, up to its first brace. */
static void put_head(fmt *f, const ast *s)
{
    fmt_put(f);
    switch (s->kind) {
    case AST_FRAGMENT:
    case AST_BLOCK:
    case AST_ENTRY:
        fmt_space(f, 1);
        fmt_put(f);
        put_formals(f, s->kid[0]); /* their slot in all three */
        break;
    case AST_MODEL:
        fmt_space(f, 1);
        fmt_put_n(f, s->kid[MODEL_TITLE] ? 2 : 1);
        break;
    case AST_GROUP:
        fmt_space(f, 1);
        fmt_put(f);
        put_index(f, s->kid[GROUP_INDEX]);
        fmt_space(f, 2);
        fmt_open(f, 0, false);
        for (uint32_t i = 0; i < s->kid[GROUP_PREFIXES]->n_kid; i++) {
            if (i > 0)
                fmt_break(f, 2);
            put_binding(f, s->kid[GROUP_PREFIXES]->kid[i]);
        }
        fmt_close(f);
        break;
    case AST_REPEAT: {
        const ast *over = s->kid[REPEAT_OVER];
        fmt_space(f, 1);
        fmt_put_n(f, 2);
        fmt_space(f, 1);
        if (over->kind == AST_RANGE) {
            const ast *from = over->kid[RANGE_FROM], *to = over->kid[RANGE_TO];
            int gap = is_word(from) && is_word(to) ? 0 : 1;
            fmt_expr(f, from, 0);
            fmt_space(f, gap);
            fmt_put(f);
            fmt_space(f, gap);
            fmt_expr(f, to, 0);
        } else {
            fmt_expr(f, over, 0);
        }
        break;
    }
    case AST_IF:
        fmt_space(f, 1);
        fmt_expr(f, s->kid[IF_CONDITION], 3);
        break;
    default:
        break;
    }
}

static uint32_t n_statements(const body *b)
{
    return b->n + (b->results != NULL);
}

static const ast *statement(const body *b, uint32_t i)
{
    return i < b->n ? b->item[i] : b->results;
}

/* Did the whole statement stand on one line (or are its braces empty), and could it? */
static bool may_be_one_line(const fmt *f, const ast *s, const body *b, int n_body)
{
    uint32_t end = fmt_token_find(f, s->loc.end);
    if (end - f->next > FMT_CODE_COLUMNS)
        return false;
    bool empty = true;
    for (uint32_t i = f->next + 1; i < end; i++)
        empty &= f->tokens.at[i].n_comment == 0;
    for (int i = 0; i < n_body; i++)
        empty &= n_statements(&b[i]) == 0;
    return empty || f->tokens.at[f->next].line == f->tokens.at[end - 1].line;
}

/* A line holds one statement, so such a body holds one or none. */
static void put_one_line(fmt *f, const ast *s)
{
    body b[2];
    int n_body = bodies_of(s, b);
    if (n_body == 0) {
        put_simple(f, s);
        return;
    }
    put_head(f, s);
    if (s->kind == AST_BLOCK)
        fmt_cell_begin(f, 1, 1);
    else
        fmt_space(f, 1);
    f->flat++;
    for (int i = 0; i < n_body; i++) {
        if (i > 0) {
            fmt_space(f, 1);
            fmt_put(f); /* else */
            fmt_space(f, 1);
        }
        bool empty = n_statements(&b[i]) == 0;
        fmt_put(f); /* { */
        if (!empty) {
            fmt_space(f, 1);
            put_one_line(f, statement(&b[i], 0));
            fmt_space(f, 1);
        }
        fmt_put(f); /* } */
    }
    f->flat--;
}

/* Comments and a blank line in front of the next token, which begins a statement or ends a body. */
static void put_lead(fmt *f, bool first)
{
    fmt_token *t = &f->tokens.at[f->next];
    for (uint32_t i = 0; i < t->n_comment; i++) {
        const fmt_comment *c = &f->comments.at[t->comment_at + i];
        if (c->blank && !first)
            fmt_line_blank(f);
        fmt_line_note(f, f->indent, c->text);
        first = false;
    }
    t->n_comment = 0;
    if (t->blank && !first && t->kind != '}' && t->kind != END)
        fmt_line_blank(f);
}

/* The row that was begun is all there is to print. */
static void put_line(fmt *f)
{
    fmt_row_end(f);
    fmt_row_take_comment(f);
    fmt_rows_print(f);
}

static void put_body(fmt *f, const body *b);

/* head {, the body below, and a line that begins with } */
static void put_block(fmt *f, const ast *s, const body *b, int n_body)
{
    fmt_row_begin(f);
    put_head(f, s);
    for (int i = 0; i < n_body; i++) {
        fmt_space(f, 1);
        fmt_put(f); /* { */
        put_line(f);
        f->indent += FMT_INDENT;
        put_body(f, &b[i]);
        f->indent -= FMT_INDENT;
        fmt_row_begin(f);
        f->rows.at[0].hang = 0;
        fmt_put(f); /* } */
        if (i + 1 < n_body) {
            fmt_space(f, 1);
            fmt_put(f); /* else */
        }
    }
    put_line(f);
}

static void put_statement(fmt *f, const ast *s, bool first)
{
    const fmt_token *t = &f->tokens.at[f->next];
    fmt_row_kind kind = row_kind(s);
    if (first || t->n_comment > 0 || t->blank || kind == ROW_PLAIN || kind != f->kind)
        fmt_rows_print(f);
    f->kind = kind;
    put_lead(f, first);
    body b[2];
    int n_body = bodies_of(s, b);
    if (n_body == 0 || may_be_one_line(f, s, b, n_body)) {
        fmt_row_begin(f);
        put_one_line(f, s);
        fmt_row_end(f);
        if (n_body == 0 || fmt_row_width(f) <= FMT_CODE_COLUMNS - f->indent) {
            fmt_row_take_comment(f);
            return;
        }
        fmt_row_undo(f);
    }
    fmt_rows_print(f);
    f->kind = ROW_PLAIN;
    put_block(f, s, b, n_body);
}

static void put_body(fmt *f, const body *b)
{
    uint32_t n = n_statements(b);
    for (uint32_t i = 0; i < n; i++)
        put_statement(f, statement(b, i), i == 0);
    fmt_rows_print(f);
    f->kind = ROW_PLAIN;
    put_lead(f, n == 0);
}

void fmt_file(fmt *f, const ast *file)
{
    put_lead(f, true);
    fmt_row_begin(f);
    fmt_put_n(f, 2); /* weft 1 */
    put_line(f);
    for (uint32_t i = FILE_ITEMS; i < file->n_kid; i++)
        put_statement(f, file->kid[i], false);
    fmt_rows_print(f);
    put_lead(f, false);
    WEFT_ASSERT(f->next + 1 == f->tokens.n);
}
