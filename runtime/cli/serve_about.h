/* serve_about.h - what `weft serve` shows people of its model: facts and model files as JSON, for the page. */
#ifndef WEFT_RUNTIME_CLI_SERVE_ABOUT_H
#define WEFT_RUNTIME_CLI_SERVE_ABOUT_H

#include "runtime/cli/model_flags.h"

typedef struct {
    const weft_model *m; /* opened from a file */
    const weft_session *s;
    const char *name; /* what clients call it */
    int64_t context;  /* of a request */
} served_model;

/* As runtime/page/README.md has it. */
void serve_about_json(const served_model *about, strbuf *out);

#endif
