/* suite.h - what the suites of tests/base share: running one, temporary files, captured prints. */
#ifndef WEFT_TESTS_BASE_SUITE_H
#define WEFT_TESTS_BASE_SUITE_H

#include "runtime/base/diag.h"
#include <check.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])

#if defined(__SANITIZE_ADDRESS__)
#define SUITE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SUITE_ASAN 1
#endif
#endif

/* The leak check at the end of a process takes four seconds on some aarch64 machines, so it is made once for a suite and not
 * for each test. */
#if defined(SUITE_ASAN)
#define SUITE_FORK CK_NOFORK
#else
#define SUITE_FORK CK_FORK_GETENV
#endif

/* A suite of one case, for main: its exit status. */
static inline int suite_run(const char *name, TCase *tc, enum fork_status fork)
{
    Suite *s = suite_create(name);
    suite_add_tcase(s, tc);
    SRunner *r = srunner_create(s);
    srunner_set_fork_status(r, fork);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static inline int suite_main(const char *name, const TTest *const *tests, size_t n)
{
    TCase *tc = tcase_create(name);
    tcase_set_timeout(tc, 60);
    for (size_t i = 0; i < n; i++)
        tcase_add_test(tc, tests[i]);
    return suite_run(name, tc, SUITE_FORK);
}

#define SUITE_MAIN(name, ...)                                                                      \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const tests[] = {__VA_ARGS__};                                                \
        return suite_main(name, tests, COUNT_OF(tests));                                           \
    }

/* How a process ends that calls fn, as waitpid reports it; what it says on stderr is dropped. */
static inline int child_status(void (*fn)(void))
{
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        if (freopen("/dev/null", "w", stderr))
            fn();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

/* A fresh folder; what is below it is the test's to remove. */
typedef struct {
    char path[64];
} temp_dir;

static inline temp_dir temp_dir_create(void)
{
    temp_dir d = {"/tmp/weft-test-XXXXXX"};
    ck_assert_ptr_nonnull(mkdtemp(d.path));
    ck_assert_int_eq(chmod(d.path, 0755), 0); /* also for tests that give up being root */
    return d;
}

typedef struct {
    char path[512];
} temp_path;

static inline temp_path temp_join(const temp_dir *d, const char *name)
{
    temp_path p;
    snprintf(p.path, sizeof p.path, "%s/%s", d->path, name);
    return p;
}

static inline temp_path temp_file(const temp_dir *d, const char *name, str text)
{
    temp_path p = temp_join(d, name);
    FILE *f = fopen(p.path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text.p, 1, text.n, f), text.n);
    fclose(f);
    return p;
}

/* What diag_print writes; the caller frees it. */
static inline char *printed(const weft_diag *dg, bool colour)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    ck_assert_ptr_nonnull(f);
    diag_print(dg, f, colour);
    fclose(f);
    return text;
}

/* The collector holds exactly one diagnostic, with this code and a message that contains part. */
static inline void expect_one(const weft_diag *dg, weft_code code, const char *part)
{
    ck_assert_uint_eq(diag_count(dg), 1);
    diag_entry e = diag_at(dg, 0);
    ck_assert_str_eq(diag_row_of(e.code)->name, diag_row_of(code)->name);
    if (!strstr(e.message.p, part))
        ck_abort_msg("'%s' is not in '%s'", part, e.message.p);
}

#endif
