/* fibres.h - code for groups of lanes (as GPUs run it) in one thread: each lane is a fibre with a stack of its own.
 *
 * A lane runs until it waits: for all lanes of its group (fibre_sync), for some of its subgroup (fibre_meet), or for
 * something that another group does (fibre_pause in a loop). Then another one runs. So what a lane does between two waits
 * is seen by the others at once or not before the second, as the order of the lanes has it: results that depend on the order
 * lack a wait. All groups of a run are begun; a group goes on until all of its lanes wait for others.
 *
 * Lanes that wait for what cannot come end the run: some lanes of a group at one barrier and others at another, or at none. */
#ifndef WEFT_TESTS_BASE_FIBRES_H
#define WEFT_TESTS_BASE_FIBRES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define FIBRE_NORETURN [[noreturn]]
extern "C" {
#else
#define FIBRE_NORETURN _Noreturn
#endif

enum { FIBRE_WIDTH = 32, FIBRE_LANES_MAX = 1024, FIBRE_ERROR_MAX = 400 };

typedef enum { FIBRES_FORWARD, FIBRES_BACKWARD, FIBRES_SHUFFLED, FIBRES_ORDERS } fibre_order;

typedef struct {
    int groups, lanes; /* lanes of each group, a multiple of FIBRE_WIDTH */
    fibre_order order; /* of the lanes of a group, and of groups */
    void (*lane)(void *ctx);
    void (*enter)(void *ctx, int group); /* lanes of this group run from here on; may be NULL */
    void *ctx;
} fibre_work;

/* False: what was wrong, in `error` [FIBRE_ERROR_MAX]. Lanes that had not ended are given up. */
bool fibres_run(const fibre_work *w, char *error);

/* The lane that runs. */
typedef struct {
    int group, groups, lane, lanes;
} fibre_id;
extern __thread fibre_id fibre_now; /* not thread_local: in C++ that would be a call */

/* Where a lane waits: what it says there, and in which line. */
typedef struct {
    const char *what, *file;
    int line;
} fibre_place;

/* Until all lanes of the group are at this place. The last one there calls `join` with what each brought, if not NULL. */
typedef void fibre_join(void **own, int n);
void fibre_sync(fibre_place at, void *own, fibre_join *join);
/* Until the first n lanes of the group are, of which it is one; those of one place have the same n. */
void fibre_sync_some(fibre_place at, int n);
/* Until those lanes of the subgroup of FIBRE_WIDTH that are in `mask` are at this place. join: [FIBRE_WIDTH], NULL where
 * the mask has no bit. */
void fibre_meet(fibre_place at, uint32_t mask, void *own, fibre_join *join);
/* Until all lanes of the subgroup are that have not ended. */
void fibre_meet_rest(fibre_place at, void *own, fibre_join *join);
/* Lets others run, of other groups too. */
void fibre_pause(fibre_place at);
/* Is it memory of the stack of the lane that runs? */
bool fibre_on_stack(const void *p);
/* Ends the run with an error: the lane asked for what the code may not ask for. */
FIBRE_NORETURN void fibre_fail(fibre_place at, const char *why);

#ifdef __cplusplus
}
#endif

#endif
