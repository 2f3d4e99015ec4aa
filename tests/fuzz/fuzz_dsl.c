/* fuzz_dsl.c - any bytes through lexer, parser, checker and the printers of diagnostics. */
#include "dsl/dsl.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static FILE *nowhere;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    source *src = source_from_text(a, "fuzz.weft", (str){(const char *)data, size});
    weft_status st = dsl_check(dg, src, true);
    if ((st == WEFT_OK) != (diag_errors(dg) == 0))
        abort(); /* a failure without a message, or a message without a failure */
    strbuf out = {0};
    diag_json(dg, &out);
    if (nowhere && size % 2)
        diag_print(dg, nowhere, size % 4 == 1);

    ast *file;
    diag_reset(dg);
    if (dsl_parse(dg, a, src, &file) == WEFT_OK) {
        strbuf_reset(&out);
        ast_print(file, &out);
        if (size % 8 == 0)
            ast_json(file, &out);
        if (!ast_equal(file, file))
            abort();
    }
    strbuf_free(&out);
    diag_destroy(dg);
    arena_destroy(a);
    return 0;
}
