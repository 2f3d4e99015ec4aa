/* jinja_parse.c - statements. A table names the tags; each has a function that reads the rest. */
#include "runtime/text/jinja_parse.h"

#include "runtime/text/jinja_run.h"

typedef weft_status (*tag_parser)(parser *p, jstmt *s);

/* Statements up to a tag whose first word is one of `ends`, which ends with NULL. The tag's opening
 * and its word are taken. With ends NULL: up to the end of the template. */
static weft_status parse_body(parser *p, const char *const *ends, jstmt **out_body, int *out_end);

/* ---- the token stream ---- */

static weft_status fail_va(parser *p, uint32_t begin, uint32_t end, const char *fmt, va_list ap)
{
    strbuf text = {0};
    strbuf_vadd(&text, fmt, ap);
    weft_status st =
        weft_fail(p->dg, W1301, (weft_loc){p->src, begin, end}, STR_FMT, STR_ARG(text));
    strbuf_free(&text);
    return st;
}

weft_status parse_fail(parser *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    weft_status st = fail_va(p, p->tok->begin, p->tok->end, fmt, ap);
    va_end(ap);
    return st;
}

weft_status parse_fail_at(parser *p, uint32_t begin, uint32_t end, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    weft_status st = fail_va(p, begin, end, fmt, ap);
    va_end(ap);
    return st;
}

weft_status parse_enter(parser *p)
{
    if (++p->depth > PARSE_DEPTH_MAX)
        return weft_fail(p->dg, W1304, (weft_loc){p->src, p->tok->begin, p->tok->end},
                         "nested more than %d deep", PARSE_DEPTH_MAX);
    return WEFT_OK;
}

bool parse_skip(parser *p, jtok_kind kind)
{
    bool there = parse_is(p, kind);
    p->tok += there;
    return there;
}

bool parse_skip_word(parser *p, const char *word)
{
    bool there = parse_is_word(p, word);
    p->tok += there;
    return there;
}

weft_status parse_expect(parser *p, jtok_kind kind)
{
    if (parse_skip(p, kind))
        return WEFT_OK;
    if (parse_is(p, JTOK_NAME))
        return parse_fail(p, "%s is expected, not `" STR_FMT "`", jtok_text(kind),
                          STR_ARG(p->tok->as.s));
    return parse_fail(p, "%s is expected, not %s", jtok_text(kind), jtok_text(p->tok->kind));
}

weft_status parse_name(parser *p, str *out_name)
{
    if (!parse_is(p, JTOK_NAME))
        return parse_fail(p, "a name is expected, not %s", jtok_text(p->tok->kind));
    *out_name = p->tok++->as.s;
    return WEFT_OK;
}

uint32_t parse_number_of(parser *p, str name)
{
    size_t i = 0;
    while (i < p->names.n && !str_eq(p->names.at[i], name))
        i++;
    if (i == PARSE_NAMES_MAX) {
        p->too_many_names = true; /* jinja_compile fails */
        return 0;
    }
    if (i == p->names.n)
        VEC_PUSH(&p->names, name);
    if (p->macro && i == p->macro->varargs)
        p->macro->takes_varargs = true;
    if (p->macro && i == p->macro->kwargs)
        p->macro->takes_kwargs = true;
    if (p->macro && i == p->macro->caller)
        p->macro->takes_caller = true;
    return (uint32_t)i;
}

static weft_status close_tag(parser *p)
{
    return parse_expect(p, JTOK_TAG_CLOSE);
}

/* A body up to one closing tag. */
static weft_status body_until(parser *p, const char *end, jstmt **out_body)
{
    const char *const ends[] = {end, NULL};
    int which;
    WEFT_TRY(close_tag(p));
    WEFT_TRY(parse_body(p, ends, out_body, &which));
    return close_tag(p);
}

/* ---- tags ---- */

