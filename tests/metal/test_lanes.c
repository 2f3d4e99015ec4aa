/* test_lanes.c - samples.metal against plain loops, in both modes and all orders; then what race mode must find. */
#include "tests/metal/lanes.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/base/suite.h"

enum { SEED = 1 };
static char error[LANES_ERROR_MAX];

static const shader_library *samples(bool race)
{
    static const shader_library *open[2];
    if (!open[race])
        open[race] = lanes_open(race ? METAL_LIBRARIES "/metal_samples_race.so"
                                     : METAL_LIBRARIES "/metal_samples.so",
                                error);
    ck_assert_msg(open[race] != NULL, "%s", error);
    return open[race];
}

/* The tests run for plain forward, backward and shuffled, then the same in race mode. */
enum { RUNS = 2 * FIBRES_ORDERS };
static lanes_dispatch dispatch_of(int run, const char *kernel, uint32_t groups, uint32_t threads)
{
    return (lanes_dispatch){.library = samples(run >= FIBRES_ORDERS),
                            .kernel = kernel,
                            .order = (fibre_order)(run % FIBRES_ORDERS),
                            .groups = {groups},
                            .threads = {threads}};
}

static void run_well(const lanes_dispatch *d)
{
    bool good = lanes_run(d, error);
    lanes_order_all();
    ck_assert_msg(good, "%s", error);
}

static float number(int i)
{
    return (float)((i * 7919 + SEED) % 201 - 100) / 50.0f;
}

static void bind(lanes_dispatch *d, int index, void *base, size_t bytes)
{
    d->buffer[index] = (lanes_binding){base, bytes};
}

START_TEST(norm)
{
    enum { ROWS = 3, N = 516 };
    static float x[ROWS * N], w[N], y[ROWS * N];
    uint32_t n = N;
    bool scaled = _i % 2;
    for (int i = 0; i < ROWS * N; i++)
        x[i] = number(i);
    for (int i = 0; i < N; i++)
        w[i] = number(i + 5);
    lanes_constant c = {1, sizeof scaled, &scaled};
    lanes_dispatch d = dispatch_of(_i, "rms_norm", ROWS, 96);
    d.constant = &c;
    d.n_constant = 1;
    bind(&d, 0, x, sizeof x);
    bind(&d, 1, w, sizeof w);
    bind(&d, 2, y, sizeof y);
    bind(&d, 3, &n, sizeof n);
    run_well(&d);
    for (int r = 0; r < ROWS; r++) {
        double s = 0;
        for (int i = 0; i < N; i++)
            s += (double)x[r * N + i] * x[r * N + i];
        for (int i = 0; i < N; i++) {
            double want = x[r * N + i] / sqrt(s / N + 1e-5) * w[i] * (scaled ? 2 : 1);
            if (!(fabs(y[r * N + i] - want) < 1e-5))
                ck_abort_msg("row %d, element %d: %g, not %g", r, i, y[r * N + i], want);
        }
    }
}
END_TEST

typedef struct {
    _Float16 d;
    int8_t qs[32];
} block;

START_TEST(gemv)
{
    enum { ROWS = 21, K = 352, BLOCKS = K / 32 };
    static block w[ROWS * BLOCKS];
    static float x[K], y[ROWS];
    uint32_t size[2] = {ROWS, K};
    for (int i = 0; i < ROWS * BLOCKS; i++) {
        w[i].d = (_Float16)number(i);
        for (int k = 0; k < 32; k++)
            w[i].qs[k] = (int8_t)((i * 31 + k * 17) % 255 - 127);
    }
    for (int i = 0; i < K; i++)
        x[i] = number(i + 3);
    for (int rows = 2; rows <= 4; rows += 2) {
        lanes_dispatch d = dispatch_of(_i, rows == 2 ? "gemv_2" : "gemv_4",
                                       (uint32_t)((ROWS + 2 * rows - 1) / (2 * rows)), 64);
        bind(&d, 0, w, sizeof w);
        bind(&d, 1, x, sizeof x);
        bind(&d, 2, y, sizeof y);
        bind(&d, 3, size, sizeof size);
        memset(y, 0xff, sizeof y);
        run_well(&d);
        for (int r = 0; r < ROWS; r++) {
            double want = 0, all = 0;
            for (int k = 0; k < K; k++) {
                double term = (double)(float)w[r * BLOCKS + k / 32].d *
                              w[r * BLOCKS + k / 32].qs[k % 32] * x[k];
                want += term;
                all += fabs(term);
            }
            if (!(fabs(y[r] - want) < all * 1e-6))
                ck_abort_msg("row %d: %g, not %g", r, y[r], want);
        }
    }
}
END_TEST

