/* test_serve_request.c - bodies in, checked requests or OpenAI's errors out: every field of the table, and what a body must not be. */
#include "runtime/http/serve_error.h"
#include "runtime/http/serve_request.h"
#include "tests/base/suite.h"

#include <math.h>

static const char *const adapters[] = {"pirate", "poet"};

static serve_rules rules(void)
{
    return (serve_rules){.model = "base",
                         .adapters = adapters,
                         .n_adapter = 2,
                         .sampler = serve_sampler_defaults(),
                         .vocab = 1000,
                         .body_max = 1 << 20,
                         .choices_max = 16,
                         .priority_max = 10};
}

typedef struct {
    weft_diag *dg;
    arena *a;
    serve_request rq;
    weft_status st;
} got;

static got read_body(serve_kind kind, str body)
{
    got g = {.dg = diag_create(), .a = arena_create()};
    serve_rules r = rules();
    g.st = serve_request_read(g.dg, g.a, kind, body, &r, &g.rq);
    return g;
}

static void done(got *g)
{
    diag_destroy(g->dg);
    arena_destroy(g->a);
}

static got read_ok(serve_kind kind, const char *body)
{
    got g = read_body(kind, str_of(body));
    strbuf text = {0};
    diag_text(g.dg, &text, false);
    ck_assert_msg(g.st == WEFT_OK, "%s: %s", body, text.p);
    strbuf_free(&text);
    return g;
}

/* ---- what is wrong, and how it is said ---- */

#define CALL_BEFORE                                                                                \
    "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"tools\": [{\"type\": "           \
    "\"function\", \"function\": {\"name\": \"f\""

