/* lanes.c - a dispatch: threadgroups one after another, their threads as fibres. */
#include "tests/metal/lanes.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/metal/race.h"

enum { REPORTS_MAX = 6, ARENA_GUARD = 64 << 10 };

/* The dispatch that runs. Guarded by its lock; lanes are of the thread that has it. */
static struct {
    pthread_mutex_t lock;
    const lanes_dispatch *d;
    const shader_kernel *kernel;
    char *arena;  /* dynamic threadgroup memory, up to LANES_SHARED_MAX, then nothing */
    char *shared; /* where this dispatch's begins: it ends with the arena */
    uint32_t shared_offset[SHADER_BUFFERS];
    uint32_t groups[3], threads[3], grid[3]; /* as in the dispatch, none 0 */
    uint32_t group[3], group_index;          /* that runs */
    int n_thread, n_here;                    /* threads of a group, and of this one */
    char *error;
    int n_report;
    const void *code[REPORTS_MAX]; /* where each was, or NULL */
    struct sigaction old_segv, old_bus;
} now = {.lock = PTHREAD_MUTEX_INITIALIZER};

const char *(*lanes_explain)(const void *address);

/* ---- what is wrong ---- */

/* The innermost line that is not msl.h's: what is inlined has several. */
const char *lanes_place(const void *code, char *text, size_t bytes)
{
    Dl_info at;
    char command[600], line[400];
    snprintf(text, bytes, "?");
    if (!code || !dladdr(code, &at) || !at.dli_fname)
        return text;
    snprintf(command, sizeof command, "addr2line -i -e '%s' 0x%lx 2>/dev/null", at.dli_fname,
             (unsigned long)((const char *)code - (const char *)at.dli_fbase - 1));
    FILE *f = popen(command, "r");
    if (!f)
        return text;
    for (bool found = false; fgets(line, sizeof line, f);) {
        line[strcspn(line, "\n (")] = 0;
        if (found || strstr(line, "tests/metal/msl"))
            continue;
        found = true;
        snprintf(text, bytes, "%s", line + (strncmp(line, "./", 2) == 0 ? 2 : 0));
    }
    pclose(f);
    return text;
}

bool lanes_reports_full(void)
{
    return now.n_report >= REPORTS_MAX;
}

/* The same thing of many threads is told once. */
static bool told_before(const void *code, const char *text)
{
    if (!code)
        return strstr(now.error, text) != NULL;
    for (int i = 0; i < now.n_report && i < REPORTS_MAX; i++)
        if (now.code[i] == code)
            return true;
    return false;
}

void lanes_report(const void *code, const char *format, ...)
{
    char place[400], text[600];
    size_t n = now.error ? strlen(now.error) : LANES_ERROR_MAX;
    if (now.n_report >= REPORTS_MAX || n + sizeof place + sizeof text >= LANES_ERROR_MAX)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (told_before(code, text))
        return;
    now.code[now.n_report++] = code;
    n += (size_t)snprintf(now.error + n, LANES_ERROR_MAX - n, "%s%s", n > 0 ? "\n" : "", text);
    if (code)
        snprintf(now.error + n, LANES_ERROR_MAX - n, " at %s",
                 lanes_place(code, place, sizeof place));
}

#if defined(__x86_64__)
#define ALIGNED                                                                                    \
    __attribute__((force_align_arg_pointer)) /* QEMU 7 does not align stacks of handlers */
#else
#define ALIGNED
#endif

/* An address that no lane may use. The lane is given up, and with it the dispatch. */
ALIGNED static void on_fault(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    ucontext_t *u = context;
#if defined(__aarch64__)
    const char *code = (const char *)u->uc_mcontext.pc;
#else
    const char *code = (const char *)u->uc_mcontext.gregs[REG_RIP];
#endif
    const char *what = lanes_explain ? lanes_explain(info->si_addr) : NULL;
    const char *arena_end = now.arena + LANES_SHARED_MAX;
    if (!what && (char *)info->si_addr >= arena_end &&
        (char *)info->si_addr < arena_end + ARENA_GUARD)
        what = "threadgroup memory that it was not given";
    lanes_report(code + 1, "%s: thread %d of threadgroup %u touches %s", now.kernel->name,
                 fibre_now.lane, now.group_index, what ? what : "memory that is in no buffer");
    fibre_fail((fibre_place){now.kernel->name, "", 0}, "gives up");
}

/* ---- what shaders call ---- */

void *shader_buffer(int index, size_t bytes)
{
    static char nothing[4096];
    const lanes_binding *b = &now.d->buffer[index];
    if (!b->base)
        lanes_report(NULL, "%s: buffer(%d) is not bound", now.kernel->name, index);
    else if (b->bytes < bytes)
        lanes_report(NULL, "%s: buffer(%d) has %zu bytes, its type %zu", now.kernel->name, index,
                     b->bytes, bytes);
    else
        return b->base;
    return nothing;
}

void *shader_shared(int index)
{
    if (now.d->shared_bytes[index] == 0)
        lanes_report(NULL, "%s: threadgroup(%d) has no length", now.kernel->name, index);
    return now.shared + now.shared_offset[index];
}