static void gemm_dispatch(lanes_dispatch *d, float *c)
{
    enum { M = 32, N = 16, K = 48 };
    static _Float16 a[M * K], b[N * K];
    static uint32_t size[4] = {M, N, K}; /* a vector of 3 takes the room of 4 */
    for (int i = 0; i < M * K; i++)
        a[i] = (_Float16)number(i);
    for (int i = 0; i < N * K; i++)
        b[i] = (_Float16)number(i + 9);
    d->groups[1] = M / 16;
    d->shared_bytes[0] = 2 * 16 * 16 * 2;
    bind(d, 0, a, sizeof a);
    bind(d, 1, b, sizeof b);
    bind(d, 2, c, M * N * sizeof *c);
    bind(d, 3, size, sizeof size);
}

START_TEST(gemm)
{
    enum { M = 32, N = 16, K = 48 };
    static float c[M * N];
    lanes_dispatch d = dispatch_of(_i, "gemm", N / 16, 128);
    gemm_dispatch(&d, c);
    const _Float16 *a = d.buffer[0].base, *b = d.buffer[1].base;
    run_well(&d);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            double want = 0;
            for (int k = 0; k < K; k++)
                want += (double)(float)a[m * K + k] * (double)(float)b[n * K + k];
            if (!(fabs(c[m * N + n] - want) < 1e-4))
                ck_abort_msg("%d, %d: %g, not %g", m, n, c[m * N + n], want);
        }
}
END_TEST

typedef struct {
    uint64_t x, y;
    float add;
    uint32_t n;
} step;

/* Two steps, the second of which reads what the first one wrote. */
static void steps_dispatch(lanes_dispatch *d, float *x, float *y, int n)
{
    static step s[2];
    static uint32_t count = 2;
    s[0] = (step){(uint64_t)(uintptr_t)x, (uint64_t)(uintptr_t)y, 1, (uint32_t)n};
    s[1] = (step){(uint64_t)(uintptr_t)y, (uint64_t)(uintptr_t)x, 1, (uint32_t)n};
    bind(d, 0, s, sizeof s);
    bind(d, 1, &count, sizeof count);
}

START_TEST(addresses)
{
    enum { N = 100 };
    static float x[N], y[N];
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    lanes_dispatch d = dispatch_of(_i, "steps", 1, 64);
    steps_dispatch(&d, x, y, N);
    lanes_memory_add(x, sizeof x, "x");
    lanes_memory_add(y, sizeof y, "y");
    run_well(&d);
    lanes_memory_remove(x);
    lanes_memory_remove(y);
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(x[i], (float)i + 2);
}
END_TEST

