/* dtype.c - look-ups in dtype.def. */
#include "runtime/base/dtype.h"

#include "runtime/base/intmath.h"

enum { no = 0, yes = 1 };

static const dtype_row rows[DT_COUNT] = {
#define DTYPE(name, ggml, hf, elems, bytes, weight)                                                \
    [DT_##name] = {#name, ggml, hf, elems, bytes, weight},
#include "runtime/base/dtype.def"
#undef DTYPE
};

const dtype_row *dtype_row_of(dtype t)
{
    WEFT_ASSERT((unsigned)t < DT_COUNT);
    return &rows[t];
}

bool dtype_from_ggml(uint32_t number, dtype *out_t)
{
    for (int i = 0; i < DT_COUNT; i++)
        if (rows[i].ggml >= 0 && (uint32_t)rows[i].ggml == number) {
            *out_t = (dtype)i;
            return true;
        }
    return false;
}

bool dtype_from_name(str name, dtype *out_t)
{
    for (int i = 0; i < DT_COUNT; i++)
        if (str_eqz(name, rows[i].name)) {
            *out_t = (dtype)i;
            return true;
        }
    return false;
}

bool dtype_from_hf(str name, dtype *out_t)
{
    for (int i = 0; i < DT_COUNT; i++)
        if (rows[i].hf && str_eqz(name, rows[i].hf)) {
            *out_t = (dtype)i;
            return true;
        }
    return false;
}

bool dtype_bytes(dtype t, int64_t n, size_t *out_bytes)
{
    const dtype_row *row = dtype_row_of(t);
    WEFT_ASSERT(n >= 0);
    if (n % row->elems != 0)
        return false;
    size_t n_block;
    return size_from_u64((uint64_t)(n / row->elems), &n_block) &&
           size_mul(n_block, row->bytes, out_bytes);
}
