/* jinja_method_str.c - methods of strings that cut, search and change case. */
#include "runtime/base/utf8.h"
#include "runtime/text/jinja_builtins.h"
#include "runtime/text/jinja_chars.h"

size_t str_find(str s, str part, size_t from)
{
    if (from > s.n)
        return s.n + 1;
    if (part.n == 0)
        return from;
    const char *p = memmem(s.p + from, s.n - from, part.p, part.n);
    return p ? (size_t)(p - s.p) : s.n + 1;
}

size_t str_find_last(jinja_run *r, str s, str part)
{
    for (size_t i = s.n + 1; i-- > 0;) {
        if (part.n > s.n - i || (part.n && s.p[i] != part.p[0]))
            continue;
        if (memcmp(s.p + i, part.p, part.n) == 0 || !run_spend(r, part.n / 16 + 1))
            return i;
    }
    return s.n + 1;
}

/* ---- case ---- */

weft_status str_in_case(jinja_run *r, str s, int rule, jval *out)
{
    jtext t = {.r = r};
    WEFT_TRY(run_step(r, s.n / STEP_CHARS));
    bool inside = false; /* the character before is a letter with case */
    for (size_t i = 0, n; i < s.n; i += n) {
        uint32_t cp;
        char to[8];
        n = char_at(s, i, &cp);
        unsigned is = char_classes(cp);
        char_case want = rule == TO_UPPER                          ? CASE_UPPER
                         : rule == TO_TITLE && !inside             ? CASE_TITLE
                         : rule == TO_CAPITAL && i == 0            ? CASE_TITLE
                         : rule == TO_SWAPPED && (is & CHAR_LOWER) ? CASE_UPPER
                                                                   : CASE_LOWER;
        inside = (is & (CHAR_LOWER | CHAR_UPPER)) != 0;
        text_put(&t, (str){to, char_put_case(to, cp, want)});
    }
    return text_value(&t, out);
}

weft_status method_case(jinja_run *r, const jcall *c, jval *out)
{
    return str_in_case(r, c->self.as.s, c->how, out);
}

/* ---- what the characters are ---- */

weft_status method_all_are(jinja_run *r, const jcall *c, jval *out)
{
    str s = c->self.as.s;
    bool all = s.n > 0;
    WEFT_TRY(run_step(r, s.n / STEP_CHARS));
    for (size_t i = 0; all && i < s.n;) {
        uint32_t cp;
        i += char_at(s, i, &cp);
        all = char_is(cp, (unsigned)c->how);
    }
    *out = jv_bool(all);
    return WEFT_OK;
}

bool str_is_all_case(str s, bool upper)
{
    bool any = false;
    for (size_t i = 0; i < s.n;) {
        uint32_t cp;
        i += char_at(s, i, &cp);
        if (char_is(cp, upper ? CHAR_LOWER : CHAR_UPPER))
            return false;
        any = any || char_is(cp, upper ? CHAR_UPPER : CHAR_LOWER);
    }
    return any;
}

weft_status method_all_case(jinja_run *r, const jcall *c, jval *out)
{
    *out = jv_bool(str_is_all_case(c->self.as.s, c->how == TO_UPPER));
    return run_step(r, c->self.as.s.n / STEP_CHARS);
}

weft_status method_istitle(jinja_run *r, const jcall *c, jval *out)
{
    jval title;
    bool any = false;
    WEFT_TRY(str_in_case(r, c->self.as.s, TO_TITLE, &title));
    for (size_t i = 0; i < c->self.as.s.n && !any;) {
        uint32_t cp;
        i += char_at(c->self.as.s, i, &cp);
        any = char_is(cp, CHAR_UPPER);
    }
    *out = jv_bool(any && str_eq(title.as.s, c->self.as.s));
    return WEFT_OK;
}

weft_status method_isascii(jinja_run *r, const jcall *c, jval *out)
{
    bool ascii = true;
    for (size_t i = 0; i < c->self.as.s.n && ascii; i++)
        ascii = (unsigned char)c->self.as.s.p[i] < 0x80;
    *out = jv_bool(ascii);
    return run_step(r, c->self.as.s.n / STEP_BYTES);
}

/* ---- stripping ---- */

static bool in_set(str set, str one)
{
    return memmem(set.p, set.n, one.p, one.n) != NULL;
}

