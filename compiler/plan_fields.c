/* plan_fields.c - what a plan file has: a row for each field, in the order of the file.
 *
 * plan_write.c and plan_json.c write what these tables say and plan_read_fields.c reads it, so a new field of plan.h is a new
 * row here. A row has the range that fits its field; whether the numbers agree with each other is for plan_check. */
#include "compiler/plan_file_impl.h"

#include "runtime/base/checksum.h"
#include <inttypes.h>
#include <stddef.h>

const char *const plan_space_names[] = {"none", "weight", "const",   "arena", "local",
                                        "tile", "io",     "adapter", NULL};
const char *const plan_io_names[] = {"tokens", "pos", "rows", NULL};
const char *const plan_rows_names[] = {"T", "R", "S", "fixed", NULL};
const char *const plan_layout_names[] = {"paged", "contiguous", "ring", NULL};
const char *const plan_lora_names[] = {"linear", "experts", "head_linear", "embed", NULL};
static const char *const form_names[] = {
#define FORM(name, text, ...) text,
#include "kernels/kforms.def"
#undef FORM
    NULL};
const char *const plan_mode_names[] = {"mapped", "copied", "interleaved", NULL};

#define NAMES(list, last) _Static_assert(sizeof(list) / sizeof *(list) == (last) + 2, "a name each")
NAMES(plan_space_names, SPACE_ADAPTER);
NAMES(plan_lora_names, LORA_KINDS - 1);
NAMES(plan_io_names, IO_COUNT - 1);
NAMES(plan_rows_names, ROWS_FIXED);
NAMES(plan_layout_names, PLAN_RING);
NAMES(plan_mode_names, WEIGHT_INTERLEAVED);

int64_t plan_field_int(size_t bytes, const void *at)
{
    return bytes == 1   ? *(const uint8_t *)at
           : bytes == 4 ? *(const int32_t *)at
                        : *(const int64_t *)at;
}

void plan_field_set_int(size_t bytes, void *at, int64_t x)
{
    if (bytes == 1)
        *(uint8_t *)at = (uint8_t)x;
    else if (bytes == 4)
        *(int32_t *)at = (int32_t)x;
    else
        *(int64_t *)at = x;
}

/* ---- kinds of rows ---- */

/* clang-format off */
#define BYTES(T, member) sizeof(((T *)0)->member)
#define LEAST(bytes) ((bytes) == sizeof(int32_t) ? INT32_MIN : INT64_MIN)
#define MOST(bytes)  ((bytes) == sizeof(int32_t) ? INT32_MAX : INT64_MAX)

#define ONE(member)      .at = offsetof(S, member), .bytes = BYTES(S, member), .n = 1
#define ARRAY(member)    .at = offsetof(S, member), .bytes = BYTES(S, member[0]), \
                         .n = BYTES(S, member) / BYTES(S, member[0])
#define COUNT(T, member) .count = offsetof(T, member), .count_bytes = BYTES(T, member)

/* S is the struct of a table. Integers: one that must be there, one with a default, one of any value, a number of bytes, an
 * array of any values. */
#define INT(key, member, least, most)      {key, FIELD_INT, ONE(member), .must = true, .min = least, .max = most}
#define OPT(key, member, least, most, def) {key, FIELD_INT, ONE(member), .min = least, .max = most, .otherwise = def}
#define ANY(key, member, def)              OPT(key, member, LEAST(BYTES(S, member)), MOST(BYTES(S, member)), def)
#define SIZE(key, member)                  OPT(key, member, 0, SIZE_MAX / 4, 0)
#define INTS(key, member, def)             {key, FIELD_INT, ARRAY(member), .min = LEAST(BYTES(S, member[0])), \
                                            .max = MOST(BYTES(S, member[0])), .otherwise = def, .less = def}
#define BOOL(key, member)                  {key, FIELD_BOOL, ONE(member)}
#define TEXT(key, member)                  {key, FIELD_TEXT, ONE(member), .must = true}
#define TYPE(key, member)                  {key, FIELD_TYPE, ONE(member), .must = true}
#define WORD(key, member, list)            {key, FIELD_WORD, ONE(member), .must = true, .words = list}
/* Lists: how many there may be bounds the memory of a file that is read. */
#define LIST(key, member, n_member, record, least, most) \
    {key, FIELD_LIST, ONE(member), COUNT(S, n_member), .min = least, .max = most, .must = true, .of = &(record)}
#define FIELDS(...) \
    .field = (const plan_field[]){__VA_ARGS__}, .n_field = sizeof((const plan_field[]){__VA_ARGS__}) / sizeof(plan_field)

