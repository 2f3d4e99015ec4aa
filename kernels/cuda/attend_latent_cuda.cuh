/* attend_latent_cuda.cuh - softmax attention over latent rows, of which one serves all query heads as key and, its first columns, as
 * value.
 *
 * A unit is a row's query heads, up to LATENT_HEADS of them, so that a latent row is read once for all. A block walks along a stretch in
 * tiles of positions, which are copied to shared memory, some ahead of the one at hand, across stretches and units. Its warps share out the
 * columns, by sixteens: of these each has the queries in registers and multiplies them with the keys; what it has of a logit is
 * summed up in shared memory; the warp of a head makes weights of them (online softmax); and with these each warp multiplies the
 * values of its columns, whose sums it has in registers too. As matrices: queries [8 heads, two parts of each; 16 columns] times keys
 * [16 columns, 8 positions], then values [16 columns, 16 positions] times weights [16 positions, 8 heads].
 *
 * Rows are multiplied as they are stored. What a warp has of a query is scaled by a power of two and split, its f32 the sum of two f16 or
 * three bf16, and so is a weight: nothing is rounded by more than f32 sums are. What a row does not see is zeros; where one that it
 * sees is not finite the result is no number.
 *
 * Stretches are merged as attend_few_cuda.cuh says; where a block has all of a unit's, their sums wait where the result will be. Bits
 * depend on a row's position alone: each head's numbers are added in an order of their own. */
#ifndef WEFT_KERNELS_CUDA_ATTEND_LATENT_CUDA_CUH
#define WEFT_KERNELS_CUDA_ATTEND_LATENT_CUDA_CUH

#include "kernels/cuda/attend_few_cuda.cuh"
#include "kernels/cuda/few_job_cuda.cuh"

/* Parts of the columns that a warp has: one, as blocks have so many warps, but for those of the tests. */
#ifdef __CUDACC__
enum { LATENT_TURNS = 1 };
#else
enum { LATENT_TURNS = LATENT_PARTS };
#endif

/* A block's memory. */
struct latent_memory {
    shared_place tiles; /* [slots][CUDA_LATENT_TILE][latent_row_bytes] */
    float *sums;        /* [LATENT_PARTS][heads][LATENT_PITCH]: of logits */
    uint16_t *weights;  /* [3][heads][LATENT_PITCH] */
    float *keep;        /* [heads]: what sums so far are multiplied with */
    float *merge;       /* [heads][4]: the same where stretches are merged (latent_totals) */
};

/* What a warp has of a unit. Lane 4 * g + t has of queries those of head g of each eight, and of sums two columns of each sixteen, of
 * heads 2 * t and 2 * t + 1. */
template <int EIGHTS, int PARTS> struct latent_part {
    uint32_t q[EIGHTS][LATENT_STEPS][2 * PARTS];
    float by[EIGHTS]; /* of what is multiplied with them */
    float sum[LATENT_BLOCKS][EIGHTS][4];
    /* Of the head of each eight that is the warp's: */
    float max[EIGHTS], total[EIGHTS]; /* total: of a lane's positions */
    float max_all[EIGHTS], total_all[EIGHTS], slope[EIGHTS];
};

/* Tiles that are copied next. */
struct latent_ahead {
    few_line line;
    int at, end;  /* the next tile, and where its stretch ends */
    int page;     /* of the lane's position of it */
    int put, get; /* slots: the next that is filled, and that is used */
    bool more;
};

/* ---- tiles ---- */

/* Piece (16 bytes) of a row of a tile. */
static __device__ inline uint32_t latent_at(int row_bytes, int row, int piece)
{
    return (uint32_t)(row * row_bytes + ((piece ^ (row & 7)) << 4));
}

/* The first tile of a stretch of which the row sees something. */
static __device__ SHAPE_FN int latent_first(const few_attend &w, int stretch)
{
    const int first = stretch * w.len, before = w.seen - first;
    return before > 0 ? first + before / CUDA_LATENT_TILE * CUDA_LATENT_TILE : first;
}

/* On to the next tile, of this stretch or another. */
static __device__ SHAPE_FN void latent_ahead_next(const kargs *k, latent_ahead &a)
{
    a.at += CUDA_LATENT_TILE;
    if (a.at >= a.end) {
        a.more = few_line_next(k, a.line);
        if (!a.more)
            return;
        a.at = latent_first(a.line.w, a.line.stretch);
        a.end = few_stretch_end(a.line.w, a.line.stretch);
    }
    const int last = a.end - 1, pos = a.at + lane_index();
    a.page = few_page(a.line.w, pos < last ? pos : last); /* asked for by the time it is needed */
}

