/* test_large.c - `weft check -m` on files in the shape of Llama 3 8B: every tensor claimed and every shape
 * reported in under a second (of the processor: the machine may be busy) and 50 MB, without touching data. The files are sparse: 5 and 16 GB long,
 * a few blocks on the disk. */
#include "runtime/base/clock.h"
#include "runtime/formats/json_read.h"
#include "tests/formats/files.h"

#include <fcntl.h>
#include <sys/resource.h>

enum {
    LAYERS = 32,
    D = 4096,
    FF = 14336,
    HEADS = 32,
    KV_HEADS = 8,
    HEAD_DIM = 128,
    VOCAB = 128256,
    N_TENSOR = 3 + 9 * LAYERS, /* embedding, head, last norm; four norms and projections, .. */
    SECONDS_MAX = 1,
    KB_MAX = 50 * 1024,
};

/* One tensor of a layer. */
typedef struct {
    const char *gguf, *hf;
    int64_t rows, cols; /* cols 0: a vector */
    bool big;           /* where a Q4_K_M file has Q6_K */
} line;

/* clang-format off */
static const line lines[] = {
    {"attn_norm",   "input_layernorm",          D,                   0,                0},
    {"attn_q",      "self_attn.q_proj",         HEADS * HEAD_DIM,    D,                0},
    {"attn_k",      "self_attn.k_proj",         KV_HEADS * HEAD_DIM, D,                0},
    {"attn_v",      "self_attn.v_proj",         KV_HEADS * HEAD_DIM, D,                1},
    {"attn_output", "self_attn.o_proj",         D,                   HEADS * HEAD_DIM, 0},
    {"ffn_norm",    "post_attention_layernorm", D,                   0,                0},
    {"ffn_gate",    "mlp.gate_proj",            FF,                  D,                0},
    {"ffn_up",      "mlp.up_proj",              FF,                  D,                0},
    {"ffn_down",    "mlp.down_proj",            D,                   FF,               1},
};
/* clang-format on */

/* ---- the files ---- */

static void write_sparse(const char *path, const strbuf *head, uint64_t data_bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, head->p, head->n), (ssize_t)head->n);
    ck_assert_int_eq(ftruncate(fd, (off_t)(head->n + data_bytes)), 0);
    close(fd);
}

static void gguf_tensor(strbuf *b, uint64_t *at, const char *name, int64_t rows, int64_t cols,
                        dtype type)
{
    uint64_t sizes[2] = {(uint64_t)(cols ? cols : rows), (uint64_t)rows};
    size_t bytes;
    ck_assert(dtype_bytes(type, cols ? rows * cols : rows, &bytes));
    put_tensor(b, name, cols ? 2 : 1, sizes, (uint32_t)dtype_row_of(type)->ggml, *at);
    *at += (bytes + 31) / 32 * 32;
}

