/* test_cache_sums.c - the suite of runtime/exec/cache_sums.c. */
#include "runtime/exec/cache_sums.h"
#include "runtime/base/checksum.h"
#include "tests/base/suite.h"

enum { MOST = CACHE_CHUNK_BYTES * 40 + 17 };

static const uint64_t sizes[] = {0,
                                 1,
                                 CACHE_CHUNK_BYTES - 1,
                                 CACHE_CHUNK_BYTES,
                                 CACHE_CHUNK_BYTES + 1,
                                 CACHE_CHUNK_BYTES * 16,
                                 CACHE_CHUNK_BYTES * 17,
                                 MOST};

static char *make_data(void)
{
    char *data = malloc(MOST);
    uint32_t seed = 1;
    for (size_t i = 0; i < MOST; i++, seed = seed * 1664525u + 1013904223u)
        data[i] = (char)(seed >> 24);
    return data;
}

START_TEST(each_chunk_has_its_sum)
{
    weft_diag *dg = diag_create();
    char *data = make_data();
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        for (int threads = 0; threads <= 3; threads++) {
            uint64_t sums[64], bad;
            size_t n = cache_sums_count(sizes[i]);
            interleave_work how = {.threads = threads};
            ck_assert_uint_eq(n, (sizes[i] + CACHE_CHUNK_BYTES - 1) / CACHE_CHUNK_BYTES);
            sums[n] = 4711;
            ck_assert_int_eq(cache_sums_make(dg, data, sizes[i], how, sums), WEFT_OK);
            ck_assert_uint_eq(sums[n], 4711);
            for (size_t c = 0; c < n; c++) {
                uint64_t left = sizes[i] - c * CACHE_CHUNK_BYTES;
                ck_assert_uint_eq(sums[c],
                                  checksum(data + c * CACHE_CHUNK_BYTES,
                                           left < CACHE_CHUNK_BYTES ? left : CACHE_CHUNK_BYTES));
            }
            ck_assert_int_eq(cache_sums_check(dg, data, sizes[i], how, sums, &bad), WEFT_OK);
            ck_assert_uint_eq(bad, CACHE_NOTHING_BAD);
            ck_assert_uint_eq(cache_sums_sample(data, sizes[i], sums, i), CACHE_NOTHING_BAD);
        }
    free(data);
    diag_destroy(dg);
}
END_TEST

START_TEST(the_bad_chunk_is_named)
{
    weft_diag *dg = diag_create();
    char *data = make_data();
    uint64_t sums[64], bad, n = cache_sums_count(MOST), found = 0;
    interleave_work how = {.threads = 2};
    ck_assert_int_eq(cache_sums_make(dg, data, MOST, how, sums), WEFT_OK);
    for (uint64_t c = 0; c < n; c++) {
        uint64_t at = c * CACHE_CHUNK_BYTES;
        data[at + c % 17] ^= 1;
        ck_assert_int_eq(cache_sums_check(dg, data, MOST, how, sums, &bad), WEFT_OK);
        ck_assert_uint_eq(bad, at);
        /* Sooner or later a sample has it too, and never another. */
        for (uint64_t seed = 0; seed < 40; seed++) {
            bad = cache_sums_sample(data, MOST, sums, seed * 77777);
            ck_assert(bad == at || bad == CACHE_NOTHING_BAD);
            found += bad == at;
        }
        data[at + c % 17] ^= 1;
    }
    ck_assert_uint_ge(found, 40 * n / 2);
    free(data);
    diag_destroy(dg);
}
END_TEST

START_TEST(it_can_be_stopped)
{
    weft_diag *dg = diag_create();
    char *data = make_data();
    uint64_t sums[64], bad = 5;
    cancel_flag stop = {1};
    for (int threads = 1; threads <= 2; threads++) {
        interleave_work how = {.threads = threads, .cancel = &stop};
        ck_assert_int_eq(cache_sums_make(dg, data, MOST, how, sums), WEFT_ERR_CANCELLED);
        ck_assert_int_eq(cache_sums_check(dg, data, MOST, how, sums, &bad), WEFT_ERR_CANCELLED);
        ck_assert_uint_eq(bad, 5);
    }
    free(data);
    diag_destroy(dg);
}
END_TEST

SUITE_MAIN("cache_sums", each_chunk_has_its_sum, the_bad_chunk_is_named, it_can_be_stopped)
