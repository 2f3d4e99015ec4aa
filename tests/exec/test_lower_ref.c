/* test_lower_ref.c - the suite of compiler/lower_ref.c and its two neighbours, on the toy model. */
#include "tests/exec/toy.h"

static plan *make(toy *t, const target *limits)
{
    plan *p = NULL;
    ck_assert_int_eq(plan_make(t->dg, t->g, limits, NULL, t->a, &p), WEFT_OK);
    return p;
}

static const plan_weight *find_weight(const plan *p, const char *name)
{
    for (int i = 0; i < p->n_weight; i++)
        if (strcmp(p->weight[i].name, name) == 0)
            return &p->weight[i];
    ck_abort_msg("the plan has no weight %s", name);
    return NULL;
}

static const plan_step *find_step(const plan *p, op_code op, int nth)
{
    for (int i = 0; i < p->bucket->n_step; i++)
        if (plan_kernel_of(p, &p->bucket->step[i])->op == kop_find(op_row_of(op)->name) &&
            nth-- == 0)
            return &p->bucket->step[i];
    return NULL;
}

START_TEST(weights_come_in_the_cheapest_way)
{
    toy *t = toy_open();
    const struct {
        const char *name;
        plan_weight_mode mode;
        dtype type;
        int64_t pitch, n_table;
    } want[] = {
        {"embd", WEIGHT_MAPPED, DT_Q8_0, 34, 0},
        {"qkv.0", WEIGHT_COPIED, DT_F16, 64, 0}, /* three tensors */
        {"q.1", WEIGHT_MAPPED, DT_F16, 64, 0},   /* a slice */
        {"v.1", WEIGHT_MAPPED, DT_F16, 64, 0},
        {"q_bias", WEIGHT_COPIED, DT_F16, 48, 0}, /* every second number */
        {"o.0", WEIGHT_COPIED, DT_BF16, 48, 0},   /* transposed */
        {"gate", WEIGHT_MAPPED, DT_F32, 256, 0},  /* every second row */
        {"up", WEIGHT_MAPPED, DT_F32, 256, 0},
        {"exp_up", WEIGHT_MAPPED, DT_Q8_0, 34, 3},  /* stored apart */
        {"exp_down", WEIGHT_MAPPED, DT_F16, 40, 3}, /* stored together */
        {"exp_bias", WEIGHT_MAPPED, DT_F16, 64, 0},
        {"sinks", WEIGHT_COPIED, DT_F32, 16, 0},  /* an attribute is f32 */
        {"scale", WEIGHT_COPIED, DT_F32, 128, 0}, /* and so is a factor */
        {"out_norm", WEIGHT_COPIED, DT_F32, 128, 0},
    };
    size_t copied = 0, mapped = 0;
    for (size_t i = 0; i < COUNT_OF(want); i++) {
        const plan_weight *w = find_weight(t->p, want[i].name);
        ck_assert_msg(w->mode == want[i].mode, "%s", w->name);
        ck_assert_msg(w->type == want[i].type, "%s", w->name);
        ck_assert_msg(w->pitch == want[i].pitch, "%s", w->name);
        ck_assert_msg(w->n_table == want[i].n_table, "%s", w->name);
    }
    for (int i = 0; i < t->p->n_weight; i++)
        if (t->p->weight[i].mode == WEIGHT_COPIED)
            copied += (t->p->weight[i].bytes + 63) / 64 * 64;
        else
            mapped += t->p->weight[i].bytes;
    ck_assert_uint_eq(t->p->copied_bytes, copied);
    ck_assert_uint_eq(t->p->mapped_bytes, mapped);
    ck_assert_uint_eq(t->p->table_bytes, 2 * 64);
    ck_assert_int_eq(t->p->n_vocab, VOCAB);
    ck_assert_int_eq(t->p->n_pos, 0);
    ck_assert_int_eq(t->p->n_cell, 2);
    ck_assert_int_eq(t->p->cell[1].window, WINDOW);
    toy_close(t);
}
END_TEST

