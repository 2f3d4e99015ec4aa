/* tok_decode.c - the decoders on whole lists of texts, and the table that finds them by name. */
#include "runtime/text/tok_decode.h"

#include "runtime/text/tok.h"
#include "runtime/text/tok_unicode.h"
#include "runtime/text/tok_vocab.h"

void dec_texts_free(dec_texts *t)
{
    strbuf_free(&t->text);
    VEC_FREE(&t->ends);
}

void dec_texts_put(dec_texts *t, str text)
{
    strbuf_put(&t->text, text);
    VEC_PUSH(&t->ends, t->text.n);
}

str dec_texts_at(const dec_texts *t, size_t i)
{
    size_t begin = i ? t->ends.at[i - 1] : 0;
    if (t->ends.at[i] == begin)
        return STR("");
    return (str){t->text.p + begin, t->ends.at[i] - begin};
}

/* Ends the piece that was being added to t->text. */
static void end_piece(dec_texts *t)
{
    VEC_PUSH(&t->ends, t->text.n);
}

typedef weft_status run_fn(weft_diag *dg, const dec_step *s, const dec_texts *in, dec_texts *out);

static weft_status run_byte_level(weft_diag *dg, const dec_step *s, const dec_texts *in,
                                  dec_texts *out)
{
    strbuf bytes = {0};
    (void)dg, (void)s;
    for (size_t i = 0; i < in->ends.n; i++)
        dec_put_byte_level(&bytes, dec_texts_at(in, i));
    dec_put_utf8_all(&out->text, strbuf_view(&bytes));
    end_piece(out);
    strbuf_free(&bytes);
    return WEFT_OK;
}

/* A run of byte tokens: its text, or one U+FFFD for each byte if it is not all UTF-8. */
static void end_bytes(strbuf *bytes, dec_texts *out)
{
    size_t bad;
    if (uni_check(strbuf_view(bytes), &bad)) {
        if (bytes->n)
            dec_texts_put(out, strbuf_view(bytes));
    } else {
        for (size_t i = 0; i < bytes->n; i++)
            dec_texts_put(out, STR("\xef\xbf\xbd"));
    }
    strbuf_reset(bytes);
}

static weft_status run_byte_fallback(weft_diag *dg, const dec_step *s, const dec_texts *in,
                                     dec_texts *out)
{
    strbuf bytes = {0};
    (void)dg, (void)s;
    for (size_t i = 0; i < in->ends.n; i++) {
        int byte = vocab_byte_of(dec_texts_at(in, i));
        if (byte >= 0) {
            strbuf_putc(&bytes, (char)byte);
            continue;
        }
        end_bytes(&bytes, out);
        dec_texts_put(out, dec_texts_at(in, i));
    }
    end_bytes(&bytes, out);
    strbuf_free(&bytes);
    return WEFT_OK;
}

static weft_status run_fuse(weft_diag *dg, const dec_step *s, const dec_texts *in, dec_texts *out)
{
    (void)dg, (void)s;
    dec_texts_put(out, strbuf_view(&in->text));
    return WEFT_OK;
}

/* dec_load has looked at how much a list of decoders can make of a text. */
static const tok_bound unbounded = {"decoder Replace", SIZE_MAX};

static weft_status run_replace(weft_diag *dg, const dec_step *s, const dec_texts *in,
                               dec_texts *out)
{
    for (size_t i = 0; i < in->ends.n; i++) {
        WEFT_TRY(
            tok_regex_replace(dg, s->re, dec_texts_at(in, i), s->text, &unbounded, &out->text));
        end_piece(out);
    }
    return WEFT_OK;
}

static weft_status run_strip(weft_diag *dg, const dec_step *s, const dec_texts *in, dec_texts *out)
{
    (void)dg;
    for (size_t i = 0; i < in->ends.n; i++) {
        str text = dec_strip_start(s, dec_texts_at(in, i), s->start);
        dec_texts_put(out, dec_strip_stop(s, text, s->stop));
    }
    return WEFT_OK;
}

static weft_status run_metaspace(weft_diag *dg, const dec_step *s, const dec_texts *in,
                                 dec_texts *out)
{
    (void)dg;
    for (size_t i = 0; i < in->ends.n; i++) {
        dec_put_metaspace(s, dec_texts_at(in, i), i == 0, &out->text);
        end_piece(out);
    }
    return WEFT_OK;
}

static weft_status run_wordpiece(weft_diag *dg, const dec_step *s, const dec_texts *in,
                                 dec_texts *out)
{
    (void)dg;
    for (size_t i = 0; i < in->ends.n; i++) {
        dec_put_wordpiece(s, dec_texts_at(in, i), i == 0, &out->text);
        end_piece(out);
    }
    return WEFT_OK;
}

static weft_status run_bpe(weft_diag *dg, const dec_step *s, const dec_texts *in, dec_texts *out)
{
    (void)dg;
    for (size_t i = 0; i < in->ends.n; i++) {
        dec_put_suffixed(s, dec_texts_at(in, i), i + 1 == in->ends.n, &out->text);
        end_piece(out);
    }
    return WEFT_OK;
}

/* Reads the members of v into s, whose kind the row has set. */
typedef weft_status load_fn(weft_diag *dg, arena *a, const value *v, dec_step *s);

static weft_status load_replace(weft_diag *dg, arena *a, const value *v, dec_step *s)
{
    WEFT_TRY(field_copy(dg, a, "Replace", v, "content", FIELDS_TEXT_MAX, &s->text));
    return field_pattern(dg, "Replace", v, &s->re);
}

