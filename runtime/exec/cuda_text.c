/* cuda_text.c - steps as functions with numbers in them. All names in the text are ours: nothing of a model's file gets there but
 * numbers. */
#include "runtime/exec/cuda_text.h"

#include "kernels/cuda/cuda_rows.h"
#include <inttypes.h>

/* ---- numbers, exactly ---- */

static void put_int(strbuf *b, int64_t x)
{
    if (x == INT64_MIN)
        strbuf_add(b, "(-%" PRId64 "L - 1)", INT64_MAX);
    else
        strbuf_add(b, "%" PRId64 "L", x);
}

static void put_float(strbuf *b, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    strbuf_add(b, "__uint_as_float(0x%08" PRIx32 "u)", bits);
}

static void put_double(strbuf *b, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    strbuf_add(b, "__longlong_as_double(0x%016" PRIx64 "LL)", bits);
}

/* A field of the arguments that is not 0. */
static void put_field(strbuf *b, const char *name, int at, int64_t x)
{
    if (x == 0)
        return;
    strbuf_add(b, "    k.%s[%d] = ", name, at);
    put_int(b, x);
    strbuf_add(b, ";\n");
}

/* ---- operands ---- */

enum { LINEAR_IN = 3 };

/* Whether an operand is a value of the block's own is not the same in all layers, nor of all linears: a number there would make a
 * copy of everything behind it. The block has found it (phase.cu). */
static void put_operand(strbuf *b, const cuda_text_step *s, bool in, int i)
{
    const char *name = in ? "in" : "out";
    const plan_space space = in ? s->of->in[i].space : s->of->out[i].space;
    if (space == SPACE_NONE && !s->linear)
        return;
    strbuf_add(b, "    k.%s[%d] = s->%s[%d];\n", name, i, name, i);
    if (!s->linear)
        strbuf_add(b, "    ASSUME(k.%s[%d] != NULL);\n", name, i);
}

static void put_type(strbuf *b, const cuda_text_step *s, int i)
{
    if (s->of->in[i].space != SPACE_NONE && s->k->type[i] != 0)
        strbuf_add(b, "    k.type[%d] = (dtype)%d;\n", i, (int)s->k->type[i]);
}

static void put_operands(strbuf *b, const cuda_text_step *s)
{
    for (int i = 0; i < K_IN_MAX; i++) {
        put_operand(b, s, true, i);
        put_type(b, s, i);
        put_field(b, "pitch", i, s->k->pitch[i]);
    }
    for (int i = 0; i < s->of->n_out; i++) {
        put_operand(b, s, false, i);
        put_field(b, "out_pitch", i, s->k->out_pitch[i]);
    }
}

/* All linears of a type are one shape: their code is long, and they are many. That numbers have 32 bits is told to the compiler. */
static void put_linear(strbuf *b, const cuda_text_step *s)
{
    strbuf_add(b,
               "    k.n[1] = s->linear_out;\n    k.n[2] = s->linear_in;\n"
               "    k.tile = %s;\n    k.pitch[0] = (int32_t)s->x_pitch;\n"
               "    k.pitch[1] = (int32_t)s->pitch;\n    k.out_pitch[0] = (int32_t)s->out_pitch;\n"
               "%s",
               s->k->tile ? "s->tile_cols" : "0", s->k->tile ? "    ASSUME(k.tile > 0);\n" : "");
    for (int i = 0; i < LINEAR_IN; i++)
        put_operand(b, s, true, i);
    put_operand(b, s, false, 0);
    put_type(b, s, 1);
}

static void put_cell(strbuf *b, const kcell *c)
{
    strbuf_add(b,
               "    kcell cell = {};\n"
               "    cell.n_tier = %" PRId32 ";\n    cell.table = %" PRId32 ";\n"
               "    cell.page_tok = %" PRId64 "L;\n    cell.pinned = %" PRId64 "L;\n"
               "    cell.heads = %" PRId64 "L;\n    cell.k = %" PRId64 "L;\n"
               "    cell.v = %" PRId64 "L;\n    cell.latent = %s;\n",
               c->n_tier, c->table, c->page_tok, c->pinned, c->heads, c->k, c->v,
               c->latent ? "true" : "false");
    for (int32_t i = 0; i < c->n_tier; i++) {
        if (i == 0)
            strbuf_add(b, "    cell.tier[0].base = s->base;\n");
        else
            strbuf_add(b, "    cell.tier[%d].base = s->cell->tier[%d].base;\n", (int)i, (int)i);
        strbuf_add(b,
                   "    cell.tier[%d].page_bytes = %" PRId64 "L;\n"
                   "    cell.tier[%d].key = (kform)%d;\n    cell.tier[%d].value = (kform)%d;\n",
                   (int)i, c->tier[i].page_bytes, (int)i, (int)c->tier[i].key, (int)i,
                   (int)c->tier[i].value);
    }
    strbuf_add(b, "    k.cell = &cell;\n");
}