uint32_t shader_lane(void)
{
    return (uint32_t)fibre_now.lane % FIBRE_WIDTH;
}

static void thread_position(uint32_t *p)
{
    uint32_t i = (uint32_t)fibre_now.lane;
    p[0] = i % now.threads[0];
    p[1] = i / now.threads[0] % now.threads[1];
    p[2] = i / (now.threads[0] * now.threads[1]);
}

const uint32_t *shader_position(shader_param_kind kind)
{
    static uint32_t v[3];
    v[1] = v[2] = 1;
    switch (kind) {
    case PARAM_THREAD_IN_GRID:
        thread_position(v);
        for (int k = 0; k < 3; k++)
            v[k] += now.group[k] * now.threads[k];
        break;
    case PARAM_THREAD_IN_GROUP:
        thread_position(v);
        break;
    case PARAM_GROUP_IN_GRID:
        return now.group;
    case PARAM_THREAD_INDEX:
        v[0] = (uint32_t)fibre_now.lane;
        break;
    case PARAM_LANE:
        v[0] = shader_lane();
        break;
    case PARAM_SIMDGROUP:
        v[0] = (uint32_t)fibre_now.lane / FIBRE_WIDTH;
        break;
    case PARAM_SIMDGROUPS:
        v[0] = (uint32_t)(now.n_here + FIBRE_WIDTH - 1) / FIBRE_WIDTH;
        break;
    case PARAM_WIDTH:
        v[0] = FIBRE_WIDTH;
        break;
    case PARAM_GROUP_THREADS:
        return now.threads;
    case PARAM_GRID_GROUPS:
        return now.groups;
    case PARAM_GRID_THREADS:
        return now.grid;
    case PARAM_BUFFER:
    case PARAM_SHARED:
        break;
    }
    return v;
}

static int barrier_flags;

static void join_group(void **own, int n)
{
    (void)n;
    race_group_barrier(*(int *)own[0]);
}

void shader_group_barrier(int flags, fibre_place at)
{
    if (now.d->library->race) {
        barrier_flags = flags;
        if (now.n_here == now.n_thread && now.n_thread % FIBRE_WIDTH == 0) {
            fibre_sync(at, &flags, join_group);
        } else {
            fibre_sync_some(at, now.n_here);
            race_group_barrier(barrier_flags);
        }
    } else if (now.n_here == now.n_thread && now.n_thread % FIBRE_WIDTH == 0) {
        fibre_sync(at, NULL, NULL);
    } else {
        fibre_sync_some(at, now.n_here);
    }
}

static void join_simd(void **own, int n)
{
    (void)n;
    for (int i = 0; i < FIBRE_WIDTH; i++)
        if (own[i]) {
            race_simd_barrier(fibre_now.lane / FIBRE_WIDTH, *(int *)own[i]);
            return;
        }
}

void shader_simd_barrier(int flags, fibre_place at)
{
    fibre_meet_rest(at, &flags, now.d->library->race ? join_simd : NULL);
}

void shader_meet(fibre_place at, void *own, fibre_join *join)
{
    fibre_meet_rest(at, own, join);
}

void shader_wrong(fibre_place at, const char *why)
{
    fibre_fail(at, why);
}

/* ---- a dispatch ---- */

const shader_library *lanes_open(const char *path, char *error)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const shader_library *l = handle ? dlsym(handle, "shader_self") : NULL;
    if (!l)
        snprintf(error, LANES_ERROR_MAX, "%s", dlerror());
    return l;
}

const shader_kernel *lanes_kernel(const shader_library *l, const char *name)
{
    for (const shader_kernel *k = l->kernels; k; k = k->next)
        if (strcmp(k->name, name) == 0)
            return k;
    return NULL;
}

static void one_lane(void *ctx)
{
    (void)ctx;
    if (fibre_now.lane < now.n_here)
        now.kernel->call(now.kernel->param);
}

/* Function constants that the dispatch does not set are not defined. */
static void constants_set(const lanes_dispatch *d)
{
    for (shader_constant *c = d->library->constants; c; c = c->next) {
        *c->defined = false;
        memset(c->value, 0, c->bytes);
        for (int i = 0; i < d->n_constant; i++)
            if (d->constant[i].index == c->index) {
                if (d->constant[i].bytes != c->bytes)
                    lanes_report(NULL, "function constant %s has %zu bytes, %zu are given", c->name,
                                 c->bytes, d->constant[i].bytes);
                else
                    memcpy(c->value, d->constant[i].value, c->bytes);
                *c->defined = true;
            }
    }
}

