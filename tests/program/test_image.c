/* test_image.c - the suite of runtime/program/image.c. */
#include "runtime/program/image.h"
#include "runtime/base/checksum.h"
#include "tests/base/suite.h"

#include <stdlib.h>

/* An image of three parts; the last are weights, which have no sum. */
static strbuf make(bool external)
{
    static const char facts[] = "facts of a model",
                      plan[] = "a plan that is longer than it was before";
    image_part parts[] = {
        {.name = "facts",
         .kind = IMAGE_FACTS,
         .data = (const unsigned char *)facts,
         .bytes = sizeof facts},
        {.name = "avx2",
         .kind = IMAGE_PLAN,
         .data = (const unsigned char *)plan,
         .bytes = sizeof plan},
        {.name = "weights",
         .kind = IMAGE_WEIGHTS,
         .external = external,
         .data = (const unsigned char *)plan,
         .bytes = 21},
    };
    int n = (int)COUNT_OF(parts);
    uint64_t bytes, sum;
    strbuf out = {0};
    for (int i = 0; i < n; i++)
        parts[i].sum = parts[i].kind == IMAGE_WEIGHTS ? 0 : checksum(parts[i].data, parts[i].bytes);
    image_write_head(parts, n, &out, &bytes, &sum);
    for (int i = 0; i < n; i++)
        if (!parts[i].external) {
            strbuf_fill(&out, 0, parts[i].offset - out.n);
            strbuf_put(&out, (str){(const char *)parts[i].data, parts[i].bytes});
        }
    strbuf_fill(&out, 0, bytes - IMAGE_END_BYTES - out.n);
    strbuf_put(&out, (str){image_end_mark, IMAGE_END_BYTES});
    ck_assert_uint_eq(out.n, bytes);
    return out;
}

static weft_status check_all(weft_diag *dg, const void *data, size_t bytes)
{
    image im;
    WEFT_TRY(image_open(dg, "story", data, bytes, &im));
    for (int i = 0; i < im.n_part; i++)
        WEFT_TRY(image_check(dg, "story", &im.part[i]));
    return image_check_gaps(dg, "story", &im);
}

START_TEST(comes_back)
{
    strbuf b = make(false);
    weft_diag *dg = diag_create();
    image im;
    ck_assert_int_eq(image_open(dg, "story", b.p, b.n, &im), WEFT_OK);
    ck_assert_int_eq(check_all(dg, b.p, b.n), WEFT_OK);
    ck_assert_int_eq(im.n_part, 3);
    const image_part *p = image_find(&im, IMAGE_PLAN, "avx2");
    ck_assert_ptr_nonnull(p);
    ck_assert_str_eq((const char *)p->data, "a plan that is longer than it was before");
    ck_assert_ptr_null(image_find(&im, IMAGE_PLAN, "amx"));
    ck_assert_ptr_null(image_find(&im, IMAGE_TOKENIZER, NULL));
    ck_assert_uint_eq(image_find(&im, IMAGE_WEIGHTS, NULL)->offset % IMAGE_PAGE, 0);
    strbuf_free(&b);
    b = make(true);
    ck_assert_int_eq(image_open(dg, "story", b.p, b.n, &im), WEFT_OK);
    p = image_find(&im, IMAGE_WEIGHTS, NULL);
    ck_assert(p->external && !p->data && p->bytes == 21);
    strbuf_free(&b);
    diag_destroy(dg);
}
END_TEST

START_TEST(every_changed_byte_is_found)
{
    strbuf b = make(false);
    image im;
    weft_diag *dg = diag_create();
    ck_assert_int_eq(image_open(dg, "story", b.p, b.n, &im), WEFT_OK);
    const image_part *w = image_find(&im, IMAGE_WEIGHTS, NULL);
    for (size_t i = 0; i < b.n; i++) {
        if (i >= w->offset && i < w->offset + w->bytes)
            continue; /* their sums are those of tensors */
        for (int bit = 0; bit < 8; bit += i < 512 ? 1 : 7) {
            b.p[i] ^= (char)(1 << bit);
            ck_assert_msg(check_all(dg, b.p, b.n) != WEFT_OK, "byte %zu bit %d", i, bit);
            b.p[i] ^= (char)(1 << bit);
        }
        diag_reset(dg);
    }
    ck_assert_int_eq(check_all(dg, b.p, b.n), WEFT_OK);
    diag_destroy(dg);
    strbuf_free(&b);
}
END_TEST

/* Cut anywhere; in memory of exactly that size, so that a sanitizer sees what is read behind it. */
START_TEST(every_cut_is_found)
{
    strbuf b = make(false);
    weft_diag *dg = diag_create();
    for (size_t n = 0; n < b.n; n += n < 512 || n + 64 > b.n ? 1 : 997) {
        char *cut = malloc(n ? n : 1);
        memcpy(cut, b.p, n);
        ck_assert_msg(check_all(dg, cut, n) != WEFT_OK, "cut to %zu bytes", n);
        free(cut);
        diag_reset(dg);
    }
    diag_destroy(dg);
    strbuf_free(&b);
}
END_TEST

/* A directory whose sum is right, but which says what cannot be. */
START_TEST(hostile_directories)
{
    static const struct {
        size_t at, bytes;
        uint64_t value;
        const char *says;
    } cases[] = {
        {8, 4, IMAGE_VERSION + 1, "version 3"},
        {12, 4, UINT32_MAX, "more parts"},
        {12, 4, 65, "more parts"},
        {12, 4, 2, "part 0"},
        {16, 8, UINT64_MAX, "does not end"},
        {64 + 24, 4, 99, "part 0"},
        {64 + 28, 4, 1, "part 0"},
        {64 + 32, 8, UINT64_MAX - 3, "part 0"},
        {64 + 32, 8, 0, "part 0"},
        {64 + 40, 8, UINT64_MAX, "part 0"},
        {64 + 40, 8, 1 << 20, "part 0"},
        {128 + 32, 8, 256, "part 1"},
        {128 + 56, 8, 1, "part 1"},
        {128, 1, '\n', "part 1"},
        {192 + 40, 8, 5, "end before"},
        {40, 8, 1, "has been changed"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        strbuf b = make(false);
        weft_diag *dg = diag_create();
        unsigned char head[64 + 3 * 64];
        size_t n = sizeof head;
        memcpy(b.p + cases[i].at, &cases[i].value, cases[i].bytes);
        if (cases[i].at == 12 && cases[i].value == 2)
            n -= 64;
        memcpy(head, b.p, n);
        memset(head + 24, 0, 8);
        uint64_t sum = checksum(head, n);
        memcpy(b.p + 24, &sum, 8);
        ck_assert_int_ne(check_all(dg, b.p, b.n), WEFT_OK);
        ck_assert_msg(strstr(diag_shown(dg), cases[i].says), "case %zu: %s", i, diag_shown(dg));
        ck_assert_msg(strstr(diag_shown(dg), "story"), "case %zu: %s", i, diag_shown(dg));
        diag_destroy(dg);
        strbuf_free(&b);
    }
}
END_TEST

SUITE_MAIN("image", comes_back, every_changed_byte_is_found, every_cut_is_found,
           hostile_directories)
