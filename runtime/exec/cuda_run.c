/* cuda_run.c - a call on a card: what changed goes up, phases are launched, and somebody waits.
 *
 * All of it is in order on one stream. What the launches are, cuda_launch.c says; where somebody watches, each phase is one. */
#include "runtime/exec/cuda_impl.h"

#include "kernels/cuda/cuda_rows.h"
#include "kernels/cuda/flash_size.h"
#include "runtime/base/clock.h"
#include <inttypes.h>
#include <time.h>

/* ---- tables ---- */

/* The card takes it from a copy: the next call may change the tables before it was taken. */
cu_result cuda_push(const exec *e, const void *part, size_t bytes)
{
    size_t at = (size_t)((const char *)part - e->host);
    char *sent = e->sent + e->turn % DEVICE_CALLS * e->at.ns + at;
    WEFT_ASSERT(at + bytes <= e->at.ns);
    if (bytes == 0)
        return CU_OK;
    memcpy(sent, part, bytes);
    return e->d->driver->cuMemcpyHtoDAsync(cuda_at(e->card + at), sent, bytes, e->stream);
}

/* The same for what the host has elsewhere, if it has changed. */
static cu_result push_changed(const exec *e, size_t at, const void *from, size_t bytes)
{
    if (bytes == 0 || memcmp(e->host + at, from, bytes) == 0)
        return CU_OK;
    memcpy(e->host + at, from, bytes);
    return cuda_push(e, e->host + at, bytes);
}

static int64_t units_of(const exec *e, const cuda_bucket *c, int32_t step, const kbatch *b)
{
    kargs k = c->args[step];
    int32_t cell = c->plan->step[step].cell;
    k.batch = b; /* those that can be looked at here */
    k.cell = cell >= 0 ? e->cells + cell : NULL;
    k.lora = e->lora;
    return kernel_units(c->rows[step], &k);
}

/* Units of all items, or only of those that have other ones in calls with as many rows; whether any has changed. */
static bool count_units(const exec *e, cuda_bucket *c, const kbatch *b, bool all)
{
    bool changed = false;
    for (int32_t i = 0; i < c->plan->n_item; i++) {
        const plan_item *it = &c->plan->item[i];
        if (!all && !kunit_varies(c->rows[it->first]->unit))
            continue;
        int64_t n = units_of(e, c, it->first, b);
        for (int32_t k = 1; k < it->n_step && all; k++)
            WEFT_ASSERT(units_of(e, c, it->first + k, b) == n);
        changed = changed || n != c->units[i];
        c->items[i].units = c->units[i] = n;
    }
    return changed;
}

/* Has a phase a step that needs the scratch where sheets would be? */
static bool needs_scratch(const cuda_bucket *c, const cuda_phase *p)
{
    const size_t own = (size_t)sheet_own(c->plan->n_tok_max);
    bool needs = false;
    for (int32_t i = p->step; i < p->step + p->n_step; i++)
        needs = needs || (c->scratch[i] > own &&
                          (c->steps[i].cut.rows == 0 || c->items[c->steps[i].item].every));
    return needs;
}

/* A phase with what is in it; of one that has more than there is room for, only where that is. */
static void fill_pack(const cuda_bucket *c, const cuda_phase *p, cuda_pack *to)
{
    to->at = *p;
    to->alone = needs_scratch(c, p);
    if (p->n_item > PACK_ITEMS || p->n_step > PACK_STEPS)
        return;
    memcpy(to->item, c->items + p->first, (size_t)p->n_item * sizeof *to->item);
    memcpy(to->step, c->steps + p->step, (size_t)p->n_step * sizeof *to->step);
}

/* The units of its items in one line. */
static int64_t line_up(cuda_bucket *c, item_span s)
{
    int64_t at = 0;
    for (int32_t i = s.first; i < s.end; i++) {
        c->items[i].every = c->plan->item[i].per_thread;
        c->items[i].at = at;
        at += c->items[i].every ? 0 : c->units[i];
    }
    return at;
}