static weft_status tag_if(parser *p, jstmt *s)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    int end;
    for (;;) {
        s->op = JS_IF;
        WEFT_TRY(parse_tuple(p, false, &s->a));
        WEFT_TRY(close_tag(p));
        WEFT_TRY(parse_body(p, ends, &s->body, &end));
        if (end != 0)
            break;
        s->other = ARENA_NEW(p->a, jstmt);
        s->other->begin = p->tok[-1].begin;
        s->other->end = p->tok[-1].end;
        s = s->other;
    }
    return end == 1 ? body_until(p, "endif", &s->other) : close_tag(p);
}

static weft_status tag_for(parser *p, jstmt *s)
{
    static const char *const ends[] = {"else", "endfor", NULL};
    int end;
    s->op = JS_FOR;
    s->loop = parse_number_of(p, STR("loop"));
    WEFT_TRY(parse_target(p, false, &s->target));
    if (!parse_skip_word(p, "in"))
        return parse_fail(p, "`in` is expected");
    WEFT_TRY(parse_tuple(p, false, &s->a));
    if (parse_skip_word(p, "if"))
        WEFT_TRY(parse_expr(p, true, &s->cond));
    s->recursive = parse_skip_word(p, "recursive");
    WEFT_TRY(close_tag(p));
    size_t n_macro = p->n_macro;
    p->loops++;
    WEFT_TRY(parse_body(p, ends, &s->body, &end));
    p->loops--;
    s->has_macro = p->n_macro > n_macro;
    return end == 0 ? body_until(p, "endfor", &s->other) : close_tag(p);
}

static weft_status tag_set(parser *p, jstmt *s)
{
    s->op = JS_SET;
    WEFT_TRY(parse_target(p, true, &s->target));
    if (parse_skip(p, JTOK_ASSIGN)) {
        WEFT_TRY(parse_tuple(p, true, &s->a));
        return close_tag(p);
    }
    s->op = JS_SET_BLOCK;
    if (s->target->op == JE_TUPLE)
        return parse_fail(p, "= is expected");
    if (parse_skip(p, JTOK_PIPE))
        WEFT_TRY(parse_filter_chain(p, NULL, &s->a));
    return body_until(p, "endset", &s->body);
}

/* Parameters in brackets, with their defaults. */
static weft_status parse_params(parser *p, jmacro_def *m)
{
    VEC(jexpr *) initial = {0};
    VEC(str) names = {0};
    weft_status st = parse_expect(p, JTOK_LPAREN);
    while (st == WEFT_OK && !parse_is(p, JTOK_RPAREN)) {
        str name = {0};
        jexpr *e = NULL;
        st = parse_name(p, &name);
        if (st == WEFT_OK && parse_skip(p, JTOK_ASSIGN))
            st = parse_expr(p, true, &e);
        else if (st == WEFT_OK && initial.n && initial.at[initial.n - 1])
            st = parse_fail(p, "a parameter without default follows one with a default");
        VEC_PUSH(&names, name);
        VEC_PUSH(&initial, e);
        if (st == WEFT_OK && !parse_skip(p, JTOK_COMMA))
            break;
    }
    if (st == WEFT_OK)
        st = parse_expect(p, JTOK_RPAREN);
    m->n_param = names.n;
    m->param = ARENA_ARRAY(p->a, uint32_t, names.n);
    m->param_name = ARENA_ARRAY(p->a, str, names.n);
    m->initial = ARENA_ARRAY(p->a, jexpr *, names.n);
    for (size_t i = 0; st == WEFT_OK && i < names.n; i++) {
        m->param[i] = parse_number_of(p, names.at[i]);
        m->param_name[i] = names.at[i];
        m->initial[i] = initial.at[i];
    }
    VEC_FREE(&initial);
    VEC_FREE(&names);
    return st;
}

static jmacro_def *macro_new(parser *p, str name)
{
    jmacro_def *m = ARENA_NEW(p->a, jmacro_def);
    p->n_macro++;
    m->name = name;
    m->varargs = parse_number_of(p, STR("varargs"));
    m->kwargs = parse_number_of(p, STR("kwargs"));
    m->caller = parse_number_of(p, STR("caller"));
    return m;
}

