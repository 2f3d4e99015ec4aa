/* attend_few_codes_cuda.cuh - a tile of a cell whose full pages become q8 or q4 (page_form.h), those of tier 0 being f16: what
 * attend_few_cuda.cuh says of tiles, for `--kv q8`, `f16 last=N, q4 rest` and so on.
 *
 * A tile is 32 positions of one page, in the tier in which the row sees it. Codes are whole numbers of 8 bits, which nibbles of q4 are
 * made first, exact as f16: they are what is multiplied. A key's steps are those of its channels, the same for all tokens of a block: so the query is multiplied by
 * them, then scaled and split as elsewhere, and what the middles add to a logit is one number for the block. A value's steps are
 * those of its tokens: so weights are multiplied by them, scaled by a power of two for each tile and 64 columns, and split. Nothing
 * is rounded by more than f32 sums are. Four channels of a key lie side by side, and four tokens of a value: both are what a
 * lane has of an operand, so nothing is turned either. Pages of f16 go the same way with steps of 1 and middles of 0.
 *
 * Lane 4 * g + t has of keys positions 4 * g to 4 * g + 3 and a part of the columns; of logits, for query head g, and of
 * values, positions 8 * t to 8 * t + 7; of values columns from 8 * g on of each 64. */
#ifndef WEFT_KERNELS_CUDA_ATTEND_FEW_CODES_CUDA_CUH
#define WEFT_KERNELS_CUDA_ATTEND_FEW_CODES_CUDA_CUH

#include "kernels/cuda/attend_few_tile_cuda.cuh"

/* Numbers of a tile of codes. */
template <int WIDTH> struct few_codes {
    typedef few_tile<WIDTH, FEW_CODES> tile;
    enum {
        QUADS = tile::CHUNKS * 2, /* of channels, of a lane: 16 bytes of four positions each */
        VALUES = tile::BLOCKS * 4 /* 16 bytes of four columns by four positions, of a lane */
    };
};

/* In which tier a row sees the pages of its sequence. */
struct few_tiers {
    const int32_t *pages; /* of the tier of codes */
    int young;            /* the first entry that is not old enough for it */
    bool key_nibbles, value_nibbles;
};

static __device__ SHAPE_FN few_tiers few_tiers_of(const few_attend &w)
{
    const kbatch *b = w.k->batch;
    const kcell *c = w.k->cell;
    const int64_t rows = w.k->size.attend.rows, n_seq = is_one_row(w.k) ? 1 : b->n_seq;
    const int old = w.pos + 1 - b->data[KBATCH_PARTS * rows + c->table];
    few_tiers t;
    t.pages = w.pages + n_seq * (KBATCH_RANGE + b->n_page);
    t.young = old > 0 ? (int)((uint32_t)old / (uint32_t)c->page_tok) : 0;
    t.key_nibbles = form_is_nibbles(c->tier[1].key);
    t.value_nibbles = form_is_nibbles(c->tier[1].value);
    return t;
}

/* Tokens of a block: 32 or 64. */
static __device__ inline int few_block_tok(const few_attend &w)
{
    return w.k->cell->page_tok < PAGE_BLOCK ? (int)w.k->cell->page_tok : (int)PAGE_BLOCK;
}

/* Where a tile is: of codes the blocks of its keys and values, else its first rows. */
struct few_spot {
    const char *keys;
    int values; /* from there on */
    bool codes;
};

template <int WIDTH>
static __device__ SHAPE_FN few_spot few_spot_of(const few_attend &w, const few_tiers &t, int at)
{
    const kcell *c = w.k->cell;
    const int page_tok = (int)c->page_tok, entry = (int)((uint32_t)at / (uint32_t)page_tok);
    few_spot s;
    s.codes = entry < t.young && entry >= c->pinned;
    int page = (s.codes ? t.pages : w.pages)[entry];
    if (page < 0 && !s.codes) { /* tier 0 has it no more */
        page = t.pages[entry];
        s.codes = true;
    }
    if (!s.codes) {
        s.keys = few_keys_at(w, page, at);
        s.values = (int)c->heads * page_tok * (WIDTH * 2);
        return s;
    }
    const int block_tok = few_block_tok(w);
    const int blocks = (int)((uint32_t)page_tok / (uint32_t)block_tok); /* of a head */
    const int block =
        w.head * blocks + (int)((uint32_t)(at - entry * page_tok) / (uint32_t)block_tok);
    const int key_bytes = WIDTH * 4 + code_bytes(c->tier[1].key, WIDTH * block_tok);
    const int value_bytes =
        WIDTH / PAGE_GROUP * 2 * block_tok + code_bytes(c->tier[1].value, WIDTH * block_tok);
    s.keys = c->tier[1].base + page * c->tier[1].page_bytes + block * key_bytes;
    s.values = ((int)c->heads * blocks - block) * key_bytes + block * value_bytes;
    return s;
}

