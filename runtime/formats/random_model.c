/* random_model.c - which tensors a model has and how each is stored; random_fill.c makes their numbers. */
#include "runtime/formats/random_model.h"

#include "runtime/base/mem.h"
#include "runtime/base/memory.h"
#include "runtime/base/vec.h"
#include "runtime/formats/gguf_write.h"
#include "runtime/formats/model_file.h"
#include "runtime/formats/random_fill.h"
#include <inttypes.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/mman.h>

/* Sets of tensors. */
enum { LLAMA = 1, QWEN2 = 2, GEMMA2 = 4, PHI3 = 8, MIXTRAL = 16, DEEPSEEK = 32, ALL = 63 };

typedef struct {
    const char *name, *arch;
    int tensors;
    int64_t layers, d, ff, heads, kv_heads, head_dim, vocab;
    bool tied;
    int64_t ctx;
    double theta;
    int64_t window, experts, used;
    int64_t dense, ff_exp, shared, rank, rope, v_dim; /* of DEEPSEEK */
} shape;

static const shape shapes[] = {
#define yes true
#define no false
#define SHAPE(...) {__VA_ARGS__, 0, 0, 0, 0, 0, 0},
#define SHAPE_LATENT(...) {__VA_ARGS__},
#include "runtime/formats/shapes.def"
#undef SHAPE_LATENT
#undef SHAPE
#undef yes
#undef no
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* A storage type as one asks for it: of most matrices, of the head, and of those matrices that a mix keeps more
 * exactly. Heads and mixes are those of llama-quantize. */
typedef struct {
    const char *name;
    dtype most, head, more;
} mix;

/* clang-format off */
static const mix mixes[] = {
    {"F32",    DT_F32,    DT_F32,  DT_F32},
    {"F16",    DT_F16,    DT_F16,  DT_F16},
    {"BF16",   DT_BF16,   DT_BF16, DT_BF16},
    {"Q8_0",   DT_Q8_0,   DT_Q8_0, DT_Q8_0},
    {"Q4_0",   DT_Q4_0,   DT_Q6_K, DT_Q4_0},
    {"Q4_1",   DT_Q4_1,   DT_Q6_K, DT_Q4_1},
    {"Q5_0",   DT_Q5_0,   DT_Q6_K, DT_Q5_0},
    {"Q5_1",   DT_Q5_1,   DT_Q6_K, DT_Q5_1},
    {"Q2_K",   DT_Q2_K,   DT_Q6_K, DT_Q2_K},
    {"Q3_K",   DT_Q3_K,   DT_Q6_K, DT_Q3_K},
    {"Q4_K",   DT_Q4_K,   DT_Q6_K, DT_Q4_K},
    {"Q4_K_M", DT_Q4_K,   DT_Q6_K, DT_Q6_K},
    {"Q5_K",   DT_Q5_K,   DT_Q6_K, DT_Q5_K},
    {"Q5_K_M", DT_Q5_K,   DT_Q6_K, DT_Q6_K},
    {"Q6_K",   DT_Q6_K,   DT_Q6_K, DT_Q6_K},
    {"IQ4_NL", DT_IQ4_NL, DT_Q6_K, DT_IQ4_NL},
    {"IQ4_XS", DT_IQ4_XS, DT_Q6_K, DT_IQ4_XS},
    {"MXFP4",  DT_MXFP4,  DT_Q8_0, DT_MXFP4},
};

/* What a row that is not whole blocks of 256 is stored as instead. */
static const struct {
    dtype t, instead;
} smaller[] = {
    {DT_Q2_K, DT_Q4_0}, {DT_Q3_K, DT_Q4_0}, {DT_Q4_K, DT_Q5_0},     {DT_Q5_K, DT_Q5_1},
    {DT_Q6_K, DT_Q8_0}, {DT_IQ4_XS, DT_IQ4_NL},
};

typedef enum {
    ONE, D, FF, FF_TWICE, Q, KV, QKV, VOCAB, EXPERTS,
    HEADS, RANK, RANK_ROPE, NOPE, V_DIM, O, FF_EXP, FF_SHARED
} size_name;
typedef enum { MOST, MORE, HEAD, EMBED, PLAIN } role; /* PLAIN: f32 in every mix */
typedef enum { EACH, FIRST, REST } which; /* of the layers: FIRST those before experts, where a shape has such */

typedef struct {
    const char *name; /* without blk.N. */
    int of;           /* sets that have it */
    size_name size[3];
    int rank;
    role kind;
    which layers;
} tensor_row;

static const tensor_row outside[] = {
    {"token_embd.weight",  ALL, {VOCAB, D}, 2, EMBED, EACH},
    {"output_norm.weight", ALL, {D},        1, PLAIN, EACH},
    {"output.weight",      ALL, {VOCAB, D}, 2, HEAD,  EACH}, /* left out where it is tied */
};

enum { DENSE = LLAMA | QWEN2 | GEMMA2, PLAIN_KV = ALL & ~PHI3 & ~DEEPSEEK };

static const tensor_row of_layer[] = {
    {"attn_norm.weight",           ALL,              {D},                  1, PLAIN, EACH},
    {"attn_q.weight",              ALL & ~PHI3,      {Q, D},               2, MOST,  EACH},
    {"attn_k.weight",              PLAIN_KV,         {KV, D},              2, MOST,  EACH},
    {"attn_v.weight",              PLAIN_KV,         {KV, D},              2, MORE,  EACH},
    {"attn_q.bias",                QWEN2,            {Q},                  1, PLAIN, EACH},
    {"attn_k.bias",                QWEN2,            {KV},                 1, PLAIN, EACH},
    {"attn_v.bias",                QWEN2,            {KV},                 1, PLAIN, EACH},
    {"attn_qkv.weight",            PHI3,             {QKV, D},             2, MOST,  EACH},
    {"attn_kv_a_mqa.weight",       DEEPSEEK,         {RANK_ROPE, D},       2, MOST,  EACH},
    {"attn_kv_a_norm.weight",      DEEPSEEK,         {RANK},               1, PLAIN, EACH},
    {"attn_k_b.weight",            DEEPSEEK,         {HEADS, RANK, NOPE},  3, MOST,  EACH},
    {"attn_v_b.weight",            DEEPSEEK,         {HEADS, V_DIM, RANK}, 3, MOST,  EACH},
    {"attn_output.weight",         ALL,              {D, O},               2, MOST,  EACH},
    {"post_attention_norm.weight", GEMMA2,           {D},                  1, PLAIN, EACH},
    {"ffn_norm.weight",            ALL,              {D},                  1, PLAIN, EACH},
    {"ffn_gate.weight",            DENSE,            {FF, D},              2, MOST,  EACH},
    {"ffn_up.weight",              DENSE,            {FF, D},              2, MOST,  EACH},
    {"ffn_up.weight",              PHI3,             {FF_TWICE, D},        2, MOST,  EACH},
    {"ffn_down.weight",            DENSE | PHI3,     {D, FF},              2, MORE,  EACH},
    {"ffn_gate.weight",            DEEPSEEK,         {FF, D},              2, MOST,  FIRST},
    {"ffn_up.weight",              DEEPSEEK,         {FF, D},              2, MOST,  FIRST},
    {"ffn_down.weight",            DEEPSEEK,         {D, FF},              2, MORE,  FIRST},
    {"post_ffw_norm.weight",       GEMMA2,           {D},                  1, PLAIN, EACH},
    {"ffn_gate_inp.weight",        MIXTRAL|DEEPSEEK, {EXPERTS, D},         2, PLAIN, REST},
    {"exp_probs_b.bias",           DEEPSEEK,         {EXPERTS},            1, PLAIN, REST},
    {"ffn_gate_exps.weight",       MIXTRAL|DEEPSEEK, {EXPERTS, FF_EXP, D}, 3, MOST,  REST},
    {"ffn_up_exps.weight",         MIXTRAL|DEEPSEEK, {EXPERTS, FF_EXP, D}, 3, MOST,  REST},
    {"ffn_down_exps.weight",       MIXTRAL|DEEPSEEK, {EXPERTS, D, FF_EXP}, 3, MORE,  REST},
    {"ffn_gate_shexp.weight",      DEEPSEEK,         {FF_SHARED, D},       2, MOST,  REST},
    {"ffn_up_shexp.weight",        DEEPSEEK,         {FF_SHARED, D},       2, MOST,  REST},
    {"ffn_down_shexp.weight",      DEEPSEEK,         {D, FF_SHARED},       2, MORE,  REST},
};
/* clang-format on */

struct random_model {
    void *data;
    size_t bytes;
};

const char *random_model_shape(size_t i)
{
    return i < SHAPES ? shapes[i].name : NULL;
}

const char *random_model_type(size_t i)
{
    return i < sizeof mixes / sizeof *mixes ? mixes[i].name : NULL;
}

/* ---- the directory ---- */

typedef struct {
    arena *a;
    const shape *s;
    const mix *m;
    gguf_writer *w;
} maker;

static int64_t size_of(const shape *s, size_name n)
{
    const int64_t sizes[] = {
        [ONE] = 1,
        [D] = s->d,
        [FF] = s->ff,
        [FF_TWICE] = 2 * s->ff,
        [Q] = s->heads * s->head_dim,
        [KV] = s->kv_heads * s->head_dim,
        [QKV] = (s->heads + 2 * s->kv_heads) * s->head_dim,
        [VOCAB] = s->vocab,
        [EXPERTS] = s->experts,
        [HEADS] = s->heads,
        [RANK] = s->rank,
        [RANK_ROPE] = s->rank + s->rope,
        [NOPE] = s->head_dim - s->rope,
        [V_DIM] = s->v_dim,
        [O] = s->heads * (s->v_dim ? s->v_dim : s->head_dim),
        [FF_EXP] = s->ff_exp ? s->ff_exp : s->ff,
        [FF_SHARED] = s->shared * s->ff_exp,
    };
    return sizes[n];
}

/* The layers in which a mix spends more: the first and last eighth, and every third in between. */
static bool keeps_more(int64_t layer, int64_t layers)
{
    return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

static dtype type_of(const maker *k, role kind, int64_t layer, int64_t row_elems)
{
    dtype t = k->m->most;
    if (kind == PLAIN)
        return DT_F32;
    if (kind == HEAD || (kind == EMBED && k->s->tied))
        t = k->m->head;
    else if (kind == MORE && keeps_more(layer, k->s->layers))
        t = k->m->more;
    for (size_t i = 0;
         row_elems % dtype_row_of(t)->elems != 0 && i < sizeof smaller / sizeof *smaller; i++)
        if (smaller[i].t == t)
            return smaller[i].instead;
    return t;
}

static weft_status no_data(weft_diag *dg, gguf_sink *to, void *ctx)
{
    (void)dg, (void)to, (void)ctx;
    return WEFT_OK; /* never called: only the header is written */
}

static void add_tensor(maker *k, const tensor_row *r, int64_t layer)
{
    int64_t dim[3];
    for (int i = 0; i < r->rank; i++)
        dim[i] = size_of(k->s, r->size[i]);
    str name =
        layer < 0 ? str_of(r->name) : arena_printf(k->a, "blk.%" PRId64 ".%s", layer, r->name);
    gguf_writer_tensor(k->w, name, type_of(k, r->kind, layer, dim[r->rank - 1]), r->rank, dim,
                       no_data, NULL);
}

static void add_tensors(maker *k)
{
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        if (outside[i].kind != HEAD || !k->s->tied)
            add_tensor(k, &outside[i], -1);
    for (int64_t l = 0; l < k->s->layers; l++)
        for (size_t i = 0; i < sizeof of_layer / sizeof *of_layer; i++)
            if (of_layer[i].of & k->s->tensors &&
                (of_layer[i].layers == EACH ||
                 of_layer[i].layers == (l < k->s->dense ? FIRST : REST)))
                add_tensor(k, &of_layer[i], l);
}

static void add_keys(maker *k, const char *spec)
{
    enum { GATING_SIGMOID = 2 }; /* of llama.cpp */
    const shape *s = k->s;
    const bool latent = s->rank > 0; /* a row of state is one head, as wide as it is */
    const struct {
        const char *name;
        int64_t n; /* 0: left out */
    } counts[] = {
        {"vocab_size", s->vocab},
        {"context_length", s->ctx},
        {"block_count", s->layers},
        {"embedding_length", s->d},
        {"feed_forward_length", s->ff},
        {"attention.head_count", s->heads},
        {"attention.head_count_kv", s->kv_heads},
        {"attention.key_length", latent ? s->rank + s->rope : s->head_dim},
        {"attention.value_length", latent ? s->rank : s->head_dim},
        {"rope.dimension_count", latent ? s->rope : s->head_dim},
        {"attention.sliding_window", s->window},
        {"expert_count", s->experts},
        {"expert_used_count", s->used},
        {"expert_feed_forward_length", s->ff_exp},
        {"expert_shared_count", s->shared},
        {"expert_gating_func", latent ? GATING_SIGMOID : 0},
        {"leading_dense_block_count", s->dense},
        {"attention.kv_lora_rank", s->rank},
        {"attention.key_length_mla", latent ? s->head_dim : 0},
        {"attention.value_length_mla", s->v_dim},
    };
    bool fits = gguf_writer_key(k->w, STR("general.architecture"), value_of_str(str_of(s->arch)));
    fits &= gguf_writer_key(k->w, STR("general.name"), value_of_str(str_of(spec)));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].n)
            fits &= gguf_writer_key(k->w, arena_printf(k->a, "%s.%s", s->arch, counts[i].name),
                                    (value){.type = VT_U32, .as.i = counts[i].n});
    fits &= gguf_writer_key(k->w, arena_printf(k->a, "%s.rope.freq_base", s->arch),
                            (value){.type = VT_F32, .as.f = s->theta});
    fits &=
        gguf_writer_key(k->w, arena_printf(k->a, "%s.attention.layer_norm_rms_epsilon", s->arch),
                        (value){.type = VT_F32, .as.f = 1e-5});
    WEFT_ASSERT(fits);
}

