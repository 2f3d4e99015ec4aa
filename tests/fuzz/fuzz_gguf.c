/* fuzz_gguf.c - any bytes as a GGUF file. */
#include "tests/fuzz/fuzz_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_diag *dg = diag_create();
    model_file *mf = NULL;
    weft_status status = model_file_open_memory(dg, data, size, "fuzz.gguf", &mf);
    fuzz_check(dg, status);
    if (status == WEFT_OK)
        fuzz_walk(mf);
    model_file_close(mf);
    diag_destroy(dg);
    return 0;
}
