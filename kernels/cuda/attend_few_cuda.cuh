/* attend_few_cuda.cuh - softmax attention of a few rows, many of which are of sequences of their own.
 *
 * Positions are cut into stretches (attend_cuda.cuh), each of which is a block's, and a stretch into FEW_PIECES pieces, each of
 * which is a warp's, so that at any length all warps of a block load at once. Of a piece a warp keeps several query heads that
 * share a head of the cell, so that a key is read once for all of them. A row of 16-bit numbers is 16 bytes of each of 8, 16 or
 * 32 lanes; a load of the warp is so 4, 2 or 1 positions, and several loads of keys and as many of values are under way. Lanes
 * then add up each other's parts of the products until each has a logit or two, which become weights, and values are added up
 * lane by lane.
 *
 * Pieces are merged in shared memory. Where stretches are units (ATTEND_STATES) another step merges those, else the block that
 * walks along all of a unit: with the same bits, which depend on a row's position alone. Cells of other forms are
 * attend_cuda.cuh's. Tiers begin at multiples of 16 bytes. The rows of this call are in the cell already. out overlaps no input. */
#ifndef WEFT_KERNELS_CUDA_ATTEND_FEW_CUDA_CUH
#define WEFT_KERNELS_CUDA_ATTEND_FEW_CUDA_CUH

#include "kernels/cuda/attend_cuda.cuh"
#include "kernels/cuda/attend_few_size.h"

enum { FEW_COLS = 8 }; /* numbers of a load, of a lane */

/* How a warp has the positions of a piece: LANES lanes to each, HEADS query heads. */
template <int LANES, int HEADS> struct few_lanes {
    enum {
        EACH = WARP / LANES,                        /* positions of a load */
        LOADS = LANES == 8 ? 4 : 8,                 /* of keys, and of values */
        POSITIONS = EACH * LOADS,                   /* at a time */
        LOGITS = LOADS * HEADS,                     /* of a lane, a part of each, */
        KEPT = LOGITS > LANES ? LOGITS / LANES : 1, /* and whole ones of a lane, */
        SAME = LOGITS < LANES ? LANES / LOGITS : 1, /* which so many lanes have alike. */
        HEAD_BITS = SAME * (HEADS / KEPT - 1),      /* of a lane's number: which heads' */
        SUMS = HEADS * FEW_COLS,
        SUMS_KEPT = SUMS / EACH,             /* of values, at the end, */
        PUT = SUMS_KEPT < 4 ? SUMS_KEPT : 4, /* stored together */
    };
    static_assert((int)POSITIONS <= (int)FEW_POSITIONS, "FEW_TABLE");
    static_assert(HEADS % (int)KEPT == 0, "logits of a lane are of different heads");

    /* Of logit i of this lane, among all of POSITIONS. */
    static __device__ inline int number(int i)
    {
        return lane_index() % LANES / SAME * KEPT + i;
    }
    static __device__ inline int head(int i)
    {
        return number(i) % HEADS;
    }
    static __device__ inline int position(int i)
    {
        return number(i) / HEADS * EACH + lane_index() / LANES;
    }
    /* Is it the one lane of those that have it? */
    static __device__ inline bool is_first(void)
    {
        return lane_index() % SAME == 0;
    }
};

/* The work of a unit: a row, seen by query heads [first_head, first_head + heads). */
struct few_attend {
    const kargs *k;
    const int32_t *pages;
    int head; /* of the cell */
    int first_head, heads;
    int row, pos;
    int seen; /* the first position that the row sees */
    int bits; /* a stretch is 1 << bits positions */
};

/* A block's memory. */
struct few_memory {
    float *table;  /* [FEW_PIECES][FEW_TABLE]: weights of each warp */
    float *pieces; /* [FEW_PIECES][FEW_HEADS][few_piece_floats] */
    float *all;    /* few_all_floats: stretches so far */
};

/* What a lane has: of its logits the largest so far and the sum of weights, of each query head a part of the sums of eight
 * columns. */
