/* attend_few_cuda.cuh - softmax attention of a few rows, many of which are of sequences of their own.
 *
 * Positions are cut into stretches (attend_cuda.cuh), each of which is a block's, and a stretch into tiles, which go around among
 * FEW_PIECES warps, so that at any length all warps of a block load at once. A warp has all keys and values of a tile under way
 * together, 16 bytes of each lane at a time, and multiplies them by matrix instructions as they come: in these it does not matter
 * which column of a key, or which column of a value, is which lane's, as long as both operands agree, so that nothing goes through
 * shared memory or between lanes. Logits are queries [16, columns] times keys [columns, 8 positions]: the rows are eight query heads
 * that share a head of the cell, and what their numbers lack as 16 bits. They leave the instruction as weights have to go into the
 * next: values [16 columns, 16 positions] times weights [16 positions, 8 heads].
 *
 * Keys and values are multiplied as they are stored. A query is scaled by a power of two and split, its f32 the sum of two f16 or
 * three bf16, and so is a weight: nothing is rounded by more than f32 sums are. Where a key or a value that is seen is not finite
 * the result is no number.
 *
 * What warps have is merged in shared memory. Where stretches are units (ATTEND_STATES) another step merges those, else the block
 * that walks along all of a unit: with the same bits, which depend on a row's position alone. Cells of other forms are
 * attend_cuda.cuh's. Tiers begin at multiples of 16 bytes. The rows of this call are in the cell already. out overlaps no input. */
#ifndef WEFT_KERNELS_CUDA_ATTEND_FEW_CUDA_CUH
#define WEFT_KERNELS_CUDA_ATTEND_FEW_CUDA_CUH

#include "kernels/cuda/attend_cuda.cuh"
#include "kernels/cuda/attend_few_size.h"
#include "kernels/cuda/attend_flash_cuda.cuh"

/* What is not used before it is set, which not every compiler sees. */
#ifdef __CUDACC__
#define FEW_NONE
#else
#define FEW_NONE = {}
#endif

/* How a warp has a tile of keys and values of WIDTH columns. Lane 4 * g + t has of keys position g of each eight and a part of the
 * columns, of values positions 2 * t, 2 * t + 1, and 8 more, of each sixteen, and columns from 8 * g on. */
template <int WIDTH, bool BF16> struct few_tile {
    enum {
        BLOCKS = WIDTH / 64,             /* of columns */
        POSITIONS = BLOCKS < 2 ? 16 : 8, /* of a tile */
        EIGHTS = POSITIONS / 8,          /* of positions */
        SIXTEENS = (EIGHTS + 1) / 2,     /* of which the second eight may be missing */
        PAIRS = EIGHTS < 2 ? 1 : 2,      /* of positions, in each sixteen, of a lane */
        STEP = POSITIONS * FEW_PIECES,   /* from a tile of a warp to its next */
        PARTS = BF16 ? 3 : 2,            /* of a query or weight */
        CHUNKS = 2 * BLOCKS,             /* of 8 columns of a query, of a lane */
        LOADS = EIGHTS * CHUNKS,         /* of keys, and of values, of a lane */
    };
    static_assert((int)LOADS == (int)SIXTEENS * (int)PAIRS * 2 * (int)BLOCKS, "values of a tile");
};

/* The work of a unit: a row, seen by query heads [first_head, first_head + heads). */
struct few_attend {
    const kargs *k;
    const int32_t *pages;
    int head; /* of the cell */
    int first_head, heads;
    int row, pos;
    int seen; /* the first position that the row sees */
    int len;  /* of a stretch */
};

/* A query head of a lane, split; and by what its logits are multiplied. */
template <int WIDTH, bool BF16> struct few_query {
    uint32_t part[few_tile<WIDTH, BF16>::PARTS][few_tile<WIDTH, BF16>::CHUNKS * 4];
    float by, slope;
};

/* What a lane has of a piece: of query head lane / 4 the largest logit and a part of the sum of weights; of two heads, sums of eight
 * columns of each block, as they leave the instruction. */
