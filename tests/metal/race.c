/* race.c - race mode: every access of a shader to memory, against what others did there with nothing in between.
 *
 * Shaders are compiled with the instrumentation of clang's thread sanitizer, whose functions are these. Memory has a record
 * for every two bytes of buffers and every byte of threadgroup memory: the last write and two reads, each as one word that says
 * which dispatch, threadgroup and thread it was, and how many barriers that had passed. Two accesses are in order when they are
 * of one thread, when a barrier of the right kind lies between, or when memoryBarrier did (lanes_order). A race with an older
 * access than those three is not seen, nor is a path that no thread took. */
#include "tests/metal/race.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A record, from the lowest bit: atomic 1, simdgroup barriers 11, barriers 18, thread 10, threadgroup 12, dispatch 12. */
typedef uint64_t record;
enum {
    SIMD_AT = 1,
    BARRIER_AT = 12,
    THREAD_AT = 30,
    GROUP_AT = 40,
    DISPATCH_AT = 52,
    SIMD_MAX = (1 << 11) - 1,
    BARRIER_MAX = (1 << 18) - 1,
    DISPATCH_MAX = (1 << 12) - 1,
    OVERLAPS_MAX = 64
};
#define FIELD(r, at, bits) ((uint32_t)((r) >> (at)) & ((1u << (bits)) - 1))
#define R_SIMD(r) FIELD(r, SIMD_AT, 11)
#define R_BARRIER(r) FIELD(r, BARRIER_AT, 18)
#define R_THREAD(r) FIELD(r, THREAD_AT, 10)
#define R_GROUP(r) FIELD(r, GROUP_AT, 12)
#define R_DISPATCH(r) FIELD(r, DISPATCH_AT, 12)

typedef struct {
    record write, read[2];
} cell;

typedef struct region {
    char *base;
    size_t bytes;
    cell *cells;
    uint32_t from; /* dispatches before this one are over for it */
    bool shared;   /* threadgroup memory: a cell for each byte */
    bool hidden;   /* no kernel may use it */
    char name[60];
} region;

static struct {
    pthread_mutex_t lock; /* of the table; a dispatch reads it alone */
    region *region;       /* [n_region], by base */
    int n_region, len_region;
    region arena, variables; /* threadgroup memory */
    uint32_t dispatch, from; /* the one that runs, and the first that is not over */
    const lanes_dispatch *d;
    const char *image, *image_end; /* of the library: its constant tables */
    uint32_t group;
    int lanes;
    uint32_t barrier[2]; /* by SHADER_DEVICE - 1, SHADER_SHARED - 1 */
    uint32_t simd[2][LANES_THREADS_MAX / FIBRE_WIDTH];
    record thread[2][LANES_THREADS_MAX]; /* what an access of this thread is now */
    int last;                            /* the region of the last access */
    bool runs;
} race = {.lock = PTHREAD_MUTEX_INITIALIZER, .from = 1};

/* ---- memory ---- */

static cell *cells_map(size_t n)
{
    void *p = mmap(NULL, n * sizeof(cell), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        fprintf(stderr, "race mode: out of memory\n");
        exit(2);
    }
    return p;
}

static size_t cells_of(const region *r)
{
    return r->shared ? r->bytes : r->bytes / 2 + 1;
}

static void region_forget(region *r)
{
    if (r->cells)
        madvise(r->cells, cells_of(r) * sizeof(cell), MADV_DONTNEED);
    r->from = 0;
}

/* The last region that does not begin after p; -1: none. */
static int region_before(const char *p)
{
    int low = 0, high = race.n_region;
    while (low < high) {
        int mid = (low + high) / 2;
        if (race.region[mid].base <= p)
            low = mid + 1;
        else
            high = mid;
    }
    return low - 1;
}

void lanes_memory_add(void *base, size_t bytes, const char *name)
{
    pthread_mutex_lock(&race.lock);
    if (race.n_region == race.len_region) {
        race.len_region = race.len_region ? 2 * race.len_region : 64;
        race.region = realloc(race.region, (size_t)race.len_region * sizeof *race.region);
        if (!race.region)
            abort();
    }
    int at = region_before(base) + 1;
    memmove(race.region + at + 1, race.region + at,
            (size_t)(race.n_region - at) * sizeof *race.region);
    race.n_region++;
    region *r = &race.region[at];
    *r = (region){.base = base, .bytes = bytes};
    snprintf(r->name, sizeof r->name, "%s", name);
    pthread_mutex_unlock(&race.lock);
}

