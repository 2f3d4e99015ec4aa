/* golden.c - small models of every family against the values that Hugging Face transformers computes
 * with them: logits, hidden states and greedy continuations.
 *
 *     golden [--arch FILE.weft] FOLDER
 *
 * FOLDER has cases: <case>/{config.json, model.safetensors, *.gguf, expected*.safetensors}.
 *
 * Each model file is evaluated in one call, row by row, in chunks of five, as two interleaved sequences,
 * and after a truncation. Values must agree to 1e-4 + 1e-4 |expected|: the recorded run is f32 and sums in
 * another order, which moves results by 1e-5; the smallest mistake in an architecture moves them by 0.5.
 * Exit status 77, which ctest reads as skipped, if there is no such folder. */
#include "runtime/formats/model_file.h"
#include "runtime/weft.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { CHUNK = 5, EXIT_SKIPPED = 77 };

typedef struct {
    const char *path; /* of the model */
    weft_diag *dg;
    weft_model *m;
    model_file *expected;
    int64_t n_id, vocab, layers;
    const int32_t *ids;
    const float *logits; /* [n_id, vocab] */
    double worst;        /* largest |a - b| / (1e-4 + 1e-4 |b|) so far */
    char where[160];
} golden_case;

static const char *arch; /* the model file to read all with; NULL: the library's */

static const void *tensor(const golden_case *c, const char *name, int64_t *out_elems)
{
    const model_tensor *t = model_file_tensor(c->expected, str_of(name));
    if (t && out_elems)
        *out_elems = t->elems;
    return t ? t->data : NULL;
}

static void compare(golden_case *c, const char *what, int64_t row, const float *got,
                    const float *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double off = fabs((double)got[i] - want[i]) / (1e-4 + 1e-4 * fabs((double)want[i]));
        if (off > c->worst || isnan(off)) {
            c->worst = isnan(off) ? INFINITY : off;
            snprintf(c->where, sizeof c->where, "%s row %lld element %lld: %.6g, expected %.6g",
                     what, (long long)row, (long long)i, (double)got[i], (double)want[i]);
        }
    }
}

static bool told(golden_case *c, weft_status st)
{
    if (st == WEFT_OK)
        return false;
    printf("FAILED %s\n%s", c->path, weft_diag_text(c->dg));
    return true;
}

static weft_session *open_session(golden_case *c, int64_t batch, int64_t sequences)
{
    static const char *const outputs[] = {"logits", "hidden", "resid"};
    weft_session *s = NULL;
    weft_session_options how = {.context = c->n_id,
                                .sequences = sequences,
                                .batch = batch,
                                .outputs = outputs,
                                .n_output = 3};
    return told(c, weft_session_create(c->dg, c->m, &how, &s)) ? NULL : s;
}

static bool eval(golden_case *c, weft_session *s, int64_t first, int64_t n)
{
    weft_row *rows = calloc((size_t)n, sizeof *rows);
    for (int64_t i = 0; i < n; i++)
        rows[i] = (weft_row){.token = c->ids[first + i], .pos = (int32_t)(first + i), .want = true};
    bool failed = told(c, weft_eval(c->dg, s, rows, n));
    free(rows);
    return !failed;
}

/* Rows first .. first + n - 1 of everything there is against what is expected of them. */
static bool check_rows(golden_case *c, weft_session *s, int64_t first, int64_t n)
{
    weft_view v;
    if (told(c, weft_output(c->dg, s, "logits", -1, &v)))
        return false;
    for (int64_t i = 0; i < n; i++)
        compare(c, "logits", first + i, v.data + i * v.width, c->logits + (first + i) * c->vocab,
                c->vocab);
    for (int64_t l = 1; l <= c->layers;
         l++) { /* hidden.i is what block i leaves, the last one is normed */
        char name[32];
        snprintf(name, sizeof name, "hidden.%lld", (long long)l);
        const float *want = tensor(c, name, NULL);
        if (!want)
            continue;
        bool last = l == c->layers;
        if (told(c, weft_output(c->dg, s, last ? "hidden" : "resid", last ? -1 : (int)l - 1, &v)))
            return false;
        for (int64_t i = 0; i < n; i++)
            compare(c, name, first + i, v.data + i * v.width, want + (first + i) * v.width,
                    v.width);
    }
    return true;
}

static bool run_chunks(golden_case *c, int64_t chunk)
{
    weft_session *s = open_session(c, chunk, 1);
    bool fine = s != NULL;
    for (int64_t i = 0; fine && i < c->n_id; i += chunk) {
        int64_t n = c->n_id - i < chunk ? c->n_id - i : chunk;
        fine = eval(c, s, i, n) && check_rows(c, s, i, n);
    }
    weft_session_destroy(s);
    return fine;
}

/* The same text twice, the second a few rows behind, in calls that mix both. */
static bool run_interleaved(golden_case *c)
{
    enum { BEHIND = 3, STEP = 4 };
    weft_session *s = open_session(c, 2 * STEP, 2);
    weft_row rows[2 * STEP];
    int64_t at[2] = {0, 0};
    bool fine = s != NULL;
    while (fine && (at[0] < c->n_id || at[1] < c->n_id)) {
        int64_t n = 0, row_of[2 * STEP], seq_of[2 * STEP];
        for (int64_t k = 0; k < 2 * STEP; k++) {
            int64_t q = k % 2;
            if (at[q] >= c->n_id || (q == 1 && at[1] + BEHIND > at[0] && at[0] < c->n_id))
                continue;
            rows[n] = (weft_row){
                .token = c->ids[at[q]], .pos = (int32_t)at[q], .seq = (int32_t)q, .want = true};
            row_of[n] = at[q]++;
            seq_of[n++] = q;
        }
        weft_view v;
        fine = !told(c, weft_eval(c->dg, s, rows, n)) &&
               !told(c, weft_output(c->dg, s, "logits", -1, &v));
        for (int64_t i = 0; fine && i < n; i++)
            compare(c,
                    seq_of[i] ? "interleaved logits of sequence 1,"
                              : "interleaved logits of sequence 0,",
                    row_of[i], v.data + i * v.width, c->logits + row_of[i] * c->vocab, c->vocab);
    }
    weft_session_destroy(s);
    return fine;
}

