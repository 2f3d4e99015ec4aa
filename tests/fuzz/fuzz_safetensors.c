/* fuzz_safetensors.c - any bytes as the header of a .safetensors file, whose size is made to fit
 * unless the first byte is odd; the second gives the amount of data. */
#include "tests/fuzz/fuzz_model.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 10)
        return 0;
    size_t header = size - 10, extra = data[1];
    uint64_t claimed = header;
    if (data[0] & 1)
        memcpy(&claimed, data + 2, sizeof claimed);
    unsigned char *file = malloc(8 + header + extra);
    if (!file)
        return 0;
    memcpy(file, &claimed, 8);
    memcpy(file + 8, data + 10, header);
    memset(file + 8 + header, 1, extra);

    weft_diag *dg = diag_create();
    model_file *mf = NULL;
    weft_status status =
        model_file_open_memory(dg, file, 8 + header + extra, "fuzz.safetensors", &mf);
    fuzz_check(dg, status);
    if (status == WEFT_OK)
        fuzz_walk(mf);
    model_file_close(mf);
    diag_destroy(dg);
    free(file);
    return 0;
}