/* The next tile, if there is one; either way a group of copies ends. Rows that are not seen are zeros. */
static __device__ SHAPE_FN void latent_copy(const kargs *k, const latent_memory &m, latent_ahead &a)
{
    if (a.more) {
        const few_attend &w = a.line.w;
        const int row_bytes = (int)latent_row_bytes(k->cell), there = (int)k->cell->k / 8;
        const shared_place to = m.tiles + (uint32_t)(a.put * CUDA_LATENT_TILE * row_bytes);
        UNROLLED(1)
        for (int row = warp_index(); row < CUDA_LATENT_TILE; row += warp_count()) {
            const int pos = a.at + row, page = __shfl_sync(ALL_LANES, a.page, row);
            const bool seen = few_sees(pos, w.seen, a.end);
            const char *from = few_place(few_keys_at(w, page, pos));
            UNROLL
            for (int i = 0; i < (CUDA_LATENT_K / 8 + WARP - 1) / WARP; i++) {
                const int piece = lane_index() + i * WARP;
                if (piece < row_bytes / 16)
                    few_copy(to + latent_at(row_bytes, row, piece),
                             seen && piece < there ? from + piece * 16 : k->cell->tier[0].base,
                             seen && piece < there);
            }
        }
        a.put = a.put + 1 == (int)latent_slots(k) ? 0 : a.put + 1;
        latent_ahead_next(k, a);
    }
    copies_group();
}

/* Until the tile at hand is there, which all may use when they have met; and later ones may not be. */
static __device__ inline void latent_wait(const kargs *k)
{
    if (latent_slots(k) == LATENT_SLOTS)
        copies_wait<LATENT_SLOTS - 2>();
    else
        copies_wait<LATENT_SLOTS_ONE - 2>();
    block_sync();
}

/* Where a lane finds the lines of a matrix of 16 columns: positions lane % 8, and 8 more for the upper half of the lanes. Sixteen i of
 * the part is LATENT_BYTES further on for each, and position 8 * n as many rows. */
enum { LATENT_BYTES = LATENT_PARTS * 32 };

static __device__ inline shared_place latent_lines(shared_place tile, int row_bytes, int part)
{
    const int lane = lane_index();
    return tile + latent_at(row_bytes, lane / 16 * 8 + lane % 8, 2 * part + lane / 8 % 2);
}

/* Is there a sixteen i of a part, of rows of n numbers? */
static __device__ inline bool latent_has(int i, int part, int n)
{
    return i * LATENT_COLS + part * 16 < n;
}

/* ---- queries ---- */

/* Columns `col` and `col` + 1 of a query, as far as there are n. */
static __device__ inline bytes8 latent_pair(const float *q, int col, int n, bool even)
{
    bytes8 x = {};
    if (col < n && even)
        x = *(const bytes8 *)(q + col);
    else if (col < n) /* which is even, as is n */
        x = bytes8{{bits_of(q[col]), bits_of(q[col + 1])}};
    return x;
}

/* What a part has of a unit's queries; zeros for heads that are not there. */
template <int EIGHTS, int PARTS>
static __device__ SHAPE_FN void latent_query(const few_attend &w, int part,
                                             latent_part<EIGHTS, PARTS> &p)
{
    const float *slopes = (const float *)w.k->in[3]; /* [H] or NULL */
    const int n = (int)w.k->cell->k, first = part * 16 + lane_index() % 4 * 2;
    const float *all = row_in(w.k, 0, w.row) + w.first_head * n;
    const bool even = ((uintptr_t)all & 7) == 0;
    UNROLL
    for (int e = 0; e < EIGHTS; e++) {
        const int head = e * 8 + lane_index() / 4, own = e * 8 + part;
        const float *q = all + (head < w.heads ? head : 0) * n;
        const int cols = head < w.heads ? n : 0;
        bytes8 x[2 * LATENT_STEPS];
        float most = 0;
        UNROLL
        for (int i = 0; i < 2 * LATENT_STEPS; i++)
            x[i] = latent_pair(q, first + i / 2 * LATENT_COLS + i % 2 * 8, cols, even);
        UNROLL
        for (int i = 0; i < 2 * LATENT_STEPS; i++)
            most = fmaxf(most, fmaxf(fabsf(float_of(x[i].w[0])), fabsf(float_of(x[i].w[1]))));
        UNROLL
        for (int step = 1; step < 4; step *= 2)
            most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, step));
        const float up = power_for(most, &p.by[e]);
        UNROLL
        for (int i = 0; i < 2 * LATENT_STEPS; i++) {
            float low = float_of(x[i].w[0]) * up, high = float_of(x[i].w[1]) * up;
            UNROLL
            for (int j = 0; j < PARTS; j++)
                p.q[e][i / 2][2 * j + i % 2] = take_part<PARTS>(low, high);
        }
        p.slope[e] = slopes && own < w.heads ? slopes[w.first_head + own] : 0;
    }
}

