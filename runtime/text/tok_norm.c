/* tok_norm.c - the normalisers, one function each, and the table that finds them by name. */
#include "runtime/text/tok_norm.h"

static weft_status apply_form(weft_diag *dg, const norm_step *s, str in, const tok_bound *b,
                              strbuf *out)
{
    (void)dg, (void)b;
    if (uni_is_ascii(in))
        strbuf_put(out, in);
    else
        uni_normalize(out, in, s->form);
    return WEFT_OK;
}

/* What a step makes of one character. */
typedef void char_fn(strbuf *out, uint32_t cp);

static void each_char(str in, strbuf *out, char_fn *fn)
{
    uint32_t cp;
    for (size_t i = 0; i < in.n;) {
        i += uni_next(in.p + i, &cp);
        fn(out, cp);
    }
}

static weft_status apply_lowercase(weft_diag *dg, const norm_step *s, str in, const tok_bound *b,
                                   strbuf *out)
{
    (void)dg, (void)s, (void)b;
    each_char(in, out, uni_add_lower);
    return WEFT_OK;
}

static void put_unless_mark(strbuf *out, uint32_t cp)
{
    if (!uni_is_mark(cp))
        uni_add(out, cp);
}

static weft_status apply_strip_accents(weft_diag *dg, const norm_step *s, str in,
                                       const tok_bound *b, strbuf *out)
{
    (void)dg, (void)s, (void)b;
    each_char(in, out, put_unless_mark);
    return WEFT_OK;
}

/* The rules of SentencePiece's nmt_nfkc for controls and odd spaces. */
static void put_nmt(strbuf *out, uint32_t cp)
{
    if ((cp >= 0x01 && cp <= 0x08) || cp == 0x0b || (cp >= 0x0e && cp <= 0x1f) || cp == 0x7f ||
        cp == 0x8f || cp == 0x9f)
        return;
    bool space = cp == 0x09 || cp == 0x0a || cp == 0x0c || cp == 0x0d || cp == 0x1680 ||
                 (cp >= 0x200b && cp <= 0x200f) || cp == 0x2028 || cp == 0x2029 || cp == 0x2581 ||
                 cp == 0xfeff || cp == 0xfffd;
    uni_add(out, space ? ' ' : cp);
}

static weft_status apply_nmt(weft_diag *dg, const norm_step *s, str in, const tok_bound *b,
                             strbuf *out)
{
    (void)dg, (void)s, (void)b;
    each_char(in, out, put_nmt);
    return WEFT_OK;
}

static void put_byte_level(strbuf *out, unsigned char byte)
{
    uni_add(out, uni_of_byte(byte));
}

static weft_status apply_byte_level(weft_diag *dg, const norm_step *s, str in, const tok_bound *b,
                                    strbuf *out)
{
    (void)dg, (void)s, (void)b;
    for (size_t i = 0; i < in.n; i++)
        put_byte_level(out, (unsigned char)in.p[i]);
    return WEFT_OK;
}

static weft_status apply_replace(weft_diag *dg, const norm_step *s, str in, const tok_bound *b,
                                 strbuf *out)
{
    return tok_regex_replace(dg, s->re, in, s->text, b, out);
}

static weft_status apply_prepend(weft_diag *dg, const norm_step *s, str in, const tok_bound *b,
                                 strbuf *out)
{
    (void)dg, (void)b;
    if (in.n)
        strbuf_put(out, s->text);
    strbuf_put(out, in);
    return WEFT_OK;
}

static weft_status apply_strip(weft_diag *dg, const norm_step *s, str in, const tok_bound *b,
                               strbuf *out)
{
    uint32_t cp;
    (void)dg, (void)b;
    while (s->left && in.n) {
        size_t n = uni_next(in.p, &cp);
        if (!uni_is_space(cp))
            break;
        in = (str){in.p + n, in.n - n};
    }
    while (s->right && in.n) {
        size_t at = uni_back(in.p, in.n);
        uni_next(in.p + at, &cp);
        if (!uni_is_space(cp))
            break;
        in.n = at;
    }
    strbuf_put(out, in);
    return WEFT_OK;
}

static weft_status apply_charsmap(weft_diag *dg, const norm_step *s, str in, const tok_bound *b,
                                  strbuf *out)
{
    str text = {0};
    for (size_t i = 0; i < in.n;) {
        size_t n = charsmap_find(&s->map, (str){in.p + i, in.n - i}, &text);
        if (!n) {
            n = uni_len(in.p[i]);
            text = (str){in.p + i, n};
        }
        strbuf_put(out, text);
        WEFT_TRY(tok_bound_check(dg, b, out->n));
        i += n;
    }
    return WEFT_OK;
}

