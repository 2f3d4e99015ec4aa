/* attend_tiles_cuda.cuh - weft_flash and weft_codes: attention of many rows with parts to play, as squares_cuda.cuh has it for
 * linears; attend_flash_cuda.cuh says how units are cut and what is split, tile_codes_cuda.cuh what pages of codes become.
 *
 * Four warps copy keys and values into rings of tiles, eight multiply: two groups of four, each 64 queries of the unit, by wgmma. Other
 * cards than sm_90a do as weft_phases does; tests have mma.sync in its place. A tile has two barriers for its keys and two for its
 * values: `full` counts those who copy, `empty` the warps that have multiplied. Groups do not wait for each other: while one
 * computes weights, the other multiplies. The copies are ahead, into the next unit too.
 *
 * Lines of 128 bytes lie as linear_mma_cuda.cuh has them; what is wider than 64 numbers is several panels of such lines. Queries
 * and weights are as many parts as make an f32, or where the plan rounds one part.
 *
 * Rows whose result is not finite are computed again at the end, by attend_cuda.cuh. */
#ifndef WEFT_KERNELS_CUDA_ATTEND_TILES_CUDA_CUH
#define WEFT_KERNELS_CUDA_ATTEND_TILES_CUDA_CUH

#include "kernels/cuda/tile_codes_cuda.cuh"
#if defined(__CUDACC__) && defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "kernels/cuda/wgmma_tiles_cuda.cuh"
#endif

/* Of the sizes that a unit is computed with: columns, as how many numbers a query and a weight are multiplied, and a key or a
 * value, of which kind. */
template <int WIDTH_, int PARTS_, bool F16_> struct tile_kind {
    enum {
        CODES = false,
        WIDTH = WIDTH_,
        PARTS = PARTS_,
        STORED = 1,
        F16 = F16_,
        KEYS = WIDTH > 128 || PARTS > 2 ? 64 : 128,
        LINES =
            KEYS * STORED, /* of a panel of keys or values: those of their first parts come first */
        STAGES = WIDTH <= 64                 ? 4
                 : WIDTH <= 128 || PARTS < 2 ? 2
                                             : 1,
        QUERY_BYTES = FLASH_QUERIES * WIDTH * 2, /* of a part */
        TILE_BYTES = LINES * WIDTH * 2
    };
    static_assert(PARTS * QUERY_BYTES + STAGES * 2 * TILE_BYTES + FLASH_TILES_ALIGN <=
                      FLASH_TILES_BYTES,
                  "a block has no more");
};

/* ---- copying ---- */

/* What is needed to find the positions of a head: in registers, as it is asked for all the time. */
struct place_finder {
    const char *keys, *values; /* of the head, in page 0 */
    int64_t page_bytes;
    const int32_t *pages;
    int page_tok, key_bytes, value_bytes, first, last;
};

static __device__ inline place_finder finder_of(const flash_work &w)
{
    const kcell *c = w.k->cell;
    const int64_t tok = c->page_tok;
    place_finder f;
    f.keys = c->tier[0].base + w.head * tok * c->k * 2;
    f.values = c->tier[0].base + (c->heads * c->k + w.head * c->v) * tok * 2;
    f.page_bytes = c->tier[0].page_bytes;
    f.pages = w.pages;
    f.page_tok = (int)tok;
    f.key_bytes = (int)c->k * 2;
    f.value_bytes = (int)c->v * 2;
    f.first = w.first;
    f.last = w.last;
    return f;
}

/* Where a position is; NULL: nobody's. */
static __device__ inline flash_place place_of(const place_finder &f, int pos)
{
    if (pos < f.first || pos > f.last)
        return flash_place{NULL, NULL};
    const int e = pos / f.page_tok, tok = pos - e * f.page_tok;
    const int64_t page = f.pages[e] * f.page_bytes;
    return flash_place{f.keys + page + tok * f.key_bytes, f.values + page + tok * f.value_bytes};
}

