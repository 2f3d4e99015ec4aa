/* tile_codes_cuda.cuh - tiles of a cell whose full pages are codes, q8 or q4, and the others f16 (`--kv q8`, `f16 last=N, q4 rest`), for
 * attend_tiles_cuda.cuh: page_form.h says how codes lie. Those of q4 become codes of q8 when they are needed.
 *
 * The warps that fill decode: a number, of up to 19 bits, is the sum of two f16, or where the plan rounds one. Those of pages
 * that are f16 have nothing in the second. Of two parts by two the product of the second ones is left out.
 *
 * Rows of a unit may see a page in different tiers: those before some position as f16, the others as codes. Such pages are few,
 * as a unit has few rows, and they come twice: in the tiles of all positions as codes, and again in some more at the end as f16.
 * Each row sees them in one of the two.
 *
 * A warp has 16 positions of a tile, which are all of one page and one block. A lane has eight columns of four of them, of each 64
 * columns: what it loads is asked for before the tile is free. */
#ifndef WEFT_KERNELS_CUDA_TILE_CODES_CUDA_CUH
#define WEFT_KERNELS_CUDA_TILE_CODES_CUDA_CUH

#include "kernels/cuda/tile_units_cuda.cuh"

/* Sizes as tile_kind has them. */
template <int WIDTH_, int PARTS_> struct code_kind {
    enum {
        CODES = true,
        WIDTH = WIDTH_,
        PARTS = PARTS_,
        STORED = PARTS_,
        F16 = true,
        KEYS = 64,
        LINES = KEYS * STORED,
        STAGES = WIDTH <= 64 || PARTS < 2 ? 4 : 2,
        QUERY_BYTES = FLASH_QUERIES * WIDTH * 2,
        TILE_BYTES = LINES * WIDTH * 2
    };
    static_assert(PARTS * QUERY_BYTES + STAGES * 2 * TILE_BYTES + FLASH_TILES_ALIGN <=
                      FLASH_TILES_BYTES,
                  "a block has no more");
};

enum { CODE_LINES = 16, CODE_FOUR = 4 }; /* of a warp; of a lane */
static_assert(CODE_LINES * TILE_FILLING == 64, "code_kind.KEYS");

/* Can pages be loaded 16 bytes at a time? */
static __device__ inline bool codes_copy(const kcell *c)
{
    return pages_copy(c) && at_16(c->tier[1].base) && c->tier[1].page_bytes % 16 == 0;
}

/* ---- which tier ---- */

/* From where on a row at `pos` sees pages as f16: those before are codes, but for pinned ones. */
static __device__ SHAPE_FN int codes_edge(const kargs *k, int pos)
{
    const kcell *c = k->cell;
    const int old = pos + 1 - kbatch_last(k->batch, c->table), tok = (int)c->page_tok;
    const int young = old > 0 ? (int)((uint32_t)old / (uint32_t)tok) : 0;
    return (young > c->pinned ? young : (int)c->pinned) * tok;
}

/* Those of a walk's rows, the least and the most. */
static __device__ SHAPE_FN void codes_begin(unit_walk *u)
{
    if (lane_index() == 0) {
        u->w.edge = codes_edge(u->w.k, u->w.pos[0]);
        u->w.edge_end = codes_edge(u->w.k, u->w.pos[u->w.rows - 1]);
    }
    __syncwarp();
}

/* The tiles of some rows: [begin, end] of all positions, then `more` of those that are seen in either tier. */
struct code_tiles {
    int begin, end, again, more; /* again: the first of these */
};

template <int KEYS> static __device__ SHAPE_FN code_tiles code_tiles_of(const flash_work &w)
{
    const int from = w.edge > w.first ? w.edge : w.first, again = from / KEYS;
    const int more = from < w.edge_end ? (w.edge_end - 1) / KEYS - again + 1 : 0;
    return code_tiles{w.first / KEYS, w.last / KEYS, again, more};
}

static __device__ inline bool code_tile_is_again(const code_tiles &t, int i)
{
    return i > t.end;
}

static __device__ inline int code_tile_at(const code_tiles &t, int i)
{
    return i > t.end ? t.again + (i - t.end - 1) : i;
}

