/* map_guard.c - a fixed table of ranges, which the SIGBUS handler can read without a lock. */
#include "runtime/formats/map_guard.h"

#include "runtime/base/mem_scope.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct {
    _Atomic uintptr_t begin; /* 0: free; written last, read first */
    _Atomic size_t bytes;
    _Atomic uintptr_t fault; /* 0: none */
} range;

static range ranges[MAP_GUARD_MAX];
static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER; /* for adding and removing */
static bool installed;                                          /* under ranges_lock */
static struct sigaction before;                                 /* set once, before any fault */
static uintptr_t page_bytes;                                    /* set once, likewise */

/* Two threads may do this to the same pages at once; either way they read zeros. */
static bool put_zeros(void *from, size_t bytes)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
#if defined(__linux__) && defined(SYS_mmap)
    /* The bare system call: nothing that a library or a sanitizer wraps around it is safe here. */
    return syscall(SYS_mmap, from, bytes, PROT_READ, flags, -1, (off_t)0) != -1;
#else
    return mmap(from, bytes, PROT_READ, flags, -1, 0) != MAP_FAILED;
#endif
}

/* True if the fault was in a guarded range, which is readable from here on. */
static bool handle(uintptr_t at)
{
    for (int i = 0; i < MAP_GUARD_MAX; i++) {
        range *r = &ranges[i];
        uintptr_t begin = atomic_load(&r->begin);
        size_t bytes = atomic_load(&r->bytes);
        if (begin == 0 || at < begin || at - begin >= bytes)
            continue;
        uintptr_t from = at - at % page_bytes;
        if (!put_zeros((void *)from, begin + bytes - from))
            return false;
        uintptr_t none = 0;
        atomic_compare_exchange_strong(&r->fault, &none, at);
        return true;
    }
    return false;
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
    int error = errno;
    /* A positive code means that the kernel raised it, so si_addr is the place of the fault. */
    if (info->si_code > 0 && handle((uintptr_t)info->si_addr)) {
        errno = error;
        return;
    }
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(sig, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(sig);
    } else {
        struct sigaction plain = {.sa_handler = SIG_DFL};
        sigaction(sig, &plain, NULL);
        raise(sig); /* delivered on return */
    }
    errno = error;
}

static void install(void)
{
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    installed = sigaction(SIGBUS, &action, &before) == 0;
}

static void remove_undone(void *slot)
{
    map_guard_remove((int)(intptr_t)slot);
}

int map_guard_add(const void *data, size_t bytes)
{
    int slot = -1;
    pthread_mutex_lock(&ranges_lock);
    if (!installed)
        install();
    for (int i = 0; installed && slot < 0 && i < MAP_GUARD_MAX; i++)
        if (atomic_load(&ranges[i].begin) == 0)
            slot = i;
    if (slot >= 0) {
        atomic_store(&ranges[slot].bytes, bytes);
        atomic_store(&ranges[slot].fault, 0);
        atomic_store(&ranges[slot].begin, (uintptr_t)data);
    }
    pthread_mutex_unlock(&ranges_lock);
    if (slot >= 0)
        mem_scope_on_fail(remove_undone, (void *)(intptr_t)slot);
    return slot;
}

void map_guard_remove(int slot)
{
    if (slot < 0)
        return;
    mem_scope_forget(remove_undone, (void *)(intptr_t)slot);
    pthread_mutex_lock(&ranges_lock);
    atomic_store(&ranges[slot].begin, 0);
    pthread_mutex_unlock(&ranges_lock);
}

bool map_guard_tripped(int slot, size_t *out_offset)
{
    uintptr_t at = slot < 0 ? 0 : atomic_load(&ranges[slot].fault);
    if (at == 0)
        return false;
    *out_offset = at - atomic_load(&ranges[slot].begin);
    return true;
}
