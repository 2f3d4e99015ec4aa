/* fuzz_bind.c - a stranger's checkpoint through the binder, and a stranger's model file.
 *
 * Bytes that begin with GGUF are a checkpoint: it is bound with bind.weft, and with the
 * one it carries, if it does. Any other bytes are the text of a model file, which then travels inside
 * a small checkpoint made here. What binds must be a legal graph, and prints. */
#include "compiler/compiler.h"
#include "tests/formats/gguf_bytes.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every way of finding a weight, in few lines. */
static const char model_path[] = WEFT_SOURCE_DIR "/tests/fuzz/bind.weft";

static void bind_it(const model_file *mf, const char *arch, int64_t context)
{
    weft_diag *dg = diag_create();
    bound_model *bm = NULL;
    bind_options how = {.arch = arch, .context = context};
    weft_status st = model_bind(dg, mf, &how, &bm);
    if ((st == WEFT_OK) != (diag_errors(dg) == 0))
        abort(); /* a failure without a message, or a message without a failure */
    strbuf out = {0};
    diag_json(dg, &out);
    if (st == WEFT_OK) {
        strbuf_reset(&out);
        if (!graph_verify(bm->graph, &out)) {
            fprintf(stderr, "%s\n", out.p);
            abort();
        }
        graph_print(bm->graph, true, &out);
    }
    bound_model_destroy(bm);
    strbuf_free(&out);
    diag_destroy(dg);
}

/* ---- a checkpoint ---- */

static void fuzz_checkpoint(const uint8_t *data, size_t size)
{
    weft_diag *dg = diag_create();
    model_file *mf = NULL;
    str text;
    if (model_file_open_memory(dg, data, size, "fuzz.gguf", &mf) == WEFT_OK) {
        bind_it(mf, model_path, (int64_t)(size % 3) * 64);
        if (value_str(model_file_key(mf, STR("/weft.graph")), &text))
            bind_it(mf, NULL, 0);
    }
    model_file_close(mf);
    diag_destroy(dg);
}

/* ---- a model file ---- */

static const gguf_row toy_tensors[] = {
    {"token_embd.weight", DT_F32, 2, {32, 8}},
    {"output_norm.weight", DT_F32, 1, {32}},
    {"norm.bias", DT_F32, 1, {32}},
    {"blk.0.attn_q.weight", DT_Q8_0, 2, {32, 32}},
    {"blk.0.attn_q.bias", DT_F32, 1, {32}},
    {"blk.0.qkv.weight", DT_BF16, 2, {32, 96}},
    {"blk.0.exps.weight", DT_Q8_0, 3, {32, 4, 2}},
    {"blk.0.exp.0.weight", DT_F32, 2, {32, 4}},
    {"blk.0.exp.1.weight", DT_F32, 2, {32, 4}},
    {"blk.1.attn_q.weight", DT_F32, 2, {32, 32}},
    {"rope_freqs.weight", DT_F32, 1, {4}},
};

static void put_toy(strbuf *b, const uint8_t *text, size_t n)
{
    size_t n_tensor = sizeof toy_tensors / sizeof *toy_tensors;
    put_head(b, 3, n_tensor, 10);
    put_key_str(b, "general.architecture", "toy");
    put_key_u32(b, "toy.block_count", 2);
    put_key_u32(b, "toy.embedding_length", 32);
    put_key_u32(b, "toy.attention.head_count", 4);
    put_key_u32(b, "toy.vocab_size", 8);
    put_key_u32(b, "toy.expert_count", 2);
    put_key_u32(b, "toy.feed_forward_length", 4);
    put_key_u32(b, "toy.context_length", 64);
    put_key_str(b, "toy.word", "half");
    put_text(b, "weft.graph");
    put_u32(b, 8);
    put_u64(b, n);
    strbuf_put(b, (str){(const char *)text, n});
    strbuf_fill(b, 0, put_rows(b, toy_tensors, n_tensor));
}

static void fuzz_text(const uint8_t *data, size_t size)
{
    strbuf b = {0};
    weft_diag *dg = diag_create();
    model_file *mf = NULL;
    put_toy(&b, data, size);
    if (model_file_open_memory(dg, b.p, b.n, "toy.gguf", &mf) == WEFT_OK)
        bind_it(mf, NULL, 0);
    model_file_close(mf);
    diag_destroy(dg);
    strbuf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= 4 && memcmp(data, "GGUF", 4) == 0)
        fuzz_checkpoint(data, size);
    else
        fuzz_text(data, size);
    return 0;
}
