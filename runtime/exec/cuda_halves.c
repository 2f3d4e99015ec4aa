/* cuda_halves.c - linears of many rows whose operands are f16 on a card (kernels/cuda/halves_cuda.cuh): which phases, and what that
 * means for the steps that quantise x. These write it in place of the two or three bf16 that the plan says, if all who read it are such
 * linears. */
#include "runtime/exec/cuda_impl.h"

#include "kernels/cuda/mma_size.h"

enum { HALVES_ALIGN = 16 }; /* of a matrix and of its rows */

static bool is_even(const void *at, int64_t pitch)
{
    return (uintptr_t)at % HALVES_ALIGN == 0 && pitch % HALVES_ALIGN == 0;
}

/* Who watches is shown x as the plan says. */
bool cuda_has_halves(const exec *e, const cuda_bucket *c, const cuda_phase *p)
{
    bool halves = !c->apart && !c->packed && p->n_step == p->n_item && p->n_step <= BULK_STEPS;
    size_t bytes = 0;
    for (int32_t i = p->step; i < p->step + p->n_step && halves; i++) {
        bytes += cuda_halved_bytes(e, &c->plan->step[i], c->steps[i].rows);
        halves = cuda_may_halve(e, &c->plan->step[i], c->steps[i].rows) &&
                 is_even(c->steps[i].in[0], c->args[i].pitch[0]) &&
                 is_even(c->steps[i].in[1], c->args[i].pitch[1]);
    }
    return halves && bytes <= e->unpacked_bytes;
}

/* Does a step write, or read, what begins there? */
static bool writes(const cuda_bucket *c, int32_t i, const void *at)
{
    bool does = false;
    for (int out = 0; out < K_OUT_MAX; out++)
        does = does || c->args[i].out[out] == at;
    return does;
}

static bool reads(const cuda_bucket *c, int32_t i, const void *at)
{
    bool does = false;
    for (int in = 0; in < K_IN_MAX; in++)
        does = does || c->args[i].in[in] == at;
    return does;
}

/* The phase of step i, which is no one before p; n_phase: it has nothing to do. */
static int32_t phase_of(const cuda_bucket *c, int32_t i, int32_t p)
{
    while (p < c->n_phase && c->phases[p].step + c->phases[p].n_step <= i)
        p++;
    return p < c->n_phase && c->phases[p].step <= i ? p : c->n_phase;
}

/* Is it one that can make rows of x f16, whole ones, and are all who read them of such a phase? first: no phase before it has one of
 * these. */
static bool quantises(const cuda_bucket *c, int32_t i, int32_t first)
{
    const kargs *k = &c->args[i];
    if (c->rows[i]->op != KOP_quantize || !cuda_act_halves((kact)k->choice.quantize.act) ||
        k->tile != 0 || !is_even(k->in[0], k->pitch[0]) || !is_even(k->out[0], k->out_pitch[0]))
        return false;
    bool all = true;
    for (int32_t r = i + 1; r < c->plan->n_step && all; r++) {
        const int32_t p = reads(c, r, k->out[0]) ? phase_of(c, r, first) : c->n_phase;
        all = p == c->n_phase || c->unpacks[p] == UNPACK_HALVES;
        if (writes(c, r, k->out[0]))
            break;
    }
    return all;
}

bool cuda_halves_made(const cuda_bucket *c, int32_t phase)
{
    const cuda_phase *p = &c->phases[phase];
    bool made = true;
    for (int32_t i = p->step; i < p->step + p->n_step && made; i++) {
        const kargs *k = &c->args[i];
        int32_t by = p->step - 1, first = phase;
        while (by >= 0 && !writes(c, by, k->in[0]))
            by--;
        while (first > 0 && c->phases[first].step > by)
            first--;
        made = by >= 0 && quantises(c, by, first) && c->steps[by].rows == c->steps[i].rows &&
               c->args[by].size.quantize.width == k->size.linear.in;
    }
    return made;
}

bool cuda_halves_tell(const exec *e, cuda_bucket *c)
{
    const kinstr *yes = (const kinstr *)(const void *)e->card; /* anything but NULL */
    bool changed = false;
    for (int32_t i = 0, first = 0; i < c->plan->n_step; i++) {
        if (c->rows[i]->op != KOP_quantize)
            continue;
        const kinstr *now = NULL;
        while (first < c->n_phase && c->phases[first].step + c->phases[first].n_step <= i)
            first++;
        for (int32_t r = i + 1; r < c->plan->n_step && !now; r++) {
            const int32_t p = reads(c, r, c->args[i].out[0]) ? phase_of(c, r, first) : c->n_phase;
            now = p < c->n_phase && c->unpacks[p] == UNPACK_HALVES ? yes : NULL;
            if (p < c->n_phase || writes(c, r, c->args[i].out[0]))
                break;
        }
        changed = changed || c->steps[i].code != now;
        c->steps[i].code = now;
    }
    return changed;
}
