/* http_server.c - the server on libmicrohttpd: routes, keys, limits, and all answers that are there at once. */
#include "runtime/http/http_impl.h"

#include "runtime/base/json_write.h"
#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include "runtime/http/serve_error.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* clang-format off */
static const route_row routes[] = {
#define ROUTE(method, path, what, key, kind) {method, path, ROUTE_##what, key, (serve_kind)(kind)},
#include "runtime/http/http_routes.def"
#undef ROUTE
};
/* clang-format on */

enum { ROUTES_N = sizeof routes / sizeof *routes, STOP_SEND_MS = 2000 };

/* ---- sending ---- */

static enum MHD_Result send_with(call *c, int status, const char *type, str body,
                                 const char *const *headers)
{
    struct MHD_Response *r =
        MHD_create_response_from_buffer(body.n, (void *)(uintptr_t)body.p, MHD_RESPMEM_MUST_COPY);
    if (!r)
        return MHD_NO;
    if (type)
        MHD_add_response_header(r, "Content-Type", type);
    if (!headers)
        MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    if (type && strcmp(type, "image/svg+xml") == 0) /* looked at by itself, it is a document */
        MHD_add_response_header(r, "Content-Security-Policy",
                                "default-src 'none'; style-src 'unsafe-inline'; sandbox");
    for (; headers && headers[0]; headers += 2)
        MHD_add_response_header(r, headers[0], headers[1]);
    if (status == 401)
        MHD_add_response_header(r, "WWW-Authenticate", "Bearer");
    if (status == 429 || status == 503)
        MHD_add_response_header(r, "Retry-After", "1");
    if (status == 405)
        MHD_add_response_header(
            r, "Allow", strcmp(c->route->method, "GET") == 0 ? "GET, HEAD" : c->route->method);
    enum MHD_Result ok = MHD_queue_response(c->conn, (unsigned)status, r);
    MHD_destroy_response(r);
    atomic_fetch_add(&c->s->answered[status / 100 % STATUS_CLASSES], 1);
    c->state = CALL_ANSWERED;
    return ok;
}

enum MHD_Result call_send(call *c, int status, const char *type, str body)
{
    return send_with(c, status, type, body, NULL);
}

enum MHD_Result call_send_error(call *c, str param)
{
    strbuf json = {0};
    int status = serve_error_write(c->dg, param, &json);
    enum MHD_Result ok = call_send(c, status, "application/json", strbuf_view(&json));
    strbuf_free(&json);
    return ok;
}

static enum MHD_Result send_fail(call *c, weft_code code, const char *message)
{
    strbuf json = {0};
    int status = serve_error_say(code, str_of(message), (str){0}, &json);
    enum MHD_Result ok = call_send(c, status, "application/json", strbuf_view(&json));
    strbuf_free(&json);
    return ok;
}