static const struct {
    serve_kind kind;
    const char *body, *param, *code;
    int http;
} wrong[] = {
    {SERVE_CHAT, "", "", "W1014", 400},
    {SERVE_CHAT, "[]", "", "W1821", 400},
    {SERVE_CHAT, "{\"messages\": [", "", "W1014", 400},
    {SERVE_CHAT, "{}", "messages", "W1824", 400},
    {SERVE_CHAT, "{\"messages\": null}", "messages", "W1824", 400},
    {SERVE_CHAT, "{\"messages\": []}", "messages", "W1823", 400},
    {SERVE_CHAT, "{\"messages\": \"hi\"}", "messages", "W1823", 400},
    {SERVE_CHAT, "{\"messages\": [1]}", "messages[0]", "W1823", 400},
    {SERVE_CHAT, "{\"messages\": [{\"content\": \"x\"}]}", "messages[0].role", "W1824", 400},
    {SERVE_CHAT, "{\"messages\": [{\"role\": \"king\", \"content\": \"x\"}]}", "messages[0].role",
     "W1823", 400},
    {SERVE_CHAT, "{\"messages\": [{\"role\": \"user\"}]}", "messages[0].content", "W1824", 400},
    {SERVE_CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": \"x\", \"mood\": 1}]}",
     "messages[0].mood", "W1822", 400},
    {SERVE_CHAT,
     "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", \"image_url\": "
     "{\"url\": \"x\"}}]}]}",
     "messages[0].content[0].type", "unsupported_parameter", 400},
    {SERVE_CHAT,
     "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"input_audio\"}]}]}",
     "messages[0].content[0].type", "unsupported_parameter", 400},
    {SERVE_CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"model\": \"gpt-4\"}",
     "model", "model_not_found", 404},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"model\": \"base:nobody\"}", "model",
     "model_not_found", 404},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"temprature\": 1}", "temprature", "W1822", 400},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"temperature\": 3}", "temperature", "W1823", 400},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"temperature\": \"1\"}", "temperature", "W1823", 400},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"temperature\": Infinity}", "temperature", "W1823",
     400},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"max_tokens\": 1.5}", "max_tokens", "W1823", 400},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"max_tokens\": 0}", "max_tokens", "W1823", 400},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"n\": 17}", "n", "W1823", 400},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"n\": 3, \"best_of\": 2}", "best_of", "W1823", 400},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"best_of\": 2, \"stream\": true}", "best_of", "W1823",
     400},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"suffix\": \"y\"}", "suffix", "unsupported_parameter",
     400},
    {SERVE_COMPLETION, "{\"prompt\": [1, 1000]}", "prompt[1]", "W1823", 400},
    {SERVE_COMPLETION, "{\"prompt\": [\"a\", 2]}", "prompt[1]", "W1823", 400},
    {SERVE_COMPLETION, "{\"prompt\": [[1], []]}", "prompt[1]", "W1823", 400},
    {SERVE_COMPLETION, "{\"prompt\": []}", "prompt", "W1823", 400},
    {SERVE_COMPLETION, "{\"prompt\": {}}", "prompt", "W1823", 400},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"stop\": \"\"}", "stop", "W1823", 400},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"stop\": [\"a\", 1]}", "stop[1]", "W1823", 400},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"stop\": \"a\\u0000b\"}", "stop", "W1823", 400},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"logit_bias\": {\"1000\": 1}}", "logit_bias", "W1823",
     400},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"logit_bias\": {\"-1\": 1}}", "logit_bias", "W1823",
     400},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"logit_bias\": {\"99999999999999999999999\": 1}}",
     "logit_bias", "W1823", 400},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"logit_bias\": {\"1\": 101}}", "logit_bias", "W1823",
     400},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"stream_options\": {\"include_usage\": true}}",
     "stream_options", "W1823", 400},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"grammar\": \"a\", \"regex\": \"b\"}", "regex",
     "W1823", 400},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"priority\": 11}", "priority", "W1823", 400},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"prompt\": \"y\"}", "", "W1010", 400},
    {SERVE_COMPLETION, "{\"prompt\": \"\xff\"}", "", "W1014", 400},
    {SERVE_COMPLETION, "{\"prompt\": \"x\", \"echo\": true, \"logprobs\": 1}", "echo",
     "unsupported_parameter", 400},
    {SERVE_CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"top_logprobs\": 2}",
     "top_logprobs", "W1823", 400},
    {SERVE_CHAT,
     "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"functions\": [{\"name\": "
     "\"f\"}]}",
     "functions", "unsupported_parameter", 400},
    {SERVE_CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"store\": true}",
     "store", "unsupported_parameter", 400},
    {SERVE_CHAT,
     "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"modalities\": [\"audio\"]}",
     "modalities[0]", "unsupported_parameter", 400},
    {SERVE_CHAT,
     "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"tool_choice\": \"required\"}",
     "tool_choice", "W1823", 400},
    {SERVE_CHAT,
     "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"tools\": [{\"type\": "
     "\"function\", \"function\": {\"name\": \"a "
     "b\"}}]}",
     "tools[0].function.name", "W1823", 400},
    {SERVE_CHAT,
     "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"tools\": [{\"type\": "
     "\"web_search\"}]}",
     "tools[0].type", "unsupported_parameter", 400},
    {SERVE_CHAT,
     "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"response_format\": {\"type\": "
     "\"json_schema\"}}",
     "response_format.json_schema", "W1824", 400},
    {SERVE_EMBEDDING, "{\"input\": \"x\", \"encoding_format\": \"hex\"}", "encoding_format",
     "W1823", 400},
    {SERVE_RESPONSE, "{\"input\": [{\"type\": \"item_reference\", \"id\": \"x\"}]}",
     "input[0].type", "unsupported_parameter", 400},
    {SERVE_RESPONSE, "{\"input\": \"x\", \"previous_response_id\": \"resp_1\"}",
     "previous_response_id", "unsupported_parameter", 400},
    {SERVE_CHAT, CALL_BEFORE ", \"strict\": true}}]}", "tools[0].function.strict",
     "unsupported_parameter", 400},
    {SERVE_CHAT, CALL_BEFORE "}}], \"regex\": \"a\"}", "tools", "unsupported_parameter", 400},
    {SERVE_RESPONSE,
     "{\"input\": \"x\", \"tools\": [{\"type\": \"function\", \"name\": \"f\", \"strict\": true}]}",
     "tools[0].strict", "unsupported_parameter", 400},
    {SERVE_RESPONSE, "{\"input\": \"x\", \"reasoning\": {\"mode\": \"pro\"}}", "reasoning.mode",
     "unsupported_parameter", 400},
    {SERVE_RESPONSE, "{\"input\": \"x\", \"reasoning\": {\"summary\": \"auto\"}}",
     "reasoning.summary", "unsupported_parameter", 400},
    {SERVE_RESPONSE, "{\"input\": \"x\", \"store\": true}", "store", "unsupported_parameter", 400},
    {SERVE_DETOKENIZE, "{\"tokens\": [5000]}", "tokens[0]", "W1823", 400},
    {SERVE_TOKENIZE, "{\"content\": 1}", "content", "W1823", 400},
};

