/* elaborate.h - a model file with a checkpoint at hand; part of the door of dsl/.
 *
 * The checker that proves a file for every size runs again with numbers: parameters are read, loops
 * unroll, conditions fold, every weight finds its tensor. What it reads comes from a dsl_host, what it
 * makes goes to a dsl_sink, node by node in an order that respects uses; compiler/ is behind both. */
#ifndef WEFT_DSL_ELABORATE_H
#define WEFT_DSL_ELABORATE_H

#include "dsl/ops.h"
#include "runtime/base/diag.h"
#include "runtime/base/dtype.h"

enum { DSL_RANK_MAX = 6, DSL_T = -1, DSL_R = -2, DSL_S = -3 };

/* ---- what a checkpoint tells ---- */

typedef enum {
    KEY_ABSENT,
    KEY_NULL,
    KEY_BOOL,
    KEY_INT,
    KEY_FLOAT,
    KEY_STR,
    KEY_LIST,
    KEY_OTHER
} key_kind;

typedef struct {
    key_kind kind;
    bool truth;
    int64_t integer;
    double number;
    str text;
    size_t n;         /* LIST: its length */
    const void *list; /* LIST: what host.item takes */
} key_value;

typedef struct {
    int id;
    str name;
    dtype type;
    int rank;
    int64_t dim[DSL_RANK_MAX]; /* slowest first */
} host_tensor;

typedef struct {
    void *ctx;
    bool gguf;        /* or Hugging Face */
    const char *file; /* for messages */
    str prefix;       /* what a GGUF key is prefixed with, for messages: "llama." */
    int64_t context;  /* session.context; 0: the trained one */
    key_value (*key)(void *ctx, str name);
    key_value (*item)(void *ctx, const key_value *list, size_t i);
    /* Every key, written as a model file would; for suggestions. */
    void (*each_key)(void *ctx, void (*take)(void *to, str name), void *to);
    int n_tensor;
    bool (*tensor)(void *ctx, str name, host_tensor *out);
    host_tensor (*tensor_at)(void *ctx, int id);
    /* The tensor's elements as numbers; false if it cannot be read. For small constants only. */
    bool (*read)(void *ctx, int id, double *out, int64_t n);
} dsl_host;

/* ---- what comes out ---- */

/* A value's type; a dimension below zero is T, R or S. A state cell as a value has cell >= 0. */
typedef struct {
    bool ids; /* i32, not f */
    int rank;
    int64_t dim[DSL_RANK_MAX]; /* slowest first */
    int cell;                  /* -1 for a tensor */
    int pairs;                 /* 0 none, 1 half, 2 interleaved: the order on the last axis */
} dsl_type;

typedef enum {
    REF_NONE,
    REF_VALUE,
    REF_WEIGHT,
    REF_CONST,
    REF_CELL,
    REF_INPUT,
    REF_NUMBER
} dsl_ref_kind;

/* An operand: %7, @blk[3].q_proj, #2, $kv[3], tokens, 0.125; REF_NONE where an optional one is absent. */
typedef struct {
    dsl_ref_kind kind;
    int id;        /* into the table of its kind */
    double number; /* REF_NUMBER */
} dsl_ref;

typedef enum {
    GATTR_NONE,
    GATTR_INT,
    GATTR_FLOAT,
    GATTR_BOOL,
    GATTR_WORD,
    GATTR_REF
} dsl_attr_kind;

typedef struct {
    dsl_attr_kind kind; /* NONE: absent, the default holds */
    int64_t integer;    /* INT, BOOL */
    double number;      /* FLOAT */
    str word;           /* WORD */
    dsl_ref ref;        /* REF: a vector */
} dsl_attr;

typedef struct {
    op_code op;
    int layer;    /* -1 outside layers */
    weft_loc loc; /* the .weft text it came from */
    int n_in;
    dsl_ref in[OP_OPERANDS_MAX];
    dsl_attr attr[OP_ATTRS_MAX]; /* in the order of attrs.def */
    int first, n_out;            /* its values are first .. first + n_out - 1 */
    /* What passes decide; 0 and false until then. */
    int map;        /* nodes of the same number are one element-wise expression */
    int chain;      /* nodes of the same number are computed in one go, tile by tile */
    bool recompute; /* of a chain: prepares what it reads, and may be done again by every thread */
} dsl_node;

typedef struct {
    int tensor;     /* in the checkpoint's directory */
    int64_t offset; /* bytes into it */
    int64_t rows;   /* how much of axis 0 it holds */
} dsl_piece;

/* A stored operand: the checkpoint's tensor after its transforms. Axis 0 is made of n_piece parts
 * (experts stored apart, joined tensors); within a part axis i advances stride[i] bytes. Blocks of a
 * quantised type lie along the last axis, whose stride is then 0. */
