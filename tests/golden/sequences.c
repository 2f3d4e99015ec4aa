/* sequences.c - the same bits whatever a sequence went through: forked, cut and grown again, saved and restored in another session, its
 * rows taken over from another one; for every form that state is stored in, with --deterministic, on the models of a folder.
 *
 *     sequences FOLDER...
 *
 * The logits of every position of a text in one sequence are the truth. That they are right is golden.c's to say. Exit status 77,
 * which ctest reads as skipped, if there is no such folder. */
#include "runtime/formats/model_file.h"
#include "runtime/weft.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_SKIPPED = 77, CALL = 8, PAGE = 8, SEQS = 3 };

static const char *const policies[] = {
    "f32", "f16", "bf16", "q8", "q4", "f16 last=8, q8 last=24, q4 rest", "bf16 last=16, q4 rest"};

typedef struct {
    weft_diag *dg;
    weft_model *m;
    const char *policy;
    const int32_t *ids;
    int64_t n_id, vocab;
    float *truth, *got; /* [n_id, vocab] */
    int n_refused;      /* ranges whose rows were gone */
} subject;

static bool told(const subject *c, weft_status st)
{
    if (st != WEFT_OK)
        fputs(weft_diag_text(c->dg), stdout);
    return st != WEFT_OK;
}

static weft_session *open_session(const subject *c, int64_t more)
{
    weft_session *s = NULL;
    weft_session_options how = {.size = sizeof how,
                                .context = c->n_id + more,
                                .sequences = SEQS,
                                .batch = CALL,
                                .page_tokens = PAGE,
                                .kv_policy = c->policy,
                                .deterministic = true};
    return told(c, weft_session_create(c->dg, c->m, &how, &s)) ? NULL : s;
}

/* Positions [first, end) in calls of a few rows. */
static bool eval(const subject *c, weft_session *s, int64_t seq, int64_t first, int64_t end)
{
    for (int64_t at = first; at < end;) {
        weft_row rows[CALL];
        int64_t n = end - at < CALL ? end - at : CALL;
        for (int64_t i = 0; i < n; i++)
            rows[i] = (weft_row){.token = c->ids[at + i],
                                 .pos = (int32_t)(at + i),
                                 .seq = (int32_t)seq,
                                 .want = true};
        weft_view v;
        if (told(c, weft_eval(c->dg, s, rows, n)) ||
            told(c, weft_output(c->dg, s, "logits", -1, &v)))
            return false;
        memcpy(c->got + at * c->vocab, v.data, (size_t)(n * c->vocab) * sizeof *v.data);
        at += n;
    }
    return true;
}

static bool same(const subject *c, const char *how, int64_t first)
{
    for (int64_t i = first * c->vocab; i < c->n_id * c->vocab; i++)
        if (memcmp(&c->got[i], &c->truth[i], sizeof *c->got) != 0) {
            printf("FAILED %s: position %lld, token %lld: %.9g, in one sequence %.9g\n", how,
                   (long long)(i / c->vocab), (long long)(i % c->vocab), (double)c->got[i],
                   (double)c->truth[i]);
            return false;
        }
    return true;
}

/* The rest of the text in a sequence that holds its first tokens, if all went well. */
static bool goes_on(const subject *c, weft_session *s, bool fine, int64_t seq, int64_t first,
                    const char *how)
{
    memset(c->got, 0, (size_t)(c->n_id * c->vocab) * sizeof *c->got);
    fine = fine && weft_length(s, seq) == first && eval(c, s, seq, first, c->n_id) &&
           same(c, how, first);
    weft_session_destroy(s);
    return fine;
}

static bool forked(const subject *c, int64_t at)
{
    weft_session *s = open_session(c, 0);
    bool fine = s && eval(c, s, 0, 0, at) && !told(c, weft_fork(c->dg, s, 0, 2, at)) &&
                eval(c, s, 0, at, c->n_id); /* the other one goes on first */
    return goes_on(c, s, fine, 2, at, "forked");
}

static bool regrown(const subject *c, int64_t at)
{
    weft_session *s = open_session(c, 0);
    weft_row wrong[2];
    for (int i = 0; i < 2; i++)
        wrong[i] = (weft_row){.token = c->ids[0], .pos = (int32_t)at + i};
    bool fine = s && eval(c, s, 0, 0, at) && !told(c, weft_eval(c->dg, s, wrong, 2)) &&
                !told(c, weft_truncate(c->dg, s, 0, at));
    return goes_on(c, s, fine, 0, at, "cut and grown again");
}

static bool restored(const subject *c, int64_t at)
{
    char path[] = "/tmp/weft-golden-XXXXXX";
    int32_t *ids = NULL;
    int64_t n = 0;
    weft_session *s = open_session(c, 0), *other = open_session(c, 40);
    close(mkstemp(path));
    bool fine = s && other && eval(c, s, 1, 0, at) && eval(c, other, 2, 0, at / 2) &&
                !told(c, weft_sequence_save(c->dg, s, 1, c->ids, at, path));
    weft_session_destroy(s);
    fine = fine && !told(c, weft_sequence_load(c->dg, other, 2, path, &ids, &n)) && n == at &&
           memcmp(ids, c->ids, (size_t)n * sizeof *ids) == 0;
    weft_free(ids);
    unlink(path);
    return goes_on(c, other, fine, 2, at, "saved and restored");
}

/* The last few rows before `at` are another sequence's. */
static bool taken_over(subject *c, int64_t at)
{
    enum { ROWS = 5 };
    weft_session *s = open_session(c, 0);
    bool fine = s && eval(c, s, 0, 0, at) && eval(c, s, 1, 0, at - ROWS);
    weft_status st = fine ? weft_append_range(c->dg, s, 0, 1, at - ROWS, at) : WEFT_OK;
    if (st != WEFT_OK) { /* rows that became coarser are not taken */
        weft_diag_clear(c->dg);
        c->n_refused++;
        weft_session_destroy(s);
        return st == WEFT_ERR_STATE;
    }
    return goes_on(c, s, fine, 1, at, "with rows of another sequence");
}

static bool run_all(subject *c)
{
    weft_session *s = open_session(c, 0);
    bool fine = s && eval(c, s, 0, 0, c->n_id);
    weft_session_destroy(s);
    memcpy(c->truth, c->got, (size_t)(c->n_id * c->vocab) * sizeof *c->got);
    const int64_t at[] = {c->n_id / 2, c->n_id / 2 + 3, c->n_id / 4 * 3 / PAGE * PAGE};
    for (int i = 0; i < 3 && fine; i++)
        fine = forked(c, at[i]) && regrown(c, at[i]) && restored(c, at[i]) && taken_over(c, at[i]);
    return fine;
}

static bool run_model(arena *a, const char *folder, const char *policy)
{
    subject c = {.dg = weft_diag_create(), .policy = policy};
    model_file *expected = NULL;
    const char *path = arena_printf(a, "%s/expected.safetensors", folder).p;
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
    bool one_form = strchr(policy, ' ') == NULL && policy[0] != 'q';
    fine = fine && ids && !(one_form && c.n_refused);
    printf("%s %s, %s; %d ranges were gone\n", fine ? "ok    " : "FAILED", folder, policy,
           c.n_refused);
    free(c.truth);
    free(c.got);
    weft_model_close(c.m);
    model_file_close(expected);
    weft_diag_destroy(c.dg);
    return fine;
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
        for (size_t k = 0; k < sizeof policies / sizeof *policies; k++)
            fine = run_model(a, argv[i], policies[k]) && fine;
    }
    arena_destroy(a);
    return !fine ? 1 : skipped ? EXIT_SKIPPED : 0;
}
