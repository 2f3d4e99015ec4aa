/* device_fenced.c - memory behind mprotect, weights copied into it, steps one after the other. */
#include "tests/exec/device_fenced.h"

#include "compiler/lower_impl.h"
#include "runtime/base/clock.h"
#include "runtime/exec/weight_rows.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SPACE_BYTES ((size_t)1 << 30)

typedef struct {
    device base;
    char *space;
    size_t used, held;
    int64_t copies_left; /* -1: any number */
    size_t *sizes;       /* of allocations, by the page they begin at */
} fenced;

static fenced *own(const device *d)
{
    return (fenced *)(uintptr_t)d;
}

static bool is_inside(const fenced *f, const void *p, size_t bytes)
{
    uintptr_t at = (uintptr_t)p, begin = (uintptr_t)f->space;
    return at >= begin && bytes <= f->used && at - begin <= f->used - bytes;
}

static bool is_outside(const fenced *f, const void *p)
{
    uintptr_t at = (uintptr_t)p, begin = (uintptr_t)f->space;
    return at < begin || at >= begin + SPACE_BYTES;
}

static void fence(const fenced *f, bool open)
{
    int failed = f->used && mprotect(f->space, f->used, open ? PROT_READ | PROT_WRITE : PROT_NONE);
    WEFT_ASSERT(!failed);
}

/* ---- the table of kernels ---- */

enum { KERNELS_MAX = 64 };

typedef struct {
    char name[64];
    const kernel_row *row;
} fenced_kernel;

static const fenced_kernel *kernels(int *out_n)
{
    static fenced_kernel table[KERNELS_MAX];
    static int n;
    int n_row;
    const kernel_row *rows = kernel_rows(&n_row);
    for (int i = 0; i < n_row && !n; i++)
        for (; i < n_row && rows[i].variant == VARIANT_ref; i++) {
            WEFT_ASSERT(n < KERNELS_MAX);
            snprintf(table[n].name, sizeof table[n].name, "fenced_%s", kop_name(rows[i].op));
            table[n++].row = &rows[i];
        }
    *out_n = n;
    return table;
}

static const kernel_row *kernel_named(const char *name)
{
    int n;
    const fenced_kernel *k = kernels(&n);
    for (int i = 0; i < n; i++)
        if (strcmp(k[i].name, name) == 0)
            return k[i].row;
    return NULL;
}

static void describe(const fenced_kernel *k, plan_kernel *out)
{
    *out = (plan_kernel){.name = k->name,
                         .op = k->row->op,
                         .type = k->row->type,
                         .layout = k->row->layout,
                         .act = k->row->act,
                         .unit = k->row->unit,
                         .reference = true};
}

static bool fenced_select(const backend *be, const kernel_want *want, plan_kernel *out)
{
    int n;
    const fenced_kernel *k = kernels(&n);
    (void)be;
    for (int i = 0; i < n; i++)
        if (k[i].row->op == want->op && want->layout == LAYOUT_STORED) {
            describe(&k[i], out);
            return true;
        }
    return false;
}

static bool fenced_find(const backend *be, const char *name, plan_kernel *out)
{
    int n;
    const fenced_kernel *k = kernels(&n);
    (void)be;
    for (int i = 0; i < n; i++)
        if (strcmp(k[i].name, name) == 0) {
            describe(&k[i], out);
            return true;
        }
    return false;
}

static klayout fenced_layout(const backend *be, kop op, dtype type, bool exact)
{
    (void)be, (void)op, (void)type, (void)exact;
    return LAYOUT_STORED;
}

static size_t fenced_scratch(const backend *be, const plan_kernel *k, const kargs *args)
{
    (void)be;
    return kernel_scratch(kernel_named(k->name), args);
}

const backend *backend_fenced(void)
{
    static const backend be = {.name = "fenced",
                               .arch = KARCH_HERE,
                               .level = "ref",
                               .select = fenced_select,
                               .find = fenced_find,
                               .layout = fenced_layout,
                               .scratch = fenced_scratch,
                               .lower = lower_reference};
    return &be;
}

