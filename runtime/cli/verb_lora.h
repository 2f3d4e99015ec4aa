/* verb_lora.h - what the files of `weft lora` share. */
#ifndef WEFT_RUNTIME_CLI_VERB_LORA_H
#define WEFT_RUNTIME_CLI_VERB_LORA_H

#include "runtime/cli/cli.h"
#include "runtime/lora/adapter_bind.h"

typedef struct {
    const char *model, *base, *out, *arch, *type;
    flag_list lora;
    int method;
    double density;
    int64_t seed, rank, threads;
    bool adapter;
} lora_options;

typedef struct {
    cli *c;
    weft_diag *dg;
    const lora_options *o;
    const char *path; /* the operand behind the word; NULL: none */
} lora_run;

/* A checkpoint bound with the names of its sites, and in the other format. */
typedef struct {
    model_file *mf;
    bound_model *bm;
} lora_model;

weft_status lora_model_open(lora_run *r, const char *path, const char *arch,
                            lora_model *out) WEFT_MUST_USE;
void lora_model_close(lora_model *m); /* also after a failure, and of one that is all zeros */
/* The last part of a path: what an adapter is for, in its file. */
const char *lora_base_name(arena *a, const char *path);
/* "PATH" or "PATH=SCALE"; the path in a. */
weft_status lora_spec(lora_run *r, arena *a, const char *text, const char **out_path,
                      double *out_scale) WEFT_MUST_USE;
int lora_threads(const lora_run *r);
/* Of B A, the scale multiplied in: the root of the sum of its squares. */
double lora_norm(const adapter_site *s);

weft_status lora_show(lora_run *r) WEFT_MUST_USE;
weft_status lora_merge(lora_run *r) WEFT_MUST_USE;
weft_status lora_convert(lora_run *r) WEFT_MUST_USE;
weft_status lora_extract(lora_run *r) WEFT_MUST_USE;

#endif
