/* bench_serve.c - how a server does under load: tokens a second, time to the first token, time between tokens.
 *
 *     bench_serve --port 8080 --clients 32 --requests 256 --prompt 128 --answer 64             each client sends when it has its answer
 *     bench_serve --port 8080 --rate 4 --requests 256 ...                                      Poisson arrivals, 4 a second
 *     bench_serve ... --shared 2048                                                            prompts that begin the same
 *     bench_serve ... --cancel 0.1 --bad 0.1                                                   clients that go, bodies that are no requests
 *
 * One thread and poll, so that it takes little of the machine that it measures. Prompts are lists of token ids, from a seed, so that
 * every server has the same ones; answers are streamed by /v1/completions, which llama-server has too. Prints a line for each
 * quantity with its percentiles, or with --json one object. */
#include "runtime/base/clock.h"
#include "runtime/base/json_write.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct {
    const char *host, *key, *model;
    double port, clients, requests, rate, prompt, answer, shared, vocab, seed, cancel, bad, warmup;
    bool json;
} settings;

typedef VEC(double) times;

typedef enum { IDLE, SENDING, READING } phase;

typedef struct {
    phase at;
    int fd;
    strbuf out;
    size_t sent;
    strbuf line; /* of the body, until it ends */
    strbuf head; /* until an empty line */
    bool headed, chunked, cancels, bad, counted;
    int status;
    int chunk_state; /* 0: digits of a size, 1: the rest of that line, 2: data, 3: the line break behind them */
    size_t chunk_left;
    uint64_t begin_ns, last_ns;
    int64_t pieces;         /* events with text */
    int64_t tokens, prompt; /* as the server counts them at the end; 0: it has not said */
} client;

typedef struct {
    settings o;
    client *at;
    size_t n;
    uint64_t random;
    times first, between, whole;
    int64_t begun, ended, failed, cancelled, refused, tokens, prompt;
    int64_t shortest, longest; /* answers, in tokens */
    uint64_t start_ns;
} bench;

static uint64_t next_random(bench *b)
{
    uint64_t z = b->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double next_unit(bench *b)
{
    return ((double)(next_random(b) >> 11) + 0.5) / 9007199254740992.0;
}

/* ---- a request ---- */

static void write_body(bench *b, bool bad, strbuf *out)
{
    json_writer w = {.out = out};
    uint64_t kept = b->random;
    size_t vocab = (size_t)b->o.vocab;
    json_open(&w, '{');
    if (b->o.model)
        json_key_text(&w, "model", b->o.model);
    json_key_open(&w, "prompt", '[');
    b->random = 12345; /* what all share does not depend on who asks */
    for (int i = 0; i < (int)b->o.shared; i++)
        json_int(&w, (int64_t)(100 + next_random(b) % (vocab - 100)));
    b->random = kept;
    for (int i = 0; i < (int)b->o.prompt; i++)
        json_int(&w, (int64_t)(100 + next_random(b) % (vocab - 100)));
    json_close(&w, ']');
    json_key_int(&w, "max_tokens", (int64_t)b->o.answer);
    json_key_bool(&w, "ignore_eos", true);
    json_key_double(&w, "temperature", 0);
    json_key_bool(&w, "stream", true);
    json_key_open(&w, "stream_options", '{');
    json_key_bool(&w, "include_usage", true);
    json_close(&w, '}');
    json_close(&w, '}');
    if (bad) { /* a piece is missing, a byte is another */
        out->n = (size_t)(next_unit(b) * (double)out->n);
        if (out->n)
            out->p[next_random(b) % out->n] = (char)next_random(b);
    }
}

static bool begin(bench *b, client *c)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)b->o.port)};
    strbuf body = {0};
    int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || inet_pton(AF_INET, b->o.host, &addr.sin_addr) != 1 ||
        connect(c->fd, (struct sockaddr *)&addr, sizeof addr) != 0) {
        fprintf(stderr, "bench_serve: %s, port %d: %s\n", b->o.host, (int)b->o.port,
                strerror(errno));
        return false;
    }
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->cancels = next_unit(b) < b->o.cancel;
    c->bad = next_unit(b) < b->o.bad;
    write_body(b, c->bad, &body);
    strbuf_reset(&c->out);
    strbuf_add(&c->out,
               "POST /v1/completions HTTP/1.1\r\nHost: %s:%d\r\nContent-Type: "
               "application/json\r\nConnection: close\r\n"
               "Content-Length: %zu\r\n",
               b->o.host, (int)b->o.port, body.n);
    if (b->o.key)
        strbuf_add(&c->out, "Authorization: Bearer %s\r\n", b->o.key);
    strbuf_put(&c->out, STR("\r\n"));
    if (body.n)
        strbuf_put(&c->out, (str){body.p, body.n});
    strbuf_free(&body);
    strbuf_reset(&c->line);
    strbuf_reset(&c->head);
    c->sent = c->chunk_left = 0;
    c->headed = c->chunked = false;
    c->status = c->chunk_state = 0;
    c->pieces = c->tokens = c->prompt = 0;
    c->at = SENDING;
    c->counted = b->begun >= (int64_t)b->o.warmup;
    c->begin_ns = c->last_ns = clock_ns();
    b->begun++;
    return true;
}

