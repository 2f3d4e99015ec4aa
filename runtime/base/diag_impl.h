/* diag_impl.h - the inside of a collector, shared by diag.c and diag_print.c only. */
#ifndef WEFT_RUNTIME_BASE_DIAG_IMPL_H
#define WEFT_RUNTIME_BASE_DIAG_IMPL_H

#include "runtime/base/diag.h"
#include "runtime/base/vec.h"

typedef struct diag_note diag_note;
struct diag_note {
    diag_note *next;
    weft_loc loc;
    str message;
};

typedef struct {
    diag_entry entry;
    diag_note *notes, **notes_end;
    int n_note;
} diag_item;

struct weft_diag {
    arena *home; /* items, notes and messages */
    VEC(arena *) adopted;
    VEC(diag_item *) items;
    diag_item *newest; /* where notes go; NULL when the newest was not kept */
    size_t n_error, n_warning;
    size_t n_failed; /* errors recorded, told before or not */
    /* Keys of what was told, an open-addressing table; 0 is an empty slot. */
    uint64_t *seen;
    size_t seen_n, seen_cap;
    strbuf scratch;
};

#endif
