/* kpolicy.h - which forms the pages of state cells have, by age: a list of tiers, finest first.
 *
 * A page whose youngest token is at least `last` tokens behind a row is in a coarser tier for that row (kcell.h). Rows are
 * appended in tier 0, so its forms are floats; each further tier is coarser than the one before in keys, values or
 * both, and finer in neither. The last one has no end. */
#ifndef WEFT_KERNELS_KPOLICY_H
#define WEFT_KERNELS_KPOLICY_H

#include "kernels/kform.h"
#include "runtime/base/str.h"

enum { K_TIERS_MAX = 4, KPOLICY_REST = INT32_MAX };

typedef struct {
    kform key, value;
    int32_t last; /* KPOLICY_REST: the last tier */
} kpolicy_tier;

typedef struct {
    int32_t n_tier;
    kpolicy_tier tier[K_TIERS_MAX];
} kpolicy;

/* All in one form; one with codes comes after f16 last=0, as pages that are not full have floats. */
kpolicy kpolicy_plain(kform key, kform value);
/* The tiers of a cell that must not be coarser than `coarsest` (KFORM_COUNT: no bound). Of a latent cell values are keys. */
kpolicy kpolicy_for_cell(const kpolicy *p, kform coarsest, bool latent);

/* May pages of `from` become pages of `to`: the same, or coarser? */
bool kpolicy_follows(kform from, kform to);
/* Is it a policy at all? NULL: yes, else what is wrong with it. */
const char *kpolicy_wrong(const kpolicy *p);
bool kpolicy_same_forms(const kpolicy *a, const kpolicy *b);

/* As people write it: "f16", "f16 last=256, q8/f16 rest". */
void kpolicy_print(const kpolicy *p, strbuf *out);
enum { KPOLICY_TEXT_MAX = 160 };
const char *kpolicy_text(const kpolicy *p, char to[KPOLICY_TEXT_MAX]); /* the same, in `to` */
/* Bytes of a number, keys and values alike, on the average of the newest `length` tokens; without steps of codes. */
double kpolicy_bytes(const kpolicy *p, int64_t length);

#endif
