/* test_generate.c - the public interface: text in, text out; several texts over one session. */
#include "tests/base/suite.h"

#include "runtime/weft.h"
#include <math.h>

#define DEMO WEFT_SOURCE_DIR "/models/stories-7m"
#define STORY "Once upon a time"

enum { N_MAX = 64 };

typedef struct {
    weft_diag *dg;
    weft_model *m;
    weft_tokenizer *t;
    weft_session *s;
    weft_cancel *cancel;
} kit;

static void ok(kit *k, weft_status st)
{
    ck_assert_msg(st == WEFT_OK, "%s", weft_diag_text(k->dg));
}

static kit open_kit(weft_session_options how)
{
    kit k = {.dg = weft_diag_create(), .cancel = weft_cancel_create()};
    how.size = sizeof how;
    how.cancel = k.cancel;
    how.device = getenv("WEFT_TEST_DEVICE"); /* NULL: the CPU */
    ok(&k, weft_model_open(k.dg, DEMO, NULL, &k.m));
    ok(&k, weft_tokenizer_of_model(k.dg, k.m, &k.t));
    ok(&k, weft_session_create(k.dg, k.m, &how, &k.s));
    return k;
}

static void close_kit(kit *k)
{
    weft_session_destroy(k->s);
    weft_tokenizer_close(k->t);
    weft_model_close(k->m);
    weft_cancel_destroy(k->cancel);
    weft_diag_destroy(k->dg);
}

static weft_generation *begun(kit *k, weft_generation_options how, double temp, uint64_t seed)
{
    weft_sampler_options pick = {.size = sizeof pick};
    weft_generation *g = NULL;
    weft_sampler_defaults(&pick);
    pick.temp = temp;
    pick.seed = seed;
    how.size = sizeof how;
    how.sampler = &pick;
    ok(k, weft_generation_create(k->dg, k->s, k->t, &how, &g));
    return g;
}

static void prompt(kit *k, weft_generation *g, const char *text)
{
    int32_t *ids = NULL;
    size_t n = 0;
    ok(k, weft_encode(k->dg, k->t, text, strlen(text), WEFT_ADD_SPECIAL, &ids, &n));
    ok(k, weft_generation_prompt(k->dg, g, ids, n));
    weft_free(ids);
}

typedef struct {
    char text[2048];
    size_t n, pieces, most; /* most: pieces it takes; 0: all */
} heard;

static bool hear(void *ctx, const weft_piece *p)
{
    heard *h = ctx;
    ck_assert_uint_lt(h->n + p->bytes, sizeof h->text);
    memcpy(h->text + h->n, p->text, p->bytes);
    h->n += p->bytes;
    h->text[h->n] = 0;
    return ++h->pieces != h->most;
}

static heard generate(kit *k, weft_generation *g, weft_end want)
{
    heard h = {.n = 0};
    weft_end end;
    ok(k, weft_generate(k->dg, g, hear, &h, &end));
    ck_assert_msg(end == want, "it ended by %s, not by %s", weft_end_name(end),
                  weft_end_name(want));
    return h;
}

START_TEST(a_story)
{
    kit k = open_kit((weft_session_options){.threads = -1});
    weft_generation *g = begun(&k, (weft_generation_options){.max_tokens = 12}, 0, 0);
    prompt(&k, g, STORY);
    heard h = generate(&k, g, WEFT_END_LENGTH);
    ck_assert_str_eq(h.text, ", there was a little girl named Lily. She loved to");
    size_t n, bytes;
    char *text;
    const int32_t *ids = weft_generation_ids(g, &n);
    ck_assert_uint_eq(n, 12);
    ok(&k, weft_decode(k.dg, k.t, ids, n, true, &text, &bytes));
    ck_assert_str_eq(text, h.text);
    ck_assert_uint_eq(bytes, h.n);
    weft_free(text);
    /* A prompt that begins like the text so far costs what is new. */
    prompt(&k, g, STORY ", there was a little dog");
    ok(&k, weft_step(k.dg, k.s, &g, 1));
    weft_piece p = *weft_generation_piece(g);
    ck_assert_int_eq(p.prompt_total, 1);
    ck_assert_int_eq(p.prompt_done, 1);
    ck_assert_int_ge(p.token, 0);
    weft_generation_destroy(g);
    close_kit(&k);
}
END_TEST

