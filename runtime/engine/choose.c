/* choose.c - tokens chosen on a device, and the call that was queued ahead. */
#include "runtime/engine/choose.h"

#include "runtime/base/mem.h"

void chooser_init(chooser *c, session *run)
{
    int64_t n = session_most(run).wants;
    *c = (chooser){.run = run, .most = n};
    c->how = mem_alloc(mem_product((size_t)n, sizeof *c->how));
    c->got = mem_alloc(mem_product((size_t)n, sizeof *c->got));
    c->next = mem_alloc(mem_product((size_t)n, sizeof *c->next));
    c->next_how = mem_alloc(mem_product((size_t)n, sizeof *c->next_how));
}

void chooser_deinit(chooser *c)
{
    mem_free(c->how);
    mem_free(c->got);
    mem_free(c->next);
    mem_free(c->next_how);
}

static bool same_row(const batch_row *a, const batch_row *b)
{
    return a->id == b->id && a->pos == b->pos && a->seq == b->seq && a->slot == b->slot &&
           a->out == b->out;
}

/* Are these rows, with c->how, what was queued? */
static bool is_ahead(const chooser *c, const batch_row *rows, int64_t n)
{
    _Static_assert(sizeof(ksample) == 64, "no gaps, so that bytes can be compared");
    if (c->ahead == 0 || session_under_way(c->run) != c->ahead || n != c->n_next)
        return false;
    for (int64_t i = 0; i < n; i++)
        if (!same_row(&rows[i], &c->next[i]) ||
            memcmp(&c->how[i], &c->next_how[i], sizeof *c->how) != 0)
            return false;
    return true;
}

/* What the call behind this one is, now that its rows are known. */
static void note_ahead(chooser *c, const batch_row *rows, int64_t n, const bool *more)
{
    int64_t at = 0;
    c->n_next = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!rows[i].out)
            continue;
        if (more[at]) {
            batch_row r = rows[i];
            r.id = c->got[at].id;
            r.pos++;
            c->next[c->n_next] = r;
            c->next_how[c->n_next] = c->how[at];
            memcpy(c->next_how[c->n_next++].rng, c->got[at].rng, sizeof c->got[at].rng);
        }
        at++;
    }
}

weft_status chooser_run(weft_diag *dg, chooser *c, const batch_row *rows, int64_t n,
                        sampler *const *pick, const bool *more, int32_t *out_ids)
{
    int64_t n_out = 0;
    bool goes_on = false, ahead = false;
    for (int64_t i = 0; i < n; i++)
        if (rows[i].out) {
            const char *why = sampler_for_device(pick[n_out], &c->how[n_out]);
            WEFT_ASSERT(!why && n_out < c->most);
            goes_on = goes_on || more[n_out];
            n_out++;
        }
    bool begun = is_ahead(c, rows, n);
    c->ahead = 0;
    if (!begun)
        WEFT_TRY(session_choose(dg, c->run, rows, n, c->how));
    if (goes_on)
        WEFT_TRY(session_choose_next(dg, c->run, c->how, more, &ahead));
    WEFT_TRY(session_chosen(dg, c->run, c->got));
    if (ahead) {
        c->ahead = session_under_way(c->run);
        note_ahead(c, rows, n, more);
    }
    for (int64_t i = 0; i < n_out; i++) {
        sampler_chose(pick[i], &c->got[i]);
        out_ids[i] = c->got[i].id;
    }
    return WEFT_OK;
}
