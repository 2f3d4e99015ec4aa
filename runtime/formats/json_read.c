/* json_read.c - a look at the text for what cJSON would not refuse, cJSON's tree, our tree.
 *
 * cJSON recurses to its nesting limit, makes a node of 64 bytes for every value, and ends strings
 * at NUL; so depth, number of values and \u0000 are checked on the text first. */
#include "runtime/formats/json_read.h"

#include "runtime/base/file.h"
#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include "runtime/base/utf8.h"
#include "runtime/base/vec.h"
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* Six of this byte, which no UTF-8 text has, take the place of \u0000 on the way through cJSON. */
enum { NUL_MARK = 0xff };

typedef struct {
    weft_diag *dg;
    arena *home;
    const char *name;
    char *text; /* a copy, NUL-terminated */
    size_t n;
    json_limits limits;
    VEC(size_t) number_at; /* with limits.exact: where they stand, in the order of the text */
    size_t number_next;    /* cJSON's tree is walked in that order too */
} reader;

static weft_status fail_at(const reader *r, size_t at, const char *what)
{
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at && i < r->n; i++) {
        column++;
        if (r->text[i] == '\n') {
            line++;
            column = 1;
        }
    }
    return weft_fail(r->dg, W1014, WEFT_NOWHERE, "%s: line %zu, column %zu (byte %zu): %s", r->name,
                     line, column, at, what);
}

/* One string, from its opening quote; *at moves past the closing one, or to the end of the text,
 * where cJSON says what is wrong. */
static weft_status scan_string(reader *r, size_t *at)
{
    size_t i = *at + 1;
    while (i < r->n && r->text[i] != '"') {
        uint32_t cp;
        size_t n = utf8_decode((str){r->text + i, r->n - i}, &cp);
        if (n == 0)
            return fail_at(r, i, "a string with bytes that are not UTF-8");
        if (cp < 0x20)
            return fail_at(r, i, "a control character in a string; it must be written \\uXXXX");
        if (cp == '\\' && r->n - i >= 6 && memcmp(r->text + i, "\\u0000", 6) == 0) {
            if (!r->limits.exact)
                return fail_at(r, i, "a string with \\u0000 in it");
            memset(r->text + i, NUL_MARK, 6);
            n = 6;
            cp = 0;
        }
        i += cp == '\\' && i + 1 < r->n ? 2 : n;
    }
    *at = i < r->n ? i + 1 : r->n;
    return WEFT_OK;
}

/* Depth, number of values, strings; Infinity becomes a number that overflows to it. */
static weft_status scan(reader *r)
{
    size_t n_value = 1;
    int depth = 0;
    for (size_t i = 0; i < r->n;) {
        char c = r->text[i];
        if (c == '"') {
            WEFT_TRY(scan_string(r, &i));
            continue;
        }
        if (c == 0)
            return fail_at(r, i, "a NUL byte");
        if (c == 'I' && r->n - i >= 8 && memcmp(r->text + i, "Infinity", 8) == 0) {
            memcpy(r->text + i, "1e999   ", 8);
            c = i > 0 && r->text[i - 1] == '-' ? ' ' : '1'; /* its minus was seen */
            if (c == ' ')
                i += 8;
        }
        if (c == '[' || c == '{')
            depth++;
        if (c == ']' || c == '}')
            depth--;
        if (depth > r->limits.depth_max) {
            weft_status status =
                weft_fail(r->dg, W1102, WEFT_NOWHERE, "%s: nested more than %d deep at byte %zu",
                          r->name, r->limits.depth_max, i);
            weft_note(r->dg, "%d levels of brackets are read here", r->limits.depth_max);
            return status;
        }
        n_value += c == ',' || c == '[' || c == '{';
        if (r->limits.exact && (c == '-' || (c >= '0' && c <= '9'))) {
            VEC_PUSH(&r->number_at, i);
            i += strspn(r->text + i, "+-.0123456789eE");
            continue;
        }
        i++;
    }
    if (n_value > r->limits.values_max)
        return weft_fail(r->dg, W1105, WEFT_NOWHERE, "%s: holds %zu values, the limit is %zu",
                         r->name, n_value, r->limits.values_max);
    return WEFT_OK;
}

static size_t child_count(const cJSON *j)
{
    size_t n = 0;
    for (const cJSON *c = j->child; c; c = c->next)
        n++;
    return n;
}

/* A copy of one of cJSON's strings. */
static str convert_string(const reader *r, const char *z)
{
    str s = arena_str(r->home, str_of(z));
    const char *mark = memchr(s.p, NUL_MARK, s.n);
    if (!mark)
        return s;
    char *to = (char *)s.p;
    size_t n = (size_t)(mark - s.p);
    for (size_t i = n; i < s.n; n++) {
        bool nul = (unsigned char)s.p[i] == NUL_MARK;
        to[n] = nul ? 0 : s.p[i];
        i += nul ? 6 : 1;
    }
    to[n] = 0;
    return (str){to, n};
}

static weft_status convert(reader *r, const cJSON *j, value *out_v);

