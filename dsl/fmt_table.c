/* fmt_table.c - rows, and columns for neighbouring rows of one kind.
 *
 * Columns are placed from left to right. A row that would have to go beyond the page to line up is
 * let off the column that costs it most, and the placing begins again; one that is too long however
 * it stands goes on below, at the column its table names. */
#include "dsl/fmt.h"

#include <stdlib.h>

enum {
    COLUMN_MAX = 16,
    FOLD_COLUMNS = 104, /* a row folds if the line below it stays within these */
};

typedef struct {
    int quarters, reach; /* as fmt_align takes them */
} column_rule;

typedef struct {
    int n_column;
    int columns; /* of the page */
    int lead;    /* so many cells are never moved to a line below */
    int below;   /* the cell with which lines below begin; 0: further in by the row's hang */
    bool fold;   /* a row that is too long puts all but its lead below, if that is enough */
    bool firm;   /* cells behind the lead break by themselves: no row is let off a column */
    column_rule rule[COLUMN_MAX];
} table;

/* clang-format off */
static const table tables[ROW_KIND_COUNT] = {
    /*                columns of page    lead below fold   firm   quarters and reach of each column but the first */
    [ROW_PLAIN]  = {1, FMT_CODE_COLUMNS,  1, 0, false, true,  {{0, 0}}},
    [ROW_LET]    = {2, FMT_CODE_COLUMNS,  2, 0, false, true,  {{0, 0}, {2, 5}}},
    [ROW_OUTPUT] = {2, FMT_CODE_COLUMNS,  2, 0, false, true,  {{0, 0}, {2, 5}}},
    [ROW_MATCH]  = {2, FMT_CODE_COLUMNS,  2, 0, false, true,  {{0, 0}, {2, 5}}},
    [ROW_BLOCK]  = {2, FMT_TABLE_COLUMNS, 2, 0, false, false, {{0, 0}, {3, 14}}},
    [ROW_CELL]   = {3, FMT_CODE_COLUMNS,  2, 0, false, true,  {{0, 0}, {2, 16}, {3, 14}}},
    /* name, type, gguf, hf, ?? */
    [ROW_PARAM]  = {5, FMT_TABLE_COLUMNS, 2, 2, false, false, {{0, 0}, {2, 5}, {3, 6}, {3, 14}, {3, 14}}},
    /* kind, name, shape, gguf, hf, when, ?? */
    [ROW_WEIGHT] = {7, FMT_TABLE_COLUMNS, 3, 1, true,  false,
                    {{0, 0}, {2, 5}, {2, 6}, {3, 20}, {3, 14}, {3, 14}, {3, 14}}},
    /* calls of one shape: targets, the call to its first comma, arguments */
    [ROW_ASSIGN] = {COLUMN_MAX, FMT_CODE_COLUMNS, COLUMN_MAX, 0, false, false,
                    {{0, 0}, {3, 8}, {3, 8}, {3, 8}, {3, 8}, {3, 8}, {3, 8}, {3, 8},
                     {3, 8}, {3, 8}, {3, 8}, {3, 8}, {3, 8}, {3, 8}, {3, 8}, {3, 8}}},
};
/* clang-format on */

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

void fmt_align(fmt *f, int *place, size_t n, int quarters, int reach)
{
    f->columns.n = 0;
    for (size_t i = 0; i < n; i++)
        VEC_PUSH(&f->columns, place[i]);
    qsort(f->columns.at, n, sizeof *f->columns.at, compare_ints);
    int furthest = f->columns.at[(n - 1) * (size_t)quarters / 4] + reach, column = 0;
    for (size_t i = 0; i < n && f->columns.at[i] <= furthest; i++)
        column = f->columns.at[i];
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i; k < n && place[k] > column; k++)
            ;
        if (k > i)
            fmt_align(f, place + i, k - i, quarters, reach);
        else
            place[k++] = column;
    }
}

