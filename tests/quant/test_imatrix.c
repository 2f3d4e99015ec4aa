/* test_imatrix.c - sums of squares there and back, and files that are something else. */
#include "runtime/quant/imatrix.h"

#include "runtime/formats/gguf_write.h"
#include "tests/base/suite.h"
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static char path[64];

static void setup(void)
{
    snprintf(path, sizeof path, "/tmp/weft-imatrix-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void teardown(void)
{
    unlink(path);
}

START_TEST(round_trip)
{
    weft_diag *dg = diag_create();
    imatrix *im = imatrix_create(), *back;
    const float x[] = {1, 2, 3, 3, 0, -1};
    imatrix_add(im, STR("blk.0.attn_q.weight"), 1, 0, x, 2, 3);
    imatrix_add(im, STR("blk.0.attn_q.weight"), 1, 0, x, 1, 3);
    imatrix_add(im, STR("blk.0.ffn_up_exps.weight"), 2, 1, x, 3, 2);
    ck_assert_int_eq(imatrix_write(dg, im, path, "prose", 4, 512), WEFT_OK);
    imatrix_destroy(im);
    ck_assert_int_eq(imatrix_read(dg, path, &back), WEFT_OK);
    ck_assert_uint_eq(imatrix_count(back), 2);
    ck_assert_int_eq(imatrix_chunks(back), 4);
    const imatrix_entry *e = imatrix_find(back, STR("blk.0.attn_q.weight"));
    ck_assert(e && e->mats == 1 && e->columns == 3);
    ck_assert_float_eq_tol(e->sums[0], 11 / 3.0f, 1e-6f);
    ck_assert_float_eq_tol(e->sums[1], 8 / 3.0f, 1e-6f);
    ck_assert_float_eq_tol(e->sums[2], 19 / 3.0f, 1e-6f);
    e = imatrix_find(back, STR("blk.0.ffn_up_exps.weight"));
    ck_assert(e && e->mats == 2 && e->columns == 2);
    ck_assert_float_eq(e->sums[0], 1); /* an expert that nothing went to */
    ck_assert_float_eq(e->sums[2], (1 + 9 + 0) / 3.0f);
    ck_assert_ptr_null(imatrix_find(back, STR("output.weight")));
    imatrix_destroy(back);
    diag_destroy(dg);
}
END_TEST

/* name: a tensor that is in the file; kind: general.type. */
static weft_status read_made(const char *kind, const char *name, float number, int64_t counts)
{
    weft_diag *dg = diag_create();
    gguf_writer *w = gguf_writer_create();
    float data[4] = {number, 1, 1, 1};
    imatrix *im = NULL;
    gguf_writer_key(w, STR("general.type"), value_of_str(str_of(kind)));
    gguf_writer_tensor_data(w, str_of(name), DT_F32, 2, (int64_t[]){1, 4}, data);
    if (counts)
        gguf_writer_tensor_data(w, STR("a.counts"), DT_F32, 1, &counts, data);
    ck_assert_int_eq(gguf_writer_write(dg, w, path), WEFT_OK);
    gguf_writer_destroy(w);
    weft_status st = imatrix_read(dg, path, &im);
    if (st == WEFT_OK)
        imatrix_destroy(im);
    diag_destroy(dg);
    return st;
}

START_TEST(wrong)
{
    ck_assert_int_eq(read_made("imatrix", "a.in_sum2", 1, 1), WEFT_OK);
    ck_assert_int_eq(read_made("model", "a.in_sum2", 1, 1), WEFT_ERR_FORMAT);
    ck_assert_int_eq(read_made("imatrix", "a.in_sum2", 1, 0), WEFT_ERR_FORMAT);
    ck_assert_int_eq(read_made("imatrix", "a.in_sum2", 1, 3), WEFT_ERR_FORMAT);
    ck_assert_int_eq(read_made("imatrix", "a.in_sum2", -1, 1), WEFT_ERR_FORMAT);
    ck_assert_int_eq(read_made("imatrix", "a.in_sum2", NAN, 1), WEFT_ERR_FORMAT);
    weft_diag *dg = diag_create();
    imatrix *im;
    ck_assert_int_eq(imatrix_read(dg, "/nowhere/at/all", &im), WEFT_ERR_FILE);
    diag_destroy(dg);
}
END_TEST

/* Sums that no reader would take are not written. */
START_TEST(not_numbers)
{
    static const float bad[] = {NAN, INFINITY, 1e30f};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        weft_diag *dg = diag_create();
        imatrix *im = imatrix_create();
        const float row[] = {1, 2, bad[i], 4};
        imatrix_add(im, STR("a"), 1, 0, row, 1, 4);
        unlink(path);
        ck_assert_int_eq(imatrix_write(dg, im, path, "text", 1, 1), WEFT_ERR_LIMIT);
        ck_assert_int_eq(diag_at(dg, 0).code, W1410);
        ck_assert_int_ne(access(path, F_OK), 0);
        imatrix_destroy(im);
        diag_destroy(dg);
    }
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("all");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, round_trip);
    tcase_add_test(c, wrong);
    tcase_add_test(c, not_numbers);
    return suite_run("imatrix", c, CK_FORK_GETENV);
}
