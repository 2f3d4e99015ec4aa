/* test_gguf.c - the suite of runtime/formats/gguf.c: what it reads, and what it refuses. */
#include "tests/formats/files.h"

enum { ALIGN = 32 };

/* Every type of value, two tensors; 4 * 6 and 2 * 18 bytes of data. *out_head: bytes of header. */
static void make_good(strbuf *b, uint32_t version, size_t *out_head)
{
    put_head(b, version, 2, 19);
    put_key_str(b, "general.architecture", "toy");
    put_key_u32(b, "toy.block_count", 3);
    static const struct {
        const char *name;
        uint32_t type;
        str raw;
    } scalars[] = {
        {"u8", 0, STR("\xff")},
        {"i8", 1, STR("\xff")},
        {"u16", 2, STR("\xfe\xff")},
        {"i16", 3, STR("\xfe\xff")},
        {"i32", 5, STR("\xfd\xff\xff\xff")},
        {"f32", 6, STR("\0\0\x20\xc0")},
        {"bool", 7, STR("\1")},
        {"u64", 10, STR("\xff\xff\xff\xff\xff\xff\xff\xff")},
        {"i64", 11, STR("\xff\xff\xff\xff\xff\xff\xff\xff")},
        {"f64", 12, STR("\0\0\0\0\0\0\xf8\x3f")},
    };
    for (size_t i = 0; i < COUNT_OF(scalars); i++) {
        put_text(b, scalars[i].name);
        put_u32(b, scalars[i].type);
        strbuf_put(b, scalars[i].raw);
    }
    put_text(b, "tokens"); /* strings, one of them not UTF-8, one empty, one with a NUL */
    put_u32(b, 9);
    put_u32(b, 8);
    put_u64(b, 4);
    put_text(b, "a");
    put_text(b, "\xff");
    put_text(b, "");
    put_u64(b, 3);
    strbuf_put(b, STR("b\0c"));
    put_text(b, "scores");
    put_u32(b, 9);
    put_u32(b, 6);
    put_u64(b, 2);
    strbuf_put(b, STR("\0\0\x80\x3f\0\0\0\x40"));
    put_text(b, "empty");
    put_u32(b, 9);
    put_u32(b, 7);
    put_u64(b, 0);
    put_text(b, "nested"); /* [[7, 8], [], ["x"]] */
    put_u32(b, 9);
    put_u32(b, 9);
    put_u64(b, 3);
    put_u32(b, 0);
    put_u64(b, 2);
    strbuf_put(b, STR("\7\10"));
    put_u32(b, 5);
    put_u64(b, 0);
    put_u32(b, 8);
    put_u64(b, 1);
    put_text(b, "x");
    put_key_str(b, "blank", "");
    put_key_u32(b, "general.alignment", ALIGN);
    put_key_str(b, "toy.name", "toy");
    put_tensor(b, "f", 2, (uint64_t[]){3, 2}, 0, 0);
    put_tensor(b, "q", 1, (uint64_t[]){64}, 2, ALIGN);
    *out_head = b->n;
    put_padding(b, ALIGN);
    strbuf_fill(b, 'f', 24);
    put_padding(b, ALIGN);
    strbuf_fill(b, 'q', 36);
}

static model_file *open_bytes(weft_diag *dg, const strbuf *b)
{
    model_file *mf = NULL;
    expect_ok(dg, model_file_open_memory(dg, b->p, b->n, "mem.gguf", &mf));
    return mf;
}

static int64_t int_of(const model_file *mf, const char *name)
{
    int64_t x;
    ck_assert_msg(value_int(model_file_key(mf, str_of(name)), &x), "%s", name);
    return x;
}

