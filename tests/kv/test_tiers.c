/* test_tiers.c - state with tiers: thousands of random operations, each call held against the rule that says in which tier a
 * row sees a page.
 *
 * Rows are stamps. Tier 0 is real memory, whose pages the state copies; of the other tiers a page is a record of the stamps that
 * were converted to it. */
#include "runtime/kv/policy.h"
#include "runtime/kv/state.h"
#include "tests/base/suite.h"

enum {
    TOK = 4,
    CTX = 97,
    SEQS = 4,
    PREFIXES = 2,
    HOLDERS = SEQS + PREFIXES,
    CALL = 11,
    STEPS = 6000
};
enum { TABLES_MAX = 32, PAGES_MOST = 400 };

static const plan_cell cells[] = {
    {.name = "all", .latent = true, .heads = 1, .k = 1, .v = 1, .layout = PLAN_CONTIGUOUS},
    {.name = "fine",
     .latent = true,
     .heads = 1,
     .k = 1,
     .v = 1,
     .bounded = true,
     .coarsest = KFORM_F16},
    {.name = "pinned", .latent = true, .heads = 1, .k = 1, .v = 1, .pin = 5},
    {.name = "near",
     .latent = true,
     .heads = 1,
     .k = 1,
     .v = 1,
     .window = 4,
     .layout = PLAN_RING,
     .keep = 9},
    {.name = "far",
     .latent = true,
     .heads = 1,
     .k = 1,
     .v = 1,
     .window = 40,
     .layout = PLAN_RING,
     .keep = 45},
    {.name = "whole",
     .latent = true,
     .heads = 1,
     .k = 1,
     .v = 1,
     .bounded = true,
     .coarsest = KFORM_F32},
};
enum { CELLS = 6 };
static const plan tiered_plan = {.n_cell = CELLS, .cell = cells, .n_tok_max = CALL};

typedef struct {
    int64_t length, high; /* high: the most it held since it began anew */
    uint32_t stamp[CTX];
} model_seq;

typedef struct {
    weft_diag *dg;
    state *st;
    char *base;
    uint32_t seed, next;
    model_seq seq[HOLDERS];
    uint32_t page[TABLES_MAX][PAGES_MOST][TOK]; /* of tiers from 1 on */
    bool changes;                               /* the policy changes now and then */
    int n_call, n_full, n_gone, n_share, n_convert, n_change, n_refuse;
} model;

static int64_t draw(model *m, int64_t n)
{
    m->seed = m->seed * 1664525u + 1013904223u;
    return (int64_t)(m->seed >> 8) % n;
}

static uint32_t *rows_at(const model *m, const kcell *c, int tier, int32_t page)
{
    if (tier > 0)
        return (uint32_t *)m->page[c->table + tier][page];
    return (uint32_t *)(void *)(c->tier[0].base + page * c->tier[0].page_bytes);
}

/* The tier in which a row at t sees entry e, as the design has it. */
static int tier_of(const model *m, const kcell *c, int64_t t, int64_t e)
{
    int k = 0;
    while (k + 1 < c->n_tier && e >= c->pinned &&
           t - ((e + 1) * TOK - 1) >= state_table_tier(m->st, c->table + k).last)
        k++;
    return k;
}

static void check_row(const model *m, int64_t seq, int64_t t)
{
    for (int i = 0; i < CELLS; i++) {
        const kcell *c = &state_cells(m->st)[i];
        int64_t window = cells[i].window, first = window && t >= window ? t - window + 1 : 0;
        for (int64_t e = first / TOK; e <= t / TOK; e++) {
            int k = tier_of(m, c, t, e);
            while (m->changes && k + 1 < c->n_tier &&
                   state_pages(m->st, c->table + k, seq).page[e] < 0)
                k++;
            int32_t page = state_pages(m->st, c->table + k, seq).page[e];
            ck_assert_msg(page >= 0, "%s: row %d misses entry %d in tier %d", cells[i].name, (int)t,
                          (int)e, k);
            const uint32_t *rows = rows_at(m, c, k, page);
            for (int64_t r = e * TOK; r < (e + 1) * TOK && r <= t; r++)
                if (r >= first && rows[r % TOK] != m->seq[seq].stamp[r])
                    ck_abort_msg("%s: row %d sees another row %d in tier %d", cells[i].name, (int)t,
                                 (int)r, k);
        }
    }
}

