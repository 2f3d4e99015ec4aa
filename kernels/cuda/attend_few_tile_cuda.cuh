/* attend_few_tile_cuda.cuh - a tile of keys and values by a warp, with matrix instructions: what attend_few_cuda.cuh says of it.
 *
 * Of f16 and up to four query heads (FEW_FOUR) keys are the rows, [16 positions, columns], and the columns those heads, each as its
 * two parts: half of the instructions, and a lane has two logits of sixteen positions in place of four. These are powers of two, and
 * weights have to be turned: two parts of them are a word, four heads a matrix of 8 by 8. */
#ifndef WEFT_KERNELS_CUDA_ATTEND_FEW_TILE_CUDA_CUH
#define WEFT_KERNELS_CUDA_ATTEND_FEW_TILE_CUDA_CUH

#include "kernels/cuda/attend_cuda.cuh"
#include "kernels/cuda/attend_few_size.h"
#include "kernels/cuda/attend_flash_cuda.cuh"

/* What is not used before it is set, which not every compiler sees. */
#ifdef __CUDACC__
#define FEW_NONE
#else
#define FEW_NONE = {}
#endif

/* How numbers are multiplied; FEW_CODES: attend_few_codes_cuda.cuh. */
enum few_form { FEW_F16, FEW_BF16, FEW_FOUR, FEW_CODES };

/* How a warp has a tile of keys and values of WIDTH columns. Lane 4 * g + t has of keys position g of each eight and a part of the
 * columns, of values positions 2 * t, 2 * t + 1, and 8 more, of each sixteen, and columns from 8 * g on. */
template <int WIDTH, few_form FORM> struct few_tile {
    enum {
        FOUR = FORM == FEW_FOUR,
        BLOCKS = WIDTH / 64, /* of columns */
        POSITIONS = FORM == FEW_CODES    ? FEW_CODES_TILE
                    : FOUR || BLOCKS < 2 ? 16
                                         : 8, /* of a tile */
        EIGHTS = POSITIONS / 8,               /* of positions */
        SIXTEENS = (EIGHTS + 1) / 2,          /* of which the second eight may be missing */
        PAIRS = EIGHTS < 2 ? 1 : 2,           /* of positions, in each sixteen, of a lane */
        STEP = POSITIONS * FEW_PIECES,        /* from a tile of a warp to its next */
        PARTS = FORM == FEW_BF16 ? 3 : 2,     /* of a query or weight, */
        KEPT = FOUR ? 1 : PARTS,              /* of which a lane multiplies so many */
        CHUNKS = 2 * BLOCKS,                  /* of 8 columns of a query, of a lane */
        LOADS = EIGHTS * CHUNKS,              /* of keys, and of values, of a lane */
        LOGITS = FOUR ? EIGHTS : EIGHTS * 2,  /* of a lane */
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

/* A query head of a lane, split: lane / 4, or of four heads lane / 8, one part of it; and by what logits are multiplied, those of
 * head lane / 4 or, of four, lane % 4. */
template <int WIDTH, few_form FORM> struct few_query {
    uint32_t part[few_tile<WIDTH, FORM>::KEPT][few_tile<WIDTH, FORM>::CHUNKS * 4];
    float by, slope;
    float by_two; /* for logits as powers of two */
};

/* What a lane has of a piece: of query head lane / 4 the largest logit and a part of the sum of weights; of two heads, sums of eight
 * columns of each block, as they leave the instruction. Of four heads: all of head lane % 4, with sums of two parts. */
template <int WIDTH> struct few_sums {
    float max, total;
    float sum[WIDTH / 64][4][4];
};

/* Of f16, weights are multiplied by so much: what they lack then has its bits too. */
template <few_form FORM> static __device__ inline float few_up(void)
{
    return FORM == FEW_BF16 || FORM == FEW_CODES ? 1.0f : 0x1p15f;
}

/* Number i of a lane's logits is that of so many positions after its first one, of which each lane has some. */
template <few_form FORM> static __device__ constexpr int few_logit_at(int i)
{
    return FORM == FEW_CODES ? i % 2 * 4 + i / 2 : i / 2 * 8 + i % 2;
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

/* Four matrices of eight by eight of 16 bits, turned, from the lines that lanes point to. */
static __device__ inline void few_turned(uint32_t *a, shared_place line)
{
#ifdef __CUDACC__
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(line));
#else
    simt_ldmatrix(a, (const char *)line, true);
#endif
}

/* The same, not turned. */
static __device__ inline void few_straight(uint32_t *a, shared_place line)
{
#ifdef __CUDACC__
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(line));
#else
    simt_ldmatrix(a, (const char *)line, false);
#endif
}

/* Is position p one of those from `seen` to before `end`? */
static __device__ inline bool few_sees(int p, int seen, int end)
{
    return (uint32_t)(p - seen) < (uint32_t)(end - seen);
}

/* ---- queries ---- */

/* Eight columns of each chunk of a lane's query head; zeros for one that is not there. Queries at odd places are copied first, to
 * a warp's `room`. */
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void few_query_load(const few_attend &w, float *room, bytes16 (*x)[2])
{
    typedef few_tile<WIDTH, FORM> tile;
    const int k = (int)w.k->cell->k;
    const float *all = row_in(w.k, 0, w.row) + w.first_head * k;
    const int head = lane_index() / (tile::FOUR ? 8 : 4);
    const bool odd = !at_16(all);
    if (odd) {
        UNROLLED(1)
        for (int i = lane_index(); i < w.heads * k; i += WARP)
            room[i] = all[i];
        __syncwarp();
        all = room;
    }
    all += head * k + lane_index() % 4 * 8;
    UNROLL
    for (int c = 0; c < tile::CHUNKS; c++) {
        x[c][0] = x[c][1] = bytes16{};
        if (head < w.heads && c * 32 + lane_index() % 4 * 8 < k) {
            x[c][0] = *(const bytes16 *)(all + c * 32);
            x[c][1] = *(const bytes16 *)(all + c * 32 + 4);
        }
    }
    if (odd)
        __syncwarp(); /* the room may be written again */
}

template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void few_query_split(const few_attend &w, const bytes16 (*x)[2],
                                                few_query<WIDTH, FORM> &q)
{
    typedef few_tile<WIDTH, FORM> tile;
    const float *slopes = (const float *)w.k->in[3]; /* [H] or NULL */
    const int head = tile::FOUR ? lane_index() % 4 : lane_index() / 4;
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
        for (int p = 0; p < tile::PARTS; p++) {
            const uint32_t x_part = take_part<tile::PARTS>(low, high);
            if (!tile::FOUR || lane_index() / 4 % 2 == p)
                q.part[tile::FOUR ? 0 : p][i] = x_part;
        }
    }
    if (tile::FOUR)
        inverse = __shfl_sync(ALL_LANES, inverse, head * 8);
    q.by = inverse * (float)w.k->scalar.attend.scale;
    q.by_two = q.by * LOG2_E;
    q.slope = slopes && head < w.heads ? slopes[w.first_head + head] : 0;
}

