/* fuzz_weight_cache.c - any bytes as a file of interleaved weights, found by the store as the file of a small plan.
 *
 * The first byte chooses. Even: the rest is the file. Odd: every three bytes change one byte of a good file (which one: two
 * bytes; what by: one), and a last pair of bytes, if there is one, its length. Bit 1 makes the sums of header and table right
 * again, bit 2 those of the weights too, so that what lies behind them is reached. What is used has to be what was
 * written, or to have its sums right; what is not used is made again, and is used then. */
#include "runtime/base/checksum.h"
#include "runtime/exec/cache_file.h"
#include "runtime/exec/cache_key.h"
#include "runtime/exec/weight_cache.h"
#include "runtime/exec/cache_sums.h"
#include "runtime/exec/weight_rows.h"
#include "runtime/formats/gguf_write.h"
#include "tests/fuzz/fuzz_model.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { SEAL_TABLE = 2, SEAL_ALL = 4, EDIT_BYTES = 3 };
/* Two chunks. */
enum {
    FILES_MAX = 1 << 20,
    ROWS = 512,
    COLS = 128,
    ROW_BYTES = COLS / 32 * 34,
    WEIGHTS = ROWS * ROW_BYTES
};

/* Made once: a process runs many inputs. */
typedef struct {
    char folder[64], model[128], path[256];
    model_file *mf;
    plan_piece piece;
    plan_weight w;
    plan p;
    uint8_t *want; /* [WEIGHTS] */
    uint8_t *good; /* a file as the store makes it */
    size_t good_bytes;
} stage;

static stage the;

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz_weight_cache: not so: %s\n", what);
    abort();
}

static void remove_all(void)
{
    cache_remove(the.path);
    unlink(the.model);
    rmdir(the.folder);
}

static weight_cache *open_store(weft_diag *dg, bool *out_filled)
{
    weight_cache *s = NULL;
    cache_options opt = {.keep = true, .dir = the.folder, .bytes_min = 1, .check_all = true};
    must(weight_cache_open(dg, &the.p, model_file_source(the.mf), &opt, &s, out_filled) == WEFT_OK,
         "it opens");
    return s;
}

static void make_model(weft_diag *dg)
{
    gguf_writer *g = gguf_writer_create();
    gguf_writer_key(g, STR("general.architecture"), value_of_str(STR("toy")));
    gguf_writer_tensor_data(g, STR("w"), DT_Q8_0, 2, (int64_t[]){ROWS, COLS}, the.want);
    must(gguf_writer_write(dg, g, the.model) == WEFT_OK, "the model is written");
    gguf_writer_destroy(g);
    must(model_file_open(dg, the.model, NULL, &the.mf) == WEFT_OK, "and read");
    the.piece = (plan_piece){.rows = ROWS};
    the.w = (plan_weight){.name = "w",
                          .mode = WEIGHT_INTERLEAVED,
                          .layout = LAYOUT_ROWS8,
                          .stored = DT_Q8_0,
                          .type = DT_Q8_0,
                          .rank = 2,
                          .dim = {ROWS, COLS},
                          .stride = {ROW_BYTES, 0},
                          .rows = ROWS,
                          .pitch = LAYOUT_GROUP * ROW_BYTES,
                          .n_piece = 1,
                          .piece = &the.piece,
                          .bytes = WEIGHTS};
    the.p = (plan){.n_weight = 1, .weight = &the.w, .interleaved_bytes = WEIGHTS};
}

/* Fill the store, let others find it, and say that it is on the disk. */
static void fill(weft_diag *dg, weight_cache *s)
{
    memcpy(weight_cache_data(s), the.want, WEIGHTS);
    must(weight_cache_publish(dg, s) == WEFT_OK, "it is published");
}

