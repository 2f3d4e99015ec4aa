/* talk_chat.c - messages into the ids that a chat model continues. */
#include "runtime/cli/talk.h"

#include "runtime/base/json_write.h"
#include "runtime/formats/json_read.h"
#include "runtime/text/chat.h"

#include <stdio.h>

weft_status talk_template(talk *t)
{
    WEFT_TRY(weft_template_open(t->c->dg, t->m, t->f->chat_template, &t->chat));
    cli_say_verbose(t->c, "chat template: %s", weft_template_origin(t->chat));
    if (!t->f->template_kwargs)
        return WEFT_OK;
    value v; /* read here only to name the flag where it is wrong */
    WEFT_TRY(json_read(t->c->dg, t->a, "--template-kwargs", str_of(t->f->template_kwargs),
                       JSON_LIMITS_CONFIG, &v));
    if (value_kind_of(&v) != VALUE_OBJECT)
        return weft_fail(t->c->dg, W1903, WEFT_NOWHERE, "--template-kwargs takes a JSON object");
    return WEFT_OK;
}

/* JSON cannot hold what is not UTF-8, so that is reported first. */
static weft_status check_text(talk *t, size_t i, str content)
{
    char what[40];
    snprintf(what, sizeof what, "message %zu", i);
    return chat_check_text(t->c->dg, what, content);
}

weft_status talk_render(talk *t, const talk_message *messages, size_t n, talk_answer *r)
{
    for (size_t i = 0; i < n; i++)
        WEFT_TRY(check_text(t, i, messages[i].content));
    strbuf json = {0};
    json_writer w = {.out = &json};
    json_open(&w, '[');
    for (size_t i = 0; i < n; i++) {
        json_open(&w, '{');
        json_key_str(&w, "role", messages[i].role);
        json_key_str(&w, "content", messages[i].content);
        json_close(&w, '}');
    }
    json_close(&w, ']');
    weft_chat chat = {.size = sizeof chat, .messages = json.p, .variables = t->f->template_kwargs};
    weft_status st = weft_template_encode(t->c->dg, t->chat, t->text, &chat, &r->ids, &r->n_prompt);
    strbuf_free(&json);
    return st;
}
