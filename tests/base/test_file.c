/* test_file.c - the suite of runtime/base/file.c. */
#include "runtime/base/file.h"
#include "tests/base/suite.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

static weft_status try_open(weft_diag *dg, const char *path)
{
    int fd = -7;
    uint64_t bytes = 99;
    weft_status status = file_open(dg, path, &fd, &bytes);
    if (status == WEFT_OK)
        close(fd);
    else
        ck_assert(fd == -7 && bytes == 99); /* untouched on failure */
    return status;
}

START_TEST(opens_and_reads_a_file)
{
    weft_diag *dg = diag_create();
    temp_dir d = temp_dir_create();
    temp_path p = temp_file(&d, "f", STR("hello"));
    int fd;
    uint64_t bytes;
    ck_assert_int_eq(file_open(dg, p.path, &fd, &bytes), WEFT_OK);
    ck_assert_uint_eq(bytes, 5);
    char buf[16];
    size_t n;
    ck_assert_int_eq(file_read(dg, fd, "f", buf, 2, &n), WEFT_OK);
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(file_read(dg, fd, "f", buf + 2, 14, &n), WEFT_OK);
    ck_assert_uint_eq(n, 3);
    ck_assert(memcmp(buf, "hello", 5) == 0);
    close(fd);
    ck_assert_uint_eq(diag_errors(dg), 0);
    ck_assert_int_eq(file_read(dg, fd, "f", buf, 1, &n), WEFT_ERR_FILE);
    expect_one(dg, W1003, "cannot read f: bad file descriptor");
    unlink(p.path);
    rmdir(d.path);
    diag_destroy(dg);
}
END_TEST

START_TEST(names_what_is_missing)
{
    weft_diag *dg = diag_create();
    ck_assert_int_eq(try_open(dg, "/no/such/file"), WEFT_ERR_FILE);
    expect_one(dg, W1001, "cannot open /no/such/file: no such file or directory");
    diag_reset(dg);
    ck_assert_int_eq(try_open(dg, ""), WEFT_ERR_FILE);
    expect_one(dg, W1001, "no such file");
    diag_destroy(dg);
}
END_TEST

START_TEST(refuses_what_is_no_regular_file)
{
    weft_diag *dg = diag_create();
    temp_dir d = temp_dir_create();
    ck_assert_int_eq(try_open(dg, d.path), WEFT_ERR_FILE);
    expect_one(dg, W1002, "is a directory, not a regular file");
    diag_reset(dg);

    temp_path fifo = temp_join(&d, "fifo");
    ck_assert_int_eq(mkfifo(fifo.path, 0600), 0);
    ck_assert_int_eq(try_open(dg, fifo.path), WEFT_ERR_FILE); /* and does not wait for a writer */
    expect_one(dg, W1002, "is a FIFO");
    diag_reset(dg);
    unlink(fifo.path);

    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s/s", d.path);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(s, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(try_open(dg, at.sun_path), WEFT_ERR_FILE);
    expect_one(dg, W1002, "is a socket");
    diag_reset(dg);
    close(s);
    unlink(at.sun_path);

    ck_assert_int_eq(try_open(dg, "/dev/zero"), WEFT_ERR_FILE);
    expect_one(dg, W1002, "/dev/zero is a device");
    rmdir(d.path);
    diag_destroy(dg);
}
END_TEST

START_TEST(tells_an_unreadable_file)
{
    weft_diag *dg = diag_create();
    temp_dir d = temp_dir_create();
    temp_path p = temp_file(&d, "secret", STR("x"));
    ck_assert_int_eq(chmod(p.path, 0), 0);
    bool root = geteuid() == 0;
    if (root) /* who may read everything */
        ck_assert_int_eq(seteuid(65534), 0);
    ck_assert_int_eq(try_open(dg, p.path), WEFT_ERR_FILE);
    if (root)
        ck_assert_int_eq(seteuid(0), 0);
    expect_one(dg, W1001, "secret: permission denied");
    unlink(p.path);
    rmdir(d.path);
    diag_destroy(dg);
}
END_TEST

START_TEST(reasons_are_lower_case)
{
    ck_assert_str_eq(file_reason_of(ENOENT).text, "no such file or directory");
    ck_assert_str_eq(file_reason_of(EIO).text, "input/output error");
}
END_TEST

SUITE_MAIN("file", opens_and_reads_a_file, names_what_is_missing, refuses_what_is_no_regular_file,
           tells_an_unreadable_file, reasons_are_lower_case)
