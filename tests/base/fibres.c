/* fibres.c - switching between stacks, and which lane runs next. */
#include "tests/base/fibres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define FIBRE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBRE_ASAN 1
#endif
#endif
#ifdef FIBRE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

enum { STACK_BYTES = 256 << 10, GUARD_BYTES = 64 << 10, IDLE_MAX = 10000 };
/* Lanes begin at different places of a page, or they would all have the same few lines of the caches. */
enum { STAGGER_BYTES = 9 * 64, STAGGER_MAX = 32 << 10 };
/* More than what a lane that has ended leaves poisoned for ASan: its last calls, which do not return. */
enum { ENDED_BYTES = 16 << 10 };

/* ---- one stack to another ---- */

/* Saves what a call must keep, stores the stack pointer and goes on where another one was stored. */
void fibre_switch(void **save, void *to);
#if defined(__x86_64__)
enum { SAVED_WORDS = 8, SAVED_RETURN = 6 }; /* rbp, rbx, r12 .. r15, where to return; 0 above it */
__asm__(".text\n.hidden fibre_switch\n.globl fibre_switch\n.type fibre_switch,@function\n"
        "fibre_switch:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\n"
        "ret\n.size fibre_switch, .-fibre_switch\n");
#elif defined(__aarch64__)
enum { SAVED_WORDS = 20, SAVED_RETURN = 11 }; /* x19 .. x30, d8 .. d15 */
__asm__(".text\n.hidden fibre_switch\n.globl fibre_switch\n.type fibre_switch,%function\n"
        "fibre_switch:\n"
        "sub sp, sp, #160\n"
        "stp x19, x20, [sp]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\n"
        "stp x25, x26, [sp, #48]\nstp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\n"
        "stp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\n"
        "stp d12, d13, [sp, #128]\nstp d14, d15, [sp, #144]\n"
        "mov x9, sp\nstr x9, [x0]\nmov sp, x1\n"
        "ldp x19, x20, [sp]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\n"
        "ldp x25, x26, [sp, #48]\nldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\n"
        "ldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\n"
        "ldp d12, d13, [sp, #128]\nldp d14, d15, [sp, #144]\n"
        "add sp, sp, #160\nret\n.size fibre_switch, .-fibre_switch\n");
#else
#error "fibres are written for x86_64 and aarch64"
#endif

typedef enum { READY, SYNC, MEET, PAUSED, ENDED } lane_state;

typedef struct {
    void *sp;
    char *stack; /* [STACK_BYTES]; NULL: of the run's caller */
    const void *bottom;
    size_t bytes; /* both of the caller's stack, as ASan knows it */
    fibre_place at;
    void *own; /* what it brought to where it waits */
    lane_state state;
    int group, lane;
} fibre;

/* Lanes of a subgroup that wait for others of `mask`. */
typedef struct {
    fibre_place at;
    uint32_t mask, arrived, ended; /* ended: of the subgroup, where it is the first lane's */
    bool rest;                     /* they wait for all that have not ended, and join there */
    fibre_join *join;
} meeting;

typedef struct {
    fibre *lane;   /* [lanes] */
    meeting *meet; /* [lanes], by the first lane of its mask */
    int *ready;    /* [lanes]: a ring of those that may run */
    int first_ready, n_ready;
    fibre_place sync_at; /* where n_sync lanes are */
    int n_sync, n_paused, n_ended;
} group;

typedef struct {
    fibre_work work;
    fibre caller;
    group *group;   /* [groups] */
    int *order;     /* [lanes] */
    int flip;       /* the same for a subgroup: lane i ^ flip */
    int now;        /* the group that runs */
    fibre *running; /* NULL: the caller */
    bool moved;     /* did a lane do more than pause since another group ran? */
    int idle;       /* so many groups ran in vain */
    bool failed;
    char *error;
} run;

__thread fibre_id fibre_now;
static __thread run *the_run;

/* ---- what stays from run to run ---- */

static __thread struct {
    char **stack; /* [n_stack] */
    int n_stack;
    uint32_t random;
} kept;

