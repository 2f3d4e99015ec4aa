/* talk.h - what `run`, `chat` and built programs share: their flags, and a model ready to continue a text. */
#ifndef WEFT_RUNTIME_CLI_TALK_H
#define WEFT_RUNTIME_CLI_TALK_H

#include "runtime/cli/lora_flags.h"

typedef struct {
    model_flags open;
    weft_sampler_options pick; /* but for seed, mirostat and bias, which are below */
    const char *chat_template, *template_kwargs, *system;
    int64_t n, seed, mirostat;
    flag_list bias, stop;
    const char *json_schema, *grammar, *regex; /* the form of the answer; at most one */
    bool ignore_end;
    int64_t
        prefixes; /* no flag: texts that the session keeps for others; with any its state is in pages */
} talk_flags;

/* The rows of these flags, for a verb whose options struct T has a talk_flags `t`. */
/* clang-format off */
#define SAMPLE_FLAG_ROWS(T, at)                                                                                               \
    FLAG_ROW_FLOAT (T, at pick.temp,     "temp",     NULL, "X", "0.8", 0, 1e4, "temperature; 0: always the likeliest"),    \
    FLAG_ROW_INT   (T, at pick.top_k,    "top-k",    NULL, "N", "40", 0, 1 << 30, "keep the N likeliest; 0: all"),         \
    FLAG_ROW_FLOAT (T, at pick.top_p,    "top-p",    NULL, "X", "0.95", 0, 1, "keep the likeliest up to this probability"), \
    FLAG_ROW_FLOAT (T, at pick.min_p,    "min-p",    NULL, "X", "0.05", 0, 1, "keep tokens this likely against the likeliest"), \
    FLAG_ROW_FLOAT (T, at pick.typical,  "typical",  NULL, "X", "1", 0, 1, "locally typical sampling; 1: off"),            \
    FLAG_ROW_FLOAT (T, at pick.repeat,   "repeat-penalty", NULL, "X", "1", 0.01, 100, "for tokens that came before; 1: none"), \
    FLAG_ROW_INT   (T, at pick.last_n,   "repeat-last-n", NULL, "N", "64", -1, 1 << 30, "how far the penalties look back; -1: all"), \
    FLAG_ROW_FLOAT (T, at pick.presence, "presence-penalty", NULL, "X", "0", -100, 100, "once for a token that came before"), \
    FLAG_ROW_FLOAT (T, at pick.frequency, "frequency-penalty", NULL, "X", "0", -100, 100, "for each time it came"),        \
    FLAG_ROW_FLOAT (T, at pick.dry_multiplier, "dry-multiplier", NULL, "X", "0", 0, 100, "against repeated runs; 0: off"), \
    FLAG_ROW_FLOAT (T, at pick.dry_base, "dry-base", NULL, "X", "1.75", 1, 10, "how the price of a run grows"),            \
    FLAG_ROW_INT   (T, at pick.dry_allowed, "dry-allowed-length", NULL, "N", "2", 0, 1 << 20, "runs up to this are free"), \
    FLAG_ROW_INT   (T, at pick.dry_last_n, "dry-penalty-last-n", NULL, "N", "-1", -1, 1 << 30, "how far it looks back; -1: all"), \
    FLAG_ROW_FLOAT (T, at pick.xtc_probability, "xtc-probability", NULL, "X", "0", 0, 1, "exclude top choices this often"), \
    FLAG_ROW_FLOAT (T, at pick.xtc_threshold, "xtc-threshold", NULL, "X", "0.1", 0, 1, "what counts as a top choice"),     \
    FLAG_ROW_INT   (T, at mirostat, "mirostat", NULL, "N", "0", 0, 2, "2: mirostat 2 in place of the truncations"),        \
    FLAG_ROW_FLOAT (T, at pick.mirostat_tau,      "mirostat-ent", NULL, "X", "5", 0, 100, "the surprise it aims at"),      \
    FLAG_ROW_FLOAT (T, at pick.mirostat_eta,      "mirostat-lr", NULL, "X", "0.1", 0, 10, "how fast it learns"),           \
    FLAG_ROW_STR   (T, at pick.samplers, "samplers", NULL, "LIST", NULL, "the chain, such as top_k;top_p;temperature"),    \
    FLAG_ROW_LIST  (T, at bias,     "logit-bias", "l", "ID=X", "add X to the logit of token ID (-inf forbids it)"),        \
    FLAG_ROW_INT   (T, at seed,     "seed",     "s",  "N", "-1", -1, 9007199254740992.0, "the same seed gives the same text; -1: a new one"), \
    FLAG_ROW_LIST  (T, at stop,     "reverse-prompt", "r", "TEXT", "stop where this text would come"),                     \
    FLAG_ROW_BOOL  (T, at ignore_end, "ignore-eos", NULL, "go on after the model's end token")
#define TALK_FLAG_ROWS(T, n_default)                                                                                      \
    MODEL_FLAG_ROW (T, t.open, "the checkpoint; without it the demo model"),                                              \
    FLAG_ROW_INT   (T, t.open.context,  "ctx-size", "c",  "N", "-1", -1, 1 << 30, "context; 0: the trained one; -1: that, 8192 at most"), \
    FLAG_ROW_INT   (T, t.n,        "predict",  "n",  "N", n_default, -1, 1 << 30, "tokens to generate; -1: until the model ends"), \
    BATCH_FLAG_ROW (T, t.open, "512"),                                                                                    \
    FLAG_ROW_STR   (T, t.system,   "system",   "sys", "TEXT", NULL, "the system message"),                                \
    FLAG_ROW_STR   (T, t.chat_template, "chat-template", NULL, "NAME", NULL, "a built-in template or a file, in place of the model's"), \
    FLAG_ROW_STR   (T, t.template_kwargs, "template-kwargs", NULL, "JSON", NULL, "further variables for the template"),   \
    SAMPLE_FLAG_ROWS(T, t.),                                                                                                  \
    LORA_FLAG_ROWS (T, t.open),                                                                                           \
    SESSION_FLAG_ROWS(T, t.open, "0"),                                                                                    \
    FILE_FLAG_ROWS (T, t.open)
