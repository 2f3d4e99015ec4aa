/* image_io.c - little-endian numbers, and texts with their lengths in front. */
#include "runtime/text/image_io.h"

#include "runtime/text/tok_unicode.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they lie");

void io_fault(image_io *x, const char *fault)
{
    if (x->fault)
        return;
    x->fault = fault;
    x->fault_at = x->at;
    x->at = x->in.n;
}

void io_raw(image_io *x, void *p, size_t n)
{
    if (x->out) {
        strbuf_put(x->out, (str){p, n});
    } else if (x->fault || n > x->in.n - x->at) {
        io_fault(x, "ends too early");
        memset(p, 0, n);
    } else {
        memcpy(p, x->in.p + x->at, n);
        x->at += n;
    }
}

void io_u8(image_io *x, uint8_t *v)
{
    io_raw(x, v, sizeof *v);
}

void io_bool(image_io *x, bool *v)
{
    uint8_t byte = *v;
    io_u8(x, &byte);
    io_check(x, byte <= 1, "has a flag that is neither set nor not");
    *v = byte != 0;
}

void io_u32(image_io *x, uint32_t *v)
{
    io_raw(x, v, sizeof *v);
}

void io_i32(image_io *x, int32_t *v, int32_t lo, int32_t hi)
{
    io_raw(x, v, sizeof *v);
    if (*v < lo || *v > hi) {
        io_fault(x, "has a number that cannot be");
        *v = lo;
    }
}

void io_size(image_io *x, size_t *v, size_t max)
{
    uint32_t n = (uint32_t)*v;
    io_u32(x, &n);
    if (n > max) {
        io_fault(x, "has a number that cannot be");
        n = 0;
    }
    *v = n;
}

void io_blob(image_io *x, str *s)
{
    size_t n = s->n;
    io_size(x, &n, UINT32_MAX);
    if (x->out) {
        strbuf_put(x->out, *s);
        return;
    }
    if (n > x->in.n - x->at) {
        io_fault(x, "ends too early");
        n = 0;
    }
    *s = n ? (str){x->in.p + x->at, n} : STR("");
    x->at += n;
}

void io_text(image_io *x, str *s, size_t n_max)
{
    size_t bad;
    io_blob(x, s);
    if (x->out)
        return;
    io_check(x, s->n <= n_max, "has a text that is too long");
    io_check(x, uni_check(*s, &bad), "has a text that is not UTF-8");
    if (x->fault)
        *s = STR("");
}

size_t io_count(image_io *x, size_t n, size_t item_bytes, size_t n_max)
{
    io_size(x, &n, n_max);
    if (io_reads(x) && n > (x->in.n - x->at) / item_bytes) {
        io_fault(x, "ends too early");
        n = 0;
    }
    return x->fault ? 0 : n;
}

const void *io_table(image_io *x, arena *a, const void *table, size_t n, size_t item_bytes)
{
    enum { ALIGN = 16 };
    static const char zeros[ALIGN];
    size_t at = x->out ? x->out->n - x->base : x->at, gap = (ALIGN - at % ALIGN) % ALIGN;
    if (x->out) {
        strbuf_put(x->out, (str){zeros, gap});
        strbuf_put(x->out, (str){table, n * item_bytes});
        return table;
    }
    if (x->fault || gap > x->in.n - x->at || n > (x->in.n - x->at - gap) / item_bytes) {
        io_fault(x, "ends too early");
        return NULL;
    }
    const char *p = x->in.p + x->at + gap;
    io_check(x, memcmp(p - gap, zeros, gap) == 0, "has something where nothing is");
    x->at = x->fault ? x->at : x->at + gap + n * item_bytes;
    if ((uintptr_t)p % sizeof(uint64_t) == 0)
        return p;
    return memcpy(arena_alloc(a, n * item_bytes + 1), p, n * item_bytes);
}

void io_head(image_io *x, const char magic[4], uint32_t version)
{
    char got[4];
    uint32_t v = version;
    memcpy(got, magic, sizeof got);
    io_raw(x, got, sizeof got);
    io_u32(x, &v);
    io_check(x, memcmp(got, magic, sizeof got) == 0 && v == version,
             "is of another kind or version");
}

weft_status io_done(weft_diag *dg, const image_io *x, weft_code code, const char *name,
                    const char *what)
{
    if (x->fault)
        return weft_fail(dg, code, WEFT_NOWHERE, "%s, %s: %s, near byte %zu of %zu, %s", name, what,
                         x->part, x->fault_at, x->in.n, x->fault);
    if (io_reads(x) && x->at < x->in.n)
        return weft_fail(dg, code, WEFT_NOWHERE, "%s, %s: %zu bytes follow its end", name, what,
                         x->in.n - x->at);
    return WEFT_OK;
}
