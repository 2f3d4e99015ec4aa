/* test_plan_check.c - the suite of compiler/plan_check.c: the toy's plan is proven, and stays so under no
 * change that would have a kernel leave its memory or threads meet. */
#include "compiler/plan_check.h"
#include "runtime/base/intmath.h"
#include "tests/base/kernel_list.h"
#include "tests/exec/toy.h"

/* A plan that may be written to: copies of what the tests change. */
typedef struct {
    toy *t;
    plan p;
    plan_bucket b;
    plan_step *step;
    plan_item *item;
    plan_weight *weight;
    plan_cell *cell;
    plan_operand *output;
} open_plan;

static void *copy(toy *t, const void *from, size_t bytes)
{
    return memcpy(arena_alloc(t->a, bytes), from, bytes);
}

static open_plan open_toy(toy *t)
{
    const plan *p = t->p;
    open_plan o = {.t = t, .p = *p, .b = p->bucket[0]};
    o.step = copy(t, o.b.step, (size_t)o.b.n_step * sizeof *o.step);
    o.item = copy(t, o.b.item, (size_t)o.b.n_item * sizeof *o.item);
    o.output = copy(t, o.b.output, (size_t)p->n_output * sizeof *o.output);
    o.weight = copy(t, p->weight, (size_t)p->n_weight * sizeof *o.weight);
    o.cell = copy(t, p->cell, (size_t)p->n_cell * sizeof *o.cell);
    o.b.step = o.step;
    o.b.item = o.item;
    o.b.output = o.output;
    o.p.weight = o.weight;
    o.p.cell = o.cell;
    return o;
}

static weft_status check(open_plan *o)
{
    diag_reset(o->t->dg);
    o->p.bucket = &o->b;
    return plan_check(o->t->dg, backend_reference(), &o->p);
}

static void expect_fault(open_plan *o, const char *part)
{
    ck_assert_int_eq(check(o), WEFT_ERR_PLAN);
    str message = diag_at(o->t->dg, 0).message;
    ck_assert_msg(strstr(message.p, part), "expected '%s' in: %s", part, message.p);
}

static plan_step *find(open_plan *o, const char *op, int nth)
{
    for (int i = 0; i < o->b.n_step; i++)
        if (plan_kernel_of(&o->p, &o->step[i])->op == kop_find(op) && nth-- == 0)
            return &o->step[i];
    ck_abort_msg("no %s", op);
    return NULL;
}

START_TEST(the_toy_is_safe)
{
    toy *t = toy_open();
    ck_assert_int_eq(plan_check(t->dg, backend_reference(), t->p), WEFT_OK);
    toy_close(t);
}
END_TEST

