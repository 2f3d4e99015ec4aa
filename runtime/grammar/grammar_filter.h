/* grammar_filter.h - a grammar as what a request may choose from (runtime/engine/request.h).
 *
 * The first filter of a grammar only holds it: any thread may make it, keep it and destroy it. Its copies have matchers, so they are the
 * thread's that steps the requests, all of those of one grammar. */
#ifndef WEFT_RUNTIME_GRAMMAR_GRAMMAR_FILTER_H
#define WEFT_RUNTIME_GRAMMAR_GRAMMAR_FILTER_H

#include "runtime/engine/request.h"
#include "runtime/grammar/grammar.h"

/* It holds the grammar, as its copies do. */
token_filter *grammar_filter_create(grammar *g);

#endif
