/* tok_image.h - a loaded tokenizer as bytes, and back: what a built program carries in place of a tokenizer.json or the keys
 * of a GGUF file. No JSON and no model file is read.
 *
 * The bytes are little endian: "WTOK", a version, and what tok_impl.h has, in its order; the tables of texts and merges
 * lie there as they are used, the others (trees, tables of bytes) are made again. They may be a stranger's: whatever they say, opening gives
 * W1203, W1204, W1209, W1214 or a tokenizer that is as safe as one from a file. */
#ifndef WEFT_RUNTIME_TEXT_TOK_IMAGE_H
#define WEFT_RUNTIME_TEXT_TOK_IMAGE_H

#include "runtime/text/tok.h"

/* Added to out. The same tokenizer gives the same bytes. */
void tok_image_write(const tok *t, strbuf *out);

/* Whether it needs Unicode's tables: for normal forms, cases, or classes of characters outside patterns. */
bool tok_needs_tables(const tok *t);

/* The bytes must outlive the tokenizer, which borrows its texts; name is for messages. */
weft_status tok_image_open(weft_diag *dg, const char *name, str bytes, tok **out_tok) WEFT_MUST_USE;

#endif
