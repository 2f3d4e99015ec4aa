/* weights_cpu.h - weights on the CPU: in place in the mapped checkpoint, copied, or in the weight cache. */
#ifndef WEFT_RUNTIME_EXEC_WEIGHTS_CPU_H
#define WEFT_RUNTIME_EXEC_WEIGHTS_CPU_H

#include "runtime/exec/weight_rows.h"
#include "runtime/exec/weights.h"

/* The functions of the device's table. */
weft_status cpu_weights_load(weft_diag *dg, device *d, const plan *p, const weight_source *src,
                             const weights_options *opt, weights **out_w);
void cpu_weights_free(weights *w);
weights_memory cpu_weights_need(device *d, const plan *p, const weight_source *src,
                                const weights_options *opt);
weights_memory cpu_weights_bytes(const weights *w);
weft_status cpu_weights_check(weft_diag *dg, const weights *w);

/* What an operand with weight i of the plan is given: the address of its first row, or a table of
 * addresses where the plan says so. */
const void *cpu_weights_at(const weights *w, int32_t i);

/* Make all INTERLEAVED weights of p with opt->threads, one after the other into `to`. weights_interleave.c */
weft_status cpu_weights_interleave(weft_diag *dg, const plan *p, const weight_source *src,
                                   const weights_options *opt, char *to) WEFT_MUST_USE;

#endif
