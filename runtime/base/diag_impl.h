/* diag_impl.h - the inside of a collector, shared by diag.c, diag_quote.c and diag_print.c only. */
#ifndef WEFT_RUNTIME_BASE_DIAG_IMPL_H
#define WEFT_RUNTIME_BASE_DIAG_IMPL_H

#include "runtime/base/diag.h"
#include "runtime/base/mem_scope.h"

/* What is shown of a place. It is worked out when the diagnostic is recorded, since the source may be gone when it is printed. */
typedef struct {
    str file;              /* p is NULL: nowhere in particular */
    uint32_t line, column; /* 0: of an empty text */
    uint32_t end_line, end_column;
    str quote;                 /* the line, or a window of it, safe to print */
    uint32_t caret, underline; /* cells before the caret, and from it on; at least 1 */
} diag_place;

typedef struct diag_note diag_note;
struct diag_note {
    diag_note *next;
    diag_place place;
    bool same_line; /* as the diagnostic itself: it is not quoted again */
    str message;
};

typedef struct {
    diag_entry entry;
    diag_place place;
    diag_note *notes, **notes_end;
    int n_note;
} diag_item;

/* All that is kept, and the one about memory. */
enum { DIAG_KEPT_MAX = 2 * DIAG_ERRORS_MAX + 1 };

struct weft_diag {
    arena *home; /* items, notes, messages and what they quote */
    mem_life life;
    diag_item *items[DIAG_KEPT_MAX];
    size_t n_item;
    diag_item *newest; /* where notes go; NULL when the newest was not kept */
    size_t n_error, n_warning;
    size_t n_failed; /* errors recorded, repeated ones too */
    /* Keys of what was reported, an open-addressing table; 0 is an empty slot. */
    uint64_t *seen;
    size_t seen_n, seen_cap;
    strbuf scratch; /* messages before they are kept, and what diag_text gives */
    /* What diag_fail_memory fills, which can take no memory. */
    diag_item short_of;
    char short_text[96];
};

/* diag_quote.c: what is shown of loc. It lives in a; scratch is overwritten. */
diag_place diag_place_of(arena *a, strbuf *scratch, weft_loc loc);

#endif
