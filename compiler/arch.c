/* arch.c - which model file a checkpoint is read with.
 *
 * The one named on the command line; else the text that travels inside the checkpoint under weft.graph;
 * else the one file of the library whose match lines fit: the folders of WEFT_PATH, the installed library
 * and the copy compiled in, where an earlier file hides a later one of the same name. */
#include "compiler/compiler.h"
#include "dsl/builtin_library.h"
#include "runtime/base/file.h"

#include <stdlib.h>

typedef struct {
    const char *name; /* llama.weft: what hides what */
    const source *src;
    bool builtin;
} candidate;

typedef VEC(candidate) candidates;

static bool is_hidden(const candidates *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->at[i].name, name) == 0)
            return true;
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const candidate *)a)->name, ((const candidate *)b)->name);
}

/* A file that cannot be read or parsed is reported: it might have been the one. */
static void add_folder(weft_diag *dg, arena *a, const char *dir, candidates *list)
{
    DIR *d = file_open_dir(dir);
    size_t first = list->n;
    if (!d)
        return;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        source *src;
        if (!str_ends(str_of(e->d_name), STR(".weft")) || is_hidden(list, e->d_name))
            continue;
        const char *path = arena_printf(a, "%s/%s", dir, e->d_name).p;
        if (source_open(dg, a, path, DSL_SOURCE_MAX, &src) == WEFT_OK)
            VEC_PUSH(list, ((candidate){arena_str(a, str_of(e->d_name)).p, src, false}));
    }
    file_close_dir(d);
    if (list->n > first)
        qsort(list->at + first, list->n - first, sizeof *list->at, by_name);
}

static void add_library(weft_diag *dg, arena *a, candidates *list)
{
    const char *env = getenv("WEFT_PATH");
    for (const char *p = env; p && *p;) {
        size_t n = strcspn(p, ":");
        if (n > 0)
            add_folder(dg, a, arena_printf(a, "%.*s", (int)n, p).p, list);
        p += n;
        p += *p == ':';
    }
#ifdef WEFT_LIBRARY_DIR
    add_folder(dg, a, WEFT_LIBRARY_DIR, list);
#endif
    for (size_t i = 0; i < builtin_file_n; i++) {
        const builtin_file *f = &builtin_files[i];
        if (strchr(f->name, '/') || is_hidden(list, f->name))
            continue;
        const char *name = arena_printf(a, "<weft>/%s", f->name).p;
        const source *src = source_from_text(a, name, (str){f->text, f->size});
        VEC_PUSH(list, ((candidate){f->name, src, true}));
    }
}

static void put_archs(const model_file *mf, strbuf *out)
{
    for (size_t i = 0; i < model_file_arch_count(mf); i++)
        strbuf_add(out, "%s`" STR_FMT "`", i ? ", " : "", STR_ARG(model_file_arch(mf, i)));
    if (!out->n)
        strbuf_add(out, "no architecture at all");
}

/* A match line spells the architecture out, so most files compiled in need no parsing. Others are parsed in any
 * case: their mistakes are reported. */
static bool may_match(arena *a, const candidate *c, str arch)
{
    str quoted = arena_printf(a, "\"" STR_FMT "\"", STR_ARG(arch));
    return !c->builtin || memmem(c->src->text.p, c->src->text.n, quoted.p, quoted.n);
}

static weft_status choose_from(weft_diag *dg, arena *a, const model_file *mf, checkpoint *cp,
                               const candidates *list, arch_text *out, dsl_file **out_f)
{
    const candidate *best = NULL, *rival = NULL;
    int best_rank = 0;
    weft_status st = WEFT_OK;
    for (size_t i = 0; i < list->n && st == WEFT_OK; i++) {
        const candidate *it = &list->at[i];
        dsl_file *f = NULL;
        for (size_t k = 0; k < model_file_arch_count(mf); k++) {
            str model = {0};
            if (!may_match(a, it, model_file_arch(mf, k)))
                continue;
            if (!f && (st = dsl_open(dg, it->src, false, a, &f)) != WEFT_OK)
                break;
            int rank = dsl_match(dg, f, cp, model_file_arch(mf, k), &model);
            if (rank > 0 && rank == best_rank)
                rival = it;
            if (rank <= best_rank)
                continue;
            best_rank = rank;
            best = it;
            rival = NULL;
            out->model = model;
        }
        if (best == it) {
            dsl_close(*out_f);
            *out_f = f;
        } else {
            dsl_close(f);
        }
    }
    strbuf archs = {0};
    put_archs(mf, &archs);
    if (st == WEFT_OK && !best) {
        st = weft_fail(dg, W0801, WEFT_NOWHERE, "no model in the library matches %s, which says %s",
                       model_file_path(mf), archs.p);
        weft_note(dg, "write a model file for it: models/README.md shows how");
    } else if (st == WEFT_OK && rival) {
        st = weft_fail(dg, W0802, WEFT_NOWHERE, "%s and %s both match %s", best->src->name,
                       rival->src->name, archs.p);
    } else if (st == WEFT_OK) {
        out->src = best->src;
        out->checked = best->builtin;
    }
    strbuf_free(&archs);
    return st;
}

/* --arch FILE: of several models in it, the one that fits. */
static weft_status choose_named(weft_diag *dg, arena *a, const model_file *mf, checkpoint *cp,
                                const char *path, arch_text *out, dsl_file **out_f)
{
    source *src;
    WEFT_TRY(source_open(dg, a, path, DSL_SOURCE_MAX, &src));
    WEFT_TRY(dsl_open(dg, src, false, a, out_f));
    out->src = src;
    if (model_file_arch_count(mf) == 0)
        return WEFT_OK;
    str says = model_file_arch(mf, 0);
    if (dsl_match(dg, *out_f, cp, says, &out->model) == 0)
        weft_fail(dg, W0805, (weft_loc){src, 0, 0},
                  "no match line of this file fits %s, which says `" STR_FMT "`",
                  model_file_path(mf), STR_ARG(says));
    return WEFT_OK;
}

weft_status arch_choose(weft_diag *dg, const model_file *mf, const char *arch, arena *a,
                        arch_text *out, dsl_file **out_f)
{
    str text;
    checkpoint cp;
    candidates list = {0};
    weft_status st;
    *out = (arch_text){0};
    *out_f = NULL;
    checkpoint_init(&cp, a, mf);
    if (arch) {
        st = choose_named(dg, a, mf, &cp, arch, out, out_f);
    } else if (value_str(model_file_key(mf, STR("/weft.graph")), &text)) {
        out->std_only = true;
        out->src =
            source_from_text(a, arena_printf(a, "%s(weft.graph)", model_file_path(mf)).p, text);
        st = dsl_open(dg, out->src, true, a, out_f);
    } else {
        add_library(dg, a, &list);
        st = choose_from(dg, a, mf, &cp, &list, out, out_f);
        VEC_FREE(&list);
    }
    checkpoint_deinit(&cp);
    if (st != WEFT_OK) {
        dsl_close(*out_f);
        *out_f = NULL;
    }
    return st;
}
