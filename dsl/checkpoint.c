/* checkpoint.c - keys, tensors and small constants of a model_file. */
#include "dsl/checkpoint.h"

#include "compiler/graph.h"
#include "kernels/ref/dequant.h"
#include "runtime/base/mem.h"

void checkpoint_init(checkpoint *cp, arena *a, const model_file *mf)
{
    *cp = (checkpoint){.file = mf,
                       .a = a,
                       .gguf = model_file_format(mf) == MODEL_GGUF,
                       .path = model_file_path(mf)};
    if (cp->gguf && model_file_arch_count(mf) > 0)
        cp->prefix = arena_printf(a, STR_FMT ".", STR_ARG(model_file_arch(mf, 0)));
}

void checkpoint_deinit(checkpoint *cp)
{
    VEC_FREE(&cp->read);
}

const value *checkpoint_key(checkpoint *cp, str name)
{
    const value *v = model_file_key(cp->file, name);
    if (v)
        VEC_PUSH(&cp->read, arena_str(cp->a, name));
    return v;
}

const model_tensor *checkpoint_tensor(const checkpoint *cp, str name)
{
    const model_tensor *t = model_file_tensor(cp->file, name);
    return t && t->rank <= GRAPH_RANK_MAX ? t : NULL;
}

int checkpoint_tensor_id(const checkpoint *cp, const model_tensor *t)
{
    return (int)(t - model_file_tensor_at(cp->file, 0));
}

bool checkpoint_read(const checkpoint *cp, int id, double *out, int64_t n)
{
    const model_tensor *t = model_file_tensor_at(cp->file, (size_t)id);
    if (t->elems < n || n % dtype_row_of(t->type)->elems || !dequant_has(t->type))
        return false;
    float *row = mem_alloc(mem_product((size_t)n, sizeof *row));
    dequant_row(t->type, t->data, row, n);
    for (int64_t i = 0; i < n; i++)
        out[i] = row[i];
    mem_free(row);
    return true;
}
