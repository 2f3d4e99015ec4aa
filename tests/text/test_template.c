/* test_template.c - the suite of runtime/text/chat.c: real templates on recorded chats, the built-in
 * ones, and finding the template of a model.
 *
 * A part of the recorded chats is in data/templates and always runs; the whole runs where the
 * folder ../shared of the project stands beside the source tree, else that test says that it was
 * skipped. */
#include "runtime/formats/json_read.h"
#include "runtime/text/chat.h"
#include "tests/base/suite.h"

static const struct tm noon = {.tm_year = 124,
                               .tm_mon = 6,
                               .tm_mday = 26,
                               .tm_hour = 12,
                               .tm_min = 30,
                               .tm_wday = 5,
                               .tm_yday = 207};

static const json_limits json = {
    .bytes_max = 1 << 20, .values_max = 1 << 16, .depth_max = 64, .exact = true};

/* ---- recorded chats ---- */

typedef struct {
    size_t n_case, n_failed;
} counts;

/* The case's tokens as variables, and over them its own. */
static weft_status render_case(weft_diag *dg, const char *folder, const value *v, strbuf *out)
{
    char path[512];
    str name = {0};
    chat_template *ct;
    bool generate = false;
    ck_assert(value_str(value_get(v, STR("template")), &name));
    ck_assert(value_bool(value_get(v, STR("add_generation_prompt")), &generate));
    snprintf(path, sizeof path, "%s/" STR_FMT, folder, STR_ARG(name));
    ck_assert_int_eq(chat_open_file(dg, NULL, path, &ct), WEFT_OK);
    chat_request rq = {.messages = value_get(v, STR("messages")),
                       .tools = value_get(v, STR("tools")),
                       .variables = v,
                       .overrides = value_get(v, STR("variables")),
                       .generate = generate,
                       .now = &noon};
    weft_status st = chat_render(dg, ct, &rq, out);
    chat_close(ct);
    return st;
}

static bool as_recorded(const value *v, weft_diag *dg, weft_status st, str got)
{
    str want = {0}, kind = {0};
    if (value_str(value_get(v, STR("expected")), &want))
        return st == WEFT_OK && str_eq(got, want);
    ck_assert(value_str(value_get(v, STR("error")), &want));
    ck_assert(value_str(value_get(v, STR("error_kind")), &kind));
    if (str_eqz(kind, "raise"))
        return st != WEFT_OK && diag_at(dg, 0).code == W1302 &&
               str_eq(diag_at(dg, 0).message, want);
    return st != WEFT_OK;
}

static void run_line(const char *folder, str line, counts *n)
{
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    strbuf out = {0};
    value v;
    ck_assert_int_eq(json_read(dg, a, "case", line, json, &v), WEFT_OK);
    weft_status st = render_case(dg, folder, &v, &out);
    n->n_case++;
    if (!as_recorded(&v, dg, st, strbuf_view(&out))) {
        n->n_failed++;
        printf("case %zu of %s gives " STR_FMT "\n", n->n_case, folder, STR_ARG(out));
    }
    strbuf_free(&out);
    arena_destroy(a);
    diag_destroy(dg);
}

static void run_folder(const char *folder, size_t n_least)
{
    char path[512];
    counts n = {0};
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    source *src;
    snprintf(path, sizeof path, "%s/expected.jsonl", folder);
    ck_assert_int_eq(source_open(dg, a, path, 16 << 20, &src), WEFT_OK);
    for (str rest = src->text; rest.n;) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t len = end ? (size_t)(end - rest.p) : rest.n;
        run_line(folder, (str){rest.p, len}, &n);
        rest = (str){rest.p + len + (end != NULL), rest.n - len - (end != NULL)};
    }
    ck_assert_msg(n.n_failed == 0 && n.n_case >= n_least, "%zu of %zu cases fail", n.n_failed,
                  n.n_case);
    arena_destroy(a);
    diag_destroy(dg);
}

START_TEST(a_part_of_the_recorded_chats)
{
    run_folder(WEFT_SOURCE_DIR "/tests/text/data/templates", 100);
}
END_TEST

