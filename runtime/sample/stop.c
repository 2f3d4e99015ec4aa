/* stop.c - stop strings. */
#include "runtime/sample/stop.h"

void stop_init(stop_watch *w, const char *const *strings, size_t n)
{
    *w = (stop_watch){.strings = strings, .n = n, .found = -1};
}

void stop_deinit(stop_watch *w)
{
    strbuf_free(&w->held);
}

void stop_reset(stop_watch *w)
{
    strbuf_reset(&w->held);
    w->found = -1;
}

/* How many bytes at the end of text begin, but do not finish, some stop string. */
static size_t open_tail(const stop_watch *w, str text)
{
    size_t most = 0;
    for (size_t i = 0; i < w->n; i++) {
        str s = str_of(w->strings[i]);
        size_t n = s.n > 0 && s.n - 1 < text.n ? s.n - 1 : s.n > 0 ? text.n : 0;
        for (; n > most; n--)
            if (memcmp(text.p + text.n - n, s.p, n) == 0)
                most = n;
    }
    return most;
}

bool stop_put(stop_watch *w, str text, strbuf *out)
{
    if (w->found >= 0)
        return true;
    strbuf_put(&w->held, text);
    str held = strbuf_view(&w->held);
    size_t at = held.n;
    for (size_t i = 0; i < w->n;
         i++) { /* the earliest one counts; of two at a place the first named */
        str s = str_of(w->strings[i]);
        const char *hit = s.n > 0 && held.n >= s.n ? memmem(held.p, held.n, s.p, s.n) : NULL;
        if (hit && (size_t)(hit - held.p) < at) {
            at = (size_t)(hit - held.p);
            w->found = (int)i;
        }
    }
    size_t safe = w->found >= 0 ? at : held.n - open_tail(w, held);
    strbuf_put(out, (str){held.p, safe});
    strbuf rest = {0};
    if (w->found < 0)
        strbuf_put(&rest, (str){held.p + safe, held.n - safe});
    strbuf_free(&w->held);
    w->held = rest;
    return w->found >= 0;
}

void stop_flush(stop_watch *w, strbuf *out)
{
    if (w->found < 0)
        strbuf_put(out, strbuf_view(&w->held));
    strbuf_reset(&w->held);
}
