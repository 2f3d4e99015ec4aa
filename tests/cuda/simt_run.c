/* simt_run.c - shared memory of blocks, and their order. */
#include "tests/cuda/simt_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/cuda/simt_copies.h"

char *simt_dynamic(void);
int simt_computing(void);

/* Static shared memory of the code that runs. The section's name is simt.h's. */
extern char __start_simt_shared[] __attribute__((weak));
extern char __stop_simt_shared[] __attribute__((weak));

enum { UNWRITTEN = 0xff, ALIGN = 128 };

typedef struct {
    const simt_grid *grid;
    size_t static_bytes, dynamic_bytes, block_bytes;
    char *memory; /* [blocks][block_bytes]: static, then dynamic */
    int now;      /* the block whose static memory is in its place; -1: none */
} shared_memory;

static shared_memory *the_shared;
static fibre_order order_now, order_asked = FIBRES_ORDERS;

void simt_order(fibre_order order)
{
    order_asked = order;
    order_now = FIBRES_FORWARD;
}

char *simt_dynamic(void)
{
    const shared_memory *s = the_shared;
    return s->memory + (size_t)fibre_now.group * s->block_bytes + s->static_bytes;
}

int simt_computing(void)
{
    return the_shared->grid->threads;
}

static void run_thread(void *ctx)
{
    const shared_memory *s = ctx;
    s->grid->kernel(s->grid->args);
}

/* What a block left in static memory waits for it while others run. */
static void enter_block(void *ctx, int block)
{
    shared_memory *s = ctx;
    size_t bytes = (size_t)(__stop_simt_shared - __start_simt_shared);
    if (s->now == block || bytes == 0)
        return;
    if (s->now >= 0)
        memcpy(s->memory + (size_t)s->now * s->block_bytes, __start_simt_shared, bytes);
    memcpy(__start_simt_shared, s->memory + (size_t)block * s->block_bytes, bytes);
    s->now = block;
}

static size_t up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static int64_t looks_left = -1;

void simt_host_writes(int64_t n)
{
    looks_left = n;
}

uint32_t simt_host_word(const uint32_t *p)
{
    if (looks_left >= 0 && looks_left-- == 0)
        *(uint32_t *)p = 1;
    return *p;
}

bool simt_launch(const simt_grid *g, char *error)
{
    shared_memory s = {.grid = g, .now = -1, .dynamic_bytes = up(g->dynamic_bytes)};
    s.static_bytes = up((size_t)(__stop_simt_shared - __start_simt_shared));
    s.block_bytes = s.static_bytes + s.dynamic_bytes;
    size_t all = ALIGN + (size_t)(g->blocks > 0 ? g->blocks : 0) * s.block_bytes;
    s.memory = aligned_alloc(ALIGN, all);
    if (!s.memory || !simt_copies_begin((size_t)(g->blocks > 0 ? g->blocks : 0) *
                                        (size_t)(g->threads + g->more))) {
        free(s.memory);
        snprintf(error, FIBRE_ERROR_MAX, "no memory for %d blocks", g->blocks);
        return false;
    }
    memset(s.memory, UNWRITTEN, all);
    fibre_work w = {.groups = g->blocks,
                    .lanes = g->threads + g->more,
                    .order = order_asked < FIBRES_ORDERS ? order_asked : order_now,
                    .lane = run_thread,
                    .enter = enter_block,
                    .ctx = &s};
    order_now = (order_now + 1) % FIBRES_ORDERS;
    the_shared = &s;
    bool ok = fibres_run(&w, error);
    the_shared = NULL;
    simt_copies_end();
    free(s.memory);
    return ok;
}
