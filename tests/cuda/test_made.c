/* test_made.c - images made for plans: recorded models through them on the tests' card, and what happens where none can be made. */
#include "tests/cuda/card_kit.h"
#include "tests/cuda/fake_nvrtc.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static fake_card card = {.cards = 1,
                         .version = CUDA_VERSION_LEAST,
                         .multiprocessors = 3,
                         .threads = 64,
                         .card_bytes = (size_t)64 << 20,
                         .shared_bytes = 227 << 10,
                         .together = true};
static const double CLOSE = 1e-4; /* as tests/golden allows */
enum { IMAGES = 2 };              /* of a session with two sequences: for one row, and two */
static char folder[] = "/tmp/weft-test-made-XXXXXX";

static void begin(void)
{
    fake_nvrtc_now = (fake_nvrtc_how){.stamp = "1"};
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    ck_assert(mkdtemp(folder));
}

static void end(void)
{
    char command[128];
    snprintf(command, sizeof command, "chmod -R u+w %s; rm -rf %s", folder, folder);
    ck_assert_int_eq(system(command), 0);
}

static device *open_card(weft_diag *dg, const cuda_maker *maker)
{
    device *d = NULL;
    fake_reset(&card);
    ck_assert_int_eq(fake_driver()->cuInit(0), CU_OK);
    ck_assert_int_eq(cuda_device_open(dg, fake_driver(), &fake_kernels, maker, 0, &d), WEFT_OK);
    return d;
}

static session_options options_of(const card_model *m, device *d)
{
    session_options o = card_options(m, d);
    o.use_cache = true;
    o.cache_dir = folder;
    return o;
}

typedef struct {
    float *logits;
    double off;
} results;

/* Some tokens two by two, then one after the other. All logits, and how far the worst is off. */
static results run_calls(card_model *m, const cuda_maker *maker, int64_t pairs)
{
    session *s;
    device *d = open_card(m->dg, maker);
    session_options o = options_of(m, d);
    results r = {.logits = calloc((size_t)(m->n * m->vocab), sizeof(float))};
    ck_assert_msg(session_create(m->dg, m->p, model_file_source(m->mf), &o, &s) == WEFT_OK, "%s",
                  diag_shown(m->dg));
    for (int64_t i = 0, n; i < m->n; i += n) {
        n = i < pairs ? 2 : 1;
        const float *got;
        int64_t n_row, width;
        ck_assert_msg(card_eval(m, s, 0, i, n) == WEFT_OK, "%s", diag_shown(m->dg));
        double off = card_off(m, s, i, n);
        r.off = off > r.off ? off : r.off;
        ck_assert(session_output(s, "logits", -1, &got, &n_row, &width));
        memcpy(r.logits + i * width, got, (size_t)(n_row * width) * sizeof *got);
    }
    session_destroy(s);
    card_close(d);
    return r;
}

/* Buckets of one row and of two. */
static results run_all(card_model *m, const cuda_maker *maker)
{
    return run_calls(m, maker, 6);
}

/* The same bits as the kernels of all plans give. */
static void expect_same(card_model *m, const results *want)
{
    results got = run_all(m, &fake_maker);
    ck_assert_double_le(got.off, CLOSE);
    ck_assert_mem_eq(got.logits, want->logits, (size_t)(m->n * m->vocab) * sizeof(float));
    free(got.logits);
}

static void check_model(const char *name, const char *file)
{
    card_model m = card_model_open(name, file);
    results want = run_all(&m, NULL);
    const int before = fake_nvrtc_compiled();
    expect_same(&m, &want);
    ck_assert_msg(diag_count(m.dg) == 0, "%s", diag_shown(m.dg));
    ck_assert_int_eq(fake_nvrtc_compiled() - before, IMAGES);
    expect_same(&m, &want); /* from the cache */
    ck_assert_int_eq(fake_nvrtc_compiled() - before, IMAGES);
    free(want.logits);
    card_model_close(&m);
}

START_TEST(models_run_with_images_of_their_own)
{
    check_model("llama-mha", NULL);
    check_model("gemma2", NULL);
    check_model("gpt_oss", NULL);
}
END_TEST

