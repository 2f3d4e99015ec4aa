/* report_verify.c - tables of errors, and the first fault with all that is known of it. */
#include "runtime/cli/report_verify.h"

#include "runtime/cli/part_words.h"
#include <inttypes.h>
#include <math.h>

static const plan *plan_of(const verify_subject *of, const verify_value *x)
{
    return of->plans.part[x->part].p;
}

static const plan_bucket *bucket_of(const verify_subject *of, const verify_value *x)
{
    return &plan_of(of, x)->bucket[x->bucket];
}

static const plan_step *step_of(const verify_subject *of, const verify_value *x)
{
    return &bucket_of(of, x)->step[x->step];
}

static const plan_kernel *kernel_of(const verify_subject *of, const verify_value *x)
{
    return plan_kernel_of(plan_of(of, x), step_of(of, x));
}

/* The type of the weight it reads; NULL: it reads none. */
static const char *weight_type(const plan *p, const plan_step *s)
{
    for (int i = 0; i < s->n_in; i++)
        if (s->in[i].space == SPACE_WEIGHT)
            return dtype_row_of(p->weight[s->in[i].id].stored)->name;
    return NULL;
}

/* The item that a step is in. */
static int32_t item_of(const plan_bucket *b, int32_t step)
{
    int32_t i = 0;
    while (i + 1 < b->n_item && b->item[i + 1].first <= step)
        i++;
    return i;
}

/* Why the value may differ: the reason of its own step, or of one before it in its chain. */
static const char *reason_of(const verify_subject *of, const verify_value *x)
{
    const plan_bucket *b = bucket_of(of, x);
    int32_t home = item_of(b, x->step);
    const char *why = NULL;
    for (int32_t k = x->step; k >= b->item[home].first && !why; k--)
        why = verify_reason(plan_of(of, x), &b->step[k]);
    return why;
}

/* Products that the model file marks prec(f32). */
static int count_f32(const plan_parts *plans)
{
    int n = 0;
    for (int32_t k = 0; k < plans->n_part; k++) {
        const plan_bucket *b = plans->part[k].p->bucket;
        for (int32_t i = 0; i < b->n_step; i++)
            n += b->step[i].prec_f32;
    }
    return n;
}

/* ---- for people ---- */

/* How many values end in a kernel, and the worst of them against its bound. */
static void text_kernel(const verify_subject *of, const verify_report *r, const char *name,
                        strbuf *out)
{
    const verify_value *worst = NULL;
    int n = 0, n_f32 = 0;
    for (int32_t i = 0; i < r->n_value; i++) {
        const verify_value *x = &r->value[i];
        if (strcmp(kernel_of(of, x)->name, name) != 0)
            continue;
        n++;
        n_f32 += step_of(of, x)->prec_f32;
        if (!worst || x->error / x->bound > worst->error / worst->bound)
            worst = x;
    }
    if (!worst)
        return;
    const char *why = reason_of(of, worst);
    strbuf_add(out, "  %-30s %4d %12.2e %12.2e%s%s", name, n, worst->error, worst->bound,
               why ? "  " : "", why ? why : "");
    if (n_f32)
        strbuf_add(out, "  %d with prec(f32)", n_f32);
    strbuf_putc(out, '\n');
}

static bool has_kernel(const plan *p, const char *name)
{
    for (int32_t i = 0; i < p->n_kernel; i++)
        if (strcmp(p->kernel[i].name, name) == 0)
            return true;
    return false;
}

/* One line for each, also where several plans have it. */
static void text_kernels(const verify_subject *of, const verify_report *r, strbuf *out)
{
    strbuf_add(out, "values by kernel               number  worst error    its bound\n");
    for (int32_t k = 0; k < of->plans.n_part; k++)
        for (int32_t i = 0; i < of->plans.part[k].p->n_kernel; i++) {
            const char *name = of->plans.part[k].p->kernel[i].name;
            bool before = false;
            for (int32_t e = 0; e < k && !before; e++)
                before = has_kernel(of->plans.part[e].p, name);
            if (!before)
                text_kernel(of, r, name, out);
        }
}

static void text_layers(const verify_report *r, strbuf *out)
{
    enum { PER_LINE = 8 };
    strbuf_add(out, "drift: errors of what each layer leaves, travelling on");
    for (int32_t i = 0, n = 0; i < r->n_layer; i++) {
        if (r->layer_drift[i] < 0)
            continue;
        if (n++ % PER_LINE == 0)
            strbuf_add(out, "\n  %4d", (int)i);
        strbuf_add(out, " %8.1e", r->layer_drift[i]);
    }
    strbuf_putc(out, '\n');
}