START_TEST(every_value_has_its_place)
{
    toy *t = toy_open();
    const plan *p = t->p;
    /* One step per node, but for two that only rename (three times a layer, and once) and a split. */
    ck_assert_int_eq(p->bucket->n_step, (int)t->g->nodes.n - 2 * 4 + 2);
    size_t end = 0;
    for (int i = 0; i < p->bucket->n_step; i++) {
        const plan_step *s = &p->bucket->step[i];
        ck_assert_int_eq(p->bucket->item[i].phase, i);
        for (int k = 0; k < s->n_out; k++) {
            ck_assert_int_eq(s->out[k].space, SPACE_ARENA);
            ck_assert_int_eq(s->out[k].offset % PLAN_ALIGN, 0);
            ck_assert_int_ge(s->out[k].offset, (int64_t)end); /* behind all before it */
            end = (size_t)s->out[k].offset + 1;
        }
    }
    ck_assert_uint_le(end, p->arena_bytes);
    ck_assert_ptr_null(find_step(p, OP_to_heads, 0));
    ck_assert_ptr_null(find_step(p, OP_from_heads, 0));
    for (int part = 0; part < 3; part++) {
        const plan_step *s = find_step(p, OP_split, part);
        ck_assert_int_eq(s->n[3], part == 0 ? 0 : Q + (part - 1) * K);
        ck_assert_int_eq(s->n[4], part == 0 ? Q : K);
    }
    toy_close(t);
}
END_TEST

START_TEST(costs_are_what_is_read_and_done)
{
    toy *t = toy_open();
    const plan_step *head = find_step(t->p, OP_linear, 0);
    for (int i = 0; find_step(t->p, OP_linear, i); i++)
        head = find_step(t->p, OP_linear, i); /* the last: logits from the tied table */
    ck_assert_int_eq(head->rows, ROWS_R);
    ck_assert_int_eq(head->cost.call_bytes, VOCAB * 34);
    ck_assert_int_eq(head->cost.row_bytes, (D + VOCAB) * 4);
    ck_assert_int_eq(head->cost.row_flops, 2 * VOCAB * D);
    const plan_step *embed = find_step(t->p, OP_embed, 0);
    ck_assert_int_eq(embed->cost.call_bytes, 0);
    ck_assert_int_eq(embed->cost.row_bytes, 4 + 34 + D * 4);
    const plan_step *up = find_step(t->p, OP_experts, 0);
    ck_assert_int_eq(up->cost.call_bytes, 0);
    ck_assert_int_eq(up->cost.row_bytes, D * 4 + TOP * 4 + TOP * FF * 34 + TOP * FF * 4);
    ck_assert_int_eq(up->cost.row_flops, TOP * FF * 2 * D);
    const plan_step *attend = find_step(t->p, OP_attend, 1);
    ck_assert_int_eq(attend->cost.key_bytes, 2 * K * 4);
    ck_assert_int_eq(attend->cost.key_flops, HEADS * (4 * HD + 3));
    ck_assert_int_eq(attend->n[2], WINDOW);
    ck_assert_int_eq(attend->cell, 1);
    toy_close(t);
}
END_TEST

START_TEST(only_what_is_wanted_is_planned)
{
    toy *t = toy_open();
    const char *first[] = {"resid.0"};
    plan *p = make(
        t, &(target){.be = backend_reference(), .n_tok_max = 4, .outputs = first, .n_output = 1});
    ck_assert_int_eq(p->n_output, 1);
    ck_assert_int_eq(p->output[0].index, 0);
    ck_assert_int_eq(p->output[0].width, D);
    ck_assert_int_eq(p->output[0].rows, ROWS_T);
    /* The second layer's keys are kept, for they cost a later call; its result is not. */
    ck_assert_int_eq(p->n_cell, 2);
    ck_assert_ptr_nonnull(find_step(p, OP_append, 1));
    ck_assert_ptr_null(find_step(p, OP_attend, 1));
    ck_assert_ptr_null(find_step(p, OP_route, 0));
    ck_assert_ptr_null(find_step(p, OP_take_rows, 0));
    ck_assert_int_eq(p->n_out_max, 4);
    ck_assert_int_eq(p->n_seq_max, 4);

    const char *some[] = {"resid", "hidden"};
    p = make(t,
             &(target){.be = backend_reference(), .n_tok_max = 4, .outputs = some, .n_output = 2});
    ck_assert_int_eq(p->n_output, 3);
    p = make(t, &(target){.be = backend_reference(), .n_tok_max = 4});
    ck_assert_int_eq(p->n_output, 4);

    const char *unknown[] = {"hidden", "resid.2"};
    const target bad = {
        .be = backend_reference(), .n_tok_max = 4, .outputs = unknown, .n_output = 2};
    ck_assert_int_eq(plan_make(t->dg, t->g, &bad, NULL, t->a, &p), WEFT_ERR_NAME);
    expect_one(t->dg, W0201, "no output 'resid.2'; it has resid.0 .. resid.1, hidden, logits");
    toy_close(t);
}
END_TEST

