/* scope.c - hash tables of names, chained outward. */
#include "dsl/scope.h"

scope *scope_create(arena *a, scope *up)
{
    scope *sc = ARENA_NEW(a, scope);
    sc->a = a;
    sc->up = up;
    sc->n_bucket = 16;
    sc->bucket = ARENA_ARRAY(a, sym *, sc->n_bucket);
    return sc;
}

sym *scope_find_here(const scope *sc, str name)
{
    for (sym *y = sc->bucket[str_hash(name) % sc->n_bucket]; y; y = y->next)
        if (str_eq(y->name, name))
            return y;
    return NULL;
}

sym *scope_find(const scope *sc, str name)
{
    for (; sc; sc = sc->up) {
        sym *y = scope_find_here(sc, name);
        if (y && y->live)
            return y;
    }
    return NULL;
}

static void grow(scope *sc)
{
    uint32_t n_bucket = 4 * sc->n_bucket;
    sym **bucket = ARENA_ARRAY(sc->a, sym *, n_bucket);
    for (uint32_t i = 0; i < sc->n_bucket; i++) {
        for (sym *y = sc->bucket[i], *next; y; y = next) {
            next = y->next;
            sym **home = &bucket[str_hash(y->name) % n_bucket];
            y->next = *home;
            *home = y;
        }
    }
    sc->bucket = bucket;
    sc->n_bucket = n_bucket;
}

sym *scope_add(scope *sc, str name, sym_class class, val v, weft_loc loc)
{
    if (sc->n >= 2 * sc->n_bucket)
        grow(sc);
    sym *y = ARENA_NEW(sc->a, sym);
    *y = (sym){.name = name, .class = class, .live = true, .v = v, .loc = loc};
    sym **home = &sc->bucket[str_hash(name) % sc->n_bucket];
    y->next = *home;
    *home = y;
    sc->n++;
    return y;
}

void scope_guess(const scope *sc, str_guess *best, str want)
{
    for (; sc; sc = sc->up)
        for (uint32_t i = 0; i < sc->n_bucket; i++)
            for (const sym *y = sc->bucket[i]; y; y = y->next)
                if (y->live)
                    str_guess_try(best, want, y->name);
}

const char *sym_role_name(sym_role role)
{
    static const char *const name[] = {
        [ROLE_OPEN] = "anything",        [ROLE_CALLED] = "a function",
        [ROLE_FLOAT] = "a float tensor", [ROLE_IDS] = "an i32 tensor",
        [ROLE_TABLE] = "a rope table",   [ROLE_INT] = "an integer",
        [ROLE_CELL] = "a state cell",    [ROLE_LIST] = "a list of sizes",
    };
    return name[role];
}

const char *sym_class_name(sym_class class)
{
    static const char *const name[] = {
        [SYM_BASE] = "a name of the language",
        [SYM_MODULE] = "an imported file",
        [SYM_FRAGMENT] = "a fragment",
        [SYM_BLOCK] = "a block",
        [SYM_PARAM] = "a parameter",
        [SYM_LET] = "a let",
        [SYM_WEIGHT] = "a weight",
        [SYM_GROUP] = "a group",
        [SYM_CELL] = "a state cell",
        [SYM_INCLUDE] = "an included fragment",
        [SYM_FORMAL] = "an argument",
        [SYM_INDEX] = "an index",
        [SYM_VALUE] = "a value",
        [SYM_ENTRY] = "an entry",
        [SYM_MODEL] = "a model",
    };
    return name[class];
}
