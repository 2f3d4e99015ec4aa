/* golden_bind.c - model files bound to small checkpoints, both written down: text in, exact text out.
 *
 *     golden_bind [--update] FOLDER OTHER
 *
 * Every .txt file of FOLDER holds cases:
 *
 *     ==== title
 *     the text of case.weft, which the checkpoint is read with; nothing: its own, or the library's
 *     ---- file mine.weft      (any number: files of the library, found through WEFT_PATH)
 *     ---- weft.graph          the text of a model file inside the checkpoint
 *     ---- gguf                the keys of model.gguf, as JSON
 *     ---- hf                  config.json of the folder model, instead
 *     ---- tensors             name, type and shape of each; {0..3} in a name stands for four of them
 *     ---- says                what binding says: its messages, or the settings and weights it found
 *
 * An F32 tensor holds 0, 1, 2, ..; others hold zeros. Afterwards every code of parameters, weights and
 * matching must have been seen here or stand in a case of OTHER, the checker's own. */
#include "compiler/compiler.h"
#include "runtime/formats/gguf_write.h"
#include "runtime/formats/json_read.h"
#include "runtime/formats/safetensors_write.h"
#include "tests/base/golden_case.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    const char *name;
    dtype type;
    int rank;
    int64_t shape[MODEL_RANK_MAX];
    void *data;
} test_tensor;

typedef VEC(test_tensor) test_tensors;

static bool seen[DIAG_CODE_COUNT];

static const golden_part *find_part(const golden_case *g, const char *head)
{
    for (size_t i = 0; i < g->parts.n; i++)
        if (str_eqz(g->parts.at[i].head, head))
            return &g->parts.at[i];
    return NULL;
}

/* ---- the checkpoint ---- */

static dtype find_type(str name)
{
    for (int t = 0; t < DT_COUNT; t++)
        if (str_eqz(name, dtype_row_of((dtype)t)->name))
            return (dtype)t;
    golden_stop("there is no type", name.p);
    return DT_F32;
}

static void add_tensor(arena *a, test_tensors *list, const char *name, str type, const char *dims)
{
    test_tensor t = {.name = name, .type = find_type(type)};
    int64_t elems = 1;
    size_t bytes;
    for (char *p = strchr(dims, '['); p && *p != ']' && t.rank < MODEL_RANK_MAX;) {
        t.shape[t.rank] = strtol(p + 1, &p, 10);
        elems *= t.shape[t.rank++];
        p += strspn(p, " ");
    }
    if (!dtype_bytes(t.type, elems, &bytes))
        golden_stop("not whole blocks", name);
    t.data = arena_alloc(a, bytes + 1);
    memset(t.data, 0, bytes);
    for (int64_t i = 0; t.type == DT_F32 && i < elems; i++)
        ((float *)t.data)[i] = (float)i;
    VEC_PUSH(list, t);
}

/* One line: `blk.{0..1}.attn_q.weight F32 [4, 4]`. */
static void read_tensor(arena *a, test_tensors *list, str line)
{
    const char *text = arena_printf(a, STR_FMT, STR_ARG(line)).p;
    size_t n = strcspn(text, " ");
    const char *type = text + n + strspn(text + n, " "), *brace = memchr(text, '{', n);
    str type_name = {type, strcspn(type, " ")};
    long first = 0, last = 0;
    int tail = (int)n;
    if (brace && sscanf(brace, "{%ld..%ld}", &first, &last) == 2)
        tail = (int)(strchr(brace, '}') + 1 - text);
    for (long i = first; i <= last; i++) {
        str name = brace ? arena_printf(a, "%.*s%ld%.*s", (int)(brace - text), text, i,
                                        (int)n - tail, text + tail)
                         : arena_printf(a, "%.*s", (int)n, text);
        add_tensor(a, list, name.p, type_name, type);
    }
}

/* What JSON says, in the types a GGUF file would have. */
static value as_gguf(arena *a, const value *v)
{
    int64_t i;
    size_t n = value_count(v);
    if (v->type == VT_I64)
        return value_int(v, &i) && i >= 0 && i <= UINT32_MAX ? value_of_int(VT_U32, i) : *v;
    if (v->type == VT_F64)
        return value_of_float(VT_F32, v->as.f);
    if (value_kind_of(v) != VALUE_ARRAY || n == 0)
        return *v;
    value first = value_at(v, 0);
    float *floats = ARENA_ARRAY(a, float, n);
    int32_t *ints = ARENA_ARRAY(a, int32_t, n);
    bool *truths = ARENA_ARRAY(a, bool, n);
    str *texts = ARENA_ARRAY(a, str, n);
    for (size_t k = 0; k < n; k++) {
        value item = value_at(v, k);
        double x = 0;
        value_float(&item, &x);
        value_bool(&item, &truths[k]);
        value_str(&item, &texts[k]);
        floats[k] = (float)x;
        ints[k] = (int32_t)x;
    }
    switch (value_kind_of(&first)) {
    case VALUE_STR:
        return value_of_array(VT_STR, texts, n);
    case VALUE_BOOL:
        return value_of_array(VT_BOOL, truths, n);
    case VALUE_FLOAT:
        return value_of_array(VT_F32, floats, n);
    default:
        return value_of_array(VT_I32, ints, n);
    }
}

