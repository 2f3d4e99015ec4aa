/* adapters.c - models with LoRA adapters against what PEFT computes with them.
 *
 *     adapters [--exec plan|ref|jit] [--level NAME] [--device NAME [-ngl N]] [-t N] BASE ADAPTER..
 *
 * BASE is a checkpoint, ADAPTER a folder with adapter files and expected.safetensors. All adapters are loaded into one session and
 * evaluated in one batch, a sequence each, rows taking turns, with one more sequence that uses none where the base's folder has
 * expected values of its own. Then each decodes its greedy continuation, in one call a token; then adapters change places from token to token, and a text of
 * two halves has the logits that a session gives which computes each half so. 32 sequences over all adapters in one call give the
 * bits of single runs with --deterministic. With a plan, barriers are counted: while nobody uses an adapter there are as
 * many as without slots, else four a layer more. Exit status 77 if there is no such base. */
#include "runtime/api/api_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { EXIT_SKIPPED = 77, ADAPTERS_MAX = 16, SEQS = 32, SWAP = 5 };

typedef struct {
    const char *folder;
    weft_adapter *ad; /* NULL: the base alone */
    model_file *expected;
    const int32_t *ids, *greedy;
    const float *logits;
    int64_t n, prompt, n_greedy, width;
} text;

static weft_diag *dg;
static weft_model *model;
static weft_exec how;
static const char *where; /* a device; NULL: the CPU */
static int64_t threads = 2, on_card, n_text, n_adapter;
static text texts[ADAPTERS_MAX + 1];
static double worst;

static void stop(const char *what)
{
    printf("FAILED %s\n%s", what, weft_diag_text(dg));
    exit(1);
}

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != WEFT_OK)                                                                     \
            stop(#call);                                                                           \
    } while (0)

/* ---- what is expected ---- */

static const void *tensor(const text *t, const char *name, int64_t *out_n)
{
    const model_tensor *x = model_file_tensor(t->expected, str_of(name));
    if (!x)
        stop(name);
    if (out_n)
        *out_n = (int64_t)x->elems;
    return x->data;
}

static void open_text(const char *folder, bool adapts)
{
    text *t = &texts[n_text];
    char path[4096];
    snprintf(path, sizeof path, "%s/expected.safetensors", folder);
    *t = (text){.folder = folder};
    struct stat st;
    if (!adapts && stat(path, &st) != 0)
        return; /* a file alone: no values of its own */
    OK(model_file_open(dg, path, NULL, &t->expected));
    if (adapts) {
        OK(weft_adapter_open(dg, model, folder, &t->ad));
        n_adapter++;
    }
    int64_t all;
    t->ids = tensor(t, "input_ids", &t->n);
    t->logits = tensor(t, "logits", &all);
    t->width = all / t->n;
    t->greedy = tensor(t, "greedy_ids", &t->n_greedy);
    t->prompt = *(const int32_t *)tensor(t, "prompt_len", NULL);
    n_text++;
}

/* ---- sessions ---- */

static weft_session *open_session(int64_t sequences, int64_t slots, bool deterministic)
{
    weft_session *s;
    weft_session_options o = {.size = sizeof o,
                              .context = 160,
                              .sequences = sequences,
                              .threads = threads,
                              .exec = how,
                              .device = where,
                              .device_layers = on_card,
                              .exact = where && strncmp(where, "cuda", 4) == 0,
                              .kv = WEFT_KV_F32,
                              .deterministic = deterministic,
                              .lora_slots = slots};
    for (int64_t i = 0; i < n_text; i++)
        if (texts[i].ad && weft_adapter_rank(texts[i].ad) > o.lora_rank)
            o.lora_rank = weft_adapter_rank(texts[i].ad);
    OK(weft_session_create(dg, model, &o, &s));
    return s;
}

/* Adapters into slots 1 and on, in the order of texts. */
static void load_all(weft_session *s)
{
    int32_t slot = 0;
    for (int64_t i = 0; i < n_text; i++)
        if (texts[i].ad)
            OK(weft_lora_load(dg, s, ++slot, texts[i].ad));
}

static int32_t slot_of(int64_t t)
{
    int32_t slot = 0;
    for (int64_t i = 0; i <= t; i++)
        slot += texts[i].ad != NULL;
    return texts[t].ad ? slot : 0;
}

static void use(weft_session *s, int64_t seq, int64_t t)
{
    weft_lora_use mix = {slot_of(t), 1};
    OK(weft_lora_attach(dg, s, seq, &mix, mix.slot > 0));
}

static void compare(const text *t, int64_t row, const float *got)
{
    for (int64_t i = 0; i < t->width; i++) {
        double want = (double)t->logits[row * t->width + i];
        double off = fabs((double)got[i] - want) / (1e-4 + 1e-4 * fabs(want));
        worst = off > worst ? off : worst;
        if (!(off <= 1)) {
            printf("%s row %" PRId64 ", logit %" PRId64 ": %g, expected %g\n", t->folder, row, i,
                   (double)got[i], want);
            stop("logits");
        }
    }
}

