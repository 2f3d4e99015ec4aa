/* goldens.c - reading and running recorded cases. */
#include "tests/text/goldens.h"

#include "runtime/base/json_write.h"
#include "runtime/text/tok_lines.h"
#include <stdio.h>

enum { SHOWN_MAX = 5 };

strbuf golden_read(const char *path)
{
    strbuf b = {0};
    char block[1 << 16];
    size_t n;
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s cannot be read", path);
    while ((n = fread(block, 1, sizeof block, f)) > 0)
        strbuf_put(&b, (str){block, n});
    fclose(f);
    return b;
}

static void put_ids(json_writer *w, const tok_ids *ids)
{
    json_open(w, '[');
    for (size_t i = 0; i < ids->n; i++)
        json_int(w, ids->at[i]);
    json_close(w, ']');
}

static void check(golden_count *count, bool same, const char *path, const char *what, str line,
                  const char *got)
{
    if (same)
        return;
    if (count->n_failed++ < SHOWN_MAX)
        fprintf(stderr, "%s: %s\n  case %.*s\n  got  %s\n", path, what,
                line.n < 700 ? (int)line.n : 700, line.p, got);
}

static void check_ids(golden_count *count, const char *path, const char *what, str line,
                      const tok_ids *got, const tok_ids *want)
{
    strbuf text = {0};
    json_writer w = {.out = &text};
    bool same = got->n == want->n &&
                (got->n == 0 || memcmp(got->at, want->at, got->n * sizeof *got->at) == 0);
    if (!same)
        put_ids(&w, got);
    check(count, same, path, what, line, text.p);
    strbuf_free(&text);
}

static void check_text(golden_count *count, const char *path, const char *what, str line,
                       const strbuf *got, const strbuf *want)
{
    strbuf text = {0};
    json_writer w = {.out = &text};
    bool same = str_eq(strbuf_view(got), strbuf_view(want));
    if (!same)
        json_str(&w, strbuf_view(got));
    check(count, same, path, what, line, text.p);
    strbuf_free(&text);
}

typedef struct {
    tok *t;
    const char *path;
    golden_count *count;
    weft_diag *dg;
    str line;
    strbuf text, want, got;
    tok_ids ids, want_ids;
} runner;

static void runner_free(runner *r)
{
    strbuf_free(&r->text);
    strbuf_free(&r->want);
    strbuf_free(&r->got);
    VEC_FREE(&r->ids);
    VEC_FREE(&r->want_ids);
    diag_destroy(r->dg);
}

static bool has(runner *r, const char *name)
{
    str raw;
    ck_assert_int_eq(tok_line_member(r->dg, r->line, name, &raw), WEFT_OK);
    return raw.n > 0;
}

static void encode_case(runner *r, const char *name, tok_encode_flags flags)
{
    r->ids.n = r->want_ids.n = 0;
    ck_assert_int_eq(tok_line_ids(r->dg, r->line, name, &r->want_ids), WEFT_OK);
    weft_status status = tok_encode(r->dg, r->t, strbuf_view(&r->text), flags, &r->ids);
    check(r->count, status == WEFT_OK, r->path, "fails", r->line, weft_status_text(status));
    check_ids(r->count, r->path, name, r->line, &r->ids, &r->want_ids);
}

static void decode_case(runner *r, const char *name, bool skip_special)
{
    strbuf_reset(&r->want);
    strbuf_reset(&r->got);
    ck_assert_int_eq(tok_line_text(r->dg, r->line, name, &r->want), WEFT_OK);
    ck_assert_int_eq(tok_decode(r->dg, r->t, r->want_ids.at, r->want_ids.n, skip_special, &r->got),
                     WEFT_OK);
    check_text(r->count, r->path, name, r->line, &r->got, &r->want);
}

/* Calls fn for each line of a file. */
static void each_line(runner *r, void (*fn)(runner *r, bool gguf), bool gguf)
{
    strbuf file = golden_read(r->path);
    str rest = strbuf_view(&file);
    while (rest.n) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t n = end ? (size_t)(end - rest.p) : rest.n;
        r->line = (str){rest.p, n};
        rest = (str){rest.p + n + (end != NULL), rest.n - n - (end != NULL)};
        if (n)
            fn(r, gguf);
    }
    strbuf_free(&file);
}

