/* live_profile.c - times of steps of the plan, summed by line. */
#include "runtime/http/live_profile.h"

#include "runtime/base/clock.h"
#include "runtime/base/json_write.h"
#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include "runtime/base/vec.h"

typedef enum { LIVE_DECODE, LIVE_PREFILL, LIVE_PARTS } live_part;

typedef struct {
    const source *src;
    uint32_t line;
    double seconds[LIVE_PARTS]; /* by lock */
} live_line;

struct live_profile {
    session *s;
    const plan *p;
    int threads;
    VEC(live_line) lines; /* as many as the plan's steps have, from the beginning */
    int32_t **line_of;    /* [n_bucket][n_step]: index of a line, -1: none */

    /* the stepping thread's */
    uint64_t step;

    pthread_mutex_t lock; /* guards the sums */
    struct {
        uint64_t tokens;
        double timed_s, wait_s;
    } part[LIVE_PARTS];
    uint64_t calls;
};

static int32_t line_at(live_profile *f, weft_loc loc)
{
    if (!loc.src)
        return -1;
    uint32_t line = source_find(loc.src, loc.begin).line;
    for (size_t i = 0; i < f->lines.n; i++)
        if (f->lines.at[i].src == loc.src && f->lines.at[i].line == line)
            return (int32_t)i;
    live_line l = {.src = loc.src, .line = line};
    VEC_PUSH(&f->lines, l);
    return (int32_t)f->lines.n - 1;
}

live_profile *live_profile_create(session *s, const plan *p, int threads)
{
    live_profile *f = mem_alloc(sizeof *f);
    *f = (live_profile){.s = s, .p = p, .threads = threads > 0 ? threads : 1};
    pthread_mutex_init(&f->lock, NULL);
    f->line_of = mem_alloc(mem_product((size_t)p->n_bucket, sizeof *f->line_of));
    for (int32_t b = 0; b < p->n_bucket; b++) {
        size_t n = (size_t)p->bucket[b].n_step;
        f->line_of[b] = mem_alloc(mem_product(n + 1, sizeof **f->line_of));
        for (size_t i = 0; i < n; i++)
            f->line_of[b][i] = line_at(f, p->bucket[b].step[i].loc);
    }
    return f;
}

void live_profile_destroy(live_profile *f)
{
    if (!f)
        return;
    for (int32_t b = 0; b < f->p->n_bucket; b++)
        mem_free(f->line_of[b]);
    mem_free(f->line_of);
    VEC_FREE(&f->lines);
    pthread_mutex_destroy(&f->lock);
    mem_free(f);
}

bool live_profile_begin(live_profile *f)
{
    if (f->step++ % LIVE_EVERY)
        return false;
    MEM_SCOPE(scope); /* without memory for it a step is not timed */
    if (sigsetjmp(scope.env, 0) != 0)
        return false;
    session_profile_begin(f->s);
    return true;
}

void live_profile_end(live_profile *f, double seconds, uint64_t rows_prompt, uint64_t rows_decode)
{
    session_profile_end(f->s);
    if (rows_prompt + rows_decode == 0) {
        f->step = 0; /* the next one may do something */
        return;
    }
    live_part part = rows_prompt ? LIVE_PREFILL : LIVE_DECODE;
    pthread_mutex_lock(&f->lock);
    f->calls++;
    f->part[part].tokens += rows_prompt + rows_decode;
    f->part[part].timed_s += seconds;
    f->part[part].wait_s += clock_seconds(session_wait_ns(f->s, 0)) / f->threads;
    for (int32_t b = 0; b < f->p->n_bucket; b++) {
        const step_time *t = session_profile_steps(f->s, 0, b);
        for (int32_t i = 0; t && i < f->p->bucket[b].n_step; i++)
            if (t[i].calls && f->line_of[b][i] >= 0)
                f->lines.at[f->line_of[b][i]].seconds[part] +=
                    clock_seconds(t[i].ns_busy) / f->threads;
    }
    pthread_mutex_unlock(&f->lock);
}

void live_profile_json(live_profile *f, strbuf *out)
{
    static const char *const names[LIVE_PARTS] = {"decode", "prefill"};
    json_writer w = {.out = out};
    /* A copy, so that writing takes no memory while the lock is held. */
    live_profile now;
    live_line *lines = mem_alloc(mem_product(f->lines.n + 1, sizeof *lines));
    pthread_mutex_lock(&f->lock);
    memcpy(now.part, f->part, sizeof now.part);
    now.calls = f->calls;
    if (f->lines.n)
        memcpy(lines, f->lines.at, f->lines.n * sizeof *lines);
    pthread_mutex_unlock(&f->lock);
    json_open(&w, '{');
    json_key_int(&w, "every", LIVE_EVERY);
    json_key_int(&w, "calls", (int64_t)now.calls);
    for (int p = 0; p < LIVE_PARTS; p++) {
        json_key(&w, names[p]);
        if (!now.part[p].tokens) {
            json_null(&w);
            continue;
        }
        json_open(&w, '{');
        json_key_int(&w, "tokens", (int64_t)now.part[p].tokens);
        json_key_double(&w, "timed_seconds", now.part[p].timed_s);
        json_key_double(&w, "wait_seconds", now.part[p].wait_s);
        json_close(&w, '}');
    }
    json_key_open(&w, "lines", '[');
    for (size_t i = 0; i < f->lines.n; i++) {
        if (!(lines[i].seconds[LIVE_DECODE] + lines[i].seconds[LIVE_PREFILL] > 0))
            continue;
        json_open(&w, '{');
        json_key_text(&w, "file", lines[i].src->name);
        json_key_int(&w, "line", lines[i].line);
        for (int p = 0; p < LIVE_PARTS; p++) {
            json_key_open(&w, names[p], '{');
            json_key_double(&w, "seconds", lines[i].seconds[p]);
            json_close(&w, '}');
        }
        json_close(&w, '}');
    }
    json_close(&w, ']');
    json_close(&w, '}');
    mem_free(lines);
}
