/* tok_charsmap.c - walking the double array.
 *
 * A unit's bits: 0-7 the label, 8 whether a value hangs below, 10-30 the offset to the children,
 * which bit 9 multiplies by 256. A value unit has bit 31 set and the value in the others. */
#include "runtime/text/tok_charsmap.h"

/* Real keys have some ten bytes. A damaged tree may have circles, which without a limit are followed through all of
 * the text from each of its places. */
enum { KEY_BYTES_MAX = 128 };

static uint32_t unit_at(const charsmap *m, size_t i)
{
    if (i >= m->n_unit)
        return 0;
    const unsigned char *p = m->units + 4 * i;
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t offset_of(uint32_t unit)
{
    return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

weft_status charsmap_view(weft_diag *dg, str blob, charsmap *out_map)
{
    const unsigned char *p = (const unsigned char *)blob.p;
    *out_map = (charsmap){0};
    if (!blob.n)
        return WEFT_OK;
    size_t n = blob.n < 4 ? 0 : p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
    if (blob.n < 4 || n > blob.n - 4 || n % 4)
        return weft_fail(dg, W1203, WEFT_NOWHERE,
                         "precompiled_charsmap: a tree of %zu bytes in %zu", n, blob.n);
    *out_map = (charsmap){p + 4, n / 4, {blob.p + 4 + n, blob.n - 4 - n}};
    return WEFT_OK;
}

static int base64_value(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

weft_status charsmap_base64(weft_diag *dg, arena *a, str text, str *out_blob)
{
    char *to = arena_alloc(a, text.n / 4 * 3 + 3);
    size_t n = 0, n_bit = 0;
    uint32_t bits = 0;
    while (text.n && text.p[text.n - 1] == '=')
        text.n--;
    for (size_t i = 0; i < text.n; i++) {
        int x = base64_value(text.p[i]);
        if (x < 0)
            return weft_fail(dg, W1203, WEFT_NOWHERE,
                             "precompiled_charsmap is not base64 at byte %zu", i);
        bits = bits << 6 | (uint32_t)x;
        n_bit += 6;
        if (n_bit >= 8) {
            n_bit -= 8;
            to[n++] = (char)(bits >> n_bit);
        }
    }
    *out_blob = (str){to, n};
    return WEFT_OK;
}

size_t charsmap_find(const charsmap *m, str s, str *out_text)
{
    size_t found = 0, at = 0;
    uint32_t unit = unit_at(m, 0), place = 0;
    if (!m->n_unit)
        return 0;
    at ^= offset_of(unit);
    for (size_t i = 0; i < s.n && i < KEY_BYTES_MAX && s.p[i]; i++) {
        at ^= (unsigned char)s.p[i];
        unit = unit_at(m, at);
        if ((unit & (1u << 31 | 0xff)) != (unsigned char)s.p[i])
            break;
        at ^= offset_of(unit);
        if (unit >> 8 & 1) {
            place = unit_at(m, at) & ~(1u << 31);
            found = i + 1;
        }
    }
    if (!found || place >= m->texts.n)
        return 0;
    const char *text = m->texts.p + place, *end = memchr(text, 0, m->texts.n - place);
    *out_text = (str){text, end ? (size_t)(end - text) : m->texts.n - place};
    return found;
}
