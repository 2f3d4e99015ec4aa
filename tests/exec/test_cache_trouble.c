/* test_cache_trouble.c - interleaved weights that are kept on disk, where the disk, its rights or other processes are in the way. */
#include "tests/exec/cache_kit.h"

/* Run in a process of its own, whose limits and rights are its own; true: it ended well. */
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

static bool loads_keeping(kit *k)
{
    return loads(k, true);
}

static bool loads_without_rights(kit *k)
{
    if (geteuid() == 0 && (setegid(65534) != 0 || seteuid(65534) != 0))
        return false;
    return loads(k, true);
}

static bool loads_with_full_disk(kit *k)
{
    const struct rlimit little = {1 << 20, 1 << 20};
    if (setrlimit(RLIMIT_FSIZE, &little) != 0)
        return false;
    signal(SIGXFSZ, SIG_IGN); /* an error, as of a disk that is full */
    return loads(k, true) && entries(k, NULL) == 0;
}

START_TEST(without_a_folder_memory_will_do)
{
    kit *k = kit_open();
    strbuf folder = {0};
    temp_path file = temp_file(&k->dir, "a file", STR("x"));
    use_cache(file.path); /* no folder can be made in it */
    ck_assert(loads(k, true));
    ck_assert_uint_eq(cache_prune(k->interleaved.path, 0), 0);

    setenv("HOME", "neither/here", 1); /* not from the root: nobody knows where that is */
    use_cache("nor/there");
    ck_assert(!cache_folder(NULL, &folder));
    ck_assert(loads(k, true));
    unsetenv("HOME");
    unsetenv("XDG_CACHE_HOME");
    ck_assert(!cache_folder(NULL, &folder));
    ck_assert(loads(k, true));
    ck_assert_uint_eq(cache_prune(k->interleaved.path, 0), 0);
    ck_assert_int_ne(access("nor", F_OK), 0);

    setenv("HOME", k->cache.path, 1);
    ck_assert(cache_folder(NULL, &folder));
    temp_path below = temp_join(&k->dir, "cache/.cache/weft/weights");
    ck_assert_str_eq(folder.p, below.path);
    strbuf_free(&folder);
    kit_close(k);
}
END_TEST

START_TEST(a_folder_that_may_not_be_written)
{
    kit *k = kit_open();
    ck_assert_int_eq(mkdir(k->cache.path, 0555), 0);
    ck_assert_int_eq(chmod(k->path.path, 0644), 0);
    ck_assert(in_child(k, loads_without_rights));
    ck_assert_int_eq(entries(k, NULL), 0);
    ck_assert_int_eq(chmod(k->cache.path, 0755), 0);
    /* It is there, but not for us to write. */
    ck_assert(in_child(k, loads_keeping));
    ck_assert_int_eq(entries(k, NULL), 1);
    ck_assert_uint_gt(cache_prune(k->interleaved.path, 0), 0);
    ck_assert_int_eq(chmod(k->interleaved.path, 0555), 0);
    ck_assert(in_child(k, loads_without_rights));
    ck_assert_int_eq(entries(k, NULL), 0);
    ck_assert_int_eq(chmod(k->interleaved.path, 0755), 0);
    kit_close(k);
}
END_TEST

START_TEST(a_full_disk_leaves_nothing)
{
    kit *k = kit_open();
    ck_assert(in_child(k, loads_with_full_disk));
    ck_assert_int_eq(entries(k, NULL), 0);
    ck_assert(in_child(k, loads_keeping)); /* it was the disk */
    ck_assert_int_eq(entries(k, NULL), 1);
    kit_close(k);
}
END_TEST

START_TEST(several_processes_at_once)
{
    enum { PROCESSES = 4 };
    kit *k = kit_open();
    int start[2];
    pid_t pid[PROCESSES];
    ck_assert_int_eq(pipe(start), 0);
    fflush(NULL);
    for (int i = 0; i < PROCESSES; i++) {
        pid[i] = fork();
        ck_assert_int_ge(pid[i], 0);
        if (pid[i] == 0) {
            char none;
            close(start[1]);
            if (read(start[0], &none, 1) != 0) /* until all are there */
                _exit(2);
            _exit(loads(k, true) ? 0 : 1);
        }
    }
    close(start[1]);
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "process %d: %x", i,
                      (unsigned)status);
    }
    close(start[0]);
    only_file(k);
    ck_assert(is_kept(k, &k->p, k->mf));
    ck_assert(loads(k, true));
    kit_close(k);
}
END_TEST

/* Two that interleave at once, for certain: the second begins before the first is done. */
START_TEST(the_later_of_two_replaces_an_equal_file)
{
    kit *k = kit_open();
    weight_cache *a, *b;
    bool filled;
    a = open_store(k, &k->p, k->mf, &filled);
    ck_assert(!filled);
    b = open_store(k, &k->p, k->mf, &filled);
    ck_assert(!filled);
    ck_assert_int_ne(entries(k, NULL), 1); /* two, or none where files need no name yet */
    ck_assert(!is_kept(k, &k->p, k->mf));
    memcpy(weight_cache_data(a), k->want, rows8_bytes);
    memcpy(weight_cache_data(b), k->want, rows8_bytes);
    ck_assert_int_eq(weight_cache_publish(k->dg, a), WEFT_OK);
    ck_assert(is_kept(k, &k->p, k->mf));
    ck_assert_int_eq(weight_cache_publish(k->dg, b), WEFT_OK);
    only_file(k);
    ck_assert_int_eq(memcmp(weight_cache_data(a), k->want, rows8_bytes), 0);
    weight_cache_close(a);
    weight_cache_close(b);
    ck_assert(loads(k, true));
    weight_cache_close(NULL);
    kit_close(k);
}
END_TEST

