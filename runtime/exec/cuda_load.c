/* cuda_load.c - a plan onto a card: operands to addresses of the card's, in tables as phase.h has them.
 *
 * The host has the same tables, in memory that the card can read: what a call changes is written there and copied. One
 * function lays them out. It is run without memory to learn the size and with it to fill the pointers, so that what a session
 * needs is known before it is taken, to the byte. */
#include "runtime/exec/cuda_impl.h"

#include "kernels/cuda/cuda_rows.h"
#include "kernels/cuda/few_size.h"
#include "kernels/cuda/mma_size.h"
#include "runtime/base/intmath.h"
#include "runtime/base/mem.h"
#include <inttypes.h>

/* Of weights that are made bf16 or f16 for a phase; a phase with more multiplies them as stored. */
static const size_t UNPACKED_MAX = (size_t)512 << 20;

/* ---- sizes ---- */

typedef struct {
    char *base; /* NULL: only count */
    size_t at;
} carving;

static size_t align_up(size_t n)
{
    return (n + CUDA_ALIGN - 1) / CUDA_ALIGN * CUDA_ALIGN;
}

/* Where the next n * item_bytes begin. */
static size_t carve_at(carving *c, size_t n, size_t item_bytes)
{
    size_t at = c->at, bytes = mem_product(n, item_bytes);
    c->at += align_up(bytes);
    return at;
}

static void *carve(carving *c, size_t n, size_t item_bytes)
{
    size_t at = carve_at(c, n, item_bytes);
    return c->base ? c->base + at : NULL;
}

int32_t cuda_steps_max(const plan *p)
{
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_bucket; i++)
        n = p->bucket[i].n_step > n ? p->bucket[i].n_step : n;
    return n;
}

/* What card and host both have; behind it, on the card alone, the times of steps, and the stripes of logits. */
static void carve_tables(carving *c, const device_load *what, exec *e)
{
    const plan *p = what->p;
    e->at.consts = carve_at(c, p->const_bytes, 1);
    e->at.code = carve_at(c, (size_t)p->n_code, sizeof(kinstr));
    e->at.cells = carve_at(c, (size_t)p->n_cell, sizeof(kcell));
    e->at.lora = carve_at(c, e->lora_bytes, 1);
    e->at.batch = carve_at(c, what->batch_bytes, 1);
    e->at.gate = carve_at(c, CUDA_GATES, sizeof(uint32_t));
    e->at.cancel = carve_at(c, 1, sizeof(uint32_t));
    e->at.how = carve_at(c, (size_t)p->n_out_max, sizeof(ksample));
    e->at.from = carve_at(c, (size_t)p->n_tok_max, sizeof(int32_t));
    e->at.chosen = carve_at(c, mem_product(DEVICE_CALLS, (size_t)p->n_out_max), sizeof(ksampled));
    e->at.best = carve_at(c, mem_product(BEST_PARTS, (size_t)p->n_out_max), sizeof(uint64_t));
    e->at.found = carve_at(c, (size_t)p->n_out_max, sizeof(uint32_t));
    for (int32_t i = 0; i < p->n_bucket; i++) {
        const plan_bucket *b = &p->bucket[i];
        cuda_shape *shapes = carve(c, (size_t)b->n_step, sizeof *shapes);
        cuda_step *steps = carve(c, (size_t)b->n_step, sizeof *steps);
        cuda_item *items = carve(c, (size_t)b->n_item, sizeof *items);
        cuda_phase *phases = carve(c, (size_t)b->n_item, sizeof *phases);
        cuda_pack *packs =
            carve(c, b->n_tok_max > FEW_CALL_MAX ? 0 : (size_t)b->n_item, sizeof *packs);
        if (c->base) {
            e->buckets[i].shapes = shapes;
            e->buckets[i].steps = steps;
            e->buckets[i].items = items;
            e->buckets[i].phases = phases;
            e->buckets[i].packs = packs;
        }
    }
    e->at.ns = c->at;
    size_t steps = (size_t)cuda_steps_max(p);
    carve_at(c, mem_product((size_t)e->d->blocks, steps), sizeof(uint64_t));
    e->at.stripes = carve_at(c, (size_t)CHOOSE_INLINE * CHOOSE_STRIPES, sizeof(float));
    e->at.end = c->at;
}

