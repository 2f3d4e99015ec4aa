/* test_oom.c - every call of the public interface, with each of its allocations failing in turn.
 *
 * A call whose n-th allocation fails, alone or with all after it, returns WEFT_ERR_LIMIT or gets along without. It leaves no
 * descriptor open, and nothing that the leak check of the address sanitizer finds; the objects it was given work on, with
 * the same results. Allocations are tried one by one at first, then in growing steps; WEFT_OOM_ALL=1 tries them all. */
#include "tests/api/oom_kit.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <sys/resource.h>

/* Sanitizers take terabytes of addresses. */
#if defined(SUITE_ASAN) || defined(__SANITIZE_THREAD__)
#define LIMIT_OF_NO_USE true
#else
#define LIMIT_OF_NO_USE false
#endif

/* cJSON takes its memory from malloc, which sets errno. */
static void *take_for_json(size_t bytes)
{
    void *p = mem_try_kept(bytes);
    if (!p)
        errno = ENOMEM;
    return p;
}

/* ---- models ---- */

typedef struct {
    const char *path;
    weft_model_options how;
} to_open;

static weft_status open_close(weft_diag *dg, void *ctx)
{
    const to_open *o = ctx;
    weft_model *m = NULL;
    weft_status st = weft_model_open(dg, o->path, &o->how, &m);
    ck_assert_int_eq(st == WEFT_OK, m != NULL);
    weft_model_close(m);
    return st;
}

START_TEST(opening)
{
    const weft_model_options plain = {.size = sizeof plain},
                             copied = {.size = sizeof copied, .no_mmap = true},
                             guarded = {.size = sizeof guarded, .guard = true};
    to_open gguf = {DATA "/llama-mha/model-bf16.gguf", plain}, folder = {DATA "/gemma2", plain},
            copy = {DATA "/llama-mha/model-bf16.gguf", copied}, guard = {DATA "/gpt_oss", guarded};
    exhaust("a GGUF file", open_close, &gguf, WEFT_OK);
    exhaust("a folder", open_close, &folder, WEFT_OK);
    exhaust("a copied GGUF file", open_close, &copy, WEFT_OK);
    exhaust("a guarded folder", open_close, &guard, WEFT_OK);
}
END_TEST

static temp_path damaged(const temp_dir *d, const char *name, const char *path, size_t cut)
{
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    char *data = malloc(1 << 22);
    size_t n = fread(data, 1, 1 << 22, f);
    fclose(f);
    ck_assert_uint_gt(n, cut);
    temp_path p = temp_file(d, name, (str){data, cut});
    free(data);
    return p;
}

START_TEST(opening_what_is_damaged)
{
    temp_dir d = temp_dir_create();
    temp_path gguf = damaged(&d, "short.gguf", DATA "/llama-mha/model-bf16.gguf", 3000),
              arch = temp_file(&d, "bad.weft", STR("weft 1\nmodel m {\n  x = nonsense(1, \n}\n"));
    to_open cut = {gguf.path, {.size = sizeof cut.how}},
            wrong = {DATA "/gemma2", {.size = sizeof wrong.how, .arch = arch.path}},
            none = {"/nonexistent/model.gguf", {.size = sizeof none.how}};
    exhaust("a GGUF file that was cut", open_close, &cut, WEFT_ERR_FORMAT);
    exhaust("a bad model file", open_close, &wrong, WEFT_ERR_SYNTAX);
    exhaust("a file that is not there", open_close, &none, WEFT_ERR_FILE);
    unlink(gguf.path);
    unlink(arch.path);
    rmdir(d.path);
}
END_TEST

/* ---- sessions ---- */

static weft_status create_session(weft_diag *dg, void *ctx)
{
    kit *k = ctx;
    weft_session *s = NULL;
    weft_status st = weft_session_create(dg, k->m, &k->how, &s);
    ck_assert_int_eq(st == WEFT_OK, s != NULL);
    weft_session_destroy(s);
    return st;
}

START_TEST(creating_sessions)
{
    temp_dir d = temp_dir_create();
    kit k = kit_of(DATA "/gemma2");
    exhaust("a session", create_session, &k, WEFT_OK);
    k.how.exec = WEFT_EXEC_REF;
    exhaust("a session of the reference", create_session, &k, WEFT_OK);
    k.how.exec = WEFT_EXEC_PLAN;
    k.how.plan = DATA "/gemma2/config.json";
    weft_session *s = NULL;
    weft_status bad = weft_session_create(k.dg, k.m, &k.how, &s);
    ck_assert_int_ne(bad, WEFT_OK);
    exhaust("a session of a bad plan", create_session, &k, bad);
    kit_close(&k);
    rmdir(d.path);
}
END_TEST

