/* job_rows.h - rows of a bound weight as f32, wherever and in whatever type the checkpoint keeps them. */
#ifndef WEFT_RUNTIME_QUANT_JOB_ROWS_H
#define WEFT_RUNTIME_QUANT_JOB_ROWS_H

#include "compiler/compiler.h"

/* Row i, all axes but the last counted as one, of a weight of two axes or more; in the pair order that o asks for. Its type
 * is one that dequant_has, or MXFP4_HF; not a weight with computed numbers. */
void job_weight_row(const model_file *mf, const other_weight *o, int64_t i, float *dst);

#endif