/* What the host alone has; the exec itself is first. */
static void carve_own(carving *c, exec *e)
{
    const plan *p = e->p;
    e->buckets = carve(c, (size_t)p->n_bucket, sizeof *e->buckets);
    for (int32_t i = 0; i < p->n_bucket; i++) {
        const plan_bucket *b = &p->bucket[i];
        cuda_bucket to = {.plan = b, .kernel = &e->d->all, .local_bytes = align_up(b->local_bytes)};
        to.units = carve(c, (size_t)b->n_item, sizeof *to.units);
        to.args = carve(c, (size_t)b->n_step, sizeof *to.args);
        to.own = carve(c, (size_t)b->n_step, sizeof *to.own);
        to.rows = carve(c, (size_t)b->n_step, sizeof *to.rows);
        to.scratch = carve(c, (size_t)b->n_step, sizeof *to.scratch);
        to.grid = carve(c, (size_t)b->n_item, sizeof *to.grid);
        to.unpacks = carve(c, (size_t)b->n_item, sizeof *to.unpacks);
        to.lasts = carve(c, (size_t)b->n_item, sizeof *to.lasts);
        to.graph_lasts = carve(c, (size_t)b->n_item, sizeof *to.graph_lasts);
        to.heads = carve(c, (size_t)b->n_step, sizeof *to.heads);
        if (c->base)
            e->buckets[i] = to;
    }
}

static size_t lora_size(const klora *l)
{
    return l ? klora_bytes(l->n_slot, l->n_site, l->n_mix) : 0;
}

int64_t cuda_unpacked_parts(dtype type, kact act)
{
    return type == DT_F16 && act_parts(act) > 1 ? 2 : 1;
}

bool cuda_decodes(dtype type)
{
    switch ((int)type) {
#define DECODED(type) case DT_##type:
        WEIGHT_TYPES_MMA(DECODED)
#undef DECODED
        return true;
    default:
        return false;
    }
}

/* Bytes of a step's weights as bf16, where squares are multiplied with other ones. */
size_t cuda_unpacked_bytes(const plan *p, const plan_step *s)
{
    const plan_kernel *k = plan_kernel_of(p, s);
    const int64_t n = s->size.linear.in;
    if (k->unit != KUNIT_SQUARE || s->in[1].type == DT_BF16 || n % 8 != 0)
        return 0;
    const int64_t parts = cuda_unpacked_parts(s->in[1].type, k->act);
    return mem_product((size_t)s->size.linear.out, (size_t)(n * 2 * parts));
}

bool cuda_may_halve(const exec *e, const plan_step *s, int64_t rows)
{
    const plan_kernel *k = plan_kernel_of(e->p, s);
    const int64_t in = s->size.linear.in;
    if (!e->d->bulk || k->unit != KUNIT_SQUARE || !cuda_act_halves(k->act) || in % MMA_DEPTH != 0)
        return false;
    return s->in[1].type == DT_F16 ||
           (s->in[1].type == DT_BF16 &&
            rows >= (cuda_halves_parts(k->act) == 1 ? CUDA_NEAR_ROWS : CUDA_HALVES_ROWS) &&
            mem_product((size_t)s->size.linear.out, (size_t)(in * 2)) <= UNPACKED_MAX);
}

size_t cuda_halved_bytes(const exec *e, const plan_step *s, int64_t rows)
{
    return s->in[1].type == DT_BF16 && cuda_may_halve(e, s, rows)
               ? (size_t)cuda_halves_bytes(s->size.linear.out, s->size.linear.in)
               : 0;
}

