/* test_cache_list.c - the suite of runtime/exec/cache_list.c: what is in the folder, and what has to go. */
#include "runtime/exec/weight_cache.h"
#include "tests/base/suite.h"

#include <fcntl.h>
#include <time.h>

#define DIGITS "0123456789abcdef0123456789abcde"
static const char old_file[] = DIGITS "1.weights", mid_file[] = DIGITS "2.weights",
                  new_file[] = DIGITS "3.weights";

static void put_file(const temp_dir *folder, const char *name, off_t bytes, int64_t age)
{
    temp_path p = temp_file(folder, name, STR("no header"));
    time_t then = time(NULL) - (time_t)age;
    const struct timespec both[2] = {{.tv_sec = then}, {.tv_sec = then}};
    ck_assert_int_eq(truncate(p.path, bytes), 0);
    ck_assert_int_eq(utimensat(AT_FDCWD, p.path, both, 0), 0);
}

static bool has_file(const temp_dir *folder, const char *name)
{
    return access(temp_join(folder, name).path, F_OK) == 0;
}

static void remove_folder(const temp_dir *folder)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder->path);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(the_folder_is_the_callers_or_the_environments)
{
    static const struct {
        const char *dir, *cache, *home, *want;
    } cases[] = {
        {NULL, "/c", "/h", "/c/weft/weights"},
        {NULL, "c", "/h", "/h/.cache/weft/weights"},
        {NULL, "", "/h", "/h/.cache/weft/weights"},
        {NULL, "c", "h", NULL},
        {"", "/c", "/h", "/c/weft/weights"},
        {"/d", "/c", "/h", "/d"},
        {"d/e", "", "", "d/e"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        strbuf out = {0};
        setenv("XDG_CACHE_HOME", cases[i].cache, 1);
        setenv("HOME", cases[i].home, 1);
        ck_assert_int_eq(cache_folder(cases[i].dir, &out), cases[i].want != NULL);
        if (cases[i].want)
            ck_assert_str_eq(out.p, cases[i].want);
        strbuf_free(&out);
    }
}
END_TEST

START_TEST(pruning_keeps_what_was_used_last)
{
    temp_dir folder = temp_dir_create();
    arena *a = arena_create();
    cache_file *files;
    ck_assert_uint_eq(cache_prune(folder.path, 0), 0); /* there is nothing */
    ck_assert_uint_eq(cache_prune("/nowhere/at/all", 0), 0);
    put_file(&folder, old_file, 5000, 300);
    put_file(&folder, new_file, 1000, 100);
    put_file(&folder, mid_file, 2000, 200);
    put_file(&folder, "notes.txt", 3000, 99999);      /* not ours */
    put_file(&folder, "weft-new-abCD01", 4000, 60);   /* being made */
    put_file(&folder, "weft-new-ghijkl", 700, 99999); /* nobody makes it any more */
    ck_assert_uint_eq(cache_list(a, folder.path, &files), 3);
    ck_assert_str_eq(files[0].name, new_file);
    ck_assert_str_eq(files[1].name, mid_file);
    ck_assert_str_eq(files[2].name, old_file);
    ck_assert_uint_eq(cache_prune(folder.path, UINT64_MAX), 700);
    ck_assert(!has_file(&folder, "weft-new-ghijkl") && has_file(&folder, "weft-new-abCD01"));
    ck_assert_uint_eq(cache_prune(folder.path, 8000), 0);
    ck_assert_uint_eq(cache_prune(folder.path, 7999), 5000);
    ck_assert(has_file(&folder, new_file) && has_file(&folder, mid_file));
    ck_assert_uint_eq(cache_prune(folder.path, 2999), 2000);
    ck_assert(has_file(&folder, new_file));
    ck_assert_uint_eq(cache_prune(folder.path, 0), 1000);
    ck_assert_uint_eq(cache_list(a, folder.path, &files), 0);
    ck_assert(has_file(&folder, "notes.txt"));
    arena_destroy(a);
    remove_folder(&folder);
}
END_TEST

/* Any folder can be named, so files that others keep there have to survive whatever is done. */
START_TEST(files_with_other_names_are_left_alone)
{
    static const char *const names[] = {
        "foo.weights",
        "pack-" DIGITS "0.weights",
        DIGITS ".weights",
        DIGITS "00.weights",
        DIGITS "A.weights",
        DIGITS "g.weights",
        DIGITS "0.pack.old",
        DIGITS "0.seen",
        DIGITS "0",
        "." DIGITS "0.weights",
        ".x.seen",
        "." DIGITS ".seen",
        "." DIGITS "00.seen",
        "." DIGITS "0.seen~",
        ".seen",
        ".weights",
        "new-notes",
        "new-abcdef",
        "weft-new-",
        "weft-new-notes.txt",
        "weft-new-abcde",
        "weft-new-abcdefg",
        "weft-new-ab.txt",
    };
    temp_dir folder = temp_dir_create();
    arena *a = arena_create();
    cache_file *files;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        put_file(&folder, names[i], 1000, 99999);
    put_file(&folder, "." DIGITS "0.seen", 100, 99999); /* ours, of a file that is gone */
    ck_assert_uint_eq(cache_list(a, folder.path, &files), 0);
    ck_assert(cache_make_room(folder.path, 10, 10));
    ck_assert_uint_eq(cache_prune(folder.path, 0), 0);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        ck_assert_msg(has_file(&folder, names[i]), "%s", names[i]);
    ck_assert(!has_file(&folder, "." DIGITS "0.seen"));
    arena_destroy(a);
    remove_folder(&folder);
}
END_TEST

/* How many bytes of others stay; -1: the file is not made. */
static int64_t room(uint64_t need, uint64_t kept, uint64_t bytes_max, cache_disk disk)
{
    uint64_t keep = 12345;
    if (cache_room(need, kept, bytes_max, disk, &keep))
        return (int64_t)keep;
    ck_assert_uint_eq(keep, 12345);
    return -1;
}

START_TEST(a_part_of_the_disk_stays_free)
{
    const uint64_t g = UINT64_C(1) << 30;
    const cache_disk unknown = {0}, small = {.free = 6 * g, .all = 10 * g},
                     large = {.free = 60 * g, .all = 1000 * g}, full = {.free = 0, .all = 10 * g};
    /* The bound alone. */
    ck_assert_int_eq(room(5 * g, 0, 64 * g, unknown), 59 * (int64_t)g);
    ck_assert_int_eq(room(64 * g, 9 * g, 64 * g, unknown), 0);
    ck_assert_int_eq(room(64 * g + 1, 0, 64 * g, unknown), -1);
    ck_assert_int_eq(room(UINT64_MAX, 0, 64 * g, unknown), -1);
    /* 1 GiB of a small disk. */
    ck_assert_int_eq(room(5 * g, 0, 64 * g, small), 0);
    ck_assert_int_eq(room(5 * g + 1, 0, 64 * g, small), -1);
    ck_assert_int_eq(room(3 * g, 2 * g, 64 * g, small), 4 * (int64_t)g);
    ck_assert_int_eq(room(6 * g, 2 * g, 64 * g, small), 1 * (int64_t)g); /* one of two has to go */
    ck_assert_int_eq(room(8 * g, 2 * g, 64 * g, small), -1);             /* both are not enough */
    /* A twentieth of a large one. */
    ck_assert_int_eq(room(10 * g, 0, 64 * g, large), 0);
    ck_assert_int_eq(room(10 * g + 1, 0, 64 * g, large), -1);
    ck_assert_int_eq(room(10 * g, 5 * g, 64 * g, large), 5 * (int64_t)g);
    ck_assert_int_eq(room(1, 0, 64 * g, full), -1);
    ck_assert_int_eq(room(1, g, 64 * g, full), -1);
    ck_assert_int_eq(room(1, g + 1, 64 * g, full), 0);
}
END_TEST

START_TEST(what_cannot_fit_removes_nothing)
{
    temp_dir folder = temp_dir_create();
    put_file(&folder, old_file, 5000, 300);
    put_file(&folder, new_file, 1000, 100);
    ck_assert(!cache_make_room(folder.path, 7001, 7000));
    ck_assert(!cache_make_room(folder.path, UINT64_MAX / 2, UINT64_MAX)); /* no disk is so large */
    ck_assert(has_file(&folder, old_file) && has_file(&folder, new_file));
    ck_assert(cache_make_room(folder.path, 1000, 7000));
    ck_assert(has_file(&folder, old_file) && has_file(&folder, new_file));
    ck_assert(cache_make_room(folder.path, 1001, 7000));
    ck_assert(!has_file(&folder, old_file) && has_file(&folder, new_file));
    ck_assert(cache_make_room(folder.path, 7000, 7000));
    ck_assert(!has_file(&folder, new_file));
    remove_folder(&folder);
}
END_TEST

START_TEST(a_folder_that_is_not_there_has_the_room_of_the_one_above)
{
    temp_dir folder = temp_dir_create();
    ck_assert_int_eq(cache_has_room(temp_join(&folder, "not/there").path, 1, 1000),
                     cache_has_room(folder.path, 1, 1000));
    ck_assert_int_eq(cache_has_room("/weft-is-not-there", 1, 1000), cache_has_room("/", 1, 1000));
    ck_assert_int_eq(cache_has_room("/weft-is-not/there", 1, 1000), cache_has_room("/", 1, 1000));
    ck_assert_int_eq(cache_has_room("weft-is-not-there", 1, 1000), cache_has_room(".", 1, 1000));
    remove_folder(&folder);
}
END_TEST

SUITE_MAIN("cache_list", the_folder_is_the_callers_or_the_environments,
           pruning_keeps_what_was_used_last, files_with_other_names_are_left_alone,
           a_folder_that_is_not_there_has_the_room_of_the_one_above, a_part_of_the_disk_stays_free,
           what_cannot_fit_removes_nothing)