START_TEST(every_type_of_value_is_read)
{
    weft_diag *dg = diag_create();
    for (uint32_t version = 2; version <= 3; version++) {
        strbuf b = {0};
        size_t head;
        make_good(&b, version, &head);
        model_file *mf = open_bytes(dg, &b);
        ck_assert_int_eq(model_file_format(mf), MODEL_GGUF);
        ck_assert_uint_eq(model_file_arch_count(mf), 1);
        ck_assert(str_eqz(model_file_arch(mf, 0), "toy"));
        ck_assert_int_eq(int_of(mf, "block_count"), 3);
        ck_assert_int_eq(int_of(mf, "/toy.block_count"), 3);
        ck_assert_int_eq(int_of(mf, "/u8"), 255);
        ck_assert_int_eq(int_of(mf, "/i8"), -1);
        ck_assert_int_eq(int_of(mf, "/u16"), 65534);
        ck_assert_int_eq(int_of(mf, "/i16"), -2);
        ck_assert_int_eq(int_of(mf, "/i32"), -3);
        ck_assert_int_eq(int_of(mf, "/i64"), -1);
        ck_assert(model_file_key(mf, STR("/u64"))->as.u == UINT64_MAX);
        ck_assert(model_file_key(mf, STR("/bool"))->as.b);
        double f;
        ck_assert(value_float(model_file_key(mf, STR("/f32")), &f) && f == -2.5);
        ck_assert(value_float(model_file_key(mf, STR("/f64")), &f) && f == 1.5);
        str s;
        ck_assert(value_str(model_file_key(mf, STR("name")), &s) && str_eqz(s, "toy"));
        ck_assert(value_str(model_file_key(mf, STR("/blank")), &s) && s.n == 0);
        ck_assert_ptr_null(model_file_key(mf, STR("u8")));
        ck_assert_ptr_null(model_file_key(mf, STR("/toy")));
        ck_assert_ptr_null(model_file_key(mf, STR("/")));
        ck_assert_ptr_null(model_file_key(mf, STR("")));
        ck_assert_uint_eq(value_count(model_file_keys(mf)), 19);
        ck_assert_ptr_null(model_file_folder(mf));
        model_file_close(mf);
        strbuf_free(&b);
    }
    diag_destroy(dg);
}
END_TEST

START_TEST(arrays_are_views_into_the_file)
{
    weft_diag *dg = diag_create();
    strbuf b = {0};
    size_t head;
    make_good(&b, 3, &head);
    model_file *mf = open_bytes(dg, &b);
    const value *tokens = model_file_key(mf, STR("/tokens"));
    const str *strs = value_strs(tokens);
    ck_assert_uint_eq(value_count(tokens), 4);
    ck_assert(str_eqz(strs[0], "a") && str_eqz(strs[1], "\xff") && strs[2].n == 0);
    ck_assert(str_eq(strs[3], STR("b\0c")));
    ck_assert(strs[0].p > b.p && strs[0].p < b.p + b.n);
    const value *scores = model_file_key(mf, STR("/scores"));
    ck_assert_int_eq(scores->item, VT_F32);
    value two = value_at(scores, 1);
    ck_assert_double_eq(two.as.f, 2.0);
    ck_assert_uint_eq(value_count(model_file_key(mf, STR("/empty"))), 0);
    const value *nested = model_file_key(mf, STR("/nested"));
    ck_assert_uint_eq(value_count(nested), 3);
    value first = value_at(nested, 0), eight = value_at(&first, 1), third = value_at(nested, 2);
    ck_assert_int_eq(eight.as.i, 8);
    ck_assert(str_eqz(value_strs(&third)[0], "x"));
    model_file_close(mf);
    strbuf_free(&b);
    diag_destroy(dg);
}
END_TEST

START_TEST(tensors_are_found_slowest_dimension_first)
{
    weft_diag *dg = diag_create();
    strbuf b = {0}, text = {0};
    size_t head;
    make_good(&b, 3, &head);
    model_file *mf = open_bytes(dg, &b);
    ck_assert_uint_eq(model_file_tensor_count(mf), 2);
    const model_tensor *f = model_file_tensor(mf, STR("f")), *q = model_file_tensor(mf, STR("q"));
    ck_assert_ptr_eq(f, model_file_tensor_at(mf, 0));
    ck_assert_ptr_eq(q, model_file_tensor_at(mf, 1));
    ck_assert_ptr_null(model_file_tensor(mf, STR("F")));
    ck_assert(f->type == DT_F32 && f->rank == 2 && f->shape[0] == 2 && f->shape[1] == 3);
    ck_assert(f->elems == 6 && f->bytes == 24 && f->offset % ALIGN == 0);
    ck_assert_ptr_eq(f->data, b.p + f->offset);
    ck_assert(memcmp(f->data, "ffffffffffffffffffffffff", 24) == 0);
    ck_assert(q->type == DT_Q4_0 && q->bytes == 36 && *(const char *)q->data == 'q');
    model_tensor_describe(&text, f);
    ck_assert_str_eq(text.p, "F32 [2, 3]");
    strbuf_free(&text);
    model_file_close(mf);
    strbuf_free(&b);
    diag_destroy(dg);
}
END_TEST

