/* graph_read.c - the text form back into a graph. The text may be a stranger's: what it can make
 * grow is bounded by its length and the limits in graph_impl.h. */
#include "compiler/graph_read.h"

#include <inttypes.h>

/* ---- tables ---- */

static weft_status read_dims(reader *r, bool symbols, int *out_rank, int64_t *dim)
{
    scan *s = &r->s;
    int rank = 0;
    WEFT_TRY(scan_expect(s, '['));
    for (; !scan_accept(s, ']'); rank++) {
        if (rank > 0)
            WEFT_TRY(scan_expect(s, ','));
        if (rank == GRAPH_RANK_MAX)
            return SCAN_FAIL(s, "more than %d dimensions", GRAPH_RANK_MAX);
        int symbol = 0;
        while (symbols && symbol < 3 && !scan_accept_word(s, gtext_symbols[symbol]))
            symbol++;
        if (symbols && symbol < 3)
            dim[rank] = GRAPH_T - symbol;
        else
            WEFT_TRY(scan_int(s, 0, INT64_MAX, &dim[rank]));
    }
    *out_rank = rank;
    return WEFT_OK;
}

static int read_pairs(reader *r)
{
    return scan_accept_word(&r->s, "half") ? 1 : scan_accept_word(&r->s, "interleaved") ? 2 : 0;
}

weft_status read_named(reader *r, const name_table *names, const char *what, int *out_id)
{
    str name;
    WEFT_TRY(scan_name(&r->s, &name));
    int id = name_find(names, name);
    if (id < 0)
        return SCAN_FAIL(&r->s, "there is no %s " STR_FMT, what, STR_ARG(name));
    *out_id = id;
    return WEFT_OK;
}

weft_status read_type(reader *r, gtype *out_type)
{
    gtype t = {.cell = -1};
    if (scan_accept(&r->s, '$')) {
        WEFT_TRY(read_named(r, &r->cells, "cell", &t.cell));
    } else {
        str word;
        WEFT_TRY(scan_word(&r->s, &word));
        t.ids = str_eqz(word, "i32");
        if (!t.ids && !str_eqz(word, "f"))
            return SCAN_FAIL(&r->s, "a type is f[..], i32[..] or a cell, not " STR_FMT,
                             STR_ARG(word));
        WEFT_TRY(read_dims(r, true, &t.rank, t.dim));
        t.pairs = read_pairs(r);
    }
    *out_type = t;
    return WEFT_OK;
}

static weft_status read_new_name(reader *r, name_table *names, int id, str *out_name)
{
    str name;
    WEFT_TRY(scan_name(&r->s, &name));
    if (id >= GRAPH_ROWS_MAX)
        return SCAN_FAIL(&r->s, "more than %d rows in one table", GRAPH_ROWS_MAX);
    name = arena_str(r->g->a, name);
    if (!name_add(names, name, id))
        return SCAN_FAIL(&r->s, STR_FMT " stands here for the second time", STR_ARG(name));
    *out_name = name;
    return WEFT_OK;
}

static weft_status read_input(reader *r)
{
    ginput in;
    WEFT_TRY(read_new_name(r, &r->inputs, (int)r->g->inputs.n, &in.name));
    WEFT_TRY(scan_expect(&r->s, ':'));
    WEFT_TRY(read_type(r, &in.type));
    VEC_PUSH(&r->g->inputs, in);
    return WEFT_OK;
}

/* [x, y, ..] into r->numbers. */
static weft_status read_numbers(reader *r)
{
    scan *s = &r->s;
    r->numbers.n = 0;
    WEFT_TRY(scan_expect(s, '='));
    WEFT_TRY(scan_expect(s, '['));
    while (!scan_accept(s, ']')) {
        double x;
        if (r->numbers.n > 0)
            WEFT_TRY(scan_expect(s, ','));
        if (scan_peek(s) == '.')
            return SCAN_FAIL(s, "this text is shortened for people and cannot be read back");
        WEFT_TRY(scan_number(s, &x));
        VEC_PUSH(&r->numbers, x);
    }
    return WEFT_OK;
}

