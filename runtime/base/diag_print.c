/* diag_print.c - diagnostics as text for people and as JSON for tools.
 *
 * The quoted line is laid out in terminal cells: tabs go to the next multiple of 4, wide characters
 * take two cells, and what would steer the terminal is spelt \xNN. A line longer than CELLS_MAX is
 * cut to a window around the caret. */
#include "runtime/base/diag_impl.h"

#include "runtime/base/json_write.h"
#include "runtime/base/utf8.h"

enum {
    TAB_CELLS = 4,
    CELLS_MAX = 160,
    CELLS_BEFORE = 60, /* kept before the caret when a line is cut */
    GUTTER_MIN = 5,    /* width of the line number */
};

#define PAINT_PLACE "\033[1m"
#define PAINT_ERROR "\033[1;31m"
#define PAINT_WARNING "\033[1;33m"
#define PAINT_NOTE "\033[1;36m"
#define PAINT_CARET "\033[1;32m"
#define PAINT_OFF "\033[0m"

typedef struct {
    strbuf out;
    bool colour;
    int gutter;
} printer;

static void paint(printer *p, const char *code)
{
    if (p->colour)
        strbuf_put(&p->out, str_of(code));
}

static void put_painted(printer *p, const char *code, const char *text)
{
    paint(p, code);
    strbuf_put(&p->out, str_of(text));
    paint(p, PAINT_OFF);
}

/* What one character of a quoted line becomes. */
typedef struct {
    size_t bytes; /* of input */
    size_t cells;
    enum { GLYPH_PLAIN, GLYPH_TAB, GLYPH_ESCAPED } as;
} glyph;

static glyph glyph_at(str rest, size_t cell)
{
    uint32_t cp;
    size_t n = utf8_decode(rest, &cp);
    if (n == 0)
        return (glyph){1, 4, GLYPH_ESCAPED};
    if (cp == '\t')
        return (glyph){1, TAB_CELLS - cell % TAB_CELLS, GLYPH_TAB};
    if (utf8_is_control(cp))
        return (glyph){n, 4 * n, GLYPH_ESCAPED};
    return (glyph){n, (size_t)utf8_cells(cp), GLYPH_PLAIN};
}

static void put_glyph(strbuf *out, str s, glyph g)
{
    if (g.as == GLYPH_TAB)
        strbuf_fill(out, ' ', g.cells);
    else
        utf8_put_safe(out, s);
}

static str str_from(str s, size_t at)
{
    return (str){s.p + at, s.n - at};
}

/* The part of a line that is shown, in cells, and where the underlined range falls. */
typedef struct {
    size_t first, last; /* shown: [first, last) */
    size_t begin, end;  /* underlined: [begin, end), at least one cell */
    bool cut_before, cut_after;
} window;

static window window_of(str line, size_t at, size_t at_end)
{
    window w = {0};
    size_t cell = 0, i = 0;
    bool begun = false;
    while (i < line.n && !(begun && cell > w.begin + CELLS_MAX)) {
        glyph g = glyph_at(str_from(line, i), cell);
        if (!begun && i + g.bytes > at) {
            w.begin = w.end = cell;
            begun = true;
        }
        cell += g.cells;
        if (begun && i < at_end)
            w.end = cell;
        i += g.bytes;
    }
    if (!begun)
        w.begin = w.end = cell; /* at the end of the line */
    if (w.end <= w.begin)
        w.end = w.begin + 1;

    bool more = i < line.n; /* measured only as far as a window can reach */
    w.last = cell;
    if (cell > CELLS_MAX || more) {
        if (w.begin > CELLS_BEFORE && w.begin > CELLS_MAX - CELLS_BEFORE) {
            w.first = w.begin - CELLS_BEFORE;
            w.cut_before = true;
        }
        if (more || cell > w.first + CELLS_MAX) {
            w.last = w.first + CELLS_MAX;
            w.cut_after = true;
            if (w.end > w.last)
                w.end = w.last;
        }
    }
    return w;
}

