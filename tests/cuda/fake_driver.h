/* fake_driver.h - a CUDA driver for tests: a card whose memory the host cannot read, whose work is done when somebody waits
 * for it, and whose kernel is emulated.cpp's weft_phases.
 *
 * What is queued in a stream runs when that stream is waited for, not before: results read too early, and buffers reused too
 * early, show. Streams do not wait for each other. Misuse that a card would answer with an error, or punish later, is kept as a
 * text: fake_misuse. One thread at a time. */
#ifndef WEFT_TESTS_CUDA_FAKE_DRIVER_H
#define WEFT_TESTS_CUDA_FAKE_DRIVER_H

#include "kernels/cuda/image.h"
#include "runtime/exec/cuda_driver.h"

typedef enum {
#define CUDA_FN(name, ...) FAKE_##name,
#include "runtime/exec/cuda_driver.def"
#undef CUDA_FN
    FAKE_COUNT
} fake_fn;

typedef struct {
    int cards, version, multiprocessors;
    int threads; /* of a block, whatever is asked for: kernels take any number of whole warps */
    size_t card_bytes, shared_bytes; /* shared: of a block, where it is asked for */
    bool together;                   /* are there cooperative launches? */
    bool old;                        /* sm_80: launches do not overlap */
} fake_card;
extern const fake_card fake_card_usual;

const cuda_driver *fake_driver(void);
extern const weft_cuda_image fake_kernels; /* what cuModuleLoadData takes is in it */

/* A card of this kind from here on, with nothing on it and nothing counted. */
void fake_reset(const fake_card *c);
/* Call number n (from 0, counted from here) of this function, of FAKE_COUNT: of any, has this result and does nothing.
 * n < 0: none fails. */
void fake_fail_at(fake_fn f, int64_t n, cu_result r);
bool fake_has_failed(void); /* such a call was made */
/* The card is lost with operation n that it runs from here on: that and all calls behind it fail, but freeing does not. */
void fake_lose_at(int64_t n);

typedef struct {
    size_t card_bytes, card_peak, host_bytes; /* that are allocated; at most so far */
    int contexts, streams, modules, pushed;   /* that are alive; contexts pushed and not popped */
    int64_t squares;                          /* launches of weft_squares and weft_experts */
    int64_t halves;                           /* and of weft_bulk with operands that are f16, */
    int64_t codes;                            /* of weft_codes */
    int64_t launches, phases, copies_in, copies_out, copies, waits;
    int64_t graphs;              /* launches that are graphs; */
    int64_t nodes, overlaps;     /* theirs, and those that may begin before the one before ends */
    int64_t bytes_in, bytes_out; /* of copies */
    int64_t chosen;              /* tokens, by the card */
} fake_counts;
fake_counts fake_seen(void);
int64_t fake_calls(fake_fn f); /* of the function; FAKE_COUNT: of all */
const char *fake_name(fake_fn f);
const char *fake_misuse(void); /* the first; NULL: none */
/* Keeps the text if it is the first; returns r. */
cu_result fake_misused(cu_result r, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool fake_holds_nothing(void); /* neither memory nor contexts, streams, modules or graphs */

#endif
