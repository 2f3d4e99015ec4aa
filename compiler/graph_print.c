/* graph_print.c - a graph as text: its tables, then a line for each node. */
#include "compiler/graph_impl.h"

#include "runtime/base/intmath.h"
#include <inttypes.h>
#include <math.h>

enum { NUMBERS_PER_LINE = 6 };

typedef struct {
    const char *name; /* of the source */
    str shown;        /* short, unique, bare */
} shown_file;

typedef struct {
    const graph *g;
    const graph_layers *layers; /* NULL: nothing is folded */
    strbuf *out;
    arena *a; /* scratch */
    VEC(shown_file) files;
} printer;

/* ---- places ---- */

/* The last part of the path, odd bytes replaced; a number behind it where two files share that. */
static str file_shown(printer *p, const char *name)
{
    const char *slash = strrchr(name, '/');
    str base = arena_str(p->a, str_of(slash && slash[1] ? slash + 1 : name));
    char *text = (char *)base.p;
    for (size_t i = 0; i < base.n; i++)
        if (!gtext_is_word((str){text + i, 1}) && !strchr(".-0123456789", text[i]))
            text[i] = '_';
    if (base.n == 0)
        base = STR("_");
    str shown = base;
    for (int copy = 2;; copy++) {
        bool taken = false;
        for (size_t i = 0; i < p->files.n; i++)
            taken = taken || str_eq(p->files.at[i].shown, shown);
        if (!taken)
            return shown;
        shown = arena_printf(p->a, STR_FMT "~%d", STR_ARG(base), copy);
    }
}

static void files_add(printer *p, weft_loc loc)
{
    if (!loc.src)
        return;
    for (size_t i = 0; i < p->files.n; i++)
        if (strcmp(p->files.at[i].name, loc.src->name) == 0)
            return;
    shown_file f = {.name = loc.src->name, .shown = file_shown(p, loc.src->name)};
    VEC_PUSH(&p->files, f);
}

static void put_files(printer *p)
{
    const graph *g = p->g;
    for (size_t i = 0; i < g->weights.n; i++)
        files_add(p, g->weights.at[i].loc);
    for (size_t i = 0; i < g->cells.n; i++)
        files_add(p, g->cells.at[i].loc);
    for (size_t i = 0; i < g->nodes.n; i++)
        files_add(p, g->nodes.at[i].loc);
    for (size_t i = 0; i < g->outputs.n; i++)
        files_add(p, g->outputs.at[i].loc);
    for (size_t i = 0; i < p->files.n; i++) {
        strbuf_add(p->out, "file " STR_FMT " ", STR_ARG(p->files.at[i].shown));
        gtext_string(p->out, str_of(p->files.at[i].name));
        strbuf_putc(p->out, '\n');
    }
}

static void put_loc(printer *p, weft_loc loc)
{
    if (!loc.src)
        return;
    str shown = STR("_");
    for (size_t i = 0; i < p->files.n; i++)
        if (strcmp(p->files.at[i].name, loc.src->name) == 0)
            shown = p->files.at[i].shown;
    source_place at = source_find(loc.src, loc.begin);
    strbuf_add(p->out, "  loc(" STR_FMT ":%" PRIu32 ":%" PRIu32 ")", STR_ARG(shown), at.line,
               at.column);
}

static void put_layer(printer *p, int layer)
{
    if (layer >= 0)
        strbuf_add(p->out, " layer %d", layer);
}

/* ---- tables ---- */

static void put_numbers(printer *p, const double *x, const float *f, int64_t n)
{
    strbuf_put(p->out, STR(" = ["));
    for (int64_t i = 0; i < n; i++) {
        if (i > 0)
            strbuf_putc(p->out, ',');
        if (i % NUMBERS_PER_LINE == 0 && n > NUMBERS_PER_LINE)
            strbuf_put(p->out, STR("\n "));
        if (i > 0 || n > NUMBERS_PER_LINE)
            strbuf_putc(p->out, ' ');
        if (x)
            gtext_number(p->out, x[i]);
        else
            gtext_float(p->out, f[i]);
    }
    strbuf_put(p->out, n > NUMBERS_PER_LINE ? STR("\n]") : STR("]"));
}

static void put_pieces(printer *p, const char *word, const gpiece *piece, int n, int64_t rows)
{
    if (p->layers && n > 4) { /* for people: where the first one lies says enough */
        strbuf_add(p->out, " %s %d and %d more", word, piece[0].tensor, n - 1);
        return;
    }
    strbuf_add(p->out, " %s ", word);
    for (int i = 0; i < n; i++) {
        strbuf_add(p->out, "%s%d", i ? ", " : "", piece[i].tensor);
        if (piece[i].offset)
            strbuf_add(p->out, "+%" PRId64, piece[i].offset);
        if (piece[i].rows != rows)
            strbuf_add(p->out, " rows %" PRId64, piece[i].rows);
    }
}

