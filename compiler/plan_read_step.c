/* plan_read_step.c - the buckets of a plan file: items and steps. What the numbers mean together is for
 * plan_check; here each is only a number that fits its field. */
#include "compiler/plan_file_impl.h"

/* What bounds the memory of a file that is read: a step takes hundreds of times the bytes of "{},". */
enum { BUCKETS_MAX = 64, STEPS_MAX = 1 << 16, STEPS_TOTAL_MAX = 1 << 18, EDGES_MAX = 1 << 18 };

static weft_status read_operand(plan_reader *r, const value *list, size_t i, plan_operand *out)
{
    value item = value_at(list, i);
    int space;
    int64_t id;
    if (value_kind_of(&item) == VALUE_NULL)
        return WEFT_OK; /* it is all zeros */
    WEFT_TRY(plan_item_of(r, list, i, VALUE_ARRAY, &item));
    WEFT_TRY(plan_item_word(r, &item, 0, plan_space_names, &space));
    WEFT_TRY(plan_item_int(r, &item, 1, 0, INT32_MAX, &id));
    WEFT_TRY(plan_item_int(r, &item, 2, INT64_MIN, INT64_MAX, &out->offset));
    WEFT_TRY(plan_item_type(r, &item, 3, &out->type));
    out->space = (plan_space)space;
    out->id = (int32_t)id;
    return WEFT_OK;
}

static weft_status read_operands(plan_reader *r, const value *v, const char *key, plan_operand *to,
                                 size_t max, size_t *out_n)
{
    const value *list;
    WEFT_TRY(plan_get_array(r, v, key, &list));
    size_t n = value_count(list);
    if (n > max)
        return plan_damaged(r, "`%s` has %zu operands, at most %zu are possible", key, n, max);
    for (size_t i = 0; i < n; i++)
        WEFT_TRY(read_operand(r, list, i, &to[i]));
    *out_n = n;
    return WEFT_OK;
}

static weft_status read_i32(plan_reader *r, const value *v, const char *key, int64_t otherwise,
                            int32_t *out)
{
    int64_t x;
    WEFT_TRY(plan_get_int_or(r, v, key, INT32_MIN, INT32_MAX, otherwise, &x));
    *out = (int32_t)x;
    return WEFT_OK;
}

static weft_status read_i32s(plan_reader *r, const value *v, const char *key, int32_t *to, size_t n)
{
    int64_t x[K_IN_MAX] = {0};
    WEFT_ASSERT(n <= K_IN_MAX);
    WEFT_TRY(plan_get_ints(r, v, key, x, n));
    for (size_t i = 0; i < n; i++) {
        if (x[i] < INT32_MIN || x[i] > INT32_MAX)
            return plan_damaged(r, "number %zu of `%s` is out of range", i, key);
        to[i] = (int32_t)x[i];
    }
    return WEFT_OK;
}

static weft_status read_floats(plan_reader *r, const value *v, const char *key, double *to,
                               size_t max)
{
    const value *list;
    WEFT_TRY(plan_get_array(r, v, key, &list));
    if (value_count(list) > max)
        return plan_damaged(r, "`%s` has more than %zu numbers", key, max);
    for (size_t i = 0; i < value_count(list); i++)
        WEFT_TRY(plan_item_float(r, list, i, &to[i]));
    return WEFT_OK;
}

static weft_status read_strides(plan_reader *r, const value *v, plan_step *s)
{
    const value *list;
    WEFT_TRY(plan_get_array(r, v, "stride", &list));
    if (value_count(list) > K_IN_MAX)
        return plan_damaged(r, "`stride` has more than %d rows", K_IN_MAX);
    for (size_t i = 0; i < value_count(list); i++) {
        value row;
        WEFT_TRY(plan_item_of(r, list, i, VALUE_ARRAY, &row));
        if (value_count(&row) > K_AXES_MAX)
            return plan_damaged(r, "`stride` has more than %d axes", K_AXES_MAX);
        for (size_t k = 0; k < value_count(&row); k++)
            WEFT_TRY(plan_item_int(r, &row, k, INT64_MIN, INT64_MAX, &s->stride[i][k]));
    }
    return WEFT_OK;
}

