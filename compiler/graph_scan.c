/* graph_scan.c - the words of graph text: names, strings, numbers. */
#include "compiler/graph_scan.h"

#include "compiler/graph_impl.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { NUMBER_BYTES_MAX = 40 };

weft_loc scan_loc(const scan *s)
{
    size_t end = s->at > s->begin ? s->at : s->begin + 1;
    if (end > s->src->text.n)
        end = s->src->text.n;
    size_t begin = s->begin < end ? s->begin : end;
    return (weft_loc){s->src, (uint32_t)begin, (uint32_t)end};
}

static char byte_at(const scan *s, size_t i)
{
    return i < s->src->text.n ? s->src->text.p[i] : 0;
}

char scan_peek(scan *s)
{
    for (char c; s->at < s->src->text.n; s->at++) {
        c = s->src->text.p[s->at];
        if (c == ';')
            while (s->at + 1 < s->src->text.n && s->src->text.p[s->at + 1] != '\n')
                s->at++;
        else if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
            break;
    }
    s->begin = s->at;
    return byte_at(s, s->at);
}

bool scan_end(scan *s)
{
    scan_peek(s);
    return s->at >= s->src->text.n;
}

bool scan_accept(scan *s, char c)
{
    if (scan_end(s) || scan_peek(s) != c)
        return false;
    s->at++;
    return true;
}

weft_status scan_expect(scan *s, char c)
{
    if (scan_accept(s, c))
        return WEFT_OK;
    return scan_end(s) ? SCAN_FAIL(s, "the text ends where `%c` is expected", c)
                       : SCAN_FAIL(s, "expected `%c` here", c);
}

/* ---- names ---- */

/* The length of the word at offset i; 0 if there is none. */
static size_t word_length(const scan *s, size_t i)
{
    size_t n = 0;
    while (gtext_is_letter(byte_at(s, i + n)) || (n > 0 && gtext_is_digit(byte_at(s, i + n))))
        n++;
    return n;
}

weft_status scan_word(scan *s, str *out_word)
{
    scan_peek(s);
    size_t n = word_length(s, s->at);
    if (n == 0)
        return SCAN_FAIL(s, "expected a word here");
    *out_word = (str){s->src->text.p + s->at, n};
    s->at += n;
    return WEFT_OK;
}

bool scan_accept_word(scan *s, const char *word)
{
    scan_peek(s);
    size_t n = word_length(s, s->at);
    if (n == 0 || !str_eqz((str){s->src->text.p + s->at, n}, word))
        return false;
    s->at += n;
    return true;
}

weft_status scan_name(scan *s, str *out_name)
{
    if (scan_peek(s) == '"')
        return scan_string(s, out_name);
    size_t i = s->at;
    if (!gtext_is_letter(byte_at(s, i)))
        return SCAN_FAIL(s, "expected a name here");
    for (;;) {
        while (gtext_is_letter(byte_at(s, i)) || gtext_is_digit(byte_at(s, i)) ||
               byte_at(s, i) == '.')
            i++;
        size_t k = i;
        if (byte_at(s, k) != '[')
            break;
        for (k++; gtext_is_digit(byte_at(s, k)); k++)
            ;
        if (k == i + 1 || byte_at(s, k) != ']')
            break;
        i = k + 1;
    }
    *out_name = (str){s->src->text.p + s->at, i - s->at};
    s->at = i;
    return WEFT_OK;
}

static int hex_digit(char c)
{
    return gtext_is_digit(c)      ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

weft_status scan_string(scan *s, str *out_text)
{
    WEFT_TRY(scan_expect(s, '"'));
    strbuf text = {0};
    weft_status status = WEFT_OK;
    while (s->at < s->src->text.n && byte_at(s, s->at) != '"') {
        char c = byte_at(s, s->at++);
        if (c == '\n')
            break;
        if (c == '\\') {
            c = byte_at(s, s->at++);
            int high = hex_digit(byte_at(s, s->at)), low = hex_digit(byte_at(s, s->at + 1));
            if (c == 'x' && high >= 0 && low >= 0) {
                c = (char)(unsigned char)(high * 16 + low);
                s->at += 2;
            } else if (c != '"' && c != '\\') {
                status = SCAN_FAIL(s, "the escapes in a string are \\\" \\\\ \\xNN");
                goto done;
            }
        }
        strbuf_putc(&text, c);
    }
    if (byte_at(s, s->at) != '"') {
        status = SCAN_FAIL(s, "this string does not end on its line");
        goto done;
    }
    s->at++;
    *out_text = arena_str(s->a, strbuf_view(&text));
done:
    strbuf_free(&text);
    return status;
}

weft_status scan_file(scan *s, str *out_name)
{
    scan_peek(s);
    size_t i = s->at;
    while (i < s->src->text.n && !strchr(" \t\r\n:()\"", byte_at(s, i)))
        i++;
    if (i == s->at)
        return SCAN_FAIL(s, "expected the name of a file here");
    *out_name = (str){s->src->text.p + s->at, i - s->at};
    s->at = i;
    return WEFT_OK;
}

/* ---- numbers ---- */

weft_status scan_int(scan *s, int64_t min, int64_t max, int64_t *out_x)
{
    char c = scan_peek(s);
    bool minus = c == '-';
    size_t i = s->at + minus, from = i;
    int64_t x = 0;
    bool fits = true;
    for (; gtext_is_digit(byte_at(s, i)); i++) {
        int digit = byte_at(s, i) - '0';
        fits = fits && x <= (INT64_MAX - digit) / 10;
        x = fits ? x * 10 + digit : x;
    }
    if (i == from)
        return SCAN_FAIL(s, "expected an integer here");
    s->at = i;
    x = minus ? -x : x;
    if (!fits || x < min || x > max)
        return SCAN_FAIL(s, "this integer is not in %" PRId64 " .. %" PRId64, min, max);
    *out_x = x;
    return WEFT_OK;
}

weft_status scan_number(scan *s, double *out_x)
{
    char c = scan_peek(s), text[NUMBER_BYTES_MAX + 1];
    size_t sign = c == '-' || c == '+';
    size_t n = word_length(s, s->at + sign);
    str word = {s->src->text.p + s->at + sign, n};
    if (str_eqz(word, "inf") || str_eqz(word, "nan")) {
        s->at += sign + n;
        double x = word.p[0] == 'i' ? INFINITY : NAN;
        *out_x = c == '-' ? -x : x;
        return WEFT_OK;
    }
    /* strtod knows more forms than the text has; it sees only bytes of a plain number. */
    n = 0;
    while (n < NUMBER_BYTES_MAX && byte_at(s, s->at + n) &&
           strchr("+-.0123456789eE", byte_at(s, s->at + n)))
        n++;
    memcpy(text, s->src->text.p + s->at, n);
    text[n] = 0;
    char *end = text;
    double x = strtod(text, &end);
    if (n == 0 || end != text + n)
        return SCAN_FAIL(s, "expected a number here");
    s->at += n;
    *out_x = x;
    return WEFT_OK;
}
