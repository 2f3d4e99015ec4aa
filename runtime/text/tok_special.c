/* tok_special.c - tokens with a meaning of their own: where a text begins, what ends one. */
#include "runtime/text/tok_impl.h"

/* As tokenizer_config.json and chat templates call them. */
static const char *const named_rows[TOK_NAMED_COUNT] = {"bos_token", "eos_token", "pad_token",
                                                        "unk_token"};
enum { NAMED_BOS, NAMED_EOS };

static int named_row(const char *name)
{
    for (int i = 0; i < TOK_NAMED_COUNT; i++)
        if (strcmp(name, named_rows[i]) == 0)
            return i;
    return -1;
}

void tok_named_set(tok *t, const char *name, int32_t id)
{
    int row = named_row(name);
    if (row >= 0 && vocab_at(&t->vocab, id))
        t->named[row] = id;
}

str tok_named_text(const tok *t, const char *name)
{
    int row = named_row(name);
    return row < 0 ? STR("") : tok_text(t, t->named[row]);
}

int32_t tok_bos(const tok *t)
{
    return t->named[NAMED_BOS];
}

int32_t tok_eos(const tok *t)
{
    return t->named[NAMED_EOS];
}

bool tok_adds_bos(const tok *t)
{
    return t->before.n > 0 && t->before.at[0] == tok_bos(t);
}

const int32_t *tok_ends(const tok *t, size_t *out_n)
{
    *out_n = t->ends.n;
    return t->ends.at;
}

bool tok_is_end(const tok *t, int32_t id)
{
    for (size_t i = 0; i < t->ends.n; i++)
        if (t->ends.at[i] == id)
            return true;
    return false;
}

void tok_ends_add(tok *t, int32_t id)
{
    if (vocab_at(&t->vocab, id) && !tok_is_end(t, id))
        VEC_PUSH(&t->ends, id);
}

/* Files often name one end where the model was trained with several. These texts mean nothing else
 * wherever they are special tokens. */
void tok_ends_from_names(tok *t)
{
    static const char *const names[] = {
        "<|eot_id|>",    "<|eom_id|>",
        "<|im_end|>",    "<|end|>",
        "<|endoftext|>", "<|end_of_text|>",
        "<end_of_turn>", "<|return|>",
        "<|call|>",      "<EOT>",
        "[EOT]",         "<end_of_utterance>",
        "<|fim_pad|>",   "<|repo_name|>",
        "<|file_sep|>",  "<\uff5cend\u2581of\u2581sentence\uff5c>",
    };
    tok_ends_add(t, tok_eos(t));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int32_t id = tok_find(t, str_of(names[i]));
        /* Where there is <|return|>, <|end|> only ends a message (gpt-oss). */
        if (strcmp(names[i], "<|end|>") == 0 && tok_find(t, STR("<|return|>")) != TOK_NONE)
            continue;
        if (tok_is_special(t, id))
            tok_ends_add(t, id);
    }
}

int32_t tok_vocab_size(const tok *t)
{
    return (int32_t)t->vocab.tokens.n;
}

bool tok_has(const tok *t, int32_t id)
{
    const vocab_token *token = vocab_at(&t->vocab, id);
    return token && token->text.p;
}

str tok_text(const tok *t, int32_t id)
{
    const vocab_token *token = vocab_at(&t->vocab, id);
    return token && token->text.p ? token->text : STR("");
}

bool tok_is_special(const tok *t, int32_t id)
{
    const vocab_token *token = vocab_at(&t->vocab, id);
    return token && (token->flags & TOKEN_SPECIAL);
}

int32_t tok_find(const tok *t, str text)
{
    return vocab_find(&t->vocab, text);
}

str tok_chat_template(const tok *t)
{
    return t->chat_template.p ? t->chat_template : STR("");
}
