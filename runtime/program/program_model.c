/* program_model.c - opens an image: checks it, chooses a plan, gives what a model is asked for. */
#include "runtime/program/program_model.h"

#include "compiler/plan_file.h"
#include "runtime/api/api_impl.h"
#include "runtime/base/file.h"
#include "runtime/base/mem.h"
#include "runtime/base/pack.h"
#include "runtime/formats/map_guard.h"
#include "runtime/program/adapter_image.h"
#include "runtime/program/image_bytes.h"
#include "runtime/program/program_code.h"
#include "runtime/program/stamp.h"
#include "runtime/text/chat_image.h"
#include "runtime/text/tok_image.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- checks ---- */

/* A file that was cut shows zeros where it has pages no more: then nothing that was read counts. */
static weft_status cut(weft_diag *dg, const program_model *m)
{
    size_t at;
    if (!map_guard_tripped(m->guard, &at))
        return WEFT_OK;
    diag_reset(dg); /* what was made of the zeros */
    weft_status st =
        weft_fail(dg, W1701, WEFT_NOWHERE,
                  "%s: the file was cut: its image has %" PRIu64 " bytes, byte %zu is gone",
                  m->name, m->im.bytes, at);
    weft_note(dg, "the file has to be copied or built again");
    return st;
}

static weft_status check_small_parts(weft_diag *dg, const program_model *m)
{
    for (int i = 0; i < m->im.n_part; i++)
        WEFT_TRY(image_check(dg, m->name, &m->im.part[i]));
    return WEFT_OK;
}

static weft_status check_all(weft_diag *dg, const program_model *m, bool verify)
{
    uint64_t all = m->im.bytes + m->external_bytes;
    if (!verify && all > PROGRAM_CHECKED_BYTES)
        return WEFT_OK;
    WEFT_TRY(image_check_gaps(dg, m->name, &m->im));
    return image_source_check(dg, &m->source);
}

/* ---- external weights ---- */

/* NAME.weights beside the program. */
static const char *weights_path(program_model *m, const program_options *opt)
{
    return arena_printf(m->a, "%s.weights", opt->path ? opt->path : opt->name).p;
}

static weft_status check_external(weft_diag *dg, const program_model *m, const char *path,
                                  const image_part *w, const image_part *table)
{
    const unsigned char *head = m->external;
    if (m->external_bytes < IMAGE_PAGE || memcmp(head, WEIGHTS_MAGIC, sizeof WEIGHTS_MAGIC) != 0 ||
        image_get32(head + WEIGHTS_AT_VERSION) != IMAGE_VERSION)
        return weft_fail(dg, W1701, WEFT_NOWHERE, "%s does not hold the weights of a built program",
                         path);
    if (image_get64(head + WEIGHTS_AT_SUM) != table->sum) {
        weft_status st =
            weft_fail(dg, W1701, WEFT_NOWHERE, "%s holds the weights of another program", path);
        weft_note(dg, "the program and its weights have to come from the same build");
        return st;
    }
    if (image_get64(head + WEIGHTS_AT_BYTES) != w->bytes ||
        m->external_bytes != IMAGE_PAGE + w->bytes)
        return weft_fail(dg, W1701, WEFT_NOWHERE,
                         "%s was cut or changed: it has %zu bytes instead of %" PRIu64, path,
                         m->external_bytes, IMAGE_PAGE + w->bytes);
    return WEFT_OK;
}

static weft_status map_external(weft_diag *dg, program_model *m, const program_options *opt,
                                const image_part *w, const image_part *table)
{
    const char *path = weights_path(m, opt);
    int fd;
    uint64_t bytes;
    WEFT_TRY(file_open(dg, path, &fd, &bytes));
    void *at = bytes ? mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    int error = errno;
    file_close(fd);
    if (at == MAP_FAILED)
        return weft_fail(dg, W1003, WEFT_NOWHERE, "%s cannot be mapped: %s", path,
                         bytes ? file_reason_of(error).text : "it is empty");
    m->external = at;
    m->external_bytes = (size_t)bytes;
    mem_want_large(at, (size_t)bytes);
    m->external_guard = map_guard_add(at, m->external_bytes);
    return check_external(dg, m, path, w, table);
}

/* ---- opening ---- */

