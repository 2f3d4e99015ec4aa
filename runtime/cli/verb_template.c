/* verb_template.c - `weft template`: the text that messages become before a model sees them. */
#include "runtime/base/json_write.h"
#include "runtime/cli/cli.h"
#include "runtime/cli/inputs.h"
#include "runtime/formats/json_read.h"
#include "runtime/text/chat.h"

typedef struct {
    const char *model, *file, *chat_template, *messages, *kwargs, *now;
    bool generate;
} template_options;

/* clang-format off */
static const flag template_flags[] = {
    FLAG_ROW_STR   (template_options, model,    "model",    "m",  "MODEL", NULL, "take the template of this checkpoint"),
    FLAG_ROW_STR   (template_options, file,     "template", NULL, "FILE",  NULL, "take the template in this file"),
    FLAG_ROW_STR   (template_options, chat_template, "chat-template", NULL, "NAME", NULL, "take a built-in template, or the one in a file, in place of the model's"),
    FLAG_ROW_STR   (template_options, messages, "messages", NULL, "FILE",  NULL, "the messages, as JSON; - is standard input"),
    FLAG_ROW_SWITCH(template_options, generate, "generation-prompt", NULL, "on", "end where the model begins to speak"),
    FLAG_ROW_STR   (template_options, kwargs,   "template-kwargs", NULL, "JSON", NULL, "further variables, such as {\"enable_thinking\": false}"),
    FLAG_ROW_STR   (template_options, now,      "now",      NULL, "TIME",  NULL, "what strftime_now gives: \"2024-07-26 12:30:00\""),
    FLAG_ROW_END   (template_options),
};

static const char *const examples[] = {
    "weft template -m model.gguf --messages chat.json",           "what `weft chat` gives the model",
    "weft template --template t.jinja --messages chat.json",      "try a template that no model has yet",
    "weft template --chat-template chatml --messages chat.json",  "one of the built-in formats",
    NULL,
};
/* clang-format on */

const verb_page template_verb_page = {
    template_flags,
    "Prints the rendered text and nothing else, not even a line end. The messages are a JSON list "
    "of objects with role and content, or an object with such a list as `messages`, and beside it "
    "`tools`, `documents`, `bos_token`, `eos_token` and whatever else the template knows. What a "
    "template refuses with raise_exception is an error with its own words.",
    examples,
};

/* A chat of a few thousand turns; a number or string each. */
#define MESSAGES_LIMITS                                                                            \
    ((json_limits){                                                                                \
        .bytes_max = (size_t)64 << 20, .values_max = 1 << 20, .depth_max = 200, .exact = true})

static weft_status usage(cli *c, const char *what)
{
    return weft_fail(c->dg, W1904, WEFT_NOWHERE, "%s", what);
}

static weft_status read_now(cli *c, const char *text, struct tm *out)
{
    struct tm t = {0}, check;
    char rest;
    int n = sscanf(text, "%4d-%2d-%2d%*1[ T]%2d:%2d:%2d%c", &t.tm_year, &t.tm_mon, &t.tm_mday,
                   &t.tm_hour, &t.tm_min, &t.tm_sec, &rest);
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    check = t;
    timegm(&check); /* finds the weekday; a date that is none comes out as another */
    if (n != 6 || check.tm_mday != t.tm_mday || check.tm_mon != t.tm_mon ||
        check.tm_hour != t.tm_hour || check.tm_min != t.tm_min || check.tm_sec != t.tm_sec)
        return weft_fail(c->dg, W1903, WEFT_NOWHERE,
                         "--now takes a time like \"2024-07-26 12:30:00\", not \"%s\"", text);
    *out = check;
    return WEFT_OK;
}

static weft_status read_json(cli *c, arena *a, const char *operand, value *out_v)
{
    source *src;
    if (!input_is_stdin(operand))
        return json_read_file(c->dg, a, operand, MESSAGES_LIMITS, out_v);
    WEFT_TRY(source_read_stdin(c->dg, a, MESSAGES_LIMITS.bytes_max, &src));
    return json_read(c->dg, a, src->name, src->text, MESSAGES_LIMITS, out_v);
}

/* The request in a file: a list of messages, or an object whose other members are variables. */
static weft_status read_request(cli *c, arena *a, const template_options *o, chat_request *rq)
{
    value *all = ARENA_NEW(a, value), *kwargs = ARENA_NEW(a, value);
    bool generate;
    WEFT_TRY(read_json(c, a, o->messages, all));
    rq->generate = o->generate;
    if (value_kind_of(all) == VALUE_OBJECT) {
        rq->messages = value_get(all, STR("messages"));
        rq->tools = value_get(all, STR("tools"));
        rq->documents = value_get(all, STR("documents"));
        rq->variables = all;
        if (!rq->messages)
            return weft_fail(c->dg, W1306, WEFT_NOWHERE, "%s: has no `messages`",
                             input_name(o->messages));
        if (value_bool(value_get(all, STR("add_generation_prompt")), &generate))
            rq->generate = rq->generate && generate;
    } else {
        rq->messages = all;
    }
    if (o->kwargs) {
        WEFT_TRY(
            json_read(c->dg, a, "--template-kwargs", str_of(o->kwargs), MESSAGES_LIMITS, kwargs));
        if (value_kind_of(kwargs) != VALUE_OBJECT)
            return weft_fail(c->dg, W1903, WEFT_NOWHERE, "--template-kwargs takes a JSON object");
        rq->overrides = kwargs;
    }
    return WEFT_OK;
}

static void print_result(cli *c, str text)
{
    if (!c->common.json) {
        cli_print(c, text);
        return;
    }
    strbuf out = {0};
    json_writer w = {.out = &out};
    json_open(&w, '{');
    json_key_str(&w, "text", text);
    json_close(&w, '}');
    strbuf_putc(&out, '\n');
    cli_print_all(c, &out);
}

static weft_status render(cli *c, arena *a, const template_options *o, const model_file *mf,
                          chat_template **ct)
{
    chat_request rq = {0};
    struct tm now;
    strbuf text = {0};
    if (o->now) {
        WEFT_TRY(read_now(c, o->now, &now));
        rq.now = &now;
    }
    WEFT_TRY(read_request(c, a, o, &rq));
    if (o->file)
        WEFT_TRY(chat_open_file(c->dg, mf, o->file, ct));
    else
        WEFT_TRY(chat_open(c->dg, mf, o->chat_template, ct));
    cli_say_verbose(c, "template: %s", chat_origin(*ct));
    weft_status st = chat_render(c->dg, *ct, &rq, &text);
    if (st == WEFT_OK)
        print_result(c, strbuf_view(&text));
    strbuf_free(&text);
    return st;
}

int verb_template(cli *c)
{
    const template_options *o = c->options;
    chat_template *ct = NULL;
    model_file *mf = NULL;
    arena *a = arena_create();
    weft_status st = WEFT_OK;
    if (!o->messages)
        st = usage(c, "template needs messages: --messages FILE");
    else if (!o->model && !o->file && !o->chat_template)
        st = usage(c, "template needs -m MODEL, --template FILE or --chat-template NAME");
    else if (o->file && o->chat_template)
        st = usage(c, "--template and --chat-template both name a template");
    if (st == WEFT_OK && o->model)
        st = model_file_open(c->dg, o->model, NULL, &mf);
    if (st == WEFT_OK)
        st = render(c, a, o, mf, &ct);
    c->common.json = false; /* messages go to stderr */
    cli_report(c, c->dg);   /* while the template it quotes is there */
    chat_close(ct);
    model_file_close(mf);
    arena_destroy(a);
    return cli_exit_of(st);
}