/* Weights and heads that no recorded model here has, one token at a time: the same bits with both images, in one launch and with a launch
 * for each phase, and about what they are number by number, on a card that has no memory for a ring. Rows of 256 columns of MXFP4 begin at no multiple of 16 bytes. Heads of 64 and
 * 128 are turned and appended in one step by an image for the plan. Latent rows are of 96 numbers. */
START_TEST(rows_of_every_block_come_through_the_ring)
{
    static const struct {
        const char *name;
        dtype kv;
        int64_t n_ctx; /* from 513 on stretches of positions are units */
    } spec[] = {{"tiny-mixtral:MXFP4", DT_F32, 0}, {"tiny-mixtral:Q5_K", DT_F32, 0},
                {"tiny-mixtral:BF16", DT_F32, 0},  {"tiny-wide:Q4_0", DT_F32, 0},
                {"tiny-qwen2:BF16", DT_F16, 600},  {"tiny-deepseek:Q8_0", DT_F16, 600}};
    static const int32_t ids[] = {1, 7, 300, 5, 99, 42};
    enum { N = COUNT_OF(ids), VOCAB = 512 };
    static const float none[N * VOCAB];
    for (size_t i = 0; i < COUNT_OF(spec); i++) {
        random_model *rm = NULL;
        card_model m = card_random_open(spec[i].name, ids, N, &rm);
        m.n_ctx = spec[i].n_ctx;
        m.p = card_plan(&m, spec[i].kv, 1);
        m.vocab = VOCAB;
        m.logits = none;
        const size_t usual = card.shared_bytes;
        card.shared_bytes = 2048;
        results plain = run_calls(&m, NULL, 0);
        card.shared_bytes = usual;
        diag_reset(m.dg); /* it is told that this is slow */
        m.logits = plain.logits;
        results want = run_calls(&m, NULL, 0), got = run_calls(&m, &fake_maker, 0);
        card.together = false;
        results each = run_calls(&m, &fake_maker, 0);
        card.together = true;
        ck_assert_msg(diag_count(m.dg) == 0, "%s", diag_shown(m.dg));
        ck_assert_msg(want.off <= CLOSE, "%s: off by %g", spec[i].name, want.off);
        ck_assert_mem_eq(got.logits, want.logits, sizeof none);
        ck_assert_mem_eq(each.logits, want.logits, sizeof none);
        free(plain.logits);
        free(each.logits);
        free(want.logits);
        free(got.logits);
        card_model_close(&m);
        random_model_destroy(rm);
    }
}
END_TEST

/* Rows that a block has to itself are normed and quantised in one step: the same bits as in two. */
START_TEST(norms_quantise_too)
{
    static const char *const spec[] = {"tiny-long:Q4_K", "tiny-long:BF16"};
    static const int32_t ids[] = {1, 7, 300, 5, 99};
    enum { N = COUNT_OF(ids), VOCAB = 512 };
    static const float none[N * VOCAB];
    for (size_t i = 0; i < COUNT_OF(spec); i++) {
        random_model *rm = NULL;
        card_model m = card_random_open(spec[i], ids, N, &rm);
        m.p = card_plan(&m, DT_F16, 2);
        m.vocab = VOCAB;
        m.logits = none;
        results want = run_calls(&m, NULL, 4), got = run_calls(&m, &fake_maker, 4);
        ck_assert_msg(diag_count(m.dg) == 0, "%s", diag_shown(m.dg));
        ck_assert_mem_eq(got.logits, want.logits, sizeof none);
        free(want.logits);
        free(got.logits);
        card_model_close(&m);
        random_model_destroy(rm);
    }
}
END_TEST

enum { SEQS_MOST = 32 };

