/* adapter_file.h - an adapter as its file has it, before any model: pairs of factors under the names of tensors.
 *
 * adapter_peft.c and adapter_gguf.c collect the tensors and settings of their format; adapter_file.c puts the halves
 * together and checks what can be checked without a model. Private to runtime/lora and the verb `lora`. */
#ifndef WEFT_RUNTIME_LORA_ADAPTER_FILE_H
#define WEFT_RUNTIME_LORA_ADAPTER_FILE_H

#include "runtime/base/vec.h"
#include "runtime/formats/model_file.h"

typedef struct {
    str name; /* of the tensor that is adapted, without .weight: model.layers.3.self_attn.q_proj, blk.3.attn_q */
    const model_tensor *a, *b;
    bool embedding;  /* looks up a column of A */
    bool turned;     /* its A is stored [in, rank] */
    int64_t stacked; /* of 3 axes: how many pairs; 0: one */
    int64_t rank, in, out;
    double scale;
} adapter_pair;

/* A tensor that is no half of a pair: a weight that was trained whole. */
typedef struct {
    str name; /* without .weight */
    const model_tensor *t;
} adapter_whole;

typedef enum { HALF_A, HALF_B, HALF_NONE } adapter_half;

/* A tensor of the file and what it is for. */
typedef struct {
    str name;
    adapter_half half;
    bool embedding;
    const model_tensor *t;
} adapter_entry;

typedef struct {
    arena *home;
    const char *path;
    model_file *mf;
    bool gguf;
    bool fan_in_fan_out; /* tensors of such modules are stored [in, out] */
    str base;            /* the model it was trained on, as its file says; may be empty */
    str arch;            /* of GGUF: the architecture that it is for; may be empty */
    double alpha;        /* as the file says */
    bool rslora;
    VEC(adapter_entry) entries;
    VEC(adapter_pair) pairs;   /* in the order of their names */
    VEC(adapter_whole) wholes; /* likewise */
} adapter_file;

/* guard: as in model_file_options. */
weft_status adapter_file_open(weft_diag *dg, const char *path, bool guard,
                              adapter_file **out) WEFT_MUST_USE;
void adapter_file_close(adapter_file *f);                               /* NULL is fine */
const adapter_pair *adapter_file_find(const adapter_file *f, str name); /* NULL: none such */

/* The numbers of a tensor, all of them, as f32: W1008 for a type that cannot be read, W0704 for one that is not finite. */
weft_status adapter_numbers(weft_diag *dg, const adapter_file *f, const model_tensor *t,
                            float *out) WEFT_MUST_USE;

/* The two formats: fill entries and settings; scale_of gives a pair's. */
weft_status adapter_read_peft(weft_diag *dg, adapter_file *f, const char *folder,
                              const model_file_options *how) WEFT_MUST_USE;
weft_status adapter_read_gguf(weft_diag *dg, adapter_file *f,
                              const model_file_options *how) WEFT_MUST_USE;
/* Halves to pairs; their scales follow. */
weft_status adapter_pair_up(weft_diag *dg, adapter_file *f) WEFT_MUST_USE;

#endif
