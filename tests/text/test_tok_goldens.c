/* test_tok_goldens.c - recorded ids and texts of real tokenizer families.
 *
 * A small part of them is in data/ and always runs. The whole runs where the folder ../shared of
 * the project stands beside the source tree, else that test says that it was skipped. */
#include "runtime/text/tok_image.h"
#include "tests/text/goldens.h"
#include "tests/base/suite.h"

static const char *const families[] = {
    "gpt2",
    "llama3",
    "qwen2",
    "smollm",
    "tekken",
    "deepseek-llm",
    "deepseek-v3",
    "llama2",
    "phi3",
    "gemma",
    "mistral-metaspace",
    "t5",
    "albert",
};

static const char *const vectors[] = {
    "deepseek-llm", "falcon", "gpt-2", "llama-spm", "phi-3", "starcoder",
};

static bool exists(const char *path)
{
    return access(path, R_OK) == 0;
}

static tok *open_or_fail(const char *path)
{
    weft_diag *dg = diag_create();
    tok *t = NULL;
    weft_status status = tok_open(dg, path, &t);
    if (status != WEFT_OK)
        diag_print(dg, stderr, false);
    ck_assert_msg(status == WEFT_OK, "%s cannot be opened", path);
    diag_destroy(dg);
    return t;
}

/* The same tokenizer after the way to bytes and back. *image must outlive it. */
static tok *through_image(const tok *t, strbuf *image)
{
    weft_diag *dg = diag_create();
    tok *again = NULL;
    tok_image_write(t, image);
    weft_status status = tok_image_open(dg, "a program", strbuf_view(image), &again);
    if (status != WEFT_OK)
        diag_print(dg, stderr, false);
    ck_assert_int_eq(status, WEFT_OK);
    diag_destroy(dg);
    return again;
}

/* What the cases cannot show: every token, and those with a meaning. */
static void expect_same(const tok *a, const tok *b)
{
    size_t n_a, n_b;
    ck_assert_int_eq(tok_vocab_size(a), tok_vocab_size(b));
    for (int32_t id = 0; id < tok_vocab_size(a); id++) {
        ck_assert(tok_has(a, id) == tok_has(b, id));
        ck_assert(str_eq(tok_text(a, id), tok_text(b, id)));
        ck_assert(tok_is_special(a, id) == tok_is_special(b, id));
        ck_assert_int_eq(tok_find(a, tok_text(a, id)), tok_find(b, tok_text(a, id)));
    }
    ck_assert_int_eq(tok_bos(a), tok_bos(b));
    ck_assert_int_eq(tok_eos(a), tok_eos(b));
    ck_assert(tok_adds_bos(a) == tok_adds_bos(b));
    ck_assert(str_eq(tok_chat_template(a), tok_chat_template(b)));
    const int32_t *ends_a = tok_ends(a, &n_a), *ends_b = tok_ends(b, &n_b);
    ck_assert_uint_eq(n_a, n_b);
    ck_assert(n_a == 0 || memcmp(ends_a, ends_b, n_a * sizeof *ends_a) == 0);
}

/* One folder with cases.jsonl, decode.jsonl and a tokenizer, whichever of them are there. */
static void run_folder(const char *folder, const char *tokenizer, bool gguf)
{
    char path[512];
    strbuf image = {0};
    tok *both[2] = {open_or_fail(tokenizer)};
    both[1] = through_image(both[0], &image);
    expect_same(both[0], both[1]);
    for (int i = 0; i < 2; i++) {
        golden_count count = {0};
        snprintf(path, sizeof path, "%s/cases.jsonl", folder);
        golden_cases(both[i], path, gguf, &count);
        snprintf(path, sizeof path, "%s/decode.jsonl", folder);
        if (exists(path))
            golden_decode(both[i], path, &count);
        tok_close(both[i]);
        ck_assert_msg(count.n_case > 0 && count.n_failed == 0, "%s%s: %zu of %zu cases fail",
                      tokenizer, i ? " (image)" : "", count.n_failed, count.n_case);
    }
    strbuf_free(&image);
}

static void run_family(const char *root, const char *family)
{
    char folder[512], tokenizer[600];
    snprintf(folder, sizeof folder, "%s/%s", root, family);
    snprintf(tokenizer, sizeof tokenizer, "%s/tokenizer.json", folder);
    if (exists(tokenizer))
        run_folder(folder, tokenizer, false);
    snprintf(tokenizer, sizeof tokenizer, "%s/vocab.gguf", folder);
    if (exists(tokenizer))
        run_folder(folder, tokenizer, true);
}

START_TEST(a_part_of_each_family)
{
    static const char *const kept[] = {"llama3", "llama2"};
    for (size_t i = 0; i < COUNT_OF(kept); i++)
        run_family(WEFT_SOURCE_DIR "/tests/text/data", kept[i]);
}
END_TEST

START_TEST(whole_family)
{
    if (exists(WEFT_SHARED "/tokenizers"))
        run_family(WEFT_SHARED "/tokenizers", families[_i]);
    else
        printf("skipped: the whole cases of %s, ../shared is not there\n", families[_i]);
}
END_TEST

START_TEST(ggml_vectors)
{
    char path[3][512];
    static const char *const ends[] = {"", ".inp", ".out"};
    strbuf image = {0};
    for (size_t k = 0; k < 3; k++)
        snprintf(path[k], sizeof path[k], "%s/tokenizer-vectors/ggml-vocab-%s.gguf%s", WEFT_SHARED,
                 vectors[_i], ends[k]);
    if (!exists(path[0])) {
        printf("skipped: the vectors of %s, ../shared is not there\n", vectors[_i]);
        return;
    }
    tok *both[2] = {open_or_fail(path[0])};
    both[1] = through_image(both[0], &image);
    expect_same(both[0], both[1]);
    for (int i = 0; i < 2; i++) {
        golden_count count = {0};
        golden_vectors(both[i], path[1], path[2], &count);
        tok_close(both[i]);
        ck_assert_msg(count.n_case > 0 && count.n_failed == 0, "%s%s: %zu of %zu cases fail",
                      vectors[_i], i ? " (image)" : "", count.n_failed, count.n_case);
    }
    strbuf_free(&image);
}
END_TEST

START_TEST(a_real_model)
{
    const char *model = getenv("WEFT_SMOLLM2");
    if (model && exists(model) && exists(WEFT_SHARED "/tokenizers/smollm2-real"))
        run_folder(WEFT_SHARED "/tokenizers/smollm2-real", model, true);
    else
        printf("skipped: SmolLM2, WEFT_SMOLLM2 does not name its GGUF file\n");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("tok_goldens");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, a_part_of_each_family);
    tcase_add_loop_test(tc, whole_family, 0, (int)COUNT_OF(families));
    tcase_add_loop_test(tc, ggml_vectors, 0, (int)COUNT_OF(vectors));
    tcase_add_test(tc, a_real_model);
    return suite_run("tok_goldens", tc, SUITE_FORK);
}