template <int WIDTH> struct few_sums {
    float max, total;
    float sum[WIDTH / 64][4][4];
};

/* A block's memory. */
struct few_memory {
    float *pieces; /* [FEW_PIECES][heads][few_piece_floats] */
    float *all;    /* few_all_floats: stretches so far */
};

/* Of f16, weights are multiplied by so much: what they lack then has its bits too. */
template <bool BF16> static __device__ inline float few_up(void)
{
    return BF16 ? 1.0f : 0x1p15f;
}

/* The lower halves of two words, or the upper ones. */
static __device__ inline uint32_t few_halves(uint32_t a, uint32_t b, bool upper)
{
#ifdef __CUDACC__
    return __byte_perm(a, b, upper ? 0x7632 : 0x5410);
#else
    return upper ? a >> 16 | (b & 0xffff0000u) : (a & 0xffffu) | b << 16;
#endif
}

/* A place in a page, in the card's memory: what is loaded from it has addresses that differ by numbers in the instructions. */
static __device__ inline const char *few_place(const char *at)
{
#ifdef __CUDACC__
    size_t global = global_at(at);
    asm("" : "+l"(global));
    at = (const char *)__cvta_global_to_generic(global);
#endif
    return at;
}

/* Is position p one of those from `seen` to before `end`? */
static __device__ inline bool few_sees(int p, int seen, int end)
{
    return (uint32_t)(p - seen) < (uint32_t)(end - seen);
}

/* ---- queries ---- */

/* Eight columns of each chunk of a lane's query head; zeros for one that is not there. Queries at odd places are copied first, to
 * a warp's `room`. */
template <int WIDTH, bool BF16>
static __device__ SHAPE_FN void few_query_load(const few_attend &w, float *room, bytes16 (*x)[2])
{
    typedef few_tile<WIDTH, BF16> tile;
    const float *all = row_in(w.k, 0, w.row) + w.first_head * WIDTH;
    const int head = lane_index() / 4;
    const bool odd = !at_16(all);
    if (odd) {
        UNROLLED(1)
        for (int i = lane_index(); i < w.heads * WIDTH; i += WARP)
            room[i] = all[i];
        __syncwarp();
        all = room;
    }
    all += head * WIDTH + lane_index() % 4 * 8;
    UNROLL
    for (int c = 0; c < tile::CHUNKS; c++) {
        x[c][0] = x[c][1] = bytes16{};
        if (head < w.heads) {
            x[c][0] = *(const bytes16 *)(all + c * 32);
            x[c][1] = *(const bytes16 *)(all + c * 32 + 4);
        }
    }
    if (odd)
        __syncwarp(); /* the room may be written again */
}

template <int WIDTH, bool BF16>
static __device__ SHAPE_FN void few_query_split(const few_attend &w, const bytes16 (*x)[2],
                                                few_query<WIDTH, BF16> &q)
{
    typedef few_tile<WIDTH, BF16> tile;
    const float *slopes = (const float *)w.k->in[3]; /* [H] or NULL */
    const int head = lane_index() / 4;
    float most = 0, inverse;
    UNROLL
    for (int i = 0; i < tile::CHUNKS * 8; i++)
        most = fmaxf(most, fabsf(float_of(x[i / 8][i / 4 % 2].w[i % 4])));
    UNROLL
    for (int step = 1; step < 4; step *= 2)
        most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, step));
    const float up = power_for(most, &inverse);
    UNROLL
    for (int i = 0; i < tile::CHUNKS * 4; i++) {
        float low = float_of(x[i / 4][i / 2 % 2].w[i % 2 * 2]) * up;
        float high = float_of(x[i / 4][i / 2 % 2].w[i % 2 * 2 + 1]) * up;
        UNROLL
        for (int p = 0; p < tile::PARTS; p++)
            q.part[p][i] = take_part<tile::PARTS>(low, high);
    }
    q.by = inverse * (float)w.k->scalar.attend.scale;
    q.slope = slopes && head < w.heads ? slopes[w.first_head + head] : 0;
}

/* ---- a warp's walk ---- */

