/* verb_detokenize.c - `weft detokenize`: token ids in, text out. */
#include "runtime/base/json_write.h"
#include "runtime/base/term.h"
#include "runtime/cli/id_list.h"
#include "runtime/cli/tok_input.h"
#include "runtime/text/tok_lines.h"

typedef struct {
    tok_input_flags in;
    bool skip_special, stream;
} detokenize_options;

/* clang-format off */
static const flag detokenize_flags[] = {
    TOK_INPUT_FLAG_ROWS(detokenize_options, "read {\"ids\": [..]} lines, write {\"text\": ..} lines"),
    FLAG_ROW_BOOL(detokenize_options, skip_special, "skip-special", NULL, "leave special tokens out"),
    FLAG_ROW_BOOL(detokenize_options, stream,       "stream",       NULL, "decode token by token, as a model speaks"),
    FLAG_ROW_END (detokenize_options),
};

static const char *const examples[] = {
    "weft detokenize -m model.gguf 403 261",                       "the text of two tokens",
    "weft tokenize -m model.gguf <a | weft detokenize -m model.gguf --skip-special", "there and back",
    "weft detokenize --tokenizer tokenizer.json --jsonl --stream <ids.jsonl", "what each token adds, as {\"pieces\": [..], \"flush\": ..}",
    NULL,
};
/* clang-format on */

const verb_page detokenize_verb_page = {
    detokenize_flags,
    "Ids are separated by blanks or commas; without any it reads them from standard input. An id "
    "that "
    "no token has is an error. Prints the text and nothing else; on a terminal a line end follows.",
    examples,
};

typedef struct {
    cli *c;
    tok *t;
    tok_stream *stream; /* NULL without --stream */
    bool skip_special;
    strbuf text;
    tok_ids ids;
} run;

/* Ids that no token has are named, not dropped. */
static weft_status check_ids(run *r)
{
    for (size_t i = 0; i < r->ids.n; i++)
        if (!tok_has(r->t, r->ids.at[i]))
            return weft_fail(r->c->dg, W1213, WEFT_NOWHERE,
                             "no token has the id %d, which is number %zu of %zu; ids go up to %d",
                             (int)r->ids.at[i], i + 1, r->ids.n, (int)tok_vocab_size(r->t) - 1);
    return WEFT_OK;
}

static weft_status put_pieces(run *r, json_writer *w)
{
    json_key_open(w, "pieces", '[');
    for (size_t i = 0; i < r->ids.n; i++) {
        strbuf_reset(&r->text);
        tok_stream_put(r->stream, r->ids.at[i], &r->text);
        json_str(w, strbuf_view(&r->text));
    }
    json_close(w, ']');
    strbuf_reset(&r->text);
    tok_stream_flush(r->stream, &r->text);
    json_key_str(w, "flush", strbuf_view(&r->text));
    return WEFT_OK;
}

static weft_status put_text(run *r, json_writer *w)
{
    strbuf_reset(&r->text);
    WEFT_TRY(tok_decode(r->c->dg, r->t, r->ids.at, r->ids.n, r->skip_special, &r->text));
    json_key_str(w, "text", strbuf_view(&r->text));
    return WEFT_OK;
}

static weft_status one_line(void *ctx, str line, strbuf *out)
{
    run *r = ctx;
    json_writer w = {.out = out};
    size_t n = out->n;
    r->ids.n = 0;
    WEFT_TRY(tok_line_ids(r->c->dg, line, "ids", &r->ids));
    WEFT_TRY(check_ids(r));
    json_open(&w, '{');
    weft_status status = r->stream ? put_pieces(r, &w) : put_text(r, &w);
    json_close(&w, '}');
    strbuf_putc(out, '\n');
    if (status != WEFT_OK)
        out->n = n;
    return status;
}

static weft_status print(run *r)
{
    strbuf_reset(&r->text);
    if (r->stream) {
        for (size_t i = 0; i < r->ids.n; i++)
            tok_stream_put(r->stream, r->ids.at[i], &r->text);
        tok_stream_flush(r->stream, &r->text);
    } else {
        WEFT_TRY(tok_decode(r->c->dg, r->t, r->ids.at, r->ids.n, r->skip_special, &r->text));
    }
    strbuf out = {0};
    json_writer w = {.out = &out};
    if (r->c->common.json) {
        json_open(&w, '{');
        json_key_str(&w, "text", strbuf_view(&r->text));
        json_close(&w, '}');
        strbuf_putc(&out, '\n');
    } else {
        strbuf_put(&out, strbuf_view(&r->text));
        if (term_is_tty(stdout))
            strbuf_putc(&out, '\n');
    }
    cli_print_all(r->c, &out);
    return WEFT_OK;
}

static weft_status work(run *r, const detokenize_options *o)
{
    cli *c = r->c;
    WEFT_TRY(tok_input_open(c, &o->in, &r->t));
    if (o->stream)
        r->stream = tok_stream_create(r->t, o->skip_special);
    if (o->in.jsonl)
        return tok_input_lines(c, one_line, r);
    for (int i = 0; i < c->operand_n; i++)
        WEFT_TRY(id_list_read(c->dg, "detokenize", str_of(c->operand[i]), &r->ids));
    if (!c->operand_n) {
        WEFT_TRY(tok_input_all(c, &r->text));
        WEFT_TRY(id_list_read(c->dg, "<stdin>", strbuf_view(&r->text), &r->ids));
    }
    WEFT_TRY(check_ids(r));
    return print(r);
}

int verb_detokenize(cli *c)
{
    const detokenize_options *o = c->options;
    run r = {.c = c, .skip_special = o->skip_special};
    weft_status status = work(&r, o);
    tok_stream_destroy(r.stream);
    tok_close(r.t);
    strbuf_free(&r.text);
    VEC_FREE(&r.ids);
    return cli_exit_of(status);
}