template <int LANES, int HEADS> struct few_sums {
    float max[few_lanes<LANES, HEADS>::KEPT], total[few_lanes<LANES, HEADS>::KEPT];
    float sum[few_lanes<LANES, HEADS>::SUMS];
};

/* ---- 16 bits ---- */

template <bool BF16> static __device__ inline float low_half(uint32_t w)
{
    return BF16 ? float_of(w << 16) : from_f16((uint16_t)w);
}

template <bool BF16> static __device__ inline float high_half(uint32_t w)
{
    return BF16 ? float_of(w & 0xffff0000u) : from_f16((uint16_t)(w >> 16));
}

/* ---- sums across lanes ---- */

/* N numbers of each of some lanes are added up; each lane keeps a part of the sums, or the one that there is. The lanes are
 * those whose numbers differ in the bits from `LEAST` to below 2 * MOST: a lane with the upper bit keeps the upper half, and so
 * on. */
template <int N, int MOST, int LEAST> struct scatter {
    static __device__ inline void add(float *v)
    {
        const bool up = (lane_index() & MOST) != 0;
        if (N == 1)
            v[0] += __shfl_xor_sync(ALL_LANES, v[0], MOST);
        UNROLL
        for (int i = 0; i < N / 2; i++) {
            float send = up ? v[i] : v[i + N / 2], keep = up ? v[i + N / 2] : v[i];
            v[i] = keep + __shfl_xor_sync(ALL_LANES, send, MOST);
        }
        scatter<(N > 1 ? N / 2 : 1), MOST / 2, (MOST > LEAST ? LEAST : 0)>::add(v);
    }
};

template <int N, int MOST> struct scatter<N, MOST, 0> {
    static __device__ inline void add(float *)
    {
    }
};

/* ---- loads ---- */

/* Where the head's keys of the page of position `at` are, from that position on. */
static __device__ SHAPE_FN const char *few_keys_at(const few_attend &w, int at)
{
    const kcell *c = w.k->cell;
    const int page_tok = (int)c->page_tok, e = at / page_tok, row = (int)c->k * 2;
    return c->tier[0].base + w.pages[e] * c->tier[0].page_bytes +
           (w.head * page_tok + at - e * page_tok) * row;
}

/* Keys of positions from there on, which lie in one page. Those that the row does not see may be anything. */
template <int LANES, int HEADS>
static __device__ SHAPE_FN void few_keys(const char *from, bytes16 *to)
{
    typedef few_lanes<LANES, HEADS> lanes;
    from += lane_index() * 16;
    UNROLL
    for (int u = 0; u < lanes::LOADS; u++)
        to[u] = *(const bytes16 *)(from + u * WARP * 16);
}

/* Values of positions from `at` on; zeros where the row sees nothing, or `end` is before. */
template <int LANES, int HEADS>
static __device__ SHAPE_FN void few_values(const few_attend &w, const char *keys, int at, int end,
                                           bytes16 *to)
{
    typedef few_lanes<LANES, HEADS> lanes;
    const kcell *c = w.k->cell;
    const char *from = keys + c->heads * c->page_tok * c->k * 2 + lane_index() * 16;
    at += lane_index() / LANES;
    UNROLL
    for (int u = 0; u < lanes::LOADS; u++) {
        to[u] = bytes16{};
        if (at + u * lanes::EACH >= w.seen && at + u * lanes::EACH < end)
            to[u] = *(const bytes16 *)(from + u * WARP * 16);
    }
}