/* Kernel, operands and rows. */
static weft_status read_call(plan_reader *r, const value *v, plan_step *s)
{
    int64_t kernel, place;
    size_t n_in, n_out;
    int rows;
    WEFT_TRY(plan_get_int(r, v, "kernel", 0, r->p->n_kernel - 1, &kernel));
    s->kernel = (int32_t)kernel;
    WEFT_TRY(read_operands(r, v, "in", s->in, K_IN_MAX, &n_in));
    WEFT_TRY(read_operands(r, v, "out", s->out, K_OUT_MAX, &n_out));
    s->n_in = (int32_t)n_in;
    s->n_out = (int32_t)n_out;
    WEFT_TRY(plan_get_word(r, v, "rows", plan_rows_names, &rows));
    s->rows = (plan_rows)rows;
    WEFT_TRY(plan_get_int_or(r, v, "place", 0, r->n_place - 1, -1, &place));
    s->loc = place < 0 ? WEFT_NOWHERE : r->place[place];
    return plan_get_int_or(r, v, "per_row", 0, INT64_MAX, 1, &s->per_row);
}

static weft_status read_step(plan_reader *r, const value *v, plan_step *s)
{
    int64_t cost[5] = {0}, prec;
    WEFT_TRY(read_call(r, v, s));
    WEFT_TRY(plan_get_int_or(r, v, "prec_f32", 0, 1, 0, &prec));
    s->prec_f32 = prec != 0;
    WEFT_TRY(plan_get_ints(r, v, "pitch", s->pitch, K_IN_MAX));
    WEFT_TRY(plan_get_ints(r, v, "out_pitch", s->out_pitch, K_OUT_MAX));
    WEFT_TRY(read_strides(r, v, s));
    WEFT_TRY(plan_get_ints(r, v, "n", s->n, K_SIZES_MAX));
    WEFT_TRY(read_floats(r, v, "f", s->f, K_SCALARS_MAX));
    WEFT_TRY(read_i32s(r, v, "word", s->word, K_WORDS_MAX));
    WEFT_TRY(plan_get_int_or(r, v, "cols", 0, INT64_MAX, 0, &s->cols));
    WEFT_TRY(plan_get_int_or(r, v, "tile", 0, INT64_MAX, 0, &s->tile));
    WEFT_TRY(read_i32(r, v, "code", 0, &s->code));
    WEFT_TRY(read_i32(r, v, "n_code", 0, &s->n_code));
    WEFT_TRY(read_i32(r, v, "cell", -1, &s->cell));
    WEFT_TRY(read_i32(r, v, "layer", -1, &s->layer));
    WEFT_TRY(read_i32(r, v, "node", 0, &s->node));
    WEFT_TRY(read_i32s(r, v, "value", s->value, K_OUT_MAX));
    for (int i = 0; i < K_OUT_MAX; i++) {
        if (s->value[i] == INT32_MIN)
            return plan_damaged(r, "`value` is out of range");
        s->value[i]--;
    }
    WEFT_TRY(plan_get_ints(r, v, "cost", cost, 5));
    s->cost = (plan_cost){cost[0], cost[1], cost[2], cost[3], cost[4]};
    return WEFT_OK;
}

static weft_status read_item(plan_reader *r, const value *list, size_t i, plan_item *out)
{
    int64_t x[5] = {0};
    value item;
    WEFT_TRY(plan_item_of(r, list, i, VALUE_ARRAY, &item));
    if (value_count(&item) > 5)
        return plan_damaged(r, "an item has more than 5 numbers");
    for (size_t k = 0; k < value_count(&item); k++)
        WEFT_TRY(plan_item_int(r, &item, k, 0, k < 3 ? INT32_MAX : INT64_MAX, &x[k]));
    *out = (plan_item){(int32_t)x[0], (int32_t)x[1], (int32_t)x[2], x[3] != 0, x[4]};
    return WEFT_OK;
}

