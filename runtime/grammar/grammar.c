/* grammar.c - a text in one of three notations into a grammar. */
#include "runtime/grammar/grammar_impl.h"

#include "runtime/base/mem.h"
#include "runtime/base/utf8.h"
#include <stdatomic.h>

const char *grammar_kind_name(grammar_kind k)
{
    static const char *const name[] = {
#define GRAMMAR_KIND(name, text, meaning) text,
#include "runtime/grammar/grammar_kinds.def"
#undef GRAMMAR_KIND
    };
    return name[k];
}

static weft_status read_regex(weft_diag *dg, form *f, const source *src, int depth_max)
{
    regex_source r = {.src = src, .text = src->text, .depth_max = depth_max};
    const part *p;
    f->root = form_rule_add(f, STR("root"), WEFT_NOWHERE);
    WEFT_TRY(regex_part(dg, f, &r, &p));
    f->rules.at[f->root].body = p;
    return WEFT_OK;
}

static weft_status check_utf8(weft_diag *dg, const source *src)
{
    uint32_t cp;
    size_t n;
    for (size_t i = 0; i < src->text.n; i += n) {
        n = utf8_decode((str){src->text.p + i, src->text.n - i}, &cp);
        if (n == 0)
            return weft_fail(dg, W1801, WEFT_NOWHERE, "%s: byte %zu is not UTF-8", src->name, i);
    }
    return WEFT_OK;
}

static weft_status read_form(weft_diag *dg, form *f, grammar_kind kind, const source *src,
                             const grammar_limits *most)
{
    WEFT_TRY(check_utf8(dg, src));
    switch (kind) {
    case GRAMMAR_REGEX:
        return read_regex(dg, f, src, most->depth_max);
    case GRAMMAR_GBNF:
        return gbnf_form(dg, f, src, most->depth_max);
    default:
        return schema_form(dg, f, src->name, src->text, most);
    }
}

static weft_status finish(weft_diag *dg, const grammar_vocab *v, form *f, grammar_limits most,
                          grammar **out_g)
{
    grammar *g = mem_alloc(sizeof *g);
    *g = (grammar){.v = v, .most = most, .holders = 1};
    weft_status st = form_full(f) ? weft_fail(dg, W1803, WEFT_NOWHERE,
                                              "the grammar has more than %zu parts", most.parts_max)
                                  : automaton_build(dg, &g->m, f, most.states_max);
    if (st != WEFT_OK) {
        mem_free(g);
        return st;
    }
    pda_init(&g->p, &g->m, most);
    mask_cache_init(&g->masks, v);
    int32_t start = pda_start(&g->p);
    size_t n;
    pda_members(&g->p, start, &n);
    g->start_may_end = pda_may_end(&g->p, start);
    g->start_must_end = g->start_may_end && n == 1;
    *out_g = g;
    return WEFT_OK;
}

weft_status grammar_compile(weft_diag *dg, const grammar_vocab *v, grammar_kind kind,
                            const char *name, str text, grammar_limits limits, grammar **out_g)
{
    form f;
    form_init(&f, limits.parts_max);
    bool huge = text.n > limits.bytes_max; /* it is not copied to be refused */
    source *src = source_from_text(f.a, name, huge ? STR("") : text);
    weft_status st =
        huge ? weft_fail(dg, W1803, WEFT_NOWHERE, "%s: a %s of %zu bytes, at most %zu are allowed",
                         name, grammar_kind_name(kind), text.n, limits.bytes_max)
             : read_form(dg, &f, kind, src, &limits);
    if (st == WEFT_OK)
        st = finish(dg, v, &f, limits, out_g);
    form_deinit(&f);
    return st;
}

weft_status grammar_compile_json_object(weft_diag *dg, const grammar_vocab *v,
                                        grammar_limits limits, grammar **out_g)
{
    form f;
    form_init(&f, limits.parts_max);
    json_object_form(&f);
    weft_status st = finish(dg, v, &f, limits, out_g);
    form_deinit(&f);
    return st;
}

grammar *grammar_hold(grammar *g)
{
    atomic_fetch_add(&g->holders, 1);
    return g;
}

void grammar_destroy(grammar *g)
{
    if (!g || atomic_fetch_sub(&g->holders, 1) > 1)
        return;
    mask_cache_deinit(&g->masks);
    pda_deinit(&g->p);
    automaton_deinit(&g->m);
    mem_free(g);
}