static void end(bench *b, client *c, bool gone)
{
    close(c->fd);
    c->at = IDLE;
    b->ended++;
    b->cancelled += gone;
    b->refused += !gone && c->status >= 400 && c->status < 500;
    b->failed += !gone && (c->status < 200 || c->status >= 500);
    if (gone || c->status != 200 || !c->counted)
        return;
    b->tokens += c->tokens;
    b->prompt += c->prompt;
    if (b->whole.n == 0 || c->tokens < b->shortest)
        b->shortest = c->tokens;
    if (c->tokens > b->longest)
        b->longest = c->tokens;
    VEC_PUSH(&b->whole, (double)(clock_ns() - c->begin_ns) / 1e6);
}

/* The number behind a key of the event with usage. */
static void read_count(str line, const char *key, int64_t *out)
{
    const char *at = memmem(line.p, line.n, key, strlen(key));
    if (at) /* the line ends with a byte that is no digit: strbuf keeps a 0 there */
        *out = strtoll(at + strlen(key), NULL, 10);
}

/* Times are those of events with text: a token that ends no character has none, with any server. How many tokens there were is what
 * the server says in its usage. */
static void on_line(bench *b, client *c, str line)
{
    if (str_starts(line, STR("data: {"))) {
        read_count(line, "\"completion_tokens\":", &c->tokens);
        read_count(line, "\"prompt_tokens\":", &c->prompt);
    }
    if (!str_starts(line, STR("data: {")) || !memmem(line.p, line.n, "\"text\":\"", 8) ||
        memmem(line.p, line.n, "\"text\":\"\"", 9))
        return;
    uint64_t now = clock_ns();
    double ms = (double)(now - c->last_ns) / 1e6;
    if (c->counted && c->pieces == 0)
        VEC_PUSH(&b->first, ms);
    else if (c->counted)
        VEC_PUSH(&b->between, ms);
    c->last_ns = now;
    c->pieces++;
}

static void on_body(bench *b, client *c, char byte)
{
    if (byte != '\n') {
        if (c->line.n < 1 << 20)
            strbuf_putc(&c->line, byte);
        return;
    }
    if (c->line.n)
        on_line(b, c, strbuf_view(&c->line));
    strbuf_reset(&c->line);
}

static void on_byte(bench *b, client *c, char byte)
{
    if (!c->headed) {
        strbuf_putc(&c->head, byte);
        if (!str_ends(strbuf_view(&c->head), STR("\r\n\r\n")))
            return;
        c->headed = true;
        c->status = c->head.n > 12 ? atoi(c->head.p + 9) : 0;
        c->chunked = strcasestr(c->head.p, "transfer-encoding: chunked") != NULL;
        return;
    }
    if (!c->chunked) {
        on_body(b, c, byte);
        return;
    }
    switch (c->chunk_state) {
    case 0: {
        int d = byte >= '0' && byte <= '9'                 ? byte - '0'
                : (byte | 32) >= 'a' && (byte | 32) <= 'f' ? (byte | 32) - 'a' + 10
                                                           : -1;
        if (d >= 0)
            c->chunk_left = c->chunk_left * 16 + (size_t)d;
        else
            c->chunk_state = byte == '\n' ? 2 : 1;
        break;
    }
    case 1:
        c->chunk_state = byte == '\n' ? 2 : 1;
        break;
    case 2:
        if (c->chunk_left) {
            on_body(b, c, byte);
            c->chunk_left--;
            break;
        }
        c->chunk_state = 3; /* fall through */
    default:
        if (byte == '\n')
            c->chunk_state = 0;
        break;
    }
}

