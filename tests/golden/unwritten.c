/* unwritten.c - whole models never depend on memory that nobody wrote.
 *
 *     unwritten FOLDER|FILE.gguf...
 *
 * What the library allocates, so activations, the scratch of threads and the pages of state, first holds a pattern:
 * this program stands in for malloc and posix_memalign. The logits of a text are computed with zeros there, and then
 * with NaN that are quiet or signal and infinities of all float types: the same bits must come out, in one call, in
 * several, with several threads, and beside another sequence. Exit status 77, which ctest reads as skipped, if there
 * is no such folder. */
#include "runtime/base/arena.h"
#include "runtime/formats/model_file.h"
#include "runtime/weft.h"

#include <stdlib.h>
#include <sys/stat.h>

enum { EXIT_SKIPPED = 77, CONTEXT_MORE = 100 };

/* ---- what memory holds at first ---- */

static const uint32_t fills[] = {0, 0xffffffff, 0xaaaaaaaa, 0x7f800001, 0x7c007c00, 0xff80ff80};
enum { N_FILL = sizeof fills / sizeof fills[0] };
static uint32_t fill;         /* set while no thread runs a call */
static uint64_t bytes_filled; /* by the last session, about: to see that it happens */

void *__real_malloc(size_t n);
int __real_posix_memalign(void **out, size_t align, size_t n);
void *__wrap_malloc(size_t n);
int __wrap_posix_memalign(void **out, size_t align, size_t n);

static void put_fill(void *p, size_t n)
{
    char *to = p;
    for (size_t i = 0; p && i < n; i += sizeof fill)
        memcpy(to + i, &fill, n - i < sizeof fill ? n - i : sizeof fill);
    __atomic_fetch_add(&bytes_filled, n, __ATOMIC_RELAXED);
}

void *__wrap_malloc(size_t n)
{
    void *p = __real_malloc(n);
    put_fill(p, n);
    return p;
}

int __wrap_posix_memalign(void **out, size_t align, size_t n)
{
    int failed = __real_posix_memalign(out, align, n);
    if (!failed)
        put_fill(*out, n);
    return failed;
}

/* ---- running ---- */

typedef struct {
    weft_diag *dg;
    weft_model *m;
    const int32_t *ids;
    int64_t n_id, vocab;
    float *truth, *got; /* [n_id, vocab] */
} subject;

/* How a text is computed: in calls of so many rows. */
typedef struct {
    int64_t threads, chunk;
    weft_kv kv;
    bool company;
} manner;

static bool told(const subject *c, weft_status st)
{
    if (st != WEFT_OK)
        fputs(weft_diag_text(c->dg), stdout);
    return st != WEFT_OK;
}

/* Rows first .. first + n - 1 of sequence 0; with company, as many of sequence 1 after them, other tokens. */
static bool eval(const subject *c, weft_session *s, int64_t first, int64_t n, bool company)
{
    weft_row *rows = calloc((size_t)(2 * n), sizeof *rows);
    for (int64_t i = 0; i < n; i++) {
        rows[i] = (weft_row){.token = c->ids[first + i], .pos = (int32_t)(first + i), .want = true};
        rows[n + i] = (weft_row){
            .token = c->ids[c->n_id - 1 - first - i], .pos = (int32_t)(first + i), .seq = 1};
    }
    weft_view v;
    bool fine = !told(c, weft_eval(c->dg, s, rows, company ? 2 * n : n)) &&
                !told(c, weft_output(c->dg, s, "logits", -1, &v)) && v.rows == n;
    if (fine)
        memcpy(c->got + first * c->vocab, v.data, (size_t)(n * c->vocab) * sizeof *v.data);
    free(rows);
    return fine;
}