START_TEST(what_is_wrong_is_named)
{
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        got g = read_body(wrong[i].kind, str_of(wrong[i].body));
        strbuf out = {0}, code = {0};
        ck_assert_msg(g.st != WEFT_OK, "taken: %s", wrong[i].body);
        int http = serve_error_write(g.dg, g.rq.fault_param, &out);
        strbuf_add(&code, "\"code\":\"%s\"", wrong[i].code);
        ck_assert_msg(http == wrong[i].http && strstr(out.p, code.p), "%s: %d %s", wrong[i].body,
                      http, out.p);
        ck_assert_msg(str_eqz(g.rq.fault_param.p ? g.rq.fault_param : STR(""), wrong[i].param),
                      "%s: %s", wrong[i].body, out.p);
        strbuf_free(&out);
        strbuf_free(&code);
        done(&g);
    }
}
END_TEST

/* No field is ignored: a wrong type of each is refused, and names the field. */
START_TEST(every_field_is_looked_at)
{
    static const struct {
        serve_kind kind;
        const char *least;
    } kinds[] = {
        {SERVE_CHAT, "\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]"},
        {SERVE_COMPLETION, "\"prompt\": \"x\""},
        {SERVE_EMBEDDING, "\"input\": \"x\""},
        {SERVE_RESPONSE, "\"input\": \"x\""},
        {SERVE_TOKENIZE, "\"content\": \"x\""},
        {SERVE_DETOKENIZE, "\"tokens\": [1]"},
        {SERVE_TEMPLATE, "\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]"},
    };
    const serve_field_row *f;
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        for (size_t i = 0; (f = serve_field_at(i)); i++) {
            strbuf body = {0};
            if (!(f->kinds & (int)kinds[k].kind) || strstr(kinds[k].least, f->name))
                continue;
            /* No field is a list of lists of an object. */
            strbuf_add(&body, "{%s, \"%s\": [[{\"x\": 1}]]}", kinds[k].least, f->name);
            got g = read_body(kinds[k].kind, strbuf_view(&body));
            bool free_form = strcmp(f->name, "documents") == 0; /* the template's business */
            ck_assert_msg(free_form || g.st != WEFT_OK, "%s", body.p);
            if (!free_form)
                ck_assert_msg(str_starts(g.rq.fault_param, str_of(f->name)), "%s: %.*s", body.p,
                              STR_ARG(g.rq.fault_param));
            done(&g);
            strbuf_reset(&body);
            strbuf_add(&body, "{%s, \"%s\": null}", kinds[k].least, f->name);
            g = read_ok(kinds[k].kind, body.p);
            done(&g);
            strbuf_free(&body);
        }
}
END_TEST

/* Every parameter of OpenAI's own client is in the table: served, or refused with a reason of its own. */
START_TEST(all_parameters_of_openai_have_a_row)
{
    static const struct {
        serve_kind kind;
        const char *name;
    } params[] = {
#define CHAT(name) {SERVE_CHAT, #name},
#define COMPLETION(name) {SERVE_COMPLETION, #name},
#define EMBEDDING(name) {SERVE_EMBEDDING, #name},
#define RESPONSE(name) {SERVE_RESPONSE, #name},
#include "tests/http/openai_params.def"
    };
    ck_assert_uint_gt(COUNT_OF(params), 90);
    for (size_t i = 0; i < COUNT_OF(params); i++) {
        const serve_field_row *f;
        size_t k = 0;
        while ((f = serve_field_at(k)) &&
               !(f->kinds & (int)params[i].kind && strcmp(f->name, params[i].name) == 0))
            k++;
        ck_assert_msg(f != NULL, "%s has no row for kind %d", params[i].name, (int)params[i].kind);
    }
}
END_TEST

/* What asks for nothing is taken, and only then. */
START_TEST(what_asks_for_nothing_is_taken)
{
    static const char *const taken[] = {
        "\"user\": \"u\"",
        "\"safety_identifier\": \"s\"",
        "\"prompt_cache_key\": \"k\"",
        "\"store\": false",
        "\"metadata\": {}",
        "\"service_tier\": \"auto\"",
        "\"modalities\": [\"text\"]",
        "\"verbosity\": \"medium\"",
        "\"functions\": []",
        "\"reasoning_effort\": \"max\"",
        "\"timeout_ms\": 5",
    };
    for (size_t i = 0; i < COUNT_OF(taken); i++) {
        strbuf body = {0};
        strbuf_add(&body, "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], %s}",
                   taken[i]);
        got g = read_ok(SERVE_CHAT, body.p);
        done(&g);
        strbuf_free(&body);
    }
}
END_TEST

