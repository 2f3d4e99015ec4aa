/* jinja_filter_str.c - filters that make or change text. Other values are printed first. */
#include "runtime/base/utf8.h"
#include "runtime/text/jinja_builtins.h"
#include "runtime/text/jinja_chars.h"

#include <stdio.h>

/* The call with its value as text, for filters that are methods of strings. */
static weft_status as_text(jinja_run *r, const jcall *c, jcall *out)
{
    *out = *c;
    out->self.kind = JV_STR;
    return value_to_str(r, &c->self, &out->self.as.s);
}

weft_status filter_case(jinja_run *r, const jcall *c, jval *out)
{
    jcall text;
    WEFT_TRY(as_text(r, c, &text));
    return method_case(r, &text, out);
}

weft_status filter_string(jinja_run *r, const jcall *c, jval *out)
{
    out->kind = JV_STR;
    return value_to_str(r, &c->self, &out->as.s);
}

weft_status filter_trim(jinja_run *r, const jcall *c, jval *out)
{
    jcall text;
    WEFT_TRY(as_text(r, c, &text));
    text.how = STRIP_LEFT | STRIP_RIGHT;
    return method_strip(r, &text, out);
}

weft_status filter_replace(jinja_run *r, const jcall *c, jval *out)
{
    str s, old, with;
    int64_t most = -1;
    WEFT_TRY(value_to_str(r, &c->self, &s));
    WEFT_TRY(value_to_str(r, &c->arg[0], &old));
    WEFT_TRY(value_to_str(r, &c->arg[1], &with));
    WEFT_TRY(arg_int(r, c, 2, &most));
    return str_replace(r, s, old, with, most < 0 ? -1 : most, out);
}

weft_status filter_center(jinja_run *r, const jcall *c, jval *out)
{
    jcall text;
    jval arg[2] = {c->arg[0].kind == JV_ABSENT ? jv_int(80) : c->arg[0], {.kind = JV_ABSENT}};
    WEFT_TRY(as_text(r, c, &text));
    text.arg = arg;
    text.how = JUSTIFY_CENTER;
    return method_justify(r, &text, out);
}

/* Words begin after white space, a dash or an opening bracket. */
weft_status filter_title(jinja_run *r, const jcall *c, jval *out)
{
    str s;
    jtext t = {.r = r};
    bool inside = false;
    WEFT_TRY(value_to_str(r, &c->self, &s));
    WEFT_TRY(run_step(r, s.n / STEP_CHARS));
    for (size_t i = 0; i < s.n;) {
        uint32_t cp;
        char to[8];
        i += char_at(s, i, &cp);
        text_put(&t, (str){to, char_put_case(to, cp, inside ? CASE_LOWER : CASE_UPPER)});
        inside = !(char_is(cp, CHAR_SPACE) || (cp && cp < 0x80 && strchr("-({[<", (int)cp)));
    }
    return text_value(&t, out);
}