/* A call that writes, forks and cuts; the sum of all logits says whether it gives what it gave before. */
static double logits_sum(kit *k, weft_diag *dg, weft_status *out_st)
{
    const weft_row rows[] = {{.token = 1, .pos = 0}, {.token = 5, .pos = 1, .want = true}};
    weft_view v = {0};
    weft_status st = weft_truncate(dg, k->s, 0, 0);
    if (st == WEFT_OK)
        st = weft_eval(dg, k->s, rows, 2);
    if (st == WEFT_OK)
        st = weft_output(dg, k->s, "logits", -1, &v);
    if (st == WEFT_OK)
        st = weft_fork(dg, k->s, 0, 1, 1);
    if (st == WEFT_OK)
        st = weft_truncate(dg, k->s, 1, 0);
    double sum = 0;
    for (int64_t i = 0; i < v.rows * v.width && st == WEFT_OK; i++)
        sum += v.data[i];
    *out_st = st;
    return sum;
}

static weft_status evaluate(weft_diag *dg, void *ctx)
{
    weft_status st;
    (void)logits_sum(ctx, dg, &st);
    return st;
}

/* Calls that are wrong need memory for their messages. */
static weft_status evaluate_wrongly(weft_diag *dg, void *ctx)
{
    kit *k = ctx;
    weft_view v;
    const weft_row bad = {.token = 1 << 30, .want = true};
    ck_assert_int_ne(weft_eval(dg, k->s, &bad, 1), WEFT_OK);
    ck_assert_int_ne(weft_output(dg, k->s, "nonsense", 3, &v), WEFT_OK);
    ck_assert_int_ne(weft_fork(dg, k->s, 0, 99, 1), WEFT_OK);
    return mem_fail_came() ? WEFT_ERR_LIMIT : WEFT_OK;
}

START_TEST(evaluating)
{
    weft_status st;
    kit k = kit_of(DATA "/gemma2");
    ok(&k, weft_session_create(k.dg, k.m, &k.how, &k.s));
    double want = logits_sum(&k, k.dg, &st);
    ck_assert_int_eq(st, WEFT_OK);
    exhaust("evaluating", evaluate, &k, WEFT_OK);
    exhaust("evaluating wrongly", evaluate_wrongly, &k, WEFT_OK);
    ck_assert_double_eq(logits_sum(&k, k.dg, &st), want);
    kit_close(&k);
}
END_TEST

static int64_t free_pages(kit *k)
{
    weft_session_info info = {.size = sizeof info};
    ok(k, weft_session_about(k->dg, k->s, &info));
    return info.pages_free;
}

/* A call that must fail, each time with new messages: those that were used before have memory left for one more. */
static void exhaust_refused(kit *k, const char *what, const weft_row *rows, int64_t n,
                            weft_status want)
{
    int64_t pages = free_pages(k);
    for (int all = 0; all < 2; all++) {
        bool came = true;
        int64_t i = 0;
        while (came) {
            weft_diag *dg = weft_diag_create();
            mem_fail_after(++i, all);
            weft_status st = weft_eval(dg, k->s, rows, n);
            came = mem_fail_came();
            mem_fail_after(0, false);
            ck_assert_msg(st == want || (came && st == WEFT_ERR_LIMIT),
                          "%s, allocation %lld: status %d: %s", what, (long long)i, (int)st,
                          weft_diag_text(dg));
            weft_diag_destroy(dg);
            ck_assert_msg(free_pages(k) == pages, "%s, allocation %lld: %lld pages are free", what,
                          (long long)i, (long long)free_pages(k));
        }
        ck_assert_int_gt(i, 1); /* there was an allocation */
    }
}

enum { BEGUN = 6, PAGE_TOK = 4, PAGES = 3 }; /* so that the last page in use is half full */

