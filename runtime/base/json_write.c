/* json_write.c - the JSON writer. */
#include "runtime/base/json_write.h"

#include "runtime/base/utf8.h"
#include <inttypes.h>
#include <math.h>

static void json_item(json_writer *w)
{
    if (w->comma && w->depth > 0)
        strbuf_putc(w->out, ',');
    w->comma = true;
}

void json_open(json_writer *w, char bracket)
{
    WEFT_ASSERT(bracket == '{' || bracket == '[');
    json_item(w);
    strbuf_putc(w->out, bracket);
    w->depth++;
    w->comma = false;
}

void json_close(json_writer *w, char bracket)
{
    WEFT_ASSERT((bracket == '}' || bracket == ']') && w->depth > 0);
    strbuf_putc(w->out, bracket);
    w->depth--;
    w->comma = true;
}

static void put_quoted(strbuf *out, str s)
{
    strbuf_putc(out, '"');
    for (size_t i = 0; i < s.n;) {
        uint32_t cp;
        size_t n = utf8_decode((str){s.p + i, s.n - i}, &cp);
        if (n == 0) {
            strbuf_put(out, STR("\xEF\xBF\xBD"));
            n = 1;
        } else if (cp == '"' || cp == '\\') {
            strbuf_putc(out, '\\');
            strbuf_putc(out, (char)cp);
        } else if (cp == '\n') {
            strbuf_put(out, STR("\\n"));
        } else if (cp == '\t') {
            strbuf_put(out, STR("\\t"));
        } else if (cp == '\r') {
            strbuf_put(out, STR("\\r"));
        } else if (cp <= 0xFFFF && utf8_is_control(cp)) {
            /* JSON asks for this only below U+0020; the rest is for people who read it raw. */
            strbuf_add(out, "\\u%04x", (unsigned)cp);
        } else {
            strbuf_put(out, (str){s.p + i, n});
        }
        i += n;
    }
    strbuf_putc(out, '"');
}

void json_key(json_writer *w, const char *name)
{
    json_item(w);
    put_quoted(w->out, str_of(name));
    strbuf_putc(w->out, ':');
    w->comma = false;
}

void json_str(json_writer *w, str s)
{
    json_item(w);
    put_quoted(w->out, s);
}

void json_int(json_writer *w, int64_t x)
{
    json_item(w);
    strbuf_add(w->out, "%" PRId64, x);
}

void json_double(json_writer *w, double x)
{
    if (!isfinite(x)) {
        json_null(w);
        return;
    }
    json_item(w);
    strbuf_add(w->out, "%.17g", x); /* enough digits to read the same double back */
}

void json_bool(json_writer *w, bool x)
{
    json_item(w);
    strbuf_put(w->out, x ? STR("true") : STR("false"));
}

void json_null(json_writer *w)
{
    json_item(w);
    strbuf_put(w->out, STR("null"));
}

void json_key_open(json_writer *w, const char *name, char bracket)
{
    json_key(w, name);
    json_open(w, bracket);
}

void json_key_str(json_writer *w, const char *name, str s)
{
    json_key(w, name);
    json_str(w, s);
}

void json_key_text(json_writer *w, const char *name, const char *s)
{
    json_key(w, name);
    if (s)
        json_str(w, str_of(s));
    else
        json_null(w);
}

void json_key_int(json_writer *w, const char *name, int64_t x)
{
    json_key(w, name);
    json_int(w, x);
}

void json_key_index(json_writer *w, const char *name, int64_t x)
{
    json_key(w, name);
    if (x >= 0)
        json_int(w, x);
    else
        json_null(w);
}

void json_key_ids(json_writer *w, const char *name, const int32_t *at, size_t n)
{
    json_key_open(w, name, '[');
    for (size_t i = 0; i < n; i++)
        json_int(w, at[i]);
    json_close(w, ']');
}

void json_key_double(json_writer *w, const char *name, double x)
{
    json_key(w, name);
    json_double(w, x);
}

void json_key_bool(json_writer *w, const char *name, bool x)
{
    json_key(w, name);
    json_bool(w, x);
}
