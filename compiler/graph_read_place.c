/* graph_read_place.c - places in graph text, and the table of names.
 *
 * The text gives file, line and column, but not the file. So each file becomes a source of blanks,
 * with lines just long enough, in which source_find finds the same line and column again. */
#include "compiler/graph_read.h"

#include "runtime/base/mem.h"
#include <stdlib.h>

/* ---- names ---- */

struct name_slot {
    str name; /* p NULL: free */
    int id;
};

static size_t slot_of(const name_table *t, str name)
{
    /* Mixed with an address, so that a text cannot be made whose names all collide. */
    uint64_t h = str_hash(name) ^ (uint64_t)(uintptr_t)t->at;
    h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
    size_t i = (size_t)(h ^ h >> 33) & (t->cap - 1);
    while (t->at[i].name.p && !str_eq(t->at[i].name, name))
        i = (i + 1) & (t->cap - 1);
    return i;
}

int name_find(const name_table *t, str name)
{
    if (t->n == 0)
        return -1;
    size_t i = slot_of(t, name);
    return t->at[i].name.p ? t->at[i].id : -1;
}

bool name_add(name_table *t, str name, int id)
{
    if ((t->n + 1) * 2 > t->cap) {
        name_table old = *t;
        t->cap = old.cap ? old.cap * 2 : 64;
        t->at = mem_alloc(mem_product(t->cap, sizeof *t->at));
        memset(t->at, 0, t->cap * sizeof *t->at);
        for (size_t i = 0; i < old.cap; i++)
            if (old.at[i].name.p)
                t->at[slot_of(t, old.at[i].name)] = old.at[i];
        mem_free(old.at);
    }
    size_t i = slot_of(t, name);
    if (t->at[i].name.p)
        return false;
    t->at[i] = (struct name_slot){name, id};
    t->n++;
    return true;
}

void name_free(name_table *t)
{
    mem_free(t->at);
}

/* ---- places ---- */

weft_status read_file(reader *r)
{
    str shown, name;
    WEFT_TRY(scan_file(&r->s, &shown));
    for (size_t i = 0; i < r->files.n; i++)
        if (str_eq(r->files.at[i].shown, shown))
            return SCAN_FAIL(&r->s, "two files are called " STR_FMT, STR_ARG(shown));
    if (r->files.n >= GRAPH_FILES_MAX)
        return SCAN_FAIL(&r->s, "more than %d files", GRAPH_FILES_MAX);
    WEFT_TRY(scan_string(&r->s, &name));
    if (memchr(name.p, 0, name.n))
        return SCAN_FAIL(&r->s, "the name of a file holds a NUL");
    read_file_row row = {.shown = shown, .src = ARENA_NEW(r->g->a, source)};
    row.src->name = arena_str(r->g->a, name).p;
    VEC_PUSH(&r->files, row);
    return WEFT_OK;
}

weft_status read_loc(reader *r, weft_loc *out_loc)
{
    scan *s = &r->s;
    str shown;
    int64_t line, column;
    if (!scan_accept_word(s, "loc"))
        return WEFT_OK;
    WEFT_TRY(scan_expect(s, '('));
    WEFT_TRY(scan_file(s, &shown));
    source *src = NULL;
    for (size_t i = 0; i < r->files.n; i++)
        if (str_eq(r->files.at[i].shown, shown))
            src = r->files.at[i].src;
    if (!src)
        return SCAN_FAIL(s, "there is no file " STR_FMT, STR_ARG(shown));
    WEFT_TRY(scan_expect(s, ':'));
    WEFT_TRY(scan_int(s, 1, GRAPH_LOC_MAX, &line));
    WEFT_TRY(scan_expect(s, ':'));
    WEFT_TRY(scan_int(s, 1, GRAPH_LOC_MAX, &column));
    WEFT_TRY(scan_expect(s, ')'));
    *out_loc = (weft_loc){src, (uint32_t)r->places.n, (uint32_t)r->places.n};
    read_place p = {(uint32_t)line, (uint32_t)column};
    VEC_PUSH(&r->places, p);
    if (src->line_n < p.line)
        src->line_n = p.line;
    return WEFT_OK;
}

/* Calls visit for every location of the graph. */
typedef void (*loc_visit)(reader *r, weft_loc *loc, const source *src, uint32_t *width);

static void each_loc(reader *r, loc_visit visit, const source *src, uint32_t *width)
{
    graph *g = r->g;
    for (size_t i = 0; i < g->weights.n; i++)
        visit(r, &g->weights.at[i].loc, src, width);
    for (size_t i = 0; i < g->cells.n; i++)
        visit(r, &g->cells.at[i].loc, src, width);
    for (size_t i = 0; i < g->nodes.n; i++)
        visit(r, &g->nodes.at[i].loc, src, width);
    for (size_t i = 0; i < g->outputs.n; i++)
        visit(r, &g->outputs.at[i].loc, src, width);
}

static void widen(reader *r, weft_loc *loc, const source *src, uint32_t *width)
{
    if (loc->src != src)
        return;
    const read_place *p = &r->places.at[loc->begin];
    if (width[p->line - 1] < p->column - 1)
        width[p->line - 1] = p->column - 1;
}

static void resolve(reader *r, weft_loc *loc, const source *src, uint32_t *width)
{
    (void)width;
    if (loc->src != src)
        return;
    const read_place *p = &r->places.at[loc->begin];
    loc->begin = loc->end = src->line_at[p->line - 1] + p->column - 1;
}

static weft_status fill_file(reader *r, source *src, size_t *total)
{
    uint32_t n = src->line_n;
    if (*total + n > GRAPH_LOC_MAX)
        return SCAN_FAIL(&r->s, "the places of this graph reach too far");
    uint32_t *width = mem_alloc(mem_product(n + 1, sizeof *width));
    memset(width, 0, (n + 1) * sizeof *width);
    each_loc(r, widen, src, width);
    for (uint32_t i = 0; i < n; i++)
        *total += (size_t)width[i] + 1;
    strbuf text = {0};
    weft_status status = WEFT_OK;
    if (*total > GRAPH_LOC_MAX) {
        status = SCAN_FAIL(&r->s, "the places of this graph reach too far");
        goto done;
    }
    for (uint32_t i = 0; i < n; i++) {
        strbuf_fill(&text, ' ', width[i]);
        if (i + 1 < n)
            strbuf_putc(&text, '\n');
    }
    *src = *source_from_text(r->g->a, src->name, strbuf_view(&text));
    each_loc(r, resolve, src, NULL);
done:
    strbuf_free(&text);
    mem_free(width);
    return status;
}

weft_status read_places(reader *r)
{
    size_t total = 0;
    for (size_t i = 0; i < r->files.n; i++)
        WEFT_TRY(fill_file(r, r->files.at[i].src, &total));
    return WEFT_OK;
}
