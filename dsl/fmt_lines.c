/* fmt_lines.c - lines of text as they grow, and the comments behind them. */
#include "dsl/fmt.h"

#include "dsl/dsl.h"

enum { COMMENT_GAP = 2, COMMENT_QUARTERS = 3, COMMENT_REACH = 24 };

static void line_end(fmt *f)
{
    if (!f->open)
        return;
    f->line.end = (uint32_t)f->text.n;
    VEC_PUSH(&f->lines, f->line);
    f->open = false;
}

void fmt_line_fill(fmt *f, int n)
{
    if (f->full || n <= 0)
        return;
    strbuf_fill(&f->text, ' ', (size_t)n);
    f->line.width += n;
}

void fmt_line_begin(fmt *f, int indent)
{
    line_end(f);
    f->open = true;
    f->line = (fmt_line){.begin = (uint32_t)f->text.n};
    fmt_line_fill(f, indent);
}

/* Padding makes the text longer than the source was; past the longest source there is no use in more. */
void fmt_line_put(fmt *f, str text, int width)
{
    f->full |= f->text.n + text.n > DSL_SOURCE_MAX;
    if (f->full)
        return;
    strbuf_put(&f->text, text);
    f->line.width += width;
}

void fmt_line_note(fmt *f, int indent, str comment)
{
    fmt_line_begin(f, indent);
    fmt_line_put(f, comment, 0);
    line_end(f);
}

void fmt_line_trail(fmt *f, str comment)
{
    WEFT_ASSERT(f->open && f->line.comment.n == 0);
    f->line.comment = comment;
}

void fmt_line_blank(fmt *f)
{
    fmt_line_begin(f, 0);
    line_end(f);
}

static bool line_has_at(const fmt *f, const fmt_line *l, char c, bool last)
{
    str s = {f->text.p + l->begin, l->end - l->begin};
    while (s.n > 0 && s.p[0] == ' ')
        s.p++, s.n--;
    return s.n > 0 && s.p[last ? s.n - 1 : 0] == c;
}

/* How many lines from the i-th on carry comments that line up. Braces part them. */
static size_t comment_run(const fmt *f, size_t i)
{
    size_t n = 0;
    while (i + n < f->lines.n && f->lines.at[i + n].comment.n > 0) {
        if (n > 0 && (line_has_at(f, &f->lines.at[i + n - 1], '{', true) ||
                      line_has_at(f, &f->lines.at[i + n], '}', false)))
            break;
        n++;
    }
    return n;
}

void fmt_lines_write(fmt *f, strbuf *out)
{
    line_end(f);
    VEC(int) place = {0};
    for (size_t i = 0; i < f->lines.n;) {
        size_t n = comment_run(f, i);
        place.n = 0;
        for (size_t k = 0; k < n; k++)
            VEC_PUSH(&place, f->lines.at[i + k].width + COMMENT_GAP);
        if (n > 0)
            fmt_align(f, place.at, n, COMMENT_QUARTERS, COMMENT_REACH);
        for (size_t k = 0; k < n || k == 0; k++) {
            const fmt_line *l = &f->lines.at[i + k];
            strbuf_put(out, (str){f->text.p + l->begin, l->end - l->begin});
            if (n > 0) {
                strbuf_fill(out, ' ', (size_t)(place.at[k] - l->width));
                strbuf_put(out, l->comment);
            }
            strbuf_putc(out, '\n');
            if (out->n > 2 * (size_t)DSL_SOURCE_MAX)
                f->full = true;
        }
        i += n > 0 ? n : 1;
    }
    VEC_FREE(&place);
}
