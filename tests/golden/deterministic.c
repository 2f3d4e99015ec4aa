/* deterministic.c - the same bits for any number of threads, any cut of a text into calls, any company in a
 * call, and a beginning that was shared: --deterministic, on the models of a folder.
 *
 *     deterministic [--device NAME] [-ngl N] FOLDER|FILE.gguf...
 *
 * The logits of every position are computed in one call by one thread, and then in all other ways. Exit
 * status 77, which ctest reads as skipped, if there is no such folder. */
#include "kernels/kernels.h"
#include "runtime/formats/model_file.h"
#include "runtime/weft.h"
#include "tests/golden/rounds.h"

#include <stdlib.h>
#include <sys/stat.h>

enum { EXIT_SKIPPED = 77 };

static const char *device; /* NULL: the CPU */
static int64_t layers;     /* of the model, on the device; 0: all */

typedef struct {
    weft_diag *dg;
    weft_model *m;
    weft_kv kv;
    bool round_bf16;
    const int32_t *ids;
    int64_t n_id, vocab;
    float *truth, *got; /* [n_id, vocab] */
} subject;

static bool told(const subject *c, weft_status st)
{
    if (st != WEFT_OK)
        fputs(weft_diag_text(c->dg), stdout);
    return st != WEFT_OK;
}

static weft_session *open_session(const subject *c, int64_t threads, int64_t sequences)
{
    weft_session *s = NULL;
    weft_session_options how = {.size = sizeof how,
                                .context = c->n_id,
                                .sequences = sequences,
                                .batch = 2 * c->n_id,
                                .threads = threads,
                                .kv = c->kv,
                                .device = device,
                                .device_layers = layers,
                                .round_bf16 = c->round_bf16,
                                .deterministic = true};
    return told(c, weft_session_create(c->dg, c->m, &how, &s)) ? NULL : s;
}

/* Rows first .. first + n - 1 of sequence 0; with company, n rows of sequence 1 between them, other tokens. */
static bool eval(const subject *c, weft_session *s, int64_t first, int64_t n, bool company)
{
    weft_row *rows = calloc((size_t)(2 * n), sizeof *rows);
    int64_t each = company ? 2 : 1;
    for (int64_t i = 0; i < n; i++) {
        rows[each * i] =
            (weft_row){.token = c->ids[first + i], .pos = (int32_t)(first + i), .want = true};
        if (company)
            rows[each * i + 1] = (weft_row){
                .token = c->ids[c->n_id - 1 - first - i], .pos = (int32_t)(first + i), .seq = 1};
    }
    weft_view v;
    bool fine = !told(c, weft_eval(c->dg, s, rows, each * n)) &&
                !told(c, weft_output(c->dg, s, "logits", -1, &v)) && v.rows == n;
    if (fine)
        memcpy(c->got + first * c->vocab, v.data, (size_t)(n * c->vocab) * sizeof *v.data);
    free(rows);
    return fine;
}

static bool same(const subject *c, const char *how, int64_t threads)
{
    for (int64_t i = 0; i < c->n_id * c->vocab; i++)
        if (memcmp(&c->got[i], &c->truth[i], sizeof *c->got) != 0) {
            printf("FAILED %s, %lld threads: position %lld, token %lld: %.9g, alone in one call "
                   "%.9g\n",
                   how, (long long)threads, (long long)(i / c->vocab), (long long)(i % c->vocab),
                   (double)c->got[i], (double)c->truth[i]);
            return false;
        }
    return true;
}

static bool run_chunks(const subject *c, int64_t threads, int64_t chunk, bool company)
{
    char how[64];
    weft_session *s = open_session(c, threads, 2);
    bool fine = s != NULL;
    for (int64_t i = 0; fine && i < c->n_id; i += chunk)
        fine = eval(c, s, i, c->n_id - i < chunk ? c->n_id - i : chunk, company);
    weft_session_destroy(s);
    snprintf(how, sizeof how, "in calls of %lld rows%s", (long long)chunk,
             company ? " with another sequence" : "");
    return fine && same(c, how, threads);
}

