/* same_code.c - generated code computes what the executor's loop computes: logits of models with --exec plan and --exec jit.
 *
 *     same_code [-t N] [--arch FILE.weft] FOLDER..
 *
 * A text is evaluated at once, token by token and in calls of five. Bit for bit where no map of the plan has a function such as
 * exp; else to 1e-5 of 1 + |logit|: generated polynomials round at other places. Code is made first, then found on disk: a
 * folder for it is made and removed. Exit status 77, which ctest reads as skipped, if there is no such folder. */
#include "runtime/api/api_impl.h"
#include "runtime/formats/model_file.h"
#include "runtime/jit/jit_library.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_SKIPPED = 77, CALL = 5 };

static const double bound = 1e-5;

static weft_diag *dg;
static const char *arch;
static int64_t threads = 1;
static char cache[] = "/tmp/weft-code-XXXXXX";

static void must(bool fine, const char *what)
{
    if (fine)
        return;
    printf("FAILED %s\n%s", what, weft_diag_text(dg));
    exit(1);
}

static bool has_functions(const plan *p)
{
    static const kmap_op exact[] = {MAP_load, MAP_number, MAP_store, MAP_add,   MAP_sub,
                                    MAP_mul,  MAP_div,    MAP_max,   MAP_min,   MAP_neg,
                                    MAP_relu, MAP_sqrt,   MAP_clamp, MAP_select};
    for (int32_t i = 0; i < p->n_code; i++) {
        bool known = false;
        for (size_t k = 0; k < sizeof exact / sizeof *exact; k++)
            known |= p->code[i].op == exact[k];
        if (!known)
            return true;
    }
    return false;
}

/* Logits [n, vocab] of the ids in calls of `call` rows; *out_exact: no map has a function. */
static float *logits(const weft_model *m, weft_exec how, const int32_t *ids, int64_t n,
                     int64_t call, int64_t *out_vocab, bool *out_exact)
{
    weft_session *s;
    weft_session_options o = {.size = sizeof o,
                              .context = n,
                              .batch = n,
                              .threads = threads,
                              .exec = how,
                              .cache_dir = cache};
    must(weft_session_create(dg, m, &o, &s) == WEFT_OK, "opening a session");
    must(weft_diag_text(dg)[0] == 0, "no warnings");
    int64_t vocab = s->plan.p->n_vocab;
    float *all = malloc((size_t)(n * vocab) * sizeof *all);
    weft_row *rows = calloc((size_t)n, sizeof *rows);
    for (int64_t at = 0; at < n; at += call) {
        int64_t take = n - at < call ? n - at : call;
        weft_view v;
        for (int64_t i = 0; i < take; i++)
            rows[i] = (weft_row){.token = ids[at + i], .pos = (int32_t)(at + i), .want = true};
        must(weft_eval(dg, s, rows, take) == WEFT_OK &&
                 weft_output(dg, s, "logits", -1, &v) == WEFT_OK && v.rows == take &&
                 v.width == vocab,
             "evaluating");
        memcpy(all + at * vocab, v.data, (size_t)(take * vocab) * sizeof *all);
    }
    *out_vocab = vocab;
    *out_exact = !has_functions(s->plan.p);
    free(rows);
    weft_session_destroy(s);
    return all;
}

static void compare(const char *path, const weft_model *m, const int32_t *ids, int64_t n,
                    int64_t call)
{
    int64_t vocab;
    bool exact;
    float *want = logits(m, WEFT_EXEC_PLAN, ids, n, call, &vocab, &exact);
    for (int round = 0; round < 2; round++) { /* made, then found on disk */
        float *got = logits(m, WEFT_EXEC_JIT, ids, n, call, &vocab, &exact);
        size_t all = (size_t)(n * vocab), differ = 0;
        double worst = 0;
        for (size_t i = 0; i < all; i++) {
            double off = fabs((double)got[i] - (double)want[i]) / (1 + fabs((double)want[i]));
            differ += memcmp(&got[i], &want[i], sizeof *got) != 0;
            worst = off > worst || isnan(off) ? off : worst;
        }
        printf("%s, calls of %lld, %s: %zu of %zu logits differ, at most by %.3g\n", path,
               (long long)call, round ? "found" : "made", differ, all, worst);
        must(exact ? differ == 0 : worst <= bound,
             exact ? "no map has a function, but bits differ" : "logits are too far off");
        free(got);
    }
    free(want);
}

static void try_model(const char *folder)
{
    char path[4096];
    weft_model *m;
    model_file *expected;
    snprintf(path, sizeof path, "%s/expected.safetensors", folder);
    must(model_file_open(dg, path, &(model_file_options){0}, &expected) == WEFT_OK, "the golden");
    const model_tensor *ids = model_file_tensor(expected, STR("input_ids"));
    must(ids != NULL, "ids");
    weft_model_options o = {.size = sizeof o, .arch = arch};
    must(weft_model_open(dg, folder, &o, &m) == WEFT_OK, "opening the model");
    for (int64_t call = ids->elems; call > 0; call = call > CALL ? CALL : call > 1 ? 1 : 0)
        compare(folder, m, ids->data, ids->elems, call);
    weft_model_close(m);
    model_file_close(expected);
}

int main(int argc, char **argv)
{
    struct stat st;
    const codegen *c;
    dg = weft_diag_create();
    must(mkdtemp(cache) != NULL, "a folder");
    if (jit_library(dg, &c) != WEFT_OK) {
        rmdir(cache);
        return printf("skipped: %s", weft_diag_text(dg)) > 0 ? EXIT_SKIPPED : 1;
    }
    int tried = 0;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-t") == 0)
            threads = atoi(argv[++i]);
        else if (strcmp(argv[i], "--arch") == 0)
            arch = argv[++i];
        else if (stat(argv[i], &st) == 0 && ++tried)
            try_model(argv[i]);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", cache);
    must(system(command) == 0, command);
    weft_diag_destroy(dg);
    return tried ? 0 : EXIT_SKIPPED;
}
