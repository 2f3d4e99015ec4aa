/* test_sched_policy.c - who runs in the next step. Thousands of random arrivals run against the policy alone, on a machine that is made
 * of counters: every request ends, none later than its bound, and all pages come back. */
#include "tests/base/suite.h"

#include "runtime/serve/sched_policy.h"

/* ---- a machine of counters ---- */

enum { ITEMS_MAX = 512, SHARES = 4 };

typedef struct {
    int64_t n_prompt, n_new; /* the prompt, and tokens that will be generated */
    int64_t work_before;     /* steps of those before it, when it became late */
    int64_t ended;           /* time; -1: not yet */
    int64_t cancel_at;       /* time; -1: never */
    bool arrived, late;
    sched_item x;
} sim_request;

typedef struct {
    sched_room room;
    int64_t pages;
    sim_request *all;
    int64_t n;
    int64_t preempted, admitted, overtaken;
    double served[SHARES];
    sched_shares shares[SHARES];
} sim;

static uint64_t rng_state;
static uint64_t rnd(uint64_t n) /* 0 to n - 1 */
{
    rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
    return (rng_state >> 33) % n;
}

static int64_t held_pages(const sim *m)
{
    int64_t n = 0;
    for (int64_t i = 0; i < m->n; i++)
        if (m->all[i].x.running)
            n += sched_pages_of(m->room.page_tok, m->all[i].x.n_held);
    return n;
}

static void leave(sim *m, sim_request *r)
{
    r->ended = (int64_t)m->room.now;
    r->x.running = false;
    r->x.n_held = 0;
    m->shares[r->x.share].active--;
}

/* What came late now has its bound: all that is there and came before it, and itself. */
static void note_late(sim *m)
{
    for (int64_t i = 0; i < m->n; i++) {
        sim_request *r = &m->all[i];
        if (!r->arrived || r->late || r->ended >= 0 ||
            m->room.now - r->x.arrived <= m->room.patience)
            continue;
        r->late = true;
        for (int64_t k = 0; k <= i; k++)
            if (m->all[k].arrived && m->all[k].ended < 0)
                r->work_before += sched_steps_alone(&m->room, m->all[k].n_prompt + m->all[k].n_new,
                                                    m->all[k].n_new);
    }
}

static void sim_step(sim *m)
{
    static sched_item list[ITEMS_MAX];
    static int64_t who[ITEMS_MAX];
    static int32_t order[ITEMS_MAX];
    int32_t n = 0;
    int64_t tok = m->room.page_tok, rows = 0, running = 0;
    for (int64_t i = 0; i < m->n; i++) {
        sim_request *r = &m->all[i];
        if (!r->arrived || r->ended >= 0)
            continue;
        if (r->cancel_at >= 0 && (int64_t)m->room.now >= r->cancel_at) {
            leave(m, r);
            continue;
        }
        ck_assert_int_lt(n, ITEMS_MAX);
        r->x.pages_alone = r->x.running ? sched_pages_of(tok, r->x.n_held) : 0;
        who[n] = i;
        list[n++] = r->x;
    }
    for (int i = 0; i < SHARES; i++)
        m->served[i] = m->shares[i].served;
    m->room.served = m->served;
    m->room.pages_free = m->pages - held_pages(m);
    sched_decide(&m->room, list, n, order);

    /* Preempting comes first, as the one that carries it out does. */
    for (int32_t i = 0; i < n; i++)
        if (list[i].action == SCHED_PREEMPT) {
            sim_request *r = &m->all[who[i]];
            ck_assert(r->x.running);
            r->x.running = false;
            r->x.n_held = 0;
            m->preempted++;
        }
    uint32_t adapters = 0;
    for (int32_t i = 0; i < n; i++) {
        sim_request *r = &m->all[who[i]];
        if (list[i].action == SCHED_RUN) {
            m->admitted += !r->x.running;
            r->x.running = true;
            ck_assert_int_le(list[i].rows, r->x.n_id - r->x.n_held);
            r->x.n_held += list[i].rows;
            rows += list[i].rows;
            sched_share_charge(m->shares, (int32_t)r->x.share, list[i].rows);
        }
        running += r->x.running;
        if (r->x.running && r->x.adapter)
            adapters |= 1u << r->x.adapter;
    }
    ck_assert_int_le(rows, m->room.batch);
    ck_assert_int_le(running, m->room.sequences);
    ck_assert_int_le(__builtin_popcount(adapters), m->room.adapter_slots);
    ck_assert_int_le(held_pages(m), m->pages);
    m->room.now++;
    for (int32_t i = 0; i < n; i++) {
        sim_request *r = &m->all[who[i]];
        if (list[i].action != SCHED_RUN || r->x.n_held < r->x.n_id)
            continue;
        if (++r->x.n_id > r->n_prompt + r->n_new - 1)
            leave(m, r);
    }
}

