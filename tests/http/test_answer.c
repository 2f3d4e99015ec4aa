/* test_answer.c - events in, bodies and streams out, as text that a client reads. */
#include "runtime/formats/json_read.h"
#include "runtime/http/answer.h"
#include "tests/base/suite.h"

static str token_text(void *ctx, int32_t id)
{
    static const char *const texts[] = {"Hi", "\xc3", "!"};
    (void)ctx;
    return str_of(texts[id % 3]);
}

typedef struct {
    weft_diag *dg;
    arena *a;
    serve_request rq;
    answer *an;
    strbuf out;
} setup;

static setup begin(serve_kind kind)
{
    return (setup){.dg = diag_create(), .a = arena_create(), .rq.kind = kind};
}

/* s must stay where it is: the answer points into it. */
static void start(setup *s, const char *body, const char *format)
{
    serve_rules rules = {.model = "m", .sampler = serve_sampler_defaults(), .body_max = 1 << 20};
    ck_assert_int_eq(serve_request_read(s->dg, s->a, s->rq.kind, str_of(body), &rules, &s->rq),
                     WEFT_OK);
    answer_facts f = {.id = 0xabc,
                      .created = 7,
                      .model = "m",
                      .tools = format ? tool_format_find(format) : NULL,
                      .token_text = token_text};
    s->an = answer_create(&s->rq, &f);
}

static void put(setup *s, size_t choice, const char *text)
{
    answer_put(
        s->an,
        &(answer_event){.choice = choice, .token = 0, .text = str_of(text), .logprob = -0.5f},
        &s->out);
}

static void end(setup *s, size_t choice, answer_end_kind kind)
{
    answer_put(s->an,
               &(answer_event){.choice = choice,
                               .token = -1,
                               .end = kind,
                               .code = W1410,
                               .why = STR("broken"),
                               .n_prompt = 5,
                               .n_cached = 2,
                               .n_generated = 3},
               &s->out);
}

static void finish(setup *s)
{
    answer_destroy(s->an);
    strbuf_free(&s->out);
    diag_destroy(s->dg);
    arena_destroy(s->a);
}

#define CHAT "\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]"
#define TOOLS "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]"

START_TEST(a_chat_as_one_body)
{
    setup s = begin(SERVE_CHAT);
    start(&s, "{" CHAT ", \"n\": 2}", "hermes");
    put(&s, 0, "Hi \"you\"");
    put(&s, 1, "<think>hm</think>Yes");
    end(&s, 1, ANSWER_LENGTH);
    ck_assert(!answer_complete(s.an));
    end(&s, 0, ANSWER_STOP);
    ck_assert(answer_complete(s.an));
    ck_assert_uint_eq(s.out.n, 0);
    ck_assert_int_eq(answer_end(s.an, &s.out), 200);
    ck_assert_str_eq(s.out.p, "{\"id\":\"chatcmpl-0000000000000abc\",\"object\":\"chat."
                              "completion\",\"created\":7,\"model\":\"m\",\"choices\":["
                              "{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"Hi "
                              "\\\"you\\\"\",\"refusal\":null},\"logprobs\":null,"
                              "\"finish_reason\":\"stop\"},{\"index\":1,\"message\":{\"role\":"
                              "\"assistant\",\"content\":\"Yes\",\"refusal\":null,"
                              "\"reasoning_content\":\"hm\"},\"logprobs\":null,\"finish_reason\":"
                              "\"length\"}],\"usage\":{\"prompt_tokens\":5,"
                              "\"completion_tokens\":6,\"total_tokens\":11,\"prompt_tokens_"
                              "details\":{\"cached_tokens\":2}}}");
    finish(&s);
}
END_TEST

