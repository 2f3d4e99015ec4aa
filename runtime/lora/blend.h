/* blend.h - several adapters made one: what they add to a weight, element by element.
 *
 *   linear  the sum, each times its share
 *   ties    of each the largest elements stay (density); where signs differ the heavier side wins, and what agrees with it
 *           is averaged (Yadav et al. 2023, as PEFT computes it)
 *   dare    of each a random part stays (density), divided by density; then the sum (Yu et al. 2023). The seed, the names
 *           of the weights and the adapters' order decide, not the threads
 *   slerp   two adapters: on the arc between them, as far as the second's share (of both) says
 *
 * Any line of a blend can be had by itself, so that merging into weights takes no memory for whole matrices. */
#ifndef WEFT_RUNTIME_LORA_BLEND_H
#define WEFT_RUNTIME_LORA_BLEND_H

#include "runtime/lora/adapter.h"

enum { BLEND_MAX = 16, BLEND_COLUMNS = 256 };

typedef enum { BLEND_LINEAR, BLEND_TIES, BLEND_DARE, BLEND_SLERP } blend_method;

typedef struct {
    const adapter *from; /* must outlive the blend */
    double share;
} blend_input;

typedef struct {
    blend_method method;
    double density; /* of ties and dare, above 0 and at most 1 */
    uint64_t seed;  /* of dare */
    /* What ties needs to be known before, the size that an element must have, takes two looks at all of them. */
    int threads; /* of the pool (runtime/exec/pool.h), which the caller has acquired; 0 is 1 */
    void (*progress)(void *ctx,
                     uint64_t done); /* with how many of all adapters' sites; may be NULL */
    void *ctx;
} blend_options;

typedef struct {
    const adapter_site *site;
    double by;    /* share times scale; of slerp its coefficient times scale */
    float least;  /* of ties: smaller elements count as 0 */
    uint64_t key; /* of dare */
} blend_part;

typedef struct {
    adapter_site place; /* weight, index, in, out and name; the sum of all ranks; no factors */
    int n_part;
    const blend_part *part;
} blend_site;

typedef struct {
    arena *home;
    blend_options how;
    size_t n_site;
    const blend_site *site; /* by weight, then index */
} blend;

/* W0705 for what a method does not take. */
weft_status blend_create(weft_diag *dg, const blend_input *in, size_t n, const blend_options *how,
                         blend **out) WEFT_MUST_USE;
void blend_destroy(blend *b); /* NULL is fine */

/* Whether the result is a sum of its parts, each times a number. */
bool blend_is_sum(const blend *b);
/* Elements [first, first + n) of row `line`, with flip of that column; n <= BLEND_COLUMNS. */
void blend_line(const blend *b, const blend_site *s, int64_t line, bool flip, int64_t first, int n,
                double *out);

#endif
