/* fuzz_bind.c - a stranger's checkpoint through the binder, and a stranger's model file.
 *
 * Bytes that begin with GGUF are a checkpoint: it is bound with bind.weft, and with the
 * one it carries, if it does. Any other bytes are the text of a model file, which then travels inside
 * a small checkpoint made here. What binds must be a legal graph, prints, and is planned. */
#include "tests/fuzz/fuzz_bound.h"
#include "tests/fuzz/fuzz_toy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every way of finding a weight, in few lines. */
static const char model_path[] = WEFT_SOURCE_DIR "/tests/fuzz/bind.weft";

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
