/* plan_text.c - a bucket of a plan for people: one step a line, by phase, with operands, units and cost.
 *
 * Lines are made first, then printed; a run of phases that comes again and again, as the layers of a model
 * do, is printed once. Two phases are alike when their lines are, but for what differs from layer to layer:
 * numbers of weights, cells, layers and phases. */
#include "compiler/plan_file_impl.h"

#include "kernels/cuda/few_size.h"
#include "runtime/base/vec.h"
#include <inttypes.h>

enum { PERIOD_MAX = 256 };

/* A phase as text, and the hash of what it has in common with its like. */
typedef struct {
    size_t begin, end; /* in the text */
    uint64_t like;
    int32_t first, last; /* layers that occur in it; -1: none */
} phase_text;

typedef struct {
    const plan *p;
    const plan_bucket *b;
    strbuf text, like;
    VEC(phase_text) phases;
} printer;

/* The same to both; or a name that differs from layer to layer, with its numbers as stars. */
static void say(printer *t, const char *fmt, ...) WEFT_PRINTF(2, 3);
static void say(printer *t, const char *fmt, ...)
{
    va_list ap;
    size_t at = t->text.n;
    va_start(ap, fmt);
    strbuf_vadd(&t->text, fmt, ap);
    va_end(ap);
    strbuf_put(&t->like, (str){t->text.p + at, t->text.n - at});
}

static void say_name(printer *t, const char *name)
{
    strbuf_put(&t->text, str_of(name));
    for (const char *c = name; *c; c++)
        strbuf_putc(&t->like, *c >= '0' && *c <= '9' ? '*' : *c);
}

/* Blanks up to a column of the line that began at `from`. */
static void pad(printer *t, size_t from, size_t column)
{
    size_t n = t->text.n - from;
    strbuf_fill(&t->text, ' ', n < column ? column - n : 1);
}

static void say_operand(printer *t, const plan_operand *o)
{
    switch (o->space) {
    case SPACE_NONE:
        say(t, "-");
        return;
    case SPACE_WEIGHT:
        say(t, "@");
        say_name(t, t->p->weight[o->id].name);
        break;
    case SPACE_IO:
        say(t, "%s", plan_io_names[o->id]);
        return;
    case SPACE_ADAPTER:
        say(t, "slots of @");
        say_name(t, t->p->site[o->id].name);
        return;
    case SPACE_CONST:
    case SPACE_ARENA:
    case SPACE_LOCAL:
    case SPACE_TILE:
        say(t, "%s", plan_space_names[o->space]);
        break;
    }
    if (o->offset || o->space != SPACE_WEIGHT)
        say(t, "+%" PRId64, o->offset);
}

static void say_rows(printer *t, const plan_step *s)
{
    if (s->rows == ROWS_FIXED)
        say(t, "%" PRId64, s->n[0]);
    else if (s->per_row == 1)
        say(t, "%s", plan_rows_names[s->rows]);
    else
        say(t, "%s*%" PRId64, plan_rows_names[s->rows], s->per_row);
    int n = K_SIZES_MAX;
    while (n > 1 && s->n[n - 1] == 0)
        n--;
    for (int i = 1; i < n; i++)
        say(t, "%s%" PRId64, i == 1 ? " x " : ", ", s->n[i]);
}

static void say_units(printer *t, const plan_item *it, const plan_step *s, const char *unit)
{
    if (it->per_thread)
        return;
    if (s->tile == 0) {
        say(t, "by %s", unit);
        return;
    }
    say(t, "%" PRId64 " tiles of %" PRId64, (s->cols + s->tile - 1) / s->tile, s->tile);
    if (it->grain > 0)
        say(t, ", %" PRId64 " at once", it->grain);
}

static void say_cost(printer *t, const plan_cost *c)
{
    if (c->call_bytes)
        say(t, "  %" PRId64 " bytes", c->call_bytes);
    say(t, "  %" PRId64 " bytes, %" PRId64 " flops a row", c->row_bytes, c->row_flops);
    if (c->key_bytes)
        say(t, "  %" PRId64 " bytes, %" PRId64 " flops a row and key", c->key_bytes, c->key_flops);
}

static void say_step(printer *t, const plan_item *it, int32_t i)
{
    const plan_step *s = &t->b->step[i];
    const plan_kernel *k = plan_kernel_of(t->p, s);
    size_t from = t->text.n;
    say(t, "  %-5s %s", it->per_thread ? "every" : i == it->first ? "split" : "then", k->name);
    pad(t, from, 34);
    say_rows(t, s);
    pad(t, from, 56);
    for (int32_t x = 0; x < s->n_in; x++) {
        say(t, "%s", x ? ", " : "");
        say_operand(t, &s->in[x]);
    }
    if (s->cell >= 0) {
        say(t, "%s$", s->n_in ? ", " : "");
        say_name(t, t->p->cell[s->cell].name);
    }
    for (int32_t x = 0; x < s->n_out; x++) {
        say(t, "%s", x ? ", " : " -> ");
        say_operand(t, &s->out[x]);
    }
    say(t, "  ");
    pad(t, from, 110);
    if (i == it->first)
        say_units(t, it, s, kunit_name(k->unit));
    say(t, "%s", s->prec_f32 ? "  prec f32" : "");
    say_cost(t, &s->cost);
    if (s->loc.src) {
        source_place at = source_find(s->loc.src, s->loc.begin);
        say(t, "  %s:%u:%u", s->loc.src->name, at.line, at.column);
    }
    if (s->layer >= 0)
        strbuf_add(&t->text, "  layer %d", (int)s->layer);
    say(t, "\n");
}

