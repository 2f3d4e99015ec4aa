/* golden_passes.c - each pass alone: graph text in, exact graph text out; and all of them on real models.
 *
 *     golden_passes [--update] FOLDER     every NAME.txt is for the pass NAME, all.txt for all of them
 *     golden_passes --models FOLDER..     checkpoints, each in a folder of its own
 *
 * A file holds cases:
 *
 *     ==== title
 *     ; target ctx 4096 seq 2 tok 512 slots 2 rank 8 fork     (optional: what to compile for)
 *     the graph
 *     ---- after                                or `---- unchanged`
 *     the graph as the pass leaves it
 *
 * A second run of the same passes must change nothing, and every graph must be legal and come back from
 * its text. Of models, all outputs are kept in a first round and only those of rows [R] in a second. */
#include "compiler/compiler.h"
#include "compiler/passes.h"
#include "tests/base/golden_text.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { EXIT_SKIPPED = 77 };

static int n_case, n_bad;

static void stop(const char *what, const char *which)
{
    fprintf(stderr, "golden_passes: %s: %s\n", what, which);
    exit(2);
}

static void bad(const char *where, const char *what, const char *more)
{
    printf("FAILED %s: %s%s%s\n", where, what, more ? "\n" : "", more ? more : "");
    n_bad++;
}

/* ---- running passes ---- */

/* The pass of this name, or all of them. */
static bool run(const char *where, const char *name, graph *g, const target *t)
{
    const pass_row *p = pass_find(name);
    if (p)
        return p->run(g, t);
    strbuf was = {0}, is = {0};
    weft_diag *dg = diag_create();
    graph_print(g, false, &was);
    if (passes_run(dg, g, t, NULL) != WEFT_OK)
        bad(where, "passes_run fails", diag_at(dg, 0).message.p);
    graph_print(g, false, &is);
    bool changed = strcmp(was.p, is.p) != 0;
    diag_destroy(dg);
    strbuf_free(&was);
    strbuf_free(&is);
    return changed;
}

/* Legal, equal to its copy, and equal to what its text gives. */
static void check_graph(const char *where, const graph *g)
{
    strbuf why = {0}, text = {0};
    if (!graph_verify(g, &why))
        bad(where, "the graph is not legal", why.p);
    graph_print(g, false, &text);
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    graph *back = NULL, *copy = graph_copy(g);
    if (graph_parse(dg, source_from_text(a, "after.graph", strbuf_view(&text)), &back) != WEFT_OK)
        bad(where, "its text cannot be read", diag_at(dg, 0).message.p);
    else if (!graph_equal(g, back))
        bad(where, "its text gives another graph", NULL);
    if (!graph_equal(g, copy))
        bad(where, "its copy differs", NULL);
    graph_destroy(back);
    graph_destroy(copy);
    diag_destroy(dg);
    arena_destroy(a);
    strbuf_free(&text);
    strbuf_free(&why);
}

/* The passes once, with all that must hold afterwards. */
static bool run_checked(const char *where, const char *name, graph *g, const target *t)
{
    bool changed = run(where, name, g, t);
    check_graph(where, g);
    graph *again = graph_copy(g);
    if (run(where, name, again, t))
        bad(where, "a second run changes the graph", NULL);
    if (!graph_equal(g, again))
        bad(where, "a second run gives another graph", NULL);
    graph_destroy(again);
    return changed;
}

/* ---- cases ---- */

static void read_target(str input, target *t)
{
    if (!str_starts(input, STR("; target")))
        return;
    char line[256];
    str first = next_line(&input);
    snprintf(line, sizeof line, STR_FMT, STR_ARG(first));
    static const struct {
        const char *word;
        size_t at;
    } fields[] = {
        {"ctx ", offsetof(target, n_ctx)},      {"seq ", offsetof(target, n_seq)},
        {"tok ", offsetof(target, n_tok_max)},  {"slots ", offsetof(target, lora_slots)},
        {"rank ", offsetof(target, lora_rank)},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char *p = strstr(line, fields[i].word);
        if (p)
            *(int64_t *)((char *)t + fields[i].at) = strtoll(p + strlen(fields[i].word), NULL, 10);
    }
    t->may_fork = strstr(line, "fork") != NULL;
}

static void run_case(const char *pass, str title, str input, strbuf *out)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    graph *g;
    target t = {
        .be = backend_cpu_find("c"), .n_ctx = 4096, .n_seq = 1, .n_tok_max = 512, .kv = DT_F16};
    char where[300];
    snprintf(where, sizeof where, "%s: " STR_FMT, pass, STR_ARG(title));
    n_case++;
    read_target(input, &t);
    strbuf text = {0};
    if (graph_parse(dg, source_from_text(a, "case.graph", input), &g) != WEFT_OK) {
        bad(where, "cannot be read", diag_at(dg, 0).message.p);
    } else {
        if (run_checked(where, pass, g, &t))
            graph_print(g, false, &text);
        graph_destroy(g);
    }
    strbuf_add(out, "==== " STR_FMT "\n" STR_FMT "---- %s\n" STR_FMT, STR_ARG(title),
               STR_ARG(input), text.n ? "after" : "unchanged", STR_ARG(strbuf_view(&text)));
    if (text.n)
        strbuf_putc(out, '\n');
    strbuf_free(&text);
    diag_destroy(dg);
    arena_destroy(a);
}