static void out_of_memory(void)
{
    fprintf(stderr, "fibres: out of memory\n");
    exit(2);
}

static void *some(size_t n, size_t bytes)
{
    void *p = calloc(n, bytes);
    if (!p)
        out_of_memory();
    return p;
}

/* With memory below it that nobody may touch. */
static char *stack_map(void)
{
    char *p = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED || mprotect(p, GUARD_BYTES, PROT_NONE) != 0)
        out_of_memory();
    return p + GUARD_BYTES;
}

static void stacks_need(int n)
{
    if (n <= kept.n_stack)
        return;
    kept.stack = realloc(kept.stack, (size_t)n * sizeof *kept.stack);
    if (!kept.stack)
        out_of_memory();
    while (kept.n_stack < n)
        kept.stack[kept.n_stack++] = stack_map();
}

static uint32_t random_next(void)
{
    kept.random = kept.random * 1664525u + 1013904223u;
    return kept.random >> 8;
}

/* ---- errors ---- */

static const char *state_text(const fibre *f, char *text, size_t bytes)
{
    if (f->state == ENDED)
        snprintf(text, bytes, "has ended");
    else if (f->state == READY)
        snprintf(text, bytes, "runs");
    else
        snprintf(text, bytes, "is at %s (%s:%d)", f->at.what, f->at.file, f->at.line);
    return text;
}

/* Two lanes of a group that do not agree. */
static void fail_two(run *r, const fibre *a, const fibre *b)
{
    char at_a[FIBRE_ERROR_MAX / 3], at_b[FIBRE_ERROR_MAX / 3];
    snprintf(r->error, FIBRE_ERROR_MAX, "group %d: lane %d %s, lane %d %s", a->group, a->lane,
             state_text(a, at_a, sizeof at_a), b->lane, state_text(b, at_b, sizeof at_b));
    r->failed = true;
}

static void fail_one(run *r, const fibre *f, fibre_place at, const char *why)
{
    snprintf(r->error, FIBRE_ERROR_MAX, "group %d: lane %d at %s (%s:%d) %s", f->group, f->lane,
             at.what, at.file, at.line, why);
    r->failed = true;
}

static bool same_place(fibre_place a, fibre_place b)
{
    return a.line == b.line && (a.what == b.what || strcmp(a.what, b.what) == 0) &&
           (a.file == b.file || strcmp(a.file, b.file) == 0);
}

/* No lane of the group can run: one that waits, and one that keeps it waiting. */
static void fail_stuck(run *r, const group *g)
{
    const fibre *a = NULL;
    for (int i = 0; i < r->work.lanes && !a; i++)
        if (g->lane[i].state == SYNC || g->lane[i].state == MEET)
            a = &g->lane[i];
    for (int i = 0; i < r->work.lanes; i++) {
        const fibre *b = &g->lane[i];
        bool apart = b->state != a->state || !same_place(a->at, b->at);
        if (apart && (a->state == SYNC || i / FIBRE_WIDTH == a->lane / FIBRE_WIDTH)) {
            fail_two(r, a, b);
            return;
        }
    }
    fail_one(r, a, a->at, "waits for lanes that are at the same place with other masks");
}

/* ---- which lane runs ---- */

static void make_ready(run *r, group *g, int lane)
{
    int at = g->first_ready + g->n_ready++;
    g->lane[lane].state = READY;
    g->ready[at < r->work.lanes ? at : at - r->work.lanes] = lane;
}

/* Before all others: its subgroup runs on while what its lanes' stacks hold is in the caches. */
static void make_next(run *r, group *g, int lane)
{
    if (--g->first_ready < 0)
        g->first_ready = r->work.lanes - 1;
    g->n_ready++;
    g->lane[lane].state = READY;
    g->ready[g->first_ready] = lane;
}

static fibre *take_ready(run *r, group *g)
{
    fibre *f = &g->lane[g->ready[g->first_ready]];
    if (++g->first_ready == r->work.lanes)
        g->first_ready = 0;
    g->n_ready--;
    return f;
}