/* Of a step, as bf16 or as f16. */
static size_t unpacked_step(const exec *e, const plan_step *s, int64_t rows)
{
    const size_t own = cuda_unpacked_bytes(e->p, s), halves = cuda_halved_bytes(e, s, rows);
    return halves > own ? halves : own;
}

/* The most that steps of a phase have of them together, if that is not too much: others are made in their turn (squares_fit in
 * cuda_run.c). */
static size_t unpacked_phase(const exec *e, const plan_step *first, const plan_step *end,
                             int64_t rows)
{
    size_t most = 0, sum = 0;
    for (const plan_step *s = first; s < end; s++) {
        const size_t own = unpacked_step(e, s, rows);
        sum = own <= UNPACKED_MAX - sum ? sum + own : own;
        if (sum > UNPACKED_MAX)
            sum = 0;
        most = sum > most ? sum : most;
    }
    return most;
}

/* Has a phase weights that cannot be multiplied otherwise? */
static bool needs_unpacked(const plan *p, const plan_step *first, const plan_step *end)
{
    bool needs = false;
    for (const plan_step *s = first; s < end; s++)
        needs =
            needs || (plan_kernel_of(p, s)->unit == KUNIT_SQUARE && !cuda_decodes(s->in[1].type));
    return needs;
}

/* The most that a phase of calls with many rows has of them. */
static size_t unpacked_most(const exec *e)
{
    const plan *p = e->p;
    size_t most = 0;
    for (int32_t b = 0; b < p->n_bucket; b++) {
        const plan_bucket *c = &p->bucket[b];
        for (int32_t i = 0, end; i < c->n_item; i = end) {
            for (end = i + 1; end < c->n_item && c->item[end].phase == c->item[i].phase;)
                end++;
            const plan_item *last = &c->item[end - 1];
            const plan_step *from = &c->step[c->item[i].first],
                            *to = &c->step[last->first + last->n_step];
            const bool wanted = c->n_tok_max >= CUDA_UNPACK_ROWS || needs_unpacked(p, from, to);
            const size_t bytes = wanted ? unpacked_phase(e, from, to, c->n_tok_max) : 0;
            most = bytes > most ? bytes : most;
        }
    }
    return most;
}

/* What an exec will be; its memory is not there. out_own: bytes of the host alone. */
static weft_status size_exec(weft_diag *dg, const cuda_device *d, const device_load *what,
                             exec *out_e, size_t *out_own)
{
    const plan *p = what->p;
    exec e = {.d = cuda_of(&d->base), .p = p, .lora_bytes = lora_size(what->lora)};
    carving tables = {0}, own = {0};
    size_t scratch, blocks;
    if (!size_align_up(unpacked_most(&e), CUDA_ALIGN, &e.unpacked_bytes) ||
        !size_align_up(p->local_bytes, CUDA_ALIGN, &e.local_bytes) ||
        !size_align_up(p->scratch_bytes, CUDA_ALIGN, &scratch) ||
        !size_add(e.local_bytes, scratch, &e.block_bytes) ||
        !size_mul(e.block_bytes, (size_t)d->blocks, &blocks) ||
        !size_add(blocks, e.unpacked_bytes, &e.bytes.scratch))
        return weft_fail(dg, W0902, WEFT_NOWHERE, "memory for %d blocks is too large", d->blocks);
    carve_tables(&tables, what, &e);
    carve(&own, 1, sizeof e);
    carve_own(&own, &e);
    e.bytes.arena = p->arena_bytes;
    e.bytes.tables = e.at.end;
    e.bytes.host = e.at.ns + DEVICE_CALLS * e.at.ns + own.at;
    *out_e = e;
    *out_own = own.at;
    return WEFT_OK;
}

