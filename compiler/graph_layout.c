/* graph_layout.c - ranks, order and positions of boxes (Sugiyama, Tagawa and Toda, 1981). */
#include "compiler/graph_layout.h"

#include "runtime/base/mem.h"
#include "runtime/base/utf8.h"
#include <stdlib.h>

enum { SWEEPS = 24, ROUNDS = 8, SETTLE = 6, SETTLE_COLUMNS = 6 };

static const double box_gap = 24, point_gap = 14, rank_gap = 30, section_gap = 34, margin = 24;

typedef struct {
    int other;   /* spot */
    double port; /* where the edge touches the other: distance from its centre */
} link;

/* For each of n things a stretch of `at`: first[i] .. first[i + 1]. */
typedef struct {
    int *first;
    link *at;
} links;

typedef struct {
    const view *v;
    layout *l;
    arena *a;
    links up, down; /* of spots: neighbours one rank above, one below */
    bool *edge;     /* [ranks + 1]: a frame begins here, or has ended */
    int *below;     /* [spots]: the next of its column, or -1 */
    double stiff;   /* how hard columns pull to be straight; grows while positions settle */
    double *key;    /* [spots]: scratch */
} placer;

/* ---- sizes ---- */

bool layout_flat(const view_box *b)
{
    return b->n_line == 2 && (b->look == LOOK_VIEW || b->look == LOOK_ELEMENTWISE);
}

double layout_port(const view_box *b, int port, double w)
{
    return b->n_out < 2 ? 0 : ((port + 0.5) / b->n_out - 0.5) * w * 0.7;
}

static void measure(placer *p)
{
    layout *l = p->l;
    l->box_h = ARENA_ARRAY(p->a, double, p->v->boxes.n);
    for (size_t i = 0; i < p->v->boxes.n; i++) {
        const view_box *b = &p->v->boxes.at[i];
        double widest = 0, sum = 0;
        for (int k = 0; k < b->n_line; k++) {
            double px = k == 0 ? LAYOUT_TITLE_PX : LAYOUT_TEXT_PX;
            double w = (double)utf8_count(b->line[k]) * px * LAYOUT_PITCH;
            widest = w > widest ? w : widest;
            sum += w + (k > 0 ? LAYOUT_TEXT_PX : 0);
        }
        spot s = {.box = (int)i, .w = (layout_flat(b) ? sum : widest) + 2 * LAYOUT_PAD_PX + 4};
        VEC_PUSH(&l->spots, s);
        int lines = layout_flat(b) ? 1 : b->n_line;
        l->box_h[i] = lines * LAYOUT_LINE_PX + (lines == 1 ? 1.1 : 1.5) * LAYOUT_PAD_PX;
    }
}

/* ---- ranks ---- */

/* Edges by the box they go into, as links whose `other` is the edge. */
static links edges_by_target(placer *p)
{
    const view *v = p->v;
    links in = {.first = ARENA_ARRAY(p->a, int, v->boxes.n + 2),
                .at = ARENA_ARRAY(p->a, link, v->edges.n)};
    for (size_t i = 0; i < v->edges.n; i++)
        in.first[v->edges.at[i].to + 2]++;
    for (size_t i = 2; i < v->boxes.n + 2; i++)
        in.first[i] += in.first[i - 1];
    for (size_t i = 0; i < v->edges.n; i++)
        in.at[in.first[v->edges.at[i].to + 1]++].other = (int)i;
    return in;
}

/* Sections do not share ranks, so that a layer can be framed; only an input may stand in the rank
 * above its reader's section. */
