/* choose_cuda.cuh - tokens chosen from logits on the card, the same ones that the host's sampler would choose.
 *
 * A candidate is a key of 64 bits: its logit, mapped so that larger ones are larger numbers, and below it the complement of its
 * id. All keys differ, and in descending order they are the host's order; so what a step keeps is always "the keys from `low`
 * on", and a step only has to find the new `low`:
 *
 *     top_k        the key that has top_k - 1 above it
 *     top_p        the first key with which those from it on have their share of all weight
 *     the draw     the first key with which they have more than the point that was drawn: it is the token
 *
 * All three are one search: digits of the key from the highest on, for each a histogram of what is added up (weights, or ones),
 * by integer atomics, whose order does not matter. It passes over the logits as often as it takes digits. So as soon as no more
 * than LIST_MAX candidates are left they become a list in shared memory, sorted, and the rest is over in a moment. With top_k
 * that is at once: of the largest keys of each thread the top_k-th is a bound that at least top_k keys reach, and seldom many
 * more.
 *
 * Logits are cut into stripes, and the largest of each is found first, by several blocks where rows are few: whoever is the last goes on
 * with all of them. From then on only stripes are read that have one from `low` on.
 *
 * Without top_k all may stay candidates. Then the list has the best of them alone, some hundreds: what a step looks for is there as a
 * rule, once one pass has added up the weights of all, and the search is for what is not. */
#ifndef WEFT_KERNELS_CUDA_CHOOSE_CUDA_CUH
#define WEFT_KERNELS_CUDA_CHOOSE_CUDA_CUH

#include "kernels/cuda/block_cuda.cuh"
#include "kernels/cuda/choose.h"
#include "kernels/cuda/launch_cuda.cuh"

typedef unsigned long long word; /* as atomics take it */

enum { LIST_MAX = CHOOSE_LIST, DIGITS = CHOOSE_DIGITS };

/* Of a block. The list and the histogram are not in use at the same time. */
struct choose_memory {
    union {
        struct {
            word key[LIST_MAX];
            word sum[LIST_MAX]; /* of weights, up to each */
        };
        struct {
            word histogram[DIGITS];
            uint32_t count[DIGITS];
        };
    };
    float most[CHOOSE_STRIPES]; /* the largest logit of each stripe */
    word found[4];
    int32_t n;
};
static_assert(2 * LIST_MAX * sizeof(word) <= DIGITS * (sizeof(word) + sizeof(uint32_t)),
              "the histogram is the larger of the two");
static_assert(sizeof(choose_memory) == CHOOSE_BYTES, "choose.h says how much it is");

/* A row at work. */
struct chooser {
    choose_memory *m;
    const float *logits;
    int64_t width;
    int n_stripe;
    int fours;      /* of a stripe: four logits each */
    word mine;      /* the largest of this thread's share, as if it had the least of ids */
    word best;      /* the largest of all */
    word low;       /* keys from it on are the candidates */
    float least;    /* its logit */
    bool dense;     /* nothing was cut away yet */
    int32_t n_list; /* -1: not all candidates are in the list */
    int32_t n_best; /* then: so many are, the best ones */
    bool cooled;
    double temp;
    float top; /* logit of the best, as it is now */
    int bits;
};

/* ---- keys ---- */

/* 0: it cannot be chosen. */
static __device__ inline word key_of(float logit, uint32_t id)
{
    if (!(logit > -INFINITY))
        return 0;
    union {
        float f;
        uint32_t u;
    } x = {logit == 0 ? 0.0f : logit}; /* both zeros are one number */
    uint32_t up = x.u >> 31 ? ~x.u : x.u | 0x80000000u;
    return (word)up << 32 | (uint32_t)~id;
}

static __device__ inline int32_t key_id(word key)
{
    return (int32_t) ~(uint32_t)key;
}

static __device__ inline float key_logit(word key)
{
    uint32_t up = (uint32_t)(key >> 32);
    union {
        uint32_t u;
        float f;
    } x = {up >> 31 ? up & 0x7fffffffu : ~up};
    return x.f;
}

static __device__ ONE_COPY float cool(float logit, double temp)
{
    return ksample_cool(logit, temp);
}

