/* fuzz_tok_image.c - any bytes as the image of a tokenizer, which then encodes and decodes a text, and is written again: the
 * image of an image is the same. */
#include "runtime/text/tok_image.h"
#include "tests/fuzz/fuzz_tok.h"
#include <stdlib.h>

static void write_again(weft_diag *dg, tok *t)
{
    strbuf first = {0}, second = {0};
    tok *again;
    tok_image_write(t, &first);
    if (tok_image_open(dg, "a program", strbuf_view(&first), &again) != WEFT_OK)
        abort();
    tok_image_write(again, &second);
    if (!str_eq(strbuf_view(&first), strbuf_view(&second)))
        abort();
    tok_close(again);
    strbuf_free(&first);
    strbuf_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_diag *dg = diag_create();
    tok *t = NULL;
    weft_status status = tok_image_open(dg, "a program", (str){(const char *)data, size}, &t);
    fuzz_check(dg, status);
    if (status == WEFT_OK) {
        fuzz_use_tok(dg, t);
        write_again(dg, t);
    }
    tok_close(t);
    diag_destroy(dg);
    return 0;
}
