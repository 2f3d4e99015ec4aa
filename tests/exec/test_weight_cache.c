/* test_weight_cache.c - the suite of runtime/exec/weight_cache.c: interleaved weights that are kept on disk. */
#include "runtime/exec/cache_seen.h"
#include "tests/exec/cache_kit.h"

START_TEST(made_once_and_found_again)
{
    kit *k = kit_open();
    ck_assert(loads(k, true));
    temp_path file = only_file(k);
    struct stat first = stat_of(file.path);
    ck_assert_int_eq(first.st_size, (off_t)file_bytes);
    ck_assert_int_eq(first.st_mode & 077, 0);
    ck_assert(is_kept(k, &k->p, k->mf));

    set_age(file.path, 1000);
    weights *w = load(k, true);
    ck_assert_int_eq(memcmp(cpu_weights_at(w, 0), k->want, rows8_bytes), 0);
    struct stat again = stat_of(only_file(k).path);
    ck_assert_uint_eq(again.st_ino, first.st_ino);
    ck_assert_int_lt(time(NULL) - again.st_mtime, 500); /* it was used now */
    /* It is the file itself that is in memory, not a copy of it. */
    change_byte(file.path, HEAD + 77, 0xff);
    ck_assert_int_ne(memcmp(cpu_weights_at(w, 0), k->want, rows8_bytes), 0);
    change_byte(file.path, HEAD + 77, 0xff);
    ck_assert_int_eq(memcmp(cpu_weights_at(w, 0), k->want, rows8_bytes), 0);
    /* Removing it while it is used does no harm. */
    ck_assert_uint_eq(cache_prune(k->interleaved.path, 0), file_bytes);
    ck_assert_int_eq(entries(k, NULL), 0);
    ck_assert_int_eq(memcmp(cpu_weights_at(w, 0), k->want, rows8_bytes), 0);
    weights_destroy(w);
    kit_close(k);
}
END_TEST

typedef struct {
    uint64_t calls, done, total;
} told;

static void tell(void *ctx, uint64_t done, uint64_t total)
{
    told *t = ctx;
    ck_assert_uint_ge(done, t->done);
    *t = (told){t->calls + 1, done, total};
}

START_TEST(interleaving_says_how_far_it_is)
{
    kit *k = kit_open();
    for (int found = 0; found < 2; found++) {
        told t = {0};
        weights *w;
        weights_options opt = {.threads = 2, .use_cache = true, .progress = {tell, &t}};
        ck_assert_int_eq(weights_create(k->dg, NULL, &k->p, model_file_source(k->mf), &opt, &w),
                         WEFT_OK);
        weights_destroy(w);
        ck_assert(found ? t.calls == 0 : t.calls >= 1); /* what is there need not be interleaved */
        ck_assert_uint_eq(t.done, found ? 0 : rows8_bytes);
        ck_assert_uint_eq(t.total, found ? 0 : rows8_bytes);
    }
    kit_close(k);
}
END_TEST

START_TEST(the_list_names_the_model)
{
    kit *k = kit_open();
    arena *a = arena_create();
    cache_file *files;
    ck_assert_uint_eq(cache_list(a, k->interleaved.path, &files), 0); /* there is no folder yet */
    ck_assert(loads(k, true));
    ck_assert_uint_eq(cache_list(a, k->interleaved.path, &files), 1);
    ck_assert_str_eq(files[0].model, k->path.path);
    ck_assert_uint_eq(files[0].bytes, file_bytes);
    change_byte(only_file(k).path, 0, 1);
    ck_assert_uint_eq(cache_list(a, k->interleaved.path, &files), 1);
    ck_assert_str_eq(files[0].model, "damaged");
    arena_destroy(a);
    kit_close(k);
}
END_TEST