static void put_gutter(printer *p, uint32_t line)
{
    if (line)
        strbuf_add(&p->out, "%*u |", p->gutter, (unsigned)line);
    else
        strbuf_add(&p->out, "%*s |", p->gutter, "");
}

static void trim_spaces(strbuf *b)
{
    while (b->n && b->p[b->n - 1] == ' ')
        b->p[--b->n] = 0;
}

/* The line of loc, and below it a caret with tildes. */
static void put_quote(printer *p, weft_loc loc)
{
    source_place place = source_find(loc.src, loc.begin);
    size_t length = loc.end > loc.begin ? loc.end - loc.begin : 0;
    window w = window_of(place.text, place.at, place.at + length);

    put_gutter(p, place.line);
    strbuf_putc(&p->out, ' ');
    if (w.cut_before)
        strbuf_put(&p->out, STR("..."));
    size_t cell = 0;
    for (size_t i = 0; i < place.text.n && (cell < w.last || !w.cut_after);) {
        str rest = str_from(place.text, i);
        glyph g = glyph_at(rest, cell);
        if (cell >= w.first && cell + g.cells <= w.last)
            put_glyph(&p->out, (str){rest.p, g.bytes}, g);
        else if (cell + g.cells > w.first) /* across an edge of the window */
            strbuf_fill(&p->out, ' ',
                        (cell + g.cells < w.last ? cell + g.cells : w.last) -
                            (cell > w.first ? cell : w.first));
        cell += g.cells;
        i += g.bytes;
    }
    if (w.cut_after)
        strbuf_put(&p->out, STR("..."));
    else
        trim_spaces(&p->out);
    strbuf_putc(&p->out, '\n');

    put_gutter(p, 0);
    strbuf_fill(&p->out, ' ', (w.cut_before ? 4 : 1) + w.begin - w.first);
    paint(p, PAINT_CARET);
    strbuf_putc(&p->out, '^');
    strbuf_fill(&p->out, '~', w.end - w.begin - 1);
    paint(p, PAINT_OFF);
    strbuf_putc(&p->out, '\n');
}

/* file:line:col, or the file alone when it is empty. */
static void put_place(printer *p, weft_loc loc)
{
    utf8_put_safe(&p->out, str_of(loc.src->name));
    if (loc.src->text.n) {
        source_place place = source_find(loc.src, loc.begin);
        strbuf_add(&p->out, ":%u:%u", (unsigned)place.line, (unsigned)place.column);
    }
}

static bool has_lines(weft_loc loc)
{
    return loc.src && loc.src->text.n;
}

static void put_note(printer *p, weft_loc main, weft_loc loc, str message)
{
    strbuf_add(&p->out, "%*s = ", p->gutter, "");
    put_painted(p, PAINT_NOTE, "note:");
    strbuf_putc(&p->out, ' ');
    utf8_put_safe(&p->out, message);
    if (loc.src) {
        strbuf_put(&p->out, STR(": "));
        put_place(p, loc);
    }
    strbuf_putc(&p->out, '\n');
    if (has_lines(loc) && !(main.src == loc.src && source_find(main.src, main.begin).line ==
                                                       source_find(loc.src, loc.begin).line))
        put_quote(p, loc);
}

static int digits(uint32_t n)
{
    int d = 1;
    for (; n >= 10; n /= 10)
        d++;
    return d;
}

static int gutter_for(int gutter, weft_loc loc)
{
    int need = has_lines(loc) ? digits(source_find(loc.src, loc.begin).line) : 0;
    return need > gutter ? need : gutter;
}

/* The row's own hint stands in when the place that found the fault added no note. */
static const char *hint_of(const diag_item *item)
{
    return item->notes ? NULL : diag_row_of(item->entry.code)->hint;
}

