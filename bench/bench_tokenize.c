/* bench_tokenize.c - how long does it take to open a tokenizer, from its file and as a built program does, and to tokenize 50 MB
 * on one thread; and how long does Hugging Face's package take?
 *
 *     bench_tokenize [TOKENIZER.json [TEXT]]
 *
 * Without TEXT the lines of this tree's own sources and recorded texts (English, code, 98 languages)
 * are drawn until there are 50 MB. Both get the same documents of about 64 kB. The package runs where
 * $WEFT_PYTHON, or python3, can import `tokenizers`; the last line says how many times as fast Weft is. */
#include "bench/bench.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/text/tok_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TEXT_BYTES = 50 * 1000 * 1000, DOC_BYTES = 64 << 10, N_RUN = 3 };

typedef VEC(str) docs;

static void add_lines(docs *lines, arena *a, const char *path)
{
    weft_diag *dg = diag_create();
    source *src;
    if (source_open(dg, a, path, TEXT_BYTES, &src) == WEFT_OK)
        for (str rest = src->text; rest.n;) {
            const char *end = memchr(rest.p, '\n', rest.n);
            size_t n = end ? (size_t)(end - rest.p) + 1 : rest.n;
            VEC_PUSH(lines, ((str){rest.p, n}));
            rest = (str){rest.p + n, rest.n - n};
        }
    diag_destroy(dg);
}

static void draw_text(strbuf *out, arena *a)
{
    static const char *const paths[] = {
        "dsl/LANGUAGE.md",     "README.md",
        "runtime/text/tok.c",  "runtime/text/tok_pre.c",
        "runtime/cli/flags.c", "runtime/base/diag_print.c",
        "models/llama.weft",   "tests/text/data/llama3/cases.jsonl",
        "tests/cli/golden.sh", "tests/text/data/llama2/cases.jsonl",
    };
    docs lines = {0};
    uint64_t state = 42;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        add_lines(&lines, a, arena_printf(a, "%s/%s", WEFT_SOURCE_DIR, paths[i]).p);
    while (lines.n && out->n < TEXT_BYTES) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        strbuf_put(out, lines.at[(state >> 33) % lines.n]);
    }
    VEC_FREE(&lines);
}

static docs cut(str text)
{
    docs out = {0};
    while (text.n) {
        size_t n = text.n < DOC_BYTES ? text.n : DOC_BYTES;
        const char *end = n < text.n ? memrchr(text.p, '\n', n) : NULL;
        if (end)
            n = (size_t)(end - text.p) + 1;
        while (n < text.n && ((unsigned char)text.p[n] & 0xc0) == 0x80)
            n++;
        VEC_PUSH(&out, ((str){text.p, n}));
        text = (str){text.p + n, text.n - n};
    }
    return out;
}

static uint64_t run_weft(tok *t, const docs *d, size_t *out_n)
{
    weft_diag *dg = diag_create();
    tok_ids ids = {0};
    uint64_t begin = clock_ns();
    *out_n = 0;
    for (size_t i = 0; i < d->n; i++) {
        ids.n = 0;
        if (tok_encode(dg, t, d->at[i], (tok_encode_flags){.parse_special = true}, &ids) !=
            WEFT_OK) {
            diag_print(dg, stderr, false);
            exit(1);
        }
        *out_n += ids.n;
    }
    uint64_t ns = clock_ns() - begin;
    VEC_FREE(&ids);
    diag_destroy(dg);
    return ns;
}

/* 0: the package is not there. */
static uint64_t run_package(const char *tokenizer, const docs *d, size_t *out_n)
{
    char path[] = "/tmp/weft-bench-XXXXXX", command[2048], line[128];
    const char *python = getenv("WEFT_PYTHON");
    unsigned long long ns = 0, n = 0;
    int fd = mkstemp(path);
    FILE *f = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (!f)
        return 0;
    for (size_t i = 0; i < d->n; i++) {
        fwrite(d->at[i].p, 1, d->at[i].n, f);
        fputc(0, f);
    }
    fclose(f);
    snprintf(command, sizeof command, "%s '%s/bench/bench_tokenize.py' '%s' '%s' 2>/dev/null",
             python ? python : "python3", WEFT_SOURCE_DIR, tokenizer, path);
    FILE *p = popen(command, "r");
    if (p && (!fgets(line, sizeof line, p) || sscanf(line, "%llu %llu", &ns, &n) != 2))
        ns = 0;
    if (p)
        pclose(p);
    unlink(path);
    *out_n = (size_t)n;
    return ns;
}