static void put_clean(strbuf *out, uint32_t cp)
{
    bool line = cp == '\t' || cp == '\n' || cp == '\r'; /* white space, not controls */
    if (line || !(cp == 0 || cp == 0xfffd || uni_is_other(cp)))
        uni_add(out, uni_is_space(cp) ? ' ' : cp);
}

static void put_han(strbuf *out, uint32_t cp)
{
    bool han = uni_is_han(cp);
    if (han)
        strbuf_putc(out, ' ');
    uni_add(out, cp);
    if (han)
        strbuf_putc(out, ' ');
}

static void put_unless_nonspacing(strbuf *out, uint32_t cp)
{
    if (!uni_is_nonspacing(cp))
        uni_add(out, cp);
}

static weft_status apply_bert(weft_diag *dg, const norm_step *s, str in, const tok_bound *b,
                              strbuf *out)
{
    static char_fn *const fns[] = {put_clean, put_han, put_unless_nonspacing, uni_add_lower};
    const bool wanted[] = {s->clean, s->han, s->strip_accents, s->lowercase};
    strbuf spare[2] = {{0}}, *from = &spare[0], *to = &spare[1];
    (void)dg, (void)b;
    for (size_t k = 0; k < sizeof fns / sizeof *fns; k++) {
        if (!wanted[k])
            continue;
        strbuf_reset(to);
        if (fns[k] == put_unless_nonspacing) {
            uni_normalize(to, in, UNI_NFD);
            in = strbuf_view(to);
            to = from;
            strbuf_reset(to);
        }
        each_char(in, to, fns[k]);
        in = strbuf_view(to);
        from = to;
        to = from == &spare[0] ? &spare[1] : &spare[0];
    }
    strbuf_put(out, in);
    strbuf_free(&spare[0]);
    strbuf_free(&spare[1]);
    return WEFT_OK;
}

static weft_status apply_spaces(weft_diag *dg, const norm_step *s, str in, const tok_bound *b,
                                strbuf *out)
{
    str space = s->space_mark ? STR("\xe2\x96\x81") : STR(" ");
    bool in_word = false, prefixed = false;
    (void)dg, (void)b;
    for (size_t i = 0; i < in.n; i++) {
        if (in.p[i] == ' ') {
            in_word = false;
            if (!s->space_merge)
                strbuf_put(out, space);
            continue;
        }
        if (!in_word && (s->space_merge ? out->n || s->space_prefix : s->space_prefix && !prefixed))
            strbuf_put(out, space);
        in_word = prefixed = true;
        strbuf_putc(out, in.p[i]);
    }
    if (s->space_suffix)
        strbuf_put(out, space);
    return WEFT_OK;
}

/* Numbers are in images that were written before: the list grows at its end. */
static norm_fn *const numbered[] = {
    apply_form,       apply_lowercase, apply_strip_accents, apply_nmt,
    apply_byte_level, apply_replace,   apply_prepend,       apply_strip,
    apply_charsmap,   apply_bert,      apply_spaces,
};

int norm_number(norm_fn *apply)
{
    for (int k = 0; k < (int)(sizeof numbered / sizeof *numbered); k++)
        if (numbered[k] == apply)
            return k + 1;
    return 0;
}

norm_fn *norm_of_number(int number)
{
    return number >= 1 && number <= (int)(sizeof numbered / sizeof *numbered) ? numbered[number - 1]
                                                                              : NULL;
}

bool norm_needs_regex(norm_fn *apply)
{
    return apply == apply_replace;
}

bool norm_needs_tables(const norm_step *s)
{
    return s->apply == apply_form || s->apply == apply_lowercase ||
           s->apply == apply_strip_accents || s->apply == apply_bert;
}

norm_step norm_step_form(uni_form form)
{
    return (norm_step){.apply = apply_form, .what = "a normal form", .form = form};
}

norm_step norm_step_prepend(str text)
{
    return (norm_step){.apply = apply_prepend, .what = "the space in front", .text = text};
}

norm_step norm_step_replace(str from, str to)
{
    return (norm_step){.apply = apply_replace,
                       .what = "the mark of spaces",
                       .re = tok_regex_literal(from),
                       .text = to};
}

norm_step norm_step_charsmap(charsmap map)
{
    return (norm_step){.apply = apply_charsmap, .what = "precompiled_charsmap", .map = map};
}

norm_step norm_step_bert(bool strip_accents, bool lowercase)
{
    return (norm_step){.apply = apply_bert,
                       .what = "the normalizer of BERT",
                       .clean = true,
                       .han = true,
                       .strip_accents = strip_accents,
                       .lowercase = lowercase};
}

norm_step norm_step_spaces(bool prefix, bool suffix, bool merge, bool mark)
{
    return (norm_step){.apply = apply_spaces,
                       .what = "the marks of spaces",
                       .space_prefix = prefix,
                       .space_suffix = suffix,
                       .space_merge = merge,
                       .space_mark = mark};
}