/* The token of its block that a tile begins with. */
static __device__ inline int few_first_tok(const few_attend &w, int at)
{
    return at & (few_block_tok(w) - 1);
}

/* ---- queries ---- */

/* The query heads of a unit in a block's `room`, [heads][few_piece_floats]. */
template <int WIDTH>
static __device__ SHAPE_FN void few_query_keep(const few_attend &w, float *room)
{
    const float *all = row_in(w.k, 0, w.row) + w.first_head * WIDTH;
    const int pitch = (int)few_piece_floats(WIDTH), n = w.heads * WIDTH;
    if (at_16(all)) {
        UNROLLED(1)
        for (int i = (int)threadIdx.x * 4; i < n; i += (int)block_threads() * 4)
            *(bytes16 *)(room + i / WIDTH * pitch + i % WIDTH) = *(const bytes16 *)(all + i);
    } else {
        UNROLLED(1)
        for (int i = (int)threadIdx.x; i < n; i += (int)block_threads())
            room[i / WIDTH * pitch + i % WIDTH] = all[i];
    }
    block_sync();
}

/* Steps and middles of a block's keys, on their way to a warp's room: 16 bytes of a lane at a time. */
template <int WIDTH> struct few_scale {
    enum { PIECES = WIDTH / 4, LOADS = (PIECES + WARP - 1) / WARP };
    bytes16 part[LOADS];
};

template <int WIDTH>
static __device__ SHAPE_FN void few_scale_load(const few_spot &s, few_scale<WIDTH> &to)
{
    typedef few_scale<WIDTH> scale;
    const uint32_t one = 0x3c003c00u;
    const char *from = few_place(s.keys + lane_index() * 16);
    UNROLL
    for (int i = 0; i < scale::LOADS; i++) {
        const int piece = lane_index() + i * WARP;
        to.part[i] = piece < scale::PIECES / 2 ? bytes16{{one, one, one, one}} : bytes16{};
        if (s.codes && piece < scale::PIECES)
            to.part[i] = *(const bytes16 *)(from + i * (WARP * 16));
    }
}

template <int WIDTH>
static __device__ SHAPE_FN void few_scale_put(const few_scale<WIDTH> &from, float *room)
{
    typedef few_scale<WIDTH> scale;
    __syncwarp(); /* what was there has been read */
    UNROLL
    for (int i = 0; i < scale::LOADS; i++)
        if (lane_index() + i * WARP < scale::PIECES)
            ((bytes16 *)room)[lane_index() + i * WARP] = from.part[i];
    __syncwarp();
}

static __device__ inline float few_half(const bytes16 &x, int i)
{
    return from_f16((uint16_t)(x.w[i / 2] >> 16 * (i % 2)));
}

/* A query as it is multiplied, which lies in a warp's room: where a lane has sixteen columns of its head, both parts. Eight lanes
 * that load at once have different banks. */
template <int WIDTH> static __device__ inline bytes16 *few_query_part(float *room, int i)
{
    const int head = lane_index() / 4, t = lane_index() % 4;
    return (bytes16 *)(room + head * WIDTH) + ((i * 4 + t) ^ (head & 1) << 2);
}

/* By what its logits are multiplied, and what is added to them. */
struct few_scaled {
    float inverse, more;
};