START_TEST(what_ends_it)
{
    kit k = open_kit((weft_session_options){.context = 24});
    const char *const stops[] = {"nothing like it", " girl named"};
    weft_generation *g = begun(&k, (weft_generation_options){.stops = stops, .n_stop = 2}, 0, 0);
    prompt(&k, g, STORY);
    ck_assert_str_eq(generate(&k, g, WEFT_END_STOP).text, ", there was a little");
    ck_assert_str_eq(generate(&k, g, WEFT_END_STOP).text, ""); /* it has ended */
    weft_generation_options bare = {.size = sizeof bare, .ignore_end = true};
    ok(&k, weft_generation_change(k.dg, g, &bare));
    ck_assert_str_eq(generate(&k, g, WEFT_END_CALLER).text, ""); /* no prompt since */
    prompt(&k, g, STORY);
    generate(&k, g, WEFT_END_CONTEXT);
    size_t n;
    weft_generation_ids(g, &n);
    ck_assert_uint_eq(n, 24 - 4 + 1); /* the last is chosen, and not evaluated any more */

    prompt(&k, g, STORY);
    heard h = {.most = 3};
    weft_end end;
    ok(&k, weft_generate(k.dg, g, hear, &h, &end));
    ck_assert_int_eq(end, WEFT_END_CALLER);
    weft_generation_ids(g, &n);
    ck_assert_uint_eq(n, 3);

    prompt(&k, g, STORY);
    weft_cancel_set(k.cancel);
    generate(&k, g, WEFT_END_CANCELLED);
    ck_assert_uint_eq(weft_diag_count(k.dg), 0);
    ck_assert_int_eq(weft_step(k.dg, k.s, &g, 1), WEFT_OK); /* it has ended: nothing to do */
    prompt(&k, g, STORY);
    ck_assert_int_eq(weft_step(k.dg, k.s, &g, 1), WEFT_ERR_CANCELLED);
    weft_cancel_clear(k.cancel);
    weft_generation_options few = {.size = sizeof few, .max_tokens = 2};
    ok(&k, weft_generation_change(k.dg, g, &few));
    prompt(&k, g, STORY);
    generate(&k, g, WEFT_END_LENGTH);

    /* The model's own end. */
    weft_bias certain = {0, 1000};
    ck_assert(weft_token_ends(k.t, certain.token));
    weft_sampler_options pick = {.size = sizeof pick};
    weft_sampler_defaults(&pick);
    pick.bias = &certain;
    pick.n_bias = 1;
    weft_generation_options ending = {.size = sizeof ending, .sampler = &pick};
    ok(&k, weft_generation_change(k.dg, g, &ending));
    certain.token = 1; /* it has its own copy */
    prompt(&k, g, STORY);
    ck_assert_str_eq(generate(&k, g, WEFT_END_MODEL).text, "");
    weft_generation_destroy(g);
    close_kit(&k);
}
END_TEST

