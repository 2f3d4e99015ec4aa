/* test_text.c - tokenizers of folders in the usual keys of GGUF: real families, those without keys, hostile ones. */
#include "runtime/formats/gguf_write.h"
#include "runtime/formats/safetensors_write.h"
#include "runtime/quant/job.h"
#include "tests/text/goldens.h"

static char root[64], folder[128];
static weft_diag *dg;
static arena *a;

/* The name of the folder is that of the model, by which readers know a Phi-3. */
static void use_folder(const char *name)
{
    snprintf(folder, sizeof folder, "%s/%s", root, name);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
}

static void setup(void)
{
    snprintf(root, sizeof root, "/tmp/weft-text-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    use_folder("model");
    dg = diag_create();
    a = arena_create();
}

static void teardown(void)
{
    ck_assert_int_eq(system(arena_printf(a, "rm -rf %s", root).p), 0);
    diag_destroy(dg);
    arena_destroy(a);
}

static const char *in_folder(const char *name)
{
    return arena_printf(a, "%s/%s", folder, name).p;
}

static void put_file(const char *name, str text)
{
    FILE *f = fopen(in_folder(name), "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text.p, 1, text.n, f), text.n);
    ck_assert_int_eq(fclose(f), 0);
}

/* A Llama of one layer, its weights all zero, with so many tokens. */
static void put_model(int64_t vocab)
{
    enum { WIDTH = 8, ITEMS = 12 };
    const int64_t square[] = {WIDTH, WIDTH}, table[] = {vocab, WIDTH};
    const void *zeros = arena_alloc(a, (size_t)vocab * WIDTH * sizeof(float));
    static const char *const squares[] = {
        "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
        "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj",
    };
    static const char *const norms[] = {"model.layers.0.input_layernorm.weight",
                                        "model.layers.0.post_attention_layernorm.weight",
                                        "model.norm.weight"};
    safetensors_item items[ITEMS];
    size_t n = 0;
    for (size_t i = 0; i < COUNT_OF(squares); i++)
        items[n++] = (safetensors_item){arena_printf(a, "model.layers.0.%s.weight", squares[i]).p,
                                        DT_F32, 2, square, zeros};
    for (size_t i = 0; i < COUNT_OF(norms); i++)
        items[n++] = (safetensors_item){norms[i], DT_F32, 1, square, zeros};
    items[n++] = (safetensors_item){"model.embed_tokens.weight", DT_F32, 2, table, zeros};
    items[n++] = (safetensors_item){"lm_head.weight", DT_F32, 2, table, zeros};
    ck_assert_int_eq(safetensors_write(dg, in_folder("model.safetensors"), items, n, NULL),
                     WEFT_OK);
    put_file("config.json",
             arena_printf(a,
                          "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\","
                          "\"hidden_size\":8,\"intermediate_size\":8,\"num_hidden_layers\":1,"
                          "\"num_attention_heads\":2,\"num_key_value_heads\":2,\"vocab_size\":%lld,"
                          "\"rms_norm_eps\":1e-5,\"max_position_embeddings\":64}",
                          (long long)vocab));
}

/* The folder as out.gguf. */
static weft_status convert(void)
{
    model_file *mf = NULL;
    quant_job *j = NULL;
    quant_write_options how = {.threads = 1};
    weft_status st = model_file_open(dg, folder, NULL, &mf);
    if (st == WEFT_OK)
        st = quant_job_create(dg, mf, NULL, &j);
    if (st == WEFT_OK)
        st = quant_job_choose(dg, j, mix_find("F16"), NULL, NULL);
    if (st == WEFT_OK)
        st = quant_job_write(dg, j, in_folder("out.gguf"), &how);
    quant_job_destroy(j);
    model_file_close(mf);
    return st;
}

static model_file *open_out(void)
{
    model_file *mf = NULL;
    ck_assert_int_eq(model_file_open(dg, in_folder("out.gguf"), NULL, &mf), WEFT_OK);
    return mf;
}

/* The tokenizer that programs see which do not know tokenizer.huggingface.json. */
static tok *open_usual(void)
{
    model_file *mf = open_out(), *usual = NULL;
    gguf_writer *w = gguf_writer_create();
    tok *t = NULL;
    const value *keys = model_file_keys(mf);
    for (size_t i = 0; i < value_count(keys); i++)
        if (!str_eqz(keys->as.object.members[i].name, "tokenizer.huggingface.json"))
            gguf_writer_key(w, keys->as.object.members[i].name, keys->as.object.members[i].v);
    ck_assert_int_eq(gguf_writer_write(dg, w, in_folder("usual.gguf")), WEFT_OK);
    gguf_writer_destroy(w);
    model_file_close(mf);
    ck_assert_int_eq(model_file_open(dg, in_folder("usual.gguf"), NULL, &usual), WEFT_OK);
    ck_assert_int_eq(tok_open_model(dg, usual, &t), WEFT_OK);
    model_file_close(usual);
    return t;
}

static str text_key(const model_file *mf, const char *name)
{
    str s = {0};
    return value_str(model_file_key(mf, str_of(name)), &s) ? arena_str(a, s) : STR("none");
}

static size_t warnings_of(weft_code code)
{
    size_t n = 0;
    for (size_t i = 0; i < diag_count(dg); i++)
        n += diag_at(dg, i).code == code;
    return n;
}

/* ---- families ---- */

/* clang-format off */
static const struct {
    const char *family, *model, *pre;
    bool part; /* W1212: details that the keys do not hold */
} families[] = {
    {"gpt2",              "gpt2",  "gpt-2",        false},
    {"llama3",            "gpt2",  "llama-bpe",    false},
    {"qwen2",             "gpt2",  "qwen2",        false},
    {"smollm",            "gpt2",  "smollm",       false},
    {"tekken",            "gpt2",  "tekken",       false},
    {"deepseek-llm",      "gpt2",  "deepseek-llm", false},
    {"deepseek-v3",       "gpt2",  "deepseek-v3",  false},
    {"llama2",            "llama", "default",      false},
    {"phi3",              "llama", "default",      true},
    {"gemma",             "llama", "default",      false},
    {"mistral-metaspace", "llama", "default",      true},
    {"t5",                "t5",    "default",      true},
    {"albert",            "none",  "none",         false},
};
/* clang-format on */

static void take_family(const char *from)
{
    static const char *const files[] = {"tokenizer.json", "tokenizer_config.json"};
    tok *t;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        const char *path = arena_printf(a, "%s/%s", from, files[i]).p;
        if (access(path, R_OK) != 0)
            continue;
        strbuf text = golden_read(path);
        put_file(files[i], strbuf_view(&text));
        strbuf_free(&text);
    }
    ck_assert_int_eq(tok_open(dg, in_folder("tokenizer.json"), &t), WEFT_OK);
    put_model(tok_vocab_size(t) + 3); /* models have more rows than tokens */
    tok_close(t);
}

static void check_family(const char *from, size_t row)
{
    use_folder(families[row].family);
    take_family(from);
    ck_assert_int_eq(convert(), WEFT_OK);
    bool none = strcmp(families[row].model, "none") == 0;
    ck_assert_uint_eq(warnings_of(W1211), none);
    ck_assert_int_eq(warnings_of(W1212) > 0, families[row].part);
    model_file *mf = open_out();
    ck_assert(str_eqz(text_key(mf, "/tokenizer.ggml.model"), families[row].model));
    ck_assert(str_eqz(text_key(mf, "/tokenizer.ggml.pre"), families[row].pre));
    ck_assert_ptr_nonnull(model_file_key(mf, STR("/tokenizer.huggingface.json")));
    model_file_close(mf);
    const char *cases = arena_printf(a, "%s/cases.jsonl", from).p;
    golden_count whole = {0}, usual = {0};
    tok *t;
    ck_assert_int_eq(tok_open(dg, in_folder("out.gguf"), &t), WEFT_OK);
    golden_cases(t, cases, false, &whole);
    tok_close(t);
    ck_assert(whole.n_case > 0 && whole.n_failed == 0);
    if (none)
        return;
    t = open_usual();
    golden_cases(t, cases, true, &usual);
    tok_close(t);
    ck_assert_msg(usual.n_case > 0 && usual.n_failed == 0, "%s: %zu of %zu cases fail", from,
                  usual.n_failed, usual.n_case);
}

START_TEST(a_part_of_each_family)
{
    check_family(WEFT_SOURCE_DIR "/tests/text/data/llama3", 1);
    diag_reset(dg);
    check_family(WEFT_SOURCE_DIR "/tests/text/data/llama2", 7);
}
END_TEST

START_TEST(whole_family)
{
    const char *from = arena_printf(a, "%s/tokenizers/%s", WEFT_SHARED, families[_i].family).p;
    if (access(from, R_OK) == 0)
        check_family(from, (size_t)_i);
    else
        printf("skipped: the whole cases of %s, ../shared is not there\n", families[_i].family);
}
END_TEST

/* ---- small ones ---- */

#define BYTES                                                                                      \
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"                       \
    "\"decoder\":{\"type\":\"ByteLevel\"},"
#define A_MODEL                                                                                    \
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}"

