/* walks.c - random walks through the calls of weft.h that change sequences, right ones and wrong ones, on whole models:
 *
 *     walks [--device NAME] [-ngl N] STEPS FOLDER...
 *
 * What each sequence holds is written down beside it. After every step that changes one, the logits of its next token must be the
 * bits that a sequence gives into which the same tokens were put in one go; a call that fails must have changed no length; and in the end
 * all pages are free. For every form of state, with --deterministic. Rows out of the middle are approximate: such a sequence is
 * compared only as far as it was not touched. Exit status 77, which ctest reads as skipped, if there is no such folder. */
#include "runtime/weft.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_SKIPPED = 77, CALL = 9, PAGE = 8, SEQS = 4, CONTEXT = 75, VOCAB_LEAST = 32 };

static const struct {
    const char *policy;
    int64_t pages; /* of those that keep all rows; 0: enough for all sequences */
} forms[] = {{"f32", 0},
             {"f16", 24},
             {"bf16", 0},
             {"q8", 24},
             {"q4/f16", 0},
             {"f16 last=8, q8 last=24, q4 rest", 0},
             {"bf16 last=17, q8/q4 rest", 20}};

static const char *device; /* NULL: the CPU */
static int64_t layers;     /* of the model, on the device; 0: all */

typedef struct {
    int64_t n, exact; /* tokens, and how many of the first nobody has moved */
    int32_t ids[CONTEXT];
} text;

typedef struct {
    weft_diag *dg;
    weft_model *m;
    weft_session *s, *plain;
    int64_t vocab;
    uint32_t seed;
    text seq[SEQS], saved;
    char path[32];
    bool has_file;
    int done, refused, compared;
} walk;

static int64_t draw(walk *w, int64_t n)
{
    w->seed = w->seed * 1664525u + 1013904223u;
    return (int64_t)((w->seed >> 8) % (uint32_t)n);
}

static bool fail(walk *w, const char *why)
{
    printf("FAILED %s\n%s", why, weft_diag_text(w->dg));
    return false;
}

/* A call failed, as it may: it says so, and sequences are as they were. */
static bool was_refused(walk *w, const char *what)
{
    bool said = weft_diag_count(w->dg) > 0;
    weft_diag_clear(w->dg);
    w->refused++;
    for (int64_t q = 0; q < SEQS; q++)
        if (weft_length(w->s, q) != w->seq[q].n)
            return fail(w, what);
    return said || fail(w, "a call failed and said nothing");
}

/* ---- tokens ---- */

/* Text ids[0, n) in the plain session, and the logits of the last. */
static const float *plain_logits(walk *w, const int32_t *ids, int64_t n)
{
    weft_view v;
    if (weft_truncate(w->dg, w->plain, 0, 0) != WEFT_OK)
        return NULL;
    for (int64_t at = 0; at < n;) {
        weft_row rows[CALL];
        int64_t k = n - at < CALL ? n - at : CALL;
        for (int64_t i = 0; i < k; i++)
            rows[i] =
                (weft_row){.token = ids[at + i], .pos = (int32_t)(at + i), .want = at + i + 1 == n};
        if (weft_eval(w->dg, w->plain, rows, k) != WEFT_OK)
            return NULL;
        at += k;
    }
    return weft_output(w->dg, w->plain, "logits", -1, &v) == WEFT_OK ? v.data : NULL;
}

