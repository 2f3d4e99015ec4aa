/* fuzz_fmt.c - whatever parses is laid out; that parses to the same tree and is its own layout. */
#include "dsl/dsl.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Says why on stderr and stops: the fuzzer keeps the input. */
static void must(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz_fmt: %s\n", what);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    source *src = source_from_text(a, "fuzz.weft", (str){(const char *)data, size});
    strbuf once = {0}, twice = {0};
    ast *before, *after;
    if (dsl_parse(dg, a, src, &before) == WEFT_OK) {
        must(dsl_fmt(dg, src, &once) == WEFT_OK, "a file that parses is not laid out");
        source *laid = source_from_text(a, "laid.weft", strbuf_view(&once));
        must(dsl_parse(dg, a, laid, &after) == WEFT_OK, "the layout does not parse");
        must(ast_equal(before, after), "the layout is another program");
        must(dsl_fmt(dg, laid, &twice) == WEFT_OK, "the layout is not laid out again");
        must(str_eq(strbuf_view(&once), strbuf_view(&twice)), "the layout of the layout differs");
    } else {
        must(dsl_fmt(dg, src, &once) != WEFT_OK, "a file that does not parse is laid out");
    }
    strbuf_free(&once);
    strbuf_free(&twice);
    diag_destroy(dg);
    arena_destroy(a);
    return 0;
}