/* Where the head's keys of a page are, from position `at` on. */
static __device__ SHAPE_FN const char *few_keys_at(const few_attend &w, int page, int at)
{
    const kcell *c = w.k->cell;
    const int page_tok = (int)c->page_tok, row = (int)c->k * 2;
    return c->tier[0].base + page * c->tier[0].page_bytes +
           (w.head * page_tok + (int)((uint32_t)at % (uint32_t)page_tok)) * row;
}

static __device__ SHAPE_FN int few_page(const few_attend &w, int at)
{
    return w.pages[(uint32_t)at / (uint32_t)w.k->cell->page_tok];
}

/* Keys of a tile, which lies in one page. Those that the row does not see may be anything. */
template <int WIDTH, bool BF16>
static __device__ SHAPE_FN void few_keys(const char *from, bytes16 *to)
{
    typedef few_tile<WIDTH, BF16> tile;
    from = few_place(from + lane_index() / 4 * (WIDTH * 2) + lane_index() % 4 * 16);
    UNROLL
    for (int i = 0; i < tile::LOADS; i++)
        to[i] =
            *(const bytes16 *)(from + i / tile::CHUNKS * (8 * WIDTH * 2) + i % tile::CHUNKS * 64);
}

/* Values of a tile at `at`; zeros where the row sees nothing. */
template <int WIDTH, bool BF16>
static __device__ SHAPE_FN void few_values(const few_attend &w, const char *keys, int at, int end,
                                           bytes16 *to)
{
    typedef few_tile<WIDTH, BF16> tile;
    const kcell *c = w.k->cell;
    const int first = lane_index() % 4 * 2;
    const char *from =
        few_place(keys + (c->heads * c->page_tok + first) * (WIDTH * 2) + lane_index() / 4 * 16);
    UNROLL
    for (int i = 0; i < tile::LOADS; i++) {
        const int n = i / tile::BLOCKS, p = n / 2 * 8 + n % 2;
        to[i] = bytes16{};
        if (few_sees(at + first + p, w.seen, end))
            to[i] = *(const bytes16 *)(from + p * (WIDTH * 2) + i % tile::BLOCKS * 128);
    }
}

/* Of the lane's query head: logits of two positions of each eight. */
template <int WIDTH, bool BF16>
static __device__ SHAPE_FN void few_logits(const few_query<WIDTH, BF16> &q, const bytes16 *key,
                                           float *s)
{
    typedef few_tile<WIDTH, BF16> tile;
    float c[tile::EIGHTS][4] = {};
    UNROLL
    for (int i = 0; i < tile::CHUNKS * 2; i++) {
        const uint32_t a[4] = {q.part[0][2 * i], q.part[1][2 * i], q.part[0][2 * i + 1],
                               q.part[1][2 * i + 1]};
        const uint32_t rest[4] = {q.part[tile::PARTS - 1][2 * i], 0,
                                  q.part[tile::PARTS - 1][2 * i + 1], 0};
        UNROLL
        for (int j = 0; j < tile::EIGHTS; j++)
            flash_multiply<tile::PARTS>(c[j], a, key[j * tile::CHUNKS + i / 2].w + i % 2 * 2);
        UNROLL
        for (int j = 0; j < tile::EIGHTS && BF16; j++)
            flash_multiply<tile::PARTS>(c[j], rest, key[j * tile::CHUNKS + i / 2].w + i % 2 * 2);
    }
    UNROLL
    for (int j = 0; j < tile::EIGHTS; j++) {
        s[2 * j] = c[j][0] + c[j][2];
        s[2 * j + 1] = c[j][1] + c[j][3];
    }
}

/* Logits of the tile at `at`, all of which is seen if it is `whole`, become weights; sums so far, unless this is the `first`, are
 * made relative to them. */