static void find_ranks(placer *p)
{
    const view *v = p->v;
    layout *l = p->l;
    links in = edges_by_target(p);
    int *base = ARENA_ARRAY(p->a, int, v->sections.n); /* a section's first rank and one */
    int *reader = ARENA_ARRAY(p->a, int, v->boxes.n);  /* the highest rank below it, and one */
    int deepest = -1;
    for (size_t i = 0; i < v->boxes.n; i++) {
        int section = v->boxes.at[i].section;
        if (base[section] == 0)
            base[section] = deepest + 2;
        int rank = base[section] - 1;
        for (int k = in.first[i]; k < in.first[i + 1]; k++) {
            int above = l->spots.at[v->edges.at[in.at[k].other].from].rank;
            rank = above >= rank ? above + 1 : rank;
        }
        l->spots.at[i].rank = rank;
        deepest = rank > deepest ? rank : deepest;
        for (int k = in.first[i]; k < in.first[i + 1]; k++) {
            int *r = &reader[v->edges.at[in.at[k].other].from];
            *r = *r == 0 || rank + 1 < *r ? rank + 1 : *r;
        }
    }
    l->spans = ARENA_ARRAY(p->a, section_span, v->sections.n);
    for (size_t i = 0; i < v->sections.n; i++)
        l->spans[i] = (section_span){-1, -1};
    for (size_t i = 0; i < v->boxes.n; i++) {
        bool entry = in.first[i] == in.first[i + 1] && v->boxes.at[i].look == LOOK_END;
        if (entry && reader[i] > 1)
            l->spots.at[i].rank = reader[i] - 2;
        if (entry)
            continue;
        section_span *s = &l->spans[v->boxes.at[i].section];
        int rank = l->spots.at[i].rank;
        s->rank_min = s->rank_min < 0 || rank < s->rank_min ? rank : s->rank_min;
        s->rank_max = rank > s->rank_max ? rank : s->rank_max;
    }
    l->n_rank = deepest + 1;
    p->edge = ARENA_ARRAY(p->a, bool, (size_t)l->n_rank + 1);
    for (size_t i = 0; i < v->sections.n; i++)
        if (v->sections.at[i].layer >= 0 && l->spans[i].rank_min >= 0)
            p->edge[l->spans[i].rank_min] = p->edge[l->spans[i].rank_max + 1] = true;
}

static bool add_points(placer *p)
{
    layout *l = p->l;
    size_t n_edge = p->v->edges.n;
    l->edge_first = ARENA_ARRAY(p->a, int, n_edge + 1);
    for (size_t i = 0; i < n_edge; i++) {
        l->edge_first[i] = (int)l->spots.n;
        int from = l->spots.at[p->v->edges.at[i].from].rank;
        int to = l->spots.at[p->v->edges.at[i].to].rank;
        if (l->spots.n - p->v->boxes.n + (size_t)(to - from) > LAYOUT_POINTS_MAX)
            return false;
        for (int r = from + 1; r < to; r++) {
            spot s = {.box = -1, .rank = r, .w = 2};
            VEC_PUSH(&l->spots, s);
        }
    }
    l->edge_first[n_edge] = (int)l->spots.n;
    return true;
}

/* ---- order ---- */

static double port_of(const placer *p, const view_edge *e)
{
    return layout_port(&p->v->boxes.at[e->from], e->port, p->l->spots.at[e->from].w);
}

/* With fill unset only counts. */
static void each_link(placer *p, bool fill)
{
    layout *l = p->l;
    for (size_t i = 0; i < p->v->edges.n; i++) {
        const view_edge *e = &p->v->edges.at[i];
        int above = e->from;
        double port = port_of(p, e);
        for (int k = l->edge_first[i]; k <= l->edge_first[i + 1]; k++) {
            int below = k < l->edge_first[i + 1] ? k : e->to;
            if (fill) {
                p->up.at[p->up.first[below + 1]++] = (link){above, port};
                p->down.at[p->down.first[above + 1]++] = (link){below, -port};
            } else {
                p->up.first[below + 2]++;
                p->down.first[above + 2]++;
            }
            above = below;
            port = 0;
        }
    }
}