/* ---- a tile ---- */

/* What a part has of logits, to its sums. */
template <int EIGHTS, int PARTS>
static __device__ SHAPE_FN void latent_logits(const kargs *k, int part, shared_place tile,
                                              const latent_part<EIGHTS, PARTS> &p, float *sums)
{
    enum { NS = CUDA_LATENT_TILE / 8 };
    const int row_bytes = (int)latent_row_bytes(k->cell);
    const shared_place lines = latent_lines(tile, row_bytes, part);
    float c[EIGHTS][NS][4] = {};
    UNROLL
    for (int i = 0; i < LATENT_STEPS; i++) {
        uint32_t key[NS / 2][4];
        if (!latent_has(i, part, (int)k->cell->k))
            break;
        UNROLL
        for (int n = 0; n < NS / 2; n++)
            few_straight(key[n], lines + (uint32_t)(i * LATENT_BYTES + n * 16 * row_bytes));
        UNROLL
        for (int e = 0; e < EIGHTS; e++) {
            const uint32_t *q = p.q[e][i];
            const uint32_t a[4] = {q[0], q[2], q[1], q[3]};
            const uint32_t rest[4] = {q[2 * PARTS - 2], 0, q[2 * PARTS - 1], 0};
            UNROLL
            for (int n = 0; n < NS; n++)
                flash_multiply<PARTS>(c[e][n], a, key[n / 2] + n % 2 * 2);
            UNROLL
            for (int n = 0; n < NS && PARTS > 2; n++)
                flash_multiply<PARTS>(c[e][n], rest, key[n / 2] + n % 2 * 2);
        }
    }
    sums += (part * EIGHTS * 8 + lane_index() / 4) * LATENT_PITCH + lane_index() % 4 * 2;
    UNROLL
    for (int e = 0; e < EIGHTS; e++)
        UNROLL
    for (int n = 0; n < NS; n++) {
        bytes8 two;
        UNROLL
        for (int j = 0; j < 2; j++)
            two.w[j] = bits_of((c[e][n][j] + c[e][n][j + 2]) * p.by[e]);
        *(bytes8 *)(sums + e * 8 * LATENT_PITCH + n * 8) = two;
    }
}

/* Logits of the tile at `at` become weights, those of a head of each eight by a warp; a lane has a position. */
template <int EIGHTS, int PARTS>
static __device__ SHAPE_FN void latent_weigh(const few_attend &w, int part, int at, int end,
                                             latent_part<EIGHTS, PARTS> &p, const latent_memory &m)
{
    static_assert((int)CUDA_LATENT_TILE == (int)WARP && LATENT_PARTS == 8, "a lane's position");
    const float softcap = (float)w.k->scalar.attend.softcap;
    const int pos = at + lane_index();
    const bool seen = few_sees(pos, w.seen, end);
    UNROLL
    for (int e = 0; e < EIGHTS; e++) {
        const int head = e * 8 + part;
        const float *from = m.sums + head * LATENT_PITCH + lane_index();
        uint16_t *to = m.weights + head * LATENT_PITCH + lane_index();
        float x[LATENT_PARTS];
        UNROLL
        for (int i = 0; i < LATENT_PARTS; i++)
            x[i] = from[i * (EIGHTS * 8 * LATENT_PITCH)];
        float s = ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
        s *= (float)w.k->scalar.attend.scale;
        if (softcap != 0)
            s = softcap * tanhf(s / softcap);
        if (w.k->in[3])
            s += p.slope[e] * (float)(pos - w.pos);
        s = seen ? s : -INFINITY;
        const float most = fmaxf(p.max[e], warp_max(s)), keep = state_exp(p.max[e] - most);
        s = state_exp(s - most);
        p.total[e] = p.total[e] * keep + s;
        p.max[e] = most;
        float left = s * few_up < PARTS == 2 ? FEW_F16 : FEW_BF16 > (), none = 0;
        UNROLL
        for (int j = 0; j < PARTS; j++)
            to[j * (EIGHTS * 8 * LATENT_PITCH)] = (uint16_t)take_part<PARTS>(left, none);
        if (lane_index() == 0)
            m.keep[head] = keep;
    }
}