/* ---- what is right ---- */

START_TEST(a_chat_with_everything)
{
    got g =
        read_ok(SERVE_CHAT, "{\"model\": \"base:poet\", \"messages\": [{\"role\": \"developer\", "
                            "\"content\": \"be brief\"},"
                            " {\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": "
                            "\"a\"}, {\"type\": \"text\", \"text\": \"b\"}]},"
                            " {\"role\": \"assistant\", \"content\": null, \"tool_calls\": "
                            "[{\"id\": \"c1\", \"type\": \"function\", \"function\":"
                            " {\"name\": \"f\", \"arguments\": \"{\\\"x\\\": 1.0}\"}}]},"
                            " {\"role\": \"tool\", \"tool_call_id\": \"c1\", \"content\": \"42\"}],"
                            " \"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", "
                            "\"parameters\": {\"type\": \"object\"}, \"strict\": true}},"
                            " {\"type\": \"function\", \"function\": {\"name\": \"g\"}}],"
                            " \"tool_choice\": {\"type\": \"function\", \"function\": {\"name\": "
                            "\"g\"}}, \"parallel_tool_calls\": false,"
                            " \"temperature\": 0, \"top_p\": 0.5, \"seed\": -3, \"stop\": [\"x\", "
                            "\"yz\"], \"n\": 2, \"max_completion_tokens\": 9,"
                            " \"logit_bias\": {\"5\": -100, \"6\": 1.5}, \"logprobs\": true, "
                            "\"top_logprobs\": 3, \"presence_penalty\": 1,"
                            " \"frequency_penalty\": -1, \"stream\": true, \"stream_options\": "
                            "{\"include_usage\": true}, \"user\": \"u\","
                            " \"reasoning_effort\": \"low\", \"store\": false, \"metadata\": {}, "
                            "\"service_tier\": \"auto\"}");
    serve_request *q = &g.rq;
    strbuf text = {0};
    json_writer w = {.out = &text};
    ck_assert_int_eq(q->adapter, 1);
    value_json(&w, q->messages, SIZE_MAX);
    ck_assert_str_eq(
        text.p,
        "[{\"role\":\"system\",\"content\":\"be brief\"},{\"role\":\"user\",\"content\":\"a\\nb\"},"
        "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"c1\",\"type\":"
        "\"function\","
        "\"function\":{\"name\":\"f\",\"arguments\":{\"x\":1}}}]},"
        "{\"role\":\"tool\",\"content\":\"42\",\"tool_call_id\":\"c1\"}]");
    ck_assert_int_eq((int)q->n_tool, 2);
    ck_assert(q->tool_at[0].strict && !q->tool_at[1].strict);
    ck_assert_int_eq(q->tool_choice, SERVE_TOOLS_ONE);
    ck_assert_int_eq(q->tool_one, 1);
    ck_assert(!q->parallel_tool_calls && q->seeded && q->stream && q->stream_usage && q->logprobs);
    ck_assert(q->sampler.temp == 0 && q->sampler.top_p == 0.5 && q->sampler.seed == (uint64_t)-3);
    ck_assert_int_eq((int)q->n_stop, 2);
    ck_assert_str_eq(q->stops_z[1], "yz");
    ck_assert(q->max_tokens == 9 && q->n == 2 && q->best_of == 2 && q->top_logprobs == 3);
    ck_assert_int_eq((int)q->sampler.n_bias, 2);
    ck_assert(isinf(q->sampler.bias[0].bias) && q->sampler.bias[1].bias == 1.5f);
    strbuf_free(&text);
    done(&g);
}
END_TEST

START_TEST(prompts_come_in_four_forms)
{
    got g = read_ok(SERVE_COMPLETION, "{\"prompt\": \"x\"}");
    ck_assert(g.rq.n_prompt == 1 && str_eqz(g.rq.prompts[0].text, "x") && g.rq.max_tokens == 16);
    done(&g);
    g = read_ok(SERVE_COMPLETION, "{\"prompt\": [\"x\", \"y\"], \"logprobs\": 0}");
    ck_assert(g.rq.n_prompt == 2 && str_eqz(g.rq.prompts[1].text, "y") && g.rq.logprobs &&
              g.rq.top_logprobs == 0);
    done(&g);
    g = read_ok(SERVE_COMPLETION, "{\"prompt\": [1, 2, 999]}");
    ck_assert(g.rq.n_prompt == 1 && g.rq.prompts[0].n_id == 3 && g.rq.prompts[0].ids[2] == 999);
    done(&g);
    g = read_ok(SERVE_EMBEDDING,
                "{\"input\": [[1], [2, 3]], \"encoding_format\": \"base64\", \"dimensions\": 8}");
    ck_assert(g.rq.n_prompt == 2 && g.rq.prompts[1].n_id == 2 && g.rq.base64 &&
              g.rq.dimensions == 8);
    done(&g);
}
END_TEST