weft_status cuda_need(weft_diag *dg, device *d, const device_load *what, device_memory *out_m)
{
    exec e;
    size_t own;
    WEFT_TRY(size_exec(dg, cuda_of(d), what, &e, &own));
    *out_m = e.bytes;
    return WEFT_OK;
}

/* ---- steps ---- */

static weft_status find_kernels(weft_diag *dg, const plan *p, const kernel_row **rows)
{
    for (int32_t i = 0; i < p->n_kernel; i++) {
        rows[i] = cuda_row_find(p->kernel[i].name);
        if (!rows[i])
            return weft_fail(dg, W1501, WEFT_NOWHERE,
                             "the plan has a kernel %s, which CUDA cards have not",
                             p->kernel[i].name);
    }
    return WEFT_OK;
}

/* What steps of one shape have in common: memcmp compares it. */
static void shape_of(const kargs *k, int32_t row, cuda_shape *to)
{
    memset(to, 0, sizeof *to);
    memcpy(to->k.type, k->type, sizeof k->type);
    memcpy(to->k.pitch, k->pitch, sizeof k->pitch);
    memcpy(to->k.out_pitch, k->out_pitch, sizeof k->out_pitch);
    memcpy(to->k.stride, k->stride, sizeof k->stride);
    memcpy(to->k.n + 1, k->n + 1, sizeof k->n - sizeof *k->n);
    memcpy(to->k.f, k->f, sizeof k->f);
    memcpy(to->k.word, k->word, sizeof k->word);
    to->k.cols = k->cols;
    to->k.tile = k->tile;
    to->k.n_code = k->n_code;
    to->row = row;
}

/* The number of a step's shape, which is added where none is the same. */
static int32_t add_shape(cuda_bucket *c, const kargs *k, int32_t row)
{
    cuda_shape *last = &c->shapes[c->n_shape];
    int32_t i = 0;
    shape_of(k, row, last);
    while (memcmp(&c->shapes[i], last, sizeof *last) != 0)
        i++;
    c->n_shape += i == c->n_shape;
    return i;
}

static void size_linear(const kargs *k, cuda_step *s)
{
    s->linear_out = (int32_t)k->size.linear.out;
    s->linear_in = (int32_t)k->size.linear.in;
    s->x_pitch = k->pitch[0];
    s->pitch = k->pitch[1];
    s->out_pitch = k->out_pitch[0];
}

/* Weights that come through the ring, if they can be cut. */
static void cut_step(cuda_bucket *c, const kargs *k, const kernel_row *row, cuda_step *s)
{
    s->cut = cuda_cut_of(row->type, k->size.linear.in, k->pitch[1], k->size.linear.out);
    if ((uintptr_t)k->in[1] % 16 != 0)
        s->cut.rows = 0;
    size_t x = align_up((size_t)cuda_ring_x_bytes(row->type, k->size.linear.in));
    if (s->cut.rows == 0)
        return;
    const size_t chunk = (size_t)cuda_chunk_bytes(row->type, s->cut);
    c->ring_x = x > c->ring_x ? x : c->ring_x;
    c->ring_slot = chunk > c->ring_slot ? chunk : c->ring_slot;
}

/* Have threads of sheets the registers for so many rows of x? With more than 16 they need those that sm_90a lets warps give each
 * other. */
static bool has_registers(const cuda_device *d, int64_t rows)
{
    return rows <= 2 * FEW_N || cuda_attribute(d, CU_CAPABILITY_MAJOR) == 9;
}

/* Can its weights come in sheets? Then some columns are a unit, with all rows of x, which is the card's. */
static bool has_sheets(const exec *e, const cuda_bucket *c, const kargs *k, const kernel_row *row,
                       int32_t i)
{
    const uintptr_t places =
        (uintptr_t)k->in[0] | (uintptr_t)k->pitch[0] | (uintptr_t)k->in[1] | (uintptr_t)k->pitch[1];
    return row->scratch == KSCRATCH_CUDA_FEW && c->plan->n_tok_max > 1 &&
           c->plan->n_tok_max <= sheet_rows_most(row->type) &&
           has_registers(e->d, c->plan->n_tok_max) && k->tile > 0 &&
           k->size.linear.in % SHEET_COLS == 0 && k->size.linear.in / SHEET_COLS <= UINT16_MAX &&
           places % 16 == 0 && ((c->own[i].local | c->own[i].tile) & 1) == 0;
}

