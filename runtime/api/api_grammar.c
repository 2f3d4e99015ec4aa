/* api_grammar.c - the public interface: forms of answers. */
#include "runtime/api/api_impl.h"

#include "runtime/base/mem.h"
#include "runtime/grammar/grammar_filter.h"
#include <string.h>

_Static_assert((int)WEFT_GRAMMAR_GBNF == GRAMMAR_GBNF &&
                   (int)WEFT_GRAMMAR_GBNF + 1 == GRAMMAR_KIND_COUNT,
               "weft_grammar_kind has the rows of grammar_kinds.def");

/* How many logits a session gives; 0: none. */
static int64_t logits_of(const session *run)
{
    const plan *p = session_plan_of(run);
    for (int32_t i = 0; i < p->n_output; i++)
        if (strcmp(p->output[i].name, "logits") == 0 && p->output[i].index < 0)
            return p->output[i].width;
    return 0;
}

weft_status weft_grammar_create(weft_diag *dg, weft_session *s, weft_tokenizer *t,
                                weft_grammar_kind kind, const char *name, const char *text,
                                size_t bytes, weft_grammar **out_grammar)
{
    API_SCOPE(dg);
    grammar_vocab *v;
    grammar *g;
    if (!dg || !s || !t || !text || !out_grammar || (unsigned)kind >= GRAMMAR_KIND_COUNT)
        return api_lacks(dg, "weft_grammar_create", "a session, a tokenizer or a text");
    int64_t n = logits_of(s->run);
    if (n < 1)
        return weft_fail(dg, W1406, WEFT_NOWHERE, "the session has no output logits");
    WEFT_TRY(grammar_vocab_create(dg, t->text, n, &v));
    weft_status st = grammar_compile(dg, v, (grammar_kind)kind, name ? name : "grammar",
                                     (str){text, bytes}, GRAMMAR_LIMITS_DEFAULT, &g);
    if (st != WEFT_OK) {
        grammar_vocab_destroy(v);
        return st;
    }
    weft_grammar *made = mem_alloc(sizeof *made);
    *made = (weft_grammar){grammar_filter_create(g), n, v};
    grammar_destroy(g); /* the filter holds it */
    *out_grammar = made;
    return WEFT_OK;
}

void weft_grammar_destroy(weft_grammar *g)
{
    if (!g)
        return;
    g->form->kind->destroy(g->form);
    grammar_vocab_destroy(g->v);
    mem_free(g);
}
