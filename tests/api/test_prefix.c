/* test_prefix.c - the public interface: a prompt that begins as another one did is not evaluated twice, and nothing else is
 * different. On models without windows, with some and with sinks; the bits of every log-probability are compared. */
#include "tests/base/suite.h"

#include "runtime/weft.h"

#define MODELS WEFT_SOURCE_DIR "/tests/golden/data/"

enum { CONTEXT = 250, PAGE = 16, CALL = 32, VOCAB = 320, TOKENS = 12 };

static const char *const models[] = {MODELS "llama-mha", MODELS "gemma2", MODELS "gpt_oss"};

typedef struct {
    weft_diag *dg;
    weft_model *m;
    weft_tokenizer *t;
    weft_session *s;
} kit;

static void ok(const kit *k, weft_status st)
{
    ck_assert_msg(st == WEFT_OK, "%s", weft_diag_text(k->dg));
}

static kit open_kit(const char *model, weft_kv kv, int64_t prefixes, int64_t pages)
{
    kit k = {.dg = weft_diag_create()};
    weft_session_options how = {.size = sizeof how,
                                .context = CONTEXT,
                                .sequences = 4,
                                .batch = CALL,
                                .page_tokens = PAGE,
                                .pages = pages,
                                .kv = kv,
                                .deterministic = true,
                                .prefixes = prefixes};
    ok(&k, weft_model_open(k.dg, model, NULL, &k.m));
    /* These models have no tokenizer; ids of one are ids of the other. */
    ok(&k, weft_tokenizer_open(k.dg, WEFT_SOURCE_DIR "/models/stories-7m", &k.t));
    ok(&k, weft_session_create(k.dg, k.m, &how, &k.s));
    return k;
}

static void close_kit(kit *k)
{
    weft_session_destroy(k->s);
    weft_tokenizer_close(k->t);
    weft_model_close(k->m);
    weft_diag_destroy(k->dg);
}

static weft_session_info about(const kit *k)
{
    weft_session_info info = {.size = sizeof info};
    ok(k, weft_session_about(k->dg, k->s, &info));
    return info;
}

static weft_generation *begun(const kit *k, int64_t seq)
{
    weft_sampler_options pick = {.size = sizeof pick};
    weft_generation *g = NULL;
    weft_sampler_defaults(&pick);
    pick.temp = 0;
    weft_generation_options how = {.size = sizeof how,
                                   .seq = seq,
                                   .max_tokens = TOKENS,
                                   .ignore_end = true,
                                   .logprobs = true,
                                   .sampler = &pick};
    ok(k, weft_generation_create(k->dg, k->s, k->t, &how, &g));
    return g;
}

typedef struct {
    size_t n;
    int32_t token[TOKENS];
    float logprob[TOKENS];
} heard;

static bool hear(void *ctx, const weft_piece *p)
{
    heard *h = ctx;
    if (p->token >= 0) {
        h->token[h->n] = p->token;
        h->logprob[h->n++] = p->logprob;
    }
    return true;
}

static heard answer(const kit *k, int64_t seq, const int32_t *ids, size_t n)
{
    heard h = {0};
    weft_end end;
    weft_generation *g = begun(k, seq);
    ok(k, weft_generation_prompt(k->dg, g, ids, n));
    ok(k, weft_generate(k->dg, g, hear, &h, &end));
    ck_assert_int_eq(end, WEFT_END_LENGTH);
    weft_generation_destroy(g);
    return h;
}

static void same(const heard *a, const heard *b)
{
    ck_assert_uint_eq(a->n, TOKENS);
    ck_assert_mem_eq(a->token, b->token, sizeof a->token);
    ck_assert_mem_eq(a->logprob, b->logprob, sizeof a->logprob);
}

/* A text that begins like all others up to `common`. */
static void text(int32_t *ids, size_t n, size_t common, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t h = ((uint32_t)i * 40503u + 7) ^ (i < common ? 0 : (seed + 1) * 2654435761u);
        ids[i] = 3 + (int32_t)((h * 2246822519u >> 9) % (VOCAB - 3));
    }
}