/* Each change of one number of a step, and what is said of it. */
static const struct {
    const char *op;
    int nth;
    size_t field; /* offset in plan_step of an int64_t */
    int64_t value;
    const char *says;
} changes[] = {
#define N(i) offsetof(plan_step, n[i])
    {"embed", 0, N(1), 64, "operand 0 reaches"},
    {"embed", 0, N(2), VOCAB + 1, "operand 0 reaches"},
    {"embed", 0, N(2), VOCAB - 1, "may go up to 28"},
    {"embed", 0, offsetof(plan_step, out[0].offset), 1 << 20, "result 0 reaches"},
    {"embed", 0, offsetof(plan_step, out[0].offset), -64, "result 0 reaches"},
    {"embed", 0, offsetof(plan_step, out[0].offset), 2, "not aligned"},
    {"embed", 0, offsetof(plan_step, per_row), 0, "rows for each"},
    {"embed", 0, offsetof(plan_step, per_row), INT64_MAX, "rows for each"},
    {"linear", 0, N(1), Q + 2 * K + 1, "operand 1 reaches"},
    {"linear", 0, N(2), D + 1, "reaches"},
    {"linear", 0, N(2), 0, "size 2 is 0"},
    {"linear", 0, N(1), INT64_MAX, "size 1 is"},
    {"linear", 0, offsetof(plan_step, pitch[1]), 4096, "operand 1 reaches"},
    {"linear", 0, offsetof(plan_step, pitch[1]), -64, "bytes apart"},
    {"linear", 0, offsetof(plan_step, tile), 8, "columns as units"},
    {"rms_norm", 0, N(3), 0, "size 3 is 0"},
    {"rms_norm", 0, N(3), 2, "operand 1 reaches"},
    {"rope", 0, N(3), 4, "pairs"},
    {"rope", 0, N(3), 1000, "pairs"},
    {"split", 0, N(3), Q + 1, "elements from"},
    {"split", 0, N(3), -1, "elements from"},
    {"attend", 0, N(1), 5, "groups"},
    {"attend", 0, N(1), 4096, "reaches"},
    {"attend", 0, N(2), -5, "window"},
    {"mul", 0, offsetof(plan_step, stride[0][0]), 1 << 30, "operand 0 reaches"},
    {"mul", 0, offsetof(plan_step, stride[0][1]), -1, "stride of -1"},
    {"mul", 0, N(1), (int64_t)1 << 31, "size 1"},
    {"route", 0, N(2), EXPERTS + 1, "experts"},
    {"route", 0, N(3), 0, "size 3"},
    {"experts", 0, N(5), EXPERTS + 1, "not a table"},
    {"experts", 0, N(2), FF + 1, "not a table"},
    {"experts", 0, N(3), D / 2, "not a table"},
    {"experts", 0, N(5), EXPERTS - 1, "ids that look rows up"},
    {"experts", 0, N(1), TOP + 1, "reaches|ids"},
    {"combine", 0, N(2), 1 << 20, "reaches"},
    {"at_pos", 0, N(1), 1 << 20, "operand 0 reaches"},
    {"take_rows", 0, N(1), 1 << 20, "reaches"},
#undef N
};

/* One of the texts between bars. */
static bool says(str message, const char *texts)
{
    char part[64];
    for (const char *p = texts; *p;) {
        size_t n = strcspn(p, "|");
        snprintf(part, sizeof part, "%.*s", (int)n, p);
        if (strstr(message.p, part))
            return true;
        p += n + (p[n] == '|');
    }
    return false;
}

START_TEST(numbers_that_reach_too_far_are_found)
{
    toy *t = toy_open();
    open_plan o = open_toy(t);
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        plan_step *s = find(&o, changes[i].op, changes[i].nth), before = *s;
        memcpy((char *)s + changes[i].field, &changes[i].value, sizeof changes[i].value);
        ck_assert_msg(check(&o) == WEFT_ERR_PLAN, "change %zu of %s went through", i,
                      changes[i].op);
        str m = diag_at(t->dg, 0).message;
        ck_assert_msg(says(m, changes[i].says), "change %zu of %s: %s", i, changes[i].op, m.p);
        *s = before;
    }
    ck_assert_int_eq(check(&o), WEFT_OK);
    toy_close(t);
}
END_TEST

