/* test_image_parts.c - the suites of runtime/program/tensors.c and facts.c. */
#include "runtime/base/checksum.h"
#include "runtime/program/adapter_image.h"
#include "runtime/program/facts.h"
#include "runtime/program/tensors.h"
#include "tests/base/suite.h"

/* ---- tensors ---- */

enum { FIRST = 100, SECOND = 64, WEIGHTS = 192 };

static unsigned char stored[WEIGHTS];

static strbuf make_tensors(void)
{
    strbuf out = {0};
    for (int i = 0; i < WEIGHTS; i++)
        stored[i] = (unsigned char)(i < FIRST || i >= 128 ? i * 7 + 1 : 0);
    image_tensor t[] = {
        {.name = STR("embed"),
         .type = DT_F32,
         .offset = 0,
         .bytes = FIRST,
         .sum = checksum(stored, FIRST)},
        {.name = STR("head"),
         .type = DT_BF16,
         .offset = 128,
         .bytes = SECOND,
         .sum = checksum(stored + 128, SECOND)},
    };
    image_tensors_write(t, 2, (model_hash){5, 6}, &out);
    return out;
}

static weft_status open_tensors(weft_diag *dg, const void *data, size_t n, uint64_t bytes,
                                image_source *out)
{
    image_part p = {.kind = IMAGE_TENSORS, .data = data, .bytes = n};
    return image_source_open(dg, "story", &p, stored, bytes, out);
}

START_TEST(tensors_come_back)
{
    strbuf b = make_tensors();
    weft_diag *dg = diag_create();
    image_source s;
    ck_assert_int_eq(open_tensors(dg, b.p, b.n, WEIGHTS, &s), WEFT_OK);
    const weight_source *src = &s.base;
    ck_assert_uint_eq(src->kind->count(src), 2);
    weight_tensor t = src->kind->tensor(src, 1);
    ck_assert(str_eqz(t.name, "head") && t.type == DT_BF16 && t.bytes == SECOND);
    ck_assert_ptr_eq(t.data, stored + 128);
    ck_assert_uint_eq(src->kind->identity(src).hi, 6);
    ck_assert_int_eq(src->kind->check(dg, src), WEFT_OK);
    ck_assert_int_eq(image_source_check(dg, &s), WEFT_OK);
    for (int i = 0; i < WEIGHTS; i++) {
        stored[i] ^= 4;
        ck_assert_msg(image_source_check(dg, &s) != WEFT_OK, "byte %d", i);
        stored[i] ^= 4;
    }
    ck_assert(strstr(diag_shown(dg), "its weight 'embed' has been changed"));
    diag_destroy(dg);
    strbuf_free(&b);
}
END_TEST

/* The directory's sum protects the table; but what it says must not lead out of the image whatever it is. */
START_TEST(tables_of_strangers)
{
    strbuf b = make_tensors();
    weft_diag *dg = diag_create();
    image_source s;
    for (size_t n = 0; n < b.n; n++) {
        char *cut = malloc(n ? n : 1);
        memcpy(cut, b.p, n);
        if (open_tensors(dg, cut, n, WEIGHTS, &s) == WEFT_OK)
            for (uint64_t i = 0; i < s.n; i++) {
                image_tensor t = image_source_tensor(&s, i);
                ck_assert(t.offset + t.bytes <= WEIGHTS);
                ck_assert(t.name.p + t.name.n <= cut + n);
            }
        free(cut);
        diag_reset(dg);
    }
    for (size_t i = 0; i < b.n; i++)
        for (int bit = 0; bit < 8; bit++) {
            b.p[i] ^= (char)(1 << bit);
            if (open_tensors(dg, b.p, b.n, WEIGHTS, &s) == WEFT_OK)
                for (uint64_t k = 0; k < s.n; k++) {
                    image_tensor t = image_source_tensor(&s, k);
                    ck_assert(t.offset <= WEIGHTS && t.bytes <= WEIGHTS - t.offset);
                    ck_assert((unsigned)t.type < DT_COUNT);
                    ck_assert(t.name.p >= b.p);
                    ck_assert(t.name.p + t.name.n <= b.p + b.n);
                }
            b.p[i] ^= (char)(1 << bit);
            diag_reset(dg);
        }
    ck_assert_int_ne(open_tensors(dg, b.p, b.n, WEIGHTS - 64, &s), WEFT_OK);
    ck_assert_int_ne(open_tensors(dg, b.p, b.n, WEIGHTS + 64, &s), WEFT_OK);
    ck_assert(strstr(diag_shown(dg), "story"));
    diag_destroy(dg);
    strbuf_free(&b);
}
END_TEST

/* ---- adapters ---- */

static strbuf make_adapter(void)
{
    static const float a[2 * 8] = {1, 2, 3}, b[4 * 2] = {4, 5, 6};
    adapter_part parts[] = {
        {.weight = "blk[0].q",
         .index = -1,
         .rank = 2,
         .in = 8,
         .out = 4,
         .a = a,
         .b = b,
         .scale = 0.5},
        {.weight = "blk[1].up",
         .index = 3,
         .rank = 1,
         .in = 8,
         .out = 4,
         .a = a,
         .b = b,
         .scale = 2},
    };
    adapter_source from = {.name = "pirate", .hash = 77, .n_part = 2, .part = parts};
    strbuf out = {0};
    adapter_image_write(&from, 0.75, &out);
    return out;
}

