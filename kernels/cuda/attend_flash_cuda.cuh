/* attend_flash_cuda.cuh - attention of many rows by matrix instructions, over pages of f16 or bf16; attend_cuda.cuh says what is
 * computed.
 *
 * A unit is up to FLASH_QUERIES queries: some rows, times the query heads that share a head of the cell. A warp has a strip of 16
 * of them. All walk along the positions in tiles that begin at multiples of their size; while one is multiplied, the next is
 * copied to shared memory. Logits are products of queries and keys, weights stay in registers and are multiplied with the values
 * from there; maximum and sum go along (online softmax).
 *
 * Keys and values are multiplied as they are stored. A query is scaled by a power of two and split, its f32 the sum of two f16
 * or three bf16, and so is a weight: nothing is rounded by more than f32 sums are.
 *
 * What a row does not see has weight 0. Times what is no number that is none: where a result is not finite, or pages do not lie at
 * multiples of 16 bytes, the rows are computed again by attend_cuda.cuh, which looks only at what is seen. */
#ifndef WEFT_KERNELS_CUDA_ATTEND_FLASH_CUDA_CUH
#define WEFT_KERNELS_CUDA_ATTEND_FLASH_CUDA_CUH

#include "kernels/cuda/attend_cuda.cuh"
#include "kernels/cuda/flash_size.h"
#include "kernels/cuda/mma_cuda.cuh"

enum { FLASH_STRIP = 16, FLASH_STRIPS = FLASH_QUERIES / FLASH_STRIP };

/* A position of a tile; NULL: nobody's. */
struct flash_place {
    const char *key, *value;
};

/* Rows of one sequence, as attend_work has them. */
struct flash_work {
    const kargs *k;
    int64_t head, first_head;
    int heads, rows;
    int64_t row;
    const int32_t *pos, *pages;
    int first, last; /* positions that somebody sees */
    int edge,
        edge_end; /* of those, what some see in one tier and some in another (tile_codes_cuda.cuh) */
    float scale;  /* of logits: to powers of two, if there is no softcap */
    char *q, *kv;        /* [part][FLASH_QUERIES][width]; two tiles: keys, values */
    float *by;           /* [FLASH_QUERIES]: of the logits of a query */
    flash_place *places; /* of two tiles */
};

/* Piece (16 bytes) of a line of WIDTH numbers: eight lines that are read at once are in different banks. */
template <int WIDTH> static __device__ inline char *flash_at(char *lines, int line, int piece)
{
    return lines + line * (WIDTH * 2) + (piece ^ line % 8) * 16;
}

template <int PARTS>
static __device__ inline void flash_multiply(float *sum, const uint32_t *a, const uint32_t *b)
{
    if (PARTS == 2)
        multiply_f16(sum, a, b);
    else
        multiply_bf16(sum, a, b);
}

/* Two numbers as the next part, which is taken from them. */
template <int PARTS> static __device__ inline uint32_t take_part(float &x, float &y)
{
    const uint32_t h = PARTS == 2 ? f16_pair(x, y) : bf16_pair(x, y);
    const uint16_t low = (uint16_t)h, high = (uint16_t)(h >> 16);
    x -= PARTS == 2 ? from_f16(low) : from_bf16(low);
    y -= PARTS == 2 ? from_f16(high) : from_bf16(high);
    return h;
}

/* ---- queries ---- */

/* A power of two by which the largest of a vector's numbers comes near 2^14, where f16 has all its bits; and its inverse. */
static __device__ inline float power_for(float most, float *out_inverse)
{
    int up = most > 0 ? 14 + 127 - (int)(bits_of(most) >> 23) : 0;
    up = up > 100 ? 100 : up < -120 ? -120 : up;
    *out_inverse = float_of((uint32_t)(127 - up) << 23);
    return float_of((uint32_t)(127 + up) << 23);
}

