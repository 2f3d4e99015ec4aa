/* fuzz_state_file.c - any bytes as a file of state: as they are, or with checksums that are right, so that what is behind those is
 * reached too. A file that is refused changes nothing; what is loaded goes on. */
#include "runtime/kv/chunk_file.h"
#include "runtime/kv/state_file.h"
#include "tests/fuzz/fuzz_model.h"
#include "tests/fuzz/fuzz_path.h"

#include <stdlib.h>
#include <unistd.h>

static const plan_cell cells[] = {
    {.name = "a", .heads = 1, .k = 1, .v = 1},
    {.name = "b", .heads = 1, .k = 1, .v = 1, .window = 3, .layout = PLAN_RING, .keep = 2},
};
static const plan two = {.n_cell = 2, .cell = cells, .n_tok_max = 2};
static const state_owner owner = {.n_vocab = 256};

static weft_status copy_plain(void *ctx, weft_diag *dg, void *to, const void *from, size_t bytes)
{
    (void)ctx, (void)dg;
    memcpy(to, from, bytes);
    return WEFT_OK;
}

static char file[] = "/tmp/weft-fuzz-state-XXXXXX";

static void remove_file(void)
{
    unlink(file);
}

/* Between right checksums, behind the head that every good file has. */
static const char *wrapped(weft_diag *dg, const state *st, const uint8_t *data, size_t size)
{
    static const chunk_kind kind = {"WEFTSEQ\n", STATE_FILE_VERSION, "a file of state"};
    static bool made;
    if (!made) {
        close(mkstemp(file));
        atexit(remove_file);
        made = true;
    }
    strbuf text = {0};
    state_describe(st, &text);
    uint64_t head[4] = {0, 0, 0, text.n};
    chunk_writer *w;
    weft_status status = chunk_writer_create(dg, file, &kind, sizeof head + text.n + size, &w);
    WEFT_ASSERT(status == WEFT_OK);
    status = chunk_writer_put(dg, w, head, sizeof head);
    if (status == WEFT_OK)
        status = chunk_writer_put(dg, w, text.p, text.n);
    if (status == WEFT_OK)
        status = chunk_writer_put(dg, w, data, size);
    if (status == WEFT_OK)
        status = chunk_writer_finish(dg, w);
    WEFT_ASSERT(status == WEFT_OK);
    chunk_writer_destroy(w);
    strbuf_free(&text);
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    weft_diag *dg = diag_create();
    state_options opt = {.n_seq = 2, .n_ctx = 16, .page_tok = 2, .type = DT_F16};
    state_copies copy = {copy_plain, copy_plain, NULL};
    state *st = NULL;
    weft_status status = state_create(dg, &two, &opt, &st);
    WEFT_ASSERT(status == WEFT_OK);
    char *base = calloc(1, state_bytes(st));
    state_bind(st, base, NULL, NULL);
    state_file *f = NULL;
    const char *path =
        *data & 1 ? wrapped(dg, st, data + 1, size - 1) : fuzz_path(data + 1, size - 1);
    status = state_file_open(dg, path, st, &owner, &f);
    if (status == WEFT_OK)
        status = state_file_load(dg, f, st, 1, &copy);
    fuzz_check(dg, status);
    WEFT_ASSERT(status == WEFT_OK || state_length(st, 1) == 0);
    if (status == WEFT_OK && state_length(st, 1) < 16) {
        status = state_reserve(dg, st, 1, 1);
        WEFT_ASSERT(status == WEFT_OK);
        state_commit(st, 1, 1);
    }
    state_file_close(f);
    status = state_truncate(dg, st, 1, 0);
    WEFT_ASSERT(status == WEFT_OK);
    for (int32_t t = 0; t < state_tables(st); t++)
        WEFT_ASSERT(state_pages_free(st, t) == state_pages_count(st, t));
    state_destroy(st);
    free(base);
    diag_destroy(dg);
    return 0;
}