/* ---- keys and values ---- */

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

/* Keys of a tile, which lies in one page. Those that the row does not see may be anything; columns that there are not are zeros. */
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void few_keys(const few_attend &w, const char *from, bytes16 *to)
{
    typedef few_tile<WIDTH, FORM> tile;
    const int k = (int)w.k->cell->k, col = lane_index() % 4 * 8;
    from = few_place(from + (lane_index() / 4 * k + col) * 2);
    UNROLL
    for (int i = 0; i < tile::LOADS; i++) {
        const char *at = from + i / tile::CHUNKS * (8 * k * 2) + i % tile::CHUNKS * 64;
        to[i] = k == WIDTH || i % tile::CHUNKS * 32 + col < k ? *(const bytes16 *)at : bytes16{};
    }
}

/* Values of the same tile. */
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void few_values(const few_attend &w, const char *keys, bytes16 *to)
{
    typedef few_tile<WIDTH, FORM> tile;
    const kcell *c = w.k->cell;
    const int first = lane_index() % 4 * 2, v = (int)c->v, col = lane_index() / 4 * 8;
    const char *from = few_place(keys + ((c->heads * c->page_tok + first) * v + col) * 2);
    UNROLL
    for (int i = 0; i < tile::LOADS; i++) {
        const int n = i / tile::BLOCKS, p = n / 2 * 8 + n % 2;
        const char *at = from + p * (v * 2) + i % tile::BLOCKS * 128;
        to[i] = v == WIDTH || i % tile::BLOCKS * 64 + col < v ? *(const bytes16 *)at : bytes16{};
    }
}

