/* test_hf_folder.c - the suite of runtime/formats/hf_folder.c and hf_config.c. */
#include "runtime/formats/safetensors_write.h"
#include "tests/formats/files.h"
#include <fcntl.h>

#define CONFIG "{\"architectures\": [\"ToyForCausalLM\"], \"hidden_size\": 64}"
#define INDEX "model.safetensors.index.json"

/* A file with one tensor of this name. */
static temp_path write_tensor(const fixture *fx, const char *file, const char *tensor)
{
    temp_path p = temp_join(&fx->dir, file);
    float x = 5;
    const safetensors_item item = {tensor, DT_F32, 1, (int64_t[]){1}, &x};
    expect_ok(fx->dg, safetensors_write(fx->dg, p.path, &item, 1, NULL));
    return p;
}

static fixture make_folder(void)
{
    fixture fx = fixture_create();
    temp_file(&fx.dir, "config.json", STR(CONFIG));
    temp_file(&fx.dir, "tokenizer.json", STR("{}"));
    write_tensor(&fx, "model.safetensors", "w");
    return fx;
}

START_TEST(the_folder_and_the_files_in_it_open_alike)
{
    static const char *const names[] = {"", "/", "/config.json", "/model.safetensors",
                                        "/tokenizer.json"};
    fixture fx = make_folder();
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        temp_path p;
        snprintf(p.path, sizeof p.path, "%s%s", fx.dir.path, names[i]);
        model_file *mf = open_ok(fx.dg, p.path);
        ck_assert_int_eq(model_file_format(mf), MODEL_HF);
        ck_assert_uint_eq(model_file_arch_count(mf), 1);
        ck_assert(str_eqz(model_file_arch(mf, 0), "ToyForCausalLM"));
        int64_t d;
        ck_assert(value_int(model_file_key(mf, STR("hidden_size")), &d) && d == 64);
        ck_assert_ptr_nonnull(model_file_tensor(mf, STR("w")));
        ck_assert(model_file_has_sibling(mf, "tokenizer.json"));
        ck_assert(!model_file_has_sibling(mf, "chat_template.jinja"));
        arena *a = arena_create();
        const char *sibling;
        expect_ok(fx.dg, model_file_sibling(fx.dg, mf, a, "tokenizer.json", &sibling));
        ck_assert_int_eq(access(sibling, R_OK), 0);
        ck_assert_int_ne(model_file_sibling(fx.dg, mf, a, "../x", &sibling), WEFT_OK);
        expect_one(fx.dg, W1009, "\"../x\" is not the plain name of a file in ");
        diag_reset(fx.dg);
        arena_destroy(a);
        model_file_close(mf);
    }
    /* Relative to the folder itself. */
    int here = open(".", O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(chdir(fx.dir.path), 0);
    model_file_close(open_ok(fx.dg, "config.json"));
    model_file_close(open_ok(fx.dg, "."));
    ck_assert_int_eq(fchdir(here), 0);
    close(here);
    fixture_destroy(&fx);
}
END_TEST

START_TEST(another_safetensors_file_opens_alone)
{
    fixture fx = make_folder();
    temp_path p = write_tensor(&fx, "adapter_model.safetensors", "lora");
    model_file *mf = open_ok(fx.dg, p.path);
    ck_assert_uint_eq(model_file_tensor_count(mf), 1);
    ck_assert_ptr_nonnull(model_file_tensor(mf, STR("lora")));
    ck_assert_uint_eq(model_file_arch_count(mf), 0);
    ck_assert_ptr_null(model_file_key(mf, STR("hidden_size")));
    ck_assert(!model_file_has_sibling(mf, "tokenizer.json"));
    model_file_close(mf);

    temp_path config = temp_join(&fx.dir, "config.json");
    unlink(config.path);
    p = temp_join(&fx.dir, "model.safetensors");
    mf = open_ok(fx.dg, p.path);
    ck_assert_uint_eq(model_file_arch_count(mf), 0);
    model_file_close(mf);
    expect_open_fails(fx.dg, fx.dir.path, W1001, "/config.json: no such file");
    fixture_destroy(&fx);
}
END_TEST

START_TEST(keys_are_paths_text_config_first)
{
    fixture fx = make_folder();
    temp_file(&fx.dir, "config.json",
              STR("{\"architectures\": null, \"a\": 1, \"b\": 2, \"head_dim\": null,"
                  " \"rope_scaling\": null, \"only_top\": {\"x\": 5},"
                  " \"text_config\": {\"a\": 10, \"b\": null, \"deep\": {\"x\": {\"y\": 0.5}}}}"));
    model_file *mf = open_ok(fx.dg, fx.dir.path);
    int64_t x;
    double f;
    ck_assert_uint_eq(model_file_arch_count(mf), 0);
    ck_assert(value_int(model_file_key(mf, STR("a")), &x) && x == 10);
    ck_assert(value_int(model_file_key(mf, STR("/a")), &x) && x == 1);
    ck_assert_int_eq(model_file_key(mf, STR("b"))->type, VT_NULL);
    ck_assert(value_int(model_file_key(mf, STR("/b")), &x) && x == 2);
    ck_assert(value_float(model_file_key(mf, STR("deep.x.y")), &f) && f == 0.5);
    ck_assert(value_int(model_file_key(mf, STR("only_top.x")), &x) && x == 5);
    ck_assert(value_int(model_file_key(mf, STR("text_config.a")), &x) && x == 10);
    ck_assert_int_eq(model_file_key(mf, STR("head_dim"))->type, VT_NULL);
    ck_assert_int_eq(model_file_key(mf, STR("rope_scaling.factor"))->type, VT_NULL);
    ck_assert_ptr_null(model_file_key(mf, STR("rope_parameters.factor")));
    ck_assert_ptr_null(model_file_key(mf, STR("absent")));
    model_file_close(mf);
    fixture_destroy(&fx);
}
END_TEST