/* ---- steps ---- */

#define S plan_operand
static const plan_record operand_record = {NULL, sizeof(S), FORM_ITEMS, .null = true, FIELDS(
    WORD("space",  space, plan_space_names),
    INT ("id",     id,     0,         INT32_MAX),
    INT ("offset", offset, INT64_MIN, INT64_MAX),
    TYPE("type",   type))};
#undef S

static const plan_record stride_record = {NULL, sizeof(int64_t[K_AXES_MAX]), FORM_ITEMS, FIELDS(
    {"stride", FIELD_INT, 0, sizeof(int64_t), K_AXES_MAX, .min = INT64_MIN, .max = INT64_MAX})};

#define S plan_step
static const plan_record step_record = {"step", sizeof(S), .line = true, FIELDS(
    {"kernel", FIELD_INDEX, ONE(kernel), COUNT(plan, n_kernel), .of_plan = true, .must = true},
    {"in",     FIELD_RECORDS, ARRAY(in), COUNT(S, n_in), .of = &operand_record},
    {"out",    FIELD_RECORDS, ARRAY(out), COUNT(S, n_out), .of = &operand_record},
    WORD("rows",      rows, plan_rows_names),
    OPT ("per_row",   per_row, 0, INT64_MAX, 1),
    INTS("pitch",     pitch, 0),
    INTS("out_pitch", out_pitch, 0),
    {"stride", FIELD_RECORDS, ARRAY(stride), .of = &stride_record},
    INTS("n",         n, 0),
    {"f",      FIELD_FLOAT, ARRAY(f)},
    INTS("word",      word, 0),
    OPT ("cols",      cols, 0, INT64_MAX, 0),
    OPT ("tile",      tile, 0, INT64_MAX, 0),
    ANY ("code",      code, 0),
    ANY ("n_code",    n_code, 0),
    ANY ("cell",      cell, -1),
    ANY ("layer",     layer, -1),
    INT ("node",      node, INT32_MIN, INT32_MAX),
    INTS("value",     value, -1),
    OPT ("prec_f32",  prec_f32, 0, 1, 0),
    {"place",  FIELD_PLACE, ONE(loc)},
    {"cost",   FIELD_INT, offsetof(S, cost), sizeof(int64_t), sizeof(plan_cost) / sizeof(int64_t),
               .min = INT64_MIN, .max = INT64_MAX})};
#undef S

/* ---- buckets ---- */

#define S plan_item
static const plan_record item_record = {NULL, sizeof(S), FORM_ITEMS, FIELDS(
    OPT("first",      first,      0, INT32_MAX, 0),
    OPT("n_step",     n_step,     0, INT32_MAX, 0),
    OPT("phase",      phase,      0, INT32_MAX, 0),
    OPT("per_thread", per_thread, 0, 1,         0),
    OPT("grain",      grain,      0, INT64_MAX, 0))};
#undef S

#define S plan_edge
static const plan_record edge_record = {NULL, sizeof(S), FORM_ITEMS, FIELDS(
    OPT("from", from, 0, INT32_MAX, 0),
    OPT("to",   to,   0, INT32_MAX, 0))};
#undef S

#define S plan_bucket
static const plan_record bucket_record = {"bucket", sizeof(S), .line = true, FIELDS(
    INT ("n_tok_max",     n_tok_max,   1, INT32_MAX),
    INT ("n_phase",       n_phase,     0, 1 << 16),
    INT ("arena_bytes",   arena_bytes, 0, SIZE_MAX / 4),
    SIZE("local_bytes",   local_bytes),
    SIZE("scratch_bytes", scratch_bytes),
    {"outputs", FIELD_LIST, ONE(output), COUNT(plan, n_output), .of_plan = true, .known = true, .must = true,
                .max = INT32_MAX, .of = &operand_record},
    LIST("items",         item, n_item, item_record, 0, 1 << 16),
    LIST("edges",         edge, n_edge, edge_record, 0, 1 << 18),
    LIST("steps",         step, n_step, step_record, 0, 1 << 16))};
#undef S

/* ---- weights, cells, outputs, code ---- */

#define S plan_piece
static const plan_record piece_record = {NULL, sizeof(S), FORM_ITEMS, FIELDS(
    OPT("rows",   rows,   0, INT64_MAX, 0),
    OPT("offset", offset, 0, INT64_MAX, 0),
    OPT("tensor", tensor, 0, INT32_MAX, 0))};
#undef S

