/* id_list.c - reading lists of ids, and ID=NUMBER. */
#include "runtime/cli/id_list.h"

#include <math.h>
#include <stdlib.h>

enum { SHOWN_MAX = 20 }; /* bytes of a wrong part that a message quotes */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static size_t skip_blanks(str s, size_t i)
{
    while (i < s.n && is_blank(s.p[i]))
        i++;
    return i;
}

static weft_status wrong_part(weft_diag *dg, const char *from, str text, size_t at)
{
    size_t end = at;
    while (end < text.n && end - at < SHOWN_MAX && !is_blank(text.p[end]) && text.p[end] != ',')
        end++;
    return weft_fail(dg, W1903, WEFT_NOWHERE, "%s: `" STR_FMT "` at byte %zu is not a token id",
                     from, STR_ARG(((str){text.p + at, end - at})), at);
}

/* The decimal number at *io_at, which moves behind it; false if it is none or too large. */
static bool read_id(str text, size_t *io_at, int32_t *out_id)
{
    int64_t id = 0;
    size_t at = *io_at;
    while (at < text.n && text.p[at] >= '0' && text.p[at] <= '9' && id <= INT32_MAX)
        id = id * 10 + (text.p[at++] - '0');
    if (at == *io_at || id > INT32_MAX)
        return false;
    *out_id = (int32_t)id;
    *io_at = at;
    return true;
}

weft_status id_list_read(weft_diag *dg, const char *from, str text, tok_ids *ids)
{
    size_t at = skip_blanks(text, 0), n_before = ids->n;
    while (at < text.n) {
        size_t begin = at;
        int32_t id;
        if (text.p[at] == ',')
            return weft_fail(dg, W1903, WEFT_NOWHERE,
                             "%s: no token id before the comma at byte %zu", from, at);
        if (!read_id(text, &at, &id) || (at < text.n && text.p[at] != ',' && !is_blank(text.p[at])))
            return wrong_part(dg, from, text, begin);
        if (ids->n - n_before == ID_LIST_MAX)
            return weft_fail(dg, W1103, WEFT_NOWHERE, "%s: more than %d ids", from, ID_LIST_MAX);
        VEC_PUSH(ids, id);
        at = skip_blanks(text, at);
        if (at == text.n || text.p[at] != ',')
            continue;
        size_t comma = at;
        at = skip_blanks(text, at + 1);
        if (at == text.n)
            return weft_fail(dg, W1903, WEFT_NOWHERE, "%s: no token id after the comma at byte %zu",
                             from, comma);
    }
    return WEFT_OK;
}

weft_status id_bias_read(weft_diag *dg, const char *from, const char *text, int32_t *out_id,
                         float *out_bias)
{
    str s = str_of(text);
    size_t at = 0;
    int32_t id;
    const char *why = NULL;
    char *end = NULL;
    if (s.n && s.p[0] == '=')
        why = "nothing stands before `=`";
    else if (!read_id(s, &at, &id))
        why = "it does not begin with a token id";
    else if (at == s.n || s.p[at] != '=')
        why = "no `=` follows the token id";
    else if (at + 1 == s.n)
        why = "nothing stands after `=`";
    double x = why ? 0 : strtod(text + at + 1, &end);
    if (!why && (is_blank(text[at + 1]) || *end || isnan(x) || (x != -HUGE_VAL && isinf((float)x))))
        why = "what stands after `=` is neither a number of 32 bits nor -inf";
    if (why) {
        weft_status st =
            weft_fail(dg, W1903, WEFT_NOWHERE, "%s: `%s` is not ID=NUMBER", from, text);
        weft_note(dg, "%s", why);
        return st;
    }
    *out_id = id;
    *out_bias = (float)x;
    return WEFT_OK;
}
