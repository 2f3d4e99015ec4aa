/* check_map.c - cases for map: every instruction over all sorts of numbers, and expressions made up at
 * random.
 *
 * Bounds. The reference rounds once, at the end; a kernel after every instruction. How far each
 * register may be off is carried along with its value: the error of the operands, as the
 * instruction passes it on, and its own, which for the functions is that of kernels/c/vec_math.h. */
#include "tests/kernels/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "kernels/ref/scalar_math.h"

static const double U = 0x1p-24, TINY = 0x1p-149;

/* A number and how far it may be off. */
typedef struct {
    double x, off;
} fuzzy;

/* How an instruction of one operand works out: its value, how much it stretches an error of x (at most),
 * and its own relative error in units of U. */
typedef struct {
    kmap_op op;
    double (*fn)(double);
    double (*slope)(double);
    double (*error)(double);
} unary;

static double silu(double x)
{
    return x * sigmoid(x);
}
static double relu(double x)
{
    return x <= 0 ? 0 : x;
}
static double negate(double x)
{
    return -x;
}
/* 1 + tanh loses what is left of it where it is near 0; the sigmoid of 2u does not. */
static double gelu_tanh_exact(double x)
{
    return x * sigmoid(2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
}

static double slope_1(double x)
{
    (void)x;
    return 1.2; /* silu and the gelus rise by up to 1.13 */
}
static double slope_sqrt(double x)
{
    return 0.5 / sqrt(x);
}

static double none(double x)
{
    (void)x;
    return 0;
}
static double one(double x)
{
    (void)x;
    return 1;
}
static double four(double x)
{
    (void)x;
    return 4;
}
static double error_erf(double x)
{
    return 2 + 2 * (1 + fabs(x)) * (1 + fabs(x));
}
static double error_tanh(double x)
{
    return 2 + 2 * (1 + fabs(x)) * (1 + fabs(x)) * (1 + fabs(x));
}
static double error_quick(double x)
{
    return 3 + 3 * (1 + fabs(x));
}

static const unary unaries[] = {
    {MAP_neg, negate, slope_1, none},
    {MAP_relu, relu, slope_1, none},
    {MAP_silu, silu, slope_1, four},
    {MAP_gelu_erf, gelu_erf, slope_1, error_erf},
    {MAP_gelu_tanh, gelu_tanh_exact, slope_1, error_tanh},
    {MAP_gelu_quick, gelu_quick, slope_1, error_quick},
    {MAP_tanh, tanh, slope_1, four},
    {MAP_sigmoid, sigmoid, slope_1, four},
    {MAP_softplus, softplus, slope_1, four},
    {MAP_exp, exp, exp, four},
    {MAP_sqrt, sqrt, slope_sqrt, one},
};
enum { N_UNARY = sizeof unaries / sizeof unaries[0] };

static fuzzy unary_value(const unary *u, fuzzy a)
{
    double y = u->fn(a.x);
    double off = a.off > 0 ? a.off * u->slope(a.x) : 0;
    if (u->op == MAP_gelu_tanh)
        off += 0x1p-53 * fabs(a.x); /* the reference's own: 1 + tanh is near 0 in double too */
    return (fuzzy){y, off + u->error(a.x) * U * fabs(y) + (2 + fabs(a.x)) * TINY};
}

static double larger_of(double a, double b)
{
    return a > b ? a : b;
}

static fuzzy binary_value(kmap_op op, fuzzy a, fuzzy b)
{
    double x;
    switch (op) {
    case MAP_add:
    case MAP_sub:
        x = op == MAP_add ? a.x + b.x : a.x - b.x;
        return (fuzzy){x, a.off + b.off + U * fabs(x)};
    case MAP_mul:
        x = a.x * b.x;
        return (fuzzy){x,
                       fabs(a.x) * b.off + fabs(b.x) * a.off + a.off * b.off + U * fabs(x) + TINY};
    case MAP_div:
        x = a.x / b.x;
        return (fuzzy){x, (a.off + fabs(x) * b.off) / fabs(b.x) * 2 + U * fabs(x) + TINY};
    case MAP_max:
        return (fuzzy){a.x > b.x || a.x != a.x ? a.x : b.x, larger_of(a.off, b.off)};
    default:
        return (fuzzy){a.x < b.x || a.x != a.x ? a.x : b.x, larger_of(a.off, b.off)};
    }
}

/* Where the condition may be on either side of 0, either may have been chosen. */
static fuzzy select_value(fuzzy c, fuzzy a, fuzzy b)
{
    fuzzy y = c.x > 0 ? a : b;
    if (fabs(c.x) <= c.off)
        y.off = fabs(a.x - b.x) + larger_of(a.off, b.off);
    return y;
}

static fuzzy clamp_value(const kinstr *c, fuzzy a)
{
    double x = a.x < (double)c->f[0] ? (double)c->f[0] : a.x;
    return (fuzzy){x > (double)c->f[1] ? (double)c->f[1] : x, a.off};
}

static fuzzy instr_value(const kinstr *c, const fuzzy *reg)
{
    fuzzy a = reg[c->at[0]], b = reg[c->at[1]];
    for (int i = 0; i < N_UNARY; i++)
        if (unaries[i].op == c->op)
            return unary_value(&unaries[i], a);
    if (c->op == MAP_number)
        return (fuzzy){(double)c->f[0], 0};
    if (c->op == MAP_select)
        return select_value(a, b, reg[c->at[2]]);
    if (c->op == MAP_clamp)
        return clamp_value(c, a);
    return binary_value((kmap_op)c->op, a, b);
}

/* Where element e of a row is in input i. */
static int64_t place(const kargs *k, int i, int64_t row, int64_t e)
{
    int64_t at = row * k->stride[i][0];
    for (int axis = k->choice.map.axes; axis > 0; axis--) {
        at += e % k->size.map.dim[axis - 1] * k->stride[i][axis];
        e /= k->size.map.dim[axis - 1];
    }
    return at;
}

/* The bounds of all results, by going through the code for every element. */
static void bounds_make(check *c, check_case *out)
{
    const kargs *k = &out->ref;
    float *bound[K_OUT_MAX];
    int64_t width = k->size.map.elems;
    for (int i = 0; i < K_OUT_MAX; i++)
        out->out[i].bound = bound[i] = check_numbers(c, k->size.map.rows * width);
    for (int64_t e = 0; e < k->size.map.rows * width; e++) {
        fuzzy reg[MAP_REGS_MAX] = {{0, 0}};
        for (const kinstr *p = k->code; p < k->code + k->n_code; p++) {
            if (p->op == MAP_load)
                reg[p->to] =
                    (fuzzy){(double)((const float *)
                                         k->in[p->at[0]])[place(k, p->at[0], e / width, e % width)],
                            0};
            else if (p->op == MAP_store)
                bound[p->to][e] =
                    (float)(reg[p->at[0]].off * 1.001 + U * fabs(reg[p->at[0]].x) + 2 * TINY);
            else
                reg[p->to] = instr_value(p, reg);
        }
    }
}

/* ---- shapes ---- */

static const int64_t row_counts[] = {1, 2, 7, 33};
static const int64_t axes[][4] = {
    {1}, {5, 3}, {257}, {16, 17}, {3, 2, 64}, {4, 1, 129}, {31, 5, 3, 2}, {512}, {1000}, {1, 1},
};
enum { N_AXES = sizeof axes / sizeof axes[0] };

static void shape_make(kargs *k, int64_t rows, const int64_t *n)
{
    k->size.map.rows = rows;
    k->size.map.elems = 1;
    for (int i = 0; i < 4 && n[i]; i++) {
        k->size.map.dim[i] = n[i];
        k->size.map.elems *= n[i];
        k->choice.map.axes++;
    }
}

/* An input of this shape: dense (0), stretched along some axes (1), or with gaps (2). */
static void input_make(check *c, kargs *k, int i, int how)
{
    int64_t step = 1;
    for (int axis = k->choice.map.axes; axis >= 0; axis--) {
        int64_t n = axis == 0 ? k->size.map.rows : k->size.map.dim[axis - 1];
        bool flat = how == 1 && check_below(c, 2) == 0;
        k->stride[i][axis] = flat ? 0 : step;
        if (!flat)
            step *= n;
        if (how == 2)
            step += check_below(c, 3);
    }
    k->in[i] = check_numbers(c, step + 1);
}

static void finish(check *c, check_case *out, int n_out)
{
    for (int i = 0; i < n_out; i++)
        out->out[i] = (check_out){.type = DT_F32,
                                  .rows = out->ref.size.map.rows,
                                  .width = out->ref.size.map.elems,
                                  .strict = true};
    out->cols = out->ref.size.map.elems;
    out->grain = 1 + check_below(c, 40);
    bounds_make(c, out);
    for (int i = n_out; i < K_OUT_MAX; i++)
        out->out[i].bound = NULL;
    out->k = out->ref;
}

/* ---- programs ---- */

enum { CODE_MAX = 24 };

typedef struct {
    kinstr code[CODE_MAX];
    int64_t n;
} program;

static void add(program *p, kmap_op op, int to, int a, int b, int c)
{
    p->code[p->n++] =
        (kinstr){(uint8_t)op, (uint8_t)to, {(uint8_t)a, (uint8_t)b, (uint8_t)c}, {0, 0}};
}

/* All floats there are, more or less: any bits, and among them the strange ones. */
static float any_float(check *c)
{
    static const float strange[] = {0.0f,      -0.0f,  NAN,     INFINITY, -INFINITY,
                                    0x1p-149f, 3e38f,  -3e38f,  88.7f,    -87.4f,
                                    -103.9f,   0.625f, -0.625f, 0x1p-126f};
    uint32_t bits = check_rand(c);
    float x;
    memcpy(&x, &bits, sizeof x);
    switch (check_below(c, 4)) {
    case 0:
        return x;
    case 1:
        return strange[check_below(c, (int64_t)(sizeof strange / sizeof strange[0]))];
    default:
        return check_number(c) * (check_below(c, 2) ? 4.0f : 110.0f);
    }
}

/* One instruction over numbers of all sorts. */
static void one_make(check *c, int i, check_case *out)
{
    static const kmap_op others[] = {MAP_add, MAP_sub, MAP_mul,    MAP_div,
                                     MAP_max, MAP_min, MAP_select, MAP_clamp};
    program *p = check_alloc(c, sizeof *p, 0);
    bool is_unary = i < N_UNARY;
    kmap_op op = is_unary ? unaries[i].op : others[i - N_UNARY];
    *p = (program){.n = 0};
    shape_make(&out->ref, 3, (const int64_t[4]){4001});
    for (int j = 0; j < 3; j++) {
        input_make(c, &out->ref, j, 0);
        for (int64_t e = 0; e < 3 * 4001; e++)
            ((float *)(uintptr_t)out->ref.in[j])[e] = any_float(c);
        add(p, MAP_load, j, j, 0, 0);
    }
    add(p, op, 4, 0, 1, 2);
    p->code[p->n - 1].f[0] = -1.5f;
    p->code[p->n - 1].f[1] = INFINITY;
    add(p, MAP_store, 0, 4, 0, 0);
    out->ref.code = p->code;
    out->ref.n_code = p->n;
    out->inplace = true;
    snprintf(out->shape, sizeof out->shape, "instruction %d", (int)op);
    finish(c, out, 1);
}

/* Instructions that keep numbers of moderate size so. */
static const kmap_op mild[] = {MAP_add,       MAP_sub,        MAP_mul,    MAP_max,
                               MAP_min,       MAP_neg,        MAP_silu,   MAP_gelu_erf,
                               MAP_gelu_tanh, MAP_gelu_quick, MAP_tanh,   MAP_sigmoid,
                               MAP_relu,      MAP_softplus,   MAP_select, MAP_clamp};

/* Loads, some instructions on registers that hold something, stores. Early stores: of a result
 * that is no input, since what comes after reads on. */
static void random_make(check *c, int i, check_case *out)
{
    program *p = check_alloc(c, sizeof *p, 0);
    kargs *k = &out->ref;
    int n_in = 1 + (int)check_below(c, 3), n_reg = n_in + 1, n_out = 1 + i % 2;
    bool early = i % 3 == 0;
    *p = (program){.n = 0};
    shape_make(k, row_counts[check_below(c, 4)], axes[i % N_AXES]);
    for (int j = 0; j < n_in; j++) {
        input_make(c, k, j, j == 0 && i % 4 ? 0 : (int)check_below(c, 3));
        add(p, MAP_load, j, j, 0, 0);
    }
    add(p, MAP_number, n_in, 0, 0, 0);
    p->code[p->n - 1].f[0] = check_number(c);
    for (int j = 0; j < 8; j++) {
        int to = (int)check_below(c, n_reg < MAP_REGS_MAX ? n_reg + 1 : n_reg);
        kmap_op op = mild[check_below(c, (int64_t)(sizeof mild / sizeof mild[0]))];
        int at[3]; /* in order: every compiler makes the same program */
        for (int r = 0; r < 3; r++)
            at[r] = (int)check_below(c, n_reg);
        add(p, op, to, at[0], at[1], at[2]);
        p->code[p->n - 1].f[0] = -0.25f;
        p->code[p->n - 1].f[1] = 0.75f;
        n_reg = to == n_reg ? n_reg + 1 : n_reg;
        if (early && j == 4)
            add(p, MAP_store, n_out - 1, to, 0, 0);
    }
    for (int j = 0; j < n_out; j++)
        add(p, MAP_store, j, (int)check_below(c, n_reg), 0, 0);
    k->code = p->code;
    k->n_code = p->n;
    out->inplace = i % 4 != 0 && !early;
    snprintf(out->shape, sizeof out->shape, "program %d, %d rows of %d", i, (int)k->size.map.rows,
             (int)k->size.map.elems);
    finish(c, out, n_out);
}

/* What is loaded goes out unchanged, each to the other's place: in place, too. */
static void swap_make(check *c, check_case *out)
{
    program *p = check_alloc(c, sizeof *p, 0);
    *p = (program){.n = 0};
    shape_make(&out->ref, 3, (const int64_t[4]){300});
    for (int j = 0; j < 2; j++) {
        input_make(c, &out->ref, j, 0);
        add(p, MAP_load, j, j, 0, 0);
    }
    add(p, MAP_store, 0, 1, 0, 0);
    add(p, MAP_store, 1, 0, 0, 0);
    out->ref.code = p->code;
    out->ref.n_code = p->n;
    out->inplace = true;
    snprintf(out->shape, sizeof out->shape, "swap");
    finish(c, out, 2);
}

static bool map_make(check *c, const kernel_row *row, int i, check_case *out)
{
    enum { N_ONE = N_UNARY + 8, N_RANDOM = 60 };
    (void)row;
    if (i < N_ONE)
        one_make(c, i, out);
    else if (i < N_ONE + N_RANDOM)
        random_make(c, i - N_ONE, out);
    else if (i == N_ONE + N_RANDOM)
        swap_make(c, out);
    return i <= N_ONE + N_RANDOM;
}

/* The gate of a feed-forward layer: silu(x) * y; and of each costlier function alone. */
static bool map_bench(check *c, const kernel_row *row, int i, check_case *out)
{
    static const kmap_op ops[] = {MAP_silu, MAP_gelu_tanh, MAP_gelu_erf, MAP_exp, MAP_add};
    static const char *const names[] = {"silu", "gelu_tanh", "gelu_erf", "exp", "add"};
    (void)row;
    if (i >= (int)(sizeof ops / sizeof ops[0]))
        return false;
    program *p = check_alloc(c, sizeof *p, 0);
    *p = (program){.n = 0};
    shape_make(&out->ref, 16, (const int64_t[4]){8192});
    for (int j = 0; j < 2; j++) {
        input_make(c, &out->ref, j, 0);
        add(p, MAP_load, j, j, 0, 0);
    }
    add(p, ops[i], 0, 0, 1, 0);
    add(p, MAP_mul, 0, 0, 1, 0);
    add(p, MAP_store, 0, 0, 0, 0);
    out->ref.code = p->code;
    out->ref.n_code = p->n;
    out->k = out->ref;
    out->out[0] = (check_out){.type = DT_F32, .rows = 16, .width = 8192};
    out->bytes = 16.0 * 8192 * 4 * 3;
    snprintf(out->shape, sizeof out->shape, "%s(x) * y, 16x8192", names[i]);
    return true;
}

const check_op check_ops_map[] = {
    {KOP_map, map_make, map_bench},
    {0},
};
