/* report_profile_svg.c - a profile as a picture (SVG 1.1): the phases of one layer of a decoded token
 * as a strip, drawn to scale, and a pair of bars for each line of the model file. */
#include "runtime/cli/report_profile.h"

#include "runtime/base/utf8.h"
#include "runtime/cli/part_words.h"
#include <stdlib.h>

static const double width_min = 1100, letter = 6.8; /* of the font, in pixels */
static const double margin = 20, bar_width = 260, row_height = 17, strip_height = 46;

/* What ops look like, by kind; the first row that fits. */
/* clang-format off */
static const struct { const char *op, *fill, *name; } look[] = {
    {"linear",      "#4e79a7", "products"},
    {"experts",     "#4e79a7", NULL},
    {"head_linear", "#4e79a7", NULL},
    {"attend",      "#e15759", "attention"},
    {"append",      "#f28e2b", "state and rope"},
    {"rope",        "#f28e2b", NULL},
    {"rms_norm",    "#76b7b2", "norms"},
    {"layer_norm",  "#76b7b2", NULL},
    {"map",         "#59a14f", "maps"},
    {"quantize",        "#b07aa1", "quantising"},
};
/* clang-format on */
enum { LOOKS = sizeof look / sizeof *look };

static const char *fill_of(const char *op)
{
    for (int i = 0; i < LOOKS; i++)
        if (strcmp(look[i].op, op) == 0)
            return look[i].fill;
    return "#9c9c9c";
}

