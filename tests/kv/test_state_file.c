/* test_state_file.c - the suite of runtime/kv/state_file.c. Cells of every layout; memory of the state is filled with numbers that say
 * where they are. */
#include "runtime/kv/state_file.h"
#include "runtime/kv/chunk_file.h"
#include "runtime/kv/state_parts.h"
#include "tests/base/suite.h"
#include <fcntl.h>
#include <signal.h>

enum { TOK = 4, CTX = 40, SEQS = 2, CALL = 8 };

static const plan_cell cells[] = {
    {.name = "kv[0]", .heads = 2, .k = 3, .v = 2},
    {.name = "ring[1]", .heads = 1, .k = 2, .v = 2, .window = 6, .layout = PLAN_RING, .keep = 5},
    {.name = "whole[2]", .heads = 1, .k = 1, .v = 3, .layout = PLAN_CONTIGUOUS},
    {.name = "latent[3]", .latent = true, .heads = 1, .k = 5, .v = 2},
};

static const plan mixed = {.n_cell = 4, .cell = cells, .n_tok_max = CALL};
static const state_owner owner = {.model = {1, 2}, .adapters = 3, .n_vocab = 1000};

static char folder[64], path[80];

typedef struct {
    weft_diag *dg;
    state *st;
    char *base;
    int32_t ids[CTX + 1];
    int64_t n_copy; /* that do not fail; -1: all */
    state_copies copy;
} world;

static weft_status copy_some(void *ctx, weft_diag *dg, void *to, const void *from, size_t bytes)
{
    world *w = ctx;
    if (w->n_copy == 0)
        return weft_fail(dg, W1601, WEFT_NOWHERE, "the copy fails");
    w->n_copy -= w->n_copy > 0;
    memcpy(to, from, bytes);
    return WEFT_OK;
}

static world *open_world(const plan *p, dtype type, int64_t n_ctx, int64_t n_page)
{
    world *w = calloc(1, sizeof *w);
    w->dg = diag_create();
    w->n_copy = -1;
    w->copy = (state_copies){copy_some, copy_some, w};
    state_options opt = {
        .n_seq = SEQS, .n_ctx = n_ctx, .page_tok = TOK, .n_page = n_page, .type = type};
    ck_assert_int_eq(state_create(w->dg, p, &opt, &w->st), WEFT_OK);
    w->base = calloc(1, state_bytes(w->st));
    state_bind(w->st, w->base, NULL, NULL);
    for (int i = 0; i < CTX + 1; i++)
        w->ids[i] = 7 * i % 1000;
    return w;
}

static void close_world(world *w)
{
    for (int s = 0; s < SEQS; s++)
        ck_assert_int_eq(state_truncate(w->dg, w->st, s, 0), WEFT_OK);
    for (int32_t t = 0; t < state_tables(w->st); t++)
        ck_assert_int_eq(state_pages_free(w->st, t), state_pages_count(w->st, t));
    state_destroy(w->st);
    free(w->base);
    diag_destroy(w->dg);
    free(w);
}

typedef struct {
    unsigned char data[1 << 14];
    size_t n;
    unsigned char fill; /* 0: read what is there */
} bytes;

static weft_status take_part(void *ctx, weft_diag *dg, char *at, size_t n)
{
    bytes *b = ctx;
    (void)dg;
    ck_assert_uint_le(b->n + n, sizeof b->data);
    for (size_t i = 0; i < n && b->fill; i++)
        at[i] = (char)(b->fill + (b->n + i) * 31);
    memcpy(b->data + b->n, at, n);
    b->n += n;
    return WEFT_OK;
}

/* All bytes of a sequence, in order; written first unless fill is 0. */
static bytes *rows(const world *w, int64_t seq, unsigned char fill)
{
    bytes *b = calloc(1, sizeof *b);
    state_span spans[8];
    for (int32_t t = 0; t < state_tables(w->st); t++)
        spans[t] = state_span_of(w->st, t, seq);
    b->fill = fill;
    ck_assert_int_eq(
        state_parts_each(w->dg, w->st, seq, spans, state_length(w->st, seq), take_part, b),
        WEFT_OK);
    return b;
}