void lanes_memory_remove(void *base)
{
    pthread_mutex_lock(&race.lock);
    int at = region_before(base);
    if (at >= 0 && race.region[at].base == base) {
        region *r = &race.region[at];
        if (r->cells)
            munmap(r->cells, cells_of(r) * sizeof(cell));
        race.n_region--;
        memmove(r, r + 1, (size_t)(race.n_region - at) * sizeof *r);
    }
    race.last = 0;
    pthread_mutex_unlock(&race.lock);
}

void lanes_memory_hide(void *base, bool hidden)
{
    int at = region_before(base);
    if (at >= 0 && race.region[at].base == base)
        race.region[at].hidden = hidden;
}

void lanes_order_all(void)
{
    race.from = race.dispatch + 1;
}

void lanes_order(void *base)
{
    int at = region_before(base);
    if (at >= 0 && race.region[at].base == base)
        race.region[at].from = race.dispatch + 1;
}

/* ---- where threads are ---- */

static void threads_set(int first, int n)
{
    for (int kind = 0; kind < 2; kind++)
        for (int i = first; i < first + n; i++)
            race.thread[kind][i] = (record)race.dispatch << DISPATCH_AT |
                                   (record)race.group << GROUP_AT | (record)i << THREAD_AT |
                                   (record)race.barrier[kind] << BARRIER_AT |
                                   (record)race.simd[kind][i / FIBRE_WIDTH] << SIMD_AT;
}

static void too_many(uint32_t n, uint32_t max, const char *what)
{
    if (n <= max)
        return;
    fprintf(stderr, "race mode: more than %u %s in one threadgroup\n", max, what);
    exit(2);
}

void race_group_barrier(int flags)
{
    for (int kind = 0; kind < 2; kind++)
        if (flags & 1 << kind) {
            too_many(++race.barrier[kind], BARRIER_MAX, "barriers");
            memset(race.simd[kind], 0, sizeof race.simd[kind]);
        }
    threads_set(0, race.lanes);
}

void race_simd_barrier(int simdgroup, int flags)
{
    for (int kind = 0; kind < 2; kind++)
        if (flags & 1 << kind)
            too_many(++race.simd[kind][simdgroup], SIMD_MAX, "simdgroup barriers");
    threads_set(simdgroup * FIBRE_WIDTH, FIBRE_WIDTH);
}

void race_group(uint32_t group, int lanes)
{
    race.group = group;
    race.lanes = lanes;
    memset(race.barrier, 0, sizeof race.barrier);
    memset(race.simd, 0, sizeof race.simd);
    threads_set(0, lanes);
}

static int find_image(struct dl_phdr_info *info, size_t size, void *ctx)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        const char *begin = (const char *)info->dlpi_addr + h->p_vaddr;
        if (h->p_type != PT_LOAD || (char *)ctx < begin || (char *)ctx >= begin + h->p_memsz)
            continue;
        race.image = (const char *)info->dlpi_addr;
        race.image_end = begin + h->p_memsz;
        return 1;
    }
    return 0;
}

static void shared_set(region *r, char *base, size_t bytes, const char *name)
{
    if (r->base != base || r->bytes != bytes || !r->cells) {
        if (r->cells)
            munmap(r->cells, cells_of(r) * sizeof(cell));
        *r = (region){.base = base, .bytes = bytes, .shared = true};
        r->cells = bytes ? cells_map(bytes) : NULL;
        snprintf(r->name, sizeof r->name, "%s", name);
    }
}

void race_dispatch(const lanes_dispatch *d, const char *arena, size_t arena_bytes)
{
    race.d = d;
    if (++race.dispatch > DISPATCH_MAX) { /* begin to count anew */
        for (int i = 0; i < race.n_region; i++)
            region_forget(&race.region[i]);
        region_forget(&race.arena);
        region_forget(&race.variables);
        race.dispatch = race.from = 1;
    }
    dl_iterate_phdr(find_image, (void *)d->library);
    shared_set(&race.arena, (char *)arena, arena_bytes, "threadgroup memory");
    shared_set(&race.variables, d->library->shared,
               (size_t)(d->library->shared_end - d->library->shared), "threadgroup variables");
    race.runs = true;
}

void race_end(void)
{
    race.runs = false;
}

/* ---- accesses ---- */

static bool in(const region *r, const char *p)
{
    return p >= r->base && p < r->base + r->bytes;
}

static region *region_of(const char *p)
{
    if (race.last < race.n_region && in(&race.region[race.last], p))
        return &race.region[race.last];
    /* Memory of the host may be in several that overlap. */
    for (int at = region_before(p), n = 0; at >= 0 && n < OVERLAPS_MAX; at--, n++)
        if (in(&race.region[at], p)) {
            race.last = at;
            return &race.region[at];
        }
    return NULL;
}