static void write_gguf(weft_diag *dg, arena *a, const golden_case *g, const test_tensors *tensors)
{
    const golden_part *keys = find_part(g, "gguf"), *own = find_part(g, "weft.graph");
    json_limits limits = {
        .bytes_max = 1 << 20, .values_max = 1 << 16, .depth_max = 8, .exact = true};
    gguf_writer *w = gguf_writer_create();
    value all;
    if (json_read(dg, a, "the keys", keys->text, limits, &all) != WEFT_OK)
        golden_stop("not JSON", arena_str(a, g->title).p);
    for (size_t i = 0; i < all.as.object.n; i++) {
        const value_member *m = &all.as.object.members[i];
        if (!gguf_writer_key(w, m->name, as_gguf(a, &m->v)))
            golden_stop("GGUF has no form for", arena_str(a, m->name).p);
    }
    if (own)
        gguf_writer_key(w, STR("weft.graph"), value_of_str(own->text));
    for (size_t i = 0; i < tensors->n; i++) {
        const test_tensor *t = &tensors->at[i];
        gguf_writer_tensor_data(w, str_of(t->name), t->type, t->rank, t->shape, t->data);
    }
    if (gguf_writer_write(dg, w, "model.gguf") != WEFT_OK)
        golden_stop("cannot write", "model.gguf");
    gguf_writer_destroy(w);
}

static void write_hf(weft_diag *dg, arena *a, const golden_case *g, const test_tensors *tensors)
{
    safetensors_item *item = ARENA_ARRAY(a, safetensors_item, tensors->n + 1);
    for (size_t i = 0; i < tensors->n; i++) {
        const test_tensor *t = &tensors->at[i];
        item[i] = (safetensors_item){t->name, t->type, t->rank, t->shape, t->data};
    }
    mkdir("model", 0755);
    golden_write("model/config.json", find_part(g, "hf")->text);
    if (safetensors_write(dg, "model/model.safetensors", item, tensors->n, NULL) != WEFT_OK)
        golden_stop("cannot write", "model.safetensors");
}

static const char *write_checkpoint(const golden_case *g)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    test_tensors tensors = {0};
    const golden_part *list = find_part(g, "tensors");
    bool gguf = find_part(g, "gguf") != NULL;
    for (str rest = list ? list->text : STR(""); rest.n;)
        read_tensor(a, &tensors, trimmed(next_line(&rest), 0));
    if (gguf)
        write_gguf(dg, a, g, &tensors);
    else if (find_part(g, "hf"))
        write_hf(dg, a, g, &tensors);
    else
        golden_stop("a case without a checkpoint", arena_str(a, g->title).p);
    VEC_FREE(&tensors);
    diag_destroy(dg);
    arena_destroy(a);
    return gguf ? "model.gguf" : "model";
}

/* ---- what binding found ---- */

static void tell_params(FILE *to, const bound_model *bm)
{
    for (size_t i = 0; i < bm->settings.params.n; i++) {
        const model_param *p = &bm->settings.params.at[i];
        if (p->layer > 0)
            fprintf(to, ", ");
        else
            fprintf(to, "%s" STR_FMT " = ", i ? "\n" : "", STR_ARG(p->name));
        switch (value_kind_of(&p->v)) {
        case VALUE_INT:
            fprintf(to, "%lld", (long long)p->v.as.i);
            break;
        case VALUE_FLOAT:
            fprintf(to, "%g", p->v.as.f);
            break;
        case VALUE_BOOL:
            fprintf(to, p->v.as.b ? "true" : "false");
            break;
        case VALUE_STR:
            fprintf(to, "\"" STR_FMT "\"", STR_ARG(p->v.as.s));
            break;
        default:
            fprintf(to, "none");
        }
    }
    if (bm->settings.params.n)
        fprintf(to, "\n");
}

static void report_weight(FILE *to, const bound_model *bm, const gweight *w)
{
    static const char *const order[] = {"", ", half", ", interleaved"};
    int64_t dense = w->type == DT_MXFP4_HF ? 16 : (int64_t)dtype_row_of(w->type)->bytes;
    int64_t elems = dtype_row_of(w->type)->elems;
    bool gaps = false;
    fprintf(to, STR_FMT " %s [", STR_ARG(w->name), dtype_row_of(w->type)->name);
    for (int i = 0; i < w->rank; i++)
        fprintf(to, "%s%lld", i ? ", " : "", (long long)w->dim[i]);
    fprintf(to, "] <-");
    for (int i = 0; i < w->n_piece && !w->computed; i++) {
        const gpiece *p = &w->piece[i];
        str name = model_file_tensor_at(bm->file, (size_t)p->tensor)->name;
        fprintf(to, "%s " STR_FMT, i ? "," : "", STR_ARG(name));
        if (p->offset)
            fprintf(to, "+%lld", (long long)p->offset);
        if (w->n_piece > 1)
            fprintf(to, ":%lld", (long long)p->rows);
    }
    for (int i = w->rank - 1; i >= 0; i--) {
        bool blocks = elems > 1 && i == w->rank - 1;
        gaps |= !blocks && w->dim[i] > 1 && w->stride[i] != dense && !(i == 0 && w->n_piece > 1);
        dense *= blocks ? w->dim[i] / elems : w->dim[i];
    }
    for (int i = 0; gaps && i < w->rank; i++)
        fprintf(to, "%s%lld", i ? " " : ", steps of ", (long long)w->stride[i]);
    for (int64_t i = 0; w->computed && i < w->dim[0]; i++)
        fprintf(to, " %g", (double)w->computed[i]);
    fprintf(to, "%s\n", order[w->pairs]);
}