START_TEST(a_chat_as_a_stream)
{
    setup s = begin(SERVE_CHAT);
    start(&s, "{" CHAT ", \"stream\": true, \"stream_options\": {\"include_usage\": true}}",
          "hermes");
    put(&s, 0, "Hi");
    end(&s, 0, ANSWER_STOP);
    ck_assert_int_eq(answer_end(s.an, &s.out), 200);
#define HEAD                                                                                       \
    "data: "                                                                                       \
    "{\"id\":\"chatcmpl-0000000000000abc\",\"object\":\"chat.completion.chunk\",\"created\":7,"    \
    "\"model\":\"m\","
#define ONE(delta, reason)                                                                         \
    HEAD "\"choices\":[{\"index\":0,\"delta\":{" delta                                             \
         "},\"logprobs\":null,\"finish_reason\":" reason "}],\"usage\":null}\n\n"
    ck_assert_str_eq(
        s.out.p, ONE("\"role\":\"assistant\",\"content\":\"\"", "null")
                     ONE("\"content\":\"Hi\"", "null") ONE("", "\"stop\"") HEAD
        "\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":3,\"total_tokens\":8,"
        "\"prompt_tokens_details\":{\"cached_tokens\":2}}}\n\ndata: [DONE]\n\n");
    finish(&s);
}
END_TEST

START_TEST(calls_stream_and_stop_at_one)
{
    setup s = begin(SERVE_CHAT);
    start(&s, "{" CHAT ", " TOOLS ", \"stream\": true, \"parallel_tool_calls\": false}", "hermes");
    put(&s, 0, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\"");
    put(&s, 0, ": 1}}");
    ck_assert(answer_has_call(s.an, 0));
    put(&s, 0, "</tool_call><tool_call>{\"name\": \"f\"}</tool_call>");
    end(&s, 0, ANSWER_STOP);
    (void)answer_end(s.an, &s.out);
    ck_assert_ptr_nonnull(strstr(
        s.out.p,
        "\"tool_calls\":[{\"index\":0,\"id\":\"call_0000000000000abc0000\",\"type\":\"function\","
        "\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]"));
    ck_assert_ptr_nonnull(strstr(
        s.out.p, "\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"a\\\"\"}}]"));
    ck_assert_ptr_nonnull(strstr(s.out.p, "\"finish_reason\":\"tool_calls\""));
    ck_assert_ptr_null(strstr(s.out.p, "\"index\":1"));
    finish(&s);
}
END_TEST

/* What is cancelled behind the only call that was wanted is no failure. */
START_TEST(an_answer_ends_with_its_only_call)
{
    for (int stream = 0; stream < 2; stream++) {
        setup s = begin(SERVE_CHAT);
        strbuf body = {0};
        strbuf_add(&body, "{" CHAT ", " TOOLS ", \"stream\": %s, \"parallel_tool_calls\": false}",
                   stream ? "true" : "false");
        start(&s, body.p, "hermes");
        put(&s, 0, "<tool_call>{\"name\": \"f\", \"arguments\": {}}");
        end(&s, 0, ANSWER_FAILED);
        ck_assert_int_eq(answer_end(s.an, &s.out), 200);
        ck_assert_ptr_nonnull(strstr(s.out.p, "\"finish_reason\":\"tool_calls\""));
        ck_assert_ptr_null(strstr(s.out.p, "\"error\""));
        strbuf_free(&body);
        finish(&s);
    }
}
END_TEST

/* Beside a response_format a call is the bare object, and an object of another shape is the text. */
START_TEST(calls_beside_a_format_are_calls)
{
    static const struct {
        const char *says, *want;
    } t[] = {
        {"{\"name\": \"f\", \"arguments\": {\"a\": 1}}", "\"finish_reason\":\"tool_calls\""},
        {"{\"age\": 3}", "\"content\":\"{\\\"age\\\": 3}\""},
    };
    for (size_t i = 0; i < COUNT_OF(t); i++) {
        setup s = begin(SERVE_CHAT);
        start(
            &s,
            "{" CHAT ", " TOOLS
            ", \"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"name\": \"p\", "
            "\"schema\": {\"type\": \"object\"}}}}",
            "none");
        put(&s, 0, t[i].says);
        end(&s, 0, ANSWER_STOP);
        ck_assert_int_eq(answer_end(s.an, &s.out), 200);
        ck_assert_msg(strstr(s.out.p, t[i].want), "%s", s.out.p);
        finish(&s);
    }
}
END_TEST

/* Deltas have those of their tokens, and the end has all of them. */
START_TEST(responses_keep_logprobs)
{
    setup s = begin(SERVE_RESPONSE);
    start(&s,
          "{\"input\": \"x\", \"stream\": true, \"include\": [\"message.output_text.logprobs\"]}",
          "hermes");
    put(&s, 0, "Hi");
    put(&s, 0, " you");
    end(&s, 0, ANSWER_STOP);
    (void)answer_end(s.an, &s.out);
    size_t n = 0;
    for (const char *p = s.out.p; (p = strstr(p, "\"logprob\":")); p++)
        n++;
    ck_assert_uint_eq(n, 1 + 1 + 4 * 2); /* two deltas; text, part, item and response, done */
    finish(&s);
}
END_TEST

