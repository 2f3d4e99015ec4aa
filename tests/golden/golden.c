/* golden.c - small models of every family against the values that Hugging Face transformers computes
 * with them: logits, hidden states and greedy continuations.
 *
 *     golden [--arch FILE.weft] [--exec plan|ref|jit] [--kv POLICY] [-t N] [--skip CASES] [--round bf16|none]
 *            [--unlike CASES] [--level LEVEL] [--device NAME] [-ngl N] FOLDER
 *
 * FOLDER has cases: <case>/{config.json, model.safetensors, *.gguf, expected*.safetensors}.
 *
 * Each model file is evaluated in one call, row by row, in chunks of five, as two interleaved sequences,
 * as a sequence that was forked, and after a truncation; with all outputs and with the logits alone, which
 * fuses more. Values must agree to 1e-4 + 1e-4 |expected|: the recorded run is f32 and sums in another
 * order, which moves results by 1e-5; the smallest mistake in an architecture moves them by 0.5. A plan
 * rounds the activations that meet quantised weights to 8 bits, and keys and values to what --kv says:
 * bound_for tells what is allowed then, and where --round bf16 asks for activations rounded to bf16, for which the
 * checkpoints in BF16 alone are taken. --level is the best kernels that may be used (WEFT_CPU). CUDA cards (--device) round
 * activations a little, unless --round none asks for all of their bits.
 * Where the policy has tiers, pages have four tokens, so that all tiers are used, and every way to cut the text into calls must
 * give the same bits; a plan is held against the reference with the same policy too. --unlike names models that choose
 * experts: where state is coarse they choose others than in the recorded run, so these are held against the reference alone.
 * Exit status 77, which ctest reads as skipped, if there is no such folder or the processor cannot run that level. */
#include "kernels/kernels.h"
#include "runtime/formats/model_file.h"
#include "runtime/weft.h"
#include "tests/golden/rounds.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 5, EXIT_SKIPPED = 77 };

/* The error of a value against the recorded one, relative to 1 + its size, and of all values as root mean
 * square, by what is rounded on the way. 8 bits for activations is an error of 0.5 % (blocks of 32) or 0.65 %
 * (of 256) for each of the 28 contractions that a row passes, and the models are random, so that nothing
 * averages out: 2.7 and 3.4 % in all. bf16 for activations is off by 0.1 %
 * each time, 0.7 % in all. Two bf16, which CUDA cards have in calls of 9 rows and more, are off by 2^-19 each time, 1e-5 in all, and rows
 * have an rms of more than the 1 that an error is held against. f16 keeps 11 bits of keys and values, bf16 8. q8 is off by up to half of
 * 1/120 of the range of a channel or token, 25 to 50 times as much as f16; q4 by 16 times as much again, which leaves of these models,
 * whose weights are random, the rough course: what holds there is the root mean square. */
typedef struct {
    double each, rms;
} error_bound;

typedef struct {
    const char *path; /* of the model */
    weft_diag *dg;
    weft_model *m;
    model_file *expected;
    int64_t n_id, vocab, layers;
    const int32_t *ids;
    const float *logits; /* [n_id, vocab] */
    error_bound bound;   /* of |a - b| / (1 + |b|), and of the root mean square */
    double worst;        /* the largest of it so far, in bounds */
    double sum_off, sum; /* of squares: of the differences, and of the expected values */
    float *first;        /* [n_id, vocab]: logits of the first way to cut the text into calls */
    double off_reference;
    char where[160];
} golden_case;

static const char *arch; /* the model file to read all with; NULL: the library's */
static weft_exec exec;
static const char *kv = "f32"; /* a policy */
static bool tiered;            /* of several forms */
enum { TIER_PAGE = 4 };
static const double REFERENCE_RMS = 5e-3; /* at most 1.4e-3 was seen */
static int64_t threads = 1;
static const char *skip = ""; /* cases to leave out, with commas between them */
static const char *unlikes =
    ""; /* cases to hold against the reference with the same policy alone */
static bool round_bf16, round_none; /* neither: as is usual */
static const char *level;
static const char *device; /* NULL: the CPU */
static int64_t layers;     /* of the model, on the device; 0: all */

