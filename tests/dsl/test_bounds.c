/* test_bounds.c - hostile megabytes end soon, in little memory, with a diagnostic; honest ones pass.
 *
 * Each text is checked in a process of its own, whose processor time and peak memory are read
 * afterwards. dsl.h states the limits that make these bounds hold. */
#include "dsl/dsl.h"
#include "tests/base/suite.h"
#include "tests/dsl/big_model.h"
#include <sys/resource.h>

#if defined(SUITE_ASAN)
enum { SECONDS_MAX = 40, MEGABYTES_MAX = 1536 }; /* sanitizers take ten times the time and more */
#else
enum { SECONDS_MAX = 2, MEGABYTES_MAX = 256 };
#endif

#define PARAMS                                                                                     \
    "weft 1\nmodel m {\n  match hf \"M\"\n  params {\n    a : int hf \"a\"\n    b : int hf "       \
    "\"b\"\n"                                                                                      \
    "    d : int hf \"d\"\n    p : bool hf \"p\"\n    o : int? hf \"o\"\n  }\n"
#define WEIGHTS                                                                                    \
    "  weights {\n    embed e (d, d) hf \"e\"\n    linear w (d -> d) hf \"w\"\n  }\n"              \
    "  state { kv[l < d] : kv_cache(heads = 1, k = d, v = d) }\n"
#define ENTRY "  entry decode(tokens: i32[T]) {\n    x = e(tokens)\n"
#define END "    output logits[R] = x\n  }\n}\n"
#define NO_ENTRY "}\n"

/* head, then the piece for i = 1, 2, .. n (or until the megabyte is full), then tail. In the piece
 * %1$d is i and %2$d is i - 1. */
typedef struct {
    const char *name, *head, *piece, *tail;
    int n; /* 0: as many as fit */
} hostile;