/* Of such a cut `rows` is from row to row in a slot, in 16 bytes, `bytes` of a chunk, and `paired` the tiles of a group. */
static void cut_sheets(cuda_bucket *c, const kargs *k, const kernel_row *row, cuda_step *s)
{
    const size_t slot = (size_t)sheet_bytes(row->type);
    s->cut = (cuda_cut){.rows = (uint16_t)(sheet_pitch(row->type) / 16),
                        .chunks = (uint16_t)(k->size.linear.in / SHEET_COLS),
                        .bytes = (uint16_t)sheet_chunk(row->type),
                        .paired = (uint16_t)sheet_group(row->type, c->plan->n_tok_max)};
    c->sheets = true;
    c->sheet_slot = slot > c->sheet_slot ? slot : c->sheet_slot;
}

static weft_status load_step(weft_diag *dg, const exec *e, const exec_places *at, cuda_bucket *c,
                             int32_t i)
{
    const plan_step *s = &c->plan->step[i];
    kargs k = exec_step_args(e->p, c->plan, s, at);
    c->args[i] = k;
    c->own[i] = exec_step_spaces(s);
    c->steps[i] = (cuda_step){.code = k.code,
                              .cell = k.cell,
                              .rows = (int32_t)k.n[0],
                              .number = i,
                              .shape = add_shape(c, &k, (int32_t)(c->rows[i] - cuda_row_table)),
                              .tile_cols = (int32_t)k.tile,
                              .segment = -1,
                              .local = c->own[i].local,
                              .tile = c->own[i].tile};
    memcpy(c->steps[i].in, k.in, sizeof k.in);
    memcpy(c->steps[i].out, k.out, sizeof k.out);
    if (c->rows[i]->op == KOP_linear)
        size_linear(&k, &c->steps[i]);
    if (c->rows[i]->op == KOP_linear && s->per_row == 1 && c->rows[i]->most == 1)
        cut_step(c, &k, c->rows[i], &c->steps[i]);
    else if (c->rows[i]->op == KOP_linear && has_sheets(e, c, &k, c->rows[i], i))
        cut_sheets(c, &k, c->rows[i], &c->steps[i]);
    k.cell = s->cell >= 0 ? e->cells + s->cell : NULL; /* those that can be looked at here */
    k.lora = e->lora;
    size_t need = kernel_scratch(c->rows[i], &k), scratch = e->block_bytes - e->local_bytes;
    c->scratch[i] = need;
    if (need > scratch)
        return weft_fail(dg, W1501, s->loc, "%s needs %zu bytes of scratch, the plan has %zu",
                         c->rows[i]->symbol, need, scratch);
    return WEFT_OK;
}

/* Where linears of one row have a ring of their own kind, which are few. */
static void drop_sheets(cuda_bucket *c)
{
    c->sheets = false;
    for (int32_t i = 0; i < c->plan->n_step; i++)
        if (c->rows[i]->most > 1)
            c->steps[i].cut = (cuda_cut){0};
}