/* Are a phase's steps all experts by square, which choose alike? */
static bool experts_alone(const exec *e, const cuda_bucket *c, const cuda_phase *p)
{
    const kargs *first = &c->args[p->step];
    bool alone = p->n_step == p->n_item;
    for (int32_t i = p->step; i < p->step + p->n_step && alone; i++)
        alone = c->rows[i]->unit == KUNIT_SQUARE_EXPERT &&
                cuda_experts_shared(e, &c->args[i]) > 0 && c->args[i].in[2] == first->in[2] &&
                c->args[i].size.experts.slots == first->size.experts.slots &&
                c->args[i].size.experts.experts == first->size.experts.experts;
    return alone;
}

/* Attention by tiles: which function has those of the step's cell. */
static cuda_grid flash_grid(const exec *e, const cuda_bucket *c, int32_t step)
{
    return flash_codes(&e->cells[c->plan->step[step].cell]) ? CUDA_GRID_codes : CUDA_GRID_flash;
}

/* The function that does best with a phase that is a launch of its own. */
static cuda_grid grid_of(const exec *e, const cuda_bucket *c, const cuda_phase *p)
{
    bool light = true, dots = true, flash = true, squares = cuda_squares_shared(e) > 0;
    for (int32_t i = p->step; i < p->step + p->n_step; i++) {
        light = light && cuda_row_is_light(c->rows[i]);
        flash = flash && c->rows[i]->unit == KUNIT_QUERIES_FLASH &&
                flash_grid(e, c, i) == flash_grid(e, c, p->step) &&
                c->scratch[i] <= e->d->shared_bytes[flash_grid(e, c, i)];
        dots = dots && c->rows[i]->op == KOP_linear && c->rows[i]->most == 1;
        squares = squares && c->rows[i]->unit == KUNIT_SQUARE;
    }
    const bool made = c->kernel != &e->d->all; /* and shapes are those of its image */
    return c->local_bytes > 0 || made ? CUDA_GRID_phases
           : light                    ? CUDA_GRID_light
           : dots                     ? CUDA_GRID_dots
           : flash                    ? flash_grid(e, c, p->step)
           : squares                  ? CUDA_GRID_squares
           : experts_alone(e, c, p)   ? CUDA_GRID_experts
                                      : CUDA_GRID_phases;
}

/* Does one of steps [first, end), all squares, have weights that weft_squares has to be given as bf16? */
static bool has_others(const cuda_bucket *c, int32_t first, int32_t end)
{
    bool has = false;
    for (int32_t i = first; i < end; i++)
        has = has || !cuda_decodes(c->args[i].type[1]);
    return has;
}

/* Are their weights made bf16 first? Where they have to be, and else with so many rows that it pays; if there is room. */
static bool unpacks(const exec *e, const cuda_bucket *c, int32_t first, int32_t end)
{
    const bool others = has_others(c, first, end);
    size_t bytes = 0;
    for (int32_t i = first; i < end; i++) {
        const size_t own = cuda_unpacked_bytes(e->p, &c->plan->step[i]);
        if (others ? own == 0 && !cuda_decodes(c->args[i].type[1])
                   : c->steps[i].rows < CUDA_UNPACK_ROWS)
            return false;
        bytes += own;
    }
    return bytes > 0 && bytes <= e->unpacked_bytes;
}

/* The function that runs a phase of squares, and what its weights are made first. halves: f16, if they can be. */
static cuda_grid squares_of(const exec *e, const cuda_bucket *c, const cuda_phase *p, bool halves,
                            cuda_unpacking *out_how)
{
    const int32_t end = p->step + p->n_step;
    *out_how = halves && cuda_has_halves(e, c, p) ? UNPACK_HALVES
               : unpacks(e, c, p->step, end)      ? UNPACK_BF16
                                                  : UNPACK_NONE;
    if (*out_how == UNPACK_NONE && has_others(c, p->step, end))
        return CUDA_GRID_phases;
    return *out_how == UNPACK_HALVES || cuda_has_tiles(e, c, p, *out_how == UNPACK_BF16)
               ? CUDA_GRID_bulk
               : CUDA_GRID_squares;
}