static __device__ inline float logit_now(const chooser &c, word key)
{
    float logit = key_logit(key);
    return c.cooled ? cool(logit, c.temp) : logit;
}

/* One copy for all: with one for each of the loads that are on their way the code of a pass was ten times as long. */
static __device__ ONE_COPY word weigh(float logit, float top, int bits)
{
    return ksample_weight((double)logit - top, bits);
}

static __device__ inline word weight_of(const chooser &c, word key)
{
    return weigh(logit_now(c, key), c.top, c.bits);
}

/* Candidates from this key on, no more than there are. */
static __device__ inline void raise_low(chooser &c, word low)
{
    if (low <= c.low)
        return;
    c.low = low;
    c.least = key_logit(low);
}

/* ---- all threads of a block ---- */

static __device__ inline word word_max(word a, word b)
{
    return a > b ? a : b;
}

/* The largest, or the sum, of one word of each thread. */
static __device__ word block_words_max(chooser &c, word x)
{
    block_sync();
    if (threadIdx.x == 0)
        c.m->found[0] = 0;
    for (int step = WARP / 2; step > 0; step /= 2)
        x = word_max(x, __shfl_xor_sync(ALL_LANES, x, step));
    block_sync();
    if (lane_index() == 0)
        atomicMax(&c.m->found[0], x);
    block_sync();
    return c.m->found[0];
}

static __device__ word block_words_sum(chooser &c, word x)
{
    block_sync();
    if (threadIdx.x == 0)
        c.m->found[0] = 0;
    x = warp_sum(x);
    block_sync();
    if (lane_index() == 0)
        atomicAdd(&c.m->found[0], x);
    block_sync();
    return c.m->found[0];
}

/* f(key), where that is a candidate. */
template <class F>
static __device__ inline void one_key(const chooser &c, float logit, int id, F &f)
{
    if (!(logit >= c.least)) /* most are none, and NaN */
        return;
    const word key = key_of(logit, (uint32_t)id);
    if (key >= c.low && key > 0)
        f(key);
}

/* ---- stripes ---- */

/* Logit `at` and the next three, of those that there are. */
static __device__ inline float4 four_logits(const chooser &c, int at)
{
    const float none = -INFINITY;
    const int width = (int)c.width; /* KSAMPLE_VOCAB_MAX at most */
    if (at + 4 <= width && (uintptr_t)c.logits % 16 == 0)
        return *(const float4 *)(c.logits + at);
    return float4{at < width ? c.logits[at] : none, at + 1 < width ? c.logits[at + 1] : none,
                  at + 2 < width ? c.logits[at + 2] : none,
                  at + 3 < width ? c.logits[at + 3] : none};
}

/* f(logit, id) of a stripe. 32 of them, which a warp has, follow each other four logits at a time. Several loads are on their way. */
template <class F> static __device__ inline void stripe_each(const chooser &c, int stripe, F f)
{
    enum { AHEAD = 4 };
    const int first = (stripe / WARP * c.fours * WARP + stripe % WARP) * 4;
    UNROLLED(1)
    for (int i = 0; i < c.fours; i += AHEAD) {
        float4 x[AHEAD];
        UNROLLED(AHEAD)
        for (int k = 0; k < AHEAD; k++)
            x[k] = four_logits(c, first + (i + k < c.fours ? i + k : i) * WARP * 4);
        UNROLLED(AHEAD)
        for (int k = 0; k < AHEAD; k++) {
            const int at = first + (i + k) * WARP * 4;
            if (i + k >= c.fours)
                break;
            f(x[k].x, at);
            f(x[k].y, at + 1);
            f(x[k].z, at + 2);
            f(x[k].w, at + 3);
        }
    }
}

static __device__ void stripes_cut(chooser &c)
{
    const int each = CHOOSE_STRIPES * 4, width = (int)c.width;
    c.fours = (width + each - 1) / each;
    c.n_stripe = (width + c.fours * WARP * 4 - 1) / (c.fours * WARP * 4) * WARP;
}

/* The largest of the stripes of a part. */
static __device__ void stripes_find(const chooser &c, int part, int parts, float *to)
{
    const int warps = c.n_stripe / WARP;
    for (int i = warps * part / parts * WARP + (int)threadIdx.x;
         i < warps * (part + 1) / parts * WARP; i += block_threads()) {
        float most = -INFINITY;
        stripe_each(c, i, [&](float logit, int) { most = logit > most ? logit : most; });
        to[i] = most;
    }
}

