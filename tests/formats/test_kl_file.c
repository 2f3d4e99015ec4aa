/* test_kl_file.c - the suite of runtime/formats/kl_file.c: there and back, and damaged files. */
#include "runtime/formats/kl_file.h"
#include "tests/formats/files.h"
#include <math.h>

enum { VOCAB = 7, TOKENS = 8, ROWS = 3, HEAD_BYTES = 96, ROW_BYTES = 32 };
enum { FILE_BYTES = HEAD_BYTES + TOKENS * 4 + ROWS * ROW_BYTES };

static const int32_t ids[TOKENS] = {1, 2, 3, 4, 5, 6, 0, 1};
static const kl_head head = {.vocab = VOCAB,
                             .context = 8,
                             .chunks = 1,
                             .n_token = TOKENS,
                             .n_row = ROWS,
                             .model = {0x0123456789abcdefu, 42},
                             .bos = 6};
static const float logits[ROWS][VOCAB] = {
    {0, -1, -2, 3, -40, -28.5f, 2.75f},
    {5, 5, 5, 5, 5, 5, 5},
    {-100, 0, 0.25f, 0.5f, 0.75f, 1e-5f, -0.125f},
};
static const uint32_t top[ROWS] = {3, 0, 4};

static temp_path write_one(fixture *fx)
{
    temp_path p = temp_join(&fx->dir, "base.kl");
    kl_writer *w;
    expect_ok(fx->dg, kl_writer_create(fx->dg, p.path, &head, ids, &w));
    for (int i = 0; i < ROWS; i++) {
        kl_row row = {.logprob = -(float)i, .token = (uint32_t)i, .top = top[i], .log_sum = 1};
        expect_ok(fx->dg, kl_writer_put(fx->dg, w, &row, logits[i], logits[i][top[i]]));
    }
    ck_assert_int_ne(access(p.path, F_OK), 0); /* not there until it is whole */
    expect_ok(fx->dg, kl_writer_finish(fx->dg, w));
    kl_writer_destroy(w);
    return p;
}

/* Reads all of it; the first thing that fails. */
static weft_status read_all(weft_diag *dg, const char *path)
{
    kl_reader *r;
    kl_row row;
    WEFT_TRY(kl_reader_open(dg, path, &r));
    weft_status st = WEFT_OK;
    for (int64_t i = 0; st == WEFT_OK && i < kl_reader_head(r)->n_row; i++)
        st = kl_reader_next(dg, r, &row);
    kl_reader_close(r);
    return st;
}

START_TEST(there_and_back)
{
    fixture fx = fixture_create();
    temp_path p = write_one(&fx);
    kl_reader *r;
    expect_ok(fx.dg, kl_reader_open(fx.dg, p.path, &r));
    const kl_head *h = kl_reader_head(r);
    ck_assert_int_eq(h->vocab, VOCAB);
    ck_assert_int_eq(h->context, 8);
    ck_assert_int_eq(h->stride, 0);
    ck_assert_int_eq(h->n_row, ROWS);
    ck_assert_int_eq(h->bos, 6);
    ck_assert(h->model.lo == head.model.lo && h->model.hi == head.model.hi);
    ck_assert_mem_eq(kl_reader_ids(r), ids, sizeof ids);
    for (int i = 0; i < ROWS; i++) {
        kl_row row;
        expect_ok(fx.dg, kl_reader_next(fx.dg, r, &row));
        ck_assert(row.logprob == -(float)i && row.log_sum == 1);
        ck_assert_uint_eq(row.token, (uint32_t)i);
        ck_assert_uint_eq(row.top, top[i]);
        for (int k = 0; k < VOCAB; k++) {
            float below = logits[i][top[i]] - logits[i][k], got = (float)row.below[k] / KL_STEPS;
            float want = below < 65535.0f / KL_STEPS ? below : 65535.0f / KL_STEPS;
            ck_assert(fabsf(got - want) <= 0.5f / KL_STEPS);
        }
    }
    kl_reader_close(r);
    fixture_destroy(&fx);
}
END_TEST

START_TEST(weights)
{
    static float table[65536];
    kl_weights(table);
    ck_assert(table[0] == 1);
    ck_assert(fabsf(table[KL_STEPS] - 0.36787944f) < 1e-6f);
    ck_assert(table[65535] > 0 && table[65535] < 2e-14f);
}
END_TEST

START_TEST(unfinished_is_removed)
{
    fixture fx = fixture_create();
    temp_path p = temp_join(&fx.dir, "base.kl");
    kl_writer *w;
    expect_ok(fx.dg, kl_writer_create(fx.dg, p.path, &head, ids, &w));
    kl_writer_destroy(w);
    ck_assert_int_ne(access(p.path, F_OK), 0);
    ck_assert_int_eq(rmdir(fx.dir.path), 0); /* nothing else is left there */
    diag_destroy(fx.dg);
}
END_TEST

/* ---- damage ---- */

typedef struct {
    unsigned char bytes[FILE_BYTES];
} image;

static image read_image(const char *path)
{
    image m;
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fread(m.bytes, 1, sizeof m.bytes, f), sizeof m.bytes);
    ck_assert_int_eq(fgetc(f), EOF);
    fclose(f);
    return m;
}