/* Of squares whose weights are made bf16 first, as many as there is room for: the others are a phase of their own. */
static item_span squares_fit(const exec *e, const cuda_bucket *c, item_span s)
{
    const plan_item *item = c->plan->item;
    size_t bytes = 0;
    int32_t end = s.end;
    for (int32_t i = s.first; i < s.end; i++) {
        if (item[i].n_step != 1 || c->rows[item[i].first]->unit != KUNIT_SQUARE)
            return s;
        const size_t own = cuda_unpacked_bytes(e->p, &c->plan->step[item[i].first]);
        const size_t halves =
            cuda_halved_bytes(e, &c->plan->step[item[i].first], c->steps[item[i].first].rows);
        bytes += halves > own ? halves : own;
        end = bytes > e->unpacked_bytes && i > s.first && i < end ? i : end;
    }
    const int32_t first = item[s.first].first, last = item[s.end - 1].first;
    const bool wanted = c->steps[first].rows >= CUDA_UNPACK_ROWS || has_others(c, first, last + 1);
    return wanted ? (item_span){s.first, end} : s;
}

/* ---- phases that are one ----
 *
 * Of a row, queries are turned, and its key and value appended, head by head, and attention needs of these what belongs to its own
 * head. So a block does that for the heads that it attends with, in the same phase: there is no gate between. Of several rows too,
 * if none is of another's sequence; but there one step has to do all of it (cuda_heads.c). */

/* Does step i do, unit by unit, what head by head belongs to attention `a` over a cell, and read nothing that other blocks write in
 * that? */
static bool step_joins(const cuda_bucket *c, const kcell *cell, int32_t i, int32_t a)
{
    const kargs *k = &c->args[i], *to = &c->args[a];
    const bool rope = c->rows[i]->op == KOP_rope;
    const int64_t rows = c->n_row[ROWS_T], out_bytes = rows * to->out_pitch[0];
    if (!rope && (c->rows[i]->op != KOP_append || c->plan->step[i].cell != c->plan->step[a].cell))
        return false;
    if (rope && k->tile != k->size.rope.width)
        return false;
    if (rope && cuda_rows_meet(k->out[0], rows * k->out_pitch[0], to->in[0], rows * to->pitch[0]) &&
        (k->out[0] != to->in[0] || k->out_pitch[0] != to->pitch[0] ||
         k->size.rope.heads * k->size.rope.width != to->size.attend.heads * cell->k))
        return false; /* heads of queries are others than those that it turns */
    for (int in = 0; in < K_IN_MAX; in++) {
        const bool same =
            rope && in == 0 && k->in[0] == to->out[0] && k->pitch[0] == to->out_pitch[0] &&
            k->size.rope.heads == to->size.attend.heads && k->size.rope.width == cell->v;
        const bool own = (c->own[i].local | c->own[i].tile) >> in & 1;
        if (k->in[in] && !own && !same &&
            cuda_rows_meet(k->in[in], rows * k->pitch[in], to->out[0], out_bytes))
            return false;
    }
    return true;
}

/* Units of attention `a` to a head of its cell that may follow phase p; 0: it may not be one with that. Where stretches are units all
 * blocks that have some of a head prepare it, each the same: that has to be one step, which reads nothing that another writes. */
static int32_t followed_each(const cuda_bucket *c, const cuda_phase *p, int32_t a)
{
    const int32_t part = c->args[a].choice.attend.part;
    return part == ATTEND_WHOLE                                   ? 1
           : part == ATTEND_STATES && cuda_heads_may_repeat(c, p) ? (int32_t)ATTEND_STRETCHES
                                                                  : 0;
}

