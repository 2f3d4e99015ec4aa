/* fuzz_imatrix.c - any bytes as an importance file. What is read is finite and can be found by name. */
#include "runtime/quant/imatrix.h"
#include "tests/fuzz/fuzz_model.h"
#include "tests/fuzz/fuzz_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_diag *dg = diag_create();
    imatrix *im = NULL;
    weft_status status = imatrix_read(dg, fuzz_path(data, size), &im);
    fuzz_check(dg, status);
    for (size_t i = 0; status == WEFT_OK && i < imatrix_count(im); i++) {
        const imatrix_entry *e = imatrix_at(im, i);
        WEFT_ASSERT(imatrix_find(im, e->name) == e);
        for (int64_t k = 0; k < e->mats * e->columns; k++)
            WEFT_ASSERT(e->sums[k] >= 0);
    }
    imatrix_destroy(im);
    diag_destroy(dg);
    return 0;
}
