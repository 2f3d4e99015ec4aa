/* diag_print.c - diagnostics as text for people and as JSON for tools. */
#include "runtime/base/diag_impl.h"

#include "runtime/base/json_write.h"
#include "runtime/base/utf8.h"

enum { GUTTER_MIN = 5 }; /* width of the line number */

#define PAINT_PLACE "\033[1m"
#define PAINT_ERROR "\033[1;31m"
#define PAINT_WARNING "\033[1;33m"
#define PAINT_NOTE "\033[1;36m"
#define PAINT_CARET "\033[1;32m"
#define PAINT_OFF "\033[0m"

typedef struct {
    strbuf *out;
    bool colour;
    int gutter;
} printer;

static void paint(printer *p, const char *code)
{
    if (p->colour)
        strbuf_put(p->out, str_of(code));
}

static void put_painted(printer *p, const char *code, const char *text)
{
    paint(p, code);
    strbuf_put(p->out, str_of(text));
    paint(p, PAINT_OFF);
}

static void put_gutter(printer *p, uint32_t line)
{
    if (line)
        strbuf_add(p->out, "%*u |", p->gutter, (unsigned)line);
    else
        strbuf_add(p->out, "%*s |", p->gutter, "");
}

/* The line of a place, and below it a caret with tildes. */
static void put_quote(printer *p, const diag_place *place)
{
    put_gutter(p, place->line);
    if (place->quote.n)
        strbuf_putc(p->out, ' ');
    strbuf_put(p->out, place->quote);
    strbuf_putc(p->out, '\n');
    put_gutter(p, 0);
    strbuf_fill(p->out, ' ', 1 + place->caret);
    paint(p, PAINT_CARET);
    strbuf_putc(p->out, '^');
    strbuf_fill(p->out, '~', place->underline - 1);
    paint(p, PAINT_OFF);
    strbuf_putc(p->out, '\n');
}

/* file:line:col, or the file alone when it is empty. */
static void put_place(printer *p, const diag_place *place)
{
    utf8_put_safe(p->out, place->file);
    if (place->line)
        strbuf_add(p->out, ":%u:%u", (unsigned)place->line, (unsigned)place->column);
}

static void put_note(printer *p, const diag_place *place, bool same_line, str message)
{
    strbuf_add(p->out, "%*s = ", p->gutter, "");
    put_painted(p, PAINT_NOTE, "note:");
    strbuf_putc(p->out, ' ');
    utf8_put_safe(p->out, message);
    if (place->file.p) {
        strbuf_put(p->out, STR(": "));
        put_place(p, place);
    }
    strbuf_putc(p->out, '\n');
    if (place->line && !same_line)
        put_quote(p, place);
}

static int digits(uint32_t n)
{
    int d = 1;
    for (; n >= 10; n /= 10)
        d++;
    return d;
}

static int gutter_for(int gutter, const diag_place *place)
{
    int need = place->line ? digits(place->line) : 0;
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
    const diag_place *place = &item->place;
    p->gutter = gutter_for(GUTTER_MIN, place);
    for (const diag_note *n = item->notes; n; n = n->next)
        p->gutter = gutter_for(p->gutter, &n->place);

    paint(p, PAINT_PLACE);
    if (place->file.p)
        put_place(p, place);
    else
        strbuf_put(p->out, STR("weft"));
    strbuf_putc(p->out, ':');
    paint(p, PAINT_OFF);
    bool error = item->entry.severity == DIAG_ERROR;
    strbuf_putc(p->out, ' ');
    paint(p, error ? PAINT_ERROR : PAINT_WARNING);
    strbuf_add(p->out, "%s[%s]:", error ? "error" : "warning", row->name);
    paint(p, PAINT_OFF);
    strbuf_putc(p->out, ' ');
    utf8_put_safe(p->out, item->entry.message);
    strbuf_putc(p->out, '\n');
    if (place->line)
        put_quote(p, place);
    for (const diag_note *n = item->notes; n; n = n->next)
        put_note(p, &n->place, n->same_line, n->message);
    if (hint_of(item))
        put_note(p, &(diag_place){0}, false, str_of(hint_of(item)));
}

static void put_count(printer *p, size_t n, const char *what)
{
    if (n > DIAG_ERRORS_MAX)
        strbuf_add(p->out, "%zu %s, %d shown\n", n, what, DIAG_ERRORS_MAX);
}

void diag_text(const weft_diag *dg, strbuf *out, bool colour)
{
    printer p = {.out = out, .colour = colour};
    for (size_t i = 0; i < dg->n_item; i++)
        put_item(&p, dg->items[i]);
    put_count(&p, dg->n_error, "errors");
    put_count(&p, dg->n_warning, "warnings");
}

const char *diag_shown(weft_diag *dg)
{
    strbuf_reset(&dg->scratch);
    diag_text(dg, &dg->scratch, false);
    return strbuf_view(&dg->scratch).p;
}

void diag_print(const weft_diag *dg, FILE *to, bool colour)
{
    strbuf text = {0};
    diag_text(dg, &text, colour);
    fwrite(strbuf_view(&text).p, 1, text.n, to);
    strbuf_free(&text);
}

static void json_place(json_writer *w, const diag_place *place)
{
    json_key(w, "file");
    if (place->file.p)
        json_str(w, place->file);
    else
        json_null(w);
    static const char *const keys[4] = {"line", "column", "end_line", "end_column"};
    const uint32_t at[4] = {place->line, place->column, place->end_line, place->end_column};
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
    for (size_t i = 0; i < dg->n_item; i++) {
        const diag_item *item = dg->items[i];
        const diag_row *row = diag_row_of(item->entry.code);
        json_open(&w, '{');
        json_key_text(&w, "code", row->name);
        json_key_text(&w, "severity", item->entry.severity == DIAG_ERROR ? "error" : "warning");
        json_key_str(&w, "message", item->entry.message);
        json_place(&w, &item->place);
        json_key_text(&w, "hint", hint_of(item));
        json_key_open(&w, "notes", '[');
        for (const diag_note *n = item->notes; n; n = n->next) {
            json_open(&w, '{');
            json_key_str(&w, "message", n->message);
            json_place(&w, &n->place);
            json_close(&w, '}');
        }
        json_close(&w, ']');
        json_close(&w, '}');
    }
    json_close(&w, ']');
}

const char *diag_shown_json(weft_diag *dg)
{
    strbuf_reset(&dg->scratch);
    diag_json(dg, &dg->scratch);
    return strbuf_view(&dg->scratch).p;
}
