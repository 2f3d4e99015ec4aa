/* inputs.h - model files named on the command line; `-` is standard input. */
#ifndef WEFT_RUNTIME_CLI_INPUTS_H
#define WEFT_RUNTIME_CLI_INPUTS_H

#include "runtime/base/diag.h"

/* Read a file of at most DSL_SOURCE_MAX bytes; the source lives in a. */
weft_status input_open(weft_diag *dg, arena *a, const char *operand,
                       source **out_src) WEFT_MUST_USE;

/* How diagnostics call it: the operand, or "<stdin>". */
const char *input_name(const char *operand);

static inline bool input_is_stdin(const char *operand)
{
    return operand[0] == '-' && operand[1] == '\0';
}

#endif
