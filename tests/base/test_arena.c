/* test_arena.c - the suite of runtime/base/arena.c. */
#include "tests/base/suite.h"

/* One assertion for a whole range: Check writes a message for each it makes. */
static bool is_all(const unsigned char *p, size_t n, unsigned char value)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != value)
            return false;
    return true;
}

START_TEST(memory_is_zeroed_aligned_and_apart)
{
    arena *a = arena_create();
    unsigned char *last = NULL;
    size_t last_n = 0;
    for (size_t n = 0; n < 3000; n++) {
        unsigned char *p = arena_alloc(a, n);
        ck_assert_ptr_nonnull(p);
        ck_assert_ptr_ne(p, last);
        ck_assert_uint_eq((uintptr_t)p % _Alignof(max_align_t), 0);
        ck_assert(is_all(p, n, 0));
        memset(p, 0xAA, n);
        ck_assert(is_all(last, last_n, 0xAA));
        last = p;
        last_n = n;
    }
    ck_assert_uint_ge(arena_bytes(a), 3000u * 2999u / 2);
    arena_destroy(a);
}
END_TEST

START_TEST(big_blocks_leave_the_small_ones_room)
{
    arena *a = arena_create();
    char *small = arena_alloc(a, 16);
    char *big = arena_alloc(a, 10 << 20);
    memset(big, 1, 10 << 20);
    char *next = arena_alloc(a, 16);
    /* Still in the first block: no more than a gap away. */
    ck_assert_int_le(next - small, 64);
    ck_assert_int_gt(next - small, 0);
    arena_destroy(a);
}
END_TEST

START_TEST(reset_starts_over)
{
    arena *a = arena_create();
    unsigned char *first = arena_alloc(a, 100);
    memset(first, 0xFF, 100);
    arena_alloc(a, 1 << 20);
    for (int i = 0; i < 10000; i++)
        arena_alloc(a, 100);
    arena_reset(a);
    ck_assert_uint_eq(arena_bytes(a), 0);
    unsigned char *again = arena_alloc(a, 100);
    ck_assert_ptr_eq(again, first); /* the first block is kept */
    ck_assert(is_all(again, 100, 0));
    arena_reset(a);
    arena_destroy(a);
    arena_destroy(NULL);
}
END_TEST

START_TEST(strings_are_copied)
{
    arena *a = arena_create();
    char text[] = "a\0b";
    str s = arena_str(a, (str){text, 3});
    text[0] = 'x';
    ck_assert(str_eq(s, STR("a\0b")));
    ck_assert_int_eq(s.p[3], 0);
    str e = arena_str(a, (str){NULL, 0});
    ck_assert_str_eq(e.p, "");
    str f = arena_printf(a, "layer %d of %s", 12, "llama");
    ck_assert(str_eqz(f, "layer 12 of llama"));
    ck_assert_int_eq(f.p[f.n], 0);
    int *many = ARENA_ARRAY(a, int, 1000);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(many[i], 0);
    arena_destroy(a);
}
END_TEST

SUITE_MAIN("arena", memory_is_zeroed_aligned_and_apart, big_blocks_leave_the_small_ones_room,
           reset_starts_over, strings_are_copied)
