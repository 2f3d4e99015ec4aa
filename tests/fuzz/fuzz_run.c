/* fuzz_run.c - a stranger's model, run: the text of a model file, or a whole checkpoint, up to logits and a chosen token.
 *
 * The bytes are those of fuzz_bind.c. What binds gets a session by a plan and one by the reference, within a bound on
 * memory, and evaluates a few tokens; the two need not agree on nonsense, but neither may read or write where it must not. */
#include "tests/fuzz/fuzz_toy.h"

#include "runtime/weft.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CONTEXT = 12, BATCH = 5, BYTES_MAX = 64 << 20 };

static void use_logits(weft_diag *dg, weft_session *s)
{
    weft_session_info about = {.size = sizeof about};
    weft_sampler *pick = NULL;
    weft_view v;
    int32_t token;
    if (weft_session_about(dg, s, &about) != WEFT_OK || about.vocab < 1 ||
        weft_output(dg, s, "logits", -1, &v) != WEFT_OK || v.rows < 1)
        return;
    if (v.width != about.vocab)
        abort();
    if (weft_sampler_create(dg, NULL, about.vocab, CONTEXT, NULL, &pick) == WEFT_OK &&
        weft_sampler_choose(dg, pick, v.data, &token) == WEFT_OK)
        if (token < 0 || token >= about.vocab)
            abort();
    weft_sampler_destroy(pick);
}

static void run_it(weft_diag *dg, const weft_model *m, weft_exec exec)
{
    static const char *const every[] = {"logits"};
    weft_session *s = NULL;
    weft_session_options how = {.size = sizeof how,
                                .context = CONTEXT,
                                .sequences = 2,
                                .batch = BATCH,
                                .outputs = every,
                                .n_output = 1,
                                .exec = exec,
                                .max_bytes = BYTES_MAX,
                                .no_weight_cache = true};
    if (weft_session_create(dg, m, &how, &s) != WEFT_OK)
        return;
    weft_row rows[BATCH];
    for (int i = 0; i < BATCH; i++)
        rows[i] = (weft_row){.token = i % 8, .pos = i / 2, .seq = i % 2, .want = i != 2};
    if (weft_eval(dg, s, rows, BATCH) == WEFT_OK)
        use_logits(dg, s);
    weft_row next = {.token = 3, .pos = (int32_t)weft_length(s, 1), .seq = 1, .want = true};
    if (weft_eval(dg, s, &next, 1) == WEFT_OK)
        use_logits(dg, s);
    weft_session_destroy(s);
}

static void open_and_run(const void *data, size_t size, const char *arch)
{
    weft_diag *dg = weft_diag_create();
    weft_model *m = NULL;
    weft_model_options how = {.size = sizeof how, .arch = arch};
    if (weft_model_open_memory(dg, data, size, "fuzz.gguf", &how, &m) == WEFT_OK) {
        run_it(dg, m, WEFT_EXEC_PLAN);
        run_it(dg, m, WEFT_EXEC_REF);
    }
    weft_diag_text(dg);
    weft_model_close(m);
    weft_diag_destroy(dg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= 4 && memcmp(data, "GGUF", 4) == 0) {
        open_and_run(data, size, WEFT_SOURCE_DIR "/tests/fuzz/bind.weft");
        open_and_run(data, size, NULL);
    } else {
        strbuf toy = {0};
        put_toy(&toy, data, size);
        open_and_run(toy.p, toy.n, NULL);
        strbuf_free(&toy);
    }
    return 0;
}