weft_status filter_escape(jinja_run *r, const jcall *c, jval *out)
{
    static const char letters[] = "&<>\"'";
    static const char *const codes[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
    str s;
    jtext t = {.r = r};
    WEFT_TRY(value_to_str(r, &c->self, &s));
    WEFT_TRY(run_step(r, s.n / STEP_CHARS));
    for (size_t i = 0; i < s.n; i++) {
        const char *letter = s.p[i] ? strchr(letters, s.p[i]) : NULL;
        if (letter)
            text_putz(&t, codes[letter - letters]);
        else
            text_putc(&t, s.p[i]);
    }
    return text_value(&t, out);
}

weft_status filter_urlencode(jinja_run *r, const jcall *c, jval *out)
{
    str s;
    jtext t = {.r = r};
    WEFT_TRY(value_to_str(r, &c->self, &s));
    for (size_t i = 0; i < s.n; i++) {
        unsigned char b = (unsigned char)s.p[i];
        char code[4];
        WEFT_TRY(run_step(r, 1));
        bool plain = (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || (b >= '0' && b <= '9') ||
                     (b && strchr("_.-~/", b));
        snprintf(code, sizeof code, "%%%02X", b);
        text_put(&t, plain ? (str){s.p + i, 1} : str_of(code));
    }
    return text_value(&t, out);
}

/* Comments and tags go, and runs of white space become one blank. */
weft_status filter_striptags(jinja_run *r, const jcall *c, jval *out)
{
    str s;
    jtext t = {.r = r};
    bool gap = false;
    WEFT_TRY(value_to_str(r, &c->self, &s));
    WEFT_TRY(run_step(r, s.n / STEP_CHARS));
    for (size_t i = 0; i < s.n;) {
        size_t end = s.p[i] == '<' ? str_find(s, STR(">"), i) : s.n + 1;
        if (str_starts((str){s.p + i, s.n - i}, STR("<!--")))
            end = str_find(s, STR("-->"), i) + 2;
        WEFT_TRY(run_step(r, (end < s.n ? end - i : s.n - i) / 16 * (s.p[i] == '<')));
        if (end < s.n) {
            i = end + 1;
            continue;
        }
        uint32_t cp;
        size_t at = i;
        i += char_at(s, i, &cp);
        if (char_is(cp, CHAR_SPACE)) {
            gap = true;
            continue;
        }
        if (gap && t.n)
            text_putc(&t, ' ');
        gap = false;
        text_put(&t, (str){s.p + at, i - at});
    }
    return text_value(&t, out);
}

weft_status filter_wordcount(jinja_run *r, const jcall *c, jval *out)
{
    str s;
    int64_t n = 0;
    bool inside = false;
    WEFT_TRY(value_to_str(r, &c->self, &s));
    WEFT_TRY(run_step(r, s.n / STEP_CHARS));
    for (size_t i = 0; i < s.n;) {
        uint32_t cp;
        i += char_at(s, i, &cp);
        bool word = char_is(cp, CHAR_WORD);
        n += word && !inside;
        inside = word;
    }
    *out = jv_int(n);
    return WEFT_OK;
}

/* For filters that take strings only. */
static weft_status text_only(jinja_run *r, const jcall *c, str *out)
{
    if (c->self.kind == JV_UNDEFINED)
        return run_undefined(r, &c->self);
    if (c->self.kind != JV_STR)
        return run_fail(r, "this filter takes a string, not %s", jv_type(&c->self));
    *out = c->self.as.s;
    return WEFT_OK;
}

weft_status filter_indent(jinja_run *r, const jcall *c, jval *out)
{
    str s, by = STR("    ");
    bool first = arg_truth(c, 1), blank = arg_truth(c, 2);
    jtext t = {.r = r};
    WEFT_TRY(text_only(r, c, &s));
    if (c->arg[0].kind == JV_STR) {
        by = c->arg[0].as.s;
    } else if (c->arg[0].kind != JV_ABSENT) {
        int64_t n = 4;
        jtext blanks = {.r = r};
        WEFT_TRY(arg_int(r, c, 0, &n));
        text_fill(&blanks, STR(" "), n);
        WEFT_TRY(text_done(&blanks, &by));
    }
    for (size_t at = 0;;) {
        size_t end = str_find(s, STR("\n"), at);
        bool last = end > s.n;
        end = last ? s.n : end;
        if ((at == 0 && first) || (at > 0 && (blank || end > at)))
            text_put(&t, by);
        text_put(&t, (str){s.p + at, end - at});
        WEFT_TRY(run_step(r, 1));
        if (last)
            break;
        text_putc(&t, '\n');
        at = end + 1;
    }
    return text_value(&t, out);
}

weft_status filter_truncate(jinja_run *r, const jcall *c, jval *out)
{
    str s, end = STR("...");
    int64_t length = 255, leeway = 5;
    jtext t = {.r = r};
    WEFT_TRY(text_only(r, c, &s));
    WEFT_TRY(arg_int(r, c, 0, &length));
    WEFT_TRY(arg_str(r, c, 2, &end));
    WEFT_TRY(arg_int(r, c, 3, &leeway));
    int64_t n = (int64_t)utf8_count(s), tail = (int64_t)utf8_count(end);
    if (length < tail)
        return run_fail(r, "truncate: the length is at least that of its end");
    if (leeway < 0)
        return run_fail(r, "truncate: leeway is not negative");
    if (n <= length || n - length <= leeway) {
        *out = jv_str(s);
        return WEFT_OK;
    }
    size_t cut = 0;
    for (int64_t i = 0; i < length - tail; i++)
        utf8_char_at(s, &cut);
    size_t blank = arg_truth(c, 1) ? cut + 1 : str_find_last(r, (str){s.p, cut}, STR(" "));
    text_put(&t, (str){s.p, blank <= cut ? blank : cut});
    text_put(&t, end);
    return text_value(&t, out);
}

weft_status filter_format(jinja_run *r, const jcall *c, jval *out)
{
    str fmt;
    jval args;
    WEFT_TRY(value_to_str(r, &c->self, &fmt));
    if (c->n && c->n_kw)
        return run_fail(r, "format takes arguments with names or without, not both");
    WEFT_TRY(run_list_room(r, c->n + 2 * c->n_kw));
    if (c->n_kw) {
        args = jv_dict(jdict_new(r));
        for (size_t i = 0; i < c->n_kw; i++)
            jdict_set_str(r, args.as.dict, c->kw_name[i], c->kw[i]);
    } else {
        args = jv_list(jlist_new(r, JSEQ_TUPLE, c->n));
        for (size_t i = 0; i < c->n; i++)
            jlist_push(r, args.as.list, c->arg[i]);
    }
    return format_percent(r, fmt, &args, out);
}

weft_status filter_join(jinja_run *r, const jcall *c, jval *out)
{
    const jlist *items;
    str sep = STR("");
    jtext t = {.r = r};
    if (c->arg[0].kind != JV_ABSENT)
        WEFT_TRY(value_to_str(r, &c->arg[0], &sep));
    WEFT_TRY(access_items(r, &c->self, &items));
    for (size_t i = 0; i < items->n; i++) {
        jval v = items->at[i];
        if (jv_is_given(&c->arg[1]))
            WEFT_TRY(access_path(r, &items->at[i], &c->arg[1], &v));
        if (i)
            text_put(&t, sep);
        WEFT_TRY(print_str(&t, &v));
        WEFT_TRY(run_step(r, 1));
    }
    return text_value(&t, out);
}
