/* tok_tree.h - texts in a tree of bytes, to find those that a text begins with. Private to this folder. */
#ifndef WEFT_RUNTIME_TEXT_TOK_TREE_H
#define WEFT_RUNTIME_TEXT_TOK_TREE_H

#include "runtime/base/str.h"
#include "runtime/base/vec.h"

/* A node's children follow each other in nodes; their bytes are in order. */
typedef struct {
    uint32_t child; /* the first one */
    uint16_t n_child;
    unsigned char byte;
    int32_t id; /* VOCAB_NONE: no text ends here */
} tree_node;

typedef struct {
    VEC(tree_node) nodes; /* the root first */
} tok_tree;

typedef struct {
    str text; /* borrowed while the tree is made; not empty, and no two alike */
    int32_t id;
} tree_entry;

/* Sorts the entries. The tree is empty before. */
void tree_make(tok_tree *t, tree_entry *at, size_t n);
void tree_free(tok_tree *t);

/* The child of node (0: the root) by that byte, or 0. */
uint32_t tree_child(const tok_tree *t, uint32_t node, unsigned char byte);

#endif