/* Some tokens for up to three sequences in one call, the last of each compared. */
static bool grow(walk *w)
{
    weft_row rows[CALL];
    int64_t n_row = 0, who[3], n[3], n_who = 0;
    weft_view v;
    for (int64_t left = CALL, tries = 1 + draw(w, 3); tries > 0 && left > 0; tries--) {
        int64_t q = draw(w, SEQS), k = 1 + draw(w, left);
        bool twice = false;
        for (int64_t i = 0; i < n_who; i++)
            twice |= who[i] == q;
        if (twice)
            continue;
        for (int64_t i = 0; i < k; i++)
            rows[n_row++] = (weft_row){.token = (int32_t)draw(w, VOCAB_LEAST),
                                       .pos = (int32_t)(w->seq[q].n + i),
                                       .seq = (int32_t)q,
                                       .want = i + 1 == k};
        who[n_who] = q;
        n[n_who++] = k;
        left -= k;
    }
    if (weft_eval(w->dg, w->s, rows, n_row) != WEFT_OK)
        return was_refused(w, "rows that were refused have changed a sequence");
    if (weft_output(w->dg, w->s, "logits", -1, &v) != WEFT_OK || v.rows != n_who)
        return fail(w, "no logits");
    for (int64_t i = 0, at = 0; i < n_who; at += n[i++]) {
        text *x = &w->seq[who[i]];
        bool exact = x->exact == x->n;
        for (int64_t k = 0; k < n[i]; k++)
            x->ids[x->n++] = rows[at + k].token;
        for (int64_t k = 0; k < w->vocab; k++)
            if (!isfinite(v.data[i * w->vocab + k]))
                return fail(w, "a logit is no number");
        if (!exact)
            continue;
        x->exact = x->n;
        const float *want = plain_logits(w, x->ids, x->n);
        if (!want || memcmp(want, v.data + i * w->vocab, (size_t)w->vocab * sizeof *want) != 0)
            return fail(w, "logits are not those of the same tokens in one go");
        w->compared++;
    }
    w->done++;
    return true;
}

/* ---- sequences ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Often near the end, where windows and tiers allow it, and now and then too far. */
static int64_t some_length(walk *w, int64_t n)
{
    int64_t which = draw(w, 8);
    return which == 0   ? n + 1 + draw(w, 3)
           : which == 1 ? 0
           : which < 4  ? draw(w, n + 1)
                        : n - least(n, draw(w, 6));
}

static bool cut_or_fork(walk *w, bool fork)
{
    int64_t from = draw(w, SEQS), to = fork ? draw(w, SEQS) : from;
    int64_t n = some_length(w, w->seq[from].n);
    weft_status st =
        fork ? weft_fork(w->dg, w->s, from, to, n) : weft_truncate(w->dg, w->s, from, n);
    if (st != WEFT_OK)
        return (n > 0 || from != to)
                   ? was_refused(w, "a cut that was refused has changed something")
                   : fail(w, "a sequence cannot be emptied");
    w->seq[to] = w->seq[from];
    w->seq[to].n = n;
    w->seq[to].exact = least(n, w->seq[to].exact);
    w->done++;
    return true;
}

static bool take_range(walk *w)
{
    int64_t from = draw(w, SEQS), to = draw(w, SEQS), begin = w->seq[to].n;
    int64_t end = begin + draw(w, 12);
    text *x = &w->seq[to];
    const text *y = &w->seq[from];
    if (weft_append_range(w->dg, w->s, from, to, begin, end) != WEFT_OK)
        return was_refused(w, "a range that was refused has changed something");
    if (from == to || end > y->n)
        return fail(w, "rows that are not there were taken");
    bool like = x->exact == begin && y->exact >= end &&
                memcmp(x->ids, y->ids, (size_t)begin * sizeof *x->ids) == 0;
    memcpy(x->ids + begin, y->ids + begin, (size_t)(end - begin) * sizeof *x->ids);
    x->n = end;
    x->exact = like ? end : least(x->exact, begin);
    w->done++;
    return true;
}

static bool remove_range(walk *w)
{
    int64_t q = draw(w, SEQS), begin = draw(w, w->seq[q].n + 1);
    int64_t end = begin + draw(w, w->seq[q].n - begin + 2);
    text *x = &w->seq[q];
    bool exact = false;
    if (weft_remove_range(w->dg, w->s, q, begin, end, &exact) != WEFT_OK)
        return was_refused(w, "a removal that was refused has changed something");
    if (exact != (end == x->n || end == begin))
        return fail(w, "a removal is exact where nothing moves, and nowhere else");
    memmove(x->ids + begin, x->ids + end, (size_t)(x->n - end) * sizeof *x->ids);
    x->n -= end - begin;
    x->exact = exact ? least(x->n, x->exact) : least(begin, x->exact);
    w->done++;
    return true;
}

