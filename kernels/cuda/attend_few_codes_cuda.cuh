/* attend_few_codes_cuda.cuh - a tile of a cell whose full pages become q8 (page_form.h), those of tier 0 being f16: what
 * attend_few_cuda.cuh says of tiles, for `--kv q8` and `f16 last=N, q8 rest`.
 *
 * A tile is 32 positions of one page, in the tier in which the row sees it. Codes are whole numbers of 8 bits, exact as f16: they
 * are what is multiplied. A key's steps are those of its channels, the same for all tokens of a block: so the query is multiplied by
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
    return t;
}

/* Where a tile is: of codes the blocks of its keys and values, else its first rows. */
struct few_spot {
    const char *keys, *values;
    int tok; /* of the block */
    bool codes;
};

template <int WIDTH>
static __device__ SHAPE_FN few_spot few_spot_of(const few_attend &w, const few_tiers &t, int at)
{
    const kcell *c = w.k->cell;
    const int page_tok = (int)c->page_tok, entry = (int)((uint32_t)at / (uint32_t)page_tok);
    const int tok = at - entry * page_tok;
    few_spot s;
    s.codes = entry < t.young && entry >= c->pinned;
    int page = (s.codes ? t.pages : w.pages)[entry];
    if (page < 0 && !s.codes) { /* tier 0 has it no more */
        page = t.pages[entry];
        s.codes = true;
    }
    if (!s.codes) {
        s.keys = few_keys_at(w, page, at);
        s.values = s.keys + c->heads * page_tok * (WIDTH * 2);
        s.tok = 0;
        return s;
    }
    const int block_tok = page_tok < PAGE_BLOCK ? page_tok : (int)PAGE_BLOCK;
    const int block = (int)((uint32_t)tok / (uint32_t)block_tok);
    const int blocks = (int)((uint32_t)page_tok / (uint32_t)block_tok);
    const int key_bytes = WIDTH * (4 + block_tok);                 /* of a block */
    const int value_bytes = (WIDTH / PAGE_GROUP * 2 + WIDTH) * block_tok;
    const char *from = c->tier[1].base + page * c->tier[1].page_bytes;
    s.keys = from + (w.head * blocks + block) * key_bytes;
    s.values = from + c->heads * (blocks * key_bytes) + (w.head * blocks + block) * value_bytes;
    s.tok = tok - block * block_tok;
    return s;
}

static __device__ inline int few_block_tok(const few_attend &w)
{
    return w.k->cell->page_tok < PAGE_BLOCK ? (int)w.k->cell->page_tok : (int)PAGE_BLOCK;
}

/* ---- queries ---- */

/* The query heads of a unit in a warp's `room`, [heads][few_piece_floats]. */
template <int WIDTH> static __device__ SHAPE_FN void few_query_keep(const few_attend &w, float *room)
{
    const float *all = row_in(w.k, 0, w.row) + w.first_head * WIDTH;
    const int pitch = (int)few_piece_floats(WIDTH), n = w.heads * WIDTH;
    __syncwarp(); /* what was there has been read */
    if (at_16(all)) {
        UNROLLED(4)
        for (int i = lane_index() * 4; i < n; i += WARP * 4)
            *(bytes16 *)(room + i / WIDTH * pitch + i % WIDTH) = *(const bytes16 *)(all + i);
    } else {
        UNROLLED(1)
        for (int i = lane_index(); i < n; i += WARP)
            room[i / WIDTH * pitch + i % WIDTH] = all[i];
    }
    __syncwarp();
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

/* A query by how much logits are multiplied, and what is added to them. */
template <int WIDTH> struct few_scaled {
    few_query<WIDTH, FEW_CODES> q;
    float inverse, more;
};

/* The query of a block: from its room, with steps and middles from theirs. */
template <int WIDTH>
static __device__ SHAPE_FN void few_query_scale(const few_attend &w, const float *room,
                                                const float *scales, few_scaled<WIDTH> &q)
{
    typedef few_tile<WIDTH, FEW_CODES> tile;
    const int head = lane_index() / 4;
    float x[tile::CHUNKS * 8], most = 0, more = 0;
    const bytes16 *step = (const bytes16 *)scales + lane_index() % 4;
    room += head * (int)few_piece_floats(WIDTH) + lane_index() % 4 * 8;
    UNROLL
    for (int i = 0; i < tile::CHUNKS; i++) {
        const bytes16 by = step[i * 4], middle = step[(tile::CHUNKS + i) * 4];
        bytes16 eight[2] = {};
        if (head < w.heads) {
            eight[0] = *(const bytes16 *)(room + i * 32);
            eight[1] = *(const bytes16 *)(room + i * 32 + 4);
        }
        UNROLL
        for (int e = 0; e < 8; e++) {
            const float one = float_of(eight[e / 4].w[e % 4]);
            more = mad(one, few_half(middle, e), more);
            x[i * 8 + e] = one * few_half(by, e);
            most = fmaxf(most, fabsf(x[i * 8 + e]));
        }
    }
    UNROLL
    for (int to = 1; to < 4; to *= 2) {
        most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, to));
        more += __shfl_xor_sync(ALL_LANES, more, to);
    }
    const float up = power_for(most, &q.inverse);
    q.more = more;
    UNROLL
    for (int i = 0; i < tile::CHUNKS * 4; i++) {
        float low = x[2 * i] * up, high = x[2 * i + 1] * up;
        UNROLL
        for (int p = 0; p < tile::PARTS; p++)
            q.q.part[p][i] = take_part<tile::PARTS>(low, high);
    }
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