static void progress(bench *b, client *c)
{
    char block[16384];
    if (c->at == SENDING) {
        ssize_t n = send(c->fd, c->out.p + c->sent, c->out.n - c->sent, 0);
        if (n > 0)
            c->sent += (size_t)n;
        if (n < 0 && errno != EAGAIN)
            c->at = READING; /* it may have answered before it read all */
        if (c->sent == c->out.n)
            c->at = READING;
        return;
    }
    ssize_t n = recv(c->fd, block, sizeof block, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    for (ssize_t i = 0; i < n; i++)
        on_byte(b, c, block[i]);
    if (c->cancels && c->pieces >= 2)
        end(b, c, true);
    else if (n <= 0)
        end(b, c, false);
}

/* ---- the load ---- */

static client *idle_client(bench *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->at[i].at == IDLE)
            return &b->at[i];
    return NULL;
}

static bool run(bench *b)
{
    enum { SILENT_MS = 120000 }; /* longer than any prompt takes: it hangs */
    struct pollfd *fds = mem_alloc(mem_product(b->n, sizeof *fds));
    client **who = mem_alloc(mem_product(b->n, sizeof *who));
    int64_t total = (int64_t)b->o.requests + (int64_t)b->o.warmup;
    uint64_t next_ns = clock_ns();
    bool ok = true;
    while (ok && b->ended < total) {
        uint64_t now = clock_ns();
        client *c;
        while (ok && b->begun < total && (b->o.rate <= 0 || now >= next_ns) &&
               (c = idle_client(b))) {
            if (b->begun == (int64_t)b->o.warmup)
                b->start_ns = now;
            ok = begin(b, c);
            if (b->o.rate > 0)
                next_ns += (uint64_t)(-log(next_unit(b)) / b->o.rate * 1e9);
        }
        nfds_t n = 0;
        for (size_t i = 0; i < b->n; i++)
            if (b->at[i].at != IDLE) {
                fds[n] = (struct pollfd){.fd = b->at[i].fd,
                                         .events = b->at[i].at == SENDING ? POLLOUT : POLLIN};
                who[n++] = &b->at[i];
            }
        int ms = b->o.rate > 0 && b->begun < total
                     ? next_ns > now ? (int)((next_ns - now) / 1000000) : 1
                     : SILENT_MS;
        int ready = poll(fds, n, ms);
        if (ready < 0 && errno != EINTR)
            ok = false;
        if (ready == 0 && ms == SILENT_MS) {
            fprintf(stderr, "bench_serve: the server says nothing for %d s\n", SILENT_MS / 1000);
            ok = false;
        }
        for (nfds_t i = 0; i < n; i++)
            if (fds[i].revents)
                progress(b, who[i]);
    }
    mem_free(fds);
    mem_free(who);
    return ok;
}