static weft_status macro_body(parser *p, jmacro_def *m, const char *end)
{
    jmacro_def *outer = p->macro;
    int loops = p->loops;
    p->macro = m;
    p->loops = 0;
    WEFT_TRY(body_until(p, end, &m->body));
    p->macro = outer;
    p->loops = loops;
    return WEFT_OK;
}

static weft_status tag_macro(parser *p, jstmt *s)
{
    str name;
    s->op = JS_MACRO;
    WEFT_TRY(parse_name(p, &name));
    s->macro = macro_new(p, name);
    s->macro->number = parse_number_of(p, name);
    WEFT_TRY(parse_params(p, s->macro));
    return macro_body(p, s->macro, "endmacro");
}

static weft_status tag_call(parser *p, jstmt *s)
{
    s->op = JS_CALL;
    s->macro = macro_new(p, STR("caller"));
    if (parse_is(p, JTOK_LPAREN))
        WEFT_TRY(parse_params(p, s->macro));
    WEFT_TRY(parse_expr(p, true, &s->a));
    if (s->a->op != JE_CALL)
        return parse_fail_at(p, s->a->begin, s->a->end, "a call is expected");
    return macro_body(p, s->macro, "endcall");
}

static weft_status tag_filter(parser *p, jstmt *s)
{
    s->op = JS_FILTER;
    WEFT_TRY(parse_filter_chain(p, NULL, &s->a));
    return body_until(p, "endfilter", &s->body);
}

static weft_status tag_with(parser *p, jstmt *s)
{
    VEC(jexpr *) both = {0};
    weft_status st = WEFT_OK;
    s->op = JS_WITH;
    while (st == WEFT_OK && !parse_is(p, JTOK_TAG_CLOSE)) {
        jexpr *target = NULL, *e = NULL;
        st = parse_target(p, false, &target);
        if (st == WEFT_OK)
            st = parse_expect(p, JTOK_ASSIGN);
        if (st == WEFT_OK)
            st = parse_expr(p, true, &e);
        VEC_PUSH(&both, target);
        VEC_PUSH(&both, e);
        if (st == WEFT_OK && !parse_skip(p, JTOK_COMMA))
            break;
    }
    s->n_with = both.n / 2;
    s->names = ARENA_ARRAY(p->a, jexpr *, s->n_with);
    s->values = ARENA_ARRAY(p->a, jexpr *, s->n_with);
    for (size_t i = 0; i < s->n_with; i++) {
        s->names[i] = both.at[2 * i];
        s->values[i] = both.at[2 * i + 1];
    }
    VEC_FREE(&both);
    return st == WEFT_OK ? body_until(p, "endwith", &s->body) : st;
}

static weft_status tag_generation(parser *p, jstmt *s)
{
    s->op = JS_SCOPE;
    return body_until(p, "endgeneration", &s->body);
}

static weft_status tag_jump(parser *p, jstmt *s)
{
    s->op = str_eqz(p->tok[-1].as.s, "break") ? JS_BREAK : JS_CONTINUE;
    if (p->loops == 0)
        return parse_fail_at(p, s->begin, s->end, "`" STR_FMT "` outside a loop",
                             STR_ARG(p->tok[-1].as.s));
    return close_tag(p);
}

static weft_status tag_refused(parser *p, jstmt *s)
{
    return parse_fail_at(p, s->begin, s->end,
                         "`" STR_FMT
                         "` would reach outside the template, which Weft does not allow",
                         STR_ARG(p->tok[-1].as.s));
}

/* clang-format off */
static const struct { const char *name; tag_parser parse; } tags[] = {
    {"if",         tag_if},
    {"for",        tag_for},
    {"set",        tag_set},
    {"macro",      tag_macro},
    {"call",       tag_call},
    {"filter",     tag_filter},
    {"with",       tag_with},
    {"generation", tag_generation},
    {"break",      tag_jump},
    {"continue",   tag_jump},
    {"include",    tag_refused},
    {"import",     tag_refused},
    {"from",       tag_refused},
    {"extends",    tag_refused},
    {"block",      tag_refused},
};
/* clang-format on */

