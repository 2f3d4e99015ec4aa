/* fuzz_request.c - any bytes as a body of every route, and as an answer in every tool format. What is refused says why and has a status; what is
 * taken keeps to its limits; an answer's events do not depend on how it is cut. */
#include "runtime/base/json_write.h"
#include "runtime/formats/json_read.h"
#include "runtime/http/serve_error.h"
#include "runtime/http/form_schema.h"
#include "runtime/http/serve_request.h"
#include "runtime/http/tool_format.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

/* What is made of strangers' schemas is JSON again, whatever they are. */
static void check_schema(const serve_request *q, strbuf *text)
{
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    value v;
    serve_form_schema(q, text);
    expect(json_read(dg, a, "schema", strbuf_view(text),
                     (json_limits){.bytes_max = SIZE_MAX,
                                   .values_max = SIZE_MAX,
                                   .depth_max = SERVE_DEPTH_MAX + 8,
                                   .exact = true},
                     &v) == WEFT_OK);
    arena_destroy(a);
    diag_destroy(dg);
}

static void check(const serve_request *q, const serve_rules *r)
{
    expect(q->n >= 1 && q->n <= q->best_of + !(q->kind & SERVE_GENERATES));
    expect(!(q->kind & SERVE_GENERATES) || q->best_of <= r->choices_max);
    expect(q->n_stop <= SERVE_STOPS_MAX && q->n_prompt <= SERVE_PROMPTS_MAX &&
           q->n_tool <= SERVE_TOOLS_MAX);
    expect(q->adapter < (int)r->n_adapter && q->priority <= r->priority_max);
    expect(q->tool_choice != SERVE_TOOLS_ONE || (size_t)q->tool_one < q->n_tool);
    for (size_t i = 0; i < q->n_prompt; i++)
        for (size_t k = 0; k < q->prompts[i].n_id; k++)
            expect(q->prompts[i].ids[k] >= 0 && q->prompts[i].ids[k] < r->vocab);
    strbuf text = {0};
    json_writer w = {.out = &text};
    if (q->messages)
        value_json(&w, q->messages, SIZE_MAX);
    strbuf_reset(&text);
    serve_form form = serve_form_of(q);
    if (form == SERVE_FORM_CALL || form == SERVE_FORM_EITHER)
        check_schema(q, &text);
    strbuf_free(&text);
}

static void requests(str body)
{
    static const char *const adapters[] = {"a"};
    serve_rules rules = {.model = "m",
                         .adapters = adapters,
                         .n_adapter = 1,
                         .sampler = serve_sampler_defaults(),
                         .vocab = 1000,
                         .body_max = 1 << 16,
                         .choices_max = 8};
    for (int kind = SERVE_CHAT; kind <= SERVE_TEMPLATE; kind *= 2) {
        weft_diag *dg = diag_create();
        arena *a = arena_create();
        serve_request q;
        if (serve_request_read(dg, a, (serve_kind)kind, body, &rules, &q) == WEFT_OK) {
            check(&q, &rules);
        } else {
            strbuf out = {0};
            int status = serve_error_write(dg, q.fault_param, &out);
            expect(diag_errors(dg) > 0 && status >= 400 && status < 500);
            strbuf_free(&out);
        }
        arena_destroy(a);
        diag_destroy(dg);
    }
}

typedef struct {
    strbuf out;
    int last;
} record;

static void on_event(void *ctx, tool_event kind, str text)
{
    record *r = ctx;
    if (r->last != (int)kind || kind == TOOL_CALL || kind == TOOL_CALL_END)
        strbuf_add(&r->out, "|%d:", (int)kind);
    r->last = (int)kind;
    strbuf_put(&r->out, text);
}

static void answers(str text)
{
    static const str names[] = {{"f", 1}};
    const tool_format_row *row;
    for (size_t i = 0; (row = tool_format_at(i)); i++) {
        record whole = {.last = -1}, cut = {.last = -1};
        tool_options o = {.calls = true, .names = names, .n_name = 1};
        tool_parser *p = tool_parser_create(row, &o, on_event, &whole);
        tool_parser_put(p, text);
        tool_parser_end(p);
        tool_parser_destroy(p);
        p = tool_parser_create(row, &o, on_event, &cut);
        for (size_t k = 0; k < text.n; k++)
            tool_parser_put(p, (str){text.p + k, 1});
        tool_parser_end(p);
        tool_parser_destroy(p);
        expect(whole.out.n == cut.out.n &&
               (whole.out.n == 0 || memcmp(whole.out.p, cut.out.p, cut.out.n) == 0));
        strbuf_free(&whole.out);
        strbuf_free(&cut.out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    str text = {(const char *)data, size};
    requests(text);
    answers(text);
    return 0;
}