static bool save_or_load(walk *w, bool load)
{
    int64_t q = draw(w, SEQS), n;
    int32_t *ids;
    if (!load) {
        if (weft_sequence_save(w->dg, w->s, q, w->seq[q].ids, w->seq[q].n, w->path) != WEFT_OK)
            return fail(w, "a sequence cannot be saved");
        w->saved = w->seq[q];
        w->has_file = true;
    } else if (w->has_file) {
        if (weft_sequence_load(w->dg, w->s, q, w->path, &ids, &n) != WEFT_OK)
            return was_refused(w, "a file that was refused has changed something");
        bool same = n == w->saved.n && memcmp(ids, w->saved.ids, (size_t)n * sizeof *ids) == 0;
        weft_free(ids);
        if (!same)
            return fail(w, "a file has other tokens than were saved");
        w->seq[q] = w->saved;
    }
    w->done++;
    return true;
}

/* Calls that can never be right. */
static bool misuse(walk *w)
{
    int64_t q = draw(w, SEQS), n = w->seq[q].n;
    weft_row row = {.token = 1, .pos = (int32_t)n, .seq = (int32_t)q, .want = true};
    weft_row two[2] = {row, row};
    int32_t *ids, more[CONTEXT + 1] = {0};
    int64_t n_id;
    bool exact;
    weft_status st = WEFT_OK;
    switch (draw(w, 16)) {
    case 0:
        row.pos = (int32_t)n + 1;
        st = weft_eval(w->dg, w->s, &row, 1);
        break;
    case 1:
        row.pos = (int32_t)n - 1;
        st = weft_eval(w->dg, w->s, &row, 1);
        break;
    case 2:
        row.pos = -1 - (int32_t)n;
        st = weft_eval(w->dg, w->s, &row, 1);
        break;
    case 3:
        row.seq = SEQS;
        st = weft_eval(w->dg, w->s, &row, 1);
        break;
    case 4:
        row.seq = INT32_MIN;
        st = weft_eval(w->dg, w->s, &row, 1);
        break;
    case 5:
        row.token = (int32_t)w->vocab;
        st = weft_eval(w->dg, w->s, &row, 1);
        break;
    case 6:
        row.slot = 1;
        st = weft_eval(w->dg, w->s, &row, 1);
        break;
    case 7:
        st = weft_eval(w->dg, w->s, two, 2);
        break; /* the same position twice */
    case 8:
        st = weft_eval(w->dg, w->s, two, INT64_MAX);
        break;
    case 9:
        st = weft_truncate(w->dg, w->s, q, -1);
        break;
    case 10:
        st = weft_fork(w->dg, w->s, q, SEQS, 0);
        break;
    case 11:
        st = weft_fork(w->dg, w->s, INT64_MIN, q, 0);
        break;
    case 12:
        st = weft_append_range(w->dg, w->s, q, (q + 1) % SEQS, INT64_MAX, INT64_MIN);
        break;
    case 13:
        st = weft_remove_range(w->dg, w->s, q, n, INT64_MAX, &exact);
        break;
    case 14:
        st = weft_sequence_save(w->dg, w->s, q, more, n + 1, w->path);
        break;
    default:
        st = weft_sequence_load(w->dg, w->s, q, "/no/such/file", &ids, &n_id);
    }
    return st != WEFT_OK ? was_refused(w, "a wrong call has changed something")
                         : fail(w, "a call that cannot be right was done");
}

static bool step(walk *w)
{
    int64_t what = draw(w, 20);
    return what < 8    ? grow(w)
           : what < 12 ? cut_or_fork(w, what < 10)
           : what < 14 ? take_range(w)
           : what < 15 ? remove_range(w)
           : what < 17 ? save_or_load(w, what == 16)
                       : misuse(w);
}