static const error_bound exact = {1e-4, 1e-4}, kv_f16 = {1e-2, 1e-3}, kv_bf16 = {8e-2, 8e-3},
                         kv_q8 = {0.3, 0.02}, kv_q4 = {5, 0.3}, quantized = {0.4, 0.03},
                         rounded = {0.2, 0.01}, two_bf16 = {3e-4, 3e-5};

/* Are its weights floats, so that nothing rounds activations? */
static bool is_float(const char *path)
{
    const char *type = strrchr(path, '/') ? strrchr(path, '/') : path;
    return !strstr(type, ".gguf") || strstr(type, "f32") || strstr(type, "f16");
}

static bool is_listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += n)
        if ((at == list || at[-1] == ',') && (at[n] == 0 || at[n] == ','))
            return true;
    return false;
}

static error_bound bound_for(const char *path)
{
    bool rounds = !device || layers > 0; /* the kernels of the CPU do */
    if (exec != WEFT_EXEC_REF && rounds && !is_float(path) && !strstr(kv, "q4"))
        return quantized;
    if (round_bf16)
        return rounded;
    if (strstr(kv, "q4"))
        return kv_q4;
    if (strstr(kv, "q8"))
        return kv_q8;
    if (strcmp(kv, "f32") != 0)
        return strcmp(kv, "bf16") == 0 ? kv_bf16 : kv_f16;
    const bool cuda = layers > 0 || (device && strncmp(device, "cuda", 4) == 0);
    const bool near = cuda && exec != WEFT_EXEC_REF && !round_none && !strstr(path, "f32");
    return near ? two_bf16 : exact;
}

static const void *tensor(const golden_case *c, const char *name, int64_t *out_elems)
{
    const model_tensor *t = model_file_tensor(c->expected, str_of(name));
    if (t && out_elems)
        *out_elems = t->elems;
    return t ? t->data : NULL;
}

static void compare(golden_case *c, const char *what, int64_t row, const float *got,
                    const float *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        c->sum += (double)want[i] * want[i];
        c->sum_off += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        double off = fabs((double)got[i] - want[i]) / (1 + fabs((double)want[i])) / c->bound.each;
        if (off > c->worst || isnan(off)) {
            c->worst = isnan(off) ? INFINITY : off;
            snprintf(c->where, sizeof c->where, "%s row %lld element %lld: %.6g, expected %.6g",
                     what, (long long)row, (long long)i, (double)got[i], (double)want[i]);
        }
    }
}

static bool told(golden_case *c, weft_status st)
{
    if (st == WEFT_OK)
        return false;
    printf("FAILED %s\n%s", c->path, weft_diag_text(c->dg));
    return true;
}

static weft_session *open_session_as(golden_case *c, weft_exec how_run, int64_t batch,
                                     int64_t sequences, bool all)
{
    static const char *const outputs[] = {"logits", "hidden", "resid"};
    weft_session *s = NULL;
    weft_session_options how = {.size = sizeof how,
                                .context = c->n_id,
                                .sequences = sequences,
                                .batch = batch,
                                .threads = threads,
                                .outputs = outputs,
                                .n_output = all ? 3 : 1,
                                .exec = how_run,
                                .device = how_run == WEFT_EXEC_REF ? NULL : device,
                                .device_layers = how_run == WEFT_EXEC_REF ? 0 : layers,
                                .kv_policy = kv,
                                .page_tokens = tiered ? TIER_PAGE : 0,
                                .deterministic = tiered,
                                .round_bf16 = round_bf16,
                                .exact = round_none};
    return told(c, weft_session_create(c->dg, c->m, &how, &s)) ? NULL : s;
}

static weft_session *open_session(golden_case *c, int64_t batch, int64_t sequences, bool all)
{
    return open_session_as(c, exec, batch, sequences, all);
}

static bool eval(golden_case *c, weft_session *s, int64_t first, int64_t n)
{
    weft_row *rows = calloc((size_t)n, sizeof *rows);
    for (int64_t i = 0; i < n; i++)
        rows[i] = (weft_row){.token = c->ids[first + i], .pos = (int32_t)(first + i), .want = true};
    bool failed = told(c, weft_eval(c->dg, s, rows, n));
    free(rows);
    return !failed;
}

