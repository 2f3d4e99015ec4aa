/* json_write.h - writes JSON (RFC 8259) into a strbuf, one value after the other.
 *
 *     json_writer w = {.out = &buf};
 *     json_open(&w, '{');
 *     json_key_open(&w, "codes", '[');
 *     json_int(&w, 302);
 *     json_close(&w, ']');
 *     json_key_bool(&w, "fatal", true);
 *     json_close(&w, '}');
 *
 * gives {"codes":[302],"fatal":true}. Commas come by themselves. Whatever bytes a string holds, the output is
 * valid UTF-8. Values at the top level follow each other without a separator, so that a caller can
 * write one per line. */
#ifndef WEFT_RUNTIME_BASE_JSON_WRITE_H
#define WEFT_RUNTIME_BASE_JSON_WRITE_H

#include "runtime/base/str.h"

typedef struct {
    strbuf *out;
    int depth;  /* open brackets */
    bool comma; /* the next key or value needs one before it */
} json_writer;

void json_open(json_writer *w, char bracket);  /* '{' or '[' */
void json_close(json_writer *w, char bracket); /* '}' or ']' */
void json_key(json_writer *w, const char *name);
void json_str(json_writer *w, str s); /* bytes that are not UTF-8 become U+FFFD */
void json_int(json_writer *w, int64_t x);
void json_double(json_writer *w, double x); /* null where JSON has no number: NaN, infinities */
void json_bool(json_writer *w, bool x);
void json_null(json_writer *w);

/* A key and its value. */
void json_key_open(json_writer *w, const char *name, char bracket);
void json_key_str(json_writer *w, const char *name, str s);
void json_key_text(json_writer *w, const char *name, const char *s); /* NULL: null */
void json_key_int(json_writer *w, const char *name, int64_t x);
void json_key_index(json_writer *w, const char *name, int64_t x); /* negative: null */
void json_key_ids(json_writer *w, const char *name, const int32_t *at, size_t n);
void json_key_double(json_writer *w, const char *name, double x);
void json_key_bool(json_writer *w, const char *name, bool x);

#endif
