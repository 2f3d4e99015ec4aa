/* math_emit.c - the instructions of maps, of a float or of a vector of them.
 *
 * The functions are those of kernels/c/vec_math.h and, where the step's kernel is k_map_neon, of kernels/neon/map_math.h,
 * operation by operation and in the same order, so that generated code gives the bits that those kernels give. Their errors
 * are therefore those stated there, which the kernel checker measures for generated code too. Nothing here allows LLVM to
 * fuse or reorder: what is fused says so. */
#include "codegen/codegen_impl.h"

#include <math.h>

typedef LLVMValueRef value;

/* The instructions of one element or vector. */
typedef struct {
    emitter *e;
    LLVMTypeRef type, bits; /* of floats, and of the integers with as many bits */
} math;

/* ---- short names ---- */

/* The constant c in each lane. */
static value in_lanes(const math *m, value c)
{
    if (m->type == m->e->f32)
        return c;
    value lanes[64];
    unsigned n = LLVMGetVectorSize(m->type);
    for (unsigned i = 0; i < n; i++)
        lanes[i] = c;
    return LLVMConstVector(lanes, n);
}

static value num(const math *m, double x)
{
    return in_lanes(m, LLVMConstReal(m->e->f32, (double)(float)x));
}

static value whole(const math *m, uint32_t x)
{
    return in_lanes(m, LLVMConstInt(m->e->i32, x, 0));
}

static value add(const math *m, value a, value b)
{
    return LLVMBuildFAdd(m->e->b, a, b, "");
}
static value sub(const math *m, value a, value b)
{
    return LLVMBuildFSub(m->e->b, a, b, "");
}
static value mul(const math *m, value a, value b)
{
    return LLVMBuildFMul(m->e->b, a, b, "");
}
static value quotient(const math *m, value a, value b)
{
    return LLVMBuildFDiv(m->e->b, a, b, "");
}
static value pick(const math *m, value c, value a, value b)
{
    return LLVMBuildSelect(m->e->b, c, a, b, "");
}
static value test(const math *m, LLVMRealPredicate how, value a, value b)
{
    return LLVMBuildFCmp(m->e->b, how, a, b, "");
}
static value bits_of(const math *m, value x)
{
    return LLVMBuildBitCast(m->e->b, x, m->bits, "");
}
static value float_of(const math *m, value x)
{
    return LLVMBuildBitCast(m->e->b, x, m->type, "");
}

static value call(const math *m, const char *name, value *args, unsigned n)
{
    LLVMTypeRef of = m->type;
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    value fn = LLVMGetIntrinsicDeclaration(m->e->m, id, &of, 1);
    LLVMTypeRef type = LLVMIntrinsicGetType(m->e->cx, id, &of, 1);
    return LLVMBuildCall2(m->e->b, type, fn, args, n, "");
}

/* a + b c, rounded once. */
static value fma_of(const math *m, value a, value b, value c)
{
    return call(m, "llvm.fma", (value[]){b, c, a}, 3);
}

/* a x + b, the first step of Horner's rule: twice rounded. */
static value step(const math *m, value a, value x, double b)
{
    return add(m, mul(m, a, x), num(m, b));
}

static value horner(const math *m, value x, const double *c, int n)
{
    value p = num(m, c[0]);
    for (int i = 1; i < n; i++)
        p = step(m, p, x, c[i]);
    return p;
}
#define HORNER(m, x, ...)                                                                          \
    horner(m, x, (const double[]){__VA_ARGS__},                                                    \
           (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))

/* |x|; the sign of s on the size of x. */
static value size_of(const math *m, value x)
{
    return float_of(m, LLVMBuildAnd(m->e->b, bits_of(m, x), whole(m, 0x7fffffff), ""));
}
static value below_zero(const math *m, value x) /* -|x| */
{
    return float_of(m, LLVMBuildOr(m->e->b, bits_of(m, x), whole(m, 0x80000000), ""));
}
static value signed_as(const math *m, value x, value s)
{
    value size = LLVMBuildAnd(m->e->b, bits_of(m, x), whole(m, 0x7fffffff), "");
    value sign = LLVMBuildAnd(m->e->b, bits_of(m, s), whole(m, 0x80000000), "");
    return float_of(m, LLVMBuildOr(m->e->b, size, sign, ""));
}