/* The ids of each prompt alone, and of all together in calls of some size: the same. */
static void together(weft_session_options how)
{
    static const char *const prompts[] = {STORY, "The dog", "One day, a very big robot came to",
                                          "Lily and Tom"};
    enum { N = sizeof prompts / sizeof *prompts };
    int32_t want[N][N_MAX];
    size_t n_want[N];
    how.sequences = N;
    how.deterministic = true;
    kit k = open_kit(how);
    weft_generation *g[N];
    for (int i = 0; i < N; i++) {
        g[i] = begun(&k, (weft_generation_options){.seq = i, .max_tokens = 5 + 7 * i}, 0.9,
                     (uint64_t)i);
        prompt(&k, g[i], prompts[i]);
        weft_end end;
        ok(&k, weft_generate(k.dg, g[i], NULL, NULL, &end));
        const int32_t *ids = weft_generation_ids(g[i], &n_want[i]);
        memcpy(want[i], ids, n_want[i] * sizeof *ids);
        ok(&k, weft_truncate(k.dg, k.s, i, 0)); /* known to nobody: it is evaluated again */
    }
    for (int i = 0; i < N; i++)
        prompt(&k, g[i], prompts[i]);
    int steps = 0, going = N;
    while (going) {
        ok(&k, weft_step(k.dg, k.s, g, N));
        ck_assert_int_lt(++steps, 400);
        going = 0;
        for (int i = 0; i < N; i++)
            going += weft_generation_piece(g[i])->end == WEFT_END_NONE;
    }
    for (int i = 0; i < N; i++) {
        size_t n;
        const int32_t *ids = weft_generation_ids(g[i], &n);
        ck_assert_uint_eq(n, n_want[i]);
        ck_assert_msg(memcmp(ids, want[i], n * sizeof *ids) == 0, "text %d differs", i);
        weft_generation_destroy(g[i]);
    }
    close_kit(&k);
}

START_TEST(several_at_once)
{
    together((weft_session_options){.context = 64});
}
END_TEST

START_TEST(more_than_a_call_takes)
{
    together((weft_session_options){.context = 64, .batch = 3, .wants = 2});
    together((weft_session_options){.context = 64, .batch = 1});
}
END_TEST

START_TEST(a_fork_tells_the_same)
{
    kit k = open_kit((weft_session_options){.context = 64, .sequences = 2, .deterministic = true});
    weft_generation_options a = {.seq = 0, .max_tokens = 20}, b = {.seq = 1, .max_tokens = 20};
    weft_generation *g[2] = {begun(&k, a, 0, 0), begun(&k, b, 0, 0)};
    prompt(&k, g[0], STORY);
    for (int i = 0; i < 6; i++)
        ok(&k, weft_step(k.dg, k.s, g, 1));
    ok(&k, weft_generation_fork(k.dg, g[0], g[1], false));
    while (weft_generation_piece(g[0])->end == WEFT_END_NONE)
        ok(&k, weft_step(k.dg, k.s, g, 2));
    ck_assert_int_eq(weft_generation_piece(g[1])->end, WEFT_END_LENGTH);
    size_t n, n_fork;
    const int32_t *ids = weft_generation_ids(g[0], &n),
                  *forked = weft_generation_ids(g[1], &n_fork);
    ck_assert(n == 20 && n_fork == 20 && memcmp(ids, forked, n * sizeof *ids) == 0);
    ck_assert_int_eq(weft_generation_fork(k.dg, g[0], g[0], false), WEFT_ERR_STATE);
    /* An answer of its own to the same prompt, which is not evaluated again but for its last token. */
    ok(&k, weft_generation_fork(k.dg, g[0], g[1], true));
    ck_assert_int_eq(weft_generation_piece(g[1])->end, WEFT_END_NONE);
    ck_assert_int_eq(weft_generation_piece(g[1])->prompt_total, 1);
    weft_end end;
    ok(&k, weft_generate(k.dg, g[1], NULL, NULL, &end));
    forked = weft_generation_ids(g[1], &n_fork);
    ck_assert(n_fork == 20 && memcmp(ids, forked, n * sizeof *ids) == 0); /* greedy: the same */
    weft_generation_destroy(g[0]);
    weft_generation_destroy(g[1]);
    close_kit(&k);
}
END_TEST

