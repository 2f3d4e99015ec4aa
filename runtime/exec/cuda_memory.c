/* cuda_memory.c - the driver called in the card's context: errors, memory, streams, and bytes on their way to the card. */
#include "runtime/exec/cuda_impl.h"

#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include <inttypes.h>

/* ---- calls ---- */

weft_status cuda_fail(weft_diag *dg, const cuda_driver *driver, const char *place, cu_result r,
                      const char *doing)
{
    const char *name = NULL, *text = NULL;
    if (driver->cuGetErrorName(r, &name) != CU_OK || !name)
        name = "unknown error";
    if (driver->cuGetErrorString(r, &text) != CU_OK || !text)
        text = "the driver does not know it";
    return weft_fail(dg, W1610, WEFT_NOWHERE, "%s failed %s: %s (%s)", doing, place, name, text);
}

weft_status cuda_enter(weft_diag *dg, const cuda_device *d)
{
    cu_result r = d->driver->cuCtxPushCurrent(d->context);
    return r == CU_OK ? WEFT_OK : cuda_fail(dg, d->driver, d->place, r, "using the card");
}

weft_status cuda_leave(weft_diag *dg, const cuda_device *d, cu_result r, const char *doing)
{
    cu_context was;
    d->driver->cuCtxPopCurrent(&was);
    return r == CU_OK ? WEFT_OK : cuda_fail(dg, d->driver, d->place, r, doing);
}

/* For what is released: a card that is lost has nothing to say any more. */
static bool enter_quietly(const cuda_device *d)
{
    return d->driver->cuCtxPushCurrent(d->context) == CU_OK;
}

static void leave_quietly(const cuda_device *d)
{
    cu_context was;
    d->driver->cuCtxPopCurrent(&was);
}

/* ---- memory ---- */

static void release(cuda_block *b)
{
    const cuda_driver *driver = b->d->driver;
    if (enter_quietly(b->d)) {
        if (b->host)
            driver->cuMemFreeHost(b->p);
        else
            driver->cuMemFree(cuda_at(b->p));
        leave_quietly(b->d);
    }
    mem_free(b);
}

/* Out of the list of its device, and released. */
static void drop(void *ctx)
{
    cuda_block *b = ctx;
    cuda_block **at = &b->d->held;
    pthread_mutex_lock(&b->d->lock);
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    pthread_mutex_unlock(&b->d->lock);
    release(b);
}

static weft_status refuse(weft_diag *dg, cuda_device *d, size_t bytes, bool host)
{
    memory_room room = {0};
    if (host)
        return weft_fail(dg, W1110, WEFT_NOWHERE,
                         "%zu bytes of memory that a card reads cannot be allocated", bytes);
    if (d->base.kind->room(dg, &d->base, &room) != WEFT_OK)
        return WEFT_ERR_DEVICE;
    return weft_fail(dg, W0902, WEFT_NOWHERE,
                     "%zu bytes of memory cannot be allocated: %" PRIu64 " are available %s", bytes,
                     room.bytes, room.within);
}

weft_status cuda_take(weft_diag *dg, cuda_device *d, size_t bytes, bool host, void **out_p)
{
    *out_p = NULL;
    if (bytes == 0)
        return WEFT_OK;
    cuda_block *b = mem_try_kept(sizeof *b);
    if (!b)
        return refuse(dg, d, bytes, true);
    *b = (cuda_block){.d = d, .host = host};
    cu_ptr card = 0;
    weft_status st = cuda_enter(dg, d);
    if (st == WEFT_OK) {
        cu_result r =
            host ? d->driver->cuMemHostAlloc(&b->p, bytes, CU_HOST_PORTABLE | CU_HOST_DEVICEMAP)
                 : d->driver->cuMemAlloc(&card, bytes);
        bool full = r == CU_OUT_OF_MEMORY;
        st = cuda_leave(dg, d, full ? CU_OK : r, "allocating memory");
        if (st == WEFT_OK && full)
            st = refuse(dg, d, bytes, host);
    }
    if (st != WEFT_OK) {
        mem_free(b);
        return st;
    }
    if (!host)
        b->p = (void *)(uintptr_t)card;
    pthread_mutex_lock(&d->lock);
    b->next = d->held;
    d->held = b;
    pthread_mutex_unlock(&d->lock);
    mem_scope_on_fail(drop, b);
    *out_p = b->p;
    return WEFT_OK;
}