/* What differs in anything that decides the bytes has a file of its own. */
START_TEST(another_plan_has_another_file)
{
    kit *k = kit_open();
    plan_piece piece = k->piece, scales = {.tensor = 1, .rows = ROWS},
               halves[2] = {{0, 0, ROWS / 2}, {0, ROWS / 2 * ROW_BYTES, ROWS / 2}};
    plan_weight other = k->w, two[2] = {k->w, k->w};
    plan p = {.n_weight = 1, .weight = &other, .interleaved_bytes = rows8_bytes};
    ck_assert(loads(k, true));
    ck_assert(is_kept(k, &p, k->mf));
#define EXPECT_OTHER(change)                                                                       \
    do {                                                                                           \
        other = k->w;                                                                              \
        piece = k->piece;                                                                          \
        other.piece = &piece;                                                                      \
        ck_assert(is_kept(k, &p, k->mf));                                                          \
        change;                                                                                    \
        ck_assert_msg(!is_kept(k, &p, k->mf), "%s", #change);                                      \
    } while (0)
    EXPECT_OTHER(other.layout = LAYOUT_STORED);
    EXPECT_OTHER(other.type = DT_Q4_0);
    EXPECT_OTHER(other.stored = DT_F16);
    EXPECT_OTHER(other.bytes -= 64);
    EXPECT_OTHER(other.rank = 1);
    EXPECT_OTHER(other.dim[0] = ROWS - 8);
    EXPECT_OTHER(other.dim[1] = COLS - 32);
    EXPECT_OTHER(other.stride[0] = 2 * ROW_BYTES);
    EXPECT_OTHER(piece.tensor = 1);
    EXPECT_OTHER(piece.offset = ROW_BYTES);
    EXPECT_OTHER(piece.rows = ROWS - 8);
    EXPECT_OTHER(other.scales = &scales);
    EXPECT_OTHER((other.n_piece = 2, other.piece = halves));
    EXPECT_OTHER(p.interleaved_bytes += 64);
    p = (plan){.n_weight = 2, .weight = two, .interleaved_bytes = rows8_bytes};
    two[1].mode = WEIGHT_MAPPED; /* which has no part in it */
    ck_assert(is_kept(k, &p, k->mf));
    two[1].mode = WEIGHT_INTERLEAVED;
    ck_assert(!is_kept(k, &p, k->mf));
    ck_assert_int_eq(entries(k, NULL), 1);
    kit_close(k);
}
END_TEST

START_TEST(another_checkpoint_has_another_file)
{
    kit *k = kit_open();
    ck_assert(loads(k, true));
    model_file *other;
    temp_path path = temp_join(&k->dir, "other.gguf");
    write_model(k->dg, path.path, 1); /* byte for byte the same, but who is to know */
    ck_assert_int_eq(model_file_open(k->dg, path.path, NULL, &other), WEFT_OK);
    ck_assert(!is_kept(k, &k->p, other));
    model_file_close(other);

    /* Written anew with other weights: same name, same size. */
    write_model(k->dg, k->path.path, 2);
    reopen(k);
    ck_assert(!is_kept(k, &k->p, k->mf));
    weights *w = load(k, true);
    ck_assert_int_ne(memcmp(cpu_weights_at(w, 0), k->want, rows8_bytes), 0);
    weights_destroy(w);
    ck_assert_int_eq(entries(k, NULL), 2);
    /* Changed in place: the time tells. */
    ck_assert(is_kept(k, &k->p, k->mf));
    set_age(k->path.path, 5000);
    reopen(k);
    ck_assert(!is_kept(k, &k->p, k->mf));
    kit_close(k);
}
END_TEST

/* Someone else had the folder first. */
START_TEST(what_others_can_write_is_not_believed)
{
    kit *k = kit_open();
    arena *a = arena_create();
    cache_file *files;
    ck_assert(loads(k, true));
    temp_path file = only_file(k);
    ck_assert_int_eq(chmod(file.path, 0620), 0);
    ck_assert(!is_kept(k, &k->p, k->mf));
    ck_assert_int_eq(chmod(file.path, 0600), 0);
    ck_assert(is_kept(k, &k->p, k->mf));
    /* Behind a link. */
    temp_path aside = temp_join(&k->dir, "aside");
    ck_assert_int_eq(rename(file.path, aside.path), 0);
    ck_assert_int_eq(symlink(aside.path, file.path), 0);
    ck_assert(!is_kept(k, &k->p, k->mf));
    ck_assert_uint_eq(cache_list(a, k->interleaved.path, &files), 0);
    /* A FIFO that nobody writes to holds no one. */
    ck_assert_int_eq(unlink(file.path), 0);
    ck_assert_int_eq(mkfifo(file.path, 0600), 0);
    ck_assert(!is_kept(k, &k->p, k->mf));
    ck_assert_uint_eq(cache_list(a, k->interleaved.path, &files), 0);
    ck_assert(loads(k, true));
    ck_assert(is_kept(k, &k->p, k->mf));
    unlink(aside.path);
    arena_destroy(a);
    kit_close(k);
}
END_TEST

START_TEST(a_model_in_memory_keeps_nothing)
{
    kit *k = kit_open();
    model_part part = model_file_part(k->mf, 0);
    model_file *mem;
    weights *w;
    ck_assert_int_eq(model_file_open_memory(k->dg, part.data, part.bytes, "made up", &mem),
                     WEFT_OK);
    weights_options how = {.use_cache = true};
    ck_assert_int_eq(weights_create(k->dg, NULL, &k->p, model_file_source(mem), &how, &w), WEFT_OK);
    ck_assert_int_eq(memcmp(cpu_weights_at(w, 0), k->want, rows8_bytes), 0);
    weights_destroy(w);
    model_file_close(mem);
    ck_assert_int_eq(entries(k, NULL), 0);
    kit_close(k);
}
END_TEST

/* Something is wrong with the file: it is not used, a warning names it, and a good one takes its place. */
static void expect_replaced(kit *k, temp_path file, const char *what)
{
    diag_reset(k->dg);
    ck_assert_msg(loads(k, true), "%s: wrong weights", what);
    ck_assert_msg(diag_count(k->dg) == 1, "%s: %zu warnings", what, diag_count(k->dg));
    ck_assert_uint_eq(diag_errors(k->dg), 0);
    expect_one(k->dg, W1508, file.path);
    ck_assert_str_eq(only_file(k).path, file.path);
    ck_assert_msg(is_kept(k, &k->p, k->mf), "%s: not kept again", what);
    ck_assert_uint_eq(diag_count(k->dg), 1);
}

START_TEST(a_damaged_file_is_replaced)
{
    kit *k = kit_open();
    ck_assert(loads(k, true));
    temp_path file = only_file(k);
    static const struct {
        off_t at;
        const char *what;
    } spots[] = {{0, "magic"},
                 {8, "version"},
                 {12, "size of the header"},
                 {16, "low"},
                 {31, "high"},
                 {32, "bytes of weights"},
                 {39, "too many bytes"},
                 {40, "sum of the table"},
                 {50, "boot"},
                 {100, "model"},
                 {602, "synced"},
                 {608, "sum of the header"}};
    for (size_t i = 0; i < COUNT_OF(spots); i++) {
        change_byte(file.path, spots[i].at, 2);
        expect_replaced(k, file, spots[i].what);
    }
    const off_t lengths[] = {0, 100, HEAD, (off_t)file_bytes - 1, (off_t)file_bytes + 1};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        ck_assert_int_eq(truncate(file.path, lengths[i]), 0);
        expect_replaced(k, file, "another length");
    }
    kit_close(k);
}
END_TEST

