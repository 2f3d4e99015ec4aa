/* scope.h - names and what they stand for; private to dsl/. */
#ifndef WEFT_DSL_SCOPE_H
#define WEFT_DSL_SCOPE_H

#include "dsl/sema_value.h"

typedef enum {
    SYM_BASE, /* T, R, S, pi, source, session */
    SYM_MODULE,
    SYM_FRAGMENT,
    SYM_BLOCK,
    SYM_PARAM,
    SYM_LET,
    SYM_WEIGHT,
    SYM_GROUP,
    SYM_CELL,
    SYM_INCLUDE,
    SYM_FORMAL,
    SYM_INDEX,
    SYM_VALUE,
    SYM_ENTRY,
    SYM_MODEL,
} sym_class;

/* What an argument of a block is used as, where its own kind is not known. */
typedef enum {
    ROLE_OPEN,
    ROLE_CALLED,
    ROLE_FLOAT,
    ROLE_IDS,
    ROLE_TABLE,
    ROLE_INT,
    ROLE_CELL,
    ROLE_LIST
} sym_role;

/* A value that was bound, and whether anything reads it. One that arms of an if left has two parts. */
typedef struct use {
    bool read, formal;
    str name;
    weft_loc loc;
    struct use *a, *b;
    struct use *next;  /* in its frame */
    struct use *later; /* while marking */
} use;

typedef struct sym {
    str name;
    sym_class class;
    bool used; /* looked up at least once */
    bool live; /* false: bound only inside an arm or loop that is over */
    val v;
    weft_loc loc;
    const char *conflict; /* what W0309 says if it is used: the arms of an if disagree about it */
    weft_loc other;       /* with a conflict: where the other arm bound it */
    sym_role role;        /* in a block on its own */
    weft_loc role_at;
    use *use;       /* VALUE: of what it stands for here */
    uint32_t stamp; /* marks a walk over the trail that has met it */
    struct sym *next;
} sym;

struct scope {
    scope *up;
    sym **bucket;
    uint32_t n, n_bucket;
    arena *a;
};

scope *scope_create(arena *a, scope *up);
sym *scope_find_here(const scope *sc, str name); /* live or not */
sym *scope_find(const scope *sc, str name);      /* live ones, here and above */
sym *scope_add(scope *sc, str name, sym_class class, val v, weft_loc loc);
/* Offer every live name, here and above, to a guess. */
void scope_guess(const scope *sc, str_guess *best, str want);
const char *sym_class_name(sym_class class);
const char *sym_role_name(sym_role role);

#endif
