/* test_steady.c - after a session is open, evaluating allocates nothing and opens no file, whatever the
 * batch; and what it allocates when it opens is what it says. Linked with --wrap, so that every
 * allocation of ours is seen. */
#include "tests/exec/toy.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>

static atomic_int n_alloc, n_open;

/* What is allocated and not freed while `watching`. */
#if defined(__SANITIZE_THREAD__)
enum { CALLS = 500 }; /* which makes them fifty times as slow */
#else
enum { CALLS = 5000 };
#endif
enum { BLOCKS_MAX = 1024, CTX = 60 };
static struct {
    pthread_mutex_t lock;
    bool watching;
    int n;
    void *at[BLOCKS_MAX];
    size_t bytes[BLOCKS_MAX];
} live = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What the linker calls the real ones. */
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
int __real_posix_memalign(void **out, size_t align, size_t n);
void __real_free(void *p);
int __real_open(const char *path, int flags, ...);
int __real_open64(const char *path, int flags, ...);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__real_fopen64(const char *path, const char *mode);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
int __wrap_posix_memalign(void **out, size_t align, size_t n);
void __wrap_free(void *p);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);

static void note_free(void *p)
{
    pthread_mutex_lock(&live.lock);
    for (int i = 0; i < live.n; i++)
        if (live.at[i] == p && p) {
            live.n--;
            live.at[i] = live.at[live.n];
            live.bytes[i] = live.bytes[live.n];
        }
    pthread_mutex_unlock(&live.lock);
}

static void note_alloc(void *p, size_t bytes)
{
    atomic_fetch_add(&n_alloc, 1);
    pthread_mutex_lock(&live.lock);
    if (live.watching && live.n < BLOCKS_MAX) {
        live.at[live.n] = p;
        live.bytes[live.n++] = bytes;
    }
    pthread_mutex_unlock(&live.lock);
}

void *__wrap_malloc(size_t n)
{
    void *p = __real_malloc(n);
    note_alloc(p, n);
    return p;
}

void *__wrap_calloc(size_t n, size_t size)
{
    void *p = __real_calloc(n, size);
    note_alloc(p, n * size);
    return p;
}

void *__wrap_realloc(void *p, size_t n)
{
    note_free(p);
    p = __real_realloc(p, n);
    note_alloc(p, n);
    return p;
}

int __wrap_posix_memalign(void **out, size_t align, size_t n)
{
    int error = __real_posix_memalign(out, align, n);
    note_alloc(*out, n);
    return error;
}

void __wrap_free(void *p)
{
    note_free(p);
    __real_free(p);
}

static int mode_of(int flags, va_list ap)
{
    return flags & O_CREAT ? va_arg(ap, int) : 0;
}

int __wrap_open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    int mode = mode_of(flags, ap);
    va_end(ap);
    atomic_fetch_add(&n_open, 1);
    return __real_open(path, flags, mode);
}

int __wrap_open64(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    int mode = mode_of(flags, ap);
    va_end(ap);
    atomic_fetch_add(&n_open, 1);
    return __real_open64(path, flags, mode);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
    atomic_fetch_add(&n_open, 1);
    return __real_fopen(path, mode);
}

FILE *__wrap_fopen64(const char *path, const char *mode)
{
    atomic_fetch_add(&n_open, 1);
    return __real_fopen64(path, mode);
}

/* The toy's plan for the portable kernels, in buckets of 1, 2, 4, .. rows. */
/* tiers: with state in three forms by age. */
static plan *fused_plan(toy *t, bool tiers)
{
    plan *p = NULL;
    target limits = {
        .be = backend_cpu_find("c"), .n_ctx = CTX, .n_seq = 3, .n_tok_max = TOY_TOKENS};
    limits.may_fork = true;
    if (tiers)
        limits.tiers = (kpolicy){.n_tier = 3,
                                 .tier = {{KFORM_F16, KFORM_F16, 8},
                                          {KFORM_Q8, KFORM_Q8, 20},
                                          {KFORM_Q4, KFORM_Q4, KPOLICY_REST}}};
    ck_assert_int_eq(plan_make(t->dg, t->g, &limits, NULL, t->a, &p), WEFT_OK);
    ck_assert_int_gt(p->n_bucket, 3);
    return p;
}

/* Rows for some sequences: prompts, single tokens, or both; sometimes without any output. */
static int mix_rows(const session *s, uint32_t dice, batch_row *rows)
{
    int n = 0;
    for (int seq = 0; seq < 3; seq++) {
        int want = (int)(dice >> (4 * seq) & 15) < 8 ? 1 : (int)(dice >> (4 * seq) & 7);
        int32_t pos = (int32_t)session_length(s, seq);
        for (int i = 0; i < want && pos < CTX && n < TOY_TOKENS; i++, pos++)
            rows[n++] = (batch_row){.id = (int32_t)(dice >> 5 & 15) + i,
                                    .pos = pos,
                                    .seq = seq,
                                    .out = i + 1 == want && (dice >> 20 & 3)};
    }
    return n;
}

