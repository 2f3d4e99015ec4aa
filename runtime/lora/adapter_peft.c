/* adapter_peft.c - an adapter as PEFT saves it: adapter_config.json and adapter_model.safetensors.
 *
 * What is adapted is what there are tensors for: target_modules, exclude_modules, layers_to_transform and layers_pattern
 * only say how those tensors were chosen, so they are not read. What changes the arithmetic is: r, lora_alpha, use_rslora,
 * rank_pattern, alpha_pattern, fan_in_fan_out; and what changes it in a way that Weft does not have is refused by name. */
#include "runtime/lora/adapter_file.h"
#include "runtime/lora/peft_pattern.h"
#include "runtime/formats/json_read.h"

#include <inttypes.h>
#include <math.h>
#include <unistd.h>

#define CONFIG "adapter_config.json"
#define TENSORS "adapter_model.safetensors"
#define PICKLE "adapter_model.bin"

static const char merge_hint[] =
    "merge it into its base with PEFT (merge_and_unload), and run the result";

static const char convert_hint[] = "save it from PEFT as a plain LoRA adapter "
                                   "(path_initial_model_for_weight_conversion)";

/* clang-format off */
static const struct {
    const char *key, *name; /* refused where it is set: not null, false, zero or empty */
    const char *hint;
} refused[] = {
    {"use_dora",                "DoRA (use_dora)",                              merge_hint},
    {"lora_bias",               "a bias beside B (lora_bias)",                  merge_hint},
    {"use_qalora",              "QA-LoRA (use_qalora)",                         merge_hint},
    {"use_bdlora",              "block-diagonal LoRA (use_bdlora)",             merge_hint},
    {"alora_invocation_tokens", "an activated LoRA (alora_invocation_tokens)",  "it acts only behind its invocation tokens"},
    {"target_parameters",       "LoRA on bare parameters (target_parameters)",  merge_hint},
    {"trainable_token_indices", "trained tokens (trainable_token_indices)",     merge_hint},
    {"layer_replication",       "repeated layers (layer_replication)",          merge_hint},
};

/* Beginnings of init_lora_weights that take something out of the base before training. */
static const struct {
    const char *init, *hint;
} changes_base[] = {
    {"pissa",   convert_hint},
    {"olora",   convert_hint},
    {"corda",   convert_hint},
    {"lora_ga", convert_hint},
    {"lora-ga", convert_hint},
    {"loftq",   merge_hint},
};

static const struct {
    const char *tail;
    adapter_half half;
    bool embedding;
    const char *refused;
} tails[] = {
    {".lora_A.weight",               HALF_A,    false, NULL},
    {".lora_B.weight",               HALF_B,    false, NULL},
    {".lora_A.default.weight",       HALF_A,    false, NULL},
    {".lora_B.default.weight",       HALF_B,    false, NULL},
    {".lora_embedding_A",            HALF_A,    true,  NULL},
    {".lora_embedding_B",            HALF_B,    true,  NULL},
    {".lora_magnitude_vector",       HALF_NONE, false, "DoRA"},
    {".lora_magnitude_vector.weight",HALF_NONE, false, "DoRA"},
    {".lora_A.bias",                 HALF_NONE, false, "a bias beside A"},
    {".lora_B.bias",                 HALF_NONE, false, "a bias beside B"},
};
/* clang-format on */

static bool is_set(const value *v)
{
    bool b;
    double x;
    switch (value_kind_of(v)) {
    case VALUE_NULL:
        return false;
    case VALUE_BOOL:
        return value_bool(v, &b) && b;
    case VALUE_STR:
        return v->as.s.n > 0;
    case VALUE_ARRAY:
    case VALUE_OBJECT:
        return value_count(v) > 0;
    default:
        return value_float(v, &x) && x != 0;
    }
}

static weft_status refuse(weft_diag *dg, const char *path, const char *what, const char *hint)
{
    weft_status st = weft_fail(dg, W0705, WEFT_NOWHERE, "%s: %s is not supported", path, what);
    weft_note(dg, "%s", hint);
    return st;
}

