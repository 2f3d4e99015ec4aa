/* peft_pattern.h - the regular expressions of adapter_config.json (rank_pattern, alpha_pattern) and the modules they fit.
 *
 * As in PEFT a pattern fits a module if it matches its whole name, or all of it behind some dot. Matching is bounded;
 * a pattern that goes past the bound fits nothing. */
#ifndef WEFT_RUNTIME_LORA_PEFT_PATTERN_H
#define WEFT_RUNTIME_LORA_PEFT_PATTERN_H

#include "runtime/base/diag.h"
#include "runtime/formats/value.h"

typedef struct peft_patterns peft_patterns;

/* map: an object of numbers, NULL or null: none. what: its name, for messages (W0706). */
weft_status peft_patterns_create(weft_diag *dg, const char *path, const char *what,
                                 const value *map, peft_patterns **out) WEFT_MUST_USE;
void peft_patterns_destroy(peft_patterns *p); /* NULL is fine */
/* The number of the first pattern that fits; where none does it stays as it is. False: one takes too long to compare. */
bool peft_patterns_find(const peft_patterns *p, str module, double *number) WEFT_MUST_USE;

#endif