/* The queries of a strip, by its warp. */
template <int WIDTH, int PARTS> static __device__ void strip_read(const flash_work &w, int strip)
{
    enum { PAIRS = WIDTH / 2 / WARP };
    const int k = (int)w.k->cell->k, lane = lane_index();
    for (int i = strip * FLASH_STRIP; i < (strip + 1) * FLASH_STRIP; i++) {
        const bool there = i < w.rows * w.heads;
        const float *q =
            there ? row_in(w.k, 0, w.row + i / w.heads) + (w.first_head + i % w.heads) * k : NULL;
        float x[PAIRS][2], most = 0, inverse;
        UNROLL
        for (int j = 0; j < PAIRS; j++) {
            const int c = (j * WARP + lane) * 2;
            x[j][0] = there && c < k ? q[c] : 0;
            x[j][1] = there && c < k ? q[c + 1] : 0;
            most = fmaxf(most, fmaxf(fabsf(x[j][0]), fabsf(x[j][1])));
        }
        const float up = power_for(warp_max(most), &inverse);
        UNROLL
        for (int j = 0; j < PAIRS; j++) {
            const int c = (j * WARP + lane) * 2;
            x[j][0] *= up;
            x[j][1] *= up;
            UNROLL
            for (int p = 0; p < PARTS; p++)
                *(uint32_t *)(flash_at<WIDTH>(w.q + p * (FLASH_QUERIES * WIDTH * 2), i, c / 8) +
                              c % 8 * 2) = take_part<PARTS>(x[j][0], x[j][1]);
        }
        if (lane == 0)
            w.by[i] = inverse * w.scale;
    }
    __syncwarp();
}

/* What a thread has of a strip: two queries, of rows lane / 4 and 8 more. */
struct flash_strip {
    int first[2], last[2];                   /* positions that each sees; none: first > last */
    int any_first, any_last;                 /* that one of the strip sees */
    int all_first, all_last;                 /* that all of the strip see */
    float max[2], total[2], by[2], slope[2]; /* total: of this thread's columns */
    int edge[2];                             /* of tiles of codes: where f16 begins */
};

static __device__ inline int warp_least(int x)
{
    return __reduce_min_sync(ALL_LANES, x);
}

static __device__ inline int warp_most(int x)
{
    return __reduce_max_sync(ALL_LANES, x);
}

static __device__ SHAPE_FN flash_strip strip_begin(const flash_work &w, int strip)
{
    const float *sinks = (const float *)w.k->in[2], *slopes = (const float *)w.k->in[3];
    const int lane = lane_index(), none = INT32_MAX;
    flash_strip s;
    bool all = true;
    for (int e = 0; e < 2; e++) {
        const int i = strip * FLASH_STRIP + lane / 4 + e * 8;
        const bool there = i < w.rows * w.heads;
        const int64_t head = w.first_head + i % w.heads;
        s.last[e] = there ? w.pos[i / w.heads] : -1;
        s.first[e] = there ? (int)first_seen(w.k, s.last[e]) : none;
        s.max[e] = there && sinks ? sinks[head] * LOG2_E : -INFINITY;
        s.total[e] = s.max[e] == -INFINITY || lane % 4 ? 0 : s.max[e] - s.max[e] + 1;
        s.slope[e] = there && slopes ? slopes[head] * LOG2_E : 0;
        s.by[e] = w.by[i % FLASH_QUERIES];
        all = all && there;
    }
    s.any_first = warp_least(s.first[0] < s.first[1] ? s.first[0] : s.first[1]);
    s.any_last = warp_most(s.last[0] > s.last[1] ? s.last[0] : s.last[1]);
    s.all_first = warp_most(s.first[0] > s.first[1] ? s.first[0] : s.first[1]);
    s.all_last = warp_least(all ? (s.last[0] < s.last[1] ? s.last[0] : s.last[1]) : -1);
    return s;
}

/* ---- tiles ---- */

