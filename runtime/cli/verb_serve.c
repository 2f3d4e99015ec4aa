/* verb_serve.c - `weft serve`: a model for many, over HTTP. */
#include "runtime/cli/serve_about.h"
#include "runtime/cli/talk.h"

#include "runtime/base/json_write.h"
#include "runtime/base/memory.h"
#include "runtime/base/wake.h"
#include "runtime/http/http_server.h"
#include "runtime/http/serve_app.h"
#include "runtime/page/page.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    talk_flags t;
    const char *host, *keys, *alias, *tool_format, *swap_dir;
    int64_t port, sequences, pages, queue, max_itl, max_body, connections, timeout, receive, drain,
        http_threads, swap_bytes, swap_memory;
    bool embeddings, no_page;
    flag_list allow_host;
} serve_options;

/* clang-format off */
static const flag serve_flags[] = {
    MODEL_FLAG_ROW(serve_options, t.open, "the checkpoint; without it the demo model"),
    FLAG_ROW_STR  (serve_options, host,        "host",        NULL, "ADDRESS", "127.0.0.1", "where to listen; 0.0.0.0: everywhere"),
    FLAG_ROW_INT  (serve_options, port,        "port",        NULL, "N", "8080", 0, 65535, "0: the system chooses one"),
    FLAG_ROW_LIST (serve_options, allow_host,  "allow-host",  NULL, "NAME", "a name of this machine that clients use; without keys others than addresses and localhost are refused"),
    FLAG_ROW_STR  (serve_options, keys,        "api-key-file", NULL, "FILE", NULL, "a line for each key: KEY or NAME KEY, then priority=N, weight=N"),
    FLAG_ROW_STR  (serve_options, alias,       "alias",       "a",  "NAME", NULL, "what clients call the model; else the name of its file"),
    FLAG_ROW_INT  (serve_options, t.open.context, "ctx-size", "c",  "N", "-1", -1, 1 << 30, "context of a request; 0: the trained one; -1: that, 8192 at most"),
    FLAG_ROW_INT  (serve_options, sequences,   "parallel",    "np", "N", "32", 1, 4096, "answers that are generated at once"),
    FLAG_ROW_INT  (serve_options, pages,       "pages",       NULL, "N", "0", 0, 1 << 30, "pages of state for all of them; 0: enough, or what half of the memory has room for"),
    BATCH_FLAG_ROW(serve_options, t.open, "512"),
    FLAG_ROW_INT  (serve_options, queue,       "queue",       NULL, "N", "1024", 1, 1 << 20, "requests that may wait; more are refused"),
    FLAG_ROW_INT  (serve_options, max_itl,     "max-itl",     NULL, "MS", "150", 0, 60000, "prompts may not keep answers waiting longer between tokens; 0: no bound"),
    FLAG_ROW_SIZE (serve_options, max_body,    "max-body",    NULL, "BYTES", "8M", 1024, 1 << 30, "of a request"),
    FLAG_ROW_INT  (serve_options, connections, "connections", NULL, "N", "256", 1, 65536, "that may be open at once"),
    FLAG_ROW_INT  (serve_options, timeout,     "timeout",     NULL, "SECONDS", "600", 0, 86400, "that a request may take, unless it says timeout_ms itself; 0: any time"),
    FLAG_ROW_INT  (serve_options, receive,     "timeout-receive", NULL, "SECONDS", "30", 1, 86400, "until a request is there, from its connection or the answer before it"),
    FLAG_ROW_INT  (serve_options, http_threads, "threads-http", NULL, "N", "1", 1, 64, "threads that read requests and write answers"),
    FLAG_ROW_INT  (serve_options, drain,       "drain",       NULL, "SECONDS", "30", 0, 86400, "how long answers may go on after SIGTERM"),
    FLAG_ROW_SIZE (serve_options, swap_memory, "swap-memory", NULL, "BYTES", "0", 0, 1e15, "memory for the state of answers that make way; else it is computed again"),
    FLAG_ROW_STR  (serve_options, swap_dir,    "swap-dir",    NULL, "FOLDER", NULL, "where such state is kept on disk, behind --swap-memory"),
    FLAG_ROW_SIZE (serve_options, swap_bytes,  "swap-bytes",  NULL, "BYTES", "1G", 0, 1e15, "of files there"),
    FLAG_ROW_BOOL (serve_options, embeddings,  "embeddings",  NULL, "serve /v1/embeddings too"),
    FLAG_ROW_STR  (serve_options, tool_format, "tool-format", NULL, "NAME", NULL, "how the model writes calls: hermes, llama3, mistral, phi, harmony, none; else as its template does"),
    FLAG_ROW_BOOL (serve_options, no_page,     "no-page",     NULL, "no page at /"),
    FLAG_ROW_STR  (serve_options, t.chat_template, "chat-template", NULL, "NAME", NULL, "a built-in template or a file, in place of the model's"),
    LORA_FLAG_ROWS(serve_options, t.open),
    SESSION_FLAG_ROWS(serve_options, t.open, "0"),
    FILE_FLAG_ROWS(serve_options, t.open),
    FLAG_ROW_END  (serve_options),
};