static weft_status parse_tag(parser *p, jstmt *s)
{
    str word;
    s->begin = p->tok->begin;
    s->end = p->tok->end;
    WEFT_TRY(parse_name(p, &word));
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (str_eqz(word, tags[i].name))
            return tags[i].parse(p, s);
    weft_status st = parse_fail_at(p, s->begin, s->end, "unknown tag `" STR_FMT "`", STR_ARG(word));
    SUGGEST_ROW(p->dg, word, tags, sizeof tags / sizeof *tags);
    return st;
}

static int end_here(const parser *p, const char *const *ends)
{
    for (int i = 0; ends && ends[i]; i++)
        if (p->tok[1].kind == JTOK_NAME && str_eqz(p->tok[1].as.s, ends[i]))
            return i;
    return -1;
}

static weft_status parse_body(parser *p, const char *const *ends, jstmt **out_body, int *out_end)
{
    jstmt **last = out_body;
    const jtok *open = ends ? p->tok - 1 : p->tok;
    *out_body = NULL;
    WEFT_TRY(parse_enter(p));
    while (!parse_is(p, JTOK_END)) {
        if (parse_is(p, JTOK_TAG_OPEN) && (*out_end = end_here(p, ends)) >= 0) {
            p->tok += 2;
            p->depth--;
            return WEFT_OK;
        }
        jstmt *s = ARENA_NEW(p->a, jstmt);
        s->begin = p->tok->begin;
        s->end = p->tok->end;
        if (parse_is(p, JTOK_TEXT)) {
            s->op = JS_TEXT;
            s->text = p->tok++->as.s;
        } else if (parse_skip(p, JTOK_VAR_OPEN)) {
            s->op = JS_PRINT;
            WEFT_TRY(parse_tuple(p, true, &s->a));
            WEFT_TRY(parse_expect(p, JTOK_VAR_CLOSE));
        } else {
            WEFT_TRY(parse_expect(p, JTOK_TAG_OPEN));
            WEFT_TRY(parse_tag(p, s));
        }
        *last = s;
        last = &s->next;
    }
    if (ends)
        return parse_fail_at(p, open->begin, open->end, "the template ends before {%% %s %%}",
                             ends[0] && ends[1] && ends[2] ? ends[2]
                             : ends[1]                     ? ends[1]
                                                           : ends[0]);
    p->depth--;
    return WEFT_OK;
}

weft_status jinja_compile(weft_diag *dg, arena *a, const char *name, str text, const jinja **out_t)
{
    if (text.n > JINJA_SOURCE_MAX)
        return weft_fail(dg, W1304, WEFT_NOWHERE, "%s: %zu bytes of template, the limit is %d",
                         name, text.n, JINJA_SOURCE_MAX);
    source *src = source_from_text(a, name, jinja_normalize(a, text));
    jtok_list toks = {0};
    parser p = {.dg = dg, .a = a, .src = src};
    jstmt *body = NULL;
    int end;
    weft_status st = jinja_lex(dg, a, src, &toks);
    if (st == WEFT_OK) {
        p.tok = toks.at;
        st = parse_body(&p, NULL, &body, &end);
    }
    if (st == WEFT_OK && p.too_many_names)
        st = weft_fail(dg, W1304, WEFT_NOWHERE, "%s: more than %d different names", name,
                       PARSE_NAMES_MAX);
    if (st == WEFT_OK) {
        jinja *t = ARENA_NEW(a, jinja);
        str *names = ARENA_ARRAY(a, str, p.names.n);
        for (size_t i = 0; i < p.names.n; i++)
            names[i] = p.names.at[i];
        *t = (jinja){src, body, names, p.names.n};
        *out_t = t;
    }
    VEC_FREE(&p.names);
    VEC_FREE(&toks);
    return st;
}
