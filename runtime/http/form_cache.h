/* form_cache.h - grammars that were compiled, for requests that ask for the same form again.
 *
 * Clients send the same schema with every request, and compiling one takes longer than a token. The last FORM_CACHE_MAX of them are kept,
 * by kind and text. Any thread may ask; a grammar is compiled without the lock, so that a large one holds up nobody else. Who gets
 * a grammar holds it (grammar_hold), so it may go from the table while it is used. */
#ifndef WEFT_RUNTIME_HTTP_FORM_CACHE_H
#define WEFT_RUNTIME_HTTP_FORM_CACHE_H

#include "runtime/grammar/grammar.h"

enum {
    FORM_CACHE_MAX = 16,
    FORM_TEXT_MAX = 64 << 10,  /* longer texts are compiled each time */
    FORM_MASK_BYTES = 8 << 20, /* limits.cache_bytes of each grammar: they all may be full */
};

/* What a request can ask for, beside the kinds of texts. */
enum { FORM_JSON_OBJECT = GRAMMAR_KIND_COUNT };

typedef struct form_cache form_cache;

form_cache *form_cache_create(void);
void form_cache_destroy(form_cache *c); /* NULL is fine; before the vocabulary goes */

/* kind: a grammar_kind, or FORM_JSON_OBJECT without a text. The caller gives it back with grammar_destroy. v is the same in all calls. Fails as
 * grammar_compile does; what failed is not kept. */
weft_status form_cache_get(weft_diag *dg, form_cache *c, const grammar_vocab *v, int kind,
                           const char *name, str text, grammar **out_g) WEFT_MUST_USE;

typedef struct {
    uint64_t hits, misses;
    size_t kept;
} form_cache_counts;
form_cache_counts form_cache_count(form_cache *c);

#endif