START_TEST(what_has_no_kernel_is_named)
{
    toy *t = toy_open();
    plan *p = NULL;
    target limits = {.be = backend_reference(), .n_tok_max = 4};
    gref x = {.kind = REF_VALUE, .id = t->g->outputs.at[0].value};
    gref y = NODE(t, l2_norm, TYPE(GRAPH_T, D), x);
    ck_assert_int_eq(plan_make(t->dg, t->g, &limits, NULL, t->a, &p),
                     WEFT_OK); /* nobody reads it */
    toy_output(t, "norm", -1, y);
    ck_assert_int_eq(plan_make(t->dg, t->g, &limits, NULL, t->a, &p), WEFT_ERR_TARGET);
    expect_one(t->dg, W0901, "l2_norm: this program has no kernel for it");
    diag_reset(t->dg);
    t->g->outputs.n--;
    for (size_t i = 0; i < t->g->weights.n; i++)
        if (str_eqz(t->g->weights.at[i].name, "router"))
            t->g->weights.at[i].type = DT_I32;
    ck_assert_int_eq(plan_make(t->dg, t->g, &limits, NULL, t->a, &p), WEFT_ERR_TARGET);
    expect_one(t->dg, W0901, "linear: no reference kernel reads I32, the type of router");
    toy_close(t);
}
END_TEST

/* A graph from text can claim anything; none of it may reach a kernel. */
START_TEST(sizes_that_lie_are_refused)
{
    const struct {
        op_code op;
        int dim;
        int64_t value;
    } lies[] = {
        {OP_embed, 1, D + 1},        {OP_linear, 1, 1000},
        {OP_rms_norm, 1, D - 1},     {OP_rope, 1, HEADS + 1},
        {OP_attend, 2, HD + 1},      {OP_add, 1, D + 1},
        {OP_silu, 1, FF + 1},        {OP_experts, 2, FF + 1},
        {OP_combine, 1, D + 1},      {OP_split, 1, Q + 1},
        {OP_take_rows, 1, 7},        {OP_at_pos, 0, 5},
        {OP_linear, 0, GRAPH_R},     {OP_route, 1, 4},
        {OP_mul, 0, GRAPH_S},        {OP_to_heads, 1, HEADS + 1},
        {OP_from_heads, 0, GRAPH_R},
    };
    toy *t = toy_open();
    target limits = {.be = backend_reference(), .n_tok_max = 4};
    plan *p = NULL;
    for (size_t i = 0; i < COUNT_OF(lies); i++) {
        gvalue *v = NULL;
        for (size_t k = 0; k < t->g->nodes.n && !v; k++)
            if (t->g->nodes.at[k].op == lies[i].op)
                v = &t->g->values.at[t->g->nodes.at[k].first];
        int64_t was = v->type.dim[lies[i].dim];
        v->type.dim[lies[i].dim] = lies[i].value;
        ck_assert_int_ne(plan_make(t->dg, t->g, &limits, NULL, t->a, &p), WEFT_OK);
        diag_reset(t->dg);
        v->type.dim[lies[i].dim] = INT64_MAX;
        ck_assert_int_ne(plan_make(t->dg, t->g, &limits, NULL, t->a, &p), WEFT_OK);
        diag_reset(t->dg);
        v->type.dim[lies[i].dim] = was;
    }
    ck_assert_int_eq(plan_make(t->dg, t->g, &limits, NULL, t->a, &p), WEFT_OK);
    toy_close(t);
}
END_TEST

