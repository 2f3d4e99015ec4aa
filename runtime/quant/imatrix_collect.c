/* imatrix_collect.c - looks at the inputs of linears after each phase. */
#include "runtime/quant/imatrix_collect.h"

#include "compiler/plan.h"
#include "runtime/base/mem.h"
#include <stdlib.h>
#include <string.h>

struct imatrix_collect {
    imatrix *im;
    session *s;
    const plan *p;
    const model_file *mf;
    int64_t n_tok, n_out;
};

static const char *op_of(const plan_step *step)
{
    int n;
    return kernel_rows(&n)[step->kernel].op;
}

static int64_t rows_of(const imatrix_collect *c, const plan_step *step)
{
    int64_t n = step->rows == ROWS_T   ? c->n_tok
                : step->rows == ROWS_R ? c->n_out
                : step->rows == ROWS_S ? 1
                                       : step->n[0];
    return step->rows == ROWS_FIXED ? n : n * step->per_row;
}

static const char *row_at(const imatrix_collect *c, const plan_step *step, int in, int64_t i)
{
    return (const char *)session_arena(c->s) + step->in[in].offset + i * step->pitch[in];
}

static str tensor_name(const imatrix_collect *c, const plan_weight *w, int32_t piece)
{
    return model_file_tensor_at(c->mf, (size_t)w->piece[piece].tensor)->name;
}

static bool is_input(const plan_operand *x)
{
    return x->space == SPACE_ARENA && x->type == DT_F32;
}

static void add_linear(imatrix_collect *c, const plan_step *step)
{
    const plan_weight *w = &c->p->weight[step->in[1].id];
    int64_t n_row = rows_of(c, step);
    for (int64_t i = 0; i < n_row; i++)
        imatrix_add(c->im, tensor_name(c, w, 0), 1, 0, (const float *)row_at(c, step, 0, i), 1,
                    step->n[2]);
}

/* Experts lie in one tensor or in one each. */
static void add_experts(imatrix_collect *c, const plan_step *step)
{
    const plan_weight *w = &c->p->weight[step->in[1].id];
    int64_t n_row = rows_of(c, step), k_max = step->n[1], experts = step->n[5];
    bool apart = w->n_piece == experts && experts > 1;
    for (int64_t i = 0; i < n_row; i++)
        for (int64_t k = 0; k < k_max; k++) {
            int32_t id;
            memcpy(&id, row_at(c, step, 2, i) + k * (int64_t)sizeof id, sizeof id);
            if (id < 0 || id >= experts)
                continue;
            const float *x = (const float *)row_at(c, step, 0, step->n[4] ? i * k_max + k : i);
            imatrix_add(c->im, tensor_name(c, w, apart ? id : 0), apart ? 1 : experts,
                        apart ? 0 : id, x, 1, step->n[3]);
        }
}

static void after_phase(void *ctx, int32_t bucket, int32_t phase)
{
    imatrix_collect *c = ctx;
    const plan_bucket *b = &c->p->bucket[bucket];
    for (int32_t i = 0; i < b->n_item; i++) {
        if (b->item[i].phase != phase)
            continue;
        for (int32_t k = 0; k < b->item[i].n_step; k++) {
            const plan_step *step = &b->step[b->item[i].first + k];
            if (step->n_in < 2 || !is_input(&step->in[0]) || step->in[1].space != SPACE_WEIGHT)
                continue;
            if (strcmp(op_of(step), "linear") == 0)
                add_linear(c, step);
            else if (strcmp(op_of(step), "experts") == 0)
                add_experts(c, step);
        }
    }
}

weft_status imatrix_collect_begin(weft_diag *dg, imatrix *im, session *s, const model_file *mf,
                                  imatrix_collect **out_c)
{
    const plan *p = session_plan_of(s);
    if (model_file_format(mf) != MODEL_GGUF)
        return weft_fail(dg, W1017, WEFT_NOWHERE,
                         "%s is not a GGUF file, whose names an importance file uses",
                         model_file_path(mf));
    if (p->best != VARIANT_ref)
        return weft_fail(dg, W1017, WEFT_NOWHERE,
                         "an importance file is collected with the reference: --exec ref");
    imatrix_collect *c = mem_alloc(sizeof *c);
    *c = (imatrix_collect){.im = im, .s = s, .p = p, .mf = mf};
    session_watch(s, after_phase, c);
    *out_c = c;
    return WEFT_OK;
}

void imatrix_collect_rows(imatrix_collect *c, int64_t n_tok, int64_t n_out)
{
    c->n_tok = n_tok;
    c->n_out = n_out;
}

void imatrix_collect_end(imatrix_collect *c)
{
    if (!c)
        return;
    session_watch(c->s, NULL, NULL);
    free(c);
}