/* Rows first .. first + n - 1 of everything there is against what is expected of them. */
static bool check_rows(golden_case *c, weft_session *s, int64_t first, int64_t n, bool all)
{
    weft_view v;
    if (told(c, weft_output(c->dg, s, "logits", -1, &v)))
        return false;
    for (int64_t i = 0; i < n; i++)
        compare(c, "logits", first + i, v.data + i * v.width, c->logits + (first + i) * c->vocab,
                c->vocab);
    for (int64_t l = 1; all && l <= c->layers;
         l++) { /* hidden.i is what block i leaves, the last one is normed */
        char name[32];
        snprintf(name, sizeof name, "hidden.%lld", (long long)l);
        const float *want = tensor(c, name, NULL);
        if (!want)
            continue;
        bool last = l == c->layers;
        if (told(c, weft_output(c->dg, s, last ? "hidden" : "resid", last ? -1 : (int)l - 1, &v)))
            return false;
        for (int64_t i = 0; i < n; i++)
            compare(c, name, first + i, v.data + i * v.width, want + (first + i) * v.width,
                    v.width);
    }
    return true;
}

/* With tiers the logits of rows [at, at + n) have the bits that they had the first time. */
static bool same_bits(golden_case *c, weft_session *s, int64_t at, int64_t n)
{
    weft_view v;
    if (told(c, weft_output(c->dg, s, "logits", -1, &v)))
        return false;
    float *first = c->first + at * c->vocab;
    size_t bytes = (size_t)(n * c->vocab) * sizeof *first;
    if (isnan(first[0]))
        memcpy(first, v.data, bytes);
    if (memcmp(first, v.data, bytes) == 0)
        return true;
    printf("FAILED %s\n  rows from %lld on have other bits in calls of %lld rows\n", c->path,
           (long long)at, (long long)n);
    return false;
}

static bool run_chunks(golden_case *c, int64_t chunk, bool all)
{
    weft_session *s = open_session(c, chunk, 1, all);
    bool fine = s != NULL;
    for (int64_t i = 0; fine && i < c->n_id; i += chunk) {
        int64_t n = c->n_id - i < chunk ? c->n_id - i : chunk;
        fine = eval(c, s, i, n) && check_rows(c, s, i, n, all) &&
               (!tiered || all || same_bits(c, s, i, n));
    }
    weft_session_destroy(s);
    return fine;
}

/* The state of the first n tokens from one session to another, by a file. */
static bool state_pass(golden_case *c, weft_session *from, weft_session *to, int64_t n)
{
    const char *dir = getenv("TMPDIR");
    char path[256];
    int32_t *ids = NULL;
    int64_t n_id = 0;
    snprintf(path, sizeof path, "%s/golden-%ld.state", dir ? dir : "/tmp", (long)getpid());
    bool fine = !told(c, weft_sequence_save(c->dg, from, 0, c->ids, n, path)) &&
                !told(c, weft_sequence_load(c->dg, to, 0, path, &ids, &n_id)) && n_id == n;
    weft_free(ids);
    remove(path);
    return fine;
}

/* With tiers a plan reads what the reference reads: the reference goes on from the plan's state at every page. Sums that differ
 * in their last bits may fall on two sides of an edge between codes, but then the row that makes the page coarse sees that alone.
 * So this bound holds whatever quantising itself costs. */
static bool run_as_reference(golden_case *c)
{
    /* Calls of the whole text would need all rows of a window: so there are no rings, which the reference does not have. */
    weft_session *ref = open_session_as(c, WEFT_EXEC_REF, c->n_id, 1, false);
    weft_session *plan = open_session(c, c->n_id, 1, false);
    weft_view v;
    double off = 0, all = 0;
    bool fine = ref && plan;
    for (int64_t at = 0; fine && at < c->n_id; at += TIER_PAGE) {
        int64_t n = c->n_id - at < TIER_PAGE ? c->n_id - at : TIER_PAGE;
        fine = (at == 0 || state_pass(c, plan, ref, at)) && eval(c, ref, at, n) &&
               !told(c, weft_output(c->dg, ref, "logits", -1, &v)) && eval(c, plan, at, n);
        for (int64_t i = 0; fine && i < n * c->vocab; i++) {
            double want = v.data[i], d = c->first[at * c->vocab + i] - want;
            off += d * d;
            all += want * want;
        }
    }
    weft_session_destroy(ref);
    weft_session_destroy(plan);
    c->off_reference = sqrt(off / all);
    if (!fine || c->off_reference <= REFERENCE_RMS)
        return fine;
    printf("FAILED %s\n  off the reference with the same policy by rms %.2g\n", c->path,
           c->off_reference);
    return false;
}