static bool sizes_set(const lanes_dispatch *d)
{
    uint64_t groups = 1, shared = 0;
    now.n_thread = 1;
    for (int k = 0; k < 3; k++) {
        now.groups[k] = d->groups[k] ? d->groups[k] : 1;
        now.threads[k] = d->threads[k] ? d->threads[k] : 1;
        now.grid[k] = d->grid[k] ? d->grid[k] : now.groups[k] * now.threads[k];
        groups *= now.groups[k];
        now.n_thread *= (int)(now.threads[k] < 1 << 20 ? now.threads[k] : 1 << 20);
        if (now.n_thread > LANES_THREADS_MAX)
            break;
    }
    for (int i = 0; i < SHADER_BUFFERS; i++) {
        now.shared_offset[i] = (uint32_t)shared;
        shared += (d->shared_bytes[i] + 15u) & ~15u;
    }
    if (now.n_thread > LANES_THREADS_MAX)
        lanes_report(NULL, "%s: %d threads in a threadgroup are too many", now.kernel->name,
                     now.n_thread);
    else if (groups > LANES_GROUPS_MAX)
        lanes_report(NULL, "%s: %llu threadgroups are more than tests run", now.kernel->name,
                     (unsigned long long)groups);
    else if (shared + (size_t)(d->library->shared_end - d->library->shared) > LANES_SHARED_MAX)
        lanes_report(NULL, "%s: %llu bytes of threadgroup memory are too many", now.kernel->name,
                     (unsigned long long)shared +
                         (unsigned long long)(d->library->shared_end - d->library->shared));
    else if (now.grid[0] != now.groups[0] * now.threads[0] &&
             (now.threads[1] > 1 || now.threads[2] > 1 || now.grid[1] != now.groups[1]))
        lanes_report(NULL, "%s: grids that are no multiple of a threadgroup are of one dimension",
                     now.kernel->name);
    else {
        now.shared = now.arena + LANES_SHARED_MAX - shared;
        return true;
    }
    return false;
}

static void arena_need(void)
{
    if (now.arena)
        return;
    now.arena = mmap(NULL, LANES_SHARED_MAX + ARENA_GUARD, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (now.arena == MAP_FAILED ||
        mprotect(now.arena + LANES_SHARED_MAX, ARENA_GUARD, PROT_NONE) != 0) {
        fprintf(stderr, "lanes: out of memory\n");
        exit(2);
    }
}

static bool run_group(uint32_t index)
{
    char error[FIBRE_ERROR_MAX];
    const lanes_dispatch *d = now.d;
    now.group_index = index;
    now.group[0] = index % now.groups[0];
    now.group[1] = index / now.groups[0] % now.groups[1];
    now.group[2] = index / (now.groups[0] * now.groups[1]);
    now.n_here = now.n_thread;
    uint32_t begin = now.group[0] * now.threads[0];
    if (now.grid[0] - begin < now.threads[0])
        now.n_here = (int)(now.grid[0] - begin);
    /* Nothing is kept from another threadgroup: NaN, and an index that is in no buffer. */
    memset(now.shared, 0xff, (size_t)(now.arena + LANES_SHARED_MAX - now.shared));
    memset(d->library->shared, 0xff, (size_t)(d->library->shared_end - d->library->shared));
    int lanes = (now.n_thread + FIBRE_WIDTH - 1) / FIBRE_WIDTH * FIBRE_WIDTH;
    if (d->library->race)
        race_group(index, lanes);
    fibre_work w = {.groups = 1, .lanes = lanes, .order = d->order, .lane = one_lane};
    if (fibres_run(&w, error))
        return true;
    if (now.n_report == 0)
        lanes_report(NULL, "%s: threadgroup %u: %s", now.kernel->name, index,
                     strncmp(error, "group 0: ", 9) == 0 ? error + 9 : error);
    return false;
}

static void run_groups(const lanes_dispatch *d)
{
    uint32_t n = now.groups[0] * now.groups[1] * now.groups[2];
    uint32_t *order = malloc(n * sizeof *order);
    static uint32_t random = 1;
    if (!order)
        abort();
    for (uint32_t i = 0; i < n; i++)
        order[i] = d->order == FIBRES_BACKWARD ? n - 1 - i : i;
    for (uint32_t i = n; i > 1 && d->order == FIBRES_SHUFFLED; i--) {
        random = random * 1664525u + 1013904223u;
        uint32_t k = (random >> 8) % i, swap = order[i - 1];
        order[i - 1] = order[k];
        order[k] = swap;
    }
    for (uint32_t i = 0; i < n && run_group(order[i]); i++)
        ;
    free(order);
}

bool lanes_run(const lanes_dispatch *d, char *error)
{
    pthread_mutex_lock(&now.lock);
    now.d = d;
    now.error = error;
    now.n_report = 0;
    error[0] = 0;
    arena_need();
    now.kernel = lanes_kernel(d->library, d->kernel);
    if (!now.kernel) {
        lanes_report(NULL, "there is no kernel %s", d->kernel);
    } else if (sizes_set(d)) {
        struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
        constants_set(d);
        sigaction(SIGSEGV, &fault, &now.old_segv);
        sigaction(SIGBUS, &fault, &now.old_bus);
        if (d->library->race)
            race_dispatch(d, now.shared, (size_t)(now.arena + LANES_SHARED_MAX - now.shared));
        run_groups(d);
        if (d->library->race)
            race_end();
        sigaction(SIGSEGV, &now.old_segv, NULL);
        sigaction(SIGBUS, &now.old_bus, NULL);
    }
    bool good = now.n_report == 0;
    now.error = NULL;
    now.d = NULL;
    pthread_mutex_unlock(&now.lock);
    return good;
}
