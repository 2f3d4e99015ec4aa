/* progress.c - the progress bar. */
#include "runtime/base/progress.h"

#include "runtime/base/clock.h"
#include "runtime/base/term.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    BAR_MIN = 10, /* a shorter bar says nothing */
    BAR_MAX = 40,
};
#define DELAY_NS CLOCK_NS_PER_S
#define REDRAW_NS (CLOCK_NS_PER_S / 10)

void progress_start(progress *p, const char *label, uint64_t total, progress_unit unit)
{
    const char *term = getenv("TERM");
    *p = (progress){.label = label, .total = total, .unit = unit, .start_ns = clock_ns()};
    p->next_ns = p->start_ns + DELAY_NS;
    p->enabled = term_is_tty(stderr) && !(term && strcmp(term, "dumb") == 0);
}

void progress_update(progress *p, uint64_t done)
{
    if (!p->enabled)
        return;
    uint64_t now = clock_ns();
    if (now < p->next_ns)
        return;
    p->next_ns = now + REDRAW_NS;
    p->drawn = true;
    strbuf line = {0};
    progress_format(&line, p, done, now - p->start_ns, term_width(stderr) - 1);
    fprintf(stderr, "\r%s\033[K", line.p);
    fflush(stderr);
    strbuf_free(&line);
}

void progress_end(progress *p)
{
    if (!p->drawn)
        return;
    p->drawn = false;
    fputs("\r\033[K", stderr);
    fflush(stderr);
}

/* 1234567 bytes as "1.2 MB"; a plain count as it is, or as a rate with one digit when small. */
static void put_amount(strbuf *out, double x, progress_unit unit)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    size_t i = 0;
    if (unit == PROGRESS_COUNT) {
        strbuf_add(out, x < 10 && x != (double)(int)x ? "%.1f" : "%.0f", x);
        return;
    }
    while (x >= 999.5 && i + 1 < sizeof units / sizeof units[0]) {
        x /= 1000;
        i++;
    }
    strbuf_add(out, i > 0 && x < 99.95 ? "%.1f %s" : "%.0f %s", x, units[i]);
}

static void put_time(strbuf *out, double seconds)
{
    uint64_t s = (uint64_t)(seconds + 0.5);
    if (s < 60)
        strbuf_add(out, "%" PRIu64 "s", s);
    else if (s < 3600)
        strbuf_add(out, "%" PRIu64 "m%02" PRIu64 "s", s / 60, s % 60);
    else
        strbuf_add(out, "%" PRIu64 "h%02" PRIu64 "m", s / 3600, s / 60 % 60);
}

/* What stands right of the bar. */
static void put_figures(strbuf *out, const progress *p, uint64_t done, double seconds)
{
    double rate = seconds > 0 ? (double)done / seconds : 0;
    if (p->total)
        strbuf_add(out, "%3d%%  ", (int)((double)done / (double)p->total * 100));
    put_amount(out, (double)done, p->unit);
    if (p->total) {
        strbuf_putc(out, '/');
        put_amount(out, (double)p->total, p->unit);
    }
    strbuf_put(out, STR("  "));
    put_amount(out, rate, p->unit);
    strbuf_put(out, STR("/s"));
    double left = rate > 0 ? (double)(p->total - done) / rate : 0;
    if (done && done < p->total && left < 100 * 3600.0) {
        strbuf_put(out, STR("  "));
        put_time(out, left);
        strbuf_put(out, STR(" left"));
    }
}

void progress_format(strbuf *out, const progress *p, uint64_t done, uint64_t elapsed_ns, int width)
{
    size_t room = width > 0 ? (size_t)width : 0, begin = out->n;
    if (p->total && done > p->total)
        done = p->total;
    strbuf figures = {0};
    put_figures(&figures, p, done, clock_seconds(elapsed_ns));

    strbuf_put(out, str_of(p->label));
    strbuf_put(out, STR("  "));
    size_t used = out->n - begin + figures.n + 4; /* brackets and two spaces around a bar */
    if (p->total && used + BAR_MIN <= room) {
        size_t cells = room - used < BAR_MAX ? room - used : BAR_MAX;
        size_t full = (size_t)((double)cells * ((double)done / (double)p->total));
        strbuf_putc(out, '[');
        strbuf_fill(out, '=', full);
        strbuf_fill(out, ' ', cells - full);
        strbuf_put(out, STR("]  "));
    }
    strbuf_put(out, strbuf_view(&figures));
    strbuf_free(&figures);
    if (out->n - begin > room) { /* labels and figures are plain ASCII */
        out->n = begin + room;
        if (out->p)
            out->p[out->n] = 0;
    }
}