/* f(key) of every candidate, each by one thread. */
template <class F> static __device__ inline void each_key(const chooser &c, F f)
{
    for (int i = (int)threadIdx.x; i < c.n_stripe; i += block_threads())
        if (c.m->most[i] >= c.least) /* most have none */
            stripe_each(c, i, [&](float logit, int id) { one_key(c, logit, id, f); });
}

/* The largest key of this thread's stripes, but for its id, and of all. */
static __device__ void best_find(chooser &c)
{
    float most = -INFINITY;
    for (int i = (int)threadIdx.x; i < c.n_stripe; i += block_threads())
        most = c.m->most[i] > most ? c.m->most[i] : most;
    c.mine = key_of(most, ~0u);
    c.best = block_words_max(c, c.mine);
    if (c.best == 0)
        return;
    word best = 0; /* of equal ones the first */
    c.least = key_logit(c.best);
    each_key(c, [&](word key) { best = word_max(best, key); });
    c.best = block_words_max(c, best);
    c.least = -INFINITY;
    c.top = key_logit(c.best);
}

/* ---- the search ---- */

/* The digit in whose part of the line `left` ends, going down from the highest; left becomes what is left of it there. By the
 * first warp, for all. */
static __device__ ONE_COPY int digit_find(chooser &c, word *left)
{
    enum { PER_LANE = DIGITS / WARP };
    choose_memory *m = c.m;
    if (warp_index() == 0) {
        const int lane = lane_index(), from = DIGITS - 1 - lane * PER_LANE;
        word own = 0;
        for (int i = 0; i < PER_LANE; i++)
            own += m->histogram[from - i];
        word end = own;
        for (int step = 1; step < WARP; step *= 2) {
            word other = __shfl_up_sync(ALL_LANES, end, step);
            end += lane >= step ? other : 0;
        }
        if (end >= *left && end - own < *left) { /* one lane alone */
            word at = *left - (end - own);
            int digit = from;
            while (m->histogram[digit] < at)
                at -= m->histogram[digit--];
            m->found[1] = (word)digit;
            m->found[2] = at;
        }
    }
    block_sync();
    *left = m->found[2];
    return (int)m->found[1];
}

/* The first candidate, going down, with which those so far have `target` or more of what is added up: their weights, or their
 * number. There is one. */
template <bool WEIGHTS> static __device__ ONE_COPY word key_search(chooser &c, word target)
{
    static const int shifts[] = {53, 42, 32, 11, 0}; /* of an id, 22 bits count */
    choose_memory *m = c.m;
    word known = 0, mask = 0;
    for (int d = 0; d < 5; d++) {
        const int shift = shifts[d];
        block_sync();
        for (int i = (int)threadIdx.x; i < DIGITS; i += block_threads()) {
            m->histogram[i] = 0;
            m->count[i] = 0;
        }
        block_sync();
        each_key(c, [&](word key) {
            if ((key & mask) != known)
                return;
            int digit = (int)(key >> shift) & (d == 2 ? DIGITS / 2 - 1 : DIGITS - 1);
            atomicAdd(&m->histogram[digit], WEIGHTS ? weight_of(c, key) : (word)1);
            atomicAdd(&m->count[digit], 1u);
        });
        block_sync();
        int digit = digit_find(c, &target);
        known |= (word)digit << shift;
        mask |= (word)(d == 2 ? DIGITS / 2 - 1 : DIGITS - 1) << shift;
        if (d == 2) { /* what no id has */
            mask |= (word)0xffc00000u;
            known |= (word)0xffc00000u;
        }
        if (m->count[digit] == 1)
            break;
    }
    word found = 0;
    each_key(c, [&](word key) { found = (key & mask) == known ? key : found; });
    return block_words_max(c, found);
}

/* ---- the list ---- */

