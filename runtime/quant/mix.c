/* mix.c - the tables of mix.def, looked up. */
#include "runtime/quant/mix.h"

#include "runtime/quant/quant.h"
#include <stdlib.h>
#include <strings.h>

/* clang-format off */
enum {
#define PRESET(name, number, base) PRESET_##name,
#include "runtime/quant/mix.def"
    PRESET_ANY
};

static const mix_preset presets[] = {
#define PRESET(name, number, base) {#name, number, DT_##base},
#include "runtime/quant/mix.def"
};

static const char *const keeps[] = {
#define KEEP(pattern) pattern,
#include "runtime/quant/mix.def"
};

typedef enum { ALL, SPREAD, FIRST4, EIGHTH, EXPERTS8 } layer_set;

static const struct {
    int preset;
    const char *tensor;
    layer_set layers;
    dtype type;
} rules[] = {
#define RULE(preset, tensor, layers, type) {PRESET_##preset, tensor, layers, DT_##type},
#include "runtime/quant/mix.def"
};

static const struct {
    dtype from, to;
} fallbacks[] = {
#define FALLBACK(from, to) {DT_##from, DT_##to},
#include "runtime/quant/mix.def"
};
/* clang-format on */

#define COUNT(a) (sizeof(a) / sizeof *(a))

const mix_preset *mix_find(const char *name)
{
    for (size_t i = 0; i < COUNT(presets); i++)
        if (strcasecmp(presets[i].name, name) == 0)
            return &presets[i];
    return NULL;
}

void mix_names(strbuf *out)
{
    for (size_t i = 0; i < COUNT(presets); i++)
        strbuf_add(out, "%s%s", i ? ", " : "", presets[i].name);
}

weft_status mix_rule_parse(weft_diag *dg, const char *text, mix_rule *out_rule)
{
    const char *eq = strrchr(text, '=');
    char name[16];
    dtype t = DT_F32;
    bool known = eq && eq > text && strlen(eq + 1) < sizeof name;
    if (known) {
        size_t n = strlen(eq + 1);
        for (size_t i = 0; i < n; i++)
            name[i] =
                (char)(eq[1 + i] >= 'a' && eq[1 + i] <= 'z' ? eq[1 + i] - 'a' + 'A' : eq[1 + i]);
        known = dtype_from_name((str){name, n}, &t) && quant_has(t);
    }
    if (!known) {
        weft_status st = weft_fail(dg, W1903, WEFT_NOWHERE,
                                   "'%s' is not PATTERN=TYPE with a type that can be made", text);
        weft_note(dg,
                  "types are F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K");
        return st;
    }
    *out_rule = (mix_rule){{text, (size_t)(eq - text)}, t};
    return WEFT_OK;
}

/* The number in "blk.7.", -1 without one. */
static int64_t layer_of(str name)
{
    if (!str_starts(name, STR("blk.")))
        return -1;
    int64_t x = 0;
    size_t i = 4;
    for (; i < name.n && i < 12 && name.p[i] >= '0' && name.p[i] <= '9'; i++)
        x = x * 10 + (name.p[i] - '0');
    return i > 4 && i < name.n && name.p[i] == '.' ? x : -1;
}

static bool in_layers(const mix_model *m, layer_set set, int64_t l)
{
    int64_t n = m->layers;
    switch (set) {
    case ALL:
        return true;
    case SPREAD:
        return l >= 0 && (l < n / 8 || l >= 7 * n / 8 || (l - n / 8) % 3 == 2);
    case FIRST4:
        return l >= 0 && l < 4;
    case EIGHTH:
        return l >= 0 && l < n / 8;
    case EXPERTS8:
        return m->experts == 8;
    }
    return false;
}

static bool is_kept(str name, int rank)
{
    bool keep = rank < 2 || !str_ends(name, STR("weight"));
    for (size_t i = 0; !keep && i < COUNT(keeps); i++)
        keep = str_glob(str_of(keeps[i]), name);
    return keep;
}

static dtype preset_type(const mix_model *m, str name)
{
    int preset = (int)(m->preset - presets);
    bool mixes = dtype_row_of(m->preset->base)->elems > 1 && m->preset->base != DT_Q8_0;
    str head = m->tied ? STR("token_embd.weight") : STR("output.weight");
    for (size_t i = 0; i < COUNT(rules); i++) {
        bool here = rules[i].preset == preset || (rules[i].preset == PRESET_ANY && mixes);
        str pattern = strcmp(rules[i].tensor, "HEAD") == 0 ? head : str_of(rules[i].tensor);
        if (here && str_glob(pattern, name) && in_layers(m, rules[i].layers, layer_of(name)))
            return rules[i].type;
    }
    return m->preset->base;
}

static dtype fitting(dtype t, int64_t columns)
{
    for (size_t i = 0; i < COUNT(fallbacks); i++)
        if (columns % dtype_row_of(t)->elems != 0 && fallbacks[i].from == t) {
            t = fallbacks[i].to;
            i = SIZE_MAX; /* begin again with the new one */
        }
    return t;
}

mix_choice mix_choose(const mix_model *m, str name, int rank, int64_t columns)
{
    mix_choice c = {0};
    for (size_t i = 0; m->rules && i < m->rules->n && !c.ruled; i++)
        if (str_glob(m->rules->at[i].pattern, name))
            c = (mix_choice){.wanted = m->rules->at[i].type, .ruled = true};
    c.keep = !c.ruled && is_kept(name, rank);
    if (!c.ruled)
        c.wanted = c.keep ? DT_F32 : preset_type(m, name);
    c.type = fitting(c.wanted, columns);
    return c;
}