static void make_links(placer *p)
{
    size_t n = p->l->spots.n, n_link = n + p->v->edges.n;
    p->up = (links){ARENA_ARRAY(p->a, int, n + 2), ARENA_ARRAY(p->a, link, n_link)};
    p->down = (links){ARENA_ARRAY(p->a, int, n + 2), ARENA_ARRAY(p->a, link, n_link)};
    each_link(p, false);
    for (size_t i = 2; i < n + 2; i++) {
        p->up.first[i] += p->up.first[i - 1];
        p->down.first[i] += p->down.first[i - 1];
    }
    each_link(p, true);
}

static void make_rows(placer *p)
{
    layout *l = p->l;
    l->ranks = ARENA_ARRAY(p->a, rank_row, (size_t)l->n_rank + 1);
    l->order = ARENA_ARRAY(p->a, int, l->spots.n);
    for (size_t i = 0; i < l->spots.n; i++)
        l->ranks[l->spots.at[i].rank].n++;
    for (int r = 0; r < l->n_rank; r++)
        l->ranks[r + 1].first = l->ranks[r].first + l->ranks[r].n;
    int *used = ARENA_ARRAY(p->a, int, (size_t)l->n_rank);
    for (size_t i = 0; i < l->spots.n; i++) {
        spot *s = &l->spots.at[i];
        s->pos = used[s->rank]++;
        l->order[l->ranks[s->rank].first + s->pos] = (int)i;
    }
}

/* Insertion keeps equal keys in their order; ranks are short. */
static void sort_rank(placer *p, rank_row *row)
{
    int *at = p->l->order + row->first;
    for (int i = 1; i < row->n; i++) {
        int s = at[i], k = i;
        for (; k > 0 && p->key[at[k - 1]] > p->key[s]; k--)
            at[k] = at[k - 1];
        at[k] = s;
    }
    for (int i = 0; i < row->n; i++)
        p->l->spots.at[at[i]].pos = i;
}

static void sweep_rank(placer *p, int rank, const links *to)
{
    rank_row *row = &p->l->ranks[rank];
    for (int i = 0; i < row->n; i++) {
        int s = p->l->order[row->first + i];
        double sum = 0;
        int n = to->first[s + 1] - to->first[s];
        for (int k = to->first[s]; k < to->first[s + 1]; k++)
            sum += p->l->spots.at[to->at[k].other].pos + 1e-3 * to->at[k].port;
        p->key[s] = n > 0 ? sum / n : p->l->spots.at[s].pos;
    }
    sort_rank(p, row);
}

static long crossings(const placer *p)
{
    const layout *l = p->l;
    long n = 0;
    for (int r = 1; r < l->n_rank; r++) {
        const int *at = l->order + l->ranks[r].first;
        for (int i = 0; i < l->ranks[r].n; i++)
            for (int j = i + 1; j < l->ranks[r].n; j++)
                for (int x = p->up.first[at[i]]; x < p->up.first[at[i] + 1]; x++)
                    for (int y = p->up.first[at[j]]; y < p->up.first[at[j] + 1]; y++)
                        n +=
                            l->spots.at[p->up.at[x].other].pos > l->spots.at[p->up.at[y].other].pos;
    }
    return n;
}

static void find_order(placer *p)
{
    layout *l = p->l;
    int *best = ARENA_ARRAY(p->a, int, l->spots.n);
    long fewest = -1;
    for (int sweep = 0; sweep <= SWEEPS; sweep++) {
        long n = crossings(p);
        if (fewest < 0 || n < fewest) {
            fewest = n;
            memcpy(best, l->order, l->spots.n * sizeof *best);
        }
        if (sweep % 2 == 0)
            for (int r = 1; r < l->n_rank; r++)
                sweep_rank(p, r, &p->up);
        else
            for (int r = l->n_rank - 2; r >= 0; r--)
                sweep_rank(p, r, &p->down);
    }
    memcpy(l->order, best, l->spots.n * sizeof *best);
    for (int r = 0; r < l->n_rank; r++)
        for (int i = 0; i < l->ranks[r].n; i++)
            l->spots.at[l->order[l->ranks[r].first + i]].pos = i;
}

