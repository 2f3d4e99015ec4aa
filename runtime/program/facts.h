/* facts.h - what a program knows of its model, besides plans and weights: lines of text in the part `facts` of its image.
 *
 *     weft 0.1.0
 *     name llama
 *     context 512
 *     int vocab 4096
 *     float eps 1e-05
 */
#ifndef WEFT_RUNTIME_PROGRAM_FACTS_H
#define WEFT_RUNTIME_PROGRAM_FACTS_H

#include "runtime/formats/value.h"
#include "runtime/program/image.h"

enum { FACTS_BYTES_MAX = 1 << 16, FACTS_PARAMS_MAX = 256 };

typedef struct {
    const char *name; /* of the parameter */
    value v;          /* an integer or a float */
} fact_param;

typedef struct {
    const char *weft; /* the version that built the program */
    const char *name; /* of the model */
    int64_t context;  /* that it was built for */
    int n_param;
    fact_param *param;
} facts;

void facts_write(const facts *f, strbuf *out);
/* All of it in a. W1701 for lines that are not as above. */
weft_status facts_read(weft_diag *dg, const char *program, const image_part *p, arena *a,
                       facts *out) WEFT_MUST_USE;

#endif