/* Sequence 0 has BEGUN tokens, and so have 1 and 2 if they are its forks. */
static void begin_sequences(kit *k, bool forks)
{
    weft_row rows[BEGUN];
    for (int i = 0; i < BEGUN; i++)
        rows[i] = (weft_row){.token = 1 + i, .pos = i, .want = i == BEGUN - 1};
    for (int seq = 0; seq < 3; seq++)
        ok(k, weft_truncate(k->dg, k->s, seq, 0));
    ok(k, weft_eval(k->dg, k->s, rows, BEGUN));
    for (int seq = 1; seq < 3 && forks; seq++)
        ok(k, weft_fork(k->dg, k->s, 0, seq, BEGUN));
}

/* What sequence 0 goes on with depends on all that it holds. */
static double next_sum(kit *k)
{
    const weft_row next = {.token = 9, .pos = BEGUN, .want = true};
    weft_view v;
    double sum = 0;
    ok(k, weft_eval(k->dg, k->s, &next, 1));
    ok(k, weft_output(k->dg, k->s, "logits", -1, &v));
    for (int64_t i = 0; i < v.rows * v.width; i++)
        sum += v.data[i] * (double)(i % 7 + 1);
    return sum;
}

START_TEST(evaluating_what_is_refused)
{
    const weft_row bad_token[] = {{.token = 9, .pos = BEGUN}, {.token = 1 << 30, .pos = BEGUN + 1}},
                   bad_pos[] = {{.token = 9, .pos = BEGUN + 1}},
                   more[] = {{.token = 9, .pos = BEGUN},
                             {.token = 9, .pos = BEGUN + 1},
                             {.token = 9, .pos = BEGUN + 2, .want = true}},
                   too_many[] = {{.token = 9, .pos = BEGUN, .seq = 0},
                                 {.token = 9, .pos = BEGUN, .seq = 1},
                                 {.token = 9, .pos = BEGUN, .seq = 2}};
    const struct {
        const char *what;
        const weft_row *rows;
        int64_t n;
        bool forks, cancel;
        weft_status want;
    } calls[] = {
        {"a bad token after a good one", bad_token, 2, false, false, WEFT_ERR_STATE},
        {"a bad position", bad_pos, 1, false, false, WEFT_ERR_STATE},
        {"a bad position in a fork", bad_pos, 1, true, false, WEFT_ERR_STATE},
        {"a call that is cancelled", more, 3, false, true, WEFT_ERR_CANCELLED},
        {"forks without pages", too_many, 3, true, false, WEFT_ERR_FULL},
    };
    kit k = kit_of(DATA "/gemma2");
    weft_cancel *stop = weft_cancel_create();
    weft_view v;
    k.how.page_tokens = PAGE_TOK;
    k.how.pages = PAGES;
    k.how.cancel = stop;
    ok(&k, weft_session_create(k.dg, k.m, &k.how, &k.s));
    begin_sequences(&k, false);
    double want = next_sum(&k);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        begin_sequences(&k, calls[i].forks);
        if (calls[i].cancel)
            weft_cancel_set(stop);
        exhaust_refused(&k, calls[i].what, calls[i].rows, calls[i].n, calls[i].want);
        weft_cancel_clear(stop);
        /* A run that was stopped has overwritten the outputs of the one before. */
        ck_assert_int_eq(weft_output(k.dg, k.s, "logits", -1, &v) == WEFT_OK, !calls[i].cancel);
        ck_assert_double_eq(next_sum(&k), want);
    }
    kit_close(&k);
    weft_cancel_destroy(stop);
}
END_TEST

/* ---- text ---- */

static const char text[] =
    "Hello, wo\xcc\x88rld! 1234567 \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x99\x82 "
    "antidisestablishmentarianism-and-a-word-without-any-end-to-it\n\n  x";

static weft_status open_tokenizer(weft_diag *dg, void *ctx)
{
    weft_tokenizer *t = NULL;
    weft_status st = weft_tokenizer_open(dg, ctx, &t);
    ck_assert_int_eq(st == WEFT_OK, t != NULL);
    weft_tokenizer_close(t);
    return st;
}

static weft_status there_and_back(weft_diag *dg, void *ctx)
{
    kit *k = ctx;
    int32_t *ids = NULL;
    char *back = NULL;
    size_t n, bytes;
    weft_status st = weft_encode(dg, k->t, text, sizeof text - 1, WEFT_ADD_SPECIAL, &ids, &n);
    if (st == WEFT_OK)
        st = weft_decode(dg, k->t, ids, n, true, &back, &bytes);
    if (st == WEFT_OK)
        ck_assert_msg(strstr(back, "1234567"), "%s", back);
    weft_free(ids);
    weft_free(back);
    return st;
}