static const hostile texts[] = {
    {"unary signs", PARAMS "  let x = ", "-", "a\n" NO_ENTRY, 0},
    {"unary signs, line by line", PARAMS,
     "  let x%1$d = "
     "---------------------------------------------------------------------------------------------"
     "-"
     "a\n",
     NO_ENTRY, 0},
    {"??", PARAMS "  let x = a", " ?? a", "\n" NO_ENTRY, 0},
    {"?? on optionals", PARAMS, "  let x%1$d = o ?? o ?? o ?? o ?? o ?? o ?? o ?? %1$d\n", NO_ENTRY,
     0},
    {"a sum of 100 000 terms", PARAMS "  let x = a", " + a", "\n" NO_ENTRY, 100000},
    {"sums upon sums", PARAMS "  let x0 = a\n", "  let x%1$d = x%2$d + b * x%2$d + %1$d\n",
     NO_ENTRY, 0},
    {"20 000 parameters", "weft 1\nmodel m {\n  match hf \"M\"\n  params {\n",
     "    p%1$d : int hf \"p\"\n", "  }\n" NO_ENTRY, 20000},
    {"unknown names among many", "weft 1\nmodel m {\n  match hf \"M\"\n  params {\n",
     "    param_%1$d : int hf \"p\" ?? parem_%1$d\n", "  }\n" NO_ENTRY, 0},
    {"blocks that double", "weft 1\nblock b0(x) { return x + x }\n",
     "block b%1$d(x) { return b%2$d(b%2$d(x)) }\n", "", 31},
    {"blocks that double, with mistakes", "weft 1\nblock b0(x) { return x + nope + linear(x) }\n",
     "block b%1$d(x) { return b%2$d(b%2$d(x)) }\n", "", 31},
    {"blocks that double, 30 000 names around", PARAMS "  block b0(x) { return x + nope }\n",
     "  block b%1$d(x) { return b%2$d(b%2$d(x)) }\n", NO_ENTRY, 25000},
    {"fragments that double", "weft 1\nfragment f0(a: int) { let z = a }\n",
     "fragment f%1$d(a: int) {\n  include f%2$d(a = a) as u\n  include f%2$d(a = a + 1) as v\n}\n",
     "", 31},
    {"products of sums", PARAMS "  let s1 = a + b + d + 1\n  let s0 = s1 * s1 * s1\n",
     "  let z%1$d = s0 * s1 + (s0 + %1$d) * (s1 + a * b)\n", NO_ENTRY, 0},
    {"quotients of sums", PARAMS,
     "  let z%1$d = (a + b + %1$d) / (d + %1$d) * (a + d) / (b + %1$d)\n", NO_ENTRY, 0},
    {"powers", PARAMS "  let z0 = a + b\n", "  let z%1$d = z%2$d * z%2$d\n", NO_ENTRY, 0},
    {"one name", "weft 1\n", "a", "\n", 0},
    {"one string", "weft 1\nmodel m { chat \"", "a", "\" }\n", 0},
    {"one number", "weft 1\nmodel m { let x = 1", "0", "\n}\n", 0},
    {"one comment", "# ", "a", "\n", 0},
    {"closing braces", "weft 1\n", "}", "", 500000},
    {"closing braces, line by line", "weft 1\nmodel m {\n", "}\n", "", 500000},
    {"opening braces", "weft 1\n", "model m {\n", "", 0},
    {"opening brackets", "weft 1\nblock b(x) { return ", "(", "", 0},
    {"square brackets", "weft 1\nblock b(x) { return ", "[", "", 0},
    {"quotes", "weft 1\n", "\"", "", 0},
    {"line ends", "weft 1\n", "\n", "", 0},
    {"syntax errors", "weft 1\n", "model m { ) }\n", "", 0},
    {"bad characters", "weft 1\n", "@ ", "", 0},
    {"a list", PARAMS "  let x = [a", ", a", "]\n  let h = has(x, b)\n" NO_ENTRY, 0},
    {"arguments", "weft 1\nblock b(x) { return x(1", ", a", ") }\n", 0},
    {"a long list, asked often",
     PARAMS
     "  let x = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]\n",
     "  let h%1$d = has(x, a + %1$d)\n", NO_ENTRY, 0},
    {"truths that double", PARAMS "  let c0 = p\n", "  let c%1$d = c%2$d == (a < %1$d)\n", NO_ENTRY,
     0},
    {"choices that double", PARAMS "  let c0 = p\n", "  let c%1$d = a < %1$d ? c%2$d : !c%2$d\n",
     NO_ENTRY, 0},
    {"truths in a chain", PARAMS "  let c0 = p\n", "  let c%1$d = c%2$d && a < %1$d\n", NO_ENTRY,
     0},
    {"texts that double", PARAMS "  let s0 = \"x\"\n", "  let s%1$d = \"{s%2$d}{s%2$d}\"\n",
     NO_ENTRY, 0},
    {"long vectors", PARAMS, "  let v%1$d = iota(1000000)\n", NO_ENTRY, 0},
    {"sums of vectors", PARAMS "  let v0 = iota(1000000)\n", "  let v%1$d = v%2$d + 1.0\n",
     NO_ENTRY, 0},
    {"branches", PARAMS WEIGHTS ENTRY, "    if a < %1$d { x = w(x) }\n", END, 0},
    {"branches with else", PARAMS WEIGHTS ENTRY, "    if a < %1$d { y = x } else { x = w(x) }\n",
     END, 0},
    {"branches deep", PARAMS WEIGHTS ENTRY, "    if a < %1$d {\n    x = w(x)\n", "", 100},
    {"branches that append", PARAMS WEIGHTS ENTRY "    y = to_heads(x, 1)\n",
     "    if a < %1$d { z = append(kv[%1$d], y, y) }\n", END, 0},
    {"appends", PARAMS WEIGHTS ENTRY "    y = to_heads(x, 1)\n", "    z = append(kv[%1$d], y, y)\n",
     END, 0},
    {"cells", PARAMS "  state {\n", "    c%1$d[l < d] : kv_cache(heads = a, k = b, v = b)\n",
     "  }\n" NO_ENTRY, 0},
    {"weights", PARAMS "  weights {\n", "    linear w%1$d (d -> d) hf \"w\"\n", "  }\n" NO_ENTRY,
     0},
    {"weights of one name", PARAMS "  weights {\n",
     "    if a < %1$d { linear w (d -> d) hf \"w\" }\n", "  }\n" NO_ENTRY, 0},
    {"outputs", PARAMS WEIGHTS ENTRY, "    output o%1$d[T] = x\n", END, 0},
    {"shadows", PARAMS WEIGHTS ENTRY, "    x = x + x\n", END, 0},
    {"formals", "weft 1\nblock b(x0", ", x%1$d", ") { return x0 }\n", 0},
    {"imports", "weft 1\n", "import std.rope\n", "", 0},
    {"lines that go on", "weft 1\nmodel m {\n  params {\n    d : int\n", "      gguf \"d\"\n",
     "  }\n}\n", 0},
    {"keys", "weft 1\nmodel m {\n  params {\n    d : int gguf \"d\"\n",
     "      | \"d{d}\" => it + 1\n", "  }\n}\n", 0},
    {"transforms", PARAMS "  weights {\n    linear w (d -> d) hf \"w\"", " transpose reshape(d, d)",
     "\n  }\n" NO_ENTRY, 0},
};

static void build(const hostile *h, strbuf *out)
{
    size_t room = DSL_SOURCE_MAX - strlen(h->tail) - 64;
    strbuf_put(out, str_of(h->head));
    for (int i = 1; (h->n == 0 || i <= h->n) && out->n + strlen(h->piece) + 64 < room; i++)
        strbuf_add(out, h->piece, i, i - 1);
    strbuf_put(out, str_of(h->tail));
}

