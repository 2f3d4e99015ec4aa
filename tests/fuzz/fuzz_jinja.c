/* fuzz_jinja.c - any bytes as a template, rendered over a small chat within tight limits.
 *
 * What comes out is UTF-8 and no longer than allowed; what goes wrong is told with a code. */
#include "runtime/base/utf8.h"
#include "runtime/formats/json_read.h"
#include "runtime/text/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define VARIABLES                                                                                  \
    "{\"messages\": [{\"role\": \"user\", \"content\": \" Hi \\u00e9\\ud83d\\ude00\\n\"},"         \
    "{\"role\": \"assistant\", \"content\": [{\"type\": \"text\", \"text\": \"yo\"}]}],"           \
    "\"tools\": [{\"name\": \"f\", \"parameters\": {\"a\": {\"type\": [\"int\", 1, 2.5]}}}],"      \
    "\"s\": \"Hello, World\", \"i\": -7, \"f\": 0.1, \"t\": true, \"no\": null, \"l\": [3, 1, 2]}"

static const jinja_limits limits = {
    .steps_max = 200000, .memory_max = 8 << 20, .output_max = 1 << 16, .depth_max = 200};

static void check(weft_diag *dg, weft_status st)
{
    WEFT_ASSERT((st == WEFT_OK) == (diag_errors(dg) == 0));
}

static void check_text(const strbuf *b)
{
    uint32_t cp;
    WEFT_ASSERT(b->n <= limits.output_max);
    for (size_t i = 0; i < b->n;) {
        size_t n = utf8_decode((str){b->p + i, b->n - i}, &cp);
        WEFT_ASSERT(n > 0);
        i += n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    value v;
    jinja_var vars[8];
    const jinja *t;
    strbuf out = {0};
    json_limits json = JSON_LIMITS_CONFIG;
    json.exact = true;
    WEFT_ASSERT(json_read(dg, a, "vars", STR(VARIABLES), json, &v) == WEFT_OK);
    size_t n = value_count(&v);
    for (size_t i = 0; i < n; i++)
        vars[i] = (jinja_var){v.as.object.members[i].name, v.as.object.members[i].v};
    weft_status st = jinja_compile(dg, a, "fuzz.jinja", (str){(const char *)data, size}, &t);
    if (st == WEFT_OK) {
        struct tm now = {.tm_year = 124, .tm_mon = 6, .tm_mday = 26, .tm_wday = 5};
        st = jinja_render(dg, t, vars, n, &now, &limits, &out);
        WEFT_ASSERT(st == WEFT_OK || out.n == 0);
        check_text(&out);
    }
    check(dg, st);
    strbuf_reset(&out);
    diag_json(dg, &out);
    strbuf_free(&out);
    diag_destroy(dg);
    arena_destroy(a);
    return 0;
}