/* Is the phase that was listed last one with span s, which is attention? */
static bool phase_joins(const exec *e, const cuda_bucket *c, item_span s)
{
    const int64_t rows = c->n_row[ROWS_T];
    if (!c->packed || c->apart || c->n_row[ROWS_S] != rows || c->n_phase == 0)
        return false;
    const plan_item *last = &c->plan->item[s.first];
    const cuda_phase *p = &c->phases[c->n_phase - 1];
    if (s.first != p->first + p->n_item || last->first != p->step + p->n_step)
        return false; /* what is between has nothing to do in this call */
    if (s.end - s.first != 1 || last->n_step != 1 || p->n_item >= PACK_ITEMS ||
        p->n_step >= PACK_STEPS || c->rows[last->first]->op != KOP_attend ||
        c->rows[last->first]->unit != KUNIT_QUERIES_FEW || last->per_thread)
        return false;
    const kcell *cell = &e->cells[c->plan->step[last->first].cell];
    const int32_t each = followed_each(c, p, last->first);
    bool joins = each > 0 && c->units[s.first] == rows * cell->heads * each &&
                 (rows == 1 || cuda_heads_are(c, p));
    for (int32_t i = p->first; i < p->first + p->n_item; i++)
        joins = joins && !c->plan->item[i].per_thread && c->units[i] % cell->heads == 0;
    for (int32_t i = p->step; i < p->step + p->n_step; i++)
        joins = joins && step_joins(c, cell, i, last->first);
    return joins;
}

/* Has a step an operand among these bytes? */
static bool step_meets(const cuda_bucket *c, int32_t i, const void *at, int64_t bytes)
{
    const kargs *k = &c->args[i];
    const int64_t rows = c->n_row[ROWS_T];
    const uint32_t own = c->own[i].local | c->own[i].tile;
    bool meets = false;
    for (int in = 0; in < K_IN_MAX; in++)
        meets = meets || (k->in[in] && !(own >> in & 1) &&
                          cuda_rows_meet(k->in[in], rows * k->pitch[in], at, bytes));
    for (int out = 0; out < K_OUT_MAX; out++)
        meets = meets || (k->out[out] && !(own >> (K_IN_MAX + out) & 1) &&
                          cuda_rows_meet(k->out[out], rows * k->out_pitch[out], at, bytes));
    return meets;
}

/* Does what quantises behind attention, in span s, follow that in the phase that was listed last? Not where its results take the place
 * of what other blocks may not have read yet. */
static bool quantize_follows(const cuda_bucket *c, item_span s)
{
    const cuda_phase *p = &c->phases[c->n_phase - 1];
    const int32_t i = c->plan->item[s.first].first;
    bool follows = s.end - s.first == 1 && s.first == p->first + p->n_item &&
                   i == p->step + p->n_step && c->rows[i]->op == KOP_quantize && c->heads[i] >= 0 &&
                   p->n_item < PACK_ITEMS && p->n_step < PACK_STEPS;
    for (int32_t of = p->step; of < i && follows; of++)
        follows = !step_meets(c, of, c->args[i].out[0], c->n_row[ROWS_T] * c->args[i].out_pitch[0]);
    return follows;
}

/* Then each block does it for the heads it has attended with. */
static void quantize_follow(cuda_bucket *c, item_span s)
{
    cuda_phase *p = &c->phases[c->n_phase - 1];
    cuda_pack *pack = &c->packs[c->n_phase - 1];
    cuda_item *it = &c->items[s.first];
    it->every = ITEM_FOLLOWS;
    it->each = 1;
    it->at = 1;
    pack->item[p->n_item] = *it;
    pack->step[p->n_step] = c->steps[c->plan->item[s.first].first];
    pack->step[p->n_step].shape = c->heads[c->plan->item[s.first].first];
    p->n_item++;
    p->n_step++;
    pack->at = *p;
}

