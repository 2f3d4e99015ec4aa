/* checkpoint.c - keys and tensors of a model_file for the elaborator. */
#include "compiler/checkpoint.h"

#include "kernels/ref/dequant.h"
#include "runtime/base/mem.h"
#include <stdlib.h>

/* ---- keys ---- */

key_value checkpoint_value(const value *v)
{
    key_value kv = {.kind = v ? KEY_OTHER : KEY_ABSENT};
    if (!v)
        return kv;
    switch (value_kind_of(v)) {
    case VALUE_NULL:
        kv.kind = KEY_NULL;
        break;
    case VALUE_BOOL:
        kv.kind = value_bool(v, &kv.truth) ? KEY_BOOL : KEY_OTHER;
        break;
    case VALUE_INT:
        kv.kind = value_int(v, &kv.integer) ? KEY_INT : KEY_OTHER;
        break;
    case VALUE_FLOAT:
        kv.kind = value_float(v, &kv.number) ? KEY_FLOAT : KEY_OTHER;
        break;
    case VALUE_STR:
        kv.kind = value_str(v, &kv.text) ? KEY_STR : KEY_OTHER;
        break;
    case VALUE_ARRAY:
        kv.kind = KEY_LIST;
        kv.n = value_count(v);
        kv.list = v;
        break;
    case VALUE_OBJECT:
        break;
    }
    return kv;
}

static key_value host_key(void *ctx, str name)
{
    checkpoint *cp = ctx;
    const value *v = model_file_key(cp->file, name);
    if (v)
        VEC_PUSH(&cp->read, arena_str(cp->a, name));
    return checkpoint_value(v);
}

static key_value host_item(void *ctx, const key_value *list, size_t i)
{
    checkpoint *cp = ctx;
    value v = value_at(list->list, i);
    if (v.type != VT_ARRAY)
        return checkpoint_value(&v);
    value *inner = ARENA_NEW(cp->a, value); /* the key points to it */
    *inner = v;
    return checkpoint_value(inner);
}

typedef void take_name(void *to, str name);

enum { CONFIG_DEPTH_MAX = 4 }; /* of the objects in a config.json whose members are offered */

static void each_member(const value *object, str path, int depth, take_name *take, void *to)
{
    if (value_kind_of(object) != VALUE_OBJECT || depth == CONFIG_DEPTH_MAX)
        return;
    for (size_t i = 0; i < object->as.object.n; i++) {
        const value_member *m = &object->as.object.members[i];
        strbuf b = {0};
        strbuf_add(&b, STR_FMT "%s" STR_FMT, STR_ARG(path), path.n ? "." : "", STR_ARG(m->name));
        take(to, strbuf_view(&b));
        each_member(&m->v, strbuf_view(&b), depth + 1, take, to);
        strbuf_free(&b);
    }
}

static void host_each_key(void *ctx, take_name *take, void *to)
{
    checkpoint *cp = ctx;
    const value *keys = model_file_keys(cp->file);
    if (!cp->host.gguf) {
        each_member(value_get(keys, STR("text_config")), STR(""), 0, take, to);
        each_member(keys, STR(""), 0, take, to);
        return;
    }
    for (size_t i = 0; i < keys->as.object.n; i++) {
        str name = keys->as.object.members[i].name, prefix = cp->host.prefix;
        if (prefix.n && str_starts(name, prefix))
            take(to, (str){name.p + prefix.n, name.n - prefix.n});
    }
}

/* ---- tensors ---- */

static host_tensor tensor_out(const checkpoint *cp, const model_tensor *t)
{
    host_tensor out = {.id = (int)(t - model_file_tensor_at(cp->file, 0)),
                       .name = t->name,
                       .type = t->type,
                       .rank = t->rank};
    for (int i = 0; i < t->rank && i < DSL_RANK_MAX; i++)
        out.dim[i] = t->shape[i];
    return out;
}

static bool host_find(void *ctx, str name, host_tensor *out)
{
    checkpoint *cp = ctx;
    const model_tensor *t = model_file_tensor(cp->file, name);
    if (!t || t->rank > DSL_RANK_MAX)
        return false;
    *out = tensor_out(cp, t);
    return true;
}

static host_tensor host_at(void *ctx, int id)
{
    checkpoint *cp = ctx;
    return tensor_out(cp, model_file_tensor_at(cp->file, (size_t)id));
}

static bool host_read(void *ctx, int id, double *out, int64_t n)
{
    checkpoint *cp = ctx;
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

void checkpoint_init(checkpoint *cp, weft_diag *dg, arena *a, const model_file *mf, int64_t context)
{
    bool gguf = model_file_format(mf) == MODEL_GGUF;
    *cp = (checkpoint){.file = mf, .dg = dg, .a = a};
    cp->host = (dsl_host){.ctx = cp,
                          .gguf = gguf,
                          .file = model_file_path(mf),
                          .context = context,
                          .key = host_key,
                          .item = host_item,
                          .each_key = host_each_key,
                          .n_tensor = (int)model_file_tensor_count(mf),
                          .tensor = host_find,
                          .tensor_at = host_at,
                          .read = host_read};
    if (gguf && model_file_arch_count(mf) > 0)
        cp->host.prefix = arena_printf(a, STR_FMT ".", STR_ARG(model_file_arch(mf, 0)));
}

void checkpoint_deinit(checkpoint *cp)
{
    VEC_FREE(&cp->read);
}
