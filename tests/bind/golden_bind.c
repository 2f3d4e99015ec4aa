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
#include "tests/base/golden_text.h"

#include <dirent.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    str head, text; /* "file mine.weft", "gguf", .. */
} part;

typedef struct {
    str title, input, says;
    VEC(part) parts;
} golden_case;

typedef struct {
    const char *name;
    dtype type;
    int rank;
    int64_t shape[MODEL_RANK_MAX];
    void *data;
} test_tensor;

typedef VEC(test_tensor) test_tensors;

static bool seen[DIAG_CODE_COUNT];
static int n_case, n_bad;

static void stop(const char *what, const char *which)
{
    fprintf(stderr, "golden_bind: %s: %s\n", what, which);
    exit(2);
}

/* ---- reading ---- */

static bool read_case(str *rest, golden_case *out)
{
    if (!str_starts(*rest, STR("==== ")))
        return false;
    *out = (golden_case){.title = trimmed(next_line(rest), 5)};
    out->input = read_body(rest);
    while (str_starts(*rest, STR("---- ")) && !str_starts(*rest, STR("---- says"))) {
        part p = {.head = trimmed(next_line(rest), 5)};
        p.text = read_body(rest);
        VEC_PUSH(&out->parts, p);
    }
    if (str_starts(*rest, STR("---- says")))
        next_line(rest);
    out->says = read_body(rest);
    return true;
}

static const part *find_part(const golden_case *g, const char *head)
{
    for (size_t i = 0; i < g->parts.n; i++)
        if (str_eqz(g->parts.at[i].head, head))
            return &g->parts.at[i];
    return NULL;
}

/* ---- the checkpoint ---- */

static void write_file(const char *path, str text)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(text.p, 1, text.n, f) != text.n || fclose(f) != 0)
        stop("cannot write", path);
}

static dtype find_type(str name)
{
    for (int t = 0; t < DT_COUNT; t++)
        if (str_eqz(name, dtype_row_of((dtype)t)->name))
            return (dtype)t;
    stop("there is no type", name.p);
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
        stop("not whole blocks", name);
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
    const part *keys = find_part(g, "gguf"), *own = find_part(g, "weft.graph");
    json_limits limits = {
        .bytes_max = 1 << 20, .values_max = 1 << 16, .depth_max = 8, .exact = true};
    gguf_writer *w = gguf_writer_create();
    value all;
    if (json_read(dg, a, "the keys", keys->text, limits, &all) != WEFT_OK)
        stop("not JSON", arena_str(a, g->title).p);
    for (size_t i = 0; i < all.as.object.n; i++) {
        const value_member *m = &all.as.object.members[i];
        if (!gguf_writer_key(w, m->name, as_gguf(a, &m->v)))
            stop("GGUF has no form for", arena_str(a, m->name).p);
    }
    if (own)
        gguf_writer_key(w, STR("weft.graph"), value_of_str(own->text));
    for (size_t i = 0; i < tensors->n; i++) {
        const test_tensor *t = &tensors->at[i];
        gguf_writer_tensor_data(w, str_of(t->name), t->type, t->rank, t->shape, t->data);
    }
    if (gguf_writer_write(dg, w, "model.gguf") != WEFT_OK)
        stop("cannot write", "model.gguf");
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
    write_file("model/config.json", find_part(g, "hf")->text);
    if (safetensors_write(dg, "model/model.safetensors", item, tensors->n, NULL) != WEFT_OK)
        stop("cannot write", "model.safetensors");
}

static const char *write_checkpoint(const golden_case *g)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    test_tensors tensors = {0};
    const part *list = find_part(g, "tensors");
    bool gguf = find_part(g, "gguf") != NULL;
    for (str rest = list ? list->text : STR(""); rest.n;)
        read_tensor(a, &tensors, trimmed(next_line(&rest), 0));
    if (gguf)
        write_gguf(dg, a, g, &tensors);
    else if (find_part(g, "hf"))
        write_hf(dg, a, g, &tensors);
    else
        stop("a case without a checkpoint", arena_str(a, g->title).p);
    VEC_FREE(&tensors);
    diag_destroy(dg);
    arena_destroy(a);
    return gguf ? "model.gguf" : "model";
}

/* ---- what binding found ---- */

