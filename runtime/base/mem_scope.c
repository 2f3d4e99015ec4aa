/* mem_scope.c - the blocks of a scope are a set of addresses beside the heap, so that blocks are no larger for it and nothing is spent
 * outside scopes. The set and the list of registrations take their own memory from malloc. */
#include "runtime/base/mem_scope.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { BLOCKS_FIRST = 64, UNDO_FIRST = 8 };

_Thread_local mem_scope *mem_scope_now;

void mem_scope_begin(mem_scope *s)
{
    static _Atomic mem_life newest;
    s->bytes = 0;
    s->outer = mem_scope_now;
    s->life = atomic_fetch_add_explicit(&newest, 1, memory_order_relaxed) + 1;
    s->block = NULL;
    s->block_n = s->block_cap = 0;
    s->undo = NULL;
    s->undo_n = s->undo_cap = 0;
    mem_scope_now = s;
}

static void free_tables(mem_scope *s)
{
    free(s->block);
    free(s->undo);
    s->block = NULL;
    s->undo = NULL;
    s->block_n = s->block_cap = s->undo_n = s->undo_cap = 0;
}

void mem_scope_end(mem_scope *s)
{
    if (mem_scope_now == s) /* else it has failed */
        mem_scope_now = s->outer;
    free_tables(s);
}

void mem_scope_fail(size_t bytes)
{
    mem_scope *s = mem_scope_now;
    s->bytes = bytes;
    while (s->undo_n > 0) {
        mem_undo u = s->undo[--s->undo_n];
        u.fn(u.ctx);
    }
    for (size_t i = 0; i < s->block_cap; i++)
        free((void *)s->block[i]);
    free_tables(s);
    mem_scope_now = s->outer;
    siglongjmp(s->env, 1);
}

mem_life mem_life_now(void)
{
    return mem_scope_now ? mem_scope_now->life : 0;
}

mem_scope *mem_scope_of(mem_life life)
{
    mem_scope *s = life ? mem_scope_now : NULL;
    while (s && s->life != life)
        s = s->outer;
    return s;
}

/* ---- blocks ---- */

static size_t first_slot(uintptr_t p, size_t cap)
{
    /* Fibonacci hashing: the high half of the product depends on every bit of the address. */
    return (size_t)(((uint64_t)p * 0x9e3779b97f4a7c15u) >> 32) & (cap - 1);
}

static uintptr_t *slot_of(uintptr_t *block, size_t cap, uintptr_t p)
{
    size_t i = first_slot(p, cap);
    while (block[i] != 0 && block[i] != p)
        i = (i + 1) & (cap - 1);
    return &block[i];
}

static bool grow_blocks(mem_scope *s)
{
    size_t cap = s->block_cap ? s->block_cap * 2 : BLOCKS_FIRST;
    uintptr_t *block = mem_must_fail(cap) ? NULL : calloc(cap, sizeof *block);
    if (!block)
        return false;
    for (size_t i = 0; i < s->block_cap; i++)
        if (s->block[i] != 0)
            *slot_of(block, cap, s->block[i]) = s->block[i];
    free(s->block);
    s->block = block;
    s->block_cap = cap;
    return true;
}

bool mem_scope_add(mem_scope *s, const void *p)
{
    if (s->block_n * 2 >= s->block_cap && !grow_blocks(s))
        return false;
    mem_scope_put_back(s, p);
    return true;
}

/* Empties the slot, and moves those after it that would not be found past an empty one. */
static void empty_slot(mem_scope *s, size_t hole)
{
    size_t mask = s->block_cap - 1;
    for (size_t i = (hole + 1) & mask; s->block[i] != 0; i = (i + 1) & mask) {
        size_t first = first_slot(s->block[i], s->block_cap);
        if (((i - first) & mask) >= ((i - hole) & mask)) {
            s->block[hole] = s->block[i];
            hole = i;
        }
    }
    s->block[hole] = 0;
    s->block_n--;
}

mem_scope *mem_scope_take(const void *block)
{
    uintptr_t p = (uintptr_t)block;
    for (mem_scope *s = mem_scope_now; s; s = s->outer) {
        uintptr_t *slot = s->block_n ? slot_of(s->block, s->block_cap, p) : NULL;
        if (!slot || *slot != p)
            continue;
        empty_slot(s, (size_t)(slot - s->block));
        return s;
    }
    return NULL;
}

void mem_scope_put_back(mem_scope *s, const void *p)
{
    *slot_of(s->block, s->block_cap, (uintptr_t)p) = (uintptr_t)p;
    s->block_n++;
}

/* ---- what is not memory ---- */

void mem_scope_on_fail(mem_undo_fn *fn, void *ctx)
{
    mem_scope *s = mem_scope_now;
    if (!s)
        return;
    if (s->undo_n == s->undo_cap) {
        size_t cap = s->undo_cap ? s->undo_cap * 2 : UNDO_FIRST;
        mem_undo *undo = mem_must_fail(cap) ? NULL : realloc(s->undo, cap * sizeof *undo);
        if (!undo) {
            fn(ctx);
            mem_scope_fail(cap * sizeof *undo);
        }
        s->undo = undo;
        s->undo_cap = cap;
    }
    s->undo[s->undo_n++] = (mem_undo){fn, ctx};
}

void mem_scope_forget(mem_undo_fn *fn, void *ctx)
{
    for (mem_scope *s = mem_scope_now; s; s = s->outer)
        for (size_t i = s->undo_n; i-- > 0;) {
            if (s->undo[i].fn != fn || s->undo[i].ctx != ctx)
                continue;
            for (s->undo_n--; i < s->undo_n; i++)
                s->undo[i] = s->undo[i + 1];
            return;
        }
}

static void unlock(void *m)
{
    pthread_mutex_unlock(m);
}

void mem_lock(pthread_mutex_t *m)
{
    pthread_mutex_lock(m);
    mem_scope_on_fail(unlock, m);
}

void mem_unlock(pthread_mutex_t *m)
{
    mem_scope_forget(unlock, m);
    pthread_mutex_unlock(m);
}