static void text_outputs(const verify_report *r, strbuf *out)
{
    strbuf_add(out, "outputs                    error        bound     by passes\n");
    for (int32_t i = 0; i < r->n_output; i++) {
        const verify_output *o = &r->output[i];
        char name[64];
        snprintf(name, sizeof name, o->index < 0 ? "%s" : "%s.%d", o->name, (int)o->index);
        strbuf_add(out, "  %-20s %9.2e %12.2e %13.2e\n", name, o->error, o->bound, o->passes);
    }
    if (r->n_row)
        strbuf_add(out,
                   "the likeliest token is the same in %" PRId64 " of %" PRId64
                   " rows; divergence %.2e nats in the mean, %.2e at most\n",
                   r->n_top_same, r->n_row, r->kl_mean, r->kl_max);
    else
        strbuf_add(out,
                   "no row of logits is of numbers alone, in the reference either: the weights "
                   "hold a NaN or an infinity, or the model overflows\n");
}

void verify_as_text(const verify_subject *of, const verify_report *r, strbuf *out)
{
    const int n_f32 = count_f32(&of->plans);
    strbuf_add(out, "%s: %" PRId64 " tokens %s, %d thread%s, state in %s, kernels up to ",
               of->p->model, of->n_token, of->tokens, of->threads, of->threads == 1 ? "" : "s",
               plan_kv_text(of->p, (char[KPOLICY_TEXT_MAX]){0}));
    part_levels(&of->plans, out);
    for (int32_t i = 0; i < of->plans.n_part && of->plans.n_part > 1; i++) {
        strbuf_put(out, STR("\n  "));
        part_words(&of->plans, i, out);
    }
    strbuf_add(out, "\n%d values compared, %d more inside of fused steps\n", (int)r->n_value,
               (int)r->n_hidden);
    text_kernels(of, r, out);
    if (n_f32)
        strbuf_add(out, "prec(f32): the activations of %d product%s stay f32\n", n_f32,
                   n_f32 == 1 ? "" : "s");
    if (r->n_layer)
        text_layers(r, out);
    text_outputs(r, out);
    strbuf_add(out, verify_passed(r) ? "all within their bounds\n" : "not within the bounds\n");
}

/* ---- for programs ---- */

static void json_value(json_writer *w, const verify_subject *of, const verify_value *x)
{
    const plan_step *s = step_of(of, x);
    json_open(w, '{');
    if (of->plans.n_part > 1)
        json_key_int(w, "part", x->part);
    json_key_text(w, "op", kop_name(kernel_of(of, x)->op));
    json_key_text(w, "kernel", kernel_of(of, x)->name);
    json_key_text(w, "weight", weight_type(plan_of(of, x), s));
    json_key_text(w, "prec", s->prec_f32 ? "f32" : "auto");
    json_key_int(w, "value", x->value);
    json_key_int(w, "layer", s->layer);
    json_key_text(w, "file", s->loc.src ? s->loc.src->name : NULL);
    json_key_int(w, "line", s->loc.src ? source_find(s->loc.src, s->loc.begin).line : 0);
    json_key_int(w, "rows", x->n_row);
    json_key_int(w, "width", x->width);
    json_key_double(w, "error", x->error);
    json_key_double(w, "bound", x->bound);
    json_key_double(w, "drift", x->drift);
    json_key_open(w, "worst", '{');
    json_key_int(w, "row", x->worst.row);
    json_key_int(w, "column", x->worst.col);
    json_key_double(w, "expected", x->worst.want);
    json_key_double(w, "got", x->worst.got);
    json_close(w, '}');
    json_close(w, '}');
}

static void json_parts(json_writer *w, const verify_subject *of)
{
    json_key_open(w, "parts", '[');
    for (int32_t i = 0; i < of->plans.n_part; i++) {
        json_open(w, '{');
        part_keys(w, of->plans.part[i].p);
        json_close(w, '}');
    }
    json_close(w, ']');
}

void verify_as_json(const verify_subject *of, const verify_report *r, strbuf *out)
{
    json_writer w = {.out = out};
    json_open(&w, '{');
    json_key_text(&w, "model", of->p->model);
    json_key_int(&w, "tokens", of->n_token);
    json_key_int(&w, "threads", of->threads);
    json_key_text(&w, "kv", plan_kv_text(of->p, (char[KPOLICY_TEXT_MAX]){0}));
    if (of->plans.n_part > 1)
        json_parts(&w, of);
    else
        json_key_text(&w, "variant", of->p->level);
    json_key_bool(&w, "passed", verify_passed(r));
    json_key_index(&w, "first_bad", r->first_bad);
    json_key_int(&w, "hidden", r->n_hidden);
    json_key_int(&w, "prec_f32", count_f32(&of->plans));
    json_key_open(&w, "values", '[');
    for (int32_t i = 0; i < r->n_value; i++)
        json_value(&w, of, &r->value[i]);
    json_close(&w, ']');
    json_key_open(&w, "layer_drift", '[');
    for (int32_t i = 0; i < r->n_layer; i++)
        json_double(&w, r->layer_drift[i] < 0 ? NAN : r->layer_drift[i]);
    json_close(&w, ']');
    json_key_open(&w, "outputs", '[');
    for (int32_t i = 0; i < r->n_output; i++) {
        json_open(&w, '{');
        json_key_text(&w, "name", r->output[i].name);
        json_key_int(&w, "index", r->output[i].index);
        json_key_double(&w, "error", r->output[i].error);
        json_key_double(&w, "bound", r->output[i].bound);
        json_key_double(&w, "passes_error", r->output[i].passes);
        json_close(&w, '}');
    }
    json_close(&w, ']');
    json_key_open(&w, "logits", '{');
    json_key_int(&w, "rows", r->n_row);
    json_key_int(&w, "top_same", r->n_top_same);
    json_key_double(&w, "kl_mean", r->kl_mean);
    json_key_double(&w, "kl_max", r->kl_max);
    json_close(&w, '}');
    json_close(&w, '}');
    strbuf_putc(out, '\n');
}