template <int WIDTH, bool BF16>
static __device__ SHAPE_FN void few_weigh(const few_attend &w, const few_query<WIDTH, BF16> &q,
                                          bool first, bool whole, int at, int end, float *s,
                                          few_sums<WIDTH> &a)
{
    typedef few_tile<WIDTH, BF16> tile;
    const float softcap = (float)w.k->scalar.attend.softcap;
    float most = a.max;
    at += lane_index() % 4 * 2;
    UNROLL
    for (int i = 0; i < tile::EIGHTS * 2; i++) {
        const int p = at + i / 2 * 8 + i % 2;
        s[i] *= q.by;
        if (softcap != 0)
            s[i] = softcap * tanhf(s[i] / softcap);
        if (w.k->in[3])
            s[i] += q.slope * (float)(p - w.pos);
    }
    if (!whole) {
        UNROLL
        for (int i = 0; i < tile::EIGHTS * 2; i++)
            s[i] = few_sees(at + i / 2 * 8 + i % 2, w.seen, end) ? s[i] : -INFINITY;
    }
    UNROLL
    for (int i = 0; i < tile::EIGHTS * 2; i++)
        most = fmaxf(most, s[i]);
    UNROLL
    for (int step = 1; step < 4; step *= 2)
        most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, step));
    const float keep = state_exp(a.max - most);
    a.total *= keep;
    a.max = most;
    UNROLL
    for (int i = 0; i < tile::EIGHTS * 2; i++) {
        s[i] = state_exp(s[i] - most);
        a.total += s[i];
    }
    if (first || !__any_sync(ALL_LANES, keep != 1))
        return;
    const float even = __shfl_sync(ALL_LANES, keep, lane_index() % 4 * 8);
    const float odd = __shfl_sync(ALL_LANES, keep, lane_index() % 4 * 8 + 4);
    UNROLL
    for (int i = 0; i < tile::BLOCKS * 16; i++)
        a.sum[i / 16][i / 4 % 4][i % 4] *= i % 2 ? odd : even;
}

/* Weights as they are multiplied, [parts][SIXTEENS * 2]: of an eight that is missing none. */
template <int WIDTH, bool BF16> struct few_weights {
    uint32_t part[few_tile<WIDTH, BF16>::PARTS][few_tile<WIDTH, BF16>::SIXTEENS * 2];
};

template <int WIDTH, bool BF16>
static __device__ SHAPE_FN few_weights<WIDTH, BF16> few_weights_of(const float *s)
{
    typedef few_tile<WIDTH, BF16> tile;
    few_weights<WIDTH, BF16> weight = {};
    UNROLL
    for (int j = 0; j < tile::EIGHTS; j++) {
        float low = s[2 * j] * few_up<BF16>(), high = s[2 * j + 1] * few_up<BF16>();
        UNROLL
        for (int p = 0; p < tile::PARTS; p++)
            weight.part[p][j] = take_part<tile::PARTS>(low, high);
    }
    return weight;
}

/* Values times weights are added to the sums. */
template <int WIDTH, bool BF16>
static __device__ SHAPE_FN void few_add(const bytes16 *value, const float *s, few_sums<WIDTH> &a)
{
    typedef few_tile<WIDTH, BF16> tile;
    const few_weights<WIDTH, BF16> weight = few_weights_of<WIDTH, BF16>(s);
    UNROLL
    for (int i = 0; i < tile::SIXTEENS * tile::BLOCKS; i++) {
        const int n = i / tile::BLOCKS, block = i % tile::BLOCKS;
        uint32_t turned[4][4] = {}; /* of two columns each */
        UNROLL
        for (int e = 0; e < 4 * tile::PAIRS; e++) {
            const int pair = n * tile::PAIRS + e / 4;
            const bytes16 &one = value[2 * pair * tile::BLOCKS + block];
            const bytes16 &two = value[(2 * pair + 1) * tile::BLOCKS + block];
            turned[e % 4][e / 4 * 2] = few_halves(one.w[e % 4], two.w[e % 4], false);
            turned[e % 4][e / 4 * 2 + 1] = few_halves(one.w[e % 4], two.w[e % 4], true);
        }
        UNROLL
        for (int e = 0; e < 4 * tile::PARTS; e++)
            flash_multiply<tile::PARTS>(a.sum[block][e % 4], turned[e % 4],
                                        weight.part[e / 4] + 2 * n);
    }
}

