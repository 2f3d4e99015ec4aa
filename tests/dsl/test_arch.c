/* test_arch.c - good files check clean: the library, and architectures it does not have. Those may use operators
 * that have no kernel yet, which is all that may be said of them. */
#include "dsl/dsl.h"
#include "tests/base/suite.h"
#include <dirent.h>

static int n_file, n_unready;

/* Is everything that was said a warning of an operator without a kernel? */
static bool only_unready(const weft_diag *dg)
{
    for (size_t i = 0; i < diag_count(dg); i++) {
        diag_entry e = diag_at(dg, i);
        if (e.code != W0901 || e.severity != DIAG_WARNING)
            return false;
    }
    return true;
}

static void check_file(const char *path, bool library)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    source *src;
    ck_assert_int_eq(source_open(dg, a, path, DSL_SOURCE_MAX, &src), WEFT_OK);
    weft_status st = dsl_check(dg, src, false);
    char *said = printed(dg, false);
    ck_assert_msg(st == WEFT_OK && (library ? *said == 0 : only_unready(dg)), "%s\n%s", path, said);
    n_unready += *said != 0;
    free(said);
    diag_destroy(dg);
    arena_destroy(a);
    n_file++;
}

static void check_folder(const char *folder, bool library)
{
    DIR *d = opendir(folder);
    ck_assert_msg(d != NULL, "%s", folder);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[1024];
        size_t n = strlen(e->d_name);
        if (n < 5 || strcmp(e->d_name + n - 5, ".weft") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        check_file(path, library);
    }
    closedir(d);
}

START_TEST(good_files_check_clean)
{
    setenv("WEFT_PATH", WEFT_SOURCE_DIR "/models", 1);
    check_folder(WEFT_SOURCE_DIR "/tests/dsl/arch", false);
    ck_assert_int_ge(n_file, 14);
    check_folder(WEFT_SOURCE_DIR "/models", true);
    check_folder(WEFT_SOURCE_DIR "/models/std", true);
    ck_assert_int_ge(n_file, 29);
    ck_assert_int_eq(n_unready, 3); /* bert, gemma3 and hybrid_mamba2 */
}
END_TEST

SUITE_MAIN("arch", good_files_check_clean)