int64_t graph_piece_rows(const gweight *w)
{
    return w->rank == 0 ? 1 : w->n_piece > 0 ? w->dim[0] / w->n_piece : 0;
}

bool graph_dense_strides(const gweight *w, int64_t *out_stride)
{
    const dtype_row *row = dtype_row_of(w->type);
    int64_t stride = (int64_t)row->bytes;
    for (int i = w->rank - 1; i >= 0; i--) {
        bool blocks = row->elems > 1 && i == w->rank - 1;
        out_stride[i] = blocks ? 0 : stride;
        int64_t steps = blocks ? w->dim[i] / row->elems : w->dim[i];
        if ((blocks && w->dim[i] % row->elems != 0) || !i64_mul(stride, steps, &stride))
            return false;
    }
    return true;
}

str graph_line_of(str name)
{
    for (size_t i = name.n; i > 0; i--)
        if (name.p[i - 1] == '.')
            return (str){name.p + i, name.n - i};
    return name;
}

static void put_weight(printer *p, const gweight *w)
{
    strbuf_put(p->out, STR("weight @"));
    gtext_name(p->out, w->name);
    strbuf_add(p->out, ": %s", dtype_row_of(w->type)->name);
    gtext_dims(p->out, w->rank, w->dim);
    if (w->pairs)
        strbuf_add(p->out, " %s", gtext_pairs[w->pairs]);
    int64_t dense[GRAPH_RANK_MAX] = {0};
    bool plain = graph_dense_strides(w, dense);
    if (!plain || memcmp(dense, w->stride, sizeof *dense * (size_t)w->rank) != 0) {
        strbuf_put(p->out, STR(" stride "));
        gtext_dims(p->out, w->rank, w->stride);
    }
    if (w->lora)
        strbuf_put(p->out, STR(" lora"));
    if (w->whole.n > 0) {
        strbuf_put(p->out, STR(" of "));
        gtext_name(p->out, w->whole);
        strbuf_add(p->out, " from %" PRId64, w->whole_row);
    }
    if (w->n_piece > 0)
        put_pieces(p, "in", w->piece, w->n_piece, graph_piece_rows(w));
    if (w->scales)
        put_pieces(p, "scales", w->scales, w->n_piece, graph_piece_rows(w));
    if (!str_eq(w->line, graph_line_of(w->name))) {
        strbuf_put(p->out, STR(" line "));
        gtext_name(p->out, w->line);
    }
    put_loc(p, w->loc);
    put_layer(p, w->layer);
    if (w->computed && p->layers)
        strbuf_put(p->out, STR(" computed"));
    else if (w->computed)
        put_numbers(p, NULL, w->computed, graph_weight_count(w));
    strbuf_putc(p->out, '\n');
}

static void put_const(printer *p, size_t i)
{
    const gconst *c = &p->g->consts.at[i];
    strbuf_add(p->out, "const #%zu: %s[%" PRId64 "]", i, c->table ? "table" : "f", c->n);
    if (c->table || c->factor != 0 || signbit(c->factor)) {
        strbuf_put(p->out, STR(" factor "));
        gtext_number(p->out, c->factor);
    }
    if (p->layers && c->n > NUMBERS_PER_LINE) {
        strbuf_put(p->out, STR(" = ["));
        gtext_number(p->out, c->data[0]);
        strbuf_put(p->out, STR(", .. "));
        gtext_number(p->out, c->data[c->n - 1]);
        strbuf_put(p->out, STR("]"));
    } else {
        put_numbers(p, c->data, NULL, c->n);
    }
    strbuf_putc(p->out, '\n');
}

static void put_cell(printer *p, const gcell *c)
{
    int n;
    const cell_row *row = &cell_rows(&n)[c->kind];
    strbuf_put(p->out, STR("cell $"));
    gtext_name(p->out, c->name);
    strbuf_add(p->out, ": %s(", row->name);
    str word;
    for (int i = 0; (word = word_at(row->arguments, i)).n; i++)
        strbuf_add(p->out, "%s" STR_FMT " = %" PRId64, i ? ", " : "", STR_ARG(word), c->arg[i]);
    strbuf_putc(p->out, ')');
    if (c->window)
        strbuf_add(p->out, " window %" PRId64, c->window);
    if (c->layout != CELL_UNDECIDED)
        strbuf_add(p->out, " %s", gtext_layouts[c->layout]);
    if (c->layout == CELL_RING)
        strbuf_add(p->out, " %" PRId64, c->keep);
    if (c->bounded)
        strbuf_add(p->out, " coarsest %s", kform_name(c->coarsest));
    if (c->pin)
        strbuf_add(p->out, " pin %" PRId64, c->pin);
    put_loc(p, c->loc);
    strbuf_putc(p->out, '\n');
}

