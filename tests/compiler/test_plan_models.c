/* test_plan_models.c - the plans of whole models, for every kind of target, are proven safe, and come back
 * from their files.
 *
 *     test_plan_models FOLDER..     checkpoints, each in a folder of its own
 *     test_plan_models --shapes     made-up checkpoints of every known shape; tells times and sizes
 *
 * Exit status 77, which ctest reads as skipped, if there is none. */
#include "compiler/compiler.h"
#include "compiler/plan_check.h"
#include "compiler/plan_file.h"
#include "compiler/plan_make.h"
#include "compiler/plan_parts.h"
#include "kernels/cuda/cuda_rows.h"
#include "kernels/cuda/few_size.h"
#include "kernels/metal/metal_rows.h"
#include "runtime/base/clock.h"
#include "runtime/formats/random_model.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { EXIT_SKIPPED = 77 };

static int n_plan, n_failed;

/* What is written, read and written again is the same. */
static weft_status check_file(weft_diag *dg, const plan *p, const backend *be, bool tell)
{
    arena *a = arena_create();
    strbuf text = {0}, again = {0};
    plan *back;
    uint64_t start = clock_ns();
    plan_write(p, (model_hash){1, 2}, &text);
    uint64_t written = clock_ns();
    weft_status st =
        plan_read_for(dg, "plan", strbuf_view(&text), (model_hash){1, 2}, be, a, &back);
    uint64_t read = clock_ns();
    if (st == WEFT_OK) {
        plan_write(back, (model_hash){1, 2}, &again);
        if (!str_eq(strbuf_view(&text), strbuf_view(&again)))
            st = weft_fail(dg, W1507, WEFT_NOWHERE, "it comes back as another");
    }
    if (tell)
        printf(", file %zu bytes, written in %.1f ms, read and proven in %.1f ms\n", text.n,
               (double)(written - start) / 1e6, (double)(read - written) / 1e6);
    strbuf_free(&text);
    strbuf_free(&again);
    arena_destroy(a);
    return st;
}

/* Every kernel is meant for as many rows as its step has at most. */
static weft_status check_classes(weft_diag *dg, const plan *p)
{
    for (int32_t i = 0; i < p->n_bucket && !p->deterministic; i++)
        for (int32_t k = 0; k < p->bucket[i].n_step; k++) {
            const plan_step *s = &p->bucket[i].step[k];
            int64_t most = p->bucket[i].n_tok_max;
            if (s->rows == ROWS_R && p->n_out_max < most)
                most = p->n_out_max;
            const char *name = plan_kernel_of(p, s)->name;
            const kernel_row *row = p->arch == KARCH_CUDA    ? cuda_row_find(name)
                                    : p->arch == KARCH_METAL ? metal_row_find(name)
                                                             : kernel_by_symbol(name);
            if (!kernel_takes(row, most))
                return weft_fail(dg, W1507, s->loc, "%s is not meant for %lld rows", row->symbol,
                                 (long long)most);
        }
    return WEFT_OK;
}

static bool same_rows(const plan_weight *a, const plan_weight *b)
{
    return a->layout == b->layout && a->bytes == b->bytes && a->n_table == b->n_table &&
           a->n_piece == b->n_piece && a->n_piece == 1 && a->piece->tensor == b->piece->tensor &&
           a->piece->offset == b->piece->offset;
}

/* A matrix is interleaved once, also where it is looked up as well; and then no other copy of it is read where it can be looked up so. */
static weft_status check_once(weft_diag *dg, const plan *p)
{
    for (int32_t i = 0; i < p->n_weight; i++)
        for (int32_t k = 0; k < i && p->weight[i].mode == WEIGHT_INTERLEAVED; k++) {
            const plan_weight *a = &p->weight[k], *b = &p->weight[i];
            bool apart = a->mode == WEIGHT_MAPPED && a->type == DT_BF16 && b->type == DT_BF16 &&
                         plan_weights_share(a, &(plan_weight){.mode = WEIGHT_MAPPED,
                                                              .bytes = b->bytes,
                                                              .n_piece = b->n_piece,
                                                              .piece = b->piece});
            if (apart || (a->mode == WEIGHT_INTERLEAVED && same_rows(a, b)))
                return weft_fail(dg, W1507, WEFT_NOWHERE, "%s and %s are two copies", a->name,
                                 b->name);
        }
    return WEFT_OK;
}

