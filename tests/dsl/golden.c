/* golden.c - diagnostics as users see them: text in, exact text out.
 *
 *   golden [--update] FOLDER
 *
 * Every .txt file of the folder holds cases:
 *
 *   ==== title
 *   the text of case.weft
 *   ---- file lib/other.weft      (any number of these: files it imports)
 *   their text
 *   ---- says
 *   what the checker prints, or nothing
 *
 * A line `@60 text` of an input stands for 60 lines; in it $ is the line's number from 1 and \xNN a
 * byte. Cases with files of their own are checked in a folder made for them; the others may import
 * std and nothing else. Afterwards every code of the language must have been seen, apart from those
 * that only a model can raise. --update writes what the checker says now into the files. */
#include "dsl/dsl.h"
#include "runtime/base/vec.h"
#include "tests/base/golden_text.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Codes the checker cannot raise before a model, an adapter or a device is there. */
static const char *const with_a_model[] = {"W0410", "W0413", "W0502", "W0505", "W0506", "W0507",
                                           "W0605", "W0701", "W0702", "W0703", "W0801", "W0802",
                                           "W0805", "W0901", "W0902", "W1105"};

typedef struct {
    str name, text; /* as written in the case */
} case_file;

typedef struct {
    str title, input, says;
    VEC(case_file) files;
} golden_case;

static bool seen[DIAG_CODE_COUNT];
static int n_case, n_bad;

static void stop(const char *what, const char *which)
{
    fprintf(stderr, "golden: %s: %s\n", what, which);
    exit(2);
}

/* ---- reading ---- */

static bool read_case(str *rest, golden_case *out)
{
    if (!str_starts(*rest, STR("==== ")))
        return false;
    *out = (golden_case){.title = trimmed(next_line(rest), 5)};
    out->input = read_body(rest);
    while (str_starts(*rest, STR("---- file "))) {
        case_file f = {.name = trimmed(next_line(rest), 10)};
        f.text = read_body(rest);
        VEC_PUSH(&out->files, f);
    }
    if (str_starts(*rest, STR("---- says")))
        next_line(rest);
    out->says = read_body(rest);
    return true;
}

/* ---- running ---- */

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One line of `@n text`, for i. */
static void put_repeated(strbuf *out, str text, long i)
{
    for (size_t k = 0; k < text.n; k++) {
        if (text.p[k] == '$') {
            strbuf_add(out, "%ld", i);
        } else if (k + 3 < text.n && text.p[k] == '\\' && text.p[k + 1] == 'x' &&
                   hex(text.p[k + 2]) >= 0 && hex(text.p[k + 3]) >= 0) {
            strbuf_putc(out, (char)(hex(text.p[k + 2]) * 16 + hex(text.p[k + 3])));
            k += 3;
        } else {
            strbuf_putc(out, text.p[k]);
        }
    }
}

static void expand(str input, strbuf *out)
{
    while (input.n) {
        str line = next_line(&input);
        if (line.n < 2 || line.p[0] != '@') {
            strbuf_put(out, line);
            continue;
        }
        char *text;
        long n = strtol(line.p + 1, &text, 10);
        size_t skip = (size_t)(text - line.p) + (*text == ' ');
        for (long i = 1; i <= n; i++)
            put_repeated(out, (str){line.p + skip, line.n - skip}, i);
    }
}

static void write_file(const char *path, str text)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(text.p, 1, text.n, f) != text.n || fclose(f) != 0)
        stop("cannot write", path);
}

/* The files of the case below dir; a name may have one folder. */
static void put_files(const golden_case *g, const char *dir)
{
    for (size_t i = 0; i < g->files.n; i++) {
        char path[512];
        strbuf text = {0};
        const case_file *f = &g->files.at[i];
        const char *slash = memchr(f->name.p, '/', f->name.n);
        if (slash) {
            snprintf(path, sizeof path, "%s/%.*s", dir, (int)(slash - f->name.p), f->name.p);
            mkdir(path, 0755);
        }
        snprintf(path, sizeof path, "%s/" STR_FMT, dir, STR_ARG(f->name));
        expand(f->text, &text);
        write_file(path, strbuf_view(&text));
        strbuf_free(&text);
    }
}