/* Emptied twice over, nothing is left. */
static bool ends_empty(walk *w)
{
    weft_kv_tier t[64];
    for (int twice = 0; twice < 2; twice++)
        for (int64_t q = 0; q < SEQS; q++)
            if (weft_truncate(w->dg, w->s, q, 0) != WEFT_OK)
                return fail(w, "a sequence cannot be emptied");
    int64_t n = weft_kv_tiers(w->s, t, 64);
    for (int64_t i = 0; i < n && i < 64; i++)
        if (t[i].pages_free != t[i].pages)
            return fail(w, "pages are lost");
    return n > 0 && n <= 64;
}

/* ---- models ---- */

static bool open_sessions(walk *w, const char *policy, int64_t pages)
{
    weft_session_options how = {.size = sizeof how,
                                .context = CONTEXT,
                                .sequences = SEQS,
                                .batch = CALL,
                                .page_tokens = PAGE,
                                .pages = pages,
                                .prefixes = -1,
                                .kv_policy = policy,
                                .device = device,
                                .device_layers = layers,
                                .deterministic = true};
    weft_session_info about = {.size = sizeof about};
    if (weft_session_create(w->dg, w->m, &how, &w->s) != WEFT_OK)
        return fail(w, "no session");
    how.pages = 0;
    how.sequences = 1;
    if (weft_session_create(w->dg, w->m, &how, &w->plain) != WEFT_OK ||
        weft_session_about(w->dg, w->s, &about) != WEFT_OK)
        return fail(w, "no session");
    w->vocab = about.vocab;
    return w->vocab >= VOCAB_LEAST;
}

static bool run_form(weft_model *m, const char *folder, size_t form, int steps)
{
    walk w = {.m = m, .seed = (uint32_t)form + 1, .path = "/tmp/weft-walks-XXXXXX"};
    w.dg = weft_diag_create();
    close(mkstemp(w.path));
    bool fine = open_sessions(&w, forms[form].policy, forms[form].pages);
    int i = 0;
    while (i < steps && fine) {
        fine = step(&w);
        i++;
    }
    fine = fine && ends_empty(&w);
    /* A walk that goes nowhere shows nothing. */
    fine = fine && w.done > steps / 4 && w.refused > steps / 20 && w.compared > steps / 20;
    printf("%s %s, %s: %d steps, %d refused, %d compared\n", fine ? "ok    " : "FAILED", folder,
           forms[form].policy, i, w.refused, w.compared);
    weft_session_destroy(w.s);
    weft_session_destroy(w.plain);
    weft_diag_destroy(w.dg);
    unlink(w.path);
    return fine;
}

int main(int argc, char **argv)
{
    int at = 1;
    for (; at + 1 < argc && argv[at][0] == '-'; at += 2)
        if (strcmp(argv[at], "--device") == 0)
            device = argv[at + 1];
        else if (strcmp(argv[at], "-ngl") == 0)
            layers = atoi(argv[at + 1]);
        else
            return 2;
    bool fine = argc > at + 1, skipped = false;
    for (int i = at + 1; i < argc; i++) {
        struct stat st;
        weft_model *m = NULL;
        weft_diag *dg = weft_diag_create();
        if (stat(argv[i], &st) != 0) {
            printf("skipped: there is no folder %s\n", argv[i]);
            skipped = true;
        } else if (weft_model_open(dg, argv[i], NULL, &m) != WEFT_OK) {
            fputs(weft_diag_text(dg), stdout);
            fine = false;
        }
        for (size_t k = 0; m && k < sizeof forms / sizeof *forms; k++)
            fine = run_form(m, argv[i], k, atoi(argv[at])) && fine;
        weft_model_close(m);
        weft_diag_destroy(dg);
    }
    return !fine ? 1 : skipped ? EXIT_SKIPPED : 0;
}
