/* jinja_method_split.c - methods of strings that split, join, replace, fill up and format. */
#include "runtime/base/utf8.h"
#include "runtime/text/jinja_builtins.h"
#include "runtime/text/jinja_chars.h"

static weft_status push(jinja_run *r, jlist *l, str s, size_t begin, size_t end)
{
    if (l->n == l->cap)
        WEFT_TRY(run_list_room(r, l->cap * 2));
    jlist_push(r, l, jv_str((str){s.p + begin, end - begin}));
    return run_step(r, 1);
}

static weft_status split_space(jinja_run *r, str s, int64_t most, jlist *l)
{
    for (size_t at = char_skip_space(s, 0); at < s.n;) {
        size_t end = at;
        if (most-- == 0)
            return push(r, l, s, at, char_trim_space(s, s.n));
        while (end < s.n && char_skip_space(s, end) == end)
            utf8_char_at(s, &end);
        WEFT_TRY(push(r, l, s, at, end));
        at = char_skip_space(s, end);
    }
    return WEFT_OK;
}

/* The same from the end on; the list comes out in reverse. */
static weft_status rsplit_space(jinja_run *r, str s, int64_t most, jlist *l)
{
    for (size_t end = char_trim_space(s, s.n); end > 0;) {
        size_t at = end;
        if (most-- == 0)
            return push(r, l, s, char_skip_space(s, 0), end);
        while (at > 0 && char_trim_space(s, at) == at)
            at = char_before(s, at);
        WEFT_TRY(push(r, l, s, at, end));
        end = char_trim_space(s, at);
    }
    return WEFT_OK;
}

static weft_status split_at(jinja_run *r, str s, str sep, int64_t most, jlist *l)
{
    size_t at = 0, found;
    while (most-- != 0 && (found = str_find(s, sep, at)) <= s.n) {
        WEFT_TRY(push(r, l, s, at, found));
        at = found + sep.n;
    }
    return push(r, l, s, at, s.n);
}

static weft_status rsplit_at(jinja_run *r, str s, str sep, int64_t most, jlist *l)
{
    size_t end = s.n, found;
    for (; most != 0 && (found = str_find_last(r, (str){s.p, end}, sep)) <= end; most--) {
        WEFT_TRY(push(r, l, s, found + sep.n, end));
        end = found;
    }
    return push(r, l, s, 0, end);
}

static void turn_around(jlist *l)
{
    for (size_t i = 0; i < l->n / 2; i++) {
        jval v = l->at[i];
        l->at[i] = l->at[l->n - 1 - i];
        l->at[l->n - 1 - i] = v;
    }
}

weft_status method_split(jinja_run *r, const jcall *c, jval *out)
{
    bool from_end = c->how == AT_END;
    jlist *l = jlist_new(r, JSEQ_LIST, 0);
    str s = c->self.as.s, sep = {0};
    int64_t most = -1;
    if (jv_is_given(&c->arg[0]))
        WEFT_TRY(arg_str(r, c, 0, &sep));
    WEFT_TRY(arg_int(r, c, 1, &most));
    most = most < 0 ? -1 : most;
    WEFT_TRY(run_search(r, s, sep.n));
    if (jv_is_given(&c->arg[0]) && sep.n == 0)
        return run_fail(r, "the separator is empty");
    if (jv_is_given(&c->arg[0]))
        WEFT_TRY((from_end ? rsplit_at : split_at)(r, s, sep, most, l));
    else
        WEFT_TRY((from_end ? rsplit_space : split_space)(r, s, most, l));
    if (from_end)
        turn_around(l);
    *out = jv_list(l);
    return WEFT_OK;
}

static bool ends_line(uint32_t cp)
{
    return (cp >= 10 && cp <= 13) || (cp >= 0x1c && cp <= 0x1e) || cp == 0x85 || cp == 0x2028 ||
           cp == 0x2029;
}

weft_status method_splitlines(jinja_run *r, const jcall *c, jval *out)
{
    jlist *l = jlist_new(r, JSEQ_LIST, 0);
    str s = c->self.as.s;
    bool keep = arg_truth(c, 0);
    size_t begin = 0;
    WEFT_TRY(run_step(r, s.n / STEP_CHARS));
    for (size_t i = 0; i < s.n;) {
        uint32_t cp;
        size_t end = i;
        i += char_at(s, i, &cp);
        if (!ends_line(cp))
            continue;
        if (cp == '\r' && i < s.n && s.p[i] == '\n')
            i++;
        WEFT_TRY(push(r, l, s, begin, keep ? i : end));
        begin = i;
    }
    if (begin < s.n)
        WEFT_TRY(push(r, l, s, begin, s.n));
    *out = jv_list(l);
    return WEFT_OK;
}

