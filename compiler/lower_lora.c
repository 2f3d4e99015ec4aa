/* lower_lora.c - the products of adapters as steps, and the sites whose memory they read. */
#include "compiler/lower_impl.h"

#include "runtime/base/intmath.h"
#include <inttypes.h>

/* What the weight of a node is, as a site; the words of `of` stand in the order of lora_kind. */
static weft_status shape_of(lower *lo, const gnode *n, lora_shape *out)
{
    lora_kind kind = (lora_kind)lower_attr_word(n, "of", LORA_LINEAR);
    bool stack = kind == LORA_EXPERTS || kind == LORA_HEAD_LINEAR;
    const gtype *w = lower_type_of(lo, n, 1);
    WEFT_TRY(lower_expect_rank(lo, n, 1, stack ? 3 : 2));
    if (n->in[1].kind != REF_WEIGHT)
        return weft_fail(lo->dg, W0901, n->loc, "%s: its site is no stored weight",
                         op_row_of(n->op)->name);
    *out = (lora_shape){.kind = kind,
                        .parts = stack ? w->dim[0] : 1,
                        .out = kind == LORA_EMBED ? w->dim[1] : w->dim[stack],
                        .in = kind == LORA_EMBED ? w->dim[0] : w->dim[stack + 1],
                        .rank = lo->t->lora_slots > 0 ? lo->t->lora_rank : 1};
    return WEFT_OK;
}

/* Bytes of a site, that slots of it fit into memory. */
static bool site_bytes(const lora_shape *s, int64_t slots, size_t *out_slot, size_t *out_all)
{
    int64_t floats, a, b, most = INT64_MAX / 64;
    return i64_mul(s->in + LORA_LANES, s->rank, &a) && i64_mul(s->out + LORA_COLS, s->rank, &b) &&
           a < most && b < most && i64_mul(a + b + LORA_LANES, s->parts, &floats) &&
           floats < most && size_mul((size_t)lora_slot_floats(s), sizeof(float), out_slot) &&
           size_mul(*out_slot, (size_t)slots, out_all) &&
           size_align_up(*out_all, PLAN_ALIGN, out_all);
}

/* The site of the plan that a node's weight is, added when it is not there yet. */
static weft_status use_site(lower *lo, const gnode *n, plan_step *s, const lora_shape *shape)
{
    const gweight *w = &lo->g->weights.at[n->in[1].id];
    plan *p = lo->p;
    plan_site site = {.name = arena_str(lo->a, w->whole.n > 0 ? w->whole : w->name).p,
                      .first = w->whole_row,
                      .kind = shape->kind,
                      .in = shape->in,
                      .out = shape->out,
                      .parts = shape->parts,
                      .offset = p->adapter_bytes};
    size_t i = 0, all, end;
    while (i < lo->sites.n &&
           (lo->sites.at[i].kind != site.kind || lo->sites.at[i].first != site.first ||
            lo->sites.at[i].out != site.out || strcmp(lo->sites.at[i].name, site.name) != 0))
        i++;
    if (i == lo->sites.n) {
        if (!site_bytes(shape, p->lora_slots, &site.slot_bytes, &all) ||
            !size_add(p->adapter_bytes, all, &end) || end > SIZE_MAX / 4)
            return weft_fail(lo->dg, W0902, n->loc,
                             "adapters of rank %" PRId64 " for " STR_FMT " do not fit into memory",
                             shape->rank, STR_ARG(w->name));
        p->adapter_bytes = end;
        VEC_PUSH(&lo->sites, site);
    }
    s->in[1] = (plan_operand){.space = SPACE_ADAPTER, .type = DT_F32, .id = (int32_t)i};
    s->choice.lora.site = (int32_t)i;
    return WEFT_OK;
}

