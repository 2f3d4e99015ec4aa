/* chat.h - messages to the text a model was trained to continue: the model's chat template, or one
 * of the built-in ones, rendered as transformers' apply_chat_template would.
 *
 *     chat_template *ct;
 *     WEFT_TRY(chat_open(dg, mf, NULL, &ct));
 *     value messages = chat_messages(a, turns, n_turn);
 *     WEFT_TRY(chat_render(dg, ct, &(chat_request){.messages = &messages, .generate = true}, &text));
 *     ...
 *     chat_close(ct);
 *
 * Templates come with models, from strangers: see jinja.h for what they can do (nothing but render)
 * and where they are stopped. A chat_template never changes; several threads may render it. */
#ifndef WEFT_RUNTIME_TEXT_CHAT_H
#define WEFT_RUNTIME_TEXT_CHAT_H

#include "runtime/formats/model_file.h"
#include "runtime/text/jinja.h"

typedef struct chat_template chat_template;

/* What `choice` says (--chat-template): a built-in name, or else the path of a file. With NULL it is
 * the model's own: tokenizer.chat_template of a GGUF; chat_template.jinja, tokenizer_config.json or
 * chat_template.json of a folder. mf may be NULL if there is a choice; it also says what bos_token,
 * eos_token and so on are. W1305 if there is no template, W1301 if it is not well formed. */
weft_status chat_open(weft_diag *dg, const model_file *mf, const char *choice,
                      chat_template **out_ct) WEFT_MUST_USE;
/* The template in a file, never a built-in one. */
weft_status chat_open_file(weft_diag *dg, const model_file *mf, const char *path,
                           chat_template **out_ct) WEFT_MUST_USE;
void chat_close(chat_template *ct); /* NULL is fine */

/* Where it came from, for people: "chatml (built in)", "model.gguf: tokenizer.chat_template". */
const char *chat_origin(const chat_template *ct);

size_t chat_builtin_count(void);
const char *chat_builtin_name(size_t i);

typedef struct {
    const value *messages;  /* an array of objects: role, content, ... */
    const value *tools;     /* NULL, an absent or null value: none */
    const value *documents; /* the same */
    const value
        *variables; /* an object of further ones, such as enable_thinking, or NULL; it wins */
    const value *overrides; /* the same, and wins over variables: --template-kwargs */
    bool generate;          /* add_generation_prompt: end where the model begins to speak */
    const struct tm *now;   /* what strftime_now gives; NULL: the local time */
} chat_request;

/* W1207 where text, which `what` names in the message, is not UTF-8; the byte and its place are in it. */
weft_status chat_check_text(weft_diag *dg, const char *what, str text) WEFT_MUST_USE;

/* Add the rendered text to out. Messages with a text that is not UTF-8 are W1207. A template that wants tools treated apart (tool_use) gets its way. */
weft_status chat_render(weft_diag *dg, const chat_template *ct, const chat_request *rq,
                        strbuf *out) WEFT_MUST_USE;

typedef struct {
    str role, content;
} chat_message;

/* Plain messages as a value; it lives in a and borrows the strings. */
value chat_messages(arena *a, const chat_message *messages, size_t n);

#endif
