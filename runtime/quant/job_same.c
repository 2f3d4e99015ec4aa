/* job_same.c - does a checkpoint, written as GGUF, still compute the same?
 *
 * GGUF has no key for some settings, and then a model file falls back on what is usual. So before anything is written, the
 * keys and the directory of the new file are made in memory, bound like any file, and the two graphs
 * are compared: operators, attributes, tables. */
#include "runtime/quant/job_impl.h"

#include "runtime/base/file.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* GGUF stores settings as f32, and a table is made of several of them. */
static bool close_to(double a, double b)
{
    return a == b || fabs(a - b) <= 1e-5 * fmax(fabs(a), fabs(b)) || (isnan(a) && isnan(b));
}

static const char *op_text(const gnode *n)
{
    return op_row_of(n->op)->name;
}

static bool same_table(const gconst *a, const gconst *b)
{
    bool same = a->n == b->n && a->table == b->table && close_to(a->factor, b->factor);
    for (int64_t i = 0; same && i < a->n; i++)
        same = close_to(a->data[i], b->data[i]);
    return same;
}

static bool same_ref(const graph *ga, gref a, const graph *gb, gref b)
{
    if (a.kind != b.kind || !close_to(a.number, b.number))
        return false;
    if (a.kind == REF_CONST)
        return same_table(&ga->consts.at[a.id], &gb->consts.at[b.id]);
    return a.kind == REF_WEIGHT || a.id == b.id; /* weights may be handed over in another order */
}

/* NULL if they are the same, else the attribute that is not. Words are pair orders and the like, which follow
 * from how a file is stored or stand in the model file itself. */
static const char *other_attribute(const graph *ga, const gnode *a, const graph *gb, const gnode *b)
{
    int n;
    const attr_row *row = op_attrs(a->op, &n);
    for (int i = 0; i < n; i++) {
        const gattr *x = &a->attr[i], *y = &b->attr[i];
        if (x->kind != y->kind)
            return row[i].name;
        if ((x->kind == GATTR_INT || x->kind == GATTR_BOOL) && x->integer != y->integer)
            return row[i].name;
        if (x->kind == GATTR_FLOAT && !close_to(x->number, y->number))
            return row[i].name;
        if (x->kind == GATTR_REF && !same_ref(ga, x->ref, gb, y->ref))
            return row[i].name;
    }
    return NULL;
}

static weft_status compare(weft_diag *dg, const quant_job *j, const graph *a, const graph *b)
{
    const char *path = model_file_path(j->mf);
    if (a->nodes.n != b->nodes.n || a->cells.n != b->cells.n || a->weights.n != b->weights.n)
        return weft_fail(dg, W1016, WEFT_NOWHERE,
                         "%s: written as GGUF it would be a model of %zu operators, not of %zu",
                         path, b->nodes.n, a->nodes.n);
    for (size_t i = 0; i < a->nodes.n; i++) {
        const gnode *x = &a->nodes.at[i], *y = &b->nodes.at[i];
        const char *attr = x->op == y->op ? other_attribute(a, x, b, y) : "";
        bool same = x->op == y->op && x->n_in == y->n_in;
        for (int k = 0; same && k < x->n_in; k++)
            same = same_ref(a, x->in[k], b, y->in[k]);
        if (same && !attr)
            continue;
        weft_status st =
            weft_fail(dg, W1016, x->loc, "%s: %s here would have another %s when read from GGUF",
                      path, op_text(x), attr && *attr ? attr : "operand");
        weft_note(dg, "GGUF has no key for a setting of this checkpoint that the model file reads");
        return st;
    }
    for (size_t i = 0; i < a->cells.n; i++)
        if (memcmp(a->cells.at[i].arg, b->cells.at[i].arg, sizeof a->cells.at[i].arg) != 0 ||
            a->cells.at[i].window != b->cells.at[i].window)
            return weft_fail(dg, W1016, a->cells.at[i].loc,
                             "%s: this cell would have another size when read from GGUF", path);
    return WEFT_OK;
}

/* Addresses without memory behind them, and so without limit: zeros, but where something is put. */
typedef struct {
    unsigned char *at;
    size_t bytes;
} blank;

static bool blank_put(const blank *b, uint64_t offset, const void *data, size_t n)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = offset / page * page;
    if (mprotect(b->at + first, (size_t)(offset - first) + n, PROT_READ | PROT_WRITE) != 0)
        return false;
    memcpy(b->at + offset, data, n);
    return true;
}

/* The few tensors that a model file computes with when it is bound. */
static bool put_values(const quant_job *j, const model_file *mf, const blank *b)
{
    bool fine = true;
    for (size_t i = 0; i < j->tensors.n; i++) {
        const quant_tensor *t = &j->tensors.at[i];
        const model_tensor *m = model_file_tensor(mf, t->name);
        if (t->source->values && m)
            fine = fine && blank_put(b, m->offset, t->source->values, m->bytes);
    }
    return fine;
}

static weft_status no_room(weft_diag *dg, const quant_job *j)
{
    return weft_fail(dg, W1016, WEFT_NOWHERE, "%s: no room to look at it as GGUF: %s",
                     model_file_path(j->mf), file_reason_of(errno).text);
}

static weft_status bind_and_compare(weft_diag *dg, quant_job *j, const char *arch, const blank *b)
{
    model_file *mf;
    bound_model *bm = NULL;
    bind_options how = {.arch = arch};
    WEFT_TRY(model_file_open_memory(dg, b->at, b->bytes, model_file_path(j->mf), &mf));
    bool put = put_values(j, mf, b);
    weft_status st = put ? model_bind(dg, mf, &how, &bm) : no_room(dg, j);
    if (st == WEFT_OK)
        st = compare(dg, j, j->bm->graph, bm->graph);
    else if (put)
        weft_note(dg, "this is how the checkpoint would be read once it is a GGUF file");
    bound_model_destroy(bm);
    model_file_close(mf);
    return st;
}

weft_status job_check_same(weft_diag *dg, quant_job *j, const char *arch)
{
    strbuf head = {0};
    for (size_t i = 0; i < j->tensors.n; i++) /* as if all were f32: types come later */
        j->tensors.at[i].to = DT_F32;
    gguf_writer *w = job_writer(j, NULL);
    uint64_t data = gguf_writer_head(w, &head);
    blank b = {.bytes = head.n + (size_t)data};
    b.at = mmap(NULL, b.bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    weft_status st;
    if (b.at == MAP_FAILED || !blank_put(&b, 0, head.p, head.n))
        st = no_room(dg, j);
    else
        st = bind_and_compare(dg, j, arch, &b);
    if (b.at != MAP_FAILED)
        munmap(b.at, b.bytes);
    strbuf_free(&head);
    gguf_writer_destroy(w);
    return st;
}
