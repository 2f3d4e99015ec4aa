/* imatrix.c - sums of squares, collected, written and read back as means. */
#include "runtime/quant/imatrix.h"

#include "kernels/ref/dequant.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"
#include "runtime/formats/gguf_write.h"
#include "runtime/formats/model_file.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define SUMS_TAIL ".in_sum2"
#define COUNTS_TAIL ".counts"

enum { RANK_SUMS = 2 };

/* Columns of all matrices in a file that is read, which may be a hole. The largest models have half as many. */
enum { SUMS_MAX = 1 << 29 };

struct imatrix {
    arena *a;
    VEC(imatrix_entry) entries;
    int64_t chunks;
    int64_t sums_read;
};

imatrix *imatrix_create(void)
{
    arena *a = arena_create();
    imatrix *im = ARENA_NEW(a, imatrix);
    *im = (imatrix){.a = a};
    return im;
}

void imatrix_destroy(imatrix *im)
{
    if (!im)
        return;
    VEC_FREE(&im->entries);
    arena_destroy(im->a);
}

size_t imatrix_count(const imatrix *im)
{
    return im->entries.n;
}

const imatrix_entry *imatrix_at(const imatrix *im, size_t i)
{
    return &im->entries.at[i];
}

int64_t imatrix_chunks(const imatrix *im)
{
    return im->chunks;
}

/* Linears number in the hundreds, and each is asked for about once a call. */
const imatrix_entry *imatrix_find(const imatrix *im, str name)
{
    for (size_t i = 0; i < im->entries.n; i++)
        if (str_eq(im->entries.at[i].name, name))
            return &im->entries.at[i];
    return NULL;
}

static imatrix_entry *put_entry(imatrix *im, str name, int64_t mats, int64_t columns)
{
    imatrix_entry e = {.name = arena_str(im->a, name), .mats = mats, .columns = columns};
    e.sums = ARENA_ARRAY(im->a, float, (size_t)(mats * columns));
    e.counts = ARENA_ARRAY(im->a, float, (size_t)mats);
    VEC_PUSH(&im->entries, e);
    return &im->entries.at[im->entries.n - 1];
}

void imatrix_add(imatrix *im, str name, int64_t mats, int64_t mat, const float *x, int64_t rows,
                 int64_t columns)
{
    const imatrix_entry *e = imatrix_find(im, name);
    if (!e)
        e = put_entry(im, name, mats, columns);
    WEFT_ASSERT(e->mats == mats && e->columns == columns && mat >= 0 && mat < mats);
    float *sums = e->sums + mat * columns;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < columns; k++)
            sums[k] += x[r * columns + k] * x[r * columns + k];
    e->counts[mat] += (float)rows;
}

static weft_status check_sums(weft_diag *dg, const imatrix *im)
{
    for (size_t i = 0; i < im->entries.n; i++) {
        const imatrix_entry *e = &im->entries.at[i];
        for (int64_t k = 0; k < e->mats * e->columns; k++)
            if (!isfinite(e->sums[k]))
                return weft_fail(dg, W1410, WEFT_NOWHERE,
                                 "the inputs of " STR_FMT " add up to %g in column %" PRId64
                                 ": no importance file is written",
                                 STR_ARG(e->name), (double)e->sums[k], k % e->columns);
    }
    return WEFT_OK;
}

weft_status imatrix_write(weft_diag *dg, const imatrix *im, const char *path, const char *dataset,
                          int64_t chunks, int64_t chunk_tokens)
{
    WEFT_TRY(check_sums(dg, im));
    arena *a = arena_create();
    gguf_writer *w = gguf_writer_create();
    str names[] = {str_of(dataset)};
    gguf_writer_key(w, STR("general.type"), value_of_str(STR("imatrix")));
    gguf_writer_key(w, STR("imatrix.datasets"), value_of_array(VT_STR, names, 1));
    gguf_writer_key(w, STR("imatrix.chunk_count"), value_of_int(VT_U32, chunks));
    gguf_writer_key(w, STR("imatrix.chunk_size"), value_of_int(VT_U32, chunk_tokens));
    for (size_t i = 0; i < im->entries.n; i++) {
        const imatrix_entry *e = &im->entries.at[i];
        str sums = arena_printf(a, STR_FMT SUMS_TAIL, STR_ARG(e->name));
        str counts = arena_printf(a, STR_FMT COUNTS_TAIL, STR_ARG(e->name));
        gguf_writer_tensor_data(w, sums, DT_F32, RANK_SUMS, (int64_t[]){e->mats, e->columns},
                                e->sums);
        gguf_writer_tensor_data(w, counts, DT_F32, RANK_SUMS, (int64_t[]){e->mats, 1}, e->counts);
    }
    weft_status st = gguf_writer_write(dg, w, path);
    gguf_writer_destroy(w);
    arena_destroy(a);
    return st;
}