static void show_difference(const char *path, str want, str got)
{
    int line = 1;
    while (want.n && got.n) {
        str w = next_line(&want), g = next_line(&got);
        if (!str_eq(w, g)) {
            printf("%s:%d:\n- " STR_FMT "+ " STR_FMT, path, line, STR_ARG(w), STR_ARG(g));
            return;
        }
        line++;
    }
    printf("%s:%d: one ends here\n", path, line);
}

static void run_file(const char *folder, const char *name, bool update)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    source *src;
    strbuf out = {0};
    str path = arena_printf(a, "%s/%s", folder, name);
    const char *pass = arena_str(a, (str){name, strlen(name) - 4}).p;
    if (!pass_find(pass) && strcmp(pass, "all") != 0)
        stop("there is no pass for", path.p);
    if (source_open(dg, a, path.p, 1 << 24, &src) != WEFT_OK)
        stop("cannot open", path.p);
    str rest = src->text;
    while (rest.n && !str_starts(rest, STR("==== ")))
        strbuf_put(&out, next_line(&rest));
    while (rest.n) {
        str title = next_line(&rest);
        title = (str){title.p + 5, title.n - 6};
        str input = read_body(&rest);
        next_line(&rest);
        read_body(&rest);
        run_case(pass, title, input, &out);
    }
    if (!str_eq(strbuf_view(&out), src->text)) {
        FILE *f = update ? fopen(path.p, "wb") : NULL;
        if (update && (!f || fwrite(out.p, 1, out.n, f) != out.n || fclose(f) != 0))
            stop("cannot write", path.p);
        if (!update) {
            show_difference(path.p, src->text, strbuf_view(&out));
            n_bad++;
        }
    }
    strbuf_free(&out);
    diag_destroy(dg);
    arena_destroy(a);
}

static void run_folder(const char *folder, bool update)
{
    int n_pass;
    const pass_row *rows = pass_rows(&n_pass);
    run_file(folder, "all.txt", update);
    for (int i = 0; i < n_pass; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.txt", rows[i].name);
        run_file(folder, name, update);
    }
}

/* ---- models ---- */

static void keep_row_outputs(graph *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->outputs.n; i++)
        if (g->values.at[g->outputs.at[i].value].type.dim[0] == GRAPH_R)
            g->outputs.at[n++] = g->outputs.at[i];
    g->outputs.n = n;
}

/* All together, and each left out once. */
static void run_model(const char *path)
{
    weft_diag *dg = diag_create();
    model_file *mf = NULL;
    bound_model *bm = NULL;
    if (model_file_open(dg, path, NULL, &mf) != WEFT_OK ||
        model_bind(dg, mf, NULL, &bm) != WEFT_OK) {
        bad(path, "cannot be bound", diag_at(dg, 0).message.p);
        bm = NULL;
    }
    int n_pass;
    const pass_row *rows = pass_rows(&n_pass);
    for (int k = 0; bm && k < 2 * (n_pass + 1); k++) {
        graph *g = graph_copy(bm->graph);
        const char *skip = k / 2 < n_pass ? rows[k / 2].name : NULL;
        target t = {
            .be = backend_cpu_find("c"), .n_ctx = 4096, .n_seq = 2, .n_tok_max = 8, .kv = DT_F16};
        t.skip = &skip;
        t.n_skip = skip != NULL;
        if (k % 2)
            keep_row_outputs(g);
        char where[600];
        snprintf(where, sizeof where, "%s without %s", path, skip ? skip : "nothing");
        if (!run_checked(where, "all", g, &t))
            bad(where, "the passes change nothing", NULL);
        graph_destroy(g);
        n_case++;
    }
    bound_model_destroy(bm);
    model_file_close(mf);
    diag_destroy(dg);
}

static bool run_models(const char *folder)
{
    DIR *d = opendir(folder);
    if (!d)
        return false;
    for (struct dirent *e; (e = readdir(d));) {
        char path[512];
        struct stat st;
        snprintf(path, sizeof path, "%.250s/%.200s/config.json", folder, e->d_name);
        if (e->d_name[0] == '.' || stat(path, &st) != 0)
            continue;
        *strrchr(path, '/') = 0;
        snprintf(path + strlen(path), 32, "/model.safetensors");
        if (stat(path, &st) != 0)
            continue;
        *strrchr(path, '/') = 0;
        run_model(path);
    }
    closedir(d);
    return true;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        stop("usage", "golden_passes [--update] FOLDER | --models FOLDER..");
    if (strcmp(argv[1], "--models") == 0) {
        bool any = false;
        for (int i = 2; i < argc; i++)
            any = run_models(argv[i]) || any;
        if (!any)
            return EXIT_SKIPPED;
    } else {
        bool update = strcmp(argv[1], "--update") == 0;
        run_folder(argv[argc - 1], update);
    }
    printf("%d cases, %d failed\n", n_case, n_bad);
    return n_bad > 0 || n_case == 0;
}
