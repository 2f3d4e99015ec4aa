/* hf_config.c - the keys of a Hugging Face checkpoint: its config.json. */
#include "runtime/formats/json_read.h"
#include "runtime/formats/model_file_impl.h"

weft_status hf_take_config(weft_diag *dg, model_file *mf, const char *path, value config)
{
    if (config.type != VT_OBJECT)
        return weft_fail(dg, W1006, WEFT_NOWHERE, "%s: holds %s, not a JSON object", path,
                         value_type_row_of(config.type)->text);
    mf->keys = config;
    const value *text = value_get(&mf->keys, STR("text_config"));
    if (value_kind_of(text) == VALUE_OBJECT)
        mf->text_config = text;

    const value *names = value_get(&mf->keys, STR("architectures"));
    if (value_kind_of(names) == VALUE_NULL)
        return WEFT_OK;
    if (names->type != VT_ARRAY)
        return weft_fail(dg, W1006, WEFT_NOWHERE, "%s: architectures is of type %s, not a list",
                         path, value_type_row_of(names->type)->text);
    size_t n = value_count(names);
    str *archs = ARENA_ARRAY(mf->home, str, n);
    for (size_t i = 0; i < n; i++) {
        value name = value_at(names, i);
        if (!value_str(&name, &archs[i]))
            return weft_fail(dg, W1006, WEFT_NOWHERE,
                             "%s: architectures holds a value of type %s, not only strings", path,
                             value_type_row_of(name.type)->text);
    }
    mf->archs = archs;
    mf->arch_n = n;
    return WEFT_OK;
}

weft_status hf_read_config(weft_diag *dg, model_file *mf, const char *path)
{
    value config;
    WEFT_TRY(json_read_file(dg, mf->home, path, JSON_LIMITS_CONFIG, &config));
    return hf_take_config(dg, mf, path, config);
}