/* However much of the file is left: an error with a place, never a crash, never a model. */
START_TEST(truncation_at_every_byte_is_refused)
{
    strbuf b = {0};
    size_t head;
    make_good(&b, 3, &head);
    for (size_t n = 0; n < b.n; n++) {
        weft_diag *dg = diag_create();
        model_file *mf = NULL;
        /* An exact copy, so that the address sanitizer sees a read past its end. */
        char *cut = malloc(n ? n : 1);
        memcpy(cut, b.p, n);
        weft_status status = model_file_open_memory(dg, cut, n, "cut.gguf", &mf);
        if (status == WEFT_OK || mf || diag_at(dg, 0).code != W1005)
            ck_abort_msg("%zu of %zu bytes: %s", n, b.n, printed(dg, false));
        free(cut);
        diag_destroy(dg);
    }
    strbuf_free(&b);
}
END_TEST

/* Any single byte of the header changed: an error or a model, but no crash. */
START_TEST(any_changed_byte_is_survived)
{
    strbuf b = {0};
    size_t head;
    make_good(&b, 3, &head);
    char *copy = malloc(b.n);
    for (size_t at = 0; at < head; at++)
        for (int x = 1; x < 256; x += x < 4 || x > 250 ? 1 : 41) {
            weft_diag *dg = diag_create();
            model_file *mf = NULL;
            memcpy(copy, b.p, b.n);
            copy[at] = (char)(copy[at] ^ x);
            weft_status status = model_file_open_memory(dg, copy, b.n, "changed.gguf", &mf);
            if ((status == WEFT_OK) != (mf != NULL) || (status != WEFT_OK) != (diag_count(dg) == 1))
                ck_abort_msg("byte %zu changed by %d", at, x);
            model_file_close(mf);
            diag_destroy(dg);
        }
    free(copy);
    strbuf_free(&b);
}
END_TEST

static void expect_bytes_fail(weft_diag *dg, strbuf *b, weft_code code, const char *part)
{
    model_file *mf = NULL;
    ck_assert_int_ne(model_file_open_memory(dg, b->p, b->n, "bad.gguf", &mf), WEFT_OK);
    ck_assert_ptr_null(mf);
    expect_one(dg, code, part);
    diag_reset(dg);
    strbuf_reset(b);
}

START_TEST(versions_and_magic_are_told_apart)
{
    weft_diag *dg = diag_create();
    strbuf b = {0};
    put_head(&b, 1, 0, 0);
    expect_bytes_fail(dg, &b, W1007, "bad.gguf: is of GGUF version 1, expected 2 or 3");
    put_head(&b, 4, 0, 0);
    expect_bytes_fail(dg, &b, W1007, "version 4, expected 2 or 3");
    put_head(&b, 0, 0, 0);
    expect_bytes_fail(dg, &b, W1007, "version 0");
    put_head(&b, 0x03000000, 0, 0);
    expect_bytes_fail(dg, &b, W1007, "is a big-endian GGUF file (its version reads 0x03000000)");
    strbuf_put(&b, STR("GGML\3\0\0\0"));
    expect_bytes_fail(dg, &b, W1011, "begins with 47 47 4d 4c, not with \"GGUF\"");
    strbuf_free(&b);
    diag_destroy(dg);
}
END_TEST

