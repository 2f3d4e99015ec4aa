/* safetensors.c - reads the tensor directory of a .safetensors file.
 *
 *     u64 n
 *     n bytes of JSON: {"name": {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]}, ...}
 *     data; offsets count from its first byte
 *
 * https://huggingface.co/docs/safetensors. Gaps between tensors are let pass, overlaps are not. The
 * data need not be aligned: early files have headers of any length. */
#include "runtime/formats/json_read.h"
#include "runtime/formats/model_file_impl.h"

#include "runtime/base/intmath.h"
#include <inttypes.h>

/* The size is the format's own limit; a tensor takes 8 values. */
static const json_limits header_limits = {
    .bytes_max = 100 * 1000 * 1000, .values_max = 1 << 21, .depth_max = 16};

typedef struct {
    weft_diag *dg;
    model_file *mf;
    const char *file;
    uint64_t data_at; /* where the data begins */
} reader;

/* One of the values of a tensor's object is not what it should be. */
static weft_status fail_entry(const reader *r, str tensor, const char *what)
{
    return weft_fail(r->dg, W1006, WEFT_NOWHERE, "%s: tensor " STR_FMT ": %s", r->file,
                     STR_ARG(tensor), what);
}

static weft_status read_dtype(const reader *r, const value *entry, model_tensor *t)
{
    str name;
    if (!value_str(value_get(entry, STR("dtype")), &name))
        return fail_entry(r, t->name, "dtype is missing or not a string");
    if (!dtype_from_hf(name, &t->type))
        return weft_fail(r->dg, W1008, WEFT_NOWHERE,
                         "%s: tensor " STR_FMT ": has the unknown type " STR_FMT, r->file,
                         STR_ARG(t->name), STR_ARG(name));
    return WEFT_OK;
}

static weft_status read_shape(const reader *r, const value *entry, model_tensor *t)
{
    const value *shape = value_get(entry, STR("shape"));
    if (value_kind_of(shape) != VALUE_ARRAY)
        return fail_entry(r, t->name, "shape is missing or not a list");
    size_t rank = value_count(shape);
    if (rank > MODEL_RANK_MAX)
        return weft_fail(r->dg, W1006, WEFT_NOWHERE,
                         "%s: tensor " STR_FMT ": has %zu dimensions, at most %d are allowed",
                         r->file, STR_ARG(t->name), rank, MODEL_RANK_MAX);
    t->rank = (int)rank;
    for (size_t i = 0; i < rank; i++) {
        value size = value_at(shape, i);
        if (!value_int(&size, &t->shape[i]) || t->shape[i] < 0)
            return fail_entry(r, t->name, "shape holds something else than whole numbers from 0");
    }
    return WEFT_OK;
}

static weft_status read_offsets(const reader *r, const value *entry, int64_t *begin, int64_t *end,
                                const model_tensor *t)
{
    const value *offsets = value_get(entry, STR("data_offsets"));
    if (value_kind_of(offsets) != VALUE_ARRAY || value_count(offsets) != 2)
        return fail_entry(r, t->name, "data_offsets is missing or not a list of two");
    value first = value_at(offsets, 0), second = value_at(offsets, 1);
    if (!value_int(&first, begin) || !value_int(&second, end) || *begin < 0 || *end < *begin)
        return fail_entry(r, t->name, "data_offsets are not two rising whole numbers from 0");
    return WEFT_OK;
}

static weft_status read_tensor(const reader *r, const value_member *m, size_t part)
{
    model_tensor t = {.name = arena_str(r->mf->home, m->name), .part = (int)part};
    int64_t begin, end;
    uint64_t offset;
    if (t.name.n == 0)
        return weft_fail(r->dg, W1006, WEFT_NOWHERE, "%s: a tensor has no name", r->file);
    if (m->v.type != VT_OBJECT)
        return fail_entry(r, t.name, "is not described by an object");
    WEFT_TRY(read_dtype(r, &m->v, &t));
    WEFT_TRY(read_shape(r, &m->v, &t));
    WEFT_TRY(read_offsets(r, &m->v, &begin, &end, &t));
    if (!u64_add(r->data_at, (uint64_t)begin, &offset))
        offset = UINT64_MAX;
    WEFT_TRY(model_place_tensor(r->dg, r->mf, &t, offset));
    if ((uint64_t)(end - begin) != t.bytes)
        return weft_fail(r->dg, W1006, WEFT_NOWHERE,
                         "%s: tensor " STR_FMT ": data_offsets span %" PRId64
                         " bytes, type and shape make %zu",
                         r->file, STR_ARG(t.name), end - begin, t.bytes);
    model_add_tensor(r->mf, &t);
    return WEFT_OK;
}

