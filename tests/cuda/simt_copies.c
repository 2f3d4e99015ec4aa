/* simt_copies.c - each thread's copies in a queue of its own, in the order of their groups. */
#include "tests/cuda/simt_copies.h"

#include <stdlib.h>
#include <string.h>
#include "tests/base/fibres.h"

enum { UNWRITTEN = 0xff };

typedef struct {
    char *to;
    const char *from;
    size_t bytes, all;
    int group;
} copy;

typedef struct {
    copy *at;
    int n, room;
    int group; /* the one that copies are asked for in */
} queue;

static queue *queues;
static size_t n_queue;

bool simt_copies_begin(size_t threads)
{
    queues = calloc(threads ? threads : 1, sizeof *queues);
    n_queue = threads;
    return queues != NULL;
}

void simt_copies_end(void)
{
    for (size_t i = 0; i < n_queue; i++)
        free(queues[i].at);
    free(queues);
    queues = NULL;
    n_queue = 0;
}

static queue *own(void)
{
    return &queues[(size_t)fibre_now.group * (size_t)fibre_now.lanes + (size_t)fibre_now.lane];
}

void simt_copy(void *to, const void *from, size_t bytes, size_t all)
{
    queue *q = own();
    if (q->n == q->room) {
        q->room = q->room ? 2 * q->room : 64;
        q->at = realloc(q->at, (size_t)q->room * sizeof *q->at);
        if (!q->at)
            abort();
    }
    memset(to, UNWRITTEN, all);
    q->at[q->n++] = (copy){to, from, bytes, all, q->group};
}

static void copy_run(const copy *c)
{
    memcpy(c->to, c->from, c->bytes);
    if (c->bytes < c->all)
        memset(c->to + c->bytes, 0, c->all - c->bytes);
}

/* Copies of groups before this one. */
static void run(queue *q, int group)
{
    int n = 0;
    for (; n < q->n && q->at[n].group < group; n++)
        copy_run(&q->at[n]);
    q->n -= n;
    if (n > 0 && q->n > 0)
        memmove(q->at, q->at + n, (size_t)q->n * sizeof *q->at);
}

void simt_copies_group(void)
{
    own()->group++;
}

void simt_copies_wait(int left)
{
    queue *q = own();
    run(q, q->group - left);
}

void simt_copies_done(void)
{
    queue *q = own();
    run(q, q->group + 1);
}