START_TEST(ids_stay_inside_their_tables)
{
    toy *t = toy_open();
    plan *p = NULL;
    target limits = {.be = backend_reference(), .n_tok_max = 4};
    /* A learned table of positions limits them. */
    gref pos = {.kind = REF_INPUT, .id = 1};
    gref table = toy_weight(t, "positions", "embd", 0, DT_Q8_0, SHAPE(11, D));
    toy_output(t, "where", -1, NODE(t, embed, TYPE(GRAPH_T, D), table, pos));
    p = make(t, &limits);
    ck_assert_int_eq(p->n_pos, 11);
    ck_assert_int_eq(p->n_vocab, VOCAB);
    t->g->outputs.n--;
    /* A router of three, experts of two. */
    for (size_t i = 0; i < t->g->weights.n; i++)
        if (str_eqz(t->g->weights.at[i].name, "exp_down"))
            t->g->weights.at[i].dim[0] = 2;
    ck_assert_int_eq(plan_make(t->dg, t->g, &limits, NULL, t->a, &p), WEFT_ERR_SHAPE);
    expect_one(t->dg, W0301, "experts: ids go up to 2, the weight has 2 rows");
    toy_close(t);
}
END_TEST

START_TEST(stand_ins_for_weights)
{
    toy *t = toy_open();
    plan *p = NULL;
    target limits = {.be = backend_reference(), .n_tok_max = 4};
    gref x = {.kind = REF_VALUE, .id = t->g->outputs.at[0].value};
    /* A matrix that is computed once per call will do for linear, one with a row per token not. */
    gref gate = toy_weight(t, "square", "gate_up", 0, DT_F32, SHAPE(D, D));
    gref m = NODE(t, neg, TYPE(D, D), gate);
    toy_output(t, "turned", -1, NODE(t, linear, TYPE(GRAPH_T, D), x, m));
    p = make(t, &limits);
    ck_assert_int_eq(p->bucket->step[p->bucket->n_step - 2].rows, ROWS_FIXED);
    ck_assert_int_eq(p->bucket->step[p->bucket->n_step - 2].n[0], D);
    ck_assert_int_eq(p->bucket->step[p->bucket->n_step - 1].pitch[1], D * 4);
    t->g->outputs.n--;
    toy_output(t, "each", -1, NODE(t, linear, TYPE(GRAPH_T, D), x, x));
    ck_assert_int_eq(plan_make(t->dg, t->g, &limits, NULL, t->a, &p), WEFT_ERR_TARGET);
    expect_one(t->dg, W0901, "linear: the reference kernel takes a stored weight here");
    diag_reset(t->dg);
    t->g->outputs.n--;
    gref h = NODE(t, to_heads, TYPE(GRAPH_T, 2, D / 2), x, toy_number(2));
    gref stack = NODE(t, neg, TYPE(2, D / 2, D / 2),
                      toy_weight(t, "stack", "gate_up", 0, DT_F32, SHAPE(2, D / 2, D / 2)));
    toy_output(t, "heads", -1, NODE(t, head_linear, TYPE(GRAPH_T, 2, D / 2), h, stack));
    ck_assert_int_eq(plan_make(t->dg, t->g, &limits, NULL, t->a, &p), WEFT_ERR_TARGET);
    expect_one(t->dg, W0901, "head_linear: the reference kernel takes a stored weight here");
    toy_close(t);
}
END_TEST

START_TEST(limits_are_checked)
{
    toy *t = toy_open();
    plan *p = NULL;
    const target bad[] = {{.be = backend_reference(), .n_tok_max = 0},
                          {.be = backend_reference(), .n_tok_max = -1},
                          {.be = backend_reference(), .n_tok_max = INT64_MAX},
                          {.be = backend_reference(), .n_tok_max = 4, .n_out_max = 5},
                          {.be = backend_reference(), .n_tok_max = 4, .n_seq = -1}};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        ck_assert_int_eq(plan_make(t->dg, t->g, &bad[i], NULL, t->a, &p), WEFT_ERR_LIMIT);
        expect_one(t->dg, W1406, "rows");
        diag_reset(t->dg);
    }
    ck_assert_ptr_null(p);
    toy_close(t);
}
END_TEST

SUITE_MAIN("lower_ref", weights_come_in_the_cheapest_way, every_value_has_its_place,
           costs_are_what_is_read_and_done, only_what_is_wanted_is_planned,
           what_has_no_kernel_is_named, sizes_that_lie_are_refused, ids_stay_inside_their_tables,
           stand_ins_for_weights, limits_are_checked)
