/* checksum.c - eight sums side by side, each `(sum ^ word) * odd number`, rotated.
 *
 * Each step is a bijection of the sum for a given word, and of the word for a given sum, so that one changed word always
 * shows. The rotation carries the highest bits, which a product only moves up and out, back to the lowest. Eight chains
 * hide the 5 cycles of a step behind each other: a multiplication starts every cycle, 8 bytes of input. */
#include "runtime/base/checksum.h"

#include <string.h>

/* AHEAD: where the next bytes are asked for. 11 GB/s instead of 7 on a Sapphire Rapids core, from memory. */
enum { LANES = 8, WORD = 8, STEP = LANES * WORD, AHEAD = 4096 };

static const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);

static inline uint64_t load(const unsigned char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

static inline uint64_t step(uint64_t sum, uint64_t x)
{
    sum = (sum ^ x) * factor;
    return sum << 31 | sum >> 33;
}

uint64_t checksum(const void *data, size_t bytes)
{
    const unsigned char *p = data;
    /* Apart from each other, so that equal words in other lanes do not add up to nothing. */
    uint64_t a = factor, b = factor * 3, c = factor * 5, d = factor * 7;
    uint64_t e = factor * 9, f = factor * 11, g = factor * 13, h = factor * 15;
    size_t left = bytes;
    for (; left >= STEP; left -= STEP, p += STEP) {
        __builtin_prefetch(p + AHEAD, 0, 1); /* may name any address */
        a = step(a, load(p));
        b = step(b, load(p + WORD));
        c = step(c, load(p + WORD * 2));
        d = step(d, load(p + WORD * 3));
        e = step(e, load(p + WORD * 4));
        f = step(f, load(p + WORD * 5));
        g = step(g, load(p + WORD * 6));
        h = step(h, load(p + WORD * 7));
    }
    const uint64_t lanes[LANES] = {a, b, c, d, e, f, g, h};
    uint64_t sum = step(factor, bytes);
    for (int i = 0; i < LANES; i++)
        sum = step(sum, lanes[i]);
    for (; left > 0; left -= left < WORD ? left : WORD, p += WORD) {
        unsigned char word[WORD] = {0};
        memcpy(word, p, left < WORD ? left : WORD);
        sum = step(sum, load(word));
    }
    sum = (sum ^ sum >> 32) * factor;
    return sum ^ sum >> 29;
}