/* Eight columns of each query head. Queries at odd places are copied first, to a warp's `room`. */
template <int LANES, int HEADS>
static __device__ SHAPE_FN void few_queries(const few_attend &w, float *room, float *q)
{
    const float *all = row_in(w.k, 0, w.row) + w.first_head * LANES * FEW_COLS;
    if (!at_16(all)) {
        UNROLLED(1)
        for (int i = lane_index(); i < w.heads * LANES * FEW_COLS; i += WARP)
            room[i] = all[i];
        __syncwarp();
        all = room;
    }
    UNROLL
    for (int h = 0; h < HEADS; h++) {
        const float *from =
            all + (h < w.heads ? h : 0) * LANES * FEW_COLS + lane_index() % LANES * FEW_COLS;
        const bytes16 low = *(const bytes16 *)from, high = *(const bytes16 *)(from + 4);
        UNROLL
        for (int i = 0; i < FEW_COLS; i++)
            q[h * FEW_COLS + i] = float_of((i < 4 ? low : high).w[i % 4]);
    }
    __syncwarp(); /* the room is free again */
}

/* ---- a warp's walk ---- */

/* A lane's logits, KEPT of them, first of `s`. */
template <int LANES, bool BF16, int HEADS>
static __device__ SHAPE_FN void few_logits(const float *q, const bytes16 *key, float *s)
{
    typedef few_lanes<LANES, HEADS> lanes;
    UNROLL
    for (int u = 0; u < lanes::LOADS; u++) {
        float x[FEW_COLS];
        UNROLL
        for (int i = 0; i < 4; i++) {
            x[2 * i] = low_half<BF16>(key[u].w[i]);
            x[2 * i + 1] = high_half<BF16>(key[u].w[i]);
        }
        UNROLL
        for (int h = 0; h < HEADS; h++) {
            float sum = 0;
            UNROLL
            for (int i = 0; i < FEW_COLS; i++)
                sum = mad(q[h * FEW_COLS + i], x[i], sum);
            s[u * HEADS + h] = sum;
        }
    }
    scatter<lanes::LOGITS, LANES / 2, 1>::add(s);
}

/* What is done to a logit; -inf for what the row does not see. */
static __device__ inline float few_logit(const few_attend &w, float s, int h, int at, bool seen)
{
    const float *slopes = (const float *)w.k->in[3]; /* [H] or NULL */
    const float softcap = (float)w.k->scalar.attend.softcap;
    s *= (float)w.k->scalar.attend.scale;
    if (softcap != 0)
        s = softcap * tanhf(s / softcap);
    if (slopes && h < w.heads)
        s += slopes[w.first_head + h] * (float)(at - w.pos);
    return seen ? s : -INFINITY;
}

/* Logits of positions from `at` on become weights, in `table` [position][head]; sums so far, unless these are the `first`,
 * are made relative to them. */
template <int LANES, int HEADS>
static __device__ SHAPE_FN void few_weigh(const few_attend &w, bool first, int at, int end,
                                          const float *logit, float *table,
                                          few_sums<LANES, HEADS> &a)
{
    typedef few_lanes<LANES, HEADS> lanes;
    bool moved = false;
    UNROLL
    for (int i = 0; i < lanes::KEPT; i++) {
        const int h = lanes::head(i), p = lanes::position(i);
        const bool seen = at + p >= w.seen && at + p < end;
        const float s = few_logit(w, logit[i], h, at + p, seen);
        float most = s;
        UNROLL
        for (int step = WARP / 2; step > 0; step /= 2)
            if (!(step & lanes::HEAD_BITS)) {
                float y = __shfl_xor_sync(ALL_LANES, most, step);
                most = y > most ? y : most;
            }
        most = most > a.max[i] ? most : a.max[i];
        const float weight = expf(s - most);
        const float keep = expf(a.max[i] - most);
        a.total[i] = a.total[i] * keep + weight;
        a.max[i] = most;
        moved = moved || keep != 1;
        if (lanes::is_first())
            table[p * HEADS + h] = weight;
        if (p == 0)
            table[lanes::POSITIONS * HEADS + h] = keep;
    }
    moved = !first && __any_sync(ALL_LANES, moved);
    __syncwarp();
    if (moved) {
        UNROLL
        for (int h = 0; h < HEADS; h++) {
            const float keep = table[lanes::POSITIONS * HEADS + h];
            UNROLL
            for (int i = 0; i < FEW_COLS; i++)
                a.sum[h * FEW_COLS + i] *= keep;
        }
    }
}