/* ---- positions ---- */

static int degree(const links *to, int s)
{
    return to->first[s + 1] - to->first[s];
}

/* The spot that should stand exactly below s: the only one, and s is the only one above it. */
static int column_below(const placer *p, int s)
{
    if (degree(&p->down, s) != 1)
        return -1;
    link d = p->down.at[p->down.first[s]];
    return degree(&p->up, d.other) == 1 && d.port == 0 ? d.other : -1;
}

static double apart(const spot *a, const spot *b)
{
    return (a->w + b->w) / 2 + (a->box < 0 && b->box < 0 ? point_gap : box_gap);
}

/* Where a spot would like to be, and how much: columns pull hardest. */
static void wish(const placer *p, int s, const links *to, double *sum, double *weight)
{
    const spot *me = &p->l->spots.at[s];
    for (int k = to->first[s]; k < to->first[s + 1]; k++) {
        const spot *other = &p->l->spots.at[to->at[k].other];
        bool column = p->below[s] == to->at[k].other || p->below[to->at[k].other] == s;
        double pull = column ? p->stiff : me->box < 0 || other->box < 0 ? 2 : 1;
        *sum += pull * (other->x + to->at[k].port);
        *weight += pull;
    }
}

typedef struct {
    double mean, weight; /* of the wishes, each less its offset in the rank */
    int n;
} pool;

/* The places nearest to the wishes (least squares) that keep order and distance: neighbours whose
 * wishes collide are pooled and take their common mean. */
static void settle_rank(placer *p, int rank, bool above, bool below, pool *pools)
{
    rank_row *row = &p->l->ranks[rank];
    int n_pool = 0;
    double offset = 0;
    for (int i = 0; i < row->n; i++) {
        int s = p->l->order[row->first + i];
        spot *me = &p->l->spots.at[s];
        if (i > 0)
            offset += apart(&p->l->spots.at[p->l->order[row->first + i - 1]], me);
        double sum = me->x * 0.01, weight = 0.01;
        if (above)
            wish(p, s, &p->up, &sum, &weight);
        if (below)
            wish(p, s, &p->down, &sum, &weight);
        pools[n_pool++] = (pool){sum / weight - offset, weight, 1};
        for (; n_pool > 1 && pools[n_pool - 2].mean > pools[n_pool - 1].mean; n_pool--) {
            pool *a = &pools[n_pool - 2], *b = &pools[n_pool - 1];
            a->mean = (a->mean * a->weight + b->mean * b->weight) / (a->weight + b->weight);
            a->weight += b->weight;
            a->n += b->n;
        }
    }
    offset = 0;
    for (int i = 0, k = 0, left = row->n ? pools[0].n : 0; i < row->n; i++, left--) {
        if (left == 0)
            left = pools[++k].n;
        spot *me = &p->l->spots.at[p->l->order[row->first + i]];
        if (i > 0)
            offset += apart(&p->l->spots.at[p->l->order[row->first + i - 1]], me);
        me->x = pools[k].mean + offset;
    }
}

/* ---- columns ---- */

/* Move the column that begins at spot s as one to where its neighbours pull it, as far as there is
 * room. A column that is not straight yet becomes so, or stays as it is where nothing would fit. */
static void settle_column(placer *p, int s)
{
    const layout *l = p->l;
    double low = -1e9, high = 1e9, sum = 0, weight = 0;
    for (int k = s; k >= 0; k = p->below[k]) {
        const spot *me = &l->spots.at[k];
        const rank_row *row = &l->ranks[me->rank];
        const int *at = l->order + row->first;
        if (me->pos > 0) {
            const spot *left = &l->spots.at[at[me->pos - 1]];
            low = left->x + apart(left, me) > low ? left->x + apart(left, me) : low;
        }
        if (me->pos + 1 < row->n) {
            const spot *right = &l->spots.at[at[me->pos + 1]];
            high = right->x - apart(me, right) < high ? right->x - apart(me, right) : high;
        }
        if (k == s)
            wish(p, k, &p->up, &sum, &weight);
        if (p->below[k] < 0)
            wish(p, k, &p->down, &sum, &weight);
    }
    if (low > high)
        return;
    double x = weight > 0 ? sum / weight : l->spots.at[s].x;
    x = x < low ? low : x > high ? high : x;
    for (int k = s; k >= 0; k = p->below[k])
        l->spots.at[k].x = x;
}

