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

#include "kernels/cuda/attend_few_codes_cuda.cuh"

/* A block's memory. */
struct few_memory {
    float *pieces; /* [FEW_PIECES][heads][few_piece_floats] */
    float *all;    /* few_all_floats: stretches so far */
    /* of cells with codes: */
    float *scales;  /* [FEW_PIECES][columns]: steps and middles of keys */
    float *queries; /* [heads][few_piece_floats] */
};

/* ---- a warp's walk ---- */

/* What a warp has of a piece, at `to` [heads][few_piece_floats]: largest logits and sums of weights, */
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void few_totals_put(const few_attend &w, const few_sums<WIDTH> &a,
                                               float *to)
{
    const bool four = FORM == FEW_FOUR;
    const int pitch = (int)few_piece_floats(WIDTH), each = four ? WARP / 4 : 4;
    const int head = four ? lane_index() % 4 : lane_index() / 4;
    float total = a.total;
    UNROLL
    for (int step = 1; step < each; step *= 2)
        total += __shfl_xor_sync(ALL_LANES, total, four ? step * 4 : step);
    if ((four ? lane_index() < 4 : lane_index() % 4 == 0) && head < w.heads) {
        to[head * pitch] = four ? a.max * LN_2 : a.max;
        to[head * pitch + 1] = total;
    }
}

/* The sum of a column that a lane has, of the two of its instruction: of the first or the second of its heads, or, of four, of
 * both parts. */
template <few_form FORM> static __device__ inline float few_column(const float *two, int h)
{
    return (FORM == FEW_FOUR ? two[0] + two[1] : two[h]) * (1 / few_up<FORM>());
}

/* and all of it. */
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void few_piece_put(const few_attend &w, const few_sums<WIDTH> &a,
                                              float *to)
{
    typedef few_tile<WIDTH, FORM> tile;
    const int pitch = (int)few_piece_floats(WIDTH), g = lane_index() / 4, t = lane_index() % 4;
    few_totals_put<WIDTH, FORM>(w, a, to);
    enum { HEADS = tile::FOUR ? 1 : 2 }; /* of a lane */
    to += HEADS * t * pitch + FEW_PAD + g * 8;
    UNROLL
    for (int h = 0; h < HEADS; h++)
        if (HEADS * t + h < w.heads) {
            UNROLL
            for (int i = 0; i < tile::BLOCKS * 2; i++) {
                bytes16 four;
                UNROLL
                for (int e = 0; e < 4; e++)
                    four.w[e] =
                        bits_of(few_column<FORM>(a.sum[i / 2][i % 2 * 2 + e / 2] + e % 2 * 2, h));
                *(bytes16 *)(to + h * pitch + i / 2 * 64 + i % 2 * 4) = four;
            }
        }
}

