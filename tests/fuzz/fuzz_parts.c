/* fuzz_parts.c - a model in several files: parts of a split GGUF, or shards and their index.
 *
 * An input is a folder: "\xff@", a byte that chooses a name from the table below, then the bytes of that
 * file up to the next "\xff@". Behind an even byte a .safetensors file gets its eight bytes of length and
 * one kilobyte of data, so that most changes of a header stay readable; behind an odd one it is as it
 * stands. Every file of the folder, and the folder, is opened as a model. */
#include "tests/fuzz/fuzz_model.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_LEN_MAX = 256, DATA_BYTES = 1024, FILES_MAX = 16 };

/* A row with a link is no file: what a model folder may hold beside files, some of it not allowed. */
static const struct {
    const char *name, *link;
} rows[] = {
    {"config.json", NULL},
    {"model.safetensors.index.json", NULL},
    {"model-00001-of-00002.safetensors", NULL},
    {"model-00002-of-00002.safetensors", NULL},
    {"model.safetensors", NULL},
    {"m-00001-of-00002.gguf", NULL},
    {"m-00002-of-00002.gguf", NULL},
    {"m-00001-of-00003.gguf", NULL},
    {"m-00002-of-00003.gguf", NULL},
    {"m-00003-of-00003.gguf", NULL},
    {"m.gguf", NULL},
    {"inside.safetensors", "model-00001-of-00002.safetensors"},
    {"outside.safetensors", "../outside.safetensors"},
    {"loop.safetensors", "loop.safetensors"},
    {"folder.safetensors", "."},
};
enum { ROWS = sizeof rows / sizeof *rows };

static char root[] =
    "/tmp/weft-fuzz-XXXXXX"; /* holds the folder, and a file that no model may reach */

static const char *path_of(const char *name)
{
    static char path[PATH_LEN_MAX];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static const char *path_inside(const char *name)
{
    static char path[PATH_LEN_MAX];
    snprintf(path, sizeof path, "%s/model/%s", root, name);
    return path;
}

static void must(bool good, const char *what)
{
    if (good)
        return;
    perror(what);
    exit(1);
}

static void clear(void)
{
    for (int i = 0; i < ROWS; i++)
        unlink(path_inside(rows[i].name));
}

static void remove_all(void)
{
    clear();
    rmdir(path_inside(""));
    unlink(path_of("outside.safetensors"));
    rmdir(root);
}

static void write_file(const char *path, bool framed, const uint8_t *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    static const char zeros[DATA_BYTES];
    uint64_t header = size;
    must(fd >= 0, path);
    must(!framed || write(fd, &header, sizeof header) == sizeof header, path);
    must(write(fd, data, size) == (ssize_t)size, path);
    must(!framed || write(fd, zeros, sizeof zeros) == sizeof zeros, path);
    close(fd);
}

static void make_root(void)
{
    static const char empty[] = "{}";
    must(mkdtemp(root) != NULL, root);
    must(mkdir(path_inside(""), 0700) == 0, root);
    write_file(path_of("outside.safetensors"), true, (const uint8_t *)empty, 2);
    atexit(remove_all);
}

static const uint8_t *next_mark(const uint8_t *at, const uint8_t *end)
{
    for (; end - at >= 2; at++)
        if (at[0] == 0xff && at[1] == '@')
            return at;
    return end;
}

static void lay_out(const uint8_t *data, size_t size)
{
    const uint8_t *end = data + size, *at = next_mark(data, end);
    for (int n = 0; end - at >= 3 && n < FILES_MAX; n++) {
        int kind = at[2], row = kind / 2 % ROWS;
        const char *path = path_inside(rows[row].name);
        const uint8_t *begin = at + 3;
        at = next_mark(begin, end);
        unlink(path);
        if (rows[row].link)
            must(symlink(rows[row].link, path) == 0, path);
        else
            write_file(path, kind % 2 == 0 && str_ends(str_of(path), STR(".safetensors")), begin,
                       (size_t)(at - begin));
    }
}

/* Whichever way it was opened, the parts are files of the folder. */
static void check_parts(const model_file *mf)
{
    char folder[PATH_LEN_MAX];
    int n = snprintf(folder, sizeof folder, "%s/model/", root);
    WEFT_ASSERT(model_file_part_count(mf) <= MODEL_PARTS_MAX);
    for (size_t i = 0; i < model_file_part_count(mf); i++) {
        char *real = realpath(model_file_part(mf, i).path, NULL);
        WEFT_ASSERT(real && strncmp(real, folder, (size_t)n) == 0);
        free(real);
    }
}

/* The number of parts, 0 if the path does not open. */
static size_t open_path(const char *path, model_hash *out_hash)
{
    weft_diag *dg = diag_create();
    model_file *mf = NULL;
    size_t n_part = 0;
    weft_status status = model_file_open(dg, path, NULL, &mf);
    fuzz_check(dg, status);
    if (status == WEFT_OK) {
        model_hash stamp;
        fuzz_walk(mf);
        check_parts(mf);
        WEFT_ASSERT(model_file_check(dg, mf) == WEFT_OK && model_file_stamp(mf, &stamp));
        *out_hash = model_file_hash(mf);
        n_part = model_file_part_count(mf);
    }
    model_file_close(mf);
    diag_destroy(dg);
    return n_part;
}

/* Rows of one split: their names differ in the number of the part alone. */
static bool same_split(const char *a, const char *b)
{
    static const char tail[] = "-of-00002.gguf";
    size_t n = sizeof tail - 1;
    return str_ends(str_of(a), STR(".gguf")) && strlen(a) == strlen(b) && strlen(a) > n &&
           strcmp(a + strlen(a) - n, b + strlen(b) - n) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool made;
    if (!made)
        make_root();
    made = true;
    clear();
    lay_out(data, size);

    model_hash hash[ROWS], folder;
    size_t n_part[ROWS] = {0};
    open_path(path_of("model"), &folder);
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, "outside.safetensors") !=
            0) /* a user may name what the index may not */
            n_part[i] = open_path(path_inside(rows[i].name), &hash[i]);
    /* Whichever part of a split is named, the model is the same. */
    for (int i = 1; i < ROWS; i++)
        if (n_part[i] > 1 && n_part[i - 1] > 1 && same_split(rows[i].name, rows[i - 1].name))
            WEFT_ASSERT(hash[i].lo == hash[i - 1].lo && hash[i].hi == hash[i - 1].hi);
    return 0;
}
