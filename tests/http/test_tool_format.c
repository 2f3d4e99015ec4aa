/* test_tool_format.c - answers in every format, cut at every place: what comes out never depends on the cuts. */
#include "runtime/http/tool_format.h"
#include "tests/base/suite.h"

/* Events as text: T(..) R(..) C(name) A(..) E; parts of one kind that follow each other are joined. */
typedef struct {
    strbuf out;
    int last;
} record;

static void on_event(void *ctx, tool_event kind, str text)
{
    record *r = ctx;
    static const char letters[] = "TRCAE";
    if (r->last != (int)kind || kind == TOOL_CALL || kind == TOOL_CALL_END) {
        if (r->last >= 0)
            strbuf_putc(&r->out, ')');
        strbuf_add(&r->out, "%c(", letters[kind]);
    }
    r->last = (int)kind;
    strbuf_put(&r->out, text);
}

static const str names[] = {{"f", 1}, {"get_weather", 11}};

static void parse(const char *format, bool thinks, str text, size_t cut_a, size_t cut_b,
                  strbuf *out)
{
    record r = {.last = -1};
    tool_options o = {.calls = true, .thinks = thinks, .names = names, .n_name = 2};
    tool_parser *p = tool_parser_create(tool_format_find(format), &o, on_event, &r);
    tool_parser_put(p, (str){text.p, cut_a});
    tool_parser_put(p, (str){text.p + cut_a, cut_b - cut_a});
    tool_parser_put(p, (str){text.p + cut_b, text.n - cut_b});
    tool_parser_end(p);
    if (r.last >= 0)
        strbuf_putc(&r.out, ')');
    tool_parser_destroy(p);
    *out = r.out;
}

static const struct {
    const char *format, *text, *want;
} cases[] = {
    {"hermes", "Hello, world", "T(Hello, world)"},
    {"hermes", "  Hello", "T(  Hello)"},
    {"hermes", "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, \"}\"]}}\n</tool_call>",
     "C(f)A({\"a\": [1, \"}\"]})E()"},
    {"hermes",
     "Let me see.\n<tool_call>\n{\"name\": \"f\", \"arguments\": "
     "{}}\n</tool_call>\n<tool_call>\n{\"arguments\": {\"x\": "
     "\"\\\"\"}, \"name\": \"get_weather\"}\n</tool_call>",
     "T(Let me see.\n)C(f)A({})E()C(get_weather)A({\"x\": \"\\\"\"})E()"},
    {"hermes", "a < b <tool_cal", "T(a < b <tool_cal)"},
    {"hermes", "<tool_call>oops</tool_call>", "T(<tool_call>oops</tool_call>)"},
    {"hermes", "<tool_call>{\"nam", "T(<tool_call>{\"nam)"},
    {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1", "C(f)A({\"a\": 1)E()"},
    {"hermes", "<tool_call>{\"name\": \"f\"}</tool_call>", "C(f)A({})E()"},
    {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": null}</tool_call>done",
     "C(f)A({})E()T(done)"},
    {"hermes",
     "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": "
     "\\\"\\u00e9\\ud83d\\ude00\\\"}\"}</tool_call>",
     "C(f)A({\"a\": \"\xc3\xa9\xf0\x9f\x98\x80\"})E()"},
    {"hermes", "<think>\nhm, <tool_call>\n</think>\n\nYes", "R(hm, <tool_call>\n)T(Yes)"},
    {"hermes", "<think>never ends", "R(never ends)"},
    {"hermes", "{\"name\": \"f\", \"arguments\": {}}", "T({\"name\": \"f\", \"arguments\": {}})"},
    {"none", "{\"name\": \"f\", \"arguments\": {}}", "C(f)A({})E()"},
    {"llama3", "{\"name\": \"f\", \"parameters\": {\"a\": 1}}", "C(f)A({\"a\": 1})E()"},
    {"llama3",
     "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"get_weather\", "
     "\"parameters\": {}}",
     "C(f)A({})E()C(get_weather)A({})E()"},
    {"llama3", "{\"type\": \"function\", \"name\": \"f\", \"parameters\": {}}", "C(f)A({})E()"},
    {"llama3", "{\"answer\": 42}", "T({\"answer\": 42})"},
    {"llama3", "{\"name\": \"Bob\", \"age\": 3}", "T({\"name\": \"Bob\", \"age\": 3})"},
    {"llama3", "text {\"name\": \"f\"}", "T(text {\"name\": \"f\"})"},
    {"llama3", "<|python_tag|>print(1)", "T(<|python_tag|>print(1))"},
    {"mistral",
     "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": 1}}, {\"name\": \"get_weather\", "
     "\"arguments\": {}}]",
     "C(f)A({\"a\": 1})E()C(get_weather)A({})E()"},
    {"mistral", "[TOOL_CALLS]f[ARGS]{\"a\": {\"b\": 2}}[TOOL_CALLS]get_weather[CALL_ID]abc[ARGS]{}",
     "C(f)A({\"a\": {\"b\": 2}})E()C(get_weather)A({})E()"},
    {"mistral", "[TOOL_CALLS]f{\"a\": 1}", "C(f)A({\"a\": 1})E()"},
    {"mistral", "[TOOL]", "T([TOOL])"},
    {"mistral", "[TOOL_CALLS] [1]", "T([TOOL_CALLS] [1])"},
    {"phi", "<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]<|/tool_call|>",
     "C(f)A({\"a\": 1})E()"},
    {"phi", "<|tool_call|>[{\"name\": \"f\", \"arguments\": {}}]<|/tool_call|> so",
     "C(f)A({})E()T(so)"},
    {"functools", "functools[{\"name\": \"f\", \"arguments\": {}}]", "C(f)A({})E()"},
    {"functools", "functional", "T(functional)"},
    {"harmony",
     "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes",
     "R(Hm.)T(Yes)"},
    {"harmony",
     "<|channel|>analysis<|message|>a < b<|end|><|start|>assistant<|channel|>commentary "
     "to=functions.f "
     "<|constrain|>json<|message|>{\"a\":1}<|call|>",
     "R(a < b)C(f)A({\"a\":1})E()"},
    {"harmony", "<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{}",
     "C(f)A({})E()"},
    {"harmony", "plain", "T(plain)"},
    {"harmony", "<|channel|>commentary<|message|>I will look.<|end|>", "T(I will look.)"},
};

START_TEST(every_cut_gives_the_same)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        str text = str_of(cases[i].text);
        for (size_t a = 0; a <= text.n; a++)
            for (size_t b = a; b <= text.n; b += a % 7 == 0 ? 1 : 5) {
                strbuf out = {0};
                parse(cases[i].format, false, text, a, b, &out);
                ck_assert_msg(str_eqz(strbuf_view(&out), cases[i].want),
                              "%s, cut at %zu and %zu: %s\n  gives %s\n  not   %s", cases[i].format,
                              a, b, cases[i].text, out.p ? out.p : "", cases[i].want);
                strbuf_free(&out);
            }
    }
}
END_TEST

