/* imatrix_collect.c - looks at the inputs of linears after each phase. */
#include "runtime/quant/imatrix_collect.h"

#include "compiler/plan.h"
#include "kernels/ref/dequant.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"
#include <stdlib.h>
#include <string.h>

/* Whose phases are looked at. */
typedef struct {
    imatrix_collect *c;
    int32_t part;
} collect_part;

struct imatrix_collect {
    imatrix *im;
    session *s;
    plan_parts plans; /* of the session */
    collect_part each[PLAN_PARTS_MAX];
    int32_t part; /* of these, at hand */
    const plan *p;
    const model_file *mf;
    int64_t n_tok, n_out;
    VEC(float) row;  /* a quantised one as f32 */
    VEC(char) in[3]; /* operands of the step at hand, copied */
};

/* Copy n rows of an operand, `last` bytes of the last one. */
static weft_status take_rows(weft_diag *dg, imatrix_collect *c, const plan_step *step, int in,
                             int64_t n, int64_t last)
{
    size_t bytes = n > 0 ? (size_t)((n - 1) * step->pitch[in] + last) : 0;
    while (c->in[in].n < bytes)
        VEC_PUSH(&c->in[in], 0);
    return session_arena_read(dg, c->s, c->part, step->in[in].offset, c->in[in].at, bytes);
}

static const char *row_at(const imatrix_collect *c, const plan_step *step, int in, int64_t i)
{
    return c->in[in].at + i * step->pitch[in];
}

static str tensor_name(const imatrix_collect *c, const plan_weight *w, int32_t piece)
{
    return model_file_tensor_at(c->mf, (size_t)w->piece[piece].tensor)->name;
}

/* A number that is the sum of some bf16. */
static float split_at(kact act, const char *row, int r, int64_t k)
{
    float sum = 0;
    for (int64_t p = act_parts(act); p-- > 0;) {
        uint16_t bits;
        memcpy(&bits, row + act_split_at(act, k, p, r) * 2, sizeof bits);
        sum += bf16_to_f32(bits);
    }
    return sum;
}

void imatrix_unpack(kact act, const void *rows, int r, int64_t n, float *out)
{
    bool interleaved = act_group(act) > 1;
    const int8_t *q = rows;
    for (int64_t k = 0; k < n; k++)
        if (act == ACT_F32)
            memcpy(&out[k], (const char *)rows + k * (int64_t)sizeof *out, sizeof *out);
        else if (act_is_split(act))
            out[k] = split_at(act, rows, r, k);
        else if (interleaved)
            out[k] = act_d4(rows, n)[k / act_block(act) * 8 + r / 2 * 4 + r % 2] *
                     q[k / 8 * 32 + r * 8 + k % 8];
        else
            out[k] = act_d_of(act, rows, n)[k / act_block(act)] *
                     q[act_is_double(act) ? k / 8 * 16 + k % 8 : k];
}

/* Copy n rows that a product reads, of len numbers; quantised ones in whole groups. */
static weft_status take_inputs(weft_diag *dg, imatrix_collect *c, const plan_step *step, int64_t n,
                               int64_t len)
{
    kact act = plan_kernel_of(c->p, step)->act;
    int64_t group = act_group(act);
    if (act == ACT_F32)
        return take_rows(dg, c, step, 0, n, len * (int64_t)sizeof(float));
    return take_rows(dg, c, step, 0, (n + group - 1) / group * group, step->pitch[0]);
}

/* Row i of them, n numbers, as f32. */
static const float *input_row(imatrix_collect *c, const plan_step *step, int64_t i, int64_t n)
{
    kact act = plan_kernel_of(c->p, step)->act;
    int64_t group = act_group(act);
    if (act == ACT_F32)
        return (const float *)(const void *)row_at(c, step, 0, i);
    while ((int64_t)c->row.n < n)
        VEC_PUSH(&c->row, 0);
    imatrix_unpack(act, row_at(c, step, 0, i - i % group), (int)(i % group), n, c->row.at);
    return c->row.at;
}

static weft_status add_linear(weft_diag *dg, imatrix_collect *c, const plan_step *step)
{
    const plan_weight *w = &c->p->weight[step->in[1].id];
    int64_t n_row = plan_step_rows(step, c->n_tok, c->n_out, 1), n = step->size.linear.in;
    WEFT_TRY(take_inputs(dg, c, step, n_row, n));
    for (int64_t i = 0; i < n_row; i++)
        imatrix_add(c->im, tensor_name(c, w, 0), 1, 0, input_row(c, step, i, n), 1, n);
    return WEFT_OK;
}

