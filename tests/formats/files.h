/* files.h - what the suites of tests/formats share: folders of files, and GGUF byte by byte. */
#ifndef WEFT_TESTS_FORMATS_FILES_H
#define WEFT_TESTS_FORMATS_FILES_H

#include "runtime/formats/model_file.h"
#include "tests/base/suite.h"
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

static inline void put_u32(strbuf *b, uint32_t x)
{
    strbuf_put(b, (str){(const char *)&x, sizeof x});
}

static inline void put_u64(strbuf *b, uint64_t x)
{
    strbuf_put(b, (str){(const char *)&x, sizeof x});
}

static inline void put_text(strbuf *b, const char *s)
{
    put_u64(b, strlen(s));
    strbuf_put(b, str_of(s));
}

static inline void put_head(strbuf *b, uint32_t version, uint64_t n_tensor, uint64_t n_key)
{
    strbuf_put(b, STR("GGUF"));
    put_u32(b, version);
    put_u64(b, n_tensor);
    put_u64(b, n_key);
}

static inline void put_key_u32(strbuf *b, const char *name, uint32_t x)
{
    put_text(b, name);
    put_u32(b, 4);
    put_u32(b, x);
}

static inline void put_key_str(strbuf *b, const char *name, const char *s)
{
    put_text(b, name);
    put_u32(b, 8);
    put_text(b, s);
}

/* sizes[rank] as the file has them, fastest first. */
static inline void put_tensor(strbuf *b, const char *name, uint32_t rank, const uint64_t *sizes,
                              uint32_t type, uint64_t offset)
{
    put_text(b, name);
    put_u32(b, rank);
    for (uint32_t i = 0; i < rank; i++)
        put_u64(b, sizes[i]);
    put_u32(b, type);
    put_u64(b, offset);
}

static inline void put_padding(strbuf *b, size_t align)
{
    strbuf_fill(b, 0, (align - b->n % align) % align);
}

#endif