template <int LANES, bool BF16, int HEADS>
static __device__ SHAPE_FN void few_add(const bytes16 *value, const float *table,
                                        few_sums<LANES, HEADS> &a)
{
    typedef few_lanes<LANES, HEADS> lanes;
    UNROLL
    for (int u = 0; u < lanes::LOADS; u++) {
        const float *at = table + (u * lanes::EACH + lane_index() / LANES) * HEADS;
        float p[HEADS];
        if (HEADS == 4) {
            const bytes16 four = *(const bytes16 *)at;
            UNROLL
            for (int h = 0; h < HEADS; h++)
                p[h] = float_of(four.w[h % 4]);
        } else {
            UNROLL
            for (int h = 0; h < HEADS; h++)
                p[h] = at[h];
        }
        UNROLL
        for (int i = 0; i < FEW_COLS; i++) {
            const uint32_t word = value[u].w[i / 2];
            const float x = i % 2 ? high_half<BF16>(word) : low_half<BF16>(word);
            UNROLL
            for (int h = 0; h < HEADS; h++)
                a.sum[h * FEW_COLS + i] = mad(p[h], x, a.sum[h * FEW_COLS + i]);
        }
    }
}

/* N numbers that follow on each other, four or fewer. */
template <int N> static __device__ inline void few_put(const float *from, float *to)
{
    bytes16 four;
    UNROLL
    for (int i = 0; i < N; i++)
        four.w[i] = bits_of(from[i]);
    if (N == 4)
        *(bytes16 *)to = four;
    UNROLL
    for (int i = 0; i < N && N < 4; i++)
        to[i] = from[i];
}

/* What a warp has of a piece, at `to` [FEW_HEADS][few_piece_floats]. */
template <int LANES, int HEADS>
static __device__ SHAPE_FN void few_piece_put(few_sums<LANES, HEADS> &a, float *to)
{
    typedef few_lanes<LANES, HEADS> lanes;
    const int pitch = (int)few_piece_floats(LANES * FEW_COLS);
    scatter<lanes::SUMS, WARP / 2, (LANES < WARP ? LANES : 0)>::add(a.sum);
    UNROLL
    for (int i = 0; i < lanes::KEPT; i++) {
        float total = a.total[i];
        UNROLL
        for (int step = WARP / 2; step >= lanes::SAME; step /= 2)
            if (!(step & lanes::HEAD_BITS))
                total += __shfl_xor_sync(ALL_LANES, total, step);
        if (lanes::position(i) == 0 && lanes::is_first()) {
            to[lanes::head(i) * pitch] = a.max[i];
            to[lanes::head(i) * pitch + 1] = total;
        }
    }
    const int at = lane_index() / LANES * lanes::SUMS_KEPT; /* of SUMS */
    to += FEW_PAD + lane_index() % LANES * FEW_COLS;
    UNROLL
    for (int i = 0; i < lanes::SUMS_KEPT; i += lanes::PUT)
        few_put<lanes::PUT>(a.sum + i, to + (at + i) / FEW_COLS * pitch + (at + i) % FEW_COLS);
}

/* Positions [begin, end) by a warp; `table` is its own. Keys and values of the next ones are under way while some are computed:
 * the first round has none yet. */