/* What a warp has of a piece, at `to` [heads][few_piece_floats]: largest logits and sums of weights, */
template <int WIDTH>
static __device__ SHAPE_FN void few_totals_put(const few_attend &w, const few_sums<WIDTH> &a,
                                               float *to)
{
    const int pitch = (int)few_piece_floats(WIDTH), g = lane_index() / 4;
    float total = a.total;
    UNROLL
    for (int step = 1; step < 4; step *= 2)
        total += __shfl_xor_sync(ALL_LANES, total, step);
    if (lane_index() % 4 == 0 && g < w.heads) {
        to[g * pitch] = a.max;
        to[g * pitch + 1] = total;
    }
}

/* and all of it. */
template <int WIDTH, bool BF16>
static __device__ SHAPE_FN void few_piece_put(const few_attend &w, const few_sums<WIDTH> &a,
                                              float *to)
{
    typedef few_tile<WIDTH, BF16> tile;
    const int pitch = (int)few_piece_floats(WIDTH), g = lane_index() / 4, t = lane_index() % 4;
    few_totals_put(w, a, to);
    to += 2 * t * pitch + FEW_PAD + g * 8;
    UNROLL
    for (int h = 0; h < 2; h++)
        if (2 * t + h < w.heads) {
            UNROLL
            for (int i = 0; i < tile::BLOCKS * 2; i++) {
                bytes16 four;
                UNROLL
                for (int e = 0; e < 4; e++)
                    four.w[e] = bits_of(a.sum[i / 2][i % 2 * 2 + e / 2][e % 2 * 2 + h] *
                                        (1 / few_up<BF16>()));
                *(bytes16 *)(to + h * pitch + i / 2 * 64 + i % 2 * 4) = four;
            }
        }
}

/* Tiles of a piece by a warp: those from `first` on, before `end`. Keys and values of the next one are under way while one is
 * computed: the first round has none yet. */
template <int WIDTH, bool BF16>
static __device__ SHAPE_FN void few_piece_walk(const few_attend &w, int first, int end, float *to)
{
    typedef few_tile<WIDTH, BF16> tile;
    bytes16 x[tile::CHUNKS][2] FEW_NONE;
    few_query<WIDTH, BF16> q FEW_NONE;
    few_sums<WIDTH> a = {};
    bytes16 key[tile::LOADS] FEW_NONE, value[tile::LOADS] FEW_NONE;
    float s[tile::EIGHTS * 2] FEW_NONE;
    a.max = -INFINITY;
    int page = 0;
    if (first < end) {
        page = few_page(w, first);
        few_query_load<WIDTH, BF16>(w, to, x);
    }
    UNROLLED(1)
    for (int next = first; next - tile::STEP < end; next += tile::STEP) {
        const int at = next - tile::STEP;
        const char *from = few_keys_at(w, page, next);
        if (next + tile::STEP < end)
            page = few_page(w, next + tile::STEP);
        if (at >= first)
            few_logits<WIDTH, BF16>(q, key, s);
        if (next < end)
            few_keys<WIDTH, BF16>(from, key);
        if (at >= first) {
            few_weigh<WIDTH, BF16>(w, q, at == first, false, at, end, s, a);
            few_add<WIDTH, BF16>(value, s, a);
        }
        if (next < end)
            few_values<WIDTH, BF16>(w, from, next, end, value);
        if (at < first) /* while the first ones are under way */
            few_query_split<WIDTH, BF16>(w, x, q);
    }
    few_piece_put<WIDTH, BF16>(w, a, to);
}

/* ---- stretches ---- */

/* Has the row something in the stretch? */
static __device__ inline bool few_stretch_is(const few_attend &w, int stretch)
{
    return stretch * w.len <= w.pos && (stretch + 1) * w.len > w.seen;
}

/* Where it ends for the row. */
static __device__ inline int few_stretch_end(const few_attend &w, int stretch)
{
    const int stop = (stretch + 1) * w.len;
    return stop <= w.pos ? stop : w.pos + 1;
}