weft_status method_partition(jinja_run *r, const jcall *c, jval *out)
{
    bool last = c->how == AT_END;
    str s = c->self.as.s, sep = {0};
    WEFT_TRY(arg_str(r, c, 0, &sep));
    if (sep.n == 0)
        return run_fail(r, "the separator is empty");
    WEFT_TRY(run_search(r, s, sep.n));
    size_t at = last ? str_find_last(r, s, sep) : str_find(s, sep, 0);
    bool found = at <= s.n;
    jlist *l = jlist_new(r, JSEQ_TUPLE, 3);
    if (!found && last) {
        jlist_push(r, l, jv_str(STR("")));
        jlist_push(r, l, jv_str(STR("")));
    }
    jlist_push(r, l, jv_str((str){s.p, found ? at : s.n}));
    if (found) {
        jlist_push(r, l, jv_str(sep));
        jlist_push(r, l, jv_str((str){s.p + at + sep.n, s.n - at - sep.n}));
    } else if (!last) {
        jlist_push(r, l, jv_str(STR("")));
        jlist_push(r, l, jv_str(STR("")));
    }
    *out = jv_list(l);
    return WEFT_OK;
}

weft_status method_join(jinja_run *r, const jcall *c, jval *out)
{
    const jlist *items;
    jtext t = {.r = r};
    WEFT_TRY(access_items(r, &c->arg[0], &items));
    for (size_t i = 0; i < items->n; i++) {
        if (items->at[i].kind != JV_STR)
            return run_fail(r, "join: item %zu is %s, not a string", i, jv_type(&items->at[i]));
        if (i)
            text_put(&t, c->self.as.s);
        text_put(&t, items->at[i].as.s);
        WEFT_TRY(run_step(r, 1));
    }
    return text_value(&t, out);
}

weft_status str_replace(jinja_run *r, str s, str old, str with, int64_t most, jval *out)
{
    jtext t = {.r = r};
    size_t at = 0;
    WEFT_TRY(run_search(r, s, old.n));
    if (old.n == 0) { /* between all characters, and at both ends */
        for (; most != 0 && !t.full; most--) {
            text_put(&t, with);
            WEFT_TRY(run_step(r, 1));
            if (at == s.n) {
                at = s.n + 1;
                break;
            }
            text_put(&t, utf8_char_at(s, &at));
        }
        if (at <= s.n)
            text_put(&t, (str){s.p + at, s.n - at});
        return text_value(&t, out);
    }
    for (size_t found; most != 0 && (found = str_find(s, old, at)) <= s.n; most--) {
        text_put(&t, (str){s.p + at, found - at});
        text_put(&t, with);
        at = found + old.n;
        WEFT_TRY(run_step(r, 1));
    }
    text_put(&t, (str){s.p + at, s.n - at});
    return text_value(&t, out);
}

weft_status method_replace(jinja_run *r, const jcall *c, jval *out)
{
    str old = {0}, with = {0};
    int64_t most = -1;
    if (c->arg[0].kind != JV_STR || c->arg[1].kind != JV_STR)
        return run_fail(r, "replace takes two strings, not %s and %s", jv_type(&c->arg[0]),
                        jv_type(&c->arg[1]));
    WEFT_TRY(arg_str(r, c, 0, &old));
    WEFT_TRY(arg_str(r, c, 1, &with));
    WEFT_TRY(arg_int(r, c, 2, &most));
    return str_replace(r, c->self.as.s, old, with, most < 0 ? -1 : most, out);
}

/* ---- filling up ---- */

weft_status method_justify(jinja_run *r, const jcall *c, jval *out)
{
    str s = c->self.as.s, fill = STR(" ");
    int64_t width = 0, n = (int64_t)utf8_count(s);
    jtext t = {.r = r};
    WEFT_TRY(arg_int(r, c, 0, &width));
    WEFT_TRY(arg_str(r, c, 1, &fill));
    if (utf8_count(fill) != 1)
        return run_fail(r, "the fill is one character");
    int64_t pad = width > n ? width - n : 0;
    int64_t left = c->how == JUSTIFY_LEFT    ? 0
                   : c->how == JUSTIFY_RIGHT ? pad
                                             : pad / 2 + (pad & width & 1);
    text_fill(&t, fill, left);
    text_put(&t, s);
    text_fill(&t, fill, pad - left);
    return text_value(&t, out);
}

weft_status method_zfill(jinja_run *r, const jcall *c, jval *out)
{
    str s = c->self.as.s;
    int64_t width = 0, n = (int64_t)utf8_count(s);
    jtext t = {.r = r};
    WEFT_TRY(arg_int(r, c, 0, &width));
    size_t sign = s.n > 0 && (s.p[0] == '-' || s.p[0] == '+');
    text_put(&t, (str){s.p, sign});
    text_fill(&t, STR("0"), width > n ? width - n : 0);
    text_put(&t, (str){s.p + sign, s.n - sign});
    return text_value(&t, out);
}

weft_status method_expandtabs(jinja_run *r, const jcall *c, jval *out)
{
    str s = c->self.as.s;
    int64_t tab = 8, column = 0;
    jtext t = {.r = r};
    WEFT_TRY(arg_int(r, c, 0, &tab));
    WEFT_TRY(run_step(r, s.n / STEP_CHARS));
    for (size_t i = 0; i < s.n;) {
        str one = utf8_char_at(s, &i);
        if (one.p[0] == '\t') {
            int64_t pad = tab > 0 ? tab - column % tab : 0;
            text_fill(&t, STR(" "), pad);
            column += pad;
        } else {
            text_put(&t, one);
            column = one.p[0] == '\n' || one.p[0] == '\r' ? 0 : column + 1;
        }
    }
    return text_value(&t, out);
}
