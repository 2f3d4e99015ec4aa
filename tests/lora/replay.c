/* replay.c - transforms on factors against the same transforms on whole weights: replay [-a FILE] FOLDER... [-- FOLDER...]
 *
 * For each Hugging Face checkpoint a random adapter on all its matrices, and a second checkpoint with s * B A added to
 * each tensor by plain loops. What a bound adapter adds to a weight must be the difference of that weight in the two:
 * bound to the folder, and bound to a GGUF file made of it, where rows have moved, tensors are fused or stacked. The
 * adapter is then written in GGUF and as PEFT, and must be the same; merged into a folder it gives the second checkpoint. Folders behind -- cannot be written as GGUF; FILE is the
 * model file to use. Exit status 77: no folder is there. */
#include "runtime/formats/safetensors_write.h"
#include "runtime/lora/adapter_merge.h"
#include "runtime/lora/adapter_write.h"
#include "runtime/quant/job.h"
#include "runtime/quant/job_rows.h"
#include "kernels/ref/dequant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RANK = 3, EXIT_SKIPPED = 77 };
#define SCALE 2.0

typedef struct {
    model_file *mf;
    bound_model *bm;
} model;

static weft_diag *dg;
static arena *home;
static const char *work, *arch;
static uint32_t seed = 1;

static void die(const char *what)
{
    printf("%s\n%s", what, diag_shown(dg));
    exit(1);
}

static const char *in_work(const char *name)
{
    return arena_printf(home, "%s/%s", work, name).p;
}

static model open_model(const char *path)
{
    model m;
    if (model_file_open(dg, path, NULL, &m.mf) != WEFT_OK ||
        model_bind(dg, m.mf, &(bind_options){.arch = arch, .others = true, .sites = true}, &m.bm) !=
            WEFT_OK)
        die(path);
    diag_reset(dg);
    return m;
}

static void close_model(model *m)
{
    bound_model_destroy(m->bm);
    model_file_close(m->mf);
}

static float *random_numbers(int64_t n)
{
    float *x = ARENA_ARRAY(home, float, (size_t)n);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)seed / 4294967296.0f;
    }
    return x;
}

/* ---- an adapter and the checkpoint with it merged in ---- */

typedef struct {
    str name;
    bool turned, table;
    const float *a, *b;
    int64_t in, out;
} made;

static VEC(made) mades;
static VEC(safetensors_item) items;

static bool is_turned(const site_name *s)
{
    int i = 0;
    while (i < s->n_step && s->step[i].code == TRANSFORM_pairs)
        i++;
    return i < s->n_step && s->step[i].code == TRANSFORM_transpose;
}

static void put_item(const char *name, int64_t rows, int64_t columns, const float *x)
{
    int64_t *shape = ARENA_ARRAY(home, int64_t, 2);
    shape[0] = rows;
    shape[1] = columns;
    VEC_PUSH(&items, ((safetensors_item){name, DT_F32, 2, shape, x}));
}

/* A pair for this tensor, once. */
static void make_pair(const site_name *s, str name, const model_tensor *t)
{
    for (size_t i = 0; i < mades.n; i++)
        if (str_eq(mades.at[i].name, name))
            return;
    made m = {.name = name, .turned = is_turned(s), .table = s->kind == KIND_embed};
    bool flip = m.turned || m.table;
    m.in = t->shape[!flip];
    m.out = t->shape[flip];
    m.a = random_numbers(RANK * m.in);
    m.b = random_numbers(m.out * RANK);
    VEC_PUSH(&mades, m);
    put_item(arena_printf(home, "base_model.model." STR_FMT "%s", STR_ARG(name),
                          m.table ? ".lora_embedding_A" : ".lora_A.weight")
                 .p,
             RANK, m.in, m.a);
    put_item(arena_printf(home, "base_model.model." STR_FMT "%s", STR_ARG(name),
                          m.table ? ".lora_embedding_B" : ".lora_B.weight")
                 .p,
             m.out, RANK, m.b);
}

static bool is_tied(const model *m)
{
    bool tied = false;
    value_bool(model_file_key(m->mf, STR("tie_word_embeddings")), &tied);
    return tied;
}

static void make_adapter(const model *m)
{
    bool turned = false;
    mades.n = items.n = 0;
    for (size_t i = 0; i < m->bm->sites.n; i++) {
        const site_name *s = &m->bm->sites.at[i];
        for (size_t k = 0; !s->gguf && !s->raw && k < s->n_tensor; k++) {
            const model_tensor *t = model_file_tensor(
                m->mf, arena_printf(home, STR_FMT ".weight", STR_ARG(s->tensor[k])));
            if (t && t->rank == 2 && !(is_tied(m) && s->kind == KIND_embed))
                make_pair(s, s->tensor[k], t);
        }
        turned |= !s->gguf && is_turned(s);
    }
    mkdir(in_work("adapter"), 0777);
    if (safetensors_write(dg, in_work("adapter/adapter_model.safetensors"), items.at, items.n,
                          NULL) != WEFT_OK)
        die("adapter");
    FILE *f = fopen(in_work("adapter/adapter_config.json"), "w");
    fprintf(f, "{\"peft_type\": \"LORA\", \"r\": %d, \"lora_alpha\": %g, \"fan_in_fan_out\": %s}\n",
            RANK, SCALE * RANK, turned ? "true" : "false");
    fclose(f);
}