static bool compute(const subject *c, const manner *how, uint32_t pattern)
{
    weft_session *s = NULL;
    weft_session_options options = {.size = sizeof options,
                                    .context = c->n_id + CONTEXT_MORE,
                                    .sequences = 2,
                                    .batch = 2 * how->chunk,
                                    .threads = how->threads,
                                    .kv = how->kv};
    fill = pattern;
    bytes_filled = 0;
    bool fine = !told(c, weft_session_create(c->dg, c->m, &options, &s));
    if (fine && bytes_filled == 0) {
        printf("FAILED a session takes no memory from malloc or posix_memalign\n");
        fine = false;
    }
    for (int64_t i = 0; fine && i < c->n_id; i += how->chunk)
        fine = eval(c, s, i, c->n_id - i < how->chunk ? c->n_id - i : how->chunk, how->company);
    weft_session_destroy(s);
    fill = 0;
    return fine;
}

static bool same(const subject *c, const manner *how, uint32_t pattern)
{
    for (int64_t i = 0; i < c->n_id * c->vocab; i++)
        if (memcmp(&c->got[i], &c->truth[i], sizeof *c->got) != 0) {
            printf("FAILED %lld threads, calls of %lld rows%s, state type %d, memory of %08x: "
                   "position %lld, token %lld: %.9g, with zeros %.9g\n",
                   (long long)how->threads, (long long)how->chunk,
                   how->company ? " and another sequence's" : "", (int)how->kv, (unsigned)pattern,
                   (long long)(i / c->vocab), (long long)(i % c->vocab), (double)c->got[i],
                   (double)c->truth[i]);
            return false;
        }
    return true;
}

/* One manner with all patterns. */
static bool run_manner(const subject *c, const manner *how)
{
    bool fine = compute(c, how, fills[0]);
    memcpy(c->truth, c->got, (size_t)(c->n_id * c->vocab) * sizeof *c->got);
    for (int i = 1; i < N_FILL && fine; i++)
        fine = compute(c, how, fills[i]) && same(c, how, fills[i]);
    return fine;
}

static bool run_all(const subject *c)
{
    const manner all[] = {
        {1, c->n_id, WEFT_KV_F32, false}, {2, c->n_id, WEFT_KV_F16, true},
        {1, 1, WEFT_KV_F16, false},       {3, 1, WEFT_KV_F32, true},
        {2, 3, WEFT_KV_BF16, true},       {2, 7, WEFT_KV_F32, false},
    };
    bool fine = true;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        fine = run_manner(c, &all[i]) && fine;
    return fine;
}

/* The tokens are those of the values recorded beside the model. */
static bool run_model(arena *a, const char *folder)
{
    subject c = {.dg = weft_diag_create()};
    model_file *expected = NULL;
    size_t n = strlen(folder);
    while (n > 0 && str_ends(str_of(folder), STR(".gguf")) && folder[n - 1] != '/')
        n--;
    const char *path = arena_printf(a, "%.*s/expected.safetensors", (int)n, folder).p;
    bool fine = !told(&c, model_file_open((weft_diag *)c.dg, path, NULL, &expected)) &&
                !told(&c, weft_model_open(c.dg, folder, NULL, &c.m)) &&
                weft_model_int(c.m, "vocab", &c.vocab);
    const model_tensor *ids = fine ? model_file_tensor(expected, STR("input_ids")) : NULL;
    if (ids) {
        c.ids = ids->data;
        c.n_id = ids->elems;
        c.truth = calloc((size_t)(c.n_id * c.vocab), sizeof *c.truth);
        c.got = calloc((size_t)(c.n_id * c.vocab), sizeof *c.got);
        fine = run_all(&c);
    }
    printf("%s %s\n", ids && fine ? "ok    " : "FAILED", folder);
    free(c.truth);
    free(c.got);
    weft_model_close(c.m);
    model_file_close(expected);
    weft_diag_destroy(c.dg);
    return ids && fine;
}

int main(int argc, char **argv)
{
    arena *a = arena_create();
    bool fine = argc > 1, skipped = false;
    for (int i = 1; i < argc; i++) {
        struct stat st;
        if (stat(argv[i], &st) != 0) {
            printf("skipped: there is no folder %s\n", argv[i]);
            skipped = true;
            continue;
        }
        fine = run_model(a, argv[i]) && fine;
    }
    arena_destroy(a);
    return !fine ? 1 : skipped ? EXIT_SKIPPED : 0;
}