/* Tiles of a piece by a warp: those from `first` on, before `end`. Keys and values of the next one are under way while one is
 * computed, and the first ones while the query is split. */
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void few_piece_walk(const few_attend &w, int first, int end, float *to)
{
    typedef few_tile<WIDTH, FORM> tile;
    few_query<WIDTH, FORM> q FEW_NONE;
    few_sums<WIDTH> a = {};
    bytes16 key[tile::LOADS] FEW_NONE, value[tile::LOADS] FEW_NONE;
    a.max = -INFINITY;
    const char *from = NULL; /* the next tile */
    int page = 0;            /* of the one after that */
    if (first < end) {
        bytes16 x[tile::CHUNKS][2];
        page = few_page(w, first);
        few_query_load<WIDTH, FORM>(w, to, x);
        from = few_keys_at(w, page, first);
        few_keys<WIDTH, FORM>(w, from, key);
        few_values<WIDTH, FORM>(w, from, value);
        if (first + tile::STEP < end)
            from = few_keys_at(w, few_page(w, first + tile::STEP), first + tile::STEP);
        if (first + 2 * tile::STEP < end)
            page = few_page(w, first + 2 * tile::STEP);
        few_query_split<WIDTH, FORM>(w, x, q);
    }
    UNROLLED(1)
    for (int at = first; at < end; at += tile::STEP) {
        const int next = at + tile::STEP;
        const bool whole = few_is_whole<WIDTH, FORM>(w, at, end);
        float s[tile::LOGITS];
        few_logits<WIDTH, FORM>(q, key, s);
        if (next < end)
            few_keys<WIDTH, FORM>(w, from, key);
        few_weigh<WIDTH, FORM>(w, q, at == first, whole, at, end, s, a);
        if (!whole)
            few_values_hide<WIDTH, FORM>(w, at, end, value);
        few_add<WIDTH, FORM>(value, s, a);
        if (next < end)
            few_values<WIDTH, FORM>(w, from, value);
        if (next + tile::STEP < end)
            from = few_keys_at(w, page, next + tile::STEP);
        if (next + 2 * tile::STEP < end)
            page = few_page(w, next + 2 * tile::STEP);
    }
    few_piece_put<WIDTH, FORM>(w, a, to);
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
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN int few_piece_first(const few_attend &w, int stretch, int piece)
{
    typedef few_tile<WIDTH, FORM> tile;
    const int first = stretch * w.len + piece * tile::POSITIONS;
    const int before = w.seen - first - tile::POSITIONS + tile::STEP; /* of what is not seen */
    return before >= tile::STEP ? first + before / tile::STEP * tile::STEP : first;
}

/* Positions of a piece that follow on each other, of pages of codes: all of a block, where stretches are so long that each
 * warp has one. A query is scaled for each. */
static __device__ inline int few_codes_run(const few_attend &w)
{
    const bool block = w.k->cell->page_tok % PAGE_BLOCK == 0 && w.len >= FEW_PIECES * PAGE_BLOCK;
    return block ? (int)PAGE_BLOCK : (int)FEW_CODES_TILE;
}

/* few_piece_walk of such pages, with queries from the block's room. Steps and middles of keys are under way while the tile before
 * is computed, codes of keys while the query is scaled, and those of values while logits become weights. */
template <int WIDTH>
static __device__ SHAPE_FN void few_codes_walk(const few_attend &w, int stretch, int piece,
                                               const few_memory &m, float *to)
{
    typedef few_tile<WIDTH, FEW_CODES> tile;
    const int run = few_codes_run(w), step = run * FEW_PIECES, end = few_stretch_end(w, stretch);
    const int begin = stretch * w.len + piece * run;
    const int before = w.seen - begin - run + step; /* of what is not seen */
    int at = before >= step ? begin + before / step * step : begin;
    if (at + FEW_CODES_TILE <= w.seen) /* the second half of a run */
        at += FEW_CODES_TILE;
    const int first = at;
    few_query<WIDTH, FEW_CODES> q = {}; /* as few_weigh needs it */
    few_scaled x = {};
    few_sums<WIDTH> a = {};
    few_spot spot = {};
    few_tiers tiers = {};
    few_scale<WIDTH> scale = {};
    float *scales = m.scales + piece * WIDTH;
    a.max = -INFINITY;
    if (at < end) {
        const float *slopes = (const float *)w.k->in[3]; /* [H] or NULL */
        const int head = lane_index() / 4;
        tiers = few_tiers_of(w);
        spot = few_spot_of<WIDTH>(w, tiers, at);
        few_scale_load<WIDTH>(spot, scale);
        q.by = (float)w.k->scalar.attend.scale;
        q.slope = slopes && head < w.heads ? slopes[w.first_head + head] : 0;
    }
    UNROLLED(1)
    while (at < end) {
        const bool whole = few_is_whole<WIDTH, FEW_CODES>(w, at, end);
        const few_spot here = spot;
        int next = at + FEW_CODES_TILE;
        bytes16 key[few_codes<WIDTH>::QUADS] = {}, value[few_codes<WIDTH>::VALUES] = {};
        bytes16 steps[tile::BLOCKS];
        float s[tile::LOGITS] = {};
        next += (next & (run - 1)) == 0 ? step - run : 0;
        if (here.codes)
            few_code_keys<WIDTH>(w, here, tiers.key_nibbles, at, key);
        if (next < end)
            spot = few_spot_of<WIDTH>(w, tiers, next);
        if (at == first || (at & (run - 1)) == 0) {
            few_scale_put<WIDTH>(scale, scales);
            x = few_query_scale<WIDTH>(w, m.queries, scales, to);
        }
        if (here.codes) {
            few_code_logits<WIDTH>(w, x, to, tiers.key_nibbles, key, s);
            few_code_values<WIDTH>(w, here, tiers.value_nibbles, at, value, steps);
        } else {
            UNROLL
            for (int i = 0; i < tile::BLOCKS; i++)
                steps[i] = bytes16{{0x3c003c00u, 0x3c003c00u, 0x3c003c00u, 0x3c003c00u}};
            few_half_logits<WIDTH>(w, x, to, here, s);
        }
        if (next < end && (next & (run - 1)) == 0)
            few_scale_load<WIDTH>(spot, scale);
        few_weigh<WIDTH, FEW_CODES>(w, q, at == first, whole, at, end, s, a);
        if (!whole)
            few_steps_hide<WIDTH>(w, at, end, steps);
        if (here.codes)
            few_codes_add<WIDTH>(value, tiers.value_nibbles, steps, s, a);
        else
            few_halves_add<WIDTH>(w, here, whole, at, end, steps, s, a);
        at = next;
    }
    __syncwarp(); /* all have the query */
    few_piece_put<WIDTH, FEW_CODES>(w, a, to);
}

/* All pieces of it, those that have nothing too. */
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void few_stretch_run(const few_attend &w, int stretch,
                                                const few_memory &m)
{
    if constexpr (FORM == FEW_CODES)
        few_query_keep<WIDTH>(w, m.queries);
    UNROLLED(1)
    for (int p = warp_index(); p < FEW_PIECES; p += warp_count()) {
        float *to = m.pieces + p * w.heads * (int)few_piece_floats(WIDTH);
        if constexpr (FORM == FEW_CODES)
            few_codes_walk<WIDTH>(w, stretch, p, m, to);
        else
            few_piece_walk<WIDTH, FORM>(w, few_piece_first<WIDTH, FORM>(w, stretch, p),
                                        few_stretch_end(w, stretch), to);
    }
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
    const int width = (int)few_width(w.k->cell), pitch = w.heads * (int)few_piece_floats(width);
    const int h = i * FEW_COLUMNS / width, col = i * FEW_COLUMNS % width + lane_index();
    const float *from = m.pieces + h * (int)few_piece_floats(width), *column = from + FEW_PAD + col;
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
    const int v = (int)w.k->cell->v, width = (int)few_width(w.k->cell), h = i * FEW_COLUMNS / width;
    const int col = i * FEW_COLUMNS % width + lane_index();
    float *to = row_out(w.k, 0, w.row) +
                ((w.first_head + h) * ATTEND_STRETCHES + stretch) * (int)attend_state_floats(v);
    if (col < v)
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
    const int v = (int)w.k->cell->v, width = (int)few_width(w.k->cell);
    const int h = w.first_head + i * FEW_COLUMNS / width;
    const int col = i * FEW_COLUMNS % width + lane_index();
    float *all = m.all + i * (FEW_PAD + FEW_COLUMNS), max, total, sum = 0;
    merge_factors f = {0, 1, s.max, s.total};
    if (first) {
        state_begin(w.k, h, &max, &total);
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
        if (col < v)
            row_out(w.k, 0, w.row)[h * v + col] = sum * (1 / f.total);
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

/* The stretches that a block has, in its order: those of a unit, then the next unit's. */
struct few_line {
    few_attend w;
    int next, end;  /* units, or their stretches: from where on the next unit is opened */
    int at, at_end; /* of this one, by their numbers in the line of units or all in order */
    int stretch;    /* at hand; */
    bool first;     /* it is the unit's first one */
};

static __device__ inline few_line few_line_of(const kargs *k, int64_t begin, int64_t end)
{
    few_line l = {};
    l.w.k = k; /* what does not change the compiler may know */
    l.w.heads = (int)few_attend_size_of(k).heads;
    l.next = (int)begin;
    l.end = (int)end;
    return l;
}

/* The next stretch in which its row has something; false: there is none. */
static __device__ SHAPE_FN bool few_line_next(const kargs *k, few_line &l)
{
    const bool states = k->choice.attend.part == ATTEND_STATES;
    l.first = false;
    UNROLLED(1)
    for (;; l.at++) {
        if (l.at < l.at_end) {
            l.stretch = states ? few_stretch(l.at) : l.at;
            if (!few_stretch_is(l.w, l.stretch))
                continue;
            l.at++;
            return true;
        }
        if (l.next >= l.end)
            return false;
        const int each = states ? (int)ATTEND_STRETCHES : 1, unit = l.next / each;
        const int stop = (unit + 1) * each < l.end ? (unit + 1) * each : l.end;
        l.w = few_unit(k, unit);
        l.at = (states ? l.next - unit * each : l.w.seen / l.w.len) - 1;
        l.at_end = states ? stop - unit * each : l.w.pos / l.w.len + 1;
        l.next = stop;
        l.first = true;
    }
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
template <int WIDTH, few_form FORM>
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
        few_stretch_run<WIDTH, FORM>(w, stretch, m);
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

template <int WIDTH, few_form FORM>
static __device__ ONE_COPY void few_attend_halves(const kargs *k, const kthread *t, int64_t begin,
                                                  int64_t end)
{
    const int each = k->choice.attend.part == ATTEND_STATES ? (int)ATTEND_STRETCHES : 1;
    const int floats = (int)(few_attend_size_of(k).heads * few_piece_floats(WIDTH));
    few_memory m;
    m.pieces = (float *)t->scratch;
    m.all = m.pieces + FEW_PIECES * floats;
    m.scales = m.all + few_all_floats(few_attend_size_of(k).heads, WIDTH);
    m.queries = m.scales + FEW_PIECES * WIDTH;
    UNROLLED(1)
    for (int i = (int)begin, next; i < (int)end; i = next) {
        const int unit = i / each, from = i - unit * each;
        const few_attend w = few_unit(k, unit);
        next = (unit + 1) * each < (int)end ? (unit + 1) * each : (int)end;
        few_unit_run<WIDTH, FORM>(w, each > 1 ? from : 0,
                                  each > 1 ? next - unit * each : (int)ATTEND_STRETCHES, m);
    }
}

#endif