static void put_at(strbuf *out, double x, double y, const char *class, str s)
{
    strbuf_add(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
    utf8_put_xml(out, s);
    strbuf_put(out, STR("</text>\n"));
}

static void put_rect(strbuf *out, double x, double y, double w, double h, const char *fill,
                     const char *title)
{
    strbuf_add(out,
               "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\"><title>", x,
               y, w, h, fill);
    utf8_put_xml(out, str_of(title));
    strbuf_put(out, STR("</title></rect>\n"));
}

static void put_head(const profile *f, double width, double height, strbuf *out)
{
    strbuf_add(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
               "viewBox=\"0 0 %.0f %.0f\">\n"
               "<style>\n"
               "text { font-family: ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; "
               "font-size: 11px; fill: #222; }\n"
               ".title { font-size: 17px; font-weight: bold; }\n"
               ".light { fill: #777; }\n"
               ".right { text-anchor: end; fill: #555; }\n"
               "</style>\n"
               "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n",
               width, height, width, height, width, height);
    put_at(out, margin, 28, "title", str_of(f->p->model));
    strbuf line = {0};
    for (int part = 0; part < PROFILE_PARTS; part++) {
        const profile_run *r = &f->run[part];
        if (r->n_tok)
            strbuf_add(&line, "%s%s %.4f ms/token, %.2f tok/s", line.n ? "; " : "",
                       part == PROFILE_DECODE ? "decode" : "prefill",
                       r->seconds * 1e3 / (double)r->n_tok, (double)r->n_tok / r->seconds);
    }
    if (f->plans.n_part == 1)
        strbuf_add(&line, "; %d thread%s", f->limits->threads, f->limits->threads == 1 ? "" : "s");
    strbuf_put(&line, STR("; kernels up to "));
    part_levels(&f->plans, &line);
    put_at(out, margin, 48, "light", strbuf_view(&line));
    strbuf_free(&line);
}

static void put_legend(double y, strbuf *out)
{
    double x = margin;
    for (int i = 0; i <= LOOKS; i++) {
        const char *name = i < LOOKS ? look[i].name : "other";
        if (!name)
            continue;
        strbuf_add(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" fill=\"%s\"/>\n", x,
                   y - 9, i < LOOKS ? look[i].fill : fill_of(""));
        put_at(out, x + 15, y, "light", str_of(name));
        x += 32 + (double)strlen(name) * 7;
    }
}

/* ---- the strip ---- */

/* The phase of a step in its bucket. */
static int32_t phase_of(const plan_bucket *b, int32_t step)
{
    int32_t i = 0;
    while (i + 1 < b->n_item && b->item[i + 1].first <= step)
        i++;
    return b->item[i].phase;
}

/* Is it one of the layer's steps? Its phase is. */
static bool is_of_layer(const profile *f, const profile_step *x, int32_t layer)
{
    const plan_bucket *b = &f->plans.part[x->plan].p->bucket[x->bucket];
    return plan_phase_layer(b, phase_of(b, x->step)) == layer;
}

/* A layer in the middle, all of which is in one plan. */
static int32_t middle_layer(const profile *f)
{
    int32_t layers = 0, first;
    for (int32_t i = 0; i < f->plans.n_part; i++) {
        int32_t n = plan_layers_of(f->plans.part[i].p, &first);
        layers = n > 0 && first + n > layers ? first + n : layers;
    }
    return layers / 2;
}

/* Phases of a layer in the middle, each as wide as its steps take, a gap at each barrier. */
static void put_strip(const profile *f, double width, double y, strbuf *out)
{
    enum { GAP = 6 };
    const profile_run *r = &f->run[PROFILE_DECODE];
    int32_t layer = middle_layer(f), last = -1, gaps = 0;
    double all = 0;
    for (int32_t i = 0; i < r->n_step; i++) {
        const profile_step *s = &r->step[i];
        if (!is_of_layer(f, s, layer))
            continue;
        int32_t phase = phase_of(&f->plans.part[s->plan].p->bucket[s->bucket], s->step);
        all += s->sum.seconds;
        gaps += phase != last;
        last = phase;
    }
    if (all <= 0)
        return;
    char title[160];
    snprintf(title, sizeof title, "layer %d of a decoded token: %d phases, %.1f us", (int)layer,
             (int)gaps, all * 1e6 / (double)r->n_tok);
    put_at(out, margin, y, "light", str_of(title));
    double scale = (width - 2 * margin - GAP * (gaps > 0 ? gaps - 1 : 0)) / all, x = margin;
    last = -1;
    for (int32_t i = 0; i < r->n_step; i++) {
        const profile_step *s = &r->step[i];
        const plan_kernel *k = profile_kernel_of(f, s);
        if (!is_of_layer(f, s, layer))
            continue;
        int32_t phase = phase_of(&f->plans.part[s->plan].p->bucket[s->bucket], s->step);
        x += last >= 0 && phase != last ? GAP : 0;
        last = phase;
        double w = s->sum.seconds * scale;
        snprintf(title, sizeof title, "%s: %.2f us, %.2f GB/s", k->name,
                 s->sum.seconds * 1e6 / (double)r->n_tok, s->sum.bytes / s->sum.seconds / 1e9);
        put_rect(out, x, y + 8, w, strip_height - 20, fill_of(kop_name(k->op)), title);
        x += w;
    }
}

/* ---- the lines ---- */

/* The op that most of a line's time is spent in. */
static const char *main_op(const profile *f, const profile_line *l)
{
    const char *best = "";
    double most = 0;
    for (int part = 0; part < PROFILE_PARTS; part++)
        for (int32_t i = 0; i < f->run[part].n_step; i++) {
            const profile_step *x = &f->run[part].step[i];
            const plan_step *s = profile_step_of(f, x);
            if (s->loc.src == l->src && x->sum.seconds > most &&
                source_find(s->loc.src, s->loc.begin).line == l->line) {
                most = x->sum.seconds;
                best = kop_name(profile_kernel_of(f, x)->op);
            }
        }
    return best;
}

static double largest(const profile *f, int part)
{
    double most = 0;
    for (int32_t i = 0; i < f->n_line; i++)
        most = f->line[i].part[part].seconds > most ? f->line[i].part[part].seconds : most;
    return most;
}

static void put_bar(const profile *f, int part, const profile_line *l, double x, double y,
                    const char *fill, strbuf *out)
{
    const profile_run *r = &f->run[part];
    const profile_sum *s = &l->part[part];
    char text[96];
    if (s->seconds <= 0)
        return;
    snprintf(text, sizeof text, "%.4f ms/token, %.2f GB/s, %.2f GFLOP/s",
             s->seconds * 1e3 / (double)r->n_tok, s->bytes / s->seconds / 1e9,
             s->flops / s->seconds / 1e9);
    put_rect(out, x, y - 11, s->seconds / largest(f, part) * (bar_width - 60), row_height - 4, fill,
             text);
    snprintf(text, sizeof text, "%.1f%%", 100 * s->seconds / r->timed_seconds);
    put_at(out, x + bar_width - 8, y, "right", str_of(text));
}

static void put_lines(const profile *f, double y, strbuf *out)
{
    put_at(out, margin, y, "light", STR("decode, share of time"));
    put_at(out, margin + bar_width, y, "light", STR("prefill"));
    for (int32_t i = 0; i < f->n_line; i++) {
        const profile_line *l = &f->line[i];
        const char *fill = fill_of(main_op(f, l));
        char number[32];
        y += row_height;
        put_bar(f, PROFILE_DECODE, l, margin, y, fill, out);
        put_bar(f, PROFILE_PREFILL, l, margin + bar_width, y, fill, out);
        snprintf(number, sizeof number, "%u", (unsigned)l->line);
        put_at(out, margin + 2 * bar_width + 34, y, "right", str_of(number));
        put_at(out, margin + 2 * bar_width + 46, y, "text", profile_line_text(l));
    }
}

static double page_width(const profile *f)
{
    double width = width_min;
    for (int32_t i = 0; i < f->n_line; i++) {
        double n = (double)profile_line_text(&f->line[i]).n;
        double need = 2 * margin + 2 * bar_width + 46 + n * letter;
        width = need > width ? need : width;
    }
    return width;
}

void profile_as_svg(const profile *f, strbuf *out)
{
    double strip = 92, lines = strip + strip_height + 24;
    double width = page_width(f);
    put_head(f, width, lines + row_height * (f->n_line + 1) + margin, out);
    put_legend(68, out);
    put_strip(f, width, strip, out);
    put_lines(f, lines, out);
    strbuf_put(out, STR("</svg>\n"));
}
