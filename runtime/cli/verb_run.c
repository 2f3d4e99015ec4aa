/* verb_run.c - `weft run`: a prompt in, text out. */
#include "runtime/base/clock.h"
#include "runtime/base/json_write.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/talk.h"

enum { PROMPT_BYTES_MAX = 256 << 20 };

typedef struct {
    talk_flags t;
    const char *prompt, *file;
    int64_t logprobs;
    bool chat;
} run_options;

/* clang-format off */
static const flag run_flags[] = {
    FLAG_ROW_STR (run_options, prompt, "prompt", "p", "TEXT", NULL, "the text to continue"),
    FLAG_ROW_STR (run_options, file,   "file",   "f", "FILE", NULL, "read it from a file; - is standard input"),
    FLAG_ROW_BOOL(run_options, chat,   "chat",   NULL, "put the prompt into the model's chat template"),
    FLAG_ROW_INT (run_options, logprobs, "logprobs", NULL, "N", "0", 0, 1000, "with --json: each token's log-probability and the N likeliest"),
    TALK_FLAG_ROWS(run_options, "256"),
    FLAG_ROW_END (run_options),
};

static const char *const examples[] = {
    "weft run",                                          "the demo model begins a story",
    "weft run -p \"The old robot\" -n 100 -s 7",           "the same text every time",
    "weft run -m model.gguf --chat -p \"Why is the sky blue?\"", "a question for a chat model",
    "weft run -m model.gguf -f notes.txt --temp 0 --json", "a record with text, ids, counts and times",
    NULL,
};
/* clang-format on */

const verb_page run_verb_page = {
    run_flags,
    "The text goes to stdout as it comes, everything else to stderr. Ctrl-C stops with what was "
    "said.",
    examples,
};

static weft_status read_prompt(cli *c, const run_options *o, arena *a, str *out)
{
    source *src;
    const char *file = c->operand_n ? c->operand[0] : o->file;
    if ((o->prompt != NULL) + (o->file != NULL) + c->operand_n > 1)
        return weft_fail(c->dg, W1904, WEFT_NOWHERE, "run takes one of -p TEXT, -f FILE and -");
    if (c->operand_n && strcmp(file, "-") != 0) {
        weft_status st = weft_fail(c->dg, W1904, WEFT_NOWHERE,
                                   "run takes no operand but -, which is standard input");
        weft_note(c->dg, "a prompt goes behind -p, a checkpoint behind -m");
        return st;
    }
    if (o->prompt || !file) {
        *out = str_of(o->prompt ? o->prompt : "Once upon a time");
        return WEFT_OK;
    }
    if (strcmp(file, "-") == 0)
        WEFT_TRY(source_read_stdin(c->dg, a, PROMPT_BYTES_MAX, &src));
    else
        WEFT_TRY(source_open(c->dg, a, file, PROMPT_BYTES_MAX, &src));
    *out = src->text;
    return WEFT_OK;
}

typedef struct {
    talk *t;
    int64_t n_top; /* log-probabilities asked for */
    tok_ids prompt;
    gen_result gen;
    strbuf text, logprobs; /* the second: what stands in the brackets of "logprobs" */
    json_writer w;         /* on it */
    uint64_t prompt_ns;
} run_record;

static void put_logprob(run_record *r, int32_t id, float logprob)
{
    json_key_int(&r->w, "id", id);
    json_key_str(&r->w, "token", tok_text(r->t->text, id));
    json_key_double(&r->w, "logprob", logprob);
}

static void on_token(void *ctx, int32_t id, const float *logits, int64_t vocab)
{
    run_record *r = ctx;
    token_logprob top[1000];
    int64_t n = logprobs_top(logits, vocab, top, r->n_top);
    json_open(&r->w, '{');
    put_logprob(r, id, logprob_of(logits, vocab, id));
    json_key(&r->w, "top");
    json_open(&r->w, '[');
    for (int64_t i = 0; i < n; i++) {
        json_open(&r->w, '{');
        put_logprob(r, top[i].id, top[i].logprob);
        json_close(&r->w, '}');
    }
    json_close(&r->w, ']');
    json_close(&r->w, '}');
}

static double per_second(size_t n, uint64_t ns)
{
    return ns > 0 ? (double)n * 1e9 / (double)ns : 0;
}