/* Where the positions of a tile are, each by one thread, up to two of them. */
template <int KEYS>
static __device__ void places_of(const flash_work &w, int tile, flash_place *held)
{
    const kcell *c = w.k->cell;
    const int page_tok = (int)c->page_tok;
    UNROLL
    for (int n = 0; n < KEYS / WARP; n++) {
        const int i = (int)threadIdx.x + n * block_threads(), pos = tile * KEYS + i;
        held[n] = flash_place{NULL, NULL};
        if (i >= KEYS || pos < w.first || pos > w.last)
            continue;
        const int e = pos / page_tok, tok = pos - e * page_tok;
        const char *page = c->tier[0].base + w.pages[e] * c->tier[0].page_bytes;
        held[n].key = page + (w.head * page_tok + tok) * c->k * 2;
        held[n].value = page + (c->heads * c->k + w.head * c->v) * page_tok * 2 + tok * c->v * 2;
    }
}

template <int KEYS>
static __device__ void places_put(const flash_work &w, int tile, const flash_place *held)
{
    UNROLL
    for (int n = 0; n < KEYS / WARP; n++) {
        const int i = (int)threadIdx.x + n * block_threads();
        if (i < KEYS)
            w.places[tile % 2 * KEYS + i] = held[n];
    }
}

template <int WIDTH, int KEYS>
static __device__ inline char *tile_at(const flash_work &w, int tile, bool value)
{
    return w.kv + (tile % 2 * 2 + value) * (KEYS * WIDTH * 2);
}

/* Keys and values of a tile, zeros where there are none. */
template <int WIDTH, int KEYS> static __device__ void tile_copy(const flash_work &w, int tile)
{
    enum { PIECES_OF = WIDTH / 8 };
    const int k = (int)w.k->cell->k / 8, v = (int)w.k->cell->v / 8;
    char *key = tile_at<WIDTH, KEYS>(w, tile, false), *value = tile_at<WIDTH, KEYS>(w, tile, true);
    const char *some = w.k->cell->tier[0].base;
    for (int i = (int)threadIdx.x; i < KEYS * PIECES_OF; i += block_threads()) {
        const int line = i / PIECES_OF, piece = i % PIECES_OF;
        const flash_place at = w.places[tile % 2 * KEYS + line];
        const bool has_key = at.key && piece < k, has_value = at.key && piece < v;
        copy_piece(flash_at<WIDTH>(key, line, piece), has_key ? at.key + piece * 16 : some,
                   has_key);
        copy_piece(flash_at<WIDTH>(value, line, piece), has_value ? at.value + piece * 16 : some,
                   has_value);
    }
}

/* Products of a strip's queries and a tile's keys. */
template <int WIDTH, int KEYS, int PARTS>
static __device__ inline void tile_logits(const flash_work &w, int strip, int tile, float (*p)[4])
{
    const int lane = lane_index();
    char *key = tile_at<WIDTH, KEYS>(w, tile, false);
    UNROLL
    for (int c = 0; c < WIDTH / 8; c += 2) { /* 16 deep */
        uint32_t a[PARTS][4], b[4];
        UNROLL
        for (int part = 0; part < PARTS; part++)
            load_frags(a[part], flash_at<WIDTH>(w.q + part * (FLASH_QUERIES * WIDTH * 2),
                                                strip * FLASH_STRIP + lane % 16, c + lane / 16));
        UNROLL
        for (int i = 0; i < KEYS / 8; i += 2) {
            load_frags(b, flash_at<WIDTH>(key, i * 8 + lane % 8 + lane / 16 * 8, c + lane / 8 % 2));
            UNROLL
            for (int part = 0; part < PARTS; part++) {
                flash_multiply<PARTS>(p[i], a[part], b);
                flash_multiply<PARTS>(p[i + 1], a[part], b + 2);
            }
        }
    }
}