/* ---- memory ---- */

static weft_status fenced_open(weft_diag *dg, const char *which, device **out_d)
{
    fenced *f = calloc(1, sizeof *f);
    (void)dg, (void)which;
    f->base.kind = &device_kind_fenced;
    f->copies_left = -1;
    f->space =
        mmap(NULL, SPACE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    WEFT_ASSERT(f->space != MAP_FAILED);
    f->sizes = calloc(SPACE_BYTES / (size_t)sysconf(_SC_PAGESIZE), sizeof *f->sizes);
    *out_d = &f->base;
    return WEFT_OK;
}

static void fenced_close(device *d)
{
    fenced *f = own(d);
    munmap(f->space, SPACE_BYTES);
    free(f->sizes);
    free(f);
}

size_t fenced_held(const device *d)
{
    return own(d)->held;
}

void fenced_fail_after(device *d, int64_t n)
{
    own(d)->copies_left = n;
}

static weft_status fenced_room(weft_diag *dg, device *d, memory_room *out_room)
{
    (void)dg;
    *out_room = (memory_room){SPACE_BYTES - own(d)->used, "on the fenced device"};
    return WEFT_OK;
}

static size_t *size_of(fenced *f, const void *p)
{
    return &f->sizes[(size_t)((const char *)p - f->space) / (size_t)sysconf(_SC_PAGESIZE)];
}

static weft_status fenced_alloc(weft_diag *dg, device *d, size_t bytes, void **out_p)
{
    fenced *f = own(d);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), end = f->used + (bytes + page) / page * page;
    if (end > SPACE_BYTES)
        return weft_fail(dg, W0902, WEFT_NOWHERE, "the fenced device is full");
    *out_p = f->space + f->used;
    f->used = end;
    f->held += *size_of(f, *out_p) = bytes;
    fence(f, true); /* what is not written before it is read is no number */
    memset(*out_p, 0xff, bytes);
    fence(f, false);
    return WEFT_OK;
}

static void fenced_free(device *d, void *p)
{
    fenced *f = own(d);
    if (!p)
        return;
    f->held -= *size_of(f, p);
    *size_of(f, p) = 0;
    if (f->held == 0)
        f->used = 0; /* closed already */
}

/* One of copy_in, copy_out and copy, by where the two ends have to be. */
static weft_status copy(weft_diag *dg, device *d, void *to, const void *from, size_t bytes,
                        bool to_inside, bool from_inside)
{
    fenced *f = own(d);
    WEFT_ASSERT(to_inside ? is_inside(f, to, bytes) : is_outside(f, to));
    WEFT_ASSERT(from_inside ? is_inside(f, from, bytes) : is_outside(f, from));
    if (f->copies_left == 0)
        return weft_fail(dg, W0902, WEFT_NOWHERE, "the fenced device copies no more");
    f->copies_left -= f->copies_left > 0;
    fence(f, true);
    memcpy(to, from, bytes);
    fence(f, false);
    return WEFT_OK;
}

static weft_status fenced_copy_in(weft_diag *dg, device *d, void *to, const void *from, size_t n)
{
    return copy(dg, d, to, from, n, true, false);
}

static weft_status fenced_copy_out(weft_diag *dg, device *d, void *to, const void *from, size_t n)
{
    return copy(dg, d, to, from, n, false, true);
}

static weft_status fenced_copy(weft_diag *dg, device *d, void *to, const void *from, size_t n)
{
    return copy(dg, d, to, from, n, true, true);
}

/* ---- weights ---- */

typedef struct {
    weights base;
    void **block; /* [n_weight]: its bytes */
    void **table; /* [n_weight]: their addresses, where the plan wants them; else NULL */
    size_t bytes;
} fenced_weights;