START_TEST(bad_configs_are_refused)
{
    static const struct {
        const char *config;
        weft_code code;
        const char *part;
    } cases[] = {
        {"", W1014, "config.json: line 1"},
        {"[]", W1006, "config.json: holds array, not a JSON object"},
        {"null", W1006, "holds null, not a JSON object"},
        {"{\"architectures\": \"x\"}", W1006, "architectures is of type str, not a list"},
        {"{\"architectures\": [1]}", W1006, "architectures holds a value of type i64"},
        {"{\"a\": 1, \"a\": 2}", W1010, "the name \"a\" stands twice"},
    };
    fixture fx = make_folder();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        temp_file(&fx.dir, "config.json", str_of(cases[i].config));
        expect_open_fails(fx.dg, fx.dir.path, cases[i].code, cases[i].part);
    }
    strbuf deep = {0};
    strbuf_fill(&deep, '[', 1 << 20);
    temp_file(&fx.dir, "config.json", strbuf_view(&deep));
    expect_open_fails(fx.dg, fx.dir.path, W1102,
                      "config.json: nested more than 64 deep at byte 64");
    strbuf_fill(&deep, ' ', 4 << 20);
    temp_file(&fx.dir, "config.json", strbuf_view(&deep));
    expect_open_fails(fx.dg, fx.dir.path, W1101, "the limit is 4194304");
    strbuf_free(&deep);
    fixture_destroy(&fx);
}
END_TEST

/* A folder with two shards; the index is the test's to write. */
static fixture make_shards(const char *index)
{
    fixture fx = fixture_create();
    temp_file(&fx.dir, "config.json", STR(CONFIG));
    write_tensor(&fx, "model-00001-of-00002.safetensors", "a");
    write_tensor(&fx, "model-00002-of-00002.safetensors", "b");
    temp_file(&fx.dir, INDEX, str_of(index));
    return fx;
}

START_TEST(shards_make_one_model)
{
    fixture fx = make_shards("{\"metadata\": {\"total_size\": 8}, \"weight_map\": {"
                             "\"b\": \"model-00002-of-00002.safetensors\","
                             "\"a\": \"model-00001-of-00002.safetensors\"}}");
    temp_path by_index = temp_join(&fx.dir, INDEX),
              by_shard = temp_join(&fx.dir, "model-00002-of-00002.safetensors");
    const char *const paths[] = {fx.dir.path, by_index.path, by_shard.path};
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        model_file *mf = open_ok(fx.dg, paths[i]);
        ck_assert_uint_eq(model_file_part_count(mf), 2);
        ck_assert_int_eq(model_file_tensor(mf, STR("a"))->part, 0);
        ck_assert_int_eq(model_file_tensor(mf, STR("b"))->part, 1);
        ck_assert(str_eqz(model_file_arch(mf, 0), "ToyForCausalLM"));
        model_file_close(mf);
    }
    fixture_destroy(&fx);
}
END_TEST