static void run_case(runner *r, bool gguf)
{
    str raw;
    ck_assert_int_eq(tok_line_member(r->dg, r->line, "gguf", &raw), WEFT_OK);
    if (gguf && str_eqz(raw, "false"))
        return;
    r->count->n_case++;
    strbuf_reset(&r->text);
    ck_assert_int_eq(tok_line_text(r->dg, r->line, "text", &r->text), WEFT_OK);
    encode_case(r, "ids_no_special", (tok_encode_flags){.parse_special = true});
    if (!gguf && has(r, "ids_plain"))
        encode_case(r, "ids_plain", (tok_encode_flags){0});
    encode_case(r, "ids", TOK_ENCODE_DEFAULT);
    decode_case(r, "decoded", false);
    decode_case(r, "decoded_skip_special", true);
}

static void run_stream(runner *r)
{
    str raw, item;
    tok_stream *s = tok_stream_create(r->t, false);
    ck_assert_int_eq(tok_line_member(r->dg, r->line, "stream", &raw), WEFT_OK);
    raw = (str){raw.p + 1, raw.n - 1};
    for (size_t i = 0; i < r->want_ids.n && tok_line_item(&raw, &item); i++) {
        strbuf_reset(&r->want);
        strbuf_reset(&r->got);
        ck_assert(tok_line_string(item, &r->want));
        tok_stream_put(s, r->want_ids.at[i], &r->got);
        check_text(r->count, r->path, "stream", r->line, &r->got, &r->want);
    }
    strbuf_reset(&r->want);
    strbuf_reset(&r->got);
    ck_assert_int_eq(tok_line_text(r->dg, r->line, "flush", &r->want), WEFT_OK);
    tok_stream_flush(s, &r->got);
    check_text(r->count, r->path, "flush", r->line, &r->got, &r->want);
    tok_stream_destroy(s);
}

static void run_decode(runner *r, bool gguf)
{
    (void)gguf;
    r->count->n_case++;
    r->want_ids.n = 0;
    ck_assert_int_eq(tok_line_ids(r->dg, r->line, "ids", &r->want_ids), WEFT_OK);
    decode_case(r, "decoded", false);
    if (has(r, "stream"))
        run_stream(r);
}

void golden_cases(tok *t, const char *path, bool gguf, golden_count *count)
{
    runner r = {.t = t, .path = path, .count = count, .dg = diag_create()};
    each_line(&r, run_case, gguf);
    runner_free(&r);
}

void golden_decode(tok *t, const char *path, golden_count *count)
{
    runner r = {.t = t, .path = path, .count = count, .dg = diag_create()};
    each_line(&r, run_decode, false);
    runner_free(&r);
}

void golden_vectors(tok *t, const char *path_in, const char *path_out, golden_count *count)
{
    static const char mark[] = "\n__ggml_vocab_test__\n";
    weft_diag *dg = diag_create();
    strbuf in = golden_read(path_in), out = golden_read(path_out);
    tok_ids want = {0}, got = {0};
    char *ids = out.p;
    for (str rest = strbuf_view(&in); rest.n;) {
        const char *end = memmem(rest.p, rest.n, mark, sizeof mark - 1);
        size_t n = end ? (size_t)(end - rest.p) : rest.n, gap = end ? sizeof mark - 1 : 0;
        str text = {rest.p, n};
        rest = (str){rest.p + n + gap, rest.n - n - gap};
        if (!end && n == 0)
            break;
        want.n = got.n = 0;
        for (char *line = strsep(&ids, "\n"), *word; line && (word = strsep(&line, " "));)
            if (*word)
                VEC_PUSH(&want, (int32_t)strtol(word, NULL, 10));
        count->n_case++;
        ck_assert_int_eq(tok_encode(dg, t, text, (tok_encode_flags){0}, &got), WEFT_OK);
        check_ids(count, path_in, "ids", text, &got, &want);
    }
    VEC_FREE(&want);
    VEC_FREE(&got);
    strbuf_free(&in);
    strbuf_free(&out);
    diag_destroy(dg);
}
