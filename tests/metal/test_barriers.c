/* test_barriers.c - every barrier of samples.metal taken away in turn: race mode must tell, with the shader's file; and weakened to
 * mem_none, which is as if it were not there. */
#include "tests/metal/lanes.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/base/suite.h"

static char error[LANES_ERROR_MAX];

/* Kernels of samples.metal that have barriers, at sizes for which each is needed. */
static lanes_dispatch dispatch_of(const shader_library *l, int kernel, fibre_order order)
{
    static float x[4096], y[4096];
    static struct {
        float *x, *y;
        float add;
        uint32_t n;
    } steps[2] = {{x, y, 1, 100}, {y, x, 1, 100}};
    static uint32_t two = 2, n = 512, size[4] = {32, 16, 48, 0};
    lanes_dispatch d = {.library = l, .order = order, .groups = {1}, .threads = {64}};
    static const char *const names[] = {"rms_norm", "gemm", "steps", "neighbours"};
    d.kernel = names[kernel];
    d.buffer[0] = (lanes_binding){x, sizeof x};
    d.buffer[1] = (lanes_binding){x, sizeof x};
    d.buffer[2] = (lanes_binding){y, sizeof y};
    if (kernel == 0) {
        d.buffer[3] = (lanes_binding){&n, sizeof n};
    } else if (kernel == 1) {
        d.threads[0] = 128;
        d.shared_bytes[0] = 1024;
        d.buffer[3] = (lanes_binding){size, sizeof size};
    } else if (kernel == 2) {
        d.buffer[0] = (lanes_binding){steps, sizeof steps};
        d.buffer[1] = (lanes_binding){&two, sizeof two};
    }
    if (kernel == 2) {
        lanes_memory_remove(x);
        lanes_memory_remove(y);
        lanes_memory_add(x, sizeof x, "x");
        lanes_memory_add(y, sizeof y, "y");
    }
    return d;
}

/* How many of the kernels, in all orders, are told of. */
static int told(const shader_library *l)
{
    int n = 0;
    for (int kernel = 0; kernel < 4; kernel++)
        for (int order = 0; order < FIBRES_ORDERS; order++) {
            lanes_dispatch d = dispatch_of(l, kernel, (fibre_order)order);
            bool good = lanes_run(&d, error);
            lanes_order_all();
            if (good)
                continue;
            n++;
            ck_assert_msg(strstr(error, "samples.metal:") != NULL, "%s", error);
            ck_assert_msg(strstr(error, "race: ") || strstr(error, "which nobody wrote"), "%s",
                          error);
        }
    return n;
}

static const shader_library *made_of(const char *text)
{
    char name[] = "/tmp/barriersXXXXXX.metal", command[4000], path[1000] = "";
    int file = mkstemps(name, 6);
    FILE *f = fdopen(file, "w");
    fputs("#line 1 \"samples.metal\"\n", f);
    fputs(text, f);
    fclose(f);
    snprintf(command, sizeof command, "%s --race --cache %s/shaders %s", METALC, METAL_LIBRARIES,
             name);
    f = popen(command, "r");
    ck_assert(f && fgets(path, sizeof path, f));
    ck_assert_int_eq(pclose(f), 0);
    unlink(name);
    path[strcspn(path, "\n")] = 0;
    const shader_library *l = lanes_open(path, error);
    ck_assert_msg(l != NULL, "%s", error);
    return l;
}

static char *samples(void)
{
    static char text[20000];
    FILE *f = fopen(METAL_SAMPLES, "r");
    ck_assert(f != NULL);
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    ck_assert_uint_lt(n, sizeof text - 1);
    text[n] = 0;
    return text;
}

START_TEST(as_it_is)
{
    ck_assert_msg(told(made_of(samples())) == 0, "%s", error);
}
END_TEST

/* The barriers of `text`, one after another; NULL: there are no more. */
static char *barrier_next(char *p)
{
    char *a = strstr(p, "threadgroup_barrier("), *b = strstr(p, "simdgroup_barrier(");
    return !a || (b && b < a) ? b : a;
}

enum { BARRIERS = 5 };

START_TEST(removed)
{
    char *text = samples(), *at = barrier_next(text);
    int n = 0;
    for (char *p = at; p; p = barrier_next(p + 1))
        n++;
    ck_assert_int_eq(n, BARRIERS);
    for (int i = 0; i < _i / 2; i++)
        at = barrier_next(at + 1);
    if (_i % 2) { /* weakened: in as many characters */
        char *flag = strstr(at, "mem_flags::mem_") + strlen("mem_flags::mem_");
        size_t length = strcspn(flag, ")");
        memset(flag, ' ', length);
        memcpy(flag, "none", 4);
    } else {
        memset(at, ' ', strcspn(at, ";"));
    }
    ck_assert_msg(told(made_of(text)) > 0, "barrier %d%s is not missed", _i / 2,
                  _i % 2 ? " without its memory" : "");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("barriers");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, as_it_is);
    tcase_add_loop_test(t, removed, 0, 2 * BARRIERS);
    return suite_run("barriers", t, SUITE_FORK);
}
