/* peft_kit.h - adapters made on the spot, for the suites of tests/lora. */
#ifndef WEFT_TESTS_LORA_PEFT_KIT_H
#define WEFT_TESTS_LORA_PEFT_KIT_H

#include "runtime/formats/gguf_write.h"
#include "runtime/formats/safetensors_write.h"
#include "runtime/lora/adapter.h"
#include "tests/base/suite.h"

#include <stdio.h>

enum { KIT_MAX = 64 };

/* A tensor of an adapter: its numbers follow from its place in the list. */
typedef struct {
    const char *name;
    int64_t shape[3]; /* a zero ends it */
} kit_tensor;

static inline int kit_rank(const kit_tensor *t)
{
    int rank = 0;
    while (rank < 3 && t->shape[rank])
        rank++;
    return rank;
}

static inline float *kit_numbers(arena *a, const kit_tensor *t, uint32_t seed)
{
    size_t n = 1;
    for (int i = 0; i < kit_rank(t); i++)
        n *= (size_t)t->shape[i];
    float *x = ARENA_ARRAY(a, float, n);
    uint32_t s = seed * 2654435761u + 1;
    for (size_t i = 0; i < n; i++) {
        s = s * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)s / 4294967296.0f;
    }
    return x;
}

/* A folder as PEFT saves one; config NULL: none. broken: element 5 of the first tensor is that, unless it is 0. */
static inline void kit_peft(const temp_dir *d, const char *config, const kit_tensor *t, size_t n,
                            float broken)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    safetensors_item items[KIT_MAX];
    ck_assert_uint_le(n, KIT_MAX);
    for (size_t i = 0; i < n; i++) {
        float *x = kit_numbers(a, &t[i], (uint32_t)i);
        if (i == 0 && broken != 0)
            x[5] = broken;
        items[i] = (safetensors_item){t[i].name, DT_F32, kit_rank(&t[i]), t[i].shape, x};
    }
    temp_path path = temp_join(d, "adapter_model.safetensors");
    ck_assert_int_eq(safetensors_write(dg, path.path, items, n, NULL), WEFT_OK);
    if (config)
        temp_file(d, "adapter_config.json", str_of(config));
    diag_destroy(dg);
    arena_destroy(a);
}

static inline temp_path kit_gguf(const temp_dir *d, const char *arch, const char *type,
                                 const char *kind, double alpha, const kit_tensor *t, size_t n)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    gguf_writer *w = gguf_writer_create();
    gguf_writer_key(w, STR("general.architecture"), value_of_str(str_of(arch)));
    gguf_writer_key(w, STR("general.type"), value_of_str(str_of(type)));
    gguf_writer_key(w, STR("adapter.type"), value_of_str(str_of(kind)));
    gguf_writer_key(w, STR("adapter.lora.alpha"), value_of_float(VT_F32, alpha));
    for (size_t i = 0; i < n; i++)
        gguf_writer_tensor_data(w, str_of(t[i].name), DT_F32, kit_rank(&t[i]), t[i].shape,
                                kit_numbers(a, &t[i], (uint32_t)i));
    temp_path path = temp_join(d, "adapter.gguf");
    ck_assert_int_eq(gguf_writer_write(dg, w, path.path), WEFT_OK);
    gguf_writer_destroy(w);
    diag_destroy(dg);
    arena_destroy(a);
    return path;
}

typedef struct {
    weft_diag *dg;
    model_file *mf;
    bound_model *bm;
} kit_model;

static inline kit_model kit_open(const char *path, const char *arch)
{
    kit_model m = {.dg = diag_create()};
    if (model_file_open(m.dg, path, NULL, &m.mf) != WEFT_OK ||
        model_bind(m.dg, m.mf, &(bind_options){.arch = arch}, &m.bm) != WEFT_OK)
        ck_abort_msg("%s", diag_shown(m.dg));
    return m;
}

static inline void kit_close(kit_model *m)
{
    bound_model_destroy(m->bm);
    model_file_close(m->mf);
    diag_destroy(m->dg);
}

/* What a bound adapter adds to a weight, at one row and column of one expert or head: s * B A. */
static inline double kit_delta(const adapter_site *s, int64_t row, int64_t column)
{
    double sum = 0;
    for (int64_t r = 0; r < s->rank; r++)
        sum += (double)s->b[row * s->rank + r] * s->a[r * s->in + column];
    return sum * s->scale;
}

static inline const adapter_site *kit_site(const adapter *ad, const char *name, int32_t index)
{
    for (size_t i = 0; i < ad->n_site; i++)
        if (str_eqz(ad->site[i].name, name) && ad->site[i].index == index)
            return &ad->site[i];
    return NULL;
}

#endif
