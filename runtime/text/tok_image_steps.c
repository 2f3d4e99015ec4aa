/* tok_image_steps.c - normalisers, pre-tokenisers and decoders in an image. What a loader of tokenizer.json sees to is seen to
 * here again: a step has what its function reads. */
#include "runtime/text/tok_image_impl.h"

/* NULL, a literal, or a pattern as the tokenizer has it, which is compiled again. */
static void regex_io(tok_image *i, tok_regex **re)
{
    enum { NONE, LITERAL, PATTERN };
    image_io *x = &i->io;
    uint8_t kind = !*re ? NONE : tok_regex_is_literal(*re) ? LITERAL : PATTERN;
    str text = *re ? tok_regex_text(*re) : STR("");
    io_u8(x, &kind);
    io_check(x, kind <= PATTERN, "has a pattern of no kind");
    io_text(x, &text, TOK_PATTERN_MAX);
    if (!io_reads(x) || x->fault || kind == NONE)
        return;
    if (kind == LITERAL)
        *re = tok_regex_literal(text);
    else if (i->status == WEFT_OK)
        i->status = tok_regex_create(i->dg, text, re);
    if (i->status != WEFT_OK)
        io_fault(x, "has a pattern that cannot be used");
}

static bool one_char(str s)
{
    return s.n > 0 && s.n == uni_len(s.p[0]);
}

/* ---- normalisers ---- */

static void charsmap_io(tok_image *i, charsmap *map)
{
    image_io *x = &i->io;
    str blob = map->units ? (str){(const char *)map->units - 4, 4 + map->n_unit * 4 + map->texts.n}
                          : STR("");
    io_blob(x, &blob);
    if (!io_reads(x) || x->fault || i->status != WEFT_OK)
        return;
    i->status = charsmap_view(i->dg, blob, map);
    io_check(x, i->status == WEFT_OK, "has a table of replacements that is damaged");
}

/* Replacements of a table go into texts that all else takes for UTF-8. */
static void charsmap_check(image_io *x, const charsmap *map)
{
    size_t bad;
    io_check(x, uni_check(map->texts, &bad), "has replacements that are not UTF-8");
}

static void norm_io(tok_image *i, norm_step *s)
{
    image_io *x = &i->io;
    uint8_t apply = (uint8_t)norm_number(s->apply), form = (uint8_t)s->form;
    str what = s->what ? str_of(s->what) : STR("");
    bool *flags[] = {&s->left,          &s->right,     &s->clean,        &s->han,
                     &s->strip_accents, &s->lowercase, &s->space_prefix, &s->space_suffix,
                     &s->space_merge,   &s->space_mark};
    io_u8(x, &apply);
    io_u8(x, &form);
    io_text(x, &what, FIELDS_AFFIX_MAX);
    io_text(x, &s->text, FIELDS_TEXT_MAX);
    for (size_t k = 0; k < sizeof flags / sizeof *flags; k++)
        io_bool(x, flags[k]);
    regex_io(i, &s->re);
    charsmap_io(i, &s->map);
    if (!io_reads(x))
        return;
    s->apply = norm_of_number(apply);
    s->form = (uni_form)form;
    s->what = arena_str(i->t->home, what).p;
    io_check(x, s->apply && form <= UNI_NFKD, "has a step of no kind");
    io_check(x, !s->apply || !norm_needs_regex(s->apply) || s->re,
             "has a step without its pattern");
    charsmap_check(x, &s->map);
}

void image_norms(tok_image *i)
{
    norm_list *l = &i->t->norms;
    i->io.part = "normalizers";
    size_t n = io_count(&i->io, l->n, 16, FIELDS_STEPS_MAX);
    for (size_t k = 0; k < n && !i->io.fault; k++) {
        if (io_reads(&i->io))
            VEC_PUSH(l, ((norm_step){0}));
        norm_io(i, &l->at[k]);
    }
}

/* ---- pre-tokenisers ---- */

static void pre_io(tok_image *i, pre_step *s)
{
    image_io *x = &i->io;
    uint8_t apply = (uint8_t)pre_number(s), match = (uint8_t)pre_match_number(s->is_match);
    uint8_t behavior = (uint8_t)s->behavior, prepend = (uint8_t)s->prepend;
    io_u8(x, &apply);
    io_u8(x, &match);
    io_u8(x, &behavior);
    io_u8(x, &prepend);
    io_bool(x, &s->invert);
    io_bool(x, &s->cuts);
    io_bool(x, &s->split);
    io_text(x, &s->mark, FIELDS_AFFIX_MAX);
    regex_io(i, &s->re);
    if (!io_reads(x))
        return;
    io_check(x, behavior <= SPLIT_MERGED_WITH_NEXT && prepend <= PREPEND_FIRST,
             "has a step of no kind");
    s->behavior = (split_behavior)behavior;
    s->prepend = (prepend_scheme)prepend;
    s->is_match = pre_match_of_number(match);
    const char *fault = pre_set_number(s, apply);
    io_check(x, !fault, fault);
}

void image_pres(tok_image *i)
{
    pre_list *l = &i->t->pres;
    i->io.part = "pre_tokenizers";
    size_t n = io_count(&i->io, l->n, 8, FIELDS_STEPS_MAX);
    for (size_t k = 0; k < n && !i->io.fault; k++) {
        if (io_reads(&i->io))
            VEC_PUSH(l, ((pre_step){0}));
        pre_io(i, &l->at[k]);
    }
}

/* ---- decoders ---- */

static void dec_io(tok_image *i, dec_step *s)
{
    enum { STRIP_MAX = 64 };
    image_io *x = &i->io;
    uint8_t kind = (uint8_t)s->kind;
    io_u8(x, &kind);
    io_text(x, &s->text, FIELDS_TEXT_MAX);
    io_size(x, &s->start, STRIP_MAX);
    io_size(x, &s->stop, STRIP_MAX);
    io_bool(x, &s->cleanup);
    io_bool(x, &s->prefix);
    regex_io(i, &s->re);
    if (!io_reads(x))
        return;
    io_check(x, kind <= DEC_BPE, "has a step of no kind");
    s->kind = kind <= DEC_BPE ? (dec_kind)kind : DEC_FUSE;
    io_check(x, s->kind != DEC_REPLACE || s->re, "has a step without its pattern");
    io_check(x, s->kind != DEC_STRIP || one_char(s->text), "strips what is not one character");
    io_check(x, s->kind == DEC_REPLACE || s->text.n <= FIELDS_AFFIX_MAX,
             "has a text that is too long");
}

void image_decs(tok_image *i)
{
    dec_list *l = &i->t->decs;
    i->io.part = "decoders";
    size_t n = io_count(&i->io, l->n, 8, FIELDS_STEPS_MAX);
    for (size_t k = 0; k < n && !i->io.fault; k++) {
        if (io_reads(&i->io))
            VEC_PUSH(l, ((dec_step){0}));
        dec_io(i, &l->at[k]);
    }
    if (io_reads(&i->io) && !i->io.fault && i->status == WEFT_OK)
        i->status = dec_check(i->dg, l);
}