static weft_status check_kind(weft_diag *dg, const char *path, const value *root)
{
    str type = STR("LORA"), bias = STR("none"), init = STR("");
    value_str(value_get(root, STR("peft_type")), &type);
    value_str(value_get(root, STR("bias")), &bias);
    value_str(value_get(root, STR("init_lora_weights")), &init);
    if (!str_eqz(type, "LORA"))
        return weft_fail(dg, W0705, WEFT_NOWHERE,
                         "%s: peft_type is \"" STR_FMT "\"; Weft reads \"LORA\"", path,
                         STR_ARG(type));
    if (!str_eqz(bias, "none"))
        return weft_fail(dg, W0705, WEFT_NOWHERE,
                         "%s: bias is \"" STR_FMT "\": trained biases are not supported", path,
                         STR_ARG(bias));
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (is_set(value_get(root, str_of(refused[i].key))))
            return refuse(dg, path, refused[i].name, refused[i].hint);
    for (size_t i = 0; i < sizeof changes_base / sizeof *changes_base; i++)
        if (str_starts(init, str_of(changes_base[i].init))) {
            weft_status st =
                weft_fail(dg, W0705, WEFT_NOWHERE,
                          "%s: init_lora_weights is \"" STR_FMT "\", which changes the base", path,
                          STR_ARG(init));
            weft_note(dg, "%s", changes_base[i].hint);
            return st;
        }
    return WEFT_OK;
}

static weft_status number(weft_diag *dg, const char *path, const value *root, const char *key,
                          double absent, double *out)
{
    const value *v = value_get(root, str_of(key));
    *out = absent;
    if (v && (!value_float(v, out) || !isfinite(*out)))
        return weft_fail(dg, W0706, WEFT_NOWHERE, "%s: %s is not a number", path, key);
    return WEFT_OK;
}

/* ---- tensors ---- */

static weft_status add_tensor(weft_diag *dg, adapter_file *f, const model_tensor *t)
{
    static const str prefix = {"base_model.model.", sizeof "base_model.model." - 1};
    adapter_entry e = {.name = t->name, .half = HALF_NONE, .t = t};
    size_t i = 0, n = sizeof tails / sizeof *tails;
    if (str_starts(e.name, prefix))
        e.name = (str){e.name.p + prefix.n, e.name.n - prefix.n};
    while (i < n && !str_ends(e.name, str_of(tails[i].tail)))
        i++;
    if (i < n && tails[i].refused) {
        weft_status st = weft_fail(dg, W0705, WEFT_NOWHERE, "%s: " STR_FMT ": %s is not supported",
                                   f->path, STR_ARG(t->name), tails[i].refused);
        weft_note(dg, "%s", merge_hint);
        return st;
    }
    str tail = i < n                                              ? str_of(tails[i].tail)
               : str_ends(e.name, STR(".modules_to_save.weight")) ? STR(".modules_to_save.weight")
               : str_ends(e.name, STR(".weight"))                 ? STR(".weight")
                                                                  : STR("");
    e.name.n -= tail.n;
    if (i < n) {
        e.half = tails[i].half;
        e.embedding = tails[i].embedding;
    }
    VEC_PUSH(&f->entries, e);
    return WEFT_OK;
}

typedef struct {
    double r, alpha;
    peft_patterns *ranks, *alphas;
} peft_scale;

static weft_status scale_pair(weft_diag *dg, const adapter_file *f, const peft_scale *s,
                              adapter_pair *p)
{
    double r = s->r, alpha = s->alpha;
    if (!peft_patterns_find(s->ranks, p->name, &r) ||
        !peft_patterns_find(s->alphas, p->name, &alpha))
        return weft_fail(dg, W1105, WEFT_NOWHERE,
                         "%s: a pattern of rank_pattern or alpha_pattern takes too long to compare "
                         "with " STR_FMT,
                         f->path, STR_ARG(p->name));
    if (r != (double)p->rank)
        return weft_fail(dg, W0702, WEFT_NOWHERE,
                         "%s: " STR_FMT " has rank %" PRId64 ", but " CONFIG " says %g", f->path,
                         STR_ARG(p->a->name), p->rank, r);
    p->scale = alpha / (f->rslora ? sqrt(r) : r);
    return WEFT_OK;
}