template <int LANES, bool BF16, int HEADS>
static __device__ ONE_COPY void few_piece_walk(const few_attend &w, int begin, int end,
                                               float *table, float *to)
{
    typedef few_lanes<LANES, HEADS> lanes;
    few_sums<LANES, HEADS> a;
    float q[HEADS * FEW_COLS];
    bytes16 key[lanes::LOADS], value[lanes::LOADS];
    UNROLL
    for (int i = 0; i < lanes::KEPT; i++) {
        a.max[i] = -INFINITY;
        a.total[i] = 0;
    }
    UNROLL
    for (int i = 0; i < lanes::SUMS; i++)
        a.sum[i] = 0;
    UNROLL
    for (int i = 0; i < lanes::LOADS; i++)
        key[i] = value[i] = bytes16{};
    few_queries<LANES, HEADS>(w, to, q);
    const int first = begin / lanes::POSITIONS * lanes::POSITIONS;
    UNROLLED(1)
    for (int next = first; next - lanes::POSITIONS < end; next += lanes::POSITIONS) {
        const int at = next - lanes::POSITIONS;
        const char *from = next < end ? few_keys_at(w, next) : NULL;
        float s[lanes::LOGITS];
        if (at >= first)
            few_logits<LANES, BF16, HEADS>(q, key, s);
        if (next < end)
            few_keys<LANES, HEADS>(from, key);
        if (at >= first) {
            few_weigh<LANES, HEADS>(w, at == first, at, end, s, table, a);
            few_add<LANES, BF16, HEADS>(value, table, a);
        }
        if (next < end)
            few_values<LANES, HEADS>(w, from, next, end, value);
        __syncwarp(); /* the table has been read */
    }
    few_piece_put<LANES, HEADS>(a, to);
}

/* In images that are made for a plan, with as many heads as there are; else one copy, with the most. */
template <int LANES, bool BF16>
static __device__ SHAPE_FN void few_piece_heads(const few_attend &w, int begin, int end,
                                                float *table, float *to)
{
#ifdef WEFT_SHAPES
    const int64_t heads = few_attend_size_of(w.k).heads;
    if (heads == 1)
        return few_piece_walk<LANES, BF16, 1>(w, begin, end, table, to);
    if (heads == 2)
        return few_piece_walk<LANES, BF16, 2>(w, begin, end, table, to);
#endif
    few_piece_walk<LANES, BF16, FEW_HEADS>(w, begin, end, table, to);
}

static __device__ SHAPE_FN void few_piece_any(const few_attend &w, int begin, int end, float *table,
                                              float *to)
{
    const kcell *c = w.k->cell;
    const bool bf16 = c->tier[0].key == KFORM_BF16;
    switch (c->k * 2 + bf16) {
#define CASE(lanes)                                                                                \
    case lanes *FEW_COLS * 2:                                                                      \
        few_piece_heads<lanes, false>(w, begin, end, table, to);                                   \
        break;                                                                                     \
    case lanes *FEW_COLS * 2 + 1:                                                                  \
        few_piece_heads<lanes, true>(w, begin, end, table, to);                                    \
        break;
        CASE(8)
        CASE(16)
        CASE(32)
#undef CASE
    default:
        break;
    }
}

/* ---- stretches ---- */

/* Pieces of a stretch that have something. */
struct few_range {
    int first, last;
};

static __device__ SHAPE_FN few_range few_pieces_of(const few_attend &w, int stretch)
{
    const int bits = w.bits - FEW_PIECE_BITS, begin = stretch << w.bits;
    const int first = (w.seen - begin) >> bits, last = (w.pos - begin) >> bits;
    return few_range{first > 0 ? first : 0, last < FEW_PIECES ? last : FEW_PIECES - 1};
}

static __device__ SHAPE_FN void few_stretch_run(const few_attend &w, int stretch,
                                                const few_memory &m)
{
    const int v = (int)w.k->cell->v, bits = w.bits - FEW_PIECE_BITS;
    const few_range there = few_pieces_of(w, stretch);
    UNROLLED(1)
    for (int p = there.first + warp_index(); p <= there.last; p += warp_count()) {
        const int begin = (stretch << w.bits) + (p << bits), end = begin + (1 << bits);
        few_piece_any(w, begin > w.seen ? begin : w.seen, end <= w.pos ? end : w.pos + 1,
                      m.table + warp_index() % FEW_PIECES * FEW_TABLE,
                      m.pieces + p * FEW_HEADS * (int)few_piece_floats(v));
    }
    __syncthreads();
}

/* What a stretch has of a lane's column. */
struct few_state {
    float max, total, sum;
};

