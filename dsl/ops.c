/* ops.c - the tables of ops.def, attrs.def and kinds.def as arrays, and look-ups in them. */
#include "dsl/ops.h"

#include <math.h>

#include <stdlib.h>

static const op_row ops[] = {
#define OP(name, tier, kinds, rule, fuses, runs, operands, result, meaning)                        \
    {OP_##name, #name, tier, kinds, FUSE_##fuses, RUNS_##runs, operands, result, meaning},
#define LIB(...)
#include "dsl/ops.def"
#undef OP
#undef LIB
};

static const lib_row libs[] = {
#define OP(...)
#define LIB(name, tier, file, operands, meaning) {#name, tier, file, operands, meaning},
#include "dsl/ops.def"
#undef OP
#undef LIB
};

#define REQUIRED NULL
static const attr_row attrs[] = {
#define ATTR(op, name, type, need, range, words, meaning)                                          \
    {OP_##op, #name, ATTR_##type, need, RANGE_##range, words, meaning},
#include "dsl/attrs.def"
#undef ATTR
};

#define KIND(name, shape, index, fill, stored, meaning)                                            \
    {KIND_##name, #name, SHAPE_##shape, INDEX_##index, fill, stored, meaning},
#define CELLKIND(...)
#define MODIFIER(...)
#define TRANSFORM(...)
#define BUILTIN(...)
static const kind_row kinds[] = {
#include "dsl/kinds.def"
};
#undef KIND
#undef CELLKIND
#define KIND(...)
#define CELLKIND(name, arguments, holds, writer, reader)                                           \
    {CELL_##name, #name, arguments, holds, writer, reader},
static const cell_row cells[] = {
#include "dsl/kinds.def"
};
#undef CELLKIND
#undef MODIFIER
#define CELLKIND(...)
#define MODIFIER(name, takes, meaning) {#name, takes, meaning},
static const modifier_row modifiers[] = {
#include "dsl/kinds.def"
};
#undef MODIFIER
#undef TRANSFORM
#define MODIFIER(...)
#define TRANSFORM(name, arguments, meaning) {TRANSFORM_##name, #name, arguments, meaning},
static const transform_row transforms[] = {
#include "dsl/kinds.def"
};
#undef TRANSFORM
#undef BUILTIN
#define TRANSFORM(...)
#define BUILTIN(name, n_min, n_max, meaning) {BUILTIN_##name, #name, n_min, n_max, meaning},
static const builtin_row builtins[] = {
#include "dsl/kinds.def"
};
#undef KIND
#undef CELLKIND
#undef MODIFIER
#undef TRANSFORM
#undef BUILTIN

#define COUNT(rows) (int)(sizeof(rows) / sizeof *(rows))

/* Each table is found by name, and given whole to who prints it. */
#define TABLE(noun, rows)                                                                          \
    const noun##_row *noun##_find(str name)                                                        \
    {                                                                                              \
        for (int i = 0; i < COUNT(rows); i++)                                                      \
            if (str_eqz(name, (rows)[i].name))                                                     \
                return &(rows)[i];                                                                 \
        return NULL;                                                                               \
    }                                                                                              \
    const noun##_row *noun##_rows(int *out_n)                                                      \
    {                                                                                              \
        *out_n = COUNT(rows);                                                                      \
        return rows;                                                                               \
    }
TABLE(kind, kinds)
TABLE(cell, cells)
TABLE(modifier, modifiers)
TABLE(transform, transforms)
TABLE(builtin, builtins)

const lib_row *lib_rows(int *out_n)
{
    *out_n = COUNT(libs);
    return libs;
}

const op_row *op_row_of(op_code code)
{
    return &ops[code];
}

const op_row *op_find(str name)
{
    for (int i = 0; i < COUNT(ops); i++)
        if (str_eqz(name, ops[i].name))
            return &ops[i];
    return NULL;
}

/* The operand column is written for people: an operand ends at a comma outside brackets, and its name
 * ends in `?` when it may be left out. */
bool op_operand_optional(const op_row *op, int i)
{
    int depth = 0;
    bool in_name = true;
    for (const char *p = op->operands; *p; p++) {
        depth += (*p == '[') - (*p == ']');
        if (i == 0 && in_name && (*p == '?' || *p == ' '))
            return *p == '?';
        if (*p == ',' && depth == 0) {
            i--;
            in_name = true;
            p++; /* the space behind the comma */
        }
    }
    return false;
}

void op_arity(const op_row *op, int *out_min, int *out_max)
{
    int n = (int)strlen(op->kinds);
    *out_max = n;
    *out_min = 0;
    for (int i = 0; i < n; i++)
        *out_min += !op_operand_optional(op, i);
}

const char *range_refuses(attr_range range, double x)
{
    static const char *const wanted[] = {[RANGE_NUMBER] = "a number",
                                         [RANGE_FINITE] = "a finite number",
                                         [RANGE_FROM_0] = "a finite number from 0",
                                         [RANGE_ABOVE_0] = "a finite number above 0",
                                         [RANGE_COUNT] = "a whole number from 1 to 2147483647"};
    bool fits = range == RANGE_ANY || (range == RANGE_NUMBER && !isnan(x));
    if (isfinite(x))
        fits |= range == RANGE_FINITE || (range == RANGE_FROM_0 && x >= 0) ||
                (range == RANGE_ABOVE_0 && x > 0) ||
                (range == RANGE_COUNT && x >= 1 && x <= (double)ATTR_COUNT_MAX);
    return fits ? NULL : wanted[range];
}

const attr_row *op_attrs(op_code code, int *out_n)
{
    const attr_row *first = NULL;
    *out_n = 0;
    for (int i = 0; i < COUNT(attrs); i++) {
        if (attrs[i].op != code)
            continue;
        if (!first)
            first = &attrs[i];
        ++*out_n;
    }
    return first;
}