static const lanes_binding *binding_of(const char *p)
{
    for (int i = 0; i < SHADER_BUFFERS; i++) {
        const lanes_binding *b = &race.d->buffer[i];
        if (b->base && p >= (char *)b->base && p < (char *)b->base + b->bytes)
            return b;
    }
    return NULL;
}

/* Who is apart: none, or those that nothing puts in order. */
static const char *apart(record old, record new, const region *r)
{
    if (!old)
        return NULL;
    if (!r->shared) {
        uint32_t from = r->from > race.from ? r->from : race.from;
        if (R_DISPATCH(old) < from)
            return NULL;
        if (R_DISPATCH(old) != R_DISPATCH(new))
            return "dispatches";
        if (R_GROUP(old) != R_GROUP(new))
            return "threadgroups";
    } else if (old >> GROUP_AT != new >> GROUP_AT) {
        return NULL;
    }
    if (R_THREAD(old) == R_THREAD(new) || R_BARRIER(old) != R_BARRIER(new))
        return NULL;
    if (R_THREAD(old) / FIBRE_WIDTH != R_THREAD(new) / FIBRE_WIDTH)
        return "simdgroups";
    return R_SIMD(old) != R_SIMD(new) ? NULL : "threads of one simdgroup";
}

static bool tell(const region *r, const char *p, record old, record new, const char *what,
                 const void *code)
{
    const char *who = apart(old, new, r);
    if (!who || (old & new & 1)) /* two atomics are none */
        return false;
    if (!lanes_reports_full())
        lanes_report(code,
                     "race: %s, byte %ld of %s, between %s: thread %u of threadgroup %u (dispatch "
                     "%u), then thread %u of "
                     "threadgroup %u (dispatch %u) of %s",
                     what, (long)(p - r->base), r->name, who, R_THREAD(old), R_GROUP(old),
                     R_DISPATCH(old), R_THREAD(new), R_GROUP(new), R_DISPATCH(new), race.d->kernel);
    return true;
}

static void cell_read(region *r, cell *c, const char *p, record new, const void *code, bool *said)
{
    if (c->read[0] == new)
        return;
    if (!*said)
        *said = tell(r, p, c->write, new, "read after write", code);
    if (!*said && r->shared && (c->write == 0 || c->write >> GROUP_AT != new >> GROUP_AT)) {
        lanes_report(
            code,
            "read of byte %ld of %s, which nobody wrote, by thread %u of threadgroup %u of %s",
            (long)(p - r->base), r->name, R_THREAD(new), R_GROUP(new), race.d->kernel);
        *said = true;
    }
    /* Two reads are kept that are not in order with what comes, so that a write sees one of another thread. */
    if (apart(c->read[0], new, r))
        c->read[1] = c->read[0];
    else if (!apart(c->read[1], new, r))
        c->read[1] = 0;
    c->read[0] = new;
}

static void cell_write(region *r, cell *c, const char *p, record new, const void *code, bool *said)
{
    if (!*said)
        *said = tell(r, p, c->write, new, "write after write", code) ||
                tell(r, p, c->read[0], new, "write after read", code) ||
                tell(r, p, c->read[1], new, "write after read", code);
    c->write = new;
}

static void outside(const char *p, size_t bytes, bool writes, const void *code)
{
    Dl_info at;
    const char *what = "memory that is in no buffer";
    if (!writes && p >= race.image && p + bytes <= race.image_end)
        return; /* constant tables and function constants */
    if (dladdr(p, &at) && at.dli_fbase == (const void *)race.image)
        what = "constants of the library";
    if (p >= race.arena.base + race.arena.bytes && p < race.arena.base + race.arena.bytes + 65536)
        what = "threadgroup memory behind what it was given";
    if (!lanes_reports_full())
        lanes_report(code, "%s of %zu bytes of %s by thread %d of threadgroup %u of %s",
                     writes ? "write" : "read", bytes, what, fibre_now.lane, race.group,
                     race.d->kernel);
}

static void touch(const char *p, size_t bytes, bool writes, bool atomic, const void *code)
{
    if (!race.runs || bytes == 0 || fibre_on_stack(p))
        return;
    region *r = in(&race.arena, p)       ? &race.arena
                : in(&race.variables, p) ? &race.variables
                                         : region_of(p);
    if (!r && binding_of(p)) { /* bound, and not named: a test without a device */
        const lanes_binding *b = binding_of(p);
        lanes_memory_add(b->base, b->bytes, "a buffer");
        r = region_of(p);
    }
    if (!r || p + bytes > r->base + r->bytes) {
        outside(p, bytes, writes, code);
        return;
    }
    if (r->hidden) {
        if (!lanes_reports_full())
            lanes_report(
                code, "%s of %s, which is not resident, by thread %d of threadgroup %u of %s",
                writes ? "write" : "read", r->name, fibre_now.lane, race.group, race.d->kernel);
        return;
    }
    if (!r->cells)
        r->cells = cells_map(cells_of(r));
    record new = race.thread[r->shared ? SHADER_SHARED - 1 : SHADER_DEVICE - 1][fibre_now.lane] |
                 (record)atomic;
    size_t first = (size_t)(p - r->base), last = first + bytes - 1;
    if (!r->shared) {
        first /= 2;
        last /= 2;
    }
    bool said = false;
    for (size_t i = first; i <= last; i++)
        if (writes)
            cell_write(r, &r->cells[i], p, new, code, &said);
        else
            cell_read(r, &r->cells[i], p, new, code, &said);
}

