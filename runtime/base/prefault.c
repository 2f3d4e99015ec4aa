/* prefault.c - each thread has a stretch populated by the system. */
#include "runtime/base/prefault.h"

#if defined(__linux__)
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

#if defined(__linux__) && defined(MADV_POPULATE_READ)

enum { SAMPLES = 32, WORTH_BYTES = 64 << 20, THREADS_MAX = 16, PAGE_LARGE = 2 << 20 };

typedef struct {
    char *p;
    size_t bytes;
    pthread_t thread;
    bool started;
} stretch;

/* By a few of its pages. */
static bool is_in_memory(char *p, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < SAMPLES; i++) {
        unsigned char here = 0;
        size_t at = bytes / SAMPLES * i / page * page;
        if (mincore(p + at, page, &here) != 0 || !(here & 1))
            return false;
    }
    return true;
}

static void *run(void *ctx)
{
    const stretch *s = ctx;
    (void)madvise(s->p, s->bytes, MADV_POPULATE_READ);
    return NULL;
}

void prefault(void *p, size_t bytes, int threads)
{
    stretch s[THREADS_MAX];
    if (bytes < WORTH_BYTES || !is_in_memory(p, bytes))
        return;
    int n = threads < 1 ? 1 : threads > THREADS_MAX ? THREADS_MAX : threads;
    size_t each = bytes / (size_t)n / PAGE_LARGE * PAGE_LARGE;
    for (int i = 0; i < n; i++) {
        size_t begin = each * (size_t)i;
        s[i] = (stretch){.p = (char *)p + begin, .bytes = i + 1 < n ? each : bytes - begin};
        s[i].started = i > 0 && pthread_create(&s[i].thread, NULL, run, &s[i]) == 0;
    }
    for (int i = 0; i < n; i++)
        if (!s[i].started)
            run(&s[i]);
    for (int i = 0; i < n; i++)
        if (s[i].started)
            pthread_join(s[i].thread, NULL);
}

static int populate_code(struct dl_phdr_info *program, size_t bytes, void *ctx)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    (void)bytes, (void)ctx;
    for (int i = 0; i < program->dlpi_phnum; i++) {
        const ElfW(Phdr) *s = &program->dlpi_phdr[i];
        uintptr_t begin = program->dlpi_addr + s->p_vaddr, first = begin / page * page;
        if (s->p_type == PT_LOAD && s->p_flags & PF_X)
            (void)madvise((void *)first, begin - first + s->p_memsz, MADV_POPULATE_READ);
    }
    return 1; /* the program comes first, then its libraries */
}

void prefault_code(void)
{
    dl_iterate_phdr(populate_code, NULL);
}

#else

void prefault(void *p, size_t bytes, int threads)
{
    (void)p, (void)bytes, (void)threads;
}

void prefault_code(void)
{
}

#endif