/* ---- the first fault ---- */

/* The steps that led to it and left nothing to look at: those before it in its chain, and what each
 * thread computes for itself in that phase. */
static void note_steps(weft_diag *dg, const verify_subject *of, const verify_value *x)
{
    const plan_bucket *b = bucket_of(of, x);
    int32_t home = item_of(b, x->step);
    strbuf list = {0};
    for (int32_t i = 0; i <= home; i++) {
        const plan_item *it = &b->item[i];
        if (it->phase != b->item[home].phase || (i < home && !it->per_thread))
            continue;
        for (int32_t k = it->first; k < it->first + it->n_step && k < x->step; k++) {
            const plan_step *s = &b->step[k];
            strbuf_add(&list, "%s%s", list.n ? ", " : "", plan_kernel_of(plan_of(of, x), s)->name);
            if (s->loc.src)
                strbuf_add(&list, " (line %u)",
                           (unsigned)source_find(s->loc.src, s->loc.begin).line);
        }
    }
    if (list.n)
        weft_note(dg, "computed in one go with, and not seen apart from, %s", list.p);
    strbuf_free(&list);
}

static void note_pattern(weft_diag *dg, const verify_value *x)
{
    if (x->not_finite)
        weft_note(dg, "a NaN or an infinity comes up here: the reference has numbers");
    if (x->n_row_bad < x->n_row)
        weft_note(dg,
                  "%" PRId64 " of %" PRId64 " rows are wrong: likely how rows are shared out, or a "
                  "remainder of rows",
                  x->n_row_bad, x->n_row);
    if (x->col_last >= 0 && x->col_last - x->col_min + 1 < x->width)
        weft_note(dg,
                  "only columns %" PRId64 " to %" PRId64 " of %" PRId64
                  " are wrong: likely a tile or a remainder of columns",
                  x->col_min, x->col_last, x->width);
}

static void note_cause(weft_diag *dg, const verify_subject *of, const verify_value *x)
{
    const char *type = weight_type(plan_of(of, x), step_of(of, x)), *why = reason_of(of, x);
    weft_note(dg,
              "computed by kernel %s%s%s%s%s, in the steps for calls of at most %" PRId64 " rows",
              kernel_of(of, x)->name, type ? " from weights of " : "", type ? type : "",
              why ? ", " : "", why ? why : "", bucket_of(of, x)->n_tok_max);
    if (why && x->error < 4 * x->bound)
        weft_note(dg,
                  "not far over: it may be no more than numbers that were rounded the other way");
    weft_note(dg, "WEFT_CPU=ref runs without it; WEFT_CPU=c without kernels of this processor");
}

static weft_status print_value(weft_diag *dg, const verify_subject *of, const verify_value *x)
{
    const plan_step *s = step_of(of, x);
    char where[32] = "";
    if (s->layer >= 0)
        snprintf(where, sizeof where, " of layer %d", (int)s->layer);
    weft_status st = weft_fail(dg, W1510, s->loc,
                               "%s%s: relative error %.2e, over the bound of %.1e; row %" PRId64
                               ", column %" PRId64 " is %.7g, expected %.7g",
                               kop_name(kernel_of(of, x)->op), where, x->error, x->bound,
                               x->worst.row, x->worst.col, x->worst.got, x->worst.want);
    note_pattern(dg, x);
    note_steps(dg, of, x);
    note_cause(dg, of, x);
    return st;
}

weft_status verify_report_fault(weft_diag *dg, const verify_subject *of, const verify_report *r)
{
    if (r->first_bad >= 0)
        return print_value(dg, of, &r->value[r->first_bad]);
    for (int32_t i = 0; i < r->n_output; i++) {
        const verify_output *o = &r->output[i];
        if (!(o->passes <= o->passes_bound))
            return weft_fail(dg, W1510, WEFT_NOWHERE,
                             "output %s: the passes change it by %.2e, over the bound of %.1e",
                             o->name, o->passes, o->passes_bound);
        if (!(o->error <= o->bound))
            return weft_fail(dg, W1510, WEFT_NOWHERE,
                             "output %s: relative error %.2e, over the bound of %.1e, though every "
                             "value that could be seen is within its own",
                             o->name, o->error, o->bound);
    }
    return WEFT_OK;
}