static void check(const char *path, const graph *g, const target *t, bool file, bool tell)
{
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    plan *p;
    n_plan++;
    uint64_t start = clock_ns();
    weft_status st = plan_make(dg, g, t, NULL, a, &p);
    uint64_t made = clock_ns();
    if (st == WEFT_OK)
        st = plan_check(dg, t->be, p);
    if (st == WEFT_OK)
        st = check_classes(dg, p);
    if (st == WEFT_OK)
        st = check_once(dg, p);
    if (tell)
        printf("%s: made in %.1f ms, proven in %.1f ms", path, (double)(made - start) / 1e6,
               (double)(clock_ns() - made) / 1e6);
    if (st == WEFT_OK && file)
        st = check_file(dg, p, t->be, tell);
    if (st != WEFT_OK) {
        printf("FAILED %s: %s kernels, %lld rows, %s%s\n", path, t->be->level,
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
        target t = {.be = i & 1 ? backend_cpu_best() : backend_reference(),
                    .n_ctx = 64,
                    .n_seq = many ? 3 : 1,
                    .n_tok_max = few ? 5 : 64,
                    .n_out_max = few ? 0 : 3,
                    .kv = i & 1 && i & 16 ? DT_F16 : DT_F32,
                    .outputs = all ? NULL : logits,
                    .n_output = all ? 0 : 1,
                    .may_fork = many,
                    .deterministic = i & 32};
        check(path, g, &t, i % 16 < 2, false);
    }
}

/* Every level of both architectures, whatever this processor can run; and with weights that lie as the best level wants them. */
static void check_levels(const char *path, const graph *g)
{
    static const char *const logits[] = {"logits"};
    for (karch arch = KARCH_X86_64; arch < KARCH_OTHER; arch++)
        for (kvariant v = 0; v < VARIANT_COUNT; v++) {
            target t = {.be = backend_cpu_for(arch, kvariant_name(v)),
                        .n_ctx = 64,
                        .n_seq = 2,
                        .n_tok_max = 64,
                        .kv = DT_F16,
                        .outputs = logits,
                        .n_output = 1};
            if (!t.be)
                continue;
            check(path, g, &t, true, false);
            t.laid_for = backend_cpu_for(arch, arch == KARCH_X86_64 ? "amx" : "bf16");
            check(path, g, &t, true, false);
        }
}

/* Cards, with calls of few rows and of many. */
static void check_cards(const char *path, const graph *g)
{
    const backend *const cards[] = {backend_cuda(), backend_cuda_rounding(), backend_cuda_exact(),
                                    backend_metal()};
    static const int64_t rows[] = {5, 64, 128};
    for (int i = 0; i < 12 * 4; i++) {
        target t = {.be = cards[i / 12],
                    .n_ctx = 64,
                    .n_seq = 2,
                    .n_tok_max = rows[i % 3],
                    .lora_slots = i / 3 % 2 * 2,
                    .lora_rank = i / 3 % 2 * 4,
                    .kv = DT_F16,
                    .deterministic = i / 6 % 2};
        check(path, g, &t, true, false);
    }
}

/* State in tiers by age, where the first output alone is wanted: nobody reads the cells of layers behind it, and all of their tiers
 * are made nevertheless. */
static void check_tiers(const char *path, const graph *g)
{
    const backend *const all[] = {backend_reference(), backend_cpu_best(), backend_cuda(),
                                  backend_metal()};
    char name[64];
    const goutput *first = &g->outputs.at[0];
    const char *const outputs[] = {name};
    if (first->index < 0)
        snprintf(name, sizeof name, STR_FMT, STR_ARG(first->name));
    else
        snprintf(name, sizeof name, STR_FMT ".%d", STR_ARG(first->name), first->index);
    for (size_t i = 0; i < 2 * sizeof all / sizeof *all; i++) {
        target t = {.be = all[i / 2],
                    .n_ctx = 64,
                    .n_seq = 2,
                    .n_tok_max = i % 2 ? 5 : 64,
                    .kv = DT_F16,
                    .tiers = {.n_tier = 3,
                              .tier = {{KFORM_F16, KFORM_F16, 8},
                                       {KFORM_Q8, KFORM_Q8, 24},
                                       {KFORM_Q8, KFORM_Q4, KPOLICY_REST}}},
                    .outputs = outputs,
                    .n_output = 1};
        check(path, g, &t, i >= 2, false);
    }
}

/* Every output that is wanted, and every cell, is of one part. */
static weft_status check_whole(weft_diag *dg, const plan *whole, const plan_parts *parts)
{
    int32_t cells = 0, outputs = 0, inputs = 0;
    for (int32_t i = 0; i < parts->n_part; i++) {
        const plan *p = parts->part[i].p;
        cells += p->n_cell;
        inputs += parts->part[i].n_in;
        for (int32_t k = 0; k < p->n_output; k++)
            outputs += strcmp(p->output[k].name, PLAN_HANDED) != 0;
        for (int32_t k = 0; k < parts->part[i].n_in; k++)
            if (parts->part[i].in[k].part >= i)
                return weft_fail(dg, W1507, WEFT_NOWHERE, "a part waits for a later one");
    }
    if (cells != whole->n_cell || outputs != whole->n_output || inputs < parts->n_part - 1)
        return weft_fail(dg, W1507, WEFT_NOWHERE,
                         "%d cells, %d outputs and %d inputs in %d parts of a whole with %d and %d",
                         (int)cells, (int)outputs, (int)inputs, (int)parts->n_part,
                         (int)whole->n_cell, (int)whole->n_output);
    return WEFT_OK;
}

/* Cut behind every layer, with all outputs and with one. */
static void check_parts(const char *path, const graph *g)
{
    static const char *const logits[] = {"logits"};
    for (int64_t n = 1; n <= 2 * graph_layers(g); n++) {
        weft_diag *dg = diag_create();
        arena *a = arena_create();
        plan_parts parts;
        plan *whole = NULL;
        bool all = n % 2;
        target cpu = {.be = backend_cpu_best(),
                      .n_ctx = 64,
                      .n_seq = 2,
                      .n_tok_max = 64,
                      .kv = DT_F16,
                      .outputs = all ? NULL : logits,
                      .n_output = all ? 0 : 1},
               card = cpu;
        card.be = backend_cuda();
        n_plan++;
        weft_status st = plan_make(dg, g, &cpu, NULL, a, &whole);
        if (st == WEFT_OK)
            st = plan_make_parts(dg, g, &cpu, &card, (n + 1) / 2, a, &parts);
        for (int32_t i = 0; st == WEFT_OK && i < parts.n_part; i++)
            st = plan_check(dg, (parts.part[i].card ? card : cpu).be, parts.part[i].p);
        if (st == WEFT_OK)
            st = check_whole(dg, whole, &parts);
        if (st != WEFT_OK) {
            printf("FAILED %s: the last %lld layers on a card\n", path, (long long)(n + 1) / 2);
            diag_print(dg, stdout, false);
            n_failed++;
        }
        arena_destroy(a);
        diag_destroy(dg);
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
        check_levels(path, bm->graph);
        check_cards(path, bm->graph);
        check_tiers(path, bm->graph);
        check_parts(path, bm->graph);
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

/* Blocks of a card have all they need in shared memory, in calls of few rows. */
static void check_blocks(const char *path, const graph *g)
{
    static const char *const logits[] = {"logits"};
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    target t = {.be = backend_cuda(),
                .n_ctx = 4096,
                .n_seq = FEW_CALL_MAX,
                .n_tok_max = FEW_CALL_MAX,
                .kv = DT_F16,
                .outputs = logits,
                .n_output = 1};
    plan *p;
    n_plan++;
    weft_status st = plan_make(dg, g, &t, NULL, a, &p);
    if (st == WEFT_OK)
        st = plan_check(dg, t.be, p);
    for (int32_t i = 0; st == WEFT_OK && i < p->n_bucket; i++) {
        const plan_bucket *b = &p->bucket[i];
        if (b->local_bytes + b->scratch_bytes > FEW_BLOCK_BYTES)
            st = weft_fail(dg, W1507, WEFT_NOWHERE,
                           "%lld rows: %zu bytes of values and %zu of scratch, blocks have %d",
                           (long long)b->n_tok_max, b->local_bytes, b->scratch_bytes,
                           (int)FEW_BLOCK_BYTES);
    }
    if (st != WEFT_OK) {
        printf("FAILED %s: on a card\n", path);
        diag_print(dg, stdout, false);
        n_failed++;
    }
    arena_destroy(a);
    diag_destroy(dg);
}

/* Their weights are never looked at. */
static void check_shapes(void)
{
    static const char *const types[] = {"Q4_K_M", "Q8_0", "F16"};
    static const char *const logits[] = {"logits"};
    for (size_t i = 0; random_model_shape(i); i++)
        for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
            weft_diag *dg = diag_create();
            random_model *rm = NULL;
            model_file *mf = NULL;
            bound_model *bm = NULL;
            char spec[64];
            snprintf(spec, sizeof spec, "%s:%s", random_model_shape(i), types[k]);
            weft_status st = random_model_create(dg, spec, 0, &rm);
            if (st == WEFT_OK)
                st = model_file_open_memory(dg, random_model_data(rm), random_model_bytes(rm), spec,
                                            &mf);
            if (st == WEFT_OK)
                st = model_bind(dg, mf, &(bind_options){.context = 4096}, &bm);
            target t = {.be = backend_cpu_best(),
                        .n_ctx = 4096,
                        .n_seq = 1,
                        .n_tok_max = 512,
                        .kv = DT_F16,
                        .outputs = logits,
                        .n_output = 1};
            if (st == WEFT_OK) {
                check(spec, bm->graph, &t, true, true);
                check_blocks(spec, bm->graph);
            } else {
                printf("%s: skipped, %s\n", spec, diag_at(dg, 0).message.p);
            }
            bound_model_destroy(bm);
            model_file_close(mf);
            random_model_destroy(rm);
            diag_destroy(dg);
        }
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--shapes") == 0)
        check_shapes();
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