/* What the run does: append, then tier by tier convert. */
static void run_rows(model *m, int64_t seq, int64_t n)
{
    model_seq *s = &m->seq[seq];
    for (int64_t r = 0; r < n; r++)
        s->stamp[s->length + r] = ++m->next;
    for (int i = 0; i < CELLS; i++) {
        const kcell *c = &state_cells(m->st)[i];
        for (int64_t r = s->length; r < s->length + n; r++)
            rows_at(m, c, 0, state_pages(m->st, c->table, seq).page[r / TOK])[r % TOK] =
                s->stamp[r];
        for (int k = 1; k < c->n_tier; k++) {
            state_page_table to = state_pages(m->st, c->table + k, seq);
            for (int64_t e = to.made; e < to.n; e++, m->n_convert++) {
                int32_t from = state_pages(m->st, c->table + k - 1, seq).page[e];
                ck_assert_msg(from >= 0, "%s: entry %d cannot be made in tier %d", cells[i].name,
                              (int)e, k);
                memcpy(rows_at(m, c, k, to.page[e]), rows_at(m, c, k - 1, from),
                       TOK * sizeof(uint32_t));
            }
        }
    }
    for (int64_t r = s->length; r < s->length + n; r++)
        check_row(m, seq, r);
}

static void model_call(model *m)
{
    int32_t seqs[SEQS], rows[SEQS];
    int n = 0;
    int64_t left = CALL, first = draw(m, SEQS);
    for (int i = 0; i < SEQS; i++) {
        int32_t s = (int32_t)((first + i) % SEQS);
        int64_t most = CTX - m->seq[s].length < left ? CTX - m->seq[s].length : left;
        if (draw(m, 2))
            continue;
        seqs[n] = s;
        rows[n] = (int32_t)(draw(m, 3) ? draw(m, (most < 3 ? most : 3) + 1) : draw(m, most + 1));
        left -= rows[n++];
    }
    bool room = state_has_room(m->st, seqs, rows, n);
    ck_assert_int_eq(state_reserve_each(m->dg, m->st, seqs, rows, n) == WEFT_OK, room);
    if (!room) {
        expect_one(m->dg, W1401, " more page");
        diag_reset(m->dg);
        m->n_full++;
        return;
    }
    m->n_call++;
    bool fails = draw(m, 6) == 0;
    for (int i = 0; i < n; i++)
        run_rows(m, seqs[i], rows[i]);
    for (int i = 0; i < n; i++) {
        model_seq *s = &m->seq[seqs[i]];
        int64_t taken = fails ? 0 : draw(m, 8) ? rows[i] : draw(m, rows[i] + 1);
        state_commit(m->st, seqs[i], taken);
        state_release(m->st, seqs[i]);
        s->length += taken;
        s->high = s->length > s->high ? s->length : s->high;
    }
}

static void share(model *m, int64_t from, int64_t to, int64_t length)
{
    m->seq[to] = m->seq[from];
    m->seq[to].length = length;
    if (length == 0)
        m->seq[to].high = 0;
}

/* A length to cut a holder to, and whether the state says that it can. A page back is always possible. */
static bool draw_length(model *m, int64_t holder, int64_t *out)
{
    const model_seq *s = &m->seq[holder];
    int64_t near = s->length < 7 ? 0 : s->length - 6;
    *out = draw(m, 3) ? near + draw(m, s->length - near + 1) : draw(m, s->length + 1);
    int64_t keeps = holder < SEQS ? state_keepable(m->st, holder, *out)
                                  : state_prefix_keepable(m->st, holder - SEQS, *out);
    ck_assert(keeps == *out || keeps == 0);
    if (!m->changes && s->high - *out <= TOK)
        ck_assert_int_eq(keeps, *out);
    return keeps == *out;
}

static void model_cut(model *m, bool fork)
{
    int64_t from = draw(m, SEQS), to = fork ? draw(m, SEQS) : from, length;
    bool can = draw_length(m, from, &length);
    weft_status st = fork ? state_fork(m->dg, m->st, from, to, length)
                          : state_truncate(m->dg, m->st, from, length);
    ck_assert_int_eq(st, can ? WEFT_OK : WEFT_ERR_STATE);
    if (can) {
        share(m, from, to, length);
        m->n_share += fork;
    } else {
        expect_one(m->dg, W1408, "cannot go from");
        diag_reset(m->dg);
        m->n_gone++;
    }
}

