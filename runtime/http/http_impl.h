/* http_impl.h - the inside of the server with libmicrohttpd. Private to http_server.c, http_call.c and http_watch.c.
 *
 * Threads: libmicrohttpd's read requests and write answers; the backend's bring events; the watcher waits for clients that go
 * and for requests that do not come. A call is shared by the first two: `lock` guards what is marked so, the rest is the HTTP
 * thread's, or does not change once the work has started. */
#ifndef WEFT_RUNTIME_HTTP_HTTP_IMPL_H
#define WEFT_RUNTIME_HTTP_HTTP_IMPL_H

#include "runtime/base/mem_scope.h"
#include "runtime/http/http_server.h"
#include "runtime/base/wake.h"
#include "runtime/http/keys.h"
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

typedef enum {
    ROUTE_GENERATE,
    ROUTE_SMALL,
    ROUTE_MODELS,
    ROUTE_MODEL_ONE,
    ROUTE_HEALTH,
    ROUTE_METRICS,
    ROUTE_STATE,
    ROUTE_MODEL_FILE,
    ROUTE_GRAPH,
    ROUTE_PROFILE,
    ROUTE_PAGE,
} route_what;

typedef struct {
    const char *method, *path;
    route_what what;
    bool key;
    serve_kind kind;
} route_row;

enum { STATUS_CLASSES = 6 }; /* 1xx to 5xx, by their first digit */

typedef struct call call;

/* A connection, for the watcher. */
typedef struct watched {
    struct watched *next, *before;
    int fd;
    call *waits;          /* its client waits for an answer; NULL: a request is to come */
    uint64_t deadline_ns; /* by which it has to be there */
} watched;

struct http_server {
    http_options o;
    serve_backend b;
    api_keys keys;
    struct MHD_Daemon *daemon;
    int port;
    int64_t started;
    atomic_bool draining;
    atomic_uint_fast64_t ids;
    atomic_uint_fast64_t answered[STATUS_CLASSES];
    atomic_int under_way; /* calls whose work has started and not ended */
    atomic_int unsent;    /* calls whose work has started and whose answer is not sent */

    pthread_t watcher;
    bool watching;
    wake_pipe wake;
    pthread_mutex_t watch_lock;
    watched watch; /* a ring of all connections; by watch_lock */
    bool watch_stop;
};

typedef enum { CALL_READING, CALL_WAITING, CALL_ANSWERED } call_state;

struct call {
    http_server *s;
    struct MHD_Connection *conn;
    watched *watch;
    const route_row *route;
    const char *path_rest; /* behind the path of a route that ends with / */
    call_state state;
    strbuf body;
    bool refused; /* by its head; c->dg says why */
    bool too_large;
    bool counted; /* in unsent */
    int key;      /* -1: none */

    weft_diag *dg;
    arena *a;
    serve_request rq;
    answer *answer;  /* by lock, once started; NULL where memory for it was short */
    size_t n_choice; /* that the work has */
    serve_work *work;
    _Atomic int holders; /* the HTTP side, and the backend while work is under way */

    pthread_mutex_t lock;
    mem_scope scope; /* by lock: holds all memory of `answer` and `out`, for as long as they live */
    strbuf out;      /* by lock: what is to be sent */
    size_t out_at;   /* by lock */
    bool spoke;      /* by lock: an event came */
    bool finished;   /* by lock: the answer has its end, and what still comes is left out */
    bool complete;   /* by lock: all of it is in `out` */
    bool broken;     /* by lock: memory for the answer was short, and it is gone */
    size_t n_ended;  /* by lock: choices */
    int status;      /* by lock */
    bool suspended;  /* by lock */
    bool gone;       /* by lock: nobody reads */
};

/* http_call.c */
call *call_create(http_server *s, struct MHD_Connection *conn);
void call_release(call *c);
enum MHD_Result call_generate(call *c); /* the body is there */
enum MHD_Result call_resumed(call *c);  /* the connection goes on */
void call_leave(call *c);               /* the client went, or all is sent */
void call_hang_up(call *c);             /* by the watcher */

/* http_server.c */
enum MHD_Result call_send(call *c, int status, const char *type, str body);
enum MHD_Result call_send_error(call *c, str param); /* the first error of c->dg */
/* Memory is short: 503, with nothing that takes any of ours. */
enum MHD_Result call_send_short(http_server *s, struct MHD_Connection *conn);

/* http_watch.c */
weft_status watch_start(weft_diag *dg, http_server *s) WEFT_MUST_USE;
void watch_stop(http_server *s);
watched *watch_add(http_server *s, int fd);
void watch_remove(http_server *s, watched *w);
void watch_rest(http_server *s, watched *w); /* a request is there: no deadline for it any more */
void watch_wait(http_server *s, watched *w,
                call *c); /* an answer is being made; NULL: a request is to come */

#endif
