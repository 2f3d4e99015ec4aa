/* golden_case.h - golden tests whose cases stand in text files: text in, exact text out.
 *
 *     ==== title
 *     the input
 *     ---- head          (any number of parts)
 *     its text
 *     ---- says
 *     what the program under test says of it
 *
 * With `update` what it says now is written into the files. */
#ifndef WEFT_TESTS_BASE_GOLDEN_CASE_H
#define WEFT_TESTS_BASE_GOLDEN_CASE_H

#include "runtime/base/diag.h"
#include "runtime/base/source.h"
#include "runtime/base/vec.h"
#include "tests/base/golden_text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    str head, text;
} golden_part;

typedef struct {
    str title, input, says;
    VEC(golden_part) parts;
} golden_case;

typedef struct {
    char *(*run)(const golden_case *g); /* what is said of a case; freed here */
    bool update;
    int n_case, n_bad;
} golden_run;

static inline void golden_stop(const char *what, const char *which)
{
    fprintf(stderr, "%s: %s\n", what, which);
    exit(2);
}

static inline void golden_write(const char *path, str text)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(text.p, 1, text.n, f) != text.n || fclose(f) != 0)
        golden_stop("cannot write", path);
}

static inline bool golden_read(str *rest, golden_case *out)
{
    if (!str_starts(*rest, STR("==== ")))
        return false;
    *out = (golden_case){.title = trimmed(next_line(rest), 5)};
    out->input = read_body(rest);
    while (str_starts(*rest, STR("---- ")) && !str_starts(*rest, STR("---- says"))) {
        golden_part p = {.head = trimmed(next_line(rest), 5)};
        p.text = read_body(rest);
        VEC_PUSH(&out->parts, p);
    }
    if (str_starts(*rest, STR("---- says")))
        next_line(rest);
    out->says = read_body(rest);
    return true;
}

static inline void golden_put(const golden_case *g, str said, strbuf *out)
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

/* All cases of a file. */
static inline void golden_file(const char *path, void *ctx)
{
    golden_run *r = ctx;
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    source *src;
    strbuf out = {0};
    golden_case g;
    if (source_open(dg, a, path, 1 << 22, &src) != WEFT_OK)
        golden_stop("cannot read", path);
    str rest = src->text;
    while (golden_read(&rest, &g)) {
        char *said = r->run(&g);
        r->n_case++;
        if (!r->update && !str_eqz(g.says, said)) {
            r->n_bad++;
            printf("%s: " STR_FMT "\n--- expected\n" STR_FMT "--- said\n%s", path, STR_ARG(g.title),
                   STR_ARG(g.says), said);
        }
        golden_put(&g, str_of(said), &out);
        free(said);
        VEC_FREE(&g.parts);
    }
    if (rest.n)
        golden_stop("this is no case", path);
    if (r->update && !str_eq(strbuf_view(&out), src->text))
        golden_write(path, strbuf_view(&out));
    strbuf_free(&out);
    diag_destroy(dg);
    arena_destroy(a);
}

/* The .txt files of a folder, by name. */
static inline void golden_each(const char *name, void (*do_file)(const char *path, void *ctx),
                               void *ctx)
{
    struct dirent **list;
    char *folder = realpath(name, NULL); /* cases run in folders of their own */
    int n = folder ? scandir(folder, &list, NULL, alphasort) : -1;
    if (n < 0)
        golden_stop("cannot read", name);
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name);
        if (str_ends(str_of(path), STR(".txt")))
            do_file(path, ctx);
        free(list[i]);
    }
    free(list);
    free(folder);
}

#endif