enum MHD_Result call_send_short(http_server *s, struct MHD_Connection *conn)
{
    static const char text[] =
        "{\"error\":{\"message\":\"memory is short\",\"type\":\"server_error\","
        "\"param\":null,\"code\":\"out_of_memory\"}}";
    struct MHD_Response *r = MHD_create_response_from_buffer(
        sizeof text - 1, (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
    if (!r)
        return MHD_NO;
    MHD_add_response_header(r, "Content-Type", "application/json");
    MHD_add_response_header(r, "Retry-After", "1");
    enum MHD_Result ok = MHD_queue_response(conn, 503, r);
    MHD_destroy_response(r);
    atomic_fetch_add(&s->answered[5], 1);
    return ok;
}

/* ---- answers that are there at once ---- */

static weft_status not_served(call *c)
{
    return weft_fail(c->dg, W1831, WEFT_NOWHERE, "%s is not served here", c->route->path);
}

static weft_status answer_small(call *c, strbuf *out)
{
    serve_backend *b = &c->s->b;
    weft_status (*fn)(void *, weft_diag *, const serve_request *, strbuf *) =
        c->route->kind == SERVE_TOKENIZE     ? b->tokenize
        : c->route->kind == SERVE_DETOKENIZE ? b->detokenize
                                             : b->render;
    if (!fn)
        return not_served(c);
    WEFT_TRY(serve_request_read(c->dg, c->a, c->route->kind,
                                c->body.n ? strbuf_view(&c->body) : STR(""), &b->rules, &c->rq));
    return fn(b->ctx, c->dg, &c->rq, out);
}

static weft_status answer_page(call *c, weft_status (*fn)(void *, weft_diag *, strbuf *),
                               strbuf *out)
{
    return fn ? fn(c->s->b.ctx, c->dg, out) : not_served(c);
}

static void own_metrics(const http_server *s, strbuf *out)
{
    strbuf_put(out,
               STR("# HELP weft_http_answers_total Answers by the first digit of their status.\n"
                   "# TYPE weft_http_answers_total counter\n"));
    for (int i = 2; i < STATUS_CLASSES; i++)
        strbuf_add(out, "weft_http_answers_total{status=\"%dxx\"} %llu\n", i,
                   (unsigned long long)atomic_load(&s->answered[i]));
    strbuf_add(out,
               "# HELP weft_http_requests_under_way Requests whose answers are being made.\n"
               "# TYPE weft_http_requests_under_way gauge\nweft_http_requests_under_way %d\n",
               atomic_load(&s->under_way));
}

static enum MHD_Result send_page(call *c)
{
    const http_options *o = &c->s->o;
    if (!o->page)
        return send_fail(c, W1831, "this server has no page");
    const char *known = MHD_lookup_connection_value(c->conn, MHD_HEADER_KIND, "If-None-Match");
    bool same = known && o->page_etag && strcmp(known, o->page_etag) == 0;
    const char *headers[64] = {0};
    size_t n = 0;
    for (const char *const *h = o->page_headers; h && h[0] && n < 60; h += 2, n += 2) {
        headers[n] = h[0];
        headers[n + 1] = h[1];
    }
    if (o->page_etag) {
        headers[n] = "ETag";
        headers[n + 1] = o->page_etag;
    }
    return send_with(c, same ? 304 : 200, NULL, same ? STR("") : (str){o->page, o->page_n},
                     headers);
}

static enum MHD_Result send_model(call *c)
{
    const serve_rules *r = &c->s->b.rules;
    serve_request unused;
    strbuf body = {0}, out = {0};
    json_writer w = {.out = &body};
    /* The same look-up as a request's, so that names mean the same; 404 has the list. */
    json_open(&w, '{');
    json_key_text(&w, "model", c->path_rest);
    json_key_text(&w, "content", "");
    json_close(&w, '}');
    weft_status st =
        serve_request_read(c->dg, c->a, SERVE_TOKENIZE, strbuf_view(&body), r, &unused);
    strbuf_free(&body);
    if (st != WEFT_OK)
        return call_send_error(c, STR("model"));
    w = (json_writer){.out = &out};
    json_open(&w, '{');
    json_key_text(&w, "id", c->path_rest);
    json_key_text(&w, "object", "model");
    json_key_int(&w, "created", c->s->started);
    json_key_text(&w, "owned_by", "weft");
    json_close(&w, '}');
    enum MHD_Result ok = call_send(c, 200, "application/json", strbuf_view(&out));
    strbuf_free(&out);
    return ok;
}

static enum MHD_Result send_now(call *c)
{
    http_server *s = c->s;
    strbuf out = {0};
    const char *type = "application/json";
    int status = 200;
    weft_status st = WEFT_OK;
    switch (c->route->what) {
    case ROUTE_GENERATE:
        return call_generate(c);
    case ROUTE_PAGE:
        return send_page(c);
    case ROUTE_MODEL_ONE:
        return send_model(c);
    case ROUTE_SMALL:
        st = answer_small(c, &out);
        break;
    case ROUTE_MODELS:
        answer_models(&s->b.rules, s->started, s->b.context, &out);
        break;
    case ROUTE_HEALTH:
        status = atomic_load(&s->draining) ? 503 : 200;
        answer_text("status", status == 200 ? STR("ok") : STR("shutting down"), &out);
        break;
    case ROUTE_METRICS:
        type = "text/plain; version=0.0.4; charset=utf-8";
        own_metrics(s, &out);
        if (s->b.metrics)
            s->b.metrics(s->b.ctx, &out);
        break;
    case ROUTE_STATE:
        if (s->b.state)
            s->b.state(s->b.ctx, s->keys.n ? &s->keys : NULL, &out);
        else
            st = not_served(c);
        break;
    case ROUTE_MODEL_FILE:
        st = answer_page(c, s->b.model, &out);
        break;
    case ROUTE_GRAPH:
        type = "image/svg+xml";
        st = answer_page(c, s->b.graph, &out);
        break;
    case ROUTE_PROFILE:
        st = answer_page(c, s->b.profile, &out);
        break;
    }
    enum MHD_Result ok = st != WEFT_OK
                             ? call_send_error(c, c->rq.fault_param.p ? c->rq.fault_param : STR(""))
                             : call_send(c, status, type, out.n ? strbuf_view(&out) : STR(""));
    strbuf_free(&out);
    return ok;
}

/* ---- a request comes in ---- */

static const route_row *find_route(const char *path, const char **out_rest)
{
    for (size_t i = 0; i < ROUTES_N; i++) {
        size_t n = strlen(routes[i].path);
        bool open_end = n > 1 && routes[i].path[n - 1] == '/';
        if (strcmp(path, routes[i].path) == 0
                ? !open_end
                : open_end && strncmp(path, routes[i].path, n) == 0 && path[n]) {
            *out_rest = path + n;
            return &routes[i];
        }
    }
    return NULL;
}

/* A browser names the page that asks. Others than this server's own pages have no business here: without keys, any page that a
 * user looks at could use a server that listens on his own machine alone. */
static bool same_origin(struct MHD_Connection *conn)
{
    const char *origin = MHD_lookup_connection_value(conn, MHD_HEADER_KIND, "Origin");
    const char *host = MHD_lookup_connection_value(conn, MHD_HEADER_KIND, "Host");
    if (!origin)
        return true;
    const char *at = strstr(origin, "://");
    return at && host && strcmp(at + 3, host) == 0;
}

/* The name in a Host header, without its port. */
static str host_name(const char *host)
{
    if (host[0] == '[') { /* an IPv6 address */
        const char *end = strchr(host, ']');
        return end ? (str){host + 1, (size_t)(end - host - 1)} : str_of(host);
    }
    return (str){host, strcspn(host, ":")};
}

/* A page can be loaded from a name that is made to point at this machine afterwards; to a browser it is then of this server's own origin. */
static bool host_known(const http_server *s, struct MHD_Connection *conn)
{
    const char *host = MHD_lookup_connection_value(conn, MHD_HEADER_KIND, "Host");
    char name[256];
    unsigned char address[sizeof(struct in6_addr)];
    if (!host)
        return true; /* no browser */
    str h = host_name(host);
    if (h.n >= sizeof name)
        return false;
    memcpy(name, h.p, h.n);
    name[h.n] = 0;
    if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1 ||
        strcasecmp(name, "localhost") == 0 || strcasecmp(name, s->o.host) == 0)
        return true;
    for (const char *const *n = s->o.names; n && *n; n++)
        if (strcasecmp(name, *n) == 0)
            return true;
    return false;
}

/* What can be refused by the head alone. */
static weft_status check_head(call *c, const char *path, const char *method)
{
    http_server *s = c->s;
    bool head = strcmp(method, "HEAD") == 0; /* libmicrohttpd leaves out the body */
    c->route = find_route(path, &c->path_rest);
    if (!c->route)
        return weft_fail(c->dg, W1831, WEFT_NOWHERE, "there is no such route");
    if (strcmp(method, c->route->method) != 0 && !(head && strcmp(c->route->method, "GET") == 0))
        return weft_fail(c->dg, W1832, WEFT_NOWHERE, "this route does not take this method");
    if (!same_origin(c->conn))
        return weft_fail(c->dg, W1838, WEFT_NOWHERE, "a page of another origin asks");
    if (!s->keys.n && !host_known(s, c->conn))
        return weft_fail(
            c->dg, W1838, WEFT_NOWHERE,
            "the name in `Host` is not known to be this server's: ask by its address, or "
            "start it with --allow-host");
    if (s->keys.n && c->route->key) {
        c->key = keys_find(&s->keys,
                           MHD_lookup_connection_value(c->conn, MHD_HEADER_KIND, "Authorization"));
        if (c->key < 0)
            return weft_fail(
                c->dg, W1827, WEFT_NOWHERE,
                "a key is needed: the header `Authorization: Bearer KEY` has none that is known");
    }
    return WEFT_OK;
}

static void take_body(call *c, const char *data, size_t n)
{
    /* What is refused or too much is not kept, but read: a client that still sends sees no answer. */
    if (c->refused)
        return;
    if (c->body.n + n > c->s->b.rules.body_max)
        c->too_large = true;
    else
        strbuf_put(&c->body, (str){data, n});
}

static enum MHD_Result take_request(http_server *s, struct MHD_Connection *conn, const char *url,
                                    const char *method, const char *data, size_t *data_n,
                                    void **con_cls)
{
    call *c = *con_cls;
    if (!c) {
        c = *con_cls = call_create(s, conn);
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        c->watch = info ? info->socket_context : NULL;
        c->refused = check_head(c, url, method) != WEFT_OK;
        return MHD_YES;
    }
    if (c->state == CALL_WAITING)
        return call_resumed(c);
    if (*data_n) {
        if (c->state == CALL_READING)
            take_body(c, data, *data_n);
        *data_n = 0;
        return MHD_YES;
    }
    if (c->state == CALL_ANSWERED)
        return MHD_YES;
    watch_rest(s, c->watch);
    if (c->too_large)
        (void)weft_fail(c->dg, W1829, WEFT_NOWHERE,
                        "the body has more than %zu bytes, which is the limit",
                        s->b.rules.body_max);
    return c->refused || c->too_large ? call_send_error(c, STR("")) : send_now(c);
}

/* Where memory is short in the middle of it, the client hears of that, and the server goes on. */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *conn, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_n, void **con_cls)
{
    call *const before = *con_cls;
    (void)version;
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0) {
        *con_cls = before; /* a call that was just made is gone */
        if (before && before->state == CALL_ANSWERED)
            return MHD_NO;
        if (before)
            before->state = CALL_ANSWERED;
        *data_n = 0;
        return call_send_short(cls, conn);
    }
    return take_request(cls, conn, url, method, data, data_n, con_cls);
}

