/* tok_gguf_pre.c - the table of tok_gguf_pre.def, and which of its rows a tokenizer is like. */
#include "runtime/text/tok_gguf.h"

#include "runtime/base/mem_scope.h"
#include "runtime/text/tok_probe.h"
#include "runtime/text/tok_unicode.h"

/* clang-format off */
static const gguf_pre rows[] = {
#define PRE(name, flags, ...) {name, flags, {__VA_ARGS__}},
#include "runtime/text/tok_gguf_pre.def"
#undef PRE
};
/* clang-format on */

enum { ROWS = sizeof rows / sizeof *rows };

const gguf_pre *gguf_pre_named(str name)
{
    for (size_t k = 0; k < ROWS; k++)
        if (str_eqz(name, rows[k].name))
            return &rows[k];
    return NULL;
}

weft_status gguf_pre_add(weft_diag *dg, const gguf_pre *p, pre_list *to)
{
    for (size_t i = 0; i < PATTERNS_MAX && p->patterns[i]; i++)
        WEFT_TRY(pre_add_regex(dg, p->patterns[i], to));
    return WEFT_OK;
}

/* ---- the other way round ---- */

/* The pieces of a text, each with a byte behind it that no text has. */
typedef struct {
    strbuf text;
    bool map; /* as byte-level text */
} pieces;

static weft_status put_piece(void *to, str piece)
{
    pieces *p = to;
    for (size_t i = 0; p->map && i < piece.n; i++)
        uni_add(&p->text, uni_of_byte((unsigned char)piece.p[i]));
    if (!p->map)
        strbuf_put(&p->text, piece);
    strbuf_putc(&p->text, '\xff');
    return WEFT_OK;
}

static bool split(weft_diag *dg, pre_list *steps, str text, pieces *to)
{
    pre_run r = {dg, steps, put_piece, to, tok_bound_of(text.n) * (steps->n + 1)};
    strbuf_reset(&to->text);
    return pre_split(&r, text, true) == WEFT_OK;
}

typedef struct {
    weft_diag *dg; /* a pattern that takes too long is no match, and no failure */
    tok *t;
    pieces own, other;
    strbuf text;
} guess;

static bool alike(guess *g, pre_list *steps)
{
    for (size_t i = 0; i < TOK_PROBE_TEXTS + TOK_PROBE_SWEEPS; i++) {
        strbuf_reset(&g->text);
        tok_probe_text(i, &g->text);
        str text = strbuf_view(&g->text);
        if (!split(g->dg, &g->t->pres, text, &g->own) || !split(g->dg, steps, text, &g->other) ||
            !str_eq(strbuf_view(&g->own.text), strbuf_view(&g->other.text)))
            return false;
    }
    return true;
}

static bool same_patterns(const gguf_pre *a, const gguf_pre *b)
{
    for (size_t i = 0; i < PATTERNS_MAX; i++) {
        const char *x = a->patterns[i], *y = b->patterns[i];
        if (!x || !y)
            return x == y;
        if (strcmp(x, y) != 0)
            return false;
    }
    return true;
}

static bool row_alike(guess *g, size_t k, bool *verdict)
{
    for (size_t i = 0; i < k; i++)
        if (same_patterns(&rows[i], &rows[k]))
            return verdict[i];
    pre_list steps = {0};
    bool fits = gguf_pre_add(g->dg, &rows[k], &steps) == WEFT_OK && alike(g, &steps);
    pre_free(&steps);
    return fits;
}

/* Without its normal form a text that has another one gets other tokens; without the whole pieces many a word. */
static int cost(const tok *t, const gguf_pre *p)
{
    norm_step nfc = norm_step_form(UNI_NFC);
    bool own =
        t->norms.n == 1 && t->norms.at[0].apply == nfc.apply && t->norms.at[0].form == nfc.form;
    bool whole = p->flags & WHOLE, normal = p->flags & NFC;
    return 2 * (whole != t->bpe.ignore_merges) + (normal != own);
}

const gguf_pre *gguf_pre_of(tok *t)
{
    guess g = {.dg = diag_create(), .t = t, .other.map = !t->bpe.bytes};
    const gguf_pre *best = NULL;
    bool verdict[ROWS];
    mem_lock(&t->lock);
    for (size_t k = 0; k < ROWS; k++) {
        verdict[k] = row_alike(&g, k, verdict);
        if (verdict[k] && (!best || cost(t, &rows[k]) < cost(t, best)))
            best = &rows[k];
    }
    mem_unlock(&t->lock);
    strbuf_free(&g.own.text);
    strbuf_free(&g.other.text);
    strbuf_free(&g.text);
    diag_destroy(g.dg);
    return best;
}