#define S plan_weight
static const plan_record weight_record = {"weights", sizeof(S), .line = true, FIELDS(
    TEXT("name",   name),
    WORD("mode",   mode, plan_mode_names),
    TYPE("stored", stored),
    TYPE("type",   type),
    {"dim",      FIELD_INT, ARRAY(dim), COUNT(S, rank), .min = INT64_MIN, .max = INT64_MAX},
    INTS("stride", stride, 0),
    INT ("rows",   rows,    1, INT64_MAX),
    INT ("pitch",  pitch,   0, INT64_MAX),
    OPT ("layout", layout,  0, LAYOUT_COUNT - 1, 0),
    OPT ("align",  align,   0, 4096, 0),
    OPT ("table",  n_table, 0, INT32_MAX, 0),
    INT ("bytes",  bytes,   0, SIZE_MAX / 4),
    {"pieces",   FIELD_LIST, ONE(piece), COUNT(S, n_piece), .max = INT32_MAX, .of = &piece_record},
    {"scales",   FIELD_LIST, ONE(scales), COUNT(S, n_piece), .known = true, .max = INT32_MAX, .of = &piece_record},
    {"computed", FIELD_BYTES, ONE(computed), COUNT(S, bytes), .known = true})};
#undef S

#define S plan_cell
static const plan_record cell_record = {"cells", sizeof(S), FIELDS(
    TEXT("name",   name),
    BOOL("latent", latent),
    INT ("heads",  heads,  1, INT32_MAX),
    INT ("k",      k,      1, INT32_MAX),
    INT ("v",      v,      1, INT32_MAX),
    OPT ("window", window, 0, INT32_MAX, 0),
    WORD("layout", layout, plan_layout_names),
    OPT ("keep",   keep,   0, INT32_MAX, 0),
    BOOL("bounded", bounded),
    OPT ("coarsest", coarsest, 0, KFORM_COUNT - 1, 0),
    OPT ("pin",    pin,    0, INT64_MAX, 0))};
#undef S

#define S kpolicy_tier
static const plan_record tier_record = {NULL, sizeof(S), FORM_ITEMS, FIELDS(
    WORD("key",   key,   form_names),
    WORD("value", value, form_names),
    INT ("last",  last,  0, INT32_MAX))};
#undef S

#define S plan_output
static const plan_record output_record = {"outputs", sizeof(S), FIELDS(
    TEXT("name",  name),
    OPT ("index", index, -1, INT32_MAX, -1),
    WORD("rows",  rows, plan_rows_names),
    INT ("width", width, 1, INT32_MAX),
    OPT ("n_row", n_row, 0, INT32_MAX, 0))};
#undef S

#define S plan_site
static const plan_record site_record = {"sites", sizeof(S), FIELDS(
    TEXT("name",       name),
    OPT ("first",      first, 0, INT64_MAX, 0),
    WORD("kind",       kind, plan_lora_names),
    INT ("in",         in,    1, INT32_MAX),
    INT ("out",        out,   1, INT32_MAX),
    OPT ("parts",      parts, 1, INT32_MAX, 1),
    SIZE("offset",     offset),
    SIZE("slot_bytes", slot_bytes))};
#undef S

#define S kinstr
static const plan_record code_record = {"code", sizeof(S), FORM_ITEMS, FIELDS(
    INT("op", op, 0, UINT8_MAX),
    INT("to", to, 0, UINT8_MAX),
    {"at", FIELD_INT,   ARRAY(at), .must = true, .max = UINT8_MAX},
    {"f",  FIELD_FLOAT, ARRAY(f),  .must = true})};
#undef S

/* ---- the file ---- */

#define S plan_file_head
const plan_record plan_head_record = {NULL, sizeof(S), FIELDS(
    TEXT("weft",    weft),
    TEXT("arch",    arch),
    TEXT("backend", backend),
    TEXT("level",   level),
    TEXT("hash",    hash),
    TEXT("model",   model),
    TEXT("entry",   entry))};
#undef S