static void put_rows(strbuf *b, const cuda_text_step *s)
{
    if (s->one_row || s->of->rows == ROWS_FIXED)
        put_field(b, "n", 0, s->k->n[0]);
    else
        strbuf_add(b, "    k.n[0] = s->rows;\n");
}

/* Sizes, choices, scalars. */
static void put_sizes(strbuf *b, const cuda_text_step *s)
{
    const kargs *k = s->k;
    for (int i = 1; i < K_SIZES_MAX; i++)
        put_field(b, "n", i, k->n[i]);
    for (int i = 0; i < K_WORDS_MAX; i++)
        if (k->word[i] != 0)
            strbuf_add(b, "    k.word[%d] = %" PRId32 ";\n", i, k->word[i]);
    for (int i = 0; i < K_SCALARS_MAX; i++)
        if (k->f[i] != 0) {
            strbuf_add(b, "    k.f[%d] = ", i);
            put_double(b, k->f[i]);
            strbuf_add(b, ";\n");
        }
    strbuf_add(b, "    k.cols = %" PRId64 "L;\n    k.tile = %" PRId64 "L;\n", k->cols, k->tile);
}

static void put_strides(strbuf *b, const kargs *k)
{
    for (int i = 0; i < K_IN_MAX; i++)
        for (int axis = 0; axis < K_AXES_MAX; axis++)
            if (k->stride[i][axis] != 0)
                strbuf_add(b, "    k.stride[%d][%d] = %" PRId64 "L;\n", i, axis,
                           k->stride[i][axis]);
}

/* ---- maps: straight code ---- */

/* A call of one row has columns `col` of 32 bits; others have elements e, whose columns and places have 64. */
typedef struct {
    const char *col, *type, *unit; /* of a place: its type, and what its numbers end with */
} map_words;

static const map_words words_of_row = {"col", "int", ""}, words_of_rows = {"e.col", "int64_t", "L"};

/* col / inner % n, without what changes nothing. */
static void put_part(strbuf *b, const map_words *w, int64_t elems, int64_t inner, int64_t n)
{
    const char *kind = elems <= UINT32_MAX ? "uint32_t" : "uint64_t"; /* the short one is fast */
    if (inner == 1 && n == elems) {
        strbuf_add(b, "%s", w->col);
        return;
    }
    strbuf_add(b, "(%s)((%s)%s", w->type, kind, w->col);
    if (inner > 1)
        strbuf_add(b, " / %" PRId64 "u", inner);
    if (inner * n < elems)
        strbuf_add(b, " %% %" PRId64 "u", n);
    strbuf_add(b, ")");
}

/* The place of an element in an input, from the first of its row on: axes that follow on each other are one. */
static void put_place(strbuf *b, const map_words *w, const kargs *k, int input)
{
    const int64_t elems = k->size.map.elems;
    int64_t inner = 1; /* elements of the axes behind */
    for (int axis = k->choice.map.axes; axis > 0;) {
        const int64_t stride = k->stride[input][axis];
        int64_t n = k->size.map.dim[axis - 1];
        for (axis--;
             axis > 0 && (k->stride[input][axis] == stride * n || k->size.map.dim[axis - 1] == 1);
             axis--)
            n *= k->size.map.dim[axis - 1];
        if (stride != 0 && n > 1) {
            strbuf_add(b, " + ");
            put_part(b, w, elems, inner, n);
            strbuf_add(b, " * %" PRId64 "%s", stride, w->unit);
        }
        inner *= n;
    }
}

/* Has the step one row, of so few elements that places have 32 bits? */
static bool map_is_row(const cuda_text_step *s)
{
    const int64_t most = INT32_MAX / (2 * K_AXES_MAX);
    const kargs *k = s->k;
    bool row = s->one_row && k->n[0] == 1 && k->size.map.elems <= most;
    for (int i = 0; i < K_IN_MAX; i++)
        for (int axis = 1; axis <= k->choice.map.axes; axis++)
            row = row && k->stride[i][axis] >= 0 &&
                  k->stride[i][axis] <= most / k->size.map.dim[axis - 1];
    return row;
}

