/* test_fmt.c - the formatter: golden layouts, and what must hold for any text.
 *
 * `test_fmt --update` rewrites what fmt/layout.txt expects. */
#include "dsl/dsl.h"
#include "dsl/fmt.h"
#include "tests/base/suite.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const golden_path = WEFT_SOURCE_DIR "/tests/dsl/fmt/layout.txt";
static const char *const folders[] = {WEFT_SOURCE_DIR "/models", WEFT_SOURCE_DIR "/models/std",
                                      WEFT_SOURCE_DIR "/tests/dsl/arch"};

typedef void file_test(arena *a, const source *src);

/* The text of a file; nothing if it cannot be read. */
static source *open_source(arena *a, const char *path)
{
    weft_diag *dg = diag_create();
    source *src = NULL;
    if (source_open(dg, a, path, DSL_SOURCE_MAX, &src) != WEFT_OK) {
        diag_print(dg, stderr, false);
        src = source_from_text(a, path, STR(""));
    }
    diag_destroy(dg);
    return src;
}

/* Every .weft file of the library and of the checker's tests. */
static void for_each_file(file_test *test)
{
    int n = 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        DIR *dir = opendir(folders[i]);
        for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
            if (!str_ends(str_of(e->d_name), STR(".weft")))
                continue;
            arena *a = arena_create();
            str path = arena_printf(a, "%s/%s", folders[i], e->d_name);
            test(a, open_source(a, path.p));
            arena_destroy(a);
            n++;
        }
        if (dir)
            closedir(dir);
    }
    ck_assert_int_gt(n, 10);
}

/* The tree of a text, or NULL. */
static ast *parse(arena *a, str text)
{
    weft_diag *dg = diag_create();
    ast *file = NULL;
    if (dsl_parse(dg, a, source_from_text(a, "parsed", text), &file) != WEFT_OK)
        file = NULL;
    diag_destroy(dg);
    return file;
}

/* What dsl_fmt makes of a text; nothing if it fails, or has given the text back for want of proof. */
static str format(arena *a, const char *name, str text)
{
    weft_diag *dg = diag_create();
    source *src = source_from_text(a, name, text);
    ast *file = NULL;
    strbuf out = {0}, raw = {0};
    if (dsl_parse(dg, a, src, &file) != WEFT_OK || !fmt_layout(dg, a, src, file, &raw) ||
        dsl_fmt(dg, src, &out) != WEFT_OK)
        diag_print(dg, stderr, false);
    str s =
        str_eq(strbuf_view(&out), strbuf_view(&raw)) ? arena_str(a, strbuf_view(&out)) : STR("");
    strbuf_free(&out);
    strbuf_free(&raw);
    diag_destroy(dg);
    return s;
}

/* All comments, one a line, found without the help of the lexer. */
static str comments_of(arena *a, str text)
{
    strbuf out = {0};
    bool quoted = false;
    for (size_t i = 0; i < text.n; i++) {
        if (quoted && text.p[i] == '\\') {
            i++;
        } else if (text.p[i] == '"') {
            quoted = !quoted;
        } else if (text.p[i] == '#' && !quoted) {
            str c = {text.p + i, 0};
            while (i + c.n < text.n && c.p[c.n] != '\n')
                c.n++;
            i += c.n;
            while (strchr(" \t\r", c.p[c.n - 1]))
                c.n--;
            strbuf_put(&out, c);
            strbuf_putc(&out, '\n');
        }
    }
    str s = arena_str(a, strbuf_view(&out));
    strbuf_free(&out);
    return s;
}

/* Check's own messages are short; the text at fault goes to stderr. */
static void must(bool holds, const char *name, const char *what, str text)
{
    if (!holds)
        fprintf(stderr, "%s: %s:\n" STR_FMT "\n", name, what, STR_ARG(text));
    ck_assert_msg(holds, "%s: %s", name, what);
}

/* What must hold for every text that parses. Returns the new text. */
static str check_format(arena *a, const char *name, str text)
{
    ast *before = parse(a, text);
    must(before != NULL, name, "does not parse", text);
    str once = format(a, name, text);
    ast *after = parse(a, once);
    must(after && ast_equal(before, after), name, "another tree", once);
    must(str_eq(comments_of(a, text), comments_of(a, once)), name, "other comments", once);
    str twice = format(a, name, once);
    if (!str_eq(once, twice))
        fprintf(stderr, STR_FMT "\n", STR_ARG(twice));
    must(str_eq(once, twice), name, "no fixpoint", once);
    bool ends = once.n > 1 && once.p[once.n - 1] == '\n' && once.p[once.n - 2] != '\n';
    must(ends, name, "does not end in one line end", once);
    return once;
}

