/* test_map.c - the suite of runtime/base/map.c. */
#include "runtime/base/map.h"
#include "tests/base/suite.h"
#include <fcntl.h>

static const fmap_mode modes[] = {FMAP_MAPPED, FMAP_COPIED};

START_TEST(both_modes_show_the_bytes)
{
    weft_diag *dg = diag_create();
    temp_dir d = temp_dir_create();
    strbuf text = {0};
    for (int i = 0; i < 50000; i++)
        strbuf_add(&text, "%d,", i);
    temp_path p = temp_file(&d, "weights", strbuf_view(&text));
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        fmap *m = NULL;
        ck_assert_int_eq(fmap_open(dg, p.path, modes[i], &m), WEFT_OK);
        ck_assert_uint_eq(fmap_bytes(m), text.n);
        ck_assert_uint_eq((uintptr_t)fmap_data(m) % 4096, 0);
        ck_assert(memcmp(fmap_data(m), text.p, text.n) == 0);
        fmap_close(m);
    }
    strbuf_free(&text);
    unlink(p.path);
    rmdir(d.path);
    diag_destroy(dg);
}
END_TEST

START_TEST(an_empty_file_is_fine)
{
    weft_diag *dg = diag_create();
    temp_dir d = temp_dir_create();
    temp_path p = temp_file(&d, "empty", STR(""));
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        fmap *m = NULL;
        ck_assert_int_eq(fmap_open(dg, p.path, modes[i], &m), WEFT_OK);
        ck_assert_uint_eq(fmap_bytes(m), 0);
        ck_assert_ptr_nonnull(fmap_data(m));
        fmap_close(m);
    }
    fmap_close(NULL);
    unlink(p.path);
    rmdir(d.path);
    diag_destroy(dg);
}
END_TEST

START_TEST(a_descriptor_stays_the_callers)
{
    weft_diag *dg = diag_create();
    temp_dir d = temp_dir_create();
    temp_path p = temp_file(&d, "f", STR("0123456789"));
    int fd = open(p.path, O_RDONLY);
    char c;
    ck_assert_int_eq(read(fd, &c, 1), 1); /* its position does not matter */
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        fmap *m = NULL;
        ck_assert_int_eq(fmap_open_fd(dg, fd, "f", modes[i], &m), WEFT_OK);
        ck_assert(memcmp(fmap_data(m), "0123456789", 10) == 0);
        fmap_close(m);
    }
    ck_assert_int_eq(close(fd), 0);
    unlink(p.path);
    rmdir(d.path);
    diag_destroy(dg);
}
END_TEST

START_TEST(only_regular_files)
{
    weft_diag *dg = diag_create();
    fmap *m = NULL;
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        diag_reset(dg);
        ck_assert_int_eq(fmap_open(dg, "/", modes[i], &m), WEFT_ERR_FILE);
        expect_one(dg, W1002, "/ is a directory");
        diag_reset(dg);
        ck_assert_int_eq(fmap_open(dg, "/no/such", modes[i], &m), WEFT_ERR_FILE);
        expect_one(dg, W1001, "no such file");
        int ends[2];
        ck_assert_int_eq(pipe(ends), 0);
        diag_reset(dg);
        ck_assert_int_eq(fmap_open_fd(dg, ends[0], "pipe", modes[i], &m), WEFT_ERR_FILE);
        expect_one(dg, W1002, "pipe is a FIFO");
        close(ends[0]);
        close(ends[1]);
    }
    ck_assert_ptr_null(m);
    diag_destroy(dg);
}
END_TEST

SUITE_MAIN("map", both_modes_show_the_bytes, an_empty_file_is_fine, a_descriptor_stays_the_callers,
           only_regular_files)