/* The first tile of a piece of which the row sees something, if there is one before that. */
template <int WIDTH, bool BF16>
static __device__ SHAPE_FN int few_piece_first(const few_attend &w, int stretch, int piece)
{
    typedef few_tile<WIDTH, BF16> tile;
    const int first = stretch * w.len + piece * tile::POSITIONS;
    const int before = w.seen - first - tile::POSITIONS + tile::STEP; /* of what is not seen */
    return before >= tile::STEP ? first + before / tile::STEP * tile::STEP : first;
}

/* All pieces of it, those that have nothing too. */
template <int WIDTH, bool BF16>
static __device__ SHAPE_FN void few_stretch_run(const few_attend &w, int stretch,
                                                const few_memory &m)
{
    UNROLLED(1)
    for (int p = warp_index(); p < FEW_PIECES; p += warp_count())
        few_piece_walk<WIDTH, BF16>(w, few_piece_first<WIDTH, BF16>(w, stretch, p),
                                    few_stretch_end(w, stretch),
                                    m.pieces + p * w.heads * (int)few_piece_floats(WIDTH));
    block_sync();
}

/* What a stretch has of a lane's column. */
struct few_state {
    float max, total, sum;
};

/* Columns [i * FEW_COLUMNS, ..) of those of all query heads, by a warp: all of them are one head's. */
static __device__ SHAPE_FN few_state few_stretch_take(const few_attend &w, int i,
                                                      const few_memory &m)
{
    const int v = (int)w.k->cell->v, pitch = w.heads * (int)few_piece_floats(v);
    const int h = i * FEW_COLUMNS / v, col = i * FEW_COLUMNS % v + lane_index();
    const float *from = m.pieces + h * (int)few_piece_floats(v), *column = from + FEW_PAD + col;
    const float max = from[lane_index() % FEW_PIECES * pitch];
    few_state s = {max, from[lane_index() % FEW_PIECES * pitch + 1], 0};
    float x[FEW_PIECES];
    UNROLL
    for (int j = 0; j < FEW_PIECES; j++)
        x[j] = column[j * pitch];
    UNROLL
    for (int step = FEW_PIECES / 2; step > 0; step /= 2)
        s.max = fmaxf(s.max, __shfl_xor_sync(ALL_LANES, s.max, step));
    const float by = state_exp(max - s.max);
    s.total *= by;
    UNROLL
    for (int step = FEW_PIECES / 2; step > 0; step /= 2)
        s.total += __shfl_xor_sync(ALL_LANES, s.total, step);
    UNROLL
    for (int j = 0; j < FEW_PIECES; j++)
        s.sum = mad(x[j], __shfl_sync(ALL_LANES, by, j), s.sum);
    return s;
}

/* A stretch as it is left for the step that merges. */
static __device__ SHAPE_FN void few_state_put(const few_attend &w, int stretch, int i,
                                              const few_state &s)
{
    const int v = (int)w.k->cell->v, h = i * FEW_COLUMNS / v;
    const int col = i * FEW_COLUMNS % v + lane_index();
    float *to = row_out(w.k, 0, w.row) +
                ((w.first_head + h) * ATTEND_STRETCHES + stretch) * (int)attend_state_floats(v);
    to[ATTEND_PAD + col] = s.sum;
    if (col == 0) {
        to[0] = s.max;
        to[1] = s.total;
    }
}

/* A stretch merged into those before, unless it is the `first`; after the last one the result. */
static __device__ SHAPE_FN void few_state_merge(const few_attend &w, bool first, bool last, int i,
                                                const few_state &s, const few_memory &m)
{
    const int v = (int)w.k->cell->v;
    float *all = m.all + i * (FEW_PAD + FEW_COLUMNS), max, total, sum = 0;
    merge_factors f = {0, 1, s.max, s.total};
    if (first) {
        state_begin(w.k, w.first_head + i * FEW_COLUMNS / v, &max, &total);
    } else {
        max = all[0];
        total = all[1];
        sum = all[FEW_PAD + lane_index()];
    }
    if (first && total == 0) { /* as the rest would have it */
        sum = s.sum + 0.0f;    /* no -0 */
    } else {
        f = merge_of(max, total, s.max, s.total);
        sum = merge_sum(f.old_by, f.new_by, sum, s.sum);
    }
    if (last) {
        row_out(w.k, 0, w.row)[w.first_head * v + i * FEW_COLUMNS + lane_index()] =
            sum * (1 / f.total);
        return;
    }
    __syncwarp(); /* what was there has been read */
    all[FEW_PAD + lane_index()] = sum;
    if (lane_index() == 0) {
        all[0] = f.max;
        all[1] = f.total;
    }
}

