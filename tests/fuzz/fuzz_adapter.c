/* fuzz_adapter.c - any bytes as an adapter, bound to a small Llama of each format.
 *
 * An input that begins with GGUF is a file of that name. Any other is a PEFT folder: adapter_config.json up to the first
 * zero byte, then the JSON header of adapter_model.safetensors, which gets its length in front and some numbers behind, so
 * that most changes of it stay readable. What is bound fits its weights, is finite, and can be written in both formats. */
#include "runtime/lora/adapter.h"
#include "runtime/lora/store_map.h"
#include "tests/fuzz/fuzz_model.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DATA_BYTES = 16384, PATH_LEN_MAX = 256 };

static char root[] = "/tmp/weft-fuzz-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[PATH_LEN_MAX];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void remove_all(void)
{
    unlink(path_of("adapter_config.json"));
    unlink(path_of("adapter_model.safetensors"));
    unlink(path_of("a.gguf"));
    rmdir(root);
}

static void write_file(const char *name, const void *head, size_t n_head, const void *data,
                       size_t n, const void *tail, size_t n_tail)
{
    FILE *f = fopen(path_of(name), "wb");
    if (!f || fwrite(head, 1, n_head, f) != n_head || fwrite(data, 1, n, f) != n ||
        fwrite(tail, 1, n_tail, f) != n_tail || fclose(f) != 0) {
        perror(root);
        exit(1);
    }
}

/* Numbers between 0.5 and 1 in each of the float types, so that products differ. */
static const uint8_t *numbers(void)
{
    static uint8_t data[DATA_BYTES];
    for (int i = 0; i < DATA_BYTES; i += 2) {
        data[i] = (uint8_t)(i * 7);
        data[i + 1] = 0x3f;
    }
    return data;
}

static const bound_model *model(int which)
{
    static const char *const paths[] = {WEFT_GOLDEN "/llama-mha",
                                        WEFT_GOLDEN "/llama-mha/model-bf16.gguf"};
    static bound_model *bm[2];
    static model_file *mf[2];
    weft_diag *dg = diag_create();
    if (!bm[which] && (model_file_open(dg, paths[which], NULL, &mf[which]) != WEFT_OK ||
                       model_bind(dg, mf[which], &(bind_options){.sites = true, .others = true},
                                  &bm[which]) != WEFT_OK)) {
        diag_print(dg, stderr, false);
        exit(1);
    }
    diag_destroy(dg);
    return bm[which];
}

static void check_site(const bound_model *bm, const adapter_site *s)
{
    const gweight *w = &bm->graph->weights.at[s->weight];
    bool table = s->in == w->dim[0] && s->out == w->dim[1];
    WEFT_ASSERT(w->lora && s->rank > 0);
    WEFT_ASSERT(table || (s->out == w->dim[w->rank - 2] && s->in == w->dim[w->rank - 1]));
    for (int64_t i = 0; i < s->rank * s->in; i++)
        WEFT_ASSERT(isfinite(s->a[i]));
    for (int64_t i = 0; i < s->rank * s->out; i++)
        WEFT_ASSERT(isfinite(s->b[i]));
}

static void check_stored(const bound_model *bm, const adapter *ad, bool gguf)
{
    weft_diag *dg = diag_create();
    arena *home = arena_create();
    store_tensors tensors = {0};
    weft_status st = store_map(dg, bm, ad->site, ad->n_site, gguf, home, &tensors);
    fuzz_check(dg, st);
    WEFT_ASSERT(st == WEFT_OK && tensors.n > 0);
    for (size_t i = 0; i < tensors.n; i++)
        WEFT_ASSERT(store_pair_of(&tensors.at[i], 0, ad->site, home).rank > 0);
    VEC_FREE(&tensors);
    arena_destroy(home);
    diag_destroy(dg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;
    if (!ready) {
        ready = mkdtemp(root) != NULL;
        atexit(remove_all);
    }
    bool gguf = size >= 4 && memcmp(data, "GGUF", 4) == 0;
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    size_t n_config = zero ? (size_t)(zero - data) : size;
    size_t n_header = zero ? size - n_config - 1 : 0;
    uint64_t length = n_header;
    if (gguf) {
        write_file("a.gguf", data, size, "", 0, "", 0);
    } else {
        write_file("adapter_config.json", data, n_config, "", 0, "", 0);
        write_file("adapter_model.safetensors", &length, sizeof length, data + size - n_header,
                   n_header, numbers(), DATA_BYTES);
    }
    for (int which = 0; which < 2; which++) {
        weft_diag *dg = diag_create();
        adapter *ad = NULL;
        weft_status st = adapter_open(dg, gguf ? path_of("a.gguf") : root, model(which), &ad);
        fuzz_check(dg, st);
        for (size_t i = 0; st == WEFT_OK && i < ad->n_site; i++)
            check_site(model(which), &ad->site[i]);
        if (st == WEFT_OK && ad->n_site > 0) {
            check_stored(model(which), ad, true);
            check_stored(model(which), ad, false);
        }
        adapter_close(ad);
        diag_destroy(dg);
    }
    return 0;
}