START_TEST(impossible_counts_are_refused_before_memory_is_spent)
{
    weft_diag *dg = diag_create();
    strbuf b = {0};
    put_head(&b, 3, 0, UINT64_C(1) << 63);
    expect_bytes_fail(dg, &b, W1005,
                      "claims 9223372036854775808 keys at byte 24, but the file has "
                      "only 0 bytes more");
    put_head(&b, 3, UINT64_C(1) << 63, 0);
    expect_bytes_fail(dg, &b, W1005, "claims 9223372036854775808 tensors");
    put_head(&b, 3, 0, 1);
    put_u64(&b, UINT64_MAX);
    strbuf_fill(&b, 'k', 20);
    expect_bytes_fail(dg, &b, W1005,
                      "bad.gguf: key number 0: the name at byte 32 takes "
                      "18446744073709551615 bytes, but the file has only 20 more");
    put_head(&b, 3, 0, 1);
    put_text(&b, "k");
    put_u32(&b, 8);
    put_u64(&b, 1000);
    expect_bytes_fail(dg, &b, W1005,
                      "bad.gguf: key k: the string at byte 45 takes 1000 bytes, but "
                      "the file has only 0 more");
    for (uint32_t item = 0; item <= 12; item++) {
        put_head(&b, 3, 0, 1);
        put_text(&b, "k");
        put_u32(&b, 9);
        put_u32(&b, item);
        put_u64(&b, UINT64_C(1) << 61);
        strbuf_fill(&b, 1, 64);
        expect_bytes_fail(dg, &b, W1005, "bad.gguf: key k: claims 2305843009213693952 ");
    }
    strbuf_free(&b);
    diag_destroy(dg);
}
END_TEST

START_TEST(bad_keys_are_named)
{
    weft_diag *dg = diag_create();
    strbuf b = {0};
    put_head(&b, 3, 0, 1);
    put_text(&b, "k");
    put_u32(&b, 13);
    strbuf_fill(&b, 0, 8);
    expect_bytes_fail(dg, &b, W1006, "key k: the type at byte 33 is 13, the last known is 12");
    put_head(&b, 3, 0, 1);
    put_text(&b, "k");
    put_u32(&b, 7);
    strbuf_putc(&b, 2);
    expect_bytes_fail(dg, &b, W1006, "key k: the bool at byte 37 is 2, not 0 or 1");
    put_head(&b, 3, 0, 1);
    put_text(&b, "");
    strbuf_fill(&b, 0, 8);
    expect_bytes_fail(dg, &b, W1006, "key number 0: the name at byte 24 is empty");
    put_head(&b, 3, 0, 1);
    put_u64(&b, 3);
    strbuf_put(&b, STR("a\0b"));
    strbuf_fill(&b, 0, 8);
    expect_bytes_fail(dg, &b, W1006, "the name at byte 24 has a NUL in it");
    put_head(&b, 3, 0, 1);
    put_u64(&b, 70000);
    strbuf_fill(&b, 'x', 70010);
    expect_bytes_fail(dg, &b, W1006, "has 70000 bytes, at most 65535 are allowed");
    put_head(&b, 3, 0, 3);
    put_key_u32(&b, "a", 1);
    put_key_u32(&b, "b", 1);
    put_key_u32(&b, "a", 1);
    expect_bytes_fail(dg, &b, W1010, "bad.gguf: key a stands twice");
    static const uint32_t bad_alignment[] = {0, 3, 48, 1u << 25, UINT32_MAX};
    for (size_t i = 0; i < COUNT_OF(bad_alignment); i++) {
        put_head(&b, 3, 0, 1);
        put_key_u32(&b, "general.alignment", bad_alignment[i]);
        expect_bytes_fail(dg, &b, W1006, "expected a power of two up to 16777216");
    }
    put_head(&b, 3, 0, 1);
    put_key_str(&b, "general.alignment", "32");
    expect_bytes_fail(dg, &b, W1006, "general.alignment is of type str, not u32");
    put_head(&b, 3, 0, 1);
    put_key_u32(&b, "general.architecture", 1);
    expect_bytes_fail(dg, &b, W1006, "general.architecture is of type u32");
    put_head(&b, 3, 0, 1);
    put_text(&b, "deep");
    put_u32(&b, 9);
    for (int i = 0; i < 9; i++) {
        put_u32(&b, 9);
        put_u64(&b, 1);
    }
    strbuf_fill(&b, 0, 64);
    expect_bytes_fail(dg, &b, W1102, "key deep: the array at byte 124 is too deep");
    strbuf_free(&b);
    diag_destroy(dg);
}
END_TEST