START_TEST(an_index_that_lies_is_refused)
{
    static const struct {
        const char *index;
        weft_code code;
        const char *part;
    } cases[] = {
        {"{}", W1006, "weight_map is missing or not an object"},
        {"[", W1014, INDEX ": line 1"},
        {"{\"weight_map\": {\"a\": 1}}", W1006, "tensor a: the name of its shard is not a string"},
        {"{\"weight_map\": {\"a\": \"gone.safetensors\"}}", W1001,
         "gone.safetensors: no such file"},
        {"{\"weight_map\": {\"a\": \"../x.safetensors\"}}", W1009,
         "\"../x.safetensors\" is not the plain name of a file"},
        {"{\"weight_map\": {\"a\": \"/etc/passwd\"}}", W1009, "\"/etc/passwd\" is not the plain"},
        {"{\"weight_map\": {\"a\": \"sub/x.safetensors\"}}", W1009, "is not the plain name"},
        {"{\"weight_map\": {\"a\": \"..\"}}", W1009, "\"..\" is not the plain name"},
        {"{\"weight_map\": {\"a\": \".\"}}", W1009, "\".\" is not the plain name"},
        {"{\"weight_map\": {\"a\": \"\"}}", W1009, "\"\" is not the plain name"},
        {"{\"weight_map\": {\"a\": \"link.safetensors\"}}", W1009,
         "link.safetensors is a link to /etc/passwd, outside the model's folder"},
        {"{\"weight_map\": {\"a\": \"up/../config.json\"}}", W1009, "is not the plain name"},
        {"{\"weight_map\": {\"a\": \"config.json\"}}", W1101, "config.json: claims a header of"},
        {"{\"weight_map\": {\"b\": \"model-00001-of-00002.safetensors\"}}", W1006,
         "puts tensor b in model-00001-of-00002.safetensors, but it is not there"},
        {"{\"weight_map\": {\"a\": \"model-00002-of-00002.safetensors\","
         "\"b\": \"model-00001-of-00002.safetensors\"}}",
         W1006, "but it is in "},
        {"{\"weight_map\": {\"a\": \"model-00001-of-00002.safetensors\", \"c\": "
         "\"again.safetensors\"}}",
         W1010, "tensor a stands twice"},
    };
    fixture fx = make_shards("");
    temp_path link = temp_join(&fx.dir, "link.safetensors");
    ck_assert_int_eq(symlink("/etc/passwd", link.path), 0);
    write_tensor(&fx, "again.safetensors", "a");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        temp_file(&fx.dir, INDEX, str_of(cases[i].index));
        expect_open_fails(fx.dg, fx.dir.path, cases[i].code, cases[i].part);
    }
    temp_path index = temp_join(&fx.dir, INDEX);
    unlink(index.path);
    expect_open_fails(fx.dg, fx.dir.path, W1011,
                      "holds neither model.safetensors nor model.safetensors.index.json");
    fixture_destroy(&fx);
}
END_TEST

START_TEST(a_missing_shard_is_named_with_who_named_it)
{
    fixture fx = make_shards("{\"weight_map\": {\"a\": \"gone.safetensors\"}}");
    model_file *mf = NULL;
    ck_assert_int_ne(model_file_open(fx.dg, fx.dir.path, NULL, &mf), WEFT_OK);
    char *text = printed(fx.dg, false);
    ck_assert_msg(strstr(text, INDEX " names this shard"), "%s", text);
    free(text);
    fixture_destroy(&fx);
}
END_TEST

START_TEST(links_inside_the_folder_are_fine)
{
    fixture fx = fixture_create();
    temp_file(&fx.dir, "real.json", STR(CONFIG));
    write_tensor(&fx, "real.safetensors", "w");
    temp_path config = temp_join(&fx.dir, "config.json"),
              model = temp_join(&fx.dir, "model.safetensors");
    ck_assert_int_eq(symlink("real.json", config.path), 0);
    ck_assert_int_eq(symlink("real.safetensors", model.path), 0);
    model_file_close(open_ok(fx.dg, fx.dir.path));
    /* So is a folder that is itself reached by a link. */
    fixture other = fixture_create();
    temp_path folder = temp_join(&other.dir, "model");
    ck_assert_int_eq(symlink(fx.dir.path, folder.path), 0);
    model_file_close(open_ok(fx.dg, folder.path));
    fixture_destroy(&other);
    fixture_destroy(&fx);
}
END_TEST

/* REPO/snapshots/REVISION/config.json -> ../../blobs/0123, as huggingface_hub lays files out. */
START_TEST(the_hub_cache_links_into_its_blobs)
{
    fixture fx = fixture_create();
    static const char *const folders[] = {"blobs", "snapshots", "snapshots/rev", "elsewhere"};
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        temp_path p = temp_join(&fx.dir, folders[i]);
        ck_assert_int_eq(mkdir(p.path, 0755), 0);
    }
    temp_file(&fx.dir, "blobs/0123", STR(CONFIG));
    write_tensor(&fx, "blobs/4567", "w");
    temp_path rev = temp_join(&fx.dir, "snapshots/rev"),
              config = temp_join(&fx.dir, "snapshots/rev/config.json"),
              model = temp_join(&fx.dir, "snapshots/rev/model.safetensors");
    ck_assert_int_eq(symlink("../../blobs/0123", config.path), 0);
    ck_assert_int_eq(symlink("../../blobs/4567", model.path), 0);
    model_file_close(open_ok(fx.dg, rev.path));
    model_file_close(open_ok(fx.dg, config.path));

    unlink(config.path);
    temp_file(&fx.dir, "elsewhere/0123", STR(CONFIG));
    ck_assert_int_eq(symlink("../../elsewhere/0123", config.path), 0);
    expect_open_fails(fx.dg, rev.path, W1009, "outside the model's folder");
    fixture_destroy(&fx);
}
END_TEST

SUITE_MAIN("hf_folder", the_folder_and_the_files_in_it_open_alike,
           another_safetensors_file_opens_alone, keys_are_paths_text_config_first,
           bad_configs_are_refused, shards_make_one_model, an_index_that_lies_is_refused,
           a_missing_shard_is_named_with_who_named_it, links_inside_the_folder_are_fine,
           the_hub_cache_links_into_its_blobs)