/* Does a tile have positions that rows see in different tiers? */
template <int KEYS>
static __device__ inline bool tile_is_mixed(const flash_work &w, int tile, bool again)
{
    return again || (tile * KEYS < w.edge_end && (tile + 1) * KEYS > w.edge);
}

/* What a row does not see of such a tile, or not in this tier. */
template <int KEYS>
static __device__ inline void codes_hide(const flash_work &w, const flash_strip &s, int tile,
                                         bool again, float (*p)[4])
{
    const int first = tile * KEYS + lane_index() % 4 * 2, end = w.edge_end;
    UNROLL
    for (int i = 0; i < KEYS / 8; i++)
        UNROLL
    for (int e = 0; e < 4; e++) {
        const int pos = first + i * 8 + e % 2;
        const bool half = pos >= s.edge[e / 2] && pos < end;
        if (pos < s.first[e / 2] || pos > s.last[e / 2] || half != again)
            p[i][e] = -INFINITY;
    }
}

/* ---- where positions are ---- */

/* Of a head, in page 0 of each tier. */
struct code_finder {
    const char *half, *code;
    int64_t half_page, code_page;  /* bytes */
    const int32_t *halves, *codes; /* pages */
    int half_values;               /* from a key to its value */
    int code_values;               /* from the head's first block of keys to that of values */
    int key_bytes, value_bytes;    /* of a block */
    bool key_nibbles, value_nibbles;
    int page_tok, block_tok, first, last, edge, edge_end, pinned;
};

template <int WIDTH> static __device__ SHAPE_FN code_finder code_finder_of(const flash_work &w)
{
    const kcell *c = w.k->cell;
    const kbatch *b = w.k->batch;
    const int tok = (int)c->page_tok, head = (int)w.head, heads = (int)c->heads;
    const int block_tok = tok < PAGE_BLOCK ? tok : (int)PAGE_BLOCK;
    const int blocks = (int)((uint32_t)tok / (uint32_t)block_tok);
    const kform key = c->tier[1].key, value = c->tier[1].value;
    code_finder f;
    f.key_nibbles = form_is_nibbles(key);
    f.value_nibbles = form_is_nibbles(value);
    f.key_bytes = WIDTH * 4 + code_bytes(key, WIDTH * block_tok);
    f.value_bytes = WIDTH / PAGE_GROUP * 2 * block_tok + code_bytes(value, WIDTH * block_tok);
    const int keys = blocks * f.key_bytes, values = blocks * f.value_bytes;
    f.half = c->tier[0].base + head * tok * (WIDTH * 2);
    f.code = c->tier[1].base + head * keys;
    f.half_page = c->tier[0].page_bytes;
    f.code_page = c->tier[1].page_bytes;
    f.halves = w.pages;
    f.codes = w.pages + b->n_seq * (KBATCH_RANGE + b->n_page); /* the next table */
    f.half_values = heads * tok * (WIDTH * 2);
    f.code_values = (heads - head) * keys + head * values;
    f.page_tok = tok;
    f.block_tok = block_tok;
    f.first = w.first;
    f.last = w.last;
    f.edge = w.edge;
    f.edge_end = w.edge_end;
    f.pinned = (int)c->pinned;
    return f;
}

/* Where the positions of a warp are, from `pos` on: of f16 the first row of keys and of values, of codes the blocks. */
struct code_spot {
    const char *keys, *values; /* NULL: nowhere, all of them are zeros */
    int pos, tok;              /* the first of them; and which it is of its block */
    bool codes;
};

/* Their page in each tier, asked for before it is known which is meant. */
struct code_entry {
    int pos, tok, half, code; /* tok: of the page; half, code: pages, below 0 where there is none */
    bool there, codes;
};

static __device__ SHAPE_FN code_entry code_entry_of(const code_finder &f, int tile, bool again)
{
    code_entry e = {};
    e.pos = tile * (CODE_LINES * TILE_FILLING) + warp_index() * CODE_LINES;
    e.there = e.pos + CODE_LINES > f.first && e.pos <= f.last &&
              (!again || (e.pos >= f.edge && e.pos < f.edge_end));
    const int entry = (int)((uint32_t)e.pos / (uint32_t)f.page_tok);
    e.tok = e.pos - entry * f.page_tok;
    e.codes = !again && e.pos < f.edge_end && entry >= f.pinned;
    if (e.there) {
        e.half = f.halves[entry];
        e.code = f.codes[entry];
    }
    return e;
}

