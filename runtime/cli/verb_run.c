/* verb_run.c - `weft run`: a prompt in, text out. */
#include "runtime/cli/talk.h"

/* clang-format off */
static const flag run_flags[] = {
    RUN_FLAG_ROWS (run_options,),
    TALK_FLAG_ROWS(run_options, "256"),
    FORM_FLAG_ROWS(run_options),
    FLAG_ROW_END (run_options),
};

static const char *const examples[] = {
    "weft run",                                          "the demo model begins a story",
    "weft run -p \"The old robot\" -n 100 -s 7",           "the same text every time",
    "weft run -m model.gguf --chat -p \"Why is the sky blue?\"", "a question for a chat model",
    "weft run -m model.gguf -f notes.txt --kv-save notes.kv -n 1", "read a long text once; --kv-load goes on from there",
    "weft run -m model.gguf -f notes.txt --temp 0 --json", "a record with text, ids, counts and times",
    "weft run -m model.gguf --chat -p \"A person\" --json-schema person.json", "JSON that satisfies a schema, always",
    NULL,
};
/* clang-format on */

const verb_page run_verb_page = {
    run_flags,
    "The text goes to stdout as it comes, everything else to stderr. Ctrl-C stops; what was "
    "generated so far stays. With --json a record: text, ids, counts, seconds, and what the "
    "session "
    "holds: pages and bytes of its state by tier, texts kept for prompts that begin the same. "
    "--kv-load also takes what /save of chat writes beside the messages.",
    examples,
};

int verb_run(cli *c)
{
    return talk_run(c, c->options, &talk_kind_file);
}
