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
#include "tests/base/golden_case.h"

#include <sys/stat.h>
#include <unistd.h>

/* Codes the checker cannot raise before a model, an adapter or a device is there. */
static const char *const with_a_model[] = {
    "W0410", "W0413", "W0502", "W0505", "W0506", "W0507", "W0605", "W0701", "W0702", "W0703",
    "W0704", "W0705", "W0706", "W0801", "W0802", "W0805", "W0902", "W1105", "W1106", "W1110"};

static bool seen[DIAG_CODE_COUNT];

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

/* The name in `file lib/other.weft`, the only kind of part here. */
static str name_of(const golden_part *p)
{
    if (!str_starts(p->head, STR("file ")))
        golden_stop("this is no file", p->head.p);
    return (str){p->head.p + 5, p->head.n - 5};
}

/* The files of the case below dir; a name may have one folder. */
static void put_files(const golden_case *g, const char *dir)
{
    for (size_t i = 0; i < g->parts.n; i++) {
        char path[512];
        strbuf text = {0};
        str name = name_of(&g->parts.at[i]);
        const char *slash = memchr(name.p, '/', name.n);
        if (slash) {
            snprintf(path, sizeof path, "%s/%.*s", dir, (int)(slash - name.p), name.p);
            mkdir(path, 0755);
        }
        snprintf(path, sizeof path, "%s/" STR_FMT, dir, STR_ARG(name));
        expand(g->parts.at[i].text, &text);
        golden_write(path, strbuf_view(&text));
        strbuf_free(&text);
    }
}

static void remove_files(const golden_case *g, const char *dir)
{
    char path[512];
    for (size_t i = 0; i < g->parts.n; i++) {
        str name = name_of(&g->parts.at[i]);
        snprintf(path, sizeof path, "%s/" STR_FMT, dir, STR_ARG(name));
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
    if (!to || (g->parts.n && (!mkdtemp(dir) || chdir(dir) != 0)))
        golden_stop("cannot make a folder", dir);
    put_files(g, dir);
    expand(g->input, &input);
    source *src = source_from_text(a, "case.weft", strbuf_view(&input));
    weft_status st = dsl_check(dg, src, g->parts.n == 0);
    diag_print(dg, to, false);
    if ((st == WEFT_OK) != (diag_errors(dg) == 0))
        fprintf(to, "status %s with %zu errors\n", weft_status_text(st), diag_errors(dg));
    for (size_t i = 0; i < diag_count(dg); i++)
        seen[diag_at(dg, i).code] = true;
    fclose(to);
    if (g->parts.n && chdir("/") == 0)
        remove_files(g, dir);
    strbuf_free(&input);
    diag_destroy(dg);
    arena_destroy(a);
    return said;
}

/* ---- the whole folder ---- */

static bool needs_a_model(const char *code)
{
    for (size_t i = 0; i < sizeof with_a_model / sizeof *with_a_model; i++)
        if (strcmp(code, with_a_model[i]) == 0)
            return true;
    return false;
}

/* Codes without a case, or wrongly said to have none. */
static int check_codes(const golden_run *r)
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
    printf("%d cases, %d wrong; %d codes seen, %d without a case\n", r->n_case, r->n_bad, n_seen,
           n_none);
    return n_none;
}

int main(int argc, char **argv)
{
    golden_run r = {.run = run, .update = argc == 3 && strcmp(argv[1], "--update") == 0};
    if (argc != 2 && !r.update)
        golden_stop("usage", "golden [--update] FOLDER");
    golden_each(argv[argc - 1], golden_file, &r);
    return check_codes(&r) + r.n_bad && !r.update ? EXIT_FAILURE : EXIT_SUCCESS;
}