/* From products to logits in powers of two; -INFINITY where nothing is seen. */
template <int KEYS>
static __device__ inline void tile_mask(const flash_work &w, const flash_strip &s, int tile,
                                        float (*p)[4])
{
    const float softcap = (float)w.k->scalar.attend.softcap;
    const int first = tile * KEYS + lane_index() % 4 * 2;
    const bool all = tile * KEYS >= s.all_first && (tile + 1) * KEYS - 1 <= s.all_last;
    UNROLL
    for (int i = 0; i < KEYS / 8; i++)
        UNROLL
    for (int e = 0; e < 4; e++)
        p[i][e] *= s.by[e / 2];
    if (softcap != 0)
        for (int i = 0; i < KEYS / 8; i++)
            for (int e = 0; e < 4; e++)
                p[i][e] = softcap * tanhf(p[i][e] / softcap) * LOG2_E;
    if (w.k->in[3])
        UNROLL
    for (int i = 0; i < KEYS / 8; i++)
        UNROLL
    for (int e = 0; e < 4; e++)
        p[i][e] += s.slope[e / 2] * (float)(first + i * 8 + e % 2 - s.last[e / 2]);
    if (!all)
        UNROLL
    for (int i = 0; i < KEYS / 8; i++)
        UNROLL
    for (int e = 0; e < 4; e++) {
        const int pos = first + i * 8 + e % 2;
        if (pos < s.first[e / 2] || pos > s.last[e / 2])
            p[i][e] = -INFINITY;
    }
}

/* From logits to weights; keep: what the sums so far are multiplied with. */
template <int KEYS>
static __device__ inline void tile_weigh(flash_strip &s, float (*p)[4], float *keep)
{
    UNROLL
    for (int e = 0; e < 2; e++) {
        float most = s.max[e], sum = 0;
        UNROLL
        for (int i = 0; i < KEYS / 8; i++)
            most = fmaxf(most, fmaxf(p[i][e * 2], p[i][e * 2 + 1]));
        most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 1));
        most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 2));
        const float base = most == -INFINITY ? 0 : most; /* nothing seen yet */
        keep[e] = exp2f(s.max[e] - base);
        UNROLL
        for (int i = 0; i < KEYS / 8; i++)
            UNROLL
        for (int j = 0; j < 2; j++)
            sum += p[i][e * 2 + j] = exp2f(p[i][e * 2 + j] - base);
        s.total[e] = s.total[e] * keep[e] + sum;
        s.max[e] = most;
    }
}

/* Weights times the tile's values. */
template <int WIDTH, int KEYS, int PARTS>
static __device__ inline void tile_values(const flash_work &w, int tile, float (*p)[4],
                                          const float *keep, float (*out)[4])
{
    const int lane = lane_index();
    char *value = tile_at<WIDTH, KEYS>(w, tile, true);
    UNROLL
    for (int i = 0; i < WIDTH / 8; i++)
        UNROLL
    for (int e = 0; e < 4; e++)
        out[i][e] *= keep[e / 2];
    UNROLL
    for (int j = 0; j < KEYS / 16; j++) {
        uint32_t a[PARTS][4], b[4];
        UNROLL
        for (int part = 0; part < PARTS; part++)
            UNROLL
        for (int e = 0; e < 4; e++)
            a[part][e] =
                take_part<PARTS>(p[2 * j + e / 2][e % 2 * 2], p[2 * j + e / 2][e % 2 * 2 + 1]);
        UNROLL
        for (int i = 0; i < WIDTH / 8; i += 2) {
            load_frags_turned(b, flash_at<WIDTH>(value, j * 16 + lane % 16, i + lane / 16));
            UNROLL
            for (int part = 0; part < PARTS; part++) {
                flash_multiply<PARTS>(out[i], a[part], b);
                flash_multiply<PARTS>(out[i + 1], a[part], b + 2);
            }
        }
    }
}

/* ---- strips ---- */