static weft_status load_strip(weft_diag *dg, arena *a, const value *v, dec_step *s)
{
    enum { STRIP_MAX = 64 };
    int64_t start = 0, stop = 0;
    str text;
    WEFT_TRY(field_str(dg, "Strip", v, "content", &text));
    WEFT_TRY(field_int(dg, "Strip", v, "start", 0, STRIP_MAX, &start));
    WEFT_TRY(field_int(dg, "Strip", v, "stop", 0, STRIP_MAX, &stop));
    if (!text.n || text.n != uni_len(text.p[0]))
        return weft_fail(dg, W1203, WEFT_NOWHERE, "Strip: 'content' is not one character");
    s->text = arena_str(a, text);
    s->start = (size_t)start;
    s->stop = (size_t)stop;
    return WEFT_OK;
}

static weft_status load_metaspace(weft_diag *dg, arena *a, const value *v, dec_step *s)
{
    static const char what[] = "Metaspace";
    str scheme, mark = STR("\xe2\x96\x81");
    s->prefix = true;
    WEFT_TRY(field_bool(dg, what, v, "add_prefix_space", &s->prefix));
    WEFT_TRY(field_str_or_none(dg, what, v, "prepend_scheme", &scheme));
    if (value_get(v, STR("replacement")))
        WEFT_TRY(field_str(dg, what, v, "replacement", &mark));
    if (str_eqz(scheme, "never"))
        s->prefix = false;
    s->text = arena_str(a, mark);
    return WEFT_OK;
}

static weft_status load_wordpiece(weft_diag *dg, arena *a, const value *v, dec_step *s)
{
    WEFT_TRY(field_copy(dg, a, "WordPiece", v, "prefix", FIELDS_AFFIX_MAX, &s->text));
    s->cleanup = true;
    return field_bool(dg, "WordPiece", v, "cleanup", &s->cleanup);
}

static weft_status load_bpe(weft_diag *dg, arena *a, const value *v, dec_step *s)
{
    return field_copy(dg, a, "BPEDecoder", v, "suffix", FIELDS_AFFIX_MAX, &s->text);
}

/* clang-format off */
static const struct {
    const char *name;
    run_fn *run;
    load_fn *load; /* NULL: there is nothing to read */
} rows[] = {
    [DEC_BYTE_LEVEL]    = {"ByteLevel",    run_byte_level,    NULL},
    [DEC_BYTE_FALLBACK] = {"ByteFallback", run_byte_fallback, NULL},
    [DEC_FUSE]          = {"Fuse",         run_fuse,          NULL},
    [DEC_REPLACE]       = {"Replace",      run_replace,       load_replace},
    [DEC_STRIP]         = {"Strip",        run_strip,         load_strip},
    [DEC_METASPACE]     = {"Metaspace",    run_metaspace,     load_metaspace},
    [DEC_WORDPIECE]     = {"WordPiece",    run_wordpiece,     load_wordpiece},
    [DEC_BPE]           = {"BPEDecoder",   run_bpe,           load_bpe},
};
/* clang-format on */

dec_step dec_step_replace(str from, str to)
{
    return (dec_step){.kind = DEC_REPLACE, .re = tok_regex_literal(from), .text = to};
}

static weft_status load_step(weft_diag *dg, arena *a, const value *v, str type, void *to)
{
    dec_list *l = to;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (!str_eqz(type, rows[k].name))
            continue;
        dec_step s = {.kind = (dec_kind)k};
        if (rows[k].load)
            WEFT_TRY(rows[k].load(dg, a, v, &s));
        VEC_PUSH(l, s);
        return WEFT_OK;
    }
    return field_unknown(dg, "decoder", type);
}

/* The most that a step can multiply the bytes of a text by. ByteLevel turns a character of two bytes into one byte that
 * may be U+FFFD, WordPiece puts a space before each token; the others but Replace take away. */
static double growth_of(const dec_step *s)
{
    switch (s->kind) {
    case DEC_REPLACE:
        return tok_regex_growth(s->re, s->text.n);
    case DEC_BYTE_LEVEL:
    case DEC_WORDPIECE:
        return 2;
    default:
        return 1;
    }
}

static weft_status check_growth(weft_diag *dg, const dec_list *l)
{
    double growth = 1;
    for (size_t i = 0; i < l->n; i++) {
        growth *= growth_of(&l->at[i]);
        if (growth > TOK_GROWTH_MAX)
            return weft_fail(dg, W1214, WEFT_NOWHERE,
                             "decoder %s can make a text %.0f times as long, at most %d times is "
                             "allowed",
                             rows[l->at[i].kind].name, growth, TOK_GROWTH_MAX);
    }
    return WEFT_OK;
}

static const step_kind steps = {"decoder", "decoders", load_step};

weft_status dec_check(weft_diag *dg, const dec_list *l)
{
    WEFT_TRY(field_steps_check(dg, &steps, l->n));
    return check_growth(dg, l);
}

weft_status dec_load(weft_diag *dg, arena *a, const value *v, dec_list *to)
{
    WEFT_TRY(field_steps(dg, a, &steps, v, to));
    return dec_check(dg, to);
}

void dec_free(dec_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        tok_regex_destroy(l->at[i].re);
    VEC_FREE(l);
}

weft_status dec_run(weft_diag *dg, const dec_list *l, dec_texts *texts)
{
    dec_texts spare = {0};
    weft_status status = WEFT_OK;
    for (size_t i = 0; status == WEFT_OK && i < l->n; i++) {
        dec_texts in = *texts;
        *texts = spare;
        strbuf_reset(&texts->text);
        texts->ends.n = 0;
        status = rows[l->at[i].kind].run(dg, &l->at[i], &in, texts);
        spare = in;
    }
    dec_texts_free(&spare);
    return status;
}