#define S plan
const plan_record plan_body_record = {NULL, sizeof(S), FIELDS(
    TYPE("kv",                kv),
    {"tiers", FIELD_RECORDS, ARRAY(tiers.tier), COUNT(S, tiers.n_tier), .of = &tier_record},
    BOOL("deterministic",     deterministic),
    INT ("n_tok_max",         n_tok_max, 1, INT32_MAX),
    INT ("n_out_max",         n_out_max, 0, INT32_MAX),
    INT ("n_seq_max",         n_seq_max, 1, INT32_MAX),
    OPT ("n_ctx",             n_ctx,     0, INT32_MAX, 0),
    OPT ("n_vocab",           n_vocab,   0, INT32_MAX, 0),
    OPT ("n_pos",             n_pos,     0, INT32_MAX, 0),
    SIZE("arena_bytes",       arena_bytes),
    SIZE("local_bytes",       local_bytes),
    SIZE("scratch_bytes",     scratch_bytes),
    OPT ("lora_slots",        lora_slots, 0, INT32_MAX, 0),
    OPT ("lora_rank",         lora_rank,  1, INT32_MAX, 1),
    SIZE("adapter_bytes",     adapter_bytes),
    SIZE("copied_bytes",      copied_bytes),
    SIZE("table_bytes",       table_bytes),
    SIZE("interleaved_bytes", interleaved_bytes),
    SIZE("mapped_bytes",      mapped_bytes),
    LIST("weights",           weight, n_weight, weight_record, 0, 1 << 14),
    LIST("cells",             cell,   n_cell,   cell_record,   0, 1 << 16),
    LIST("outputs",           output, n_output, output_record, 0, 1 << 16),
    {"sites", FIELD_LIST, ONE(site), COUNT(S, n_site), .max = 1 << 16, .of = &site_record},
    LIST("code",              code,   n_code,   code_record,   0, 1 << 20),
    {"consts", FIELD_BYTES, ONE(consts), COUNT(S, const_bytes)},
    LIST("buckets",           bucket, n_bucket, bucket_record, 1, 64))};
#undef S

static const plan_record source_record = {NULL, sizeof(char *), FORM_VALUE, FIELDS(
    {"files", FIELD_TEXT, 0, sizeof(char *), 1, .must = true})};

#define S plan_file_place
static const plan_record place_record = {NULL, sizeof(S), FORM_ITEMS, FIELDS(
    INT("file",   file,   0, INT32_MAX),
    INT("line",   line,   1, PLAN_FILE_TEXT_MAX),
    INT("column", column, 1, PLAN_FILE_TEXT_MAX))};
#undef S

static const plan_record kernel_record = {NULL, sizeof(plan_kernel), FORM_VALUE, FIELDS(
    {"kernels", FIELD_TEXT, offsetof(plan_kernel, name), sizeof(char *), 1, .must = true})};

#define S plan_file_tail
const plan_record plan_tail_record = {NULL, sizeof(S), FIELDS(
    LIST("files",   file,   n_file,   source_record, 0, 256),
    LIST("places",  place,  n_place,  place_record,  0, 1 << 16),
    LIST("kernels", kernel, n_kernel, kernel_record, 0, 1 << 12))};
#undef S
/* clang-format on */

/* ---- what they are, in short ---- */

static void put_record(strbuf *out, const plan_record *rec)
{
    for (const plan_field *f = rec->field; f < rec->field + rec->n_field; f++) {
        strbuf_add(out, "%s %d %zu %zu %d", f->key, (int)f->kind, f->bytes, f->n, f->known);
        for (int i = 0; f->words && f->words[i]; i++)
            strbuf_add(out, " %s", f->words[i]);
        if (f->of) {
            strbuf_putc(out, '{');
            put_record(out, f->of);
            strbuf_putc(out, '}');
        }
    }
}

static const char *const made_of[] = {
#define KARGS(args, sizes, choices, scalars) #args #sizes #choices #scalars,
#define KOP(op, args, ...) #op #args,
#include "kernels/kernel_ops.def"
#undef KARGS
#undef KOP
#define MAP(name, ...) #name,
#include "kernels/map.def"
#undef MAP
};

uint64_t plan_fields_sum(void)
{
    strbuf all = {0};
    put_record(&all, &plan_head_record);
    put_record(&all, &plan_tail_record);
    put_record(&all, &plan_body_record);
    for (dtype t = 0; t < DT_COUNT; t++)
        strbuf_add(&all, " %s", dtype_row_of(t)->name);
    for (size_t i = 0; i < sizeof made_of / sizeof made_of[0]; i++)
        strbuf_add(&all, " %s", made_of[i]);
    uint64_t sum = checksum(all.p, all.n);
    strbuf_free(&all);
    return sum;
}

void plan_hash_text(model_hash model, char to[PLAN_HASH_MAX])
{
    snprintf(to, PLAN_HASH_MAX, "%016" PRIx64 "%016" PRIx64, model.hi, model.lo);
}

plan_file_head plan_head_of(const plan *p, model_hash model, char hash[PLAN_HASH_MAX])
{
    plan_hash_text(model, hash);
    return (plan_file_head){WEFT_VERSION, karch_name(p->arch), p->backend, p->level, hash, p->model,
                            p->entry};
}