void cuda_give(cuda_device *d, void *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&d->lock);
    cuda_block *b = d->held;
    while (b->p != p)
        b = b->next;
    pthread_mutex_unlock(&d->lock);
    mem_scope_forget(drop, b);
    drop(b);
}

/* ---- streams ---- */

weft_status cuda_stream(weft_diag *dg, cuda_device *d, cu_stream *out_s)
{
    WEFT_TRY(cuda_enter(dg, d));
    cu_result r = d->driver->cuStreamCreate(out_s, CU_STREAM_NON_BLOCKING);
    return cuda_leave(dg, d, r, "making a stream");
}

void cuda_stream_end(cuda_device *d, cu_stream s)
{
    if (!s || !enter_quietly(d))
        return;
    d->driver->cuStreamDestroy(s);
    leave_quietly(d);
}

/* ---- to the card ---- */

enum { UPLOAD_BYTES = 8 << 20 };

struct cuda_upload {
    cuda_device *d;
    size_t bytes;
    char *half[2];
    cu_stream stream[2]; /* of each half */
    int turn;
};

weft_status cuda_upload_open(weft_diag *dg, cuda_device *d, size_t least, cuda_upload **out_u)
{
    cuda_upload *u = mem_alloc(sizeof *u);
    weft_status st = WEFT_OK;
    *u = (cuda_upload){.d = d, .bytes = least > UPLOAD_BYTES ? least : UPLOAD_BYTES};
    for (int i = 0; i < 2 && st == WEFT_OK; i++) {
        void *p;
        st = cuda_take(dg, d, u->bytes, true, &p);
        if (st == WEFT_OK) {
            u->half[i] = p;
            st = cuda_stream(dg, d, &u->stream[i]);
        }
    }
    if (st == WEFT_OK)
        *out_u = u;
    else
        cuda_upload_close(u);
    return st;
}

size_t cuda_upload_room(const cuda_upload *u)
{
    return u->bytes;
}

static weft_status wait_half(weft_diag *dg, cuda_upload *u, int i)
{
    WEFT_TRY(cuda_enter(dg, u->d));
    return cuda_leave(dg, u->d, u->d->driver->cuStreamSynchronize(u->stream[i]),
                      "copying weights to the card");
}

weft_status cuda_upload_begin(weft_diag *dg, cuda_upload *u, char **out_p)
{
    WEFT_TRY(wait_half(dg, u, u->turn));
    *out_p = u->half[u->turn];
    return WEFT_OK;
}

weft_status cuda_upload_send(weft_diag *dg, cuda_upload *u, char *to, size_t n)
{
    WEFT_ASSERT(n <= u->bytes);
    WEFT_TRY(cuda_enter(dg, u->d));
    cu_result r =
        u->d->driver->cuMemcpyHtoDAsync(cuda_at(to), u->half[u->turn], n, u->stream[u->turn]);
    u->turn ^= 1;
    return cuda_leave(dg, u->d, r, "copying weights to the card");
}

weft_status cuda_upload_wait(weft_diag *dg, cuda_upload *u)
{
    WEFT_TRY(wait_half(dg, u, 0));
    return wait_half(dg, u, 1);
}

void cuda_upload_close(cuda_upload *u)
{
    for (int i = 0; u && i < 2; i++) {
        cuda_stream_end(u->d, u->stream[i]);
        cuda_give(u->d, u->half[i]);
    }
    mem_free(u);
}
