/* tok_decode_text.c - what decoders do to one text, shared by whole lists and streams. */
#include "runtime/base/utf8.h"
#include "runtime/text/tok_decode.h"
#include "runtime/text/tok_unicode.h"

void dec_put_byte_level(strbuf *out, str text)
{
    size_t n_before = out->n;
    uint32_t cp;
    for (size_t i = 0; i < text.n;) {
        i += uni_next(text.p + i, &cp);
        int byte = uni_to_byte(cp);
        if (byte < 0) {
            out->n = n_before;
            strbuf_put(out, text);
            return;
        }
        strbuf_putc(out, (char)byte);
    }
}

static void put_with(strbuf *out, str text, str from, str to)
{
    for (size_t i = 0; i < text.n;) {
        const char *at = from.n ? memmem(text.p + i, text.n - i, from.p, from.n) : NULL;
        size_t end = at ? (size_t)(at - text.p) : text.n;
        strbuf_put(out, (str){text.p + i, end - i});
        if (at)
            strbuf_put(out, to);
        i = end + from.n;
        if (!at)
            break;
    }
}

/* English spacing, as Hugging Face's WordPiece decoder restores it. */
void dec_put_cleaned(strbuf *out, str text)
{
    static const struct {
        const char *from, *to;
    } rules[] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    strbuf a = {0}, b = {0};
    strbuf_put(&a, text);
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
        strbuf_reset(&b);
        put_with(&b, strbuf_view(&a), str_of(rules[k].from), str_of(rules[k].to));
        strbuf swap = a;
        a = b;
        b = swap;
    }
    strbuf_put(out, strbuf_view(&a));
    strbuf_free(&a);
    strbuf_free(&b);
}

void dec_put_wordpiece(const dec_step *s, str text, bool first, strbuf *out)
{
    strbuf spaced = {0};
    if (!first && str_starts(text, s->text))
        text = (str){text.p + s->text.n, text.n - s->text.n};
    else if (!first)
        strbuf_putc(&spaced, ' ');
    strbuf_put(&spaced, text);
    if (s->cleanup)
        dec_put_cleaned(out, strbuf_view(&spaced));
    else
        strbuf_put(out, strbuf_view(&spaced));
    strbuf_free(&spaced);
}

void dec_put_metaspace(const dec_step *s, str text, bool first, strbuf *out)
{
    put_with(out, text, s->text, first && s->prefix ? STR("") : STR(" "));
}

void dec_put_suffixed(const dec_step *s, str text, bool last, strbuf *out)
{
    put_with(out, text, s->text, last ? STR("") : STR(" "));
}

str dec_strip_start(const dec_step *s, str text, size_t n)
{
    for (; n > 0 && str_starts(text, s->text); n--)
        text = (str){text.p + s->text.n, text.n - s->text.n};
    return text;
}

str dec_strip_stop(const dec_step *s, str text, size_t n)
{
    for (; n > 0 && str_ends(text, s->text); n--)
        text.n -= s->text.n;
    return text;
}

/* How many bytes of s, which does not begin with a well-formed sequence, are the beginning of one;
 * at least 1. *out_open: s ends before it is known. (Unicode 3.9, table 3-7.) */
static size_t maximal_part(str s, bool *out_open)
{
    unsigned char b = (unsigned char)s.p[0];
    size_t want = b >= 0xc2 && b <= 0xdf   ? 2
                  : b >= 0xe0 && b <= 0xef ? 3
                  : b >= 0xf0 && b <= 0xf4 ? 4
                                           : 1;
    size_t n = 1;
    for (; n < want && n < s.n; n++) {
        unsigned char c = (unsigned char)s.p[n], lo = 0x80, hi = 0xbf;
        if (n == 1) {
            lo = b == 0xe0 ? 0xa0 : b == 0xf0 ? 0x90 : 0x80;
            hi = b == 0xed ? 0x9f : b == 0xf4 ? 0x8f : 0xbf;
        }
        if (c < lo || c > hi)
            break;
    }
    *out_open = n < want && n == s.n;
    return n;
}

size_t dec_put_utf8(strbuf *out, str text)
{
    size_t i = 0, good = 0;
    uint32_t cp;
    while (i < text.n) {
        str rest = {text.p + i, text.n - i};
        size_t n = utf8_decode(rest, &cp);
        if (n) {
            i += n;
            continue;
        }
        bool open;
        n = maximal_part(rest, &open);
        if (open)
            break;
        strbuf_put(out, (str){text.p + good, i - good});
        strbuf_put(out, STR("\xef\xbf\xbd"));
        good = i += n;
    }
    strbuf_put(out, (str){text.p + good, i - good});
    return i;
}

void dec_put_utf8_all(strbuf *out, str text)
{
    if (dec_put_utf8(out, text) < text.n)
        strbuf_put(out, STR("\xef\xbf\xbd"));
}