typedef struct {
    str name; /* blk[3].q_proj, blk[3].q_proj.bias */
    str line; /* q_proj: the name of the weight's line */
    weft_loc loc;
    int layer;
    dtype type;
    int rank;
    int64_t dim[DSL_RANK_MAX];
    int64_t stride[DSL_RANK_MAX];
    int n_piece;
    const dsl_piece *piece;
    const dsl_piece *scales; /* MXFP4_HF: the second tensor, piece by piece; NULL otherwise */
    const float
        *computed; /* an element map (`=>`) was applied: its values, dense; NULL otherwise */
    int pairs;     /* as in dsl_type */
    bool lora;     /* an adapter may attach here */
} dsl_weight;

typedef struct {
    int64_t n;
    const double *data;
    bool table; /* a rope table; factor multiplies cos and sin */
    double factor;
} dsl_const;

/* How a cell's rows lie in memory: in pages of a fixed number of tokens, all of a sequence in one page, or
 * in pages of which those behind the window are given back. A pass decides. */
typedef enum { CELL_UNDECIDED, CELL_PAGED, CELL_CONTIGUOUS, CELL_RING } dsl_cell_layout;

typedef struct {
    str name; /* kv[3] */
    cell_code kind;
    int64_t arg[3]; /* in the order of kinds.def: heads k v; dim v; ... */
    int64_t window; /* the widest of all attends that read it; 0: some see everything */
    weft_loc loc;
    dsl_cell_layout layout;
    int64_t keep; /* CELL_RING: rows behind a sequence's end that stay */
} dsl_cell;

typedef struct {
    str name;  /* logits, hidden, resid */
    int index; /* resid[3]: 3; -1 without one */
    int value; /* what it gives: [T, ..], [R, ..] or [S, ..] */
    weft_loc loc;
} dsl_output;

/* Of a checkpoint that is to be converted: what a setting and a weight are called in the other format. */
typedef struct {
    str key;         /* as model files write it: "block_count", "/general.name" */
    int64_t layer;   /* -1: not a list */
    key_value value; /* what has to stand there to be read as it is here */
} dsl_other_key;

typedef struct {
    const dsl_weight *weight; /* as it is bound here */
    str name;  /* of the tensor there; empty: there is no tensor that is just this weight */
    int pairs; /* its pair order there, as in dsl_type */
    int64_t run, turned; /* of every `run` rows the first `turned` are in that order */
    int64_t first, rows; /* it is these rows of the tensor; rows 0: all of it */
} dsl_other_weight;

/* Each returns the number of what it took, in the table of its kind; strings and arrays are the
 * elaborator's and must be copied. */
typedef struct {
    void *ctx;
    void (*model)(void *ctx, str name, str entry); /* first of all */
    void (*param)(void *ctx, str name, int64_t layer,
                  const key_value *v); /* layer -1: not a list */
    int (*weight)(void *ctx, const dsl_weight *w);
    int (*constant)(void *ctx, const dsl_const *c);
    int (*cell)(void *ctx, const dsl_cell *c);
    int (*input)(void *ctx, str name, const dsl_type *type);
    int (*node)(void *ctx, const dsl_node *n, const dsl_type *types); /* its first value */
    void (*output)(void *ctx, const dsl_output *o);
    void (*context)(
        void *ctx); /* session.context was asked for: with another one all this may differ */
    void (*trained)(
        void *ctx,
        int64_t context); /* the context that the model was trained for; NULL: not asked for */
    /* Names in the other format; NULL: not asked for. */
    void (*other_arch)(void *ctx, str arch);
    void (*other_key)(void *ctx, const dsl_other_key *k);
    void (*other_weight)(void *ctx, const dsl_other_weight *w);
} dsl_sink;

/* How well a file's models fit a checkpoint of this architecture: 0 not at all, 1 by name, 2 by name and
 * a true condition. out_model is the best one's name, a view into src. */
weft_status dsl_match(weft_diag *dg, const source *src, const dsl_host *host, str arch,
                      int *out_rank, str *out_model) WEFT_MUST_USE;

typedef struct {
    str model;     /* empty: the only one in the file */
    str entry;     /* empty: decode */
    bool std_only; /* a stranger's text: it may import std and nothing else */
    bool checked;  /* dsl_check has passed this text */
    arena *home;   /* imported sources live here, for the places of nodes to point into */
} elaborate_options;

/* Check the file, bind it to the host's checkpoint and hand the entry's graph to the sink. Every tensor
 * must be claimed (W0505). */
weft_status dsl_elaborate(weft_diag *dg, const source *src, const elaborate_options *opt,
                          const dsl_host *host, const dsl_sink *sink) WEFT_MUST_USE;

#endif
