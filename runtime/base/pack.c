/* pack.c - the longest match at the last place that began with the same four bytes. */
#include "runtime/base/pack.h"

#include "runtime/base/mem.h"

enum { MATCH_LEAST = 4, TABLE_BITS = 16, SHIFT_MAX = 63 };

/* ---- packing ---- */

static void put_number(strbuf *out, size_t x)
{
    for (; x >= 0x80; x >>= 7)
        strbuf_putc(out, (char)((x & 0x7f) | 0x80));
    strbuf_putc(out, (char)x);
}

static uint32_t hash_at(const char *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return (x * UINT32_C(2654435761)) >> (32 - TABLE_BITS);
}

static size_t match_at(str s, size_t at, size_t before)
{
    size_t n = 0;
    while (at + n < s.n && s.p[before + n] == s.p[at + n])
        n++;
    return n;
}

void bytes_pack(str s, strbuf *out)
{
    size_t *last = mem_alloc(sizeof *last << TABLE_BITS); /* 1 + where; 0: nowhere yet */
    size_t plain = 0;                                     /* where bytes begin that match nothing */
    memset(last, 0, sizeof *last << TABLE_BITS);
    put_number(out, s.n);
    for (size_t at = 0; at + MATCH_LEAST <= s.n;) {
        size_t *place = &last[hash_at(s.p + at)], before = *place;
        size_t n = before ? match_at(s, at, before - 1) : 0;
        *place = at + 1;
        if (n < MATCH_LEAST) {
            at++;
            continue;
        }
        put_number(out, at - plain);
        strbuf_put(out, (str){s.p + plain, at - plain});
        put_number(out, n);
        put_number(out, at - (before - 1));
        for (size_t end = at + n; ++at < end;)
            if (at + MATCH_LEAST <= s.n)
                last[hash_at(s.p + at)] = at + 1;
        plain = at;
    }
    if (plain < s.n) {
        put_number(out, s.n - plain);
        strbuf_put(out, (str){s.p + plain, s.n - plain});
    }
    mem_free(last);
}

/* ---- unpacking ---- */

static bool get_number(str *in, size_t *out)
{
    size_t x = 0;
    for (unsigned shift = 0; in->n > 0 && shift < SHIFT_MAX; shift += 7) {
        unsigned char byte = (unsigned char)*in->p;
        *in = (str){in->p + 1, in->n - 1};
        x |= (size_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *out = x;
            return true;
        }
    }
    return false;
}

/* Bytes as they are, then a match unless all is there; `left` is how much is missing. */
static bool get_piece(str *in, size_t begin, size_t *left, strbuf *out)
{
    size_t n, back;
    if (!get_number(in, &n) || n > in->n || n > *left)
        return false;
    strbuf_put(out, (str){in->p, n});
    *in = (str){in->p + n, in->n - n};
    *left -= n;
    if (*left == 0)
        return true;
    if (!get_number(in, &n) || !get_number(in, &back) || n == 0 || n > *left || back == 0 ||
        back > out->n - begin)
        return false;
    *left -= n;
    for (; n > 0; n--)
        strbuf_putc(out, out->p[out->n - back]);
    return true;
}

bool bytes_unpack(str packed, size_t n_max, strbuf *out)
{
    size_t begin = out->n, left;
    bool fine = get_number(&packed, &left) && left <= n_max;
    while (fine && left > 0)
        fine = get_piece(&packed, begin, &left, out);
    if (!fine || packed.n > 0) {
        out->n = begin;
        if (out->p)
            out->p[begin] = 0;
        return false;
    }
    return true;
}
