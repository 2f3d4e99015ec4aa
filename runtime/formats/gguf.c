/* gguf.c - reads the header of a GGUF file: keys, then the tensor directory.
 *
 * A cursor walks the mapped bytes once. Each number is copied out before it is checked, since the
 * file may change under the mapping. Counts are checked against the bytes that are left before
 * anything is allocated for them, and against limits of their own: memory stays within a small
 * multiple of the file. */
#include "runtime/formats/gguf_format.h"
#include "runtime/formats/model_file_impl.h"

#include "runtime/base/intmath.h"
#include <inttypes.h>

typedef struct {
    weft_diag *dg;
    arena *home;
    const char *file;
    const unsigned char *data;
    size_t bytes, at;
    const char *kind; /* "key" or "tensor" while one is read, else NULL */
    uint64_t nth;     /* which one, until its name is known */
    str name;
    uint64_t item_n; /* strings and arrays inside arrays so far, which cost memory */
} cursor;

/* "model.gguf: tensor blk.0.attn_q.weight", as messages begin. */
static const char *where(const cursor *c)
{
    if (!c->kind)
        return c->file;
    if (c->name.p)
        return arena_printf(c->home, "%s: %s " STR_FMT, c->file, c->kind, STR_ARG(c->name)).p;
    return arena_printf(c->home, "%s: %s number %" PRIu64, c->file, c->kind, c->nth).p;
}

static weft_status head_fits(cursor *c, uint64_t bytes)
{
    if (c->at <= GGUF_HEAD_MAX && bytes <= GGUF_HEAD_MAX - c->at)
        return WEFT_OK;
    return weft_fail(c->dg, W1105, WEFT_NOWHERE,
                     "%s: takes %" PRIu64 " bytes at byte %zu, keys and directory may take %d",
                     where(c), bytes, c->at, GGUF_HEAD_MAX);
}

static weft_status want(cursor *c, uint64_t n, const char *what)
{
    size_t left = c->bytes - c->at;
    if (n <= left)
        return head_fits(c, n);
    return weft_fail(c->dg, W1005, WEFT_NOWHERE,
                     "%s: %s at byte %zu takes %" PRIu64 " bytes, but the file has only %zu more",
                     where(c), what, c->at, n, left);
}

/* W1005 unless n things of at least least_bytes each can follow. */
static weft_status want_many(cursor *c, uint64_t n, uint64_t least_bytes, const char *what)
{
    size_t left = c->bytes - c->at;
    if (n <= left / least_bytes)
        return head_fits(c, n * least_bytes);
    return weft_fail(c->dg, W1005, WEFT_NOWHERE,
                     "%s: claims %" PRIu64 " %s at byte %zu, but the file has only %zu bytes more",
                     where(c), n, what, c->at, left);
}

static weft_status take(cursor *c, void *to, size_t n, const char *what)
{
    WEFT_TRY(want(c, n, what));
    memcpy(to, c->data + c->at, n);
    c->at += n;
    return WEFT_OK;
}

static weft_status take_u32(cursor *c, uint32_t *to, const char *what)
{
    return take(c, to, sizeof *to, what);
}

static weft_status take_u64(cursor *c, uint64_t *to, const char *what)
{
    return take(c, to, sizeof *to, what);
}

static weft_status take_str(cursor *c, str *to, const char *what)
{
    uint64_t n;
    WEFT_TRY(take_u64(c, &n, "a length"));
    WEFT_TRY(want(c, n, what));
    if (n > GGUF_TEXT_MAX)
        return weft_fail(c->dg, W1105, WEFT_NOWHERE,
                         "%s: %s at byte %zu has %" PRIu64 " bytes, the limit is %d", where(c),
                         what, c->at, n, GGUF_TEXT_MAX);
    *to = (str){(const char *)c->data + c->at, (size_t)n};
    c->at += (size_t)n;
    return WEFT_OK;
}

static weft_status take_name(cursor *c)
{
    size_t at = c->at;
    str name;
    WEFT_TRY(take_str(c, &name, "the name"));
    if (name.n == 0 || memchr(name.p, 0, name.n))
        return weft_fail(c->dg, W1006, WEFT_NOWHERE, "%s: the name at byte %zu %s", where(c), at,
                         name.n ? "has a NUL in it" : "is empty");
    if (name.n > GGUF_NAME_MAX)
        return weft_fail(c->dg, W1006, WEFT_NOWHERE,
                         "%s: the name at byte %zu has %zu bytes, at most %d are allowed", where(c),
                         at, name.n, GGUF_NAME_MAX);
    c->name = name;
    return WEFT_OK;
}

