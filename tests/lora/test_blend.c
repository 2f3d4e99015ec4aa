/* test_blend.c - blends of adapters against the same worked out on whole matrices. */
#include "runtime/exec/pool.h"
#include "runtime/lora/adapter_merge.h"
#include "tests/base/suite.h"

#include <math.h>

enum { IN = 300, OUT = 7, N = IN * OUT };

typedef struct {
    adapter ad;
    adapter_site site;
    float a[4 * IN], b[OUT * 4];
    double dense[N]; /* scale * B A */
} fixture;

static fixture make(uint32_t seed, int64_t rank, double scale)
{
    fixture f = {.ad = {.n_site = 1}};
    for (int64_t i = 0; i < rank * IN + OUT * rank; i++) {
        seed = seed * 1664525u + 1013904223u;
        float x = (float)(int32_t)seed / 2147483648.0f;
        if (i < rank * IN)
            f.a[i] = x;
        else
            f.b[i - rank * IN] = x;
    }
    for (int o = 0; o < OUT; o++)
        for (int i = 0; i < IN; i++)
            for (int64_t r = 0; r < rank; r++)
                f.dense[o * IN + i] += scale * f.b[o * rank + r] * f.a[r * IN + i];
    f.site = (adapter_site){.weight = 3,
                            .index = -1,
                            .rank = rank,
                            .in = IN,
                            .out = OUT,
                            .scale = scale,
                            .name = STR("blk[0].q_proj")};
    return f;
}

/* Pointers into a fixture are set where it stays. */
static const adapter *settled(fixture *f)
{
    f->site.a = f->a;
    f->site.b = f->b;
    f->ad.site = &f->site;
    return &f->ad;
}

static void all_lines(const blend *b, double *out)
{
    for (int o = 0; o < OUT; o++)
        for (int i = 0; i < IN; i += BLEND_COLUMNS)
            blend_line(b, &b->site[0], o, false, i, IN - i < BLEND_COLUMNS ? IN - i : BLEND_COLUMNS,
                       out + o * IN + i);
}

static void check_flipped(const blend *b, const double *want)
{
    double column[OUT];
    for (int i = 0; i < IN; i++) {
        blend_line(b, &b->site[0], i, true, 0, OUT, column);
        for (int o = 0; o < OUT; o++)
            if (column[o] != want[o * IN + i])
                ck_abort_msg("element %d, %d differs from the other side", o, i);
    }
}

static blend *make_blend(fixture *x, fixture *y, double p, double q, blend_options how)
{
    weft_diag *dg = diag_create();
    blend *b = NULL;
    blend_input in[] = {{settled(x), p}, {settled(y), q}};
    if (blend_create(dg, in, 2, &how, &b) != WEFT_OK)
        ck_abort_msg("%s", diag_shown(dg));
    ck_assert_uint_eq(b->n_site, 1);
    diag_destroy(dg);
    return b;
}

static void expect_near(const double *got, const double *want, double off)
{
    for (int i = 0; i < N; i++)
        if (!(fabs(got[i] - want[i]) <= off))
            ck_abort_msg("element %d is %.9g, not %.9g", i, got[i], want[i]);
}

START_TEST(linear_is_the_sum)
{
    fixture x = make(1, 4, 2), y = make(2, 3, 0.5);
    blend *b = make_blend(&x, &y, 0.7, -0.3,
                          (blend_options){.method = BLEND_LINEAR, .density = 1, .seed = 0});
    double got[N], want[N], lost;
    for (int i = 0; i < N; i++)
        want[i] = 0.7 * x.dense[i] - 0.3 * y.dense[i];
    all_lines(b, got);
    expect_near(got, want, 1e-12);
    check_flipped(b, got);
    /* as one adapter: exact at the summed rank, and so by singular values */
    arena *home = arena_create();
    for (int64_t rank = 0; rank < 8; rank += 7) {
        const adapter_site *s = blend_factors(b, rank, 1, home, NULL, NULL, &lost);
        ck_assert_int_eq(s->rank, 7);
        double made[N] = {0};
        for (int o = 0; o < OUT; o++)
            for (int i = 0; i < IN; i++)
                for (int64_t r = 0; r < s->rank; r++)
                    made[o * IN + i] += s->scale * s->b[o * s->rank + r] * s->a[r * IN + i];
        expect_near(made, want, 1e-6);
    }
    arena_destroy(home);
    blend_destroy(b);
}
END_TEST

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

static float least_kept(const double *x, double density)
{
    float size[N];
    for (int i = 0; i < N; i++)
        size[i] = fabsf((float)x[i]);
    qsort(size, N, sizeof *size, by_size);
    return size[llround(density * N) - 1];
}