template <int WIDTH>
static __device__ SHAPE_FN code_spot code_spot_of(const code_finder &f, const code_entry &e)
{
    code_spot s = {NULL, NULL, e.pos, 0, e.there && (e.codes || e.half < 0)};
    if (s.codes) { /* or tier 0 has it no more */
        const int block = (int)((uint32_t)e.tok / (uint32_t)f.block_tok);
        const char *at = f.code + e.code * f.code_page;
        s.tok = e.tok - block * f.block_tok;
        s.keys = at + block * f.key_bytes;
        s.values = at + f.code_values + block * f.value_bytes;
    } else if (e.there) {
        s.keys = f.half + e.half * f.half_page + e.tok * (WIDTH * 2);
        s.values = s.keys + f.half_values;
    }
    return s;
}

/* ---- loads ---- */

/* What a lane has of keys or of values: of each 64 columns, of codes two times 16 bytes of them, of nibbles of keys one time, and what
 * they are multiplied with (of keys steps and middles, of values the steps of four positions), of f16 eight columns of each position. */
template <int WIDTH> struct code_part {
    bytes16 of[WIDTH / 64][CODE_FOUR];
};

/* The eight columns of a lane among 64, and its four positions: stores of eight lanes are in different banks. */
static __device__ inline int code_piece(void)
{
    return lane_index() % 4 + lane_index() / 16 * 4;
}

static __device__ inline int code_four(void)
{
    return lane_index() / 4 % 4;
}

template <int WIDTH>
static __device__ SHAPE_FN void halves_load(const code_finder &f, const code_spot &s,
                                            const char *from, code_part<WIDTH> &to)
{
    const int four = code_four() * CODE_FOUR;
    from += four * (WIDTH * 2) + code_piece() * 16;
    UNROLL
    for (int n = 0; n < WIDTH / 64; n++)
        UNROLL
    for (int i = 0; i < CODE_FOUR; i++) {
        const int pos = s.pos + four + i;
        to.of[n][i] = bytes16{};
        if (s.keys && pos >= f.first && pos <= f.last)
            to.of[n][i] = *(const bytes16 *)(from + i * (WIDTH * 2) + n * 128);
    }
}

template <int WIDTH>
static __device__ SHAPE_FN void keys_load(const code_finder &f, const code_spot &s,
                                          code_part<WIDTH> &to)
{
    if (!s.codes) {
        halves_load<WIDTH>(f, s, s.keys, to);
        return;
    }
    const int quad = f.block_tok * 4, each = f.key_nibbles ? quad : 2 * quad; /* bytes */
    const char *scale = s.keys + code_piece() * 16;
    const char *from =
        s.keys + WIDTH * 4 + code_piece() * each + (s.tok + code_four() * CODE_FOUR) * 4;
    UNROLL
    for (int n = 0; n < WIDTH / 64; n++) {
        to.of[n][0] = *(const bytes16 *)(from + n * 8 * each);
        to.of[n][1] = *(const bytes16 *)(from + n * 8 * each + each - quad);
        to.of[n][2] = *(const bytes16 *)(scale + n * 128);
        to.of[n][3] = *(const bytes16 *)(scale + n * 128 + WIDTH * 2);
    }
}

template <int WIDTH>
static __device__ SHAPE_FN void values_load(const code_finder &f, const code_spot &s,
                                            code_part<WIDTH> &to)
{
    if (!s.codes) {
        halves_load<WIDTH>(f, s, s.values, to);
        return;
    }
    const int first = s.tok + code_four() * CODE_FOUR;
    const int codes = f.value_nibbles ? first / 8 * 4 * WIDTH : first * WIDTH;
    const char *steps = s.values + first * 2;
    const char *from = s.values + WIDTH / PAGE_GROUP * 2 * f.block_tok + codes + code_piece() * 32;
    UNROLL
    for (int n = 0; n < WIDTH / 64; n++) {
        const bytes8 step = *(const bytes8 *)(steps + n * 2 * f.block_tok);
        to.of[n][0] = *(const bytes16 *)(from + n * 256);
        to.of[n][1] = *(const bytes16 *)(from + n * 256 + 16);
        to.of[n][2] = bytes16{{step.w[0], step.w[1], 0, 0}};
        to.of[n][3] = bytes16{};
    }
}

