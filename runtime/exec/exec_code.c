/* exec_code.c - a call that is run by generated code: arguments for each thread, and the functions that the code calls. */
#include "runtime/exec/exec_impl.h"

/* ---- before a thread starts ---- */

/* Blocks of arguments as they are shared, or this thread's own where it has operands in them. */
static void make_args(code_thread *th, const cpu_bucket *b)
{
    kargs *own = th->place->own;
    for (int32_t i = 0; i < b->plan->n_step; i++) {
        cpu_step *s = &b->steps[i];
        th->args[i] = &s->args;
        if (!s->local && !s->tile)
            continue;
        *own = s->args;
        exec_place(s, own, s->local | s->tile, (uintptr_t)th->block);
        th->args[i] = own++;
    }
}

static void begin_run(exec *e, code_thread *th, const cpu_bucket *b, int index, int count)
{
    code_place *at = th->place;
    th->t = exec_thread(e, index, count);
    th->block = exec_block(e, index);
    at->b = b;
    at->now = at->next = (item_span){0, 0};
    at->set = 1;
    at->stopped = false;
    if (at->made_of == b && at->made == b->made)
        return;
    make_args(th, b);
    at->made_of = b;
    at->made = b->made;
}

void exec_code_run(exec *e, const cpu_bucket *b, int index, int count)
{
    begin_run(e, &e->run.thread[index], b, index, count);
    b->code(&e->run, index, count);
}

uint64_t exec_code_barriers(const exec *e, const cpu_bucket *b)
{
    uint64_t n = 0;
    for (item_span s = exec_phase_from(e, b, 0); s.first < s.end; n++)
        s = exec_phase_from(e, b, s.end);
    return n;
}

/* ---- what code calls ---- */

bool code_leaves(code_thread *th)
{
    return exec_leaves(th->place->e, th->place->set);
}

/* The next phase with something to do becomes the current one: behind the barrier, if one came before. */
static void advance(code_thread *th)
{
    code_place *at = th->place;
    exec *e = at->e;
    bool first = at->now.end == 0;
    if (!first) {
        barrier_wait(&e->gate);
        at->stopped = exec_stopped(e, at->set);
    }
    at->set ^= 1;
    at->now = first ? exec_phase_from(e, at->b, 0) : at->next;
    at->next = exec_phase_from(e, at->b, at->now.end);
    exec_cursors_set(e, at->b, at->next, at->set ^ 1, th->t.index, th->t.count);
}

bool code_phase(code_thread *th, int32_t first, int32_t end)
{
    code_place *at = th->place;
    if (at->stopped)
        return false;
    if (first >= at->now.end && (at->now.end == 0 || at->next.first < at->next.end))
        advance(th);
    return !at->stopped && at->now.first < end && first < at->now.end;
}

bool code_claim(code_thread *th, int32_t i, code_range *range)
{
    code_place *at = th->place;
    if (at->b->units[i] == 0)
        return false;
    return exec_claim(at->e, at->b, (claim_at){i, i - at->now.first, at->set}, &th->t, range);
}

const code_symbol *code_helpers(int *out_n)
{
    static const code_symbol rows[] = {
        {"code_leaves", (const void *)code_leaves},
        {"code_phase", (const void *)code_phase},
        {"code_claim", (const void *)code_claim},
    };
    *out_n = (int)(sizeof rows / sizeof *rows);
    return rows;
}