/* Results of a strip; are all of them numbers? */
template <int WIDTH>
static __device__ SHAPE_FN bool strip_put(const flash_work &w, int strip, const flash_strip &s,
                                          float (*out)[4])
{
    const int v = (int)w.k->cell->v, lane = lane_index();
    bool finite = true;
    UNROLL
    for (int e = 0; e < 2; e++) {
        const int at = strip * FLASH_STRIP + lane / 4 + e * 8;
        float total = s.total[e];
        total += __shfl_xor_sync(ALL_LANES, total, 1);
        total += __shfl_xor_sync(ALL_LANES, total, 2);
        if (at >= w.rows * w.heads)
            continue;
        float *to = row_out(w.k, 0, w.row + at / w.heads) + (w.first_head + at % w.heads) * v;
        const float inverse = 1 / total;
        const bool pairs = (uintptr_t)to % 8 == 0;
        UNROLL
        for (int i = 0; i < WIDTH / 8; i++) {
            const int c = i * 8 + lane % 4 * 2; /* v is a multiple of 8 */
            const float x = out[i][e * 2] * inverse, y = out[i][e * 2 + 1] * inverse;
            if (c >= v)
                continue;
            finite = finite && is_finite(x) && is_finite(y);
            if (pairs) {
                *(bytes8 *)(to + c) = bytes8{{bits_of(x), bits_of(y)}};
            } else {
                to[c] = x;
                to[c + 1] = y;
            }
        }
    }
    return finite;
}

/* One walk along the positions: a strip for each warp. */
template <int WIDTH, int PARTS> static __device__ bool strips_run(const flash_work &w, int first)
{
    enum { KEYS = WIDTH > 128 ? 32 : 64 };
    const int strip = first + warp_index(), begin = w.first / KEYS, end = w.last / KEYS;
    const bool there = strip * FLASH_STRIP < w.rows * w.heads;
    flash_place held[KEYS / WARP];
    float out[WIDTH / 8][4] = {};
    block_sync(); /* what was there has been read */
    for (int t = begin; t <= begin + 1; t++) {
        places_of<KEYS>(w, t, held);
        places_put<KEYS>(w, t, held);
    }
    if (there)
        strip_read<WIDTH, PARTS>(w, strip);
    block_sync();
    flash_strip s = strip_begin(w, strip);
    tile_copy<WIDTH, KEYS>(w, begin);
    copies_group();
    for (int t = begin; t <= end; t++) {
        copies_wait<0>();
        block_sync(); /* tile t is there, tile t - 1 has been read by all */
        if (t < end)
            tile_copy<WIDTH, KEYS>(w, t + 1);
        copies_group();
        places_of<KEYS>(w, t + 2, held);
        if (there && t * KEYS <= s.any_last && (t + 1) * KEYS > s.any_first) {
            float p[KEYS / 8][4] = {}, keep[2];
            tile_logits<WIDTH, KEYS, PARTS>(w, strip, t, p);
            tile_mask<KEYS>(w, s, t, p);
            tile_weigh<KEYS>(s, p, keep);
            tile_values<WIDTH, KEYS, PARTS>(w, t, p, keep, out);
        }
        places_put<KEYS>(w, t + 2, held);
    }
    copies_wait<0>();
    return !there || strip_put<WIDTH>(w, strip, s, out);
}

template <int WIDTH, int PARTS> static __device__ ONE_COPY bool flash_run(const flash_work &w)
{
    bool finite = true;
    for (int first = 0; first * FLASH_STRIP < w.rows * w.heads; first += warp_count())
        finite = strips_run<WIDTH, PARTS>(w, first) && finite;
    return block_max(finite ? 0.0f : 1.0f) == 0.0f;
}

/* Scratch: queries, tiles, places, factors. */
static __device__ void flash_divide(flash_work &w, char *scratch, int64_t parts)
{
    const int64_t width = flash_width(w.k->cell), keys = flash_keys(width);
    w.q = (char *)(((uintptr_t)scratch + FLASH_ALIGN - 1) / FLASH_ALIGN * FLASH_ALIGN);
    w.kv = w.q + parts * FLASH_QUERIES * width * 2;
    w.places = (flash_place *)(w.kv + 4 * keys * width * 2);
    w.by = (float *)(w.places + 2 * keys);
}

