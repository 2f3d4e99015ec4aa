/* form_cache.c - a small table, searched from end to end: comparing 16 lengths costs nothing beside rendering a prompt. */
#include "runtime/http/form_cache.h"

#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include <pthread.h>

typedef struct {
    int kind;
    strbuf text;
    grammar *g;    /* NULL: the row is free */
    uint64_t used; /* a clock of its own; the smallest goes first */
} form_row;

struct form_cache {
    pthread_mutex_t lock; /* guards all below */
    form_row row[FORM_CACHE_MAX];
    uint64_t now;
    form_cache_counts count;
};

form_cache *form_cache_create(void)
{
    form_cache *c = mem_alloc(sizeof *c);
    memset(c, 0, sizeof *c);
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

void form_cache_destroy(form_cache *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < FORM_CACHE_MAX; i++) {
        grammar_destroy(c->row[i].g);
        strbuf_free(&c->row[i].text);
    }
    pthread_mutex_destroy(&c->lock);
    mem_free(c);
}

static str text_of(const form_row *r)
{
    return r->text.n ? strbuf_view(&r->text) : STR("");
}

/* By lock. */
static form_row *find(form_cache *c, int kind, str text)
{
    for (size_t i = 0; i < FORM_CACHE_MAX; i++)
        if (c->row[i].g && c->row[i].kind == kind && str_eq(text_of(&c->row[i]), text))
            return &c->row[i];
    return NULL;
}

/* By lock: a free row, or the one that was not asked for the longest. */
static form_row *oldest(form_cache *c)
{
    form_row *best = &c->row[0];
    for (size_t i = 0; i < FORM_CACHE_MAX; i++)
        if (!c->row[i].g || (best->g && c->row[i].used < best->used))
            best = &c->row[i];
    return best;
}

static weft_status compile(weft_diag *dg, const grammar_vocab *v, int kind, const char *name,
                           str text, grammar **out_g)
{
    grammar_limits most = GRAMMAR_LIMITS_DEFAULT;
    most.cache_bytes = FORM_MASK_BYTES;
    if (kind == FORM_JSON_OBJECT)
        return grammar_compile_json_object(dg, v, most, out_g);
    return grammar_compile(dg, v, (grammar_kind)kind, name, text, most, out_g);
}

static grammar *look_up(form_cache *c, int kind, str text)
{
    grammar *g = NULL;
    pthread_mutex_lock(&c->lock);
    form_row *r = find(c, kind, text);
    if (r) {
        r->used = ++c->now;
        g = grammar_hold(r->g);
    }
    *(r ? &c->count.hits : &c->count.misses) += 1;
    pthread_mutex_unlock(&c->lock);
    return g;
}

static void keep(form_cache *c, int kind, str text, grammar *g)
{
    grammar *old = NULL;
    strbuf kept = {0}, dropped = {0};
    strbuf_put(&kept, text); /* memory is taken outside of the lock */
    pthread_mutex_lock(&c->lock);
    if (!find(c, kind, text)) { /* another thread may have been first */
        form_row *r = oldest(c);
        old = r->g;
        dropped = r->text;
        *r = (form_row){.kind = kind, .text = kept, .g = grammar_hold(g), .used = ++c->now};
        kept = (strbuf){0};
        c->count.kept += old == NULL;
    }
    pthread_mutex_unlock(&c->lock);
    grammar_destroy(old);
    strbuf_free(&kept);
    strbuf_free(&dropped);
}

weft_status form_cache_get(weft_diag *dg, form_cache *c, const grammar_vocab *v, int kind,
                           const char *name, str text, grammar **out_g)
{
    /* A scope of its own: what goes into the table must not go with the request that failed later. */
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0)
        return diag_fail_memory(dg, scope.bytes);
    grammar *g = look_up(c, kind, text);
    if (!g) {
        WEFT_TRY(compile(dg, v, kind, name, text, &g));
        if (text.n <= FORM_TEXT_MAX)
            keep(c, kind, text, g);
    }
    *out_g = g;
    return WEFT_OK;
}

form_cache_counts form_cache_count(form_cache *c)
{
    pthread_mutex_lock(&c->lock);
    form_cache_counts n = c->count;
    pthread_mutex_unlock(&c->lock);
    return n;
}