/* Reads the members of v into s, whose apply and form the row has set. */
typedef weft_status load_fn(weft_diag *dg, arena *a, const value *v, norm_step *s);

static weft_status load_replace(weft_diag *dg, arena *a, const value *v, norm_step *s)
{
    WEFT_TRY(field_copy(dg, a, "Replace", v, "content", FIELDS_TEXT_MAX, &s->text));
    return field_pattern(dg, "Replace", v, &s->re);
}

static weft_status load_prepend(weft_diag *dg, arena *a, const value *v, norm_step *s)
{
    return field_copy(dg, a, "Prepend", v, "prepend", FIELDS_TEXT_MAX, &s->text);
}

static weft_status load_strip(weft_diag *dg, arena *a, const value *v, norm_step *s)
{
    (void)a;
    s->left = s->right = true;
    WEFT_TRY(field_bool(dg, "Strip", v, "strip_left", &s->left));
    return field_bool(dg, "Strip", v, "strip_right", &s->right);
}

static weft_status load_precompiled(weft_diag *dg, arena *a, const value *v, norm_step *s)
{
    str text, blob;
    WEFT_TRY(field_str_or_none(dg, "Precompiled", v, "precompiled_charsmap", &text));
    WEFT_TRY(charsmap_base64(dg, a, text, &blob));
    return charsmap_view(dg, blob, &s->map);
}

static weft_status load_bert(weft_diag *dg, arena *a, const value *v, norm_step *s)
{
    static const char what[] = "BertNormalizer";
    (void)a;
    s->clean = s->han = s->lowercase = true;
    WEFT_TRY(field_bool(dg, what, v, "clean_text", &s->clean));
    WEFT_TRY(field_bool(dg, what, v, "handle_chinese_chars", &s->han));
    WEFT_TRY(field_bool(dg, what, v, "lowercase", &s->lowercase));
    s->strip_accents = s->lowercase; /* what null stands for */
    return field_bool(dg, what, v, "strip_accents", &s->strip_accents);
}

/* clang-format off */
static const struct {
    const char *name;
    norm_fn *apply;
    load_fn *load; /* NULL: there is nothing to read */
    uni_form form;
} rows[] = {
    {"NFC",            apply_form,          NULL,             UNI_NFC},
    {"NFD",            apply_form,          NULL,             UNI_NFD},
    {"NFKC",           apply_form,          NULL,             UNI_NFKC},
    {"NFKD",           apply_form,          NULL,             UNI_NFKD},
    {"Lowercase",      apply_lowercase,     NULL,             0},
    {"Replace",        apply_replace,       load_replace,     0},
    {"Prepend",        apply_prepend,       load_prepend,     0},
    {"Strip",          apply_strip,         load_strip,       0},
    {"StripAccents",   apply_strip_accents, NULL,             0},
    {"Precompiled",    apply_charsmap,      load_precompiled, 0},
    {"Nmt",            apply_nmt,           NULL,             0},
    {"BertNormalizer", apply_bert,          load_bert,        0},
    {"ByteLevel",      apply_byte_level,    NULL,             0},
};
/* clang-format on */

static weft_status load_step(weft_diag *dg, arena *a, const value *v, str type, void *to)
{
    norm_list *l = to;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (!str_eqz(type, rows[k].name))
            continue;
        norm_step s = {.apply = rows[k].apply, .form = rows[k].form};
        s.what = arena_printf(a, "normalizer %s", rows[k].name).p;
        if (rows[k].load)
            WEFT_TRY(rows[k].load(dg, a, v, &s));
        VEC_PUSH(l, s);
        return WEFT_OK;
    }
    return field_unknown(dg, "normalizer", type);
}

weft_status norm_load(weft_diag *dg, arena *a, const value *v, norm_list *to)
{
    static const step_kind kind = {"normalizer", "normalizers", load_step};
    WEFT_TRY(field_steps(dg, a, &kind, v, to));
    return field_steps_check(dg, &kind, to->n);
}

void norm_free(norm_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        tok_regex_destroy(l->at[i].re);
    VEC_FREE(l);
}

weft_status norm_run(weft_diag *dg, const norm_list *l, str in, size_t n_max, strbuf *text,
                     strbuf *spare, str *out_text)
{
    for (size_t i = 0; i < l->n; i++) {
        strbuf swap = *spare;
        *spare = *text;
        *text = swap;
        strbuf_reset(text);
        tok_bound b = {l->at[i].what, n_max};
        WEFT_TRY(l->at[i].apply(dg, &l->at[i], in, &b, text));
        WEFT_TRY(tok_bound_check(dg, &b, text->n));
        in = text->n ? strbuf_view(text) : STR("");
    }
    *out_text = in.n ? in : STR("");
    return WEFT_OK;
}
