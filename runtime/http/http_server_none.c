/* http_server_none.c - a Weft that was built without libmicrohttpd. */
#include "runtime/http/http_server.h"

weft_status http_server_start(weft_diag *dg, const http_options *o, const serve_backend *b,
                              http_server **out_s)
{
    (void)o;
    (void)b;
    (void)out_s;
    return weft_fail(dg, W1835, WEFT_NOWHERE,
                     "libmicrohttpd was not there when this Weft was built");
}

int http_server_port(const http_server *s)
{
    (void)s;
    return -1;
}

const api_keys *http_server_keys(const http_server *s)
{
    (void)s;
    return NULL;
}

void http_server_drain(http_server *s)
{
    (void)s;
}

void http_server_stop(http_server *s)
{
    (void)s;
}
