/* sema_value.h - what an expression of the language is worth to the checker; private to dsl/.
 *
 * The checker is an evaluator whose numbers may be symbols. Without a model a parameter is a symbol,
 * with one it is a number; the code is the same. VAL_UNKNOWN stands for what an error left behind or
 * what only a checkpoint decides: it fits everywhere and is never reported again. */
#ifndef WEFT_DSL_SEMA_VALUE_H
#define WEFT_DSL_SEMA_VALUE_H

#include "dsl/ast.h"
#include "dsl/cond.h"
#include "compiler/graph.h"
#include "dsl/ops.h"
#include "dsl/poly.h"

typedef enum { ORIGIN_GGUF, ORIGIN_HF, ORIGIN_COUNT } origin;
static inline origin origin_of(str name)
{
    return str_eqz(name, "gguf") ? ORIGIN_GGUF : ORIGIN_HF;
}
typedef enum { PAIRS_NONE, PAIRS_HALF, PAIRS_INTERLEAVED } pair_order;

enum { TENSOR_RANK_MAX = 6 };

/* A tensor's type. Its last axis may carry a pair order, for each origin of the weights. */
typedef struct {
    bool ids; /* i32, not f */
    int rank;
    const poly *dim[TENSOR_RANK_MAX]; /* slowest first */
    pair_order pairs[ORIGIN_COUNT];
    const poly *run[ORIGIN_COUNT];    /* the order holds within every run of this many elements */
    const poly *turned[ORIGIN_COUNT]; /* and of each, for the first so many */
    const struct weight *paired;      /* the weight whose rows have that order, for messages */
} tensor_type;

typedef struct scope scope;
typedef struct group group;
typedef struct weight weight;
typedef struct cell cell;
typedef struct series series;

typedef enum {
    VAL_UNKNOWN,
    VAL_NONE,
    VAL_BOOL,
    VAL_INT,
    VAL_FLOAT,
    VAL_STR,
    VAL_WORD, /* an argument that is handed on to an attribute: half, tanh */
    VAL_LIST,
    VAL_VEC,    /* of floats, or of truths */
    VAL_TABLE,  /* rope_table */
    VAL_SERIES, /* a parameter with an index, not yet indexed */
    VAL_TENSOR,
    VAL_WEIGHT,
    VAL_GROUP,
    VAL_CELL,
    VAL_SCOPE, /* an included fragment, an imported file */
    VAL_BLOCK,
} val_kind;

typedef struct val val;
struct val {
    val_kind kind;
    bool maybe;        /* it may turn out to be none */
    bool known;        /* a constant whose value is here; otherwise only its type is */
    const void *who;   /* of one that may be none, or a string: what tests of it are about */
    const poly *index; /* WEIGHT, CELL: the layer; GROUP: the layer, or NULL for the whole */
    union {
        const cond *truth;         /* BOOL */
        const poly *size;          /* INT: the value; VEC, TABLE: the length */
        double number;             /* FLOAT */
        str text;                  /* STR, WORD */
        const val *item;           /* LIST: n of them */
        const series *series;      /* SERIES */
        const tensor_type *tensor; /* TENSOR */
        const weight *weight;      /* WEIGHT */
        const group *group;        /* GROUP */
        cell *cell;                /* CELL */
        scope *scope;              /* SCOPE */
        const ast *block;          /* BLOCK */
    };
    union {
        uint32_t n;                /* LIST, when known */
        uint32_t version;          /* CELL */
        const char *words;         /* WORD: those it may be, a space between them */
        bool truths;               /* VEC: of truths */
        const struct weight *from; /* TENSOR: the weight whose call gave it, for notes */
        struct scope *home;        /* BLOCK: the names it sees */
    };
    gref ref;                /* TENSOR, CELL: its name in the graph, with a checkpoint at hand */
    const struct cell *held; /* TENSOR: the cell attend read it from, for notes */
    const double *data;      /* VEC, TABLE: the elements, when known */
    double factor;           /* TABLE: on cos and sin, when known */
};

static inline val val_unknown(void)
{
    return (val){.kind = VAL_UNKNOWN};
}

/* A parameter that has one value per layer. */
struct series {
    const ast *decl;
    const poly *limit;
    val_kind kind;
    bool maybe;
    const val *at; /* with a checkpoint: the values, n of them */
    int64_t n;
};

struct group {
    const ast *decl;
    const poly *index; /* the symbol its lines are written with */
    const poly *limit;
    scope *names;  /* of the symbolic layer */
    scope **layer; /* with a checkpoint: of each layer, n_layer of them */
    int64_t n_layer;
};

struct weight {
    const ast *decl;
    str name;
    const char *text; /* the name again, ended by a NUL */
    const kind_row *kind;
    const group *group;  /* NULL outside groups */
    const cond *guard;   /* where it exists at all */
    const weight *other; /* the same name in another arm of an `if` */
    tensor_type stored;  /* [out, in], [rows, d], [E, out, in], ... */
    tensor_type bias;    /* rank 0 without one */
    val eps;             /* norms */
    bool optional;       /* `name?` */
    bool maybe_bias;     /* `bias?` */
    bool lora_off, prec_f32;
    bool in_fragment;
    bool *used;
    struct weight_bound *bound; /* with a checkpoint: where it is stored */
};

/* A weight's tensors after their transforms, and their numbers in the graph once they were used. */
typedef struct weight_bound {
    gweight stored, bias; /* bias.rank is 0 without one */
    int id, bias_id;      /* -1: not added yet */
} weight_bound;

enum { CELL_ARGS_MAX = 3 };

typedef struct cell_slot {
    const poly *index; /* NULL for a cell without one */
    uint32_t version;
    weft_loc at;                    /* of the newest append */
    const poly *arg[CELL_ARGS_MAX]; /* with a checkpoint: its sizes */
    gref ref;                       /* with a checkpoint: the newest version in the graph */
    int id;                         /* with a checkpoint: its number in the graph */
    struct cell_slot *next;         /* of the cell */
    struct cell_slot *chain;        /* in its bucket */
} cell_slot;

struct cell {
    const ast *decl;
    str name;
    const cell_row *kind;
    const poly *symbol, *limit; /* of the index; NULL without one */
    const poly *arg[CELL_ARGS_MAX];
    const cond *guard;
    cell_slot *slots; /* the newest version of each index */
    cell_slot **bucket;
    uint32_t n_slot, n_bucket; /* a power of two */
    bool written, read;
    weft_loc read_at;
    bool tagged; /* pairs below were set by an append */
    pair_order pairs[ORIGIN_COUNT];
    const poly *turned[ORIGIN_COUNT];
};

#endif