void fmt_row_begin(fmt *f)
{
    fmt_row r = {.cell_at = (uint32_t)f->cells.n, .token_at = f->next, .hang = FMT_HANG};
    VEC_PUSH(&f->rows, r);
    fmt_cell c = {.begin = (uint32_t)f->items.n};
    VEC_PUSH(&f->cells, c);
}

void fmt_cell_begin(fmt *f, int column, int gap)
{
    if (!f->flat && column < COLUMN_MAX) {
        fmt_token *t = &f->tokens.at[f->next];
        f->cells.at[f->cells.n - 1].end = (uint32_t)f->items.n;
        fmt_cell c = {(uint32_t)f->items.n, 0, column, t->comment_at, t->n_comment, 0};
        VEC_PUSH(&f->cells, c);
        t->n_comment = 0;
    }
    if (gap > 0)
        fmt_space(f, gap);
}

void fmt_row_end(fmt *f)
{
    fmt_row *r = &f->rows.at[f->rows.n - 1];
    f->cells.at[f->cells.n - 1].end = (uint32_t)f->items.n;
    r->n_cell = (uint32_t)f->cells.n - r->cell_at;
    r->token_end = f->next;
}

void fmt_row_take_comment(fmt *f)
{
    fmt_row *r = &f->rows.at[f->rows.n - 1];
    fmt_token *t = &f->tokens.at[f->next];
    if (t->n_comment > 0 && !f->comments.at[t->comment_at].own) {
        r->trail = f->comments.at[t->comment_at].text;
        t->comment_at++;
        t->n_comment--;
    }
}

void fmt_row_undo(fmt *f)
{
    const fmt_row *r = &f->rows.at[--f->rows.n];
    uint32_t begin = f->cells.at[r->cell_at].begin;
    f->next = r->token_at;
    if (begin < f->items.n) {
        f->at = f->items.at[begin].at;
        f->n_hard = f->items.at[begin].n_hard;
    }
    f->items.n = begin;
    f->cells.n = r->cell_at;
}

/* Columns from one item to another, on one line; INT_MAX if there is a comment between. */
static int items_width(const fmt *f, uint32_t begin, uint32_t end)
{
    int at = end < f->items.n ? f->items.at[end].at : f->at;
    int n_hard = end < f->items.n ? f->items.at[end].n_hard : f->n_hard;
    if (begin >= end)
        return 0;
    return n_hard > f->items.at[begin].n_hard ? INT_MAX : at - f->items.at[begin].at;
}

/* The same for the cells from c to the last. */
static int cells_width(const fmt *f, const fmt_cell *c, const fmt_cell *last)
{
    for (const fmt_cell *k = c; k <= last; k++)
        if (k->n_comment > 0)
            return INT_MAX;
    return items_width(f, c->begin, last->end);
}

static int row_width(const fmt *f, const fmt_row *r)
{
    const fmt_cell *c = &f->cells.at[r->cell_at];
    return cells_width(f, c, c + r->n_cell - 1);
}

int fmt_row_width(const fmt *f)
{
    return row_width(f, &f->rows.at[f->rows.n - 1]);
}

/* The spaces a cell begins with; where it stands in a column they do not count. */
static int cell_gap(const fmt *f, const fmt_cell *c, uint32_t *out_begin)
{
    int gap = 0;
    uint32_t i = c->begin;
    for (; i < c->end; i++) {
        const fmt_item *it = &f->items.at[i];
        if (it->kind != ITEM_SPACE && it->kind != ITEM_BREAK)
            break;
        gap += it->gap;
    }
    *out_begin = i;
    return gap;
}

/* Where a row has got to while its columns are placed. */
typedef struct {
    int cell;              /* the next to place */
    int at;                /* the end of its line so far */
    int below;             /* where its further lines begin */
    bool broken;           /* too long for one line, or with comments inside */
    bool alone;            /* on further lines: it lines up with nothing */
    bool lost;             /* beyond the page: what follows finds its place when it is printed */
    int slack[COLUMN_MAX]; /* how far each column moved it, on this line */
    int moved;             /* the sum of them */
    int spilt;             /* the column that took an earlier line of it beyond the page, or 0 */
} progress;