/* What both have in common: rows, sizes, the site, ids. `ranks` is the type whose last axis holds a row's mix. */
static weft_status lower_both(lower *lo, const gnode *n, plan_step *s, const gtype *ranks)
{
    static const int32_t rows_of[] = {
        [ROWS_T] = LORA_OF_ALL, [ROWS_R] = LORA_OF_ASKED, [ROWS_S] = LORA_OF_SEQS};
    lora_shape shape = {0};
    WEFT_TRY(shape_of(lo, n, &shape));
    lower_count_rows(lo, s, ranks, 1);
    if (s->rows == ROWS_FIXED)
        return weft_fail(lo->dg, W0301, n->loc, "%s: its rows are not those of a call",
                         op_row_of(n->op)->name);
    WEFT_TRY(lower_use_in(lo, n, s, 0, 0, READ_F32));
    WEFT_TRY(lower_use_in(lo, n, s, 2, 2, READ_F32));
    WEFT_TRY(use_site(lo, n, s, &shape));
    bool looks_up = shape.kind == LORA_EMBED || shape.kind == LORA_EXPERTS;
    WEFT_TRY(lower_expect(lo, n, "the number of ids", lower_is_given(n, 2), looks_up));
    if (looks_up)
        WEFT_TRY(lower_check_ids(lo, n, 2, shape.kind == LORA_EMBED ? shape.in : shape.parts));
    s->size.lora.vectors = lower_row_vectors(ranks);
    s->size.lora.out = shape.out;
    s->size.lora.in = shape.in;
    s->size.lora.rank = shape.rank;
    s->size.lora.parts = shape.parts;
    s->choice.lora.kind = (int32_t)shape.kind;
    s->choice.lora.rows = rows_of[s->rows];
    if (shape.kind == LORA_EXPERTS)
        WEFT_TRY(lower_expect_row(lo, n, s, lower_type_of(lo, n, 2), s->size.lora.vectors));
    if (shape.kind == LORA_EMBED)
        WEFT_TRY(lower_expect_row(lo, n, s, lower_type_of(lo, n, 2), 1));
    if (shape.kind == LORA_HEAD_LINEAR)
        WEFT_TRY(lower_expect(lo, n, "the number of heads", s->size.lora.vectors, shape.parts));
    return lower_expect(lo, n, "the ranks of a row", lower_last_dim(ranks), K_MIX_MAX * shape.rank);
}

weft_status lower_lora_down(lower *lo, const gnode *n, plan_step *s)
{
    WEFT_TRY(lower_both(lo, n, s, lower_result_type(lo, n, 0)));
    int64_t in = s->size.lora.in, rank = s->size.lora.rank, vectors = s->size.lora.vectors;
    bool embeds = s->choice.lora.kind == LORA_EMBED;
    WEFT_TRY(lower_expect(lo, n, "the number of operands x", lower_is_given(n, 0), !embeds));
    s->size.lora.x_vectors = embeds ? 1 : lower_row_vectors(lower_type_of(lo, n, 0));
    if (s->size.lora.x_vectors != 1)
        WEFT_TRY(lower_expect(lo, n, "the number of x vectors", s->size.lora.x_vectors, vectors));
    if (!embeds)
        WEFT_TRY(lower_expect_row(lo, n, s, lower_type_of(lo, n, 0), s->size.lora.x_vectors * in));
    s->cost.row_bytes += vectors * rank * 4 * (embeds ? 1 : in);
    s->cost.row_flops = embeds ? 0 : vectors * rank * 2 * in;
    return WEFT_OK;
}

weft_status lower_lora_up(lower *lo, const gnode *n, plan_step *s)
{
    WEFT_TRY(lower_both(lo, n, s, lower_type_of(lo, n, 0)));
    int64_t out = s->size.lora.out, rank = s->size.lora.rank, vectors = s->size.lora.vectors;
    s->size.lora.x_vectors = vectors;
    s->cost.row_bytes += vectors * rank * 4 * out;
    s->cost.row_flops = vectors * rank * 2 * out;
    return lower_expect_result(lo, n, s, 0, vectors * out);
}
