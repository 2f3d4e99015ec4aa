/* planted.h - a folder that stands for the root of a file system, with files as a test wants them. */
#ifndef WEFT_TESTS_BASE_PLANTED_H
#define WEFT_TESTS_BASE_PLANTED_H

#include "tests/base/suite.h"
#include <ftw.h>

static temp_dir root;

/* Writes root/path, making the folders on the way. */
static void plant(const char *path, const char *text)
{
    char at[512];
    snprintf(at, sizeof at, "%s/%s", root.path, path);
    for (char *slash = strchr(at + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(at, 0755);
        *slash = '/';
    }
    FILE *f = fopen(at, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static int plant_remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static void plant_remove(void)
{
    nftw(root.path, plant_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