/* Both with a NaN where one is. */
static value larger(const math *m, value a, value b)
{
    return call(m, "llvm.maximum", (value[]){a, b}, 2);
}
static value smaller(const math *m, value a, value b)
{
    return call(m, "llvm.minimum", (value[]){a, b}, 2);
}

/* ---- as in kernels/c/vec_math.h ---- */

static value plain_exp(const math *m, value x)
{
    LLVMBuilderRef b = m->e->b;
    const uint32_t magic_bits = 0x4b400000; /* 1.5 * 2^23 */
    value magic = num(m, 0x1.8p23), x_bits = bits_of(m, x);
    value most = whole(m, 0x42b20000), least = whole(m, 0xc2d00000); /* 89, -104 */
    value held = pick(m, LLVMBuildICmp(b, LLVMIntSLT, x_bits, most, ""), x_bits, most);
    held = pick(m, LLVMBuildICmp(b, LLVMIntULT, held, least, ""), held, least);
    value a = float_of(m, held);
    value biased = add(m, mul(m, a, num(m, 0x1.715476p0)), magic);
    value n = sub(m, biased, magic);
    value r = sub(m, a, mul(m, n, num(m, 0x1.63p-1)));
    r = sub(m, r, mul(m, n, num(m, -0x1.bd0106p-13)));
    value p = HORNER(m, r, 1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                     1.6666665459e-1f, 5.0000001201e-1f);
    p = add(m, mul(m, p, mul(m, r, r)), r);
    p = add(m, p, num(m, 1));
    value w = LLVMBuildSub(b, bits_of(m, biased), whole(m, magic_bits), "");
    value low = LLVMBuildAShr(b, w, whole(m, 1), ""), high = LLVMBuildSub(b, w, low, "");
    value by_low = LLVMBuildShl(b, LLVMBuildAdd(b, low, whole(m, 127), ""), whole(m, 23), "");
    value by_high = LLVMBuildShl(b, LLVMBuildAdd(b, high, whole(m, 127), ""), whole(m, 23), "");
    p = mul(m, mul(m, p, float_of(m, by_low)), float_of(m, by_high));
    return pick(m, test(m, LLVMRealOEQ, x, x), p, x);
}

static value plain_sigmoid(const math *m, value x)
{
    value e = plain_exp(m, LLVMBuildFNeg(m->e->b, size_of(m, x), ""));
    value over = pick(m, test(m, LLVMRealOLT, x, num(m, 0)), e, num(m, 1));
    return quotient(m, over, add(m, num(m, 1), e));
}

static value plain_tanh(const math *m, value x)
{
    value a = size_of(m, x), z = mul(m, x, x);
    value p = HORNER(m, z, -5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f,
                     1.33314422036e-1f, -3.33332819422e-1f);
    value near_0 = add(m, mul(m, mul(m, p, z), x), x);
    value e = add(m, plain_exp(m, add(m, a, a)), num(m, 1));
    value far = signed_as(m, sub(m, num(m, 1), quotient(m, num(m, 2), e)), x);
    return pick(m, test(m, LLVMRealOLT, a, num(m, 0.625)), near_0, far);
}

static value plain_log1p(const math *m, value e)
{
    value s = quotient(m, e, add(m, num(m, 2), e)), z = mul(m, s, s);
    value p = HORNER(m, z, 1.0f / 15, 1.0f / 13, 1.0f / 11, 1.0f / 9, 1.0f / 7, 1.0f / 5, 1.0f / 3);
    value s2 = add(m, s, s);
    return add(m, mul(m, mul(m, p, z), s2), s2);
}

