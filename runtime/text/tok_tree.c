/* tok_tree.c - the nodes are laid out level by level: the children of one node are made together. */
#include "runtime/text/tok_tree.h"

#include "runtime/text/tok_vocab.h"
#include <stdlib.h>

static int by_text(const void *a, const void *b)
{
    return str_cmp(((const tree_entry *)a)->text, ((const tree_entry *)b)->text);
}

typedef struct {
    size_t begin, end; /* of the sorted entries that go through the node */
} part;

void tree_make(tok_tree *t, tree_entry *at, size_t n)
{
    VEC(part) parts = {0}; /* of each node */
    if (n)
        qsort(at, n, sizeof *at, by_text);
    VEC_PUSH(&t->nodes, ((tree_node){.id = VOCAB_NONE}));
    VEC_PUSH(&parts, ((part){0, n}));
    size_t level_end = 1, depth = 0;
    for (size_t node = 0; node < t->nodes.n; node++) {
        if (node == level_end) {
            level_end = t->nodes.n;
            depth++;
        }
        part p = parts.at[node];
        if (p.begin < p.end && at[p.begin].text.n == depth)
            t->nodes.at[node].id = at[p.begin++].id;
        t->nodes.at[node].child = (uint32_t)t->nodes.n;
        for (size_t i = p.begin, j; i < p.end; i = j) {
            unsigned char byte = (unsigned char)at[i].text.p[depth];
            for (j = i; j < p.end && (unsigned char)at[j].text.p[depth] == byte;)
                j++;
            VEC_PUSH(&t->nodes, ((tree_node){.byte = byte, .id = VOCAB_NONE}));
            VEC_PUSH(&parts, ((part){i, j}));
            t->nodes.at[node].n_child++;
        }
    }
    VEC_FREE(&parts);
}

void tree_free(tok_tree *t)
{
    VEC_FREE(&t->nodes);
}

uint32_t tree_child(const tok_tree *t, uint32_t node, unsigned char byte)
{
    uint32_t low = t->nodes.at[node].child, end = low + t->nodes.at[node].n_child, high = end;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (t->nodes.at[mid].byte < byte)
            low = mid + 1;
        else
            high = mid;
    }
    return low < end && t->nodes.at[low].byte == byte ? low : 0;
}
