/* test_map_guard.c - the suite of runtime/formats/map_guard.c: files that shrink while mapped. */
#include "runtime/formats/map_guard.h"
#include "runtime/formats/gguf_write.h"
#include "tests/formats/files.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

enum { N = 1 << 20 }; /* numbers in the one tensor */

static temp_path write_model(const fixture *fx)
{
    temp_path p = temp_join(&fx->dir, "m.gguf");
    float *x = malloc(N * sizeof *x);
    for (size_t i = 0; i < N; i++)
        x[i] = 1;
    gguf_writer *w = gguf_writer_create();
    gguf_writer_tensor_data(w, STR("x"), DT_F32, 1, (int64_t[]){N}, x);
    expect_ok(fx->dg, gguf_writer_write(fx->dg, w, p.path));
    gguf_writer_destroy(w);
    free(x);
    return p;
}

static void *sum(void *ctx)
{
    const model_tensor *t = ctx;
    const float *x = t->data;
    double *s = malloc(sizeof *s);
    *s = 0;
    for (size_t i = 0; i < N; i++)
        *s += (double)x[i];
    return s;
}

/* Several threads run into the missing pages; all of them finish, and the model says why. */
START_TEST(a_file_that_shrinks_becomes_an_error)
{
    fixture fx = fixture_create();
    temp_path p = write_model(&fx);
    model_file *mf = NULL;
    expect_ok(fx.dg, model_file_open(fx.dg, p.path, &(model_file_options){.guard = true}, &mf));
    expect_ok(fx.dg, model_file_check(fx.dg, mf));
    const off_t left = 1 << 20;
    ck_assert_int_eq(truncate(p.path, left), 0);
    pthread_t threads[4];
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, sum, (void *)model_file_tensor_at(mf, 0)), 0);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        void *s;
        ck_assert_int_eq(pthread_join(threads[i], &s), 0);
        ck_assert(*(double *)s<N &&*(double *)s> 0);
        free(s);
    }
    ck_assert_int_eq(model_file_check(fx.dg, mf), WEFT_ERR_FILE);
    expect_one(fx.dg, W1012, "m.gguf: byte 1048576 could not be read any more; the file had ");
    model_file_close(mf);
    fixture_destroy(&fx);
}
END_TEST

/* Inside the last page nothing traps; the size gives it away. */
START_TEST(a_few_bytes_less_are_noticed)
{
    fixture fx = fixture_create();
    temp_path p = write_model(&fx);
    struct stat st;
    ck_assert_int_eq(stat(p.path, &st), 0);
    for (int by_fd = 0; by_fd <= 1; by_fd++) {
        model_file *mf = NULL;
        int fd = open(p.path, O_RDONLY);
        if (by_fd)
            expect_ok(fx.dg, model_file_open_fd(fx.dg, fd, "fd", NULL, &mf));
        else
            expect_ok(fx.dg, model_file_open(fx.dg, p.path, NULL, &mf));
        close(fd);
        ck_assert_int_eq(truncate(p.path, st.st_size - 8), 0);
        ck_assert_int_eq(model_file_check(fx.dg, mf), WEFT_ERR_FILE);
        expect_one(fx.dg, W1012, "bytes and now has ");
        diag_reset(fx.dg);
        ck_assert_int_eq(truncate(p.path, st.st_size), 0);
        expect_ok(fx.dg, model_file_check(fx.dg, mf));
        model_file_close(mf);
    }
    fixture_destroy(&fx);
}
END_TEST

START_TEST(copies_and_replaced_files_do_not_mind)
{
    fixture fx = fixture_create();
    temp_path p = write_model(&fx);
    model_file *copied = NULL, *mapped = open_ok(fx.dg, p.path);
    model_file_options options = {.no_mmap = true, .guard = true};
    expect_ok(fx.dg, model_file_open(fx.dg, p.path, &options, &copied));
    unlink(p.path);
    expect_ok(fx.dg, model_file_check(fx.dg, mapped));
    temp_file(&fx.dir, "m.gguf", STR("short"));
    expect_ok(fx.dg, model_file_check(fx.dg, mapped));
    expect_ok(fx.dg, model_file_check(fx.dg, copied));
    double *s = sum((void *)model_file_tensor_at(mapped, 0));
    ck_assert(*s == N);
    free(s);
    model_file_close(mapped);
    model_file_close(copied);
    fixture_destroy(&fx);
}
END_TEST

/* A file that is not guarded, touched past its end. */
static void touch_unguarded(void)
{
    char path[] = "/tmp/weft-test-XXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    if (fd < 0 || ftruncate(fd, 8192) != 0)
        return;
    volatile char *p = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
    void *other = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || map_guard_add(other, 8192) < 0 || ftruncate(fd, 0) != 0)
        return;
    (void)p[0];
}

static void touch_by_default(void)
{
    signal(SIGBUS, SIG_DFL); /* the sanitizers have one of their own */
    touch_unguarded();
}

static void leave(int sig)
{
    (void)sig;
    _exit(42);
}

static void touch_with_handler(void)
{
    signal(SIGBUS, leave);
    touch_unguarded();
}

/* In a process of its own each: once installed, the handler stays. */
START_TEST(other_faults_go_where_they_went_before)
{
    int status = child_status(touch_by_default);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    status = child_status(touch_with_handler);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}
END_TEST

START_TEST(slots_run_out_and_come_back)
{
    static int slots[MAP_GUARD_MAX + 1];
    static char page[1];
    size_t at;
    int n = 0;
    while (n <= MAP_GUARD_MAX && (slots[n] = map_guard_add(page, 1)) >= 0)
        n++;
    ck_assert_int_eq(n, MAP_GUARD_MAX);
    ck_assert(!map_guard_tripped(slots[7], &at));
    ck_assert(!map_guard_tripped(-1, &at));
    for (int i = 0; i < n; i++)
        map_guard_remove(slots[i]);
    map_guard_remove(-1);
    int again = map_guard_add(page, 1);
    ck_assert_int_ge(again, 0);
    map_guard_remove(again);
}
END_TEST

SUITE_MAIN("map_guard", other_faults_go_where_they_went_before,
           a_file_that_shrinks_becomes_an_error, a_few_bytes_less_are_noticed,
           copies_and_replaced_files_do_not_mind, slots_run_out_and_come_back)
