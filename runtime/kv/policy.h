/* policy.h - the text of a KV policy: how cells store keys and values by age.
 *
 *     policy = tier { "," tier } .
 *     tier   = form [ "/" form ] [ "last" "=" number | "rest" ] .     keys, and values where they differ
 *     form   = "f32" | "f16" | "bf16" | "q8" | "q8_0" | "q4" | "q4_0" .
 *
 * Finest first. Every tier but the last says how many of the newest tokens it is for; the last may say `rest`. Where the
 * first has codes (q8, q4) it comes after f16 last=0, because pages that are not full are stored as floats. */
#ifndef WEFT_RUNTIME_KV_POLICY_H
#define WEFT_RUNTIME_KV_POLICY_H

#include "kernels/kpolicy.h"
#include "runtime/base/diag.h"

enum { POLICY_TEXT_MAX = 1000, POLICY_LAST_MAX = 1 << 30 };

/* W1414 with the place in the text, which diagnostics call `name` (as "--kv"). */
weft_status policy_parse(weft_diag *dg, const char *name, str text, kpolicy *out) WEFT_MUST_USE;

#endif