static void add_made(const made *m, int64_t columns, float *x)
{
    for (int64_t o = 0; o < m->out; o++)
        for (int64_t i = 0; i < m->in; i++) {
            double sum = 0;
            for (int r = 0; r < RANK; r++)
                sum += (double)m->b[o * RANK + r] * m->a[r * m->in + i];
            x[m->turned || m->table ? i * columns + o : o * columns + i] += (float)(SCALE * sum);
        }
}

/* The checkpoint in f32, with the adapter added to it or as it is. */
static void write_f32(const model *m, const char *folder, const char *to_name, bool added)
{
    items.n = 0;
    for (size_t i = 0; i < model_file_tensor_count(m->mf); i++) {
        const model_tensor *t = model_file_tensor_at(m->mf, i);
        const char *name = arena_str(home, t->name).p;
        if (!dequant_has(t->type)) {
            VEC_PUSH(&items, ((safetensors_item){name, t->type, t->rank, t->shape, t->data}));
            continue;
        }
        float *x = ARENA_ARRAY(home, float, (size_t)t->elems + 1);
        dequant_row(t->type, t->data, x, t->elems);
        for (size_t k = 0; added && k < mades.n; k++)
            if (t->name.n == mades.at[k].name.n + 7 && str_starts(t->name, mades.at[k].name) &&
                str_ends(t->name, STR(".weight")))
                add_made(&mades.at[k], t->shape[1], x);
        VEC_PUSH(&items, ((safetensors_item){name, DT_F32, t->rank, t->shape, x}));
    }
    mkdir(in_work(to_name), 0777);
    if (safetensors_write(dg, arena_printf(home, "%s/%s/model.safetensors", work, to_name).p,
                          items.at, items.n, NULL) != WEFT_OK)
        die(to_name);
    char line[4096];
    FILE *from = fopen(arena_printf(home, "%s/config.json", folder).p, "r");
    FILE *to = fopen(arena_printf(home, "%s/%s/config.json", work, to_name).p, "w");
    while (from && fgets(line, sizeof line, from))
        fputs(line, to);
    if (from)
        fclose(from);
    fclose(to);
}

/* ---- comparing ---- */

static double delta(const adapter_site *s, int64_t row, int64_t column)
{
    double sum = 0;
    for (int64_t r = 0; r < s->rank; r++)
        sum += (double)s->b[row * s->rank + r] * s->a[r * s->in + column];
    return sum * s->scale;
}

static const adapter_site *find_site(const adapter *ad, int32_t weight, int32_t index)
{
    for (size_t i = 0; i < ad->n_site; i++)
        if (ad->site[i].weight == weight && ad->site[i].index == index)
            return &ad->site[i];
    return NULL;
}

static bool is_embed(const model *m, str name)
{
    for (size_t i = 0; i < m->bm->sites.n; i++)
        if (str_eq(m->bm->sites.at[i].weight, name))
            return m->bm->sites.at[i].kind == KIND_embed;
    return false;
}

/* Rows of one weight in both checkpoints, and what the adapter says is between them. Returns the worst difference. */
static double compare_weight(const model *base, const model *merged, const adapter *ad, int32_t id)
{
    const gweight *x = &base->bm->graph->weights.at[id], *y = &merged->bm->graph->weights.at[id];
    int64_t n = x->dim[x->rank - 1], rows = x->dim[x->rank - 2];
    int64_t all = rows * (x->rank == 3 ? x->dim[0] : 1);
    float *p = malloc((size_t)n * sizeof *p), *q = malloc((size_t)n * sizeof *q);
    double worst = 0;
    bool table = is_embed(base, x->name);
    for (int64_t i = 0; i < all; i++) {
        int32_t index = x->rank == 3 ? (int32_t)(i / rows) : -1;
        const adapter_site *s = find_site(ad, id, index);
        job_weight_row(base->mf, &(other_weight){.weight = x, .pairs = x->pairs}, i, p);
        job_weight_row(merged->mf, &(other_weight){.weight = y, .pairs = y->pairs}, i, q);
        for (int64_t k = 0; k < n; k++) {
            double want = (double)q[k] - p[k];
            double got = !s ? 0 : table ? delta(s, k, i) : delta(s, i % rows, k);
            double off = fabs(got - want);
            worst = off > worst ? off : worst;
        }
    }
    free(p);
    free(q);
    return worst;
}

static size_t compare(const char *what, const model *base, const model *merged, const char *path)
{
    adapter *ad;
    if (adapter_open(dg, path, base->bm, &ad) != WEFT_OK)
        die(what);
    for (size_t i = 0; i < base->bm->graph->weights.n; i++) {
        const gweight *w = &base->bm->graph->weights.at[i];
        if (!w->lora)
            continue;
        double worst = compare_weight(base, merged, ad, (int32_t)i);
        if (!(worst < 1e-5)) {
            printf("%s: " STR_FMT " is off by %g\n", what, STR_ARG(w->name), worst);
            exit(1);
        }
    }
    size_t n = ad->n_site;
    adapter_close(ad);
    return n;
}

