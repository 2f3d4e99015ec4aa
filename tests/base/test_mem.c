/* test_mem.c - the suite of runtime/base/mem.c. */
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"
#include "tests/base/suite.h"

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

START_TEST(overflow_stops_the_process)
{
    void (*const ways[])(void) = {overflow_product, overflow_arena, overflow_vec, overflow_strbuf};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        int status = child_status(ways[i]);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    }
}
END_TEST

SUITE_MAIN("mem", allocates, overflow_stops_the_process)