/* A prompt gets its turn though as many generations as a call takes are past theirs. */
START_TEST(prompts_do_not_starve)
{
    kit k = open_kit((weft_session_options){.context = 64, .sequences = 2, .wants = 1});
    weft_generation_options a = {.seq = 0, .ignore_end = true}, b = {.seq = 1, .max_tokens = 3};
    weft_generation *g[2] = {begun(&k, a, 0, 0), begun(&k, b, 0, 0)};
    prompt(&k, g[0], STORY);
    ok(&k, weft_step(k.dg, k.s, g, 1));
    prompt(&k, g[1], STORY);
    for (int i = 0; i < 12 && !weft_generation_piece(g[1])->end; i++)
        ok(&k, weft_step(k.dg, k.s, g, 2));
    ck_assert_int_eq(weft_generation_piece(g[1])->end, WEFT_END_LENGTH);
    size_t n;
    weft_generation_ids(g[0], &n);
    ck_assert_uint_ge(n, 3); /* they take turns */
    weft_generation_destroy(g[0]);
    weft_generation_destroy(g[1]);
    close_kit(&k);
}
END_TEST

START_TEST(log_probabilities)
{
    kit k = open_kit((weft_session_options){.context = 32});
    weft_generation *g =
        begun(&k, (weft_generation_options){.max_tokens = 4, .top_logprobs = 3}, 0, 0);
    prompt(&k, g, STORY);
    for (int i = 0; i < 4; i++) {
        ok(&k, weft_step(k.dg, k.s, &g, 1));
        weft_piece p = *weft_generation_piece(g);
        weft_view v;
        weft_logprob top[3];
        ck_assert_int_eq(p.n_top, 3);
        ck_assert_int_eq(p.top[0].token, p.token); /* greedy */
        ck_assert_float_eq(p.top[0].logprob, p.logprob);
        ck_assert(p.logprob <= 0 && p.top[1].logprob <= p.logprob);
        ok(&k, weft_output(k.dg, k.s, "logits", -1, &v));
        ck_assert_int_eq(weft_logprobs(v.data, v.width, top, 3), 3);
        ck_assert(top[2].token == p.top[2].token && top[2].logprob == p.top[2].logprob);
    }
    weft_generation_destroy(g);
    close_kit(&k);
}
END_TEST

START_TEST(a_loop_of_ones_own)
{
    kit k = open_kit((weft_session_options){.context = 32});
    weft_session_info info = {.size = sizeof info};
    ok(&k, weft_session_about(k.dg, k.s, &info));
    ck_assert_int_eq(info.context, 32);
    ck_assert_int_gt(info.vocab, 0);
    ck_assert_uint_gt(info.state, 0);
    weft_sampler_options pick = {.size = sizeof pick};
    weft_sampler *sampler = NULL;
    weft_decoder *decoder = NULL;
    weft_sampler_defaults(&pick);
    ck_assert_double_eq(pick.temp, 0.8);
    pick.temp = 0;
    ok(&k, weft_sampler_create(k.dg, &pick, info.vocab, 32, k.t, &sampler));
    ok(&k, weft_decoder_create(k.dg, k.t, true, &decoder));
    int32_t *ids = NULL, token = 0;
    size_t n = 0, at = 0;
    char text[256] = "";
    ok(&k, weft_encode(k.dg, k.t, STORY, strlen(STORY), WEFT_ADD_SPECIAL, &ids, &n));
    for (size_t i = 0; i < n + 12; i++) {
        weft_row row = {.token = i < n ? ids[i] : token, .pos = (int32_t)i, .want = true};
        weft_view v;
        const char *piece;
        size_t bytes;
        ok(&k, weft_eval(k.dg, k.s, &row, 1));
        weft_sampler_accept(sampler, row.token);
        ok(&k, weft_output(k.dg, k.s, "logits", -1, &v));
        ok(&k, weft_sampler_choose(k.dg, sampler, v.data, &token));
        if (i < n)
            continue;
        ok(&k, weft_decoder_put(k.dg, decoder, row.token, &piece, &bytes));
        memcpy(text + at, piece, bytes);
        at += bytes;
    }
    ck_assert_str_eq(text, ", there was a little girl named Lily. She loved to");
    float nothing[8] = {NAN, -INFINITY, NAN, NAN, NAN, NAN, NAN, NAN};
    weft_sampler *small = NULL;
    ok(&k, weft_sampler_create(k.dg, NULL, 8, 1, NULL, &small));
    ck_assert_int_ne(weft_sampler_choose(k.dg, small, nothing, &token), WEFT_OK);
    weft_sampler_destroy(small);
    weft_bias never = {3, -INFINITY}; /* the only one that is a number */
    nothing[3] = 1;
    pick.bias = &never;
    pick.n_bias = 1;
    ok(&k, weft_sampler_create(k.dg, &pick, 8, 1, NULL, &small));
    ck_assert_int_ne(weft_sampler_choose(k.dg, small, nothing, &token), WEFT_OK);
    weft_sampler_destroy(small);
    ck_assert_str_eq(weft_end_name(WEFT_END_MODEL), "end");
    weft_free(ids);
    weft_decoder_destroy(decoder);
    weft_sampler_destroy(sampler);
    close_kit(&k);
}
END_TEST