static weft_status load_steps(weft_diag *dg, const device_load *what, exec *e,
                              const kernel_row *const *rows)
{
    exec_places at = {.weight = cuda_weights_at,
                      .w = what->w,
                      .arena = e->arena,
                      .consts = e->card + e->at.consts,
                      .code = (const kinstr *)(void *)(e->card + e->at.code),
                      .cells = (const kcell *)(void *)(e->card + e->at.cells),
                      .lora = e->lora ? (const klora *)(void *)(e->card + e->at.lora) : NULL,
                      .slots = what->slots};
    for (int32_t b = 0; b < e->p->n_bucket; b++) {
        cuda_bucket *c = &e->buckets[b];
        for (int32_t i = 0; i < c->plan->n_step; i++) {
            c->heads[i] = -1;
            c->rows[i] = rows[c->plan->step[i].kernel];
            WEFT_TRY(load_step(dg, e, &at, c, i));
        }
        if (c->sheets && c->ring_x > 0)
            drop_sheets(c);
        for (int32_t i = 0; i < c->plan->n_item; i++) {
            const plan_item *it = &c->plan->item[i];
            c->items[i] = (cuda_item){.first = it->first,
                                      .n_step = it->n_step,
                                      .every = it->per_thread,
                                      .grain = it->grain};
            for (int32_t k = 0; k < it->n_step; k++)
                c->steps[it->first + k].item = i;
        }
        cuda_lasting_find(c);
    }
    return WEFT_OK;
}

/* How many blocks of so much shared memory fit a multiprocessor. */
static cu_result blocks_fit(const cuda_device *d, const cuda_bucket *c, int *out_n)
{
    return d->driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(
        out_n, c->kernel->phases, cuda_phases_threads(c),
        PACKS_BYTES + c->shared + c->ring_bytes + c->batch_bytes);
}

/* Scratch of a block: what steps need now that it is known how cells lie, which may be less than the plan has. */
static size_t bucket_scratch(const cuda_bucket *c)
{
    size_t most = 0;
    for (int32_t i = 0; i < c->plan->n_step; i++)
        most = c->scratch[i] > most ? c->scratch[i] : most;
    return align_up(most);
}

/* With so many slots to a warp. */
static size_t ring_bytes(const cuda_bucket *c, int slots)
{
    return c->ring_x + (size_t)cuda_ring_bytes(CUDA_BLOCK / 32, slots, (int64_t)c->ring_slot);
}

/* A ring, where shared memory has room for it beside the block's own: of as many slots as fit. */
static void choose_ring(cuda_bucket *c)
{
    c->ring_bytes = c->batch_bytes = 0;
    for (int slots = RING_SLOTS; slots >= RING_SLOTS_LEAST && c->ring_bytes == 0; slots--) {
        const size_t ring = ring_bytes(c, slots);
        if (c->ring_x > 0 && c->shared > 0 &&
            c->shared + BATCH_BYTES + ring <= c->kernel->shared_bytes) {
            c->ring_bytes = ring;
            c->batch_bytes = BATCH_BYTES;
            c->ring_slots = slots;
        }
    }
}

/* Slots of sheets, in scratch that so may become more. */
static void choose_sheets(cuda_bucket *c)
{
    const size_t own = c->local_bytes + (size_t)sheet_own(c->plan->n_tok_max);
    const size_t less = own + BATCH_BYTES_FEW;
    const size_t room = c->kernel->shared_bytes > less ? c->kernel->shared_bytes - less : 0;
    const size_t slots = room / c->sheet_slot < RING_SLOTS ? room / c->sheet_slot : RING_SLOTS;
    c->ring_slots = c->shared > 0 && slots >= SHEETS_LEAST ? (int)slots : 0;
    c->ring_slot = c->sheet_slot;
    const size_t all = align_up(own + slots * c->sheet_slot);
    if (c->ring_slots > 0 && all > c->shared)
        c->shared = all;
}

/* What is left of shared memory, for a copy of the batch: blocks that look into it then need not wait for the card's memory. */
static size_t batch_room(size_t left)
{
    return left < BATCH_BYTES_FEW ? left / 256 * 256 : BATCH_BYTES_FEW;
}

/* Is there no room for it where all linears are of one row? With more rows they are but few. */
static bool lacks_ring(const cuda_bucket *c)
{
    return c->plan->n_tok_max == 1 && c->ring_x > 0 && c->ring_bytes == 0;
}

