/* test_request.c - a text that goes on without any session: logits come from here, and what ends it is seen. */
#include "tests/base/suite.h"

#include "runtime/api/api_impl.h"
#include "runtime/engine/request.h"

enum { CONTEXT = 24 };

typedef struct {
    weft_diag *dg;
    weft_tokenizer *t;
    request_limits most;
    float *logits; /* [vocab] */
} kit;

static void ok(const kit *k, weft_status st)
{
    ck_assert_msg(st == WEFT_OK, "%s", weft_diag_text(k->dg));
}

static kit begin(void)
{
    kit k = {.dg = weft_diag_create()};
    ok(&k, weft_tokenizer_open(k.dg, WEFT_SOURCE_DIR "/models/stories-7m", &k.t));
    int64_t vocab = weft_tokenizer_size(k.t);
    k.most = (request_limits){.vocab = vocab, .n_vocab = vocab, .context = CONTEXT};
    k.logits = calloc((size_t)vocab, sizeof *k.logits);
    return k;
}

static void end(kit *k)
{
    free(k->logits);
    weft_tokenizer_close(k->t);
    weft_diag_destroy(k->dg);
}

static request *request_of(kit *k, request_options o)
{
    static const int32_t prompt[] = {5, 6, 7, 8};
    request *r;
    o.pick = sampler_defaults();
    o.pick.temp = 0;
    o.n_top = -1;
    ok(k, request_create(k->dg, &k->most, k->t->text, &o, &r));
    ok(k, request_check(k->dg, &k->most, prompt, COUNT_OF(prompt)));
    request_prompt(r, prompt, COUNT_OF(prompt));
    return r;
}

/* The likeliest token is this one, and then that. */
static void say(kit *k, request *r, int32_t id, int32_t else_id)
{
    k->logits[id] = 9;
    k->logits[else_id] += 5;
    ok(k, request_take(k->dg, r, k->logits));
    k->logits[id] = k->logits[else_id] = 0;
}

START_TEST(it_ends_where_it_should)
{
    kit k = begin();
    size_t n, n_end;
    const int32_t *ends = tok_ends(k.t->text, &n_end);
    ck_assert_uint_gt(n_end, 0);

    request *r = request_of(&k, (request_options){.max_tokens = 3});
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(request_end(r), GEN_NONE);
        say(&k, r, 40 + i, 50);
        ck_assert_int_eq(request_piece(r)->id, 40 + i);
    }
    ck_assert_int_eq(request_end(r), GEN_LENGTH);
    ck_assert_int_eq(request_ids(r, &n)[6], 42);
    ck_assert_uint_eq(n, 7);
    request_destroy(r);

    r = request_of(&k, (request_options){.max_tokens = -1});
    say(&k, r, ends[0], 50);
    ck_assert_int_eq(request_end(r), GEN_MODEL);
    ck_assert_uint_eq(request_piece(r)->text.n, 0);
    request_destroy(r);

    r = request_of(&k, (request_options){.max_tokens = -1, .min_tokens = 2});
    say(&k, r, ends[0], 50); /* too soon: the next one */
    ck_assert_int_eq(request_piece(r)->id, 50);
    say(&k, r, 51, 50);
    say(&k, r, ends[0], 50);
    ck_assert_int_eq(request_end(r), GEN_MODEL);
    request_destroy(r);

    r = request_of(&k, (request_options){.max_tokens = -1});
    for (n = 4; n <= CONTEXT; n++) {
        ck_assert_int_eq(request_end(r), GEN_NONE);
        say(&k, r, 60, 50);
    }
    ck_assert_int_eq(request_end(r), GEN_CONTEXT);
    request_destroy(r);

    int32_t wide[CONTEXT] = {0};
    ck_assert_int_eq(request_check(k.dg, &k.most, wide, CONTEXT), WEFT_ERR_FULL);
    wide[0] = -1;
    ck_assert_int_eq(request_check(k.dg, &k.most, wide, 1), WEFT_ERR_STATE);
    ck_assert_int_eq(request_check(k.dg, &k.most, wide, 0), WEFT_ERR_LIMIT);
    end(&k);
}
END_TEST

START_TEST(stop_texts_are_not_shown)
{
    static const char *const stops[] = {"dog", "big cat"};
    kit k = begin();
    int32_t *ids;
    size_t n, shown = 0;
    char said[256] = {0};
    ok(&k, weft_encode(k.dg, k.t, " a big cat", 10, 0, &ids, &n));
    request *r = request_of(&k, (request_options){.max_tokens = -1, .stops = stops, .n_stop = 2});
    for (size_t i = 0; i < n && request_end(r) == GEN_NONE; i++) {
        say(&k, r, ids[i], 50);
        str text = request_piece(r)->text;
        memcpy(said + shown, text.p, text.n);
        shown += text.n;
    }
    ck_assert_int_eq(request_end(r), GEN_STOP);
    ck_assert_int_eq(request_stop_found(r), 1);
    ck_assert_ptr_null(strstr(said, "big"));
    request_destroy(r);

    /* From outside: what was held back comes. */
    r = request_of(&k, (request_options){.max_tokens = -1, .stops = stops, .n_stop = 2});
    for (size_t i = 0; i + 1 < n; i++)
        say(&k, r, ids[i], 50);
    request_stop(r, GEN_CALLER);
    ck_assert_int_eq(request_end(r), GEN_CALLER);
    ck_assert_ptr_nonnull(memmem(request_piece(r)->text.p, request_piece(r)->text.n, "big", 3));
    request_destroy(r);
    weft_free(ids);
    end(&k);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("request");
    tcase_add_test(tc, it_ends_where_it_should);
    tcase_add_test(tc, stop_texts_are_not_shown);
    return suite_run("request", tc, SUITE_FORK);
}