/* ---- what came of it ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double at_share(const times *t, double q)
{
    return t->n ? t->at[(size_t)(q * (double)(t->n - 1) + 0.5)] : 0;
}

static void show(const char *name, times *t, json_writer *w)
{
    static const double q[] = {0.5, 0.9, 0.99, 1};
    static const char *const names[] = {"p50", "p90", "p99", "max"};
    if (t->n)
        qsort(t->at, t->n, sizeof *t->at, by_value);
    if (!w) {
        printf("%-22s n %7zu   p50 %9.2f   p90 %9.2f   p99 %9.2f   max %9.2f ms\n", name, t->n,
               at_share(t, 0.5), at_share(t, 0.9), at_share(t, 0.99), at_share(t, 1));
        return;
    }
    json_key_open(w, name, '{');
    json_key_int(w, "n", (int64_t)t->n);
    for (int i = 0; i < 4; i++)
        json_key_double(w, names[i], at_share(t, q[i]));
    json_close(w, '}');
}

static void report(bench *b)
{
    strbuf out = {0};
    json_writer json = {.out = &out}, *w = b->o.json ? &json : NULL;
    double seconds = (double)(clock_ns() - b->start_ns) / 1e9, rate = (double)b->tokens / seconds;
    if (w) {
        json_open(w, '{');
        json_key_double(w, "seconds", seconds);
        json_key_int(w, "requests", b->ended);
        json_key_int(w, "cancelled", b->cancelled);
        json_key_int(w, "refused", b->refused);
        json_key_int(w, "failed", b->failed);
        json_key_int(w, "tokens", b->tokens);
        json_key_int(w, "answer_min", b->shortest);
        json_key_int(w, "answer_max", b->longest);
        json_key_int(w, "prompt_tokens", b->prompt);
        json_key_double(w, "tokens_per_s", rate);
    } else {
        printf("serve  clients %d  rate %g  prompt %d+%d  answer %d: %.1f tokens/s, %lld requests "
               "in %.2f s, %lld cancelled, %lld refused, "
               "%lld failed\n",
               (int)b->o.clients, b->o.rate, (int)b->o.shared, (int)b->o.prompt, (int)b->o.answer,
               rate, (long long)b->ended, seconds, (long long)b->cancelled, (long long)b->refused,
               (long long)b->failed);
        printf("answers of %lld to %lld tokens; with prompts %.1f tokens/s\n",
               (long long)b->shortest, (long long)b->longest,
               (double)(b->tokens + b->prompt) / seconds);
    }
    show("first_token_ms", &b->first, w);
    show("inter_token_ms", &b->between, w);
    show("request_ms", &b->whole, w);
    if (w) {
        json_close(w, '}');
        printf("%s\n", out.p);
    }
    strbuf_free(&out);
}

static bool read_flags(settings *o, int argc, char **argv)
{
    const struct {
        const char *name;
        double *number;
        const char **text;
        double least;
    } flags[] = {
        {"--host", NULL, &o->host, 0},       {"--key", NULL, &o->key, 0},
        {"--model", NULL, &o->model, 0},     {"--port", &o->port, NULL, 1},
        {"--clients", &o->clients, NULL, 1}, {"--requests", &o->requests, NULL, 1},
        {"--rate", &o->rate, NULL, 0},       {"--prompt", &o->prompt, NULL, 1},
        {"--answer", &o->answer, NULL, 1},   {"--shared", &o->shared, NULL, 0},
        {"--vocab", &o->vocab, NULL, 101},   {"--seed", &o->seed, NULL, 0},
        {"--cancel", &o->cancel, NULL, 0},   {"--bad", &o->bad, NULL, 0},
        {"--warmup", &o->warmup, NULL, 0},
    };
    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        if (strcmp(argv[i], "--json") == 0) {
            o->json = true;
            continue;
        }
        while (k < sizeof flags / sizeof *flags && strcmp(argv[i], flags[k].name) != 0)
            k++;
        if (k == sizeof flags / sizeof *flags || i + 1 == argc)
            return false;
        char *stop = NULL;
        i++;
        if (flags[k].text)
            *flags[k].text = argv[i];
        else
            *flags[k].number = strtod(argv[i], &stop);
        if (flags[k].number && (*stop || !(*flags[k].number >= flags[k].least)))
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    bench b = {.o = {.host = "127.0.0.1",

                     .clients = 8,
                     .requests = 64,
                     .prompt = 128,
                     .answer = 64,
                     .vocab = 4000,
                     .seed = 1}};
    signal(SIGPIPE, SIG_IGN); /* a server that goes is a failed request */
    if (!read_flags(&b.o, argc, argv)) {
        fprintf(stderr, "usage: bench_serve [--host A] [--port N] [--key K] [--model M] [--clients "
                        "N] [--requests N] [--rate PER_S] [--prompt N] "
                        "[--answer N] [--shared N] [--vocab N] [--seed N] [--cancel SHARE] [--bad "
                        "SHARE] [--warmup N] [--json]\n");
        return 2;
    }
    if (b.o.port == 0) { /* `./dev bench` runs every program here as it is */
        printf("bench_serve: no server; start `weft serve` and name its --port\n");
        return 0;
    }
    b.n = (size_t)b.o.clients;
    b.random = (uint64_t)b.o.seed * 7919;
    b.at = mem_alloc(mem_product(b.n, sizeof *b.at));
    memset(b.at, 0, b.n * sizeof *b.at);
    b.start_ns = clock_ns();
    bool ok = run(&b);
    if (ok)
        report(&b);
    for (size_t i = 0; i < b.n; i++) {
        strbuf_free(&b.at[i].out);
        strbuf_free(&b.at[i].line);
        strbuf_free(&b.at[i].head);
    }
    mem_free(b.at);
    VEC_FREE(&b.first);
    VEC_FREE(&b.between);
    VEC_FREE(&b.whole);
    return ok && b.failed == 0 ? 0 : 1;
}