static void take_json(const char *json)
{
    put_file("tokenizer.json", str_of(json));
    put_model(16);
}

START_TEST(holes_and_merges)
{
    take_json(
        "{\"added_tokens\":[{\"id\":9,\"content\":\"<s>\",\"special\":true,\"normalized\":false},"
        "{\"id\":8,\"content\":\"[PAD4]\",\"special\":false,\"normalized\":false}]," BYTES
        "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"ba\":3},"
        "\"merges\":[\"a b\",\"b a\",\"a b\"]}}");
    put_file("special_tokens_map.json", STR("{\"eos_token\":{\"content\":\"<s>\"}}"));
    ck_assert_int_eq(convert(), WEFT_OK);
    ck_assert_uint_eq(diag_warnings(dg), 0);
    model_file *mf = open_out();
    const value *tokens = model_file_key(mf, STR("/tokenizer.ggml.tokens")),
                *types = model_file_key(mf, STR("/tokenizer.ggml.token_type")),
                *merges = model_file_key(mf, STR("/tokenizer.ggml.merges"));
    static const int64_t wanted[] = {1, 1, 1, 1, 5, 5, 5, 5, 4, 3, 5, 5, 5, 5, 5, 5};
    ck_assert_uint_eq(value_count(tokens), 16); /* as many as the model has rows */
    ck_assert(str_eqz(value_strs(tokens)[4], "[PAD4]_") &&
              str_eqz(value_strs(tokens)[8], "[PAD4]"));
    for (size_t i = 0; i < 16; i++) {
        value v = value_at(types, i);
        int64_t type;
        ck_assert(value_int(&v, &type) && type == wanted[i]);
    }
    ck_assert_uint_eq(value_count(merges), 2); /* a merge counts where it stands last */
    ck_assert(str_eqz(value_strs(merges)[0], "b a") && str_eqz(value_strs(merges)[1], "a b"));
    int64_t eos;
    ck_assert(value_int(model_file_key(mf, STR("/tokenizer.ggml.eos_token_id")), &eos) && eos == 9);
    model_file_close(mf);
}
END_TEST