static weft_status read_const(reader *r)
{
    scan *s = &r->s;
    gconst c = {0};
    int64_t id;
    str word;
    WEFT_TRY(scan_expect(s, '#'));
    WEFT_TRY(scan_int(s, 0, GRAPH_ROWS_MAX, &id));
    if ((size_t)id != r->g->consts.n)
        return SCAN_FAIL(s, "constants are numbered in order; #%zu is next", r->g->consts.n);
    WEFT_TRY(scan_expect(s, ':'));
    WEFT_TRY(scan_word(s, &word));
    c.table = str_eqz(word, "table");
    if (!c.table && !str_eqz(word, "f"))
        return SCAN_FAIL(s, "a constant is f[..] or table[..], not " STR_FMT, STR_ARG(word));
    WEFT_TRY(scan_expect(s, '['));
    WEFT_TRY(scan_int(s, 0, INT64_MAX, &c.n));
    WEFT_TRY(scan_expect(s, ']'));
    if (scan_accept_word(s, "factor"))
        WEFT_TRY(scan_number(s, &c.factor));
    WEFT_TRY(read_numbers(r));
    if ((int64_t)r->numbers.n != c.n)
        return SCAN_FAIL(s, "%zu numbers, but the constant has %" PRId64, r->numbers.n, c.n);
    double *data = ARENA_ARRAY(r->g->a, double, r->numbers.n);
    memcpy(data, r->numbers.at, r->numbers.n * sizeof *data);
    c.data = data;
    VEC_PUSH(&r->g->consts, c);
    return WEFT_OK;
}

/* ---- weights ---- */

static weft_status read_pieces(reader *r, const gpiece **out_piece, size_t *out_n)
{
    scan *s = &r->s;
    r->pieces.n = 0;
    do {
        gpiece p = {.rows = -1};
        int64_t tensor;
        WEFT_TRY(scan_int(s, 0, INT32_MAX, &tensor));
        p.tensor = (int)tensor;
        if (scan_accept(s, '+'))
            WEFT_TRY(scan_int(s, 0, INT64_MAX, &p.offset));
        if (scan_accept_word(s, "rows"))
            WEFT_TRY(scan_int(s, 0, INT64_MAX, &p.rows));
        if (scan_accept_word(s, "and"))
            return SCAN_FAIL(s, "this text is shortened for people and cannot be read back");
        VEC_PUSH(&r->pieces, p);
    } while (scan_accept(s, ','));
    gpiece *kept = ARENA_ARRAY(r->g->a, gpiece, r->pieces.n);
    memcpy(kept, r->pieces.at, r->pieces.n * sizeof *kept);
    *out_piece = kept;
    *out_n = r->pieces.n;
    return WEFT_OK;
}

/* Pieces that do not say how much of axis 0 they hold have equal parts of it. */
static void fill_rows(const gweight *w, const gpiece *piece)
{
    for (int i = 0; piece && i < w->n_piece; i++)
        if (piece[i].rows < 0)
            ((gpiece *)piece)[i].rows = graph_piece_rows(w);
}

/* What a weight is a part of: name and first row. */
static weft_status read_whole(reader *r, gweight *w)
{
    WEFT_TRY(scan_name(&r->s, &w->whole));
    w->whole = arena_str(r->g->a, w->whole);
    if (!scan_accept_word(&r->s, "from"))
        return SCAN_FAIL(&r->s, "a part says from which row on it is");
    return scan_int(&r->s, 0, INT64_MAX, &w->whole_row);
}

static weft_status read_storage(reader *r, gweight *w)
{
    scan *s = &r->s;
    size_t n = 0, n_scale = 0;
    int rank;
    if (!graph_dense_strides(w, w->stride))
        memset(w->stride, 0, sizeof w->stride);
    if (scan_accept_word(s, "stride")) {
        WEFT_TRY(read_dims(r, false, &rank, w->stride));
        if (rank != w->rank)
            return SCAN_FAIL(s, "%d strides for %d dimensions", rank, w->rank);
    }
    w->lora = scan_accept_word(s, "lora");
    if (w->lora && scan_accept_word(s, "of"))
        WEFT_TRY(read_whole(r, w));
    if (scan_accept_word(s, "in"))
        WEFT_TRY(read_pieces(r, &w->piece, &n));
    if (scan_accept_word(s, "scales"))
        WEFT_TRY(read_pieces(r, &w->scales, &n_scale));
    if (n_scale > 0 && n_scale != n)
        return SCAN_FAIL(s, "%zu pieces, but scales for %zu", n, n_scale);
    w->n_piece = (int)n;
    fill_rows(w, w->piece);
    fill_rows(w, w->scales);
    return WEFT_OK;
}