static void print(const char *variant, const char *shape, uint64_t *ns, int n)
{
    bench_print("tokenize", variant, shape, bench_sum_up(ns, n), 0);
}

/* Opening: the file at path, or the image of t. */
static uint64_t open_ns(const char *path, str image)
{
    weft_diag *dg = diag_create();
    tok *t;
    uint64_t begin = clock_ns();
    weft_status st = path ? tok_open(dg, path, &t) : tok_image_open(dg, "image", image, &t);
    uint64_t ns = clock_ns() - begin;
    if (st != WEFT_OK) {
        diag_print(dg, stderr, false);
        exit(1);
    }
    tok_close(t);
    diag_destroy(dg);
    return ns;
}

static void bench_open(const char *path, const tok *t)
{
    enum { N_OPEN = 9 };
    strbuf image = {0};
    uint64_t file[N_OPEN], own[N_OPEN];
    char shape[64];
    tok_image_write(t, &image);
    for (int i = 0; i < N_OPEN; i++) {
        file[i] = open_ns(path, STR(""));
        own[i] = open_ns(NULL, strbuf_view(&image));
    }
    snprintf(shape, sizeof shape, "%dtokens", (int)tok_vocab_size(t));
    bench_print("open", "file", shape, bench_sum_up(file, N_OPEN), 0);
    snprintf(shape, sizeof shape, "%dtokens,%.1fMB", (int)tok_vocab_size(t), (double)image.n / 1e6);
    bench_print("open", "image", shape, bench_sum_up(own, N_OPEN), 0);
    strbuf_free(&image);
}

int main(int argc, char **argv)
{
    const char *path =
        argc > 1 ? argv[1] : WEFT_SOURCE_DIR "/tests/text/data/llama3/tokenizer.json";
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    strbuf text = {0};
    tok *t = NULL;
    char shape[64];
    uint64_t ns[N_RUN], package;
    size_t n = 0, n_package = 0;
    if (tok_open(dg, path, &t) != WEFT_OK) {
        diag_print(dg, stderr, false);
        return 1;
    }
    docs given = {0};
    if (argc > 2)
        add_lines(&given, a, argv[2]);
    for (size_t i = 0; i < given.n; i++)
        strbuf_put(&text, given.at[i]);
    if (argc <= 2)
        draw_text(&text, a);
    docs d = cut(strbuf_view(&text));
    for (int i = 0; i < N_RUN; i++)
        ns[i] = run_weft(t, &d, &n);
    package = run_package(path, &d, &n_package);
    bench_print_heading();
    bench_open(path, t);
    snprintf(shape, sizeof shape, "%.1fMB,%zuids", (double)text.n / 1e6, n);
    double median = bench_sum_up(ns, N_RUN).median_ns;
    print("weft", shape, ns, N_RUN);
    snprintf(shape, sizeof shape, "%.1fMB,%zuids", (double)text.n / 1e6, n_package);
    if (package) {
        print("huggingface", shape, &package, 1);
        printf("weft %.1f MB/s, huggingface %.1f MB/s: %.1f times as fast%s\n",
               (double)text.n * 1e3 / median, (double)text.n * 1e3 / (double)package,
               (double)package / median, n == n_package ? "" : ", but other ids");
    } else {
        printf("weft %.1f MB/s; the Python package `tokenizers` is not there to compare with\n",
               (double)text.n * 1e3 / median);
    }
    VEC_FREE(&given);
    VEC_FREE(&d);
    strbuf_free(&text);
    tok_close(t);
    arena_destroy(a);
    diag_destroy(dg);
    return 0;
}
