/* page.h - the page of `weft serve`, and what is sent with it. Bytes of the program: they live as long as it does, and
 * nothing can go wrong. What the page asks of the server is in this folder's README. */
#ifndef WEFT_RUNTIME_PAGE_PAGE_H
#define WEFT_RUNTIME_PAGE_PAGE_H

#include <stddef.h>

typedef struct {
    const char *name, *value;
} page_header;

typedef struct {
    const char *bytes; /* the HTML, in UTF-8; a 0 follows, which is not counted */
    size_t n;
    const char *etag;          /* of these bytes, with its quotation marks */
    const page_header *header; /* all that the page needs, its Content-Security-Policy among them */
    int header_n;
} page;

extern const page page_index;

#endif