/* Texts about the file, copied into the model's arena. */
static weft_status read_metadata(const reader *r, const value *v, value *out_metadata)
{
    if (v && v->type != VT_OBJECT)
        return weft_fail(r->dg, W1006, WEFT_NOWHERE, "%s: __metadata__ is not an object", r->file);
    size_t n = value_count(v), twice;
    value_member *members = ARENA_ARRAY(r->mf->home, value_member, n);
    for (size_t i = 0; i < n; i++) {
        const value_member *m = &v->as.object.members[i];
        str text;
        if (!value_str(&m->v, &text))
            return weft_fail(r->dg, W1006, WEFT_NOWHERE,
                             "%s: __metadata__: " STR_FMT " is not a string", r->file,
                             STR_ARG(m->name));
        members[i].name = arena_str(r->mf->home, m->name);
        members[i].v = value_of_str(arena_str(r->mf->home, text));
    }
    bool unique = value_of_members(r->mf->home, members, n, out_metadata, &twice);
    WEFT_ASSERT(unique); /* json_read has checked */
    return WEFT_OK;
}

static weft_status read_header(const reader *r, const value *header, size_t part,
                               value *out_metadata)
{
    size_t first = r->mf->tensors.n, n = value_count(header);
    const value *metadata = value_get(header, STR("__metadata__"));
    if (header->type != VT_OBJECT)
        return weft_fail(r->dg, W1006, WEFT_NOWHERE, "%s: the header is not a JSON object",
                         r->file);
    if (n > MODEL_TENSORS_MAX - first)
        return weft_fail(r->dg, W1105, WEFT_NOWHERE,
                         "%s: has %zu tensors, the limit is %d for a model", r->file, n,
                         MODEL_TENSORS_MAX);
    for (size_t i = 0; i < n; i++)
        if (&header->as.object.members[i].v != metadata)
            WEFT_TRY(read_tensor(r, &header->as.object.members[i], part));
    WEFT_TRY(model_check_overlap(r->dg, r->mf, first));
    return read_metadata(r, metadata, out_metadata);
}

weft_status safetensors_read(weft_diag *dg, model_file *mf, size_t part, value *out_metadata)
{
    const model_part_impl *p = &mf->parts.at[part];
    uint64_t n;
    if (p->bytes < sizeof n)
        return weft_fail(dg, W1005, WEFT_NOWHERE,
                         "%s: has %zu bytes, not even the 8 that give the size of the header",
                         p->path, p->bytes);
    memcpy(&n, p->data, sizeof n);
    if (n > header_limits.bytes_max)
        return weft_fail(dg, W1101, WEFT_NOWHERE,
                         "%s: claims a header of %" PRIu64 " bytes, the limit is %zu", p->path, n,
                         header_limits.bytes_max);
    if (n > p->bytes - sizeof n)
        return weft_fail(dg, W1005, WEFT_NOWHERE,
                         "%s: its header of %" PRIu64 " bytes would end at byte %" PRIu64
                         ", but the file has %zu",
                         p->path, n, n + sizeof n, p->bytes);
    reader r = {dg, mf, p->path, n + sizeof n};
    arena *scratch = arena_create();
    value header;
    const char *name = arena_printf(scratch, "%s (header)", p->path).p;
    weft_status status =
        json_read(dg, scratch, name, (str){(const char *)p->data + sizeof n, (size_t)n},
                  header_limits, &header);
    if (status == WEFT_OK)
        status = read_header(&r, &header, part, out_metadata);
    arena_destroy(scratch);
    return status;
}
