/* fuzz_tokenizer.c - any bytes as a tokenizer.json, which then encodes and decodes a text.
 *
 * Whatever comes back must be UTF-8, and a stream must say what its decoder settles on: no byte of
 * an id's text is lost. A pattern may be refused or run into its limits, nothing worse. */
#include "tests/fuzz/fuzz_tok.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_diag *dg = diag_create();
    tok *t = NULL;
    weft_status status = tok_open_text(dg, "tokenizer.json", (str){(const char *)data, size}, &t);
    fuzz_check(dg, status);
    if (status == WEFT_OK)
        fuzz_use_tok(dg, t);
    tok_close(t);
    diag_destroy(dg);
    return 0;
}