/* The golden file: "=== title", the input, "---", what comes out of it. */
typedef struct {
    str title, input, expected;
} golden;

/* Everything up to a line that begins with mark, which is passed over. */
static str take_until(str *rest, str mark)
{
    size_t i = 0;
    while (i < rest->n && !((i == 0 || rest->p[i - 1] == '\n') &&
                            str_starts((str){rest->p + i, rest->n - i}, mark)))
        i++;
    str head = {rest->p, i};
    i += rest->n - i < mark.n ? rest->n - i : mark.n;
    rest->p += i;
    rest->n -= i;
    return head;
}

static bool golden_next(str *rest, golden *g)
{
    if (rest->n == 0)
        return false;
    str all = take_until(rest, STR("=== "));
    const char *line = memchr(all.p, '\n', all.n);
    size_t n = line ? (size_t)(line - all.p) : all.n;
    g->title = (str){all.p, n};
    n += line != NULL;
    all = (str){all.p + n, all.n - n};
    g->input = take_until(&all, STR("---\n"));
    g->expected = all;
    return true;
}

static int golden_update(void)
{
    arena *a = arena_create();
    str rest = open_source(a, golden_path)->text;
    strbuf out = {0};
    golden g;
    take_until(&rest, STR("=== "));
    while (golden_next(&rest, &g)) {
        str made = format(a, "golden", g.input);
        strbuf_add(&out, "=== " STR_FMT "\n" STR_FMT "---\n" STR_FMT, STR_ARG(g.title),
                   STR_ARG(g.input), STR_ARG(made));
    }
    FILE *f = out.n > 0 ? fopen(golden_path, "w") : NULL;
    bool failed = !f || fwrite(out.p, 1, out.n, f) != out.n;
    failed |= f && fclose(f) != 0;
    if (failed)
        perror(golden_path);
    strbuf_free(&out);
    arena_destroy(a);
    return failed;
}

START_TEST(golden_layouts)
{
    arena *a = arena_create();
    str rest = open_source(a, golden_path)->text;
    golden g;
    int n = 0;
    take_until(&rest, STR("=== "));
    for (; golden_next(&rest, &g); n++) {
        str title = arena_str(a, g.title);
        str made = check_format(a, title.p, g.input);
        must(str_eq(made, g.expected), title.p, "differs from fmt/layout.txt", made);
    }
    ck_assert_int_gt(n, 15);
    arena_destroy(a);
}
END_TEST

/* A file of the library stays within the page, but for comments, which cannot be broken. */
static void check_file(arena *a, const source *src)
{
    str rest = check_format(a, src->name, src->text);
    for (size_t i = 0; i < rest.n;) {
        str line = {rest.p + i, 0};
        bool comment = false;
        for (; line.p[line.n] != '\n'; line.n++)
            comment |= line.p[line.n] == '#';
        ck_assert_msg(comment || fmt_width(line) <= FMT_TABLE_COLUMNS, "%s: " STR_FMT, src->name,
                      STR_ARG(line));
        i += line.n + 1;
    }
}

START_TEST(every_file_formats)
{
    for_each_file(check_file);
}
END_TEST

/* White space without line ends means nothing: squeezed or widened, a file comes out the same. */
static void check_spaces(arena *a, const source *src)
{
    fmt f = {0};
    weft_diag *dg = diag_create();
    strbuf thin = {0}, wide = {0};
    fmt_tokens_read(&f, dg, a, src);
    size_t at = 0;
    for (size_t i = 0; i < f.tokens.n; i++) {
        const fmt_token *t = &f.tokens.at[i];
        str gap = {src->text.p + at, t->begin - at};
        bool lines = memchr(gap.p, '\n', gap.n) != NULL;
        strbuf_put(&thin, lines ? gap : STR(" "));
        strbuf_put(&wide, STR("\t  "));
        strbuf_put(&wide, gap);
        strbuf_put(&thin, t->text);
        strbuf_put(&wide, t->text);
        at = t->begin + t->text.n;
    }
    str expected = format(a, src->name, src->text);
    ck_assert_msg(str_eq(expected, format(a, "thin", strbuf_view(&thin))), "%s, squeezed",
                  src->name);
    ck_assert_msg(str_eq(expected, format(a, "wide", strbuf_view(&wide))), "%s, widened",
                  src->name);
    strbuf_free(&thin);
    strbuf_free(&wide);
    VEC_FREE(&f.tokens);
    VEC_FREE(&f.comments);
    diag_destroy(dg);
}

START_TEST(spaces_do_not_matter)
{
    for_each_file(check_spaces);
}
END_TEST