/* A warp's lines of a tile, the place of each of which a lane has; of `bytes` bytes, zeros beyond. */
template <class K>
static __device__ inline void lines_copy(char *to, const char *from, int bytes, const char *some)
{
    enum { EACH = K::WIDTH / 8, LINES = K::KEYS / TILE_FILLING };
    const int lane = lane_index(), first = warp_index() * LINES, piece = lane % EACH;
    UNROLLED(2)
    for (int i = 0; i < LINES * EACH; i += WARP) {
        const int line = (i + lane) / EACH;
        const char *at = (const char *)__shfl_sync(ALL_LANES, (uint64_t)(uintptr_t)from, line);
        const bool there = at && piece * 16 < bytes;
        copy_piece(panel_at<K::KEYS>(to, first + line, piece), there ? at + piece * 16 : some,
                   there);
    }
}

/* The same of lines that follow each other in memory and are all there, whole: what panel_at says, with less to compute. */
template <class K> static __device__ inline void lines_copy_row(char *to, const char *from)
{
    enum { EACH = K::WIDTH / 8, LINES = K::KEYS / TILE_FILLING, STEP = WARP / EACH };
    const int lane = lane_index(), piece = lane % EACH, line = lane / EACH;
    const int at = (piece % PIECES ^ line) * 16;
    to += piece / PIECES * (K::KEYS * MMA_LINE) + (warp_index() * LINES + line) * MMA_LINE;
    from = (const char *)__shfl_sync(ALL_LANES, (uint64_t)(uintptr_t)from, 0) + lane * 16;
    UNROLL
    for (int i = 0; i < LINES; i += STEP)
        copy_piece(to + i * MMA_LINE + (at ^ i % PIECES * 16), from + i * (K::WIDTH * 2), true);
}

/* All tiles of some rows. */
template <class K> static __device__ SHAPE_FN void tiles_fill(const flash_work &w, tile_ring &r)
{
    enum { LINES = K::KEYS / TILE_FILLING };
    const place_finder f = finder_of(w);
    const int begin = f.first / K::KEYS, end = f.last / K::KEYS;
    const int line = warp_index() * LINES + lane_index() % LINES;
    const bool even =
        f.page_tok % LINES == 0 && f.key_bytes == K::WIDTH * 2 && f.value_bytes == K::WIDTH * 2;
    char *keys = tile_keys<K>(w, 0), *values = tile_values_at<K>(w, 0);
    flash_place at = place_of(f, begin * K::KEYS + line);
    for (int t = begin; t <= end; t++) {
        const flash_place next = place_of(f, (t + 1) * K::KEYS + line);
        const bool row = __all_sync(ALL_LANES, even && at.key);
        const int slot = r.slot * (2 * K::TILE_BYTES);
        barrier_wait(&r.b->empty[0][r.slot], r.parity ^ 1);
        if (row)
            lines_copy_row<K>(keys + slot, at.key);
        else
            lines_copy<K>(keys + slot, at.key, f.key_bytes, f.keys);
        barrier_arrive_copied(shared_at(&r.b->full[0][r.slot]));
        barrier_wait(&r.b->empty[1][r.slot], r.parity ^ 1);
        if (row)
            lines_copy_row<K>(values + slot, at.value);
        else
            lines_copy<K>(values + slot, at.value, f.value_bytes, f.keys);
        barrier_arrive_copied(shared_at(&r.b->full[1][r.slot]));
        at = next;
        tile_next<K::STAGES>(r);
    }
}

/* ---- products ---- */

/* Two numbers as the next part, which is taken from them. */
template <bool F16> static __device__ inline uint32_t part_take(float &x, float &y)
{
    return F16 ? take_part<2>(x, y) : take_part<3>(x, y);
}

/* Which parts are multiplied with each other: all of queries or weights with the first of keys or values, then the first of those
 * with the second of these. */
template <class K> static __device__ constexpr int pairs_of(void)
{
    return K::PARTS + K::STORED - 1;
}

template <class K> static __device__ constexpr int pair_part(int pair)
{
    return pair < K::PARTS ? pair : 0;
}

template <class K> static __device__ constexpr int pair_stored(int pair)
{
    return pair < K::PARTS ? 0 : 1;
}

/* logits_begin: products of a group's queries and a tile's keys. values_begin: weights times the tile's values, added to `out`. Both are
 * done when products_wait has returned; until then nobody touches what they are given. */
