/* adapter_gguf.c - an adapter in llama.cpp's layout: general.type adapter, adapter.type lora, adapter.lora.alpha, and for
 * each adapted tensor NAME two more, NAME.lora_a [rank, in] and NAME.lora_b [out, rank], slowest first. Of token_embd, whose
 * rows are looked up, lora_a is [vocab, rank]. alpha 0 means a scale of 1 (llama.cpp's src/llama-adapter.cpp). */
#include "runtime/lora/adapter_file.h"

#include <math.h>

static str without(str s, str tail)
{
    return str_ends(s, tail) ? (str){s.p, s.n - tail.n} : s;
}

static weft_status refuse(weft_diag *dg, const adapter_file *f, const char *key, str got,
                          const char *wanted)
{
    return weft_fail(dg, W0705, WEFT_NOWHERE, "%s: %s is \"" STR_FMT "\", not \"%s\"", f->path, key,
                     STR_ARG(got), wanted);
}

static weft_status read_settings(weft_diag *dg, adapter_file *f)
{
    str type = STR(""), kind = STR("");
    value_str(model_file_key(f->mf, STR("/general.type")), &type);
    value_str(model_file_key(f->mf, STR("/adapter.type")), &kind);
    value_str(model_file_key(f->mf, STR("/general.base_model.0.name")), &f->base);
    value_str(model_file_key(f->mf, STR("/general.architecture")), &f->arch);
    if (!str_eqz(type, "adapter")) {
        weft_status st = refuse(dg, f, "general.type", type, "adapter");
        weft_note(dg, "this is a model, or something else; an adapter is a PEFT folder or a GGUF "
                      "file made as one");
        return st;
    }
    if (!str_eqz(kind, "lora"))
        return refuse(dg, f, "adapter.type", kind, "lora");
    if (value_count(model_file_key(f->mf, STR("/adapter.alora.invocation_tokens"))) > 0)
        return weft_fail(dg, W0705, WEFT_NOWHERE,
                         "%s: an activated LoRA (aLoRA), which acts only behind its invocation "
                         "tokens, is not supported",
                         f->path);
    const value *alpha = model_file_key(f->mf, STR("/adapter.lora.alpha"));
    if (alpha && (!value_float(alpha, &f->alpha) || !isfinite(f->alpha)))
        return weft_fail(dg, W0706, WEFT_NOWHERE, "%s: adapter.lora.alpha is not a number",
                         f->path);
    return WEFT_OK;
}

weft_status adapter_read_gguf(weft_diag *dg, adapter_file *f, const model_file_options *how)
{
    f->gguf = true;
    WEFT_TRY(model_file_open(dg, f->path, how, &f->mf));
    WEFT_TRY(read_settings(dg, f));
    for (size_t i = 0; i < model_file_tensor_count(f->mf); i++) {
        const model_tensor *t = model_file_tensor_at(f->mf, i);
        adapter_entry e = {.name = t->name, .half = HALF_NONE, .t = t};
        if (str_ends(t->name, STR(".lora_a")) || str_ends(t->name, STR(".lora_b"))) {
            e.half = t->name.p[t->name.n - 1] == 'a' ? HALF_A : HALF_B;
            e.name.n -= STR(".lora_a").n;
        }
        e.name = without(e.name, STR(".weight"));
        e.embedding = e.half != HALF_NONE && str_eqz(e.name, "token_embd");
        VEC_PUSH(&f->entries, e);
    }
    WEFT_TRY(adapter_pair_up(dg, f));
    for (size_t i = 0; i < f->pairs.n; i++)
        f->pairs.at[i].scale = f->alpha != 0 ? f->alpha / (double)f->pairs.at[i].rank : 1;
    return WEFT_OK;
}