static void grow(world *w, int64_t seq, int64_t n)
{
    for (int64_t at = 0; at < n; at += CALL) {
        int64_t k = n - at < CALL ? n - at : CALL;
        ck_assert_int_eq(state_reserve(w->dg, w->st, seq, k), WEFT_OK);
        state_commit(w->st, seq, k);
    }
}

static weft_status save_with(world *w, int64_t seq, int64_t n_next)
{
    return state_file_save(w->dg, path, w->st, seq, w->ids, n_next, &owner, &w->copy);
}

static weft_status save(world *w, int64_t seq)
{
    return save_with(w, seq, 0);
}

static weft_status load(world *w, int64_t seq, const state_owner *who)
{
    state_file *f = NULL;
    weft_status st = state_file_open(w->dg, path, w->st, who, &f);
    if (st == WEFT_OK)
        st = state_file_load(w->dg, f, w->st, seq, &w->copy);
    state_file_close(f);
    return st;
}

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/weft-state-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/seq", folder);
}

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(what_was_saved_comes_back)
{
    static const dtype types[] = {DT_F32, DT_F16, DT_BF16};
    static const int64_t lengths[] = {0, 1, 4, 5, 17, CTX};
    make_folder();
    for (size_t ty = 0; ty < COUNT_OF(types); ty++)
        for (size_t k = 0; k < COUNT_OF(lengths); k++) {
            world *a = open_world(&mixed, types[ty], CTX, 0);
            /* Another context changes nothing, as long as the text fits. */
            world *b = open_world(&mixed, types[ty], CTX + 30 * (int)ty, 0);
            int64_t n, next, more = (int64_t)ty % 2; /* a token that comes next, or none */
            grow(a, 0, lengths[k]);
            bytes *saved = rows(a, 0, 77);
            ck_assert_int_eq(save_with(a, 0, more), WEFT_OK);
            grow(b, 1, 9); /* which goes */
            state_file *f;
            ck_assert_int_eq(state_file_open(b->dg, path, b->st, &owner, &f), WEFT_OK);
            ck_assert_mem_eq(state_file_ids(f, &n, &next), a->ids,
                             (size_t)(lengths[k] + more) * sizeof *a->ids);
            ck_assert_int_eq(n, lengths[k]);
            ck_assert_int_eq(next, more);
            ck_assert_int_eq(state_file_load(b->dg, f, b->st, 1, &b->copy), WEFT_OK);
            state_file_close(f);
            ck_assert_int_eq(state_length(b->st, 1), lengths[k]);
            bytes *got = rows(b, 1, 0);
            ck_assert_uint_eq(got->n, saved->n);
            ck_assert_mem_eq(got->data, saved->data, saved->n);
            if (lengths[k] < CTX) { /* and it goes on */
                ck_assert_int_eq(state_reserve(b->dg, b->st, 1, 1), WEFT_OK);
                state_commit(b->st, 1, 1);
            }
            free(saved);
            free(got);
            close_world(a);
            close_world(b);
        }
    remove_folder();
}
END_TEST

START_TEST(a_window_that_went_back_is_saved_as_it_is)
{
    make_folder();
    world *a = open_world(&mixed, DT_F32, CTX, 0), *b = open_world(&mixed, DT_F32, CTX, 0);
    grow(a, 0, 22);
    ck_assert_int_eq(state_truncate(a->dg, a->st, 0, 21), WEFT_OK);
    bytes *saved = rows(a, 0, 5);
    ck_assert_int_eq(save(a, 0), WEFT_OK);
    ck_assert_int_eq(load(b, 0, &owner), WEFT_OK);
    bytes *got = rows(b, 0, 0);
    ck_assert_mem_eq(got->data, saved->data, saved->n);
    for (int64_t n = 0; n <= 21; n++)
        ck_assert_int_eq(state_keepable(a->st, 0, n), state_keepable(b->st, 0, n));
    free(saved);
    free(got);
    close_world(a);
    close_world(b);
    remove_folder();
}
END_TEST

