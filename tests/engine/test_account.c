/* test_account.c - a run takes the bytes its plan told, and no others. Linked with --wrap, so that every
 * allocation of ours is seen with its size. */
#include "compiler/compiler.h"
#include "compiler/plan_make.h"
#include "runtime/exec/session.h"
#include "tests/base/suite.h"
#include <pthread.h>

/* What the linker calls the real ones. */
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
int __real_posix_memalign(void **out, size_t align, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
int __wrap_posix_memalign(void **out, size_t align, size_t n);
void __wrap_free(void *p);

enum { BLOCKS_MAX = 1 << 16 };

/* Every block that is held, in no order. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    void *at;
    size_t bytes;
} block[BLOCKS_MAX];
static size_t n_block, bytes_held, bytes_most;

static void put(void *p, size_t n)
{
    if (!p)
        return;
    pthread_mutex_lock(&lock);
    if (n_block == BLOCKS_MAX)
        abort();
    block[n_block].at = p;
    block[n_block++].bytes = n;
    bytes_held += n;
    bytes_most = bytes_held > bytes_most ? bytes_held : bytes_most;
    pthread_mutex_unlock(&lock);
}

/* Blocks that the C library gave out by itself are not known here. */
static void drop(const void *p)
{
    pthread_mutex_lock(&lock);
    for (size_t i = n_block; p && i-- > 0;)
        if (block[i].at == p) {
            bytes_held -= block[i].bytes;
            block[i] = block[--n_block];
            break;
        }
    pthread_mutex_unlock(&lock);
}

void *__wrap_malloc(size_t n)
{
    void *p = __real_malloc(n);
    put(p, n);
    return p;
}

void *__wrap_calloc(size_t n, size_t size)
{
    void *p = __real_calloc(n, size);
    put(p, n * size);
    return p;
}

void *__wrap_realloc(void *old, size_t n)
{
    drop(old);
    void *p = __real_realloc(old, n);
    put(p, n);
    return p;
}

int __wrap_posix_memalign(void **out, size_t align, size_t n)
{
    int failed = __real_posix_memalign(out, align, n);
    if (!failed)
        put(*out, n);
    return failed;
}

void __wrap_free(void *p)
{
    drop(p);
    __real_free(p);
}

/* ---- the test ---- */

typedef struct {
    const char *model;
    const char *level;
    dtype kv;
    int64_t n_ctx, n_seq, n_tok;
    int threads;
} setting;

static void same(const session_memory *a, const session_memory *b)
{
    ck_assert_uint_eq(a->weights_mapped, b->weights_mapped);
    ck_assert_uint_eq(a->weights_copied, b->weights_copied);
    ck_assert_uint_eq(a->weights_cached, b->weights_cached);
    ck_assert_uint_eq(a->weights_interleaved, b->weights_interleaved);
    ck_assert_uint_eq(a->arena, b->arena);
    ck_assert_uint_eq(a->state, b->state);
    ck_assert_uint_eq(a->scratch, b->scratch);
    ck_assert_uint_eq(a->tables, b->tables);
}

/* Some calls of every size, of every sequence; how many failed. Assertions would allocate. */
static int use(weft_diag *dg, session *s, const setting *x)
{
    int bad = 0;
    batch_row *rows = __real_malloc((size_t)x->n_tok * sizeof *rows);
    for (int64_t n = 1, seq = 0; n <= x->n_tok && n < x->n_ctx;
         n *= 2, seq = (seq + 1) % x->n_seq) {
        bad += session_truncate(dg, s, seq, 0) != WEFT_OK;
        for (int64_t i = 0; i < n; i++)
            rows[i] = (batch_row){
                .id = (int32_t)(i % 50), .pos = (int32_t)i, .seq = (int32_t)seq, .out = i + 1 == n};
        bad += session_eval(dg, s, rows, n) != WEFT_OK;
    }
    __real_free(rows);
    return bad;
}

static void expect_exact(const setting *x)
{
    static const char *const logits[] = {"logits"};
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    model_file *mf;
    bound_model *bm;
    plan *p;
    session *first, *s;
    session_memory need, got;
    char path[512];
    snprintf(path, sizeof path, "%s/%s", WEFT_GOLDEN, x->model);
    target t = {.be = backend_cpu_find(x->level),
                .n_ctx = x->n_ctx,
                .n_seq = x->n_seq,
                .n_tok_max = x->n_tok,
                .n_out_max = x->n_seq < x->n_tok ? x->n_seq : x->n_tok,
                .kv = x->kv,
                .outputs = logits,
                .n_output = 1};
    session_options opt = {.n_ctx = x->n_ctx, .n_seq = x->n_seq, .threads = x->threads};
    ck_assert_int_eq(model_file_open(dg, path, NULL, &mf), WEFT_OK);
    ck_assert_int_eq(model_bind(dg, mf, NULL, &bm), WEFT_OK);
    ck_assert_int_eq(plan_make(dg, bm->graph, &t, NULL, a, &p), WEFT_OK);
    ck_assert_int_eq(session_create(dg, p, model_file_source(mf), &opt, &first),
                     WEFT_OK); /* the pool is there now */
    ck_assert_int_eq(session_need(dg, p, model_file_source(mf), &opt, &need), WEFT_OK);
    size_t before = bytes_held;
    ck_assert_int_eq(session_create(dg, p, model_file_source(mf), &opt, &s), WEFT_OK);
    got = session_bytes(s);
    size_t opened = bytes_held;
    bytes_most = bytes_held;
    int bad = use(dg, s, x);
    size_t most = bytes_most;
    session_destroy(s);
    size_t after = bytes_held;
    ck_assert_int_eq(bad, 0);
    same(&need, &got);
    ck_assert_uint_eq(opened - before, session_memory_own(&need));
    ck_assert_uint_eq(most, opened); /* running takes nothing more */
    ck_assert_uint_eq(after, before);
    session_destroy(first);
    bound_model_destroy(bm);
    model_file_close(mf);
    arena_destroy(a);
    diag_destroy(dg);
}

START_TEST(a_session_takes_what_its_plan_says)
{
    static const setting settings[] = {
        {"llama-mha", "ref", DT_F32, 40, 1, 8, 1},
        {"llama-mha", "c", DT_F16, 100, 1, 32, 1},
        {"llama-mha", "c", DT_BF16, 64, 5, 7, 3},
        {"llama-mha/model-bf16.gguf", "c", DT_F16, 33, 2, 64, 2},
        {"gemma2", "c", DT_F16, 64, 3, 16, 2},
        {"gpt_oss", "c", DT_F32, 50, 1, 16, 7},
    };
    for (size_t i = 0; i < COUNT_OF(settings); i++)
        expect_exact(&settings[i]);
}
END_TEST

SUITE_MAIN("account", a_session_takes_what_its_plan_says)
