/* mix.h - which type each tensor of a model is stored in: a preset such as Q4_K_M, and rules of one's own. */
#ifndef WEFT_RUNTIME_QUANT_MIX_H
#define WEFT_RUNTIME_QUANT_MIX_H

#include "runtime/base/diag.h"
#include "runtime/base/dtype.h"
#include "runtime/base/vec.h"

typedef struct mix_preset {
    const char *name;
    int file_type; /* general.file_type */
    dtype base;
} mix_preset;

/* NULL: no such preset. Upper and lower case are alike. */
const mix_preset *mix_find(const char *name);
void mix_names(strbuf *out); /* "F32, F16, ..." */

typedef struct {
    str pattern; /* * any run of characters, ? any one */
    dtype type;
} mix_rule;

typedef VEC(mix_rule) mix_rules;

/* "PATTERN=TYPE", borrowed; W1903 where it is not that. */
weft_status mix_rule_parse(weft_diag *dg, const char *text, mix_rule *out_rule) WEFT_MUST_USE;

/* What the choice depends on, besides the name. */
typedef struct {
    const mix_preset *preset;
    const mix_rules *rules; /* before the preset's own; the first that fits wins */
    int64_t layers, experts;
    bool tied; /* there is no output.weight */
} mix_model;

typedef struct {
    dtype type;
    dtype wanted; /* differs where rows are no whole blocks of it */
    bool keep;    /* stays in the type it has, unless that is foreign to GGUF */
    bool ruled;   /* by a rule of one's own */
} mix_choice;

mix_choice mix_choose(const mix_model *m, str name, int rank, int64_t columns);

#endif
