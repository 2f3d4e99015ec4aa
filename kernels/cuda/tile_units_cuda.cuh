/* tile_units_cuda.cuh - what the warps of a block that attends by tiles (attend_tiles_cuda.cuh) share: which units they have, one
 * after the other, the ring of tiles with its barriers, and units that are computed again. */
#ifndef WEFT_KERNELS_CUDA_TILE_UNITS_CUDA_CUH
#define WEFT_KERNELS_CUDA_TILE_UNITS_CUDA_CUH

#include "kernels/cuda/attend_flash_cuda.cuh"
#include "kernels/cuda/linear_mma_cuda.cuh"
#include "kernels/cuda/roles_cuda.cuh"

enum {
    TILE_FILLERS = CUDA_FLASH_BLOCK / 3, /* threads, the first ones of a block */
    TILE_FILLING = TILE_FILLERS / WARP,  /* warps */
    GROUP_WARPS = 4,
    GROUP_QUERIES = GROUP_WARPS * FLASH_STRIP,
    TILE_STAGES_MAX = 4,
    TILE_KEYS_MAX = 128,
    TILE_UNITS = 256 /* of which is known one by one whether they have to be computed again */
};
static_assert(CUDA_FLASH_BLOCK - TILE_FILLERS == FLASH_STRIPS * WARP, "a strip for each warp");

/* Rows of one sequence after the other, of units [unit, end): w is filled for each. In shared memory, one for each warp: registers
 * are for the sums. */
struct unit_walk {
    int64_t unit, end;    /* next to come */
    int64_t row, row_end; /* of the unit at hand, those that are left */
    int32_t blocks, each; /* of a head: units, and rows of one */
    cuda_attend_size size;
    bool plain; /* logits are products times a number above 0 */
    flash_work w;
};

/* What a block has for it in its static shared memory. */
struct tiles_block {
    uint64_t full[2][TILE_STAGES_MAX], empty[2][TILE_STAGES_MAX]; /* keys, values */
    uint64_t met[2];                                              /* of a group */
    float by[FLASH_QUERIES];
    unit_walk walk[CUDA_FLASH_BLOCK / WARP];
    uint8_t again[TILE_UNITS]; /* not 0: units that attend_cuda.cuh computes */
};

static __device__ inline tiles_block *tiles_memory(void)
{
    __shared__ tiles_block b;
    return &b;
}

/* Where one stands in the ring of tiles. */
struct tile_ring {
    tiles_block *b;
    int slot;
    uint32_t parity; /* of how often the ring was gone round */
};

template <int STAGES> static __device__ inline void tile_next(tile_ring &r)
{
    r.slot = r.slot + 1 < STAGES ? r.slot + 1 : 0;
    r.parity ^= r.slot == 0;
}

/* Piece (16 bytes) of a line, of panels of LINES lines each. */
template <int LINES> static __device__ inline char *panel_at(char *panels, int line, int piece)
{
    return piece_at(panels + piece / PIECES * (LINES * MMA_LINE), line, piece % PIECES);
}

template <class K> static __device__ inline char *tile_keys(const flash_work &w, int slot)
{
    return w.kv + slot * (2 * K::TILE_BYTES);
}

template <class K> static __device__ inline char *tile_values_at(const flash_work &w, int slot)
{
    return w.kv + slot * (2 * K::TILE_BYTES) + K::TILE_BYTES;
}

/* ---- units ---- */

/* Rows from `row` on that are of its sequence. By all lanes of a warp. */
static __device__ inline int rows_of_one(const int32_t *seq, int64_t row, int64_t end)
{
    const int32_t first = seq[row];
    for (int n = 0;; n += WARP) {
        const int64_t at = row + n + lane_index();
        const uint32_t others = __ballot_sync(ALL_LANES, at >= end || seq[at] != first);
        if (others)
            return n + __ffs((int)others) - 1;
    }
}