START_TEST(operands_of_the_wrong_kind_are_found)
{
    toy *t = toy_open();
    open_plan o = open_toy(t);
    plan_step *s = find(&o, "linear", 0), kept = *s;
    s->in[1].type = DT_Q8_0;
    expect_fault(&o, "weight qkv.0 is F16");
    *s = kept;
    s->in[1].id = o.p.n_weight;
    expect_fault(&o, "operand 1 is weight");
    *s = kept;
    s->in[1] = find(&o, "experts", 0)->in[1];
    expect_fault(&o, "table of addresses");
    *s = kept;
    s->in[0].space = SPACE_NONE;
    expect_fault(&o, "operand 0 is missing");
    s->in[0].space = (plan_space)77;
    expect_fault(&o, "of no kind");
    *s = kept;
    s->out[0].space = SPACE_LOCAL;
    expect_fault(&o, "a thread's own memory");
    *s = kept;
    s->kernel = -1;
    expect_fault(&o, "no kernel -1");
    s->kernel = 1 << 20;
    expect_fault(&o, "no kernel");
    *s = kept;
    s->out[0] = s->in[0];
    expect_fault(&o, "overlaps");
    *s = kept;
    s = find(&o, "embed", 0);
    kept = *s;
    s->in[1].id = IO_POS;
    expect_fault(&o, "may go up to");
    s->in[1].id = 3;
    expect_fault(&o, "none of what a call brings");
    *s = kept;
    s = find(&o, "attend", 0);
    kept = *s;
    s->cell = 2;
    expect_fault(&o, "no cell 2");
    s->cell = -1;
    expect_fault(&o, "no cell");
    *s = kept;
    s->rows = ROWS_R;
    expect_fault(&o, "not the call's tokens");
    *s = kept;
    o.b.scratch_bytes = 8;
    expect_fault(&o, "scratch");
    toy_close(t);
}
END_TEST

START_TEST(threads_that_would_meet_are_found)
{
    toy *t = toy_open();
    open_plan o = open_toy(t);
    /* Two steps of which one reads what the other makes, in one phase. */
    for (int i = 1; i < o.b.n_item; i++)
        o.item[i].phase--;
    o.b.n_phase--;
    expect_fault(&o, "another step of its phase writes");
    o = open_toy(t);
    /* append and attend of a cell */
    int attend = (int)(find(&o, "attend", 0) - o.step);
    for (int i = attend; i < o.b.n_item; i++)
        o.item[i].phase--;
    o.b.n_phase--;
    expect_fault(&o, "another step of its phase writes");
    o = open_toy(t);
    /* A value in the place of one that is still to be read. */
    plan_step *down = find(&o, "experts", 1);
    down->out[0].offset = find(&o, "route", 0)->out[0].offset;
    o.p.arena_bytes = o.b.arena_bytes += 1 << 16;
    expect_fault(&o, "experts"); /* it overlaps its ids */
    o = open_toy(t);
    plan_step *up = find(&o, "experts", 0);
    up->in[2].offset = find(&o, "route", 0)->out[1].offset;
    expect_fault(&o, "ids that look rows up");
    o = open_toy(t);
    find(&o, "linear", 0)->in[0].offset = (int64_t)o.b.arena_bytes;
    o.p.arena_bytes = o.b.arena_bytes += 1 << 16;
    expect_fault(&o, "no step has written");
    o = open_toy(t);
    o.output[0].offset = (int64_t)o.b.arena_bytes;
    expect_fault(&o, "outside the arena");
    o.p.arena_bytes = o.b.arena_bytes += 1 << 16;
    expect_fault(&o, "no step makes output");
    toy_close(t);
}
END_TEST

START_TEST(items_out_of_order_are_found)
{
    toy *t = toy_open();
    open_plan o = open_toy(t);
    o.item[3].first++;
    expect_fault(&o, "out of order");
    o = open_toy(t);
    o.item[3].phase = 99;
    expect_fault(&o, "out of order");
    o = open_toy(t);
    o.item[3].n_step = 1 << 30;
    expect_fault(&o, "out of order");
    o = open_toy(t);
    o.b.n_item--;
    expect_fault(&o, "phases");
    o = open_toy(t);
    o.item[0].per_thread = true; /* and yet it writes to the arena */
    expect_fault(&o, "shared memory");
    o = open_toy(t);
    o.b.n_tok_max++;
    expect_fault(&o, "bucket 0 is for");
    o = open_toy(t);
    o.b.arena_bytes += 64;
    expect_fault(&o, "more memory than the plan");
    toy_close(t);
}
END_TEST