/* What a user sees. */
START_TEST(the_warning_names_file_and_place)
{
    kit *k = kit_open();
    char want[1024];
    ck_assert(loads(k, true));
    temp_path file = only_file(k);
    change_byte(file.path, HEAD + 3 * CHUNK + 77, 1);
    ck_assert(loads(k, true));
    snprintf(
        want, sizeof want,
        "weft: warning[W1508]: %s: interleaved weights on disk are damaged: the checksum of the "
        "bytes from 200704 on is not that of the weights\n"
        "      = note: the weights are repacked from the checkpoint\n",
        file.path);
    char *text = printed(k->dg, false);
    ck_assert_str_eq(text, want);
    free(text);
    kit_close(k);
}
END_TEST

/* One bit, wherever it is. */
START_TEST(changed_weights_are_found)
{
    kit *k = kit_open();
    ck_assert(loads(k, true));
    temp_path file = only_file(k);
    const off_t spots[] = {HEAD,
                           HEAD + 1,
                           HEAD + CHUNK - 1,
                           HEAD + CHUNK,
                           HEAD + (off_t)rows8_bytes / 2 + 12345,
                           HEAD + (off_t)rows8_bytes - 1,
                           HEAD + (off_t)rows8_bytes, /* the first checksum */
                           (off_t)file_bytes - 1};
    for (size_t i = 0; i < COUNT_OF(spots); i++) {
        change_byte(file.path, spots[i], 1 << i);
        expect_replaced(k, file, "a bit");
    }
    kit_close(k);
}
END_TEST