static weft_status read_edges(plan_reader *r, const value *v, plan_bucket *out)
{
    const value *list;
    WEFT_TRY(plan_get_array(r, v, "edges", &list));
    size_t n = value_count(list);
    if (n > EDGES_MAX)
        return plan_damaged(r, "it has %zu edges", n);
    plan_edge *edge = ARENA_ARRAY(r->a, plan_edge, n);
    for (size_t i = 0; i < n; i++) {
        int64_t x[2] = {0};
        value item;
        WEFT_TRY(plan_item_of(r, list, i, VALUE_ARRAY, &item));
        for (size_t k = 0; k < value_count(&item) && k < 2; k++)
            WEFT_TRY(plan_item_int(r, &item, k, 0, INT32_MAX, &x[k]));
        edge[i] = (plan_edge){(int32_t)x[0], (int32_t)x[1]};
    }
    out->edge = edge;
    out->n_edge = (int32_t)n;
    return WEFT_OK;
}

static weft_status read_bucket(plan_reader *r, const value *v, size_t *steps_total,
                               plan_bucket *out)
{
    const value *items, *steps;
    int64_t n_phase;
    size_t n_output;
    WEFT_TRY(plan_get_int(r, v, "n_tok_max", 1, INT32_MAX, &out->n_tok_max));
    WEFT_TRY(plan_get_int(r, v, "n_phase", 0, STEPS_MAX, &n_phase));
    WEFT_TRY(plan_get_size(r, v, "arena_bytes", &out->arena_bytes));
    WEFT_TRY(plan_get_size(r, v, "local_bytes", &out->local_bytes));
    WEFT_TRY(plan_get_size(r, v, "scratch_bytes", &out->scratch_bytes));
    WEFT_TRY(plan_get_array(r, v, "items", &items));
    WEFT_TRY(plan_get_array(r, v, "steps", &steps));
    size_t n_item = value_count(items), n_step = value_count(steps);
    *steps_total += n_step;
    if (n_item > STEPS_MAX || n_step > STEPS_MAX || *steps_total > STEPS_TOTAL_MAX)
        return plan_damaged(r, "it has %zu steps", n_step);
    plan_operand *places = ARENA_ARRAY(r->a, plan_operand, (size_t)r->p->n_output);
    plan_item *item = ARENA_ARRAY(r->a, plan_item, n_item);
    plan_step *step = ARENA_ARRAY(r->a, plan_step, n_step);
    WEFT_TRY(read_operands(r, v, "outputs", places, (size_t)r->p->n_output, &n_output));
    if (n_output != (size_t)r->p->n_output)
        return plan_damaged(r, "it has %zu of %d outputs", n_output, (int)r->p->n_output);
    for (size_t i = 0; i < n_item; i++)
        WEFT_TRY(read_item(r, items, i, &item[i]));
    WEFT_TRY(read_edges(r, v, out));
    r->outer = r->index;
    r->part = "step";
    for (size_t i = 0; i < n_step; i++) {
        value s;
        r->index = (int64_t)i;
        WEFT_TRY(plan_item_of(r, steps, i, VALUE_OBJECT, &s));
        WEFT_TRY(read_step(r, &s, &step[i]));
    }
    out->n_phase = (int32_t)n_phase;
    out->n_item = (int32_t)n_item;
    out->n_step = (int32_t)n_step;
    out->item = item;
    out->step = step;
    out->output = places;
    return WEFT_OK;
}

weft_status plan_read_buckets(plan_reader *r, const value *v)
{
    const value *list;
    size_t steps_total = 0;
    WEFT_TRY(plan_get_array(r, v, "buckets", &list));
    size_t n = value_count(list);
    if (n < 1 || n > BUCKETS_MAX)
        return plan_damaged(r, "it has %zu buckets", n);
    plan_bucket *b = ARENA_ARRAY(r->a, plan_bucket, n);
    for (size_t i = 0; i < n; i++) {
        value item;
        r->part = "bucket";
        r->index = (int64_t)i;
        r->outer = -1;
        WEFT_TRY(plan_item_of(r, list, i, VALUE_OBJECT, &item));
        WEFT_TRY(read_bucket(r, &item, &steps_total, &b[i]));
    }
    r->p->bucket = b;
    r->p->n_bucket = (int32_t)n;
    r->part = NULL;
    r->outer = -1;
    return WEFT_OK;
}