static weft_status read_weight(reader *r)
{
    scan *s = &r->s;
    gweight w = {.layer = -1};
    str type;
    WEFT_TRY(scan_expect(s, '@'));
    WEFT_TRY(read_new_name(r, &r->weights, (int)r->g->weights.n, &w.name));
    WEFT_TRY(scan_expect(s, ':'));
    WEFT_TRY(scan_word(s, &type));
    if (!dtype_from_name(type, &w.type))
        return SCAN_FAIL(s, "there is no storage type " STR_FMT, STR_ARG(type));
    WEFT_TRY(read_dims(r, false, &w.rank, w.dim));
    w.pairs = read_pairs(r);
    WEFT_TRY(read_storage(r, &w));
    w.line = graph_line_of(w.name);
    if (scan_accept_word(s, "line")) {
        WEFT_TRY(scan_name(s, &w.line));
        w.line = arena_str(r->g->a, w.line);
    }
    WEFT_TRY(read_loc(r, &w.loc));
    WEFT_TRY(read_layer(r, &w.layer));
    if (scan_peek(s) == '=') {
        WEFT_TRY(read_numbers(r));
        if ((int64_t)r->numbers.n != graph_weight_count(&w))
            return SCAN_FAIL(s, "%zu numbers do not fill this weight", r->numbers.n);
        float *computed = ARENA_ARRAY(r->g->a, float, r->numbers.n);
        for (size_t i = 0; i < r->numbers.n; i++)
            computed[i] = (float)r->numbers.at[i];
        w.computed = computed;
    }
    VEC_PUSH(&r->g->weights, w);
    return WEFT_OK;
}

/* ---- cells, outputs ---- */

static weft_status read_cell(reader *r)
{
    scan *s = &r->s;
    gcell c = {0};
    str kind, word;
    WEFT_TRY(scan_expect(s, '$'));
    WEFT_TRY(read_new_name(r, &r->cells, (int)r->g->cells.n, &c.name));
    WEFT_TRY(scan_expect(s, ':'));
    WEFT_TRY(scan_word(s, &kind));
    const cell_row *row = cell_find(kind);
    if (!row)
        return SCAN_FAIL(s, "there is no cell kind " STR_FMT, STR_ARG(kind));
    c.kind = row->code;
    WEFT_TRY(scan_expect(s, '('));
    str name;
    for (int i = 0; (name = word_at(row->arguments, i)).n; i++) {
        if (i > 0)
            WEFT_TRY(scan_expect(s, ','));
        WEFT_TRY(scan_word(s, &word));
        if (!str_eq(word, name))
            return SCAN_FAIL(s, "expected " STR_FMT " = .. here", STR_ARG(name));
        WEFT_TRY(scan_expect(s, '='));
        WEFT_TRY(scan_int(s, 0, INT64_MAX, &c.arg[i]));
    }
    WEFT_TRY(scan_expect(s, ')'));
    if (scan_accept_word(s, "window"))
        WEFT_TRY(scan_int(s, 0, INT64_MAX, &c.window));
    for (int layout = CELL_PAGED; layout <= CELL_RING && c.layout == CELL_UNDECIDED; layout++)
        if (scan_accept_word(s, gtext_layouts[layout]))
            c.layout = (cell_layout)layout;
    if (c.layout == CELL_RING)
        WEFT_TRY(scan_int(s, 0, INT64_MAX, &c.keep));
    if (scan_accept_word(s, "coarsest")) {
        WEFT_TRY(scan_word(s, &word));
        c.bounded = true;
        c.coarsest = kform_find(word);
        if (c.coarsest == KFORM_COUNT)
            return SCAN_FAIL(s, "nothing is stored as " STR_FMT, STR_ARG(word));
    }
    if (scan_accept_word(s, "pin"))
        WEFT_TRY(scan_int(s, 1, INT64_MAX, &c.pin));
    WEFT_TRY(read_loc(r, &c.loc));
    VEC_PUSH(&r->g->cells, c);
    return WEFT_OK;
}