/* Does the row see all of the tile at `at`? */
template <int WIDTH, few_form FORM>
static __device__ inline bool few_is_whole(const few_attend &w, int at, int end)
{
    return at >= w.seen && at + few_tile<WIDTH, FORM>::POSITIONS <= end;
}

/* Zeros where it sees nothing. */
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void few_values_hide(const few_attend &w, int at, int end, bytes16 *to)
{
    typedef few_tile<WIDTH, FORM> tile;
    UNROLL
    for (int i = 0; i < tile::LOADS; i++) {
        const int n = i / tile::BLOCKS, p = n / 2 * 8 + n % 2;
        if (!few_sees(at + lane_index() % 4 * 2 + p, w.seen, end))
            to[i] = bytes16{};
    }
}

/* ---- products ---- */

/* Of four heads, of the lane's: logits of a position of each eight. Two sums at a time, since each product waits for the one before. */
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void four_logits(const few_query<WIDTH, FORM> &q, const bytes16 *key,
                                            float *s)
{
    typedef few_tile<WIDTH, FORM> tile;
    UNROLL
    for (int n = 0; n < tile::SIXTEENS; n++) {
        const bytes16 *one = key + 2 * n * tile::CHUNKS, *two = one + tile::CHUNKS;
        float c[2][4] = {};
        UNROLL
        for (int i = 0; i < tile::CHUNKS * 2; i++) {
            const int at = i % 2 * 2;
            const uint32_t a[4] = {one[i / 2].w[at], two[i / 2].w[at], one[i / 2].w[at + 1],
                                   two[i / 2].w[at + 1]};
            multiply_f16(c[i % 2], a, q.part[0] + i * 2);
        }
        s[2 * n] = c[0][0] + c[0][1] + (c[1][0] + c[1][1]);
        s[2 * n + 1] = c[0][2] + c[0][3] + (c[1][2] + c[1][3]);
    }
}

