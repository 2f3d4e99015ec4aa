/* bench_cublas.c - how fast does NVIDIA's cuBLASLt multiply the matrices of a prompt on this CUDA card?
 *
 *     bench_cublas [MODEL [ROWS]]     the linears of bench/shapes/MODEL*.txt (llama), by prompts of so many rows (2048)
 *
 * A yardstick: `weft profile --device cuda --random llama-8b:BF16 -p 2048` has the time of each linear of ours. Both operands are
 * bf16 and sums are f32, as with --round-bf16. The library is found at run time (libcublasLt.so.13, which CUDA's toolkit brings), and
 * nothing else in Weft uses it; types and numbers are those of NVIDIA's "cuBLAS Library", by its names. */
#include "bench/bench.h"
#include "bench/shape_list.h"
#include "runtime/base/clock.h"
#include "runtime/exec/cuda_driver.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_RUN = 21,
    N_EACH = 8, /* products of a run, queued together */
    ROWS = 2048,
    ROWS_MAX = 1 << 20,
    RANDOM_BYTES = 16 << 20, /* repeated: products of zeros are faster */
    WORKSPACE_BYTES = 64 << 20
};

/* cublasComputeType_t, cudaDataType, cublasOperation_t and attributes: those that are used. */
enum { COMPUTE_32F = 68, R_32F = 0, R_16BF = 14, OP_T = 1, DESC_TRANSA = 3, PREF_WORKSPACE = 1 };

typedef struct {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
} heuristic;

/* The functions of cuBLASLt, all of which return 0 if they did what was asked. */
#define CUBLAS_FUNCTIONS(X)                                                                        \
    X(cublasLtCreate, (void **out))                                                                \
    X(cublasLtMatmulDescCreate, (void **out, int compute, int scale))                              \
    X(cublasLtMatmulDescSetAttribute, (void *d, int which, const void *v, size_t bytes))           \
    X(cublasLtMatmulDescDestroy, (void *d))                                                        \
    X(cublasLtMatrixLayoutCreate,                                                                  \
      (void **out, int type, uint64_t rows, uint64_t cols, int64_t ld))                            \
    X(cublasLtMatrixLayoutDestroy, (void *l))                                                      \
    X(cublasLtMatmulPreferenceCreate, (void **out))                                                \
    X(cublasLtMatmulPreferenceSetAttribute, (void *p, int which, const void *v, size_t bytes))     \
    X(cublasLtMatmulPreferenceDestroy, (void *p))                                                  \
    X(cublasLtMatmulAlgoGetHeuristic, (void *lt, void *d, void *a, void *b, void *c, void *to,     \
                                       void *p, int n, heuristic *out, int *out_n))                \
    X(cublasLtMatmul, (void *lt, void *d, const float *alpha, cu_ptr a, void *la, cu_ptr b,        \
                       void *lb, const float *beta, cu_ptr c, void *lc, cu_ptr to, void *lto,      \
                       const uint64_t *algorithm, cu_ptr workspace, size_t bytes, cu_stream s))

typedef struct {
#define MEMBER(name, args) int(*name) args;
    CUBLAS_FUNCTIONS(MEMBER)
#undef MEMBER
} cublas;

typedef struct {
    const cuda_driver *d;
    cublas f;
    void *lt;
    cu_stream stream;
    cu_ptr x, w, out, workspace;
} bench;

static bool load_cublas(cublas *f)
{
    static const char *const names[] = {
#define NAME(name, args) #name,
        CUBLAS_FUNCTIONS(NAME)
#undef NAME
    };
    void *lib = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        fprintf(stderr, "bench_cublas: not measured: %s\n", dlerror());
        return false;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *found = dlsym(lib, names[i]);
        if (!found) {
            fprintf(stderr, "bench_cublas: not measured: libcublasLt.so.13 has no %s\n", names[i]);
            return false;
        }
        memcpy((char *)f + i * sizeof found, &found, sizeof found);
    }
    return true;
}

static void must(int result, const char *what)
{
    if (result == 0)
        return;
    fprintf(stderr, "bench_cublas: %s failed: %d\n", what, result);
    exit(1);
}

/* Numbers of about 1, of both signs. */
static void fill(const bench *b, cu_ptr to, size_t bytes, const uint16_t *numbers)
{
    for (size_t at = 0; at < bytes; at += RANDOM_BYTES) {
        size_t n = bytes - at < RANDOM_BYTES ? bytes - at : RANDOM_BYTES;
        must((int)b->d->cuMemcpyHtoDAsync(to + at, numbers, n, b->stream), "copying");
    }
    must((int)b->d->cuStreamSynchronize(b->stream), "copying");
}

static cu_ptr random_matrix(const bench *b, int64_t rows, int64_t cols, const uint16_t *numbers)
{
    cu_ptr p;
    size_t bytes = (size_t)(rows * cols) * sizeof *numbers;
    must((int)b->d->cuMemAlloc(&p, bytes), "memory of the card");
    fill(b, p, bytes, numbers);
    return p;
}

static uint16_t *random_numbers(void)
{
    uint64_t state = 42;
    uint16_t *numbers = malloc(RANDOM_BYTES);
    if (!numbers)
        exit(1);
    for (size_t i = 0; i < RANDOM_BYTES / sizeof *numbers; i++) {
        state = state * UINT64_C(6364136223846793005) + 1;
        numbers[i] = (uint16_t)(0x3f00 | (state >> 63) << 15 | (state >> 50 & 0x7f));
    }
    return numbers;
}