/* Offsets of the tokens of a text. */
static uint32_t *offsets_of(arena *a, str text, size_t *out_n)
{
    fmt f = {0};
    weft_diag *dg = diag_create();
    fmt_tokens_read(&f, dg, a, source_from_text(a, "tokens", text));
    uint32_t *at = ARENA_ARRAY(a, uint32_t, f.tokens.n);
    *out_n = f.tokens.n;
    for (size_t i = 0; i < f.tokens.n; i++)
        at[i] = f.tokens.at[i].begin;
    VEC_FREE(&f.tokens);
    VEC_FREE(&f.comments);
    diag_destroy(dg);
    return at;
}

static str insert(arena *a, str text, size_t at, str what)
{
    strbuf b = {0};
    strbuf_put(&b, (str){text.p, at});
    strbuf_put(&b, what);
    strbuf_put(&b, (str){text.p + at, text.n - at});
    str s = arena_str(a, strbuf_view(&b));
    strbuf_free(&b);
    return s;
}

/* Everything the language has, small enough to try every place in it. */
static const char *const torture =
    "weft 1\nimport std.rope as r\n"
    "block b(x, y: f[T, d]? = 1) { return x + y }\n"
    "fragment f(a: int) {\n  let z = a ?? 1 ? -2 : 3\n}\n"
    "model m \"M\" {\n  match gguf \"a\", \"b\" if key(\"c\", 0) == 0\n  tokenizer auto\n  chat "
    "\"t\"\n"
    "  params {\n    p[l < n] : int? gguf \"k\" | \"q\" => it + 1 hf \"h\" nonzero ?? a && !b\n    "
    "e : float\n  }\n"
    "  require a % b == 0, \"no\"\n  include r.rotary(dim = d, ctx) as rot\n"
    "  weights {\n    linear w?[h < n] (d -> n * m) bias? lora(off) gguf \"a\" raw rows(0, n) hf "
    "\"b\" when !t ?? o\n"
    "    tensor t (a, b)\n    group g[l < n] gguf \"x\" | \"y\" hf \"z\" { embed i (v, d) hf \"s\" "
    "}\n"
    "    if a { tensor u (a) } else { tensor v (b) }\n    ignore hf \"i\", \"j\"\n  }\n"
    "  state { kv[l < n] : kv_cache(heads = h, k = [1, 2]) when c }\n"
    "  entry e(t: i32[T]) {\n    q, k : f[T] = split(x[1, 2].y(), [a, b]) ^ -(2)\n    repeat l in "
    "0..n + 1 {\n"
    "      if c || d { x = y } else { x = z }\n    }\n    let t = 1\n    output o[l][T] = q\n  "
    "}\n}\n";

/* A comment at every place where the tree allows one: each alone, then all of them at once. */
static void check_torture(const char *fmt_comment_text)
{
    arena *a = arena_create();
    str text = str_of(torture);
    ast *tree = parse(a, text);
    ck_assert_ptr_nonnull(tree);
    size_t n, n_place = 0;
    uint32_t *at = offsets_of(a, text, &n);
    str all = text;
    for (size_t i = n; i-- > 0;) { /* from the end, so that the offsets before stay true */
        char what[40];
        snprintf(what, sizeof what, fmt_comment_text, (int)i);
        str one = insert(a, text, at[i], str_of(what));
        ast *same = parse(a, one);
        if (!same || !ast_equal(tree, same))
            continue;
        check_format(a, "one comment", one);
        all = insert(a, all, at[i], str_of(what));
        n_place++;
    }
    ck_assert_uint_gt(n_place, n / 2);
    check_format(a, "many comments", all);
    arena_destroy(a);
}

START_TEST(comments_behind_anything)
{
    check_torture(" #%d \n");
}
END_TEST

START_TEST(comments_in_front_of_anything)
{
    check_torture("\n\n\n\t#%d\r\n\n");
}
END_TEST