static weft_status take_type(cursor *c, value_type *to)
{
    size_t at = c->at;
    uint32_t number;
    WEFT_TRY(take_u32(c, &number, "the type"));
    for (int t = 0; t < VT_COUNT; t++) {
        int gguf = value_type_row_of((value_type)t)->gguf;
        if (gguf >= 0 && (uint32_t)gguf == number) {
            *to = (value_type)t;
            return WEFT_OK;
        }
    }
    return weft_fail(c->dg, W1006, WEFT_NOWHERE,
                     "%s: the type at byte %zu is %" PRIu32 ", the last known is 12", where(c), at,
                     number);
}

/* n numbers or bools that follow each other. A bool is 0 or 1. */
static weft_status take_quantized(cursor *c, value_type t, uint64_t n, const unsigned char **to)
{
    size_t bytes = value_type_row_of(t)->bytes;
    WEFT_TRY(want_many(c, n, bytes, "items"));
    *to = c->data + c->at;
    for (size_t i = 0; t == VT_BOOL && i < n; i++)
        if ((*to)[i] > 1)
            return weft_fail(c->dg, W1006, WEFT_NOWHERE,
                             "%s: the bool at byte %zu is %d, not 0 or 1", where(c), c->at + i,
                             (*to)[i]);
    c->at += (size_t)n * bytes;
    return WEFT_OK;
}

/* Before memory is spent on n strings or arrays of an array. A file can be mostly a hole, so its
 * size alone does not bound what they may cost. */
static weft_status want_items(cursor *c, uint64_t n, uint64_t least_bytes, const char *what)
{
    WEFT_TRY(want_many(c, n, least_bytes, what));
    if (n > GGUF_ITEMS_MAX - c->item_n)
        return weft_fail(c->dg, W1105, WEFT_NOWHERE,
                         "%s: %" PRIu64 " %s at byte %zu make more than %d in the file", where(c),
                         n, what, c->at, GGUF_ITEMS_MAX);
    c->item_n += n;
    return WEFT_OK;
}

static weft_status take_array(cursor *c, int depth, value *to)
{
    size_t at = c->at;
    value_type item;
    uint64_t n;
    WEFT_TRY(take_type(c, &item));
    WEFT_TRY(take_u64(c, &n, "the number of items"));
    if (item == VT_STR) {
        WEFT_TRY(want_items(c, n, sizeof(uint64_t), "strings"));
        str *items = ARENA_ARRAY(c->home, str, (size_t)n);
        for (size_t i = 0; i < n; i++)
            WEFT_TRY(take_str(c, &items[i], "a string"));
        *to = value_of_array(item, items, (size_t)n);
    } else if (item == VT_ARRAY) {
        if (depth == GGUF_DEPTH_MAX) {
            weft_status status = weft_fail(c->dg, W1102, WEFT_NOWHERE,
                                           "%s: the array at byte %zu is too deep", where(c), at);
            weft_note(c->dg, "arrays may nest %d deep", GGUF_DEPTH_MAX);
            return status;
        }
        WEFT_TRY(want_items(c, n, sizeof(uint32_t) + sizeof(uint64_t), "arrays"));
        value *items = ARENA_ARRAY(c->home, value, (size_t)n);
        for (size_t i = 0; i < n; i++)
            WEFT_TRY(take_array(c, depth + 1, &items[i]));
        *to = value_of_array(item, items, (size_t)n);
    } else {
        const unsigned char *items;
        WEFT_TRY(take_quantized(c, item, n, &items));
        *to = value_of_array(item, items, (size_t)n);
    }
    return WEFT_OK;
}

static weft_status take_value(cursor *c, value *to)
{
    value_type t;
    WEFT_TRY(take_type(c, &t));
    if (t == VT_ARRAY)
        return take_array(c, 1, to);
    if (t == VT_STR) {
        str s;
        WEFT_TRY(take_str(c, &s, "the string"));
        *to = value_of_str(s);
        return WEFT_OK;
    }
    WEFT_TRY(want(c, value_type_row_of(t)->bytes, "the value"));
    const unsigned char *one;
    WEFT_TRY(take_quantized(c, t, 1, &one));
    value list = value_of_array(t, one, 1);
    *to = value_at(&list, 0);
    return WEFT_OK;
}

