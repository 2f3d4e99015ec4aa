/* http_server.h - the server: sockets, keys, limits; requests to a backend, its events to clients.
 *
 *     http_server_start(dg, &options, &backend, &s);     serves until
 *     http_server_stop(s);                               which the backend's drain should come before
 *
 * With libmicrohttpd; without it http_server_start is W1835. */
#ifndef WEFT_RUNTIME_HTTP_HTTP_SERVER_H
#define WEFT_RUNTIME_HTTP_HTTP_SERVER_H

#include "runtime/http/keys.h"
#include "runtime/http/serve_backend.h"

typedef struct {
    const char *host; /* an address to listen at; NULL: 127.0.0.1 */
    int port;         /* 0: the system chooses */
    /* Without keys a request's Host has to be an address, localhost, `host`, or one of these: another name may be one that a stranger's page
     * made point here. Ends with NULL; NULL: none. */
    const char *const *names;
    const char *key_file; /* NULL: no keys */
    int threads;          /* that read and write; 0: 1 */
    int connections_max;  /* 0: 256 */
    int per_address_max;  /* connections of one address; 0: no limit */
    int receive_s; /* a request must be there so long after its connection, or the answer before it; 0: 30 */
    size_t header_max; /* bytes of a request's head; 0: 32768 */
    size_t unread_max; /* bytes of a stream that its client does not read; 0: 8 MiB */
    const char *
        page; /* GET /: its bytes; NULL: none. Sent with page_headers, pairs of name and value, NULL at the end */
    size_t page_n;
    const char *page_etag;
    const char *const *page_headers;
} http_options;

typedef struct http_server http_server;

/* W1834 cannot listen, W1835 no libmicrohttpd, W1837 a bad file of keys; W1836 is a warning. */
weft_status http_server_start(weft_diag *dg, const http_options *o, const serve_backend *b,
                              http_server **out_s) WEFT_MUST_USE;
int http_server_port(const http_server *s);
/* Those of its file: key i has share i + 1. NULL: none. */
const api_keys *http_server_keys(const http_server *s);
/* From now on requests for work are refused (503); what is being answered goes on. */
void http_server_drain(http_server *s);
/* Waits for answers under way: each has to end, so cancel or drain the backend before. NULL is fine. */
void http_server_stop(http_server *s);

#endif
