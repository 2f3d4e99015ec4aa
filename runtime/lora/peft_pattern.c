/* peft_pattern.c - patterns by PCRE2, as Python's `re.match("(.*\.)?(" + pattern + ")$", name)`. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "runtime/lora/peft_pattern.h"

#include "runtime/base/mem.h"
#include "runtime/base/vec.h"

#include <math.h>
#include <pcre2.h>

enum {
    PATTERNS_MAX = 4096,
    PATTERN_BYTES_MAX = 4096,
    MATCH_MAX = 100000,
    MATCH_KB_MAX = 1024,
    PATTERN_DEPTH_MAX = 64
};

typedef struct {
    pcre2_code *code;
    double number;
} pattern;

struct peft_patterns {
    pcre2_general_context *memory;
    pcre2_compile_context *how;
    VEC(pattern) rows;
    pcre2_match_context *bounds;
    pcre2_match_data *place;
};

/* PCRE2's memory is ours, so that a call that runs short of it fails as a whole (mem_scope.h). */
static void *take(size_t bytes, void *unused)
{
    (void)unused;
    return mem_alloc(bytes);
}

static void give_back(void *p, void *unused)
{
    (void)unused;
    mem_free(p);
}

static weft_status bad(weft_diag *dg, const char *path, const char *what, str key, const char *why)
{
    return weft_fail(dg, W0706, WEFT_NOWHERE, "%s: %s: \"" STR_FMT "\" %s", path, what,
                     STR_ARG(key), why);
}

static weft_status add(weft_diag *dg, peft_patterns *p, const char *path, const char *what,
                       const value_member *m)
{
    pattern row = {0};
    int error;
    PCRE2_SIZE at;
    if (!value_float(&m->v, &row.number) || !isfinite(row.number))
        return bad(dg, path, what, m->name, "has no number");
    if (m->name.n > PATTERN_BYTES_MAX)
        return bad(dg, path, what, (str){m->name.p, 60}, "and so on is too long");
    strbuf text = {0};
    strbuf_add(&text, "(?:.*\\.)?(?:" STR_FMT ")", STR_ARG(m->name));
    row.code = pcre2_compile((PCRE2_SPTR)text.p, text.n,
                             PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_NEVER_BACKSLASH_C, &error,
                             &at, p->how);
    strbuf_free(&text);
    if (!row.code)
        return bad(dg, path, what, m->name, "is not a regular expression that Weft reads");
    VEC_PUSH(&p->rows, row);
    return WEFT_OK;
}

weft_status peft_patterns_create(weft_diag *dg, const char *path, const char *what,
                                 const value *map, peft_patterns **out)
{
    peft_patterns *p = mem_alloc(sizeof *p);
    *p = (peft_patterns){.memory = pcre2_general_context_create(take, give_back, NULL)};
    p->how = pcre2_compile_context_create(p->memory);
    p->bounds = pcre2_match_context_create(p->memory);
    p->place = pcre2_match_data_create(1, p->memory);
    weft_status st = WEFT_OK;
    pcre2_set_parens_nest_limit(p->how, PATTERN_DEPTH_MAX);
    pcre2_set_match_limit(p->bounds, MATCH_MAX);
    pcre2_set_depth_limit(p->bounds, MATCH_MAX);
    pcre2_set_heap_limit(p->bounds, MATCH_KB_MAX);
    size_t n = value_count(map);
    if (value_kind_of(map) != VALUE_OBJECT && value_kind_of(map) != VALUE_NULL)
        st = weft_fail(dg, W0706, WEFT_NOWHERE, "%s: %s is not an object", path, what);
    else if (n > PATTERNS_MAX)
        st = weft_fail(dg, W1105, WEFT_NOWHERE, "%s: %s has %zu patterns, and %d is the limit",
                       path, what, n, PATTERNS_MAX);
    for (size_t i = 0; i < n && st == WEFT_OK; i++)
        st = add(dg, p, path, what, &map->as.object.members[i]);
    if (st == WEFT_OK)
        *out = p;
    else
        peft_patterns_destroy(p);
    return st;
}

void peft_patterns_destroy(peft_patterns *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->rows.n; i++)
        pcre2_code_free(p->rows.at[i].code);
    VEC_FREE(&p->rows);
    pcre2_match_context_free(p->bounds);
    pcre2_match_data_free(p->place);
    pcre2_compile_context_free(p->how);
    pcre2_general_context_free(p->memory);
    mem_free(p);
}

bool peft_patterns_find(const peft_patterns *p, str module, double *number)
{
    int found = PCRE2_ERROR_NOMATCH;
    for (size_t i = 0; i < p->rows.n && found == PCRE2_ERROR_NOMATCH; i++) {
        found = pcre2_match(p->rows.at[i].code, (PCRE2_SPTR)module.p, module.n, 0, 0, p->place,
                            p->bounds);
        if (found >= 0)
            *number = p->rows.at[i].number;
    }
    return found >= 0 || found == PCRE2_ERROR_NOMATCH;
}