static weft_status take_keys(cursor *c, uint64_t n, value *out_keys)
{
    /* A name of one byte, a type, a value of one byte. */
    WEFT_TRY(want_many(c, n, sizeof(uint64_t) + 1 + sizeof(uint32_t) + 1, "keys"));
    if (n > MODEL_KEYS_MAX)
        return weft_fail(c->dg, W1105, WEFT_NOWHERE, "%s: has %" PRIu64 " keys, the limit is %d",
                         c->file, n, MODEL_KEYS_MAX);
    value_member *members = ARENA_ARRAY(c->home, value_member, (size_t)n);
    for (size_t i = 0; i < n; i++) {
        c->kind = "key";
        c->nth = i;
        c->name = (str){0};
        WEFT_TRY(take_name(c));
        WEFT_TRY(take_value(c, &members[i].v));
        members[i].name = c->name;
    }
    c->kind = NULL;
    size_t twice;
    const name_index *ix = name_index_create(c->home, members, (size_t)n, sizeof *members, &twice);
    if (!ix)
        return weft_fail(c->dg, W1010, WEFT_NOWHERE, "%s: key " STR_FMT " stands twice", c->file,
                         STR_ARG(members[twice].name));
    *out_keys = (value){.type = VT_OBJECT, .as.object = {members, (size_t)n, ix}};
    return WEFT_OK;
}

static weft_status read_alignment(cursor *c, const value *keys, uint64_t *out_alignment)
{
    int64_t x = GGUF_ALIGNMENT;
    const value *v = value_get(keys, STR(GGUF_KEY_ALIGNMENT));
    if (v && v->type != VT_U32)
        return weft_fail(c->dg, W1006, WEFT_NOWHERE, "%s: %s is of type %s, not u32", c->file,
                         GGUF_KEY_ALIGNMENT, value_type_row_of(v->type)->text);
    value_int(v, &x);
    if (x < 1 || x > GGUF_ALIGNMENT_MAX || (x & (x - 1)) != 0)
        return weft_fail(c->dg, W1006, WEFT_NOWHERE,
                         "%s: %s is %" PRId64 ", expected a power of two up to %d", c->file,
                         GGUF_KEY_ALIGNMENT, x, GGUF_ALIGNMENT_MAX);
    *out_alignment = (uint64_t)x;
    return WEFT_OK;
}