/* Sort the first n of the list, the largest first (bitonic; what fills it up to a power of two is 0). */
static __device__ ONE_COPY void list_sort(chooser &c, int n)
{
    word *key = c.m->key;
    int size = 1;
    while (size < n)
        size *= 2;
    for (int i = n + (int)threadIdx.x; i < size; i += block_threads())
        key[i] = 0;
    for (int run = 2; run <= size; run *= 2)
        for (int step = run / 2; step > 0; step /= 2) {
            block_sync();
            for (int i = (int)threadIdx.x; i < size; i += block_threads()) {
                const int other = i ^ step;
                const bool down = (i & run) == 0;
                if (other > i && (key[i] < key[other]) == down) {
                    word t = key[i];
                    key[i] = key[other];
                    key[other] = t;
                }
            }
        }
    block_sync();
}

/* The k-th of the largest keys of each thread: at least k keys reach it. 0: fewer threads have any. */
static __device__ word key_bound(chooser &c, int k)
{
    block_sync();
    c.m->key[threadIdx.x] = c.mine;
    list_sort(c, (int)block_threads());
    const word bound = c.m->key[k - 1];
    block_sync();
    return bound;
}

/* Candidates from `bound` on to the list, if there are no more than it holds. */
static __device__ ONE_COPY void list_from(chooser &c, word bound)
{
    choose_memory *m = c.m;
    word all = 0;
    block_sync();
    if (threadIdx.x == 0)
        m->n = 0;
    block_sync();
    each_key(c, [&](word key) {
        all++;
        if (key < bound)
            return;
        int at = atomicAdd(&m->n, 1);
        if (at < LIST_MAX)
            m->key[at] = key;
    });
    all = block_words_sum(c, all);
    const int n = m->n;
    c.n_list = -1;
    c.n_best = 0;
    if (n > LIST_MAX)
        return;
    list_sort(c, n);
    if (all == (word)n)
        c.n_list = n;
    else
        c.n_best = n;
}

static __device__ void list_make(chooser &c)
{
    list_from(c, c.low);
}

/* Of the list. */
static __device__ inline int list_size(const chooser &c)
{
    return c.n_list >= 0 ? c.n_list : c.n_best;
}

/* Sums of the weights of its first n, and the sum of all of these. By the first warp: a lane has a run of the list. */
static __device__ word list_weigh(chooser &c, int n)
{
    choose_memory *m = c.m;
    block_sync();
    for (int i = (int)threadIdx.x; i < n; i += block_threads())
        m->sum[i] = weight_of(c, m->key[i]);
    block_sync();
    if (warp_index() == 0) {
        const int lane = lane_index(), run = (n + WARP - 1) / WARP;
        const int first = lane * run, end = first + run < n ? first + run : n;
        word own = 0;
        for (int i = first; i < end; i++)
            own += m->sum[i];
        word before = own;
        for (int step = 1; step < WARP; step *= 2) {
            word other = __shfl_up_sync(ALL_LANES, before, step);
            before += lane >= step ? other : 0;
        }
        before -= own;
        for (int i = first; i < end; i++)
            m->sum[i] = before += m->sum[i];
    }
    block_sync();
    return m->sum[n - 1];
}

/* The weight of all candidates. In the list `sum` is what those up to each have. */
static __device__ ONE_COPY word all_weigh(chooser &c, word *listed)
{
    word all = 0;
    const int n = list_size(c);
    *listed = n > 0 ? list_weigh(c, n) : 0;
    if (c.n_list >= 0)
        return *listed;
    each_key(c, [&](word key) { all += weight_of(c, key); });
    return block_words_sum(c, all);
}

/* How many of the list, of its first n, are such. */
template <class F> static __device__ inline int list_count(chooser &c, int n, F f)
{
    int mine = 0;
    for (int i = (int)threadIdx.x; i < n; i += block_threads())
        mine += f(i) ? 1 : 0;
    return (int)block_words_sum(c, (word)mine);
}

/* ---- steps ---- */

/* The first step that needs a list leaves out what is far behind the best (sampler_need_list). */
static __device__ void cut_tail(chooser &c, float reach)
{
    if (!c.dense)
        return;
    c.dense = false;
    raise_low(c, key_of(key_logit(c.best) - reach, ~0u));
    list_from(c, key_bound(c, (int)(block_threads() + 1) / 2));
}