static weft_status lacks(weft_diag *dg, const program_model *m, const image_part *p)
{
    return weft_fail(dg, W1701, WEFT_NOWHERE, "%s: its image has no %s", m->name,
                     p ? p->name : "plan, tokenizer, facts or weights");
}

/* The last that this processor can run: they stand from plain to fast. WEFT_CPU may name a plainer one. */
static weft_status choose_plan(weft_diag *dg, program_model *m)
{
    const image_part *first = NULL;
    const backend *most;
    WEFT_TRY(backend_cpu(dg, false, &most));
    for (int i = 0; i < m->im.n_part; i++) {
        const image_part *p = &m->im.part[i];
        if (p->kind != IMAGE_PLAN)
            continue;
        first = first ? first : p;
        if (backend_cpu_find(p->name) && backend_cpu_rank(p->name) <= backend_cpu_rank(most->level))
            m->plan = p;
    }
    if (!first)
        return lacks(dg, m, NULL);
    if (m->plan)
        return WEFT_OK;
    strbuf missing = {0};
    backend_cpu_lacks(first->name, &missing);
    if (!missing.n) /* it could, but is not to */
        return weft_fail(dg, W1602, WEFT_NOWHERE,
                         "%s was built for processors with %s and better; WEFT_CPU names %s",
                         m->name, first->name, most->level);
    weft_status st = weft_fail(dg, W1602, WEFT_NOWHERE,
                               "%s was built for processors with %s and better; this one lacks %s",
                               m->name, first->name, missing.p);
    weft_note(dg, "weft build --cpu baseline makes programs for all processors of an architecture");
    strbuf_free(&missing);
    return st;
}

static weft_status read_plan(weft_diag *dg, const program_model *m, arena *a, plan **out)
{
    strbuf bytes = {0};
    str packed = {(const char *)m->plan->data, m->plan->bytes};
    const backend *be = backend_cpu_find(m->plan->name);
    weft_status st =
        bytes_unpack(packed, PLAN_FILE_BYTES_MAX, &bytes)
            ? plan_read_for(dg, m->name, strbuf_view(&bytes), m->source.identity, be, a, out)
            : weft_fail(dg, W1701, WEFT_NOWHERE, "%s: the plan for %s is damaged", m->name,
                        m->plan->name);
    strbuf_free(&bytes);
    return st;
}

static weft_status open_parts(weft_diag *dg, program_model *m, const program_options *opt)
{
    const image_part *f = image_find(&m->im, IMAGE_FACTS, NULL);
    const image_part *t = image_find(&m->im, IMAGE_TENSORS, NULL);
    const image_part *w = image_find(&m->im, IMAGE_WEIGHTS, NULL);
    if (!f || !t || !w || !image_find(&m->im, IMAGE_TOKENIZER, NULL))
        return lacks(dg, m, NULL);
    WEFT_TRY(check_small_parts(dg, m));
    WEFT_TRY(facts_read(dg, m->name, f, m->a, &m->about));
    if (w->external)
        WEFT_TRY(map_external(dg, m, opt, w, t));
    WEFT_TRY(image_source_open(
        dg, m->name, t, w->external ? (const unsigned char *)m->external + IMAGE_PAGE : w->data,
        w->bytes, &m->source));
    m->source.guard = w->external ? m->external_guard : m->guard;
    WEFT_TRY(check_all(dg, m, opt->verify));
    WEFT_TRY(choose_plan(dg, m));
    return read_plan(dg, m, m->a, &m->p);
}

static const model_kind kind_program;

static void program_close(weft_model *base)
{
    program_model *m = (program_model *)(void *)base;
    map_guard_remove(m->guard);
    map_guard_remove(m->external_guard);
    if (m->external)
        munmap(m->external, m->external_bytes);
    arena_destroy(m->a);
    mem_free(m);
}

