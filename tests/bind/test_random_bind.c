/* test_random_bind.c - every shape of runtime/formats/shapes.def binds to a model file of the library. */
#include "compiler/compiler.h"
#include "runtime/formats/random_model.h"
#include "tests/base/suite.h"

/* Nothing is filled, so that even the largest takes no memory. */
static void check_binds(const char *shape, const char *type)
{
    char spec[64];
    weft_diag *dg = diag_create();
    random_model *rm;
    model_file *mf;
    bound_model *bm;
    snprintf(spec, sizeof spec, "%s:%s", shape, type);
    bool good = random_model_create(dg, spec, 0, &rm) == WEFT_OK &&
                model_file_open_memory(dg, random_model_data(rm), random_model_bytes(rm), spec,
                                       &mf) == WEFT_OK &&
                model_bind(dg, mf, NULL, &bm) == WEFT_OK;
    if (!good || diag_count(dg) > 0) /* not even a warning */
        ck_abort_msg("%s: %s", spec, printed(dg, false));
    bound_model_destroy(bm);
    model_file_close(mf);
    random_model_destroy(rm);
    diag_destroy(dg);
}

START_TEST(every_shape)
{
    for (size_t i = 0; random_model_shape(i); i++)
        check_binds(random_model_shape(i), "Q4_K_M");
}
END_TEST

START_TEST(every_type)
{
    for (size_t i = 0; random_model_type(i); i++) {
        check_binds("tiny", random_model_type(i));
        check_binds("tiny-mixtral", random_model_type(i));
        check_binds("tiny-deepseek", random_model_type(i));
        check_binds("smollm2-135m", random_model_type(i)); /* rows of 576: no blocks of 256 */
    }
}
END_TEST

SUITE_MAIN("random_bind", every_shape, every_type)