/* The same text twice, the second a few rows behind, in calls that mix both. */
static bool run_interleaved(golden_case *c)
{
    enum { BEHIND = 3, STEP = 4 };
    weft_session *s = open_session(c, 2 * STEP, 2, false);
    weft_row rows[2 * STEP];
    int64_t at[2] = {0, 0};
    bool fine = s != NULL;
    while (fine && (at[0] < c->n_id || at[1] < c->n_id)) {
        int64_t n = 0, row_of[2 * STEP], seq_of[2 * STEP];
        for (int64_t k = 0; k < 2 * STEP; k++) {
            int64_t q = k % 2;
            if (at[q] >= c->n_id || (q == 1 && at[1] + BEHIND > at[0] && at[0] < c->n_id))
                continue;
            rows[n] = (weft_row){
                .token = c->ids[at[q]], .pos = (int32_t)at[q], .seq = (int32_t)q, .want = true};
            row_of[n] = at[q]++;
            seq_of[n++] = q;
        }
        weft_view v;
        fine = !told(c, weft_eval(c->dg, s, rows, n)) &&
               !told(c, weft_output(c->dg, s, "logits", -1, &v));
        for (int64_t i = 0; fine && i < n; i++)
            compare(c,
                    seq_of[i] ? "interleaved logits of sequence 1,"
                              : "interleaved logits of sequence 0,",
                    row_of[i], v.data + i * v.width, c->logits + row_of[i] * c->vocab, c->vocab);
    }
    weft_session_destroy(s);
    return fine;
}

static bool run_truncated(golden_case *c)
{
    int64_t keep = tiered ? c->n_id - TIER_PAGE : c->n_id / 3; /* tiers go back by a page */
    weft_session *s = open_session(c, c->n_id, 1, true);
    bool fine = s && eval(c, s, 0, c->n_id) && !told(c, weft_truncate(c->dg, s, 0, keep)) &&
                weft_length(s, 0) == keep && eval(c, s, keep, c->n_id - keep) &&
                check_rows(c, s, keep, c->n_id - keep, true);
    weft_session_destroy(s);
    return fine;
}

/* Sequence 1 takes over the beginning of sequence 0, then both go on by the same rows in one call. */
static bool run_forked(golden_case *c)
{
    int64_t keep = c->n_id / 2, n = c->n_id - keep;
    weft_session *s = open_session(c, c->n_id > 2 * n ? c->n_id : 2 * n, 2, false);
    weft_row *rows = calloc((size_t)(2 * n), sizeof *rows);
    bool fine = s && eval(c, s, 0, keep) && !told(c, weft_fork(c->dg, s, 0, 1, keep));
    for (int64_t i = 0; i < 2 * n; i++)
        rows[i] = (weft_row){.token = c->ids[keep + i / 2],
                             .pos = (int32_t)(keep + i / 2),
                             .seq = (int32_t)(i % 2),
                             .want = true};
    weft_view v;
    fine = fine && !told(c, weft_eval(c->dg, s, rows, 2 * n)) &&
           !told(c, weft_output(c->dg, s, "logits", -1, &v));
    for (int64_t i = 0; fine && i < 2 * n; i++)
        compare(c, "forked logits,", keep + i / 2, v.data + i * v.width,
                c->logits + (keep + i / 2) * c->vocab, c->vocab);
    free(rows);
    weft_session_destroy(s);
    return fine;
}

/* Only every third row of a call is asked for: the others need not go through the last layers. */
static bool run_some(golden_case *c)
{
    enum { EACH = 3 };
    weft_session *s = NULL;
    int64_t n_want = (c->n_id + EACH - 1) / EACH, n = 0;
    weft_session_options how = {.size = sizeof how,
                                .context = c->n_id,
                                .batch = c->n_id,
                                .threads = threads,
                                .wants = n_want,
                                .exec = exec,
                                .device = device,
                                .device_layers = layers,
                                .kv_policy = kv,
                                .page_tokens = tiered ? TIER_PAGE : 0,
                                .round_bf16 = round_bf16,
                                .exact = round_none};
    weft_row *rows = calloc((size_t)c->n_id, sizeof *rows);
    for (int64_t i = 0; i < c->n_id; i++)
        rows[i] = (weft_row){
            .token = c->ids[i], .pos = (int32_t)i, .want = (c->n_id - 1 - i) % EACH == 0};
    weft_view v;
    bool fine = !told(c, weft_session_create(c->dg, c->m, &how, &s)) &&
                !told(c, weft_eval(c->dg, s, rows, c->n_id)) &&
                !told(c, weft_output(c->dg, s, "logits", -1, &v)) && v.rows == n_want;
    for (int64_t i = 0; fine && i < c->n_id; i++)
        if (rows[i].want)
            compare(c, "logits of some rows,", i, v.data + n++ * v.width, c->logits + i * c->vocab,
                    c->vocab);
    free(rows);
    weft_session_destroy(s);
    return fine;
}