static const char *const examples[] = {
    "weft serve -m model.gguf",                          "at http://127.0.0.1:8080: a page for people, /v1 for OpenAI's clients",
    "weft serve -m model.gguf --host 0.0.0.0 --api-key-file keys", "for others, who need a key",
    "weft serve -m model.gguf --lora poet --lora pirate", "with adapters: \"model\": \"model:pirate\"",
    "weft serve -m model.gguf -np 64 --max-itl 50",      "many at once, and no token more than about 50 ms after the last",
    "curl localhost:8080/v1/completions -d '{\"prompt\": \"Once upon a time\"}'", "ask it for a text",
    NULL,
};
/* clang-format on */

const verb_page serve_verb_page = {
    serve_flags,
    "Routes: /v1/chat/completions, /v1/completions, /v1/responses, /v1/embeddings, /v1/models, "
    "/tokenize, /detokenize, "
    "/apply-template, /health, /metrics (Prometheus), /slots, and / for people. A field of a "
    "request works or is refused by "
    "name. SIGTERM and Ctrl-C let answers end, for --drain seconds; a second one stops at once. "
    "SIGHUP opens the adapters anew. "
    "With --json a line says where it listens.",
    examples,
};

/* ---- signals, and what else ends it, by a pipe ---- */

static wake_pipe wake = {-1, -1};

static void on_signal(int number)
{
    wake_put(&wake, number == SIGHUP ? 'H' : 'T');
}

static weft_status watch_signals(weft_diag *dg)
{
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    if (!wake_open(&wake))
        return weft_fail(dg, W1834, WEFT_NOWHERE, "no pipe: %s", strerror(errno));
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGHUP, &sa, NULL);
    return WEFT_OK;
}

/* ---- a server ---- */

typedef struct {
    cli *c;
    const serve_options *o;
    talk t; /* the model, as `run` opens it */
    weft_session *s;
    weft_session_info about;
    weft_tokenizer *text;
    weft_template *chat;
    scheduler *steps;
    serve_app *app;
    http_server *http;
    const char *name;
    const char *swap_memory, *swap_disk;  /* folders for state; NULL: none */
    const char **adapter, **adapter_path; /* [n_adapter] */
    float *adapter_scale;
    size_t n_adapter;
    strbuf model_json, graph_svg; /* for the page */
    strbuf broken; /* why the session failed; written before 'B' goes through the pipe */
} server;

/* The last part of a path, without what says the format. */
static const char *name_of(arena *a, const char *path)
{
    str s = str_of(path);
    while (s.n > 1 && s.p[s.n - 1] == '/')
        s.n--;
    for (size_t i = s.n; i > 0; i--)
        if (s.p[i - 1] == '/') {
            s = (str){s.p + i, s.n - i};
            break;
        }
    if (str_ends(s, STR(".gguf")))
        s.n -= 5;
    return arena_str(a, s).p;
}

