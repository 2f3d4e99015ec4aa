/* sched_swap.c - state of preempted texts in files: of a folder that is memory, or of one on disk. The files are those of `--kv-save`, with
 * their checksums, so that a damaged one is refused and its text evaluated again. */
#include "runtime/base/clock.h"
#include "runtime/serve/sched_impl.h"
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static bool swap_path(const scheduler *s, const swap_place *p, char out[PATH_BYTES])
{
    const char *dir = p->way == SCHED_TO_MEMORY ? s->o.swap_memory_dir : s->o.swap_disk_dir;
    int n = snprintf(out, PATH_BYTES, "%s/weft-%ld-%llu.kv", dir, (long)getpid(),
                     (unsigned long long)p->number);
    return n > 0 && n < PATH_BYTES;
}

/* What its state takes, about: pages of the finest tier that has any. The file's own size counts once it is there. */
static uint64_t state_bytes_of(const scheduler *s, int64_t tokens)
{
    enum { TIERS = 64 };
    session_tier t[TIERS];
    int32_t n = session_tiers(s->run, t, TIERS);
    uint64_t bytes = 0;
    for (int32_t i = 0; i < n && i < TIERS; i++)
        if (t[i].page_tok > 0) {
            int64_t pages = (tokens + t[i].page_tok - 1) / t[i].page_tok;
            pages = pages < t[i].pages ? pages : t[i].pages;
            bytes += (uint64_t)pages * t[i].page_bytes;
        }
    return bytes;
}

static uint64_t left(uint64_t most, uint64_t used)
{
    return most > used ? most - used : 0;
}

/* A measurement counts a quarter. */
static void note_speed(double *bps, uint64_t bytes, uint64_t ns)
{
    double now = (double)bytes * 1e9 / (double)(ns > 0 ? ns : 1);
    *bps = *bps > 0 ? 0.75 * *bps + 0.25 * now : now;
}

bool swap_out(scheduler *s, choice *c)
{
    double base_ns, row_ns;
    int64_t held = (int64_t)generation_held(c->g);
    sched_clock_fit(&s->clock, &base_ns, &row_ns);
    sched_swap_cost cost = {.bytes = state_bytes_of(s, held),
                            .tokens = held,
                            .row_ns = row_ns,
                            .memory_bps = s->o.swap_memory_dir ? s->memory_bps : 0,
                            .disk_bps = s->o.swap_disk_dir ? s->disk_bps : 0,
                            .memory_free = left(s->o.swap_memory_bytes, s->kept_memory),
                            .disk_free = left(s->o.swap_disk_bytes, s->kept_disk)};
    swap_place p = {.way = sched_swap_choose(&cost), .number = ++s->n_swap};
    char path[PATH_BYTES];
    struct stat st;
    if (p.way == SCHED_RECOMPUTE || !swap_path(s, &p, path))
        return false;
    uint64_t begin = clock_ns();
    size_t n_before = diag_count(s->quiet);
    if (generation_swap_out(s->quiet, c->g, path) != WEFT_OK) {
        diag_keep_first(s->quiet, n_before); /* a full disk is no fault of the text */
        return false;
    }
    p.bytes = stat(path, &st) == 0 ? (uint64_t)st.st_size : cost.bytes;
    bool memory = p.way == SCHED_TO_MEMORY;
    note_speed(memory ? &s->memory_bps : &s->disk_bps, p.bytes, clock_ns() - begin);
    *(memory ? &s->kept_memory : &s->kept_disk) += p.bytes;
    c->swap = p;
    return true;
}

bool swap_in(scheduler *s, choice *c, int64_t seq)
{
    char path[PATH_BYTES];
    if (c->swap.way == SCHED_RECOMPUTE || !swap_path(s, &c->swap, path))
        return false;
    size_t n_before = diag_count(s->quiet);
    bool there = generation_swap_in(s->quiet, c->g, seq, path) == WEFT_OK;
    diag_keep_first(s->quiet, n_before);
    swap_drop(s, c);
    s->did.swapped_in += there;
    return there;
}

void swap_drop(scheduler *s, choice *c)
{
    char path[PATH_BYTES];
    if (c->swap.way == SCHED_RECOMPUTE)
        return;
    if (swap_path(s, &c->swap, path))
        unlink(path);
    *(c->swap.way == SCHED_TO_MEMORY ? &s->kept_memory : &s->kept_disk) -= c->swap.bytes;
    c->swap = (swap_place){0};
}
