/* files.h - what the suites of tests/formats share: folders of files and what opening them says. */
#ifndef WEFT_TESTS_FORMATS_FILES_H
#define WEFT_TESTS_FORMATS_FILES_H

#include "runtime/formats/model_file.h"
#include "tests/base/suite.h"
#include "tests/formats/gguf_bytes.h"
#include <dirent.h>
#include <ftw.h>

/* Where golden models are, beside the tree; tests that want them say so when they are not there. */
#define SHARED WEFT_SOURCE_DIR "/../shared/"

static inline bool have_shared(const char *path)
{
    char full[1024];
    snprintf(full, sizeof full, SHARED "%s", path);
    if (access(full, R_OK) == 0)
        return true;
    printf("skipped: ../shared/%s is not there\n", path);
    return false;
}

static inline int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

/* A folder, and the diagnostics of what is done in it. */
typedef struct {
    temp_dir dir;
    weft_diag *dg;
} fixture;

static inline fixture fixture_create(void)
{
    return (fixture){temp_dir_create(), diag_create()};
}

static inline void fixture_destroy(fixture *fx)
{
    nftw(fx->dir.path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    diag_destroy(fx->dg);
}

static inline void expect_ok(const weft_diag *dg, weft_status status)
{
    if (status != WEFT_OK || diag_count(dg) != 0) {
        char *text = printed(dg, false);
        ck_abort_msg("unexpected: %s", text);
    }
}

/* Opening fails with this code and words; the collector is empty again afterwards. */
static inline void expect_open_fails(weft_diag *dg, const char *path, weft_code code,
                                     const char *part)
{
    model_file *mf = NULL;
    ck_assert_int_ne(model_file_open(dg, path, NULL, &mf), WEFT_OK);
    ck_assert_ptr_null(mf);
    expect_one(dg, code, part);
    diag_reset(dg);
}

static inline model_file *open_ok(weft_diag *dg, const char *path)
{
    model_file *mf = NULL;
    expect_ok(dg, model_file_open(dg, path, NULL, &mf));
    return mf;
}

#endif
