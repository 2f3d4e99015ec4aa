/* check_jit.h - a map's arguments as a step of a plan, and what of them decides how its code looks. */
#ifndef WEFT_TESTS_KERNELS_CHECK_JIT_H
#define WEFT_TESTS_KERNELS_CHECK_JIT_H

#include "compiler/plan.h"
#include "tests/kernels/check.h"

typedef struct {
    const char *level, *like; /* of the plan; the kernel that the step names */
} jit_level;

/* Given by each program: get ready; the function for such a map. */
void jit_open(void);
kernel_fn *jit_function(const kargs *k, const jit_level *level);

enum { MAP_CODE_MAX = 32 };

typedef struct {
    int64_t n_code, tile, n[K_SIZES_MAX], stride[K_IN_MAX][K_AXES_MAX], out_pitch[K_OUT_MAX];
    int64_t word[K_WORDS_MAX];
    int64_t code[MAP_CODE_MAX][5];
    float f[MAP_CODE_MAX][2];
} map_key;

static inline map_key map_key_of(const kargs *k)
{
    map_key key;
    memset(&key, 0, sizeof key);
    key.n_code = k->n_code;
    key.tile = k->tile;
    memcpy(key.n, k->n, sizeof key.n);
    memcpy(key.stride, k->stride, sizeof key.stride);
    memcpy(key.out_pitch, k->out_pitch, sizeof key.out_pitch);
    for (int i = 0; i < K_WORDS_MAX; i++)
        key.word[i] = k->word[i];
    for (int64_t i = 0; i < k->n_code; i++) {
        const kinstr *c = &k->code[i];
        const int64_t all[] = {c->op, c->to, c->at[0], c->at[1], c->at[2]};
        memcpy(key.code[i], all, sizeof all);
        memcpy(key.f[i], c->f, sizeof c->f);
    }
    return key;
}

static inline bool map_key_equal(const map_key *a, const map_key *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* Of a key and the kernel it is made after, for tables of functions (FNV-1a). */
static inline uint64_t map_key_hash(const map_key *key, const jit_level *level)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < sizeof *key; i++)
        h = (h ^ ((const unsigned char *)key)[i]) * 0x100000001b3u;
    for (const char *p = level->like; *p; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3u;
    return h;
}

static inline plan_step map_step(const kargs *k)
{
    plan_step s = {.kernel = 0, .n_out = K_OUT_MAX, .n_in = K_IN_MAX};
    s.rows = ROWS_FIXED;
    memcpy(s.n, k->n, sizeof s.n);
    memcpy(s.word, k->word, sizeof s.word);
    memcpy(s.stride, k->stride, sizeof s.stride);
    memcpy(s.out_pitch, k->out_pitch, sizeof s.out_pitch);
    s.cols = k->cols;
    s.tile = k->tile;
    s.n_code = (int32_t)k->n_code;
    return s;
}

#endif
