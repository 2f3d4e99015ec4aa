/* adapter_bind.h - a file's pairs bound to a model, for those that have the file open. Private to runtime/lora and the
 * verb `lora`. */
#ifndef WEFT_RUNTIME_LORA_ADAPTER_BIND_H
#define WEFT_RUNTIME_LORA_ADAPTER_BIND_H

#include "runtime/lora/adapter.h"
#include "runtime/lora/adapter_file.h"

/* full: whole weights are wanted; otherwise they are refused (W0705). */
weft_status adapter_bind(weft_diag *dg, const adapter_file *f, const bound_model *bm, bool full,
                         adapter **out) WEFT_MUST_USE;

#endif
