/* ops.h - the tables of the language: operators, attributes, kinds, transforms, built-ins. Read-only. */
#ifndef WEFT_DSL_OPS_H
#define WEFT_DSL_OPS_H

#include "runtime/base/str.h"

typedef enum {
#define OP(name, ...) OP_##name,
#define LIB(...)
#include "dsl/ops.def"
#undef OP
#undef LIB
    OP_COUNT
} op_code;

/* What the fusing passes may do with an op. INSERTED ones come from the compiler only. */
typedef enum {
    FUSE_GATHER,
    FUSE_CONTRACTION,
    FUSE_ROWWISE,
    FUSE_ELEMENTWISE,
    FUSE_VIEW,
    FUSE_MOVE,
    FUSE_STATE,
    FUSE_ATTENTION,
    FUSE_INSERTED,
} fuse_class;

/* What computes it: a kernel, nothing since it is a view, others that a pass makes of it, or nothing yet. */
typedef enum { RUNS_KERNEL, RUNS_VIEW, RUNS_PASS, RUNS_NONE } op_runs;

typedef struct {
    op_code code;
    const char *name;
    int tier;
    const char *kinds; /* a letter for each operand, ops.def explains them */
    fuse_class fuses;
    op_runs runs;
    const char *operands, *result, *meaning;
} op_row;

/* What a number may be; the rest of an attribute's type says the rest. */
typedef enum {
    RANGE_ANY,
    RANGE_NUMBER, /* not a NaN */
    RANGE_FINITE,
    RANGE_FROM_0,
    RANGE_ABOVE_0,
    RANGE_COUNT, /* 1 .. ATTR_COUNT_MAX */
} attr_range;

#define ATTR_COUNT_MAX ((int64_t)INT32_MAX)

typedef enum { ATTR_INT, ATTR_FLOAT, ATTR_BOOL, ATTR_VECTOR, ATTR_WORD } attr_type;

typedef struct {
    op_code op;
    const char *name;
    attr_type type;
    const char *otherwise; /* the default as a user would write it; NULL where required */
    attr_range range;
    const char *words; /* of a WORD: the words, a space between them */
    const char *meaning;
} attr_row;

enum { OP_OPERANDS_MAX = 8, OP_ATTRS_MAX = 10 };

const op_row *op_row_of(op_code code);
const op_row *op_find(str name); /* NULL if there is none */
/* Operands an op takes at least and at most. */
void op_arity(const op_row *op, int *out_min, int *out_max);
bool op_operand_optional(const op_row *op, int i);
/* The op's attributes; they stand together in the table. */
const attr_row *op_attrs(op_code code, int *out_n);
/* NULL if x is in the range; else what it must be, such as "above 0". */
const char *range_refuses(attr_range range, double x);

typedef struct {
    const char *name;
    int tier;
    const char *file; /* models/std/<file>.weft */
    const char *operands, *meaning;
} lib_row;
const lib_row *lib_rows(int *out_n);

typedef enum {
#define KIND(name, ...) KIND_##name,
#define CELLKIND(...)
#define MODIFIER(...)
#define TRANSFORM(...)
#define BUILTIN(...)
#include "dsl/kinds.def"
#undef KIND
    KIND_COUNT
} kind_code;

typedef enum { SHAPE_ARROW, SHAPE_SIZES, SHAPE_NORM } kind_shape;
typedef enum { INDEX_NO, INDEX_MAY, INDEX_MUST } kind_index;

typedef struct {
    kind_code code;
    const char *name;
    kind_shape shape;
    kind_index index;
    const char *fill;
    const char *stored, *meaning;
} kind_row;
const kind_row *kind_find(str name);
const kind_row *kind_rows(int *out_n);

typedef enum {
#undef CELLKIND
#define KIND(...)
#define CELLKIND(name, ...) CELL_##name,
#include "dsl/kinds.def"
#undef CELLKIND
#define CELLKIND(...)
    CELL_KIND_COUNT
} cell_code;

typedef struct {
    cell_code code;
    const char *name, *arguments, *holds, *writer, *reader;
} cell_row;
const cell_row *cell_find(str name);
const cell_row *cell_rows(int *out_n);

typedef struct {
    const char *name, *takes, *meaning;
} modifier_row;
const modifier_row *modifier_find(str name);
const modifier_row *modifier_rows(int *out_n);

typedef enum {
#undef TRANSFORM
#define TRANSFORM(name, ...) TRANSFORM_##name,
#include "dsl/kinds.def"
#undef TRANSFORM
#define TRANSFORM(...)
    TRANSFORM_COUNT
} transform_code;

typedef struct {
    transform_code code;
    const char *name, *arguments, *meaning;
} transform_row;
const transform_row *transform_find(str name);
const transform_row *transform_rows(int *out_n);

typedef enum {
#undef BUILTIN
#define BUILTIN(name, ...) BUILTIN_##name,
#include "dsl/kinds.def"
#undef KIND
#undef CELLKIND
#undef MODIFIER
#undef TRANSFORM
#undef BUILTIN
    BUILTIN_COUNT
} builtin_code;

typedef struct {
    builtin_code code;
    const char *name;
    int n_min, n_max;
    const char *meaning;
} builtin_row;
const builtin_row *builtin_find(str name);
const builtin_row *builtin_rows(int *out_n);

/* The reference page (dsl/OPS.md), and one entry of it as plain text; false if no such name. */
void ops_page(strbuf *out);
bool ops_describe(str name, strbuf *out);

#endif
