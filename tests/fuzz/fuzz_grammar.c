/* fuzz_grammar.c - any bytes as a grammar: the first says in which notation. What compiles makes texts that it matches itself, and its
 * masks say what matcher_accept does; a schema's texts are JSON. */
#include "runtime/formats/json_read.h"
#include "tests/grammar/grammar_case.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static void use(weft_diag *dg, grammar *g, bool json)
{
    strbuf out = {0};
    for (uint64_t seed = 1; seed <= 2; seed++) {
        strbuf_reset(&out);
        diag_reset(dg);
        bool ended = case_walk(dg, g, seed, 24, &out);
        diag_reset(dg);
        if (!ended)
            continue;
        weft_status st = grammar_match(dg, g, strbuf_view(&out));
        expect(st == WEFT_OK || st == WEFT_ERR_LIMIT);
        arena *a = arena_create();
        value v;
        json_limits most = {
            .bytes_max = 1 << 20, .values_max = 1 << 16, .depth_max = 900, .exact = true};
        diag_reset(dg);
        if (json && json_read(dg, a, "text", strbuf_view(&out), most, &v) != WEFT_OK)
            expect(diag_at(dg, 0).code == W1010); /* a name may stand twice where any may stand */
        arena_destroy(a);
    }
    strbuf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static grammar_vocab *v;
    static const grammar_kind kinds[] = {GRAMMAR_JSON_SCHEMA, GRAMMAR_REGEX, GRAMMAR_GBNF};
    if (!v)
        v = case_vocab();
    if (size == 0)
        return 0;
    grammar_kind kind = kinds[data[0] % 3];
    weft_diag *dg = diag_create();
    grammar *g;
    grammar_limits most = GRAMMAR_LIMITS_DEFAULT;
    most.parts_max = 1 << 14;
    most.states_max = 1 << 12; /* so that one input does not take seconds */
    most.paths_max = 64;
    most.cache_bytes = 4 << 20;
    str text = {(const char *)data + 1, size - 1};
    if (grammar_compile(dg, v, kind, "fuzz", text, most, &g) == WEFT_OK) {
        expect(diag_count(dg) == 0);
        use(dg, g, kind == GRAMMAR_JSON_SCHEMA);
        grammar_destroy(g);
    } else {
        expect(diag_count(dg) > 0);
        (void)diag_shown_json(dg);
    }
    diag_destroy(dg);
    return 0;
}