typedef struct {
    fmt *f;
    const table *t;
    fmt_row *rows;
    size_t n_row;
    progress *p;
    bool narrow;     /* the first column behind the lead reaches half as far */
    size_t n_odd;    /* cells that stand beside their column */
    VEC(int) place;  /* of those that take part in a column, */
    VEC(size_t) who; /* and which rows they are */
} placing;

static fmt_cell *next_cell(const placing *pl, size_t i)
{
    return &pl->f->cells.at[pl->rows[i].cell_at + (uint32_t)pl->p[i].cell];
}

/* The column of a row's next cell; none if there is no more. A row that cannot line up uses the first
 * column behind the lead for whatever comes there. */
static int next_column(const placing *pl, size_t i)
{
    const progress *p = &pl->p[i];
    if (p->cell >= (int)pl->rows[i].n_cell)
        return COLUMN_MAX;
    int column = next_cell(pl, i)->column;
    bool strays = p->broken || (pl->rows[i].loose >> column & 1);
    return p->cell == pl->t->lead && strays ? pl->t->lead : column;
}

/* Does everything from the next cell on fit well on one line below? */
static bool rest_fits(const placing *pl, size_t i)
{
    const fmt_row *r = &pl->rows[i];
    const fmt_cell *c = next_cell(pl, i), *last = &pl->f->cells.at[r->cell_at + r->n_cell - 1];
    uint32_t begin;
    cell_gap(pl->f, c, &begin);
    if (c < last && cells_width(pl->f, c + 1, last) == INT_MAX)
        return false;
    return items_width(pl->f, begin, last->end) <= FOLD_COLUMNS - pl->p[i].below;
}

/* Lines below begin with the cell the table names, unless there is such a line already, or the cell
 * stands far to the right. */
static void set_below(const table *t, progress *p, int place)
{
    if (p->cell > 0 && p->cell == t->below && !p->alone && place >= 0 && place < t->columns / 2)
        p->below = place;
}

/* The column to let a row off that is `over` columns too long: the last that is enough, or else the
 * one that moved it most. */
static int worst_column(const progress *p, int over)
{
    int worst = 0;
    for (int i = COLUMN_MAX - 1; i > 0; i--) {
        if (p->slack[i] >= over)
            return i;
        worst = p->slack[i] > p->slack[worst] ? i : worst;
    }
    return worst;
}

/* Say where the cell could begin, and whether it takes part in the column. */
static bool cell_joins(const placing *pl, size_t i, fmt_cell *c, int column)
{
    progress *p = &pl->p[i];
    const table *t = pl->t;
    uint32_t begin;
    c->place = p->at + cell_gap(pl->f, c, &begin);
    if (p->lost) {
        c->place = c->n_comment > 0 ? FMT_DOWN : FMT_FLOW;
        return false;
    }
    set_below(t, p, c->place);
    bool behind = p->cell >= t->lead, first = p->cell == t->lead;
    bool fold = p->broken && first && t->fold && rest_fits(pl, i);
    bool over = p->broken && behind && p->at > p->below &&
                items_width(pl->f, begin, c->end) > t->columns - c->place;
    if (c->n_comment > 0 || fold || over) {
        c->place = FMT_DOWN;
        if (p->at > t->columns && p->moved > 0 && p->spilt == 0)
            p->spilt = worst_column(p, p->at - t->columns);
        p->at = p->below;
        memset(p->slack, 0, sizeof p->slack);
        p->moved = 0;
        p->alone = !fold;
        return false;
    }
    return !p->alone && !(pl->rows[i].loose >> column & 1);
}

