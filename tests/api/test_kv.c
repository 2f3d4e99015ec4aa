/* test_kv.c - the public interface: state stored by age, what it takes, and another policy while a session runs. */
#include "tests/base/suite.h"

#include "runtime/weft.h"

#define MODEL WEFT_SOURCE_DIR "/tests/golden/data/llama-mha"

enum { CONTEXT = 120, PAGE = 4, CALL = 7, VOCAB = 320 };

typedef struct {
    weft_diag *dg;
    weft_model *m;
    weft_session *s;
} kit;

static weft_status open_as(kit *k, const char *policy, bool ref)
{
    weft_session_options how = {.size = sizeof how,
                                .context = CONTEXT,
                                .batch = CALL,
                                .page_tokens = PAGE,
                                .exec = ref ? WEFT_EXEC_REF : WEFT_EXEC_PLAN,
                                .kv_policy = policy,
                                .deterministic = true};
    return weft_session_create(k->dg, k->m, &how, &k->s);
}

static kit open_kit(const char *policy)
{
    kit k = {.dg = weft_diag_create()};
    ck_assert_int_eq(weft_model_open(k.dg, MODEL, NULL, &k.m), WEFT_OK);
    ck_assert_msg(open_as(&k, policy, false) == WEFT_OK, "%s", weft_diag_text(k.dg));
    return k;
}

static void close_kit(kit *k)
{
    weft_session_destroy(k->s);
    weft_model_close(k->m);
    weft_diag_destroy(k->dg);
}

/* Rows up to position `end`, n in a call; the logits of the last one. */
static const float *run(kit *k, int64_t end, int64_t n)
{
    static float out[VOCAB];
    weft_row rows[CALL];
    for (int64_t at = weft_length(k->s, 0); at < end; at += n) {
        int64_t some = end - at < n ? end - at : n;
        for (int64_t i = 0; i < some; i++)
            rows[i] = (weft_row){.token = (int32_t)((at + i) * 37 % VOCAB),
                                 .pos = (int32_t)(at + i),
                                 .want = i + 1 == some};
        ck_assert_msg(weft_eval(k->dg, k->s, rows, some) == WEFT_OK, "%s", weft_diag_text(k->dg));
    }
    weft_view v;
    ck_assert_int_eq(weft_output(k->dg, k->s, "logits", -1, &v), WEFT_OK);
    ck_assert_int_eq(v.width, VOCAB);
    memcpy(out, v.data, sizeof out);
    return out;
}

START_TEST(tiers_are_told)
{
    kit k = open_kit("f16 last=16, q8/f16 last=40, q4");
    weft_kv_tier t[4];
    ck_assert_int_eq(weft_kv_tiers(k.s, NULL, 0), 3);
    ck_assert_int_eq(weft_kv_tiers(NULL, t, 4), 0);
    ck_assert_int_eq(weft_kv_tiers(k.s, t, 4), 3);
    ck_assert_str_eq(t[1].keys, "q8");
    ck_assert_str_eq(t[1].values, "f16");
    ck_assert_int_eq(t[0].last, 16);
    ck_assert_int_eq(t[2].last, -1);
    weft_session_info info = {.size = sizeof info};
    ck_assert_int_eq(weft_session_about(k.dg, k.s, &info), WEFT_OK);
    ck_assert_uint_eq(t[0].bytes + t[1].bytes + t[2].bytes, info.state);
    run(&k, 100, CALL);
    weft_kv_tiers(k.s, t, 4);
    /* (100 - 40) / 4 pages are old enough; in the other tiers those between, and one of slack. */
    ck_assert_int_eq(t[2].pages - t[2].pages_free, 15);
    ck_assert_int_eq(t[1].pages - t[1].pages_free, 21 - 15 + 1);
    ck_assert_int_eq(t[0].pages - t[0].pages_free, 25 - 21 + 1);
    ck_assert_int_eq(weft_truncate(k.dg, k.s, 0, 0), WEFT_OK);
    weft_kv_tiers(k.s, t, 4);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(t[i].pages, t[i].pages_free);
    close_kit(&k);
}
END_TEST

/* Forks, cuts by a page and other cuts into calls leave the bits as they are. */
START_TEST(going_back_is_exact)
{
    static const char *const policies[] = {"q8", "q4", "f32 last=9, f16 last=17, q8 last=33, q4"};
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        kit k = open_kit(policies[i]);
        float want[VOCAB];
        memcpy(want, run(&k, 110, 1), sizeof want);
        for (int64_t back = 1; back <= PAGE; back++) {
            ck_assert_int_eq(weft_truncate(k.dg, k.s, 0, 110 - back), WEFT_OK);
            ck_assert_mem_eq(run(&k, 110, 2), want, sizeof want);
        }
        ck_assert_int_eq(weft_truncate(k.dg, k.s, 0, 50), WEFT_ERR_STATE);
        ck_assert_ptr_nonnull(strstr(weft_diag_text(k.dg), "cannot go from 110 tokens back to 50"));
        ck_assert_int_eq(weft_truncate(k.dg, k.s, 0, 0), WEFT_OK);
        ck_assert_mem_eq(run(&k, 110, CALL), want, sizeof want);
        close_kit(&k);
    }
}
END_TEST

START_TEST(a_policy_changes_while_it_runs)
{
    kit k = open_kit("f16 last=40, q8");
    run(&k, 60, CALL);
    ck_assert_int_eq(weft_kv_change(k.dg, k.s, "f16 last=x, q8"), WEFT_ERR_SYNTAX);
    ck_assert_int_eq(weft_kv_change(k.dg, k.s, "f16 last=40, q4"), WEFT_ERR_STATE);
    ck_assert_int_eq(weft_kv_change(k.dg, k.s, "f16 last=80, q8"), WEFT_ERR_STATE);
    ck_assert_int_eq(weft_kv_change(NULL, k.s, "q8"), WEFT_ERR_USAGE);
    weft_kv_tier t[2];
    weft_kv_tiers(k.s, t, 2);
    ck_assert_int_eq(t[0].last, 40);
    /* All that is older than 8 tokens is made at once; */
    ck_assert_int_eq(weft_kv_change(k.dg, k.s, "f16 last=8, q8"), WEFT_OK);
    run(&k, 61, 1);
    weft_kv_tiers(k.s, t, 2);
    ck_assert_int_eq(t[1].pages - t[1].pages_free, (61 - 8) / PAGE);
    /* what is coarser stays so when it grows again. */
    ck_assert_int_eq(weft_kv_change(k.dg, k.s, "f16 last=40, q8"), WEFT_OK);
    const float *got = run(&k, 100, CALL);
    for (int i = 0; i < VOCAB; i++)
        ck_assert_float_finite(got[i]);
    close_kit(&k);
}
END_TEST

START_TEST(policies_are_refused)
{
    kit k = open_kit("auto");
    weft_session_destroy(k.s);
    k.s = NULL;
    ck_assert_int_eq(open_as(&k, "f16 last=4", false), WEFT_ERR_SYNTAX);
    ck_assert_ptr_nonnull(strstr(weft_diag_text(k.dg), "KV policy:1:5"));
    ck_assert_int_eq(open_as(&k, "", true), WEFT_ERR_SYNTAX);
    ck_assert_ptr_null(k.s);
    close_kit(&k);
}
END_TEST

SUITE_MAIN("kv", tiers_are_told, going_back_is_exact, a_policy_changes_while_it_runs,
           policies_are_refused)
