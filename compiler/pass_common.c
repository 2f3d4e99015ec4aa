/* pass_common.c - scratch, kernels and shapes for the passes. */
#include "compiler/pass_impl.h"

#include "compiler/lower_impl.h"
#include "runtime/base/intmath.h"

void pass_begin(pass *p, graph *g, const target *t)
{
    *p = (pass){.g = g, .t = t, .a = arena_create()};
    p->uses = graph_uses_of(p->a, g);
}

bool pass_end(pass *p)
{
    arena_destroy(p->a);
    return p->changed;
}

/* ---- kernels ---- */

/* For one row and for as many as there may be. */
static bool has(pass *p, kop op, dtype type)
{
    signed char *known = &p->kernel[op][type];
    const backend *be = p->t->be;
    if (*known == 0) {
        plan_kernel k;
        kernel_want one = {.op = op, .type = type, .rows = 1}, many = one;
        many.rows = p->t->n_tok_max > 1 ? p->t->n_tok_max : 1;
        *known = be->select(be, &one, &k) && be->select(be, &many, &k) ? 1 : -1;
    }
    return *known > 0;
}

bool pass_has_kernel(pass *p, const gnode *n)
{
    kop op = lower_kop(n->op);
    if (op == KOP_COUNT)
        return false;
    int w = kop_row_of(op)->weight;
    bool stored = w >= 0 && w < n->n_in && n->in[w].kind == REF_WEIGHT;
    return has(p, op, stored ? p->g->weights.at[n->in[w].id].type : DT_F32);
}

bool pass_has_map(pass *p)
{
    return has(p, KOP_map, DT_F32);
}

/* ---- shapes ---- */

int64_t pass_row_elems(const gtype *t)
{
    int64_t n = 1;
    for (int i = 1; i < t->rank; i++)
        if (t->dim[i] < 0 || !i64_mul(n, t->dim[i], &n))
            return -1;
    return t->rank > 0 && t->cell < 0 ? n : -1;
}

bool pass_lora_of(const gnode *n, op_code op, const char *of)
{
    return n->op == op && n->attr[0].kind == GATTR_WORD ? str_eqz(n->attr[0].word, of)
                                                        : n->op == op && strcmp(of, "linear") == 0;
}

bool pass_contracts(const gnode *n)
{
    return n->op == OP_linear || n->op == OP_experts || n->op == OP_head_linear ||
           pass_lora_of(n, OP_lora_up, "linear") || pass_lora_of(n, OP_lora_up, "experts");
}

bool pass_in_chain(const gnode *n)
{
    return n->chain > 0 && !n->recompute;
}

/* ---- numbers ---- */

/* Give the field at `offset` of every node, where it is not 0, numbers in the order they occur. */
static void number_again(graph *g, size_t offset)
{
    int high = 0, next = 0;
    for (size_t i = 0; i < g->nodes.n; i++) {
        int x = *(int *)((char *)&g->nodes.at[i] + offset);
        high = x > high ? x : high;
    }
    arena *a = arena_create();
    int *now = ARENA_ARRAY(a, int, (size_t)high + 1);
    for (size_t i = 0; i < g->nodes.n; i++) {
        int *x = (int *)((char *)&g->nodes.at[i] + offset);
        if (*x > 0 && now[*x] == 0)
            now[*x] = ++next;
        *x = now[*x];
    }
    arena_destroy(a);
}

void pass_number_maps(graph *g)
{
    number_again(g, offsetof(gnode, map));
}

void pass_number_chains(graph *g)
{
    number_again(g, offsetof(gnode, chain));
}
