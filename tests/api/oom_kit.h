/* oom_kit.h - a call of the public interface with each of its allocations failing in turn, and the objects it works on. */
#ifndef WEFT_TESTS_API_OOM_KIT_H
#define WEFT_TESTS_API_OOM_KIT_H

#include "tests/base/suite.h"

#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include "runtime/weft.h"
#include <dirent.h>

#define DATA WEFT_SOURCE_DIR "/tests/golden/data"
#define TEXTS WEFT_SOURCE_DIR "/tests/text/data"
#define DEMO WEFT_SOURCE_DIR "/models/stories-7m"

typedef weft_status call_fn(weft_diag *dg, void *ctx);

static inline int open_files(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

static inline int64_t next_of(int64_t n)
{
    enum { ONE_BY_ONE = 60 };
    return n < ONE_BY_ONE || getenv("WEFT_OOM_ALL") ? n + 1 : n + n / 7;
}

/* Until a call gets to its end, which returns `want`. Big blocks (weights, state) have a status of their own. */
static inline void exhaust(const char *what, call_fn *call, void *ctx, weft_status want)
{
    for (int all = 0; all < 2; all++) {
        weft_diag *dg = weft_diag_create();
        ck_assert_int_eq(call(dg, ctx), want); /* and what is made once for a process is made */
        int files = open_files();
        bool came = true;
        for (int64_t n = 1; came; n = next_of(n)) {
            weft_diag_clear(dg);
            mem_fail_after(n, all);
            weft_status st = call(dg, ctx);
            came = mem_fail_came();
            mem_fail_after(0, false);
            bool fine =
                came ? st == WEFT_ERR_LIMIT || st == WEFT_ERR_TARGET || st == want : st == want;
            if (!fine)
                ck_abort_msg("%s, allocation %lld: status %d: %s", what, (long long)n, (int)st,
                             weft_diag_text(dg));
            if (st == WEFT_ERR_LIMIT && st != want)
                ck_assert_msg(strstr(weft_diag_text(dg), "W1110"), "%s, allocation %lld: %s", what,
                              (long long)n, weft_diag_text(dg));
            ck_assert_msg(open_files() == files, "%s, allocation %lld leaves a file open", what,
                          (long long)n);
        }
        weft_diag_clear(dg);
        ck_assert_int_eq(call(dg, ctx), want);
        weft_diag_destroy(dg);
    }
}

typedef struct {
    weft_diag *dg;
    weft_model *m;
    weft_session *s;
    weft_tokenizer *t;
    weft_template *chat;
    weft_decoder *decoder;
    weft_generation *g, *h;
    weft_session_options how;
} kit;

static inline void ok(kit *k, weft_status st)
{
    ck_assert_msg(st == WEFT_OK, "%s", weft_diag_text(k->dg));
}

static inline kit kit_of(const char *path)
{
    kit k = {.dg = weft_diag_create(),
             .how = {.size = sizeof k.how, .context = 32, .sequences = 3, .threads = 2}};
    ok(&k, weft_model_open(k.dg, path, NULL, &k.m));
    return k;
}

static inline void kit_close(kit *k)
{
    weft_generation_destroy(k->g);
    weft_generation_destroy(k->h);
    weft_decoder_destroy(k->decoder);
    weft_template_close(k->chat);
    weft_tokenizer_close(k->t);
    weft_session_destroy(k->s);
    weft_model_close(k->m);
    weft_diag_destroy(k->dg);
}

#endif