static value plain_softplus(const math *m, value x)
{
    value e = plain_exp(m, LLVMBuildFNeg(m->e->b, size_of(m, x), ""));
    value up = pick(m, test(m, LLVMRealOGT, x, num(m, 0)), x, num(m, 0));
    return add(m, up, plain_log1p(m, e));
}

static value plain_silu(const math *m, value x)
{
    return mul(m, x, plain_sigmoid(m, x));
}

static value plain_gelu_quick(const math *m, value x)
{
    return mul(m, x, plain_sigmoid(m, mul(m, num(m, 1.702f), x)));
}

static value plain_gelu_tanh(const math *m, value x)
{
    value cube = mul(m, mul(m, mul(m, num(m, 0.044715f), x), x), x);
    return mul(m, x, plain_sigmoid(m, mul(m, num(m, 1.5957691216f), add(m, x, cube))));
}

static value plain_erfc(const math *m, value z)
{
    value t = quotient(m, num(m, 1), add(m, num(m, 1), mul(m, num(m, 0.5), z)));
    value p = HORNER(m, t, 0.17087277f, -0.82215223f, 1.48851587f, -1.13520398f, 0.27886807f,
                     -0.18628806f, 0.09678418f, 0.37409196f, 1.00002368f, -1.26551223f);
    return mul(m, t, plain_exp(m, sub(m, p, mul(m, z, z))));
}

static value plain_erf_small(const math *m, value z)
{
    value y = mul(m, z, z);
    value p = HORNER(m, y, 7.853861353153693e-5f, -8.010193625184903e-4f, 5.188327685732524e-3f,
                     -2.685381193529856e-2f, 1.128358514861418e-1f, -3.761262582423300e-1f,
                     1.128379165726710f);
    return mul(m, p, z);
}

static value plain_gelu_erf(const math *m, value x)
{
    value z = mul(m, x, num(m, 0.70710678f)), size = size_of(m, z);
    value half = mul(m, num(m, 0.5), plain_erfc(m, size));
    value far = pick(m, test(m, LLVMRealOLT, x, num(m, 0)), half, sub(m, num(m, 1), half));
    value near_0 = add(m, num(m, 0.5), mul(m, num(m, 0.5), plain_erf_small(m, z)));
    return mul(m, x, pick(m, test(m, LLVMRealOLT, size, num(m, 0.5)), near_0, far));
}

/* ---- as in kernels/neon/map_math.h ---- */

/* c[0] + c[1] x */
static value pair(const math *m, value x, double a, double b)
{
    return fma_of(m, num(m, a), x, num(m, b));
}

static value fused_exp_held(const math *m, value x)
{
    LLVMBuilderRef b = m->e->b;
    value magic = num(m, 0x1.8p23), one = whole(m, 0x3f800000);
    value biased = fma_of(m, magic, x, num(m, 0x1.715476p0));
    value n = sub(m, biased, magic), w = bits_of(m, biased);
    value low = LLVMBuildAShr(b, w, whole(m, 1), ""), high = LLVMBuildSub(b, w, low, "");
    value by_low = float_of(m, LLVMBuildAdd(b, LLVMBuildShl(b, low, whole(m, 23), ""), one, ""));
    value by_high = float_of(m, LLVMBuildAdd(b, LLVMBuildShl(b, high, whole(m, 23), ""), one, ""));
    value minus = LLVMBuildFNeg(b, n, "");
    value r = fma_of(m, x, minus, num(m, 0x1.62e4p-1));
    r = fma_of(m, r, minus, num(m, 0x1.7f7d1cp-20));
    value z = mul(m, r, r);
    value first = pair(m, r, 5.0000001201e-1f, 1.6666665459e-1f);
    value second = pair(m, r, 4.1665795894e-2f, 8.3334519073e-3f);
    value third = pair(m, r, 1.3981999507e-3f, 1.9875691500e-4f);
    value p = fma_of(m, r, z, fma_of(m, first, z, fma_of(m, second, z, third)));
    return mul(m, fma_of(m, by_low, by_low, p), by_high);
}