#if defined(__CUDACC__) && defined(__CUDA_ARCH_FEAT_SM90_ALL)
template <class K>
static __device__ inline void logits_begin(const flash_work &w, int strip, int slot, float (*p)[4])
{
    char *q = w.q + strip / GROUP_WARPS * (GROUP_QUERIES * MMA_LINE), *key = tile_keys<K>(w, slot);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    UNROLL
    for (int pair = 0; pair < pairs_of<K>(); pair++)
        UNROLL
    for (int i = 0; i < K::WIDTH / 16; i++)
        wgmma_tiles<K::KEYS, K::F16>::logits(
            p,
            lines_at(q + pair_part<K>(pair) * K::QUERY_BYTES + i / 4 * (FLASH_QUERIES * MMA_LINE)) +
                i % 4 * 2,
            lines_at(key + pair_stored<K>(pair) * (K::KEYS * MMA_LINE) +
                     i / 4 * (K::LINES * MMA_LINE)) +
                i % 4 * 2,
            pair + i > 0);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Lines whose numbers are columns of the operand: panels of 64 columns. */
template <class K> static __device__ inline uint64_t columns_at(const char *lines)
{
    return (uint64_t)((shared_at(lines) & 0x3ffff) >> 4) |
           (uint64_t)(K::LINES * MMA_LINE / 16) << 16 | 64ull << 32 | 1ull << 62;
}

template <class K>
static __device__ inline void values_begin(const flash_work &w, int slot,
                                           const uint32_t (*a)[K::KEYS / 16][4], float (*out)[4])
{
    const uint64_t value = columns_at<K>(tile_values_at<K>(w, slot));
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    UNROLL
    for (int j = 0; j < K::KEYS / 16; j++)
        UNROLL
    for (int pair = 0; pair < pairs_of<K>(); pair++)
        wgmma_tiles<K::WIDTH, K::F16>::values(out, a[pair_part<K>(pair)][j],
                                              value + (pair_stored<K>(pair) * K::KEYS + j * 16) *
                                                          (MMA_LINE / 16));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Sums are read from here on only, which the compiler could not know. */
template <int FRAGS_OF> static __device__ inline void frags_done(float (*x)[4])
{
    UNROLL
    for (int i = 0; i < FRAGS_OF; i++)
        asm volatile("" : "+f"(x[i][0]), "+f"(x[i][1]), "+f"(x[i][2]), "+f"(x[i][3])::"memory");
}
#else
template <class K>
static __device__ inline void tile_multiply(float *sum, const uint32_t *a, const uint32_t *b)
{
    if (K::F16)
        multiply_f16(sum, a, b);
    else
        multiply_bf16(sum, a, b);
}

template <class K>
static __device__ inline void logits_begin(const flash_work &w, int strip, int slot, float (*p)[4])
{
    const int lane = lane_index();
    char *key = tile_keys<K>(w, slot);
    UNROLL
    for (int i = 0; i < K::KEYS / 8; i++)
        UNROLL
    for (int e = 0; e < 4; e++)
        p[i][e] = 0;
    for (int c = 0; c < K::WIDTH / 8; c += 2) /* 16 deep */
        UNROLL
    for (int pair = 0; pair < pairs_of<K>(); pair++) {
        const int line = pair_stored<K>(pair) * K::KEYS + lane % 8 + lane / 16 * 8;
        uint32_t a[4], b[4];
        load_frags(a, panel_at<FLASH_QUERIES>(w.q + pair_part<K>(pair) * K::QUERY_BYTES,
                                              strip * FLASH_STRIP + lane % 16, c + lane / 16));
        UNROLL
        for (int i = 0; i < K::KEYS / 8; i += 2) {
            load_frags(b, panel_at<K::LINES>(key, line + i * 8, c + lane / 8 % 2));
            tile_multiply<K>(p[i], a, b);
            tile_multiply<K>(p[i + 1], a, b + 2);
        }
    }
}

template <class K>
static __device__ inline void values_begin(const flash_work &w, int slot,
                                           const uint32_t (*a)[K::KEYS / 16][4], float (*out)[4])
{
    const int lane = lane_index();
    char *value = tile_values_at<K>(w, slot);
    UNROLL
    for (int j = 0; j < K::KEYS / 16; j++)
        UNROLL
    for (int i = 0; i < K::WIDTH / 8; i += 2) {
        UNROLL
        for (int pair = 0; pair < pairs_of<K>(); pair++) {
            uint32_t b[4];
            load_frags_turned(
                b, panel_at<K::LINES>(value, pair_stored<K>(pair) * K::KEYS + j * 16 + lane % 16,
                                      i + lane / 16));
            tile_multiply<K>(out[i], a[pair_part<K>(pair)][j], b);
            tile_multiply<K>(out[i + 1], a[pair_part<K>(pair)][j], b + 2);
        }
    }
}

template <int FRAGS_OF> static __device__ inline void frags_done(float (*)[4])
{
}
#endif

/* ---- weights ---- */

#ifdef __CUDACC__
/* Powers below 2^-126 are 0. */
static __device__ inline float power_of_2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#else
static inline float power_of_2(float x)
{
    return exp2f(x);
}
#endif

/* Softcap and slopes: from products to logits in powers of two. */
template <int KEYS>
static __device__ inline void tile_bend(const flash_work &w, const flash_strip &s, int tile,
                                        float (*p)[4])
{
    const float softcap = (float)w.k->scalar.attend.softcap;
    const int first = tile * KEYS + lane_index() % 4 * 2;
    UNROLL
    for (int i = 0; i < KEYS / 8; i++)
        UNROLL
    for (int e = 0; e < 4; e++)
        p[i][e] *= s.by[e / 2];
    if (softcap != 0)
        UNROLL
    for (int i = 0; i < KEYS / 8; i++)
        UNROLL
    for (int e = 0; e < 4; e++)
        p[i][e] = softcap * tanhf(p[i][e] / softcap) * LOG2_E;
    if (w.k->in[3])
        UNROLL
    for (int i = 0; i < KEYS / 8; i++)
        UNROLL
    for (int e = 0; e < 4; e++)
        p[i][e] += s.slope[e / 2] * (float)(first + i * 8 + e % 2 - s.last[e / 2]);
}

/* -INFINITY where nothing is seen. */
template <int KEYS>
static __device__ inline void tile_hide(const flash_strip &s, int tile, float (*p)[4])
{
    const int first = tile * KEYS + lane_index() % 4 * 2;
    if (tile * KEYS >= s.all_first && (tile + 1) * KEYS - 1 <= s.all_last)
        return;
    UNROLL
    for (int i = 0; i < KEYS / 8; i++)
        UNROLL
    for (int e = 0; e < 4; e++) {
        const int pos = first + i * 8 + e % 2;
        if (pos < s.first[e / 2] || pos > s.last[e / 2])
            p[i][e] = -INFINITY;
    }
}

/* From products to weights. by: what makes logits of them, above 0; keep: what the sums so far are multiplied with. */
template <int KEYS>
static __device__ inline void tile_powers(flash_strip &s, const float *by, float (*p)[4],
                                          float *keep)
{
    UNROLL
    for (int e = 0; e < 2; e++) {
        float most = p[0][e * 2], sum[2] = {0, 0};
        UNROLL
        for (int i = 0; i < KEYS / 8; i++)
            most = fmaxf(most, fmaxf(p[i][e * 2], p[i][e * 2 + 1]));
        most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 1));
        most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 2));
        most = fmaxf(most * by[e], s.max[e]);
        const float base = most == -INFINITY ? 0 : most; /* nothing seen yet */
        keep[e] = power_of_2(s.max[e] - base);
        UNROLL
        for (int i = 0; i < KEYS / 8; i++)
            UNROLL
        for (int j = 0; j < 2; j++)
            sum[j] += p[i][e * 2 + j] = power_of_2(mad(p[i][e * 2 + j], by[e], -base));
        s.total[e] = s.total[e] * keep[e] + (sum[0] + sum[1]);
        s.max[e] = most;
    }
}