static void check(const strbuf *text)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    FILE *nowhere = fopen("/dev/null", "w");
    source *src = source_from_text(a, "t.weft", strbuf_view(text));
    weft_status st = dsl_check(dg, src, true);
    if (nowhere)
        diag_print(dg, nowhere, true);
    _exit(st == WEFT_OK ? 0 : diag_errors(dg) > 0 ? 1 : 2);
}

/* Checks the text in a child; its exit status. */
static int bounded(const char *name, const strbuf *text)
{
    struct rusage used;
    int status;
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        check(text);
    ck_assert_int_eq(wait4(pid, &status, 0, &used), pid);
    ck_assert_msg(WIFEXITED(status), "%s: ended by signal %d", name, WTERMSIG(status));
    double seconds = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                     (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
    long megabytes = used.ru_maxrss >> 10;
    if (getenv("BOUNDS_SHOW"))
        printf("%-40s %8zu bytes  exit %d  %.3f s  %ld MiB\n", name, text->n, WEXITSTATUS(status),
               seconds, megabytes);
    ck_assert_msg(seconds < SECONDS_MAX, "%s: %.2f s", name, seconds);
    ck_assert_msg(megabytes < MEGABYTES_MAX, "%s: %ld MiB", name, megabytes);
    return WEXITSTATUS(status);
}

START_TEST(hostile_texts_end_soon)
{
    strbuf text = {0};
    build(&texts[_i], &text);
    ck_assert_uint_le(text.n, DSL_SOURCE_MAX);
    ck_assert_int_le(bounded(texts[_i].name, &text), 1);
    strbuf_free(&text);
}
END_TEST

START_TEST(calls_nest_within_the_stack)
{
    strbuf text = {0};
    strbuf_add(&text, "weft 1\nblock b0(x) { return x }\n");
    for (int i = 1; i < 32; i++) {
        strbuf_add(&text, "block b%d(x) { return ", i);
        for (int k = 0; k < 240; k++)
            strbuf_add(&text, "silu(");
        strbuf_add(&text, "b%d(x)", i - 1);
        strbuf_fill(&text, ')', 240);
        strbuf_add(&text, " }\n");
    }
    ck_assert_int_eq(bounded("calls in calls", &text), 1);
    strbuf_reset(&text);
    strbuf_add(&text, "weft 1\nblock b0(x) { return x }\n");
    for (int i = 1; i < 32; i++) {
        strbuf_add(&text, "block b%d(x) { return ", i);
        strbuf_fill(&text, '-', 900);
        strbuf_add(&text, "b%d(x) }\n", i - 1);
    }
    ck_assert_int_eq(bounded("signs in calls", &text), 1);
    strbuf_free(&text);
}
END_TEST

START_TEST(a_long_name_is_not_copied_for_every_use)
{
    strbuf text = {0};
    strbuf_add(&text, "weft 1\nblock b0(f, x) { return f(f(x)) }\n");
    for (int i = 1; i < 20; i++)
        strbuf_add(&text, "block b%d(f, x) { return b%d(f, b%d(f, x)) }\n", i, i - 1, i - 1);
    strbuf_add(&text, "model m {\n  match hf \"M\"\n  params { d : int hf \"d\" }\n  weights {\n"
                      "    embed e (d, d) hf \"e\"\n    linear ");
    strbuf_fill(&text, 'w', 300000);
    strbuf_add(&text, " (d -> 2 * d) hf \"w\"\n  }\n  entry decode(tokens: i32[T]) {\n"
                      "    output x[T] = b19(");
    strbuf_fill(&text, 'w', 300000);
    strbuf_add(&text, ", e(tokens))\n  }\n}\n");
    ck_assert_int_eq(bounded("a name of 300 000 letters", &text), 1);
    strbuf_free(&text);
}
END_TEST

/* What the limits may never refuse: ten thousand lines and more of plain model text. */
START_TEST(honest_files_pass)
{
    static const size_t lines[] = {100, 1000, 10000, 16000};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        for (int kind = BIG_MANY; kind <= BIG_LONG; kind++) {
            strbuf text = {0};
            big_model(&text, (big_kind)kind, lines[i]);
            ck_assert_uint_ge(big_lines(&text), lines[i]);
            ck_assert_int_eq(bounded(kind == BIG_MANY ? "many models" : "one long model", &text),
                             0);
            strbuf_free(&text);
        }
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("bounds");
    tcase_set_timeout(tc, 600);
    tcase_add_loop_test(tc, hostile_texts_end_soon, 0, (int)COUNT_OF(texts));
    tcase_add_test(tc, calls_nest_within_the_stack);
    tcase_add_test(tc, a_long_name_is_not_copied_for_every_use);
    tcase_add_test(tc, honest_files_pass);
    return suite_run("bounds", tc, CK_FORK_GETENV);
}