/* inside: [spots], set where a spot is not the top of its column. */
static void settle_columns(placer *p, const bool *inside)
{
    layout *l = p->l;
    for (int turn = 0; turn < SETTLE_COLUMNS; turn++)
        for (size_t i = 0; i < l->spots.n; i++) {
            int s = l->order[turn % 2 ? i : l->spots.n - 1 - i];
            if (!inside[s])
                settle_column(p, s);
        }
}

static void find_x(placer *p)
{
    layout *l = p->l;
    pool *pools = ARENA_ARRAY(p->a, pool, l->spots.n);
    p->below = ARENA_ARRAY(p->a, int, l->spots.n);
    bool *inside = ARENA_ARRAY(p->a, bool, l->spots.n);
    for (size_t i = 0; i < l->spots.n; i++) {
        p->below[i] = column_below(p, (int)i);
        if (p->below[i] >= 0)
            inside[p->below[i]] = true;
    }
    for (int turn = 0; turn < ROUNDS * SETTLE; turn++) {
        bool both = turn >= SETTLE;
        p->stiff = 4 << turn / SETTLE;
        for (int r = 0; r < l->n_rank; r++)
            settle_rank(p, r, true, both, pools);
        for (int r = l->n_rank - 1; r >= 0; r--)
            settle_rank(p, r, both, true, pools);
        if (turn % SETTLE == SETTLE - 1)
            settle_columns(p, inside);
    }
}

/* Frames and what stands between them are centred, each for itself. */
static void centre(placer *p)
{
    layout *l = p->l;
    for (int band = 0, r = 0; r < l->n_rank; band = r) {
        double left = 1e9, right = -1e9;
        do {
            for (int i = l->ranks[r].first; i < l->ranks[r + 1].first; i++) {
                const spot *s = &l->spots.at[l->order[i]];
                left = s->x - s->w / 2 < left ? s->x - s->w / 2 : left;
                right = s->x + s->w / 2 > right ? s->x + s->w / 2 : right;
            }
        } while (!p->edge[++r] && r < l->n_rank);
        for (int i = l->ranks[band].first; i < l->ranks[r].first; i++)
            l->spots.at[l->order[i]].x -= (left + right) / 2;
        l->width = right - left > l->width ? right - left : l->width;
    }
    l->width += 2 * margin;
    for (size_t i = 0; i < l->spots.n; i++)
        l->spots.at[i].x += l->width / 2;
}

static void find_y(placer *p)
{
    layout *l = p->l;
    double y = 0;
    for (int r = 0; r < l->n_rank; r++) {
        rank_row *row = &l->ranks[r];
        for (int i = 0; i < row->n; i++) {
            int box = l->spots.at[l->order[row->first + i]].box;
            if (box >= 0 && l->box_h[box] > row->h)
                row->h = l->box_h[box];
        }
        y += r == 0 ? 0 : rank_gap + (p->edge[r] ? section_gap : 0);
        row->y = y;
        y += row->h;
    }
    l->height = y;
}

bool layout_init(layout *l, arena *a, const view *v)
{
    *l = (layout){0};
    placer p = {.v = v, .l = l, .a = a};
    measure(&p);
    find_ranks(&p);
    if (!add_points(&p))
        return false;
    make_rows(&p);
    make_links(&p);
    p.key = ARENA_ARRAY(a, double, l->spots.n);
    find_order(&p);
    find_x(&p);
    centre(&p);
    find_y(&p);
    return true;
}

void layout_deinit(layout *l)
{
    VEC_FREE(&l->spots);
}