START_TEST(words)
{
    static _Float16 x[32 * 4];
    static float y[32 * 16];
    static uint16_t z[32];
    uint32_t n = 0, rows = 3;
    for (int i = 0; i < 32 * 4; i++)
        x[i] = (_Float16)number(i);
    lanes_constant c = {0, sizeof rows, &rows};
    lanes_dispatch d = dispatch_of(_i, "words", 1, 32);
    d.constant = &c;
    d.n_constant = _i % 2;
    bind(&d, 0, x, sizeof x);
    bind(&d, 1, y, sizeof y);
    bind(&d, 2, z, sizeof z);
    bind(&d, 3, &n, sizeof n);
    run_well(&d);
    float most = -10;
    for (int i = 0; i < 32; i++)
        most = fmaxf(most, (float)x[4 * i + 1]);
    for (int i = 0; i < 32; i++) {
        const float *o = y + i * 16, v = (float)x[4 * i + 1];
        float sum =
            (float)x[4 * i] + (float)x[4 * i + 1] + (float)x[4 * i + 2] + (float)x[4 * i + 3];
        ck_assert_float_eq(o[0], v);
        ck_assert_float_eq(o[1], (float)x[4 * (i ^ 1) + 1]);
        ck_assert(i == 31 ? isnan(o[2]) : o[2] == (float)x[4 * i + 5]);
        ck_assert_float_eq(o[3], most);
        ck_assert_float_eq(o[4], (float)x[21]);
        ck_assert_float_eq(o[5], (float)i);
        ck_assert_float_eq(o[6], 11);
        ck_assert_float_eq(o[7], 2);
        ck_assert_float_eq_tol(o[8], sum, 1e-5);
        ck_assert_float_eq(o[9], 3.0f + (float)(i % 4 + 1));
        ck_assert_float_eq(o[10], fmaxf(-1, fminf(1, v)));
        ck_assert_float_eq(o[11], 1);
        ck_assert_float_eq(o[12], _i % 2 ? 3 : 7);
        ck_assert_float_eq(o[13], 1.0078125f);
        ck_assert_float_eq(o[14], 0xbc);
        ck_assert_float_eq(o[15], -most);
        uint32_t bits;
        memcpy(&bits, &v, 4);
        ck_assert_uint_eq(z[i], (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
    ck_assert_uint_eq(n, 31 * 32 / 2);
}
END_TEST

static void fails_with(const lanes_dispatch *d, const char *what)
{
    bool good = lanes_run(d, error);
    lanes_order_all();
    ck_assert_msg(!good, "nothing is told of: %s", what);
    ck_assert_msg(strstr(error, what) != NULL, "%s\nlacks: %s", error, what);
}

START_TEST(bounds)
{
    static float y[64];
    lanes_dispatch d = dispatch_of(_i, "neighbours", 1, 64);
    fails_with(&d, "neighbours: buffer(0) is not bound");
    bind(&d, 0, y, sizeof y);
    d.threads[0] = 2048;
    fails_with(&d, "neighbours: 2048 threads in a threadgroup are too many");
    d.threads[0] = 64;
    d.shared_bytes[0] = 40000;
    fails_with(&d, "bytes of threadgroup memory are too many");
    d.shared_bytes[0] = 0;
    d.kernel = "nobody";
    fails_with(&d, "there is no kernel nobody");
    d.kernel = "steps";
    bind(&d, 1, y, 2);
    fails_with(&d, "steps: buffer(1) has 2 bytes, its type 4");
    /* An address from nowhere: told in plain mode too, by the page that it lies in. */
    float *gone = NULL;
    steps_dispatch(&d, gone, y, 64);
    fails_with(&d, _i < FIBRES_ORDERS ? "touches memory that is in no buffer at "
                                      : "read of 4 bytes of memory that is in no buffer");
    ck_assert_msg(strstr(error, "samples.metal:") != NULL, "%s", error);
}
END_TEST

START_TEST(races)
{
    static float y[64];
    lanes_dispatch d = dispatch_of(FIBRES_ORDERS + _i, "neighbours", 2, 64);
    bind(&d, 0, y, sizeof y);
    fails_with(&d, "race: write after write, byte ");
    ck_assert_msg(strstr(error, "between threadgroups") != NULL, "%s", error);
    ck_assert_msg(strstr(error, "samples.metal:") != NULL, "%s", error);
    d.groups[0] = 1;
    bind(&d, 0, y, 60 * sizeof *y);
    lanes_memory_remove(y);
    fails_with(&d, "write of 4 bytes of memory that is in no buffer");
    lanes_memory_remove(y);
    bind(&d, 0, y, sizeof y);
    run_well(&d);
    /* Twice, with nothing in between; then with a barrier for this memory. */
    ck_assert(lanes_run(&d, error));
    ck_assert(!lanes_run(&d, error));
    ck_assert_msg(strstr(error, "between dispatches") != NULL, "%s", error);
    lanes_order(y);
    run_well(&d);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("lanes");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, norm, 0, RUNS);
    tcase_add_loop_test(t, gemv, 0, RUNS);
    tcase_add_loop_test(t, gemm, 0, RUNS);
    tcase_add_loop_test(t, addresses, 0, RUNS);
    tcase_add_loop_test(t, words, 0, RUNS);
    tcase_add_loop_test(t, bounds, 0, RUNS);
    tcase_add_loop_test(t, races, 0, FIBRES_ORDERS);
    return suite_run("lanes", t, SUITE_FORK);
}
