/* sched_policy.c - one walk over the items by rank. What an item takes is gone for those below it, and what it needs and cannot find is
 * taken from the other end. */
#include "runtime/serve/sched_policy.h"

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t sched_pages_of(int64_t page_tok, int64_t n_tok)
{
    return page_tok > 0 ? (n_tok + page_tok - 1) / page_tok : 0;
}

/* ---- rank ---- */

static bool is_late(const sched_room *room, const sched_item *x)
{
    return room->now > x->arrived && room->now - x->arrived > room->patience;
}

bool sched_before(const sched_room *room, const sched_item *a, const sched_item *b)
{
    bool late = is_late(room, a);
    if (late != is_late(room, b))
        return late;
    if (!late && a->priority != b->priority)
        return a->priority > b->priority;
    double sa = room->served[a->share], sb = room->served[b->share];
    if (!late && (sa < sb || sb < sa))
        return sa < sb;
    return a->order < b->order;
}

/* Heap sort: no recursion, no memory, n log n whatever the order. */
static void sift(const sched_room *room, const sched_item *items, int32_t *order, int32_t at,
                 int32_t n)
{
    for (int32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && sched_before(room, &items[order[child]], &items[order[child + 1]]))
            child++;
        if (!sched_before(room, &items[order[at]], &items[order[child]]))
            return;
        int32_t t = order[at];
        order[at] = order[child];
        order[child] = t;
    }
}

static void sort(const sched_room *room, const sched_item *items, int32_t *order, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        order[i] = i;
    for (int32_t i = n / 2; i-- > 0;)
        sift(room, items, order, i, n);
    for (int32_t i = n; i-- > 1;) {
        int32_t t = order[0];
        order[0] = order[i];
        order[i] = t;
        sift(room, items, order, 0, i);
    }
}

/* ---- a walk ---- */

typedef struct {
    const sched_room *room;
    sched_item *items;
    const int32_t *order;
    int32_t n, at; /* at: who is being served; those behind it can still lose what they have */
    int64_t pages; /* free */
    int64_t
        promised; /* pages for what is left of prompts that were begun, by those served so far */
    int64_t rows; /* of the batch that are left */
    int64_t to_decode; /* running items that will want one row and were not served yet */
    int64_t budget;    /* rows of prompts that are left */
    int64_t running;   /* items */
    int64_t served;    /* of those, that were served */
    int32_t tries;     /* items that were not admitted */
    bool closed;       /* nobody is admitted any more: a late item could not be */
} walk;

/* Items that are looked at in a step and cannot begin: with more a long queue would make steps long. */
enum { TRIES_MAX = 32 };

static sched_item *nth(const walk *w, int32_t i)
{
    return &w->items[w->order[i]];
}

static bool is_running(const sched_item *x)
{
    return x->running && x->action != SCHED_PREEMPT;
}

static bool decodes(const sched_item *x)
{
    return is_running(x) && x->n_id - x->n_held == 1;
}

/* Ids that it has state of, or will share whole pages of. */
static int64_t begins_at(const walk *w, const sched_item *x)
{
    int64_t tok = w->room->page_tok;
    return x->running ? x->n_held : tok > 0 ? x->n_shared - x->n_shared % tok : x->n_shared;
}

/* Pages that so many rows more take. */
static int64_t pages_for(const walk *w, const sched_item *x, int64_t rows)
{
    int64_t tok = w->room->page_tok, at = begins_at(w, x);
    if (tok <= 0 || rows == 0)
        return 0;
    return sched_pages_of(tok, at + rows) - sched_pages_of(tok, at) +
           (x->running && x->shares_last);
}

/* For all that is left of its text. */
static int64_t pages_left(const walk *w, const sched_item *x)
{
    return pages_for(w, x, x->n_id - begins_at(w, x));
}

/* Rows that the free pages have room for. */
static int64_t rows_that_fit(const walk *w, const sched_item *x, int64_t rows)
{
    int64_t tok = w->room->page_tok;
    if (tok <= 0 || pages_for(w, x, rows) <= w->pages)
        return rows;
    int64_t at = begins_at(w, x),
            whole = sched_pages_of(tok, at) + w->pages - (x->running && x->shares_last);
    return max64(0, min64(rows, whole * tok - at));
}

static void preempt(walk *w, sched_item *v)
{
    if (decodes(v))
        w->to_decode--;
    v->action = SCHED_PREEMPT;
    w->pages += v->pages_alone;
    w->running--;
}

/* May x take from v what v has? For x to begin it must be late, or more important; to go on, rank is enough. */
static bool may_take(const walk *w, const sched_item *x, const sched_item *v)
{
    return x->running || is_late(w->room, x) || v->priority < x->priority;
}

/* The last running one behind the one that is served, if it may be taken from; NULL: there is none. */
static sched_item *victim(const walk *w, const sched_item *x)
{
    for (int32_t i = w->n - 1; i > w->at; i--) {
        sched_item *v = nth(w, i);
        if (is_running(v) && may_take(w, x, v))
            return v;
    }
    return NULL;
}

/* ---- running items ---- */

