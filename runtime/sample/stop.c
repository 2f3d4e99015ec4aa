/* stop.c - stop strings, each followed by the automaton of Knuth, Morris and Pratt: every byte of
 * the text is looked at once for each string, however long the strings and what is held are. */
#include "runtime/sample/stop.h"

#include "runtime/base/mem.h"

struct stop_string {
    str text;
    size_t
        *shorter; /* [text.n]: the longest beginning of text that ends text[..i], but is not it */
    size_t state; /* how much of text the stream ends in */
};

/* The state after byte c. */
static size_t step(const stop_string *s, size_t state, char c)
{
    while (state && s->text.p[state] != c)
        state = s->shorter[state - 1];
    return state + (s->text.p[state] == c);
}

void stop_init(stop_watch *w, const char *const *strings, size_t n)
{
    *w = (stop_watch){.n = n, .found = -1};
    strbuf_start(&w->held); /* it grows in later calls */
    w->strings = mem_alloc(mem_product(n + 1, sizeof *w->strings));
    for (size_t i = 0; i < n; i++) {
        stop_string *s = &w->strings[i];
        *s = (stop_string){.text = str_of(strings[i])};
        if (!s->text.n)
            continue;
        s->shorter = mem_alloc(mem_product(s->text.n, sizeof *s->shorter));
        s->shorter[0] = 0;
        for (size_t k = 1; k < s->text.n; k++)
            s->shorter[k] = step(s, s->shorter[k - 1], s->text.p[k]);
    }
}

void stop_deinit(stop_watch *w)
{
    for (size_t i = 0; i < w->n; i++)
        mem_free(w->strings[i].shorter);
    mem_free(w->strings);
    strbuf_free(&w->held);
}

static void forget(stop_watch *w)
{
    strbuf_reset(&w->held);
    w->begin = 0;
    for (size_t i = 0; i < w->n; i++)
        w->strings[i].state = 0;
}

void stop_reset(stop_watch *w)
{
    forget(w);
    w->found = -1;
}

/* Where s begins in the held text, whose last n_new bytes s has not seen; held.n: nowhere. */
static size_t search(stop_string *s, str held, size_t n_new)
{
    for (size_t at = held.n - n_new; s->text.n && at < held.n; at++) {
        s->state = step(s, s->state, held.p[at]);
        if (s->state == s->text.n)
            return at + 1 - s->text.n;
    }
    return held.n;
}

/* Takes n bytes off the beginning of what is held. They are moved away only when they are more than
 * what stays, so that a long wait does not move what waits again and again. */
static void drop(stop_watch *w, size_t n)
{
    w->begin += n;
    if (w->begin <= w->held.n / 2 && w->begin < w->held.n)
        return;
    w->held.n -= w->begin;
    memmove(w->held.p, w->held.p + w->begin, w->held.n);
    w->begin = 0;
}

bool stop_put(stop_watch *w, str text, strbuf *out)
{
    if (w->found >= 0)
        return true;
    if (!text.n)
        return false;
    strbuf_put(&w->held, text);
    str held = {w->held.p + w->begin, w->held.n - w->begin};
    size_t at = held.n, open = 0;
    for (size_t i = 0; i < w->n;
         i++) { /* the earliest one counts; of two at a place the first named */
        size_t begin = search(&w->strings[i], held, text.n);
        if (begin < at) {
            at = begin;
            w->found = (int)i;
        }
        if (w->strings[i].state > open)
            open = w->strings[i].state;
    }
    size_t safe = w->found >= 0 ? at : held.n - open;
    strbuf_put(out, (str){held.p, safe});
    drop(w, w->found >= 0 ? held.n : safe);
    return w->found >= 0;
}

void stop_flush(stop_watch *w, strbuf *out)
{
    if (w->found < 0 && w->held.n)
        strbuf_put(out, (str){w->held.p + w->begin, w->held.n - w->begin});
    forget(w);
}