static weft_status name_adapters(server *v)
{
    const flag_list *l = &v->o->t.open.lora;
    v->adapter = ARENA_ARRAY(v->t.a, const char *, l->n + 1);
    v->adapter_path = ARENA_ARRAY(v->t.a, const char *, l->n + 1);
    v->adapter_scale = ARENA_ARRAY(v->t.a, float, l->n + 1);
    v->n_adapter = l->n;
    for (size_t i = 0; i < l->n; i++) {
        double scale;
        WEFT_TRY(lora_flag_read(v->c->dg, v->t.a, l->at[i], &v->adapter_path[i], &scale));
        v->adapter_scale[i] = (float)scale;
        v->adapter[i] = name_of(v->t.a, v->adapter_path[i]);
        for (size_t k = 0; k < i; k++)
            if (strcmp(v->adapter[k], v->adapter[i]) == 0)
                return weft_fail(v->c->dg, W1903, WEFT_NOWHERE,
                                 "--lora: two adapters are called %s", v->adapter[i]);
    }
    return WEFT_OK;
}

static weft_status adapter_open(void *ctx, weft_diag *dg, const char *name,
                                const adapter_source **out_a)
{
    server *v = ctx;
    weft_adapter *a;
    for (size_t i = 0; i < v->n_adapter; i++)
        if (strcmp(v->adapter[i], name) == 0) {
            WEFT_TRY(weft_adapter_open(dg, v->t.m, v->adapter_path[i], &a));
            *out_a = &a->from;
            return WEFT_OK;
        }
    return weft_fail(dg, W1826, WEFT_NOWHERE, "there is no adapter %s", name);
}

static void adapter_close(void *ctx, const adapter_source *from)
{
    (void)ctx;
    weft_adapter_close((weft_adapter *)(uintptr_t)from); /* its first member */
}

/* As many pages as all sequences can fill, or as half of the memory has room for, but enough for one. */
static int64_t choose_pages(server *v, const weft_session_options *how)
{
    weft_session_options like = *how;
    uint64_t room = memory_available("").bytes / 2;
    int64_t page_tok = how->page_tokens ? how->page_tokens : 64;
    int64_t least = (how->context + page_tok - 1) / page_tok + 1, pages = least * how->sequences;
    for (like.pages = pages; like.pages > least && weft_state_bytes(v->t.m, &like) > room;
         like.pages -= like.pages / 8 + 1)
        ;
    if (like.pages < least)
        like.pages = least;
    if (like.pages < pages)
        cli_say(v->c, "memory is short: %lld pages of state instead of %lld (--pages sets it)",
                (long long)like.pages, (long long)pages);
    return like.pages;
}

static weft_status open_session(server *v)
{
    static const char *const outputs[] = {"logits", "hidden"};
    progress bar = {0};
    int64_t trained = weft_model_context(v->t.m);
    weft_session_options how = v->t.kind->session(&v->t, &bar);
    int64_t wanted = v->o->t.open.context;
    how.context = wanted > 0 ? wanted : !trained || (wanted < 0 && trained > 8192) ? 8192 : trained;
    how.sequences = v->o->sequences;
    how.wants = v->o->sequences;
    how.cancel = NULL;
    if (v->o->embeddings) {
        how.outputs = outputs;
        how.n_output = 2;
        how.wants = 0;
    }
    how.pages = v->o->pages ? v->o->pages : choose_pages(v, &how);
    WEFT_TRY(weft_session_create(v->c->dg, v->t.m, &how, &v->s));
    v->about.size = sizeof v->about;
    return weft_session_about(v->c->dg, v->s, &v->about);
}

/* The model's template, or none: such a model continues texts. */
static weft_status open_template(server *v)
{
    size_t before = diag_count(v->c->dg);
    weft_status st = weft_template_open(v->c->dg, v->t.m, v->o->t.chat_template, &v->chat);
    if (st == WEFT_OK || v->o->t.chat_template || diag_at(v->c->dg, before).code != W1305)
        return st;
    diag_keep_first(v->c->dg, before);
    cli_say(v->c, "the model has no chat template: chats are refused, /v1/completions works "
                  "(--chat-template names one)");
    return WEFT_OK;
}

static void on_broken(void *ctx, const weft_diag *dg)
{
    server *v = ctx;
    diag_text(dg, &v->broken, false);
    wake_put(&wake, 'B');
}