static void put_tables(printer *p)
{
    const graph *g = p->g;
    strbuf_put(p->out, STR("graph "));
    gtext_name(p->out, g->model);
    strbuf_put(p->out, STR(" entry "));
    gtext_name(p->out, g->entry);
    strbuf_putc(p->out, '\n');
    put_files(p);
    for (size_t i = 0; i < g->inputs.n; i++) {
        strbuf_put(p->out, STR("input "));
        gtext_name(p->out, g->inputs.at[i].name);
        strbuf_put(p->out, STR(": "));
        gtext_type(p->out, g, &g->inputs.at[i].type);
        strbuf_putc(p->out, '\n');
    }
    strbuf_putc(p->out, '\n');
    for (size_t i = 0; i < g->consts.n; i++)
        put_const(p, i);
    for (size_t i = 0; i < g->weights.n; i++)
        if (!p->layers || !graph_folded(p->layers, g->weights.at[i].layer))
            put_weight(p, &g->weights.at[i]);
    for (size_t i = 0; i < g->cells.n; i++)
        if (!p->layers || !graph_folded(p->layers, p->layers->cell_in[i]))
            put_cell(p, &g->cells.at[i]);
}

/* ---- nodes ---- */

static void put_node(printer *p, const gnode *n)
{
    for (int i = 0; i < n->n_out; i++) {
        strbuf_add(p->out, "%s%%%d: ", i ? ", " : "", n->first + i);
        gtext_type(p->out, p->g, &p->g->values.at[n->first + i].type);
    }
    strbuf_add(p->out, " = %s(", op_row_of(n->op)->name);
    const char *comma = "";
    int n_in = n->n_in; /* absent operands at the end go without saying */
    while (n_in > 0 && n->in[n_in - 1].kind == REF_NONE)
        n_in--;
    for (int i = 0; i < n_in; i++, comma = ", ") {
        strbuf_put(p->out, str_of(comma));
        gtext_ref(p->out, p->g, n->in[i]);
    }
    int n_attr;
    const attr_row *rows = op_attrs(n->op, &n_attr);
    for (int i = 0; i < n_attr; i++) {
        if (n->attr[i].kind == GATTR_NONE)
            continue;
        strbuf_put(p->out, str_of(comma));
        gtext_attr(p->out, p->g, &rows[i], &n->attr[i]);
        comma = ", ";
    }
    strbuf_putc(p->out, ')');
    gtext_marks(p->out, n);
    put_loc(p, n->loc);
    put_layer(p, n->layer);
    strbuf_putc(p->out, '\n');
}

static void put_output(printer *p, const goutput *o)
{
    strbuf_put(p->out, STR("output "));
    if (gtext_is_word(o->name))
        strbuf_put(p->out, o->name);
    else
        gtext_string(p->out, o->name);
    if (o->index >= 0)
        strbuf_add(p->out, "[%d]", o->index);
    strbuf_add(p->out, " = %%%d", o->value);
    put_loc(p, o->loc);
    strbuf_putc(p->out, '\n');
}

/* Folded layers leave one line, where the first of them would stand. */
static void put_nodes(printer *p)
{
    int n_layer = p->layers ? p->layers->n : 0;
    bool *seen = ARENA_ARRAY(p->a, bool, (size_t)n_layer);
    for (size_t i = 0; i < p->g->nodes.n; i++) {
        const gnode *n = &p->g->nodes.at[i];
        if (!p->layers || !graph_folded(p->layers, n->layer)) {
            put_node(p, n);
            continue;
        }
        int like = p->layers->like[n->layer];
        if (seen[like])
            continue;
        seen[like] = true;
        graph_fold_list(p->layers, like, 0, n_layer, p->out);
        strbuf_putc(p->out, '\n');
    }
}

void graph_print(const graph *g, bool fold, strbuf *out)
{
    printer p = {.g = g, .out = out, .a = arena_create()};
    if (fold)
        p.layers = graph_fold(p.a, g, true);
    put_tables(&p);
    strbuf_putc(out, '\n');
    put_nodes(&p);
    strbuf_putc(out, '\n');
    for (size_t i = 0; i < g->outputs.n; i++)
        if (!p.layers || !graph_fold_output(p.layers, g, &g->outputs.at[i]))
            put_output(&p, &g->outputs.at[i]);
    VEC_FREE(&p.files);
    arena_destroy(p.a);
}