static __device__ void keep_top_k(chooser &c, int32_t k)
{
    if (c.dense && k <= block_threads()) {
        raise_low(c, key_bound(c, k));
        list_make(c);
    }
    c.dense = false;
    if (k <= list_size(c)) {
        c.n_list = k;
        return;
    }
    if (c.n_list >= 0)
        return;
    word all = 0;
    each_key(c, [&](word) { all++; });
    if (block_words_sum(c, all) > (word)k) {
        raise_low(c, key_search<false>(c, (word)k));
        list_make(c);
    }
}

static __device__ void keep_top_p(chooser &c, double share)
{
    word listed, need = ksample_share(share, all_weigh(c, &listed));
    if (listed >= need && list_size(c) > 0) {
        const int n = list_size(c);
        const int before = list_count(c, n, [&](int i) { return c.m->sum[i] < need; });
        c.n_list = before < n ? before + 1 : n;
    } else if (c.n_list < 0) {
        raise_low(c, need > 0 ? key_search<true>(c, need) : c.best);
        list_make(c);
    }
}

static __device__ void keep_min_p(chooser &c, double log_min_p)
{
    const double bound = c.top + log_min_p;
    const int n = list_size(c), stay = list_count(c, n, [&](int i) {
                                    return i == 0 || (double)logit_now(c, c.m->key[i]) >= bound;
                                });
    if (c.n_list >= 0 || stay < n) {
        c.n_list = stay;
        return;
    }
    word most = 0; /* of the complements: the least key that stays */
    each_key(c, [&](word key) {
        if (key == c.best || (double)logit_now(c, key) >= bound)
            most = word_max(most, ~key);
    });
    raise_low(c, ~block_words_max(c, most));
    list_make(c);
}

/* ---- the draw ---- */

static __device__ word draw(chooser &c, uint64_t rng[2])
{
    if (c.n_list == 1 || c.low == c.best)
        return c.best;
    word listed, all = all_weigh(c, &listed), point = ksample_point(ksample_random(rng), all);
    if (all == 0)
        return c.best;
    if (listed > point) {
        const int at = list_count(c, list_size(c), [&](int i) { return c.m->sum[i] <= point; });
        return c.m->key[at];
    }
    return key_search<true>(c, point + 1);
}

/* What a chain leaves, and the token drawn from it. The best candidate is there. */
static __device__ word chain_run(chooser &c, const ksample &how, uint64_t rng[2])
{
    for (int i = 0; i < how.n_step; i++) {
        const int step = how.step[i];
        if (step == KSAMPLE_TOP_K) {
            keep_top_k(c, how.top_k);
            continue;
        }
        cut_tail(c, how.reach);
        if (step == KSAMPLE_TOP_P)
            keep_top_p(c, how.top_p);
        if (step == KSAMPLE_MIN_P)
            keep_min_p(c, how.log_min_p);
        if (step == KSAMPLE_TEMPERATURE) {
            c.cooled = true;
            c.top = logit_now(c, c.best);
        }
    }
    cut_tail(c, how.reach);
    return draw(c, rng);
}

/* A row whose stripes are known: the result is every thread's. */
static __device__ ksampled row_choose(chooser &c, const ksample &how, const uint64_t rng[2])
{
    ksampled out = {{rng[0], rng[1]}, -1, 0};
    best_find(c);
    if (c.best != 0)
        out.id = key_id(how.greedy ? c.best : chain_run(c, how, out.rng));
    return out;
}

/* ---- entries ---- */

/* Tell the host: its word comes last. */
static __device__ void tell(ksampled *to, const ksampled &x, uint32_t turn)
{
    to->rng[0] = x.rng[0];
    to->rng[1] = x.rng[1];
    to->id = x.id;
    __threadfence_system();
    *(volatile uint32_t *)&to->turn = turn;
}

/* Has this block brought the last part of a row? Then it sees what all have brought. */
static __device__ bool part_is_last(choose_memory *m, uint32_t *found, int parts)
{
    __threadfence();
    block_sync();
    if (threadIdx.x == 0) {
        m->n = atomicAdd(found, 1u) == (uint32_t)parts - 1;
        if (m->n)
            *found = 0;
    }
    block_sync();
    __threadfence();
    return m->n != 0;
}