static void say_phases(printer *t)
{
    const plan_bucket *b = t->b;
    for (int32_t i = 0; i < b->n_item;) {
        phase_text ph = {.begin = t->text.n, .first = -1, .last = -1};
        int32_t phase = b->item[i].phase;
        strbuf_reset(&t->like);
        strbuf_add(&t->text, "phase %d\n", (int)phase);
        for (; i < b->n_item && b->item[i].phase == phase; i++)
            for (int32_t k = 0; k < b->item[i].n_step; k++) {
                int32_t step = b->item[i].first + k, layer = b->step[step].layer;
                say_step(t, &b->item[i], step);
                if (layer >= 0 && (ph.first < 0 || layer < ph.first))
                    ph.first = layer;
                if (layer > ph.last)
                    ph.last = layer;
            }
        ph.end = t->text.n;
        ph.like = str_hash(strbuf_view(&t->like));
        VEC_PUSH(&t->phases, ph);
    }
}

/* How often the `period` phases at i stand there, one after the other. */
static size_t times_at(const printer *t, size_t i, size_t period)
{
    size_t n = i + period;
    while (n < t->phases.n && t->phases.at[n].like == t->phases.at[n - period].like)
        n++;
    return (n - i) / period;
}

/* The period at i whose repetitions cover most. */
static size_t best_period(const printer *t, size_t i, size_t *out_times)
{
    size_t best = 1, most = 1;
    *out_times = 1;
    for (size_t period = 1; period <= PERIOD_MAX && i + 2 * period <= t->phases.n; period++) {
        size_t times = times_at(t, i, period);
        if (times > 1 && times * period > most) {
            most = times * period;
            best = period;
            *out_times = times;
        }
    }
    return best;
}

static void print_folded(const printer *t, bool all, strbuf *out)
{
    for (size_t i = 0; i < t->phases.n;) {
        size_t times = 1, period = all ? 1 : best_period(t, i, &times);
        const phase_text *first = &t->phases.at[i], *last = first + period - 1;
        strbuf_put(out, (str){t->text.p + first->begin, last->end - first->begin});
        if (times > 1 && period == 1)
            strbuf_add(out, "%zu phases like it follow\n", times - 1);
        else if (times > 1)
            strbuf_add(out, "these %zu phases come again, %zu time%s\n", period, times - 1,
                       times == 2 ? "" : "s");
        i += times * period;
    }
}

/* Have blocks of a card, in calls whose linears keep weights in shared memory, too much else for that? */
static bool overflows(const plan *p, const plan_bucket *b)
{
    return p->arch == KARCH_CUDA && b->n_tok_max > 1 && b->n_tok_max <= FEW_CALL_MAX &&
           b->local_bytes + b->scratch_bytes > FEW_BLOCK_BYTES;
}

void plan_text(const plan *p, int64_t n_tok, bool all, strbuf *out)
{
    printer t = {.p = p, .b = plan_bucket_for(p, n_tok < p->n_tok_max ? n_tok : p->n_tok_max)};
    const plan_bucket *b = t.b;
    strbuf_add(out,
               "plan %s, entry %s: %s kernels, state in %s%s, calls of up to %" PRId64
               " rows in %d bucket%s\n",
               p->model, p->entry, p->level, plan_kv_text(p, (char[KPOLICY_TEXT_MAX]){0}),
               p->deterministic ? ", deterministic" : "", p->n_tok_max, (int)p->n_bucket,
               p->n_bucket == 1 ? "" : "s");
    strbuf_add(out, "weights: %zu bytes in place, %zu copied, %zu of tables, %zu of constants\n",
               p->mapped_bytes, p->copied_bytes, p->table_bytes, p->const_bytes);
    strbuf_add(out,
               "bucket of %" PRId64 " rows: %d steps, %d items, %d phases; %zu bytes of arena, %zu "
               "of each thread, %zu of scratch\n",
               b->n_tok_max, (int)b->n_step, (int)b->n_item, (int)b->n_phase, b->arena_bytes,
               b->local_bytes, b->scratch_bytes);
    if (overflows(p, b))
        strbuf_add(
            out,
            "more than the %d bytes of a block's shared memory: linears of few rows are slow\n",
            (int)FEW_BLOCK_BYTES);
    say_phases(&t);
    print_folded(&t, all, out);
    for (int32_t i = 0; i < p->n_output; i++) {
        const plan_output *o = &p->output[i];
        strbuf_add(out, "output %s", o->name);
        if (o->index >= 0)
            strbuf_add(out, "[%d]", (int)o->index);
        strbuf_add(out, ": %s x %" PRId64 " at %s+%" PRId64 "\n", plan_rows_names[o->rows],
                   o->width, plan_space_names[b->output[i].space], b->output[i].offset);
    }
    strbuf_free(&t.text);
    strbuf_free(&t.like);
    VEC_FREE(&t.phases);
}