static void run_sim(uint64_t seed, int64_t n)
{
    rng_state = seed * 2654435761u + 1;
    sim m = {.n = n};
    m.all = calloc((size_t)n, sizeof *m.all);
    int64_t sequences = 1 + (int64_t)rnd(12);
    m.room = (sched_room){.patience = rnd(4) == 0 ? 0 : rnd(400),
                          .sequences = sequences,
                          .batch = sequences + (int64_t)rnd(64),
                          .page_tok = rnd(8) == 0 ? 0 : 1 + (int64_t)rnd(16),
                          .prompt_rows = (int64_t)rnd(32),
                          .chunk_min = 1 + (int64_t)rnd(16),
                          .adapter_slots = 1 + (int32_t)rnd(3)};
    int64_t tok = m.room.page_tok > 0 ? m.room.page_tok : 1;
    m.pages = 4 + (int64_t)rnd(60);
    int64_t most = m.pages * tok; /* what a request can hold at all */
    uint64_t gap = 1 + rnd(40);
    int64_t next = 0, at = 0;
    for (int64_t left = n; left > 0;) {
        while (next < n && (int64_t)m.room.now >= at) {
            sim_request *r = &m.all[next];
            int64_t total =
                2 + (int64_t)rnd((uint64_t)(rnd(6) ? (most < 60 ? most : 60) : most) - 1);
            r->n_new = 1 + (int64_t)rnd((uint64_t)total - 1 < 50 ? (uint64_t)total - 1 : 50);
            r->n_prompt = total - r->n_new;
            r->ended = r->cancel_at = -1;
            if (rnd(10) == 0)
                r->cancel_at = at + (int64_t)rnd(100);
            r->arrived = true;
            r->x = (sched_item){.order = (uint64_t)next,
                                .arrived = m.room.now,
                                .priority = (int32_t)rnd(3) - 1,
                                .share = (uint32_t)rnd(SHARES),
                                .adapter = rnd(3) ? 0 : 1 + (uint32_t)rnd(5),
                                .waits = rnd(20) == 0,
                                .n_id = r->n_prompt};
            sched_share_join(m.shares, SHARES, (int32_t)r->x.share);
            next++;
            at += (int64_t)rnd(2 * gap);
            if (next - (n - left) >= ITEMS_MAX - 1)
                break;
        }
        note_late(&m);
        sim_step(&m);
        left = n;
        for (int64_t i = 0; i < next; i++)
            left -= m.all[i].ended >= 0;
        ck_assert_msg(m.room.now < 10000000, "seed %llu: no end", (unsigned long long)seed);
    }
    ck_assert_int_eq(held_pages(&m), 0);
    for (int i = 0; i < SHARES; i++)
        ck_assert_int_eq(m.shares[i].active, 0);
    for (int64_t i = 0; i < n; i++) {
        const sim_request *r = &m.all[i];
        if (r->late)
            ck_assert_msg(
                r->ended <= (int64_t)(r->x.arrived + m.room.patience + 1) + r->work_before,
                "seed %llu: request %lld came at %llu and ended at %lld; patience %llu, work %lld",
                (unsigned long long)seed, (long long)i, (unsigned long long)r->x.arrived,
                (long long)r->ended, (unsigned long long)m.room.patience,
                (long long)r->work_before);
    }
    free(m.all);
}