/* The element of every input that is loaded, before anything is computed: loads that wait for each other take as long each. */
static void put_loads(strbuf *b, const cuda_text_step *s, bool row)
{
    uint32_t done = 0;
    for (int64_t i = 0; i < s->k->n_code; i++) {
        const kinstr *c = &s->code[i];
        const int input = c->at[0];
        if (c->op != MAP_load || done >> input & 1)
            continue;
        done |= 1u << input;
        strbuf_add(b, "        const float x%d = load_now((const float *)k.in[%d] + (", input,
                   input);
        if (row)
            strbuf_add(b, "0");
        else
            strbuf_add(b, "e.row * %" PRId64 "L", s->k->stride[input][0]);
        put_place(b, row ? &words_of_row : &words_of_rows, s->k, input);
        strbuf_add(b, "));\n");
    }
}

static void put_store(strbuf *b, const kinstr *c, bool row)
{
    if (row)
        strbuf_add(b, "        ((float *)k.out[%d])[col] = r%d;\n", c->to, c->at[0]);
    else
        strbuf_add(b, "        row_out(&k, %d, e.row)[e.col] = r%d;\n", c->to, c->at[0]);
}

static void put_instr(strbuf *b, const kinstr *c, bool row)
{
    static const char *const op_name[] = {
#define MAP(name, ...) "MAP_" #name,
#include "kernels/map.def"
#undef MAP
    };
    static const int8_t operands[] = {
#define MAP(name, n) n,
#include "kernels/map.def"
#undef MAP
    };
    if (c->op == MAP_load) {
        strbuf_add(b, "        r%d = x%d;\n", c->to, c->at[0]);
        return;
    }
    if (c->op == MAP_store) {
        put_store(b, c, row);
        return;
    }
    strbuf_add(b, "        r%d = map_compute(%s, ", c->to, op_name[c->op]);
    put_float(b, c->f[0]);
    strbuf_add(b, ", ");
    put_float(b, c->f[1]);
    for (int i = 0; i < 3; i++)
        if (i < operands[c->op])
            strbuf_add(b, ", r%d", c->at[i]);
        else
            strbuf_add(b, ", 0.0f");
    strbuf_add(b, ");\n");
}

enum { MAP_ROWS_MAX = 4096 }; /* of a call that an image is made for, and more */

/* The loop over elements. */
static void put_map_rows(strbuf *b, const cuda_text_step *s)
{
    const char *count = s->k->size.map.elems <= INT32_MAX / MAP_ROWS_MAX ? "int" : "int64_t";
    strbuf_add(b,
               "    const kpart p = part_of(&k, k.size.map.elems, begin, end);\n"
               "    const %s n = (%s)map_count(p);\n"
               "    UNROLLED(%d)\n"
               "    for (%s at = threadIdx.x; at < n; at += block_threads()) {\n"
               "        const map_at e = map_at_of(p, at);\n",
               count, count, s->one_row && s->k->tile != 0 ? 1 : 4, count);
}

/* Those of a tile of several rows: each warp has rows of its own, and a lane several of their columns at a time, which do not wait for each
 * other. */
static void put_map_tile(strbuf *b)
{
    strbuf_add(b, "    const kpart p = part_of(&k, k.size.map.elems, begin, end);\n"
                  "    const int end_col = (int)p.col_end, end_row = (int)p.row_end;\n"
                  "    const auto element = [&](const map_at &e) {\n");
}

static void put_map_tile_end(strbuf *b)
{
    strbuf_add(b,
               "    };\n"
               "    UNROLLED(1)\n"
               "    for (int row = (int)p.row + warp_index(); row < end_row; row += warp_count())\n"
               "        UNROLLED(1)\n"
               "    for (int col = (int)p.col + lane_index(); col < end_col; col += 4 * WARP)\n"
               "        UNROLL\n"
               "    for (int i = 0; i < 4; i++)\n"
               "        if (i == 0 || col + i * WARP < end_col)\n"
               "            element(map_at{row, col + i * WARP});\n");
}

