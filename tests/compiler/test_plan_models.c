/* test_plan_models.c - the plans of whole models, for every kind of target, are proven safe.
 *
 *     test_plan_models FOLDER..     checkpoints, each in a folder of its own
 *
 * Exit status 77, which ctest reads as skipped, if there is none. */
#include "compiler/compiler.h"
#include "compiler/plan_check.h"
#include "compiler/plan_make.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { EXIT_SKIPPED = 77 };

static int n_plan, n_failed;

static void check(const char *path, const graph *g, const target *t)
{
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    plan *p;
    n_plan++;
    if (plan_make(dg, g, t, NULL, a, &p) != WEFT_OK || plan_check(dg, p) != WEFT_OK) {
        printf("FAILED %s: %s kernels, %lld rows, %s%s\n", path, kvariant_name(t->best),
               (long long)t->n_tok_max, t->outputs ? "logits" : "all outputs",
               t->deterministic ? ", deterministic" : "");
        diag_print(dg, stdout, false);
        n_failed++;
    }
    arena_destroy(a);
    diag_destroy(dg);
}

static void check_targets(const char *path, const graph *g)
{
    static const char *const logits[] = {"logits"};
    for (int i = 0; i < 64; i++) {
        bool all = i & 2, few = i & 4, many = i & 8;
        target t = {.best = i & 1 ? kvariant_best() : VARIANT_ref,
                    .n_ctx = 64,
                    .n_seq = many ? 3 : 1,
                    .n_tok_max = few ? 5 : 64,
                    .n_out_max = few ? 0 : 3,
                    .kv = i & 1 && i & 16 ? DT_F16 : DT_F32,
                    .outputs = all ? NULL : logits,
                    .n_output = all ? 0 : 1,
                    .may_fork = many,
                    .deterministic = i & 32};
        check(path, g, &t);
    }
}

static void check_model(const char *path)
{
    weft_diag *dg = diag_create();
    model_file *mf = NULL;
    bound_model *bm = NULL;
    weft_status st = model_file_open(dg, path, NULL, &mf);
    if (st == WEFT_OK)
        st = model_bind(dg, mf, &(bind_options){.context = 64}, &bm);
    if (st == WEFT_OK) {
        check_targets(path, bm->graph);
    } else {
        printf("FAILED %s\n", path);
        diag_print(dg, stdout, false);
        n_failed++;
    }
    bound_model_destroy(bm);
    model_file_close(mf);
    diag_destroy(dg);
}

/* The folder itself where it has a config.json, and every GGUF file in it. */
static void check_folder(const char *folder)
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    char path[1024];
    while (d && (e = readdir(d))) {
        size_t n = strlen(e->d_name);
        if (snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= (int)sizeof path)
            continue;
        if (strcmp(e->d_name, "config.json") == 0)
            check_model(folder);
        else if (n > 5 && strcmp(e->d_name + n - 5, ".gguf") == 0)
            check_model(path);
    }
    if (d)
        closedir(d);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        DIR *d = opendir(argv[i]);
        const struct dirent *e;
        char path[1024];
        while (d && (e = readdir(d)))
            if (e->d_name[0] != '.' &&
                snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name) < (int)sizeof path)
                check_folder(path);
        if (d)
            closedir(d);
    }
    printf("%d plans, %d failed\n", n_plan, n_failed);
    return n_plan == 0 ? EXIT_SKIPPED : n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