/* By all lanes of a warp, as the rest. */
static __device__ SHAPE_FN unit_walk *walk_of(const kargs *k, int64_t begin, int64_t end,
                                              char *scratch, int64_t parts)
{
    unit_walk *u = &tiles_memory()->walk[warp_index()];
    __syncwarp();
    if (lane_index() == 0) {
        *u = unit_walk{};
        u->unit = begin;
        u->end = end;
        u->size = cuda_attend_size_of(k);
        u->each = (int32_t)flash_rows(k);
        u->blocks = (int32_t)((k->size.attend.rows + u->each - 1) / u->each);
        u->w.k = k;
        u->w.scale = (float)k->scalar.attend.scale * (k->scalar.attend.softcap != 0 ? 1 : LOG2_E);
        u->w.q = (char *)(((uintptr_t)scratch + FLASH_TILES_ALIGN - 1) / FLASH_TILES_ALIGN *
                          FLASH_TILES_ALIGN);
        u->w.kv = u->w.q + parts * FLASH_QUERIES * flash_width(k->cell) * 2;
        u->w.by = tiles_memory()->by;
        u->plain = k->scalar.attend.softcap == 0 && !k->in[3] && u->w.scale > 0;
    }
    __syncwarp();
    return u;
}

/* What a unit has. */
struct unit_place {
    int64_t head, first_head, row, row_end;
    int heads;
};

/* The units follow each other as in k_attend_flash_cuda. Divisions of 64 bits take long. */
static __device__ inline unit_place place_of_unit(const unit_walk *u, uint32_t unit)
{
    const uint32_t blocks = (uint32_t)u->blocks, parts = (uint32_t)u->size.parts;
    const uint32_t head = unit / blocks, at = unit - head * blocks;
    const uint32_t block = at % 2 ? blocks - 1 - at / 2 : at / 2, part = head % parts;
    unit_place p;
    p.head = head / parts;
    p.first_head = p.head * u->size.group + part * u->size.heads;
    p.heads = (int)least(u->size.group - part * u->size.heads, u->size.heads);
    p.row = (int64_t)block * u->each;
    p.row_end = p.heads > 0 ? least(p.row + u->each, u->w.k->size.attend.rows) : p.row;
    return p;
}

static __device__ inline void unit_begin(unit_walk *u)
{
    const unit_place p = place_of_unit(u, (uint32_t)u->unit);
    u->w.head = p.head;
    u->w.first_head = p.first_head;
    u->w.heads = p.heads;
    u->row = p.row;
    u->row_end = p.row_end;
    u->unit++;
}

static __device__ SHAPE_FN bool walk_next(unit_walk *u)
{
    const kbatch *b = u->w.k->batch;
    const int32_t *seq = kbatch_at(b, KBATCH_SEQ), *pos = kbatch_at(b, KBATCH_POS);
    __syncwarp();
    if (lane_index() == 0)
        while (u->row >= u->row_end && u->unit < u->end)
            unit_begin(u);
    __syncwarp();
    const int64_t row = u->row, end = u->row_end;
    if (row >= end)
        return false;
    const int rows = rows_of_one(seq, row, end);
    __syncwarp(); /* all have read where they are */
    if (lane_index() == 0) {
        u->w.row = row;
        u->w.rows = rows;
        u->w.pos = pos + row;
        u->w.pages = kbatch_pages(b, u->w.k->cell->table, seq[row]);
        u->w.first = (int)first_seen(u->w.k, pos[row]);
        u->w.last = pos[row + rows - 1];
        u->row = row + rows;
    }
    __syncwarp();
    return true;
}

/* ---- a block ---- */

static __device__ SHAPE_FN void tiles_open(tiles_block *b, bool copies, int fills)
{
    for (int i = (int)threadIdx.x; i < TILE_UNITS; i += block_threads())
        b->again[i] = !copies;
    if (threadIdx.x != 0)
        return;
    for (int of = 0; of < 2; of++) {
        for (int i = 0; i < TILE_STAGES_MAX; i++) {
            barrier_make(&b->full[of][i], fills);
            barrier_make(&b->empty[of][i], FLASH_STRIPS * WARP_ARRIVALS);
        }
        barrier_make(&b->met[of], GROUP_WARPS * WARP_ARRIVALS);
    }
}

/* A step's units [begin, end) that a block has, and where their time is added. */
struct tiles_step {
    const kargs *k;
    char *scratch;
    int64_t begin, end;
    uint64_t *ns; /* or NULL */
    uint64_t start;
};

/* By all threads, after all else: units whose results are not finite, or whose pages cannot be copied. */
static __device__ APART void units_again(const tiles_step &s)
{
    block_sync();
    for (int64_t i = s.begin; i < s.end; i++) {
        if (!tiles_memory()->again[(i - s.begin) % TILE_UNITS])
            continue;
        unit_walk *u = walk_of(s.k, i, i + 1, s.scratch, 1);
        while (walk_next(u))
            rows_plain(u->w, s.scratch);
    }
    block_sync();
    if (s.ns && threadIdx.x == 0)
        *s.ns += clock_now() - s.start;
}

#endif