static weft_status scale_pairs(weft_diag *dg, adapter_file *f, const char *path, const value *root)
{
    peft_scale s = {0};
    weft_status st = number(dg, path, root, "r", 8, &s.r);
    if (st == WEFT_OK)
        st = number(dg, path, root, "lora_alpha", 8, &s.alpha);
    if (st == WEFT_OK)
        st = peft_patterns_create(dg, path, "rank_pattern", value_get(root, STR("rank_pattern")),
                                  &s.ranks);
    if (st == WEFT_OK)
        st = peft_patterns_create(dg, path, "alpha_pattern", value_get(root, STR("alpha_pattern")),
                                  &s.alphas);
    f->alpha = s.alpha;
    for (size_t i = 0; i < f->pairs.n && st == WEFT_OK; i++)
        st = scale_pair(dg, f, &s, &f->pairs.at[i]);
    peft_patterns_destroy(s.ranks);
    peft_patterns_destroy(s.alphas);
    return st;
}

/* ---- the folder ---- */

static bool exists(const char *folder, const char *name)
{
    strbuf path = {0};
    strbuf_add(&path, "%s/%s", folder, name);
    bool there = access(path.p, F_OK) == 0;
    strbuf_free(&path);
    return there;
}

static weft_status find_tensors(weft_diag *dg, const adapter_file *f, const char *folder)
{
    if (exists(folder, TENSORS) || !exists(folder, PICKLE))
        return WEFT_OK;
    weft_status st = weft_fail(dg, W0705, WEFT_NOWHERE,
                               "%s: " PICKLE " is a Python pickle, which can run code", f->path);
    weft_note(dg, "save it again as " TENSORS ": save_pretrained(.., safe_serialization=True)");
    return st;
}

static weft_status read_config(weft_diag *dg, adapter_file *f, const char *folder,
                               const char **out_path, value *out_root)
{
    const char *path = arena_printf(f->home, "%s/" CONFIG, folder).p;
    if (!exists(folder, CONFIG)) {
        weft_status st = weft_fail(dg, W0706, WEFT_NOWHERE, "%s: there is no " CONFIG, folder);
        weft_note(dg, exists(folder, "config.json")
                          ? "this is a model; an adapter is a PEFT folder or a GGUF file"
                          : "an adapter is a PEFT folder or a GGUF file");
        return st;
    }
    WEFT_TRY(json_read_file(dg, f->home, path, JSON_LIMITS_CONFIG, out_root));
    if (value_kind_of(out_root) != VALUE_OBJECT)
        return weft_fail(dg, W0706, WEFT_NOWHERE, "%s: is not an object", path);
    *out_path = path;
    return WEFT_OK;
}

weft_status adapter_read_peft(weft_diag *dg, adapter_file *f, const char *folder,
                              const model_file_options *how)
{
    value root;
    const char *path = NULL;
    WEFT_TRY(read_config(dg, f, folder, &path, &root));
    WEFT_TRY(check_kind(dg, path, &root));
    value_bool(value_get(&root, STR("use_rslora")), &f->rslora);
    value_bool(value_get(&root, STR("fan_in_fan_out")), &f->fan_in_fan_out);
    value_str(value_get(&root, STR("base_model_name_or_path")), &f->base);
    WEFT_TRY(find_tensors(dg, f, folder));
    WEFT_TRY(model_file_open(dg, arena_printf(f->home, "%s/" TENSORS, folder).p, how, &f->mf));
    for (size_t i = 0; i < model_file_tensor_count(f->mf); i++)
        WEFT_TRY(add_tensor(dg, f, model_file_tensor_at(f->mf, i)));
    WEFT_TRY(adapter_pair_up(dg, f));
    return scale_pairs(dg, f, path, &root);
}