/* What numbers outside dtype.def stood for in older files. */
static const char *removed_type(uint32_t number)
{
    static const struct {
        uint32_t number;
        const char *name;
    } removed[] = {{4, "Q4_2"},      {5, "Q4_3"},        {31, "Q4_0_4_4"},   {32, "Q4_0_4_8"},
                   {33, "Q4_0_8_8"}, {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"}};
    for (size_t i = 0; i < sizeof removed / sizeof *removed; i++)
        if (removed[i].number == number)
            return removed[i].name;
    return NULL;
}

static weft_status take_dtype(cursor *c, dtype *to)
{
    size_t at = c->at;
    uint32_t number;
    WEFT_TRY(take_u32(c, &number, "the type"));
    if (dtype_from_ggml(number, to))
        return WEFT_OK;
    const char *name = removed_type(number);
    if (name)
        return weft_fail(c->dg, W1008, WEFT_NOWHERE,
                         "%s: is stored as %s (type %" PRIu32
                         " at byte %zu), which GGUF has given up",
                         where(c), name, number, at);
    return weft_fail(c->dg, W1008, WEFT_NOWHERE, "%s: has the unknown type %" PRIu32 " at byte %zu",
                     where(c), number, at);
}

/* One row of the directory; t->offset is still relative to the data. */
static weft_status take_tensor(cursor *c, model_tensor *t)
{
    uint32_t rank;
    WEFT_TRY(take_name(c));
    t->name = c->name;
    WEFT_TRY(take_u32(c, &rank, "the rank"));
    if (rank > GGUF_RANK_MAX)
        return weft_fail(c->dg, W1006, WEFT_NOWHERE,
                         "%s: has %" PRIu32 " dimensions (byte %zu), at most %d are allowed",
                         where(c), rank, c->at - sizeof rank, GGUF_RANK_MAX);
    t->rank = (int)rank;
    for (int i = t->rank - 1; i >= 0; i--) {
        uint64_t size;
        WEFT_TRY(take_u64(c, &size, "a dimension"));
        if (size == 0 || !i64_from_u64(size, &t->shape[i]))
            return weft_fail(c->dg, W1006, WEFT_NOWHERE,
                             "%s: dimension %d (byte %zu) is %" PRIu64 ", expected 1 to 2^63 - 1",
                             where(c), i, c->at - sizeof size, size);
    }
    WEFT_TRY(take_dtype(c, &t->type));
    return take_u64(c, &t->offset, "the offset");
}

static weft_status take_tensors(cursor *c, model_file *mf, size_t part, uint64_t n)
{
    /* A name of one byte, rank 0, type, offset. */
    WEFT_TRY(want_many(c, n, sizeof(uint64_t) * 2 + 1 + sizeof(uint32_t) * 2, "tensors"));
    if (n > MODEL_TENSORS_MAX - mf->tensors.n)
        return weft_fail(c->dg, W1105, WEFT_NOWHERE,
                         "%s: has %" PRIu64 " tensors, the limit is %d for a model", c->file, n,
                         MODEL_TENSORS_MAX);
    for (uint64_t i = 0; i < n; i++) {
        model_tensor t = {.part = (int)part};
        c->kind = "tensor";
        c->nth = i;
        c->name = (str){0};
        WEFT_TRY(take_tensor(c, &t));
        model_add_tensor(mf, &t);
    }
    c->kind = NULL;
    return WEFT_OK;
}

static weft_status place_tensors(cursor *c, model_file *mf, size_t first, uint64_t alignment)
{
    uint64_t base, offset;
    if (!u64_align_up(c->at, alignment, &base))
        base = UINT64_MAX; /* no tensor fits behind it */
    for (size_t i = first; i < mf->tensors.n; i++) {
        model_tensor *t = &mf->tensors.at[i];
        if (t->offset % alignment != 0)
            return weft_fail(c->dg, W1006, WEFT_NOWHERE,
                             "%s: tensor " STR_FMT ": its offset %" PRIu64
                             " is not a multiple of the alignment %" PRIu64,
                             c->file, STR_ARG(t->name), t->offset, alignment);
        if (!u64_add(base, t->offset, &offset))
            offset = UINT64_MAX;
        WEFT_TRY(model_place_tensor(c->dg, mf, t, offset));
    }
    return model_check_overlap(c->dg, mf, first);
}

static weft_status take_version(cursor *c)
{
    char magic[4];
    uint32_t version;
    WEFT_TRY(take(c, magic, sizeof magic, "the magic"));
    if (memcmp(magic, GGUF_MAGIC, sizeof magic) != 0)
        return weft_fail(c->dg, W1011, WEFT_NOWHERE,
                         "%s: begins with %02x %02x %02x %02x, not with \"GGUF\"", c->file,
                         (unsigned)(unsigned char)magic[0], (unsigned)(unsigned char)magic[1],
                         (unsigned)(unsigned char)magic[2], (unsigned)(unsigned char)magic[3]);
    WEFT_TRY(take_u32(c, &version, "the version"));
    if (version != 0 && (version & 0xffff) == 0)
        return weft_fail(c->dg, W1007, WEFT_NOWHERE,
                         "%s: is a big-endian GGUF file (its version reads 0x%08" PRIx32 ")",
                         c->file, version);
    if (version < 2 || version > GGUF_VERSION)
        return weft_fail(c->dg, W1007, WEFT_NOWHERE,
                         "%s: is of GGUF version %" PRIu32 ", expected 2 or %d", c->file, version,
                         GGUF_VERSION);
    return WEFT_OK;
}

weft_status gguf_read(weft_diag *dg, model_file *mf, size_t part, gguf_head *out_head)
{
    const model_part_impl *p = &mf->parts.at[part];
    cursor c = {.dg = dg, .home = mf->home, .file = p->path, .data = p->data, .bytes = p->bytes};
    size_t first = mf->tensors.n;
    uint64_t n_tensor, n_key;
    gguf_head head;
    WEFT_TRY(take_version(&c));
    WEFT_TRY(take_u64(&c, &n_tensor, "the number of tensors"));
    WEFT_TRY(take_u64(&c, &n_key, "the number of keys"));
    WEFT_TRY(take_keys(&c, n_key, &head.keys));
    WEFT_TRY(read_alignment(&c, &head.keys, &head.alignment));
    WEFT_TRY(take_tensors(&c, mf, part, n_tensor));
    WEFT_TRY(place_tensors(&c, mf, first, head.alignment));
    *out_head = head;
    return WEFT_OK;
}
