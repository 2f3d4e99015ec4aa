/* attend_ahead_cuda.cuh - attention of several rows: what attend_few_cuda.cuh does, with tiles that are copied ahead; and the kernel
 * for both.
 *
 * A block has stretches of several units in turn. Its warps copy their tiles to shared memory, some ahead of the one at hand, across
 * stretches and units: so memory is read while a stretch is merged and the next query is waited for. Tiles, and the order in which
 * they are added, are those of few_unit_run: so are the bits. */
#ifndef WEFT_KERNELS_CUDA_ATTEND_AHEAD_CUDA_CUH
#define WEFT_KERNELS_CUDA_ATTEND_AHEAD_CUDA_CUH

#include "kernels/cuda/attend_latent_cuda.cuh"

/* ---- tiles ahead ---- */

/* How a tile lies there: keys, then values, row by row; pieces of 16 bytes where eight lanes that load at once have different
 * banks: keys of two positions, values of eight. */
template <int WIDTH, few_form FORM> struct few_slot {
    enum {
        ROW = WIDTH * 2,
        PIECES = ROW / 16, /* of a row */
        KEYS = few_tile<WIDTH, FORM>::POSITIONS * ROW,
        BYTES = 2 * KEYS,
        COUNT = FEW_AHEAD_BYTES / BYTES,
    };
    static_assert((int)COUNT >= 2 && (int)KEYS == (int)few_tile<WIDTH, FORM>::LOADS * WARP * 16,
                  "lanes have as many pieces as they load");
};

static __device__ inline uint32_t few_key_at(int width, int row, int piece)
{
    return (uint32_t)(row * width * 2 + ((piece ^ (row & 1) << 2) << 4));
}

static __device__ inline uint32_t few_value_at(int width, int row, int piece)
{
    return (uint32_t)(row * width * 2 + ((piece ^ (row & 7)) << 4));
}

/* What a warp copies next. */
struct few_ahead {
    few_line line;
    int piece, at, end; /* its next tile, and where the stretch ends */
    int page;           /* of that tile */
    int put, get;       /* slots: the next that is filled, and that is used */
    bool more;
    shared_place slots;
};

/* On to the next tile. */
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void few_ahead_next(const kargs *k, few_ahead &a)
{
    a.at += few_tile<WIDTH, FORM>::STEP;
    UNROLLED(1)
    while (a.at >= a.end) {
        a.piece += warp_count();
        if (a.piece >= FEW_PIECES) {
            a.piece = warp_index();
            a.more = a.piece < FEW_PIECES && few_line_next(k, a.line);
            if (!a.more)
                return;
            a.end = few_stretch_end(a.line.w, a.line.stretch);
        }
        a.at = few_piece_first<WIDTH, FORM>(a.line.w, a.line.stretch, a.piece);
    }
    a.page = few_page(a.line.w, a.at); /* asked for by the time it is needed */
}

/* The next tile, if there is one; either way a group of copies ends. Values of which the row sees nothing are zeros. */
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void few_ahead_copy(const kargs *k, few_ahead &a)
{
    typedef few_slot<WIDTH, FORM> slot;
    if (a.more) {
        const few_attend &w = a.line.w;
        const shared_place to = a.slots + (uint32_t)(a.put * slot::BYTES);
        const int cols = (int)k->cell->k; /* of keys and values */
        const char *keys = few_place(few_keys_at(w, a.page, a.at));
        const char *values = few_place(keys + k->cell->heads * k->cell->page_tok * (cols * 2));
        UNROLL
        for (int i = 0; i < few_tile<WIDTH, FORM>::LOADS; i++) {
            const int n = lane_index() + i * WARP, row = n / slot::PIECES, piece = n % slot::PIECES;
            const bool there = cols == WIDTH || piece * 8 < cols;
            few_copy(to + few_key_at(WIDTH, row, piece),
                     keys + (there ? (row * cols + piece * 8) * 2 : 0), there);
        }
        const bool whole = few_is_whole<WIDTH, FORM>(w, a.at, a.end);
        UNROLL
        for (int i = 0; i < few_tile<WIDTH, FORM>::LOADS; i++) {
            const int n = lane_index() + i * WARP, row = n / slot::PIECES, piece = n % slot::PIECES;
            const bool there = cols == WIDTH || piece * 8 < cols;
            few_copy(to + slot::KEYS + few_value_at(WIDTH, row, piece),
                     values + (there ? (row * cols + piece * 8) * 2 : 0),
                     there && (whole || few_sees(a.at + row, w.seen, a.end)));
        }
        a.put = a.put + 1 == slot::COUNT ? 0 : a.put + 1;
        few_ahead_next<WIDTH, FORM>(k, a);
    }
    copies_group();
}