/* Columns [i * FEW_COLUMNS, ..) of those of all query heads, by a warp: all of them are one head's. */
static __device__ SHAPE_FN few_state few_stretch_take(const few_attend &w, few_range there, int i,
                                                      const few_memory &m)
{
    const int v = (int)w.k->cell->v, pitch = FEW_HEADS * (int)few_piece_floats(v);
    const int h = i * FEW_COLUMNS / v, col = i * FEW_COLUMNS % v + lane_index();
    const int p = lane_index() % FEW_PIECES;
    const float *from = m.pieces + h * (int)few_piece_floats(v), *column = from + FEW_PAD + col;
    const bool used = p >= there.first && p <= there.last;
    const float max = used ? from[p * pitch] : -INFINITY;
    few_state s = {max, used ? from[p * pitch + 1] : 0, 0};
    UNROLL
    for (int step = FEW_PIECES / 2; step > 0; step /= 2) {
        float y = __shfl_xor_sync(ALL_LANES, s.max, step);
        s.max = y > s.max ? y : s.max;
    }
    const float by = used ? expf(max - s.max) : 0;
    s.total *= by;
    UNROLL
    for (int step = FEW_PIECES / 2; step > 0; step /= 2)
        s.total += __shfl_xor_sync(ALL_LANES, s.total, step);
    UNROLL
    for (int j = 0; j < FEW_PIECES; j++) {
        const float x = column[j * pitch], f = __shfl_sync(ALL_LANES, by, j);
        s.sum = f == 0 ? s.sum : mad(x, f, s.sum); /* what is not there may be no number */
    }
    return s;
}

/* A stretch as it is left for the step that merges. */
static __device__ SHAPE_FN void few_states_put(const few_attend &w, int stretch,
                                               const few_memory &m)
{
    const int v = (int)w.k->cell->v;
    const int each = (int)attend_state_floats(v);
    if (stretch < w.seen >> w.bits || stretch > w.pos >> w.bits)
        return;
    few_stretch_run(w, stretch, m);
    UNROLLED(1)
    for (int i = warp_index(); i < w.heads * v / FEW_COLUMNS; i += warp_count()) {
        const few_state s = few_stretch_take(w, few_pieces_of(w, stretch), i, m);
        const int h = i * FEW_COLUMNS / v, col = i * FEW_COLUMNS % v + lane_index();
        float *to =
            row_out(w.k, 0, w.row) + ((w.first_head + h) * ATTEND_STRETCHES + stretch) * each;
        to[ATTEND_PAD + col] = s.sum;
        if (col == 0) {
            to[0] = s.max;
            to[1] = s.total;
        }
    }
    __syncthreads(); /* pieces have been read */
}

/* A stretch merged into those before, of which each warp has its columns; after the last one the result. */
static __device__ SHAPE_FN void few_stretch_merge(const few_attend &w, int stretch,
                                                  const few_memory &m)
{
    const int v = (int)w.k->cell->v;
    for (int i = warp_index(); i < w.heads * v / FEW_COLUMNS; i += warp_count()) {
        const int head = w.first_head + i * FEW_COLUMNS / v;
        const few_state s = few_stretch_take(w, few_pieces_of(w, stretch), i, m);
        float *all = m.all + i * (FEW_PAD + FEW_COLUMNS), max = all[0], total = all[1];
        float sum = all[FEW_PAD + lane_index()];
        if (stretch == w.seen >> w.bits) {
            state_begin(w.k, head, &max, &total);
            sum = 0;
        }
        const merge_factors f = merge_of(max, total, s.max, s.total);
        sum = merge_sum(f.old_by, f.new_by, sum, s.sum);
        __syncwarp(); /* what was there has been read */
        all[FEW_PAD + lane_index()] = sum;
        if (lane_index() == 0) {
            all[0] = f.max;
            all[1] = f.total;
        }
        if (stretch == w.pos >> w.bits)
            row_out(w.k, 0, w.row)[w.first_head * v + i * FEW_COLUMNS + lane_index()] =
                sum * (1 / f.total);
    }
    __syncthreads(); /* pieces have been read */
}

