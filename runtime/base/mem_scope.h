/* mem_scope.h - what happens to a call of the library when memory is short.
 *
 *     weft_status weft_x(weft_diag *dg, ...)
 *     {
 *         MEM_SCOPE(scope);
 *         if (sigsetjmp(scope.env, 0) != 0)
 *             return diag_fail_memory(dg, scope.bytes);
 *         ...                                     any return ends the scope
 *     }
 *
 * Each call of the public interface runs in a scope of its thread. Where memory is short, mem_exhausted releases all
 * that was taken since the scope began and goes back to its sigsetjmp. A call that returns normally ends the scope, and
 * all that it took belongs to whoever has it. Scopes nest: a call made inside a callback of another has its own. A thread
 * without a scope (a worker of the pool) must not allocate.
 *
 * Taken inside a scope, and so released if it fails:
 * - blocks of mem_alloc, mem_try_alloc and mem_realloc(NULL), and with them strings, vectors and arenas;
 * - what was registered with mem_scope_on_fail: descriptors, mappings, locks, objects of other libraries. Only what is not
 *   itself made of things that are registered: a file is, the model that holds it is not.
 * Not released, because they belong to objects that were there before:
 * - a block that was there before and grows by mem_realloc: it stays what it was. So a vector or string of an object that
 *   outlives calls has its first block when the object is made (VEC_START, strbuf_start);
 * - blocks of an arena that was there before: an arena remembers the scope that it was created in. Other objects do the
 *   same with mem_alloc_for.
 * A function that changes such an object takes memory first and changes it then, so that the object is whole wherever it
 * is left. */
#ifndef WEFT_RUNTIME_BASE_MEM_SCOPE_H
#define WEFT_RUNTIME_BASE_MEM_SCOPE_H

#include "runtime/base/status.h"
#include <pthread.h>
#include <setjmp.h>

typedef uint64_t mem_life; /* names a scope for as long as the process runs; 0: none */

typedef void mem_undo_fn(void *ctx);
typedef struct {
    mem_undo_fn *fn;
    void *ctx;
} mem_undo;

typedef struct mem_scope mem_scope;
struct mem_scope {
    sigjmp_buf env;
    size_t bytes; /* that could not be had */
    mem_scope *outer;
    mem_life life;
    uintptr_t *block; /* a set of addresses: open addressing, 0 is an empty slot */
    size_t block_n, block_cap;
    mem_undo *undo; /* in the order they were registered */
    size_t undo_n, undo_cap;
};

/* Begins a scope that ends with the block it stands in. */
#define MEM_SCOPE(name)                                                                            \
    mem_scope name __attribute__((cleanup(mem_scope_end)));                                        \
    mem_scope_begin(&(name))
void mem_scope_begin(mem_scope *s);
void mem_scope_end(mem_scope *s);

/* Have fn(ctx) called if the newest scope fails, last registered first. It must not allocate. Does nothing without a scope. Where the
 * registration itself has no memory, fn(ctx) is called at once and the scope fails. */
void mem_scope_on_fail(mem_undo_fn *fn, void *ctx);
/* The newest of these registrations is not wanted any more, if there is one: ctx was released in the usual way. */
void mem_scope_forget(mem_undo_fn *fn, void *ctx);

/* Locks that are released if memory is short while they are held. */
void mem_lock(pthread_mutex_t *m);
void mem_unlock(pthread_mutex_t *m);

mem_life mem_life_now(void); /* of the newest scope; 0: there is none */
/* As mem_alloc, for an object that was made while mem_life_now was `life`: released with the others of that scope if it is
 * still there, and kept if not. */
void *mem_alloc_for(mem_life life, size_t bytes);
/* A block that no scope releases, for objects of other libraries that are registered themselves; NULL where memory is short. */
void *mem_try_kept(size_t bytes);

/* ---- between mem.c and mem_scope.c ---- */

bool mem_must_fail(size_t bytes);              /* asks for too much, or a test wants it */
extern _Thread_local mem_scope *mem_scope_now; /* the newest of this thread, or NULL */
WEFT_NORETURN void mem_scope_fail(size_t bytes);
mem_scope *mem_scope_of(mem_life life);          /* NULL: it has ended */
bool mem_scope_add(mem_scope *s, const void *p); /* false: no memory */
/* Takes a block out of the scope that has it, and gives that scope; NULL: none has. */
mem_scope *mem_scope_take(const void *p);
void mem_scope_put_back(mem_scope *s,
                        const void *p); /* after taking one out there is room for one */

#endif