START_TEST(reasoning_is_counted)
{
    setup s = begin(SERVE_CHAT);
    start(&s, "{" CHAT "}", "hermes");
    put(&s, 0, "<think>");
    put(&s, 0, "one");
    put(&s, 0, " two");
    put(&s, 0, "</think>");
    put(&s, 0, "Yes");
    end(&s, 0, ANSWER_STOP);
    ck_assert_int_eq(answer_end(s.an, &s.out), 200);
    ck_assert_ptr_nonnull(strstr(s.out.p, "\"reasoning_content\":\"one two\""));
    ck_assert_ptr_nonnull(strstr(s.out.p, "\"reasoning_tokens\":3")); /* with the closing mark */
    finish(&s);
}
END_TEST

START_TEST(logprobs_have_bytes)
{
    setup s = begin(SERVE_CHAT);
    start(&s, "{" CHAT ", \"logprobs\": true, \"top_logprobs\": 1}", NULL);
    token_logprob top[] = {{1, -0.25f}, {2, -3}};
    answer_put(
        s.an,
        &(answer_event){.token = 0, .text = STR("Hi"), .logprob = -0.5f, .top = top, .n_top = 2},
        &s.out);
    end(&s, 0, ANSWER_STOP);
    (void)answer_end(s.an, &s.out);
    ck_assert_ptr_nonnull(strstr(
        s.out.p,
        "\"logprobs\":{\"content\":[{\"token\":\"Hi\",\"logprob\":-0.5,\"bytes\":[72,105],\"top_"
        "logprobs\":["
        "{\"token\":\"\xef\xbf\xbd\",\"logprob\":-0.25,\"bytes\":[195]}]}],\"refusal\":null}"));
    finish(&s);
}
END_TEST

START_TEST(completions_echo_and_count)
{
    setup s = begin(SERVE_COMPLETION);
    start(&s, "{\"prompt\": [\"a\", \"b\"], \"echo\": true}", NULL);
    answer_echo(s.an, 0, STR("a"), &s.out);
    answer_echo(s.an, 1, STR("b"), &s.out);
    put(&s, 1, "2");
    put(&s, 0, "1");
    end(&s, 0, ANSWER_STOP);
    end(&s, 1, ANSWER_LENGTH);
    ck_assert_int_eq(answer_end(s.an, &s.out), 200);
    ck_assert_str_eq(s.out.p,
                     "{\"id\":\"cmpl-0000000000000abc\",\"object\":\"text_completion\",\"created\":"
                     "7,\"model\":\"m\",\"choices\":["
                     "{\"index\":0,\"text\":\"a1\",\"logprobs\":null,\"finish_reason\":\"stop\"},"
                     "{\"index\":1,\"text\":\"b2\",\"logprobs\":null,\"finish_reason\":\"length\"}]"
                     ",\"usage\":{\"prompt_tokens\":10,"
                     "\"completion_tokens\":6,\"total_tokens\":16,\"prompt_tokens_details\":{"
                     "\"cached_tokens\":4}}}");
    finish(&s);
}
END_TEST

START_TEST(a_failure_is_an_error_or_an_event)
{
    setup s = begin(SERVE_CHAT);
    start(&s, "{" CHAT "}", NULL);
    put(&s, 0, "Hi");
    end(&s, 0, ANSWER_FAILED);
    ck_assert_int_eq(answer_end(s.an, &s.out), 500);
    ck_assert_ptr_nonnull(strstr(s.out.p, "{\"error\":{\"message\":"));
    finish(&s);
    s = begin(SERVE_CHAT);
    start(&s, "{" CHAT ", \"stream\": true}", NULL);
    put(&s, 0, "Hi");
    end(&s, 0, ANSWER_FAILED);
    (void)answer_end(s.an, &s.out);
    ck_assert_ptr_nonnull(strstr(s.out.p, "data: {\"error\":{\"message\":"));
    ck_assert(str_ends(strbuf_view(&s.out), STR("data: [DONE]\n\n")));
    finish(&s);
}
END_TEST

