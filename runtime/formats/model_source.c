/* model_source.c - a model file as a source of weights. */
#include "runtime/formats/model_file_impl.h"

static const model_file *file_of(const weight_source *s)
{
    return (const model_file *)(const void *)s;
}

static size_t count(const weight_source *s)
{
    return model_file_tensor_count(file_of(s));
}

static weight_tensor tensor(const weight_source *s, size_t i)
{
    const model_tensor *t = model_file_tensor_at(file_of(s), i);
    return (weight_tensor){.name = t->name, .type = t->type, .bytes = t->bytes, .data = t->data};
}

static model_hash identity(const weight_source *s)
{
    return model_file_identity(file_of(s));
}

static bool stamp(const weight_source *s, model_hash *out)
{
    return model_file_stamp(file_of(s), out);
}

static weft_status check(weft_diag *dg, const weight_source *s)
{
    return model_file_check(dg, file_of(s));
}

static void let_go(const weight_source *s)
{
    model_file_let_go(file_of(s));
}

static const weight_source_kind kind = {.count = count,
                                        .tensor = tensor,
                                        .identity = identity,
                                        .stamp = stamp,
                                        .check = check,
                                        .let_go = let_go};

void model_source_init(model_file *mf)
{
    _Static_assert(offsetof(model_file, source) == 0, "file_of casts");
    mf->source = (weight_source){.kind = &kind,
                                 .path = mf->parts.n ? mf->parts.at[0].path : "",
                                 .guarded = mf->options.guard};
}

const weight_source *model_file_source(const model_file *mf)
{
    return &mf->source;
}
