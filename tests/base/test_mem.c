/* test_mem.c - the suite of runtime/base/mem.c. */
#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include "runtime/base/vec.h"
#include "tests/base/suite.h"
#include <signal.h>

START_TEST(allocates)
{
    char *p = mem_alloc(0);
    ck_assert_ptr_nonnull(p);
    p = mem_realloc(p, 100);
    memset(p, 1, 100);
    free(p);
    ck_assert_uint_eq(mem_product(3, 7), 21);
    ck_assert_uint_eq(mem_product(0, SIZE_MAX), 0);
}
END_TEST

static void overflow_product(void)
{
    mem_product(SIZE_MAX / 2, 3);
}

static void overflow_arena(void)
{
    arena_alloc_array(arena_create(), SIZE_MAX / 4, 8);
}

static void overflow_vec(void)
{
    size_t cap = SIZE_MAX / 2 + 1;
    vec_grow(NULL, &cap, 1);
}

static void overflow_strbuf(void)
{
    strbuf b = {0};
    strbuf_fill(&b, 'x', SIZE_MAX - 1);
}

static void (*const ways[])(void) = {overflow_product, overflow_arena, overflow_vec,
                                     overflow_strbuf};

static void leave(size_t bytes)
{
    _exit(bytes > PTRDIFF_MAX ? 3 : 4);
}

/* Only a program can say that it shall end. */
START_TEST(overflow_calls_the_handler_or_aborts)
{
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        mem_on_exhausted(leave);
        int status = child_status(ways[i]);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 3);
        mem_on_exhausted(NULL);
        status = child_status(ways[i]);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}
END_TEST

START_TEST(overflow_ends_the_scope)
{
    for (volatile size_t i = 0; i < COUNT_OF(ways); i++) {
        MEM_SCOPE(scope);
        if (sigsetjmp(scope.env, 0) == 0) {
            ways[i]();
            ck_abort_msg("way %zu goes on", i);
        }
        ck_assert_uint_gt(scope.bytes, PTRDIFF_MAX);
    }
    ck_assert_ptr_null(mem_try_alloc(SIZE_MAX));
    ck_assert_ptr_null(mem_try_aligned(64, SIZE_MAX - 100));
}
END_TEST

START_TEST(fails_on_demand)
{
    void *p[5];
    mem_fail_after(2, false);
    for (int i = 0; i < 5; i++)
        p[i] = mem_try_alloc(1);
    ck_assert(p[0] && !p[1] && p[2] && p[3] && p[4] && mem_fail_came());
    for (int i = 0; i < 5; i++)
        mem_free(p[i]);
    mem_fail_after(2, true);
    for (int i = 0; i < 5; i++)
        p[i] = i % 2 ? mem_try_alloc(1) : mem_try_aligned(64, 1);
    ck_assert(p[0] && !p[1] && !p[2] && !p[3] && !p[4]);
    mem_fail_after(0, false);
    mem_free(p[0]);
    ck_assert(!mem_fail_came());
}
END_TEST

SUITE_MAIN("mem", allocates, overflow_calls_the_handler_or_aborts, overflow_ends_the_scope,
           fails_on_demand)
