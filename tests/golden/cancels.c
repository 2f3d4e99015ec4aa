/* cancels.c - calls that are cancelled in their middle: what comes after them is as if they had never begun.
 *
 *     cancels [--device NAME] [-ngl N] TIMES FOLDER|FILE.gguf...
 *
 * Calls of one row, of a few and of many, TIMES times each, from a session that another thread tells to stop, at some moment of
 * the time that such a call takes. One that was cancelled is made again. Whatever comes out is what came out undisturbed; no
 * call may take a minute. */
#include "runtime/base/clock.h"
#include "runtime/weft.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HELD = 8, MANY = 96, SIZES = 3, HANGS_S = 60 };
static const int64_t sizes[SIZES] = {1, 5, MANY};

static const char *device; /* NULL: the CPU */
static int64_t layers;     /* of the model, on the device; 0: all */

typedef struct {
    weft_diag *dg;
    weft_cancel *cancel;
    weft_session *s;
    int64_t vocab;
    float *want[SIZES]; /* [sizes[i], vocab] */
} subject;

static bool told(const subject *c, weft_status st)
{
    if (st != WEFT_OK)
        fputs(weft_diag_text(c->dg), stdout);
    return st != WEFT_OK;
}

/* ---- the other thread ---- */

typedef struct {
    weft_cancel *cancel;
    uint64_t after_ns;
    atomic_bool go;
} stopper;

static void *stop_later(void *ctx)
{
    stopper *st = ctx;
    while (!atomic_load(&st->go))
        sched_yield();
    uint64_t began = clock_ns();
    while (clock_ns() - began < st->after_ns)
        sched_yield();
    weft_cancel_set(st->cancel);
    return NULL;
}

/* ---- calls ---- */

/* Rows [first, first + n) of the text; HANGS_S seconds are the end of the program. */
static weft_status eval(const subject *c, int64_t first, int64_t n)
{
    weft_row rows[MANY];
    for (int64_t i = 0; i < n; i++)
        rows[i] = (weft_row){.token = (int32_t)((first + i) * 37 % c->vocab),
                             .pos = (int32_t)(first + i),
                             .want = true};
    alarm(HANGS_S);
    weft_status st = weft_eval(c->dg, c->s, rows, n);
    alarm(0);
    return st;
}

static bool as_wanted(const subject *c, int size)
{
    weft_view v;
    if (told(c, weft_output(c->dg, c->s, "logits", -1, &v)) || v.rows != sizes[size])
        return false;
    for (int64_t i = 0; i < v.rows * c->vocab; i++) {
        float want = c->want[size][i];
        if (!(fabsf(v.data[i] - want) <= 1e-4F * (1 + fabsf(want)))) {
            printf("FAILED: row %" PRId64 " of %" PRId64 ", token %" PRId64
                   ": %.9g, undisturbed %.9g\n",
                   i / c->vocab, v.rows, i % c->vocab, (double)v.data[i], (double)want);
            return false;
        }
    }
    return true;
}

/* One call, told to stop after that time; then what came out, or comes out now. */
static bool disturbed(const subject *c, int size, uint64_t after_ns, int64_t *cancelled)
{
    stopper st = {.cancel = c->cancel, .after_ns = after_ns};
    pthread_t other;
    if (pthread_create(&other, NULL, stop_later, &st) != 0)
        return false;
    atomic_store(&st.go, true);
    weft_status ended = eval(c, HELD, sizes[size]);
    pthread_join(other, NULL);
    weft_cancel_clear(c->cancel);
    if (ended == WEFT_ERR_CANCELLED) {
        weft_diag_clear(c->dg);
        ++*cancelled;
        if (weft_length(c->s, 0) != HELD) {
            printf("FAILED: a cancelled call leaves %" PRId64 " tokens, not %d\n",
                   weft_length(c->s, 0), HELD);
            return false;
        }
        ended = eval(c, HELD, sizes[size]);
    }
    return !told(c, ended) && as_wanted(c, size) && !told(c, weft_truncate(c->dg, c->s, 0, HELD));
}

/* Undisturbed, for what comes out and the nanoseconds it takes; the first call may take longer than others. */
static bool undisturbed(subject *c, int size, uint64_t *out_ns)
{
    weft_view v;
    for (int i = 0; i < 2; i++) {
        uint64_t began = clock_ns();
        if (told(c, eval(c, HELD, sizes[size])) ||
            told(c, weft_output(c->dg, c->s, "logits", -1, &v)))
            return false;
        *out_ns = clock_ns() - began;
        if (told(c, weft_truncate(c->dg, c->s, 0, HELD)))
            return false;
    }
    size_t bytes = (size_t)(sizes[size] * c->vocab) * sizeof *v.data;
    c->want[size] = malloc(bytes);
    if (c->want[size])
        memcpy(c->want[size], v.data, bytes);
    return c->want[size] != NULL;
}

static bool run_calls(subject *c, int64_t times)
{
    uint32_t dice = 1;
    if (told(c, eval(c, 0, HELD)))
        return false;
    for (int size = 0; size < SIZES; size++) {
        int64_t cancelled = 0;
        uint64_t ns;
        if (!undisturbed(c, size, &ns))
            return false;
        for (int64_t i = 0; i < times; i++) {
            dice = dice * 1664525 + 1013904223;
            if (!disturbed(c, size, (uint64_t)(dice >> 8) * ns >> 24, &cancelled))
                return false;
        }
        printf("       rows %" PRId64 ", %.3f ms: %" PRId64 " of %" PRId64 " were cancelled\n",
               sizes[size], (double)ns / 1e6, cancelled, times);
        if (sizes[size] == MANY && cancelled == 0) {
            printf("FAILED: none was cancelled\n");
            return false;
        }
    }
    return true;
}

static bool run_model(const char *path, int64_t times)
{
    subject c = {.dg = weft_diag_create(), .cancel = weft_cancel_create()};
    weft_model *m = NULL;
    weft_session_options how = {.size = sizeof how,
                                .context = HELD + MANY,
                                .batch = MANY,
                                .threads = 2,
                                .device = device,
                                .device_layers = layers,
                                .cancel = c.cancel};
    bool fine = !told(&c, weft_model_open(c.dg, path, NULL, &m)) &&
                weft_model_int(m, "vocab", &c.vocab) &&
                !told(&c, weft_session_create(c.dg, m, &how, &c.s)) && run_calls(&c, times);
    printf("%s %s\n", fine ? "ok    " : "FAILED", path);
    for (int i = 0; i < SIZES; i++)
        free(c.want[i]);
    weft_session_destroy(c.s);
    weft_model_close(m);
    weft_cancel_destroy(c.cancel);
    weft_diag_destroy(c.dg);
    return fine;
}

int main(int argc, char **argv)
{
    int at = 1;
    for (; at + 1 < argc && argv[at][0] == '-'; at += 2)
        if (strcmp(argv[at], "--device") == 0)
            device = argv[at + 1];
        else if (strcmp(argv[at], "-ngl") == 0)
            layers = atoi(argv[at + 1]);
        else
            return 2;
    int64_t times = at < argc ? atoi(argv[at++]) : 0;
    bool fine = times > 0 && at < argc;
    setvbuf(stdout, NULL, _IOLBF, 0); /* what was said is seen where a call hangs */
    for (; at < argc; at++)
        fine = run_model(argv[at], times) && fine;
    return fine ? 0 : 1;
}