START_TEST(weights_that_lie_are_found)
{
    toy *t = toy_open();
    open_plan o;
    const struct {
        size_t field;
        int64_t value;
        const char *says;
    } lies[] = {
        {offsetof(plan_weight, rows), 1000, "number of rows"},
        {offsetof(plan_weight, pitch), 1, "distance"},
        {offsetof(plan_weight, pitch), -1, "too large"},
        {offsetof(plan_weight, dim[0]), 0, "size that cannot be"},
        {offsetof(plan_weight, dim[0]), INT64_MAX, "size that cannot be"},
        {offsetof(plan_weight, dim[1]), INT32_MAX, "bytes"},
        {offsetof(plan_weight, stride[0]), 8, "distance"},
        {offsetof(plan_weight, bytes), 8, "bytes"},
        {offsetof(plan_weight, n_table), 3, "rows"},
    };
    for (size_t i = 0; i < COUNT_OF(lies); i++) {
        o = open_toy(t);
        int w = 0;
        while (strcmp(o.weight[w].name, "gate") != 0)
            w++;
        memcpy((char *)&o.weight[w] + lies[i].field, &lies[i].value, 8);
        expect_fault(&o, lies[i].says);
    }
    o = open_toy(t);
    o.weight[0].rank = 99;
    expect_fault(&o, "axes");
    o = open_toy(t);
    o.weight[0].type = (dtype)99;
    expect_fault(&o, "no type");
    o = open_toy(t);
    o.p.copied_bytes -= 64;
    expect_fault(&o, "bytes of copies");
    o = open_toy(t);
    o.cell[1].k = INT32_MAX;
    expect_fault(&o, "cell 1");
    o = open_toy(t);
    o.cell[0].layout = PLAN_RING;
    o.cell[0].keep = 4;
    expect_fault(&o, "further back");
    o = open_toy(t);
    o.p.n_bucket = 0;
    expect_fault(&o, "buckets");
    o = open_toy(t);
    o.p.n_out_max = 1 << 20;
    expect_fault(&o, "cannot be");
    toy_close(t);
}
END_TEST

/* ---- tiles and maps, in a plan made by hand ---- */

enum { ROWS = 4, WIDTH = 96, TILE = 32, GRAIN = 2 };

/* norm for each thread -> linear in tiles -> map that adds x in place -> stored */
typedef struct {
    plan p;
    plan_bucket b;
    plan_step step[4];
    plan_item item[3];
    plan_operand output[1];
    plan_output out;
    plan_weight weight[2];
    plan_piece piece[2];
    kinstr code[4];
    const backend *be;
} tiled;

static kernel_list kernels; /* that these plans name */

static int32_t kernel_of(const char *name)
{
    return kernel_list_add(&kernels, name);
}

static plan_step step_of(const char *symbol, int n_in)
{
    return (plan_step){.kernel = kernel_of(symbol),
                       .n_in = n_in,
                       .n_out = 1,
                       .per_row = 1,
                       .cell = -1,
                       .layer = -1};
}