static void cell_done(const placing *pl, size_t i, fmt_cell *c)
{
    progress *p = &pl->p[i];
    const table *t = pl->t;
    uint32_t begin;
    cell_gap(pl->f, c, &begin);
    int width = items_width(pl->f, begin, c->end);
    int at = c->place >= 0 ? c->place : p->below;
    set_below(t, p, c->place);
    p->cell++;
    bool over = width > t->columns - at, due = t->firm || p->moved == 0 || width == INT_MAX;
    p->lost |= over && due && (p->broken || t->firm);
    if (!p->lost)
        p->at = at + width;
}

static void place_column(placing *pl, int column)
{
    pl->place.n = pl->who.n = 0;
    for (size_t i = 0; i < pl->n_row; i++) {
        progress *p = &pl->p[i];
        int next = next_column(pl, i);
        fmt_cell *c = next < COLUMN_MAX ? next_cell(pl, i) : NULL;
        /* A row without a cell here still marks where the lead ends. */
        bool empty = column == pl->t->lead && next > column && c && p->cell == column;
        uint32_t begin;
        if (empty)
            c->place = p->at + cell_gap(pl->f, c, &begin);
        if (empty || (next == column && cell_joins(pl, i, c, column))) {
            VEC_PUSH(&pl->place, c->place);
            VEC_PUSH(&pl->who, i);
        } else if (next == column) {
            pl->n_odd += pl->rows[i].loose >> c->column & 1;
            cell_done(pl, i, c);
        }
    }
    const column_rule *rule = &pl->t->rule[column];
    if (pl->who.n > 0)
        fmt_align(pl->f, pl->place.at, pl->who.n, rule->quarters,
                  rule->reach >> (pl->narrow && column == pl->t->lead));
    int main_place = INT_MAX;
    for (size_t k = 0; k < pl->who.n; k++)
        main_place = pl->place.at[k] < main_place ? pl->place.at[k] : main_place;
    for (size_t k = 0; k < pl->who.n; k++) {
        size_t i = pl->who.at[k];
        progress *p = &pl->p[i];
        fmt_cell *c = next_cell(pl, i);
        int slack = pl->place.at[k] - c->place;
        c->place = pl->place.at[k];
        pl->n_odd += c->place > main_place;
        if (next_column(pl, i) != column) {
            p->at += slack;
            continue;
        }
        p->slack[column] = slack;
        p->moved += slack;
        cell_done(pl, i, c);
    }
}

/* Give every cell its place; false if a row had to be let off a column. */
static bool place_rows(placing *pl)
{
    const table *t = pl->t;
    int indent = pl->f->indent;
    bool settled = true;
    pl->n_odd = 0;
    for (size_t i = 0; i < pl->n_row; i++) {
        bool broken = row_width(pl->f, &pl->rows[i]) > t->columns - indent;
        pl->p[i] = (progress){.at = indent, .below = indent + pl->rows[i].hang, .broken = broken};
    }
    for (int column = 0; column < t->n_column; column++)
        place_column(pl, column);
    for (size_t i = 0; i < pl->n_row && !t->firm; i++) {
        const progress *p = &pl->p[i];
        int off = p->spilt;
        if (!p->lost && p->at > t->columns && p->moved > 0)
            off = worst_column(p, p->at - t->columns);
        if (off == 0)
            continue;
        pl->rows[i].loose |= 1u << off;
        settled = false;
    }
    return settled;
}

/* The comments in front of a cell, then a line for it. */
static void put_comments(fmt *f, const fmt_cell *c, int indent)
{
    for (uint32_t i = 0; i < c->n_comment; i++) {
        const fmt_comment *m = &f->comments.at[c->comment_at + i];
        if (m->own)
            fmt_line_note(f, indent, m->text);
        else
            fmt_line_trail(f, m->text);
    }
    fmt_line_begin(f, indent);
}

