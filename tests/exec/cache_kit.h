/* cache_kit.h - a model of one interleaved matrix, and a folder of its own for what is kept of it. */
#ifndef WEFT_TESTS_EXEC_CACHE_KIT_H
#define WEFT_TESTS_EXEC_CACHE_KIT_H

#include "runtime/exec/weights_cpu.h"
#include "runtime/exec/weight_cache.h"
#include "tests/exec/toy.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

/* More than what is not worth a file, 16 MiB. */
enum { ROWS = 4096, COLS = 4096, ROW_BYTES = COLS / 32 * 34, HEAD = 4096 };
static const size_t rows8_bytes = (size_t)ROWS * ROW_BYTES;

/* Of the file: a header, the rows, and a checksum of each 64 KiB. */
enum { CHUNK = 64 << 10, CHUNKS = ((size_t)ROWS * ROW_BYTES + CHUNK - 1) / CHUNK };
static const size_t file_bytes = HEAD + (size_t)ROWS * ROW_BYTES + CHUNKS * 8;

typedef struct {
    temp_dir dir;
    temp_path path, cache,
        interleaved; /* the model; the folder of caches; and in it that of ours */
    weft_diag *dg;
    model_file *mf;
    plan_piece piece;
    plan_weight w;
    plan p;
    char *want; /* the rows, interleaved */
} kit;

/* ---- a model of one matrix ---- */

static inline uint8_t *random_rows(uint32_t seed)
{
    uint8_t *data = malloc(rows8_bytes);
    uint16_t scale = f32_to_f16(1.0f / 64);
    for (size_t i = 0; i < rows8_bytes; i++, seed = seed * 1664525u + 1013904223u)
        data[i] = (uint8_t)(seed >> 24);
    for (size_t i = 0; i < rows8_bytes; i += 34)
        memcpy(data + i, &scale, sizeof scale);
    return data;
}

static inline void write_model(weft_diag *dg, const char *path, uint32_t seed)
{
    uint8_t *data = random_rows(seed);
    gguf_writer *w = gguf_writer_create();
    gguf_writer_key(w, STR("general.architecture"), value_of_str(STR("toy")));
    gguf_writer_tensor_data(w, STR("w"), DT_Q8_0, 2, (int64_t[]){ROWS, COLS}, data);
    gguf_writer_tensor_data(w, STR("twin"), DT_Q8_0, 2, (int64_t[]){ROWS, COLS}, data);
    ck_assert_int_eq(gguf_writer_write(dg, w, path), WEFT_OK);
    gguf_writer_destroy(w);
    free(data);
}

static inline char *interleave(const uint8_t *data)
{
    char *to = malloc(rows8_bytes);
    for (size_t g = 0; g < ROWS / LAYOUT_GROUP; g++) {
        const void *rows[LAYOUT_GROUP];
        for (size_t i = 0; i < LAYOUT_GROUP; i++)
            rows[i] = data + (g * LAYOUT_GROUP + i) * ROW_BYTES;
        layout_interleave(LAYOUT_ROWS8, DT_Q8_0, rows, COLS, to + g * LAYOUT_GROUP * ROW_BYTES);
    }
    return to;
}

static inline void kit_plan(kit *k)
{
    k->piece = (plan_piece){.tensor = 0, .rows = ROWS};
    k->w = (plan_weight){.name = "w",
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
                         .piece = &k->piece,
                         .bytes = rows8_bytes};
    k->p = (plan){.n_weight = 1, .weight = &k->w, .interleaved_bytes = rows8_bytes};
}

static inline void reopen(kit *k)
{
    model_file_close(k->mf);
    ck_assert_int_eq(model_file_open(k->dg, k->path.path, NULL, &k->mf), WEFT_OK);
}

static inline void use_cache(const char *folder)
{
    ck_assert_int_eq(setenv("XDG_CACHE_HOME", folder, 1), 0);
}

static inline kit *kit_open(void)
{
    kit *k = calloc(1, sizeof *k);
    k->dir = temp_dir_create();
    k->path = temp_join(&k->dir, "model.gguf");
    k->cache = temp_join(&k->dir, "cache");
    k->interleaved = temp_join(&k->dir, "cache/weft/weights");
    k->dg = diag_create();
    use_cache(k->cache.path);
    write_model(k->dg, k->path.path, 1);
    reopen(k);
    kit_plan(k);
    uint8_t *data = random_rows(1);
    k->want = interleave(data);
    free(data);
    return k;
}

static inline void kit_close(kit *k)
{
    char command[128];
    model_file_close(k->mf);
    diag_destroy(k->dg);
    free(k->want);
    snprintf(command, sizeof command, "rm -rf %s", k->dir.path);
    ck_assert_int_eq(system(command), 0);
    free(k);
}

/* ---- looking at the folder ---- */

/* How many entries it has; the path of one, if asked. */
static inline int entries(const kit *k, temp_path *out_path)
{
    int n = 0;
    DIR *d = opendir(k->interleaved.path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.') {
            n++;
            if (out_path)
                snprintf(out_path->path, sizeof out_path->path, "%.200s/%.200s",
                         k->interleaved.path, e->d_name);
        }
    if (d)
        closedir(d);
    return n;
}

static inline temp_path only_file(const kit *k)
{
    temp_path p;
    ck_assert_int_eq(entries(k, &p), 1);
    return p;
}

static inline struct stat stat_of(const char *path)
{
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    return st;
}

static inline void set_age(const char *path, int64_t seconds)
{
    time_t then = time(NULL) - (time_t)seconds;
    const struct timespec both[2] = {{.tv_sec = then}, {.tv_sec = then}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, both, 0), 0);
}

static inline weights *load(kit *k, bool keep)
{
    weights *w = NULL;
    ck_assert_int_eq(weights_create(k->dg, NULL, &k->p, model_file_source(k->mf),
                                    &(weights_options){2, .use_cache = keep}, &w),
                     WEFT_OK);
    return w;
}

/* Load and compare with what interleaving gives. */
static inline bool loads(kit *k, bool keep)
{
    weights *w = load(k, keep);
    bool same = memcmp(cpu_weights_at(w, 0), k->want, rows8_bytes) == 0;
    weights_destroy(w);
    return same;
}

static inline weight_cache *open_store(kit *k, const plan *p, const model_file *mf,
                                       bool *out_filled)
{
    weight_cache *s;
    ck_assert_int_eq(weight_cache_open(k->dg, p, model_file_source(mf),
                                       &(cache_options){.keep = true}, &s, out_filled),
                     WEFT_OK);
    return s;
}

/* Is there a file for this plan and model? Nothing is left by asking. */
static inline bool is_kept(kit *k, const plan *p, const model_file *mf)
{
    bool filled;
    weight_cache_close(open_store(k, p, mf, &filled));
    return filled;
}

static inline void change_byte(const char *path, off_t at, int change)
{
    unsigned char byte;
    int fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
    byte = (unsigned char)(byte ^ change);
    ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

#endif