/* As few_keys has them. */
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void few_slot_keys(shared_place from, bytes16 *to)
{
    typedef few_tile<WIDTH, FORM> tile;
    UNROLL
    for (int i = 0; i < tile::LOADS; i++)
        to[i] = shared_16(from + few_key_at(WIDTH, lane_index() / 4 + i / tile::CHUNKS * 8,
                                            i % tile::CHUNKS * 4 + lane_index() % 4));
}

/* few_add, with values from a slot: sums are of columns lane / 4 and 8 more of each sixteen. */
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void few_slot_add(shared_place from, const float *s, few_sums<WIDTH> &a)
{
    typedef few_tile<WIDTH, FORM> tile;
    enum { EACH = tile::EIGHTS < 2 ? 2 : 1 }; /* sixteens of columns at a time */
    const few_weights<WIDTH, FORM> weight = few_weights_of<WIDTH, FORM>(s);
    const int matrix = lane_index() / 8, row = lane_index() % 8 + (EACH > 1 ? 0 : matrix / 2 * 8);
    const shared_place line = from + few_value_at(WIDTH, row, EACH > 1 ? matrix : matrix % 2);
    UNROLL
    for (int i = 0; i < WIDTH / 16 / EACH; i++) {
        uint32_t turned[4];
        few_turned(turned, line ^ (uint32_t)(i * EACH << 5));
        UNROLL
        for (int e = 0; e < EACH * tile::KEPT; e++) {
            const int at = i * EACH + e % EACH;
            const uint32_t none[4] = {turned[e % EACH * 2], turned[e % EACH * 2 + 1], 0, 0};
            flash_multiply<tile::PARTS>(a.sum[at / 4][at % 4], EACH > 1 ? none : turned,
                                        weight.part[e / EACH]);
        }
    }
}

/* few_piece_put, of such sums. */
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void few_slot_put(const few_attend &w, const few_sums<WIDTH> &a,
                                             float *to)
{
    const int pitch = (int)few_piece_floats(WIDTH), g = lane_index() / 4, t = lane_index() % 4;
    enum { HEADS = FORM == FEW_FOUR ? 1 : 2 }; /* of a lane */
    few_totals_put<WIDTH, FORM>(w, a, to);
    to += HEADS * t * pitch + FEW_PAD + g;
    UNROLL
    for (int h = 0; h < HEADS; h++)
        if (HEADS * t + h < w.heads) {
            UNROLL
            for (int i = 0; i < WIDTH / 8; i++)
                to[h * pitch + i * 8] = few_column<FORM>(a.sum[i / 8][i / 2 % 4] + i % 2 * 2, h);
        }
}

/* few_piece_walk, with a query that is at hand and tiles that were copied: the next ones of the warp. */
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void few_piece_ahead(const few_attend &w,
                                                const few_query<WIDTH, FORM> &q, int first, int end,
                                                few_ahead &ahead, float *to)
{
    typedef few_tile<WIDTH, FORM> tile;
    typedef few_slot<WIDTH, FORM> slot;
    few_sums<WIDTH> a = {};
    a.max = -INFINITY;
    UNROLLED(1)
    for (int at = first; at < end; at += tile::STEP) {
        bytes16 key[tile::LOADS];
        float s[tile::LOGITS];
        const shared_place from = ahead.slots + (uint32_t)(ahead.get * slot::BYTES);
        copies_wait<slot::COUNT - 1>();
        __syncwarp();
        few_slot_keys<WIDTH, FORM>(from, key);
        few_logits<WIDTH, FORM>(q, key, s);
        few_weigh<WIDTH, FORM>(w, q, at == first, few_is_whole<WIDTH, FORM>(w, at, end), at, end, s,
                               a);
        few_slot_add<WIDTH, FORM>(from + slot::KEYS, s, a);
        ahead.get = ahead.get + 1 == slot::COUNT ? 0 : ahead.get + 1;
        __syncwarp(); /* all have it */
        few_ahead_copy<WIDTH, FORM>(w.k, ahead);
    }
    few_slot_put<WIDTH, FORM>(w, a, to);
}

/* The query of a unit, by each warp. */
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void few_query_take(const few_attend &w, float *room,
                                               few_query<WIDTH, FORM> &q)
{
    bytes16 x[few_tile<WIDTH, FORM>::CHUNKS][2];
    if (warp_index() >= FEW_PIECES)
        return;
    few_query_load<WIDTH, FORM>(w, room + warp_index() * w.heads * (int)few_piece_floats(WIDTH), x);
    few_query_split<WIDTH, FORM>(w, x, q);
}

