/* fuzz_params.c - a small checkpoint whose settings are a stranger's, bound and planned.
 *
 * The tensors stay; every ten bytes change one key: which (one byte), what kind of value (one byte), and the
 * value (eight). Numbers that have broken things before are in a table. The checkpoint is bound with
 * bind.weft, and as Llama with the library's file. */
#include "tests/fuzz/fuzz_bound.h"

#include "tests/formats/gguf_bytes.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char model_path[] = WEFT_SOURCE_DIR "/tests/fuzz/bind.weft";

enum {
    CHANGE_BYTES = 10,
    TYPE_U32 = 4,
    TYPE_F32 = 6,
    TYPE_BOOL = 7,
    TYPE_STR = 8,
    TYPE_I64 = 11,
    TYPE_F64 = 12
};

/* A key and what it holds; type 0 leaves it out. */
typedef struct {
    const char *name;
    uint32_t type;
    int64_t whole;
    double number;
} setting;

static const setting settings[] = {
    {"vocab_size", TYPE_U32, 8, 0},
    {"block_count", TYPE_U32, 2, 0},
    {"embedding_length", TYPE_U32, 32, 0},
    {"attention.head_count", TYPE_U32, 4, 0},
    {"attention.head_count_kv", TYPE_U32, 4, 0},
    {"attention.key_length", TYPE_U32, 8, 0},
    {"attention.value_length", 0, 8, 0},
    {"attention.sliding_window", 0, 0, 0},
    {"window_pattern", 0, 0, 0},
    {"feed_forward_length", TYPE_U32, 64, 0},
    {"expert_count", 0, 0, 0},
    {"eps", TYPE_F32, 0, 1e-5},
    {"attention.layer_norm_rms_epsilon", TYPE_F32, 0, 1e-5},
    {"context_length", TYPE_U32, 64, 0},
    {"rope.freq_base", TYPE_F32, 0, 10000.0},
    {"rope.dimension_count", 0, 8, 0},
    {"rope.scaling.type", 0, 0, 0},
    {"rope.scaling.factor", 0, 0, 0},
    {"rope.scaling.attn_factor", 0, 0, 0},
    {"rope.scaling.original_context_length", 0, 0, 0},
};

enum { SETTINGS = sizeof settings / sizeof *settings };

static const gguf_row tensors[] = {
    {"token_embd.weight", DT_F32, 2, {32, 8}},
    {"output_norm.weight", DT_F32, 1, {32}},
    {"blk.0.attn_norm.weight", DT_F32, 1, {32}},
    {"blk.0.attn_q.weight", DT_F32, 2, {32, 32}},
    {"blk.0.attn_k.weight", DT_F32, 2, {32, 32}},
    {"blk.0.attn_v.weight", DT_F32, 2, {32, 32}},
    {"blk.0.attn_output.weight", DT_F32, 2, {32, 32}},
    {"blk.0.ffn_up.weight", DT_F32, 2, {32, 64}},
    {"blk.0.ffn_up.bias", DT_F32, 1, {64}},
    {"blk.0.ffn_down.weight", DT_F32, 2, {64, 32}},
    {"blk.1.attn_norm.weight", DT_F32, 1, {32}},
    {"blk.1.attn_q.weight", DT_F32, 2, {32, 32}},
    {"blk.1.attn_k.weight", DT_F32, 2, {32, 32}},
    {"blk.1.attn_v.weight", DT_F32, 2, {32, 32}},
    {"blk.1.attn_output.weight", DT_F32, 2, {32, 32}},
    {"blk.1.ffn_up.weight", DT_F32, 2, {32, 64}},
    {"blk.1.ffn_up.bias", DT_F32, 1, {64}},
    {"blk.1.ffn_down.weight", DT_F32, 2, {64, 32}},
};

static void change(setting *s, const uint8_t *bytes)
{
    static const int64_t wholes[] = {
        0,         -1,        1,          INT64_MAX, INT64_MIN,       INT64_MAX / 2,
        INT32_MAX, INT32_MIN, UINT32_MAX, 1LL << 32, (1LL << 40) + 1, 65537};
    static const double numbers[] = {0.0,       -0.0,  -1.0,   NAN,   INFINITY,
                                     -INFINITY, 1e300, 1e-300, 9.3e18};
    static const uint32_t types[] = {0,         TYPE_I64, TYPE_F64, TYPE_STR,
                                     TYPE_BOOL, TYPE_F32, TYPE_U32};
    setting *at = &s[bytes[0] % SETTINGS];
    at->type = types[(bytes[1] & 0x7f) % (sizeof types / sizeof *types)];
    memcpy(&at->whole, bytes + 2, sizeof at->whole);
    memcpy(&at->number, bytes + 2, sizeof at->number);
    if (bytes[1] & 0x80) {
        at->whole = wholes[bytes[2] % (sizeof wholes / sizeof *wholes)];
        at->number = numbers[bytes[2] % (sizeof numbers / sizeof *numbers)];
    }
}

static void put_setting(strbuf *b, const char *arch, const setting *s)
{
    static const char *const words[] = {"linear", "yarn",    "none",    "LLLG",
                                        "",       "dynamic", "longrope"};
    strbuf name = {0};
    float f = (float)s->number;
    strbuf_add(&name, "%s.%s", arch, s->name);
    put_text(b, name.p);
    strbuf_free(&name);
    put_u32(b, s->type);
    if (s->type == TYPE_U32)
        put_u32(b, (uint32_t)s->whole);
    else if (s->type == TYPE_F32)
        strbuf_put(b, (str){(const char *)&f, sizeof f});
    else if (s->type == TYPE_BOOL)
        strbuf_putc(b, s->whole & 1);
    else if (s->type == TYPE_STR)
        put_text(b, words[(uint64_t)s->whole % (sizeof words / sizeof *words)]);
    else
        strbuf_put(
            b, (str){s->type == TYPE_I64 ? (const char *)&s->whole : (const char *)&s->number, 8});
}

static void bind_as(const char *arch, const char *model, const setting *s)
{
    strbuf b = {0};
    size_t n_tensor = sizeof tensors / sizeof *tensors, n_key = 1;
    weft_diag *dg = diag_create();
    model_file *mf = NULL;
    for (size_t i = 0; i < SETTINGS; i++)
        n_key += s[i].type != 0;
    put_head(&b, 3, n_tensor, n_key);
    put_key_str(&b, "general.architecture", arch);
    for (size_t i = 0; i < SETTINGS; i++)
        if (s[i].type != 0)
            put_setting(&b, arch, &s[i]);
    strbuf_fill(&b, 0, put_rows(&b, tensors, n_tensor));
    if (model_file_open_memory(dg, b.p, b.n, "params.gguf", &mf) == WEFT_OK)
        bind_it(mf, model, 0);
    model_file_close(mf);
    diag_destroy(dg);
    strbuf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    setting s[SETTINGS];
    memcpy(s, settings, sizeof s);
    for (size_t i = 0; i + CHANGE_BYTES <= size; i += CHANGE_BYTES)
        change(s, data + i);
    bind_as("toy", model_path, s);
    bind_as("llama", NULL, s);
    return 0;
}