/* The query of a block of codes: from `queries`, with steps and middles from `scales`, to `room`. A lane reads what it wrote. */
template <int WIDTH>
static __device__ SHAPE_FN few_scaled few_query_scale(const few_attend &w, const float *queries,
                                                      const float *scales, float *room)
{
    enum { CHUNKS = few_tile<WIDTH, FEW_CODES>::CHUNKS };
    const bool there = lane_index() / 4 < w.heads;
    const bytes16 *step = (const bytes16 *)scales + lane_index() % 4;
    few_scaled q = {};
    float most = 0;
    queries += lane_index() / 4 * (int)few_piece_floats(WIDTH) + lane_index() % 4 * 8;
    UNROLLED(2)
    for (int i = 0; i < CHUNKS * 2 && there; i++) {
        const bytes16 by = step[i / 2 * 4], middle = step[(CHUNKS + i / 2) * 4];
        const bytes16 four = *(const bytes16 *)(queries + i / 2 * 32 + i % 2 * 4);
        bytes16 x;
        UNROLL
        for (int e = 0; e < 4; e++) {
            const float one = float_of(four.w[e]), scaled = one * few_half(by, i % 2 * 4 + e);
            q.more = mad(one, few_half(middle, i % 2 * 4 + e), q.more);
            most = fmaxf(most, fabsf(scaled));
            x.w[e] = bits_of(scaled);
        }
        *few_query_part<WIDTH>(room, i) = x;
    }
    UNROLL
    for (int to = 1; to < 4; to *= 2) {
        most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, to));
        q.more += __shfl_xor_sync(ALL_LANES, q.more, to);
    }
    const float up = power_for(most, &q.inverse);
    UNROLLED(2)
    for (int i = 0; i < CHUNKS * 2 && there; i++) {
        bytes16 *at = few_query_part<WIDTH>(room, i), x = *at;
        UNROLL
        for (int e = 0; e < 4; e += 2) {
            float low = float_of(x.w[e]) * up, high = float_of(x.w[e + 1]) * up;
            x.w[e] = take_part<2>(low, high);
            x.w[e + 1] = take_part<2>(low, high);
        }
        *at = x;
    }
    return q;
}

/* ---- codes ---- */

/* Four codes as f16: a byte is the lower half of a number from 1024 on. */
static __device__ inline void few_numbers(uint32_t four, uint32_t *to)
{
#ifdef __CUDACC__
    const uint32_t most = 0x64646464u, middle = 0x64806480u; /* 1024 + PAGE_OFFSET */
    asm("sub.f16x2 %0, %1, %2;" : "=r"(to[0]) : "r"(__byte_perm(four, most, 0x4140)), "r"(middle));
    asm("sub.f16x2 %0, %1, %2;" : "=r"(to[1]) : "r"(__byte_perm(four, most, 0x4342)), "r"(middle));
#else
    for (int i = 0; i < 2; i++)
        to[i] = f16_pair((float)(int)(four >> 16 * i & 255) - PAGE_OFFSET,
                         (float)(int)(four >> (16 * i + 8) & 255) - PAGE_OFFSET);
#endif
}

/* Codes of keys, [QUADS]; of nibbles each second one, which has the next one too. */
template <int WIDTH>
static __device__ SHAPE_FN void few_code_keys(const few_attend &w, const few_spot &s, bool nibbles,
                                              int at, bytes16 *to)
{
    const int quad = few_block_tok(w) * 4, each = nibbles ? quad : 2 * quad; /* bytes */
    const char *from = few_place(s.keys + WIDTH * 4 + lane_index() % 4 * each +
                                 (few_first_tok(w, at) + lane_index() / 4 * 4) * 4);
    UNROLL
    for (int i = 0; i < few_codes<WIDTH>::QUADS; i++)
        if (i % 2 == 0 || !nibbles)
            to[i] = *(const bytes16 *)(from + i / 2 * 4 * each + i % 2 * quad);
}

/* Codes of values, [VALUES], and the steps of the lane's positions, [BLOCKS]. Of nibbles the first two of four have the others too. */
template <int WIDTH>
static __device__ SHAPE_FN void few_code_values(const few_attend &w, const few_spot &s,
                                                bool nibbles, int at, bytes16 *to, bytes16 *step)
{
    enum { BLOCKS = WIDTH / 64 };
    const int block_tok = few_block_tok(w);
    const int first = few_first_tok(w, at) + lane_index() % 4 * 8;
    const char *steps = few_place(s.keys + s.values + first * 2);
    const char *from = few_place(s.keys + s.values + BLOCKS * 2 * block_tok +
                                 (nibbles ? first / 2 : first) * WIDTH + lane_index() / 4 * 32);
    UNROLL
    for (int i = 0; i < BLOCKS; i++)
        step[i] = *(const bytes16 *)(steps + i * block_tok * 2);
    UNROLL
    for (int i = 0; i < few_codes<WIDTH>::VALUES; i++)
        if (i / 2 % 2 == 0 || !nibbles)
            to[i] = *(const bytes16 *)(from + i / 4 * 256 + i / 2 % 2 * (WIDTH * 4) + i % 2 * 16);
}