/* ---- units ---- */

/* Unit i, counted without stretches. What it loads from the batch does not wait for each other. */
static __device__ SHAPE_FN few_attend few_unit(const kargs *k, int i)
{
    const cuda_attend_size s = few_attend_size_of(k);
    const kbatch *b = k->batch;
    const kcell *c = k->cell;
    const int64_t rows = k->size.attend.rows, n_seq = is_one_row(k) ? 1 : b->n_seq;
    const int parts = (int)s.parts, heads = (int)s.heads, group = (int)s.group;
    const int part = i % parts, left = group - part * heads;
    few_attend w;
    w.k = k;
    w.head = i / parts % (int)c->heads;
    w.row = is_one_row(k) ? 0 : i / parts / (int)c->heads;
    w.first_head = w.head * group + part * heads;
    w.heads = left < heads ? left : heads;
    const int64_t seq = is_one_row(k) ? 0 : b->data[KBATCH_SEQ * rows + w.row];
    w.pos = row_pos(k, w.row);
    w.pages = b->data + KBATCH_PARTS * rows + b->n_table +
              (c->table * n_seq + seq) * (KBATCH_RANGE + b->n_page) + KBATCH_RANGE;
    w.seen = (int)first_seen(k, w.pos);
    w.len = cuda_stretch_len(c, w.pos);
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

/* A row's stretches, [begin, end) of them, by their numbers in the line of units or all in order. */
template <int WIDTH, bool BF16>
static __device__ SHAPE_FN void few_unit_run(const few_attend &w, int begin, int end,
                                             const few_memory &m)
{
    const bool states = w.k->choice.attend.part == ATTEND_STATES;
    bool first = true;
    UNROLLED(1)
    for (int i = begin; i < end && (states || i * w.len <= w.pos); i++) {
        const int stretch = states ? few_stretch(i) : i;
        if (!few_stretch_is(w, stretch))
            continue;
        few_stretch_run<WIDTH, BF16>(w, stretch, m);
        UNROLLED(1)
        for (int j = warp_index(); j < w.heads * WIDTH / FEW_COLUMNS; j += warp_count()) {
            const few_state s = few_stretch_take(w, j, m);
            if (states)
                few_state_put(w, stretch, j, s);
            else
                few_state_merge(w, first, (stretch + 1) * w.len > w.pos, j, s, m);
        }
        first = false;
        block_sync(); /* pieces have been read */
    }
}

template <int WIDTH, bool BF16>
static __device__ ONE_COPY void few_attend_halves(const kargs *k, const kthread *t, int64_t begin,
                                                  int64_t end)
{
    const int each = k->choice.attend.part == ATTEND_STATES ? (int)ATTEND_STRETCHES : 1;
    const int floats = (int)(few_attend_size_of(k).heads * few_piece_floats(WIDTH));
    few_memory m;
    m.pieces = (float *)t->scratch;
    m.all = m.pieces + FEW_PIECES * floats;
    UNROLLED(1)
    for (int i = (int)begin, next; i < (int)end; i = next) {
        const int unit = i / each, from = i - unit * each;
        const few_attend w = few_unit(k, unit);
        next = (unit + 1) * each < (int)end ? (unit + 1) * each : (int)end;
        few_unit_run<WIDTH, BF16>(w, each > 1 ? from : 0,
                                  each > 1 ? next - unit * each : (int)ATTEND_STRETCHES, m);
    }
}

#endif
