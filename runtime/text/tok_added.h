/* tok_added.h - finds added tokens in a text: leftmost first, the longest there. Private. */
#ifndef WEFT_RUNTIME_TEXT_TOK_ADDED_H
#define WEFT_RUNTIME_TEXT_TOK_ADDED_H

#include "runtime/base/str.h"
#include "runtime/base/vec.h"

enum {
    ADDED_SPECIAL = 1,
    ADDED_LSTRIP = 2,      /* takes the white space before it */
    ADDED_RSTRIP = 4,      /* and after it */
    ADDED_SINGLE_WORD = 8, /* only where no word character touches it */
};

typedef struct {
    int32_t id;
    uint32_t flags;
} added_token;

/* A tree of bytes; children are a linked list, short except at the root, which `first` guards. */
typedef struct {
    uint32_t child, next; /* 0: none */
    int32_t token;        /* index into tokens, or -1 */
    unsigned char byte;
} added_node;

typedef struct {
    VEC(added_node) nodes; /* the root first */
    VEC(added_token) tokens;
    uint32_t first[256]; /* children of the root; 0: none */
} tok_added;

/* A text that is there already gets the new token. Empty texts are left out. */
void added_put(tok_added *a, str text, added_token token);
void added_free(tok_added *a);

typedef struct {
    const tok_added *a;
    str text;
    bool parse_special;
    size_t from; /* where to look next */
    size_t done; /* what lies before it was handed out */
} added_scan;

/* The next token with the span it takes, white space included; false at the end. */
bool added_next(added_scan *s, size_t *out_begin, size_t *out_end, int32_t *out_id);

#endif