/* Values times weights are added to a part's sums. */
template <int EIGHTS, int PARTS>
static __device__ SHAPE_FN void latent_add(const kargs *k, int part, shared_place tile,
                                           latent_part<EIGHTS, PARTS> &p, const latent_memory &m)
{
    const int row_bytes = (int)latent_row_bytes(k->cell);
    const shared_place lines = latent_lines(tile, row_bytes, part);
    const uint16_t *from = m.weights + lane_index() / 4 * LATENT_PITCH + lane_index() % 4 * 2;
    UNROLL
    for (int e = 0; e < EIGHTS; e++) {
        const bytes8 keep = *(const bytes8 *)(m.keep + e * 8 + lane_index() % 4 * 2);
        UNROLL
        for (int i = 0; i < LATENT_BLOCKS * 4; i++)
            p.sum[i / 4][e][i % 4] *= float_of(keep.w[i % 2]);
    }
    UNROLL
    for (int n = 0; n < CUDA_LATENT_TILE / 16; n++) {
        uint32_t weight[EIGHTS][PARTS][2];
        UNROLL
        for (int i = 0; i < EIGHTS * PARTS * 2; i++) {
            const int e = i / (PARTS * 2), j = i / 2 % PARTS;
            weight[e][j][i % 2] = *(const uint32_t *)(from + (j * EIGHTS + e) * 8 * LATENT_PITCH +
                                                      n * 16 + i % 2 * 8);
        }
        UNROLL
        for (int i = 0; i < LATENT_BLOCKS; i++) {
            uint32_t value[4];
            if (!latent_has(i, part, (int)k->cell->v))
                break;
            few_turned(value, lines + (uint32_t)(i * LATENT_BYTES + n * 16 * row_bytes));
            UNROLL
            for (int e = 0; e < EIGHTS * PARTS; e++)
                flash_multiply<PARTS>(p.sum[i][e % EIGHTS], value, weight[e % EIGHTS][e / EIGHTS]);
        }
    }
}

/* ---- stretches ---- */

/* A stretch's largest logits and sums of weights: left at `states` for the step that merges; or merged into those before, with what
 * columns are multiplied by: of all before it, of the stretch, and of the result. */
template <int EIGHTS, int PARTS>
static __device__ SHAPE_FN void latent_totals(const few_line &l, int part,
                                              latent_part<EIGHTS, PARTS> &p, const latent_memory &m,
                                              float *states)
{
    const few_attend &w = l.w;
    const bool last = (l.stretch + 1) * w.len > w.pos;
    UNROLL
    for (int e = 0; e < EIGHTS; e++) {
        const int head = e * 8 + part;
        const float total = warp_sum(p.total[e]);
        if (head >= w.heads)
            continue;
        if (states) {
            float *to = states + head * ATTEND_STRETCHES * (int)attend_state_floats(w.k->cell->v);
            if (lane_index() < 2)
                to[lane_index()] = lane_index() == 0 ? p.max[e] : total;
            continue;
        }
        if (l.first)
            state_begin(w.k, w.first_head + head, &p.max_all[e], &p.total_all[e]);
        const merge_factors f = merge_of(p.max_all[e], p.total_all[e], p.max[e], total);
        p.max_all[e] = f.max;
        p.total_all[e] = f.total;
        if (lane_index() == 0)
            *(floats4 *)(m.merge + head * 4) =
                floats4{{f.old_by, f.new_by, last ? 1 / f.total : 1, 0}};
    }
}

/* Its columns. */
template <int EIGHTS, int PARTS>
static __device__ SHAPE_FN void latent_columns(const few_line &l, int part,
                                               const latent_part<EIGHTS, PARTS> &p,
                                               const latent_memory &m, float *states)
{
    const few_attend &w = l.w;
    const int v = (int)w.k->cell->v, each = ATTEND_STRETCHES * (int)attend_state_floats(v);
    float *result = row_out(w.k, 0, w.row) + w.first_head * v;
    UNROLL
    for (int i = 0; i < EIGHTS * 2; i++) {
        const int head = i / 2 * 8 + lane_index() % 4 * 2 + i % 2;
        if (head >= w.heads)
            continue;
        const floats4 f = states ? floats4{} : *(const floats4 *)(m.merge + head * 4);
        float *to = states ? states + head * each + ATTEND_PAD : result + head * v;
        UNROLL
        for (int j = 0; j < LATENT_BLOCKS * 2; j++) {
            const int col = j / 2 * LATENT_COLS + part * 16 + lane_index() / 4 + j % 2 * 8;
            float x = p.sum[j / 2][i / 2][j % 2 * 2 + i % 2] *
                      (1 / few_up < PARTS == 2 ? FEW_F16 : FEW_BF16 > ());
            if (col >= v)
                break;
            if (!states)
                x = merge_sum(f.x[0], f.x[1], l.first ? 0 : to[col], x) * f.x[2];
            to[col] = x;
        }
    }
}