/* ---- finding what is asked for ---- */

typedef const char *name_at(size_t i);

static weft_status fail_name(weft_diag *dg, const char *kind, str name, name_at *at)
{
    str_guess guess = {0};
    strbuf all = {0};
    for (size_t i = 0; at(i); i++) {
        str_guess_try(&guess, name, str_of(at(i)));
        strbuf_add(&all, "%s%s", i ? ", " : "", at(i));
    }
    weft_status st = weft_fail(dg, W1903, WEFT_NOWHERE, "--random knows no %s `" STR_FMT "`", kind,
                               STR_ARG(name));
    weft_suggest(dg, &guess);
    weft_note(dg, "%ss: %s", kind, all.p);
    strbuf_free(&all);
    return st;
}

static bool same_name(str a, const char *b)
{
    return a.n == strlen(b) && strncasecmp(a.p, b, a.n) == 0;
}

static weft_status find(weft_diag *dg, const char *spec, maker *k)
{
    const char *colon = strchr(spec, ':');
    str name = colon ? (str){spec, (size_t)(colon - spec)} : str_of(spec);
    for (size_t i = 0; i < SHAPES; i++)
        if (same_name(name, shapes[i].name))
            k->s = &shapes[i];
    if (!k->s)
        return fail_name(dg, "shape", name, random_model_shape);
    if (!colon)
        return weft_fail(dg, W1903, WEFT_NOWHERE,
                         "--random takes SHAPE:TYPE, such as %s:Q4_K_M, not '%s'", k->s->name,
                         spec);
    str type = str_of(colon + 1);
    for (size_t i = 0; random_model_type(i); i++)
        if (same_name(type, mixes[i].name))
            k->m = &mixes[i];
    return k->m ? WEFT_OK : fail_name(dg, "type", type, random_model_type);
}

