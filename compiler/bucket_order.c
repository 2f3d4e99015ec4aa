/* bucket_order.c - in which order nodes become steps.
 *
 * A map is one step though its nodes need not stand together, and what reads its first node may stand before its
 * last. So the order is found: a map or other node comes when all it waits for came, of those the one that ends
 * first. Nodes that touch a cell keep theirs. */
#include "compiler/bucket_impl.h"
#include "compiler/graph_impl.h"

typedef struct {
    bucket *b;
    const graph *g;
    graph_uses uses;
    int32_t *group;     /* [nodes]: the last node of its map, or itself; -1: not needed */
    int32_t *next;      /* [nodes]: the next of the same map; -1: none */
    int32_t *head;      /* [nodes]: of a map's last node, its first */
    int32_t *cell_next; /* [nodes]: the next that touches the same cell; -1: none */
    int32_t *waits;     /* [groups]: for how many */
    bool *ready;        /* [groups] */
} sorter;

static void find_groups(sorter *s)
{
    size_t n_map = 1;
    for (size_t i = 0; i < s->g->nodes.n; i++)
        n_map = (size_t)s->b->map[i] >= n_map ? (size_t)s->b->map[i] + 1 : n_map;
    int32_t *last = ARENA_ARRAY(s->b->a, int32_t, n_map); /* node of each map, counted from 1 */
    int32_t *touched = ARENA_ARRAY(s->b->a, int32_t, s->g->cells.n + 1);
    for (size_t k = s->g->nodes.n; k-- > 0;) {
        int32_t i = (int32_t)k, map = s->b->map[k];
        const gnode *n = &s->g->nodes.at[k];
        s->group[i] = s->next[i] = s->cell_next[i] = -1;
        s->waits[i] = 0;
        s->ready[i] = false;
        if (!lower_node_is_live(s->b->lo, n))
            continue;
        if (map > 0 && last[map] == 0)
            last[map] = i + 1;
        s->group[i] = map > 0 ? last[map] - 1 : i;
        s->next[i] = s->group[i] != i ? s->head[s->group[i]] : -1;
        s->head[s->group[i]] = i;
        int cell = graph_cell_of(s->g, n);
        if (cell >= 0) {
            s->cell_next[i] = touched[cell] - 1;
            touched[cell] = i + 1;
        }
    }
}

/* Call fn for each group that waits for node i, as often as it does. */
static void each_waiting(sorter *s, int32_t i, void (*fn)(sorter *s, int32_t group))
{
    const gnode *n = &s->g->nodes.at[i];
    for (int r = s->uses.first[n->first]; r < s->uses.first[n->first + n->n_out]; r++) {
        int32_t to = s->group[s->uses.node[r]];
        if (to >= 0 && to != s->group[i])
            fn(s, to);
    }
    if (s->cell_next[i] >= 0)
        fn(s, s->group[s->cell_next[i]]);
}

static void one_more(sorter *s, int32_t group)
{
    s->waits[group]++;
}

static void one_less(sorter *s, int32_t group)
{
    s->ready[group] = --s->waits[group] == 0;
}

static void sort_groups(sorter *s)
{
    int32_t n = (int32_t)s->g->nodes.n;
    s->b->n_order = 0;
    for (int32_t i = 0; i < n; i++)
        if (s->group[i] >= 0)
            each_waiting(s, i, one_more);
    for (int32_t i = 0; i < n; i++)
        s->ready[i] = s->group[i] == i && s->waits[i] == 0;
    for (int32_t at = 0; at < n;) {
        if (!s->ready[at]) {
            at++;
            continue;
        }
        s->ready[at] = false;
        s->b->node_order[s->b->n_order++] = at;
        for (int32_t i = s->head[at]; i >= 0; i = s->next[i])
            each_waiting(s, i, one_less);
        at = s->head[at]; /* what waited for the map may stand before its end */
    }
}

void bucket_order(bucket *b)
{
    const graph *g = b->lo->g;
    size_t n = g->nodes.n;
    sorter s = {.b = b, .g = g, .uses = graph_uses_of(b->a, g)};
    s.group = ARENA_ARRAY(b->a, int32_t, n);
    s.next = ARENA_ARRAY(b->a, int32_t, n);
    s.head = ARENA_ARRAY(b->a, int32_t, n);
    s.cell_next = ARENA_ARRAY(b->a, int32_t, n);
    s.waits = ARENA_ARRAY(b->a, int32_t, n);
    s.ready = ARENA_ARRAY(b->a, bool, n);
    b->map = ARENA_ARRAY(b->a, int32_t, n);
    b->node_order = ARENA_ARRAY(b->a, int32_t, n);
    for (size_t i = 0; i < n; i++)
        b->map[i] =
            op_row_of(g->nodes.at[i].op)->fuses == FUSE_ELEMENTWISE ? g->nodes.at[i].map : 0;
    find_groups(&s);
    sort_groups(&s);
    for (size_t i = 0; i < n; i++)
        WEFT_ASSERT(s.group[i] < 0 || s.waits[s.group[i]] == 0); /* no map waits for itself */
}
