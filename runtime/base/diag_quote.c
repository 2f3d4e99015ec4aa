/* diag_quote.c - a place in a text as it will be shown: where it is, and its line with the range to underline.
 *
 * The quoted line is laid out in terminal cells: tabs go to the next multiple of 4, wide characters
 * take two cells, and what would steer the terminal is spelt \xNN. A line longer than CELLS_MAX is
 * cut to a window around the caret. */
#include "runtime/base/diag_impl.h"

#include "runtime/base/utf8.h"

enum {
    TAB_CELLS = 4,
    CELLS_MAX = 160,
    CELLS_BEFORE = 60, /* kept before the caret when a line is cut */
    QUOTE_BYTES =
        4096, /* characters without a width of their own could make a window as long as the text */
};

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

static void trim_spaces(strbuf *b)
{
    while (b->n && b->p[b->n - 1] == ' ')
        b->p[--b->n] = 0;
}

static void put_line(strbuf *out, str line, window *w)
{
    if (w->cut_before)
        strbuf_put(out, STR("..."));
    size_t cell = 0;
    for (size_t i = 0; i < line.n && (cell < w->last || !w->cut_after);) {
        str rest = str_from(line, i);
        glyph g = glyph_at(rest, cell);
        if (out->n >= QUOTE_BYTES)
            w->cut_after = true, w->last = cell;
        else if (cell >= w->first && cell + g.cells <= w->last)
            put_glyph(out, (str){rest.p, g.bytes}, g);
        else if (cell + g.cells > w->first) /* across an edge of the window */
            strbuf_fill(out, ' ',
                        (cell + g.cells < w->last ? cell + g.cells : w->last) -
                            (cell > w->first ? cell : w->first));
        cell += g.cells;
        i += g.bytes;
    }
    if (w->cut_after)
        strbuf_put(out, STR("..."));
    else
        trim_spaces(out);
}

diag_place diag_place_of(arena *a, strbuf *scratch, weft_loc loc)
{
    diag_place place = {.underline = 1};
    if (!loc.src)
        return place;
    place.file = arena_str(a, str_of(loc.src->name));
    if (!loc.src->text.n)
        return place;
    source_place begin = source_find(loc.src, loc.begin);
    source_place end = source_find(loc.src, loc.end > loc.begin ? loc.end : loc.begin);
    size_t length = loc.end > loc.begin ? loc.end - loc.begin : 0;
    window w = window_of(begin.text, begin.at, begin.at + length);
    place.line = begin.line;
    place.column = begin.column;
    place.end_line = end.line;
    place.end_column = end.column;
    place.caret = (uint32_t)((w.cut_before ? 3 : 0) + w.begin - w.first);
    place.underline = (uint32_t)(w.end - w.begin);
    strbuf_reset(scratch);
    put_line(scratch, begin.text, &w);
    place.quote = arena_str(a, strbuf_view(scratch));
    return place;
}
