/* goldens.h - the cases of a tokenizer family: lines of JSON, run one after the other. */
#ifndef WEFT_TESTS_TEXT_GOLDENS_H
#define WEFT_TESTS_TEXT_GOLDENS_H

#include "runtime/text/tok.h"
#include "tests/base/suite.h"

typedef struct {
    size_t n_case, n_failed;
} golden_count;

/* cases.jsonl and decode.jsonl of a folder (see ../shared/tokenizers/README.md), with a tokenizer
 * that is there. From GGUF, cases with "gguf": false are left out. The first failures are printed.
 */
void golden_cases(tok *t, const char *path, bool gguf, golden_count *count);
void golden_decode(tok *t, const char *path, golden_count *count);
/* A pair of files of llama.cpp's: texts with a line between them, ids in lines. */
void golden_vectors(tok *t, const char *path_in, const char *path_out, golden_count *count);

/* The whole of a file; the caller frees it. */
strbuf golden_read(const char *path);

#endif