/* Sequence 1 begins as sequence 0 does; then sequence 0 goes another way. */
static bool run_forked(const subject *c, int64_t threads)
{
    weft_session *s = open_session(c, threads, 2);
    int64_t half = c->n_id / 2;
    weft_row other = {.token = c->ids[0], .pos = (int32_t)half},
             *rows = calloc((size_t)half + 1, sizeof *rows);
    for (int64_t i = half; i < c->n_id; i++)
        rows[i - half] = (weft_row){.token = c->ids[i], .pos = (int32_t)i, .seq = 1, .want = true};
    weft_view v;
    bool fine = s && eval(c, s, 0, half, false) && !told(c, weft_fork(c->dg, s, 0, 1, half)) &&
                !told(c, weft_eval(c->dg, s, &other, 1)) &&
                !told(c, weft_eval(c->dg, s, rows, c->n_id - half)) &&
                !told(c, weft_output(c->dg, s, "logits", -1, &v));
    if (fine)
        memcpy(c->got + half * c->vocab, v.data,
               (size_t)((c->n_id - half) * c->vocab) * sizeof *v.data);
    free(rows);
    weft_session_destroy(s);
    return fine && same(c, "with a shared beginning", threads);
}

static bool run_all(subject *c)
{
    static const int64_t threads[] = {1, 2, 7}, chunks[] = {1, 3, 8};
    weft_session *s = open_session(c, 1, 1);
    bool fine = s && eval(c, s, 0, c->n_id, false);
    weft_session_destroy(s);
    memcpy(c->truth, c->got, (size_t)(c->n_id * c->vocab) * sizeof *c->got);
    for (int t = 0; t < (device && !layers ? 1 : 3) && fine; t++) {
        for (int k = 0; k < 3 && fine; k++)
            fine = run_chunks(c, threads[t], chunks[k], false) &&
                   run_chunks(c, threads[t], chunks[k], true);
        fine = fine && run_chunks(c, threads[t], c->n_id, true) && run_forked(c, threads[t]);
    }
    return fine;
}

/* The tokens are those of the values recorded beside the model. */
static bool run_model(arena *a, const char *folder, weft_kv kv, bool round_bf16)
{
    subject c = {.dg = weft_diag_create(), .kv = kv, .round_bf16 = round_bf16};
    model_file *expected = NULL;
    size_t n = strlen(folder);
    while (n > 0 && str_ends(str_of(folder), STR(".gguf")) && folder[n - 1] != '/')
        n--;
    const char *path = arena_printf(a, "%.*s/expected.safetensors", (int)n, folder).p;
    bool fine = !told(&c, model_file_open((weft_diag *)c.dg, path, NULL, &expected)) &&
                !told(&c, weft_model_open(c.dg, folder, NULL, &c.m)) &&
                weft_model_int(c.m, "vocab", &c.vocab);
    const model_tensor *ids = fine ? model_file_tensor(expected, STR("input_ids")) : NULL;
    if (ids) {
        c.ids = ids->data;
        c.n_id = ids->elems;
        c.truth = calloc((size_t)(c.n_id * c.vocab), sizeof *c.truth);
        c.got = calloc((size_t)(c.n_id * c.vocab), sizeof *c.got);
        fine = run_all(&c);
    }
    printf("%s %s, state type %d%s\n", ids && fine ? "ok    " : "FAILED", folder, (int)kv,
           round_bf16 ? ", rounded to bf16" : "");
    free(c.truth);
    free(c.got);
    weft_model_close(c.m);
    model_file_close(expected);
    weft_diag_destroy(c.dg);
    return ids && fine;
}

int main(int argc, char **argv)
{
    arena *a = arena_create();
    int at = 1;
    for (; at + 1 < argc && argv[at][0] == '-'; at += 2)
        if (strcmp(argv[at], "--device") == 0)
            device = argv[at + 1];
        else if (strcmp(argv[at], "-ngl") == 0)
            layers = atoi(argv[at + 1]);
        else
            return 2;
    bool fine = argc > at, skipped = false;
    for (int i = at; i < argc; i++) {
        struct stat st;
        if (stat(argv[i], &st) != 0) {
            printf("skipped: there is no folder %s\n", argv[i]);
            skipped = true;
            continue;
        }
        fine = run_model(a, argv[i], WEFT_KV_F16, false) && fine;
        fine = run_model(a, argv[i], WEFT_KV_F32, false) && fine;
        if (!device && rounds_any_rows() && !str_ends(str_of(argv[i]), STR(".gguf")))
            fine = run_model(a, argv[i], WEFT_KV_F32, true) && fine;
    }
    arena_destroy(a);
    return !fine ? 1 : skipped ? EXIT_SKIPPED : 0;
}
