/* talk_run.c - a prompt in, text out: `weft run` and built programs. */
#include "runtime/base/clock.h"
#include "runtime/base/json_write.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/session_json.h"
#include "runtime/cli/talk.h"
#include "runtime/formats/out_file.h"

#include <stdlib.h>

enum { PROMPT_BYTES_MAX = 256 << 20 };

static weft_status read_prompt(cli *c, const run_options *o, arena *a, str *out)
{
    source *src;
    const char *file = c->operand_n ? c->operand[0] : o->file;
    if ((o->prompt != NULL) + (o->file != NULL) + c->operand_n > 1)
        return weft_fail(c->dg, W1904, WEFT_NOWHERE, "%s takes one of -p TEXT, -f FILE and -",
                         c->verb->name);
    if (c->operand_n && strcmp(file, "-") != 0) {
        weft_status st =
            weft_fail(c->dg, W1904, WEFT_NOWHERE,
                      "%s takes no operand but -, which is standard input", c->verb->name);
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
    talk_answer answer;
    strbuf logprobs; /* what stands in the brackets of "logprobs" */
    json_writer w;   /* on it */
} run_record;

static void put_logprob(run_record *r, int32_t id, float logprob)
{
    size_t bytes;
    const char *text = weft_token_text(r->t->text, id, &bytes);
    json_key_int(&r->w, "id", id);
    json_key_str(&r->w, "token", (str){text, bytes});
    json_key_double(&r->w, "logprob", logprob);
}

static void on_token(void *ctx, const weft_piece *p)
{
    run_record *r = ctx;
    json_open(&r->w, '{');
    put_logprob(r, p->token, p->logprob);
    json_key_open(&r->w, "top", '[');
    for (int64_t i = 0; i < p->n_top; i++) {
        json_open(&r->w, '{');
        put_logprob(r, p->top[i].token, p->top[i].logprob);
        json_close(&r->w, '}');
    }
    json_close(&r->w, ']');
    json_close(&r->w, '}');
}

static double per_second(size_t n, uint64_t ns)
{
    return ns > 0 ? (double)n * 1e9 / (double)ns : 0;
}

static void print_json(talk *t, const run_record *r)
{
    const talk_answer *a = &r->answer;
    strbuf out = {0};
    json_writer w = {.out = &out};
    size_t n;
    const int32_t *ids = weft_generation_ids(t->g, &n);
    json_open(&w, '{');
    json_key_str(&w, "text", strbuf_view(&a->said));
    json_key_ids(&w, "prompt_ids", a->ids, a->n_prompt);
    json_key_ids(&w, "ids", ids, n);
    if (r->logprobs.n) {
        json_key(&w, "logprobs");
        strbuf_add(&out, "%s", r->logprobs.p);
        w.comma = true;
    }
    json_key_text(&w, "stop", weft_end_name(a->end));
    json_key_int(&w, "seed", (int64_t)t->seed);
    json_key_open(&w, "counts", '{');
    json_key_int(&w, "prompt", (int64_t)a->n_prompt);
    json_key_int(&w, "generated", (int64_t)n);
    json_close(&w, '}');
    json_key_open(&w, "seconds", '{');
    json_key_double(&w, "load", clock_seconds(t->load_ns));
    json_key_double(&w, "prompt", clock_seconds(a->prompt_ns));
    json_key_double(&w, "generate", clock_seconds(a->ns));
    json_close(&w, '}');
    session_json(&w, t->s);
    json_close(&w, '}');
    strbuf_putc(&out, '\n');
    cli_print_all(t->c, &out);
}

/* Begin with the state of a file. Without a prompt its text is the prompt. */
static weft_status take_state(talk *t, const run_options *o, bool prompted, str *text,
                              talk_answer *a)
{
    cli *c = t->c;
    size_t n, bytes;
    char *said;
    WEFT_TRY(weft_generation_load(c->dg, t->g, o->kv_load));
    const int32_t *ids = weft_generation_text(t->g, &n);
    cli_say_verbose(c, "%s holds %zu tokens", o->kv_load, n);
    if (prompted || n == 0)
        return WEFT_OK;
    WEFT_TRY(weft_decode(c->dg, t->text, ids, n, true, &said, &bytes));
    *text = arena_str(t->a, (str){said, bytes});
    weft_free(said);
    a->ids = malloc(n * sizeof *ids);
    if (!a->ids)
        return weft_fail(c->dg, W1110, WEFT_NOWHERE, "not enough memory");
    memcpy(a->ids, ids, n * sizeof *ids);
    a->n_prompt = n;
    return WEFT_OK;
}

/* The prompt's ids: of the text alone, or as a message of the user. */
static weft_status take_prompt(talk *t, const run_options *o, str text, talk_answer *a)
{
    if (!o->chat)
        return talk_encode(t, text, a);
    talk_message said[] = {{STR("system"), str_of(o->t.system ? o->t.system : "")},
                           {STR("user"), text}};
    WEFT_TRY(talk_template(t));
    return talk_render(t, o->t.system ? said : said + 1, o->t.system ? 2 : 1, a);
}

static weft_status run(talk *t, const run_options *o, run_record *r)
{
    cli *c = t->c;
    talk_answer *a = &r->answer;
    str text;
    WEFT_TRY(read_prompt(c, o, t->a, &text));
    if (o->kv_load)
        WEFT_TRY(take_state(t, o, o->prompt || o->file || c->operand_n, &text, a));
    if (!a->ids)
        WEFT_TRY(take_prompt(t, o, text, a));
    bool logprobs = o->logprobs && c->common.json;
    if (logprobs) {
        r->t = t;
        r->w = (json_writer){.out = &r->logprobs};
        json_open(&r->w, '[');
        t->n_top = o->logprobs;
        t->on_token = on_token;
        t->on_token_ctx = r;
        WEFT_TRY(talk_change(t, &o->t));
    }
    /* Without --chat the prompt is printed in front, so that the text reads as a whole. */
    WEFT_TRY(talk_go_on(t, !c->common.json, o->chat ? STR("") : text, a));
    if (!c->common.json)
        cli_print(c, STR("\n"));
    if (o->kv_save)
        WEFT_TRY(weft_generation_save(c->dg, t->g, o->kv_save));
    if (logprobs)
        json_close(&r->w, ']');
    if (c->common.json)
        print_json(t, r);
    if (a->end == WEFT_END_CONTEXT)
        cli_say(c, "the context of %lld tokens is full; -c sets a longer one",
                (long long)t->about.context);
    cli_say_verbose(c,
                    "prompt %zu tokens, %.1f a second; generated %zu, %.1f a second; ended by %s",
                    a->n_prompt, per_second(a->n_prompt, a->prompt_ns), a->n,
                    per_second(a->n, a->ns), weft_end_name(a->end));
    return WEFT_OK;
}

int talk_run(cli *c, const run_options *o, const talk_kind *kind)
{
    run_record r = {.t = NULL};
    talk t;
    talk_flags flags = o->t;
    /* State in files is in pages, as that of chat is: so each may load what the other saved. */
    flags.prefixes = o->kv_save || o->kv_load;
    weft_status st = o->kv_save ? out_file_allowed(c->dg, o->kv_save) : WEFT_OK;
    if (st != WEFT_OK) /* said before minutes are spent on the text */
        return cli_exit_of(st);
    st = talk_open(c, &flags, kind, &t);
    if (st == WEFT_OK)
        st = run(&t, o, &r);
    bool interrupted = st == WEFT_OK && *interrupt_flag();
    c->common.json = false;
    talk_answer_free(&r.answer);
    strbuf_free(&r.logprobs);
    talk_close(&t);
    return interrupted ? CLI_INTERRUPTED : cli_exit_of(st);
}