/* ---- codes to numbers ---- */

/* Eight columns of a position: two f16, of which the second may not be asked for. */
struct code_numbers {
    bytes16 part[2];
};

/* Codes are whole numbers, exact as f16: a byte is the end of a number from 1024 on. A product is then two f16 exactly, but for
 * what is too small for f16; so is a sum of two f16, and what is missing of both together is rounded to f16 once more. */
#ifdef __CUDACC__
static __device__ inline uint32_t halves_add(uint32_t a, uint32_t b)
{
    uint32_t c;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
    return c;
}

static __device__ inline uint32_t halves_subtract(uint32_t a, uint32_t b)
{
    uint32_t c;
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
    return c;
}

static __device__ inline uint32_t halves_multiply(uint32_t a, uint32_t b)
{
    uint32_t c;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
    return c;
}

static __device__ inline uint32_t halves_mad(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t d;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

/* a * b - c */
static __device__ inline uint32_t halves_rest(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t d;
    asm("{\n.reg .b32 n;\nneg.f16x2 n, %3;\nfma.rn.f16x2 %0, %1, %2, n;\n}"
        : "=r"(d)
        : "r"(a), "r"(b), "r"(c));
    return d;
}
#else
/* Code i of four, as a float. */
static inline float code_float(uint32_t four, int i)
{
    return (float)((int)(four >> 8 * i & 255) - PAGE_OFFSET);
}
#endif

/* Codes 2 * i and the next of four channels, with their steps and middles. */
template <int PARTS>
static __device__ SHAPE_FN void code_sums(uint32_t four, int i, uint32_t step, uint32_t mid,
                                          uint32_t *high, uint32_t *low)
{
#ifdef __CUDACC__
    const uint32_t bytes = __byte_perm(four, 0x64646464u, i ? 0x4342u : 0x4140u);
    const uint32_t codes = halves_subtract(bytes, 0x64806480u);
    *low = 0;
    if (PARTS == 1) {
        *high = halves_mad(codes, step, mid);
        return;
    }
    const uint32_t product = halves_multiply(codes, step);
    const uint32_t sum = halves_add(product, mid), more = halves_subtract(sum, product);
    const uint32_t rest = halves_add(halves_subtract(product, halves_subtract(sum, more)),
                                     halves_subtract(mid, more));
    *low = halves_add(rest, halves_rest(codes, step, product));
    *high = sum;
#else
    const uint16_t steps[2] = {(uint16_t)step, (uint16_t)(step >> 16)};
    const uint16_t mids[2] = {(uint16_t)mid, (uint16_t)(mid >> 16)};
    float x = mad(from_f16(steps[0]), code_float(four, 2 * i), from_f16(mids[0]));
    float y = mad(from_f16(steps[1]), code_float(four, 2 * i + 1), from_f16(mids[1]));
    *high = take_part<2>(x, y);
    *low = f16_pair(x, y);
#endif
}

/* Of keys: position i of the lane's four. */
template <int PARTS> static __device__ SHAPE_FN code_numbers key_numbers(const bytes16 *of, int i)
{
    code_numbers to;
    UNROLL
    for (int e = 0; e < 4; e++) /* columns 2 * e and the next */
        code_sums<PARTS>(of[e / 2].w[i], e % 2, of[2].w[e], of[3].w[e], &to.part[0].w[e],
                         &to.part[1].w[e]);
    return to;
}

/* Codes i of two columns, times a step. */
static __device__ SHAPE_FN void code_products(uint32_t one, uint32_t two, int i, uint32_t steps,
                                              uint32_t *high, uint32_t *low)
{
#ifdef __CUDACC__
    const uint32_t bytes = __byte_perm(one, two, (uint32_t)(i | (4 + i) << 8));
    const uint32_t codes = halves_subtract((bytes & 0x00ff00ffu) | 0x64006400u, 0x64806480u);
    const uint32_t step = __byte_perm(steps, steps, i % 2 ? 0x3232u : 0x1010u);
    *high = halves_multiply(codes, step);
    *low = halves_rest(codes, step, *high);
#else
    const float step = from_f16((uint16_t)(steps >> 16 * (i % 2)));
    float x = step * code_float(one, i), y = step * code_float(two, i);
    *high = take_part<2>(x, y);
    *low = f16_pair(x, y);
#endif
}

/* The same of values. */
static __device__ SHAPE_FN code_numbers value_numbers(const bytes16 *of, int i)
{
    code_numbers to;
    UNROLL
    for (int e = 0; e < 4; e++)
        code_products(of[e / 2].w[e % 2 * 2], of[e / 2].w[e % 2 * 2 + 1], i, of[2].w[i / 2],
                      &to.part[0].w[e], &to.part[1].w[e]);
    return to;
}

/* Codes of q8 in the place of nibbles: channels 4 to 7 of a lane's are the upper ones, and so are the other four of eight positions. */
template <bool KEY> static __device__ SHAPE_FN void nibbles_open(bytes16 *of)
{
    const bool second = code_four() % 2 != 0;
    UNROLL
    for (int i = 0; i < 4; i++) {
        const uint32_t one = of[0].w[i], two = of[1].w[i];
        of[0].w[i] = nibble_codes(one, !KEY && second);
        of[1].w[i] = KEY ? nibble_codes(one, true) : nibble_codes(two, second);
    }
}

/* A warp's positions of a tile; what they come from may be changed. */
template <class K, bool KEY>
static __device__ SHAPE_FN void part_put(code_part<K::WIDTH> &from, bool codes, bool nibbles,
                                         char *to)
{
    const int four = code_four() * CODE_FOUR, piece = code_piece();
    IN_SHARED(to);
    UNROLL
    for (int n = 0; n < K::WIDTH / 64; n++) {
        if (codes && nibbles)
            nibbles_open<KEY>(from.of[n]);
        UNROLL
        for (int i = 0; i < CODE_FOUR; i++) {
            char *at = panel_at<K::LINES>(to, warp_index() * CODE_LINES + four + i, n * 8 + piece);
            code_numbers x = {{from.of[n][i], bytes16{}}};
            if (codes)
                x = KEY ? key_numbers<K::PARTS>(from.of[n], i) : value_numbers(from.of[n], i);
            UNROLL
            for (int part = 0; part < K::STORED; part++)
                *(bytes16 *)(at + part * (K::KEYS * MMA_LINE)) = x.part[part];
        }
    }
}

/* All tiles of some rows. */
template <class K> static __device__ SHAPE_FN void codes_fill(const flash_work &w, tile_ring &r)
{
    const code_finder f = code_finder_of<K::WIDTH>(w);
    const code_tiles tiles = code_tiles_of<K::KEYS>(w);
    const int end = tiles.end + tiles.more;
    code_part<K::WIDTH> keys, values;
    code_spot at = code_spot_of<K::WIDTH>(f, code_entry_of(f, tiles.begin, false));
    keys_load<K::WIDTH>(f, at, keys);
    UNROLLED(1)
    for (int t = tiles.begin; t <= end; t++) {
        const int next_t = t < end ? t + 1 : end;
        values_load<K::WIDTH>(f, at, values);
        const code_entry entry =
            code_entry_of(f, code_tile_at(tiles, next_t), code_tile_is_again(tiles, next_t));
        barrier_wait(&r.b->empty[0][r.slot], r.parity ^ 1);
        part_put<K, true>(keys, at.codes, f.key_nibbles, tile_keys<K>(w, r.slot));
        warp_done(&r.b->full[0][r.slot]);
        const code_spot next = code_spot_of<K::WIDTH>(f, entry);
        keys_load<K::WIDTH>(f, next, keys);
        barrier_wait(&r.b->empty[1][r.slot], r.parity ^ 1);
        part_put<K, false>(values, at.codes, f.value_nibbles, tile_values_at<K>(w, r.slot));
        warp_done(&r.b->full[1][r.slot]);
        at = next;
        tile_next<K::STAGES>(r);
    }
}

#endif