/* out[rows, n] = x[rows, k] times w[n, k] transposed. cuBLAS has columns first, so to it w is [k, n], x is [k, rows], out is [n, rows]. */
static void measure(bench *b, int64_t rows, int64_t n, int64_t k)
{
    const float one = 1, zero = 0;
    const int transposed = OP_T;
    const size_t bytes = WORKSPACE_BYTES;
    void *product, *w, *x, *out, *prefer;
    heuristic best;
    int found = 0;
    must(b->f.cublasLtMatmulDescCreate(&product, COMPUTE_32F, R_32F), "describing a product");
    must(b->f.cublasLtMatmulDescSetAttribute(product, DESC_TRANSA, &transposed, sizeof transposed),
         "describing a product");
    must(b->f.cublasLtMatrixLayoutCreate(&w, R_16BF, (uint64_t)k, (uint64_t)n, k), "a layout");
    must(b->f.cublasLtMatrixLayoutCreate(&x, R_16BF, (uint64_t)k, (uint64_t)rows, k), "a layout");
    must(b->f.cublasLtMatrixLayoutCreate(&out, R_32F, (uint64_t)n, (uint64_t)rows, n), "a layout");
    must(b->f.cublasLtMatmulPreferenceCreate(&prefer), "a preference");
    must(b->f.cublasLtMatmulPreferenceSetAttribute(prefer, PREF_WORKSPACE, &bytes, sizeof bytes),
         "a preference");
    must(b->f.cublasLtMatmulAlgoGetHeuristic(b->lt, product, w, x, out, out, prefer, 1, &best,
                                             &found),
         "choosing an algorithm");
    must(found == 1 ? best.state : 1, "choosing an algorithm");
    uint64_t ns[N_RUN];
    for (int i = -2; i < N_RUN; i++) {
        uint64_t begin = clock_ns();
        for (int each = 0; each < N_EACH; each++)
            must(b->f.cublasLtMatmul(b->lt, product, &one, b->w, w, b->x, x, &zero, b->out, out,
                                     b->out, out, best.algorithm, b->workspace, bytes, b->stream),
                 "a product");
        must((int)b->d->cuStreamSynchronize(b->stream), "a product");
        if (i >= 0)
            ns[i] = (clock_ns() - begin) / N_EACH;
    }
    char shape[64], rate[32];
    bench_times t = bench_sum_up(ns, N_RUN);
    snprintf(shape, sizeof shape, "%" PRId64 "x%" PRId64 "x%" PRId64, rows, n, k);
    snprintf(rate, sizeof rate, "%.0f TFLOP/s",
             2e-3 * (double)rows * (double)n * (double)k / t.median_ns);
    bench_print_rate("product", "cublasLt, bf16", shape, t, rate);
    b->f.cublasLtMatmulPreferenceDestroy(prefer);
    b->f.cublasLtMatrixLayoutDestroy(out);
    b->f.cublasLtMatrixLayoutDestroy(x);
    b->f.cublasLtMatrixLayoutDestroy(w);
    b->f.cublasLtMatmulDescDestroy(product);
}

/* The linears of a list, each size once, on the first card. */
static void measure_all(bench *b, const shape_list *list, int64_t rows)
{
    cu_context context;
    cu_device card;
    uint16_t *numbers = random_numbers();
    must((int)b->d->cuDeviceGet(&card, 0), "finding the card");
    must((int)b->d->cuDevicePrimaryCtxRetain(&context, card), "opening the card");
    must((int)b->d->cuCtxPushCurrent(context), "opening the card");
    must((int)b->d->cuStreamCreate(&b->stream, CU_STREAM_NON_BLOCKING), "opening the card");
    must((int)b->d->cuMemAlloc(&b->workspace, WORKSPACE_BYTES), "memory of the card");
    must(b->f.cublasLtCreate(&b->lt), "opening cuBLASLt");
    bench_print_heading();
    for (size_t i = 0; i < list->n; i++) {
        const shape_entry *e = &list->at[i];
        if (strcmp(e->op, "linear") != 0)
            continue;
        b->x = random_matrix(b, rows, e->size[1], numbers);
        b->w = random_matrix(b, e->size[0], e->size[1], numbers);
        must((int)b->d->cuMemAlloc(&b->out, (size_t)(rows * e->size[0]) * sizeof(float)),
             "memory of the card");
        measure(b, rows, e->size[0], e->size[1]);
        b->d->cuMemFree(b->x);
        b->d->cuMemFree(b->w);
        b->d->cuMemFree(b->out);
    }
    free(numbers);
    b->d->cuDevicePrimaryCtxRelease(card);
}

int main(int argc, char **argv)
{
    bench b = {0};
    shape_list list = {0};
    weft_diag *dg = diag_create();
    int64_t rows = argc > 2 ? atoll(argv[2]) : ROWS;
    int rc = 0;
    if (argc > 3 || rows < 1 || rows > ROWS_MAX) {
        fprintf(stderr, "usage: bench_cublas [MODEL [ROWS]]\n");
        rc = 2;
    } else if (shape_list_read(dg, WEFT_SOURCE_DIR "/bench/shapes", argc > 1 ? argv[1] : "llama",
                               &list) != WEFT_OK) {
        diag_print(dg, stderr, false);
        rc = 1;
    } else if (cuda_driver_load(dg, &b.d) != WEFT_OK) { /* `./dev bench` goes on without a card */
        fprintf(stderr, "bench_cublas: not measured:\n");
        diag_print(dg, stderr, false);
    } else if (load_cublas(&b.f)) {
        measure_all(&b, &list, rows);
    }
    VEC_FREE(&list);
    diag_destroy(dg);
    return rc;
}