static void expect_fails(fixture *fx, const void *bytes, size_t n, weft_code code, const char *part)
{
    temp_path p = temp_file(&fx->dir, "bad.kl", (str){bytes, n});
    ck_assert_int_ne(read_all(fx->dg, p.path), WEFT_OK);
    expect_one(fx->dg, code, part);
    diag_reset(fx->dg);
}

static void expect_patch_fails(fixture *fx, const image *good, size_t at, const void *patch,
                               size_t n, weft_code code, const char *part)
{
    image m = *good;
    memcpy(m.bytes + at, patch, n);
    expect_fails(fx, m.bytes, sizeof m.bytes, code, part);
}

START_TEST(cut_off)
{
    fixture fx = fixture_create();
    image m = read_image(write_one(&fx).path);
    for (size_t n = 0; n < FILE_BYTES; n++)
        expect_fails(&fx, m.bytes, n, W1005, "bytes");
    unsigned char longer[FILE_BYTES + 1] = {0};
    memcpy(longer, m.bytes, FILE_BYTES);
    expect_fails(&fx, longer, sizeof longer, W1006, "makes");
    fixture_destroy(&fx);
}
END_TEST

START_TEST(wrong_numbers)
{
    fixture fx = fixture_create();
    image m = read_image(write_one(&fx).path);
    const uint64_t zero = 0, huge = UINT64_MAX, many = UINT64_C(1) << 28, wrap = UINT64_C(1) << 61;
    const uint32_t two = 2, far = 7;
    const int32_t minus = -2, past = 7;
    const float positive = 0.5f, nan = NAN;
    expect_patch_fails(&fx, &m, 0, "GGUF", 4, W1006, "WEFTKL");
    expect_patch_fails(&fx, &m, 7, "\r", 1, W1006, "WEFTKL");
    expect_patch_fails(&fx, &m, 8, &two, 4, W1007, "version 2");
    expect_patch_fails(&fx, &m, 12, &two, 4, W1007, "header of 2");
    expect_patch_fails(&fx, &m, 84, &two, 4, W1007, "2 steps");
    for (size_t at = 16; at < 64; at += 8) {
        expect_patch_fails(&fx, &m, at, &huge, 8, W1006, "expected");
        expect_patch_fails(&fx, &m, at, &wrap, 8, W1006, "expected");
    }
    for (size_t at = 16; at < 64; at += 8)
        if (at != 32) /* the stride is zero */
            expect_patch_fails(&fx, &m, at, &zero, 8, W1006, "expected");
    expect_patch_fails(&fx, &m, 48, &many, 8, W1005, "makes"); /* tokens */
    expect_patch_fails(&fx, &m, 56, &many, 8, W1005, "makes"); /* rows */
    expect_patch_fails(&fx, &m, 80, &minus, 4, W1006, "token -2");
    expect_patch_fails(&fx, &m, 80, &past, 4, W1006, "token 7");
    expect_patch_fails(&fx, &m, 88, &two, 4, W1006, "header");
    expect_patch_fails(&fx, &m, HEAD_BYTES + 4, &past, 4, W1006, "token 1 of the text is 7");
    expect_patch_fails(&fx, &m, HEAD_BYTES + 4, &minus, 4, W1006, "token 1 of the text is -2");
    size_t row = HEAD_BYTES + TOKENS * 4 + ROW_BYTES;
    expect_patch_fails(&fx, &m, row, &positive, 4, W1006, "row 1");
    expect_patch_fails(&fx, &m, row, &nan, 4, W1006, "row 1");
    expect_patch_fails(&fx, &m, row + 4, &far, 4, W1006, "row 1");
    expect_patch_fails(&fx, &m, row + 8, &far, 4, W1006, "row 1");
    expect_patch_fails(&fx, &m, row + 12, &nan, 4, W1006, "row 1");
    expect_patch_fails(&fx, &m, row + 16, &two, 2, W1006, "row 1"); /* the likeliest is not at 0 */
    fixture_destroy(&fx);
}
END_TEST

/* Whatever one byte becomes, the file is read or refused; a crash would show under sanitizers. */
START_TEST(any_byte)
{
    fixture fx = fixture_create();
    image good = read_image(write_one(&fx).path);
    for (size_t at = 0; at < FILE_BYTES; at++) {
        image m = good;
        m.bytes[at] ^= 0x80;
        temp_path p = temp_file(&fx.dir, "bad.kl", (str){(const char *)m.bytes, FILE_BYTES});
        weft_status st = read_all(fx.dg, p.path);
        ck_assert_int_eq(st != WEFT_OK, diag_count(fx.dg) != 0);
        diag_reset(fx.dg);
    }
    fixture_destroy(&fx);
}
END_TEST

START_TEST(too_large_to_write)
{
    fixture fx = fixture_create();
    kl_head h = head;
    kl_writer *w;
    h.vocab = KL_VOCAB_MAX + 1;
    ck_assert_int_ne(kl_writer_create(fx.dg, temp_join(&fx.dir, "x").path, &h, ids, &w), WEFT_OK);
    expect_one(fx.dg, W1105, "more than such a file may hold");
    fixture_destroy(&fx);
}
END_TEST

SUITE_MAIN("kl_file", there_and_back, weights, unfinished_is_removed, cut_off, wrong_numbers,
           any_byte, too_large_to_write)