/* ---- running ---- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static void put_files(const golden_case *g)
{
    mkdir("library", 0755);
    for (size_t i = 0; i < g->parts.n; i++) {
        char path[512];
        str head = g->parts.at[i].head;
        if (!str_starts(head, STR("file ")))
            continue;
        snprintf(path, sizeof path, "library/%.*s", (int)head.n - 5, head.p + 5);
        golden_write(path, g->parts.at[i].text);
    }
    if (g->input.n)
        golden_write("case.weft", g->input);
}

/* What binding says about the case; the caller frees it. */
static char *run(const golden_case *g)
{
    char *said = NULL, dir[] = "/tmp/weft-bind-XXXXXX";
    size_t n = 0;
    weft_diag *dg = diag_create();
    model_file *mf = NULL;
    bound_model *bm = NULL;
    FILE *to = open_memstream(&said, &n);
    if (!to || !mkdtemp(dir) || chdir(dir) != 0)
        golden_stop("cannot make a folder", dir);
    put_files(g);
    bind_options how = {.arch = g->input.n ? "case.weft" : NULL};
    weft_status st = model_file_open(dg, write_checkpoint(g), NULL, &mf);
    if (st == WEFT_OK)
        st = model_bind(dg, mf, &how, &bm);
    diag_print(dg, to, false);
    if ((st == WEFT_OK) != (diag_errors(dg) == 0))
        fprintf(to, "status %s with %zu errors\n", weft_status_text(st), diag_errors(dg));
    if (st == WEFT_OK) {
        strbuf why = {0};
        fprintf(to, "model " STR_FMT "\n", STR_ARG(bm->graph->model));
        tell_params(to, bm);
        if (bm->settings.context_asked)
            fprintf(to, "of this context only\n");
        for (size_t i = 0; i < bm->graph->weights.n; i++)
            report_weight(to, bm, &bm->graph->weights.at[i]);
        if (!graph_verify(bm->graph, &why))
            fprintf(to, "the graph is wrong: %s\n", why.p);
        strbuf_free(&why);
    }
    for (size_t i = 0; i < diag_count(dg); i++)
        seen[diag_at(dg, i).code] = true;
    fclose(to);
    bound_model_destroy(bm);
    model_file_close(mf);
    diag_destroy(dg);
    if (chdir("/") == 0)
        nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return said;
}

/* The codes that the checker's own cases show. */
static void see_file(const char *path, void *ctx)
{
    (void)ctx;
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    source *src;
    if (source_open(dg, a, path, 1 << 22, &src) != WEFT_OK)
        golden_stop("cannot read", path);
    for (int c = 0; c < DIAG_CODE_COUNT; c++) {
        str shown = arena_printf(a, "[%s]", diag_row_of((weft_code)c)->name);
        seen[c] |= memmem(src->text.p, src->text.n, shown.p, shown.n) != NULL;
    }
    diag_destroy(dg);
    arena_destroy(a);
}

/* How many codes have no case. */
static int check_codes(void)
{
    int n_none = 0;
    for (int c = 0; c < DIAG_CODE_COUNT; c++) {
        const char *name = diag_row_of((weft_code)c)->name;
        bool ours = strncmp(name, "W04", 3) == 0 || strncmp(name, "W05", 3) == 0 ||
                    strncmp(name, "W08", 3) == 0;
        if (!ours || seen[c])
            continue;
        printf("%s (%s) has no case\n", name, diag_row_of((weft_code)c)->meaning);
        n_none++;
    }
    return n_none;
}

int main(int argc, char **argv)
{
    golden_run r = {.run = run, .update = argc == 4 && strcmp(argv[1], "--update") == 0};
    if (argc != 3 && !r.update)
        golden_stop("usage", "golden_bind [--update] FOLDER OTHER");
    if (setenv("WEFT_PATH", "library", 1) != 0)
        golden_stop("out of memory", "WEFT_PATH");
    char *other = realpath(argv[argc - 1], NULL); /* before cases go elsewhere */
    if (!other)
        golden_stop("cannot read", argv[argc - 1]);
    golden_each(argv[argc - 2], golden_file, &r);
    golden_each(other, see_file, NULL);
    free(other);
    int n_none = check_codes();
    printf("%d cases, %d wrong; %d codes without a case\n", r.n_case, r.n_bad, n_none);
    return r.n_bad + n_none && !r.update ? EXIT_FAILURE : EXIT_SUCCESS;
}