/* The parts of the columns that a warp has. */
#define EACH_PART                                                                                  \
    UNROLL                                                                                         \
    for (int i = 0, part = warp_index(); i < LATENT_TURNS && part < LATENT_PARTS;                  \
         i++, part += warp_count())

/* The stretch at hand of l. */
template <int EIGHTS, int PARTS>
static __device__ SHAPE_FN void latent_stretch(const few_line &l, const latent_memory &m,
                                               latent_ahead &a, latent_part<EIGHTS, PARTS> *parts)
{
    const few_attend &w = l.w;
    const kargs *k = w.k;
    const int end = few_stretch_end(w, l.stretch);
    const int tile_bytes = CUDA_LATENT_TILE * (int)latent_row_bytes(k->cell);
    UNROLL
    for (int i = 0; i < LATENT_TURNS; i++) {
        latent_part<EIGHTS, PARTS> &p = parts[i];
        UNROLL
        for (int e = 0; e < EIGHTS; e++) {
            p.max[e] = -INFINITY;
            p.total[e] = 0;
            UNROLL
            for (int j = 0; j < LATENT_BLOCKS * 4; j++)
                p.sum[j / 4][e][j % 4] = 0;
        }
    }
    UNROLLED(1)
    for (int at = latent_first(w, l.stretch); at < end; at += CUDA_LATENT_TILE) {
        const shared_place tile = m.tiles + (uint32_t)(a.get * tile_bytes);
        latent_wait(k);
        latent_copy(k, m, a);
        EACH_PART latent_logits(k, part, tile, parts[i], m.sums);
        block_sync();
        EACH_PART latent_weigh(w, part, at, end, parts[i], m);
        block_sync();
        EACH_PART latent_add(k, part, tile, parts[i], m);
        a.get = a.get + 1 == (int)latent_slots(k) ? 0 : a.get + 1;
    }
    float *states = k->choice.attend.part == ATTEND_STATES
                        ? row_out(k, 0, w.row) + (w.first_head * ATTEND_STRETCHES + l.stretch) *
                                                     (int)attend_state_floats(k->cell->v)
                        : NULL;
    EACH_PART latent_totals(l, part, parts[i], m, states);
    if (!states)
        block_sync();
    EACH_PART latent_columns(l, part, parts[i], m, states);
}
#undef EACH_PART

/* ---- units ---- */

template <int EIGHTS, int PARTS>
static __device__ ONE_COPY void latent_units(const kargs *k, const kthread *t, int64_t begin,
                                             int64_t end)
{
    const int heads = (int)few_attend_size_of(k).heads;
    latent_memory m;
    char *rest = (char *)t->scratch + latent_tiles_bytes(k);
    m.tiles = shared_at(t->scratch);
    m.sums = (float *)rest;
    m.weights = (uint16_t *)(rest += latent_sums_bytes(heads));
    m.keep = (float *)(rest += latent_weights_bytes(heads));
    m.merge = m.keep + EIGHTS * 8;
    latent_ahead a = {};
    a.line = few_line_of(k, begin, end);
    latent_ahead_next(k, a);
    UNROLLED(1)
    for (int i = 1; i < (int)latent_slots(k); i++)
        latent_copy(k, m, a);
    few_line l = few_line_of(k, begin, end);
    latent_part<EIGHTS, PARTS> parts[LATENT_TURNS] = {};
    UNROLLED(1)
    while (few_line_next(k, l)) {
        UNROLL
        for (int i = 0; i < LATENT_TURNS && l.first; i++)
            latent_query(l.w, (warp_index() + i * warp_count()) % LATENT_PARTS, parts[i]);
        latent_stretch(l, m, a, parts);
    }
}

/* Units of a cell of such rows, wherever it lies. */
static __device__ SHAPE_FN void latent_attend(const kargs *k, const kthread *t, int64_t begin,
                                              int64_t end)
{
    const bool two = latent_eights(few_attend_size_of(k).heads) > 1;
    if (!is_shared(t->scratch) || !few_attend_reads(k->cell))
        few_attend_other(k, t, begin, end);
    else if (k->cell->tier[0].key == KFORM_BF16 && two)
        latent_units<2, 3>(k, t, begin, end);
    else if (k->cell->tier[0].key == KFORM_BF16)
        latent_units<1, 3>(k, t, begin, end);
    else if (two)
        latent_units<2, 2>(k, t, begin, end);
    else
        latent_units<1, 2>(k, t, begin, end);
}

#endif