static void tell_json(talk *t, const run_record *r)
{
    strbuf out = {0};
    json_writer w = {.out = &out};
    const struct {
        const char *name;
        const tok_ids *ids;
    } list[] = {{"prompt_ids", &r->prompt}, {"ids", &r->gen.ids}};
    json_open(&w, '{');
    json_key_str(&w, "text", strbuf_view(&r->text));
    for (int i = 0; i < 2; i++) {
        json_key(&w, list[i].name);
        json_open(&w, '[');
        for (size_t k = 0; k < list[i].ids->n; k++)
            json_int(&w, list[i].ids->at[k]);
        json_close(&w, ']');
    }
    if (r->n_top) {
        json_key(&w, "logprobs");
        strbuf_add(&out, "%s", r->logprobs.p);
        w.comma = true;
    }
    json_key_text(&w, "stop", gen_reason_name(r->gen.reason));
    json_key_int(&w, "seed", (int64_t)t->seed);
    json_key(&w, "counts");
    json_open(&w, '{');
    json_key_int(&w, "prompt", (int64_t)r->prompt.n);
    json_key_int(&w, "generated", (int64_t)r->gen.ids.n);
    json_close(&w, '}');
    json_key(&w, "seconds");
    json_open(&w, '{');
    json_key_double(&w, "load", clock_seconds(t->load_ns));
    json_key_double(&w, "prompt", clock_seconds(r->prompt_ns));
    json_key_double(&w, "generate", clock_seconds(r->gen.ns));
    json_close(&w, '}');
    json_close(&w, '}');
    strbuf_putc(&out, '\n');
    cli_print(t->c, strbuf_view(&out));
    strbuf_free(&out);
}

static weft_status run(talk *t, const run_options *o, run_record *r)
{
    cli *c = t->c;
    str text;
    WEFT_TRY(read_prompt(c, o, t->a, &text));
    tok_encode_flags how = TOK_ENCODE_DEFAULT;
    if (o->chat) {
        chat_message said[] = {{STR("system"), str_of(o->t.system ? o->t.system : "")},
                               {STR("user"), text}};
        strbuf rendered = {0};
        WEFT_TRY(talk_template(t));
        weft_status st =
            talk_render(t, o->t.system ? said : said + 1, o->t.system ? 2 : 1, &rendered);
        text = arena_str(t->a, strbuf_view(&rendered));
        strbuf_free(&rendered);
        WEFT_TRY(st);
        how.add_special = false; /* the template writes them */
    }
    WEFT_TRY(tok_encode(c->dg, t->text, text, how, &r->prompt));
    WEFT_TRY(talk_feed(t, &r->prompt, &r->prompt_ns));
    if (!c->common.json && !o->chat)
        cli_print(c, text); /* a continuation reads on from what it continues */
    if (o->logprobs && c->common.json) {
        r->t = t;
        r->n_top = o->logprobs;
        r->w = (json_writer){.out = &r->logprobs};
        json_open(&r->w, '[');
        talk_listen(t, on_token, r);
    }
    WEFT_TRY(talk_go_on(t, &r->text, !c->common.json, &r->gen));
    if (r->n_top)
        json_close(&r->w, ']');
    if (c->common.json)
        tell_json(t, r);
    else
        cli_print(c, STR("\n"));
    if (r->gen.reason == GEN_CONTEXT)
        cli_say(c, "the context of %lld tokens is full; -c sets a longer one",
                (long long)t->e.context);
    cli_say_verbose(c,
                    "prompt %zu tokens, %.1f a second; generated %zu, %.1f a second; ended by %s",
                    r->prompt.n, per_second(r->prompt.n, r->prompt_ns), r->gen.ids.n,
                    per_second(r->gen.ids.n, r->gen.ns), gen_reason_name(r->gen.reason));
    return WEFT_OK;
}

int verb_run(cli *c)
{
    const run_options *o = c->options;
    run_record r = {.prompt_ns = 0};
    talk t;
    weft_status st = talk_open(c, &o->t, &t);
    if (st == WEFT_OK)
        st = run(&t, o, &r);
    bool interrupted = st == WEFT_OK && r.gen.reason == GEN_INTERRUPTED && *interrupt_flag();
    c->common.json = false;
    cli_report(c, c->dg); /* while the texts it quotes are there */
    talk_close(&t);
    VEC_FREE(&r.prompt);
    VEC_FREE(&r.gen.ids);
    strbuf_free(&r.text);
    strbuf_free(&r.logprobs);
    return interrupted ? CLI_INTERRUPTED : cli_exit_of(st);
}