/* A token whose memory was short is put again, and the text is whole in the end. */
static weft_status stream(weft_diag *dg, void *ctx)
{
    kit *k = ctx;
    int32_t *ids = NULL;
    size_t n = 0, n_all = 0, bytes;
    char all[512];
    const char *piece;
    weft_status st = weft_encode(dg, k->t, text, sizeof text - 1, 0, &ids, &n), first = st;
    for (size_t i = 0; i <= n && st == WEFT_OK;) {
        st = i < n ? weft_decoder_put(dg, k->decoder, ids[i], &piece, &bytes)
                   : weft_decoder_end(dg, k->decoder, &piece, &bytes);
        if (st == WEFT_OK) {
            memcpy(all + n_all, piece, bytes);
            n_all += bytes;
            i++;
        } else if (first == WEFT_OK) {
            first = st;
            mem_fail_after(0, false); /* forgets that it came: this call is the last */
            st = WEFT_OK;
        }
    }
    weft_free(ids);
    if (st == WEFT_OK)
        ck_assert_mem_eq(all, text, sizeof text - 1);
    return first;
}

START_TEST(tokenizing)
{
    char *const folders[] = {TEXTS "/llama2/tokenizer.json", TEXTS "/llama3/tokenizer.json", DEMO};
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        exhaust(folders[i], open_tokenizer, folders[i], WEFT_OK);
        for (int cold = 0; cold < 2; cold++) {
            kit k = {.dg = weft_diag_create()};
            ok(&k, weft_tokenizer_open(k.dg, folders[i], &k.t));
            if (cold) { /* the first use of all is one that fails */
                mem_fail_after(1, true);
                ck_assert_int_eq(there_and_back(k.dg, &k), WEFT_ERR_LIMIT);
                mem_fail_after(0, false);
            }
            exhaust("encoding and decoding", there_and_back, &k, WEFT_OK);
            kit_close(&k);
        }
    }
}
END_TEST

START_TEST(decoding_token_by_token)
{
    kit k = {.dg = weft_diag_create()};
    ok(&k, weft_tokenizer_open(k.dg, TEXTS "/llama3/tokenizer.json", &k.t));
    for (int64_t n = 1; n < 400; n++) {
        weft_diag_clear(k.dg);
        ok(&k, weft_decoder_create(k.dg, k.t, false, &k.decoder));
        mem_fail_after(n, false);
        weft_status st = stream(k.dg, &k);
        mem_fail_after(0, false);
        ck_assert(st == WEFT_OK || st == WEFT_ERR_LIMIT);
        weft_decoder_destroy(k.decoder);
    }
    k.decoder = NULL;
    kit_close(&k);
}
END_TEST

static const weft_chat chat = {.size = sizeof chat,
                               .messages = "[{\"role\": \"system\", \"content\": \"be brief\"}, "
                                           "{\"role\": \"user\", \"content\": \"hello \\u00e9\"}]",
                               .variables = "{\"x\": [1, 2.5, null, {\"y\": \"z\"}]}"};

static weft_status open_template(weft_diag *dg, void *ctx)
{
    kit *k = ctx;
    weft_template *t = NULL;
    weft_status st = weft_template_open(dg, k->m, "llama3", &t);
    ck_assert_int_eq(st == WEFT_OK, t != NULL);
    weft_template_close(t);
    return st;
}

static weft_status render(weft_diag *dg, void *ctx)
{
    kit *k = ctx;
    char *said = NULL;
    int32_t *ids = NULL;
    size_t n;
    weft_status st = weft_template_render(dg, k->chat, &chat, &said, &n);
    if (st == WEFT_OK)
        ck_assert_ptr_nonnull(strstr(said, "hello \xc3\xa9"));
    if (st == WEFT_OK)
        st = weft_template_encode(dg, k->chat, k->t, &chat, &ids, &n);
    weft_free(said);
    weft_free(ids);
    return st;
}

/* A template that fails has its line quoted. */
static weft_status render_wrongly(weft_diag *dg, void *ctx)
{
    kit *k = ctx;
    char *said;
    size_t n;
    weft_chat bad = {.size = sizeof bad, .messages = "[3]"};
    return weft_template_render(dg, k->chat, &bad, &said, &n);
}