/* clang-format on */

typedef struct talk talk;
typedef struct scheduler scheduler;

/* How a program comes to its model: weft from files (talk_file.c), a built program from what it carries. */
typedef struct {
    weft_status (*open)(talk *t); /* to t->m and t->from; close is called also after a failure */
    weft_session_options (*session)(talk *t, progress *bar); /* context as the flags have it */
    weft_status (*ready)(talk *t); /* after the session is there; NULL: nothing to do */
    void (*close)(talk *t);        /* what open took, but for t->m; NULL: nothing */
    /* --template-kwargs, to t->variables; NULL: there is no such flag */
    weft_status (*variables)(talk *t);
    /* The list of messages in a file; NULL: conversations cannot be loaded. */
    weft_status (*messages)(talk *t, const char *path, value *out_list);
    /* The form that the flags ask for, to t->form; NULL: there are no such flags */
    weft_status (*form)(talk *t);
} talk_kind;

extern const talk_kind talk_kind_file;

struct talk {
    cli *c;
    const talk_flags *f;
    const talk_kind *kind;
    arena *a;
    weft_model *m;
    const char *from; /* the model, for people */
    lora adapters;
    const value *variables; /* of the template; NULL: none */
    weft_cancel *cancel;
    weft_session *s;
    weft_session_info about; /* of the session, when it was opened */
    weft_tokenizer *text;
    weft_grammar *form; /* of the answer; NULL: any */
    weft_generation *g;
    scheduler *steps;    /* of the session: it steps g */
    weft_template *chat; /* NULL before talk_template */
    int64_t n_top;       /* log-probabilities that on_token wants of each token; -1: none */
    void (*on_token)(void *ctx, const weft_piece *piece); /* may be NULL */
    void *on_token_ctx;
    uint64_t seed, load_ns;
};

/* Open everything; says what it decided (context, seed) with -v, and what it had to shrink in any case. */
weft_status talk_open(cli *c, const talk_flags *f, const talk_kind *kind, talk *t) WEFT_MUST_USE;
void talk_close(talk *t);

/* Other flags of sampling, stopping and length from here on, and what n_top says; on failure nothing changes. */
weft_status talk_change(talk *t, const talk_flags *f) WEFT_MUST_USE;

typedef struct {
    int32_t *ids; /* [n_prompt]: of the prompt, for weft_free */
    size_t n_prompt;
    weft_end end;
    size_t n; /* tokens generated: weft_generation_ids(t->g) */
    uint64_t prompt_ns, ns;
    strbuf said;
} talk_answer;
void talk_answer_free(talk_answer *r);

/* The ids of a text, or of messages in the model's template. */
weft_status talk_encode(talk *t, str text, talk_answer *r) WEFT_MUST_USE;
/* Continue r->ids until something ends it. With `show` the text goes to stdout as it comes, behind `before`. */
weft_status talk_go_on(talk *t, bool show, str before, talk_answer *r) WEFT_MUST_USE;

typedef struct {
    str role, content;
} talk_message;

/* talk_chat.c: choose the chat template (--chat-template, else the model's own; W1305 if there is none). */
weft_status talk_template(talk *t) WEFT_MUST_USE;
/* The ids of the messages as the template writes them, with the beginning of an answer. */
weft_status talk_render(talk *t, const talk_message *messages, size_t n,
                        talk_answer *r) WEFT_MUST_USE;

/* ---- talk_run.c: a prompt in, text out ---- */

typedef struct {
    talk_flags t;
    const char *prompt, *file, *kv_save, *kv_load;
    int64_t logprobs;
    bool chat;
} run_options;

/* clang-format off */
#define RUN_FLAG_ROWS(T, at)                                                                                              \
    FLAG_ROW_STR (T, at prompt, "prompt", "p", "TEXT", NULL, "the text to continue"),                                     \
    FLAG_ROW_STR (T, at file,   "file",   "f", "FILE", NULL, "read it from a file; - is standard input"),                 \
    FLAG_ROW_BOOL(T, at chat,   "chat",   NULL, "put the prompt into the model's chat template"),                         \
    FLAG_ROW_STR (T, at kv_save, "kv-save", NULL, "FILE", NULL, "write the state of the text to a file at the end"),      \
    FLAG_ROW_STR (T, at kv_load, "kv-load", NULL, "FILE", NULL, "begin with the state of a file; without a prompt, go on with its text"), \
    FLAG_ROW_INT (T, at logprobs, "logprobs", NULL, "N", "0", 0, 1000, "with --json: each token's log-probability and the N likeliest")

#define FORM_FLAG_ROWS(T)                                                                                                  \
    FLAG_ROW_STR (T, t.json_schema, "json-schema", NULL, "FILE", NULL, "the answer is JSON that satisfies this schema"), \
    FLAG_ROW_STR (T, t.grammar, "grammar", NULL, "FILE", NULL, "the answer matches this grammar, in GBNF"), \
    FLAG_ROW_STR (T, t.regex, "regex", NULL, "TEXT", NULL, "the answer matches this regular expression")
/* clang-format on */

int talk_run(cli *c, const run_options *o, const talk_kind *kind); /* an exit status */

/* ---- talk_converse.c: a conversation ---- */

int talk_converse(cli *c, const talk_flags *f, const talk_kind *kind);

#endif