static weft_status misfit(weft_diag *dg, const model_file *mf, str name, const char *why)
{
    return weft_fail(dg, W1017, WEFT_NOWHERE, "%s: " STR_FMT " %s", model_file_path(mf),
                     STR_ARG(name), why);
}

static bool to_floats(const model_tensor *t, float *dst)
{
    if (t->type == DT_F32)
        dequant_row(t->type, t->data, dst, t->elems);
    for (int64_t i = 0; i < t->elems; i++)
        if (t->type != DT_F32 || !isfinite(dst[i]) || dst[i] < 0)
            return false;
    return true;
}

static weft_status read_entry(weft_diag *dg, imatrix *im, const model_file *mf,
                              const model_tensor *sums)
{
    str name = {sums->name.p, sums->name.n - strlen(SUMS_TAIL)};
    const model_tensor *counts =
        model_file_tensor(mf, arena_printf(im->a, STR_FMT COUNTS_TAIL, STR_ARG(name)));
    int64_t columns = sums->rank > 0 ? sums->shape[sums->rank - 1] : 1;
    if (!counts || columns < 1 || counts->elems != sums->elems / columns)
        return misfit(dg, mf, name, "has no counts, or another number of them than of rows");
    if (sums->elems > SUMS_MAX - im->sums_read)
        return weft_fail(dg, W1105, WEFT_NOWHERE,
                         "%s: " STR_FMT " has %" PRId64
                         " sums, which makes more than %d in the file",
                         model_file_path(mf), STR_ARG(name), sums->elems, SUMS_MAX);
    im->sums_read += sums->elems;
    imatrix_entry *e = put_entry(im, name, counts->elems, columns);
    if (!to_floats(sums, e->sums) || !to_floats(counts, e->counts))
        return misfit(dg, mf, name, "has sums or counts that are no plain numbers");
    for (int64_t m = 0; m < e->mats; m++)
        for (int64_t k = 0; k < columns; k++) {
            float *x = &e->sums[m * columns + k];
            *x = e->counts[m] > 0 ? *x / e->counts[m] : 1;
        }
    return WEFT_OK;
}

static weft_status read_all(weft_diag *dg, imatrix *im, const model_file *mf)
{
    str type;
    if (model_file_format(mf) != MODEL_GGUF ||
        !value_str(model_file_key(mf, STR("/general.type")), &type) || !str_eqz(type, "imatrix"))
        return weft_fail(dg, W1017, WEFT_NOWHERE, "%s is not an importance file",
                         model_file_path(mf));
    value_int(model_file_key(mf, STR("/imatrix.chunk_count")), &im->chunks);
    for (size_t i = 0; i < model_file_tensor_count(mf); i++) {
        const model_tensor *t = model_file_tensor_at(mf, i);
        if (str_ends(t->name, STR(SUMS_TAIL)))
            WEFT_TRY(read_entry(dg, im, mf, t));
    }
    return WEFT_OK;
}

weft_status imatrix_read(weft_diag *dg, const char *path, imatrix **out_im)
{
    model_file *mf;
    WEFT_TRY(model_file_open(dg, path, &(model_file_options){.guard = true}, &mf));
    imatrix *im = imatrix_create();
    weft_status st = read_all(dg, im, mf);
    if (st == WEFT_OK)
        st = model_file_check(dg, mf); /* all of it was there */
    model_file_close(mf);
    if (st == WEFT_OK)
        *out_im = im;
    else
        imatrix_destroy(im);
    return st;
}