/* Every event of a stream is one line of JSON, and their numbers follow each other. */
START_TEST(responses_stream_their_items)
{
    static const char *const want[] = {"response.created",
                                       "response.in_progress",
                                       "response.output_item.added",
                                       "response.content_part.added",
                                       "response.reasoning_text.delta",
                                       "response.reasoning_text.done",
                                       "response.content_part.done",
                                       "response.output_item.done",
                                       "response.output_item.added",
                                       "response.content_part.added",
                                       "response.output_text.delta",
                                       "response.output_text.delta",
                                       "response.output_text.done",
                                       "response.content_part.done",
                                       "response.output_item.done",
                                       "response.output_item.added",
                                       "response.function_call_arguments.delta",
                                       "response.function_call_arguments.done",
                                       "response.output_item.done",
                                       "response.completed"};
    setup s = begin(SERVE_RESPONSE);
    start(&s,
          "{\"input\": \"x\", \"stream\": true, \"tools\": [{\"type\": \"function\", \"name\": "
          "\"f\"}]}",
          "hermes");
    put(&s, 0, "<think>hm</think>");
    put(&s, 0, "Hi");
    put(&s, 0, " you");
    put(&s, 0, "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>");
    end(&s, 0, ANSWER_STOP);
    (void)answer_end(s.an, &s.out);
    const char *at = s.out.p;
    for (size_t i = 0; i < COUNT_OF(want); i++) {
        value v;
        str type;
        int64_t number;
        ck_assert_msg(at && strncmp(at, "event: ", 7) == 0, "event %zu of %s", i, s.out.p);
        const char *data = strstr(at, "\ndata: ") + 7, *nl = strchr(data, '\n');
        ck_assert_int_eq(
            json_read(s.dg, s.a, "event", (str){data, (size_t)(nl - data)}, JSON_LIMITS_CONFIG, &v),
            WEFT_OK);
        ck_assert(value_str(value_get(&v, STR("type")), &type) &&
                  value_int(value_get(&v, STR("sequence_number")), &number));
        ck_assert_msg(str_eqz(type, want[i]), "%zu: %.*s, not %s", i, STR_ARG(type), want[i]);
        ck_assert_int_eq((int)number, (int)i);
        at = nl + 2;
    }
    ck_assert_int_eq(*at, 0);
    finish(&s);
}
END_TEST

START_TEST(small_answers)
{
    const float row[] = {1, -2};
    serve_rules rules = {.model = "m", .adapters = (const char *const[]){"p"}, .n_adapter = 1};
    for (int plain = 0; plain < 2; plain++) {
        setup s = begin(SERVE_EMBEDDING);
        start(&s,
              plain ? "{\"input\": [\"x\", \"y\"], \"dimensions\": 1}"
                    : "{\"input\": \"x\", \"encoding_format\": \"base64\"}",
              NULL);
        for (int i = 0; i <= plain; i++)
            answer_put(s.an,
                       &(answer_event){.choice = (size_t)i,
                                       .token = -1,
                                       .end = ANSWER_STOP,
                                       .vector = row,
                                       .n_vector = 2,
                                       .n_prompt = 4},
                       &s.out);
        ck_assert_int_eq(answer_end(s.an, &s.out), 200);
        ck_assert_msg(strstr(s.out.p, plain
                                          ? "{\"object\":\"embedding\",\"index\":1,\"embedding\":[1"
                                          : "\"embedding\":\"AACAPwAAAMA=\"}") != NULL,
                      "%s", s.out.p);
        ck_assert_ptr_nonnull(
            strstr(s.out.p, plain ? "\"prompt_tokens\":8" : "\"prompt_tokens\":4"));
        finish(&s);
    }
    strbuf out = {0};
    answer_models(&rules, 7, 512, &out);
    ck_assert_ptr_nonnull(strstr(out.p, "\"id\":\"m:p\""));
    strbuf_free(&out);
}
END_TEST

SUITE_MAIN("answer", a_chat_as_one_body, a_chat_as_a_stream, calls_stream_and_stop_at_one,
           an_answer_ends_with_its_only_call, calls_beside_a_format_are_calls,
           responses_keep_logprobs, reasoning_is_counted, logprobs_have_bytes,
           completions_echo_and_count, a_failure_is_an_error_or_an_event,
           responses_stream_their_items, small_answers)