/* list_n > 0: a list of so many zeros stands where the number of key heads should be. */
static void write_gguf(const char *path, uint64_t list_n)
{
    static const struct {
        const char *name;
        uint32_t value;
    } keys[] = {{"llama.block_count", LAYERS},
                {"llama.context_length", 8192},
                {"llama.embedding_length", D},
                {"llama.feed_forward_length", FF},
                {"llama.attention.head_count", HEADS},
                {"llama.rope.dimension_count", HEAD_DIM},
                {"llama.vocab_size", VOCAB}};
    strbuf b = {0};
    uint64_t at = 0;
    float eps = 1e-5f;
    uint32_t eps_bits;
    char name[64];
    memcpy(&eps_bits, &eps, sizeof eps);
    put_head(&b, 3, N_TENSOR, COUNT_OF(keys) + 5);
    put_key_str(&b, "general.architecture", "llama");
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        put_key_u32(&b, keys[i].name, keys[i].value);
    if (list_n) {
        put_text(&b, "llama.attention.head_count_kv");
        put_u32(&b, 9); /* a list */
        put_u32(&b, 4); /* of u32 */
        put_u64(&b, list_n);
        strbuf_fill(&b, 0, list_n * 4);
    } else {
        put_key_u32(&b, "llama.attention.head_count_kv", KV_HEADS);
    }
    put_text(&b, "llama.attention.layer_norm_rms_epsilon");
    put_u32(&b, 6); /* f32 */
    put_u32(&b, eps_bits);
    put_key_str(&b, "tokenizer.ggml.model", "gpt2");
    put_text(&b, "tokenizer.ggml.tokens");
    put_u32(&b, 9); /* a list */
    put_u32(&b, 8); /* of strings */
    put_u64(&b, VOCAB);
    for (int i = 0; i < VOCAB; i++) {
        snprintf(name, sizeof name, "t%d", i);
        put_text(&b, name);
    }
    gguf_tensor(&b, &at, "token_embd.weight", VOCAB, D, DT_Q4_K);
    gguf_tensor(&b, &at, "output_norm.weight", D, 0, DT_F32);
    gguf_tensor(&b, &at, "output.weight", VOCAB, D, DT_Q6_K);
    for (int l = 0; l < LAYERS; l++)
        for (size_t i = 0; i < COUNT_OF(lines); i++) {
            dtype type = !lines[i].cols ? DT_F32 : lines[i].big && l % 2 ? DT_Q6_K : DT_Q4_K;
            snprintf(name, sizeof name, "blk.%d.%s.weight", l, lines[i].gguf);
            gguf_tensor(&b, &at, name, lines[i].rows, lines[i].cols, type);
        }
    put_padding(&b, 32);
    write_sparse(path, &b, at);
    strbuf_free(&b);
}

static void hf_tensor(strbuf *b, uint64_t *at, const char *name, int64_t rows, int64_t cols)
{
    uint64_t end = *at + (uint64_t)(cols ? rows * cols : rows) * 2;
    strbuf_add(b, "%s\"%s\":{\"dtype\":\"BF16\",\"shape\":[%lld", *at ? "," : "{", name,
               (long long)rows);
    if (cols)
        strbuf_add(b, ",%lld", (long long)cols);
    strbuf_add(b, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)*at,
               (unsigned long long)end);
    *at = end;
}

static void write_hf(const char *dir)
{
    char path[1024], name[64];
    strbuf head = {0}, b = {0};
    uint64_t at = 0;
    ck_assert_int_eq(mkdir(dir, 0755), 0);
    strbuf_add(&b,
               "{\"architectures\": [\"LlamaForCausalLM\"], \"num_hidden_layers\": %d, "
               "\"hidden_size\": %d, \"intermediate_size\": %d, \"num_attention_heads\": %d, "
               "\"num_key_value_heads\": %d, \"vocab_size\": %d, \"rms_norm_eps\": 1e-05, "
               "\"rope_theta\": 500000.0, \"max_position_embeddings\": 8192, "
               "\"tie_word_embeddings\": false}",
               LAYERS, D, FF, HEADS, KV_HEADS, VOCAB);
    snprintf(path, sizeof path, "%s/config.json", dir);
    write_sparse(path, &b, 0);
    strbuf_reset(&b);
    hf_tensor(&b, &at, "model.embed_tokens.weight", VOCAB, D);
    hf_tensor(&b, &at, "model.norm.weight", D, 0);
    hf_tensor(&b, &at, "lm_head.weight", VOCAB, D);
    for (int l = 0; l < LAYERS; l++)
        for (size_t i = 0; i < COUNT_OF(lines); i++) {
            snprintf(name, sizeof name, "model.layers.%d.%s.weight", l, lines[i].hf);
            hf_tensor(&b, &at, name, lines[i].rows, lines[i].cols);
        }
    strbuf_putc(&b, '}');
    put_u64(&head, b.n);
    strbuf_put(&head, strbuf_view(&b));
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    write_sparse(path, &head, at);
    strbuf_free(&head);
    strbuf_free(&b);
}

/* ---- the program ---- */

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

