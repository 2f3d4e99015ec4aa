/* plan_read_place.c - the places of steps: file, line and column, without the text of the file.
 *
 * Each file becomes a source of blanks, with lines just long enough, in which source_find finds the same
 * line and column again; as graph_read_place.c does it. */
#include "compiler/plan_file_impl.h"

#include "runtime/base/mem.h"
#include <stdlib.h>

enum { FILES_MAX = 256, PLACES_MAX = 1 << 16, TEXT_MAX = 4 << 20 };

typedef struct {
    int64_t file, line, column;
} place;

/* The text of one file: as many lines as its places need. */
static weft_status fill_file(plan_reader *r, int64_t file, const char *name, const place *at,
                             size_t n, weft_loc *locs, size_t *total)
{
    int64_t lines = 1;
    for (size_t i = 0; i < n; i++)
        if (at[i].file == file && at[i].line > lines)
            lines = at[i].line;
    int64_t *width = mem_alloc(mem_product((size_t)lines, sizeof *width));
    memset(width, 0, (size_t)lines * sizeof *width);
    for (size_t i = 0; i < n; i++)
        if (at[i].file == file && at[i].column - 1 > width[at[i].line - 1])
            width[at[i].line - 1] = at[i].column - 1;
    for (int64_t i = 0; i < lines && *total <= TEXT_MAX; i++)
        *total += (size_t)width[i] + 1;
    strbuf text = {0};
    weft_status status = WEFT_OK;
    if (*total > TEXT_MAX) {
        status = plan_damaged(r, "its places reach too far");
        goto done;
    }
    for (int64_t i = 0; i < lines; i++) {
        strbuf_fill(&text, ' ', (size_t)width[i]);
        if (i + 1 < lines)
            strbuf_putc(&text, '\n');
    }
    const source *src = source_from_text(r->a, name, strbuf_view(&text));
    for (size_t i = 0; i < n; i++)
        if (at[i].file == file) {
            uint32_t offset = src->line_at[at[i].line - 1] + (uint32_t)(at[i].column - 1);
            locs[i] = (weft_loc){src, offset, offset};
        }
done:
    strbuf_free(&text);
    mem_free(width);
    return status;
}

weft_status plan_read_places(plan_reader *r, const value *v)
{
    const value *files, *list;
    size_t total = 0;
    WEFT_TRY(plan_get_array(r, v, "files", &files));
    WEFT_TRY(plan_get_array(r, v, "places", &list));
    size_t n_file = value_count(files), n = value_count(list);
    if (n_file > FILES_MAX || n > PLACES_MAX)
        return plan_damaged(r, "it has %zu files and %zu places", n_file, n);
    place *at = ARENA_ARRAY(r->a, place, n);
    weft_loc *locs = ARENA_ARRAY(r->a, weft_loc, n);
    for (size_t i = 0; i < n; i++) {
        value item;
        WEFT_TRY(plan_item_of(r, list, i, VALUE_ARRAY, &item));
        WEFT_TRY(plan_item_int(r, &item, 0, 0, (int64_t)n_file - 1, &at[i].file));
        WEFT_TRY(plan_item_int(r, &item, 1, 1, TEXT_MAX, &at[i].line));
        WEFT_TRY(plan_item_int(r, &item, 2, 1, TEXT_MAX, &at[i].column));
    }
    for (size_t i = 0; i < n_file; i++) {
        value name;
        WEFT_TRY(plan_item_of(r, files, i, VALUE_STR, &name));
        if (memchr(name.as.s.p, 0, name.as.s.n))
            return plan_damaged(r, "the name of a file holds a NUL");
        WEFT_TRY(fill_file(r, (int64_t)i, arena_str(r->a, name.as.s).p, at, n, locs, &total));
    }
    r->place = locs;
    r->n_place = (int64_t)n;
    return WEFT_OK;
}