START_TEST(what_was_not_finished_is_not_found)
{
    kit *k = kit_open();
    weight_cache *s;
    bool filled;
    s = open_store(k, &k->p, k->mf, &filled);
    memcpy(weight_cache_data(s), k->want, rows8_bytes / 2);
    weight_cache_close(s);
    ck_assert_int_eq(entries(k, NULL), 0);
    /* Weights that do not fit the checkpoint, found while they are interleaved. */
    weights *w = NULL;
    k->piece.rows = ROWS - 8;
    weights_options how = {.use_cache = true};
    ck_assert_int_eq(weights_create(k->dg, NULL, &k->p, model_file_source(k->mf), &how, &w),
                     WEFT_ERR_PLAN);
    ck_assert_ptr_null(w);
    ck_assert_int_eq(entries(k, NULL), 0);
    kit_close(k);
}
END_TEST

#ifndef O_TMPFILE
#define O_TMPFILE O_DIRECTORY /* refused together with O_RDWR */
#endif

START_TEST(who_is_ended_leaves_nothing)
{
    kit *k = kit_open();
    ck_assert(loads(k, true));
    ck_assert_uint_gt(cache_prune(k->interleaved.path, 0), 0);
    int fd = open(k->interleaved.path, O_TMPFILE | O_RDWR, 0600);
    bool nameless = fd >= 0 && access("/proc/self/fd", X_OK) == 0;
    if (fd >= 0)
        close(fd);
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        weight_cache *s;
        bool filled;
        if (weight_cache_open(k->dg, &k->p, model_file_source(k->mf),
                              &(cache_options){.keep = true}, &s, &filled) != WEFT_OK ||
            filled)
            _exit(1);
        memcpy(weight_cache_data(s), k->want, rows8_bytes / 2);
        raise(SIGKILL);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ck_assert_int_eq(entries(k, NULL), nameless ? 0 : 1);
    ck_assert(!is_kept(k, &k->p, k->mf));
    kit_close(k);
}
END_TEST

START_TEST(who_keeps_nothing_leaves_nothing)
{
    kit *k = kit_open();
    ck_assert(loads(k, false));
    ck_assert_int_ne(access(k->cache.path, F_OK), 0);
    /* Nor looks at what is there. */
    ck_assert(loads(k, true));
    temp_path file = only_file(k);
    change_byte(file.path, HEAD + 99, 0xff);
    ck_assert(loads(k, false));
    ck_assert_str_eq(only_file(k).path, file.path);
    ck_assert_uint_eq(diag_count(k->dg), 0);
    ck_assert(loads(k, true));
    expect_one(k->dg, W1508, file.path);
    kit_close(k);
}
END_TEST

/* ---- files that become shorter while they are mapped ---- */

static void open_guarded(kit *k)
{
    model_file_close(k->mf);
    ck_assert_int_eq(
        model_file_open(k->dg, k->path.path, &(model_file_options){.guard = true}, &k->mf),
        WEFT_OK);
}

/* Weights that were found, or made a moment ago; the file is cut while they are used. */
static bool survives_a_cut(kit *k)
{
    for (int found = 0; found < 2; found++) {
        diag_reset(k->dg);
        weights *w = load(k, true);
        const char *data = cpu_weights_at(w, 0);
        if (weights_check(k->dg, w) != WEFT_OK ||
            truncate(only_file(k).path, HEAD + (off_t)rows8_bytes / 2) != 0)
            return false;
        bool same = memcmp(data, k->want, rows8_bytes / 2 - HEAD) == 0;
        uint64_t sum = 0;
        for (size_t i = rows8_bytes / 2 + HEAD; i < rows8_bytes; i++)
            sum += (unsigned char)data[i];
        if (!same || sum != 0 || weights_check(k->dg, w) != WEFT_ERR_FILE)
            return false;
        expect_one(k->dg, W1012, only_file(k).path);
        weights_destroy(w); /* which says in the file of its own that it is on the disk */
        if (!loads(k, true))
            return false;
    }
    return true;
}

static bool reads_a_cut_file(kit *k)
{
    weights *w = load(k, true);
    volatile const char *data = cpu_weights_at(w, 0);
    if (truncate(only_file(k).path, HEAD) != 0)
        return false;
    return data[rows8_bytes - 1] == k->want[rows8_bytes - 1];
}

START_TEST(a_file_that_is_cut_while_in_use)
{
    kit *k = kit_open();
    int status = 0;
    open_guarded(k);
    ck_assert(in_child(k, survives_a_cut));
    /* Without a guard the process ends, as with a checkpoint. */
    reopen(k);
    ck_assert(loads(k, true));
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        signal(SIGBUS, SIG_DFL);
        _exit(reads_a_cut_file(k));
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(!WIFEXITED(status) || WEXITSTATUS(status) != 1, "it read what is not there");
    kit_close(k);
}
END_TEST

SUITE_MAIN("cache_trouble", without_a_folder_memory_will_do, a_folder_that_may_not_be_written,
           a_full_disk_leaves_nothing, several_processes_at_once,
           the_later_of_two_replaces_an_equal_file, what_was_not_finished_is_not_found,
           who_is_ended_leaves_nothing, who_keeps_nothing_leaves_nothing,
           a_file_that_is_cut_while_in_use)
