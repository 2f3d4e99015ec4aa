/* test_code_cache.c - the suite of runtime/exec/code_cache.c: what is kept, and what is not used. */
#include "runtime/exec/code_cache.h"

#include "tests/base/suite.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const code_name name = {0x1122334455667788u, 0x99aabbccddeeff00u};
#define NAME "99aabbccddeeff001122334455667788.code"
static const str text = {"these bytes are code", 20};

enum { HEAD = 312 }; /* bytes of its header */

typedef struct {
    temp_dir dir;
    temp_path folder, file;
    weft_diag *dg;
} kit;

static kit kit_open(void)
{
    kit k = {.dir = temp_dir_create(), .dg = diag_create()};
    k.folder = temp_join(&k.dir, "a/code"); /* two that are not there yet */
    k.file = temp_join(&k.dir, "a/code/" NAME);
    return k;
}

static void kit_close(kit *k)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", k->dir.path);
    ck_assert_int_eq(system(command), 0);
    diag_destroy(k->dg);
}

static void put(kit *k)
{
    code_cache_put(k->dg, k->folder.path, name, "a model", text);
}

static bool get(kit *k)
{
    strbuf out = {0};
    strbuf_add(&out, "before ");
    bool found = code_cache_get(k->dg, k->folder.path, name, &out);
    ck_assert_uint_eq(out.n, found ? 7 + text.n : 7);
    ck_assert(!found || memcmp(out.p + 7, text.p, text.n) == 0);
    strbuf_free(&out);
    return found;
}

static int entries(const kit *k)
{
    int n = 0;
    DIR *dir = opendir(k->folder.path);
    for (struct dirent *e; dir && (e = readdir(dir));)
        n += e->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return n;
}

/* It is not used and why is said; made again, it is. */
static void not_used(kit *k, const char *why)
{
    ck_assert(!get(k));
    expect_one(k->dg, W1509, why);
    diag_reset(k->dg);
    put(k);
    ck_assert(get(k));
    ck_assert_uint_eq(diag_count(k->dg), 0);
    ck_assert_int_eq(entries(k), 1);
}

START_TEST(is_found_again)
{
    kit k = kit_open();
    ck_assert(!get(&k));
    ck_assert_uint_eq(diag_count(k.dg), 0); /* nothing there is nothing wrong */
    put(&k);
    ck_assert(get(&k));
    struct stat st;
    ck_assert_int_eq(stat(k.file.path, &st), 0);
    ck_assert_int_eq(st.st_mode & 077, 0);
    code_name other = {name.lo + 1, name.hi};
    strbuf out = {0};
    ck_assert(!code_cache_get(k.dg, k.folder.path, other, &out));
    ck_assert_uint_eq(diag_count(k.dg), 0);
    ck_assert_int_eq(entries(&k), 1);
    kit_close(&k);
}
END_TEST

/* A bit of the file. */
static void flip(const kit *k, long at)
{
    FILE *f = fopen(k->file.path, "r+b");
    ck_assert_ptr_nonnull(f);
    fseek(f, at, SEEK_SET);
    int c = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(c ^ 0x40, f);
    fclose(f);
}

START_TEST(damage_is_found)
{
    kit k = kit_open();
    put(&k);
    struct stat st;
    ck_assert_int_eq(stat(k.file.path, &st), 0);
    for (long at = 0; at < st.st_size; at++) {
        flip(&k, at);
        ck_assert(!get(&k));
        expect_one(k.dg, W1509, "generated code on disk is not used: ");
        diag_reset(k.dg);
        flip(&k, at);
    }
    ck_assert(get(&k));
    for (off_t at = st.st_size - 1; at >= 0; at--) {
        ck_assert_int_eq(truncate(k.file.path, at), 0);
        ck_assert(!get(&k));
        expect_one(k.dg, W1509, at < HEAD ? "it has no header" : "its length is wrong");
        diag_reset(k.dg);
    }
    put(&k);
    ck_assert_int_eq(truncate(k.file.path, st.st_size + 1), 0);
    not_used(&k, "its length is wrong");
    temp_path other = temp_join(&k.dir, "a/code/00aabbccddeeff001122334455667788.code");
    ck_assert_int_eq(rename(k.file.path, other.path), 0);
    strbuf out = {0};
    ck_assert(!code_cache_get(k.dg, k.folder.path,
                              (code_name){name.lo, name.hi & 0x00ffffffffffffffu}, &out));
    expect_one(k.dg, W1509, "it holds other code");
    strbuf_free(&out);
    kit_close(&k);
}
END_TEST