static bool run_greedy(golden_case *c)
{
    int64_t n_greedy = 0;
    const int32_t *want = tensor(c, "greedy_ids", &n_greedy),
                  *prompt = tensor(c, "prompt_len", NULL);
    if (!want || !prompt)
        return true;
    weft_session_options how = {.size = sizeof how,
                                .context = *prompt + n_greedy,
                                .batch = *prompt,
                                .threads = threads,
                                .exec = exec,
                                .device = device,
                                .device_layers = layers,
                                .kv_policy = kv,
                                .page_tokens = tiered ? TIER_PAGE : 0,
                                .round_bf16 = round_bf16,
                                .exact = round_none};
    weft_session *s = NULL;
    if (told(c, weft_session_create(c->dg, c->m, &how, &s)))
        return false;
    bool fine = eval(c, s, 0, *prompt);
    for (int64_t i = 0; fine && i < n_greedy; i++) {
        weft_view v;
        fine = !told(c, weft_output(c->dg, s, "logits", -1, &v));
        const float *row = v.data + (v.rows - 1) * v.width;
        int32_t best = 0;
        for (int64_t k = 1; fine && k < v.width; k++)
            best = row[k] > row[best] ? (int32_t)k : best;
        /* Where values may be off by the bound, two that are closer may change places. */
        double near = 2 * c->bound.each * (1 + fabs((double)row[best]));
        if (fine && best != want[i] &&
            (c->bound.each <= exact.each || row[best] - row[want[i]] > near)) {
            printf("FAILED %s\n  greedy token %lld is %d, expected %d\n", c->path, (long long)i,
                   best, want[i]);
            fine = false;
        }
        weft_row next = {.token = want[i], .pos = (int32_t)(*prompt + i), .want = true};
        fine = fine && (i + 1 == n_greedy || !told(c, weft_eval(c->dg, s, &next, 1)));
    }
    weft_session_destroy(s);
    return fine;
}

/* unlike: it is not held against the recorded values. */
static bool run_model(const char *path, const char *expected, bool unlike)
{
    golden_case c = {.path = path, .dg = weft_diag_create(), .bound = bound_for(path)};
    int64_t n_logit = 0;
    bool fine = !told(&c, model_file_open((weft_diag *)c.dg, expected, NULL, &c.expected)) &&
                !told(&c, weft_model_open(c.dg, path,
                                          &(weft_model_options){.size = sizeof(weft_model_options),
                                                                .arch = arch},
                                          &c.m));
    if (fine) {
        c.ids = tensor(&c, "input_ids", &c.n_id);
        c.logits = tensor(&c, "logits", &n_logit);
        fine = c.ids && c.logits && c.n_id > 0 && weft_model_int(c.m, "layers", &c.layers);
        c.vocab = fine ? n_logit / c.n_id : 0;
    }
    c.first = malloc((size_t)(c.n_id * c.vocab + 1) * sizeof *c.first);
    for (int64_t i = 0; i < c.n_id * c.vocab; i++)
        c.first[i] = NAN;
    for (int all = 0; all < 2 && fine; all++)
        fine = run_chunks(&c, c.n_id, all) && run_chunks(&c, 1, all) && run_chunks(&c, CHUNK, all);
    if (tiered && exec != WEFT_EXEC_REF && is_float(path))
        fine = fine && run_as_reference(&c);
    fine = fine && run_some(&c) && run_interleaved(&c) && run_forked(&c) && run_truncated(&c) &&
           (unlike || run_greedy(&c));
    double rms = sqrt(c.sum_off / c.sum);
    if (fine && !unlike && (c.worst > 1 || rms > c.bound.rms)) {
        printf("FAILED %s\n  %s; rms %.2g\n", path, c.where, rms);
        fine = false;
    }
    if (fine)
        printf("ok     %-72s %.3f of the bound %g, rms %.2g, of the reference %.2g\n", path,
               c.worst, c.bound.each, rms, c.off_reference);
    free(c.first);
    weft_model_close(c.m);
    model_file_close(c.expected);
    weft_diag_destroy(c.dg);
    return fine;
}

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* A quantised file has expected values of its own, from its own dequantised weights. */
static void run_case(arena *a, const char *folder, int *n_ok, int *n_failed)
{
    struct dirent **list;
    const char *plain = arena_printf(a, "%s/expected.safetensors", folder).p;
    if (!exists(plain) || !exists(arena_printf(a, "%s/config.json", folder).p))
        return;
    bool unlike = is_listed(unlikes, strrchr(folder, '/') + 1);
    *(run_model(folder, plain, unlike) ? n_ok : n_failed) += 1;
    int n = round_bf16 ? -1 : scandir(folder, &list, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        str name = str_of(list[i]->d_name);
        if (str_starts(name, STR("model-")) && str_ends(name, STR(".gguf"))) {
            int len = (int)name.n - 11;
            const char *own =
                arena_printf(a, "%s/expected-%.*s.safetensors", folder, len, name.p + 6).p;
            const char *path = arena_printf(a, "%s/%s", folder, name.p).p;
            *(run_model(path, exists(own) ? own : plain, unlike) ? n_ok : n_failed) += 1;
        }
        free(list[i]);
    }
    if (n >= 0)
        free(list);
}