static bool run_truncated(golden_case *c)
{
    int64_t keep = c->n_id / 3;
    weft_session *s = open_session(c, c->n_id, 1);
    bool fine = s && eval(c, s, 0, c->n_id) && !told(c, weft_truncate(c->dg, s, 0, keep)) &&
                weft_length(s, 0) == keep && eval(c, s, keep, c->n_id - keep) &&
                check_rows(c, s, keep, c->n_id - keep);
    weft_session_destroy(s);
    return fine;
}

static bool run_greedy(golden_case *c)
{
    int64_t n_greedy = 0;
    const int32_t *want = tensor(c, "greedy_ids", &n_greedy),
                  *prompt = tensor(c, "prompt_len", NULL);
    if (!want || !prompt)
        return true;
    weft_session_options how = {.context = *prompt + n_greedy, .batch = *prompt};
    weft_session *s = NULL;
    if (told(c, weft_session_create(c->dg, c->m, &how, &s)))
        return false;
    bool fine = eval(c, s, 0, *prompt);
    for (int64_t i = 0; fine && i < n_greedy; i++) {
        weft_view v;
        fine = !told(c, weft_output(c->dg, s, "logits", -1, &v));
        const float *row = v.data + (v.rows - 1) * v.width;
        int32_t best = 0;
        for (int64_t k = 1; fine && k < v.width; k++)
            best = row[k] > row[best] ? (int32_t)k : best;
        if (fine && best != want[i]) {
            printf("FAILED %s\n  greedy token %lld is %d, expected %d\n", c->path, (long long)i,
                   best, want[i]);
            fine = false;
        }
        weft_row next = {.token = best, .pos = (int32_t)(*prompt + i), .want = true};
        fine = fine && (i + 1 == n_greedy || !told(c, weft_eval(c->dg, s, &next, 1)));
    }
    weft_session_destroy(s);
    return fine;
}

static bool run_model(const char *path, const char *expected)
{
    golden_case c = {.path = path, .dg = weft_diag_create()};
    int64_t n_logit = 0;
    bool fine = !told(&c, model_file_open((weft_diag *)c.dg, expected, NULL, &c.expected)) &&
                !told(&c, weft_model_open(c.dg, path, &(weft_model_options){.arch = arch}, &c.m));
    if (fine) {
        c.ids = tensor(&c, "input_ids", &c.n_id);
        c.logits = tensor(&c, "logits", &n_logit);
        fine = c.ids && c.logits && c.n_id > 0 && weft_model_int(c.m, "layers", &c.layers);
        c.vocab = fine ? n_logit / c.n_id : 0;
    }
    fine = fine && run_chunks(&c, c.n_id) && run_chunks(&c, 1) && run_chunks(&c, CHUNK) &&
           run_interleaved(&c) && run_truncated(&c) && run_greedy(&c);
    if (fine && c.worst > 1) {
        printf("FAILED %s\n  %s\n", path, c.where);
        fine = false;
    }
    if (fine)
        printf("ok     %-72s %.3f of the bound\n", path, c.worst);
    weft_model_close(c.m);
    model_file_close(c.expected);
    weft_diag_destroy(c.dg);
    return fine;
}

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* A quantised file has expected values of its own, from its own dequantised weights. */
static void run_case(arena *a, const char *folder, int *n_ok, int *n_failed)
{
    struct dirent **list;
    const char *plain = arena_printf(a, "%s/expected.safetensors", folder).p;
    if (!exists(plain) || !exists(arena_printf(a, "%s/config.json", folder).p))
        return;
    *(run_model(folder, plain) ? n_ok : n_failed) += 1;
    int n = scandir(folder, &list, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        str name = str_of(list[i]->d_name);
        if (str_starts(name, STR("model-")) && str_ends(name, STR(".gguf"))) {
            int len = (int)name.n - 11;
            const char *own =
                arena_printf(a, "%s/expected-%.*s.safetensors", folder, len, name.p + 6).p;
            const char *path = arena_printf(a, "%s/%s", folder, name.p).p;
            *(run_model(path, exists(own) ? own : plain) ? n_ok : n_failed) += 1;
        }
        free(list[i]);
    }
    if (n >= 0)
        free(list);
}

int main(int argc, char **argv)
{
    struct dirent **list;
    int n_ok = 0, n_failed = 0;
    if (argc == 4 && strcmp(argv[1], "--arch") == 0)
        arch = argv[2];
    const char *folder = argc == 2 || arch ? argv[argc - 1] : NULL;
    int n = folder ? scandir(folder, &list, NULL, alphasort) : -1;
    if (n < 0) {
        printf("skipped: there is no folder %s\n", folder ? folder : "given");
        return EXIT_SKIPPED;
    }
    arena *a = arena_create();
    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name;
        if (name[0] != '.' && strncmp(name, "lora", 4) != 0)
            run_case(a, arena_printf(a, "%s/%s", folder, name).p, &n_ok, &n_failed);
        free(list[i]);
    }
    free(list);
    arena_destroy(a);
    printf("%d passed, %d failed\n", n_ok, n_failed);
    return n_ok > 0 && n_failed == 0 ? 0 : 1;
}