static void fenced_weights_free(weights *base)
{
    fenced_weights *w = (fenced_weights *)(void *)base;
    for (int32_t i = 0; i < base->p->n_weight; i++) {
        fenced_free(base->dev, w->block[i]);
        fenced_free(base->dev, w->table[i]);
    }
    free(w->block);
    free(w->table);
    free(w);
}

/* What a weight takes, gaps between the rows of one that could stay in place included. */
static weft_status size_weight(weft_diag *dg, const plan_weight *w, const weight_source *src,
                               size_t *out_bytes)
{
    *out_bytes = w->bytes;
    if (w->mode != WEIGHT_MAPPED)
        return WEFT_OK;
    *out_bytes = 0;
    for (int i = 0; i < w->n_piece; i++) {
        weight_piece v;
        WEFT_TRY(weight_find(dg, w, i, src, &v));
        *out_bytes += v.bytes;
    }
    return WEFT_OK;
}

/* The address of each index of axis 0, from those of the pieces or from equal parts of the whole. */
static void list_addresses(const plan_weight *w, const weight_source *src, char *block, void **to)
{
    weft_diag *dg = diag_create();
    size_t at = 0;
    for (int64_t e = 0; e < w->n_table && w->mode != WEIGHT_MAPPED; e++)
        *to++ = block + (size_t)e * (w->bytes / (size_t)w->n_table);
    for (int i = 0; i < w->n_piece && w->mode == WEIGHT_MAPPED; i++) {
        weight_piece v;
        weft_status found = weight_find(dg, w, i, src, &v);
        WEFT_ASSERT(found == WEFT_OK);
        for (int64_t e = 0; e < w->piece[i].rows; e++)
            *to++ = block + at + e * w->stride[0];
        at += v.bytes;
    }
    diag_destroy(dg);
}

static weft_status load_weight(weft_diag *dg, device *d, const plan_weight *w,
                               const weight_source *src, void **out_block, void **out_table)
{
    size_t bytes, table_bytes = (size_t)w->n_table * sizeof(void *);
    WEFT_TRY(size_weight(dg, w, src, &bytes));
    WEFT_TRY(fenced_alloc(dg, d, bytes, out_block));
    char *to = *out_block;
    if (w->computed)
        return fenced_copy_in(dg, d, to, w->computed, bytes);
    WEFT_TRY(weight_check(dg, w));
    for (int i = 0; i < w->n_piece; i++) {
        weight_piece v;
        WEFT_TRY(weight_find(dg, w, i, src, &v));
        bool whole = w->mode == WEIGHT_MAPPED;
        size_t n = whole ? v.bytes : (size_t)v.rows * v.row_bytes;
        char *made = malloc(n + v.row_bytes);
        if (!whole)
            weight_make(&v, 0, v.rows, made, made + n);
        weft_status st = fenced_copy_in(dg, d, to, whole ? v.data : made, n);
        free(made);
        WEFT_TRY(st);
        to += n;
    }
    if (!w->n_table)
        return WEFT_OK;
    void **addresses = malloc(table_bytes);
    list_addresses(w, src, *out_block, addresses);
    weft_status st = fenced_alloc(dg, d, table_bytes, out_table);
    if (st == WEFT_OK)
        st = fenced_copy_in(dg, d, *out_table, addresses, table_bytes);
    free(addresses);
    return st;
}

static weft_status fenced_weights_load(weft_diag *dg, device *d, const plan *p,
                                       const weight_source *src, const weights_options *opt,
                                       weights **out_w)
{
    fenced_weights *w = calloc(1, sizeof *w);
    size_t n = (size_t)p->n_weight + 1, held = own(d)->held;
    (void)opt;
    w->base = (weights){.dev = d, .p = p};
    w->block = calloc(n, sizeof *w->block);
    w->table = calloc(n, sizeof *w->table);
    weft_status st = WEFT_OK;
    for (int32_t i = 0; i < p->n_weight && st == WEFT_OK; i++)
        st = load_weight(dg, d, &p->weight[i], src, &w->block[i], &w->table[i]);
    w->bytes = own(d)->held - held;
    if (st == WEFT_OK)
        *out_w = &w->base;
    else
        fenced_weights_free(&w->base);
    return st;
}

