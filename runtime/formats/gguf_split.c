/* gguf_split.c - a GGUF model in one file, or in several: NAME-00001-of-00003.gguf and so on.
 *
 * Every part says split.no (from 0), split.count and split.tensors.count; the first holds the keys.
 * Written by llama.cpp's gguf-split. */
#include "runtime/formats/model_file_impl.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct {
    int64_t no, count, tensors;
} split;

/* All zero where the keys are absent. No count is INT64_MAX, so one can be added to each. */
static weft_status read_split(weft_diag *dg, const char *file, const value *keys, split *out_s)
{
    split s = {0};
    const struct {
        const char *name;
        int64_t *to;
    } wanted[] = {
        {"split.no", &s.no}, {"split.count", &s.count}, {"split.tensors.count", &s.tensors}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        const value *v = value_get(keys, str_of(wanted[i].name));
        int64_t x = 0;
        if (v && (!value_int(v, &x) || x < 0 || x == INT64_MAX))
            return weft_fail(dg, W1006, WEFT_NOWHERE, "%s: %s is not a count", file,
                             wanted[i].name);
        *wanted[i].to = x;
    }
    *out_s = s;
    return WEFT_OK;
}

/* Keys and architecture of the model, from its only or first part. */
static weft_status take_keys(weft_diag *dg, model_file *mf, const value *keys)
{
    mf->keys = *keys;
    const value *v = value_get(&mf->keys, STR("general.architecture"));
    if (!v)
        return WEFT_OK;
    str *arch = ARENA_NEW(mf->home, str);
    if (!value_str(v, arch) || arch->n == 0)
        return weft_fail(dg, W1006, WEFT_NOWHERE,
                         "%s: general.architecture is of type %s, expected a string that says one",
                         mf->parts.at[0].path, value_type_row_of(v->type)->text);
    mf->archs = arch;
    mf->arch_n = 1;
    return WEFT_OK;
}

weft_status gguf_open_single(weft_diag *dg, model_file *mf)
{
    gguf_head head;
    split s;
    const char *file = mf->parts.at[0].path;
    WEFT_TRY(gguf_read(dg, mf, 0, &head));
    WEFT_TRY(read_split(dg, file, &head.keys, &s));
    if (s.count > 1)
        return weft_fail(dg, W1006, WEFT_NOWHERE,
                         "%s: is part %" PRId64 " of %" PRId64
                         "; the others can be found only when it is opened by its path",
                         file, s.no + 1, s.count);
    return take_keys(dg, mf, &head.keys);
}

static const char *part_path(arena *a, str stem, int64_t no, int64_t count)
{
    return arena_printf(a, STR_FMT "-%05" PRId64 "-of-%05" PRId64 ".gguf", STR_ARG(stem), no + 1,
                        count)
        .p;
}

/* The path without -00002-of-00003.gguf, if that is how it ends. */
static bool stem_of(arena *a, const char *path, split s, str *out_stem)
{
    str tail = str_of(part_path(a, (str){"", 0}, s.no, s.count)), all = str_of(path);
    if (!str_ends(all, tail))
        return false;
    *out_stem = (str){all.p, all.n - tail.n};
    return true;
}

static weft_status open_part(weft_diag *dg, model_file *mf, const char *path, int64_t no,
                             split first)
{
    gguf_head head;
    split s;
    weft_status status = model_add_part(dg, mf, path);
    if (status != WEFT_OK) {
        weft_note(dg, "it is part %" PRId64 " of %" PRId64 " of %s", no + 1, first.count, mf->path);
        return status;
    }
    WEFT_TRY(gguf_read(dg, mf, (size_t)no, &head));
    WEFT_TRY(read_split(dg, path, &head.keys, &s));
    if (s.no != no || s.count != first.count || s.tensors != first.tensors)
        return weft_fail(dg, W1006, WEFT_NOWHERE,
                         "%s: says it is part %" PRId64 " of %" PRId64 " (%" PRId64
                         " tensors), expected part %" PRId64 " of %" PRId64 " (%" PRId64
                         " tensors)",
                         path, s.no + 1, s.count, s.tensors, no + 1, first.count, first.tensors);
    return no == 0 ? take_keys(dg, mf, &head.keys) : WEFT_OK;
}

weft_status gguf_open(weft_diag *dg, model_file *mf)
{
    gguf_head head;
    split s;
    str stem;
    WEFT_TRY(model_add_part(dg, mf, mf->path));
    WEFT_TRY(gguf_read(dg, mf, 0, &head));
    WEFT_TRY(read_split(dg, mf->path, &head.keys, &s));
    if (s.count <= 1)
        return take_keys(dg, mf, &head.keys);
    if (s.count > MODEL_PARTS_MAX)
        return weft_fail(dg, W1105, WEFT_NOWHERE,
                         "%s: is split into %" PRId64 " parts, the limit is %d", mf->path, s.count,
                         MODEL_PARTS_MAX);
    if (!stem_of(mf->home, mf->path, s, &stem)) {
        weft_status status =
            weft_fail(dg, W1006, WEFT_NOWHERE,
                      "%s: says it is part %" PRId64 " of %" PRId64 ", but is not named so",
                      mf->path, s.no + 1, s.count);
        weft_note(dg, "the name of this part must end in %s",
                  part_path(mf->home, (str){"", 0}, s.no, s.count));
        return status;
    }
    model_drop_parts(mf);
    for (int64_t no = 0; no < s.count; no++)
        WEFT_TRY(open_part(dg, mf, part_path(mf->home, stem, no, s.count), no, s));
    if ((size_t)s.tensors != mf->tensors.n)
        return weft_fail(dg, W1006, WEFT_NOWHERE,
                         "%s: its parts hold %zu tensors, split.tensors.count says %" PRId64,
                         mf->path, mf->tensors.n, s.tensors);
    return WEFT_OK;
}