/* What the page shows of the model, made once. */
static void show_model(server *v, serve_app_options *app)
{
    const api_plan *made = &v->s->plan;
    served_model about = {.m = v->t.m, .s = v->s, .name = v->name, .context = v->about.context};
    serve_about_json(&about, &v->model_json);
    graph_svg(api_file_of(v->t.m)->bound->graph, &v->graph_svg);
    app->model_json = strbuf_view(&v->model_json);
    app->graph_svg = strbuf_view(&v->graph_svg);
    if (made->dev || made->run.parts) {
        app->no_profile = "they are on a processor alone; `weft profile` times a card's";
        return;
    }
    /* A call that is timed runs step by step, in place of the code, and its numbers may differ in the last bit. */
    if (made->run.maker) {
        app->no_profile = "the plan runs as native code; start the server with --exec plan";
        return;
    }
    app->run = v->s->run;
    app->plan = made->p;
    app->threads = made->run.threads;
}

/* A folder of its own in this one, that nobody else can look into. */
static weft_status make_folder(server *v, const char *asked, const char *in, const char **out)
{
    size_t n = strlen(in) + sizeof "/weft-XXXXXX";
    char *path = ARENA_ARRAY(v->t.a, char, n);
    snprintf(path, n, "%s/weft-XXXXXX", in);
    if (!mkdtemp(path))
        return weft_fail(v->c->dg, W1903, WEFT_NOWHERE, "%s: no folder can be made in %s: %s",
                         asked, in, strerror(errno));
    *out = path;
    return WEFT_OK;
}

static weft_status open_app(server *v)
{
    const serve_options *o = v->o;
    sched_options how = {.queue_max = o->queue,
                         .max_itl_ms = o->max_itl,
                         .adapter_open = v->n_adapter ? adapter_open : NULL,
                         .adapter_close = adapter_close,
                         .adapter_ctx = v,
                         .swap_memory_bytes = (uint64_t)o->swap_memory,
                         .swap_disk_bytes = o->swap_dir ? (uint64_t)o->swap_bytes : 0};
    if (o->swap_memory > 0)
        WEFT_TRY(make_folder(v, "--swap-memory", "/dev/shm", &v->swap_memory));
    if (o->swap_dir)
        WEFT_TRY(make_folder(v, "--swap-dir", o->swap_dir, &v->swap_disk));
    how.swap_memory_dir = v->swap_memory;
    how.swap_disk_dir = v->swap_disk;
    WEFT_TRY(scheduler_create(v->c->dg, v->s->run, v->text->text, &how, &v->steps));
    serve_app_options app = {.rules = {.model = v->name,
                                       .adapters = v->adapter,
                                       .n_adapter = v->n_adapter,
                                       .sampler = serve_sampler_defaults(),
                                       .vocab = tok_vocab_size(v->text->text),
                                       .body_max = (size_t)o->max_body,
                                       .timeout_ms = o->timeout * 1000,
                                       .no_chat = v->chat == NULL},
                             .queue = o->queue,
                             .steps = v->steps,
                             .text = v->text->text,
                             .chat = v->chat ? v->chat->chat : NULL,
                             .tool_format = o->tool_format,
                             .context = v->about.context,
                             .n_logit = v->about.vocab,
                             .embeds = o->embeddings,
                             .scales = v->adapter_scale,
                             .family = weft_model_name(v->t.m),
                             .on_broken = on_broken,
                             .ctx = v};
    if (!o->no_page)
        show_model(v, &app);
    app.fingerprint = arena_printf(v->t.a, "weft-%s", weft_version()).p;
    WEFT_TRY(serve_app_create(v->c->dg, &app, &v->app));
    return serve_app_start(v->c->dg, v->app);
}

static weft_status listen_at(server *v)
{
    const serve_options *o = v->o;
    const char *headers[2 * 32 + 1] = {0};
    for (int i = 0; i < page_index.header_n && i < 32; i++) {
        headers[2 * i] = page_index.header[i].name;
        headers[2 * i + 1] = page_index.header[i].value;
    }
    http_options how = {.host = o->host,
                        .port = (int)o->port,
                        .key_file = o->keys,
                        .threads = (int)o->http_threads,
                        .connections_max = (int)o->connections,
                        .receive_s = (int)o->receive,
                        .page_headers = headers};
    if (!o->no_page) {
        how.page = page_index.bytes;
        how.page_n = page_index.n;
        how.page_etag = page_index.etag;
    }
    const char **names = ARENA_ARRAY(v->t.a, const char *, o->allow_host.n + 1);
    for (size_t i = 0; i < o->allow_host.n; i++)
        names[i] = o->allow_host.at[i];
    names[o->allow_host.n] = NULL;
    how.names = names;
    const char **kept = ARENA_ARRAY(v->t.a, const char *, sizeof headers / sizeof *headers);
    memcpy(kept, headers, sizeof headers);
    how.page_headers = kept;
    serve_backend b = serve_app_backend(v->app);
    WEFT_TRY(http_server_start(v->c->dg, &how, &b, &v->http));
    const api_keys *keys = http_server_keys(v->http);
    for (size_t i = 0; keys && i < keys->n; i++)
        WEFT_TRY(scheduler_share(v->c->dg, v->steps, (uint32_t)i + 1, keys->at[i].weight));
    return WEFT_OK;
}