static weights_memory fenced_weights_need(device *d, const plan *p, const weight_source *src,
                                          const weights_options *opt)
{
    weft_diag *dg = diag_create();
    weights_memory m = {0};
    (void)d, (void)opt;
    for (int32_t i = 0; i < p->n_weight; i++) {
        size_t bytes = 0;
        if (size_weight(dg, &p->weight[i], src, &bytes) == WEFT_OK)
            m.copied += bytes + (size_t)p->weight[i].n_table * sizeof(void *);
    }
    diag_destroy(dg);
    return m;
}

static weights_memory fenced_weights_bytes(const weights *w)
{
    return (weights_memory){.copied = ((const fenced_weights *)(const void *)w)->bytes};
}

static weft_status fenced_weights_check(weft_diag *dg, const weights *w)
{
    (void)dg, (void)w;
    return WEFT_OK;
}

/* ---- plans ---- */

struct exec {
    fenced *f;
    const plan *p;
    const fenced_weights *w;
    char *arena, *scratch, *consts; /* all of these are the device's */
    kinstr *code;
    kcell *cells;
    kbatch *batch;
    const klora *lora; /* the host's */
    const void *slots;
    size_t batch_bytes;
    device_memory bytes;
    int64_t rows[ROWS_FIXED]; /* of the call that was begun */
    bool pending;             /* and is not done */
    uint64_t items;
    step_time *times; /* NULL: never measured */
    bool measure;
    device_watch *watch;
    void *watch_ctx;
};

static weft_status fenced_need(weft_diag *dg, device *d, const device_load *what,
                               device_memory *out_m)
{
    const plan *p = what->p;
    (void)dg, (void)d;
    *out_m = (device_memory){.arena = p->arena_bytes,
                             .scratch = p->scratch_bytes,
                             .tables = p->const_bytes + what->batch_bytes +
                                       (size_t)p->n_code * sizeof(kinstr) +
                                       (size_t)p->n_cell * sizeof(kcell)};
    return WEFT_OK;
}

static void fenced_unload(exec *e)
{
    if (!e)
        return;
    device *d = &e->f->base;
    void *const parts[] = {e->arena, e->scratch, e->consts, e->code, e->cells, e->batch};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        fenced_free(d, parts[i]);
    free(e->times);
    free(e);
}

/* Memory for `bytes`, with a copy of what `from` has unless it is NULL. */
static weft_status take(weft_diag *dg, exec *e, const void *from, size_t bytes, void **out_p)
{
    WEFT_TRY(fenced_alloc(dg, &e->f->base, bytes, out_p));
    return from && bytes ? fenced_copy_in(dg, &e->f->base, *out_p, from, bytes) : WEFT_OK;
}

static weft_status take_parts(weft_diag *dg, exec *e, const device_load *what)
{
    const plan *p = what->p;
    struct {
        const void *from;
        size_t bytes;
        void *to;
    } part[] = {{NULL, p->arena_bytes, NULL},
                {NULL, p->scratch_bytes, NULL},
                {p->consts, p->const_bytes, NULL},
                {p->code, (size_t)p->n_code * sizeof(kinstr), NULL},
                {what->cells, (size_t)p->n_cell * sizeof(kcell), NULL},
                {NULL, what->batch_bytes, NULL}};
    weft_status st = WEFT_OK;
    for (size_t i = 0; i < sizeof part / sizeof *part && st == WEFT_OK; i++)
        st = take(dg, e, part[i].from, part[i].bytes, &part[i].to);
    e->arena = part[0].to;
    e->scratch = part[1].to;
    e->consts = part[2].to;
    e->code = part[3].to;
    e->cells = part[4].to;
    e->batch = part[5].to;
    return st;
}