static void remove_files(const golden_case *g, const char *dir)
{
    char path[512];
    for (size_t i = 0; i < g->files.n; i++) {
        const case_file *f = &g->files.at[i];
        snprintf(path, sizeof path, "%s/" STR_FMT, dir, STR_ARG(f->name));
        unlink(path);
        char *slash = strrchr(path, '/');
        *slash = 0;
        rmdir(path);
    }
    rmdir(dir);
}

/* What the checker says about the case; the caller frees it. */
static char *run(const golden_case *g)
{
    char *said = NULL, dir[] = "/tmp/weft-golden-XXXXXX";
    size_t n = 0;
    strbuf input = {0};
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    FILE *to = open_memstream(&said, &n);
    if (!to || (g->files.n && (!mkdtemp(dir) || chdir(dir) != 0)))
        stop("cannot make a folder", dir);
    put_files(g, dir);
    expand(g->input, &input);
    source *src = source_from_text(a, "case.weft", strbuf_view(&input));
    weft_status st = dsl_check_as(dg, src, g->files.n == 0);
    diag_print(dg, to, false);
    if ((st == WEFT_OK) != (diag_errors(dg) == 0))
        fprintf(to, "status %s with %zu errors\n", weft_status_text(st), diag_errors(dg));
    for (size_t i = 0; i < diag_count(dg); i++)
        seen[diag_at(dg, i).code] = true;
    fclose(to);
    if (g->files.n && chdir("/") == 0)
        remove_files(g, dir);
    strbuf_free(&input);
    diag_destroy(dg);
    arena_destroy(a);
    return said;
}

static void put_case(const golden_case *g, str said, strbuf *out)
{
    strbuf_add(out, "==== " STR_FMT "\n", STR_ARG(g->title));
    strbuf_put(out, g->input);
    for (size_t i = 0; i < g->files.n; i++) {
        strbuf_add(out, "---- file " STR_FMT "\n", STR_ARG(g->files.at[i].name));
        strbuf_put(out, g->files.at[i].text);
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
        VEC_FREE(&g.files);
    }
    if (rest.n)
        stop("this is no case", path);
    if (update && !str_eq(strbuf_view(&out), src->text))
        write_file(path, strbuf_view(&out));
    strbuf_free(&out);
    diag_destroy(dg);
    arena_destroy(a);
}

/* ---- the whole folder ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool needs_a_model(const char *code)
{
    for (size_t i = 0; i < sizeof with_a_model / sizeof *with_a_model; i++)
        if (strcmp(code, with_a_model[i]) == 0)
            return true;
    return false;
}

static void check_codes(void)
{
    int n_seen = 0, n_none = 0;
    for (int c = 0; c < DIAG_CODE_COUNT; c++) {
        const char *name = diag_row_of((weft_code)c)->name;
        bool language = strncmp(name, "W0", 2) == 0 || strncmp(name, "W11", 3) == 0;
        n_seen += seen[c];
        if (language && !seen[c] && !needs_a_model(name)) {
            printf("%s (%s) has no case\n", name, diag_row_of((weft_code)c)->meaning);
            n_none++;
        }
        if (seen[c] && needs_a_model(name)) {
            printf("%s is listed as raised only with a model, but a case raises it\n", name);
            n_none++;
        }
    }
    printf("%d cases, %d wrong; %d codes seen, %d without a case\n", n_case, n_bad, n_seen, n_none);
    n_bad += n_none;
}

int main(int argc, char **argv)
{
    bool update = argc == 3 && strcmp(argv[1], "--update") == 0;
    if (argc != 2 && !update)
        stop("usage", "golden [--update] FOLDER");
    char *folder = realpath(argv[argc - 1], NULL);
    DIR *d = folder ? opendir(folder) : NULL;
    if (!d)
        stop("cannot read", argv[argc - 1]);
    VEC(char *) files = {0};
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        size_t n = strlen(e->d_name);
        char *path = NULL;
        if (n < 4 || strcmp(e->d_name + n - 4, ".txt") != 0)
            continue;
        if (asprintf(&path, "%s/%s", folder, e->d_name) < 0)
            stop("out of memory", folder);
        VEC_PUSH(&files, path);
    }
    closedir(d);
    qsort(files.at, files.n, sizeof *files.at, by_name);
    for (size_t i = 0; i < files.n; i++) {
        run_file(files.at[i], update);
        free(files.at[i]);
    }
    VEC_FREE(&files);
    free(folder);
    check_codes();
    return n_bad && !update ? EXIT_FAILURE : EXIT_SUCCESS;
}
