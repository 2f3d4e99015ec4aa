/* lora_flags.h - the adapters that --lora names: opened, given slots, and used by the sequences of a session.
 *
 *     WEFT_TRY(lora_open(dg, m, f, &l));            reads them, so that slots and rank are known
 *     lora_want(&l, &how);
 *     WEFT_TRY(weft_session_create(dg, m, &how, &s));
 *     WEFT_TRY(lora_load(dg, &l, s, LORA_MIX));
 *     lora_close(&l); */
#ifndef WEFT_RUNTIME_CLI_LORA_FLAGS_H
#define WEFT_RUNTIME_CLI_LORA_FLAGS_H

#include "runtime/cli/model_flags.h"

enum { LORA_ADAPTERS_MAX = 1024 };

/* What one --lora says: a path, and a scale behind the last `=`, 1 without. W1903. */
weft_status lora_flag_read(weft_diag *dg, arena *a, const char *text, const char **out_path,
                           double *out_scale) WEFT_MUST_USE;

typedef struct {
    const model_flags *f;
    size_t n;               /* adapters; slot i + 1 is number i's */
    weft_adapter **adapter; /* [n]; NULL: one of random numbers */
    float *scale;           /* [n] */
    int64_t random_rank;    /* of those */
    int64_t rank;           /* the largest of all */
    arena *a;
} lora;

/* What rows use after lora_load: all of them the sum of all adapters; sequence i adapter i alone, counted round; or
 * nothing, until a row names a slot. */
typedef enum { LORA_MIX, LORA_EACH, LORA_SLOTS } lora_who;

/* Fails as lora_flag_read and weft_adapter_open do. `random:RANK*COUNT` stands for
 * adapters of random numbers on all weights of the layers, which measuring needs. Close it also after a failure. */
weft_status lora_open(weft_diag *dg, const weft_model *m, const model_flags *f,
                      lora *out) WEFT_MUST_USE;
/* Slots and rank that a session needs for them, unless the flags ask for more. */
void lora_want(const lora *l, weft_session_options *how);
weft_status lora_load(weft_diag *dg, lora *l, weft_session *s, lora_who who) WEFT_MUST_USE;
/* The same for those that have a plan of the model and run it themselves. */
weft_status lora_load_run(weft_diag *dg, const lora *l, const plan *p, session *run,
                          lora_who who) WEFT_MUST_USE;
void lora_close(lora *l);
/* Bytes of A and B that a call reads in which n_seq sequences are used so. */
int64_t lora_reads(const lora *l, const plan *p, int64_t n_seq, lora_who who);

#endif