/* Of the lane's query head: logits of two positions of each eight. */
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void eight_logits(const few_query<WIDTH, FORM> &q, const bytes16 *key,
                                             float *s)
{
    typedef few_tile<WIDTH, FORM> tile;
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
        for (int j = 0; j < tile::EIGHTS && tile::PARTS > 2; j++)
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
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void eight_weigh(const few_attend &w, const few_query<WIDTH, FORM> &q,
                                            bool first, bool whole, int at, int end, float *s,
                                            few_sums<WIDTH> &a)
{
    typedef few_tile<WIDTH, FORM> tile;
    const float softcap = (float)w.k->scalar.attend.softcap;
    float most = a.max;
    at += lane_index() % 4 * (FORM == FEW_CODES ? 8 : 2);
    UNROLL
    for (int i = 0; i < tile::EIGHTS * 2; i++) {
        const int p = at + few_logit_at<FORM>(i);
        s[i] *= q.by;
        if (softcap != 0)
            s[i] = softcap * tanhf(s[i] / softcap);
        if (w.k->in[3])
            s[i] += q.slope * (float)(p - w.pos);
    }
    if (!whole) {
        UNROLL
        for (int i = 0; i < tile::EIGHTS * 2; i++)
            s[i] = few_sees(at + few_logit_at<FORM>(i), w.seen, end) ? s[i] : -INFINITY;
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

/* The same of four heads: logits are powers of two. */
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void four_weigh(const few_attend &w, const few_query<WIDTH, FORM> &q,
                                           bool first, bool whole, int at, int end, float *s,
                                           few_sums<WIDTH> &a)
{
    typedef few_tile<WIDTH, FORM> tile;
    const float softcap = (float)w.k->scalar.attend.softcap;
    float most = a.max;
    at += lane_index() / 4;
    UNROLL
    for (int i = 0; i < tile::LOGITS; i++) {
        const bool plain = softcap == 0 && !w.k->in[3];
        s[i] *= plain ? q.by_two : q.by;
        if (softcap != 0)
            s[i] = softcap * tanhf(s[i] / softcap);
        if (w.k->in[3])
            s[i] += q.slope * (float)(at + i * 8 - w.pos);
        if (!plain)
            s[i] *= LOG2_E;
    }
    if (!whole) {
        UNROLL
        for (int i = 0; i < tile::LOGITS; i++)
            s[i] = few_sees(at + i * 8, w.seen, end) ? s[i] : -INFINITY;
    }
    UNROLL
    for (int i = 0; i < tile::LOGITS; i++)
        most = fmaxf(most, s[i]);
    UNROLL
    for (int step = 4; step < WARP; step *= 2)
        most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, step));
    const float keep = two_to(a.max - most);
    a.total *= keep;
    a.max = most;
    UNROLL
    for (int i = 0; i < tile::LOGITS; i++) {
        s[i] = two_to(s[i] - most);
        a.total += s[i];
    }
    if (first || !__any_sync(ALL_LANES, keep != 1))
        return;
    UNROLL
    for (int i = 0; i < tile::BLOCKS * 16; i++)
        a.sum[i / 16][i / 4 % 4][i % 4] *= keep;
}

/* A matrix of 8 by 8 of 16 bits, of which lanes have two of row lane / 4 each, turned. */
static __device__ inline uint32_t matrix_turned(uint32_t x)
{
#ifdef __CUDACC__
    uint32_t y;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
    return y;
#else
    const int row = lane_index() / 4, from = lane_index() % 4 * 8 + row / 2;
    const uint32_t one = __shfl_sync(ALL_LANES, x, from), two = __shfl_sync(ALL_LANES, x, from + 4);
    return few_halves(one, two, row % 2 != 0);
#endif
}

/* Weights as they are multiplied, [parts][SIXTEENS * 2]: of an eight that is missing none. */
template <int WIDTH, few_form FORM> struct few_weights {
    uint32_t part[few_tile<WIDTH, FORM>::KEPT][few_tile<WIDTH, FORM>::SIXTEENS * 2];
};

/* Of four heads a lane's column is a part of one, as those of its query are. */
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN few_weights<WIDTH, FORM> four_weights_of(const float *s)
{
    typedef few_tile<WIDTH, FORM> tile;
    few_weights<WIDTH, FORM> weight = {};
    UNROLL
    for (int n = 0; n < tile::SIXTEENS; n++) {
        float low = s[2 * n] * few_up<FORM>(), high = s[2 * n + 1] * few_up<FORM>();
        const uint32_t one = take_part<2>(low, high), two = take_part<2>(low, high);
        weight.part[0][2 * n] = matrix_turned(few_halves(one, two, false));
        weight.part[0][2 * n + 1] = matrix_turned(few_halves(one, two, true));
    }
    return weight;
}

template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN few_weights<WIDTH, FORM> eight_weights_of(const float *s)
{
    typedef few_tile<WIDTH, FORM> tile;
    few_weights<WIDTH, FORM> weight = {};
    UNROLL
    for (int j = 0; j < tile::EIGHTS; j++) {
        float low = s[2 * j] * few_up<FORM>(), high = s[2 * j + 1] * few_up<FORM>();
        UNROLL
        for (int p = 0; p < tile::PARTS; p++)
            weight.part[p][j] = take_part<tile::PARTS>(low, high);
    }
    return weight;
}

/* Those of the form. */
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void few_logits(const few_query<WIDTH, FORM> &q, const bytes16 *key,
                                           float *s)
{
    if constexpr (FORM == FEW_FOUR)
        four_logits(q, key, s);
    else
        eight_logits(q, key, s);
}

template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void few_weigh(const few_attend &w, const few_query<WIDTH, FORM> &q,
                                          bool first, bool whole, int at, int end, float *s,
                                          few_sums<WIDTH> &a)
{
    if constexpr (FORM == FEW_FOUR)
        four_weigh(w, q, first, whole, at, end, s, a);
    else
        eight_weigh(w, q, first, whole, at, end, s, a);
}

template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN few_weights<WIDTH, FORM> few_weights_of(const float *s)
{
    if constexpr (FORM == FEW_FOUR)
        return four_weights_of<WIDTH, FORM>(s);
    else
        return eight_weights_of<WIDTH, FORM>(s);
}

/* Values times weights are added to the sums. */
template <int WIDTH, few_form FORM>
static __device__ SHAPE_FN void few_add(const bytes16 *value, const float *s, few_sums<WIDTH> &a)
{
    typedef few_tile<WIDTH, FORM> tile;
    const few_weights<WIDTH, FORM> weight = few_weights_of<WIDTH, FORM>(s);
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
        for (int e = 0; e < 4 * tile::KEPT; e++)
            flash_multiply<tile::PARTS>(a.sum[block][e % 4], turned[e % 4],
                                        weight.part[e / 4] + 2 * n);
    }
}

#endif