START_TEST(ties_keeps_the_largest_and_lets_signs_win)
{
    static const double density = 0.3;
    fixture x = make(3, 4, 2), y = make(4, 2, 1);
    blend *b = make_blend(&x, &y, 1, 0.8,
                          (blend_options){.method = BLEND_TIES, .density = density, .seed = 0});
    double got[N], want[N];
    float px = least_kept(x.dense, density), py = least_kept(y.dense, density);
    int kept = 0;
    for (int i = 0; i < N; i++) {
        double p = fabsf((float)x.dense[i]) >= px ? x.dense[i] : 0;
        double q = fabsf((float)y.dense[i]) >= py ? 0.8 * y.dense[i] : 0;
        bool up = p + q > 0;
        bool with_p = p != 0 && (p > 0) == up, with_q = q != 0 && (q > 0) == up;
        want[i] = (with_p ? p : 0) + (with_q ? q : 0);
        want[i] /= with_p && with_q ? 2 : 1;
        kept += want[i] != 0;
    }
    /* threads change nothing */
    weft_diag *dg = diag_create();
    ck_assert_int_eq(pool_acquire(dg, 3, false), WEFT_OK);
    blend *c = make_blend(&x, &y, 1, 0.8,
                          (blend_options){.method = BLEND_TIES, .density = density, .threads = 3});
    pool_release();
    for (int p = 0; p < 2; p++)
        ck_assert(b->site[0].part[p].least == c->site[0].part[p].least);
    blend_destroy(c);
    diag_destroy(dg);
    ck_assert_int_gt(kept, N / 4);
    ck_assert_int_lt(kept, N * 6 / 10);
    all_lines(b, got);
    expect_near(got, want, 1e-12);
    check_flipped(b, got);
    blend_destroy(b);
}
END_TEST

START_TEST(dare_keeps_a_share_and_its_seed_decides)
{
    fixture x = make(5, 4, 1), y = make(6, 4, 1);
    double got[3][N];
    uint64_t seed[] = {7, 7, 8};
    for (int k = 0; k < 3; k++) {
        blend *b = make_blend(
            &x, &y, 1, 0, (blend_options){.method = BLEND_DARE, .density = 0.25, .seed = seed[k]});
        int kept = 0;
        all_lines(b, got[k]);
        check_flipped(b, got[k]);
        for (int i = 0; i < N; i++) {
            kept += got[k][i] != 0;
            if (got[k][i] != 0 && fabs(got[k][i] - 4 * x.dense[i]) > 1e-12)
                ck_abort_msg("element %d is not four times what it was", i);
        }
        ck_assert_int_gt(kept, N / 4 - 150); /* 2100 of which 525: a deviation of 20 */
        ck_assert_int_lt(kept, N / 4 + 150);
        blend_destroy(b);
    }
    ck_assert(memcmp(got[0], got[1], sizeof got[0]) == 0);
    ck_assert(memcmp(got[0], got[2], sizeof got[0]) != 0);
}
END_TEST

START_TEST(slerp_stays_on_the_arc)
{
    fixture x = make(9, 4, 1.5), y = make(10, 3, 0.7);
    blend *b =
        make_blend(&x, &y, 3, 1, (blend_options){.method = BLEND_SLERP, .density = 1, .seed = 0});
    double got[N], want[N], xx = 0, yy = 0, xy = 0;
    for (int i = 0; i < N; i++) {
        xx += x.dense[i] * x.dense[i];
        yy += y.dense[i] * y.dense[i];
        xy += x.dense[i] * y.dense[i];
    }
    double angle = acos(xy / sqrt(xx * yy));
    for (int i = 0; i < N; i++)
        want[i] = (sin(0.75 * angle) * x.dense[i] + sin(0.25 * angle) * y.dense[i]) / sin(angle);
    all_lines(b, got);
    expect_near(got, want, 1e-9);
    blend_destroy(b);
}
END_TEST

START_TEST(what_a_method_does_not_take)
{
    fixture x = make(1, 4, 2);
    weft_diag *dg = diag_create();
    blend *b = NULL;
    blend_input in[] = {{settled(&x), 1}, {settled(&x), 1}, {settled(&x), 1}};
    ck_assert_int_ne(blend_create(dg, in, 3,
                                  &(blend_options){.method = BLEND_SLERP, .density = 1, .seed = 0},
                                  &b),
                     WEFT_OK);
    expect_one(dg, W0705, "it takes two, not 3");
    diag_reset(dg);
    in[0].share = in[1].share = 0;
    ck_assert_int_ne(blend_create(dg, in, 2,
                                  &(blend_options){.method = BLEND_SLERP, .density = 1, .seed = 0},
                                  &b),
                     WEFT_OK);
    expect_one(dg, W0705, "not both of them 0");
    ck_assert_ptr_null(b);
    diag_destroy(dg);
}
END_TEST

SUITE_MAIN("blend", linear_is_the_sum, ties_keeps_the_largest_and_lets_signs_win,
           dare_keeps_a_share_and_its_seed_decides, slerp_stays_on_the_arc,
           what_a_method_does_not_take)