static void wake_paused(run *r, group *g)
{
    for (int i = 0; i < r->work.lanes && g->n_paused > 0; i++)
        if (g->lane[r->order[i]].state == PAUSED) {
            g->n_paused--;
            make_ready(r, g, r->order[i]);
        }
}

/* The next group that has not ended; false: there is none, or its lanes cannot go on. */
static bool next_group(run *r)
{
    int step = r->work.order == FIBRES_FORWARD ? 1 : r->work.groups - 1;
    r->idle = r->moved ? 0 : r->idle + 1;
    r->moved = false;
    for (int i = 0; i < r->work.groups; i++) {
        r->now = (r->now + step) % r->work.groups;
        group *g = &r->group[r->now];
        if (g->n_ended == r->work.lanes)
            continue;
        if (r->work.enter)
            r->work.enter(r->work.ctx, r->now);
        if (r->idle > IDLE_MAX) {
            for (int k = 0; k < r->work.lanes; k++)
                if (g->lane[k].state == PAUSED)
                    fail_one(r, &g->lane[k], g->lane[k].at, "waits for what does not come");
            return false;
        }
        wake_paused(r, g);
        return true;
    }
    return false;
}

/* NULL: all have ended, or something is wrong. */
static fibre *next_lane(run *r)
{
    while (!r->failed) {
        group *g = &r->group[r->now];
        if (g->n_ready > 0)
            return take_ready(r, g);
        if (g->n_paused == 0 && g->n_ended < r->work.lanes)
            fail_stuck(r, g);
        else if (!next_group(r))
            break;
    }
    return NULL;
}

static void go_to(run *r, fibre *from, fibre *to)
{
    if (from == to)
        return;
    r->running = to == &r->caller ? NULL : to;
    if (r->running)
        fibre_now = (fibre_id){to->group, r->work.groups, to->lane, r->work.lanes};
#ifdef FIBRE_ASAN
    void *fake = NULL;
    __sanitizer_start_switch_fiber(from->state == ENDED ? NULL : &fake,
                                   to->stack ? to->stack : to->bottom,
                                   to->stack ? STACK_BYTES : to->bytes);
#endif
    fibre_switch(&from->sp, to->sp);
#ifdef FIBRE_ASAN
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
}

/* The lane waits, or has ended: another one's turn, or the caller's. */
static void go_on(run *r, fibre *from)
{
    fibre *to = next_lane(r);
    go_to(r, from, to ? to : &r->caller);
}

static void meeting_end(run *r, group *g, meeting *m, int first, fibre_join *join)
{
    void *owns[FIBRE_WIDTH];
    for (int i = 0; i < FIBRE_WIDTH && join; i++)
        owns[i] = m->mask >> i & 1 ? g->lane[first + i].own : NULL;
    if (join)
        join(owns, FIBRE_WIDTH);
    const bool behind = r->work.order == FIBRES_SHUFFLED; /* subgroups go side by side */
    for (int i = 0; i < FIBRE_WIDTH; i++) {
        int lane = (behind ? i : FIBRE_WIDTH - 1 - i) ^ r->flip;
        if (m->mask >> lane & 1)
            (behind ? make_ready : make_next)(r, g, first + lane);
    }
    m->arrived = 0;
    r->moved = true;
}

/* Those of its subgroup that wait for the rest wait for one less. */
static void meeting_leave(run *r, const fibre *f)
{
    group *g = &r->group[f->group];
    int first = f->lane / FIBRE_WIDTH * FIBRE_WIDTH;
    meeting *m = &g->meet[first];
    m->ended |= 1u << (f->lane - first);
    if (m->rest && m->arrived && (m->arrived | m->ended) == UINT32_MAX && !r->failed)
        meeting_end(r, g, m, first, m->join);
}