/* The columns of a call of one row. */
static void put_map_row(strbuf *b, const cuda_text_step *s)
{
    const int64_t elems = s->k->size.map.elems, tile = s->k->tile;
    if (tile != 0)
        strbuf_add(b,
                   "    const int first = (int)begin * %" PRId64 ", last = (int)end * %" PRId64
                   ", n = (last < %" PRId64 " ? last : %" PRId64 ") - first;\n",
                   tile, tile, elems, elems);
    else
        strbuf_add(b, "    const int first = 0, n = %" PRId64 ";\n", elems);
    strbuf_add(b, "    const auto element = [&](int col) {\n");
}

/* A thread has one element of a tile, as a rule: what it does with others is code that is not passed. */
static void put_map_row_end(strbuf *b, const cuda_text_step *s)
{
    if (s->k->tile == 0)
        strbuf_add(b, "    };\n    UNROLLED(4)\n"
                      "    for (int at = threadIdx.x; at < n; at += block_threads())\n"
                      "        element(at);\n");
    else
        strbuf_add(b, "    };\n    int at = threadIdx.x;\n"
                      "    if (at < n)\n"
                      "        element(first + at);\n"
                      "    UNROLLED(1)\n"
                      "    while (n > block_threads() && (at += block_threads()) < n)\n"
                      "        element(first + at);\n");
}

static void put_map(strbuf *b, const cuda_text_step *s)
{
    const bool row = map_is_row(s);
    uint32_t used = 0;
    for (int64_t i = 0; i < s->k->n_code; i++) {
        const kinstr *c = &s->code[i];
        used |= c->op == MAP_store ? 1u << c->at[0] : 1u << c->to;
    }
    const bool tile = !s->one_row && s->k->tile != 0 && s->k->size.map.elems <= INT32_MAX / 2;
    if (row)
        put_map_row(b, s);
    else if (tile)
        put_map_tile(b);
    else
        put_map_rows(b, s);
    put_loads(b, s, row);
    for (int i = 0; i < MAP_REGS_MAX; i++)
        if (used >> i & 1)
            strbuf_add(b, "        float r%d = 0;\n", i);
    for (int64_t i = 0; i < s->k->n_code; i++)
        put_instr(b, &s->code[i], row);
    if (row)
        put_map_row_end(b, s);
    else if (tile)
        put_map_tile_end(b);
    else
        strbuf_add(b, "    }\n");
}

/* ---- the whole ---- */

/* A norm, and what quantises its rows. */
static void put_then(strbuf *b, const cuda_text_step *s)
{
    strbuf_add(b, "    k.out[1] = s->out[1];\n");
    put_field(b, "out_pitch", 1, s->then->out_pitch[0]);
    strbuf_add(b,
               "    k.choice.quantize.act = %d;\n"
               "    %s_quantize(&k, &m.t, begin, end);\n",
               (int)s->then->choice.quantize.act, s->symbol);
}

static void put_body(strbuf *b, const cuda_text_step *s, bool map)
{
    strbuf_add(b, "(const member &m, const cuda_step *s, int64_t begin, int64_t end)\n{\n"
                  "    kargs k = {};\n");
    if (s->one_row) /* units are fewer than a row has columns */
        strbuf_add(b, "    begin = (int32_t)begin;\n    end = (int32_t)end;\n");
    if (s->sheets)
        strbuf_add(b, "    if (%s_sheets<%d>(&m.t, s) || !gate_meet_late())\n        return;\n",
                   s->symbol, s->sheets);
    else if (s->streams)
        strbuf_add(b, "    if (%s_%s(s) || !gate_meet_late())\n        return;\n", s->symbol,
                   s->blocks ? "blocks_listed" : "listed");
    put_rows(b, s);
    if (s->linear) {
        put_linear(b, s);
    } else {
        put_sizes(b, s);
        put_operands(b, s);
    }
    if (s->cell)
        put_cell(b, s->cell);
    strbuf_add(b, "    IN_SHARED(m.r);\n    k.batch = m.r->batch;\n");
    if (s->lora)
        strbuf_add(b, "    k.lora = m.r->lora;\n");
    if (map) {
        put_map(b, s);
    } else if (s->then) {
        put_then(b, s);
    } else {
        put_strides(b, s->k);
        strbuf_add(b, "    %s%s(&k, &m.t, begin, end);\n", s->symbol, s->makes_x ? "_x" : "");
    }
    strbuf_add(b, "}\n");
}

enum { LATE_MAX = 64 }; /* bits of cuda_text.late */