/* Has a bucket linears whose weights should stream through shared memory, and no room for that? They are many times slower
 * then. */
static bool is_slow(const cuda_bucket *c)
{
    if (lacks_ring(c))
        return true;
    if (c->shared > 0)
        return false;
    for (int32_t i = 0; i < c->plan->n_step; i++)
        if (c->rows[i]->scratch == KSCRATCH_CUDA_FEW)
            return true;
    return false;
}

/* Has a bucket of many rows squares that no ring of stages has room for? Bytes of the smallest then, or 0. */
static size_t squares_lack(const exec *e, const cuda_bucket *c)
{
    const size_t *room = e->d->shared_bytes;
    for (int32_t i = 0; i < c->plan->n_step; i++) {
        const bool experts = c->rows[i]->unit == KUNIT_SQUARE_EXPERT;
        const int64_t lists =
            experts ? cuda_expert_lists_bytes(c->args[i].size.experts.experts) : 0;
        if ((experts || c->rows[i]->unit == KUNIT_SQUARE) &&
            cuda_squares_bytes((int64_t)room[experts ? CUDA_GRID_experts : CUDA_GRID_squares],
                               lists) == 0)
            return (size_t)(MMA_STAGES_LEAST * MMA_STAGE_BYTES + MMA_ALIGN + lists);
    }
    return 0;
}

/* Calls of `least` rows and more, up to those of a bucket. */
static void report_slow(weft_diag *dg, int64_t least, const cuda_bucket *last, size_t need)
{
    char rows[64] = "one row";
    if (last->plan->n_tok_max > 1)
        snprintf(rows, sizeof rows, "%" PRId64 " to %" PRId64 " rows", least,
                 last->plan->n_tok_max);
    weft_warn(dg, W1616, WEFT_NOWHERE,
              "calls of %s are slow: they take %zu bytes of shared memory for a block, the card "
              "has %zu",
              rows, need, last->kernel->shared_bytes);
}

/* Calls of few rows are over in microseconds, of which launches would be the most: their phases are one launch where blocks can wait
 * for each other, which needs all of them to be there at once. Elsewhere each is a launch with a block's memory as it is in that one.
 * In calls of many rows what lasts from one launch to the next cannot be in shared memory. */
static weft_status choose_launches(weft_diag *dg, exec *e)
{
    const cuda_device *d = e->d;
    const cuda_bucket *first = NULL, *slow = NULL;
    size_t need = 0;
    cu_result r = CU_OK;
    WEFT_TRY(cuda_enter(dg, d));
    for (int32_t i = 0; i < e->p->n_bucket && r == CU_OK; i++) {
        cuda_bucket *c = &e->buckets[i];
        int fits = 0;
        const bool few = c->plan->n_tok_max <= FEW_CALL_MAX;
        const size_t lacks = few ? 0 : squares_lack(e, c);
        if (lacks > 0) {
            first = first ? first : c;
            slow = c;
            need = lacks;
        }
        if (!few && c->local_bytes > 0)
            continue;
        size_t own = c->local_bytes + bucket_scratch(c);
        c->shared = own <= c->kernel->shared_bytes ? own : 0;
        if (few && c->sheets && c->kernel == &c->made)
            choose_sheets(c);
        else if (few)
            choose_ring(c);
        if (few && c->shared > 0 && c->ring_bytes == 0)
            c->batch_bytes = batch_room(c->kernel->shared_bytes - c->shared);
        r = blocks_fit(d, c, &fits);
        c->packed = few && fits > 0;
        c->at_once = c->packed && d->calls == CUDA_CALLS_PERSISTENT;
        if (fits == 0) {
            c->shared = c->ring_bytes = c->batch_bytes = 0;
            c->ring_slots = 0;
        }
        if (few && is_slow(c)) {
            first = first ? first : c;
            slow = c;
            need = own + (lacks_ring(c) ? BATCH_BYTES + ring_bytes(c, RING_SLOTS_LEAST) : 0);
        }
    }
    if (slow)
        report_slow(dg, first == e->buckets ? 1 : first[-1].plan->n_tok_max + 1, slow, need);
    return cuda_leave(dg, d, r, "asking how many blocks fit");
}

