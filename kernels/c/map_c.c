/* map_c.c - an element-wise expression: the instructions as loops that compilers vectorise. */
#include "kernels/kernel_decls.h"

#include <math.h>
#include "kernels/c/map_run.h"
#include "kernels/c/vec_math.h"

/* clang-format off */
#define EACH(name, expr)                                                                     \
    static void map_##name(const kinstr *c, const float *xs, const float *ys, const float *zs,    \
                           float *to, int64_t n)                                             \
    {                                                                                        \
        (void)c, (void)xs, (void)ys, (void)zs;                                               \
        VEC_LOOP                                                                             \
        for (int64_t i = 0; i < (n & -VEC_LANES); i++)                                    \
            to[i] = (expr);                                                                  \
    }
#define X xs[i]
#define Y ys[i]

EACH(number,     c->f[0])
EACH(add,        X + Y)
EACH(sub,        X - Y)
EACH(mul,        X * Y)
EACH(div,        X / Y)
EACH(max,        X > Y || X != X ? X : Y)
EACH(min,        X < Y || X != X ? X : Y)
EACH(neg,        -X)
EACH(silu,       vec_silu(X))
EACH(gelu_erf,   vec_gelu_erf(X))
EACH(gelu_tanh,  vec_gelu_tanh(X))
EACH(gelu_quick, vec_gelu_quick(X))
EACH(tanh,       vec_tanh(X))
EACH(sigmoid,    vec_sigmoid(X))
EACH(relu,       X <= 0 ? 0 : X)
EACH(softplus,   vec_softplus(X))
EACH(exp,        vec_exp(X))
EACH(sqrt,       sqrtf(X))
/* clang-format on */

static void map_select(const kinstr *c, const float *xs, const float *ys, const float *zs,
                       float *to, int64_t n)
{
    (void)c;
    VEC_LOOP
    for (int64_t i = 0; i < (n & -VEC_LANES); i++) {
        float y = ys[i], z = zs[i]; /* both read, so that no branch is left */
        to[i] = xs[i] > 0 ? y : z;
    }
}

static void map_clamp(const kinstr *c, const float *xs, const float *ys, const float *zs, float *to,
                      int64_t n)
{
    float low = c->f[0], high = c->f[1];
    (void)ys, (void)zs;
    VEC_LOOP
    for (int64_t i = 0; i < (n & -VEC_LANES); i++) {
        float x = xs[i] < low ? low : xs[i];
        to[i] = x > high ? high : x;
    }
}

#define map_load NULL
#define map_store NULL
static map_fn *const fns[MAP_COUNT] = {
#define MAP(name, ...) map_##name,
#include "kernels/map.def"
#undef MAP
};

void k_map_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    map_run(k, t, begin, end, fns);
}