static weft_status convert_array(reader *r, const cJSON *j, value *out_v)
{
    size_t n = child_count(j), i = 0;
    value *items = ARENA_ARRAY(r->home, value, n);
    for (const cJSON *c = j->child; c; c = c->next)
        WEFT_TRY(convert(r, c, &items[i++]));
    *out_v = value_of_array(VT_NULL, items, n);
    return WEFT_OK;
}

static weft_status convert_object(reader *r, const cJSON *j, value *out_v)
{
    size_t n = child_count(j), i = 0, twice;
    value_member *members = ARENA_ARRAY(r->home, value_member, n);
    for (const cJSON *c = j->child; c; c = c->next, i++) {
        members[i].name = convert_string(r, c->string);
        WEFT_TRY(convert(r, c, &members[i].v));
    }
    if (!value_of_members(r->home, members, n, out_v, &twice))
        return weft_fail(r->dg, W1010, WEFT_NOWHERE,
                         "%s: the name \"" STR_FMT "\" stands twice in one object", r->name,
                         STR_ARG(members[twice].name));
    return WEFT_OK;
}

static value convert_number(reader *r, double x)
{
    if (r->number_next < r->number_at.n) {
        const char *text = r->text + r->number_at.at[r->number_next++];
        char *end;
        errno = 0;
        long long i = strtoll(text, &end, 10);
        bool whole = errno == 0 && *end != '.' && *end != 'e' && *end != 'E';
        return whole ? value_of_int(VT_I64, i) : value_of_float(VT_F64, x);
    }
    if (fabs(x) < 0x1p53 && x == floor(x))
        return value_of_int(VT_I64, (int64_t)x);
    return value_of_float(VT_F64, x);
}

/* As deep as the text, which scan has bounded. */
static weft_status convert(reader *r, const cJSON *j, value *out_v)
{
    if (cJSON_IsArray(j))
        return convert_array(r, j, out_v);
    if (cJSON_IsObject(j))
        return convert_object(r, j, out_v);
    if (cJSON_IsString(j))
        *out_v = value_of_str(convert_string(r, j->valuestring));
    else if (cJSON_IsNumber(j))
        *out_v = convert_number(r, j->valuedouble);
    else if (cJSON_IsBool(j))
        *out_v = value_of_bool(cJSON_IsTrue(j));
    else
        *out_v = (value){.type = VT_NULL};
    return WEFT_OK;
}

static void delete_undone(void *root)
{
    cJSON_Delete(root);
}

static weft_status parse(reader *r, value *out_v)
{
    WEFT_TRY(scan(r));
    const char *end = r->text;
    errno = 0;
    cJSON *root = cJSON_ParseWithLengthOpts(r->text, r->n + 1, &end, 0);
    if (!root && errno == ENOMEM) /* which it reports as a text that is wrong */
        mem_exhausted(r->n);
    size_t at = (size_t)(end - r->text);
    if (!root)
        return fail_at(r, at < r->n ? at : r->n,
                       at < r->n ? "not JSON from here on" : "the text ends within a value");
    while (at < r->n && memchr(" \t\r\n", r->text[at], 4))
        at++;
    value v = {0};
    mem_scope_on_fail(delete_undone, root);
    weft_status status =
        at < r->n ? fail_at(r, at, "something follows the value") : convert(r, root, &v);
    mem_scope_forget(delete_undone, root);
    cJSON_Delete(root);
    if (status == WEFT_OK)
        *out_v = v;
    return status;
}

/* Takes text over. */
static weft_status read_text(weft_diag *dg, arena *a, const char *name, char *text, size_t n,
                             json_limits limits, value *out_v)
{
    WEFT_ASSERT(limits.depth_max <= CJSON_NESTING_LIMIT);
    reader r = {.dg = dg, .home = a, .name = name, .text = text, .n = n, .limits = limits};
    text[n] = 0;
    weft_status status = parse(&r, out_v);
    VEC_FREE(&r.number_at);
    mem_free(text);
    return status;
}

static weft_status check_size(weft_diag *dg, const char *name, uint64_t bytes, json_limits limits)
{
    if (bytes > limits.bytes_max)
        return weft_fail(dg, W1101, WEFT_NOWHERE, "%s: %llu bytes, the limit is %zu", name,
                         (unsigned long long)bytes, limits.bytes_max);
    return WEFT_OK;
}

weft_status json_read(weft_diag *dg, arena *a, const char *name, str text, json_limits limits,
                      value *out_v)
{
    WEFT_TRY(check_size(dg, name, text.n, limits));
    char *copy = mem_alloc(text.n + 1);
    if (text.n)
        memcpy(copy, text.p, text.n);
    return read_text(dg, a, name, copy, text.n, limits, out_v);
}

weft_status json_read_file(weft_diag *dg, arena *a, const char *path, json_limits limits,
                           value *out_v)
{
    int fd;
    uint64_t bytes;
    WEFT_TRY(file_open(dg, path, &fd, &bytes));
    char *text = NULL;
    size_t n = 0;
    weft_status status = check_size(dg, path, bytes, limits);
    if (status == WEFT_OK) {
        text = mem_alloc((size_t)bytes + 1);
        status = file_read(dg, fd, path, text, (size_t)bytes, &n);
    }
    file_close(fd);
    if (status != WEFT_OK) {
        mem_free(text);
        return status;
    }
    return read_text(dg, a, path, text, n, limits, out_v);
}