static void print_row(fmt *f, const table *t, const fmt_row *r, int below)
{
    bool flat = t == &tables[ROW_ASSIGN]; /* its groups span cells */
    fmt_line_begin(f, f->indent);
    for (uint32_t i = 0; i < r->n_cell; i++) {
        const fmt_cell *c = &f->cells.at[r->cell_at + i];
        uint32_t begin;
        int gap = cell_gap(f, c, &begin);
        bool down = c->place == FMT_DOWN;
        if (c->place == FMT_FLOW)
            down = i >= (uint32_t)t->lead &&
                   items_width(f, begin, c->end) > t->columns - f->line.width - gap;
        if (down)
            put_comments(f, c, below);
        else if (i > 0)
            fmt_line_fill(f, c->place > f->line.width + gap ? c->place - f->line.width : gap);
        fmt_print(f, begin, c->end, t->columns, below, flat);
    }
    if (r->trail.n > 0)
        fmt_line_trail(f, r->trail);
}

/* Place the rows until none is too long for want of a column; false if that let off some. */
static bool settle(placing *pl, bool narrow)
{
    enum { ROUNDS_MAX = 8 };
    pl->narrow = narrow;
    for (size_t i = 0; i < pl->n_row; i++)
        pl->rows[i].loose = 0;
    int round = 0;
    while (!place_rows(pl) && round < ROUNDS_MAX)
        round++;
    return round == 0;
}

static void print_table(fmt *f, const table *t, fmt_row *rows, size_t n_row)
{
    VEC(progress) p = {0};
    for (size_t i = 0; i < n_row; i++)
        VEC_PUSH(&p, (progress){0});
    placing pl = {.f = f, .t = t, .rows = rows, .n_row = n_row, .p = p.at};
    if (!settle(&pl, false)) { /* narrower columns may suit more rows */
        size_t n_odd = pl.n_odd;
        settle(&pl, true);
        if (pl.n_odd >= n_odd)
            settle(&pl, false);
    }
    for (size_t i = 0; i < n_row; i++)
        print_row(f, t, &rows[i], p.at[i].below);
    VEC_FREE(&p);
    VEC_FREE(&pl.place);
    VEC_FREE(&pl.who);
}

/* Two assignments of one shape: the same call, the same punctuation, other names. */
static bool same_shape(const fmt *f, const fmt_row *a, const fmt_row *b)
{
    uint32_t n = a->token_end - a->token_at;
    if (n != b->token_end - b->token_at || a->n_cell != b->n_cell)
        return false;
    const fmt_token *x = &f->tokens.at[a->token_at], *y = &f->tokens.at[b->token_at];
    bool callee = false, called = false;
    for (uint32_t i = 0; i < n; i++) {
        if (x[i].kind != y[i].kind)
            return false;
        called |= callee && x[i].kind == '(';
        if (callee && !called && !str_eq(x[i].text, y[i].text))
            return false;
        callee |= x[i].kind == '=';
    }
    return true;
}

/* Assignments stand as they are, unless neighbours have one shape. */
static void print_assigns(fmt *f)
{
    for (size_t i = 0, n; i < f->rows.n; i += n) {
        fmt_row *r = &f->rows.at[i];
        for (n = 1; i + n < f->rows.n && r->n_cell > 1 && same_shape(f, r, r + n); n++)
            ;
        size_t n_fit = 0;
        for (size_t k = 0; k < n; k++)
            n_fit += row_width(f, r + k) <= FMT_CODE_COLUMNS - f->indent;
        if (n > 1 && n_fit == n) {
            print_table(f, &tables[ROW_ASSIGN], r, n);
            continue;
        }
        for (size_t k = 0; k < n; k++) {
            f->cells.at[r[k].cell_at].end = f->cells.at[r[k].cell_at + r[k].n_cell - 1].end;
            r[k].n_cell = 1;
            print_table(f, &tables[ROW_PLAIN], r + k, 1);
        }
    }
}

void fmt_rows_print(fmt *f)
{
    if (f->kind == ROW_ASSIGN)
        print_assigns(f);
    else if (f->rows.n > 0)
        print_table(f, &tables[f->kind], f->rows.at, f->rows.n);
    f->rows.n = f->cells.n = f->items.n = 0;
    f->at = f->n_hard = 0;
}
