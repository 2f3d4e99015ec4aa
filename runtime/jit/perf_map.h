/* perf_map.h - the functions of generated code by their names, for perf. */
#ifndef WEFT_RUNTIME_JIT_PERF_MAP_H
#define WEFT_RUNTIME_JIT_PERF_MAP_H

#include "compiler/plan.h"
#include "runtime/exec/plan_code.h"

/* With WEFT_PERF in the environment: adds the functions of an object that was linked, and whose table this is, to
 * /tmp/perf-PID.map, where perf looks for code that is in no file. Nothing happens where that cannot be written. */
void perf_map_add(const plan *p, const plan_code *code, str object);

#endif