/* Runs `weft check -m MODEL [FLAG]` with its output in a file; within the bounds, it exits so. */
static void check_model(const char *model, const char *flag, const char *out, int exit_status)
{
    struct rusage used;
    int status;
    fflush(NULL);
    uint64_t start = clock_ns();
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        if (freopen(out, "w", stdout) && (exit_status == 0 || freopen(out, "w", stderr)))
            execl(WEFT_PROGRAM, "weft", "check", "-m", model, flag, (char *)NULL);
        _exit(127);
    }
    ck_assert_int_eq(wait4(pid, &status, 0, &used), pid);
    double wall = clock_seconds(clock_ns() - start);
    double seconds = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
    printf("%s %s: %.3f s, of the processor %.3f s, %ld KB\n", model, flag ? flag : "", wall,
           seconds, used.ru_maxrss);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), exit_status);
#if !defined(WEFT_SANITIZED)
    ck_assert_msg(used.ru_maxrss < KB_MAX, "%ld KB", used.ru_maxrss);
    ck_assert_msg(seconds < SECONDS_MAX, "%.3f s", seconds);
#endif
}

/* Every weight is listed with its shape, each tensor once. */
static void check_listing(weft_diag *dg, const char *path)
{
    arena *a = arena_create();
    value list;
    json_limits limits = {.bytes_max = 16 << 20, .values_max = 1 << 20, .depth_max = 16};
    expect_ok(dg, json_read_file(dg, a, path, limits, &list));
    value file = value_at(value_get(&list, STR("files")), 0);
    const value *weights = value_get(&file, STR("weights"));
    ck_assert_uint_eq(value_count(weights), N_TENSOR);
    int64_t elems = 0;
    for (size_t i = 0; i < N_TENSOR; i++) {
        value w = value_at(weights, i);
        const value *shape = value_get(&w, STR("shape"));
        int64_t n = 1, size;
        ck_assert_uint_eq(value_count(value_get(&w, STR("tensors"))), 1);
        ck_assert_uint_ge(value_count(shape), 1);
        for (size_t k = 0; k < value_count(shape); k++) {
            value one = value_at(shape, k);
            ck_assert(value_int(&one, &size));
            n *= size;
        }
        elems += n;
    }
    ck_assert_int_eq(elems, INT64_C(8030261248)); /* the parameters of Llama 3 8B */
    arena_destroy(a);
}

static void check_both(fixture *fx, const char *model)
{
    temp_path out = temp_join(&fx->dir, "out");
    check_model(model, NULL, out.path, 0);
    check_model(model, "--json", out.path, 0);
    check_listing(fx->dg, out.path);
}

START_TEST(gguf_of_8b)
{
    fixture fx = fixture_create();
    temp_path model = temp_join(&fx.dir, "model.gguf");
    write_gguf(model.path, 0);
    check_both(&fx, model.path);
    fixture_destroy(&fx);
}
END_TEST

START_TEST(safetensors_of_8b)
{
    fixture fx = fixture_create();
    temp_path model = temp_join(&fx.dir, "model");
    write_hf(model.path);
    check_both(&fx, model.path);
    fixture_destroy(&fx);
}
END_TEST

/* Ten million numbers where one is wanted are reported, not read. */
START_TEST(list_of_ten_million)
{
    fixture fx = fixture_create();
    temp_path model = temp_join(&fx.dir, "model.gguf"), out = temp_join(&fx.dir, "out");
    char said[512] = "";
    write_gguf(model.path, 10 * 1000 * 1000);
    check_model(model.path, NULL, out.path, 1);
    FILE *f = fopen(out.path, "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_gt(fread(said, 1, sizeof said - 1, f), 0);
    fclose(f);
    ck_assert_msg(strstr(said, "error[W0402]: kv_heads is int, but "
                               "llama.attention.head_count_kv holds a list of 10000000"),
                  "%s", said);
    fixture_destroy(&fx);
}
END_TEST

SUITE_MAIN("large", gguf_of_8b, safetensors_of_8b, list_of_ten_million)