static void on_done(void *cls, struct MHD_Connection *conn, void **con_cls,
                    enum MHD_RequestTerminationCode why)
{
    call *c = *con_cls;
    (void)cls;
    (void)conn;
    (void)why;
    if (c)
        call_leave(c);
    *con_cls = NULL;
}

static void on_connection(void *cls, struct MHD_Connection *conn, void **socket_context,
                          enum MHD_ConnectionNotificationCode what)
{
    http_server *s = cls;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
        *socket_context = info ? watch_add(s, info->connect_fd) : NULL;
    } else if (*socket_context) {
        watch_remove(s, *socket_context);
        *socket_context = NULL;
    }
}

/* libmicrohttpd's complaints are about clients; what matters has a status. */
static void on_log(void *cls, const char *fmt, va_list ap)
{
    (void)cls;
    (void)fmt;
    (void)ap;
}

/* ---- listening ---- */

static weft_status find_address(weft_diag *dg, const http_options *o, struct sockaddr_storage *out,
                                socklen_t *out_n)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV},
                    *list = NULL;
    char port[16];
    snprintf(port, sizeof port, "%d", o->port);
    int why = getaddrinfo(o->host, port, &hints, &list);
    if (why != 0)
        return weft_fail(dg, W1834, WEFT_NOWHERE, "%s: %s", o->host, gai_strerror(why));
    memcpy(out, list->ai_addr, list->ai_addrlen);
    *out_n = list->ai_addrlen;
    freeaddrinfo(list);
    return WEFT_OK;
}