static int64_t largest(const float *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

/* ---- checks ---- */

static void one_batch(void)
{
    weft_session *s = open_session(n_text, n_adapter, false);
    weft_row rows[512];
    int64_t owner[512], n = 0;
    weft_view v;
    load_all(s);
    for (int64_t pos = 0; pos < 160; pos++)
        for (int64_t t = 0; t < n_text; t++)
            if (pos < texts[t].n && n < 512) {
                /* Every second text names its slot row by row instead of attaching a mix. */
                rows[n] = (weft_row){.token = texts[t].ids[pos],
                                     .pos = (int32_t)pos,
                                     .seq = (int32_t)t,
                                     .slot = t % 2 ? slot_of(t) : 0,
                                     .want = true};
                owner[n++] = t;
            }
    for (int64_t t = 0; t < n_text; t += 2)
        use(s, t, t);
    OK(weft_eval(dg, s, rows, n));
    OK(weft_output(dg, s, "logits", -1, &v));
    for (int64_t i = 0; i < n; i++)
        compare(&texts[owner[i]], rows[i].pos, v.data + i * v.width);
    weft_session_destroy(s);
}

static void greedy(void)
{
    weft_session *s = open_session(n_text, n_adapter, false);
    weft_view v;
    int32_t next[ADAPTERS_MAX + 1];
    load_all(s);
    for (int64_t t = 0; t < n_text; t++) {
        weft_row rows[160];
        use(s, t, t);
        for (int64_t i = 0; i < texts[t].prompt; i++)
            rows[i] = (weft_row){.token = texts[t].ids[i],
                                 .pos = (int32_t)i,
                                 .seq = (int32_t)t,
                                 .want = i + 1 == texts[t].prompt};
        OK(weft_eval(dg, s, rows, texts[t].prompt));
        OK(weft_output(dg, s, "logits", -1, &v));
        next[t] = (int32_t)largest(v.data, v.width);
    }
    for (int64_t k = 0; k < texts[0].n_greedy; k++) {
        weft_row rows[ADAPTERS_MAX + 1];
        for (int64_t t = 0; t < n_text; t++) {
            if (next[t] != texts[t].greedy[k])
                stop(texts[t].folder);
            rows[t] = (weft_row){.token = next[t],
                                 .pos = (int32_t)(texts[t].prompt + k),
                                 .seq = (int32_t)t,
                                 .want = true};
        }
        OK(weft_eval(dg, s, rows, n_text));
        OK(weft_output(dg, s, "logits", -1, &v));
        for (int64_t t = 0; t < n_text; t++)
            next[t] = (int32_t)largest(v.data + t * v.width, v.width);
    }
    weft_session_destroy(s);
}

/* The rows of text 0, the adapter another one from row SWAP on, in one session row by row and in another in two calls. */
static void swaps(void)
{
    weft_session *a = open_session(1, n_adapter, true), *b = open_session(1, n_adapter, true);
    weft_view v, w;
    const text *t = &texts[0];
    load_all(a);
    load_all(b);
    use(a, 0, 0);
    for (int32_t i = 0; i < 2 * SWAP; i++) {
        weft_row row = {.token = t->ids[i], .pos = i, .want = true};
        if (i == SWAP)
            use(a, 0, n_text - 1);
        OK(weft_eval(dg, a, &row, 1));
    }
    for (int32_t half = 0; half < 2; half++) {
        weft_row rows[SWAP];
        use(b, 0, half ? n_text - 1 : 0);
        for (int32_t i = 0; i < SWAP; i++)
            rows[i] = (weft_row){
                .token = t->ids[half * SWAP + i], .pos = half * SWAP + i, .want = i + 1 == SWAP};
        OK(weft_eval(dg, b, rows, SWAP));
    }
    OK(weft_output(dg, a, "logits", -1, &v));
    OK(weft_output(dg, b, "logits", -1, &w));
    if (memcmp(v.data, w.data, (size_t)v.width * sizeof *v.data) != 0)
        stop("adapters that change places between two tokens");
    weft_session_destroy(a);
    weft_session_destroy(b);
}

/* ADAPTERS_MAX slots, filled round, over SEQS sequences in one call; and each of those alone. */
static void many(void)
{
    weft_session *s = open_session(SEQS, ADAPTERS_MAX, true),
                 *one = open_session(1, ADAPTERS_MAX, true);
    weft_row rows[SEQS * 3];
    weft_view v, w;
    int64_t n = 0;
    for (int32_t i = 0; i < ADAPTERS_MAX; i++) {
        int64_t t = i % n_text;
        if (!texts[t].ad)
            t = (t + 1) % n_text;
        OK(weft_lora_load(dg, s, i + 1, texts[t].ad));
        OK(weft_lora_load(dg, one, i + 1, texts[t].ad));
    }
    for (int32_t q = 0; q < SEQS; q++) {
        weft_lora_use mix[2] = {{q % ADAPTERS_MAX + 1, 1 + (float)q / 8},
                                {q / 2 % ADAPTERS_MAX + 1, -0.5f}};
        OK(weft_lora_attach(dg, s, q, mix, (size_t)(q % 3)));
        for (int32_t i = 0; i < 3; i++)
            rows[n++] = (weft_row){
                .token = texts[0].ids[(q + i) % texts[0].n], .pos = i, .seq = q, .want = i == 2};
    }
    OK(weft_eval(dg, s, rows, n));
    OK(weft_output(dg, s, "logits", -1, &v));
    for (int32_t q = 0; q < SEQS; q++) {
        weft_lora_use mix[2] = {{q % ADAPTERS_MAX + 1, 1 + (float)q / 8},
                                {q / 2 % ADAPTERS_MAX + 1, -0.5f}};
        weft_row alone[3];
        OK(weft_lora_attach(dg, one, 0, mix, (size_t)(q % 3)));
        OK(weft_truncate(dg, one, 0, 0));
        for (int i = 0; i < 3; i++) {
            alone[i] = rows[q * 3 + i];
            alone[i].seq = 0;
        }
        OK(weft_eval(dg, one, alone, 3));
        OK(weft_output(dg, one, "logits", -1, &w));
        if (memcmp(v.data + q * v.width, w.data, (size_t)w.width * sizeof *w.data) != 0)
            stop("a sequence alone and in company");
    }
    weft_session_destroy(s);
    weft_session_destroy(one);
}

static int64_t barriers_of(weft_session *s, int32_t slot)
{
    weft_row row = {.token = 1, .pos = (int32_t)weft_length(s, 0), .slot = slot, .want = true};
    OK(weft_eval(dg, s, &row, 1));
    return (int64_t)session_barriers(s->run);
}

static void barriers(void)
{
    int64_t layers = 0;
    weft_session *none = open_session(1, 0, false), *s = open_session(1, n_adapter, false);
    load_all(s);
    if (!weft_model_int(model, "layers", &layers))
        stop("layers");
    int64_t base = barriers_of(none, 0), idle = barriers_of(s, 0), busy = barriers_of(s, 1),
            again = barriers_of(s, 0);
    printf("barriers of a token: %" PRId64 " without slots, %" PRId64
           " with slots that nobody uses, %" PRId64 " with an adapter\n",
           base, idle, busy);
    if (how != WEFT_EXEC_REF &&
        (idle != base || again != base || busy > base + 4 * layers || busy <= base))
        stop("barriers");
    weft_session_destroy(none);
    weft_session_destroy(s);
}

int main(int argc, char **argv)
{
    const char *base = NULL;
    char folder[4096];
    struct stat st;
    dg = weft_diag_create();
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--exec") == 0) {
            const char *word = argv[++i];
            how = strcmp(word, "ref") == 0   ? WEFT_EXEC_REF
                  : strcmp(word, "jit") == 0 ? WEFT_EXEC_JIT
                                             : WEFT_EXEC_PLAN;
        } else if (strcmp(argv[i], "--level") == 0) {
            if (kvariant_find(argv[++i]) == VARIANT_COUNT)
                return printf("skipped: no kernels up to %s here\n", argv[i]) > 0 ? EXIT_SKIPPED
                                                                                  : 1;
            setenv("WEFT_CPU", argv[i], 1);
        } else if (strcmp(argv[i], "--device") == 0)
            where = argv[++i];
        else if (strcmp(argv[i], "-ngl") == 0)
            on_card = atoi(argv[++i]);
        else if (strcmp(argv[i], "-t") == 0)
            threads = atoi(argv[++i]);
        else if (!base) {
            base = argv[i];
            if (stat(base, &st) != 0)
                return printf("skipped: there is no %s\n", base) > 0 ? EXIT_SKIPPED : 1;
            OK(weft_model_open(dg, base, NULL, &model));
            snprintf(folder, sizeof folder, "%s", base);
        } else if (stat(argv[i], &st) == 0 && n_text < ADAPTERS_MAX)
            open_text(argv[i], true);
    }
    if (!base || n_text == 0)
        stop("adapters BASE ADAPTER..");
    if (S_ISREG(stat(base, &st) == 0 ? st.st_mode : 0))
        *strrchr(folder, '/') = 0;
    open_text(folder, false);
    one_batch();
    greedy();
    swaps();
    many();
    barriers();
    printf("ok %s with %" PRId64 " adapters: the worst value is off by %.2f of what is allowed\n",
           base, n_adapter, worst);
    for (int64_t i = 0; i < n_text; i++) {
        weft_adapter_close(texts[i].ad);
        model_file_close(texts[i].expected);
    }
    weft_model_close(model);
    weft_diag_destroy(dg);
    return 0;
}
