/* phase.metal - runs a phase of a plan (metal_phase.h): what exec_run.c does with threads, with threadgroups.
 *
 * All of kernels/metal is this one file and what it includes. */
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

/* Sums of two floats, codes and tokens are what they are by IEEE's rules; sums of products say fma. Compilers before Metal 3.2 know
 * neither word, and go by the options of the host, which says the same. */
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)

#include "kernels/metal/attend.msl"
#include "kernels/metal/attend_fast.msl"
#include "kernels/metal/attend_flash.msl"
#include "kernels/metal/choose.msl"
#include "kernels/metal/experts.msl"
#include "kernels/metal/linear.msl"
#include "kernels/metal/linear_many.msl"
#include "kernels/metal/lora.msl"
#include "kernels/metal/map.msl"
#include "kernels/metal/move.msl"
#include "kernels/metal/norm.msl"
#include "kernels/metal/quantize.msl"
#include "kernels/metal/rope.msl"
#include "kernels/metal/route.msl"

/* Which rows of metal_kernels.def a pipeline can run: others are left out of it, so that registers are for what it may have to
 * do. */
constant uint rows_low [[function_constant(0)]];
constant uint rows_high [[function_constant(1)]];

static inline bool has_row(int row)
{
    return ((row < 32 ? rows_low >> row : rows_high >> (row - 32)) & 1u) != 0u;
}

/* The rows of metal_kernels.def in their order. */
enum metal_row {
#define METAL_KERNEL(op, type, act, least, most, symbol, ...) ROW_##symbol,
#include "kernels/metal/metal_kernels.def"
#undef METAL_KERNEL
    ROW_COUNT
};

static inline void row_run(int row, thread const margs &k, thread const group &t, int begin,
                           int end)
{
#define METAL_KERNEL(op, type, act, least, most, symbol, ...)                                      \
    if (has_row(ROW_##symbol) && row == ROW_##symbol)                                              \
        symbol(k, t, begin, end);
#include "kernels/metal/metal_kernels.def"
#undef METAL_KERNEL
}

enum { TILE_ELEM_BYTES = 4 };

/* A step for units [begin, end). A tile has its columns from unit `first` on in memory. */
static inline void step_run(constant metal_run &r, device const metal_step *s,
                            thread const group &t, int index, int first, int begin, int end)
{
    margs k;
    k.step = s;
    k.s = r.shape + s->shape;
    k.batch = r.batch;
    k.lora = r.lora;
    k.cell = s->cell;
    k.own = (long)index * r.block_bytes;
    k.back = (long)first * k.s->tile * TILE_ELEM_BYTES;
    k.rows = s->rows;
    row_run(k.s->row, k, t, begin, end);
}

/* Threadgroup i of n has the units [i * all / n, (i + 1) * all / n) of a line; in 32 bits. */
static inline int share_at(int i, int n, int all)
{
    return i * (all / n) + i * (all % n) / n;
}

/* The host may write the word at any time: one thread reads it for all. */
static inline bool is_cancelled(constant metal_run &r, thread const group &t)
{
    threadgroup uint *word = (threadgroup uint *)t.shared;
    if (r.cancel == nullptr)
        return false;
    if (t.id == 0)
        *word = *r.cancel;
    group_sync();
    const bool cancelled = *word != 0u;
    group_sync();
    return cancelled;
}

kernel void
weft_phase(constant metal_run &r [[buffer(0)]], threadgroup char *shared [[threadgroup(0)]],
           uint index [[threadgroup_position_in_grid]], uint count [[threadgroups_per_grid]],
           uint thread_index [[thread_index_in_threadgroup]],
           uint lane [[thread_index_in_simdgroup]], uint simd [[simdgroup_index_in_threadgroup]],
           uint simds [[simdgroups_per_threadgroup]])
{
    device const metal_phase *p = r.phase;
    group t;
    t.id = (int)thread_index;
    t.lane = (int)lane;
    t.simd = (int)simd;
    t.threads = (int)simds * LANES;
    t.simds = (int)simds;
    t.scratch = r.blocks + (long)index * r.block_bytes + r.local_bytes;
    t.shared = shared;
    if (is_cancelled(r, t))
        return;
    const int first = share_at((int)index, (int)count, p->units),
              last = share_at((int)index + 1, (int)count, p->units);
    for (int i = 0; i < p->n_item; i++) {
        device const metal_item *it = r.item + p->first + i;
        const bool every = it->every != 0;
        const int begin = every || first <= it->at ? 0 : first - it->at;
        const int end = every ? it->units : least(last - it->at, it->units);
        const int most = every || it->grain == 0 ? end - begin : it->grain;
        for (int at = begin; at < end; at += most)
            for (int n = 0; n < it->n_step; n++) {
                step_run(r, r.step + it->first + n, t, (int)index, at, at, least(at + most, end));
                group_sync();
            }
    }
}

/* A threadgroup for each row. */
[[max_total_threads_per_threadgroup(1024)]] kernel void
weft_choose(constant metal_choice &a [[buffer(0)]], threadgroup char *shared [[threadgroup(0)]],
            uint row [[threadgroup_position_in_grid]],
            uint thread_index [[thread_index_in_threadgroup]],
            uint lane [[thread_index_in_simdgroup]], uint simd [[simdgroup_index_in_threadgroup]],
            uint simds [[simdgroups_per_threadgroup]])
{
    group t;
    t.id = (int)thread_index;
    t.lane = (int)lane;
    t.simd = (int)simd;
    t.threads = (int)simds * LANES;
    t.simds = (int)simds;
    t.scratch = nullptr;
    t.shared = shared;
    device const ksample *how = a.how + row;
    ulong rng[2] = {how->rng[0], how->rng[1]};
    if (how->from >= 0) {
        rng[0] = a.before[how->from].rng[0];
        rng[1] = a.before[how->from].rng[1];
    }
    const int id = row_choose(t, a.logits + (long)row * a.width, a.width, how, rng);
    if (t.id == 0) {
        device ksampled *to = a.chosen + row;
        to->rng[0] = rng[0];
        to->rng[1] = rng[1];
        to->id = id;
        to->turn = a.turn;
    }
}

/* A row of which none could be chosen has token 0 here; the host will see that, and drop the call. */
kernel void weft_tokens(constant metal_tokens &a [[buffer(0)]],
                        uint thread_index [[thread_index_in_threadgroup]],
                        uint threads [[threads_per_threadgroup]])
{
    for (int i = (int)thread_index; i < a.n; i += (int)threads) {
        const int from = a.from[i];
        if (from >= 0)
            a.token[i] = a.before[from].id > 0 ? a.before[from].id : 0;
    }
}