static void tell_params(FILE *to, const bound_model *bm)
{
    for (size_t i = 0; i < bm->params.n; i++) {
        const bound_param *p = &bm->params.at[i];
        if (p->layer > 0)
            fprintf(to, ", ");
        else
            fprintf(to, "%s" STR_FMT " = ", i ? "\n" : "", STR_ARG(p->name));
        switch (p->value.kind) {
        case KEY_INT:
            fprintf(to, "%lld", (long long)p->value.integer);
            break;
        case KEY_FLOAT:
            fprintf(to, "%g", p->value.number);
            break;
        case KEY_BOOL:
            fprintf(to, p->value.truth ? "true" : "false");
            break;
        case KEY_STR:
            fprintf(to, "\"" STR_FMT "\"", STR_ARG(p->value.text));
            break;
        default:
            fprintf(to, "none");
        }
    }
    if (bm->params.n)
        fprintf(to, "\n");
}

static void tell_weight(FILE *to, const bound_model *bm, const gweight *w)
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
        write_file(path, g->parts.at[i].text);
    }
    if (g->input.n)
        write_file("case.weft", g->input);
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
        stop("cannot make a folder", dir);
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
        for (size_t i = 0; i < bm->graph->weights.n; i++)
            tell_weight(to, bm, &bm->graph->weights.at[i]);
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

static void put_case(const golden_case *g, str said, strbuf *out)
{
    strbuf_add(out, "==== " STR_FMT "\n", STR_ARG(g->title));
    strbuf_put(out, g->input);
    for (size_t i = 0; i < g->parts.n; i++) {
        strbuf_add(out, "---- " STR_FMT "\n", STR_ARG(g->parts.at[i].head));
        strbuf_put(out, g->parts.at[i].text);
    }
    strbuf_put(out, STR("---- says\n"));
    strbuf_put(out, said);
}

static void run_file(const char *path, bool update)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    source *src;
    strbuf out = {0};
    golden_case g;
    if (source_open(dg, a, path, 1 << 22, &src) != WEFT_OK)
        stop("cannot read", path);
    str rest = src->text;
    while (read_case(&rest, &g)) {
        char *said = run(&g);
        n_case++;
        if (!update && !str_eqz(g.says, said)) {
            n_bad++;
            printf("%s: " STR_FMT "\n--- expected\n" STR_FMT "--- said\n%s", path, STR_ARG(g.title),
                   STR_ARG(g.says), said);
        }
        put_case(&g, str_of(said), &out);
        free(said);
        VEC_FREE(&g.parts);
    }
    if (rest.n)
        stop("this is no case", path);
    if (update && !str_eq(strbuf_view(&out), src->text))
        write_file(path, strbuf_view(&out));
    strbuf_free(&out);
    diag_destroy(dg);
    arena_destroy(a);
}

/* The codes that the checker's own cases show. */
static void see_file(const char *path, bool update)
{
    (void)update;
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    source *src;
    if (source_open(dg, a, path, 1 << 22, &src) != WEFT_OK)
        stop("cannot read", path);
    for (int c = 0; c < DIAG_CODE_COUNT; c++) {
        str shown = arena_printf(a, "[%s]", diag_row_of((weft_code)c)->name);
        seen[c] |= memmem(src->text.p, src->text.n, shown.p, shown.n) != NULL;
    }
    diag_destroy(dg);
    arena_destroy(a);
}

static void each_file(const char *name, void (*do_file)(const char *path, bool update), bool update)
{
    struct dirent **list;
    char *folder = realpath(name, NULL); /* cases run in folders of their own */
    int n = folder ? scandir(folder, &list, NULL, alphasort) : -1;
    if (n < 0)
        stop("cannot read", name);
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name);
        if (str_ends(str_of(path), STR(".txt")))
            do_file(path, update);
        free(list[i]);
    }
    free(list);
    free(folder);
}

static void check_codes(void)
{
    for (int c = 0; c < DIAG_CODE_COUNT; c++) {
        const char *name = diag_row_of((weft_code)c)->name;
        bool ours = strncmp(name, "W04", 3) == 0 || strncmp(name, "W05", 3) == 0 ||
                    strncmp(name, "W08", 3) == 0;
        if (!ours || seen[c])
            continue;
        printf("%s (%s) has no case\n", name, diag_row_of((weft_code)c)->meaning);
        n_bad++;
    }
}

int main(int argc, char **argv)
{
    bool update = argc == 4 && strcmp(argv[1], "--update") == 0;
    if (argc != 3 && !update)
        stop("usage", "golden_bind [--update] FOLDER OTHER");
    char *other = realpath(argv[argc - 1], NULL);
    if (!other || setenv("WEFT_PATH", "library", 1) != 0)
        stop("cannot read", argv[argc - 1]);
    each_file(argv[argc - 2], run_file, update);
    each_file(other, see_file, false);
    free(other);
    check_codes();
    printf("%d cases, %d wrong\n", n_case, n_bad);
    return n_bad && !update ? EXIT_FAILURE : EXIT_SUCCESS;
}