static value fused_exp(const math *m, value x)
{
    return fused_exp_held(m, larger(m, smaller(m, x, num(m, 89)), num(m, -104)));
}

static value fused_exp_minus(const math *m, value x)
{
    return fused_exp_held(m, larger(m, below_zero(m, x), num(m, -104)));
}

static value fused_sigmoid(const math *m, value x)
{
    value e = fused_exp_minus(m, x);
    value over = pick(m, test(m, LLVMRealOLT, x, num(m, 0)), e, num(m, 1));
    return quotient(m, over, add(m, num(m, 1), e));
}

static value fused_silu(const math *m, value x)
{
    return mul(m, x, fused_sigmoid(m, x));
}

static value fused_gelu_quick(const math *m, value x)
{
    return mul(m, x, fused_sigmoid(m, mul(m, x, num(m, 1.702f))));
}

static value fused_gelu_tanh(const math *m, value x)
{
    value cube = mul(m, mul(m, x, x), x);
    value u = mul(m, fma_of(m, x, cube, num(m, 0.044715f)), num(m, 1.5957691216f));
    return mul(m, x, fused_sigmoid(m, u));
}

static value fused_tanh(const math *m, value x)
{
    value size = size_of(m, x), z = mul(m, x, x), zz = mul(m, z, z);
    value a = pair(m, z, -3.33332819422e-1f, 1.33314422036e-1f);
    value b = pair(m, z, -5.37397155531e-2f, 2.06390887954e-2f);
    value p = fma_of(m, a, zz, fma_of(m, b, zz, num(m, -5.70498872745e-3f)));
    value near_0 = fma_of(m, x, mul(m, p, z), x);
    value e = fused_exp_held(m, smaller(m, add(m, size, size), num(m, 89)));
    value far = sub(m, num(m, 1), quotient(m, num(m, 2), add(m, e, num(m, 1))));
    return pick(m, test(m, LLVMRealOLT, size, num(m, 0.625)), near_0, signed_as(m, far, x));
}

static value fused_log1p(const math *m, value e)
{
    value s = quotient(m, e, add(m, num(m, 2), e)), z = mul(m, s, s);
    value zz = mul(m, z, z), s2 = add(m, s, s);
    value a = pair(m, z, 1.0f / 3, 1.0f / 5), b = pair(m, z, 1.0f / 7, 1.0f / 9);
    value c = fma_of(m, pair(m, z, 1.0f / 11, 1.0f / 13), zz, num(m, 1.0f / 15));
    value p = fma_of(m, a, zz, fma_of(m, b, zz, c));
    return fma_of(m, s2, mul(m, p, z), s2);
}

static value fused_softplus(const math *m, value x)
{
    return add(m, larger(m, x, num(m, 0)), fused_log1p(m, fused_exp_minus(m, x)));
}

static value fused_erfc(const math *m, value z)
{
    value t = quotient(m, num(m, 1), fma_of(m, num(m, 1), z, num(m, 0.5)));
    value t2 = mul(m, t, t), t4 = mul(m, t2, t2);
    value a = pair(m, t, -1.26551223f, 1.00002368f), b = pair(m, t, 0.37409196f, 0.09678418f);
    value c = pair(m, t, -0.18628806f, 0.27886807f), d = pair(m, t, -1.13520398f, 1.48851587f);
    value e = pair(m, t, -0.82215223f, 0.17087277f);
    value far = fma_of(m, fma_of(m, c, t2, d), t4, e);
    value p = fma_of(m, fma_of(m, a, t2, b), t4, far);
    value down = LLVMBuildFNeg(m->e->b, z, "");
    return mul(m, t, fused_exp(m, fma_of(m, p, down, z)));
}

