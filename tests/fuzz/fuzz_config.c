/* fuzz_config.c - any bytes as a config.json; what is read is written and read again. */
#include "runtime/formats/json_read.h"
#include "runtime/formats/model_file_impl.h"
#include "tests/fuzz/fuzz_model.h"

static void look_up(const model_file *mf)
{
    static const char *const names[] = {"hidden_size", "rope_scaling.factor", "a.b.c", "/a.b", ""};
    int64_t i;
    double f;
    bool b;
    str s;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const value *v = model_file_key(mf, str_of(names[k]));
        (void)(value_int(v, &i) || value_float(v, &f) || value_bool(v, &b) || value_str(v, &s));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_diag *dg = diag_create();
    model_file mf = {.home = arena_create(), .format = MODEL_HF, .keys = {.type = VT_OBJECT}};
    value v, again;
    weft_status status = json_read(dg, mf.home, "config.json", (str){(const char *)data, size},
                                   JSON_LIMITS_CONFIG, &v);
    fuzz_check(dg, status);
    if (status == WEFT_OK) {
        strbuf text = {0};
        value_json(&(json_writer){.out = &text}, &v, SIZE_MAX);
        status = json_read(dg, mf.home, "again", strbuf_view(&text), JSON_LIMITS_CONFIG, &again);
        WEFT_ASSERT(status == WEFT_OK);
        strbuf second = {0};
        value_json(&(json_writer){.out = &second}, &again, SIZE_MAX);
        WEFT_ASSERT(str_eq(strbuf_view(&text), strbuf_view(&second)));
        strbuf_free(&second);
        strbuf_free(&text);
        fuzz_check(dg, hf_take_config(dg, &mf, "config.json", v));
        look_up(&mf);
    }
    arena_destroy(mf.home);
    diag_destroy(dg);
    return 0;
}