static void lane_begin(void)
{
    run *r = the_run;
    fibre *f = r->running;
#ifdef FIBRE_ASAN
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(NULL, &bottom, &bytes);
    if (!r->caller.bottom) { /* the first lane comes from there */
        r->caller.bottom = bottom;
        r->caller.bytes = bytes;
    }
#endif
    r->work.lane(r->work.ctx);
    f->state = ENDED;
    r->group[f->group].n_ended++;
    r->moved = true;
    meeting_leave(r, f);
    go_on(r, f);
    abort(); /* nobody goes to a lane that has ended */
}

static void lane_init(fibre *f, char *stack, int in_group, int lane)
{
    size_t down = (size_t)lane * STAGGER_BYTES % STAGGER_MAX;
    void **top = (void **)(void *)(stack + STACK_BYTES - down) - SAVED_WORDS;
    void (*begin)(void) = lane_begin;
#ifdef FIBRE_ASAN
    char *low = stack + STACK_BYTES - down - ENDED_BYTES;
    ASAN_UNPOISON_MEMORY_REGION(low, stack + STACK_BYTES - low);
#endif
    memset(top, 0, SAVED_WORDS * sizeof *top);
    memcpy(&top[SAVED_RETURN], &begin, sizeof begin);
    *f = (fibre){.sp = top, .stack = stack, .group = in_group, .lane = lane};
}

/* ---- a run ---- */

static void run_order(run *r)
{
    int n = r->work.lanes;
    r->order = some((size_t)n, sizeof *r->order);
    for (int i = 0; i < n; i++)
        r->order[i] = r->work.order == FIBRES_BACKWARD ? n - 1 - i : i;
    r->flip = r->work.order == FIBRES_BACKWARD ? FIBRE_WIDTH - 1 : 0;
    if (r->work.order != FIBRES_SHUFFLED)
        return;
    r->flip = (int)(random_next() % FIBRE_WIDTH);
    for (int i = n - 1; i > 0; i--) {
        int k = (int)(random_next() % (uint32_t)(i + 1)), swap = r->order[i];
        r->order[i] = r->order[k];
        r->order[k] = swap;
    }
}

static void run_init(run *r)
{
    int n = r->work.lanes;
    stacks_need(r->work.groups * n);
    r->group = some((size_t)r->work.groups, sizeof *r->group);
    for (int i = 0; i < r->work.groups; i++) {
        group *g = &r->group[i];
        g->lane = some((size_t)n, sizeof *g->lane);
        g->meet = some((size_t)n, sizeof *g->meet);
        g->ready = some((size_t)n, sizeof *g->ready);
        for (int k = 0; k < n; k++)
            lane_init(&g->lane[k], kept.stack[i * n + k], i, k);
        for (int k = 0; k < n; k++)
            make_ready(r, g, r->order[k]);
    }
}

static void run_free(run *r)
{
#ifdef FIBRE_ASAN
    for (int i = 0; r->failed && i < r->work.groups * r->work.lanes; i++) /* lanes were given up */
        ASAN_UNPOISON_MEMORY_REGION(kept.stack[i], STACK_BYTES);
#endif
    for (int i = 0; i < r->work.groups; i++) {
        free(r->group[i].lane);
        free(r->group[i].meet);
        free(r->group[i].ready);
    }
    free(r->group);
    free(r->order);
}

bool fibres_run(const fibre_work *w, char *error)
{
    run r = {.work = *w, .error = error}, *outer = the_run;
    fibre_id outer_id = fibre_now;
    if (outer || w->groups < 1 || w->lanes < 1 || w->lanes > FIBRE_LANES_MAX ||
        w->lanes % FIBRE_WIDTH != 0) {
        snprintf(error, FIBRE_ERROR_MAX, "%d groups of %d lanes cannot be run%s", w->groups,
                 w->lanes, outer ? " by a lane" : "");
        return false;
    }
    run_order(&r);
    run_init(&r);
    the_run = &r;
    r.now = w->order == FIBRES_FORWARD ? 0 : w->groups - 1;
    r.moved = true;
    if (w->enter)
        w->enter(w->ctx, r.now);
    go_on(&r, &r.caller);
    the_run = NULL;
    fibre_now = outer_id;
    run_free(&r);
    return !r.failed;
}