static weft_status open_all(server *v)
{
    v->t = (talk){.c = v->c, .f = &v->o->t, .kind = &talk_kind_file, .a = arena_create()};
    WEFT_TRY(v->t.kind->open(&v->t));
    v->name = v->o->alias ? v->o->alias : name_of(v->t.a, v->t.from);
    WEFT_TRY(name_adapters(v));
    WEFT_TRY(weft_tokenizer_of_model(v->c->dg, v->t.m, &v->text));
    WEFT_TRY(open_template(v));
    WEFT_TRY(open_session(v));
    WEFT_TRY(watch_signals(v->c->dg));
    WEFT_TRY(open_app(v));
    return listen_at(v);
}

static void say_where(server *v)
{
    int port = http_server_port(v->http);
    if (!v->c->common.json) {
        cli_say(v->c, "%s at http://%s:%d (context %lld, %lld at once)", v->name, v->o->host, port,
                (long long)v->about.context, (long long)v->about.sequences);
        return;
    }
    strbuf out = {0};
    json_writer w = {.out = &out};
    json_open(&w, '{');
    json_key_text(&w, "model", v->name);
    json_key_text(&w, "host", v->o->host);
    json_key_int(&w, "port", port);
    json_close(&w, '}');
    strbuf_putc(&out, '\n');
    cli_print_all(v->c, &out);
    fflush(stdout);
}

/* Until a signal, or a session that failed. */
static weft_status serve(server *v)
{
    char what;
    while ((what = wake_get(&wake)) == 'H') {
        weft_status st = scheduler_reload(v->c->dg, v->steps, NULL);
        if (st != WEFT_OK)
            cli_report(v->c, v->c->dg);
        else
            cli_say(v->c, "adapters are opened anew");
    }
    http_server_drain(v->http);
    if (what == 'B')
        return weft_fail(v->c->dg, W1610, WEFT_NOWHERE, "the session failed: " STR_FMT,
                         STR_ARG(strbuf_view(&v->broken)));
    cli_say(v->c, "shutting down: answers have %lld seconds to end", (long long)v->o->drain);
    return WEFT_OK;
}

static void close_all(server *v, bool broken)
{
    if (v->app) {
        /* A second signal ends the process at once. */
        signal(SIGTERM, SIG_DFL);
        signal(SIGINT, SIG_DFL);
        serve_app_drain(v->app, broken ? 0 : v->o->drain * 1000);
    }
    http_server_stop(v->http);
    serve_app_destroy(v->app);
    scheduler_destroy(v->steps);
    if (v->swap_memory)
        (void)rmdir(v->swap_memory);
    if (v->swap_disk)
        (void)rmdir(v->swap_disk);
    weft_template_close(v->chat);
    weft_session_destroy(v->s);
    weft_tokenizer_close(v->text);
    if (v->t.kind)
        v->t.kind->close(&v->t);
    weft_model_close(v->t.m);
    arena_destroy(v->t.a);
    strbuf_free(&v->model_json);
    strbuf_free(&v->graph_svg);
    strbuf_free(&v->broken);
}

int verb_serve(cli *c)
{
    server v = {.c = c, .o = c->options};
    weft_status st = open_all(&v);
    if (st == WEFT_OK) {
        cli_report(c, c->dg); /* warnings, before it runs for days */
        say_where(&v);
        st = serve(&v);
    }
    close_all(&v, st != WEFT_OK);
    return cli_exit_of(st);
}