static void tiled_init(tiled *x)
{
    enum { PITCH = WIDTH * 4, TILE_PITCH = GRAIN * TILE * 4, BLOCK = ROWS * PITCH };
    *x = (tiled){0};
    kernels.n = 0;
    for (int i = 0; i < 2; i++) {
        x->piece[i] = (plan_piece){.tensor = i, .rows = i ? WIDTH : 10};
        x->weight[i] = (plan_weight){.name = i ? "w" : "embd",
                                     .mode = WEIGHT_MAPPED,
                                     .rank = 2,
                                     .dim = {i ? WIDTH : 10, WIDTH},
                                     .stride = {PITCH, 4},
                                     .rows = i ? WIDTH : 10,
                                     .pitch = PITCH,
                                     .n_piece = 1,
                                     .piece = &x->piece[i],
                                     .bytes = (size_t)(i ? WIDTH : 10) * PITCH};
        x->p.mapped_bytes += x->weight[i].bytes;
    }
    plan_step *s = x->step;
    s[0] = step_of("k_embed_c", 2);
    s[0].in[0] = (plan_operand){.space = SPACE_WEIGHT, .id = 0};
    s[0].in[1] = (plan_operand){.space = SPACE_IO, .type = DT_I32, .id = IO_TOKENS};
    s[0].out[0].space = SPACE_ARENA;
    s[0].pitch[0] = s[0].out_pitch[0] = PITCH;
    s[0].n[1] = WIDTH;
    s[0].n[2] = 10;
    s[1] = step_of("k_rms_norm_c", 1);
    s[1].in[0].space = SPACE_ARENA;
    s[1].out[0].space = SPACE_LOCAL;
    s[1].pitch[0] = s[1].out_pitch[0] = PITCH;
    s[1].n[1] = s[1].n[3] = 1;
    s[1].n[2] = WIDTH;
    s[2] = step_of("k_linear_F32_c", 2);
    s[2].in[0].space = SPACE_LOCAL;
    s[2].in[1] = (plan_operand){.space = SPACE_WEIGHT, .id = 1};
    s[2].out[0] = (plan_operand){.space = SPACE_TILE, .offset = BLOCK};
    s[2].pitch[0] = s[2].pitch[1] = PITCH;
    s[2].out_pitch[0] = TILE_PITCH;
    s[2].n[1] = s[2].n[2] = s[2].cols = WIDTH;
    s[2].tile = TILE;
    s[3] = step_of("k_map_c", 2);
    s[3].in[0] = s[2].out[0];
    s[3].in[1].space = SPACE_ARENA;
    s[3].out[0].space = SPACE_ARENA;
    s[3].stride[0][0] = TILE_PITCH / 4;
    s[3].stride[1][0] = WIDTH;
    s[3].stride[0][1] = s[3].stride[1][1] = 1;
    s[3].out_pitch[0] = PITCH;
    s[3].n[1] = s[3].n[2] = s[3].cols = WIDTH;
    s[3].word[0] = 1;
    s[3].tile = TILE;
    s[3].n_code = 4;
    x->code[0] = (kinstr){.op = MAP_load, .to = 0, .at = {0}};
    x->code[1] = (kinstr){.op = MAP_load, .to = 1, .at = {1}};
    x->code[2] = (kinstr){.op = MAP_add, .to = 0, .at = {0, 1}};
    x->code[3] = (kinstr){.op = MAP_store, .to = 0, .at = {0}};
    x->item[0] = (plan_item){.first = 0, .n_step = 1, .phase = 0};
    x->item[1] = (plan_item){.first = 1, .n_step = 1, .phase = 1, .per_thread = true};
    x->item[2] = (plan_item){.first = 2, .n_step = 2, .phase = 2, .grain = GRAIN};
    x->output[0].space = SPACE_ARENA;
    x->out = (plan_output){.name = "x", .index = -1, .rows = ROWS_T, .width = WIDTH};
    x->b = (plan_bucket){.n_tok_max = ROWS,
                         .n_step = 4,
                         .n_item = 3,
                         .n_phase = 3,
                         .step = x->step,
                         .item = x->item,
                         .output = x->output,
                         .arena_bytes = BLOCK,
                         .local_bytes = BLOCK + ROWS * TILE_PITCH,
                         .scratch_bytes = MAP_REGS_MAX * MAP_REG_ELEMS * 4};
    x->be = backend_cpu_find("c");
    x->p.kernel = kernels.at;
    x->p.n_tok_max = x->p.n_out_max = x->p.n_seq_max = ROWS;
    x->p.n_vocab = 10;
    x->p.n_bucket = 1;
    x->p.n_weight = 2;
    x->p.n_output = 1;
    x->p.n_code = 4;
    x->p.bucket = &x->b;
    x->p.weight = x->weight;
    x->p.output = &x->out;
    x->p.code = x->code;
    x->p.arena_bytes = x->b.arena_bytes;
    x->p.local_bytes = x->b.local_bytes;
    x->p.scratch_bytes = x->b.scratch_bytes;
}