static void phase_join(const exec *e, cuda_bucket *c, item_span s)
{
    cuda_phase *p = &c->phases[c->n_phase - 1];
    const bool one = cuda_heads_are(c, p);
    const int32_t a = c->plan->item[s.first].first;
    const int64_t heads = e->cells[c->plan->step[a].cell].heads;
    for (int32_t i = p->first; i < s.first; i++) {
        c->items[i].every = ITEM_FOLLOWS;
        c->items[i].each = followed_each(c, p, a);
        c->items[i].at = c->units[i] / heads;
    }
    p->n_item++;
    p->n_step++;
    p->units = line_up(c, s);
    fill_pack(c, p, &c->packs[c->n_phase - 1]);
    if (one)
        cuda_heads_pack(e, c, true, &c->packs[c->n_phase - 1]);
}

/* Where each phase is a launch experts by square have one to themselves: what is with them in a phase would have the whole of it
 * computed number by number. */
static item_span span_alike(const exec *e, const cuda_bucket *c, item_span s)
{
    if (c->packed || c->apart || c->local_bytes > 0)
        return s;
    const bool square = c->rows[c->plan->item[s.first].first]->unit == KUNIT_SQUARE_EXPERT;
    int32_t end = s.first + 1;
    while (end < s.end &&
           (c->rows[c->plan->item[end].first]->unit == KUNIT_SQUARE_EXPERT) == square)
        end++;
    return squares_fit(e, c, (item_span){s.first, end});
}

/* Phases whose x cannot be f16 have no weights that are; the more of these there are, the fewer can. Whether steps have changed. */
static bool settle_halves(const exec *e, cuda_bucket *c)
{
    if (c->packed)
        return false; /* there are none */
    for (bool again = true; again;) {
        again = false;
        for (int32_t i = 0; i < c->n_phase; i++) {
            cuda_unpacking how;
            if (c->unpacks[i] != UNPACK_HALVES || cuda_halves_made(c, i))
                continue;
            c->grid[i] = (uint8_t)squares_of(e, c, &c->phases[i], false, &how);
            c->unpacks[i] = (uint8_t)how;
            again = true;
        }
    }
    return cuda_halves_tell(e, c);
}

static void list_phases(const exec *e, cuda_bucket *c)
{
    c->n_phase = 0;
    for (int32_t from = 0;;) {
        item_span s = exec_span_from(e->p, c->plan, c->units, from, c->apart);
        if (s.first >= s.end)
            return;
        s = span_alike(e, c, s);
        if (phase_joins(e, c, s)) {
            phase_join(e, c, s);
            from = s.end;
            s = exec_span_from(e->p, c->plan, c->units, from, c->apart);
            if (s.first < s.end && c->n_row[ROWS_T] > 1 && quantize_follows(c, s)) {
                quantize_follow(c, s);
                from = s.end;
            }
            continue;
        }
        const plan_item *first = &c->plan->item[s.first], *last = &c->plan->item[s.end - 1];
        cuda_phase *p = &c->phases[c->n_phase];
        *p = (cuda_phase){.first = s.first,
                          .n_item = s.end - s.first,
                          .step = first->first,
                          .n_step = last->first + last->n_step - first->first,
                          .units = line_up(c, s)};
        if (c->packed)
            fill_pack(c, p, &c->packs[c->n_phase]);
        if (c->n_row[ROWS_T] == 1 && cuda_heads_are(c, p))
            cuda_heads_pack(e, c, false, &c->packs[c->n_phase]);
        cuda_unpacking how = UNPACK_NONE;
        cuda_grid grid = grid_of(e, c, p);
        if (grid == CUDA_GRID_squares)
            grid = squares_of(e, c, p, true, &how);
        c->grid[c->n_phase] = (uint8_t)grid;
        c->unpacks[c->n_phase] = (uint8_t)how;
        c->n_phase++;
        from = s.end;
    }
}