/* ---- what instrumented code calls ---- */

#define CODE __builtin_return_address(0)

void shader_atomic(void *p, size_t bytes, bool writes)
{
    touch(p, bytes, false, true, CODE);
    if (writes)
        touch(p, bytes, true, true, CODE);
}

/* Of 16 bytes only 8 count: clang cuts what is read at once as it sees fit, and the instrumentation asks for no more. */
static void aligned_to(const char *p, size_t n, const void *code)
{
    if ((uintptr_t)p % (n < 8 ? n : 8) && race.runs && !lanes_reports_full())
        lanes_report(code, "access of %zu bytes that are not aligned in %s", n, race.d->kernel);
}

#define TSAN(n)                                                                                    \
    void __tsan_read##n(char *p);                                                                  \
    void __tsan_write##n(char *p);                                                                 \
    void __tsan_unaligned_read##n(char *p);                                                        \
    void __tsan_unaligned_write##n(char *p);                                                       \
    void __tsan_read_write##n(char *p);                                                            \
    void __tsan_unaligned_read_write##n(char *p);                                                  \
    void __tsan_read##n(char *p)                                                                   \
    {                                                                                              \
        aligned_to(p, n, CODE);                                                                    \
        touch(p, n, false, false, CODE);                                                           \
    }                                                                                              \
    void __tsan_write##n(char *p)                                                                  \
    {                                                                                              \
        aligned_to(p, n, CODE);                                                                    \
        touch(p, n, true, false, CODE);                                                            \
    }                                                                                              \
    void __tsan_unaligned_read##n(char *p)                                                         \
    {                                                                                              \
        touch(p, n, false, false, CODE);                                                           \
    }                                                                                              \
    void __tsan_unaligned_write##n(char *p)                                                        \
    {                                                                                              \
        touch(p, n, true, false, CODE);                                                            \
    }                                                                                              \
    void __tsan_read_write##n(char *p)                                                             \
    {                                                                                              \
        aligned_to(p, n, CODE);                                                                    \
        touch(p, n, false, false, CODE);                                                           \
        touch(p, n, true, false, CODE);                                                            \
    }                                                                                              \
    void __tsan_unaligned_read_write##n(char *p)                                                   \
    {                                                                                              \
        touch(p, n, false, false, CODE);                                                           \
        touch(p, n, true, false, CODE);                                                            \
    }
TSAN(1)
TSAN(2)
TSAN(4)
TSAN(8)
TSAN(16)

void __tsan_init(void);
void __tsan_init(void)
{
}

/* Loops that clang turns into calls: before clang 16 they are not instrumented, and the linker wraps them. */
void *__tsan_memcpy(void *d, const void *s, size_t n);
void *__tsan_memmove(void *d, const void *s, size_t n);
void *__tsan_memset(void *d, int v, size_t n);
void *__wrap_memcpy(void *d, const void *s, size_t n);
void *__wrap_memmove(void *d, const void *s, size_t n);
void *__wrap_memset(void *d, int v, size_t n);

static void copied(void *d, const void *s, size_t n, const void *code)
{
    if (s)
        touch(s, n, false, false, code);
    touch(d, n, true, false, code);
}
void *__tsan_memcpy(void *d, const void *s, size_t n)
{
    copied(d, s, n, CODE);
    return memcpy(d, s, n);
}
void *__tsan_memmove(void *d, const void *s, size_t n)
{
    copied(d, s, n, CODE);
    return memmove(d, s, n);
}
void *__tsan_memset(void *d, int v, size_t n)
{
    copied(d, NULL, n, CODE);
    return memset(d, v, n);
}
void *__wrap_memcpy(void *d, const void *s, size_t n)
{
    copied(d, s, n, CODE);
    return memcpy(d, s, n);
}
void *__wrap_memmove(void *d, const void *s, size_t n)
{
    copied(d, s, n, CODE);
    return memmove(d, s, n);
}
void *__wrap_memset(void *d, int v, size_t n)
{
    copied(d, NULL, n, CODE);
    return memset(d, v, n);
}