START_TEST(every_request_ends_within_its_bound)
{
    for (uint64_t seed = 1; seed <= 300; seed++)
        run_sim(seed, 60);
    for (uint64_t seed = 1001; seed <= 1010; seed++)
        run_sim(seed, 1000);
}
END_TEST

/* ---- situations ---- */

static const double nobody[4];

static sched_room room_of(int64_t sequences, int64_t pages_free)
{
    return (sched_room){.now = 100,
                        .patience = 50,
                        .batch = 64,
                        .sequences = sequences,
                        .page_tok = 4,
                        .pages_free = pages_free,
                        .prompt_rows = 8,
                        .chunk_min = 2,
                        .adapter_slots = 1,
                        .served = nobody};
}

static sched_item waiting(uint64_t order, int64_t n_id)
{
    return (sched_item){.order = order, .arrived = 90, .n_id = n_id};
}

static sched_item runs(uint64_t order, int64_t n_id, int64_t n_held)
{
    return (sched_item){.order = order,
                        .arrived = 80,
                        .running = true,
                        .n_id = n_id,
                        .n_held = n_held,
                        .pages_alone = sched_pages_of(4, n_held)};
}

START_TEST(prompts_are_cut_where_others_decode)
{
    sched_room room = room_of(4, 100);
    sched_item x[] = {runs(1, 10, 9), waiting(2, 40)};
    int32_t order[2];
    sched_decide(&room, x, 2, order);
    ck_assert_int_eq(x[0].rows, 1);
    ck_assert_int_eq(x[1].rows, 8);
    x[0].running = false; /* nobody decodes: all rows are for prompts */
    x[0].n_held = 0;
    sched_decide(&room, x, 2, order);
    ck_assert_int_eq(x[0].rows, 10);
    ck_assert_int_eq(x[1].rows, 40);
    room.prompt_rows = 0; /* the step is too long as it is: a little in any case */
    x[0] = runs(1, 10, 9);
    sched_decide(&room, x, 2, order);
    ck_assert_int_eq(x[1].rows, 2);
}
END_TEST

START_TEST(pages_decide_who_begins)
{
    sched_room room = room_of(4, 5);
    /* 1 needs a page soon; 2 wants 4 and there are 5, of which 3 are kept for 1; 3 is small and goes past it. */
    sched_item x[] = {runs(1, 9, 8), waiting(2, 16), waiting(3, 4)};
    int32_t order[3];
    sched_decide(&room, x, 3, order);
    ck_assert_int_eq(x[0].rows, 1);
    ck_assert_int_eq(x[1].action, SCHED_PAUSE);
    ck_assert_int_eq(x[2].action, SCHED_RUN);
    x[1].arrived = 10; /* late: 1 has to go */
    sched_decide(&room, x, 3, order);
    ck_assert_int_eq(x[1].action, SCHED_RUN);
    ck_assert_int_eq(x[0].action, SCHED_PREEMPT);
}
END_TEST

START_TEST(higher_priority_takes_what_it_needs)
{
    sched_room room = room_of(1, 100);
    sched_item x[] = {runs(1, 9, 8), waiting(2, 4)};
    int32_t order[2];
    sched_decide(&room, x, 2, order);
    ck_assert_int_eq(x[1].action, SCHED_PAUSE);
    x[1].priority = 1;
    sched_decide(&room, x, 2, order);
    ck_assert_int_eq(x[1].action, SCHED_RUN);
    ck_assert_int_eq(x[0].action, SCHED_PREEMPT);
    x[0].arrived = 10; /* late: nobody takes from it */
    sched_decide(&room, x, 2, order);
    ck_assert_int_eq(x[0].action, SCHED_RUN);
    ck_assert_int_eq(x[1].action, SCHED_PAUSE);
}
END_TEST