/* ---- products ---- */

/* Logits of the lane's query head from codes: number 2 * e + r is position 4 * r + e of its eight. */
template <int WIDTH>
static __device__ SHAPE_FN void few_code_logits(const few_attend &w, const few_scaled &q,
                                                float *room, bool nibbles, const bytes16 *codes,
                                                float *s)
{
    typedef few_tile<WIDTH, FEW_CODES> tile;
    float c[tile::EIGHTS][4] = {};
    UNROLL
    for (int i = 0; i < tile::CHUNKS * 2; i++) {
        bytes16 a = {};
        if (lane_index() / 4 < w.heads)
            a = *few_query_part<WIDTH>(room, i);
        UNROLL
        for (int e = 0; e < tile::EIGHTS; e++) {
            uint32_t b[2], four = codes[i].w[e];
            if (nibbles)
                four = nibble_codes(codes[i / 2 * 2].w[e], i % 2 != 0);
            few_numbers(four, b);
            multiply_f16(c[e], a.w, b);
        }
    }
    UNROLL
    for (int e = 0; e < tile::EIGHTS; e++) {
        s[2 * e] = mad(c[e][0] + c[e][2], q.inverse, q.more);
        s[2 * e + 1] = mad(c[e][1] + c[e][3], q.inverse, q.more);
    }
}

/* The same from f16. Seldom run: little code and few registers. */
template <int WIDTH>
static __device__ SHAPE_FN void few_half_logits(const few_attend &w, const few_scaled &q,
                                                float *room, const few_spot &spot, float *s)
{
    typedef few_tile<WIDTH, FEW_CODES> tile;
    const char *row =
        few_place(spot.keys + lane_index() / 4 * (4 * WIDTH * 2) + lane_index() % 4 * 16);
    UNROLLED(1)
    for (int e = 0; e < tile::EIGHTS; e++) {
        float c[4] = {};
        UNROLLED(2)
        for (int i = 0; i < tile::CHUNKS; i++) {
            const bytes16 b = *(const bytes16 *)(row + e * (WIDTH * 2) + i * 64);
            bytes16 a[2] = {};
            if (lane_index() / 4 < w.heads) {
                a[0] = *few_query_part<WIDTH>(room, 2 * i);
                a[1] = *few_query_part<WIDTH>(room, 2 * i + 1);
            }
            multiply_f16(c, a[0].w, b.w);
            multiply_f16(c, a[1].w, b.w + 2);
        }
        UNROLL
        for (int j = 0; j < tile::EIGHTS; j++) {
            s[2 * j] = j == e ? mad(c[0] + c[2], q.inverse, q.more) : s[2 * j];
            s[2 * j + 1] = j == e ? mad(c[1] + c[3], q.inverse, q.more) : s[2 * j + 1];
        }
    }
}

/* Weights of a tile for 64 columns, as they are multiplied: of positions 8 * t on, and of four more. */
struct few_steps {
    uint32_t part[2][2][2]; /* [four][part] */
    float inverse;
};

static __device__ SHAPE_FN few_steps few_steps_of(const bytes16 &step, const float *s)
{
    few_steps to;
    float most = 0;
    UNROLL
    for (int i = 0; i < 8; i++)
        most = fmaxf(most, few_half(step, i));
    UNROLL
    for (int by = 1; by < 4; by *= 2)
        most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, by));
    const float up = power_for(most, &to.inverse);
    UNROLL
    for (int i = 0; i < 4; i++) { /* positions 2 * i and the next */
        const int at = i % 2 * 4 + i / 2;
        float low = s[at] * (few_half(step, 2 * i) * up);
        float high = s[at + 2] * (few_half(step, 2 * i + 1) * up);
        UNROLL
        for (int p = 0; p < 2; p++)
            to.part[i / 2][p][i % 2] = take_part<2>(low, high);
    }
    return to;
}

/* What a tile adds to a sum, of which it was made `inverse` times less. */
static __device__ inline void few_sum(const float *c, float inverse, float *sum)
{
    UNROLL
    for (int i = 0; i < 4; i++)
        sum[i] = mad(c[i], inverse, sum[i]);
}