START_TEST(no_keys)
{
    static const struct {
        const char *json, *why;
    } cases[] = {
        {"{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
         "\"pattern\":"
         "{\"Regex\":\"[aeiou]\"}},{\"type\":\"ByteLevel\",\"use_regex\":false,\"add_prefix_"
         "space\":false}]}," A_MODEL "}",
         "the way it splits texts"},
        {"{" A_MODEL "}", "neither byte-level"},
        {"{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"vocab\":{\"a\":0,\"##b\":1}}}",
         "WordPiece"},
        {"{\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"a\"}," BYTES A_MODEL "}",
         "plain text"},
        {"{\"added_tokens\":[{\"id\":4000000,\"content\":\"x\"}]," BYTES A_MODEL "}",
         "the model has 16"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        diag_reset(dg);
        take_json(cases[i].json);
        ck_assert_int_eq(convert(), WEFT_OK);
        ck_assert_uint_eq(warnings_of(W1211), 1);
        ck_assert_msg(strstr(diag_at(dg, 0).message.p, cases[i].why), "%s",
                      diag_at(dg, 0).message.p);
        model_file *mf = open_out();
        ck_assert_ptr_null(model_file_key(mf, STR("/tokenizer.ggml.model")));
        ck_assert_ptr_nonnull(model_file_key(mf, STR("/tokenizer.huggingface.json")));
        model_file_close(mf);
    }
}
END_TEST

START_TEST(hostile)
{
    static const char *const cases[] = {
        "",
        "{}",
        "[]",
        "{\"model\":{}}",
        "{\"model\":{\"type\":\"BPE\"}}",
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}}",
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":99999999999,\"b\":-1},\"merges\":[]}}",
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"a\":1},\"merges\":[\"a a\"]}}",
        "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"\":0,\"a\":1,\"aa\":2},"
        "\"merges\":[\"a a\",\"a a\"]}}",
        "{" BYTES "\"model\":{\"type\":\"BPE\",\"vocab\":{\"\":0,\" \":1,\"a\":2,\" a\":3},"
        "\"merges\":[[\" \",\"a\"]]}}",
        "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",-1],[\"a\",1e308],[\"\",0]],\"unk_id\":"
        "1}}",
        "{\"model\":{\"type\":\"Unigram\",\"vocab\":[]}}",
        "{\"added_tokens\":[{\"id\":3,\"content\":\"\"},{\"id\":1,\"content\":\"a\"},"
        "{\"id\":1,\"content\":\"q\"},{\"content\":\"r\"}]," BYTES A_MODEL "}",
        "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
        "\"pattern\":"
        "{\"Regex\":\"(a*)*(a*)*(a*)*[^ -~]x\"}},{\"type\":\"ByteLevel\"}]}," A_MODEL "}",
        "{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":"
        "\"A\"}},"
        "{\"SpecialToken\":{\"id\":\"a\"}},{\"SpecialToken\":{\"id\":\"a\"}}],\"special_tokens\":"
        "{\"a\":{\"id\":\"a\",\"ids\":[0,1,2],\"tokens\":[\"a\"]}}}," BYTES A_MODEL "}",
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        diag_reset(dg);
        take_json(cases[i]);
        weft_status st = convert(); /* done or refused */
        ck_assert_int_eq(st == WEFT_OK, diag_failed(dg) == 0);
        if (st != WEFT_OK)
            continue;
        tok *t;
        ck_assert_int_eq(tok_open(dg, in_folder("out.gguf"), &t), WEFT_OK);
        tok_close(t);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("text");
    TCase *c = tcase_create("all");
    tcase_set_timeout(c, 300);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, a_part_of_each_family);
    tcase_add_loop_test(c, whole_family, 0, (int)COUNT_OF(families));
    tcase_add_test(c, holes_and_merges);
    tcase_add_test(c, no_keys);
    tcase_add_test(c, hostile);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
#if defined(SUITE_ASAN)
    srunner_set_fork_status(r, CK_NOFORK);
#endif
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
