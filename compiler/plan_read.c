/* plan_read.c - a plan file into a plan: the head, whom it is for, names and places, the rest, then the proof. */
#include "compiler/plan_file_impl.h"

#include "compiler/plan_check.h"
#include "runtime/base/checksum.h"
#include "runtime/base/file.h"
#include "runtime/base/mem.h"
#include <inttypes.h>
#include <stdlib.h>

/* ---- the head ---- */

static weft_status check_head(plan_reader *r, str bytes)
{
    const uint8_t *at = (const uint8_t *)bytes.p;
    if (!str_starts(bytes, STR(PLAN_FILE_MAGIC)))
        return weft_fail(r->dg, W1504, WEFT_NOWHERE, "%s is not a plan file", r->name);
    if (bytes.n < PLAN_FILE_BODY)
        return plan_damaged(r, "it ends in its head");
    uint64_t version = plan_get_bits(at + PLAN_FILE_NUMBER, 8);
    uint64_t length = plan_get_bits(at + PLAN_FILE_LENGTH, 8);
    uint64_t sum = plan_get_bits(at + PLAN_FILE_SUM, 8);
    uint64_t is = checksum(at + PLAN_FILE_FIELDS, bytes.n - PLAN_FILE_FIELDS);
    if (version != PLAN_FILE_VERSION)
        return weft_fail(r->dg, W1504, WEFT_NOWHERE,
                         "%s is a plan file of version %" PRIu64 "; this Weft reads version %d",
                         r->name, version, PLAN_FILE_VERSION);
    if (length != bytes.n)
        return plan_damaged(r, "it has %zu bytes instead of %" PRIu64, bytes.n, length);
    if (sum != is)
        return plan_damaged(r, "its checksum is %016" PRIx64 ", its bytes give %016" PRIx64, sum,
                            is);
    if (plan_get_bits(at + PLAN_FILE_FIELDS, 8) != plan_fields_sum())
        return weft_fail(r->dg, W1504, WEFT_NOWHERE,
                         "%s was made by another build of Weft, whose plans have other fields",
                         r->name);
    r->at = at + PLAN_FILE_BODY;
    r->end = at + bytes.n;
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
static weft_status check_fit(plan_reader *r, model_hash model)
{
    plan_file_head h;
    char want[PLAN_HASH_MAX];
    karch arch = r->be ? r->be->arch : KARCH_HERE;
    WEFT_TRY(plan_read_fields(r, &plan_head_record, &h));
    *r->p = (plan){
        .backend = h.backend, .level = h.level, .arch = arch, .model = h.model, .entry = h.entry};
    if (strcmp(h.weft, WEFT_VERSION) != 0)
        return weft_fail(r->dg, W1504, WEFT_NOWHERE, "%s was made by Weft %s, this is %s", r->name,
                         h.weft, WEFT_VERSION);
    plan_hash_text(model, want);
    if (strcmp(h.hash, want) != 0)
        return weft_fail(r->dg, W1505, WEFT_NOWHERE,
                         "%s was made for another checkpoint (a %s, %s) than this one (%s)",
                         r->name, h.model, h.hash, want);
    if (strcmp(h.arch, karch_name(arch)) != 0)
        return weft_fail(r->dg, W1506, WEFT_NOWHERE, "%s was made for %s, this machine is %s",
                         r->name, h.arch, karch_name(arch));
    if (!r->be)
        return find_backend(r);
    if (strcmp(h.backend, r->be->name) != 0 || strcmp(h.level, r->be->level) != 0)
        return weft_fail(r->dg, W1506, WEFT_NOWHERE,
                         "%s was made for %s kernels of a %s, not %s ones of a %s", r->name,
                         h.level, h.backend, r->be->level, r->be->name);
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

weft_status plan_read_for(weft_diag *dg, const char *name, str bytes, model_hash model,
                          const backend *be, arena *a, plan **out_p)
{
    plan_reader r = {.dg = dg, .name = name, .a = a, .p = ARENA_NEW(a, plan), .be = be};
    plan_file_tail tail = {0};
    WEFT_TRY(check_head(&r, bytes));
    WEFT_TRY(check_fit(&r, model));
    WEFT_TRY(plan_read_fields(&r, &plan_tail_record, &tail));
    WEFT_TRY(find_kernels(&r, &tail));
    WEFT_TRY(plan_places_read(&r, &tail));
    WEFT_TRY(plan_read_fields(&r, &plan_body_record, r.p));
    if (r.at != r.end)
        return plan_damaged(&r, "%zu bytes follow its end", (size_t)(r.end - r.at));
    weft_status status = plan_check(dg, r.be, r.p);
    if (status != WEFT_OK) {
        weft_note(dg, "the plan is that of %s", name);
        return status;
    }
    *out_p = r.p;
    return WEFT_OK;
}

weft_status plan_read(weft_diag *dg, const char *name, str bytes, model_hash model, arena *a,
                      plan **out_p)
{
    return plan_read_for(dg, name, bytes, model, NULL, a, out_p);
}

static weft_status read_open_file(weft_diag *dg, const char *path, int fd, uint64_t bytes,
                                  model_hash model, const backend *be, arena *a, plan **out_p)
{
    if (bytes > PLAN_FILE_BYTES_MAX)
        return weft_fail(dg, W1101, WEFT_NOWHERE, "%s has %" PRIu64 " bytes, more than %d", path,
                         bytes, PLAN_FILE_BYTES_MAX);
    char *all = mem_alloc((size_t)bytes + 1);
    size_t n;
    weft_status st = file_read(dg, fd, path, all, (size_t)bytes, &n);
    if (st == WEFT_OK)
        st = plan_read_for(dg, path, (str){all, n}, model, be, a, out_p);
    mem_free(all);
    return st;
}

weft_status plan_read_file(weft_diag *dg, const char *path, model_hash model, const backend *be,
                           arena *a, plan **out_p)
{
    int fd;
    uint64_t bytes;
    WEFT_TRY(file_open(dg, path, &fd, &bytes));
    weft_status st = read_open_file(dg, path, fd, bytes, model, be, a, out_p);
    file_close(fd);
    return st;
}