/* Logits of some sequences, a row of each in every call. cancels: after a call that is cancelled before it begins. */
static void run_rows(card_model *m, const cuda_maker *maker, int seqs, bool cancels, float *to)
{
    session *s;
    device *d = open_card(m->dg, maker);
    session_options o = options_of(m, d);
    cancel_flag stop = {0};
    o.cancel = &stop;
    ck_assert_msg(session_create(m->dg, m->p, model_file_source(m->mf), &o, &s) == WEFT_OK, "%s",
                  diag_shown(m->dg));
    for (int64_t i = 0; i < m->n; i++) {
        const float *got;
        int64_t n_row, width;
        batch_row row[SEQS_MOST];
        for (int q = 0; q < seqs; q++)
            row[q] =
                (batch_row){.id = m->ids[(i + q) % m->n], .pos = (int32_t)i, .seq = q, .out = true};
        cancel_ask(&stop, cancels && i == 0);
        if (cancels && i == 0) {
            ck_assert_int_ne(session_eval(m->dg, s, row, seqs), WEFT_OK);
            diag_reset(m->dg);
            cancel_ask(&stop, false);
        }
        ck_assert_msg(session_eval(m->dg, s, row, seqs) == WEFT_OK, "%s", diag_shown(m->dg));
        ck_assert(session_output(s, "logits", -1, &got, &n_row, &width));
        memcpy(to + i * seqs * width, got, (size_t)(n_row * width) * sizeof *got);
    }
    session_destroy(s);
    card_close(d);
}

/* Rows of sequences of their own are turned and appended in attention's phase, whichever of the steps comes first, and what blocks
 * attended with is quantised there, if that is whole blocks of columns: the same bits, with a gate or two less in each layer. */
START_TEST(heads_of_several_rows_join_attention)
{
    static const struct {
        const char *model;
        int gates;
    } cases[] = {{"tiny-wide:Q4_K", 2}, {"tiny-96:Q4_K", 1}};
    static const int32_t ids[] = {1, 7, 300, 5, 99};
    enum { N = COUNT_OF(ids), VOCAB = 512, LAYERS = 2 };
    static float want[2 * N * VOCAB], got[2 * N * VOCAB];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        random_model *rm = NULL;
        card_model m = card_random_open(cases[i].model, ids, N, &rm);
        m.p = card_plan(&m, DT_F16, 2);
        run_rows(&m, NULL, 2, false, want);
        const int64_t phases = fake_seen().phases;
        run_rows(&m, &fake_maker, 2, false, got);
        ck_assert_msg(diag_count(m.dg) == 0, "%s", diag_shown(m.dg));
        ck_assert_msg(memcmp(got, want, sizeof want) == 0, "%s", cases[i].model);
        ck_assert_int_eq(fake_seen().phases, phases - cases[i].gates * LAYERS * N);
        card_model_close(&m);
        random_model_destroy(rm);
    }
}
END_TEST

/* Experts of 16-bit weights: of floats, and of rows that are two bf16. */
START_TEST(experts_of_several_rows_have_the_same_bits)
{
    static const struct {
        const char *model;
        int seqs;
    } cases[] = {{"tiny-mixtral:F16", 2}, {"tiny-mixtral:BF16", 9}};
    static const int32_t ids[] = {1, 7, 300};
    enum { N = COUNT_OF(ids), VOCAB = 512 };
    static float want[SEQS_MOST * N * VOCAB], got[SEQS_MOST * N * VOCAB];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        random_model *rm = NULL;
        card_model m = card_random_open(cases[i].model, ids, N, &rm);
        m.n_seq = cases[i].seqs;
        m.p = card_plan(&m, DT_F16, m.n_seq);
        run_rows(&m, NULL, cases[i].seqs, false, want);
        run_rows(&m, &fake_maker, cases[i].seqs, false, got);
        ck_assert_msg(diag_count(m.dg) == 0, "%s", diag_shown(m.dg));
        ck_assert_msg(memcmp(got, want, (size_t)cases[i].seqs * N * VOCAB * sizeof *got) == 0,
                      "%s with %d sequences", cases[i].model, cases[i].seqs);
        card_model_close(&m);
        random_model_destroy(rm);
    }
}
END_TEST

