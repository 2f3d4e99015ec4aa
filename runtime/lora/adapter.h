/* adapter.h - a LoRA adapter, read from a PEFT folder or a GGUF file and bound to the weights of a model.
 *
 *     adapter *ad;
 *     WEFT_TRY(adapter_open(dg, "models/stories-7m-pirate", bm, &ad));
 *     for (size_t i = 0; i < ad->n_site; i++) ... ad->site[i] ...
 *     adapter_close(ad);
 *
 * A weight line of the model file has the names of both formats and the transforms behind them; they are replayed on the
 * factors, so that an adapter of either format fits a checkpoint of either. Numbers are copied out as f32: the files are
 * closed again when adapter_open returns, and the bound_model may go.
 *
 * The file is a stranger's. W0701: a tensor reaches no site. W0702: ranks or shapes do not fit. W0703: the weight goes
 * through a map. W0704: a number is not finite. W0705: a kind of adapter that Weft does not have, by name. W0706: a half is
 * missing or stands twice, a setting makes no sense. W10xx: the file itself. */
#ifndef WEFT_RUNTIME_LORA_ADAPTER_H
#define WEFT_RUNTIME_LORA_ADAPTER_H

#include "compiler/compiler.h"

/* What is added to one weight: y += scale * B (A x), the scale of the session aside. Of an embed the input is a row
 * number and the output its row: in is the vocabulary, out the width, and a token takes a column of A. */
typedef struct {
    int32_t weight; /* of the graph */
    int32_t index;  /* expert or head; -1: the weight has none */
    int64_t rank, in, out;
    const float *a; /* [rank, in], in the base's order of columns; several sites may share it */
    const float *b; /* [out, rank], in the base's order of rows; scale not multiplied in */
    double scale;   /* alpha / r, or alpha / sqrt(r) */
    str name;       /* of the weight: blk[3].q_proj */
} adapter_site;

/* A weight that was trained whole (modules_to_save) and takes the place of the base's: to be merged, not run. */
typedef struct {
    int32_t weight, index;
    int64_t in, out;
    const float *const
        *row; /* [out] rows of [in], in the base's order; of an embed those of its table */
    str name;
} adapter_full;

typedef struct adapter {
    const char *path;
    uint64_t hash; /* of its bytes and scales: the same for the same numbers on every machine */
    int64_t rank_max;
    size_t n_site;
    const adapter_site *site; /* by weight, then index */
    size_t n_full;            /* 0 of what adapter_open gives, which refuses them */
    const adapter_full *full;
    arena *home;
} adapter;

weft_status adapter_open(weft_diag *dg, const char *path, const bound_model *bm,
                         adapter **out) WEFT_MUST_USE;
void adapter_close(adapter *a); /* NULL is fine */

#endif
