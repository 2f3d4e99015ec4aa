/* plan_read.c - a plan file into a plan: the head, whom it is for, places and kernels, the rest, then the proof.
 *
 * The head is looked at as text, before the rest is taken for JSON, so that damage is reported as damage. */
#include "compiler/plan_file_impl.h"

#include "compiler/plan_check.h"
#include "compiler/target.h"
#include "runtime/base/mem.h"
#include "runtime/formats/json_read.h"
#include <inttypes.h>
#include <stdlib.h>

enum {
    VALUES_MAX = 4 << 20,
    DEPTH_MAX = 16
}; /* bound the memory, with json_read's 200 bytes a value */

/* ---- the head ---- */

/* Where the digits of the checksum begin, and the version; false: this is no plan file. */
static bool find_head(str text, long *out_version, size_t *out_digits)
{
    str magic = STR(PLAN_FILE_MAGIC), sum = STR(PLAN_FILE_CHECKSUM);
    size_t at = magic.n;
    long version = 0;
    if (!str_starts(text, magic))
        return false;
    for (; at < text.n && text.p[at] >= '0' && text.p[at] <= '9' && version < 1000000; at++)
        version = version * 10 + (text.p[at] - '0');
    *out_version = version;
    *out_digits = at + sum.n;
    return at > magic.n && at <= text.n && str_starts((str){text.p + at, text.n - at}, sum) &&
           text.n - at - sum.n >= PLAN_FILE_DIGITS;
}

static void checksum_of(str text, size_t digits, char *out)
{
    size_t from = digits + PLAN_FILE_DIGITS;
    snprintf(out, PLAN_FILE_DIGITS + 1, "%016" PRIx64,
             str_hash((str){text.p + from, text.n - from}));
}

bool plan_file_seal(char *text, size_t n)
{
    long version;
    size_t digits;
    char sum[PLAN_FILE_DIGITS + 1];
    if (!find_head((str){text, n}, &version, &digits))
        return false;
    checksum_of((str){text, n}, digits, sum);
    memcpy(text + digits, sum, PLAN_FILE_DIGITS);
    return true;
}

static weft_status check_head(plan_reader *r, str text)
{
    long version = 0;
    size_t digits;
    char sum[PLAN_FILE_DIGITS + 1];
    bool whole = find_head(text, &version, &digits);
    if (!whole && !str_starts(text, STR(PLAN_FILE_MAGIC)))
        return weft_fail(r->dg, W1504, WEFT_NOWHERE, "%s is not a plan file", r->name);
    if (version != PLAN_FILE_VERSION)
        return weft_fail(r->dg, W1504, WEFT_NOWHERE,
                         "%s is a plan file of version %ld; this Weft reads version %d", r->name,
                         version, PLAN_FILE_VERSION);
    if (!whole)
        return plan_damaged(r, "it has no checksum");
    checksum_of(text, digits, sum);
    if (memcmp(sum, text.p + digits, PLAN_FILE_DIGITS) != 0)
        return plan_damaged(r, "its checksum is %.*s, its bytes give %s", PLAN_FILE_DIGITS,
                            text.p + digits, sum);
    return WEFT_OK;
}

/* The back end that it was made for, if this machine has it and WEFT_CPU allows it. */
static weft_status find_backend(plan_reader *r)
{
    const char *level = r->p->level, *cap = getenv("WEFT_CPU");
    int rank = backend_cpu_rank(level);
    if (strcmp(r->p->backend, backend_reference()->name) != 0 || rank < 0)
        return weft_fail(r->dg, W1506, WEFT_NOWHERE,
                         "%s was made for %s kernels of a %s, which this Weft does not know",
                         r->name, level, r->p->backend);
    const backend *best;
    WEFT_TRY(backend_cpu(r->dg, false, &best));
    if (cap && *cap && rank > backend_cpu_rank(best->level))
        return weft_fail(r->dg, W1506, WEFT_NOWHERE,
                         "%s was made for %s kernels; WEFT_CPU allows those up to %s", r->name,
                         level, best->level);
    r->be = backend_cpu_find(level);
    if (r->be)
        return WEFT_OK;
    strbuf lacks = {0};
    backend_cpu_lacks(level, &lacks);
    weft_status st =
        weft_fail(r->dg, W1506, WEFT_NOWHERE, "%s was made for %s kernels; this processor lacks %s",
                  r->name, level, lacks.p);
    strbuf_free(&lacks);
    return st;
}