static weft_status fenced_load(weft_diag *dg, device *d, const device_load *what, exec **out_e)
{
    exec *e = calloc(1, sizeof *e);
    e->f = own(d);
    e->p = what->p;
    e->w = (const fenced_weights *)(const void *)what->w;
    e->batch_bytes = what->batch_bytes;
    e->lora = what->lora;
    e->slots = what->slots;
    weft_status st = fenced_need(dg, d, what, &e->bytes);
    for (int32_t i = 0; i < e->p->n_kernel && st == WEFT_OK; i++)
        if (!kernel_named(e->p->kernel[i].name))
            st = weft_fail(dg, W1501, WEFT_NOWHERE,
                           "the plan has a kernel %s, which the fenced device has not",
                           e->p->kernel[i].name);
    if (st == WEFT_OK)
        st = take_parts(dg, e, what);
    if (st == WEFT_OK)
        *out_e = e;
    else
        fenced_unload(e);
    return st;
}

static void fenced_bytes(const exec *e, device_memory *out_m)
{
    *out_m = e->bytes;
}

/* ---- calls ---- */

static void *resolve(const exec *e, const plan_operand *o)
{
    static const kbatch_part parts[] = {
        [IO_TOKENS] = KBATCH_TOKEN, [IO_POS] = KBATCH_POS, [IO_ROWS] = KBATCH_OUT};
    switch (o->space) {
    case SPACE_WEIGHT:
        return e->w->table[o->id] ? e->w->table[o->id] : e->w->block[o->id];
    case SPACE_CONST:
        return e->consts + o->offset;
    case SPACE_ARENA:
        return e->arena + o->offset;
    case SPACE_IO: /* behind the head: as many as the call has rows */
        return (char *)e->batch + sizeof(kbatch) +
               (size_t)(parts[o->id] * e->rows[ROWS_T]) * sizeof(int32_t);
    case SPACE_LOCAL:
    case SPACE_TILE:
        WEFT_ASSERT(!"a plan of this back end has no memory of threads");
        break;
    case SPACE_ADAPTER:
        return (void *)((uintptr_t)e->slots + e->p->site[o->id].offset);
    case SPACE_NONE:
        break;
    }
    return NULL;
}

static kargs args_of(const exec *e, const plan_step *s)
{
    kargs k = {.cols = s->cols,
               .tile = s->tile,
               .code = s->n_code ? e->code + s->code : NULL,
               .n_code = s->n_code,
               .batch = e->batch,
               .lora = e->lora,
               .cell = s->cell >= 0 ? &e->cells[s->cell] : NULL};
    for (int i = 0; i < K_IN_MAX; i++) {
        k.in[i] = resolve(e, &s->in[i]);
        k.type[i] = s->in[i].type;
        WEFT_ASSERT(!k.in[i] || is_inside(e->f, k.in[i], 1));
    }
    for (int i = 0; i < s->n_out; i++) {
        k.out[i] = resolve(e, &s->out[i]);
        WEFT_ASSERT(is_inside(e->f, k.out[i], 1));
    }
    memcpy(k.pitch, s->pitch, sizeof k.pitch);
    memcpy(k.out_pitch, s->out_pitch, sizeof k.out_pitch);
    memcpy(k.stride, s->stride, sizeof k.stride);
    memcpy(k.n, s->n, sizeof k.n);
    memcpy(k.f, s->f, sizeof k.f);
    memcpy(k.word, s->word, sizeof k.word);
    if (s->rows != ROWS_FIXED)
        k.n[0] = e->rows[s->rows] * s->per_row;
    return k;
}

static weft_status fenced_submit(weft_diag *dg, exec *e, const kbatch *b)
{
    WEFT_ASSERT(!e->pending && kbatch_bytes(b) <= e->batch_bytes);
    WEFT_TRY(fenced_copy_in(dg, &e->f->base, e->batch, b, kbatch_bytes(b)));
    e->rows[ROWS_T] = b->n_tok;
    e->rows[ROWS_R] = b->n_out;
    e->rows[ROWS_S] = b->n_seq;
    e->pending = true;
    return WEFT_OK;
}