weft_status program_model_open_image(weft_diag *dg, const program_options *opt, const void *data,
                                     size_t bytes, uint64_t sum, weft_model **out_model)
{
    program_model *m = mem_alloc(sizeof *m);
    *m = (program_model){.base.kind = &kind_program, .a = arena_create(), .external_guard = -1};
    m->name = arena_str(m->a, str_of(opt->name)).p;
    mem_want_large((void *)(uintptr_t)data, bytes);
    m->guard = map_guard_add(data, bytes);
    weft_status st = image_open(dg, m->name, data, bytes, &m->im);
    m->im.bytes = bytes; /* for the message, if it was cut */
    if (st == WEFT_OK && m->im.sum != sum)
        st = weft_fail(dg, W1701, WEFT_NOWHERE, "%s: what is attached belongs to another program",
                       m->name);
    if (st == WEFT_OK)
        st = open_parts(dg, m, opt);
    weft_status gone = cut(dg, m);
    st = gone == WEFT_OK ? st : gone;
    if (st != WEFT_OK) {
        program_close(&m->base);
        return st;
    }
    m->base.weights = &m->source.base;
    m->base.name = m->about.name;
    m->base.context = m->about.context;
    *out_model = &m->base;
    return WEFT_OK;
}

weft_status program_model_open(weft_diag *dg, const program_options *opt, weft_model **out_model)
{
    const void *data;
    size_t bytes;
    uint64_t sum;
    if (!stamp_image(&data, &bytes, &sum))
        return weft_fail(dg, W1701, WEFT_NOWHERE, "%s: no model is attached to it", opt->name);
    return program_model_open_image(dg, opt, data, bytes, sum, out_model);
}

/* ---- the kind ---- */

static model_hash program_hash(const weft_model *m)
{
    return program_model_of(m)->source.identity;
}

static const value *program_param(const weft_model *base, const char *name)
{
    const program_model *m = program_model_of(base);
    for (int i = 0; i < m->about.n_param; i++)
        if (strcmp(m->about.param[i].name, name) == 0)
            return &m->about.param[i].v;
    return NULL;
}

static weft_status program_plan(weft_diag *dg, const weft_model *base, const api_wanted *w,
                                api_plan *out)
{
    const program_model *m = program_model_of(base);
    const plan *p = m->p;
    WEFT_TRY(api_plan_serves(dg, p, m->name, w));
    WEFT_TRY(api_plan_serves_kind(dg, p, m->name, w));
    out->p = p;
    out->run.maker = program_code_maker(p);
    return WEFT_OK;
}

static weft_status program_cells(weft_diag *dg, const weft_model *base, const api_wanted *w,
                                 arena *a, plan *out)
{
    const plan *p = program_model_of(base)->p;
    (void)dg, (void)w, (void)a;
    *out = (plan){.n_cell = p->n_cell,
                  .cell = p->cell,
                  .kv = p->kv,
                  .tiers = p->tiers,
                  .n_tok_max = p->n_tok_max};
    return WEFT_OK;
}

static weft_status program_tokenizer(weft_diag *dg, const weft_model *base, tok **out)
{
    const program_model *m = program_model_of(base);
    const image_part *p = image_find(&m->im, IMAGE_TOKENIZER, NULL);
    return tok_image_open(dg, m->name, (str){(const char *)p->data, p->bytes}, out);
}

static weft_status program_chat(weft_diag *dg, const weft_model *base, const char *choice,
                                chat_template **out)
{
    const program_model *m = program_model_of(base);
    const image_part *p = image_find(&m->im, IMAGE_TEMPLATE, NULL);
    return chat_image_open(dg, m->name, p ? (str){(const char *)p->data, p->bytes} : (str){0},
                           choice, out);
}

weft_status program_model_ready(weft_diag *dg, const weft_model *base, weft_session *s)
{
    const program_model *m = program_model_of(base);
    weft_lora_use mix[IMAGE_PARTS_MAX];
    size_t n = 0;
    weft_status st = WEFT_OK;
    arena *a = arena_create();
    for (int i = 0; i < m->im.n_part && st == WEFT_OK; i++) {
        adapter_source src;
        float scale;
        if (m->im.part[i].kind != IMAGE_ADAPTER)
            continue;
        st = adapter_image_read(dg, m->name, &m->im.part[i], a, &src, &scale);
        int32_t slot = (int32_t)n + 1;
        if (st == WEFT_OK)
            st = session_lora_load(dg, s->run, slot, &src);
        mix[n++] = (weft_lora_use){.slot = slot, .scale = scale};
    }
    arena_destroy(a);
    return st == WEFT_OK && n > 0 ? weft_lora_attach(dg, s, 0, mix, n) : st;
}

static const model_kind kind_program = {.close = program_close,
                                        .hash = program_hash,
                                        .param = program_param,
                                        .plan = program_plan,
                                        .cells = program_cells,
                                        .tokenizer = program_tokenizer,
                                        .chat = program_chat};
