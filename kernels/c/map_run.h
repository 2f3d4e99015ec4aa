/* map_run.h - how a map is run: every instruction over a piece of a row at a time, whose registers stay in
 * the cache, so that its dispatch is paid once for up to MAP_REG_ELEMS elements. What the instructions do is
 * given as a table of functions.
 *
 * Pieces are padded to whole vectors and the loops run over all of it, so that an element's bits do not
 * depend on its place in a piece. Registers may be overwritten by an instruction that reads them. A
 * result may be an input whose elements are in the same places. */
#ifndef WEFT_KERNELS_C_MAP_RUN_H
#define WEFT_KERNELS_C_MAP_RUN_H

#include <string.h>
#include "kernels/c/vec.h"

/* How elements of a row lie in an input: axes that follow on each other are one. */
typedef struct {
    int n_axis;
    int64_t n[K_AXES_MAX], stride[K_AXES_MAX]; /* the last axis is the fastest */
} layout;

/* Of one instruction: n, a multiple of VEC_LANES, elements of its operands; `to` may be any of them. */
typedef void map_fn(const kinstr *c, const float *x, const float *y, const float *z, float *to,
                    int64_t n);

typedef struct {
    const kargs *k;
    map_fn *const *fns;             /* [MAP_COUNT] */
    float *mem;                     /* [MAP_REGS_MAX, MAP_REG_ELEMS] */
    const float *reg[MAP_REGS_MAX]; /* where a register's elements are */
    layout in[K_IN_MAX];
    bool direct;              /* dense inputs may be read, and results made, where they are */
    int64_t row, col, n, pad; /* the piece; n rounded up to vectors */
} map;

static layout layout_of(const kargs *k, int input)
{
    layout l = {0};
    for (int axis = 1; axis <= k->choice.map.axes; axis++) {
        int64_t n = k->size.map.dim[axis - 1], stride = k->stride[input][axis];
        int last = l.n_axis - 1;
        if (n == 1)
            continue;
        if (last >= 0 && l.stride[last] == stride * n) {
            l.n[last] *= n;
            l.stride[last] = stride;
            continue;
        }
        l.n[l.n_axis] = n;
        l.stride[l.n_axis++] = stride;
    }
    if (l.n_axis == 0)
        l = (layout){1, {1}, {0}};
    return l;
}

static void fill(float *to, float value, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = value;
}

static void copy_strided(float *to, const float *from, int64_t stride, int64_t n)
{
    if (stride == 1)
        memcpy(to, from, (size_t)n * sizeof *to);
    else if (stride == 0)
        fill(to, *from, n);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = from[i * stride];
}

/* Elements [col, col + n) of a row, a run of the last axis at a time. */
static void gather(const layout *l, const float *row, int64_t col, int64_t n, float *to)
{
    int last = l->n_axis - 1;
    while (n > 0) {
        int64_t i = col % l->n[last], rest = col / l->n[last];
        int64_t run = l->n[last] - i < n ? l->n[last] - i : n, at = i * l->stride[last];
        for (int axis = last - 1; axis >= 0; axis--) {
            at += rest % l->n[axis] * l->stride[axis];
            rest /= l->n[axis];
        }
        copy_strided(to, row + at, l->stride[last], run);
        to += run;
        col += run;
        n -= run;
    }
}

static void load(map *m, const kinstr *c)
{
    int input = c->at[0];
    const layout *l = &m->in[input];
    const float *row = (const float *)m->k->in[input] + m->row * m->k->stride[input][0];
    float *to = m->mem + c->to * MAP_REG_ELEMS;
    bool dense = l->n_axis == 1 && l->stride[0] == 1;
    m->reg[c->to] = to;
    if (dense && m->direct && m->n == m->pad) {
        m->reg[c->to] = row + m->col;
        return;
    }
    gather(l, row, m->col, m->n, to);
    fill(to + m->n, 0, m->pad - m->n); /* what lies there is computed with, and not stored */
}

static void store(const map *m, const kinstr *c)
{
    float *to = row_out(m->k, c->to, m->row) + m->col;
    if (to != m->reg[c->at[0]])
        memcpy(to, m->reg[c->at[0]], (size_t)m->n * sizeof *to);
}

/* Where an instruction's result is made: at once in the output, where nothing is left to do but stores. */
static float *result_place(const map *m, const kinstr *c, const kinstr *end)
{
    const kinstr *next = c + 1;
    if (m->direct && m->n == m->pad && next < end && next->op == MAP_store && next->at[0] == c->to)
        return row_out(m->k, next->to, m->row) + m->col;
    return m->mem + c->to * MAP_REG_ELEMS;
}

static void run_piece(map *m)
{
    for (const kinstr *c = m->k->code, *end = c + m->k->n_code; c < end; c++) {
        if (c->op == MAP_load) {
            load(m, c);
        } else if (c->op == MAP_store) {
            store(m, c);
        } else {
            float *to = result_place(m, c, end);
            m->fns[c->op](c, m->reg[c->at[0]], m->reg[c->at[1]], m->reg[c->at[2]], to, m->pad);
            m->reg[c->to] = to;
        }
    }
}

/* Whether dense inputs need no copy: a result that overwrites one must not be seen by what is read
 * later. So stores come last, and none stores what was only loaded. */
static bool reads_before_stores(const kargs *k)
{
    bool loaded[MAP_REGS_MAX] = {false}, stored = false;
    for (const kinstr *c = k->code, *end = c + k->n_code; c < end; c++) {
        if (c->op == MAP_store) {
            if (loaded[c->at[0]])
                return false;
            stored = true;
            continue;
        }
        if (stored)
            return false;
        loaded[c->to] = c->op == MAP_load;
    }
    return true;
}

static inline void map_run(const kargs *k, const kthread *t, int64_t begin, int64_t end,
                           map_fn *const *fns)
{
    map m; /* most of it may stay as it is: clearing it costs as much as a small map */
    m.k = k;
    m.fns = fns;
    m.mem = t->scratch;
    m.direct = reads_before_stores(k);
    kpart p = kpart_of(k, k->size.map.elems, begin, end);
    for (int i = 0; i < MAP_REGS_MAX; i++)
        m.reg[i] = m.mem; /* operands that an instruction does not have are not read */
    for (int i = 0; i < K_IN_MAX; i++)
        if (k->in[i])
            m.in[i] = layout_of(k, i);
    for (m.row = p.row; m.row < p.row_end; m.row++)
        for (m.col = p.col; m.col < p.col_end; m.col += m.n) {
            m.n = p.col_end - m.col < MAP_REG_ELEMS ? p.col_end - m.col : MAP_REG_ELEMS;
            m.pad = vec_round_up(m.n);
            run_piece(&m);
        }
}

#endif