/* Our own socket: libmicrohttpd does not say why it could not have one. */
static weft_status open_socket(weft_diag *dg, http_server *s, int *out_fd)
{
    struct sockaddr_storage addr = {0};
    socklen_t n = 0;
    int one = 1;
    WEFT_TRY(find_address(dg, &s->o, &addr, &n));
    int fd = socket(addr.ss_family, SOCK_STREAM, 0);
    bool ok = fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 &&
              fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
              setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
              bind(fd, (struct sockaddr *)&addr, n) == 0 && listen(fd, 511) == 0;
    int why = errno;
    n = sizeof addr;
    if (!ok || getsockname(fd, (struct sockaddr *)&addr, &n) != 0) {
        if (fd >= 0)
            close(fd);
        weft_status st = weft_fail(dg, W1834, WEFT_NOWHERE, "%s, port %d: %s", s->o.host, s->o.port,
                                   strerror(why));
        if (why == EADDRINUSE)
            weft_note(dg, "another program listens there; choose another port");
        return st;
    }
    s->port = ntohs(addr.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&addr)->sin6_port
                                               : ((struct sockaddr_in *)&addr)->sin_port);
    *out_fd = fd;
    return WEFT_OK;
}

static void fill_options(http_options *o)
{
    o->host = o->host ? o->host : "127.0.0.1";
    o->threads = o->threads ? o->threads : 1;
    o->connections_max = o->connections_max ? o->connections_max : 256;
    o->receive_s = o->receive_s ? o->receive_s : 30;
    o->header_max = o->header_max ? o->header_max : 32768;
    o->unread_max = o->unread_max ? o->unread_max : (size_t)8 << 20;
}