START_TEST(what_others_can_write_is_not_used)
{
    kit k = kit_open();
    put(&k);
    ck_assert_int_eq(chmod(k.file.path, 0620), 0);
    not_used(&k, "somebody else can have written it");
    ck_assert_int_eq(chmod(k.file.path, 0602), 0);
    not_used(&k, "somebody else can have written it");
    temp_path aside = temp_join(&k.dir, "aside");
    ck_assert_int_eq(rename(k.file.path, aside.path), 0);
    ck_assert_int_eq(symlink(aside.path, k.file.path), 0);
    not_used(&k, "it is a symbolic link");
    struct stat st;
    ck_assert(lstat(k.file.path, &st) == 0 && S_ISREG(st.st_mode));
    ck_assert(stat(aside.path, &st) == 0); /* what the link named is untouched */
    ck_assert_int_eq(unlink(k.file.path), 0);
    ck_assert_int_eq(mkfifo(k.file.path, 0600), 0);
    not_used(&k, "it is no regular file");
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(k.file.path, 65534, 65534), 0);
        not_used(&k, "somebody else can have written it");
    }
    kit_close(&k);
}
END_TEST

/* Each in a process of its own: its rights are its own, and what cannot be kept is said once in a process. */
static bool in_child(kit *k, bool (*fn)(kit *k))
{
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        _exit(fn(k) ? 0 : 1);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool said_once(kit *k, const char *why)
{
    put(k);
    bool fine = diag_count(k->dg) == 1 && diag_at(k->dg, 0).code == W1511 &&
                strstr(diag_at(k->dg, 0).message.p, why);
    put(k);
    return fine && diag_count(k->dg) == 1 && !get(k) && diag_count(k->dg) == 1 && entries(k) == 0;
}

static bool without_rights(kit *k)
{
    if (geteuid() == 0 && (setegid(65534) != 0 || seteuid(65534) != 0))
        return false;
    return said_once(k, "permission denied");
}

static bool without_room(kit *k)
{
    const struct rlimit little = {HEAD, HEAD};
    signal(SIGXFSZ, SIG_IGN); /* an error, as of a disk that is full */
    return setrlimit(RLIMIT_FSIZE, &little) == 0 && said_once(k, "file too large");
}

static bool without_disk(kit *k)
{
    temp_path full = temp_join(&k->dir, "full");
    char options[] = "size=4k";
    if (mkdir(full.path, 0700) != 0 || mount("tmpfs", full.path, "tmpfs", 0, options) != 0)
        return true; /* not ours to mount */
    k->folder = full;
    FILE *f = fopen(temp_join(&k->dir, "full/.all").path, "wb");
    char page[4096] = "";
    bool fine = f && fwrite(page, sizeof page, 1, f) == 1 && fclose(f) == 0 &&
                said_once(k, "no space left");
    return umount(full.path) == 0 && fine;
}

static bool without_folder(kit *k)
{
    k->folder = temp_file(&k->dir, "a file", STR("x")); /* no folder can be made in it */
    strcat(k->folder.path, "/code");
    put(k);
    return diag_count(k->dg) == 1 && diag_at(k->dg, 0).code == W1511 && !get(k);
}

static bool without_home(kit *k)
{
    unsetenv("HOME");
    setenv("XDG_CACHE_HOME", "not/from/the/root", 1);
    code_cache_put(k->dg, NULL, name, "a model", text);
    strbuf out = {0};
    return diag_count(k->dg) == 1 && diag_at(k->dg, 0).code == W1511 &&
           !code_cache_get(k->dg, NULL, name, &out);
}

/* A folder in place of the file is neither used nor replaced, and nothing is left behind. */
static bool with_a_folder(kit *k)
{
    if (mkdir(k->file.path, 0700) != 0 || get(k) || diag_count(k->dg) != 1 ||
        diag_at(k->dg, 0).code != W1509)
        return false;
    put(k);
    return diag_count(k->dg) == 2 && diag_at(k->dg, 1).code == W1511 && entries(k) == 1;
}

START_TEST(where_nothing_can_be_kept)
{
    bool (*const cases[])(kit *) = {without_rights, without_room, without_disk,
                                    without_folder, without_home, with_a_folder};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kit k = kit_open();
        put(&k); /* makes the folder, 0700 and ours */
        ck_assert_int_eq(unlink(k.file.path), 0);
        if (geteuid() != 0)
            ck_assert_int_eq(chmod(k.folder.path, i == 0 ? 0500 : 0700), 0);
        if (!in_child(&k, cases[i]))
            ck_abort_msg("case %zu", i);
        chmod(k.folder.path, 0700);
        kit_close(&k);
    }
}
END_TEST