START_TEST(adapters_share_slots)
{
    sched_room room = room_of(4, 100);
    sched_item x[] = {runs(1, 9, 8), waiting(2, 4), waiting(3, 4)};
    int32_t order[3];
    x[0].adapter = x[2].adapter = 1;
    x[1].adapter = 2; /* there is one slot */
    sched_decide(&room, x, 3, order);
    ck_assert_int_eq(x[1].action, SCHED_PAUSE);
    ck_assert_int_eq(x[2].action, SCHED_RUN);
    x[1].arrived = 10;
    sched_decide(&room, x, 3, order);
    ck_assert_int_eq(x[0].action, SCHED_PREEMPT);
    ck_assert_int_eq(x[1].action, SCHED_RUN);
    ck_assert_int_eq(x[2].action, SCHED_PAUSE);
}
END_TEST

START_TEST(shares_are_fair)
{
    /* Two keys ask for all they can get; one has twice the weight. One sequence, answers of equal size. */
    sched_shares shares[2] = {{.weight = 1}, {.weight = 2}};
    double served[2];
    int64_t had[2] = {0};
    sched_room room = room_of(1, 100);
    room.served = served;
    sched_share_join(shares, 2, 0);
    sched_share_join(shares, 2, 1);
    for (uint64_t i = 0; i < 300; i++) {
        sched_item x[] = {waiting(2 * i, 8), waiting(2 * i + 1, 8)};
        int32_t order[2];
        x[1].share = 1;
        served[0] = shares[0].served;
        served[1] = shares[1].served;
        sched_decide(&room, x, 2, order);
        for (int32_t k = 0; k < 2; k++)
            if (x[k].action == SCHED_RUN) {
                had[k] += x[k].rows;
                sched_share_charge(shares, k, x[k].rows);
            }
    }
    ck_assert_int_eq(had[0], 100 * 8);
    ck_assert_int_eq(had[1], 200 * 8);
    /* Who comes back after a pause has no credit for it. */
    sched_shares back[2] = {{.served = 1000, .active = 1}, {.served = 5}};
    sched_share_join(back, 2, 1);
    ck_assert_double_eq(back[1].served, 1000);
}
END_TEST

START_TEST(time_is_fitted)
{
    sched_clock c = {0};
    double base, row;
    ck_assert_int_eq(sched_clock_rows(&c, 3, 1000000), INT64_MAX); /* nothing is known */
    for (int i = 0; i < 200; i++) {
        int64_t rows = 1 + i % 7 * 10;
        sched_clock_add(&c, rows, (uint64_t)(5000000 + rows * 100000));
    }
    sched_clock_fit(&c, &base, &row);
    ck_assert_double_eq_tol(base, 5e6, 1e3);
    ck_assert_double_eq_tol(row, 1e5, 1e2);
    ck_assert_int_eq(sched_clock_rows(&c, 8, 0), INT64_MAX);
    ck_assert_int_ge(sched_clock_rows(&c, 8, 10000000), 41);
    ck_assert_int_le(sched_clock_rows(&c, 8, 10000000), 43);
    ck_assert_int_eq(sched_clock_rows(&c, 8, 1000000), 0);
}
END_TEST

START_TEST(swapping_is_chosen_by_cost)
{
    sched_swap_cost c = {.bytes = 1 << 20,
                         .tokens = 100,
                         .row_ns = 1e6,
                         .memory_bps = 1e9,
                         .disk_bps = 1e8,
                         .memory_free = 1 << 20,
                         .disk_free = 1 << 30};
    ck_assert_int_eq(sched_swap_choose(&c), SCHED_TO_MEMORY); /* 2 ms, against 21 and 100 */
    c.memory_free = 1000;
    ck_assert_int_eq(sched_swap_choose(&c), SCHED_TO_DISK);
    c.row_ns = 1e4; /* 1 ms to compute */
    ck_assert_int_eq(sched_swap_choose(&c), SCHED_RECOMPUTE);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("sched_policy");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, every_request_ends_within_its_bound);
    tcase_add_test(tc, prompts_are_cut_where_others_decode);
    tcase_add_test(tc, pages_decide_who_begins);
    tcase_add_test(tc, higher_priority_takes_what_it_needs);
    tcase_add_test(tc, adapters_share_slots);
    tcase_add_test(tc, shares_are_fair);
    tcase_add_test(tc, time_is_fitted);
    tcase_add_test(tc, swapping_is_chosen_by_cost);
    return suite_run("sched_policy", tc, SUITE_FORK);
}