/* Experts lie in one tensor or in one each. */
static weft_status add_experts(weft_diag *dg, imatrix_collect *c, const plan_step *step)
{
    const plan_weight *w = &c->p->weight[step->in[1].id];
    int64_t n_row = plan_step_rows(step, c->n_tok, c->n_out, 1), slots = step->size.experts.slots,
            n = step->size.experts.in, experts = step->size.experts.experts;
    bool apart = w->n_piece == experts && experts > 1;
    WEFT_TRY(take_inputs(dg, c, step, step->size.experts.x_vectors > 1 ? n_row * slots : n_row, n));
    WEFT_TRY(take_rows(dg, c, step, 2, n_row, slots * (int64_t)sizeof(int32_t)));
    for (int64_t i = 0; i < n_row; i++)
        for (int64_t k = 0; k < slots; k++) {
            int32_t id;
            memcpy(&id, row_at(c, step, 2, i) + k * (int64_t)sizeof id, sizeof id);
            if (id < 0 || id >= experts)
                continue;
            const float *x =
                input_row(c, step, step->size.experts.x_vectors > 1 ? i * slots + k : i, n);
            imatrix_add(c->im, tensor_name(c, w, apart ? id : 0), apart ? 1 : experts,
                        apart ? 0 : id, x, 1, n);
        }
    return WEFT_OK;
}

/* With a tensor of the checkpoint, not with numbers that were computed from one. */
static bool multiplies(const plan *p, const plan_step *step, kop op)
{
    return step->n_in >= 2 && step->in[1].space == SPACE_WEIGHT &&
           p->weight[step->in[1].id].n_piece > 0 && plan_kernel_of(p, step)->op == op;
}

/* Does every product of a plan read from the session's memory, where it can be seen? */
static bool is_open(const plan *p)
{
    for (int32_t b = 0; b < p->n_bucket; b++)
        for (int32_t i = 0; i < p->bucket[b].n_step; i++) {
            const plan_step *step = &p->bucket[b].step[i];
            if ((multiplies(p, step, KOP_linear) || multiplies(p, step, KOP_experts)) &&
                step->in[0].space != SPACE_ARENA)
                return false;
        }
    return true;
}

static weft_status after_phase(void *ctx, weft_diag *dg, int32_t bucket, int32_t phase)
{
    const collect_part *of = ctx;
    imatrix_collect *c = of->c;
    c->part = of->part;
    c->p = c->plans.part[c->part].p;
    const plan_bucket *b = &c->p->bucket[bucket];
    for (int32_t i = 0; i < b->n_item; i++) {
        if (b->item[i].phase != phase)
            continue;
        for (int32_t k = 0; k < b->item[i].n_step; k++) {
            const plan_step *step = &b->step[b->item[i].first + k];
            if (multiplies(c->p, step, KOP_linear))
                WEFT_TRY(add_linear(dg, c, step));
            else if (multiplies(c->p, step, KOP_experts))
                WEFT_TRY(add_experts(dg, c, step));
        }
    }
    return WEFT_OK;
}

weft_status imatrix_collect_begin(weft_diag *dg, imatrix *im, session *s, const model_file *mf,
                                  imatrix_collect **out_c)
{
    const plan_parts plans = session_plans_of(s);
    bool open = true;
    for (int32_t i = 0; i < plans.n_part; i++)
        open = open && is_open(plans.part[i].p);
    if (model_file_format(mf) != MODEL_GGUF)
        return weft_fail(dg, W1017, WEFT_NOWHERE,
                         "%s is not a GGUF file, whose names an importance file uses",
                         model_file_path(mf));
    if (!open)
        return weft_fail(dg, W1017, WEFT_NOWHERE,
                         "the plan keeps what a product reads where it cannot be seen");
    imatrix_collect *c = mem_alloc(sizeof *c);
    *c = (imatrix_collect){.im = im, .s = s, .plans = plans, .mf = mf};
    VEC_START(&c->row);
    for (int i = 0; i < 3; i++)
        VEC_START(&c->in[i]);
    for (int32_t i = 0; i < plans.n_part; i++) {
        c->each[i] = (collect_part){c, i};
        session_watch(s, i, after_phase, &c->each[i]);
    }
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
    for (int32_t i = 0; i < c->plans.n_part; i++)
        session_watch(c->s, i, NULL, NULL);
    VEC_FREE(&c->row);
    for (int i = 0; i < 3; i++)
        VEC_FREE(&c->in[i]);
    mem_free(c);
}