/* Codes of keys, [QUADS]. */
template <int WIDTH>
static __device__ SHAPE_FN void few_code_keys(const few_attend &w, const few_spot &s, bytes16 *to)
{
    const int quad = few_block_tok(w) * 4; /* bytes */
    const char *from = few_place(s.keys + WIDTH * 4 + lane_index() % 4 * 2 * quad +
                                 (s.tok + lane_index() / 4 * 4) * 4);
    UNROLL
    for (int i = 0; i < few_codes<WIDTH>::QUADS; i++)
        to[i] = *(const bytes16 *)(from + (i / 2 * 8 + i % 2) * quad);
}

/* Codes of values, [VALUES], and the steps of the lane's positions, [BLOCKS]. */
template <int WIDTH>
static __device__ SHAPE_FN void few_code_values(const few_attend &w, const few_spot &s, bytes16 *to,
                                                bytes16 *step)
{
    enum { BLOCKS = WIDTH / 64 };
    const int block_tok = few_block_tok(w), first = s.tok + lane_index() % 4 * 8;
    const char *from = few_place(s.values + BLOCKS * 2 * block_tok + first * WIDTH +
                                 lane_index() / 4 * 32);
    UNROLL
    for (int i = 0; i < BLOCKS; i++)
        step[i] = *(const bytes16 *)(s.values + (i * block_tok + first) * 2);
    UNROLL
    for (int i = 0; i < few_codes<WIDTH>::VALUES; i++)
        to[i] = *(const bytes16 *)(from + i / 4 * 256 + i / 2 % 2 * (WIDTH * 4) + i % 2 * 16);
}

/* ---- products ---- */

/* Logits of the lane's query head: number 2 * e + r is position 4 * r + e of its eight. */
template <int WIDTH, bool CODES>
static __device__ SHAPE_FN void few_codes_logits(const few_scaled<WIDTH> &x, const few_spot &spot,
                                                 const bytes16 *codes, float *s)
{
    typedef few_tile<WIDTH, FEW_CODES> tile;
    const few_query<WIDTH, FEW_CODES> &q = x.q;
    float c[tile::EIGHTS][4] = {};
    const char *rows = spot.keys + lane_index() / 4 * (4 * WIDTH * 2) + lane_index() % 4 * 16;
    UNROLL
    for (int i = 0; i < tile::CHUNKS * 2; i++) {
        const uint32_t a[4] = {q.part[0][2 * i], q.part[1][2 * i], q.part[0][2 * i + 1],
                               q.part[1][2 * i + 1]};
        UNROLL
        for (int e = 0; e < tile::EIGHTS; e++) {
            if (CODES) {
                uint32_t b[2];
                few_numbers(codes[i].w[e], b);
                multiply_f16(c[e], a, b);
            } else {
                const bytes16 b = *(const bytes16 *)(rows + e * (WIDTH * 2) + i / 2 * 64);
                multiply_f16(c[e], a, b.w + i % 2 * 2);
            }
        }
    }
    UNROLL
    for (int e = 0; e < tile::EIGHTS; e++) {
        s[2 * e] = mad(c[e][0] + c[e][2], x.inverse, x.more);
        s[2 * e + 1] = mad(c[e][1] + c[e][3], x.inverse, x.more);
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
static __device__ SHAPE_FN void few_half_values(const few_attend &w, const few_spot &spot, bool whole,
                                                int at, int end, int block, int four, bytes16 *to)
{
    const int first = lane_index() % 4 * 8 + four * 4;
    const char *from = spot.values + first * (WIDTH * 2) + lane_index() / 4 * 16 + block * 128;
    UNROLL
    for (int r = 0; r < 4; r++) {
        to[r] = *(const bytes16 *)(from + r * (WIDTH * 2));
        if (!whole && !few_sees(at + first + r, w.seen, end))
            to[r] = bytes16{};
    }
}

/* Values times weights are added to the sums. */
template <int WIDTH, bool CODES>
static __device__ SHAPE_FN void few_codes_add(const few_attend &w, const few_spot &spot, bool whole,
                                              int at, int end, const bytes16 *value,
                                              const bytes16 *step, const float *s,
                                              few_sums<WIDTH> &a)
{
    UNROLL
    for (int block = 0; block < WIDTH / 64; block++) {
        const few_steps weight = few_steps_of(step[block], s);
        float c[4][4] = {};
        UNROLL
        for (int four = 0; four < 2; four++) {
            bytes16 half[4] FEW_NONE;
            if (!CODES)
                few_half_values<WIDTH>(w, spot, whole, at, end, block, four, half);
            UNROLL
            for (int e = 0; e < 4; e++) { /* two columns each */
                uint32_t turned[4];
                if (CODES) {
                    const bytes16 &of = value[block * 4 + four * 2 + e / 2];
                    uint32_t one[2], two[2];
                    few_numbers(of.w[e % 2 * 2], one);
                    few_numbers(of.w[e % 2 * 2 + 1], two);
                    turned[0] = one[0];
                    turned[1] = two[0];
                    turned[2] = one[1];
                    turned[3] = two[1];
                } else {
                    UNROLL
                    for (int r = 0; r < 4; r++)
                        turned[r] = few_halves(half[r / 2 * 2].w[e], half[r / 2 * 2 + 1].w[e],
                                               r % 2 != 0);
                }
                UNROLL
                for (int p = 0; p < 2; p++)
                    multiply_f16(c[e], turned, weight.part[four][p]);
            }
        }
        UNROLL
        for (int e = 0; e < 16; e++)
            a.sum[block][e / 4][e % 4] = mad(c[e / 4][e % 4], weight.inverse, a.sum[block][e / 4][e % 4]);
    }
}

#endif
