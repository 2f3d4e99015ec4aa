/* plan_places.c - where steps come from, in a plan file: files, lines and columns, without the text of the files. */
#include "compiler/plan_file_impl.h"

#include "runtime/base/mem.h"

size_t plan_place_of(plan_places *at, const weft_loc *loc)
{
    size_t i = 0;
    while (i < at->n && (at->at[i].src != loc->src || at->at[i].begin != loc->begin))
        i++;
    if (i == at->n)
        VEC_PUSH(at, *loc);
    return i;
}

void plan_tail_make(const plan *p, const plan_places *at, plan_file_tail *out)
{
    VEC(const char *) files = {0};
    VEC(plan_file_place) places = {0};
    for (size_t i = 0; i < at->n; i++) {
        weft_loc loc = at->at[i];
        source_place place = source_find(loc.src, loc.begin);
        size_t f = 0;
        while (f < files.n && files.at[f] != loc.src->name)
            f++;
        if (f == files.n)
            VEC_PUSH(&files, loc.src->name);
        VEC_PUSH(&places,
                 ((plan_file_place){(int32_t)f, (int32_t)place.line, (int32_t)place.column}));
    }
    *out = (plan_file_tail){.n_file = (int32_t)files.n,
                            .n_place = (int32_t)places.n,
                            .n_kernel = p->n_kernel,
                            .file = files.at,
                            .place = places.at,
                            .kernel = p->kernel};
}

void plan_tail_free(plan_file_tail *tail)
{
    mem_free((void *)tail->file);
    mem_free((void *)tail->place);
}

/* A file becomes a source of blanks, with lines just long enough, in which source_find finds the same line and
 * column again. */
static weft_status fill_file(plan_reader *r, int32_t file, const plan_file_tail *tail,
                             weft_loc *locs, size_t *total)
{
    const plan_file_place *at = tail->place;
    int32_t n = tail->n_place, lines = 1;
    for (int32_t i = 0; i < n; i++)
        if (at[i].file == file && at[i].line > lines)
            lines = at[i].line;
    int32_t *width = mem_alloc(mem_product((size_t)lines, sizeof *width));
    memset(width, 0, (size_t)lines * sizeof *width);
    for (int32_t i = 0; i < n; i++)
        if (at[i].file == file && at[i].column - 1 > width[at[i].line - 1])
            width[at[i].line - 1] = at[i].column - 1;
    for (int32_t i = 0; i < lines && *total <= PLAN_FILE_TEXT_MAX; i++)
        *total += (size_t)width[i] + 1;
    strbuf text = {0};
    weft_status status = WEFT_OK;
    if (*total > PLAN_FILE_TEXT_MAX) {
        status = plan_damaged(r, "its places reach too far");
        goto done;
    }
    for (int32_t i = 0; i < lines; i++) {
        strbuf_fill(&text, ' ', (size_t)width[i]);
        if (i + 1 < lines)
            strbuf_putc(&text, '\n');
    }
    const source *src = source_from_text(r->a, tail->file[file], strbuf_view(&text));
    for (int32_t i = 0; i < n; i++)
        if (at[i].file == file) {
            uint32_t offset = src->line_at[at[i].line - 1] + (uint32_t)(at[i].column - 1);
            locs[i] = (weft_loc){src, offset, offset};
        }
done:
    strbuf_free(&text);
    mem_free(width);
    return status;
}

weft_status plan_places_read(plan_reader *r, const plan_file_tail *tail)
{
    size_t total = 0;
    weft_loc *locs = ARENA_ARRAY(r->a, weft_loc, (size_t)tail->n_place);
    for (int32_t i = 0; i < tail->n_place; i++)
        if (tail->place[i].file >= tail->n_file)
            return plan_damaged(r, "item %d of `places` is in none of the files", (int)i);
    for (int32_t i = 0; i < tail->n_file; i++)
        WEFT_TRY(fill_file(r, i, tail, locs, &total));
    r->place = locs;
    r->n_place = tail->n_place;
    return WEFT_OK;
}