static __device__ bool flash_choose(const flash_work &w, int64_t parts)
{
    switch (flash_width(w.k->cell) + parts) {
    case 64 + 2:
        return flash_run<64, 2>(w);
    case 64 + 3:
        return flash_run<64, 3>(w);
    case 128 + 2:
        return flash_run<128, 2>(w);
    case 128 + 3:
        return flash_run<128, 3>(w);
    default:
        return flash_run<256, 2>(w);
    }
}

/* ---- units ---- */

/* The same rows without matrix instructions. */
static __device__ void rows_plain(const flash_work &f, void *scratch)
{
    attend_work w = {};
    w.k = f.k;
    w.size = cuda_attend_size_of(f.k);
    work_divide(w, scratch);
    w.head = f.head;
    w.first_head = f.first_head;
    w.heads = f.heads;
    for (w.row = f.row; w.row < f.row + f.rows; w.row += w.rows) {
        w.rows = rows_alike(w.k, w.row, least(w.row + w.size.rows, f.row + f.rows));
        w.seq = kbatch_at(w.k->batch, KBATCH_SEQ)[w.row];
        w.pos = kbatch_at(w.k->batch, KBATCH_POS) + w.row;
        block_sync();
        rows_run(w, 0);
    }
}

/* Can pieces of pages be copied as they are? */
static __device__ bool pages_copy(const kcell *c)
{
    return at_16(c->tier[0].base) && c->tier[0].page_bytes % 16 == 0;
}

/* Rows [row, end), those of each sequence by themselves. */
static __device__ void flash_rows_run(flash_work &w, int64_t row, int64_t end, char *scratch)
{
    const kargs *k = w.k;
    const int32_t *seq = kbatch_at(k->batch, KBATCH_SEQ), *pos = kbatch_at(k->batch, KBATCH_POS);
    const int64_t parts = flash_parts(k->cell->tier[0].key);
    const bool copies = flash_has(k->cell) && pages_copy(k->cell) && is_shared(scratch);
    flash_divide(w, scratch, parts);
    for (w.row = row; w.row < end; w.row += w.rows) {
        for (w.rows = 1; w.row + w.rows < end && seq[w.row + w.rows] == seq[w.row];)
            w.rows++;
        w.pos = pos + w.row;
        w.pages = kbatch_pages(k->batch, k->cell->table, seq[w.row]);
        w.first = (int)first_seen(k, w.pos[0]);
        w.last = w.pos[w.rows - 1];
        if (!copies || !flash_choose(w, parts))
            rows_plain(w, scratch);
    }
}

/* Units follow each other as blocks of rows from both ends, since the last see most: some that follow each other are alike in
 * all. */
static __device__ ONE_COPY void k_attend_flash_cuda(const kargs *k, const kthread *t, int64_t begin,
                                                    int64_t end)
{
    if (!flash_cuts(k->cell)) {
        k_attend_cuda(k, t, begin, end);
        return;
    }
    const cuda_attend_size size = cuda_attend_size_of(k);
    const int64_t each = flash_rows(k), rows = k->size.attend.rows;
    const int64_t blocks = (rows + each - 1) / each;
    flash_work w = {};
    w.k = k;
    w.scale = (float)k->scalar.attend.scale * (k->scalar.attend.softcap != 0 ? 1 : LOG2_E);
    for (int64_t i = begin; i < end; i++) {
        const int64_t head = i / blocks, at = i % blocks;
        const int64_t block = at % 2 ? blocks - 1 - at / 2 : at / 2, part = head % size.parts;
        w.head = head / size.parts;
        w.first_head = w.head * size.group + part * size.heads;
        w.heads = (int)least(size.group - part * size.heads, size.heads);
        if (w.heads > 0)
            flash_rows_run(w, block * each, least((block + 1) * each, rows), (char *)t->scratch);
    }
}

/* Where a plan rounds activations queries and weights may be one number of 16 bits each, as attend_tiles_cuda.cuh has them. */
static __device__ void k_attend_round_cuda(const kargs *k, const kthread *t, int64_t begin,
                                           int64_t end)
{
    k_attend_flash_cuda(k, t, begin, end);
}

#endif