static weft_sampler *sampler_of(kit *k, double temp, uint64_t seed, int64_t vocab)
{
    weft_sampler_options pick = {.size = sizeof pick};
    weft_sampler *s = NULL;
    weft_sampler_defaults(&pick);
    pick.temp = temp;
    pick.seed = seed;
    ok(k, weft_sampler_create(k->dg, &pick, vocab, 8, NULL, &s));
    return s;
}

/* Two sequences, each with a sampler of its own: the tokens are those of weft_eval and weft_sampler_choose. */
START_TEST(tokens_chosen_with_the_call)
{
    enum { N = 6 };
    static const bool both[2] = {true, true};
    kit k = open_kit((weft_session_options){.context = 32, .sequences = 2, .wants = 2});
    weft_session_info info = {.size = sizeof info};
    ok(&k, weft_session_about(k.dg, k.s, &info));
    int32_t want[N][2], got[2];
    for (int way = 0; way < 2; way++) {
        weft_sampler *s[2] = {sampler_of(&k, 0, 1, info.vocab), sampler_of(&k, 1.5, 7, info.vocab)};
        weft_row rows[2] = {{.token = 3, .seq = 0, .want = true},
                            {.token = 5, .seq = 1, .want = true}};
        for (int i = 0; i < N; i++) {
            if (way == 0) {
                weft_view v;
                ok(&k, weft_eval(k.dg, k.s, rows, 2));
                ok(&k, weft_output(k.dg, k.s, "logits", -1, &v));
                for (int r = 0; r < 2; r++)
                    ok(&k, weft_sampler_choose(k.dg, s[r], v.data + r * v.width, &want[i][r]));
                memcpy(got, want[i], sizeof got);
            } else {
                ok(&k, weft_eval_choose(k.dg, k.s, rows, 2, s, i % 3 ? both : NULL, got));
                ck_assert_mem_eq(got, want[i], sizeof got);
            }
            for (int r = 0; r < 2; r++) {
                ck_assert_int_eq(weft_length(k.s, r), i + 1);
                rows[r].token = got[r];
                rows[r].pos++;
            }
        }
        for (int r = 0; r < 2; r++) {
            ok(&k, weft_truncate(k.dg, k.s, r, 0));
            weft_sampler_destroy(s[r]);
        }
    }
    weft_row row = {.token = 3, .want = true};
    weft_sampler *one = sampler_of(&k, 0, 1, info.vocab), *none = NULL,
                 *other = sampler_of(&k, 0, 1, info.vocab - 1);
    weft_sampler *twice[2] = {one, one};
    weft_row rows[2] = {row, {.token = 3, .seq = 1, .want = true}};
    ck_assert_int_ne(weft_eval_choose(k.dg, k.s, &row, 1, &none, NULL, got), WEFT_OK);
    ck_assert_int_ne(weft_eval_choose(k.dg, k.s, &row, 1, &other, NULL, got), WEFT_OK);
    ck_assert_int_ne(weft_eval_choose(k.dg, k.s, rows, 2, twice, NULL, got), WEFT_OK);
    ck_assert_int_ne(weft_eval_choose(k.dg, k.s, &row, 1, NULL, NULL, got), WEFT_OK);
    row.want = false;
    ck_assert_int_ne(weft_eval_choose(k.dg, k.s, &row, 1, &one, NULL, got), WEFT_OK);
    row = (weft_row){.token = 3, .pos = 9, .want = true};
    ck_assert_int_ne(weft_eval_choose(k.dg, k.s, &row, 1, &one, NULL, got), WEFT_OK);
    ck_assert_int_eq(weft_length(k.s, 0), 0);
    weft_sampler_destroy(one);
    weft_sampler_destroy(other);
    close_kit(&k);
}
END_TEST