/* Weights of linears of several rows come in sheets, ahead of their phases, where a block has eight warps: the same bits. */
START_TEST(weights_of_several_rows_come_ahead)
{
    static const struct {
        const char *model;
        int seqs, sheets; /* images that have them, and are not of a case before */
    } cases[] = {
        {"tiny-deep:Q4_K_M", 2, 1}, {"tiny-deep:Q8_0", 2, 1},    {"tiny-long:Q5_K", 2, 1},
        {"tiny-long:Q4_0", 2, 1},   {"tiny-deep:Q4_K_M", 12, 3}, {"tiny-long:Q8_0", 16, 4},
        {"tiny-long:Q4_0", 9, 3},   {"tiny-deep:Q4_K_M", 27, 2}, {"tiny-long:Q5_K", 32, 4}};
    static const int32_t ids[] = {1, 7, 300};
    enum { N = COUNT_OF(ids), VOCAB = 512, WARPS = 8 };
    static float want[SEQS_MOST * N * VOCAB], got[SEQS_MOST * N * VOCAB];
    const int usual = card.threads;
    card.threads = WARPS * 32;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        random_model *rm = NULL;
        card_model m = card_random_open(cases[i].model, ids, N, &rm);
        m.n_seq = cases[i].seqs;
        m.p = card_plan(&m, DT_F16, m.n_seq);
        run_rows(&m, NULL, cases[i].seqs, false, want);
        const int before = fake_nvrtc_sheets();
        run_rows(&m, &fake_maker, cases[i].seqs, true, got);
        ck_assert_msg(diag_count(m.dg) == 0, "%s", diag_shown(m.dg));
        ck_assert_msg(fake_nvrtc_sheets() - before == cases[i].sheets, "%s with %d sequences: %d",
                      cases[i].model, cases[i].seqs, fake_nvrtc_sheets() - before);
        ck_assert_msg(memcmp(got, want, (size_t)cases[i].seqs * N * VOCAB * sizeof *got) == 0,
                      "%s with %d sequences", cases[i].model, cases[i].seqs);
        card_model_close(&m);
        random_model_destroy(rm);
    }
    card.threads = usual;
}
END_TEST

/* Shared memory for a block and a ring of weights, for the block alone, for neither. */
START_TEST(cards_may_have_less_shared_memory)
{
    const size_t usual = card.shared_bytes;
    card_model m = card_model_open("llama-mha", NULL);
    for (size_t kb = 96; kb >= 16; kb -= 8) {
        card.shared_bytes = kb << 10;
        results got = run_all(&m, &fake_maker);
        ck_assert_msg(got.off <= CLOSE, "%zu KB: off by %g", kb, got.off);
        free(got.logits);
    }
    card.shared_bytes = usual;
    card_model_close(&m);
}
END_TEST

/* ---- what is missing, damaged or refused ---- */

static card_model model;
static results plain;

static void open_model(void)
{
    model = card_model_open("llama-mha", NULL);
    plain = run_all(&model, NULL);
}

static void close_model(void)
{
    free(plain.logits);
    card_model_close(&model);
}

static void expect_warning(weft_code code, const char *words)
{
    ck_assert_msg(diag_count(model.dg) == 1 && diag_at(model.dg, 0).code == code &&
                      diag_at(model.dg, 0).severity == DIAG_WARNING &&
                      strstr(diag_shown(model.dg), words),
                  "not one warning of %s: %s", words, diag_shown(model.dg));
    diag_reset(model.dg);
}

START_TEST(without_a_compiler_all_kernels_run_it)
{
    open_model();
    fake_nvrtc_now.missing = true;
    expect_same(&model, &plain);
    expect_warning(W1613, "libnvrtc.so.13, which compiles them, is not there");
    expect_same(&model, &plain);
    ck_assert_uint_eq(diag_count(model.dg), 0); /* it is said once */
    fake_nvrtc_now = (fake_nvrtc_how){.stamp = "1", .load_fails = true};
    expect_same(&model, &plain);
    expect_warning(W1613, "the tests' NVRTC cannot be loaded");
    close_model();
}
END_TEST

START_TEST(what_the_compiler_says_is_shown)
{
    open_model();
    fake_nvrtc_now.breaks = "#error this does not compile\n";
    expect_same(&model, &plain);
    expect_warning(W1613, "NVRTC_ERROR_COMPILATION: ");
    expect_same(&model, &plain);
    ck_assert(strstr(diag_shown(model.dg), "this does not compile"));
    diag_reset(model.dg);
    close_model();
}
END_TEST

START_TEST(another_compiler_makes_other_images)
{
    open_model();
    const int before = fake_nvrtc_compiled();
    expect_same(&model, &plain);
    fake_nvrtc_now.stamp = "2";
    expect_same(&model, &plain);
    ck_assert_int_eq(fake_nvrtc_compiled() - before, 2 * IMAGES);
    ck_assert_uint_eq(diag_count(model.dg), 0);
    close_model();
}
END_TEST