START_TEST(all_recorded_chats)
{
    if (access(WEFT_SHARED "/chat-templates/expected.jsonl", R_OK) == 0)
        run_folder(WEFT_SHARED "/chat-templates", 360);
    else
        printf("skipped: all recorded chats, ../shared is not there\n");
}
END_TEST

/* ---- built-in templates ---- */

#define TURNS                                                                                      \
    {STR("system"), STR("Be brief.")}, {STR("user"), STR("Hi")}, {STR("assistant"), STR("Yo")},    \
        {STR("user"), STR("Bye")},

static const char *const builtin_texts[][2] = {
    {"chatml", "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
               "<|im_start|>assistant\nYo<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n"
               "<|im_start|>assistant\n"},
    {"gemma", "<s><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\nYo"
              "<end_of_turn>\n<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n"},
    {"llama2", "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi [/INST] Yo </s><s>[INST] Bye [/INST]"},
    {"llama3", "<s><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
               "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
               "<|start_header_id|>assistant<|end_header_id|>\n\nYo<|eot_id|>"
               "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>"
               "<|start_header_id|>assistant<|end_header_id|>\n\n"},
    {"mistral", "<s>[INST] Be brief.\n\nHi [/INST] Yo</s>[INST] Bye [/INST]"},
    {"phi3", "<|system|>\nBe brief.<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\nYo<|end|>\n"
             "<|user|>\nBye<|end|>\n<|assistant|>\n"},
};

static void check_text(const chat_template *ct, const chat_message *turns, size_t n,
                       const value *variables, const char *want)
{
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    strbuf out = {0};
    value messages = chat_messages(a, turns, n);
    chat_request rq = {
        .messages = &messages, .variables = variables, .generate = true, .now = &noon};
    weft_status st = chat_render(dg, ct, &rq, &out);
    if (st != WEFT_OK)
        diag_print(dg, stderr, false);
    ck_assert_int_eq(st, WEFT_OK);
    ck_assert_str_eq(out.p, want);
    strbuf_free(&out);
    arena_destroy(a);
    diag_destroy(dg);
}

START_TEST(built_in_templates_render)
{
    static const chat_message turns[] = {TURNS};
    value_member token[2] = {{STR("bos_token"), value_of_str(STR("<s>"))},
                             {STR("eos_token"), value_of_str(STR("</s>"))}};
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    value variables;
    size_t twice;
    ck_assert(value_of_members(a, token, 2, &variables, &twice));
    ck_assert_uint_eq(chat_builtin_count(), COUNT_OF(builtin_texts));
    for (size_t i = 0; i < COUNT_OF(builtin_texts); i++) {
        chat_template *ct;
        ck_assert_str_eq(chat_builtin_name(i), builtin_texts[i][0]);
        ck_assert_int_eq(chat_open(dg, NULL, builtin_texts[i][0], &ct), WEFT_OK);
        check_text(ct, turns, COUNT_OF(turns), &variables, builtin_texts[i][1]);
        chat_close(ct);
    }
    arena_destroy(a);
    diag_destroy(dg);
}
END_TEST

/* ---- the template of a model ---- */

static void folder_of(temp_dir *d, const char *config)
{
    *d = temp_dir_create();
    temp_file(d, "config.json", STR("{\"architectures\": [\"X\"]}"));
    temp_file(d, "model.safetensors", STR("\x02\0\0\0\0\0\0\0{}"));
    temp_file(d, "tokenizer_config.json", str_of(config));
}

static void folder_remove(const temp_dir *d)
{
    static const char *const files[] = {"config.json", "model.safetensors", "tokenizer_config.json",
                                        "chat_template.jinja"};
    for (size_t i = 0; i < COUNT_OF(files); i++)
        unlink(temp_join(d, files[i]).path);
    ck_assert_int_eq(rmdir(d->path), 0);
}