/* Check x, which is made anew afterwards; says NULL: it is fine. */
static void tiled_is(tiled *x, const char *text)
{
    weft_diag *dg = diag_create();
    x->p.n_kernel = kernels.n;
    weft_status st = plan_check(dg, x->be, &x->p);
    const char *message = diag_count(dg) ? diag_at(dg, 0).message.p : "nothing";
    ck_assert_msg(st == (text ? WEFT_ERR_PLAN : WEFT_OK), "expected %s: %s", text, message);
    ck_assert_msg(!text || strstr(message, text), "expected %s: %s", text, message);
    diag_destroy(dg);
    tiled_init(x);
}

START_TEST(chains_of_tiles_are_proven)
{
    tiled x;
    tiled_init(&x);
    tiled_is(&x, NULL);
    x.item[2].grain = 3; /* more columns at once than there is room for */
    tiled_is(&x, "bytes apart");
    x.b.local_bytes -= 4;
    tiled_is(&x, "reaches");
    x.step[3].stride[1][1] = 2; /* not column for column: other threads write there */
    tiled_is(&x, "reaches");
    x.item[1].phase = 0; /* every thread reads what embed's units write */
    tiled_is(&x, "out of order");
    x.item[2].phase = 1; /* harmless: each thread has the norm to itself, but for x in place */
    x.b.n_phase = 2;
    tiled_is(&x, "another step of its phase writes");
    x.step[2].out[0].offset = x.step[3].in[0].offset = 0; /* on top of its operand */
    tiled_is(&x, "overlaps");
    x.step[3].in[0].offset -= 4;
    tiled_is(&x, "not one that its chain has made");
    x.step[3].out[0] =
        (plan_operand){.space = SPACE_TILE}; /* where the next range reads the norm */
    x.step[3].out_pitch[0] = GRAIN * TILE * 4;
    tiled_is(&x, "a tile of its chain overwrites");
    x.step[3].tile = 16;
    tiled_is(&x, "other units");
    x.step[3].rows = ROWS_R; /* of which a call may want none */
    tiled_is(&x, "other units");
    x.step[2].cols = x.step[3].cols = WIDTH - 1;
    tiled_is(&x, "columns do not fit");
    x.step[1].out[0].space = SPACE_ARENA;
    tiled_is(&x, "shared memory");
    x.step[2].in[0] = x.step[3].in[1]; /* reads all of x, which the chain overwrites */
    tiled_is(&x, "other threads write in another step of its chain");
    x.step[2].kernel = kernel_of("k_linear_Q8_0_c");
    tiled_is(&x, "the kernel reads Q8_0");
    x.step[2].kernel = kernel_of("k_linear_Q8_0_c"); /* which wants x quantised */
    x.step[2].in[1].type = x.weight[1].type = x.weight[1].stored = DT_Q8_0;
    x.step[2].pitch[1] = x.weight[1].pitch = x.weight[1].stride[0] = WIDTH / 32 * 34;
    x.p.mapped_bytes -= x.weight[1].bytes - WIDTH * WIDTH / 32 * 34;
    x.weight[1].bytes = WIDTH * WIDTH / 32 * 34;
    tiled_is(&x, "quantised in another form");
    x.step[2].kernel = kernel_of("k_linear_F16_c");
    tiled_is(&x, "the kernel reads F16");
    x.be = backend_reference();
    tiled_is(&x, "not among the ref kernels");
}
END_TEST