static bool put_often(kit *k)
{
    for (int i = 0; i < 50; i++) {
        put(k);
        if (!get(k))
            return false;
    }
    return diag_count(k->dg) == 0;
}

START_TEST(processes_at_once)
{
    kit k = kit_open();
    pid_t pid[4];
    fflush(NULL);
    for (int i = 0; i < 4; i++)
        if ((pid[i] = fork()) == 0)
            _exit(put_often(&k) ? 0 : 1);
    for (int i = 0; i < 4; i++) {
        int status;
        ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    ck_assert(get(&k));
    ck_assert_int_eq(entries(&k), 1);
    kit_close(&k);
}
END_TEST

START_TEST(is_listed_checked_and_pruned)
{
    kit k = kit_open();
    arena *a = arena_create();
    cache_file *files;
    put(&k);
    for (uint64_t i = 1; i <= 3; i++) {
        char path[600];
        code_name other = {i, 0};
        code_cache_put(k.dg, k.folder.path, other, "another", text);
        snprintf(path, sizeof path, "%s/%032d.code", k.folder.path, (int)i);
        struct timespec then[2] = {{.tv_sec = (time_t)i}, {.tv_sec = (time_t)i}};
        ck_assert_int_eq(utimensat(AT_FDCWD, path, then, 0), 0);
    }
    char notes[600];
    snprintf(notes, sizeof notes, "%s/notes.code", k.folder.path);
    FILE *f = fopen(notes, "w");
    ck_assert_ptr_nonnull(f);
    fclose(f);
    ck_assert_uint_eq(code_cache_list(a, k.folder.path, &files), 4);
    ck_assert_str_eq(files[0].name, NAME);
    ck_assert_str_eq(files[0].model, "a model");
    ck_assert_str_eq(files[3].name, "00000000000000000000000000000001.code");
    uint64_t each = files[0].bytes;
    ck_assert_ptr_null(code_cache_check(k.file.path));
    ck_assert_int_eq(truncate(k.file.path, HEAD), 0);
    ck_assert_str_eq(code_cache_check(k.file.path), "its length is wrong");
    ck_assert_uint_eq(code_cache_prune(k.folder.path, 2 * each), 2 * each);
    ck_assert_int_eq(entries(&k), 3);
    code_cache_prune(k.folder.path, 0);
    ck_assert_int_eq(entries(&k), 1); /* the notes */
    arena_destroy(a);
    kit_close(&k);
}
END_TEST

SUITE_MAIN("code_cache", is_found_again, damage_is_found, what_others_can_write_is_not_used,
           where_nothing_can_be_kept, processes_at_once, is_listed_checked_and_pruned)
