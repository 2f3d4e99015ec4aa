/* tok_lines.c - a scanner for one line of JSON. */
#include "runtime/text/tok_lines.h"

#include "runtime/text/tok_unicode.h"

enum { DEPTH_MAX = 64 };

static size_t skip_blank(str s, size_t i)
{
    while (i < s.n && (s.p[i] == ' ' || s.p[i] == '\t' || s.p[i] == '\r' || s.p[i] == '\n'))
        i++;
    return i;
}

/* Each of these gives the end of what begins at i, or 0. */
static size_t string_end(str s, size_t i)
{
    if (i >= s.n || s.p[i] != '"')
        return 0;
    for (i++; i < s.n && s.p[i] != '"'; i++)
        if (s.p[i] == '\\')
            i++;
    return i < s.n ? i + 1 : 0;
}

static size_t value_end(str s, size_t i)
{
    int depth = 0;
    do {
        i = skip_blank(s, i);
        if (i >= s.n)
            return 0;
        char c = s.p[i];
        if (c == '"') {
            i = string_end(s, i);
            if (!i)
                return 0;
        } else if (c == '[' || c == '{') {
            if (++depth > DEPTH_MAX)
                return 0;
            i++;
        } else if (c == ']' || c == '}') {
            if (--depth < 0)
                return 0;
            i++;
        } else if (c == ',' || c == ':') {
            if (!depth)
                return 0;
            i++;
        } else {
            size_t begin = i;
            while (i < s.n && !strchr(" \t\r\n,:[]{}\"", s.p[i]))
                i++;
            if (i == begin)
                return 0;
        }
    } while (depth);
    return i;
}

weft_status tok_line_member(weft_diag *dg, str line, const char *name, str *out_raw)
{
    size_t i = skip_blank(line, 0), end;
    *out_raw = (str){0};
    if (i >= line.n || line.p[i] != '{')
        return weft_fail(dg, W1210, WEFT_NOWHERE, "a line is not a JSON object");
    i = skip_blank(line, i + 1);
    while (i < line.n && line.p[i] != '}') {
        end = string_end(line, i);
        if (!end)
            break;
        str key = {line.p + i + 1, end - i - 2};
        i = skip_blank(line, end);
        if (i >= line.n || line.p[i] != ':')
            break;
        i = skip_blank(line, i + 1);
        end = value_end(line, i);
        if (!end)
            break;
        if (str_eqz(key, name))
            *out_raw = (str){line.p + i, end - i};
        i = skip_blank(line, end);
        if (i < line.n && line.p[i] == ',')
            i = skip_blank(line, i + 1);
        else if (i >= line.n || line.p[i] != '}')
            break;
    }
    if (i >= line.n || line.p[i] != '}' || skip_blank(line, i + 1) != line.n)
        return weft_fail(dg, W1210, WEFT_NOWHERE, "a line is not well-formed JSON at byte %zu", i);
    return WEFT_OK;
}

static int hex4(const char *p)
{
    int x = 0;
    for (int i = 0; i < 4; i++) {
        int c = (unsigned char)p[i], low = c | 0x20;
        int d = c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
        if (d < 0)
            return -1;
        x = x << 4 | d;
    }
    return x;
}

/* At the digits after \u; steps over them. A half of a pair alone is U+FFFD. */
static bool put_unicode(str s, size_t *io_i, strbuf *out)
{
    size_t i = *io_i;
    int cp = s.n - i >= 4 ? hex4(s.p + i) : -1, low;
    if (cp < 0)
        return false;
    i += 4;
    if (cp >= 0xd800 && cp < 0xdc00 && s.n - i >= 6 && s.p[i] == '\\' && s.p[i + 1] == 'u' &&
        (low = hex4(s.p + i + 2)) >= 0xdc00 && low < 0xe000) {
        cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
        i += 6;
    }
    uni_add(out, cp >= 0xd800 && cp < 0xe000 ? 0xfffd : (uint32_t)cp);
    *io_i = i;
    return true;
}

bool tok_line_string(str raw, strbuf *out)
{
    static const char letters[] = "\"\\/bfnrt", codes[] = "\"\\/\b\f\n\r\t";
    if (raw.n < 2 || raw.p[0] != '"' || raw.p[raw.n - 1] != '"')
        return false;
    raw.n--;
    for (size_t i = 1; i < raw.n;) {
        const char *at = memchr(raw.p + i, '\\', raw.n - i);
        size_t end = at ? (size_t)(at - raw.p) : raw.n;
        strbuf_put(out, (str){raw.p + i, end - i});
        if (!at)
            break;
        i = end + 1;
        if (i >= raw.n)
            return false;
        if (raw.p[i] == 'u') {
            i++;
            if (!put_unicode(raw, &i, out))
                return false;
            continue;
        }
        const char *letter = raw.p[i] ? strchr(letters, raw.p[i]) : NULL;
        if (!letter)
            return false;
        strbuf_putc(out, codes[letter - letters]);
        i++;
    }
    return true;
}

weft_status tok_line_text(weft_diag *dg, str line, const char *name, strbuf *out)
{
    str raw;
    WEFT_TRY(tok_line_member(dg, line, name, &raw));
    if (!tok_line_string(raw, out))
        return weft_fail(dg, W1210, WEFT_NOWHERE, "a line has no text called '%s'", name);
    return WEFT_OK;
}

bool tok_line_item(str *io_raw, str *out_item)
{
    size_t i = skip_blank(*io_raw, 0), end = value_end(*io_raw, i);
    if (!end)
        return false;
    *out_item = (str){io_raw->p + i, end - i};
    end = skip_blank(*io_raw, end);
    end += end < io_raw->n && io_raw->p[end] == ',';
    *io_raw = (str){io_raw->p + end, io_raw->n - end};
    return true;
}

weft_status tok_line_ids(weft_diag *dg, str line, const char *name, tok_ids *out)
{
    str raw;
    WEFT_TRY(tok_line_member(dg, line, name, &raw));
    size_t i = 1;
    bool good = raw.n >= 2 && raw.p[0] == '[';
    while (good && (i = skip_blank(raw, i)) < raw.n && raw.p[i] != ']') {
        int64_t x = 0;
        size_t begin = i;
        for (; i < raw.n && raw.p[i] >= '0' && raw.p[i] <= '9' && x <= INT32_MAX; i++)
            x = x * 10 + (raw.p[i] - '0');
        good = i > begin && x <= INT32_MAX;
        if (good)
            VEC_PUSH(out, (int32_t)x);
        i = skip_blank(raw, i);
        if (i < raw.n && raw.p[i] == ',') {
            i = skip_blank(raw, i + 1);
            good &= i < raw.n && raw.p[i] != ']';
        } else
            good &= i < raw.n && raw.p[i] == ']';
    }
    if (!good)
        return weft_fail(dg, W1210, WEFT_NOWHERE, "a line has no list of ids called '%s'", name);
    return WEFT_OK;
}