START_TEST(a_file_is_checked_alone)
{
    kit *k = kit_open();
    const char *fault = "";
    ck_assert(loads(k, true));
    temp_path file = only_file(k);
    static const struct {
        off_t at;
        const char *fault;
    } spots[] = {{8, "it is of another version"},
                 {100, "its header has changed"},
                 {HEAD + 5000000, "its weights have changed"},
                 {HEAD + ROWS * ROW_BYTES + 9, "its checksums have changed"}};
    for (size_t i = 0; i < COUNT_OF(spots); i++)
        for (int damaged = 1; damaged >= 0; damaged--) { /* and mended again */
            change_byte(file.path, spots[i].at, 1);
            ck_assert_int_eq(cache_check(k->dg, file.path, 2, &fault), WEFT_OK);
            if (damaged)
                ck_assert_str_eq(fault, spots[i].fault);
            else
                ck_assert_ptr_null(fault);
        }
    ck_assert_int_eq(truncate(file.path, 4711), 0);
    ck_assert_int_eq(cache_check(k->dg, file.path, 2, &fault), WEFT_OK);
    ck_assert_str_eq(fault, "its length is wrong");
    ck_assert_int_eq(truncate(file.path, 0), 0);
    ck_assert_int_eq(cache_check(k->dg, file.path, 2, &fault), WEFT_OK);
    ck_assert_str_eq(fault, "it has no header");
    ck_assert_int_eq(chmod(file.path, 0622), 0);
    ck_assert_int_eq(cache_check(k->dg, file.path, 2, &fault), WEFT_OK);
    ck_assert_str_eq(fault, "others can write it");
    ck_assert(cache_remove(file.path) && !cache_remove(file.path));
    ck_assert_int_eq(cache_check(k->dg, file.path, 2, &fault), WEFT_OK);
    ck_assert_str_eq(fault, "it cannot be read");
    kit_close(k);
}
END_TEST

static void wait_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

/* What was checked is not checked again, until it changes. */
START_TEST(what_was_checked_is_written_down)
{
    kit *k = kit_open();
    ck_assert(loads(k, true));
    temp_path file = only_file(k), seen;
    const char *name = strrchr(file.path, '/') + 1;
    snprintf(seen.path, sizeof seen.path, "%.200s/.%.32s.seen", k->interleaved.path, name);
    ck_assert_int_ne(access(seen.path, F_OK), 0); /* nobody has read it back yet */
    wait_ms(150);
    ck_assert(is_kept(k, &k->p, k->mf));
    ck_assert_int_eq(access(seen.path, F_OK), 0);
    /* Its time is when the weights were used. */
    arena *a = arena_create();
    cache_file *files;
    struct stat before = stat_of(file.path);
    set_age(seen.path, 5000);
    ck_assert(is_kept(k, &k->p, k->mf));
    ck_assert_int_lt(time(NULL) - stat_of(seen.path).st_mtime, 500);
    ck_assert_uint_eq(cache_list(a, k->interleaved.path, &files), 1);
    ck_assert_int_lt(time(NULL) - files[0].used, 500);
    struct stat after = stat_of(file.path);
    ck_assert_int_eq(before.st_ctim.tv_sec, after.st_ctim.tv_sec); /* nobody touched the file */
    ck_assert_int_eq(before.st_ctim.tv_nsec, after.st_ctim.tv_nsec);
    /* A change is found all the same, even if the file's other time is set back. */
    const struct timespec back[2] = {before.st_atim, before.st_mtim};
    change_byte(file.path, HEAD + 4711, 4);
    ck_assert_int_eq(utimensat(AT_FDCWD, file.path, back, 0), 0);
    expect_replaced(k, file, "a bit in a file that was checked");
    /* It goes with its file. */
    wait_ms(150);
    ck_assert(is_kept(k, &k->p, k->mf));
    ck_assert_int_eq(access(seen.path, F_OK), 0);
    ck_assert_uint_eq(cache_prune(k->interleaved.path, 0), file_bytes);
    ck_assert_int_ne(access(seen.path, F_OK), 0);
    arena_destroy(a);
    kit_close(k);
}
END_TEST

