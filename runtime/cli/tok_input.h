/* tok_input.h - what `tokenize` and `detokenize` share: their tokenizer, and standard input. */
#ifndef WEFT_RUNTIME_CLI_TOK_INPUT_H
#define WEFT_RUNTIME_CLI_TOK_INPUT_H

#include "runtime/cli/cli.h"
#include "runtime/text/tok.h"

typedef struct {
    const char *model, *tokenizer;
    bool jsonl;
} tok_input_flags;

/* The rows of these flags, for a verb whose options struct T has a tok_input_flags `in`. */
/* clang-format off */
#define TOK_INPUT_FLAG_ROWS(T, jsonl_help)                                                                      \
    FLAG_ROW_STR (T, in.model,     "model",     "m",  "MODEL", NULL, "use the tokenizer of this checkpoint"),    \
    FLAG_ROW_STR (T, in.tokenizer, "tokenizer", NULL, "FILE",  NULL, "use this tokenizer.json or GGUF file"),    \
    FLAG_ROW_BOOL(T, in.jsonl,     "jsonl",     NULL, jsonl_help)
/* clang-format on */

/* From -m or --tokenizer, of which exactly one is given (W1903); W1904 for operands beside --jsonl. */
weft_status tok_input_open(cli *c, const tok_input_flags *f, tok **out_tok) WEFT_MUST_USE;

/* All of standard input. */
weft_status tok_input_all(cli *c, strbuf *out) WEFT_MUST_USE;

/* Calls fn for each line of standard input, without its end; what fn adds to out is printed before
 * more input is waited for. Stops at the first failure, with the line's number in a note. */
typedef weft_status tok_line_fn(void *ctx, str line, strbuf *out);
weft_status tok_input_lines(cli *c, tok_line_fn *fn, void *ctx) WEFT_MUST_USE;

#endif