static void stage_make(void)
{
    model_hash h;
    bool filled;
    weft_diag *dg = diag_create();
    /* In memory, where that is large enough that some of it stays free: no disk is waited for. */
    const char *root = cache_has_room("/dev/shm", FILES_MAX, FILES_MAX) ? "/dev/shm" : "/tmp";
    if (!cache_has_room(root, FILES_MAX, FILES_MAX)) {
        fprintf(stderr, "fuzz_weight_cache: no room in %s, so that nothing is kept\n", root);
        exit(0);
    }
    snprintf(the.folder, sizeof the.folder, "%s/weft-fuzz-XXXXXX", root);
    must(mkdtemp(the.folder) != NULL, "there is a folder");
    snprintf(the.model, sizeof the.model, "%s/model.gguf", the.folder);
    atexit(remove_all);
    the.want = malloc(WEIGHTS);
    uint32_t seed = 1;
    for (size_t i = 0; i < WEIGHTS; i++, seed = seed * 1664525u + 1013904223u)
        the.want[i] = (uint8_t)(seed >> 24);
    make_model(dg);
    must(cache_key(&the.p, model_file_source(the.mf), weight_make_sample, &h), "it has a name");
    snprintf(the.path, sizeof the.path, "%s/%016" PRIx64 "%016" PRIx64 CACHE_SUFFIX, the.folder,
             h.hi, h.lo);
    weight_cache *s = open_store(dg, &filled);
    fill(dg, s);
    weight_cache_close(s);
    the.good_bytes = (size_t)cache_file_bytes(WEIGHTS);
    the.good = malloc(the.good_bytes);
    int fd = open(the.path, O_RDONLY);
    must(read(fd, the.good, the.good_bytes) == (ssize_t)the.good_bytes, "the file is as expected");
    close(fd);
    diag_destroy(dg);
}

/* Make the sums right for what the file holds, as far as its own sizes allow. */
static void seal(uint8_t *file, size_t bytes, bool all)
{
    cache_head h;
    memcpy(&h, file, sizeof h);
    if (cache_file_bytes(h.interleaved_bytes) == bytes) {
        uint64_t *table = (uint64_t *)(void *)(file + cache_file_table(h.interleaved_bytes));
        size_t n = cache_sums_count(h.interleaved_bytes);
        weft_diag *dg = diag_create();
        if (all)
            must(cache_sums_make(dg, (char *)file + CACHE_HEAD_BYTES, h.interleaved_bytes,
                                 (interleave_work){0}, table) == WEFT_OK,
                 "sums are made");
        h.table_sum = checksum(table, n * sizeof *table);
        diag_destroy(dg);
    }
    h.head_sum = cache_head_sum(&h);
    memcpy(file, &h, sizeof h);
}

/* The good file, changed; the caller frees it. */
static uint8_t *change(int how, const uint8_t *data, size_t size, size_t *out_bytes)
{
    size_t bytes = the.good_bytes;
    uint8_t *file = calloc(1, bytes + UINT16_MAX + 1);
    memcpy(file, the.good, bytes);
    for (; size >= EDIT_BYTES; size -= EDIT_BYTES, data += EDIT_BYTES) {
        size_t at = (size_t)data[0] | (size_t)data[1] << 8;
        /* The header, which is small, and the end, more often than their share. */
        at = at < 32768 ? at % 1024 : the.good_bytes - 1 - (at - 32768) * 2;
        file[at] ^= data[2];
    }
    if (size == 2)
        bytes += (size_t)((int)(data[0] | data[1] << 8) - 32768);
    if ((how & (SEAL_TABLE | SEAL_ALL)) && bytes >= CACHE_HEAD_BYTES)
        seal(file, bytes, how & SEAL_ALL);
    *out_bytes = bytes;
    return file;
}

static void put_file(const uint8_t *data, size_t size)
{
    cache_remove(the.path);
    int fd = open(the.path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size, "the file is written");
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!the.mf)
        stage_make();
    if (size == 0)
        return 0;
    int how = data[0];
    bool edits = how & 1, filled, any = edits && (how & SEAL_ALL);
    size_t bytes = size - 1;
    uint8_t *file = edits ? change(how, data + 1, size - 1, &bytes) : NULL;
    const char *fault = NULL;
    put_file(edits ? file : data + 1, bytes);

    weft_diag *dg = diag_create();
    must(cache_check(dg, the.path, 1, &fault) == WEFT_OK, "it can be checked");
    weight_cache *s = open_store(dg, &filled);
    must(diag_errors(dg) == 0, "a damaged file is no error");
    if (filled) {
        must(!fault && diag_warnings(dg) == 0, "what is used is good");
        must(any || memcmp(weight_cache_data(s), the.want, WEIGHTS) == 0,
             "and is what was written");
        weight_cache_close(s);
    } else {
        fill(dg, s);
        weight_cache_close(s);
        diag_reset(dg);
        s = open_store(dg, &filled);
        must(filled && diag_warnings(dg) == 0, "it is made again");
        must(memcmp(weight_cache_data(s), the.want, WEIGHTS) == 0, "with the weights");
        weight_cache_close(s);
    }
    diag_destroy(dg);
    free(file);
    return 0;
}