/* ---- multiplying ---- */

/* The queries of a strip, by its warp, some of them at a time. */
template <class K> static __device__ SHAPE_FN void queries_read(const flash_work &w, int strip)
{
    enum { PAIRS = K::WIDTH / 2 / WARP, SOME = K::WIDTH > 128 ? 4 : 8 };
    const int k = (int)w.k->cell->k, lane = lane_index(), all = w.rows * w.heads;
    const int64_t pitch = w.k->pitch[0];
    int head = strip * FLASH_STRIP % w.heads;
    const char *from = (const char *)row_in(w.k, 0, w.row + strip * FLASH_STRIP / w.heads) +
                       (w.first_head * k + lane * 2) * 4;
    UNROLLED(1)
    for (int first = strip * FLASH_STRIP; first < (strip + 1) * FLASH_STRIP; first += SOME) {
        float x[SOME][PAIRS][2];
        UNROLL
        for (int n = 0; n < SOME; n++) {
            const float *q = (const float *)from + head * k;
            UNROLL
            for (int j = 0; j < PAIRS; j++) {
                const bool there = first + n < all && (j * WARP + lane) * 2 < k;
                x[n][j][0] = there ? q[j * WARP * 2] : 0;
                x[n][j][1] = there ? q[j * WARP * 2 + 1] : 0;
            }
            head = head + 1 < w.heads ? head + 1 : 0;
            from += head == 0 ? pitch : 0;
        }
        UNROLL
        for (int n = 0; n < SOME; n++) {
            float most = 0, inverse;
            UNROLL
            for (int j = 0; j < PAIRS; j++)
                most = fmaxf(most, fmaxf(fabsf(x[n][j][0]), fabsf(x[n][j][1])));
            const float up = power_for(warp_max(most), &inverse);
            UNROLL
            for (int j = 0; j < PAIRS; j++) {
                const int c = (j * WARP + lane) * 2;
                x[n][j][0] *= up;
                x[n][j][1] *= up;
                UNROLL
                for (int p = 0; p < K::PARTS; p++)
                    *(uint32_t *)(panel_at<FLASH_QUERIES>(w.q + p * K::QUERY_BYTES, first + n,
                                                          c / 8) +
                                  c % 8 * 2) = part_take<K::F16>(x[n][j][0], x[n][j][1]);
            }
            if (lane == 0)
                w.by[first + n] = inverse * w.scale;
        }
    }
}