START_TEST(any_change_is_refused)
{
    make_folder();
    world *w = open_world(&mixed, DT_F16, CTX, 0);
    grow(w, 0, 9);
    free(rows(w, 0, 3));
    ck_assert_int_eq(save(w, 0), WEFT_OK);
    grow(w, 1, 6);
    bytes *before = rows(w, 1, 99);
    int fd = open(path, O_RDWR);
    off_t size = lseek(fd, 0, SEEK_END);
    for (off_t at = 0; at < size; at++) {
        unsigned char x, y;
        ck_assert_int_eq(pread(fd, &x, 1, at), 1);
        y = x ^ (unsigned char)(1 << at % 8);
        ck_assert_int_eq(pwrite(fd, &y, 1, at), 1);
        ck_assert_int_eq(load(w, 1, &owner), WEFT_ERR_FORMAT);
        diag_reset(w->dg);
        ck_assert_int_eq(pwrite(fd, &x, 1, at), 1);
    }
    for (off_t at = size - 1; at >= 0; at--) {
        ck_assert_int_eq(ftruncate(fd, at), 0);
        ck_assert_int_eq(load(w, 1, &owner), WEFT_ERR_FORMAT);
        diag_reset(w->dg);
    }
    close(fd);
    ck_assert_int_eq(state_length(w->st, 1), 6); /* nothing has changed */
    bytes *after = rows(w, 1, 0);
    ck_assert_mem_eq(after->data, before->data, before->n);
    free(before);
    free(after);
    close_world(w);
    remove_folder();
}
END_TEST

START_TEST(what_is_of_others_is_refused_by_name)
{
    make_folder();
    world *w = open_world(&mixed, DT_F16, CTX, 0);
    grow(w, 0, 9);
    ck_assert_int_eq(save(w, 0), WEFT_OK);
    state_owner other = owner;
    other.model.hi++;
    ck_assert_int_eq(load(w, 1, &other), WEFT_ERR_FORMAT);
    expect_one(w->dg, W1416,
               "holds state of another model: its weights are "
               "00000000000000020000000000000001, those of this one "
               "00000000000000030000000000000001");
    diag_reset(w->dg);
    other = owner;
    other.adapters = 0;
    ck_assert_int_eq(load(w, 1, &other), WEFT_ERR_ADAPTER);
    expect_one(w->dg, W1418,
               "computed with other adapters, set 0000000000000003; the sequence "
               "has none, set 0000000000000000");
    diag_reset(w->dg);
    other = owner;
    other.n_vocab = 50;
    ck_assert_int_eq(load(w, 1, &other), WEFT_ERR_FORMAT);
    expect_one(w->dg, W1006, "token 8 is 56; the model has tokens 0 to 49");
    diag_reset(w->dg);
    ck_assert_int_eq(load(w, SEQS, &owner), WEFT_ERR_STATE);
    expect_one(w->dg, W1403, "there is no sequence 2");
    diag_reset(w->dg);
    ck_assert_int_eq(state_file_save(w->dg, path, w->st, -1, w->ids, 0, &owner, &w->copy),
                     WEFT_ERR_STATE);
    diag_reset(w->dg);
    ck_assert_int_eq(
        state_file_save(w->dg, "/no/such/folder/f", w->st, 0, w->ids, 0, &owner, &w->copy),
        WEFT_ERR_FILE);
    diag_reset(w->dg);

    world *b = open_world(&mixed, DT_BF16, CTX, 0);
    ck_assert_int_eq(load(b, 1, &owner), WEFT_ERR_STATE);
    expect_one(
        b->dg, W1419,
        "holds state of another layout: kv[0]: keys and values of 2 heads, 3 and 2 wide, "
        "paged, pages of 4, stored as f16; the session has kv[0]: keys and values of 2 heads, 3 "
        "and 2 wide, paged, pages of 4, stored as bf16");
    close_world(b);
    plan fewer = mixed;
    fewer.n_cell = 3;
    b = open_world(&fewer, DT_F16, CTX, 0);
    ck_assert_int_eq(load(b, 1, &owner), WEFT_ERR_STATE);
    expect_one(b->dg, W1419, "the session has no further cell");
    close_world(b);
    b = open_world(&mixed, DT_F16, 8, 0); /* the ring keeps less than all there */
    ck_assert_int_eq(load(b, 1, &owner), WEFT_ERR_FULL);
    expect_one(b->dg, W1404, "holds 9 tokens; a sequence of this session holds 8");
    close_world(b);
    b = open_world(&mixed, DT_F16, CTX, 4);
    grow(b, 0, 8);
    ck_assert_int_eq(load(b, 1, &owner), WEFT_ERR_FULL);
    expect_one(b->dg, W1401, "holds 9 tokens; there are not enough free pages for them");
    ck_assert_int_eq(load(b, 0, &owner), WEFT_OK); /* in place of its own */
    close_world(b);
    close_world(w);
    remove_folder();
}
END_TEST

