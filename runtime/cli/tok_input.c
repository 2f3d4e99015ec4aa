/* tok_input.c - opening the tokenizer, reading standard input by blocks. */
#include "runtime/cli/tok_input.h"

#include "runtime/base/file.h"
#include <errno.h>
#include <unistd.h>

enum { BLOCK = 1 << 20 };

weft_status tok_input_open(cli *c, const tok_input_flags *f, tok **out_tok)
{
    if (f->jsonl && c->operand_n)
        return weft_fail(c->dg, W1904, WEFT_NOWHERE,
                         "%s: --jsonl reads standard input, not operands", c->verb->name);
    if (!f->model == !f->tokenizer)
        return weft_fail(c->dg, W1903, WEFT_NOWHERE,
                         "%s: give a model with -m or a file with --tokenizer, %s", c->verb->name,
                         f->model ? "not both" : "one of them");
    return tok_open(c->dg, f->model ? f->model : f->tokenizer, out_tok);
}

/* Adds what one read gives; *out_n is 0 at the end. */
static weft_status read_block(cli *c, strbuf *to, size_t *out_n)
{
    size_t n_before = to->n;
    strbuf_fill(to, '\0', BLOCK);
    ssize_t n;
    do
        n = read(STDIN_FILENO, to->p + n_before, BLOCK);
    while (n < 0 && errno == EINTR);
    to->n = n_before + (n > 0 ? (size_t)n : 0);
    if (n < 0)
        return weft_fail(c->dg, W1003, WEFT_NOWHERE, "cannot read <stdin>: %s",
                         file_reason_of(errno).text);
    *out_n = (size_t)n;
    return WEFT_OK;
}

weft_status tok_input_all(cli *c, strbuf *out)
{
    size_t n;
    do
        WEFT_TRY(read_block(c, out, &n));
    while (n);
    return WEFT_OK;
}

/* The complete lines of text, of which *io_line counts; *out_rest is what is left. */
static weft_status each_line(cli *c, tok_line_fn *fn, void *ctx, str text, strbuf *out,
                             size_t *io_line, str *out_rest)
{
    for (const char *end; (end = memchr(text.p, '\n', text.n));) {
        size_t n = (size_t)(end - text.p);
        ++*io_line;
        weft_status status = n ? fn(ctx, (str){text.p, n}, out) : WEFT_OK;
        if (status != WEFT_OK) {
            weft_note(c->dg, "in line %zu of <stdin>", *io_line);
            return status;
        }
        text = (str){end + 1, text.n - n - 1};
        if (out->n >= BLOCK) {
            cli_print(c, strbuf_view(out));
            strbuf_reset(out);
        }
    }
    *out_rest = text;
    return WEFT_OK;
}

weft_status tok_input_lines(cli *c, tok_line_fn *fn, void *ctx)
{
    strbuf in = {0}, out = {0};
    size_t n = 1, n_line = 0;
    weft_status status = WEFT_OK;
    while (status == WEFT_OK && n && !c->out_error) {
        str rest;
        status = read_block(c, &in, &n);
        if (status != WEFT_OK)
            break;
        if (!n && in.n) /* a last line without its end */
            strbuf_putc(&in, '\n');
        if (!in.n)
            break;
        status = each_line(c, fn, ctx, strbuf_view(&in), &out, &n_line, &rest);
        cli_print(c, strbuf_view(&out));
        strbuf_reset(&out);
        if (status == WEFT_OK) {
            memmove(in.p, rest.p, rest.n);
            in.n = rest.n;
        }
    }
    strbuf_free(&in);
    strbuf_free(&out);
    return status;
}
