/* verb_tokenize.c - `weft tokenize`: text in, token ids out. */
#include "runtime/base/json_write.h"
#include "runtime/cli/tok_input.h"
#include "runtime/text/tok_lines.h"

typedef struct {
    tok_input_flags in;
    bool no_special, plain;
} tokenize_options;

/* clang-format off */
static const flag tokenize_flags[] = {
    TOK_INPUT_FLAG_ROWS(tokenize_options, "read {\"text\": ..} lines, write {\"ids\": [..]} lines"),
    FLAG_ROW_BOOL(tokenize_options, no_special, "no-special", NULL, "add no tokens around the text"),
    FLAG_ROW_BOOL(tokenize_options, plain,      "plain",      NULL, "nor find special tokens in it: all of it is plain text"),
    FLAG_ROW_END (tokenize_options),
};

static const char *const examples[] = {
    "weft tokenize -m model.gguf \"Hello world\"",                 "its ids, in one line",
    "weft tokenize --tokenizer tokenizer.json --json \"Hello\"",   "ids and tokens, for programs",
    "weft tokenize -m dir/ --jsonl <texts.jsonl >ids.jsonl",       "a million texts in one process",
    NULL,
};
/* clang-format on */

const verb_page tokenize_verb_page = {
    tokenize_flags,
    "Without TEXT it reads standard input, to its last byte. With --json it prints the ids and how "
    "the vocabulary writes each token.",
    examples,
};

typedef struct {
    cli *c;
    tok *t;
    tok_encode_flags flags;
    strbuf text;
    tok_ids ids;
} run;

static weft_status one_line(void *ctx, str line, strbuf *out)
{
    run *r = ctx;
    json_writer w = {.out = out};
    strbuf_reset(&r->text);
    r->ids.n = 0;
    WEFT_TRY(tok_line_text(r->c->dg, line, "text", &r->text));
    WEFT_TRY(tok_encode(r->c->dg, r->t, strbuf_view(&r->text), r->flags, &r->ids));
    json_open(&w, '{');
    json_key_ids(&w, "ids", r->ids.at, r->ids.n);
    json_close(&w, '}');
    strbuf_putc(out, '\n');
    return WEFT_OK;
}

static void print(run *r)
{
    strbuf out = {0};
    json_writer w = {.out = &out};
    if (!r->c->common.json) {
        for (size_t i = 0; i < r->ids.n; i++)
            strbuf_add(&out, i ? " %d" : "%d", (int)r->ids.at[i]);
    } else {
        json_open(&w, '{');
        json_key_ids(&w, "ids", r->ids.at, r->ids.n);
        json_key_open(&w, "tokens", '[');
        for (size_t i = 0; i < r->ids.n; i++)
            json_str(&w, tok_text(r->t, r->ids.at[i]));
        json_close(&w, ']');
        json_close(&w, '}');
    }
    strbuf_putc(&out, '\n');
    cli_print_all(r->c, &out);
}

static weft_status one_text(run *r)
{
    cli *c = r->c;
    if (c->operand_n)
        strbuf_put(&r->text, str_of(c->operand[0]));
    else
        WEFT_TRY(tok_input_all(c, &r->text));
    WEFT_TRY(tok_encode(c->dg, r->t, strbuf_view(&r->text), r->flags, &r->ids));
    print(r);
    return WEFT_OK;
}

static weft_status work(run *r, const tokenize_options *o)
{
    WEFT_TRY(tok_input_open(r->c, &o->in, &r->t));
    return o->in.jsonl ? tok_input_lines(r->c, one_line, r) : one_text(r);
}

int verb_tokenize(cli *c)
{
    const tokenize_options *o = c->options;
    run r = {.c = c,
             .flags = {.add_special = !o->no_special && !o->plain, .parse_special = !o->plain}};
    weft_status status = work(&r, o);
    tok_close(r.t);
    strbuf_free(&r.text);
    VEC_FREE(&r.ids);
    return cli_exit_of(status);
}