static weft_status start(weft_diag *dg, http_server *s)
{
    int fd = -1;
    if (s->o.key_file)
        WEFT_TRY(keys_read(dg, s->o.key_file, &s->keys));
    WEFT_TRY(watch_start(dg, s));
    WEFT_TRY(open_socket(dg, s, &fd));
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    /* A pool of one thread is none. Limits are divided among threads, so none may come out at 0. */
    unsigned pool = s->o.threads > 1 ? (unsigned)s->o.threads : 0;
    s->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, on_done, s,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)s->o.connections_max, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        (unsigned)s->o.per_address_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT, s->o.header_max,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)s->o.receive_s, MHD_OPTION_THREAD_POOL_SIZE, pool,
        MHD_OPTION_END);
    if (s->daemon)
        return WEFT_OK;
    close(fd);
    return weft_fail(dg, W1834, WEFT_NOWHERE, "libmicrohttpd %s cannot start: %s",
                     MHD_get_version(), strerror(errno));
}

weft_status http_server_start(weft_diag *dg, const http_options *o, const serve_backend *b,
                              http_server **out_s)
{
    http_server *s = mem_alloc(sizeof *s);
    *s = (http_server){.o = *o, .b = *b, .wake = WAKE_NONE, .started = (int64_t)time(NULL)};
    fill_options(&s->o);
    signal(SIGPIPE, SIG_IGN); /* a client that goes is no reason to end */
    weft_status st = start(dg, s);
    if (st == WEFT_OK)
        *out_s = s;
    else
        http_server_stop(s);
    return st;
}

int http_server_port(const http_server *s)
{
    return s->port;
}

const api_keys *http_server_keys(const http_server *s)
{
    return s->keys.n ? &s->keys : NULL;
}

void http_server_drain(http_server *s)
{
    atomic_store(&s->draining, true);
}

void http_server_stop(http_server *s)
{
    if (!s)
        return;
    atomic_store(&s->draining, true);
    /* Suspended connections must not be there when the daemon stops: their answers end first. */
    while (atomic_load(&s->under_way) > 0)
        usleep(1000);
    for (int i = 0; i < STOP_SEND_MS && atomic_load(&s->unsent) > 0; i++)
        usleep(1000);
    if (s->daemon)
        MHD_stop_daemon(s->daemon);
    if (s->watch.next)
        watch_stop(s);
    keys_free(&s->keys);
    mem_free(s);
}