/* Returns how many calls failed. */
static int run_mixed(toy *t, session *s, int calls)
{
    batch_row rows[TOY_TOKENS];
    uint32_t dice = 7;
    int bad = 0;
    for (int call = 0; call < calls; call++) {
        dice = dice * 1664525u + 1013904223u;
        int n = mix_rows(s, dice >> 8, rows);
        if (n > 0)
            bad += session_eval(t->dg, s, rows, n) != WEFT_OK;
        for (int seq = 0; seq < 3; seq++)
            if (session_length(s, seq) >= CTX - 4)
                bad += session_truncate(t->dg, s, seq, 0) != WEFT_OK;
        int64_t cut = session_length(s, 0) - 1;
        if (call % 50 == 49 && cut > 0 && session_keepable(s, 0, cut) == cut)
            bad += session_fork(t->dg, s, 0, 2, cut) != WEFT_OK;
    }
    return bad;
}

START_TEST(evaluating_allocates_nothing)
{
    toy *t = toy_open();
    for (int threads = 1; threads <= 3; threads += 2) {
        session *s = NULL;
        session_options opt = {.n_ctx = 100, .n_seq = 3, .page_tok = 4, .threads = threads};
        ck_assert_int_gt(atomic_load(&n_alloc), 0); /* they are seen */
        ck_assert_int_eq(session_create(t->dg, t->p, model_file_source(t->mf), &opt, &s), WEFT_OK);
        int before = atomic_load(&n_alloc);
        int bad = 0;
        batch_row rows[TOY_TOKENS];
        for (int call = 0; call < 30; call++) {
            int n = 0;
            for (int seq = 0; seq < 3; seq++)
                for (int i = 0; i < 1 + call % 3; i++)
                    rows[n++] = (batch_row){.id = (call + seq) % VOCAB,
                                            .pos = (int32_t)session_length(s, seq) + i,
                                            .seq = seq,
                                            .out = i == 0};
            bad += session_eval(t->dg, s, rows, n) != WEFT_OK;
            if (call % 7 == 6)
                bad += session_truncate(t->dg, s, 1, 2) != WEFT_OK;
            if (call % 5 == 4) /* sequence 2 goes on with a copy of a page */
                bad += session_fork(t->dg, s, 0, 2, session_length(s, 0) - 1) != WEFT_OK;
        }
        int after = atomic_load(&n_alloc);
        ck_assert_int_eq(bad, 0);
        ck_assert_int_eq(after - before, 0);
        session_destroy(s);
    }
    toy_close(t);
}
END_TEST

START_TEST(ten_thousand_mixed_calls_allocate_nothing)
{
    toy *t = toy_open();
    for (int i = 0; i < 4; i++) {
        int threads = 1 + i % 2;
        plan *p = fused_plan(t, i >= 2);
        session *s = NULL;
        session_options opt = {.n_ctx = CTX, .n_seq = 3, .page_tok = 4, .threads = threads};
        ck_assert_int_gt(atomic_load(&n_open), 0); /* they are seen */
        ck_assert_int_eq(session_create(t->dg, p, model_file_source(t->mf), &opt, &s), WEFT_OK);
        int allocs = atomic_load(&n_alloc), opens = atomic_load(&n_open);
        int bad = run_mixed(t, s, CALLS);
        allocs = atomic_load(&n_alloc) - allocs;
        opens = atomic_load(&n_open) - opens;
        ck_assert_int_eq(bad, 0);
        ck_assert_int_eq(allocs, 0);
        ck_assert_int_eq(opens, 0);
        session_destroy(s);
    }
    toy_close(t);
}
END_TEST

/* What is allocated, what the session says, and what was said before it: the same to the byte. */
START_TEST(memory_is_what_was_said)
{
    toy *t = toy_open();
    plan *plans[] = {t->p, fused_plan(t, false), fused_plan(t, true)};
    for (int i = 0; i < 12; i++) {
        plan *p = plans[i % 3];
        session_options opt = {.n_ctx = i < 4 ? CTX : 1000,
                               .n_seq = 1 + i % 3,
                               .page_tok = i < 6 ? 0 : 5,
                               .threads = 1 + i % 4};
        session_memory need, have;
        session *s = NULL;
        ck_assert_int_eq(session_need(t->dg, p, model_file_source(t->mf), &opt, &need), WEFT_OK);
        live.n = 0;
        live.watching = true;
        weft_status status = session_create(t->dg, p, model_file_source(t->mf), &opt, &s);
        live.watching = false;
        ck_assert_int_eq(status, WEFT_OK);
        have = session_bytes(s);
        size_t all = have.weights_mapped;
        ck_assert_int_lt(live.n, BLOCKS_MAX);
        for (int k = 0; k < live.n; k++)
            all += live.bytes[k];
        ck_assert_mem_eq(&need, &have, sizeof need);
        ck_assert_uint_eq(all, session_memory_sum(&have));
        session_destroy(s);
        ck_assert_int_eq(live.n, 0);

        opt.bytes_max = all;
        ck_assert_int_eq(session_create(t->dg, p, model_file_source(t->mf), &opt, &s), WEFT_OK);
        session_destroy(s);
        opt.bytes_max = all - 1;
        s = NULL;
        ck_assert_int_eq(session_create(t->dg, p, model_file_source(t->mf), &opt, &s),
                         WEFT_ERR_TARGET);
        ck_assert_ptr_null(s);
        expect_one(t->dg, W0902, "1 more than");
        diag_reset(t->dg);
    }
    toy_close(t);
}
END_TEST

SUITE_MAIN("steady", evaluating_allocates_nothing, ten_thousand_mixed_calls_allocate_nothing,
           memory_is_what_was_said)
