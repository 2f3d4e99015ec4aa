/* dsl.h - the public header of dsl/: .weft text into a checked tree; elaborate.h goes on to the graph.
 *
 * Text is a stranger's: any bytes give diagnostics, bounded in time and memory by the limits below,
 * never a crash. The tables of operators, weight kinds and transforms are open to all as .def files;
 * ops.h reads them. */
#ifndef WEFT_DSL_DSL_H
#define WEFT_DSL_DSL_H

#include "dsl/ast.h"
#include "runtime/base/diag.h"

enum {
    DSL_SOURCE_MAX = 1 << 20,     /* bytes in one file (W1101) */
    DSL_EXPAND_MAX = 1000 * 1000, /* steps of checking, blocks and fragments expanded (W1103): an
                                     expression is one, long sizes, lists and texts are more */
    DSL_BYTES_MAX = 192 << 20,    /* memory of checking (W1103) */
    DSL_CALLS_MAX = 32,           /* blocks within blocks (W1102) */
    DSL_IMPORTS_MAX = 64,         /* files one file may bring in (W1103) */
    DSL_COUNT_MAX = 1 << 16,  /* what an index counts (layers, experts, heads), and the turns of a
                                     loop, with a checkpoint (W1106) */
    DSL_SIZE_MAX = INT32_MAX, /* one dimension of a weight, cell or value, likewise */
};
/* The sizes of a value (T, R and S aside), or of a cell, multiplied; likewise. */
#define DSL_ELEMS_MAX ((int64_t)1 << 40)

/* Text to tree. Every syntax error is reported; the tree is given only when there was none. */
weft_status dsl_parse(weft_diag *dg, arena *a, const source *src, ast **out_file) WEFT_MUST_USE;

/* A file, parsed once, to be matched, checked and bound; what it imports is parsed when first needed, and once.
 * A stranger's text (std_only) may import std, from the compiled-in library, and nothing else. The texts of
 * imports live in home, for the places of nodes to point into; NULL: until the file is closed. */
typedef struct dsl_file dsl_file;
weft_status dsl_open(weft_diag *dg, const source *src, bool std_only, arena *home,
                     dsl_file **out_f) WEFT_MUST_USE;
void dsl_close(dsl_file *f); /* NULL is fine; its source is the caller's */

/* Check a file without any model: names, types, shapes for every size a model may have. */
weft_status dsl_check(weft_diag *dg, const source *src, bool std_only) WEFT_MUST_USE;

/* The one canonical layout. Comments stay; the tree does not change. */
weft_status dsl_fmt(weft_diag *dg, const source *src, strbuf *out) WEFT_MUST_USE;

#endif
