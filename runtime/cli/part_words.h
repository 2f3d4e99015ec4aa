/* part_words.h - the parts of a model whose layers are on two devices, in words and for programs. */
#ifndef WEFT_RUNTIME_CLI_PART_WORDS_H
#define WEFT_RUNTIME_CLI_PART_WORDS_H

#include "compiler/plan.h"
#include "runtime/base/json_write.h"

/* Part i: "cpu, layers 0 to 4", "cuda, layer 5", "cpu, behind the layers". */
void part_words(const plan_parts *plans, int32_t i, strbuf *out);
/* The levels of all plans, each once: "avx512 and sm_80". */
void part_levels(const plan_parts *plans, strbuf *out);
/* Keys of an object that is open: the device, its kernels, the first layer and how many there are. */
void part_keys(json_writer *w, const plan *p);

#endif
