/* tok_post.c - templates of one text. Those of a pair are not read: Weft encodes one at a time. */
#include "runtime/text/tok_post.h"

#include "runtime/text/tok_impl.h"

enum { TEMPLATE_IDS_MAX = 256 };

static weft_status put_id(weft_diag *dg, tok *t, tok_ids *to, const value *v)
{
    int64_t id;
    if (!value_int(v, &id) || id < 0 ||
        !vocab_at(&t->vocab, (int32_t)(id <= VOCAB_ID_MAX ? id : -1)))
        return weft_fail(dg, W1203, WEFT_NOWHERE, "post_processor: an id that no token has");
    if (to->n >= TEMPLATE_IDS_MAX)
        return weft_fail(dg, W1209, WEFT_NOWHERE, "post_processor: more than %d tokens",
                         TEMPLATE_IDS_MAX);
    VEC_PUSH(to, (int32_t)id);
    return WEFT_OK;
}

/* Puts `more` in front of to. */
static weft_status put_before(weft_diag *dg, tok_ids *to, const tok_ids *more)
{
    tok_ids both = {0};
    if (to->n + more->n > TEMPLATE_IDS_MAX)
        return weft_fail(dg, W1209, WEFT_NOWHERE, "post_processor: more than %d tokens",
                         TEMPLATE_IDS_MAX);
    for (size_t i = 0; i < more->n; i++)
        VEC_PUSH(&both, more->at[i]);
    for (size_t i = 0; i < to->n; i++)
        VEC_PUSH(&both, to->at[i]);
    VEC_FREE(to);
    *to = both;
    return WEFT_OK;
}

static weft_status put_special(weft_diag *dg, tok *t, const value *v, const value *specials,
                               tok_ids *to)
{
    str name;
    WEFT_TRY(field_str(dg, "SpecialToken", v, "id", &name));
    const value *ids, *special = value_get(specials, name);
    if (!special)
        return weft_fail(dg, W1203, WEFT_NOWHERE,
                         "TemplateProcessing: '" STR_FMT "' is not among its special_tokens",
                         STR_ARG(name));
    WEFT_TRY(field_list(dg, "special_tokens", special, "ids", &ids));
    for (size_t i = 0; i < value_count(ids); i++) {
        value id = value_at(ids, i);
        WEFT_TRY(put_id(dg, t, to, &id));
    }
    return WEFT_OK;
}

static weft_status load_template(weft_diag *dg, tok *t, const value *v, tok_ids *before)
{
    const value *single, *specials = value_get(v, STR("special_tokens"));
    bool seen = false;
    WEFT_TRY(field_list(dg, "TemplateProcessing", v, "single", &single));
    for (size_t i = 0; i < value_count(single); i++) {
        value item = value_at(single, i);
        const value *special = value_get(&item, STR("SpecialToken"));
        if (special) {
            WEFT_TRY(put_special(dg, t, special, specials, seen ? &t->after : before));
            continue;
        }
        if (!value_get(&item, STR("Sequence")) || seen)
            return weft_fail(dg, W1203, WEFT_NOWHERE,
                             "TemplateProcessing: 'single' is not tokens around one Sequence");
        seen = true;
    }
    if (!seen)
        return weft_fail(dg, W1203, WEFT_NOWHERE, "TemplateProcessing: 'single' has no Sequence");
    return WEFT_OK;
}

/* "sep" and "cls": a text and its id each. */
static weft_status load_pair(weft_diag *dg, tok *t, const value *v, tok_ids *before)
{
    const value *cls = value_get(v, STR("cls")), *sep = value_get(v, STR("sep"));
    if (value_count(cls) != 2 || value_count(sep) != 2 || value_kind_of(cls) != VALUE_ARRAY ||
        value_kind_of(sep) != VALUE_ARRAY)
        return weft_fail(dg, W1203, WEFT_NOWHERE,
                         "post_processor: 'cls' and 'sep' are not a text and an id each");
    value cls_id = value_at(cls, 1), sep_id = value_at(sep, 1);
    WEFT_TRY(put_id(dg, t, before, &cls_id));
    return put_id(dg, t, &t->after, &sep_id);
}

/* It trims offsets, which Weft does not keep. */
static weft_status load_nothing(weft_diag *dg, tok *t, const value *v, tok_ids *before)
{
    (void)dg, (void)t, (void)v, (void)before;
    return WEFT_OK;
}

/* clang-format off */
static const struct {
    const char *name;
    /* Adds the tokens before the text to `before`, those behind it to t->after. */
    weft_status (*load)(weft_diag *dg, tok *t, const value *v, tok_ids *before);
} rows[] = {
    {"TemplateProcessing", load_template},
    {"ByteLevel",          load_nothing},
    {"BertProcessing",     load_pair},
    {"RobertaProcessing",  load_pair},
};
/* clang-format on */

static weft_status load_step(weft_diag *dg, arena *a, const value *v, str type, void *to)
{
    size_t k = 0, n = sizeof rows / sizeof *rows;
    tok *t = to;
    tok_ids before = {0};
    (void)a;
    while (k < n && !str_eqz(type, rows[k].name))
        k++;
    if (k == n)
        return field_unknown(dg, "post_processor", type);
    weft_status status = rows[k].load(dg, t, v, &before);
    if (status == WEFT_OK)
        status = put_before(dg, &t->before, &before);
    VEC_FREE(&before);
    return status;
}

weft_status post_load(weft_diag *dg, tok *t, const value *v)
{
    static const step_kind kind = {"post_processor", "processors", load_step};
    return field_steps(dg, t->home, &kind, v, t);
}