/* ---- what lanes call ---- */

static void wait_as(run *r, fibre *f, lane_state state, fibre_place at, void *own)
{
    f->state = state;
    f->at = at;
    f->own = own;
    if (state == PAUSED)
        r->group[f->group].n_paused++;
}

/* The first n lanes of the group. */
static void sync_first(fibre_place at, int n, void *own, fibre_join *join)
{
    run *r = the_run;
    fibre *f = r->running;
    group *g = &r->group[f->group];
    wait_as(r, f, SYNC, at, own);
    if (g->n_sync == 0)
        g->sync_at = at;
    if (!same_place(g->sync_at, at)) {
        const fibre *other = g->lane;
        while (other->state != SYNC || !same_place(other->at, g->sync_at))
            other++;
        fail_two(r, other, f);
    } else if (++g->n_sync == n) {
        void *owns[FIBRE_LANES_MAX];
        for (int i = 0; i < n && join; i++)
            owns[i] = g->lane[i].own;
        if (join)
            join(owns, n);
        g->n_sync = 0;
        r->moved = true;
        for (int i = 0; i < r->work.lanes; i++)
            if (r->order[i] < n)
                make_ready(r, g, r->order[i]);
    }
    go_on(r, f);
}

void fibre_sync(fibre_place at, void *own, fibre_join *join)
{
    sync_first(at, the_run->work.lanes, own, join);
}

void fibre_sync_some(fibre_place at, int n)
{
    if (n < 1 || n > the_run->work.lanes || the_run->running->lane >= n)
        fibre_fail(at, "is not among those that it waits for");
    sync_first(at, n, NULL, NULL);
}

void fibre_meet(fibre_place at, uint32_t mask, void *own, fibre_join *join)
{
    run *r = the_run;
    fibre *f = r->running;
    group *g = &r->group[f->group];
    int first = f->lane / FIBRE_WIDTH * FIBRE_WIDTH, bit = f->lane - first;
    if (!(mask >> bit & 1))
        fibre_fail(at, "is not in its own mask");
    meeting *m = &g->meet[first + __builtin_ctz(mask)];
    wait_as(r, f, MEET, at, own);
    if (m->arrived && (m->mask != mask || !same_place(m->at, at)))
        fail_two(r, &g->lane[first + __builtin_ctz(m->arrived)], f);
    m->at = at;
    m->mask = mask;
    m->rest = false;
    m->arrived |= 1u << bit;
    if (m->arrived == mask && !r->failed)
        meeting_end(r, g, m, first, join);
    go_on(r, f);
}

void fibre_meet_rest(fibre_place at, void *own, fibre_join *join)
{
    run *r = the_run;
    fibre *f = r->running;
    group *g = &r->group[f->group];
    int first = f->lane / FIBRE_WIDTH * FIBRE_WIDTH;
    meeting *m = &g->meet[first];
    wait_as(r, f, MEET, at, own);
    if (m->arrived && !same_place(m->at, at))
        fail_two(r, &g->lane[first + __builtin_ctz(m->arrived)], f);
    m->at = at;
    m->rest = true;
    m->join = join;
    m->arrived |= 1u << (f->lane - first);
    m->mask = m->arrived;
    if ((m->arrived | m->ended) == UINT32_MAX && !r->failed)
        meeting_end(r, g, m, first, join);
    go_on(r, f);
}

void fibre_pause(fibre_place at)
{
    run *r = the_run;
    fibre *f = r->running;
    wait_as(r, f, PAUSED, at, NULL);
    go_on(r, f);
}

bool fibre_on_stack(const void *p)
{
    const fibre *f = the_run ? the_run->running : NULL;
    return f && (const char *)p >= f->stack && (const char *)p < f->stack + STACK_BYTES;
}

void fibre_fail(fibre_place at, const char *why)
{
    run *r = the_run;
    fibre *f = r->running;
    fail_one(r, f, at, why);
    go_to(r, f, &r->caller);
    abort();
}
