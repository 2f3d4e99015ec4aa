/* test_chunk_file.c - the suite of runtime/kv/chunk_file.c. */
#include "runtime/kv/chunk_file.h"
#include "tests/base/suite.h"
#include <fcntl.h>
#include <signal.h>

static const chunk_kind kind = {"WEFTTST\n", 3, "a file of this test"};
static char path[64];

static unsigned char byte_at(size_t i)
{
    return (unsigned char)(i * 2654435761u >> 13);
}

static void write_file(weft_diag *dg, size_t bytes, size_t step)
{
    chunk_writer *w;
    unsigned char *data = malloc(bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        data[i] = byte_at(i);
    ck_assert_int_eq(chunk_writer_create(dg, path, &kind, bytes, &w), WEFT_OK);
    for (size_t i = 0; i < bytes; i += step)
        ck_assert_int_eq(chunk_writer_put(dg, w, data + i, bytes - i < step ? bytes - i : step),
                         WEFT_OK);
    ck_assert_int_eq(chunk_writer_finish(dg, w), WEFT_OK);
    chunk_writer_destroy(w);
    free(data);
}

static void make_path(void)
{
    snprintf(path, sizeof path, "/tmp/weft-chunk-XXXXXX");
    close(mkstemp(path));
}

START_TEST(bytes_come_back)
{
    static const size_t sizes[] = {0, 1, 7, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES - 1};
    weft_diag *dg = diag_create();
    make_path();
    for (size_t k = 0; k < COUNT_OF(sizes); k++)
        for (size_t step = 1000; step < 300000; step *= 17) {
            chunk_reader *r;
            unsigned char part[777];
            write_file(dg, sizes[k], step);
            ck_assert_int_eq(chunk_reader_open(dg, path, &kind, &r), WEFT_OK);
            for (int pass = 0; pass < 2; pass++) {
                ck_assert_uint_eq(chunk_reader_left(r), sizes[k]);
                for (size_t at = 0; at < sizes[k];) {
                    size_t n = sizes[k] - at < sizeof part ? sizes[k] - at : sizeof part;
                    ck_assert_int_eq(chunk_reader_get(dg, r, part, n), WEFT_OK);
                    for (size_t i = 0; i < n; i++, at++)
                        if (part[i] != byte_at(at))
                            ck_abort_msg("byte %zu of %zu is another", at, sizes[k]);
                }
                ck_assert_int_eq(chunk_reader_get(dg, r, part, 1), WEFT_ERR_FORMAT);
                expect_one(dg, W1006, "1 more bytes are expected where 0 are left");
                diag_reset(dg);
                ck_assert_int_eq(chunk_reader_rewind(dg, r), WEFT_OK);
            }
            ck_assert_str_eq(chunk_reader_path(r), path);
            chunk_reader_close(r);
        }
    unlink(path);
    chunk_reader_close(NULL);
    chunk_writer_destroy(NULL);
    diag_destroy(dg);
}
END_TEST

static weft_status try_open(weft_diag *dg)
{
    chunk_reader *r = NULL;
    weft_status st = chunk_reader_open(dg, path, &kind, &r);
    chunk_reader_close(r);
    return st;
}

static void change_byte(off_t at, unsigned char by)
{
    unsigned char x;
    int fd = open(path, O_RDWR);
    ck_assert_int_eq(pread(fd, &x, 1, at), 1);
    x ^= by;
    ck_assert_int_eq(pwrite(fd, &x, 1, at), 1);
    close(fd);
}

START_TEST(any_other_byte_is_refused)
{
    enum { BYTES = 333 };
    weft_diag *dg = diag_create();
    make_path();
    write_file(dg, BYTES, BYTES);
    for (off_t at = 0; at < CHUNK_HEAD_BYTES + BYTES + 8; at++)
        for (int bit = 0; bit < 8; bit++) {
            change_byte(at, (unsigned char)(1 << bit));
            ck_assert_int_eq(try_open(dg), WEFT_ERR_FORMAT);
            expect_one(dg, W1006,
                       at < 8                  ? "is not a file of this test"
                       : at < CHUNK_HEAD_BYTES ? "its first bytes were changed"
                                               : "bytes of chunk 0, from byte 32 on, were changed");
            diag_reset(dg);
            change_byte(at, (unsigned char)(1 << bit));
        }
    ck_assert_int_eq(try_open(dg), WEFT_OK);
    for (off_t n = CHUNK_HEAD_BYTES + BYTES + 7; n >= 0; n--) {
        ck_assert_int_eq(truncate(path, n), 0);
        ck_assert_int_eq(try_open(dg), WEFT_ERR_FORMAT);
        expect_one(dg, n < 8 ? W1006 : W1005,
                   n < 8                  ? "is not"
                   : n < CHUNK_HEAD_BYTES ? "ends within"
                                          : "says it holds 333 bytes");
        diag_reset(dg);
    }
    write_file(dg, BYTES, BYTES);
    int fd = open(path, O_WRONLY | O_APPEND);
    ck_assert_int_eq(write(fd, "x", 1), 1);
    close(fd);
    ck_assert_int_eq(try_open(dg), WEFT_ERR_FORMAT);
    expect_one(dg, W1006, "there are bytes behind its end");
    diag_reset(dg);
    unlink(path);
    ck_assert_int_eq(try_open(dg), WEFT_ERR_FILE);
    diag_destroy(dg);
}
END_TEST

START_TEST(chunks_do_not_change_places)
{
    weft_diag *dg = diag_create();
    static unsigned char a[CHUNK_BYTES + 8], b[CHUNK_BYTES + 8];
    make_path();
    write_file(dg, 2 * CHUNK_BYTES, 1000);
    int fd = open(path, O_RDWR);
    ck_assert_int_eq(pread(fd, a, sizeof a, CHUNK_HEAD_BYTES), sizeof a);
    ck_assert_int_eq(pread(fd, b, sizeof b, CHUNK_HEAD_BYTES + sizeof a), sizeof b);
    ck_assert_int_eq(pwrite(fd, b, sizeof b, CHUNK_HEAD_BYTES), sizeof b);
    ck_assert_int_eq(pwrite(fd, a, sizeof a, CHUNK_HEAD_BYTES + sizeof b), sizeof a);
    close(fd);
    ck_assert_int_eq(try_open(dg), WEFT_ERR_FORMAT);
    expect_one(dg, W1006, "bytes of chunk 0");
    unlink(path);
    diag_destroy(dg);
}
END_TEST

START_TEST(another_version_is_named)
{
    static const chunk_kind next = {"WEFTTST\n", 4, "a file of this test"};
    weft_diag *dg = diag_create();
    chunk_reader *r = NULL;
    make_path();
    write_file(dg, 10, 10);
    ck_assert_int_eq(chunk_reader_open(dg, path, &next, &r), WEFT_ERR_FORMAT);
    expect_one(dg, W1007, "is a file of this test of version 3; this program reads version 4");
    unlink(path);
    diag_destroy(dg);
}
END_TEST

START_TEST(what_is_not_finished_leaves_the_old_file)
{
    weft_diag *dg = diag_create();
    chunk_writer *w;
    make_path();
    write_file(dg, 10, 10);
    ck_assert_int_eq(chunk_writer_create(dg, path, &kind, 20, &w), WEFT_OK);
    ck_assert_int_eq(chunk_writer_put(dg, w, "0123456789", 10), WEFT_OK);
    chunk_writer_destroy(w);
    chunk_reader *r;
    ck_assert_int_eq(chunk_reader_open(dg, path, &kind, &r), WEFT_OK);
    ck_assert_uint_eq(chunk_reader_left(r), 10);
    chunk_reader_close(r);
    unlink(path);
    diag_destroy(dg);
}
END_TEST

/* A file is replaced over and over by a process that is killed at any moment. */
START_TEST(a_killed_writer_leaves_a_whole_file)
{
    weft_diag *dg = diag_create();
    char folder[] = "/tmp/weft-kill-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/f", folder);
    write_file(dg, 200001, 5000);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0)
            for (;;)
                write_file(dg, 200000, 5000);
        usleep(1000 + (useconds_t)i * 777);
        kill(child, SIGKILL);
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
        ck_assert_int_eq(try_open(dg), WEFT_OK);
    }
    char remove[64];
    snprintf(remove, sizeof remove, "rm -r %s", folder);
    ck_assert_int_eq(system(remove), 0);
    diag_destroy(dg);
}
END_TEST

SUITE_MAIN("chunk_file", bytes_come_back, any_other_byte_is_refused, chunks_do_not_change_places,
           another_version_is_named, what_is_not_finished_leaves_the_old_file,
           a_killed_writer_leaves_a_whole_file)