/* One tensor of a file with 64 bytes of data. */
static void make_tensor(strbuf *b, uint32_t rank, const uint64_t *sizes, uint32_t type,
                        uint64_t offset)
{
    put_head(b, 3, 1, 0);
    put_tensor(b, "t", rank, sizes, type, offset);
    put_padding(b, ALIGN);
    strbuf_fill(b, 1, 64);
}

START_TEST(bad_tensors_are_named)
{
    static const struct {
        uint32_t rank;
        uint64_t sizes[5];
        uint32_t type;
        uint64_t offset;
        weft_code code;
        const char *part;
    } cases[] = {
        {5, {1, 1, 1, 1, 1}, 0, 0, W1006, "has 5 dimensions (byte 33), at most 4 are allowed"},
        {2, {4, 0}, 0, 0, W1006, "dimension 0 (byte 45) is 0, expected 1 to 2^63 - 1"},
        {1, {UINT64_C(1) << 63}, 0, 0, W1006, "dimension 0 (byte 37) is 9223372036854775808"},
        {1, {UINT64_MAX}, 0, 0, W1006, "dimension 0 (byte 37) is 18446744073709551615"},
        {2,
         {UINT64_C(1) << 40, UINT64_C(1) << 40},
         0,
         0,
         W1006,
         "its size overflows: F32 [1099511627776, 1099511627776]"},
        {4, {1 << 16, 1 << 16, 1 << 16, 1 << 16}, 0, 0, W1006, "its size overflows"},
        {2, {UINT64_C(1) << 31, UINT64_C(1) << 31}, 0, 0, W1006, "its size overflows"},
        {1, {33}, 2, 0, W1006, "rows of 33 numbers are not whole blocks of 32 (Q4_0)"},
        {2, {16, 2}, 2, 0, W1006, "rows of 16 numbers are not whole blocks of 32 (Q4_0)"},
        {0, {0}, 12, 0, W1006, "rows of 1 numbers are not whole blocks of 256 (Q4_K)"},
        {1, {4}, 0, 8, W1006, "its offset 8 is not a multiple of the alignment 32"},
        {1,
         {17},
         0,
         0,
         W1005,
         "its 68 bytes from byte 64 on reach past the end of the file at 128"},
        {1,
         {1},
         0,
         64,
         W1005,
         "its 4 bytes from byte 128 on reach past the end of the file at 128"},
        {1, {1}, 0, UINT64_C(1) << 62, W1005, "reach past the end of the file"},
        {1, {1}, 0, UINT64_MAX - 31, W1005, "reach past the end of the file"},
        {1,
         {4},
         31,
         0,
         W1008,
         "is stored as Q4_0_4_4 (type 31 at byte 45), which GGUF has given up"},
        {1, {4}, 4, 0, W1008, "is stored as Q4_2"},
        {1, {4}, 99, 0, W1008, "has the unknown type 99 at byte 45"},
        {1, {4}, UINT32_MAX, 0, W1008, "has the unknown type 4294967295"},
    };
    weft_diag *dg = diag_create();
    strbuf b = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        make_tensor(&b, cases[i].rank, cases[i].sizes, cases[i].type, cases[i].offset);
        expect_bytes_fail(dg, &b, cases[i].code, cases[i].part);
    }
    put_head(&b, 3, 2, 0);
    put_tensor(&b, "a", 1, (uint64_t[]){16}, 0, 0);
    put_tensor(&b, "b", 1, (uint64_t[]){8}, 0, 32);
    put_padding(&b, ALIGN);
    strbuf_fill(&b, 1, 64);
    expect_bytes_fail(dg, &b, W1006,
                      "bad.gguf: tensors a and b overlap: the first ends at byte 160, "
                      "the second begins at 128");
    put_head(&b, 3, 2, 0);
    put_tensor(&b, "a", 1, (uint64_t[]){8}, 0, 0);
    put_tensor(&b, "a", 1, (uint64_t[]){8}, 0, 32);
    put_padding(&b, ALIGN);
    strbuf_fill(&b, 1, 64);
    expect_bytes_fail(dg, &b, W1010, "tensor a stands twice; the second is tensor number 1");
    strbuf_free(&b);
    diag_destroy(dg);
}
END_TEST

