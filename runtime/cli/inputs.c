#include "runtime/cli/inputs.h"

#include "dsl/dsl.h"

weft_status input_open(weft_diag *dg, arena *a, const char *operand, source **out_src)
{
    if (input_is_stdin(operand))
        return source_read_stdin(dg, a, DSL_SOURCE_MAX, out_src);
    return source_open(dg, a, operand, DSL_SOURCE_MAX, out_src);
}

const char *input_name(const char *operand)
{
    return input_is_stdin(operand) ? "<stdin>" : operand;
}