static void give_rows(walk *w, sched_item *x, int64_t rows)
{
    x->action = SCHED_RUN;
    x->rows = rows;
    w->pages -= pages_for(w, x, rows);
    w->rows -= rows;
}

static void serve_decode(walk *w, sched_item *x)
{
    w->to_decode--;
    for (sched_item *v; pages_for(w, x, 1) > w->pages && (v = victim(w, x));)
        preempt(w, v);
    if (pages_for(w, x, 1) <= w->pages)
        give_rows(w, x, 1);
}

static void serve_prompt(walk *w, sched_item *x)
{
    int64_t left = x->n_id - x->n_held,
            rows = min64(left, min64(w->budget, w->rows - w->to_decode));
    if (rows > 0) {
        for (sched_item *v; pages_for(w, x, rows) > w->pages && (v = victim(w, x));)
            preempt(w, v);
        rows = rows_that_fit(w, x, rows);
    }
    rows = max64(rows, 0);
    w->promised += pages_left(w, x) - pages_for(w, x, rows);
    if (rows > 0) {
        give_rows(w, x, rows);
        w->budget -= rows;
    }
}

/* ---- items that wait ---- */

/* Pages that are kept for those that run and come later in the walk: for their next rows, and one more each. */
static int64_t pages_kept(const walk *w)
{
    int64_t kept = w->promised;
    if (w->room->page_tok <= 0)
        return 0;
    for (int32_t i = w->at + 1; i < w->n; i++)
        if (is_running(nth(w, i)))
            kept += pages_left(w, nth(w, i)) + 1;
    return kept + w->served; /* a page for each of those too */
}

static bool uses_slot(const walk *w, uint32_t adapter)
{
    for (int32_t i = 0; i < w->n; i++) {
        const sched_item *x = &w->items[i];
        if (x->adapter == adapter && (is_running(x) || x->action == SCHED_RUN))
            return true;
    }
    return false;
}

/* Is this the first running item that uses its adapter? */
static bool first_of_adapter(const walk *w, int32_t i)
{
    for (int32_t k = 0; k < i; k++)
        if ((is_running(&w->items[k]) || w->items[k].action == SCHED_RUN) &&
            w->items[k].adapter == w->items[i].adapter)
            return false;
    return true;
}

static int32_t slots_used(const walk *w)
{
    int32_t n = 0;
    for (int32_t i = 0; i < w->n; i++) {
        const sched_item *x = &w->items[i];
        n += x->adapter && (is_running(x) || x->action == SCHED_RUN) && first_of_adapter(w, i);
    }
    return n;
}

/* Can all users of this adapter be taken from? */
static bool can_clear(const walk *w, const sched_item *x, uint32_t adapter)
{
    for (int32_t i = 0; i < w->n; i++) {
        const sched_item *v = nth(w, i);
        if (v->adapter == adapter && (is_running(v) || v->action == SCHED_RUN) &&
            (i <= w->at || !may_take(w, x, v)))
            return false;
    }
    return true;
}

/* An adapter whose users are all behind x, and can be taken from; 0: none. The one whose first user is last. */
static uint32_t clearable(const walk *w, const sched_item *x)
{
    for (int32_t i = w->n - 1; i > w->at; i--) {
        const sched_item *v = nth(w, i);
        if (v->adapter && is_running(v) && can_clear(w, x, v->adapter))
            return v->adapter;
    }
    return 0;
}

static bool make_slot(walk *w, const sched_item *x)
{
    if (!x->adapter || uses_slot(w, x->adapter) || slots_used(w) < w->room->adapter_slots)
        return true;
    uint32_t gone = clearable(w, x);
    for (int32_t i = w->at + 1; gone && i < w->n; i++)
        if (nth(w, i)->adapter == gone && is_running(nth(w, i)))
            preempt(w, nth(w, i));
    return gone != 0;
}

static bool has_room(const walk *w, const sched_item *x)
{
    if (w->running >= w->room->sequences)
        return false;
    int64_t need = pages_left(w, x);
    return need == 0 || need <= w->pages - (w->running > 0 ? pages_kept(w) : 0);
}

/* Could it begin if all that it may take from were gone? Nobody gives way for nothing. Pages that two of those share are not
 * counted, so it may take another step. */
static bool would_fit(const walk *w, const sched_item *x)
{
    int64_t free = w->pages - w->promised - w->served, running = w->running;
    for (int32_t i = w->at + 1; i < w->n; i++) {
        const sched_item *v = nth(w, i);
        if (!is_running(v))
            continue;
        if (may_take(w, x, v)) {
            free += v->pages_alone;
            running--;
        } else {
            free -= pages_left(w, v) + 1;
        }
    }
    return running < w->room->sequences && (pages_left(w, x) <= free || running == 0);
}