/* A file over the bound is sampled, which is not written down as a check, unless the caller wants all of it. */
START_TEST(a_large_file_is_only_sampled)
{
    const struct {
        uint64_t check_bytes_max;
        bool check_all, want;
    } cases[] = {{file_bytes - 1, false, false},
                 {file_bytes - 1, true, true},
                 {file_bytes, false, true},
                 {0, false, true}};
    kit *k = kit_open();
    ck_assert(loads(k, true));
    temp_path file = only_file(k), seen;
    snprintf(seen.path, sizeof seen.path, "%.200s/.%.32s.seen", k->interleaved.path,
             strrchr(file.path, '/') + 1);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cache_options how = {.keep = true,
                             .check_bytes_max = cases[i].check_bytes_max,
                             .check_all = cases[i].check_all};
        weight_cache *s;
        bool filled;
        unlink(seen.path);
        wait_ms(150);
        ck_assert_int_eq(
            weight_cache_open(k->dg, &k->p, model_file_source(k->mf), &how, &s, &filled), WEFT_OK);
        ck_assert(filled);
        ck_assert_int_eq(access(seen.path, F_OK) == 0, cases[i].want);
        weight_cache_close(s);
    }
    kit_close(k);
}
END_TEST

/* Claim that the file, as it is, was checked. */
static void claim_seen(kit *k, temp_path file)
{
    cache_head own, head;
    bool settled;
    struct stat st = stat_of(file.path);
    int fd = open(file.path, O_RDONLY);
    ck_assert_int_eq(pread(fd, &head, sizeof head, 0), (ssize_t)sizeof head);
    close(fd);
    cache_head_init(&own, rows8_bytes, model_file_source(k->mf));
    cache_stamp stamp = cache_stamp_of(&st, &head, own.boot, &settled);
    ck_assert(cache_seen_note(file.path, &stamp));
    ck_assert(cache_seen(file.path, &stamp));
}

/* The disk or memory itself went bad: no time tells. A sample shows much damage, a whole check any. */
START_TEST(a_file_that_was_checked_is_sampled)
{
    kit *k = kit_open();
    ck_assert(loads(k, true));
    temp_path file = only_file(k);
    claim_seen(k, file);
    ck_assert(is_kept(k, &k->p, k->mf));
    for (off_t i = 0; i < CHUNKS; i++)
        change_byte(file.path, HEAD + i * CHUNK + 77, 1);
    claim_seen(k, file);
    expect_replaced(k, file, "all chunks");

    change_byte(file.path, HEAD + 100 * CHUNK + 77, 1);
    claim_seen(k, file);
    weights *w;
    diag_reset(k->dg);
    weights_options how = {.threads = 2, .use_cache = true, .check_cache = true};
    ck_assert_int_eq(weights_create(k->dg, NULL, &k->p, model_file_source(k->mf), &how, &w),
                     WEFT_OK);
    ck_assert_int_eq(memcmp(cpu_weights_at(w, 0), k->want, rows8_bytes), 0);
    weights_destroy(w);
    expect_one(k->dg, W1508, "from 6557696 on"); /* 100 chunks and the header */
    kit_close(k);
}
END_TEST