/* What a group sees of the positions; nothing: it ends a tile before it begins. */
struct tile_span {
    int first, last;
};

static __device__ inline tile_span group_span(const flash_work &w, int group)
{
    const int n = w.rows * w.heads, from = group * GROUP_QUERIES;
    if (from >= n)
        return tile_span{0, -TILE_KEYS_MAX};
    const int to = (n < from + GROUP_QUERIES ? n : from + GROUP_QUERIES) - 1;
    return tile_span{(int)first_seen(w.k, w.pos[from / w.heads]), w.pos[to / w.heads]};
}

/* Sums of a tile, which is there; again: as tile_codes_cuda.cuh has it. */
template <class K>
static __device__ SHAPE_FN void tile_run(const unit_walk *u, tile_ring &r, int strip, int tile,
                                         bool again, int before, flash_strip &s, float (*out)[4])
{
    float p[K::KEYS / 8][4], keep[2];
    uint32_t a[K::PARTS][K::KEYS / 16][4];
    const flash_work &w = u->w;
    const bool plain = u->plain;
    const float by[2] = {plain ? s.by[0] : 1, plain ? s.by[1] : 1};
    barrier_wait(&r.b->full[0][r.slot], r.parity);
    stage_done();
    logits_begin<K>(w, strip, r.slot, p);
    products_wait<0>(); /* and the values of the tile before */
    frags_done<K::KEYS / 8>(p);
    frags_done<K::WIDTH / 8>(out);
    warp_done(&r.b->empty[0][r.slot]);
    if (before >= 0)
        warp_done(&r.b->empty[1][before]);
    if (!plain)
        tile_bend<K::KEYS>(w, s, tile, p);
    if (K::CODES && tile_is_mixed<K::KEYS>(w, tile, again))
        codes_hide<K::KEYS>(w, s, tile, again, p);
    else
        tile_hide<K::KEYS>(s, tile, p);
    tile_powers<K::KEYS>(s, by, p, keep);
    UNROLL
    for (int i = 0; i < K::WIDTH / 8; i++)
        UNROLL
    for (int e = 0; e < 4; e++)
        out[i][e] *= keep[e / 2];
    UNROLL
    for (int j = 0; j < K::KEYS / 16; j++)
        UNROLL
    for (int part = 0; part < K::PARTS; part++)
        UNROLL
    for (int e = 0; e < 4; e++)
        a[part][j][e] =
            part_take<K::F16>(p[2 * j + e / 2][e % 2 * 2], p[2 * j + e / 2][e % 2 * 2 + 1]);
    barrier_wait(&r.b->full[1][r.slot], r.parity);
    stage_done();
    values_begin<K>(w, r.slot, a, out);
}

