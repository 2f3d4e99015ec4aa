/* tok_probe.c - texts made of the pieces that patterns of tokenizers treat differently. */
#include "runtime/text/tok_probe.h"

#include "runtime/text/tok_unicode.h"

/* clang-format off */
static const char *const pieces[] = {
    /* letters by case, words */
    "a", "z", "A", "Z", "hello", "World", "USA", "iPhone", "\u00e9", "\u00c9", "\u00df", "\u01c5", "\u02b0", "\u00aa", "\u017f",
    "\u03b1", "\u0416", "\u0436", "\u05d0", "\u0627\u0644", "\u0915", "\u0e01\u0e33", "\u10d0", "\u1c90", "\u2c60", "\ufb01", "\uff21",
    /* Han, kana, Hangul, Bopomofo, and where their ranges begin and end */
    "\u4e00", "\u4e2d\u6587", "\u9fa5", "\u9fa6", "\u3042", "\u30a2", "\u30fc", "\u3040", "\u30ff", "\u3105", "\u3131", "\uac00", "\ud55c\uad6d", "\ud7a3", "\u0800",
    /* marks */
    "\u0301", "e\u0301", "\u0940", "\u0e31", "\u064e", "\u20dd", "\u3099",
    /* numbers */
    "0", "1", "12", "123", "1234", "1234567", "\u00bd", "\u0663", "\u2167", "\u4e09", "\u00b2",
    /* contractions, in both cases and broken */
    "'", "'s", "'S", "'t", "'re", "'VE", "'m", "'ll", "'LL", "'d", "'x", "don't", "\u2019s",
    /* signs */
    ".", ",", "!", "?", "...", "-", "--", "/", "//", "\\", "(", ")", "[", "]", "{", "}", "<", ">", "=", "==", "+", "$", "^", "~", "|", "`", "_", "#", "%", "&", "*", "@", ":", ";", "\"",
    "\u00a1", "\u2026", "\u3002", "\uff01", "\uff0c", "\u2018", "\u201f", "\u0964", "\u060c", "\u20ac", "\u2192", "\U0001f600", "\U0001f468\u200d\U0001f469", "\u200b", "\ufeff", "\ue000", "\u0378",
    /* white space */
    " ", " ", " ", "  ", "   ", "        ", "\n", "\n\n", "\r\n", "\r", "\t", " \n", "\n ", "\t\t", "\u00a0", "\u3000", "\u2003", "\u2028", "\xc2\x85", "\v", "\f", "\x1c", "\x01",
    /* what only one row looks for */
    "<sentinel:7>", "IMGIMGABZ", "\u2581",
};
/* clang-format on */

enum { PIECES = sizeof pieces / sizeof *pieces, PIECES_MAX = 14, PLANE = 0x10000 };

uint32_t tok_probe_next(uint64_t *io_seed)
{
    *io_seed = *io_seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*io_seed >> 33);
}

/* Each alone, and beside a letter, a digit, a space. */
static void put_sweep(size_t i, strbuf *out)
{
    enum { EACH = PLANE / TOK_PROBE_SWEEPS };
    for (uint32_t cp = (uint32_t)i * EACH; cp < (uint32_t)(i + 1) * EACH; cp++) {
        if (cp == 0 || (cp >= 0xd800 && cp <= 0xdfff))
            continue;
        strbuf_putc(out, 'a');
        uni_add(out, cp);
        strbuf_put(out, STR("1 "));
        uni_add(out, cp);
    }
}

void tok_probe_text(size_t i, strbuf *out)
{
    uint64_t seed = (uint64_t)i * 977 + 1;
    if (i >= TOK_PROBE_TEXTS) {
        put_sweep(i - TOK_PROBE_TEXTS, out);
        return;
    }
    tok_probe_next(&seed);
    size_t n = 1 + tok_probe_next(&seed) % PIECES_MAX;
    for (size_t k = 0; k < n; k++)
        strbuf_put(out, str_of(pieces[tok_probe_next(&seed) % PIECES]));
}