/* Steps depend on how many rows there are, which says where the arrays of a batch are too, and on the adapters in use: decoding
 * prepares once. */
static cu_result prepare(exec *e, cuda_bucket *c, const kbatch *b)
{
    const int64_t rows[] = {[ROWS_T] = b->n_tok, [ROWS_R] = b->n_out, [ROWS_S] = b->n_seq};
    const uint64_t version = e->lora ? e->lora->version : 0;
    const bool apart = e->watch != NULL;
    bool same = c->ready && memcmp(c->n_row, rows, sizeof rows) == 0 && c->lora == version &&
                c->apart == apart;
    const kbatch *card = (const kbatch *)(void *)(e->card + e->at.batch);
    for (int32_t i = 0; i < c->plan->n_step && !same; i++) {
        kargs *k = &c->args[i];
        exec_step_call(&c->plan->step[i], c->own[i].io, card, rows, k);
        memcpy(c->steps[i].in, k->in, sizeof k->in);
        c->steps[i].rows = (int32_t)k->n[0];
    }
    c->ready = true;
    c->lora = version;
    c->apart = apart;
    memcpy(c->n_row, rows, sizeof rows);
    if (!count_units(e, c, b, !same) && same)
        return CU_OK;
    list_phases(e, c);
    same = !settle_halves(e, c) && same;
    char *last = c->packed ? (char *)(c->packs + c->n_phase) : (char *)(c->phases + c->n_phase);
    size_t end = (size_t)(last - (char *)c->items);
    cu_result r = cuda_push(e, c->items, end);
    return r == CU_OK && !same ? cuda_push(e, c->steps, (size_t)c->plan->n_step * sizeof *c->steps)
                               : r;
}

/* ---- calls ---- */

/* The word by which the card hears that a call is cancelled. */
static uint32_t *cancel_word(const exec *e)
{
    return (uint32_t *)(void *)(e->host + e->at.cancel);
}

/* A small batch goes with the launch, where that is one and blocks copy it; so do the tokens that it takes from the call before. */
static bool carry_batch(exec *e, const cuda_bucket *c, const kbatch *b, const cuda_tokens *next)
{
    const size_t bytes = kbatch_bytes(b);
    e->call.bytes = e->call.n_from = 0;
    if (!c->at_once || bytes > c->batch_bytes || e->watch || bytes > BATCH_BYTES ||
        b->n_tok > CHOOSE_INLINE)
        return false;
    memcpy(e->call.word, b, bytes);
    e->call.bytes = (int32_t)bytes;
    if (next) {
        e->call.n_from = next->n;
        e->call.before = next->before;
        memcpy(e->call.from, next->from_few, sizeof e->call.from);
    }
    return true;
}

/* carried: not the batch. */
static cu_result send_tables(exec *e, const kbatch *b, bool carried)
{
    cu_result r = e->in_doubt ? e->d->driver->cuStreamSynchronize(e->stream) : CU_OK;
    memcpy(e->host + e->at.batch, b, kbatch_bytes(b));
    if (r == CU_OK && e->in_doubt)
        r = cuda_push(e, e->host, e->at.ns);
    if (r == CU_OK)
        r = push_changed(e, e->at.cells, e->cells, (size_t)e->p->n_cell * sizeof *e->cells);
    if (r == CU_OK)
        r = push_changed(e, e->at.lora, e->lora, e->lora_bytes);
    return r == CU_OK && !carried ? cuda_push(e, e->host + e->at.batch, kbatch_bytes(b)) : r;
}