static void put_item(printer *p, const diag_item *item)
{
    const diag_row *row = diag_row_of(item->entry.code);
    weft_loc loc = item->entry.loc;
    p->gutter = gutter_for(GUTTER_MIN, loc);
    for (const diag_note *n = item->notes; n; n = n->next)
        p->gutter = gutter_for(p->gutter, n->loc);

    paint(p, PAINT_PLACE);
    if (loc.src)
        put_place(p, loc);
    else
        strbuf_put(&p->out, STR("weft"));
    strbuf_putc(&p->out, ':');
    paint(p, PAINT_OFF);
    bool error = item->entry.severity == DIAG_ERROR;
    strbuf_putc(&p->out, ' ');
    paint(p, error ? PAINT_ERROR : PAINT_WARNING);
    strbuf_add(&p->out, "%s[%s]:", error ? "error" : "warning", row->name);
    paint(p, PAINT_OFF);
    strbuf_putc(&p->out, ' ');
    utf8_put_safe(&p->out, item->entry.message);
    strbuf_putc(&p->out, '\n');
    if (has_lines(loc))
        put_quote(p, loc);
    for (const diag_note *n = item->notes; n; n = n->next)
        put_note(p, loc, n->loc, n->message);
    if (hint_of(item))
        put_note(p, loc, WEFT_NOWHERE, str_of(hint_of(item)));
}

static void put_count(printer *p, size_t n, const char *what)
{
    if (n > DIAG_ERRORS_MAX)
        strbuf_add(&p->out, "%zu %s, %d shown\n", n, what, DIAG_ERRORS_MAX);
}

void diag_print(const weft_diag *dg, FILE *to, bool colour)
{
    printer p = {.colour = colour};
    for (size_t i = 0; i < dg->items.n; i++)
        put_item(&p, dg->items.at[i]);
    put_count(&p, dg->n_error, "errors");
    put_count(&p, dg->n_warning, "warnings");
    str text = strbuf_view(&p.out);
    fwrite(text.p, 1, text.n, to);
    strbuf_free(&p.out);
}

static void json_place(json_writer *w, weft_loc loc)
{
    json_key(w, "file");
    if (loc.src)
        json_str(w, str_of(loc.src->name));
    else
        json_null(w);
    static const char *const keys[4] = {"line", "column", "end_line", "end_column"};
    int64_t at[4] = {0};
    if (has_lines(loc)) {
        source_place begin = source_find(loc.src, loc.begin);
        source_place end = source_find(loc.src, loc.end > loc.begin ? loc.end : loc.begin);
        at[0] = begin.line;
        at[1] = begin.column;
        at[2] = end.line;
        at[3] = end.column;
    }
    for (int i = 0; i < 4; i++) {
        json_key(w, keys[i]);
        if (at[i])
            json_int(w, at[i]);
        else
            json_null(w);
    }
}

void diag_json(const weft_diag *dg, strbuf *out)
{
    json_writer w = {.out = out};
    json_open(&w, '[');
    for (size_t i = 0; i < dg->items.n; i++) {
        const diag_item *item = dg->items.at[i];
        const diag_row *row = diag_row_of(item->entry.code);
        json_open(&w, '{');
        json_key_text(&w, "code", row->name);
        json_key_text(&w, "severity", item->entry.severity == DIAG_ERROR ? "error" : "warning");
        json_key_str(&w, "message", item->entry.message);
        json_place(&w, item->entry.loc);
        json_key(&w, "hint");
        if (hint_of(item))
            json_str(&w, str_of(hint_of(item)));
        else
            json_null(&w);
        json_key(&w, "notes");
        json_open(&w, '[');
        for (const diag_note *n = item->notes; n; n = n->next) {
            json_open(&w, '{');
            json_key_str(&w, "message", n->message);
            json_place(&w, n->loc);
            json_close(&w, '}');
        }
        json_close(&w, ']');
        json_close(&w, '}');
    }
    json_close(&w, ']');
}