/* ---- the whole ---- */

void cuda_unload(exec *e)
{
    if (!e)
        return;
    cuda_stream_end(e->d, e->stream);
    cuda_graphs_free(e);
    cuda_made_free(e);
    void *const parts[] = {e->arena, e->blocks, e->card, e->host, e->sent};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        cuda_give(e->d, parts[i]);
    mem_free(e->times);
    mem_free(e->ns);
    mem_free(e); /* its tables with it */
}

static weft_status take_parts(weft_diag *dg, exec *e)
{
    struct {
        size_t bytes;
        bool host;
        char **to;
    } parts[] = {{e->bytes.arena, false, &e->arena},
                 {e->bytes.scratch, false, &e->blocks},
                 {e->at.end, false, &e->card},
                 {e->at.ns, true, &e->host},
                 {DEVICE_CALLS * e->at.ns, true, &e->sent}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        void *p;
        WEFT_TRY(cuda_take(dg, e->d, parts[i].bytes, parts[i].host, &p));
        *parts[i].to = p;
    }
    if (e->unpacked_bytes)
        e->unpacked = e->blocks + (e->bytes.scratch - e->unpacked_bytes);
    WEFT_TRY(cuda_stream(dg, e->d, &e->stream));
    WEFT_TRY(cuda_enter(dg, e->d));
    cu_result r = e->d->driver->cuMemHostGetDevicePointer(&e->host_seen, e->host, 0);
    return cuda_leave(dg, e->d, r, "mapping memory of the host");
}

static weft_status fill(weft_diag *dg, const device_load *what, exec *e)
{
    const plan *p = what->p;
    carving c = {.base = e->host};
    memset(e->host, 0, e->at.ns);
    carve_tables(&c, what, e);
    if (p->const_bytes)
        memcpy(e->host + e->at.consts, p->consts, p->const_bytes);
    if (p->n_code)
        memcpy(e->host + e->at.code, p->code, (size_t)p->n_code * sizeof *p->code);
    if (p->n_cell)
        memcpy(e->host + e->at.cells, e->cells, (size_t)p->n_cell * sizeof *e->cells);
    if (e->lora)
        memcpy(e->host + e->at.lora, e->lora, e->lora_bytes);
    const kernel_row **rows = mem_alloc(mem_product((size_t)p->n_kernel + 1, sizeof *rows));
    weft_status st = find_kernels(dg, p, rows);
    if (st == WEFT_OK)
        st = load_steps(dg, what, e, rows);
    mem_free(rows);
    WEFT_TRY(st);
    cuda_made_load(dg, what, e);
    WEFT_TRY(choose_launches(dg, e));
    return e->d->base.kind->copy_in(dg, &e->d->base, e->card, e->host, e->at.ns);
}

weft_status cuda_load(weft_diag *dg, device *d, const device_load *what, exec **out_e)
{
    exec sized;
    size_t own;
    WEFT_TRY(size_exec(dg, cuda_of(d), what, &sized, &own));
    exec *e = mem_alloc(own);
    carving c = {.base = (char *)e};
    memset(e, 0, own);
    *e = sized;
    e->cells = what->cells;
    e->lora = what->lora;
    e->cancel = what->cancel;
    carve(&c, 1, sizeof *e);
    carve_own(&c, e);
    weft_status st = take_parts(dg, e);
    if (st == WEFT_OK)
        st = fill(dg, what, e);
    if (st == WEFT_OK)
        *out_e = e;
    else
        cuda_unload(e);
    return st;
}
