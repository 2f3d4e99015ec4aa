/* verb_chat.c - `weft chat`: a conversation. */
#include "runtime/cli/talk.h"

typedef struct {
    talk_flags t;
} chat_options;

/* clang-format off */
static const flag chat_flags[] = {
    TALK_FLAG_ROWS(chat_options, "-1"),
    FLAG_ROW_END(chat_options),
};

static const char *const examples[] = {
    "weft chat -m model.gguf",                          "a conversation; /help lists the commands",
    "weft chat -m model.gguf -sys \"Answer in verse.\"",  "with a system message",
    "echo \"Why is the sky blue?\" | weft chat -m model.gguf --temp 0", "one question, one answer",
    NULL,
};
/* clang-format on */

const verb_page chat_verb_page = {
    chat_flags,
    "Each line is a message; one that ends in \\ goes on in the next. Ctrl-C stops an answer, "
    "Ctrl-D leaves. With --json each answer is a record on a line of its own: text, ids, counts, "
    "seconds, and what the session holds: pages and bytes of its state by tier, texts kept for "
    "prompts "
    "that begin the same. /stats prints such a record without an answer.",
    examples,
};

int verb_chat(cli *c)
{
    const chat_options *o = c->options;
    return talk_converse(c, &o->t, &talk_kind_file);
}