static weft_status read_output(reader *r)
{
    scan *s = &r->s;
    goutput o = {.index = -1};
    int64_t index;
    if (scan_peek(s) == '"')
        WEFT_TRY(scan_string(s, &o.name));
    else
        WEFT_TRY(scan_word(s, &o.name));
    if (r->g->outputs.n == GRAPH_ROWS_MAX)
        return SCAN_FAIL(s, "more than %d outputs", GRAPH_ROWS_MAX);
    o.name = arena_str(r->g->a, o.name);
    if (scan_accept(s, '[')) {
        WEFT_TRY(scan_int(s, 0, INT32_MAX, &index));
        WEFT_TRY(scan_expect(s, ']'));
        o.index = (int)index;
    }
    WEFT_TRY(scan_expect(s, '='));
    WEFT_TRY(read_value(r, &o.value));
    WEFT_TRY(read_loc(r, &o.loc));
    VEC_PUSH(&r->g->outputs, o);
    return WEFT_OK;
}

/* ---- the whole ---- */

static weft_status read_header(reader *r)
{
    if (!scan_accept_word(&r->s, "graph"))
        return SCAN_FAIL(&r->s, "graph text begins with `graph NAME entry NAME`");
    WEFT_TRY(scan_name(&r->s, &r->g->model));
    if (!scan_accept_word(&r->s, "entry"))
        return SCAN_FAIL(&r->s, "expected `entry` here");
    WEFT_TRY(scan_name(&r->s, &r->g->entry));
    r->g->model = arena_str(r->g->a, r->g->model);
    r->g->entry = arena_str(r->g->a, r->g->entry);
    return WEFT_OK;
}

static weft_status read_statement(reader *r)
{
    static const struct {
        const char *word;
        weft_status (*read)(reader *r);
    } statements[] = {
        {"file", read_file},     {"input", read_input}, {"const", read_const},
        {"weight", read_weight}, {"cell", read_cell},   {"output", read_output},
    };
    if (scan_peek(&r->s) == '%')
        return read_node(r);
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (scan_accept_word(&r->s, statements[i].word))
            return statements[i].read(r);
    if (scan_accept_word(&r->s, "layers") || scan_accept_word(&r->s, "layer"))
        return SCAN_FAIL(&r->s, "folded text leaves layers out and cannot be read back");
    return SCAN_FAIL(&r->s, "expected file, input, const, weight, cell, output or %% here");
}

static weft_status read_all(reader *r)
{
    WEFT_TRY(read_header(r));
    while (!scan_end(&r->s))
        WEFT_TRY(read_statement(r));
    for (size_t i = 0; i < r->g->values.n; i++)
        if (r->g->values.at[i].node < 0)
            return SCAN_FAIL(&r->s, "value %%%zu is never defined", i);
    WEFT_TRY(read_places(r));

    strbuf why = {0};
    int node = -1;
    weft_status status = WEFT_OK;
    if (!graph_verify_at(r->g, &why, &node)) {
        if (node >= 0)
            r->s.begin = r->node_at.at[node], r->s.at = r->s.begin + 1;
        status = SCAN_FAIL(&r->s, STR_FMT, STR_ARG(strbuf_view(&why)));
    }
    strbuf_free(&why);
    return status;
}

weft_status graph_parse(weft_diag *dg, const source *src, graph **out_g)
{
    graph *g = graph_create();
    arena *a = arena_create();
    reader r = {.g = g, .s = {.dg = dg, .src = src, .a = a}};
    weft_status status =
        src->text.n > GRAPH_TEXT_MAX
            ? weft_fail(dg, W1101, WEFT_NOWHERE, "%s has %zu bytes, and the limit is %d", src->name,
                        src->text.n, GRAPH_TEXT_MAX)
            : read_all(&r);
    if (status == WEFT_OK)
        *out_g = g;
    else
        graph_destroy(g);
    name_free(&r.weights);
    name_free(&r.cells);
    name_free(&r.inputs);
    VEC_FREE(&r.numbers);
    VEC_FREE(&r.pieces);
    VEC_FREE(&r.files);
    VEC_FREE(&r.places);
    VEC_FREE(&r.node_at);
    arena_destroy(a);
    return status;
}
