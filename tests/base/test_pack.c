/* test_pack.c - the suite of runtime/base/pack.c. */
#include "runtime/base/pack.h"
#include "tests/base/suite.h"

static void there_and_back(str s, size_t most)
{
    strbuf packed = {0}, back = {0};
    bytes_pack(s, &packed);
    ck_assert_uint_le(packed.n, most);
    ck_assert(bytes_unpack(strbuf_view(&packed), s.n, &back));
    ck_assert(str_eq(strbuf_view(&back), s));
    if (s.n > 0)
        ck_assert(!bytes_unpack(strbuf_view(&packed), s.n - 1, &back));
    ck_assert_uint_eq(back.n, s.n);
    strbuf_free(&packed);
    strbuf_free(&back);
}

/* Numbers that repeat by `period`, or never. */
static void fill(strbuf *s, size_t n, size_t period)
{
    uint64_t x = 1;
    strbuf_reset(s);
    for (size_t i = 0; i < n; i++) {
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
        strbuf_putc(s, period && i >= period ? s->p[i - period] : (char)(x >> 56));
    }
}

START_TEST(comes_back)
{
    strbuf s = {0};
    there_and_back(STR(""), 1);
    there_and_back(STR("a"), 3);
    there_and_back(STR("abc"), 5);
    there_and_back(STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), 6);
    for (size_t n = 1; n < 200000; n = n * 3 + 1) {
        fill(&s, n, 0);
        there_and_back(strbuf_view(&s), n + n / 16 + 8);
        fill(&s, n, 100);
        there_and_back(strbuf_view(&s), 100 + 20);
    }
    strbuf_free(&s);
}
END_TEST

/* Every cut and every changed byte: it fails, or gives as many bytes as it says. */
START_TEST(damaged)
{
    strbuf s = {0}, packed = {0}, back = {0};
    fill(&s, 300, 50);
    strbuf_put(&s, STR("more of it, more of it, and more"));
    bytes_pack(strbuf_view(&s), &packed);
    for (size_t n = 0; n < packed.n; n++) {
        char *cut = malloc(n + !n); /* sanitizers see who reads on */
        memcpy(cut, packed.p, n);
        ck_assert(!bytes_unpack((str){cut, n}, 1000, &back));
        ck_assert_uint_eq(back.n, 0);
        free(cut);
    }
    for (size_t i = 0; i < packed.n; i++)
        for (int bit = 0; bit < 8; bit++) {
            packed.p[i] ^= (char)(1 << bit);
            if (bytes_unpack(strbuf_view(&packed), 1000, &back))
                ck_assert_uint_le(back.n, 1000);
            strbuf_reset(&back);
            packed.p[i] ^= (char)(1 << bit);
        }
    strbuf_putc(&packed, 0);
    ck_assert(!bytes_unpack(strbuf_view(&packed), 1000, &back)); /* more than belongs to it */
    strbuf_free(&s);
    strbuf_free(&packed);
    strbuf_free(&back);
}
END_TEST

SUITE_MAIN("pack", comes_back, damaged)
