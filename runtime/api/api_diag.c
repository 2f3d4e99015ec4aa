/* api_diag.c - the public interface: version, messages, and what all its calls share. */
#include "runtime/api/api_impl.h"

#include "runtime/base/mem.h"

const char *weft_version(void)
{
    return WEFT_VERSION;
}

const char *weft_status_meaning(weft_status st)
{
    return weft_status_text(st);
}

void weft_free(void *p)
{
    mem_free(p);
}

weft_status api_lacks(weft_diag *dg, const char *call, const char *what)
{
    return dg ? weft_fail(dg, W1904, WEFT_NOWHERE, "%s was called without %s", call, what)
              : WEFT_ERR_USAGE;
}

void api_give(void *to, const void *from, size_t from_size)
{
    size_t size;
    memcpy(&size, to, sizeof size);
    memset(to, 0, size);
    memcpy(to, from, size < from_size ? size : from_size);
}

/* Options of a caller who was compiled with another weft.h: what it has not is 0, and what it has beyond ours must be. */
weft_status api_take(weft_diag *dg, const char *call, const void *from, void *to, size_t to_size)
{
    size_t size = 0;
    memset(to, 0, to_size);
    if (from)
        memcpy(&size, from, sizeof size);
    if (from && size < sizeof size)
        return weft_fail(dg, W1904, WEFT_NOWHERE,
                         "%s: the options' size is %zu; set it to their sizeof", call, size);
    const unsigned char *bytes = from;
    for (size_t i = to_size; i < size; i++)
        if (bytes[i])
            return weft_fail(dg, W1904, WEFT_NOWHERE,
                             "%s: the options are %zu bytes of a newer weft.h and set what this "
                             "library, which knows %zu, has not",
                             call, size, to_size);
    if (from)
        memcpy(to, from, size < to_size ? size : to_size);
    memcpy(to, &to_size, sizeof to_size);
    return WEFT_OK;
}

weft_status api_no_memory(weft_diag *dg, const mem_scope *scope)
{
    return dg ? diag_fail_memory(dg, scope->bytes) : WEFT_ERR_LIMIT;
}

/* ---- messages ---- */

weft_diag *weft_diag_create(void)
{
    API_SCOPE_OR(NULL);
    return diag_create();
}

void weft_diag_destroy(weft_diag *dg)
{
    diag_destroy(dg);
}

const char *weft_diag_text(weft_diag *dg)
{
    API_SCOPE_OR("weft: error[W1110]: not enough memory to print the messages\n");
    return diag_shown(dg);
}

const char *weft_diag_json(weft_diag *dg)
{
    API_SCOPE_OR(
        "[{\"code\":\"W1110\",\"severity\":\"error\",\"message\":\"not enough memory to print "
        "the messages\"}]");
    return diag_shown_json(dg);
}

size_t weft_diag_count(const weft_diag *dg)
{
    return diag_count(dg);
}

bool weft_diag_at(const weft_diag *dg, size_t i, weft_message *out_message)
{
    if (i >= diag_count(dg) || out_message->size < sizeof out_message->size)
        return false;
    diag_entry e = diag_at(dg, i);
    const diag_row *row = diag_row_of(e.code);
    api_give(out_message,
             &(weft_message){out_message->size, row->name, row->status, e.severity == DIAG_ERROR,
                             e.message.p},
             sizeof(weft_message));
    return true;
}

void weft_diag_clear(weft_diag *dg)
{
    diag_reset(dg);
}

/* ---- cancelling ---- */

weft_cancel *weft_cancel_create(void)
{
    API_SCOPE_OR(NULL);
    weft_cancel *c = mem_alloc(sizeof *c);
    atomic_init(&c->flag.set, 0);
    return c;
}

void weft_cancel_destroy(weft_cancel *c)
{
    mem_free(c);
}

void weft_cancel_set(weft_cancel *c)
{
    cancel_ask(&c->flag, true);
}

void weft_cancel_clear(weft_cancel *c)
{
    cancel_ask(&c->flag, false);
}