START_TEST(rendering)
{
    kit k = kit_of(DATA "/llama-mha");
    exhaust("opening a template", open_template, &k, WEFT_OK);
    ok(&k, weft_template_open(k.dg, k.m, "llama3", &k.chat));
    ok(&k, weft_tokenizer_open(k.dg, TEXTS "/llama3/tokenizer.json", &k.t));
    exhaust("rendering", render, &k, WEFT_OK);
    exhaust("rendering wrongly", render_wrongly, &k, WEFT_ERR_TEMPLATE);
    kit_close(&k);
}
END_TEST

/* ---- generating ---- */

static const char *const stops[] = {"\n\n", "unlikely to come"};

static weft_status create_generation(weft_diag *dg, void *ctx)
{
    kit *k = ctx;
    weft_sampler_options pick = {.size = sizeof pick};
    weft_sampler_defaults(&pick);
    pick.dry_multiplier = 1;
    weft_generation_options how = {.size = sizeof how,
                                   .max_tokens = 6,
                                   .stops = stops,
                                   .n_stop = 2,
                                   .top_logprobs = 3,
                                   .sampler = &pick};
    weft_generation *g = NULL;
    weft_status st = weft_generation_create(dg, k->s, k->t, &how, &g);
    ck_assert_int_eq(st == WEFT_OK, g != NULL);
    if (st == WEFT_OK)
        st = weft_generation_change(dg, g, &how);
    weft_generation_destroy(g);
    return st;
}

typedef struct {
    char text[512];
    size_t n;
} answer;

static bool add_piece(void *ctx, const weft_piece *p)
{
    answer *a = ctx;
    ck_assert_uint_lt(a->n + p->bytes, sizeof a->text);
    memcpy(a->text + a->n, p->text, p->bytes);
    a->n += p->bytes;
    return true;
}

/* An answer, and a fork of it. */
static weft_status generate(weft_diag *dg, kit *k, answer *out)
{
    int32_t *ids = NULL;
    size_t n = 0;
    weft_end end;
    *out = (answer){.n = 0};
    weft_status st = weft_encode(dg, k->t, "Once upon a time", 16, WEFT_ADD_SPECIAL, &ids, &n);
    if (st == WEFT_OK)
        st = weft_generation_prompt(dg, k->g, ids, n);
    if (st == WEFT_OK)
        st = weft_generate(dg, k->g, add_piece, out, &end);
    if (st == WEFT_OK) {
        ck_assert_int_eq(end, WEFT_END_LENGTH);
        st = weft_generation_fork(dg, k->g, k->h, false);
    }
    weft_free(ids);
    return st;
}

static weft_status generate_any(weft_diag *dg, void *ctx)
{
    answer a;
    return generate(dg, ctx, &a);
}

START_TEST(generating)
{
    answer want, said;
    kit k = kit_of(DEMO);
    ok(&k, weft_tokenizer_of_model(k.dg, k.m, &k.t));
    ok(&k, weft_session_create(k.dg, k.m, &k.how, &k.s));
    exhaust("a generation", create_generation, &k, WEFT_OK);
    weft_sampler_options pick = {.size = sizeof pick};
    weft_sampler_defaults(&pick);
    pick.temp = 0;
    weft_generation_options how = {.size = sizeof how,
                                   .max_tokens = 6,
                                   .stops = stops,
                                   .n_stop = 2,
                                   .top_logprobs = 3,
                                   .sampler = &pick};
    ok(&k, weft_generation_create(k.dg, k.s, k.t, &how, &k.g));
    how.seq = 1;
    ok(&k, weft_generation_create(k.dg, k.s, k.t, &how, &k.h));
    ok(&k, generate(k.dg, &k, &want));
    ck_assert_uint_gt(want.n, 5);
    exhaust("generating", generate_any, &k, WEFT_OK);
    ok(&k, generate(k.dg, &k, &said));
    ck_assert_str_eq(said.text, want.text);
    kit_close(&k);
}
END_TEST