/* False: GGUF has no way to say this model. */
static bool to_gguf(const char *from, const char *to)
{
    model_file *mf;
    quant_job *j = NULL;
    if (model_file_open(dg, from, NULL, &mf) != WEFT_OK)
        die(from);
    weft_status st = quant_job_create(dg, mf, arch, &j);
    if (st == WEFT_OK)
        st = quant_job_choose(dg, j, mix_find("F32"), NULL, NULL);
    if (st == WEFT_OK)
        st = quant_job_write(dg, j, to, &(quant_write_options){.threads = 1});
    quant_job_destroy(j);
    model_file_close(mf);
    diag_reset(dg);
    return st == WEFT_OK;
}

static void rewrite(const model *m, const char *from, const char *to)
{
    adapter *ad;
    if (adapter_open(dg, from, m->bm, &ad) != WEFT_OK ||
        adapter_write(dg, to, m->bm, ad->site, ad->n_site, "base") != WEFT_OK)
        die(to);
    adapter_close(ad);
}

/* A merge written as a folder has the same tensors. */
static void compare_folder(const char *folder, const model *hf, const char *path)
{
    write_f32(hf, folder, "plain", false);
    model plain = open_model(in_work("plain")), want = open_model(in_work("merged")), got;
    adapter *ad;
    blend *b;
    adapter_merge *m;
    if (adapter_open(dg, path, plain.bm, &ad) != WEFT_OK)
        die("folder");
    blend_input in = {ad, 1};
    if (blend_create(dg, &in, 1, &(blend_options){.method = BLEND_LINEAR, .density = 1, .seed = 0},
                     &b) != WEFT_OK ||
        adapter_merge_create(dg, plain.bm, b, &in, 1, false, &m) != WEFT_OK ||
        merge_folder_write(dg, m, in_work("folder"), &(merge_folder_options){NULL, NULL}) !=
            WEFT_OK)
        die("folder");
    got = open_model(in_work("folder"));
    for (size_t i = 0; i < model_file_tensor_count(want.mf); i++) {
        const model_tensor *x = model_file_tensor_at(want.mf, i);
        const model_tensor *y = model_file_tensor(got.mf, x->name);
        for (int64_t k = 0; !y || k < x->elems; k++)
            if (!y || (x->type == DT_F32 &&
                       !(fabs(((const float *)x->data)[k] - ((const float *)y->data)[k]) < 1e-5))) {
                printf("%s: merged into a folder, " STR_FMT " is another\n", folder,
                       STR_ARG(x->name));
                exit(1);
            }
    }
    adapter_merge_destroy(m);
    blend_destroy(b);
    adapter_close(ad);
    close_model(&plain);
    close_model(&want);
    close_model(&got);
}

static void run(const char *folder, bool both)
{
    model hf = open_model(folder);
    const char *adapter_path = in_work("adapter");
    make_adapter(&hf);
    write_f32(&hf, folder, "merged", true);
    model merged = open_model(in_work("merged"));
    size_t n = compare("peft on folder", &hf, &merged, adapter_path);
    compare_folder(folder, &hf, adapter_path);
    bool other =
        to_gguf(folder, in_work("base.gguf")) && to_gguf(in_work("merged"), in_work("merged.gguf"));
    if (other != both) {
        printf("%s: can%s be written as GGUF\n", folder, other ? "" : "not");
        exit(1);
    }
    if (other) {
        rewrite(&hf, adapter_path, in_work("there.gguf"));
        compare("gguf on folder", &hf, &merged, in_work("there.gguf"));
        model g = open_model(in_work("base.gguf")), gm = open_model(in_work("merged.gguf"));
        compare("peft on gguf", &g, &gm, adapter_path);
        compare("gguf on gguf", &g, &gm, in_work("there.gguf"));
        rewrite(&g, in_work("there.gguf"), in_work("back"));
        compare("back on folder", &hf, &merged, in_work("back"));
        compare("back on gguf", &g, &gm, in_work("back"));
        close_model(&g);
        close_model(&gm);
    }
    printf("ok %-40s %zu pairs, %zu sites%s\n", folder, mades.n, n, other ? ", both formats" : "");
    close_model(&hf);
    close_model(&merged);
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/weft-replay-XXXXXX";
    int n = 0;
    work = mkdtemp(folder);
    bool both = true;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-a") == 0 && i + 1 < argc) {
            arch = argv[++i];
            continue;
        }
        both = both && strcmp(argv[i], "--") != 0;
        if (access(argv[i], F_OK) != 0)
            continue;
        dg = diag_create();
        home = arena_create();
        run(argv[i], both);
        arena_destroy(home);
        diag_destroy(dg);
        n++;
    }
    VEC_FREE(&mades);
    VEC_FREE(&items);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0 ? 1 : n > 0 ? 0 : EXIT_SKIPPED;
}