START_TEST(responses_become_messages)
{
    got g =
        read_ok(SERVE_RESPONSE,
                "{\"instructions\": \"be kind\", \"input\": [{\"role\": \"user\", \"content\": "
                "[{\"type\": \"input_text\","
                " \"text\": \"hi\"}]}, {\"type\": \"function_call\", \"call_id\": \"a\", "
                "\"name\": \"f\", \"arguments\": \"{}\"},"
                " {\"type\": \"function_call\", \"call_id\": \"b\", \"name\": \"f\", "
                "\"arguments\": \"bad\"},"
                " {\"type\": \"function_call_output\", \"call_id\": \"a\", \"output\": \"1\"},"
                " {\"type\": \"reasoning\", \"id\": \"rs_1\", \"summary\": [], \"content\":"
                " [{\"type\": \"reasoning_text\", \"text\": \"h\"}, {\"type\": \"reasoning_text\","
                " \"text\": \"m\"}]}, {\"role\": \"assistant\", \"content\": \"yes\"}],"
                " \"text\": {\"format\": {\"type\": \"json_schema\", \"name\": \"s\", "
                "\"schema\": {\"type\": \"object\"}}},"
                " \"tools\": [{\"type\": \"function\", \"name\": \"f\", \"parameters\": {}}], "
                "\"max_output_tokens\": 5}");
    strbuf text = {0};
    json_writer w = {.out = &text};
    value_json(&w, g.rq.messages, SIZE_MAX);
    ck_assert_str_eq(
        text.p,
        "[{\"role\":\"system\",\"content\":\"be kind\"},{\"role\":\"user\",\"content\":\"hi\"},"
        "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"a\",\"type\":"
        "\"function\",\"function\":{\"name\":\"f\","
        "\"arguments\":{}}},{\"id\":\"b\",\"type\":\"function\",\"function\":{\"name\":\"f\","
        "\"arguments\":\"bad\"}}]},"
        "{\"role\":\"tool\",\"content\":\"1\",\"tool_call_id\":\"a\"},"
        "{\"role\":\"assistant\",\"content\":\"yes\",\"reasoning_content\":\"hm\"}]");
    ck_assert(g.rq.format.kind == SERVE_FORMAT_SCHEMA && str_eqz(g.rq.format.name, "s") &&
              g.rq.max_tokens == 5);
    strbuf_free(&text);
    done(&g);
}
END_TEST

START_TEST(limits_hold)
{
    strbuf body = {0};
    strbuf_put(&body, STR("{\"prompt\": \"x\", \"user\": "));
    strbuf_fill(&body, '[', 1000);
    got g = read_body(SERVE_COMPLETION, strbuf_view(&body));
    ck_assert_int_eq(g.st, WEFT_ERR_LIMIT);
    done(&g);
    strbuf_reset(&body);
    strbuf_put(&body, STR("{\"prompt\": ["));
    for (int i = 0; i < SERVE_VALUES_MAX; i++)
        strbuf_put(&body, STR("1,"));
    strbuf_put(&body, STR("1]}"));
    g = read_body(SERVE_COMPLETION, strbuf_view(&body));
    ck_assert_int_eq(g.st, WEFT_ERR_LIMIT);
    done(&g);
    strbuf_fill(&body, ' ', 1 << 20);
    g = read_body(SERVE_COMPLETION, strbuf_view(&body));
    strbuf out = {0};
    ck_assert_int_eq(serve_error_write(g.dg, g.rq.fault_param, &out), 413);
    strbuf_free(&out);
    done(&g);
    strbuf_free(&body);
}
END_TEST

SUITE_MAIN("serve_request", what_is_wrong_is_named, every_field_is_looked_at,
           all_parameters_of_openai_have_a_row, what_asks_for_nothing_is_taken,
           a_chat_with_everything, prompts_come_in_four_forms, responses_become_messages,
           limits_hold)
