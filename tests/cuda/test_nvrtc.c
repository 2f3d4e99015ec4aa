/* test_nvrtc.c - the real NVRTC, where it is here: kernels for the decoding buckets of recorded models compile to code of a card,
 * which needs none to be made, and its assembler has nothing against them. Without the library the test is skipped. */
#include "tests/cuda/card_kit.h"
#include "tests/cuda/fake_nvrtc.h"

enum { SKIPPED = 77 };

static struct {
    nvrtc real, table;
    int images, sheets;
} seen;

static int see_text(nvrtc_program *out_p, const char *text, const char *name, int n_header,
                    const char *const *headers, const char *const *names)
{
    const int sheets = text_sheets(n_header, headers, names);
    seen.sheets = sheets > seen.sheets ? sheets : seen.sheets;
    return seen.real.nvrtcCreateProgram(out_p, text, name, n_header, headers, names);
}

/* What ptxas says unasked is a loss of speed: registers that warps cannot give away, products that wait for each other. */
static void see_remarks(nvrtc_program p)
{
    size_t bytes = 0;
    ck_assert_int_eq(seen.real.nvrtcGetProgramLogSize(p, &bytes), 0);
    char *log = calloc(bytes + 1, 1);
    ck_assert_int_eq(seen.real.nvrtcGetProgramLog(p, log), 0);
    ck_assert_msg(!strstr(log, "Performance Loss"), "%s", log);
    free(log);
}

/* The library itself, and what it gives is looked at. */
static int see_code(nvrtc_program p, char *to)
{
    size_t bytes = 0;
    int r = seen.real.nvrtcGetCUBINSize(p, &bytes);
    if (r == 0)
        r = seen.real.nvrtcGetCUBIN(p, to);
    seen.images++;
    see_remarks(p);
    ck_assert_msg(r == 0 && bytes > 4 &&
                      memcmp(to,
                             "\x7f"
                             "ELF",
                             4) == 0,
                  "no code of a card");
    return r;
}

static weft_status load(weft_diag *dg, const nvrtc **out_n)
{
    const nvrtc *n;
    WEFT_TRY(cuda_maker_usual.load(dg, &n));
    seen.real = seen.table = *n;
    seen.table.nvrtcCreateProgram = see_text;
    seen.table.nvrtcGetCUBIN = see_code;
    *out_n = &seen.table;
    return WEFT_OK;
}

/* images: as many are made. */
static void compile(card_model m, const char *name, const fake_card *card, int images)
{
    const cuda_maker maker = {cuda_maker_usual.find, load};
    device *d = NULL;
    session *s;
    fake_reset(card);
    ck_assert_int_eq(fake_driver()->cuInit(0), CU_OK);
    ck_assert_int_eq(cuda_device_open(m.dg, fake_driver(), &fake_kernels, &maker, 0, &d), WEFT_OK);
    session_options o = card_options(&m, d);
    seen.images = seen.sheets = 0;
    ck_assert_int_eq(session_create(m.dg, m.p, model_file_source(m.mf), &o, &s), WEFT_OK);
    ck_assert_msg(seen.images == images, "%s: %d images: %s", name, seen.images, diag_shown(m.dg));
    for (size_t i = 0; i < diag_count(m.dg); i++) /* the tests' card cannot run them */
        ck_assert_msg(strstr(diag_at(m.dg, i).message.p, "loading the plan's kernels"), "%s",
                      diag_shown(m.dg));
    session_destroy(s);
    card_close(d);
    card_model_close(&m);
}

START_TEST(kernels_of_models_compile)
{
    compile(card_model_open("llama-mha", "model-bf16.gguf"), "llama-mha", &fake_card_usual, 2);
    compile(card_model_open("gpt_oss", NULL), "gpt_oss", &fake_card_usual, 2);
}
END_TEST

/* Experts of types that no recorded model of the tests has. */
START_TEST(kernels_of_experts_compile)
{
    static const int32_t ids[24] = {1};
    static const char *const spec[] = {"tiny-mixtral:Q4_K", "tiny-mixtral:MXFP4",
                                       "tiny-mixtral:F16"};
    for (size_t i = 0; i < COUNT_OF(spec); i++) {
        random_model *rm = NULL;
        card_model m = card_random_open(spec[i], ids, 24, &rm);
        m.p = card_plan(&m, DT_F16, m.n);
        compile(m, spec[i], &fake_card_usual, 2);
        random_model_destroy(rm);
    }
}
END_TEST

/* Up to 32 rows whose weights come in sheets, in blocks of as many warps as a real card's. */
START_TEST(kernels_of_sheets_keep_their_registers)
{
    static const int32_t ids[32] = {1};
    fake_card card = fake_card_usual;
    card.threads = 256;
    random_model *rm = NULL;
    card_model m = card_random_open("tiny-deep:Q4_K_M", ids, COUNT_OF(ids), &rm);
    m.n_seq = COUNT_OF(ids);
    m.p = card_plan(&m, DT_F16, m.n_seq);
    compile(m, "tiny-deep", &card, 6); /* for 1, 2, 4, 8, 16 and 32 rows */
    ck_assert_int_eq(seen.sheets, 4);
    random_model_destroy(rm);
}
END_TEST

int main(void)
{
    strbuf path = {0};
    cuda_nvrtc_path(&path);
    if (path.n == 0) {
        puts("skipped: libnvrtc.so.13 is not here");
        return SKIPPED;
    }
    strbuf_free(&path);
    TCase *c = tcase_create("nvrtc");
    tcase_set_timeout(c, 900);
    tcase_add_test(c, kernels_of_models_compile);
    tcase_add_test(c, kernels_of_experts_compile);
    tcase_add_test(c, kernels_of_sheets_keep_their_registers);
    return suite_run("nvrtc", c, SUITE_FORK);
}