/* A fixed sequence: the cases are the same on every machine. */
static uint32_t random_next(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

enum { CASES_PER_FILE = 10, EDITS_PER_CASE = 12 };

/* White space and comments strewn into a file, wherever the tree survives it. */
static void check_strewn(arena *keep, const source *src)
{
    static const char *const what[] = {" ",           "\t\t",           "\n",    "\r\n", "\n\n\n",
                                       " # behind\n", "\n  # above \n", "#\n#\n"};
    uint32_t state = (uint32_t)str_hash(src->text);
    ast *tree = parse(keep, src->text);
    for (int k = 0; k < CASES_PER_FILE; k++) {
        arena *a = arena_create();
        str text = src->text;
        for (int i = 0; i < EDITS_PER_CASE; i++) {
            size_t n;
            uint32_t *at = offsets_of(a, text, &n);
            const char *add = what[random_next(&state) % (sizeof what / sizeof *what)];
            str edited = insert(a, text, at[random_next(&state) % n], str_of(add));
            ast *same = parse(a, edited);
            if (same && ast_equal(tree, same))
                text = edited;
        }
        check_format(a, src->name, text);
        arena_destroy(a);
    }
}

START_TEST(strewn_files_format)
{
    for_each_file(check_strewn);
}
END_TEST

START_TEST(errors_write_nothing)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    strbuf out = {0};
    strbuf_put(&out, STR("kept"));
    ck_assert_int_eq(dsl_fmt(dg, source_from_text(a, "bad", STR("weft 1\nlet = 3\n")), &out),
                     WEFT_ERR_SYNTAX);
    ck_assert_uint_gt(diag_errors(dg), 0);
    ck_assert(str_eqz(strbuf_view(&out), "kept"));
    ck_assert_int_eq(dsl_fmt(dg, source_from_text(a, "empty", STR("")), &out), WEFT_ERR_SYNTAX);
    ck_assert(str_eqz(strbuf_view(&out), "kept"));
    strbuf_free(&out);
    diag_destroy(dg);
    arena_destroy(a);
}
END_TEST

START_TEST(line_ends_become_one_kind)
{
    arena *a = arena_create();
    str out = check_format(a, "crlf", STR("# a \r\nweft 1\r\n\r\nblock f(x) {\r\n  return x\r\n}"));
    ck_assert(str_eqz(out, "# a\nweft 1\n\nblock f(x) {\n  return x\n}\n"));
    arena_destroy(a);
}
END_TEST

/* Indentation can make a text longer than a source may be; that is told, not written. */
START_TEST(text_that_grows_too_long_is_refused)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    strbuf in = {0}, out = {0};
    strbuf_put(&in, STR("weft 1\nblock f(x) {\n"));
    for (int i = 0; i < 200; i++)
        strbuf_put(&in, STR("if x {\n"));
    for (int i = 0; i < 20000; i++)
        strbuf_put(&in, STR("y=x\n"));
    for (int i = 0; i < 201; i++)
        strbuf_put(&in, STR("}\n"));
    ck_assert_int_eq(dsl_fmt(dg, source_from_text(a, "deep", strbuf_view(&in)), &out),
                     WEFT_ERR_LIMIT);
    ck_assert_uint_eq(out.n, 0);
    strbuf_free(&in);
    strbuf_free(&out);
    diag_destroy(dg);
    arena_destroy(a);
}
END_TEST

/* As deep as the parser allows: brackets, operators, braces, choices. */
START_TEST(deep_texts_format)
{
    static const char *const deep[][3] = {
        {"block f(x) { y = ", "(", ")"},      {"block f(x) { y = ", "f(x, ", ")"},
        {"block f(x) { y = ", "x + ", ""},    {"block f(x) { y = ", "x ? y : ", ""},
        {"block f(x) { y = ", "-", ""},       {"block f(x) { y = ", "[x, ", "]"},
        {"block f(x) {\n", "if x { ", "\n}"}, {"block f(x) { y = ", "(x ? y : z) ? ", " : (x)"},
    };
    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++) {
        arena *a = arena_create();
        strbuf in = {0};
        strbuf_add(&in, "weft 1\n%s", deep[i][0]);
        for (int k = 0; k < 200; k++)
            strbuf_add(&in, "%s", deep[i][1]);
        strbuf_put(&in, i == 6 ? STR("x = y") : STR("x"));
        for (int k = 0; k < 200; k++)
            strbuf_add(&in, "%s", deep[i][2]);
        strbuf_put(&in, STR("\n}\n"));
        check_format(a, deep[i][1], strbuf_view(&in));
        strbuf_free(&in);
        arena_destroy(a);
    }
}
END_TEST

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--update") == 0)
        return golden_update();
    TCase *tc = tcase_create("fmt");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, golden_layouts);
    tcase_add_test(tc, every_file_formats);
    tcase_add_test(tc, spaces_do_not_matter);
    tcase_add_test(tc, comments_behind_anything);
    tcase_add_test(tc, comments_in_front_of_anything);
    tcase_add_test(tc, strewn_files_format);
    tcase_add_test(tc, errors_write_nothing);
    tcase_add_test(tc, line_ends_become_one_kind);
    tcase_add_test(tc, text_that_grows_too_long_is_refused);
    tcase_add_test(tc, deep_texts_format);
    return suite_run("fmt", tc, CK_FORK_GETENV);
}