START_TEST(sampling)
{
    enum { VOCAB = 100 };
    float logits[VOCAB];
    weft_logprob top[5];
    for (int i = 0; i < VOCAB; i++)
        logits[i] = (float)(i % 17);
    weft_diag *dg = weft_diag_create();
    for (int64_t n = 1; n < 40; n++) {
        weft_sampler *s = NULL;
        int32_t token;
        mem_fail_after(n, false);
        weft_status st = weft_sampler_create(dg, NULL, VOCAB, 64, NULL, &s);
        ck_assert(st == WEFT_OK ? s != NULL : st == WEFT_ERR_LIMIT);
        if (s)
            st = weft_sampler_choose(dg, s, logits, &token);
        ck_assert(st == WEFT_OK || st == WEFT_ERR_LIMIT);
        int64_t got = weft_logprobs(logits, VOCAB, top, 5);
        ck_assert(got == 5 || (got == 0 && mem_fail_came()));
        mem_fail_after(0, false);
        weft_sampler_destroy(s);
    }
    weft_diag_destroy(dg);
}
END_TEST

/* ---- messages ---- */

START_TEST(messages)
{
    for (int64_t n = 1; n < 30; n++) {
        mem_fail_after(n, true);
        weft_diag *dg = weft_diag_create();
        weft_cancel *c = weft_cancel_create();
        weft_model *m = NULL;
        weft_status st = dg ? weft_model_open(dg, "/nonexistent", NULL, &m) : WEFT_ERR_LIMIT;
        ck_assert(st == WEFT_ERR_FILE || st == WEFT_ERR_LIMIT);
        const char *said = dg ? weft_diag_text(dg) : "W1110"; /* with no memory at all, too */
        ck_assert_msg(strstr(said, st == WEFT_ERR_FILE ? "W1" : "W1110"), "%s", said);
        ck_assert(!dg || strstr(weft_diag_json(dg), "\"code\":\"W1"));
        mem_fail_after(0, false);
        if (dg)
            ck_assert_ptr_nonnull(
                strstr(weft_diag_text(dg), st == WEFT_ERR_FILE ? "W1001" : "W1110"));
        weft_cancel_destroy(c);
        weft_diag_destroy(dg);
    }
}
END_TEST

/* ---- the system's own limit ---- */

static size_t address_space(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%lu", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static size_t room;

/* Ends with 0 where every status is one that a machine with little memory may give. */
static void work_in_little_room(void)
{
    struct rlimit most = {address_space() + room, address_space() + room};
    kit k = {.how = {.size = sizeof k.how, .context = 64, .sequences = 3, .threads = 4}};
    weft_status st = WEFT_OK;
    if (setrlimit(RLIMIT_AS, &most) != 0 || !(k.dg = weft_diag_create()))
        _exit(0);
    st = weft_model_open(k.dg, DATA "/gemma2", NULL, &k.m);
    if (st == WEFT_OK)
        st = weft_tokenizer_open(k.dg, TEXTS "/llama3/tokenizer.json", &k.t);
    if (st == WEFT_OK)
        st = weft_session_create(k.dg, k.m, &k.how, &k.s);
    if (st == WEFT_OK)
        st = evaluate(k.dg, &k);
    bool fine = st == WEFT_OK || st == WEFT_ERR_LIMIT || st == WEFT_ERR_TARGET ||
                st == WEFT_ERR_FILE /* W1003: no map */ || st == WEFT_ERR_DEVICE /* W1601 */;
    fine = fine && (st == WEFT_OK || weft_diag_text(k.dg)[0]);
    kit_close(&k);
    _exit(fine ? 0 : 100 + (int)st);
}

START_TEST(little_room)
{
    if (LIMIT_OF_NO_USE)
        return;
    for (room = 0; room < 64 << 20; room += room < 1 << 20 ? 40 << 10 : room / 3) {
        int status = child_status(work_in_little_room);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                      "with %zu KiB of room: wait status 0x%x", room >> 10, (unsigned)status);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {opening,
                                  opening_what_is_damaged,
                                  creating_sessions,
                                  evaluating,
                                  evaluating_what_is_refused,
                                  tokenizing,
                                  decoding_token_by_token,
                                  rendering,
                                  generating,
                                  sampling,
                                  messages,
                                  little_room};
    cJSON_InitHooks(&(cJSON_Hooks){take_for_json, free});
    TCase *tc = tcase_create("oom");
    tcase_set_timeout(tc, 600);
    for (size_t i = 0; i < COUNT_OF(tests); i++)
        tcase_add_test(tc, tests[i]);
    return suite_run("oom", tc, SUITE_FORK);
}
