/* http_echo.c - the HTTP layer over a backend that answers with the words of the prompt: a server without a model, for tests.
 *
 *     http_echo [KEYFILE [THREADS [PORT]]]      prints its port, serves until standard input ends
 *
 * A number on standard input: the allocation with that number from then on fails, once.
 * A prompt that begins with "fail" fails at once, "slow" takes a second for each word, "call" calls the first tool. */
#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include "runtime/http/http_server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct serve_work {
    const serve_request *rq;
    strbuf text[16];
    size_t n;
    serve_on_event *on;
    void *user;
    atomic_bool cancelled;
    pthread_t thread;
    atomic_int *running;
};

static atomic_int running, works;

static str token_text(void *ctx, int32_t id)
{
    (void)ctx;
    (void)id;
    return STR("word ");
}

/* The work went with the memory scope of its request. */
static void uncount(void *ctx)
{
    (void)ctx;
    atomic_fetch_sub(&works, 1);
}

static weft_status prepare(void *ctx, weft_diag *dg, const serve_request *rq,
                           const serve_caller *who, serve_work **out, answer_facts *facts)
{
    str last = STR("");
    (void)ctx;
    (void)who;
    (void)facts;
    if (rq->n_prompt > 16)
        return weft_fail(dg, W1828, WEFT_NOWHERE, "too many prompts");
    serve_work *w = mem_alloc(sizeof *w);
    *w = (serve_work){.rq = rq, .n = rq->n_prompt ? rq->n_prompt : 1};
    for (size_t i = 0; i < rq->n_prompt; i++)
        strbuf_put(&w->text[i], rq->prompts[i].text.p ? rq->prompts[i].text : STR("ids"));
    if (rq->messages) {
        value m = value_at(rq->messages, value_count(rq->messages) - 1);
        (void)value_str(value_get(&m, STR("content")), &last);
        strbuf_put(&w->text[0], last);
    }
    atomic_fetch_add(&works, 1);
    mem_scope_on_fail(uncount, NULL);
    *out = w;
    return WEFT_OK;
}

static str text_of(const serve_work *w, size_t i)
{
    return w->text[i].n ? strbuf_view(&w->text[i]) : STR("");
}

static str prompt_text(void *ctx, serve_work *w, size_t i)
{
    (void)ctx;
    return text_of(w, i);
}

static void one_choice(serve_work *w, size_t choice)
{
    str rest = text_of(w, choice / (size_t)w->rq->n);
    bool slow = str_starts(rest, STR("slow")), fail = str_starts(rest, STR("fail"));
    answer_event e = {.choice = choice, .token = 1, .logprob = -1, .n_prompt = 3};
    strbuf call = {0};
    if (str_starts(rest, STR("call")) && w->rq->n_tool) {
        strbuf_add(
            &call,
            "<tool_call>\n{\"name\": \"%.*s\", \"arguments\": {\"city\": \"Bern\"}}\n</tool_call>",
            STR_ARG(w->rq->tool_at[0].name));
        rest = strbuf_view(&call);
    }
    int64_t n = 0;
    while (rest.n && !fail && !atomic_load(&w->cancelled) &&
           (!w->rq->max_tokens || n < w->rq->max_tokens)) {
        size_t len = 0;
        while (len < rest.n && rest.p[len] != ' ')
            len++;
        len += len < rest.n;
        e.text = (str){rest.p, len};
        rest = (str){rest.p + len, rest.n - len};
        n++;
        for (int i = 0; slow && i < 100 && !atomic_load(&w->cancelled); i++)
            usleep(10000);
        w->on(w->user, &e);
    }
    bool cancelled = atomic_load(&w->cancelled) && !call.n;
    answer_event end = {.choice = choice,
                        .token = -1,
                        .n_prompt = 3,
                        .n_generated = n,
                        .code = fail ? W1410 : W1412,
                        .why = fail ? STR("as asked") : STR("cancelled"),
                        .end = fail || cancelled ? ANSWER_FAILED
                               : rest.n          ? ANSWER_LENGTH
                                                 : ANSWER_STOP};
    static const float row[] = {0.6f, 0.8f};
    end.vector = row;
    end.n_vector = 2;
    w->on(w->user, &end);
    strbuf_free(&call);
}

static void *work(void *arg)
{
    serve_work *w = arg;
    size_t n = w->n * (size_t)w->rq->n; /* the last event may end the work */
    for (size_t i = 0; i < n; i++)
        one_choice(w, i);
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static weft_status start(void *ctx, weft_diag *dg, serve_work *w, serve_on_event *on, void *user)
{
    (void)ctx;
    w->on = on;
    w->user = user;
    atomic_fetch_add(&running, 1);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&w->thread, &attr, work, w) == 0)
        return WEFT_OK;
    atomic_fetch_sub(&running, 1);
    return weft_fail(dg, W1828, WEFT_NOWHERE, "no thread");
}

static void cancel(void *ctx, serve_work *w)
{
    (void)ctx;
    atomic_store(&w->cancelled, true);
}

static void release(void *ctx, serve_work *w)
{
    (void)ctx;
    for (size_t i = 0; i < 16; i++)
        strbuf_free(&w->text[i]);
    mem_free(w);
    atomic_fetch_sub(&works, 1);
}

static weft_status tokenize(void *ctx, weft_diag *dg, const serve_request *rq, strbuf *out)
{
    (void)dg;
    int32_t ids[] = {1, 2};
    answer_tokens(ids, 2, rq, token_text, ctx, out);
    return WEFT_OK;
}

static void metrics(void *ctx, strbuf *out)
{
    (void)ctx;
    strbuf_add(out, "# TYPE echo_works gauge\necho_works %d\n", atomic_load(&works));
}

int main(int argc, char **argv)
{
    static const char *const adapters[] = {"pirate"};
    static const char *const headers[] = {"Content-Type", "text/html; charset=utf-8", NULL};
    weft_diag *dg = diag_create();
    http_server *s = NULL;
    serve_backend b = {.rules = {.model = "echo",
                                 .adapters = adapters,
                                 .n_adapter = 1,
                                 .sampler = serve_sampler_defaults(),
                                 .vocab = 1000,
                                 .body_max = 1 << 16},
                       .context = 512,
                       .tools = tool_format_find("hermes"),
                       .token_text = token_text,
                       .prepare = prepare,
                       .prompt_text = prompt_text,
                       .start = start,
                       .cancel = cancel,
                       .release = release,
                       .tokenize = tokenize,
                       .metrics = metrics};
    http_options o = {.key_file = argc > 1 && *argv[1] ? argv[1] : NULL,
                      .receive_s = 2,
                      .page = "<p>page",
                      .page_n = 7,
                      .page_etag = "\"e\"",
                      .page_headers = headers,
                      .threads = argc > 2 && *argv[2] ? 2 : 1,
                      .port = argc > 3 ? atoi(argv[3]) : 0};
    if (http_server_start(dg, &o, &b, &s) != WEFT_OK) {
        diag_print(dg, stderr, false);
        diag_destroy(dg);
        return 1;
    }
    diag_print(dg, stderr, false);
    printf("%d\n", http_server_port(s));
    fflush(stdout);
    for (int n; scanf("%d", &n) == 1;)
        mem_fail_after(n, false);
    http_server_stop(s);
    while (atomic_load(&running)) /* detached threads that are about to end */
        usleep(1000);
    diag_destroy(dg);
    if (atomic_load(&works))
        fprintf(stderr, "%d works are left\n", atomic_load(&works));
    return atomic_load(&works) ? 1 : 0;
}