/* Columns of stretches: what pieces of `held` of them have, the last of which is that of l, as states or merged into those before. */
static __device__ SHAPE_FN void few_held_end(const few_line &l, bool first, int held, int floats,
                                             const few_memory &m)
{
    const few_attend &w = l.w;
    const bool states = w.k->choice.attend.part == ATTEND_STATES;
    UNROLLED(1)
    for (int j = warp_index(); j < w.heads * (int)few_width(w.k->cell) / FEW_COLUMNS;
         j += warp_count()) {
        few_state s[FEW_HELD] = {};
        UNROLL
        for (int h = 0; h < FEW_HELD; h++) {
            const few_memory of = {m.pieces + h * FEW_PIECES * floats, m.all, NULL, NULL};
            if (h < held)
                s[h] = few_stretch_take(w, j, of);
        }
        UNROLL
        for (int h = 0; h < FEW_HELD; h++) {
            if (h >= held)
                continue;
            if (states)
                few_state_put(w, l.stretch, j, s[h]);
            else
                few_state_merge(w, first && h == 0,
                                h + 1 == held && (l.stretch + 1) * w.len > w.pos, j, s[h], m);
            __syncwarp();
        }
    }
}

template <int WIDTH, few_form FORM>
static __device__ ONE_COPY void few_attend_ahead(const kargs *k, const kthread *t, int64_t begin,
                                                 int64_t end)
{
    const int floats = (int)(few_attend_size_of(k).heads * few_piece_floats(WIDTH));
    const int room = (int)few_held(k);
    const shared_place at = shared_at(t->scratch);
    const shared_place fill = (0 - at) % FEW_AHEAD_ALIGN;
    few_memory m;
    m.pieces = (float *)((char *)t->scratch + FEW_AHEAD_ALIGN + FEW_PIECES * FEW_AHEAD_BYTES);
    m.all = m.pieces + room * FEW_PIECES * floats;
    few_ahead a = {};
    a.line = few_line_of(k, begin, end);
    a.piece = FEW_PIECES;
    a.slots = at + fill + (uint32_t)(warp_index() % FEW_PIECES) * (uint32_t)FEW_AHEAD_BYTES;
    few_ahead_next<WIDTH, FORM>(k, a);
    UNROLLED(1)
    for (int i = 0; i < few_slot<WIDTH, FORM>::COUNT; i++)
        few_ahead_copy<WIDTH, FORM>(k, a);
    few_line l = few_line_of(k, begin, end);
    few_query<WIDTH, FORM> q = {};
    int held = 0;
    bool first = false;
    UNROLLED(1)
    while (few_line_next(k, l)) {
        if (l.first)
            few_query_take<WIDTH, FORM>(l.w, m.pieces, q);
        first = held == 0 ? l.first : first;
        UNROLLED(1)
        for (int p = warp_index(); p < FEW_PIECES; p += warp_count())
            few_piece_ahead<WIDTH, FORM>(l.w, q, few_piece_first<WIDTH, FORM>(l.w, l.stretch, p),
                                         few_stretch_end(l.w, l.stretch), a,
                                         m.pieces + (held * FEW_PIECES + p) * l.w.heads *
                                                        (int)few_piece_floats(WIDTH));
        if (++held < room && (l.stretch + 1) * l.w.len <= l.w.pos)
            continue;
        block_sync();
        few_held_end(l, first, held, l.w.heads * (int)few_piece_floats(WIDTH), m);
        held = 0;
        block_sync(); /* pieces have been read */
    }
}

/* ---- the kernel ---- */

template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void few_attend_width(const kargs *k, const kthread *t, int64_t begin,
                                                 int64_t end)
{
    if constexpr (FORM != FEW_CODES)
        if (!is_one_row(k) && is_shared(t->scratch)) {
            few_attend_ahead<WIDTH, FORM>(k, t, begin, end);
            return;
        }
    few_attend_halves<WIDTH, FORM>(k, t, begin, end);
}

static __device__ SHAPE_FN void few_attend_widths(const kargs *k, const kthread *t, int64_t begin,
                                                  int64_t end)
{
    if (cuda_cell_latent(k->cell)) {
        latent_attend(k, t, begin, end);
        return;
    }
    const int width = (int)few_width(k->cell);
    const bool four = few_attend_size_of(k).heads <= 4 && width <= FEW_WIDE;
    const int form = k->cell->n_tier > 1                  ? FEW_CODES
                     : k->cell->tier[0].key == KFORM_BF16 ? FEW_BF16
                     : four                               ? FEW_FOUR
                                                          : FEW_F16;
    switch (width * 4 + form) {
#define CASE(width, form)                                                                          \
    case width * 4 + form:                                                                         \
        few_attend_width<width, form>(k, t, begin, end);                                           \
        break;
        CASE(64, FEW_F16)
        CASE(64, FEW_BF16)
        CASE(64, FEW_FOUR)
        CASE(64, FEW_CODES)
        CASE(128, FEW_F16)
        CASE(128, FEW_BF16)
        CASE(128, FEW_FOUR)
        CASE(128, FEW_CODES)
        CASE(256, FEW_F16)
        CASE(256, FEW_BF16)
        CASE(256, FEW_CODES)
#undef CASE
    default:
        break;
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
        few_attend_widths(k, t, begin, end);
}

#endif
