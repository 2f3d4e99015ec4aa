/* program_code.h - generated code that was linked into a program. */
#ifndef WEFT_RUNTIME_PROGRAM_PROGRAM_CODE_H
#define WEFT_RUNTIME_PROGRAM_PROGRAM_CODE_H

#include "compiler/plan.h"
#include "runtime/exec/plan_code.h"

/* What gives a session the code of this plan; NULL: the program has none. */
const code_maker *program_code_maker(const plan *p);

#endif