static void model_hold(model *m)
{
    int64_t seq = draw(m, SEQS), prefix = draw(m, PREFIXES), length;
    bool give = draw(m, 2);
    if (draw(m, 5) == 0) {
        state_drop(m->st, prefix);
        memset(&m->seq[SEQS + prefix], 0, sizeof m->seq[0]);
    } else if (draw_length(m, give ? SEQS + prefix : seq, &length)) {
        m->n_share++;
        if (give)
            state_take(m->st, prefix, seq, length);
        else
            state_hold(m->st, seq, prefix, length);
        share(m, give ? SEQS + prefix : seq, give ? seq : SEQS + prefix, length);
    }
}

static void model_change(model *m)
{
    char text[100];
    /* Pools reach as long as no tier is for more tokens than at first. */
    int a = 7 - (int)draw(m, 2), b = a + 10 - (int)draw(m, 3), c = b + 16 - (int)draw(m, 3);
    if (draw(m, 4) == 0) /* mostly more than pools reach */
        a = (int)draw(m, 9), b = a + 1 + (int)draw(m, 12), c = b + 1 + (int)draw(m, 20);
    snprintf(text, sizeof text, "f32 last=%d, f16 last=%d, q8 last=%d, q4", a, b, c);
    kpolicy p;
    ck_assert_int_eq(policy_parse(m->dg, "--kv", str_of(text), &p), WEFT_OK);
    if (state_change(m->dg, m->st, &p) == WEFT_OK) {
        m->n_change++;
        return;
    }
    expect_one(m->dg, W1415, "would need");
    diag_reset(m->dg);
    m->n_refuse++;
}

static void run_round(int round)
{
    static const char *const policies[] = {"f32 last=6, f16 last=13, q8 last=29, q4",
                                           "f32 last=0, f16",
                                           "f32 last=7, f16 last=17, q8 last=33, q4"};
    model *m = calloc(1, sizeof *m);
    bool prefixes = round % 2;
    kpolicy kv;
    m->dg = diag_create();
    m->seed = (uint32_t)round + 1;
    m->changes = round >= 4;
    ck_assert_int_eq(policy_parse(m->dg, "--kv", str_of(policies[m->changes ? 2 : round / 2]), &kv),
                     WEFT_OK);
    state_options opt = {.n_seq = SEQS,
                         .n_ctx = CTX,
                         .page_tok = TOK,
                         .n_prefix = prefixes ? PREFIXES : 0,
                         .kv = &kv};
    ck_assert_int_eq(state_create(m->dg, &tiered_plan, &opt, &m->st), WEFT_OK);
    ck_assert_int_le(state_tables(m->st), TABLES_MAX);
    for (int32_t t = 0; t < state_tables(m->st); t++)
        ck_assert_int_le(state_pages_count(m->st, t), PAGES_MOST);
    m->base = malloc(state_bytes(m->st));
    state_bind(m->st, m->base, NULL, NULL);
    for (int step = 0; step < STEPS; step++) {
        int64_t what = draw(m, 16);
        if (what < 12)
            model_call(m);
        else if (what < 13 && prefixes)
            model_hold(m);
        else if (what < 13 && m->changes)
            model_change(m);
        else
            model_cut(m, what < 15);
    }
    ck_assert_int_gt(m->n_call, STEPS / 4);
    ck_assert_int_gt(m->n_share, STEPS / 100);
    ck_assert_int_gt(m->n_gone, STEPS / 100);
    ck_assert_int_gt(m->n_convert, STEPS / 4);
    if (m->changes && !prefixes)
        ck_assert_msg(m->n_change > 100 && m->n_refuse > 10, "%d changes, %d refused", m->n_change,
                      m->n_refuse);
    if (!prefixes)
        ck_assert_int_eq(m->n_full, 0);
    for (int p = 0; prefixes && p < PREFIXES; p++)
        state_drop(m->st, p);
    for (int s = 0; s < SEQS; s++)
        ck_assert_int_eq(state_truncate(m->dg, m->st, s, 0), WEFT_OK);
    for (int32_t t = 0; t < state_tables(m->st); t++)
        ck_assert_int_eq(state_pages_free(m->st, t), state_pages_count(m->st, t));
    state_destroy(m->st);
    diag_destroy(m->dg);
    free(m->base);
    free(m);
}