/* ---- units ---- */

/* The page table of a row; that of one row is its call's only one. */
static __device__ inline const int32_t *few_pages(const kargs *k, int row)
{
    const kbatch *b = k->batch;
    const int table = k->cell->table;
    if (is_one_row(k))
        return b->data + KBATCH_PARTS + b->n_table + KBATCH_RANGE +
               table * (KBATCH_RANGE + b->n_page);
    return kcell_pages(k->cell, 0, b, row);
}

/* Unit i, counted without stretches. */
static __device__ SHAPE_FN few_attend few_unit(const kargs *k, int i)
{
    const cuda_attend_size s = few_attend_size_of(k);
    const kcell *c = k->cell;
    const int parts = (int)s.parts, heads = (int)s.heads, group = (int)s.group;
    const int part = i % parts, left = group - part * heads;
    few_attend w;
    w.k = k;
    w.head = i / parts % (int)c->heads;
    w.row = is_one_row(k) ? 0 : i / parts / (int)c->heads;
    w.first_head = w.head * group + part * heads;
    w.heads = left < heads ? left : heads;
    w.pos = row_pos(k, w.row);
    w.seen = (int)first_seen(k, w.pos);
    w.bits = cuda_stretch_bits(c, w.pos);
    w.pages = few_pages(k, w.row);
    return w;
}

/* Those in use are the first ones, and far from each other in the line of units. */
static __device__ inline int few_stretch(int i)
{
    static_assert(ATTEND_STRETCHES == 16, "four bits, backwards");
    return (i & 1) << 3 | (i & 2) << 1 | (i >> 1 & 2) | (i >> 3 & 1);
}

/* Units of cells of other forms. */
static __device__ ONE_COPY void few_attend_other(const kargs *k, const kthread *t, int64_t begin,
                                                 int64_t end)
{
    attend_work w = {};
    w.k = k;
    w.size = few_attend_size_of(k);
    work_divide(w, t->scratch);
    const bool states = k->choice.attend.part == ATTEND_STATES;
    for (int64_t i = begin; i < end; i++)
        unit_run(w, states ? i / ATTEND_STRETCHES : i,
                 states ? few_stretch((int)(i % ATTEND_STRETCHES)) : 0);
}

/* Do its rows lie so that they can be loaded as they are? */
static __device__ inline bool few_attend_reads(const kcell *c)
{
    return cuda_cell_halves(c) && c->page_tok % WARP == 0 && c->tier[0].page_bytes % 16 == 0;
}

static __device__ ONE_COPY void few_attend_halves(const kargs *k, const kthread *t, int64_t begin,
                                                  int64_t end)
{
    const int v = (int)k->cell->v;
    few_memory m;
    m.table = (float *)t->scratch;
    m.pieces = m.table + FEW_PIECES * FEW_TABLE;
    m.all = m.pieces + FEW_PIECES * FEW_HEADS * (int)few_piece_floats(v);
    UNROLLED(1)
    for (int i = (int)begin; i < (int)end; i++) {
        if (k->choice.attend.part == ATTEND_STATES) {
            few_states_put(few_unit(k, i / ATTEND_STRETCHES), few_stretch(i % ATTEND_STRETCHES), m);
            continue;
        }
        const few_attend w = few_unit(k, i);
        for (int j = w.seen >> w.bits; j <= w.pos >> w.bits; j++) {
            few_stretch_run(w, j, m);
            few_stretch_merge(w, j, m);
        }
    }
}

static __device__ ONE_COPY void k_attend_few_cuda(const kargs *k, const kthread *t, int64_t begin,
                                                  int64_t end)
{
    if (k->choice.attend.part == ATTEND_MERGE)
        states_merge(k, t, begin, end);
    else if (!few_attend_reads(k->cell))
        few_attend_other(k, t, begin, end);
    else
        few_attend_halves(k, t, begin, end);
}

#endif
