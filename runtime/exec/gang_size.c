/* gang_size.c - tries of the levels above and below, bounded in the time that they take. */
#include "runtime/exec/gang_size.h"

enum {
    KNOWN_MIN = 3,  /* calls before the first try: the very first may wait for a disk */
    SMOOTH = 8,     /* calls that count, about */
    TRY_CALLS = 4,  /* of a try; one that is far worse ends at once */
    TRY_SHARE = 16, /* after a try so many times its length without one */
};
/* A caller that has a CPU for less than this part of a call is being kept from it: alone on a machine it has one for all of it but
 * short sleeps. What a try must gain to be kept, and lose to end at once. */
static const double waits_much = 0.4, gain = 0.9, hopeless = 3;

static int threads_at(int threads, int level)
{
    int n = level > 1 ? threads >> (level - 1) : threads;
    return n > 1 ? n : 1;
}

gang_choice gang_size_next(gang_size *g, int threads)
{
    bool can_less = threads_at(threads, g->level) > 1, can_more = g->level > 0;
    bool less = can_less && g->waiting > waits_much && (g->more || !can_more); /* by turns */
    if (!g->tries && g->rest_ns <= 0 && g->known >= KNOWN_MIN && (less || can_more)) {
        g->tries = true;
        g->more = !less;
        g->tried = less ? g->level + 1 : g->far ? 0 : g->level - 1;
        g->far = less ? g->far : !g->far;
        g->n = 0;
        g->try_ns = g->try_rows = 0;
    }
    int level = g->tries ? g->tried : g->level;
    return (gang_choice){threads_at(threads, level), level == 0};
}

static void end_try(gang_size *g)
{
    double each = g->try_ns / g->try_rows;
    g->tries = false;
    g->rest_ns = g->try_ns * TRY_SHARE;
    /* More threads need not be much faster: they are what was asked for. */
    if (each >= g->ns * (g->more ? 1 : gain))
        return;
    g->level = g->tried;
    g->ns = each;
    g->more = !g->more; /* this way may lead further */
}

void gang_size_learn(gang_size *g, int threads, int64_t rows, uint64_t began_ns, uint64_t ended_ns,
                     uint64_t cpu_ns)
{
    uint64_t wall_ns = ended_ns - began_ns;
    double wall = (double)wall_ns, each = wall / (double)(rows > 0 ? rows : 1);
    double passed = (double)(ended_ns - (g->ended_ns ? g->ended_ns : began_ns));
    g->ended_ns = ended_ns;
    if (threads == 1)
        return;
    if (g->tries) {
        g->try_ns += wall;
        g->try_rows += (double)(rows > 0 ? rows : 1);
        g->n++;
        if (g->n == TRY_CALLS || each > g->ns * hopeless)
            end_try(g);
        return;
    }
    double waited = cpu_ns < wall_ns ? (wall - (double)cpu_ns) / wall : 0;
    g->known += g->known < SMOOTH;
    g->ns += (each - g->ns) / g->known;
    g->waiting += (waited - g->waiting) / g->known;
    g->rest_ns -= passed; /* what was known long ago may be true no more */
}