static bool inside(const strbuf *b, const float *x, int64_t n)
{
    return (const char *)x >= b->p && (const char *)(x + n) <= b->p + b->n;
}

/* Whatever the bytes say, what comes out lies inside them. */
static weft_status read_adapter(weft_diag *dg, const strbuf *b, adapter_source *out, float *scale)
{
    arena *a = arena_create();
    image_part p = {
        .name = "lora1", .kind = IMAGE_ADAPTER, .data = (const unsigned char *)b->p, .bytes = b->n};
    weft_status st = adapter_image_read(dg, "story", &p, a, out, scale);
    for (size_t i = 0; st == WEFT_OK && i < out->n_part; i++) {
        const adapter_part *t = &out->part[i];
        ck_assert(inside(b, t->a, t->rank * t->in) && inside(b, t->b, t->out * t->rank));
        ck_assert(t->weight >= b->p && t->weight + strlen(t->weight) < b->p + b->n);
    }
    out->part = NULL;
    arena_destroy(a);
    return st;
}

START_TEST(adapters_come_back)
{
    strbuf b = make_adapter();
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    adapter_source got;
    float scale;
    image_part p = {
        .name = "lora1", .kind = IMAGE_ADAPTER, .data = (const unsigned char *)b.p, .bytes = b.n};
    ck_assert_int_eq(adapter_image_read(dg, "story", &p, a, &got, &scale), WEFT_OK);
    ck_assert_uint_eq(got.n_part, 2);
    ck_assert_uint_eq(got.hash, 77);
    ck_assert(scale == 0.75f && got.part[1].scale == 2 && got.part[1].index == 3 &&
              got.part[0].index == -1);
    ck_assert_str_eq(got.part[1].weight, "blk[1].up");
    ck_assert(got.part[0].a[2] == 3 && got.part[0].b[1] == 5);
    arena_destroy(a);
    diag_destroy(dg);
    strbuf_free(&b);
}
END_TEST

START_TEST(adapters_of_strangers)
{
    strbuf b = make_adapter();
    weft_diag *dg = diag_create();
    adapter_source got;
    float scale;
    size_t refused = 0;
    for (size_t i = 0; i < b.n; i++)
        for (int bit = 0; bit < 8; bit++) {
            b.p[i] ^= (char)(1 << bit);
            refused += read_adapter(dg, &b, &got, &scale) != WEFT_OK;
            b.p[i] ^= (char)(1 << bit);
            diag_reset(dg);
        }
    ck_assert_uint_gt(refused, 100);
    for (size_t n = 0; n < b.n; n++) {
        strbuf cut = {0};
        strbuf_put(&cut, (str){b.p, n});
        if (n < 64 + 2 * 64)
            ck_assert(read_adapter(dg, &cut, &got, &scale) != WEFT_OK);
        else
            (void)read_adapter(dg, &cut, &got, &scale);
        strbuf_free(&cut);
        diag_reset(dg);
    }
    diag_destroy(dg);
    strbuf_free(&b);
}
END_TEST

/* ---- facts ---- */

static weft_status read_facts(weft_diag *dg, arena *a, const char *text, facts *out)
{
    image_part p = {
        .kind = IMAGE_FACTS, .data = (const unsigned char *)text, .bytes = strlen(text)};
    return facts_read(dg, "story", &p, a, out);
}

START_TEST(facts_come_back)
{
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    fact_param params[] = {{"vocab", value_of_int(VT_U32, 4096)},
                           {"eps", value_of_float(VT_F64, 1e-5)}};
    facts f = {.weft = "1.2", .name = "llama", .context = 512, .n_param = 2, .param = params}, g;
    strbuf b = {0};
    int64_t x;
    double d;
    facts_write(&f, &b);
    ck_assert_int_eq(read_facts(dg, a, b.p, &g), WEFT_OK);
    ck_assert_str_eq(g.weft, "1.2");
    ck_assert_str_eq(g.name, "llama");
    ck_assert_int_eq(g.context, 512);
    ck_assert_int_eq(g.n_param, 2);
    ck_assert(value_int(&g.param[0].v, &x) && x == 4096);
    ck_assert(value_float(&g.param[1].v, &d) && d == 1e-5);
    strbuf_free(&b);
    arena_destroy(a);
    diag_destroy(dg);
}
END_TEST

START_TEST(facts_of_strangers)
{
    static const char *const wrong[] = {
        "",
        "weft 1\nname x\n",
        "weft 1\nname x\ncontext 0\n",
        "weft 1\nname x\ncontext 99999999999999999999\n",
        "weft 1\nname x\ncontext 5",
        "weft 1\nname x\ncontext 5\nint\n",
        "weft 1\nname x\ncontext 5\nint a\n",
        "weft 1\nname x\ncontext 5\nint a b\n",
        "weft 1\nname x\ncontext 5\ntext a b\n",
        "weft 1\nname x\ncontext 5\n\n",
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        weft_diag *dg = diag_create();
        arena *a = arena_create();
        facts f;
        ck_assert_msg(read_facts(dg, a, wrong[i], &f) != WEFT_OK, "case %zu", i);
        ck_assert(strstr(diag_shown(dg), "story"));
        arena_destroy(a);
        diag_destroy(dg);
    }
}
END_TEST

SUITE_MAIN("image parts", tensors_come_back, tables_of_strangers, adapters_come_back,
           adapters_of_strangers, facts_come_back, facts_of_strangers)
