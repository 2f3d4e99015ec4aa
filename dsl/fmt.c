/* fmt.c - a source in its one canonical layout.
 *
 * Nothing leaves here unproven: the new text is parsed again, and its tree and its comments are
 * compared with the old ones. */
#include "dsl/fmt.h"

#include "dsl/dsl.h"

static void fmt_free(fmt *f)
{
    VEC_FREE(&f->tokens);
    VEC_FREE(&f->comments);
    VEC_FREE(&f->rows);
    VEC_FREE(&f->cells);
    VEC_FREE(&f->items);
    VEC_FREE(&f->frames);
    VEC_FREE(&f->lines);
    VEC_FREE(&f->columns);
    strbuf_free(&f->text);
}

bool fmt_layout(weft_diag *dg, arena *a, const source *src, const ast *file, strbuf *out)
{
    fmt f = {0};
    fmt_tokens_read(&f, dg, a, src);
    fmt_file(&f, file);
    fmt_lines_write(&f, out);
    bool fits = !f.full && out->n <= DSL_SOURCE_MAX;
    fmt_free(&f);
    return fits;
}

/* The next comment at or behind *at, without the white space at its end; empty if there is none. */
static str next_comment(str text, size_t *at)
{
    bool quoted = false;
    for (size_t i = *at; i < text.n; i++) {
        if (quoted && text.p[i] == '\\') {
            i++;
        } else if (text.p[i] == '"') {
            quoted = !quoted;
        } else if (text.p[i] == '#' && !quoted) {
            const char *end = memchr(text.p + i, '\n', text.n - i);
            str c = {text.p + i, end ? (size_t)(end - text.p) - i : text.n - i};
            *at = i + c.n;
            while (c.p[c.n - 1] == ' ' || c.p[c.n - 1] == '\t' || c.p[c.n - 1] == '\r')
                c.n--;
            return c;
        }
    }
    return STR("");
}

static bool same_comments(str x, str y)
{
    for (size_t i = 0, k = 0;;) {
        str a = next_comment(x, &i), b = next_comment(y, &k);
        if (a.n == 0 || !str_eq(a, b))
            return a.n == 0 && b.n == 0;
    }
}

/* Is the new text the same program with the same comments, and does it stay as it is? */
static bool proven(arena *a, const source *src, const ast *file, str text)
{
    weft_diag *dg = diag_create();
    source *again = source_from_text(a, src->name, text);
    ast *tree;
    bool same = dsl_parse(dg, a, again, &tree) == WEFT_OK && ast_equal(file, tree) &&
                same_comments(src->text, text);
#ifndef NDEBUG
    strbuf twice = {0};
    if (same)
        same = fmt_layout(dg, a, again, tree, &twice) && str_eq(strbuf_view(&twice), text);
    strbuf_free(&twice);
#endif
    diag_destroy(dg);
    return same;
}

weft_status dsl_fmt(weft_diag *dg, const source *src, strbuf *out)
{
    arena *a = arena_create();
    strbuf text = {0};
    ast *file;
    weft_status st = dsl_parse(dg, a, src, &file);
    if (st != WEFT_OK)
        goto done;
    if (!fmt_layout(dg, a, src, file, &text)) {
        st =
            weft_fail(dg, W1101, (weft_loc){src, 0, 0},
                      "laid out, this file would have more than the %d bytes a model file may have",
                      DSL_SOURCE_MAX);
        goto done;
    }
    bool same = proven(a, src, file, strbuf_view(&text));
#ifndef NDEBUG
    WEFT_ASSERT(same);
#endif
    strbuf_put(out, same ? strbuf_view(&text) : src->text); /* as it was is better than damaged */
done:
    strbuf_free(&text);
    arena_destroy(a);
    return st;
}
