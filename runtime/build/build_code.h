/* build_code.h - generated code for a program's plans, as objects to link. */
#ifndef WEFT_RUNTIME_BUILD_BUILD_CODE_H
#define WEFT_RUNTIME_BUILD_BUILD_CODE_H

#include "codegen/codegen.h"

/* An object with the code of p for calls of one row, as weft_LEVEL_code, to a file. W1606. */
weft_status build_code(weft_diag *dg, const codegen *cg, const plan *p, const char *triple,
                       bool debug, const char *path) WEFT_MUST_USE;

#endif