static void shape_keep(cuda_text *t, str body, bool late)
{
    if (t->n_shape == t->room) {
        const int32_t room = t->room ? 2 * t->room : 64;
        void *more = arena_alloc(t->a, (size_t)room * sizeof *t->shape);
        if (t->n_shape)
            memcpy(more, t->shape, (size_t)t->n_shape * sizeof *t->shape);
        t->shape = more;
        t->room = room;
    }
    if (late && t->n_shape < LATE_MAX)
        t->late |= UINT64_C(1) << t->n_shape;
    t->shape[t->n_shape++].body = body;
}

/* The number of a function with this body, which is taken. */
static int32_t add_body(cuda_text *t, strbuf *body, bool late)
{
    int32_t i = 0;
    while (i < t->n_shape && !str_eq(t->shape[i].body, strbuf_view(body)))
        i++;
    if (i == t->n_shape) {
        strbuf_add(&t->text, "static __device__ SHAPE_FN void shape_%d", (int)i);
        strbuf_put(&t->text, strbuf_view(body));
        shape_keep(t, arena_printf(t->a, STR_FMT, STR_ARG(strbuf_view(body))), late);
    }
    strbuf_free(body);
    return i;
}

int32_t cuda_text_add(cuda_text *t, const cuda_text_step *s)
{
    strbuf body = {0};
    put_body(&body, s, s->map);
    t->blocks = t->blocks || s->blocks;
    t->sheets = s->sheets ? s->sheets : t->sheets;
    return add_body(t, &body, s->late);
}

int32_t cuda_text_add_heads(cuda_text *t, const cuda_text_step *s, const int32_t *at, bool late)
{
    enum { STEPS = 4, KEYS = 2, UNITS = 2 /* of several rows, that a block does at once */ };
    strbuf b = {0};
    strbuf_add(&b,
               "(const member &m, const cuda_step *first, int64_t begin, int64_t end)\n{\n"
               "    const cuda_step *s = first;\n    kargs k, of[%d] = {};\n"
               "    IN_SHARED(m.r);\n",
               STEPS);
    for (int i = 0; i < STEPS; i++) {
        strbuf_add(&b, "    k = kargs{};\n    s = first + %d;\n", (int)at[i]);
        put_rows(&b, &s[i]);
        put_sizes(&b, &s[i]);
        put_operands(&b, &s[i]);
        if (i == KEYS)
            put_cell(&b, s[i].cell);
        else if (i > KEYS)
            strbuf_add(&b, "    k.cell = &cell;\n");
        strbuf_add(&b, "    k.batch = m.r->batch;\n    of[%d] = k;\n", i);
    }
    strbuf_add(
        &b,
        "    k_heads_cuda<%d>(&of[0], &of[1], &of[2], &of[3], (int32_t)begin, (int32_t)end);\n"
        "}\n",
        s->one_row ? 1 : UNITS);
    return add_body(t, &b, late);
}

int32_t cuda_text_add_cols(cuda_text *t, const cuda_text_step *s, int32_t cols)
{
    strbuf b = {0};
    strbuf_add(&b, "(const member &, const cuda_step *s, int64_t begin, int64_t end)\n{\n"
                   "    kargs k = {};\n");
    put_rows(&b, s);
    put_sizes(&b, s);
    put_operands(&b, s);
    strbuf_add(&b, "    %s_heads(&k, (int32_t)begin, (int32_t)end, %" PRId32 ");\n}\n", s->symbol,
               cols);
    return add_body(t, &b, false);
}

void cuda_text_end(cuda_text *t, int threads)
{
    strbuf_add(&t->text,
               "enum { SHAPES_THREADS = %d };\n"
               "static const bool SHAPES_SKEWS = %s;\n"
               "static const int SHAPES_SHEETS = %d;\n"
               "static const uint64_t SHAPES_LATE = 0x%" PRIx64 "u;\n",
               threads, t->blocks ? "true" : "false", t->sheets, t->late);
    strbuf_add(&t->text,
               "static __device__ APART void shape_run(const member &m, const cuda_step *s, "
               "int32_t shape, int64_t begin, int64_t end)\n{\n    IN_SHARED(s);\n"
               "    switch (shape) {\n");
    for (int i = 0; i < t->n_shape; i++)
        strbuf_add(&t->text, "    case %d:\n        shape_%d(m, s, begin, end);\n        break;\n",
                   i, i);
    strbuf_add(&t->text, "    }\n}\n");
}