/* Steps of positions that the row does not see become 0. */
template <int WIDTH>
static __device__ SHAPE_FN void few_steps_hide(const few_attend &w, int at, int end, bytes16 *step)
{
    at += lane_index() % 4 * 8;
    UNROLL
    for (int i = 0; i < WIDTH / 64 * 4; i++) {
        const uint32_t low = few_sees(at + i % 4 * 2, w.seen, end) ? 0xffffu : 0;
        const uint32_t high = few_sees(at + i % 4 * 2 + 1, w.seen, end) ? 0xffff0000u : 0;
        step[i / 4].w[i % 4] &= low | high;
    }
}

/* Values of f16: columns 8 * g and on of 64, of four positions, of which those that the row does not see are zeros. */
template <int WIDTH>
static __device__ SHAPE_FN void few_half_values(const few_attend &w, const few_spot &spot,
                                                bool whole, int at, int end, int block, int four,
                                                bytes16 *to)
{
    const int first = lane_index() % 4 * 8 + four * 4;
    const char *from = few_place(spot.keys + spot.values + first * (WIDTH * 2) +
                                 lane_index() / 4 * 16 + block * 128);
    UNROLL
    for (int r = 0; r < 4; r++) {
        to[r] = *(const bytes16 *)(from + r * (WIDTH * 2));
        if (!whole && !few_sees(at + first + r, w.seen, end))
            to[r] = bytes16{};
    }
}

/* Columns 8 * g + 2 * e and the next of 64, of the lane's first or last four positions, as they are multiplied. */
static __device__ inline void few_code_columns(const bytes16 *value, bool nibbles, int four, int e,
                                               uint32_t *to)
{
    const bytes16 &x = value[(nibbles ? 0 : four * 2) + e / 2];
    uint32_t one[2], two[2], a = x.w[e % 2 * 2], b = x.w[e % 2 * 2 + 1];
    if (nibbles) {
        a = nibble_codes(a, four != 0);
        b = nibble_codes(b, four != 0);
    }
    few_numbers(a, one);
    few_numbers(b, two);
    to[0] = one[0];
    to[1] = two[0];
    to[2] = one[1];
    to[3] = two[1];
}

static __device__ inline void few_half_columns(const bytes16 *value, int e, uint32_t *to)
{
    UNROLL
    for (int i = 0; i < 4; i++)
        to[i] = few_halves(value[i / 2 * 2].w[e], value[i / 2 * 2 + 1].w[e], i % 2 != 0);
}

/* Values times weights are added to the sums: of codes, */
template <int WIDTH>
static __device__ SHAPE_FN void few_codes_add(const bytes16 *value, bool nibbles,
                                              const bytes16 *step, const float *s,
                                              few_sums<WIDTH> &a)
{
    UNROLL
    for (int block = 0; block < WIDTH / 64; block++) {
        const few_steps weight = few_steps_of(step[block], s);
        UNROLL
        for (int e = 0; e < 4; e++) {
            float c[4] = {};
            UNROLL
            for (int i = 0; i < 4; i++) { /* parts of four positions, and of four more */
                uint32_t columns[4];
                few_code_columns(value + block * 4, nibbles, i / 2, e, columns);
                multiply_f16(c, columns, weight.part[i / 2][i % 2]);
            }
            few_sum(c, weight.inverse, a.sum[block][e]);
        }
    }
}

/* and of f16, of tile `at`. */
template <int WIDTH>
static __device__ SHAPE_FN void few_halves_add(const few_attend &w, const few_spot &spot,
                                               bool whole, int at, int end, const bytes16 *step,
                                               const float *s, few_sums<WIDTH> &a)
{
    UNROLL
    for (int block = 0; block < WIDTH / 64; block++) {
        const few_steps weight = few_steps_of(step[block], s);
        float c[4][4] = {};
        UNROLLED(1)
        for (int four = 0; four < 2; four++) {
            bytes16 value[4];
            few_half_values<WIDTH>(w, spot, whole, at, end, block, four, value);
            UNROLL
            for (int e = 0; e < 8; e++) {
                const uint32_t *one = weight.part[0][e / 4], *two = weight.part[1][e / 4];
                const uint32_t by[2] = {four ? two[0] : one[0], four ? two[1] : one[1]};
                uint32_t columns[4];
                few_half_columns(value, e % 4, columns);
                multiply_f16(c[e % 4], columns, by);
            }
        }
        UNROLL
        for (int e = 0; e < 4; e++)
            few_sum(c[e], weight.inverse, a.sum[block][e]);
    }
}

#endif