START_TEST(folders_have_their_template_in_a_file)
{
    static const chat_message hi[] = {{STR("user"), STR("Hi")}};
    temp_dir d;
    weft_diag *dg = diag_create();
    model_file *mf;
    chat_template *ct;
    folder_of(&d,
              "{\"bos_token\": {\"content\": \"<b>\"}, \"eos_token\": \"<e>\", \"chat_template\":"
              " \"{{ bos_token }}{{ messages[0].content }}{{ eos_token }}\"}");
    ck_assert_int_eq(model_file_open(dg, d.path, NULL, &mf), WEFT_OK);
    ck_assert_int_eq(chat_open(dg, mf, NULL, &ct), WEFT_OK);
    check_text(ct, hi, 1, NULL, "<b>Hi<e>");
    chat_close(ct);
    temp_file(&d, "chat_template.jinja", STR("file {{ bos_token }}\n"));
    ck_assert_int_eq(chat_open(dg, mf, NULL, &ct), WEFT_OK);
    check_text(ct, hi, 1, NULL, "file <b>");
    chat_close(ct);
    model_file_close(mf);
    folder_remove(&d);
    diag_destroy(dg);
}
END_TEST

START_TEST(a_template_for_tools_is_used_with_tools)
{
    temp_dir d;
    weft_diag *dg = diag_create();
    model_file *mf;
    chat_template *ct;
    strbuf out = {0};
    value none = value_of_array(VT_NULL, NULL, 0);
    folder_of(&d, "{\"chat_template\": [{\"name\": \"default\", \"template\": \"plain\"},"
                  " {\"name\": \"tool_use\", \"template\": \"tools {{ tools|length }}\"}]}");
    ck_assert_int_eq(model_file_open(dg, d.path, NULL, &mf), WEFT_OK);
    ck_assert_int_eq(chat_open(dg, mf, NULL, &ct), WEFT_OK);
    ck_assert_int_eq(chat_render(dg, ct, &(chat_request){.messages = &none}, &out), WEFT_OK);
    ck_assert_int_eq(chat_render(dg, ct, &(chat_request){.messages = &none, .tools = &none}, &out),
                     WEFT_OK);
    ck_assert_str_eq(out.p, "plaintools 0");
    strbuf_free(&out);
    chat_close(ct);
    model_file_close(mf);
    folder_remove(&d);
    diag_destroy(dg);
}
END_TEST

START_TEST(what_is_missing_is_said)
{
    temp_dir d;
    weft_diag *dg = diag_create();
    model_file *mf;
    chat_template *ct;
    folder_of(&d, "{}");
    ck_assert_int_eq(model_file_open(dg, d.path, NULL, &mf), WEFT_OK);
    ck_assert_int_eq(chat_open(dg, mf, NULL, &ct), WEFT_ERR_TEMPLATE);
    expect_one(dg, W1305, "has no chat template");
    diag_reset(dg);
    ck_assert_int_eq(chat_open(dg, mf, "nope", &ct), WEFT_ERR_FILE);
    expect_one(dg, W1001, "nope");
    diag_reset(dg);
    ck_assert_int_eq(chat_open(dg, mf, "chatml", &ct), WEFT_OK);
    value text = value_of_str(STR("hi"));
    strbuf out = {0};
    ck_assert_int_eq(chat_render(dg, ct, &(chat_request){.messages = &text}, &out),
                     WEFT_ERR_TEMPLATE);
    expect_one(dg, W1306, "messages are a list");
    diag_reset(dg);
    value list = value_of_array(VT_STR, &text.as.s, 1);
    ck_assert_int_eq(chat_render(dg, ct, &(chat_request){.messages = &list}, &out),
                     WEFT_ERR_TEMPLATE);
    expect_one(dg, W1306, "message 0 is not an object");
    chat_close(ct);
    model_file_close(mf);
    folder_remove(&d);
    diag_destroy(dg);
}
END_TEST

SUITE_MAIN("template", a_part_of_the_recorded_chats, all_recorded_chats, built_in_templates_render,
           folders_have_their_template_in_a_file, a_template_for_tools_is_used_with_tools,
           what_is_missing_is_said)
