/* graph_scan.h - the words of graph text. Private to graph_read.c and graph_scan.c.
 *
 * Blanks, line ends and comments (from `;` to the end of the line) only separate. Every function
 * skips them first; one that fails has reported W1502 at the place. */
#ifndef WEFT_COMPILER_GRAPH_SCAN_H
#define WEFT_COMPILER_GRAPH_SCAN_H

#include "runtime/base/diag.h"

typedef struct {
    weft_diag *dg;
    const source *src;
    arena *a;     /* names with escapes are kept here */
    size_t at;    /* of the next byte */
    size_t begin; /* of the word read last, for messages */
} scan;

weft_loc scan_loc(const scan *s); /* from the word read last up to here */
#define SCAN_FAIL(s, ...) weft_fail((s)->dg, W1502, scan_loc(s), __VA_ARGS__)

bool scan_end(scan *s);
char scan_peek(scan *s); /* the next byte that counts; 0 at the end */
bool scan_accept(scan *s, char c);
weft_status scan_expect(scan *s, char c) WEFT_MUST_USE;

/* Letters, digits and _, not beginning with a digit; a view into the text. */
weft_status scan_word(scan *s, str *out_word) WEFT_MUST_USE;
bool scan_accept_word(scan *s, const char *word);
/* Words, dots and [numbers], or a string in quotes. */
weft_status scan_name(scan *s, str *out_name) WEFT_MUST_USE;
weft_status scan_string(scan *s, str *out_text) WEFT_MUST_USE;
/* What stands before the next blank, colon or bracket: the short name of a file. */
weft_status scan_file(scan *s, str *out_name) WEFT_MUST_USE;

weft_status scan_int(scan *s, int64_t min, int64_t max, int64_t *out_x) WEFT_MUST_USE;
weft_status scan_number(scan *s, double *out_x) WEFT_MUST_USE; /* inf and nan too */

#endif
