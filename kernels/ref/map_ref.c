/* map_ref.c - an element-wise expression: each instruction in double, in the order of the code, the result
 * rounded once when it is stored. An instruction means what the operator of its name does. */
#include "kernels/kernel_decls.h"

#include <math.h>
#include "kernels/ref/scalar_math.h"

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

static double compute(const kinstr *c, double x, double y, double z)
{
    switch ((kmap_op)c->op) {
    case MAP_add:
        return x + y;
    case MAP_sub:
        return x - y;
    case MAP_mul:
        return x * y;
    case MAP_div:
        return x / y;
    case MAP_max:
        return x > y || x != x ? x : y;
    case MAP_min:
        return x < y || x != x ? x : y;
    case MAP_select:
        return x > 0 ? y : z;
    case MAP_neg:
        return -x;
    case MAP_silu:
        return x * sigmoid(x);
    case MAP_gelu_erf:
        return gelu_erf(x);
    case MAP_gelu_tanh:
        return gelu_tanh(x);
    case MAP_gelu_quick:
        return gelu_quick(x);
    case MAP_tanh:
        return tanh(x);
    case MAP_sigmoid:
        return sigmoid(x);
    case MAP_relu:
        return x <= 0 ? 0 : x;
    case MAP_softplus:
        return softplus(x);
    case MAP_exp:
        return exp(x);
    case MAP_sqrt:
        return sqrt(x);
    case MAP_clamp:
        x = x < (double)c->f[0] ? (double)c->f[0] : x;
        return x > (double)c->f[1] ? (double)c->f[1] : x;
    case MAP_number:
        return (double)c->f[0];
    case MAP_load:
    case MAP_store:
    case MAP_COUNT:
        break;
    }
    WEFT_ASSERT(false);
    return 0;
}

void k_map_ref(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    int64_t width = k->size.map.elems;
    (void)t;
    for (int64_t row = begin; row < end; row++)
        for (int64_t e = 0; e < width; e++) {
            double reg[MAP_REGS_MAX] = {0};
            for (int64_t i = 0; i < k->n_code; i++) {
                const kinstr *c = &k->code[i];
                if (c->op == MAP_load)
                    reg[c->to] = ((const float *)k->in[c->at[0]])[place(k, c->at[0], row, e)];
                else if (c->op == MAP_store)
                    ((float *)k->out[c->to])[row * width + e] = (float)reg[c->at[0]];
                else
                    reg[c->to] = compute(c, reg[c->at[0]], reg[c->at[1]], reg[c->at[2]]);
            }
        }
}
