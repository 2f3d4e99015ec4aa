/* test_gguf_split.c - the suite of runtime/formats/gguf_split.c: models in several files. */
#include "runtime/formats/gguf_write.h"
#include "tests/formats/files.h"
#include <fcntl.h>

/* What one part says; `tensor` is its only one. */
typedef struct {
    const char *file, *tensor;
    int64_t no, count, tensors;
} part;

static void write_part(fixture *fx, part s)
{
    gguf_writer *w = gguf_writer_create();
    temp_path p = temp_join(&fx->dir, s.file);
    float x = (float)s.no;
    if (s.no == 0) {
        ck_assert(gguf_writer_key(w, STR("general.architecture"), value_of_str(STR("toy"))));
        ck_assert(gguf_writer_key(w, STR("toy.ctx"), value_of_int(VT_U32, 99)));
    }
    ck_assert(gguf_writer_key(w, STR("split.no"), value_of_int(VT_I64, s.no)));
    ck_assert(gguf_writer_key(w, STR("split.count"), value_of_int(VT_U16, s.count)));
    ck_assert(gguf_writer_key(w, STR("split.tensors.count"), value_of_int(VT_I32, s.tensors)));
    gguf_writer_tensor_data(w, str_of(s.tensor), DT_F32, 1, (int64_t[]){1}, &x);
    expect_ok(fx->dg, gguf_writer_write(fx->dg, w, p.path));
    gguf_writer_destroy(w);
}

static const part good[] = {{"m-00001-of-00003.gguf", "a", 0, 3, 3},
                            {"m-00002-of-00003.gguf", "b", 1, 3, 3},
                            {"m-00003-of-00003.gguf", "c", 2, 3, 3}};

START_TEST(any_part_opens_the_whole)
{
    fixture fx = fixture_create();
    model_hash first = {0};
    for (size_t i = 0; i < 3; i++)
        write_part(&fx, good[i]);
    for (size_t i = 0; i < 3; i++) {
        temp_path p = temp_join(&fx.dir, good[i].file);
        model_file *mf = open_ok(fx.dg, p.path);
        int64_t ctx;
        ck_assert(value_int(model_file_key(mf, STR("ctx")), &ctx) && ctx == 99);
        ck_assert_uint_eq(model_file_part_count(mf), 3);
        ck_assert_uint_eq(model_file_tensor_count(mf), 3);
        for (int k = 0; k < 3; k++) {
            const model_tensor *t = model_file_tensor(mf, str_of(good[k].tensor));
            ck_assert_int_eq(t->part, k);
            ck_assert(*(const float *)t->data == (float)k);
            ck_assert(strstr(model_file_part(mf, (size_t)k).path, good[k].file) != NULL);
        }
        model_hash h = model_file_hash(mf);
        if (i == 0)
            first = h;
        ck_assert(h.lo == first.lo && h.hi == first.hi);
        model_file_close(mf);
    }
    fixture_destroy(&fx);
}
END_TEST

START_TEST(parts_that_do_not_fit_are_refused)
{
    fixture fx = fixture_create();
    temp_path p = temp_join(&fx.dir, good[0].file), last = temp_join(&fx.dir, good[2].file);
    write_part(&fx, good[0]);
    write_part(&fx, good[1]);
    model_file *mf = NULL;
    ck_assert_int_ne(model_file_open(fx.dg, p.path, NULL, &mf), WEFT_OK);
    expect_one(fx.dg, W1001, "m-00003-of-00003.gguf: no such file");
    char *text = printed(fx.dg, false);
    ck_assert_msg(strstr(text, "it is part 3 of 3 of "), "%s", text);
    free(text);
    diag_reset(fx.dg);

    part wrong = good[2];
    wrong.no = 1;
    write_part(&fx, wrong);
    expect_open_fails(fx.dg, p.path, W1006,
                      "says it is part 2 of 3 (3 tensors), expected part 3 of 3 (3 tensors)");
    wrong = good[2];
    wrong.count = 4;
    write_part(&fx, wrong);
    expect_open_fails(fx.dg, p.path, W1006, "says it is part 3 of 4");
    expect_open_fails(fx.dg, last.path, W1006, "says it is part 3 of 4, but is not named so");
    wrong = good[2];
    wrong.tensors = 7;
    write_part(&fx, wrong);
    expect_open_fails(fx.dg, p.path, W1006, "(7 tensors), expected part 3 of 3 (3 tensors)");
    wrong = good[2];
    wrong.tensor = "a";
    write_part(&fx, wrong);
    expect_open_fails(fx.dg, p.path, W1010, "tensor a stands twice");
    temp_file(&fx.dir, good[2].file, STR("GGUF\3\0\0\0"));
    expect_open_fails(fx.dg, p.path, W1005, "m-00003-of-00003.gguf: the number of tensors");
    fixture_destroy(&fx);
}
END_TEST

START_TEST(counts_are_checked)
{
    fixture fx = fixture_create();
    temp_path p = temp_join(&fx.dir, "m-00001-of-00001.gguf");
    write_part(&fx, (part){"m-00001-of-00001.gguf", "a", 0, 1, 1});
    model_file_close(open_ok(fx.dg, p.path));
    write_part(&fx, (part){"m-00001-of-00001.gguf", "a", 0, 2, 2});
    expect_open_fails(fx.dg, p.path, W1006, "says it is part 1 of 2, but is not named so");
    write_part(&fx, (part){"m-00001-of-00001.gguf", "a", 0, 60000, 2});
    expect_open_fails(fx.dg, p.path, W1105, "is split into 60000 parts, the limit is 1000");
    write_part(&fx, (part){"m-00001-of-00001.gguf", "a", 0, 1, -1});
    expect_open_fails(fx.dg, p.path, W1006, "split.tensors.count is not a count");
    write_part(&fx, (part){"m-00001-of-00001.gguf", "a", INT64_MAX, 2, 2});
    expect_open_fails(fx.dg, p.path, W1006, "split.no is not a count");
    for (size_t i = 0; i < 3; i++) {
        part s = good[i];
        s.tensors = 4;
        write_part(&fx, s);
    }
    p = temp_join(&fx.dir, good[1].file);
    expect_open_fails(fx.dg, p.path, W1006, "its parts hold 3 tensors, split.tensors.count says 4");
    fixture_destroy(&fx);
}
END_TEST

START_TEST(a_descriptor_cannot_find_the_others)
{
    fixture fx = fixture_create();
    model_file *mf = NULL;
    write_part(&fx, good[1]);
    temp_path p = temp_join(&fx.dir, good[1].file);
    int fd = open(p.path, O_RDONLY);
    ck_assert_int_ne(model_file_open_fd(fx.dg, fd, "fd", NULL, &mf), WEFT_OK);
    close(fd);
    expect_one(fx.dg, W1006, "fd: is part 2 of 3; the others can be found only");
    fixture_destroy(&fx);
}
END_TEST

SUITE_MAIN("gguf_split", any_part_opens_the_whole, parts_that_do_not_fit_are_refused,
           counts_are_checked, a_descriptor_cannot_find_the_others)
