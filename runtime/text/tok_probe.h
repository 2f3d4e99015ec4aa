/* tok_probe.h - texts on which tokenizers that differ differ: letters of all kinds, digits, marks, signs and spaces,
 * mixed at random, the same ones in every process. */
#ifndef WEFT_RUNTIME_TEXT_TOK_PROBE_H
#define WEFT_RUNTIME_TEXT_TOK_PROBE_H

#include "runtime/base/str.h"

enum {
    TOK_PROBE_TEXTS = 1000,
    TOK_PROBE_SWEEPS = 64, /* after them: between them every character of the basic plane */
};

/* Adds text i < TOK_PROBE_TEXTS + TOK_PROBE_SWEEPS: UTF-8. */
void tok_probe_text(size_t i, strbuf *out);

/* The next number of a row that its seed sets. */
uint32_t tok_probe_next(uint64_t *io_seed);

#endif
