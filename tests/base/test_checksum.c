/* test_checksum.c - the suite of runtime/base/checksum.c. */
#include "runtime/base/checksum.h"
#include "tests/base/suite.h"

enum { MOST = 300 };

static void fill(unsigned char *p, size_t n)
{
    uint32_t seed = 1;
    for (size_t i = 0; i < n; i++, seed = seed * 1664525u + 1013904223u)
        p[i] = (unsigned char)(seed >> 24);
}

/* Files are read by other builds on other machines: the values are for good. */
START_TEST(the_same_everywhere)
{
    static const struct {
        size_t n;
        uint64_t want;
    } cases[] = {{0, UINT64_C(0xaa536186dbb19c03)},  {1, UINT64_C(0xdc34f0d377040d67)},
                 {8, UINT64_C(0x1cfffa1272b8c893)},  {63, UINT64_C(0x971d3e42c23699e3)},
                 {64, UINT64_C(0xb2cd246c9ea45b75)}, {300, UINT64_C(0xf5018c500904f46e)}};
    unsigned char data[MOST];
    fill(data, sizeof data);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        ck_assert_msg(checksum(data, cases[i].n) == cases[i].want, "%zu bytes: %llx", cases[i].n,
                      (unsigned long long)checksum(data, cases[i].n));
}
END_TEST

START_TEST(any_address)
{
    unsigned char data[MOST], moved[MOST + 16];
    fill(data, sizeof data);
    for (size_t at = 1; at < 16; at++) {
        memcpy(moved + at, data, sizeof data);
        ck_assert_uint_eq(checksum(moved + at, sizeof data), checksum(data, sizeof data));
    }
}
END_TEST

START_TEST(every_bit_counts)
{
    unsigned char data[MOST];
    size_t missed = 0;
    fill(data, sizeof data);
    for (size_t n = 1; n <= MOST; n += 13) {
        uint64_t was = checksum(data, n);
        for (size_t bit = 0; bit < n * 8; bit++) {
            data[bit / 8] ^= (unsigned char)(1u << bit % 8);
            missed += checksum(data, n) == was;
            data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
    }
    ck_assert_uint_eq(missed, 0);
}
END_TEST

/* The highest bits of two words that go into one of the eight sums, a product's weak spot; and words that change places. */
START_TEST(two_changes_do_not_cancel)
{
    enum { WORD = 8, WORDS = 64 };
    unsigned char data[WORDS * WORD], word[WORD];
    size_t missed = 0;
    fill(data, sizeof data);
    uint64_t was = checksum(data, sizeof data);
    for (size_t a = 0; a < WORDS; a++)
        for (size_t b = 0; b < a; b++) {
            unsigned char *x = data + a * WORD, *y = data + b * WORD;
            for (int bit = 0; bit < 8; bit++) {
                x[WORD - 1] ^= (unsigned char)(1u << bit);
                y[WORD - 1] ^= (unsigned char)(1u << bit);
                missed += checksum(data, sizeof data) == was;
                x[WORD - 1] ^= (unsigned char)(1u << bit);
                y[WORD - 1] ^= (unsigned char)(1u << bit);
            }
            memcpy(word, x, WORD);
            memcpy(x, y, WORD);
            memcpy(y, word, WORD);
            missed += checksum(data, sizeof data) == was;
            memcpy(y, x, WORD);
            memcpy(x, word, WORD);
        }
    ck_assert_uint_eq(missed, 0);
    ck_assert_uint_eq(checksum(data, sizeof data), was);
}
END_TEST

START_TEST(zeros_of_each_length_differ)
{
    static const unsigned char zeros[MOST];
    for (size_t a = 0; a <= MOST; a++)
        for (size_t b = 0; b < a; b++)
            if (checksum(zeros, a) == checksum(zeros, b))
                ck_abort_msg("%zu and %zu zeros", a, b);
}
END_TEST

SUITE_MAIN("checksum", the_same_everywhere, any_address, every_bit_counts,
           two_changes_do_not_cancel, zeros_of_each_length_differ)
