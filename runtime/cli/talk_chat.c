/* talk_chat.c - messages into the text that a chat model continues. */
#include "runtime/cli/talk.h"

#include "runtime/formats/json_read.h"
#include "runtime/text/chat.h"

weft_status talk_template(talk *t)
{
    WEFT_TRY(chat_open(t->c->dg, api_model_file(t->m), t->f->chat_template, &t->chat));
    cli_say_verbose(t->c, "chat template: %s", chat_origin(t->chat));
    if (!t->f->template_kwargs)
        return WEFT_OK;
    str text = str_of(t->f->template_kwargs);
    value *v = ARENA_NEW(t->a, value);
    WEFT_TRY(json_read(t->c->dg, t->a, "--template-kwargs", text, JSON_LIMITS_CONFIG, v));
    if (value_kind_of(v) != VALUE_OBJECT)
        return weft_fail(t->c->dg, W1903, WEFT_NOWHERE, "--template-kwargs takes a JSON object");
    t->kwargs = v;
    return WEFT_OK;
}

weft_status talk_render(talk *t, const chat_message *messages, size_t n, strbuf *out)
{
    value list = chat_messages(t->a, messages, n);
    chat_request rq = {.messages = &list, .overrides = t->kwargs, .generate = true};
    return chat_render(t->c->dg, t->chat, &rq, out);
}
