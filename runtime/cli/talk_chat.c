/* talk_chat.c - messages into the ids that a chat model continues. */
#include "runtime/cli/talk.h"

#include "runtime/text/chat.h"

#include <stdio.h>

weft_status talk_template(talk *t)
{
    WEFT_TRY(weft_template_open(t->c->dg, t->m, t->f->chat_template, &t->chat));
    cli_say_verbose(t->c, "chat template: %s", weft_template_origin(t->chat));
    return t->kind->variables ? t->kind->variables(t) : WEFT_OK;
}

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
    chat_message *list = ARENA_ARRAY(t->a, chat_message, n + 1);
    for (size_t i = 0; i < n; i++)
        list[i] = (chat_message){messages[i].role, messages[i].content};
    value all = chat_messages(t->a, list, n);
    chat_request rq = {.messages = &all, .overrides = t->variables, .generate = true};
    strbuf text = {0};
    weft_status st = chat_render(t->c->dg, t->chat->chat, &rq, &text);
    /* The template writes the special tokens, so they are read and none is added. */
    if (st == WEFT_OK)
        st = weft_encode(t->c->dg, t->text, text.p ? text.p : "", text.n, WEFT_PARSE_SPECIAL,
                         &r->ids, &r->n_prompt);
    strbuf_free(&text);
    return st;
}