cu_result cuda_begin(exec *e, const kbatch *b, const cuda_tokens *next)
{
    cuda_bucket *c = &e->buckets[plan_bucket_for(e->p, b->n_tok) - e->p->bucket];
    void *args[] = {(void *)(uintptr_t)next};
    const bool carried = carry_batch(e, c, b, next);
    cu_result r = send_tables(e, b, carried);
    if (r == CU_OK && next && !carried)
        r = e->d->driver->cuLaunchKernel(e->d->tokens, 1, 1, 1, CUDA_BLOCK, 1, 1, 0, e->stream,
                                         args, NULL);
    if (r == CU_OK)
        r = prepare(e, c, b);
    if (r == CU_OK && e->measure)
        r = cuda_profile_start(e);
    if (r == CU_OK && !e->watch)
        r = cuda_launch_all(e, c);
    e->in_doubt = r != CU_OK;
    e->n_tok = b->n_tok;
    e->barriers = (uint64_t)c->n_phase;
    return r;
}

bool cuda_is_cancelled(const exec *e)
{
    return *cancel_word(e) != 0;
}

/* What was asked of calls that are under way stays so. */
void cuda_cancel_begin(exec *e)
{
    if (e->calls == 0 || cancel_asked(e->cancel))
        __atomic_store_n(cancel_word(e), cancel_asked(e->cancel), __ATOMIC_RELAXED);
}

weft_status cuda_submit(weft_diag *dg, exec *e, const kbatch *b)
{
    WEFT_ASSERT(!e->now && e->calls == 0 && kbatch_bytes(b) <= e->at.gate - e->at.batch);
    WEFT_TRY(cuda_enter(dg, e->d));
    cuda_cancel_begin(e);
    e->turn++;
    WEFT_TRY(cuda_leave(dg, e->d, cuda_begin(e, b, NULL), "beginning a call"));
    e->now = &e->buckets[plan_bucket_for(e->p, b->n_tok) - e->p->bucket];
    return WEFT_OK;
}

/* Awake for the time that a decoded token takes; then asleep for moments. */
enum { AWAKE_NS = 2000000, SLEEP_NS = 50000 };

void cuda_look(const exec *e, uint64_t began)
{
    if (cancel_asked(e->cancel))
        __atomic_store_n(cancel_word(e), 1, __ATOMIC_RELAXED);
    if (clock_ns() - began > AWAKE_NS)
        nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
}

cu_result cuda_wait_stream(const exec *e)
{
    const cuda_driver *c = e->d->driver;
    if (!e->cancel)
        return c->cuStreamSynchronize(e->stream);
    uint64_t began = clock_ns();
    cu_result r;
    while ((r = c->cuStreamQuery(e->stream)) == CU_NOT_READY)
        cuda_look(e, began);
    return r;
}

static weft_status wait_done(weft_diag *dg, exec *e, cu_result r)
{
    if (r == CU_OK)
        r = cuda_wait_stream(e);
    e->in_doubt = r != CU_OK;
    WEFT_TRY(cuda_leave(dg, e->d, r, "running the plan"));
    if (cuda_is_cancelled(e))
        return weft_fail(dg, W1412, WEFT_NOWHERE, "evaluating %" PRId64 " rows was cancelled",
                         e->n_tok);
    return WEFT_OK;
}

static weft_status watch_phases(weft_diag *dg, exec *e, const cuda_bucket *c)
{
    for (int32_t i = 0; i < c->n_phase; i++) {
        WEFT_TRY(cuda_enter(dg, e->d));
        WEFT_TRY(wait_done(dg, e, cuda_launch_one(e, c, i)));
        WEFT_TRY(e->watch(e->watch_ctx, dg, (int32_t)(c->plan - e->p->bucket),
                          c->plan->item[c->phases[i].first].phase));
    }
    return WEFT_OK;
}

weft_status cuda_wait(weft_diag *dg, exec *e)
{
    const cuda_bucket *c = e->now;
    WEFT_ASSERT(c);
    e->now = NULL;
    if (e->watch) {
        WEFT_TRY(watch_phases(dg, e, c));
    } else {
        WEFT_TRY(cuda_enter(dg, e->d));
        WEFT_TRY(wait_done(dg, e, CU_OK));
    }
    return e->measure ? cuda_profile_add(dg, e, c) : WEFT_OK;
}