/* The largest of all stripes, to this block's memory. False: another block has them. */
static __device__ bool stripes_meet(const cuda_choice &a, chooser &c, int row, int part)
{
    if (!a.stripes) {
        stripes_find(c, 0, 1, c.m->most);
        block_sync();
        return true;
    }
    float *all = a.stripes + row * CHOOSE_STRIPES;
    stripes_find(c, part, CHOOSE_PARTS, all);
    if (!part_is_last(c.m, &a.found[row], CHOOSE_PARTS))
        return false;
    for (int i = (int)threadIdx.x; i < c.n_stripe; i += block_threads())
        c.m->most[i] = *(volatile float *)&all[i];
    block_sync();
    return true;
}

extern "C" __global__ void __launch_bounds__(CHOOSE_BLOCK, 1)
    weft_choose(const __grid_constant__ cuda_choice a)
{
#ifdef __CUDACC__
    extern __shared__ __align__(1024) char dynamic[];
#else
    char *dynamic = simt_dynamic();
#endif
    const int parts = a.stripes ? CHOOSE_PARTS : 1;
    const int row = (int)blockIdx.x / parts, part = (int)blockIdx.x % parts;
    const ksample &how = a.how ? a.how[row] : a.how_few[row];
    chooser c = {};
    c.m = (choose_memory *)dynamic;
    c.logits = a.logits + row * a.width;
    c.width = a.width;
    c.least = -INFINITY;
    c.dense = true;
    c.n_list = -1;
    c.temp = how.temp;
    c.bits = ksample_bits(a.width);
    stripes_cut(c);
    launch_wait();
    if (!stripes_meet(a, c, row, part))
        return;
    const uint64_t *rng = how.from >= 0 ? a.before[how.from].rng : how.rng;
    ksampled x = row_choose(c, how, rng);
    if (threadIdx.x == 0) {
        a.chosen[row] = x;
        tell(&a.host[row], x, a.turn);
    }
}

/* ---- the likeliest, by several blocks ---- */

/* The best key of a part is there; whoever brings the last has all of them, as `best`. By one thread. */
static __device__ bool part_found(const cuda_choice &a, int row, int part, word *best)
{
    volatile uint64_t *of = a.best + (int64_t)row * BEST_PARTS;
    of[part] = *best;
    __threadfence();
    if (atomicAdd(&a.found[row], 1u) != BEST_PARTS - 1)
        return false;
    __threadfence();
    for (int i = 0; i < BEST_PARTS; i++)
        *best = word_max(*best, of[i]);
    a.found[row] = 0;
    return true;
}

extern "C" __global__ void __launch_bounds__(BEST_BLOCK)
    weft_best(const __grid_constant__ cuda_choice a)
{
    __shared__ word best;
    const int row = (int)blockIdx.x / BEST_PARTS, part = (int)blockIdx.x % BEST_PARTS;
    const int64_t first = a.width * part / BEST_PARTS, end = a.width * (part + 1) / BEST_PARTS;
    const float *logits = a.logits + row * a.width;
    float top = -INFINITY;
    int at = 0;
    if (threadIdx.x == 0)
        best = 0;
    block_sync();
    launch_wait();
    UNROLLED(8)
    for (int i = (int)first + (int)threadIdx.x; i < (int)end; i += block_threads()) {
        at = logits[i] > top ? i : at; /* of equal ones the first */
        top = logits[i] > top ? logits[i] : top;
    }
    word mine = key_of(top, (uint32_t)at);
    for (int step = WARP / 2; step > 0; step /= 2)
        mine = word_max(mine, __shfl_xor_sync(ALL_LANES, mine, step));
    if (lane_index() == 0)
        atomicMax(&best, mine);
    block_sync();
    if (threadIdx.x != 0 || !part_found(a, row, part, &best))
        return;
    const ksample &how = a.how ? a.how[row] : a.how_few[row];
    const uint64_t *rng = how.from >= 0 ? a.before[how.from].rng : how.rng;
    const ksampled x = {{rng[0], rng[1]}, best ? key_id(best) : -1, 0};
    a.chosen[row] = x;
    tell(&a.host[row], x, a.turn);
}

extern "C" __global__ void weft_tokens(const __grid_constant__ cuda_tokens a)
{
    for (int i = (int)threadIdx.x; i < a.n; i += block_threads()) {
        const int32_t from = a.from ? a.from[i] : a.from_few[i];
        if (from >= 0)
            a.token[i] = chosen_before(a.before, from);
    }
}

#endif
