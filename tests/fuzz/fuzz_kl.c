/* fuzz_kl.c - any bytes as a file of distributions. Rows that are read name tokens that there are. */
#include "runtime/formats/kl_file.h"
#include "tests/fuzz/fuzz_model.h"
#include "tests/fuzz/fuzz_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_diag *dg = diag_create();
    kl_reader *r = NULL;
    kl_row row;
    weft_status status = kl_reader_open(dg, fuzz_path(data, size), &r);
    fuzz_check(dg, status);
    if (status == WEFT_OK) {
        const kl_head *h = kl_reader_head(r);
        for (int64_t i = 0; i < h->n_token; i++)
            WEFT_ASSERT(kl_reader_ids(r)[i] >= 0 && kl_reader_ids(r)[i] < h->vocab);
        for (int64_t i = 0; status == WEFT_OK && i < h->n_row; i++) {
            status = kl_reader_next(dg, r, &row);
            WEFT_ASSERT(status != WEFT_OK || (row.token < h->vocab && row.below[row.top] == 0));
        }
        fuzz_check(dg, status);
    }
    kl_reader_close(r);
    diag_destroy(dg);
    return 0;
}