/* One byte of every file in the cache. */
static void damage(void)
{
    char path[512];
    DIR *dir = opendir(folder);
    ck_assert(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        FILE *f = fopen(path, "r+");
        ck_assert(f && fseek(f, 4000, SEEK_SET) == 0);
        int was = fgetc(f);
        ck_assert(was != EOF && fseek(f, 4000, SEEK_SET) == 0 && fputc(was ^ 1, f) != EOF);
        fclose(f);
    }
    closedir(dir);
}

START_TEST(damaged_images_are_made_again)
{
    open_model();
    expect_same(&model, &plain);
    damage();
    const int before = fake_nvrtc_compiled();
    expect_same(&model, &plain);
    ck_assert_int_eq(fake_nvrtc_compiled() - before, IMAGES);
    ck_assert_uint_eq(diag_count(model.dg), IMAGES);
    ck_assert(diag_at(model.dg, 0).code == W1509);
    diag_reset(model.dg);
    expect_same(&model, &plain);
    ck_assert_int_eq(fake_nvrtc_compiled() - before, IMAGES);
    ck_assert_uint_eq(diag_count(model.dg), 0);
    close_model();
}
END_TEST

START_TEST(images_that_cannot_be_kept_are_used)
{
    open_model();
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s && touch %s", folder, folder);
    ck_assert_int_eq(system(command), 0);
    expect_same(&model, &plain);
    expect_warning(W1511, "generated code cannot be kept");
    close_model();
}
END_TEST

/* Of the three modules of a session the first is the device's own. */
START_TEST(images_that_the_driver_refuses_are_not_used)
{
    open_model();
    for (int64_t i = 1; i <= IMAGES; i++) {
        device *d = open_card(model.dg, &fake_maker);
        fake_fail_at(FAKE_cuModuleLoadData, i - 1, CU_INVALID_IMAGE);
        session_options o = options_of(&model, d);
        session *s;
        ck_assert_int_eq(session_create(model.dg, model.p, model_file_source(model.mf), &o, &s),
                         WEFT_OK);
        expect_warning(W1613, "loading the plan's kernels");
        ck_assert_int_eq(card_eval(&model, s, 0, 0, 2), WEFT_OK);
        ck_assert_double_le(card_off(&model, s, 0, 2), CLOSE);
        ck_assert_int_eq(card_eval(&model, s, 0, 2, 1), WEFT_OK);
        ck_assert_double_le(card_off(&model, s, 2, 1), CLOSE);
        session_destroy(s);
        card_close(d);
    }
    close_model();
}
END_TEST

int main(void)
{
    /* Most tests are about one model: its images are compiled once. */
    char kept[] = "/tmp/weft-test-made-kept-XXXXXX", command[128];
    if (!mkdtemp(kept))
        return EXIT_FAILURE;
    fake_nvrtc_keep(kept);
    TCase *c = tcase_create("made");
    tcase_set_timeout(c, 400);
    tcase_add_checked_fixture(c, begin, end);
    tcase_add_test(c, models_run_with_images_of_their_own);
    tcase_add_test(c, rows_of_every_block_come_through_the_ring);
    tcase_add_test(c, norms_quantise_too);
    tcase_add_test(c, heads_of_several_rows_join_attention);
    tcase_add_test(c, experts_of_several_rows_have_the_same_bits);
    tcase_add_test(c, weights_of_several_rows_come_ahead);
    tcase_add_test(c, cards_may_have_less_shared_memory);
    tcase_add_test(c, without_a_compiler_all_kernels_run_it);
    tcase_add_test(c, what_the_compiler_says_is_shown);
    tcase_add_test(c, another_compiler_makes_other_images);
    tcase_add_test(c, damaged_images_are_made_again);
    tcase_add_test(c, images_that_cannot_be_kept_are_used);
    tcase_add_test(c, images_that_the_driver_refuses_are_not_used);
    int status = suite_run("made", c, SUITE_FORK);
    snprintf(command, sizeof command, "rm -rf %s", kept);
    return system(command) == 0 ? status : EXIT_FAILURE;
}
