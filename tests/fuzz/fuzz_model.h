/* fuzz_model.h - reads all there is to read of a model that opened, at its bounds too. */
#ifndef WEFT_TESTS_FUZZ_FUZZ_MODEL_H
#define WEFT_TESTS_FUZZ_FUZZ_MODEL_H

#include "kernels/ref/dequant.h"
#include "runtime/formats/model_file.h"
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A diagnostic exactly where a failure is, and it prints. */
static inline void fuzz_check(const weft_diag *dg, weft_status status)
{
    WEFT_ASSERT((status == WEFT_OK) == (diag_count(dg) == 0));
    strbuf text = {0};
    diag_json(dg, &text);
    strbuf_free(&text);
}

static inline void fuzz_walk_tensor(const model_file *mf, const model_tensor *t)
{
    model_part p = model_file_part(mf, (size_t)t->part);
    WEFT_ASSERT(t->offset <= p.bytes && t->bytes <= p.bytes - t->offset);
    WEFT_ASSERT(model_file_tensor(mf, t->name) == t);
    int64_t block = dtype_row_of(t->type)->elems;
    float row[256];
    if (t->elems > 0 && dequant_has(t->type)) {
        dequant_row(t->type, t->data, row, block);
        dequant_row(t->type, (const char *)t->data + (t->bytes - dtype_row_of(t->type)->bytes), row,
                    block);
    }
}

static inline void fuzz_walk(const model_file *mf)
{
    strbuf text = {0};
    json_writer w = {.out = &text};
    value_json(&w, model_file_keys(mf), 1 << 16);
    for (size_t i = 0; i < model_file_tensor_count(mf); i++) {
        fuzz_walk_tensor(mf, model_file_tensor_at(mf, i));
        model_tensor_describe(&text, model_file_tensor_at(mf, i));
    }
    const value *keys = model_file_keys(mf);
    for (size_t i = 0; i < value_count(keys); i++)
        WEFT_ASSERT(value_get(keys, keys->as.object.members[i].name) ==
                    &keys->as.object.members[i].v);
    model_file_key(mf, STR("rope.scaling.factor"));
    model_file_hash(mf);
    strbuf_free(&text);
}

#endif