/* Every flag has a value. False: an unknown one. */
static bool take_flag(const char *flag, const char *text)
{
    if (strcmp(flag, "--arch") == 0)
        arch = text;
    else if (strcmp(flag, "--skip") == 0)
        skip = text;
    else if (strcmp(flag, "--unlike") == 0)
        unlikes = text;
    else if (strcmp(flag, "--round") == 0)
        round_bf16 = strcmp(text, "bf16") == 0, round_none = strcmp(text, "none") == 0;
    else if (strcmp(flag, "--level") == 0)
        level = text;
    else if (strcmp(flag, "--device") == 0)
        device = text;
    else if (strcmp(flag, "-ngl") == 0)
        layers = atoi(text);
    else if (strcmp(flag, "-t") == 0)
        threads = atoi(text);
    else if (strcmp(flag, "--exec") == 0)
        exec = strcmp(text, "ref") == 0   ? WEFT_EXEC_REF
               : strcmp(text, "jit") == 0 ? WEFT_EXEC_JIT
                                          : WEFT_EXEC_PLAN;
    else if (strcmp(flag, "--kv") == 0)
        kv = text;
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    struct dirent **list;
    int n_ok = 0, n_failed = 0, at = 1;
    setvbuf(stdout, NULL, _IOLBF, 0); /* a run that is cut short has said what it knew */
    for (; at + 2 < argc; at += 2)
        if (!take_flag(argv[at], argv[at + 1]))
            return 2;
    const char *folder = at < argc ? argv[at] : NULL;
    if (round_bf16 && !rounds_any_rows()) {
        printf("skipped: this processor has no kernels that round to bf16 at any number of rows\n");
        return EXIT_SKIPPED;
    }
    if (level && kvariant_find(level) == VARIANT_COUNT) {
        printf("skipped: this processor cannot run kernels up to %s\n", level);
        return EXIT_SKIPPED;
    }
    tiered = strchr(kv, ',') || kv[0] == 'q';
    if (level)
        setenv("WEFT_CPU", level, 1);
    int n = folder ? scandir(folder, &list, NULL, alphasort) : -1;
    if (n < 0) {
        printf("skipped: there is no folder %s\n", folder ? folder : "given");
        return EXIT_SKIPPED;
    }
    arena *a = arena_create();
    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name;
        if (name[0] != '.' && strncmp(name, "lora", 4) != 0 && !is_listed(skip, name))
            run_case(a, arena_printf(a, "%s/%s", folder, name).p, &n_ok, &n_failed);
        free(list[i]);
    }
    free(list);
    arena_destroy(a);
    printf("%d passed, %d failed\n", n_ok, n_failed);
    return n_ok > 0 && n_failed == 0 ? 0 : 1;
}