/* A tile that the group has no use for. It has to be there all the same: else who is ahead would count for the tile before. */
template <class K> static __device__ inline void tile_skip(tile_ring &r)
{
    UNROLL
    for (int of = 0; of < 2; of++) {
        barrier_wait(&r.b->full[of][r.slot], r.parity);
        warp_done(&r.b->empty[of][r.slot]);
    }
    tile_next<K::STAGES>(r);
}

/* All tiles of some rows; are all results numbers? `met`: how often the group has met. */
template <class K>
static __device__ SHAPE_FN bool tiles_multiply(const unit_walk *u, tile_ring &r, int strip,
                                               uint32_t &met)
{
    const flash_work &w = u->w;
    const code_tiles tiles = code_tiles_of<K::KEYS>(w);
    const int group = strip / GROUP_WARPS, begin = tiles.begin;
    const int end = K::CODES ? tiles.end + tiles.more : tiles.end;
    const tile_span seen = group_span(w, group); /* within what all see */
    const int from = seen.first / K::KEYS;
    const int to = K::CODES && seen.last >= 0 ? end : seen.last / K::KEYS;
    float out[K::WIDTH / 8][4] = {};
    int before = -1; /* the slot whose values are being multiplied */
    queries_read<K>(w, strip);
    stage_done();
    warp_done(&r.b->met[group]);
    barrier_wait(&r.b->met[group], met);
    met ^= 1;
    flash_strip s = strip_begin(w, strip);
    if (K::CODES)
        UNROLL
    for (int e = 0; e < 2; e++)
        s.edge[e] = s.last[e] < 0 ? 0 : codes_edge(w.k, s.last[e]);
    int t = begin;
    for (; t < from; t++)
        tile_skip<K>(r);
    for (; t <= to; t++) {
        const bool again = K::CODES && code_tile_is_again(tiles, t);
        tile_run<K>(u, r, strip, K::CODES ? code_tile_at(tiles, t) : t, again, before, s, out);
        before = r.slot;
        tile_next<K::STAGES>(r);
    }
    products_wait<0>();
    frags_done<K::WIDTH / 8>(out);
    if (before >= 0)
        warp_done(&r.b->empty[1][before]);
    for (; t <= end; t++)
        tile_skip<K>(r);
    return strip_put<K::WIDTH>(w, strip, s, out);
}

/* ---- a block ---- */

enum { L2_LINE = 128 };

static __device__ inline void ask_ahead(const char *p)
{
#ifdef __CUDACC__
    asm volatile("prefetch.global.L2 [%0];" ::"l"(global_at(p)));
#else
    (void)p;
#endif
}

/* The queries of the next unit, as far as the cache that all multiprocessors share: they would be waited for. */
static __device__ inline void next_queries_ask(const unit_walk *u)
{
    if (u->unit >= u->end || u->row < u->row_end)
        return;
    const unit_place at = place_of_unit(u, (uint32_t)u->unit);
    const int bytes = (int)(at.heads * u->w.k->cell->k * 4), each = (bytes + L2_LINE - 1) / L2_LINE;
    const char *from = (const char *)(row_in(u->w.k, 0, at.row) + at.first_head * u->w.k->cell->k);
    for (int i = (int)threadIdx.x; i < (int)(at.row_end - at.row) * each; i += TILE_FILLERS)
        ask_ahead(from + i / each * u->w.k->pitch[0] + i % each * L2_LINE);
}

template <class K> static __device__ SHAPE_FN bool rows_next(unit_walk *u)
{
    if (!walk_next(u))
        return false;
    if (K::CODES)
        codes_begin(u);
    return true;
}

template <class K> static __device__ SHAPE_FN void units_fill(unit_walk *u)
{
    tile_ring r = {tiles_memory(), 0, 0};
    while (rows_next<K>(u)) {
        next_queries_ask(u);
        if constexpr (K::CODES)
            codes_fill<K>(u->w, r);
        else
            tiles_fill<K>(u->w, r);
    }
}

template <class K> static __device__ SHAPE_FN void units_multiply(unit_walk *u)
{
    const int64_t begin = u->unit;
    tile_ring r = {tiles_memory(), 0, 0};
    uint32_t met = 0;
    while (rows_next<K>(u))
        if (!tiles_multiply<K>(u, r, warp_index() - TILE_FILLING, met))
            r.b->again[(u->unit - 1 - begin) % TILE_UNITS] = 1;
}

