/* test_allow_cpu.c - a card that lacks a kernel: W0901 names it, and with allow_cpu the model runs on the CPU, which is said.
 *
 * The card is the tests' (tests/cuda), found as a program finds a real one; the linker puts __wrap_cuda_row_select in the place of the
 * function that chooses kernels for cards. */
#include "kernels/cuda/cuda_rows.h"
#include "runtime/weft.h"
#include "tests/base/suite.h"

#include <string.h>

/* What the card has no kernel for. */
static struct {
    bool some;
    kop op;
    dtype type; /* DT_COUNT: of any */
} lacking;

const kernel_row *__real_cuda_row_select(kop op, dtype type, int64_t n_row, cuda_rounding most,
                                         bool any_rows);
const kernel_row *__wrap_cuda_row_select(kop op, dtype type, int64_t n_row, cuda_rounding most,
                                         bool any_rows);
const kernel_row *__wrap_cuda_row_select(kop op, dtype type, int64_t n_row, cuda_rounding most,
                                         bool any_rows)
{
    if (lacking.some && lacking.op == op && (lacking.type == DT_COUNT || lacking.type == type))
        return NULL;
    return __real_cuda_row_select(op, type, n_row, most, any_rows);
}

typedef struct {
    weft_diag *dg;
    weft_model *m;
    weft_session *s;
    weft_status st;
} run;

static run start(bool allow, int64_t layers)
{
    run r = {.dg = weft_diag_create()};
    weft_session_options how = {.size = sizeof how,
                                .context = 16,
                                .device = "cuda",
                                .device_layers = layers,
                                .allow_cpu = allow};
    ck_assert_int_eq(weft_model_open(r.dg, WEFT_GOLDEN "/llama-mha", NULL, &r.m), WEFT_OK);
    r.st = weft_session_create(r.dg, r.m, &how, &r.s);
    return r;
}

static void end(run *r)
{
    weft_session_destroy(r->s);
    weft_model_close(r->m);
    weft_diag_destroy(r->dg);
    memset(&lacking, 0, sizeof lacking);
}

static void expect_device(const run *r, const char *name)
{
    weft_session_info about = {.size = sizeof about};
    weft_row row = {.token = 1, .want = true};
    ck_assert_msg(r->st == WEFT_OK, "%s", weft_diag_text(r->dg));
    ck_assert_int_eq(weft_session_about(r->dg, r->s, &about), WEFT_OK);
    ck_assert_str_eq(about.device, name);
    ck_assert_int_eq(weft_eval(r->dg, r->s, &row, 1), WEFT_OK);
}

START_TEST(a_kernel_that_is_missing_is_named)
{
    lacking.some = true;
    lacking.op = KOP_attend;
    lacking.type = DT_COUNT;
    run r = start(false, 0);
    ck_assert_int_eq(r.st, WEFT_ERR_TARGET);
    ck_assert(strstr(weft_diag_text(r.dg), "W0901"));
    ck_assert(strstr(weft_diag_text(r.dg), "attend: there is no kernel for it"));
    ck_assert(strstr(weft_diag_text(r.dg), "this is for cuda; allow_cpu"));
    end(&r);
}
END_TEST

START_TEST(a_type_that_is_missing_is_named)
{
    lacking.some = true;
    lacking.op = KOP_linear;
    lacking.type = DT_BF16;
    run r = start(false, 0);
    ck_assert_int_eq(r.st, WEFT_ERR_TARGET);
    ck_assert(
        strstr(weft_diag_text(r.dg), "linear: there is no kernel for it with weights of BF16"));
    end(&r);
}
END_TEST

START_TEST(the_cpu_runs_it_where_that_is_allowed)
{
    for (int64_t layers = 0; layers <= 2; layers += 2) {
        lacking.some = true;
        lacking.op = KOP_attend;
        lacking.type = DT_COUNT;
        run r = start(true, layers);
        expect_device(&r, "cpu");
        const char *said = weft_diag_text(r.dg);
        ck_assert(strstr(said, "warning[W1612]: all of the model runs on the CPU: on cuda, attend: "
                               "there is no kernel for it"));
        ck_assert(!strstr(said, "error"));
        end(&r);
    }
}
END_TEST

/* Nothing is lacking: the card runs it, allowed or not, and nothing is said. */
START_TEST(the_card_runs_what_it_can)
{
    run r = start(true, 0);
    expect_device(&r, "cuda");
    ck_assert_int_eq(weft_diag_count(r.dg), 0);
    end(&r);
    r = start(true, 2);
    expect_device(&r, "cpu+cuda");
    end(&r);
}
END_TEST

/* Other errors stay errors. */
START_TEST(other_errors_are_not_hidden)
{
    run r = {.dg = weft_diag_create()};
    const char *outputs[] = {"nothing"};
    weft_session_options how = {.size = sizeof how,
                                .context = 16,
                                .device = "cuda",
                                .outputs = outputs,
                                .n_output = 1,
                                .allow_cpu = true};
    ck_assert_int_eq(weft_model_open(r.dg, WEFT_GOLDEN "/llama-mha", NULL, &r.m), WEFT_OK);
    ck_assert_int_ne(weft_session_create(r.dg, r.m, &how, &r.s), WEFT_OK);
    ck_assert(strstr(weft_diag_text(r.dg), "W0201"));
    end(&r);
}
END_TEST

SUITE_MAIN("allow_cpu", a_kernel_that_is_missing_is_named, a_type_that_is_missing_is_named,
           the_cpu_runs_it_where_that_is_allowed, the_card_runs_what_it_can,
           other_errors_are_not_hidden)
