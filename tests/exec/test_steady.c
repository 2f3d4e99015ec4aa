/* test_steady.c - after a session is open, evaluating allocates nothing, whatever the batch. Linked
 * with --wrap, so that every allocation of ours is seen. */
#include "tests/exec/toy.h"
#include <stdatomic.h>

static atomic_int n_alloc;

/* What the linker calls the real ones. */
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
int __real_posix_memalign(void **out, size_t align, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
int __wrap_posix_memalign(void **out, size_t align, size_t n);

void *__wrap_malloc(size_t n)
{
    atomic_fetch_add(&n_alloc, 1);
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    atomic_fetch_add(&n_alloc, 1);
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    atomic_fetch_add(&n_alloc, 1);
    return __real_realloc(p, n);
}

int __wrap_posix_memalign(void **out, size_t align, size_t n)
{
    atomic_fetch_add(&n_alloc, 1);
    return __real_posix_memalign(out, align, n);
}

START_TEST(evaluating_allocates_nothing)
{
    toy *t = toy_open();
    for (int threads = 1; threads <= 3; threads += 2) {
        session *s = NULL;
        session_options opt = {.n_ctx = 100, .n_seq = 3, .page_tok = 4, .threads = threads};
        ck_assert_int_gt(atomic_load(&n_alloc), 0); /* they are seen */
        ck_assert_int_eq(session_create(t->dg, t->p, t->mf, &opt, &s), WEFT_OK);
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

SUITE_MAIN("steady", evaluating_allocates_nothing)