/* Version, machine and model. */
static weft_status check_fit(plan_reader *r, const value *v, model_hash model)
{
    plan_file_head h;
    char want[40];
    WEFT_TRY(plan_read_fields(r, &plan_head_record, v, &h));
    r->p->backend = h.backend;
    r->p->level = h.level;
    r->p->arch = KARCH_HERE;
    r->p->model = h.model;
    r->p->entry = h.entry;
    if (strcmp(h.weft, WEFT_VERSION) != 0)
        return weft_fail(r->dg, W1504, WEFT_NOWHERE, "%s was made by Weft %s, this is %s", r->name,
                         h.weft, WEFT_VERSION);
    snprintf(want, sizeof want, "%016" PRIx64 "%016" PRIx64, model.hi, model.lo);
    if (strcmp(h.hash, want) != 0)
        return weft_fail(r->dg, W1505, WEFT_NOWHERE,
                         "%s was made for another checkpoint (a %s, %s) than this one (%s)",
                         r->name, h.model, h.hash, want);
    if (strcmp(h.arch, karch_name(KARCH_HERE)) != 0)
        return weft_fail(r->dg, W1506, WEFT_NOWHERE, "%s was made for %s, this machine is %s",
                         r->name, h.arch, karch_name(KARCH_HERE));
    return find_backend(r);
}

/* ---- places: file, line and column, without the text of the file ---- */

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

static weft_status read_places(plan_reader *r, const plan_file_tail *tail)
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

/* ---- the whole ---- */

static weft_status find_kernels(plan_reader *r, const plan_file_tail *tail)
{
    plan_kernel *kernel = ARENA_ARRAY(r->a, plan_kernel, (size_t)tail->n_kernel);
    for (int32_t i = 0; i < tail->n_kernel; i++)
        if (!r->be->find(r->be, tail->kernel[i].name, &kernel[i]))
            return weft_fail(r->dg, W1506, WEFT_NOWHERE,
                             "%s asks for a kernel %s, which %s kernels do not have", r->name,
                             tail->kernel[i].name, r->be->level);
    r->p->kernel = kernel;
    r->p->n_kernel = tail->n_kernel;
    return WEFT_OK;
}

static weft_status read_plan(plan_reader *r, const value *v, model_hash model)
{
    plan_file_tail tail = {0};
    if (value_kind_of(v) != VALUE_OBJECT)
        return plan_damaged(r, "it is not an object");
    WEFT_TRY(check_fit(r, v, model));
    WEFT_TRY(plan_read_fields(r, &plan_tail_record, v, &tail));
    WEFT_TRY(find_kernels(r, &tail));
    WEFT_TRY(read_places(r, &tail));
    return plan_read_fields(r, &plan_body_record, v, r->p);
}

weft_status plan_read(weft_diag *dg, const char *name, str text, model_hash model, arena *a,
                      plan **out_p)
{
    plan_reader r = {.dg = dg, .name = name, .a = a, .p = ARENA_NEW(a, plan)};
    json_limits limits = {.bytes_max = PLAN_FILE_BYTES_MAX,
                          .values_max = VALUES_MAX,
                          .depth_max = DEPTH_MAX,
                          .exact = true};
    value v;
    WEFT_TRY(check_head(&r, text));
    arena *scratch = arena_create();
    weft_status status = json_read(dg, scratch, name, text, limits, &v);
    if (status == WEFT_OK)
        status = read_plan(&r, &v, model);
    arena_destroy(scratch);
    WEFT_TRY(status);
    status = plan_check(dg, r.be, r.p);
    if (status != WEFT_OK) {
        weft_note(dg, "the plan is that of %s", name);
        return status;
    }
    *out_p = r.p;
    return WEFT_OK;
}

weft_status plan_read_file(weft_diag *dg, const char *path, model_hash model, arena *a,
                           plan **out_p)
{
    arena *scratch = arena_create();
    source *src;
    weft_status status = source_open(dg, scratch, path, PLAN_FILE_BYTES_MAX, &src);
    if (status == WEFT_OK)
        status = plan_read(dg, path, src->text, model, a, out_p);
    arena_destroy(scratch);
    return status;
}