START_TEST(a_copy_that_fails)
{
    make_folder();
    world *w = open_world(&mixed, DT_F32, CTX, 0);
    grow(w, 0, 9);
    ck_assert_int_eq(save(w, 0), WEFT_OK);
    for (int64_t n = 0; n < 16; n += 3) {
        w->n_copy = n;
        grow(w, 1, 5);
        ck_assert_int_eq(save(w, 1), WEFT_ERR_DEVICE);
        diag_reset(w->dg);
        w->n_copy = n;
        ck_assert_int_eq(load(w, 1, &owner), WEFT_ERR_DEVICE); /* the old file is still there */
        diag_reset(w->dg);
        ck_assert_int_eq(state_length(w->st, 1), 0);
    }
    w->n_copy = -1;
    ck_assert_int_eq(load(w, 1, &owner), WEFT_OK);
    close_world(w);
    remove_folder();
}
END_TEST

/* Files whose checksums are right, but not what they say. */
START_TEST(strange_files)
{
    static const chunk_kind kind = {"WEFTSEQ\n", STATE_FILE_VERSION, "a file of state"};
    make_folder();
    world *w = open_world(&mixed, DT_F32, CTX, 0);
    grow(w, 0, 9);
    ck_assert_int_eq(save(w, 0), WEFT_OK);
    chunk_reader *r;
    ck_assert_int_eq(chunk_reader_open(w->dg, path, &kind, &r), WEFT_OK);
    size_t n = (size_t)chunk_reader_left(r);
    unsigned char *good = malloc(n), *bad = malloc(n);
    ck_assert_int_eq(chunk_reader_get(w->dg, r, good, n), WEFT_OK);
    chunk_reader_close(r);
    grow(w, 1, 6);
    uint64_t layout;
    memcpy(&layout, good + 24, 8);
    size_t at_length = 32 + layout, at_ids = at_length + 16, at_spans = at_ids + 9 * 4;
    int refused = 0;
    for (size_t at = 0; at < at_spans + 8 + 3 * 24; at++) {
        if (at >= at_ids && at < at_spans)
            continue; /* another text, and a right one if it is in the vocabulary */
        memcpy(bad, good, n);
        bad[at] ^= 0x81;
        chunk_writer *o;
        ck_assert_int_eq(chunk_writer_create(w->dg, path, &kind, n, &o), WEFT_OK);
        ck_assert_int_eq(chunk_writer_put(w->dg, o, bad, n), WEFT_OK);
        ck_assert_int_eq(chunk_writer_finish(w->dg, o), WEFT_OK);
        chunk_writer_destroy(o);
        weft_status st = load(w, 1, &owner);
        if (st == WEFT_OK)
            ck_abort_msg("byte %zu of %zu may be another", at, n);
        refused++;
        diag_reset(w->dg);
        ck_assert_int_eq(state_length(w->st, 1), 6);
    }
    ck_assert_int_gt(refused, 200);
    free(good);
    free(bad);
    close_world(w);
    remove_folder();
}
END_TEST

START_TEST(a_killed_saver_leaves_the_old_file)
{
    make_folder();
    world *w = open_world(&mixed, DT_F32, CTX, 0);
    grow(w, 0, 33);
    bytes *saved = rows(w, 0, 11);
    ck_assert_int_eq(save(w, 0), WEFT_OK);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0)
            for (;;)
                if (save(w, 0) != WEFT_OK)
                    _exit(1);
        usleep(500 + (useconds_t)i * 777);
        kill(child, SIGKILL);
        int status;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFSIGNALED(status));
        ck_assert_int_eq(load(w, 1, &owner), WEFT_OK);
        bytes *got = rows(w, 1, 0);
        ck_assert_mem_eq(got->data, saved->data, saved->n);
        free(got);
    }
    free(saved);
    close_world(w);
    remove_folder();
}
END_TEST

SUITE_MAIN("state_file", what_was_saved_comes_back, a_window_that_went_back_is_saved_as_it_is,
           any_change_is_refused, what_is_of_others_is_refused_by_name, a_copy_that_fails,
           strange_files, a_killed_saver_leaves_the_old_file)