/* Whatever comes, a parser that looks for no calls, or finds none, gives back every byte but blanks beside what it took apart. */
START_TEST(text_without_calls_is_kept)
{
    static const char bytes[] = "<>tool_cal/{}[]\"name:|TOOLCALLS \n\\think";
    uint32_t x = 1;
    for (int round = 0; round < 3000; round++) {
        char text[64];
        size_t n = 1 + round % 60;
        for (size_t i = 0; i < n; i++) {
            x = x * 1664525u + 1013904223u;
            text[i] = bytes[(x >> 16) % (sizeof bytes - 1)];
        }
        for (size_t f = 1; tool_format_at(f);
             f++) { /* all but harmony, whose headers are dropped */
            strbuf out = {0}, want = {0};
            parse(tool_format_at(f)->name, false, (str){text, n}, n / 3, n / 2, &out);
            strbuf_put(&want, STR("T("));
            strbuf_put(&want, (str){text, n});
            strbuf_putc(&want, ')');
            ck_assert_msg(str_eq(strbuf_view(&out), strbuf_view(&want)), "%s: %s not %s",
                          tool_format_at(f)->name, out.p, want.p);
            strbuf_free(&out);
            strbuf_free(&want);
        }
    }
}
END_TEST

START_TEST(a_prompt_may_end_inside_of_think)
{
    strbuf out = {0};
    parse("hermes", true, STR("hm</think>\nYes"), 3, 5, &out);
    ck_assert_str_eq(out.p, "R(hm)T(Yes)");
    strbuf_free(&out);
}
END_TEST

START_TEST(formats_are_found_by_their_signs)
{
    ck_assert_str_eq(tool_format_detect(STR("..<tool_call>.."))->name, "hermes");
    ck_assert_str_eq(tool_format_detect(STR("..[TOOL_CALLS].."))->name, "mistral");
    ck_assert_str_eq(tool_format_detect(STR("<|channel|>"))->name, "harmony");
    ck_assert_str_eq(tool_format_detect(STR("<|python_tag|>"))->name, "llama3");
    ck_assert_str_eq(tool_format_detect(STR("nothing"))->name, "none");
    ck_assert_ptr_null(tool_format_find("nosuch"));
}
END_TEST

SUITE_MAIN("tool_format", every_cut_gives_the_same, text_without_calls_is_kept,
           a_prompt_may_end_inside_of_think, formats_are_found_by_their_signs)