START_TEST(rows_see_pages_in_the_tier_of_their_age)
{
    for (int round = 0; round < 6; round++)
        run_round(round);
}
END_TEST

/* Cells, tiers and pages of each by hand. */
START_TEST(tiers_have_the_pages_they_need)
{
    weft_diag *dg = diag_create();
    kpolicy kv;
    ck_assert_int_eq(policy_parse(dg, "--kv", STR("f16 last=256, q8 last=1024, q4"), &kv), WEFT_OK);
    const plan_cell one = {.name = "kv", .heads = 2, .k = 64, .v = 64, .layout = PLAN_CONTIGUOUS};
    const plan p = {.n_cell = 1, .cell = &one, .n_tok_max = 1};
    state_options opt = {.n_seq = 1, .n_ctx = 4096, .kv = &kv};
    state *st;
    ck_assert_int_eq(state_create(dg, &p, &opt, &st), WEFT_OK);
    ck_assert_int_eq(state_tables(st), 3);
    /* 256 tokens, a page of slack, and the one that fills: 256 / 64 + 1 and the two that they may touch. */
    ck_assert_int_eq(state_pages_count(st, 0), 6);
    /* Coarser tiers have room for pages that come at once, so that they may come sooner one day. */
    ck_assert_int_eq(state_pages_count(st, 1), 1024 / 64 + 1 + 1);
    ck_assert_int_eq(state_pages_count(st, 2), 4096 / 64);
    ck_assert_int_eq(state_paged_table(st), 2);
    const kcell *c = state_cells(st);
    ck_assert_int_eq(c->n_tier, 3);
    ck_assert_int_eq(c->tier[0].page_bytes, 64 * 2 * 128 * 2);
    ck_assert_int_eq(c->tier[1].page_bytes, 2 * (64 * 64 + 4 * 64 + 64 * 64 + 128));
    ck_assert_int_eq(c->tier[2].page_bytes, 2 * (64 * 32 + 4 * 64 + 64 * 32 + 128));
    for (int i = 0; i < 4096; i++) {
        ck_assert_int_eq(state_reserve(dg, st, 0, 1), WEFT_OK);
        state_commit(st, 0, 1);
    }
    ck_assert_int_eq(state_pages_free(st, 2), 1024 / 64);
    kpolicy other;
    ck_assert_int_eq(policy_parse(dg, "--kv", STR("f16 last=0, q8 last=1, q4"), &other), WEFT_OK);
    ck_assert_int_eq(state_change(dg, st, &other), WEFT_OK);
    ck_assert_int_eq(state_change(dg, st, &kv), WEFT_OK);
    ck_assert_int_eq(policy_parse(dg, "--kv", STR("f16 last=256, q4"), &other), WEFT_OK);
    ck_assert_int_eq(state_change(dg, st, &other), WEFT_ERR_STATE);
    expect_one(dg, W1415,
               "kv is stored as `f16 last=256, q8 last=1024, q4 rest`, which cannot become "
               "`f16 last=256, q4 rest`");
    diag_reset(dg);
    ck_assert_int_eq(policy_parse(dg, "--kv", STR("f16 last=512, q8 last=1024, q4"), &other),
                     WEFT_OK);
    ck_assert_int_eq(state_change(dg, st, &other), WEFT_ERR_STATE);
    expect_one(dg, W1415, "in tier 0 (f16); there are 6");
    state_destroy(st);
    diag_reset(dg);
    opt.page_tok = 100;
    ck_assert_int_eq(state_create(dg, &p, &opt, &st), WEFT_ERR_LIMIT);
    expect_one(dg, W1406, "pages of 100 tokens cannot be q8");
    diag_reset(dg);
    kv.tier[0].key = KFORM_Q4;
    ck_assert_int_eq(state_create(dg, &p, &opt, &st), WEFT_ERR_LIMIT);
    expect_one(dg, W1406, "the first tier is not floats");
    diag_destroy(dg);
}
END_TEST

SUITE_MAIN("tiers", rows_see_pages_in_the_tier_of_their_age, tiers_have_the_pages_they_need)