/* norm and attention as a chain: one unit for each row, or as many as there are blocks of queries */
START_TEST(blocks_of_queries_are_no_chain)
{
    enum { PITCH = WIDTH * 4, BLOCK = ROWS * PITCH };
    const backend *be[] = {backend_cpu_find("c"), backend_cpu_best()};
    plan_cell cell = {.name = "kv", .heads = 1, .k = WIDTH, .v = WIDTH};
    for (size_t i = 0; i < COUNT_OF(be); i++) {
        plan_kernel attend;
        kernel_want want = {.op = KOP_attend, .type = DT_F32, .rows = ROWS};
        ck_assert(be[i]->select(be[i], &want, &attend));
        tiled x;
        tiled_init(&x);
        x.step[1].out[0] = (plan_operand){.space = SPACE_ARENA, .offset = BLOCK};
        x.step[2] = step_of(attend.name, 1);
        x.step[2].in[0].space = SPACE_ARENA;
        x.step[2].out[0] = (plan_operand){.space = SPACE_ARENA, .offset = 2 * BLOCK};
        x.step[2].pitch[0] = x.step[2].out_pitch[0] = PITCH;
        x.step[2].n[1] = 1;
        x.step[2].cell = 0;
        x.item[1] = (plan_item){.first = 1, .n_step = 2, .phase = 1};
        x.b.n_step = 3;
        x.b.n_item = x.b.n_phase = 2;
        x.p.arena_bytes = x.b.arena_bytes = 3 * BLOCK;
        x.p.scratch_bytes = x.b.scratch_bytes = 1 << 24;
        x.be = be[i];
        x.p.n_cell = 1;
        x.p.cell = &cell;
        tiled_is(&x, plan_kernel_splits(&attend) ? "other units" : NULL);
    }
}
END_TEST

START_TEST(code_of_maps_is_proven)
{
    tiled x;
    tiled_init(&x);
    x.code[0].op = MAP_COUNT;
    tiled_is(&x, "no instruction");
    x.code[0].to = MAP_REGS_MAX;
    tiled_is(&x, "sets register 16");
    x.code[0].at[0] = 2;
    tiled_is(&x, "loads operand 2");
    x.code[2].at[1] = 5;
    tiled_is(&x, "reads register 5");
    x.code[2].at[2] = 200;
    tiled_is(&x, "register 200");
    x.code[3].to = 1;
    tiled_is(&x, "stores to result 1");
    x.step[3].n_code = 3;
    tiled_is(&x, "without a value");
    x.step[3].code = 1;
    tiled_is(&x, "not in the plan");
    x.step[3].code = INT32_MAX;
    tiled_is(&x, "not in the plan");
    x.step[3].word[0] = 6;
    tiled_is(&x, "axes");
    x.step[3].n[2] = WIDTH / 2;
    tiled_is(&x, "its axes make");
}
END_TEST

START_TEST(tiers_that_nobody_makes_are_found)
{
    toy *t = toy_open();
    open_plan o = open_toy(t);
    const kpolicy two = {2, {{KFORM_F32, KFORM_F32, 8}, {KFORM_Q8, KFORM_Q8, KPOLICY_REST}}};
    o.p.tiers = two;
    expect_fault(&o, "tiers of its cell are not made before it");
    for (int32_t i = 0; i < o.p.n_cell; i++) { /* cells that must not be coarser have one */
        o.cell[i].bounded = true;
        o.cell[i].coarsest = KFORM_F32;
    }
    ck_assert_int_eq(check(&o), WEFT_OK);
    o.p.tiers.tier[0].last = -1;
    expect_fault(&o, "`last` does not grow");
    o.p.tiers = two;
    o.cell[0].coarsest = KFORM_COUNT;
    expect_fault(&o, "cannot have these sizes");
    o.cell[0].coarsest = KFORM_F32;
    o.cell[0].pin = -1;
    expect_fault(&o, "cannot have these sizes");
    toy_close(t);
}
END_TEST

SUITE_MAIN("plan_check", the_toy_is_safe, tiers_that_nobody_makes_are_found,
           numbers_that_reach_too_far_are_found, operands_of_the_wrong_kind_are_found,
           threads_that_would_meet_are_found, items_out_of_order_are_found,
           weights_that_lie_are_found, chains_of_tiles_are_proven, blocks_of_queries_are_no_chain,
           code_of_maps_is_proven)