START_TEST(a_tensor_may_be_one_number)
{
    weft_diag *dg = diag_create();
    strbuf b = {0};
    make_tensor(&b, 0, NULL, 0, 32);
    model_file *mf = open_bytes(dg, &b);
    const model_tensor *t = model_file_tensor(mf, STR("t"));
    ck_assert(t->rank == 0 && t->elems == 1 && t->bytes == 4);
    ck_assert_uint_eq(model_file_arch_count(mf), 0);
    ck_assert_ptr_null(model_file_key(mf, STR("block_count")));
    model_file_close(mf);
    strbuf_free(&b);
    diag_destroy(dg);
}
END_TEST

/* Every type of the table opens; those that cannot be computed with are named when asked about. */
START_TEST(unusable_types_are_listed_and_named)
{
    weft_diag *dg = diag_create();
    for (int t = 0; t < DT_COUNT; t++) {
        const dtype_row *row = dtype_row_of((dtype)t);
        if (row->ggml < 0)
            continue;
        strbuf b = {0};
        put_head(&b, 3, 1, 0);
        put_tensor(&b, "t", 1, (uint64_t[]){(uint64_t)row->elems}, (uint32_t)row->ggml, 0);
        put_padding(&b, ALIGN);
        strbuf_fill(&b, 1, row->bytes);
        model_file *mf = open_bytes(dg, &b);
        const model_tensor *x = model_file_tensor_at(mf, 0);
        ck_assert_int_eq(x->type, t);
        ck_assert_uint_eq(x->bytes, row->bytes);
        model_file_close(mf);
        strbuf_free(&b);
    }
    diag_destroy(dg);
}
END_TEST

START_TEST(alignment_is_kept_to)
{
    weft_diag *dg = diag_create();
    for (uint32_t align = 1; align <= 4096; align *= 8) {
        strbuf b = {0};
        put_head(&b, 3, 1, 1);
        put_key_u32(&b, "general.alignment", align);
        put_tensor(&b, "t", 1, (uint64_t[]){1}, 0, align);
        put_padding(&b, align);
        size_t base = b.n;
        strbuf_fill(&b, 1, align + 4);
        model_file *mf = open_bytes(dg, &b);
        ck_assert_uint_eq(model_file_tensor_at(mf, 0)->offset, base + align);
        model_file_close(mf);
        strbuf_free(&b);
    }
    diag_destroy(dg);
}
END_TEST

/* Two hundred thousand tokens: views, and a time that does not grow with their square. */
START_TEST(long_lists_are_cheap)
{
    weft_diag *dg = diag_create();
    strbuf b = {0};
    enum { N = 200000 };
    put_head(&b, 3, 0, 1);
    put_text(&b, "tokenizer.ggml.tokens");
    put_u32(&b, 9);
    put_u32(&b, 8);
    put_u64(&b, N);
    for (int i = 0; i < N; i++) {
        char word[16];
        snprintf(word, sizeof word, "w%d", i);
        put_text(&b, word);
    }
    model_file *mf = open_bytes(dg, &b);
    const str *words = value_strs(model_file_key(mf, STR("/tokenizer.ggml.tokens")));
    ck_assert(str_eqz(words[N - 1], "w199999"));
    model_file_close(mf);
    strbuf_free(&b);
    diag_destroy(dg);
}
END_TEST

SUITE_MAIN("gguf", every_type_of_value_is_read, arrays_are_views_into_the_file,
           tensors_are_found_slowest_dimension_first, truncation_at_every_byte_is_refused,
           any_changed_byte_is_survived, versions_and_magic_are_told_apart,
           impossible_counts_are_refused_before_memory_is_spent, bad_keys_are_named,
           bad_tensors_are_named, a_tensor_may_be_one_number, unusable_types_are_listed_and_named,
           alignment_is_kept_to, long_lists_are_cheap)