static void serve_waiting(walk *w, sched_item *x)
{
    bool late = is_late(w->room, x);
    if (w->closed || (x->waits && !late) || w->budget <= 0 ||
        (w->rows <= w->to_decode && w->running < w->room->sequences))
        return;
    bool fits = has_room(w, x) || would_fit(w, x);
    if (fits)
        fits = make_slot(w, x);
    for (sched_item *v; fits && !has_room(w, x) && (v = victim(w, x));)
        preempt(w, v);
    if (!fits || !has_room(w, x)) {
        w->closed = late || ++w->tries > TRIES_MAX;
        return;
    }
    w->running++;
    int64_t rows = min64(x->n_id - begins_at(w, x), min64(w->budget, w->rows - w->to_decode));
    rows = rows_that_fit(w, x, max64(rows, 0)); /* 0 where all rows of the batch went to others */
    w->promised += pages_left(w, x) - pages_for(w, x, rows);
    give_rows(w, x, rows);
    w->budget -= rows;
}

void sched_decide(const sched_room *room, sched_item *items, int32_t n, int32_t *order)
{
    walk w = {.room = room,
              .items = items,
              .order = order,
              .n = n,
              .pages = room->pages_free,
              .rows = room->batch};
    sort(room, items, order, n);
    for (int32_t i = 0; i < n; i++) {
        items[i].action = SCHED_PAUSE;
        items[i].rows = 0;
        w.running += items[i].running;
        w.to_decode += decodes(&items[i]);
    }
    w.budget = w.to_decode > 0 ? max64(room->prompt_rows, room->chunk_min) : room->batch;
    for (; w.at < n; w.at++) {
        sched_item *x = nth(&w, w.at);
        if (x->action == SCHED_PREEMPT)
            continue;
        if (decodes(x))
            serve_decode(&w, x);
        else if (x->running)
            serve_prompt(&w, x);
        else
            serve_waiting(&w, x);
        w.served += x->running || x->action == SCHED_RUN;
    }
}

int64_t sched_steps_alone(const sched_room *room, int64_t n_tok, int64_t n_new)
{
    int64_t chunk = max64(1, min64(room->chunk_min, room->batch - room->sequences + 1));
    /* Reading all of it, a step for each token, and one in which others give way. */
    return (n_tok + chunk - 1) / chunk + n_new + 2;
}

/* ---- shares ---- */

void sched_share_join(sched_shares *all, int32_t n, int32_t i)
{
    double least = 0;
    bool any = false;
    if (all[i].active++ > 0)
        return;
    for (int32_t k = 0; k < n; k++)
        if (k != i && all[k].active > 0 && (!any || all[k].served < least)) {
            least = all[k].served;
            any = true;
        }
    if (any && all[i].served < least)
        all[i].served = least;
}

void sched_share_charge(sched_shares *all, int32_t i, int64_t rows)
{
    all[i].served += (double)rows / (all[i].weight > 0 ? all[i].weight : 1);
}

/* ---- time ---- */

#define CLOCK_KEEP 0.98 /* of the weight of a step with each that follows: some fifty steps count */

void sched_clock_add(sched_clock *c, int64_t rows, uint64_t ns)
{
    double x = (double)rows, y = (double)ns;
    c->n = c->n * CLOCK_KEEP + 1;
    c->x = c->x * CLOCK_KEEP + x;
    c->y = c->y * CLOCK_KEEP + y;
    c->xx = c->xx * CLOCK_KEEP + x * x;
    c->xy = c->xy * CLOCK_KEEP + x * y;
}

void sched_clock_fit(const sched_clock *c, double *out_base_ns, double *out_row_ns)
{
    double det = c->n * c->xx - c->x * c->x;
    double row = det > 1e-6 * c->n * c->xx ? (c->n * c->xy - c->x * c->y) / det : 0;
    double mean = c->x > 0 ? c->y / c->x : 0;
    /* Steps of one size say nothing of the slope; noise may make it negative. Then all of the time is the rows'. */
    if (row <= 0 || row > mean)
        row = mean;
    *out_row_ns = row;
    *out_base_ns = c->n > 0 ? (c->y - row * c->x) / c->n : 0;
}

int64_t sched_clock_rows(const sched_clock *c, int64_t n_decode, uint64_t max_ns)
{
    double base, row;
    sched_clock_fit(c, &base, &row);
    if (max_ns == 0 || row <= 0)
        return INT64_MAX;
    double rows = ((double)max_ns - base) / row - (double)n_decode;
    return rows < 0 ? 0 : rows > 1e12 ? INT64_MAX : (int64_t)rows;
}

/* ---- swapping ---- */

sched_swap sched_swap_choose(const sched_swap_cost *c)
{
    double compute = (double)c->tokens * c->row_ns, best = compute;
    sched_swap way = SCHED_RECOMPUTE;
    const struct {
        sched_swap way;
        double bps;
        uint64_t free;
    } places[] = {{SCHED_TO_MEMORY, c->memory_bps, c->memory_free},
                  {SCHED_TO_DISK, c->disk_bps, c->disk_free}};
    for (int i = 0; i < 2; i++) {
        if (places[i].bps <= 0 || places[i].free < c->bytes)
            continue;
        double ns = 2e9 * (double)c->bytes / places[i].bps; /* out, and in again */
        if (ns < best) {
            best = ns;
            way = places[i].way;
        }
    }
    return way;
}
