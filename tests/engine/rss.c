/* rss.c - a model of 1 GB takes the memory its plan tells: what the process has in memory grows by that,
 * within 3 %.
 *
 *     rss [FOLDER]     the model is made up there and removed; /tmp without one
 *
 * Exits 77 where the system does not tell, or there is no room. */
#include "runtime/base/memory.h"
#include "runtime/base/threads.h"
#include "runtime/cli/planned.h"
#include "runtime/formats/random_model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, CONTEXT = 48, ROWS = 16 };
static const char spec[] = "llama-1b:Q6_K";
static const double bound = 0.03;
static const uint64_t room = UINT64_C(3) << 30; /* of the disk, and of memory */

/* In a process of its own, so that nothing of it is left in ours. */
static int make_model(const char *path)
{
    weft_diag *dg = diag_create();
    random_model *rm;
    if (random_model_create(dg, spec, threads_default(), &rm) != WEFT_OK)
        return SKIPPED;
    FILE *f = fopen(path, "wb");
    size_t n = random_model_bytes(rm);
    bool good = f && fwrite(random_model_data(rm), 1, n, f) == n;
    good = f && fclose(f) == 0 && good;
    return good ? 0 : SKIPPED;
}

/* Every page of every tensor that is read in place: a run looks only at some rows of the embedding. */
static unsigned touch(const plan *p, const model_file *mf)
{
    unsigned sum = 0;
    for (int32_t i = 0; i < p->n_weight; i++)
        for (int32_t k = 0; p->weight[i].mode == WEIGHT_MAPPED && k < p->weight[i].n_piece; k++) {
            const model_tensor *t = model_file_tensor_at(mf, (size_t)p->weight[i].piece[k].tensor);
            const volatile unsigned char *at = t->data;
            for (size_t b = 0; b < t->bytes; b += 1024)
                sum += at[b];
        }
    return sum;
}

static weft_status run(weft_diag *dg, session *s)
{
    batch_row rows[ROWS];
    for (int pos = 0; pos < CONTEXT; pos += ROWS) {
        for (int i = 0; i < ROWS; i++)
            rows[i] = (batch_row){.id = 7 * (pos + i), .pos = pos + i, .out = i + 1 == ROWS};
        WEFT_TRY(session_eval(dg, s, rows, ROWS));
    }
    return WEFT_OK;
}

static int measure(const char *path)
{
    uint64_t start = memory_resident();
    weft_diag *dg = diag_create();
    planned pl;
    session *s = NULL;
    session_memory need;
    model_flags f = {.model = path, .context = CONTEXT, .batch = ROWS, .no_weight_cache = true};
    weft_status st = planned_open(dg, &f, NULL, &pl);
    if (st == WEFT_OK)
        st = session_need(dg, pl.made.p, pl.m->weights, &pl.made.run, &need);
    if (st == WEFT_OK)
        st = session_create(dg, pl.made.p, pl.m->weights, &pl.made.run, &s);
    if (st == WEFT_OK)
        st = run(dg, s);
    if (st != WEFT_OK) {
        diag_print(dg, stderr, false);
        return 1;
    }
    unsigned sum = touch(pl.made.p, api_file_of(pl.m)->file);
    double told = (double)session_memory_sum(&need), grew = (double)(memory_resident() - start);
    printf(
        "mapped %zu, copied %zu, interleaved %zu, state %zu, arena %zu, threads %zu, tables %zu\n",
        need.weights_mapped, need.weights_copied, need.weights_interleaved, need.state, need.arena,
        need.scratch, need.tables);
    printf("%s: the plan tells %.1f MB, the process grew by %.1f MB: %+.2f %% (%u)\n", spec,
           told / 1e6, grew / 1e6, 100 * (grew / told - 1), sum & 1);
    session_destroy(s);
    planned_close(&pl);
    diag_destroy(dg);
    return grew > told * (1 - bound) && grew < told * (1 + bound) ? 0 : 1;
}

static int skip(const char *why)
{
    printf("skipped: %s\n", why);
    return SKIPPED;
}

int main(int argc, char **argv)
{
    char path[512];
    struct statvfs disk;
    const char *folder = argc > 1 ? argv[1] : "/tmp";
    snprintf(path, sizeof path, "%s/weft-rss-%ld.gguf", folder, (long)getpid());
    if (memory_resident() == 0)
        return skip("this system does not tell what is in memory");
    if (statvfs(folder, &disk) != 0 || (uint64_t)disk.f_bavail * disk.f_frsize < room)
        return skip("no room on the disk");
    if (memory_available("").bytes < room)
        return skip("not enough memory");
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(make_model(path));
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
        WEXITSTATUS(status) != 0) {
        remove(path);
        return skip("the model cannot be made");
    }
    int result = measure(path);
    remove(path);
    return result;
}
