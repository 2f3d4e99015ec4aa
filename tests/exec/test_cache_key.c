/* test_cache_key.c - the suite of runtime/exec/cache_key.c: whatever gives other bytes gives another name. */
#include "runtime/exec/cache_key.h"
#include "runtime/base/checksum.h"
#include "runtime/exec/weight_rows.h"
#include "tests/exec/cache_kit.h"

/* Interleaving as it is, but for one type. */
static uint64_t changed_q8(klayout l, dtype type, dtype stored)
{
    return weight_make_sample(l, type, stored) ^ (type == DT_Q8_0);
}

static uint64_t changed_q4(klayout l, dtype type, dtype stored)
{
    return weight_make_sample(l, type, stored) ^ (type == DT_Q4_0);
}

static model_hash key_of(const kit *k, const plan *p, cache_sample_fn *sample)
{
    model_hash h;
    ck_assert(cache_key(p, model_file_source(k->mf), sample, &h));
    return h;
}

static bool same(model_hash a, model_hash b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

/* Code that interleaves a type in another way does not find what was interleaved before. */
START_TEST(other_interleaving_has_another_name)
{
    kit *k = kit_open();
    model_hash now = key_of(k, &k->p, weight_make_sample);
    ck_assert(same(now, key_of(k, &k->p, weight_make_sample)));
    ck_assert(!same(now, key_of(k, &k->p, changed_q8)));
    ck_assert(same(now, key_of(k, &k->p, changed_q4))); /* there is none of it */
    plan_weight two[2] = {k->w, k->w};
    two[1].type = two[1].stored = DT_Q4_0;
    plan p = {.n_weight = 2, .weight = two, .interleaved_bytes = rows8_bytes};
    now = key_of(k, &p, weight_make_sample);
    ck_assert(!same(now, key_of(k, &p, changed_q8)));
    ck_assert(!same(now, key_of(k, &p, changed_q4)));
    /* The file that the store makes has that name. */
    ck_assert(loads(k, true));
    char name[64];
    now = key_of(k, &k->p, weight_make_sample);
    snprintf(name, sizeof name, "/%016llx%016llx.weights", (unsigned long long)now.hi,
             (unsigned long long)now.lo);
    ck_assert(strstr(only_file(k).path, name) != NULL);
    kit_close(k);
}
END_TEST

/* The sample is what layout_interleave gives for it, for all types that it can pack: all of them differ. */
START_TEST(a_sample_is_interleaved_by_the_code_that_interleaves_weights)
{
    enum { N = 512, ODD = 11 };
    static char data[8 * N * 4], to[8 * N * 4];
    uint64_t sums[DT_COUNT];
    uint32_t seed = 1;
    int n = 0;
    for (size_t i = 0; i < sizeof data; i++, seed = seed * 1664525u + 1013904223u)
        data[i] = (char)(seed >> 24);
    for (int t = 0; t < DT_COUNT; t++) {
        uint64_t sum = weight_make_sample(LAYOUT_ROWS8, (dtype)t, (dtype)t);
        ck_assert_uint_eq(weight_make_sample(LAYOUT_STORED, (dtype)t, (dtype)t), 0);
        if (!layout_has(LAYOUT_ROWS8, (dtype)t)) {
            ck_assert_uint_eq(sum, 0);
            continue;
        }
        const void *rows[LAYOUT_GROUP];
        size_t row;
        int64_t cols = dtype_row_of((dtype)t)->elems > 1 ? N : ODD;
        ck_assert(dtype_bytes((dtype)t, cols, &row));
        for (size_t i = 0; i < LAYOUT_GROUP; i++)
            rows[i] = data + i * row;
        layout_interleave(LAYOUT_ROWS8, (dtype)t, rows, cols, to);
        ck_assert_msg(checksum(to, row * LAYOUT_GROUP) == sum, "%s", dtype_row_of((dtype)t)->name);
        for (int i = 0; i < n; i++)
            ck_assert_uint_ne(sums[i], sum);
        sums[n++] = sum;
    }
    ck_assert_int_ge(n, 14);
    /* Regrouped on the way. */
    uint64_t hf = weight_make_sample(LAYOUT_ROWS8, DT_MXFP4, DT_MXFP4_HF);
    ck_assert_uint_ne(hf, 0);
    for (int i = 0; i < n; i++)
        ck_assert_uint_ne(sums[i], hf);
    /* What no plan asks for is not tried. */
    ck_assert_uint_eq(weight_make_sample(LAYOUT_ROWS8, DT_Q8_0, DT_F16), 0);
}
END_TEST

SUITE_MAIN("cache_key", other_interleaving_has_another_name,
           a_sample_is_interleaved_by_the_code_that_interleaves_weights)