/* The sizes of a step, whose kind is one of these. */
#define TILE_KINDS(X)                                                                              \
    X(64, 1, true)                                                                                 \
    X(64, 2, true)                                                                                 \
    X(64, 1, false)                                                                                \
    X(64, 3, false)                                                                                \
    X(128, 1, true)                                                                                \
    X(128, 2, true) X(128, 1, false) X(128, 3, false) X(256, 1, true) X(256, 2, true)

static __device__ constexpr int tile_case(int64_t width, int64_t parts, bool f16)
{
    return (int)(width + parts * 2 + f16);
}

/* Is there such a kind? Others are attend_cuda.cuh's. */
static __device__ inline bool tile_is(int which)
{
#define TILE_IS(width, parts, f16) || which == tile_case(width, parts, f16)
    return false TILE_KINDS(TILE_IS);
#undef TILE_IS
}

/* What k_attend_flash_cuda computes, by CUDA_FLASH_BLOCK threads, each of which ends with it: the compiler knows how many registers a
 * part has only if nothing follows. round: queries and weights as one number of 16 bits. */
static __device__ SHAPE_FN void tiles_run(const tiles_step &s, bool round)
{
    const kform form = s.k->cell->tier[0].key;
    const int64_t parts = round ? 1 : flash_parts(form);
    const int kind = tile_case(flash_width(s.k->cell), parts, form == KFORM_F16);
    const bool copies = tile_is(kind) && pages_copy(s.k->cell) && is_shared(s.scratch);
    const int which = copies ? kind : 0;
    tiles_open(tiles_memory(), copies, TILE_FILLERS);
    unit_walk *u = walk_of(s.k, s.begin, s.end, s.scratch, parts);
    block_sync();
    if (threadIdx.x < TILE_FILLERS) {
        REGISTERS_GIVE(56);
        switch (which) {
#define UNITS_FILL(width, parts, f16)                                                              \
    case tile_case(width, parts, f16):                                                             \
        units_fill<tile_kind<width, parts, f16>>(u);                                               \
        break;
            TILE_KINDS(UNITS_FILL)
#undef UNITS_FILL
        }
        REGISTERS_TAKE(168);
        units_again(s);
    } else {
        REGISTERS_TAKE(224);
        switch (which) {
#define UNITS_MULTIPLY(width, parts, f16)                                                          \
    case tile_case(width, parts, f16):                                                             \
        units_multiply<tile_kind<width, parts, f16>>(u);                                           \
        break;
            TILE_KINDS(UNITS_MULTIPLY)
#undef UNITS_MULTIPLY
        }
        REGISTERS_GIVE(168);
        units_again(s);
    }
}

/* The same of cells with pages of codes: a kernel of its own, as those who decode need more registers than those who copy. */
#define CODE_KINDS(X) X(64, 1) X(64, 2) X(128, 1) X(128, 2)

static __device__ SHAPE_FN void codes_run(const tiles_step &s, bool round)
{
    const int parts = round ? 1 : 2, kind = tile_case(s.k->cell->k, parts, true);
    const bool copies = codes_copy(s.k->cell) && is_shared(s.scratch);
    const int which = copies ? kind : 0;
    REGISTERS_FIT(120, 192);
    tiles_open(tiles_memory(), copies, TILE_FILLING * WARP_ARRIVALS);
    unit_walk *u = walk_of(s.k, s.begin, s.end, s.scratch, parts);
    block_sync();
    if (threadIdx.x < TILE_FILLERS) {
        REGISTERS_GIVE(120);
        switch (which) {
#define UNITS_FILL(width, parts)                                                                   \
    case tile_case(width, parts, true):                                                            \
        units_fill<code_kind<width, parts>>(u);                                                    \
        break;
            CODE_KINDS(UNITS_FILL)
#undef UNITS_FILL
        }
        REGISTERS_TAKE(168);
        units_again(s);
    } else {
        REGISTERS_TAKE(192);
        switch (which) {
#define UNITS_MULTIPLY(width, parts)                                                               \
    case tile_case(width, parts, true):                                                            \
        units_multiply<code_kind<width, parts>>(u);                                                \
        break;
            CODE_KINDS(UNITS_MULTIPLY)
#undef UNITS_MULTIPLY
        }
        REGISTERS_GIVE(168);
        units_again(s);
    }
}

#endif