weft_status method_strip(jinja_run *r, const jcall *c, jval *out)
{
    str s = c->self.as.s;
    const jval *chars = &c->arg[0];
    bool left = c->how & STRIP_LEFT, right = c->how & STRIP_RIGHT;
    size_t begin = 0, end = s.n;
    WEFT_TRY(run_step(r, 1));
    if (!jv_is_given(chars)) {
        begin = left ? char_skip_space(s, 0) : 0;
        end = right ? char_trim_space(s, s.n) : s.n;
        end = end < begin ? begin : end;
        *out = jv_str((str){s.p + begin, end - begin});
        return run_step(r, (begin + s.n - end) / STEP_CHARS);
    }
    if (chars->kind != JV_STR)
        return run_fail(r, "the characters to strip are a string, not %s", jv_type(chars));
    while (left && begin < end) {
        size_t next = begin;
        WEFT_TRY(run_step(r, 1 + chars->as.s.n / STEP_BYTES));
        if (!in_set(chars->as.s, utf8_char_at(s, &next)))
            break;
        begin = next;
    }
    while (right && end > begin) {
        size_t at = char_before(s, end);
        WEFT_TRY(run_step(r, 1 + chars->as.s.n / STEP_BYTES));
        if (!in_set(chars->as.s, (str){s.p + at, end - at}))
            break;
        end = at;
    }
    *out = jv_str((str){s.p + begin, end - begin});
    return WEFT_OK;
}

weft_status method_remove(jinja_run *r, const jcall *c, jval *out)
{
    str s = c->self.as.s, part = {0};
    bool end = c->how == AT_END;
    WEFT_TRY(arg_str(r, c, 0, &part));
    if (end ? str_ends(s, part) : str_starts(s, part))
        s = (str){end ? s.p : s.p + part.n, s.n - part.n};
    *out = jv_str(s);
    return WEFT_OK;
}

/* ---- searching ---- */

/* The part of the string that start and end leave, and how many characters stand before it. */
static weft_status window(jinja_run *r, const jcall *c, str *out_s, int64_t *out_before)
{
    jval part[3] = {c->arg[1], c->arg[2], jv_none()}, cut;
    *out_s = c->self.as.s;
    *out_before = 0;
    WEFT_TRY(run_step(r, out_s->n / STEP_BYTES));
    if (!jv_is_given(&part[0]) && !jv_is_given(&part[1]))
        return WEFT_OK;
    for (int i = 0; i < 2; i++)
        if (part[i].kind == JV_ABSENT)
            part[i] = jv_none();
    WEFT_TRY(access_slice(r, &c->self, part, &cut));
    if (cut.kind != JV_STR)
        return run_fail(r, "where to begin and end are integers");
    if (cut.as.s.n > 0)
        *out_before = (int64_t)utf8_count((str){out_s->p, (size_t)(cut.as.s.p - out_s->p)});
    *out_s = cut.as.s;
    return WEFT_OK;
}

weft_status method_find(jinja_run *r, const jcall *c, jval *out)
{
    str s, part = {0};
    int64_t before;
    WEFT_TRY(arg_str(r, c, 0, &part));
    WEFT_TRY(window(r, c, &s, &before));
    WEFT_TRY(run_search(r, s, part.n));
    size_t at = c->how & AT_END ? str_find_last(r, s, part) : str_find(s, part, 0);
    if (at > s.n && (c->how & FIND_MUST))
        return run_fail(r, "the substring is not there");
    *out = jv_int(at > s.n ? -1 : before + (int64_t)utf8_count((str){s.p, at}));
    return WEFT_OK;
}

weft_status method_count(jinja_run *r, const jcall *c, jval *out)
{
    str s, part = {0};
    int64_t before, n = 0;
    WEFT_TRY(arg_str(r, c, 0, &part));
    WEFT_TRY(window(r, c, &s, &before));
    WEFT_TRY(run_search(r, s, part.n));
    if (part.n == 0)
        n = (int64_t)utf8_count(s) + 1;
    else
        for (size_t at = 0; (at = str_find(s, part, at)) <= s.n; at += part.n)
            n++;
    *out = jv_int(n);
    return run_step(r, (uint64_t)n);
}

/* startswith and endswith take one string or a tuple of them. */
weft_status method_affix(jinja_run *r, const jcall *c, jval *out)
{
    str s;
    int64_t before;
    const jval *one = &c->arg[0];
    size_t n = 1;
    bool holds = false;
    WEFT_TRY(window(r, c, &s, &before));
    if (jv_is_seq(one, JSEQ_TUPLE)) {
        n = one->as.list->n;
        one = one->as.list->at;
    }
    for (size_t i = 0; i < n; i++) {
        if (one[i].kind == JV_UNDEFINED)
            return run_undefined(r, &one[i]);
        if (one[i].kind != JV_STR)
            return run_fail(r, "argument 1 is a string or a tuple of strings, not %s",
                            jv_type(&one[i]));
        WEFT_TRY(run_step(r, 1 + (one[i].as.s.n < s.n ? one[i].as.s.n : s.n) / STEP_BYTES));
        holds = holds || (c->how == AT_END ? str_ends(s, one[i].as.s) : str_starts(s, one[i].as.s));
    }
    *out = jv_bool(holds);
    return WEFT_OK;
}