/* ---- memory ---- */

/* Pages come when they are touched, so a model that is not filled costs nothing, but one that is and does not fit
 * would have the system end somebody's process. */
static weft_status allocate(weft_diag *dg, const char *spec, random_model *rm, bool fill)
{
    memory_room room = fill ? memory_available("") : memory_mappable("");
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#if defined(MAP_NORESERVE)
    flags |= fill ? 0 : MAP_NORESERVE;
#endif
    if (rm->bytes < room.bytes) {
        void *data = mmap(NULL, rm->bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
        if (data != MAP_FAILED) {
            rm->data = data;
            return WEFT_OK;
        }
    }
    return weft_fail(dg, W0902, WEFT_NOWHERE,
                     "%s takes %.1f GB of memory, %.1f GB are available %s", spec,
                     (double)rm->bytes / 1e9, (double)room.bytes / 1e9, room.within);
}

static weft_status fill_tensors(weft_diag *dg, const char *spec, random_model *rm, int threads)
{
    model_file *mf;
    WEFT_TRY(model_file_open_memory(dg, rm->data, rm->bytes, spec, &mf));
    random_fill(mf, rm->data, threads);
    model_file_close(mf);
    return WEFT_OK;
}

weft_status random_model_create(weft_diag *dg, const char *spec, int threads, random_model **out_rm)
{
    maker k = {0};
    WEFT_TRY(find(dg, spec, &k));
    strbuf head = {0};
    k.a = arena_create();
    k.w = gguf_writer_create();
    add_keys(&k, spec);
    add_tensors(&k);
    random_model *rm = mem_alloc(sizeof *rm);
    *rm = (random_model){0};
    rm->bytes = (size_t)gguf_writer_head(k.w, &head);
    rm->bytes += head.n;
    weft_status st = allocate(dg, spec, rm, threads > 0);
    if (st == WEFT_OK)
        memcpy(rm->data, head.p, head.n);
    gguf_writer_destroy(k.w);
    arena_destroy(k.a);
    strbuf_free(&head);
    if (st == WEFT_OK && threads > 0)
        st = fill_tensors(dg, spec, rm, threads);
    if (st == WEFT_OK)
        *out_rm = rm;
    else
        random_model_destroy(rm);
    return st;
}

void random_model_destroy(random_model *rm)
{
    if (!rm)
        return;
    if (rm->data)
        munmap(rm->data, rm->bytes);
    mem_free(rm);
}

const void *random_model_data(const random_model *rm)
{
    return rm->data;
}

size_t random_model_bytes(const random_model *rm)
{
    return rm->bytes;
}