START_TEST(what_was_there_changes_nothing)
{
    static const weft_kv kvs[] = {WEFT_KV_F32, WEFT_KV_F16, WEFT_KV_BF16};
    enum { LONG = 170, SHARED = 150 };
    for (size_t m = 0; m < COUNT_OF(models); m++)
        for (size_t v = 0; v < COUNT_OF(kvs); v++) {
            kit with = open_kit(models[m], kvs[v], 0, 0), none = open_kit(models[m], kvs[v], -1, 0);
            ck_assert_int_eq(about(&with).prefixes, 4);
            ck_assert_int_eq(about(&none).prefixes, 0);
            for (int i = 0; i < 6; i++) {
                int32_t ids[LONG];
                text(ids, LONG, SHARED, (uint32_t)i % 4); /* the last two repeat others whole */
                heard a = answer(&with, i % 4, ids, LONG), b = answer(&none, i % 4, ids, LONG);
                same(&a, &b);
            }
            weft_session_info info = about(&with);
            ck_assert_uint_eq(info.prefix_lookups, 6);
            ck_assert_uint_eq(info.prefix_tokens, 6 * (LONG - 1));
            if (m == 0) { /* without windows: from the second on, whole pages of what is shared */
                ck_assert_uint_eq(info.prefix_hits, 5);
                ck_assert_uint_ge(info.prefix_tokens_saved, 3 * SHARED + 2 * (LONG / PAGE * PAGE));
            } else { /* the second leaves its window where it parted from the first */
                ck_assert_uint_ge(info.prefix_hits, 4);
                ck_assert_uint_ge(info.prefix_tokens_saved, 4 * (SHARED / PAGE * PAGE));
            }
            ck_assert_uint_eq(about(&none).prefix_lookups, 0);
            for (int64_t s = 0; s < 4; s++)
                ok(&with, weft_truncate(with.dg, with.s, s, 0));
            info = about(&with);
            ck_assert_int_gt(info.prefix_pages, 0);
            ck_assert_uint_gt(info.prefix_bytes, 0);
            weft_prefixes_drop(with.s);
            info = about(&with);
            ck_assert(info.prefixes_used == 0 && info.prefix_pages == 0);
            ck_assert_int_eq(info.pages_free, info.pages);
            close_kit(&with);
            close_kit(&none);
        }
}
END_TEST

START_TEST(prompts_that_come_together_share_too)
{
    enum { LONG = 200 };
    kit k = open_kit(models[0], WEFT_KV_F32, 0, 0), none = open_kit(models[0], WEFT_KV_F32, -1, 0);
    weft_generation *g[4];
    heard got[4] = {0};
    int32_t ids[LONG];
    for (int i = 0; i < 4; i++) {
        g[i] = begun(&k, i);
        text(ids, LONG, LONG - 10, (uint32_t)i);
        ok(&k, weft_generation_prompt(k.dg, g[i], ids, LONG));
    }
    for (bool going = true; going;) {
        ok(&k, weft_step(k.dg, k.s, g, 4));
        going = false;
        for (int i = 0; i < 4; i++) {
            const weft_piece *p = weft_generation_piece(g[i]);
            hear(&got[i], p);
            going = going || !p->end;
        }
    }
    for (int i = 0; i < 4; i++) {
        text(ids, LONG, LONG - 10, (uint32_t)i);
        heard alone = answer(&none, i, ids, LONG);
        same(&got[i], &alone);
        weft_generation_destroy(g[i]);
    }
    weft_session_info info = about(&k);
    ck_assert_uint_eq(info.prefix_lookups, 4);
    ck_assert_uint_ge(info.prefix_tokens_saved, 2 * (LONG - 10));
    close_kit(&k);
    close_kit(&none);
}
END_TEST

START_TEST(sequences_come_first_where_pages_are_short)
{
    enum { LONG = 100 };
    for (size_t m = 0; m < COUNT_OF(models); m++) {
        kit k = open_kit(models[m], WEFT_KV_F16, 0, 9),
            none = open_kit(models[m], WEFT_KV_F16, -1, 9);
        int32_t ids[LONG];
        for (uint32_t i = 0; i < 8; i++) {
            text(ids, LONG, i % 2 ? 60 : 0, i);
            int64_t seq = i % 4;
            heard a = answer(&k, seq, ids, LONG), b = answer(&none, seq, ids, LONG);
            same(&a, &b);
            ok(&k, weft_truncate(k.dg, k.s, seq, 0));
            ok(&none, weft_truncate(none.dg, none.s, seq, 0));
        }
        ck_assert_uint_gt(about(&k).prefix_evicted, 3);
        close_kit(&k);
        close_kit(&none);
    }
}
END_TEST

START_TEST(numbers_out_of_range)
{
    kit k = open_kit(models[0], WEFT_KV_F16, 3, 0);
    ck_assert_int_eq(about(&k).prefixes, 3);
    static const int64_t wrong[] = {-2, INT64_MIN, (1 << 16) + 1, INT64_MAX};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        weft_session *s = NULL;
        weft_session_options how = {.size = sizeof how, .prefixes = wrong[i]};
        ck_assert_int_eq(weft_session_create(k.dg, k.m, &how, &s), WEFT_ERR_LIMIT);
        ck_assert_ptr_null(s);
    }
    close_kit(&k);
}
END_TEST

SUITE_MAIN("prefix", what_was_there_changes_nothing, prompts_that_come_together_share_too,
           sequences_come_first_where_pages_are_short, numbers_out_of_range)