static void run_step(exec *e, const plan_bucket *b, int32_t i)
{
    const kernel_row *row = kernel_named(plan_kernel_of(e->p, &b->step[i])->name);
    kargs k = args_of(e, &b->step[i]);
    kthread t = {.count = 1, .scratch = e->scratch, .scratch_bytes = e->p->scratch_bytes};
    uint64_t start = clock_ns();
    fence(e->f, true);
    if (k.cell)
        WEFT_ASSERT(is_inside(e->f, k.cell->tier[0].base, 1));
    int64_t units = kernel_units(row, &k);
    if (units > 0)
        row->fn(&k, &t, 0, units);
    fence(e->f, false);
    if (e->measure && units > 0) {
        step_time *at = &e->times[i];
        at->calls++;
        at->rows += (uint64_t)e->rows[ROWS_T];
        at->ns += clock_ns() - start;
        at->ns_busy = at->ns;
    }
}

static weft_status fenced_wait(weft_diag *dg, exec *e)
{
    const plan_bucket *b = plan_bucket_for(e->p, e->rows[ROWS_T]);
    weft_status st = WEFT_OK;
    WEFT_ASSERT(e->pending && e->p->n_bucket == 1);
    e->items = 0;
    for (int32_t i = 0; i < b->n_item && st == WEFT_OK; i++, e->items++) {
        for (int32_t k = 0; k < b->item[i].n_step; k++)
            run_step(e, b, b->item[i].first + k);
        if (e->watch)
            st = e->watch(e->watch_ctx, dg, 0, b->item[i].phase);
    }
    e->pending = false;
    return st;
}

static weft_status fenced_read(weft_diag *dg, const exec *e, size_t offset, void *to, size_t bytes)
{
    WEFT_ASSERT(offset <= e->bytes.arena && bytes <= e->bytes.arena - offset);
    return fenced_copy_out(dg, &e->f->base, to, e->arena + offset, bytes);
}

static weft_status fenced_write(weft_diag *dg, exec *e, size_t offset, const void *from,
                                size_t bytes)
{
    WEFT_ASSERT(offset <= e->bytes.arena && bytes <= e->bytes.arena - offset);
    return fenced_copy_in(dg, &e->f->base, e->arena + offset, from, bytes);
}

static run_stats fenced_stats(const exec *e)
{
    return (run_stats){.barriers = e->items};
}

static void fenced_profile(exec *e, bool on)
{
    e->measure = on;
    if (!on)
        return;
    free(e->times);
    e->times = calloc((size_t)e->p->bucket->n_step, sizeof *e->times);
}

static const step_time *fenced_profile_steps(const exec *e, int32_t bucket)
{
    WEFT_ASSERT(bucket == 0);
    return e->times;
}

static void fenced_watch(exec *e, device_watch *hook, void *ctx)
{
    e->watch = hook;
    e->watch_ctx = ctx;
}

const device_kind device_kind_fenced = {
    .name = "fenced",
    .open = fenced_open,
    .close = fenced_close,
    .room = fenced_room,
    .alloc = fenced_alloc,
    .free = fenced_free,
    .copy_in = fenced_copy_in,
    .copy_out = fenced_copy_out,
    .copy = fenced_copy,
    .weights_load = fenced_weights_load,
    .weights_free = fenced_weights_free,
    .weights_need = fenced_weights_need,
    .weights_bytes = fenced_weights_bytes,
    .weights_check = fenced_weights_check,
    .need = fenced_need,
    .load = fenced_load,
    .unload = fenced_unload,
    .bytes = fenced_bytes,
    .submit = fenced_submit,
    .wait = fenced_wait,
    .read = fenced_read,
    .write = fenced_write,
    .stats = fenced_stats,
    .profile = fenced_profile,
    .profile_steps = fenced_profile_steps,
    .watch = fenced_watch,
};