static value fused_erf_small(const math *m, value z)
{
    value y = mul(m, z, z), yy = mul(m, y, y);
    value a = pair(m, y, 1.128379165726710f, -3.761262582423300e-1f);
    value b = pair(m, y, 1.128358514861418e-1f, -2.685381193529856e-2f);
    value c = pair(m, y, 5.188327685732524e-3f, -8.010193625184903e-4f);
    c = fma_of(m, c, yy, num(m, 7.853861353153693e-5f));
    return mul(m, fma_of(m, a, yy, fma_of(m, b, yy, c)), z);
}

static value fused_gelu_erf(const math *m, value x)
{
    value z = mul(m, x, num(m, 0.70710678f)), size = size_of(m, z);
    value half = mul(m, num(m, 0.5), fused_erfc(m, size));
    value far = pick(m, test(m, LLVMRealOLT, x, num(m, 0)), half, sub(m, num(m, 1), half));
    value near_0 = fma_of(m, num(m, 0.5), num(m, 0.5), fused_erf_small(m, z));
    return mul(m, x, pick(m, test(m, LLVMRealOLT, size, num(m, 0.5)), near_0, far));
}

/* ---- the instructions ---- */

typedef value one_fn(const math *m, value x);
/* [fused]: of an operand */
static one_fn *const functions[MAP_COUNT][2] = {
    [MAP_silu] = {plain_silu, fused_silu},
    [MAP_gelu_erf] = {plain_gelu_erf, fused_gelu_erf},
    [MAP_gelu_tanh] = {plain_gelu_tanh, fused_gelu_tanh},
    [MAP_gelu_quick] = {plain_gelu_quick, fused_gelu_quick},
    [MAP_tanh] = {plain_tanh, fused_tanh},
    [MAP_sigmoid] = {plain_sigmoid, fused_sigmoid},
    [MAP_softplus] = {plain_softplus, fused_softplus},
    [MAP_exp] = {plain_exp, fused_exp},
};

/* max and min of the portable kernel: x, or a NaN that it is, unless y is farther out. Neon's know that -0 is less than 0. */
static value outer_of(const math *m, LLVMRealPredicate how, value x, value y)
{
    value first = LLVMBuildOr(m->e->b, test(m, how, x, y), test(m, LLVMRealUNO, x, x), "");
    return pick(m, first, x, y);
}

static value clamp(const math *m, bool fused, const kinstr *c, value x)
{
    value low = num(m, (double)c->f[0]), high = num(m, (double)c->f[1]);
    if (fused)
        return smaller(m, larger(m, x, low), high);
    x = pick(m, test(m, LLVMRealOLT, x, low), low, x);
    return pick(m, test(m, LLVMRealOGT, x, high), high, x);
}

LLVMValueRef math_emit(emitter *e, bool fused, const kinstr *c, LLVMValueRef x, LLVMValueRef y,
                       LLVMValueRef z)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    bool one = type == e->f32;
    math m = {e, type, one ? e->i32 : LLVMVectorType(e->i32, LLVMGetVectorSize(type))};
    if (functions[c->op][fused])
        return functions[c->op][fused](&m, x);
    switch ((kmap_op)c->op) {
    case MAP_add:
        return add(&m, x, y);
    case MAP_sub:
        return sub(&m, x, y);
    case MAP_mul:
        return mul(&m, x, y);
    case MAP_div:
        return quotient(&m, x, y);
    case MAP_max:
        return fused ? larger(&m, x, y) : outer_of(&m, LLVMRealOGT, x, y);
    case MAP_min:
        return fused ? smaller(&m, x, y) : outer_of(&m, LLVMRealOLT, x, y);
    case MAP_select:
        return pick(&m, test(&m, LLVMRealOGT, x, num(&m, 0)), y, z);
    case MAP_neg:
        return LLVMBuildFNeg(e->b, x, "");
    case MAP_relu:
        return pick(&m, test(&m, LLVMRealOLE, x, num(&m, 0)), num(&m, 0), x);
    case MAP_sqrt:
        return call(&m, "llvm.sqrt", &x, 1);
    case MAP_clamp:
        return clamp(&m, fused, c, x);
    default:
        return NULL; /* map_emit checks ops before */
    }
}