START_TEST(a_folder_in_its_place_does_no_harm)
{
    kit *k = kit_open();
    ck_assert(loads(k, true));
    temp_path file = only_file(k);
    ck_assert_int_eq(unlink(file.path), 0);
    ck_assert_int_eq(mkdir(file.path, 0700), 0);
    ck_assert(loads(k, true));
    ck_assert_str_eq(only_file(k).path, file.path); /* and nothing beside it */
    ck_assert_uint_eq(cache_prune(k->interleaved.path, 0), 0);
    ck_assert_int_eq(entries(k, NULL), 1);
    kit_close(k);
}
END_TEST

START_TEST(little_is_not_kept)
{
    kit *k = kit_open();
    k->w.dim[0] = k->w.rows = k->piece.rows = ROWS / 2;
    k->w.bytes = k->p.interleaved_bytes = rows8_bytes / 2;
    weights *w = load(k, true);
    ck_assert_int_eq(memcmp(cpu_weights_at(w, 0), k->want, rows8_bytes / 2), 0);
    weights_destroy(w);
    ck_assert_int_ne(access(k->cache.path, F_OK), 0);
    kit_close(k);
}
END_TEST

static bool loads_as(kit *k, const weights_options *how)
{
    weights *w;
    ck_assert_int_eq(weights_create(k->dg, NULL, &k->p, model_file_source(k->mf), how, &w),
                     WEFT_OK);
    bool same = memcmp(cpu_weights_at(w, 0), k->want, rows8_bytes) == 0;
    weights_destroy(w);
    return same;
}

START_TEST(the_caller_names_the_folder)
{
    kit *k = kit_open();
    temp_path mine = temp_join(&k->dir, "mine/own");
    arena *a = arena_create();
    cache_file *files;
    weights_options how = {.use_cache = true, .cache_dir = mine.path};
    for (int found = 0; found < 2; found++) {
        ck_assert(loads_as(k, &how));
        ck_assert_uint_eq(cache_list(a, mine.path, &files), 1);
        ck_assert_int_ne(access(k->cache.path, F_OK), 0); /* not the environment's */
    }
    how.cache_dir = ""; /* is none */
    ck_assert(loads_as(k, &how));
    ck_assert_int_eq(entries(k, NULL), 1);
    /* Where it cannot be made, memory will do, and the environment's is not taken instead. */
    ck_assert_uint_gt(cache_prune(k->interleaved.path, 0), 0);
    how.cache_dir = k->path.path;
    ck_assert(loads_as(k, &how));
    ck_assert_int_eq(entries(k, NULL), 0);
    arena_destroy(a);
    kit_close(k);
}
END_TEST

START_TEST(no_file_passes_the_bound)
{
    kit *k = kit_open();
    const uint64_t bytes = file_bytes;
    ck_assert(loads(k, true));
    temp_path first = only_file(k);
    write_model(k->dg, k->path.path, 1); /* another file, so another name */
    reopen(k);
    /* It cannot fit: nothing goes for it. */
    weights_options how = {.use_cache = true, .cache_bytes_max = bytes - 1};
    ck_assert(loads_as(k, &how));
    ck_assert_str_eq(only_file(k).path, first.path);
    /* It fits alone. */
    how.cache_bytes_max = 2 * bytes - 1;
    ck_assert(loads_as(k, &how));
    ck_assert_str_ne(only_file(k).path, first.path);
    /* Both fit. */
    write_model(k->dg, k->path.path, 1);
    reopen(k);
    how.cache_bytes_max = 2 * bytes;
    ck_assert(loads_as(k, &how));
    ck_assert_int_eq(entries(k, NULL), 2);
    kit_close(k);
}
END_TEST

SUITE_MAIN("weight_cache", made_once_and_found_again, interleaving_says_how_far_it_is,
           the_list_names_the_model, another_plan_has_another_file,
           another_checkpoint_has_another_file, what_others_can_write_is_not_believed,
           a_model_in_memory_keeps_nothing, a_damaged_file_is_replaced,
           the_warning_names_file_and_place, changed_weights_are_found, a_file_is_checked_alone,
           what_was_checked_is_written_down, a_file_that_was_checked_is_sampled,
           a_large_file_is_only_sampled, a_folder_in_its_place_does_no_harm, little_is_not_kept,
           the_caller_names_the_folder, no_file_passes_the_bound)
