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

static kit open_kit(const char *model, const char *kv, int64_t prefixes, int64_t pages)
{
    kit k = {.dg = weft_diag_create()};
    weft_session_options how = {.size = sizeof how,
                                .context = CONTEXT,
                                .sequences = 4,
                                .batch = CALL,
                                .page_tokens = PAGE,
                                .pages = pages,
                                .kv_policy = kv,
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
    static const char *const kvs[] = {"f32", "f16", "bf16", "q8",
                                      "f16 last=16, q8 last=64, q4 rest"};
    enum { LONG = 170, SHARED = 150 };
    for (size_t m = 0; m < COUNT_OF(models); m++)
        for (size_t v = 0; v < COUNT_OF(kvs); v++) {
            kit with = open_kit(models[m], kvs[v], 8, 0), none = open_kit(models[m], kvs[v], -1, 0);
            ck_assert_int_eq(about(&with).prefixes, 8);
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
            if (m == 0 &&
                v < 3) { /* without windows: from the second on, whole pages of what is shared */
                ck_assert_uint_eq(info.prefix_hits, 5);
                ck_assert_uint_ge(info.prefix_tokens_saved, 3 * SHARED + 2 * (LONG / PAGE * PAGE));
            } else { /* the second leaves what the next token sees where it parted from the first */
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
    kit k = open_kit(models[0], "f32", 0, 0), none = open_kit(models[0], "f32", -1, 0);
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
        kit k = open_kit(models[m], "f16", 0, 9), none = open_kit(models[m], "f16", -1, 9);
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
    kit k = open_kit(models[0], "f16", 3, 0);
    ck_assert_int_eq(about(&k).prefixes, 3);
    close_kit(&k);
    k = open_kit(models[0], "f16", 0, 0);
    ck_assert_int_eq(about(&k).prefixes, 4);
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

static void rows(const kit *k, int64_t seq, int64_t first, int64_t n)
{
    for (int64_t i = first; i < first + n; i++) {
        weft_row r = {.token = (int32_t)(3 + i * 7 % 300), .pos = (int32_t)i, .seq = (int32_t)seq};
        r.want = true;
        ok(k, weft_eval(k->dg, k->s, &r, 1));
    }
}

START_TEST(rows_out_of_the_middle)
{
    kit k = open_kit(models[0], "f16", 0, 0);
    bool exact = false;
    weft_view v;
    rows(&k, 0, 0, 60);
    ok(&k, weft_remove_range(k.dg, k.s, 0, 50, 60, &exact));
    ck_assert(exact && weft_length(k.s, 0) == 50); /* a cut */
    ok(&k, weft_remove_range(k.dg, k.s, 0, 10, 27, &exact));
    ck_assert(!exact && weft_length(k.s, 0) == 33);
    rows(&k, 0, 33, 3);
    ok(&k, weft_output(k.dg, k.s, "logits", -1, &v));
    for (int64_t i = 0; i < v.width; i++)
        ck_assert(v.data[i] == v.data[i]);
    ck_assert_int_eq(weft_remove_range(k.dg, k.s, 0, 30, 37, &exact), WEFT_ERR_STATE);
    ck_assert_int_eq(weft_remove_range(k.dg, k.s, 7, 0, 1, &exact), WEFT_ERR_STATE);
    ck_assert_int_eq(weft_remove_range(k.dg, k.s, 0, 0, 1, NULL), WEFT_ERR_USAGE);
    ck_assert_int_eq(weft_append_range(k.dg, NULL, 0, 1, 0, 1), WEFT_ERR_USAGE);
    ck_assert_int_eq(weft_append_range(k.dg, k.s, 0, 1, 1, 2), WEFT_ERR_STATE);
    ck_assert_int_eq(weft_length(k.s, 0), 36);
    close_kit(&k);
    k = open_kit(models[1], "f16", 0, 0);
    rows(&k, 0, 0, 60);
    ck_assert_int_eq(weft_remove_range(k.dg, k.s, 0, 10, 27, &exact), WEFT_ERR_STATE);
    ck_assert_ptr_nonnull(strstr(weft_diag_text(k.dg), "W1420"));
    close_kit(&k);
}
END_TEST

START_TEST(a_conversation_in_a_file)
{
    enum { LONG = 90 };
    char path[] = "/tmp/weft-text-XXXXXX";
    int32_t ids[LONG];
    close(mkstemp(path));
    text(ids, LONG, 0, 1);
    for (size_t m = 0; m < COUNT_OF(models); m++) {
        kit a = open_kit(models[m], "f16", 0, 0), b = open_kit(models[m], "f16", 0, 0);
        weft_generation *g = begun(&a, 1), *h = begun(&b, 2), *empty = begun(&a, 0);
        weft_end end;
        heard first = {0}, second = {0};
        size_t n;
        ck_assert_int_eq(weft_generation_save(a.dg, empty, path), WEFT_ERR_LIMIT);
        ok(&a, weft_generation_prompt(a.dg, g, ids, LONG - 4));
        ok(&a, weft_generate(a.dg, g, NULL, NULL, &end));
        ok(&a, weft_generation_save(a.dg, g, path));
        ok(&b, weft_generation_load(b.dg, h, path));
        const int32_t *held = weft_generation_text(g, &n);
        size_t n_loaded;
        const int32_t *loaded = weft_generation_text(h, &n_loaded);
        ck_assert_uint_eq(n_loaded, n); /* the last one too, which was not evaluated */
        ck_assert_mem_eq(loaded, held, n * sizeof *held);
        ok(&a, weft_generation_prompt(a.dg, g, held, n));
        ok(&a, weft_generate(a.dg, g, hear, &first, &end));
        held = weft_generation_text(g, &n);
        ok(&b, weft_generation_prompt(b.dg, h, held, n - TOKENS));
        ck_assert_int_eq(weft_generation_piece(h)->prompt_total, 1); /* but for that one */
        ok(&b, weft_generate(b.dg, h, hear, &second, &end));
        same(&first, &second);
        weft_generation_destroy(g);
        weft_generation_destroy(h);
        weft_generation_destroy(empty);
        close_kit(&a);
        close_kit(&b);
    }
    unlink(path);
}
END_TEST

SUITE_MAIN("prefix", rows_out_of_the_middle, a_conversation_in_a_file,
           what_was_there_changes_nothing, prompts_that_come_together_share_too,
           sequences_come_first_where_pages_are_short, numbers_out_of_range)