START_TEST(messages_in_a_template)
{
    kit k = open_kit((weft_session_options){.context = 32});
    weft_template *t = NULL;
    ck_assert_int_eq(weft_template_open(k.dg, k.m, NULL, &t), WEFT_ERR_TEMPLATE); /* it has none */
    ok(&k, weft_template_open(k.dg, k.m, "chatml", &t));
    weft_chat chat = {.size = sizeof chat, .messages = "[{\"role\":\"user\",\"content\":\"Hi\"}]"};
    char *text = NULL;
    size_t bytes, n;
    int32_t *ids = NULL;
    ok(&k, weft_template_render(k.dg, t, &chat, &text, &bytes));
    ck_assert_ptr_nonnull(strstr(text, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"));
    ck_assert_uint_eq(bytes, strlen(text));
    ok(&k, weft_template_encode(k.dg, t, k.t, &chat, &ids, &n));
    ck_assert_uint_ge(n, 3); /* they take turns */
    weft_free(text);
    weft_free(ids);
    static const char *const wrong[] = {"", "{}", "[", "[1]", "\"x\"", "[{\"role\":1}]"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        chat.messages = wrong[i];
        text = NULL;
        weft_status st = weft_template_render(k.dg, t, &chat, &text, &bytes);
        ck_assert(st != WEFT_OK || i == 5);
        weft_free(text);
    }
    chat.messages = NULL;
    ck_assert_int_eq(weft_template_render(k.dg, t, &chat, &text, &bytes), WEFT_ERR_USAGE);
    weft_template_close(t);
    close_kit(&k);
}
END_TEST

START_TEST(a_pool_of_pages)
{
    weft_session_options small = {.context = 256, .sequences = 4, .pages = 3, .page_tokens = 16};
    kit k = open_kit(small);
    weft_session_info info = {.size = sizeof info};
    ok(&k, weft_session_about(k.dg, k.s, &info));
    ck_assert(info.pages == 3 && info.pages_free == 3 && info.page_tokens == 16);
    weft_row rows[64];
    for (int i = 0; i < 64; i++)
        rows[i] = (weft_row){.token = 5, .pos = i % 32, .seq = i / 32};
    ck_assert_int_eq(weft_eval(k.dg, k.s, rows, 64), WEFT_ERR_FULL);
    ck_assert_int_eq(weft_length(k.s, 0), 0);
    ok(&k, weft_eval(k.dg, k.s, rows, 32));
    ok(&k, weft_session_about(k.dg, k.s, &info));
    ck_assert_int_eq(info.pages_free, 1);
    weft_message message = {.size = sizeof message};
    ck_assert_uint_eq(weft_diag_count(k.dg), 1);
    ck_assert(weft_diag_at(k.dg, 0, &message) && !weft_diag_at(k.dg, 1, &message));
    ck_assert_str_eq(message.code, "W1401");
    ck_assert(message.error && message.status == WEFT_ERR_FULL);
    ck_assert_ptr_nonnull(strstr(weft_diag_json(k.dg), "\"W1401\""));
    close_kit(&k);
}
END_TEST

START_TEST(calls_that_make_no_sense)
{
    kit k = open_kit((weft_session_options){.context = 32, .sequences = 2}),
        other = open_kit((weft_session_options){.context = 32});
    weft_generation_options how = {.size = sizeof how};
    weft_generation *g = NULL, *second = NULL, *none = NULL;
    weft_end end;
    int32_t id = 5, *ids;
    size_t n;
    ok(&k, weft_generation_create(k.dg, k.s, k.t, &how, &g));
    ok(&k, weft_generation_create(k.dg, k.s, k.t, &how, &second)); /* on the same sequence */
    ck_assert_int_ne(weft_step(k.dg, k.s, &g, 1), WEFT_OK);        /* no prompt */
    ck_assert_int_ne(weft_generate(k.dg, g, NULL, NULL, &end), WEFT_OK);
    ck_assert_int_ne(weft_generation_prompt(k.dg, g, &id, 0), WEFT_OK);
    ok(&k, weft_generation_prompt(k.dg, g, &id, 1));
    ok(&k, weft_generation_prompt(k.dg, second, &id, 1));
    weft_generation *both[] = {g, second};
    ck_assert_int_ne(weft_step(k.dg, k.s, both, 2), WEFT_OK);
    ck_assert_int_ne(weft_step(k.dg, other.s, &g, 1), WEFT_OK);
    id = INT32_MAX; /* no such token */
    ck_assert_int_ne(weft_generation_prompt(k.dg, g, &id, 1), WEFT_OK);
    id = 5;
    ok(&k, weft_generation_prompt(k.dg, g, &id, 1));
    ok(&k, weft_step(k.dg, k.s, &g, 1));
    const weft_generation_options wrong[] = {{.size = sizeof how, .seq = 2},
                                             {.size = sizeof how, .seq = -1},
                                             {.size = sizeof how, .max_tokens = -1},
                                             {.size = sizeof how, .n_stop = 1},
                                             {.size = sizeof how, .top_logprobs = INT64_MAX},
                                             {.size = 0}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_int_ne(weft_generation_create(k.dg, k.s, k.t, &wrong[i], &none), WEFT_OK);
    weft_sampler_options hot = {.size = sizeof hot};
    weft_sampler_defaults(&hot);
    hot.dry_allowed = INT64_MIN;
    how.sampler = &hot;
    ck_assert_int_ne(weft_generation_create(k.dg, k.s, k.t, &how, &none), WEFT_OK);
    hot.dry_allowed = 0;
    hot.temp = -1;
    weft_diag_clear(k.dg);
    ck_assert_int_ne(weft_generation_create(k.dg, k.s, k.t, &how, &none), WEFT_OK);
    ck_assert_ptr_nonnull(strstr(weft_diag_text(k.dg), "temp must be from"));
    ck_assert_ptr_null(strstr(weft_diag_text(k.dg), "--"));
    ck_assert_ptr_null(none);
    ck_assert_int_ne(weft_encode(k.dg, k.t, "a\xff", 2, 0, &ids, &n), WEFT_OK);
    ck_assert_int_eq(weft_encode(k.dg, NULL, "a", 1, 0, &ids, &n), WEFT_ERR_USAGE);
    ck_assert_int_eq(weft_generate(k.dg, NULL, NULL, NULL, &end), WEFT_ERR_USAGE);
    ck_assert_int_eq(weft_step(k.dg, k.s, NULL, 1), WEFT_ERR_USAGE);
    ok(&k, weft_step(k.dg, k.s, NULL, 0));
    weft_generation_destroy(NULL);
    weft_generation_destroy(second);
    weft_generation_destroy(g);
    close_kit(&other);
    close_kit(&k);
}
END_TEST

SUITE_MAIN("generate", a_story, what_ends_it, several_at_once, more_than_a_call_takes,
           a_fork_tells_the_same, prompts_do_not_starve, log_probabilities, a_loop_of_ones_own,
           tokens_chosen_with_the_call, messages_in_a_template, a_pool_of_pages,
           calls_that_make_no_sense)
