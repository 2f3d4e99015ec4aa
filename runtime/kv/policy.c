/* policy.c - a policy's text, read tier by tier. Each mistake has its place. */
#include "runtime/kv/policy.h"

#include "runtime/base/source.h"
#include <inttypes.h>

typedef struct {
    weft_diag *dg;
    const source *src;
    str text;
    size_t at;
    size_t begin; /* of the word read last */
} reader;

static weft_loc loc_of(const reader *r, size_t begin, size_t end)
{
    return (weft_loc){r->src, (uint32_t)begin, (uint32_t)end};
}

/* What was read last. */
static weft_loc loc_last(const reader *r)
{
    return loc_of(r, r->begin, r->at);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static void skip_space(reader *r)
{
    while (r->at < r->text.n && is_space(r->text.p[r->at]))
        r->at++;
}

/* A word or a number; empty where there is none. */
static str read_word(reader *r)
{
    skip_space(r);
    r->begin = r->at;
    while (r->at < r->text.n && is_word(r->text.p[r->at]))
        r->at++;
    return (str){r->text.p + r->begin, r->at - r->begin};
}

static bool accept(reader *r, char c)
{
    skip_space(r);
    if (r->at == r->text.n || r->text.p[r->at] != c)
        return false;
    r->begin = r->at++;
    return true;
}

/* The character that is here instead of what was expected. */
static weft_status fail_here(reader *r, const char *expected)
{
    skip_space(r);
    if (r->at == r->text.n)
        return weft_fail(r->dg, W1414, loc_of(r, r->at, r->at), "the policy ends here; %s expected",
                         expected);
    return weft_fail(r->dg, W1414, loc_of(r, r->at, r->at + 1), "`%c` here; %s expected",
                     r->text.p[r->at], expected);
}

static weft_status read_form(reader *r, kform *out)
{
    str word = read_word(r), name = word;
    if (word.n == 0)
        return fail_here(r, "f32, f16, bf16, q8 or q4");
    if (str_eqz(word, "q8_0") ||
        str_eqz(word, "q4_0")) /* as others call what serves the same end */
        name.n = 2;
    *out = kform_find(name);
    if (*out != KFORM_COUNT)
        return WEFT_OK;
    weft_status st = weft_fail(
        r->dg, W1414, loc_last(r),
        "there is no form `" STR_FMT "`; there are f32, f16, bf16, q8 and q4", STR_ARG(word));
    weft_suggest_word(r->dg, word, "f32 f16 bf16 q8 q4");
    return st;
}

static weft_status read_last(reader *r, int32_t *out)
{
    if (!accept(r, '='))
        return fail_here(r, "`=`");
    str word = read_word(r);
    int64_t n = 0;
    bool digits = word.n > 0;
    for (size_t i = 0; i < word.n && digits; i++) {
        digits = word.p[i] >= '0' && word.p[i] <= '9';
        n = n > POLICY_LAST_MAX ? n : n * 10 + (word.p[i] - '0');
    }
    if (word.n == 0)
        return fail_here(r, "a number of tokens");
    if (!digits)
        return weft_fail(r->dg, W1414, loc_last(r), "`" STR_FMT "` is no number of tokens",
                         STR_ARG(word));
    if (n > POLICY_LAST_MAX)
        return weft_fail(r->dg, W1414, loc_last(r), "last is at most %d", POLICY_LAST_MAX);
    *out = (int32_t)n;
    return WEFT_OK;
}

typedef struct {
    kpolicy_tier t;
    bool has_last;
    size_t begin, end;   /* of the tier in the text */
    weft_loc last, rest; /* of what follows its forms; rest.src NULL: there is none */
} tier_text;

static weft_status read_tier(reader *r, tier_text *t)
{
    *t = (tier_text){0};
    WEFT_TRY(read_form(r, &t->t.key));
    t->begin = r->begin;
    t->t.value = t->t.key;
    if (accept(r, '/'))
        WEFT_TRY(read_form(r, &t->t.value));
    t->end = r->at;
    str word = read_word(r);
    if (str_eqz(word, "last")) {
        t->has_last = true;
        t->last = loc_last(r);
        WEFT_TRY(read_last(r, &t->t.last));
        t->last.end = (uint32_t)r->at;
    } else if (str_eqz(word, "rest")) {
        t->rest = loc_last(r);
    } else if (word.n > 0) {
        return weft_fail(r->dg, W1414, loc_last(r),
                         "`" STR_FMT "` here; `last=N`, `rest` or `,` expected", STR_ARG(word));
    }
    return WEFT_OK;
}

/* Is there another tier after this one; false at the end of the text. */
static weft_status read_comma(reader *r, bool *out)
{
    *out = accept(r, ',');
    skip_space(r);
    if (!*out && r->at < r->text.n)
        return fail_here(r, "`,` or the end");
    return WEFT_OK;
}

static weft_status check_forms(reader *r, const kpolicy_tier *before, const tier_text *t)
{
    weft_loc at = loc_of(r, t->begin, t->end);
    static const char *const what[] = {"keys", "values"};
    const kform from[] = {before->key, before->value}, to[] = {t->t.key, t->t.value};
    for (int i = 0; i < 2; i++)
        if (!kpolicy_follows(from[i], to[i]))
            return weft_fail(r->dg, W1414, at, "%s of %s after %s: tiers go from fine to coarse",
                             what[i], kform_name(to[i]), kform_name(from[i]));
    if (from[0] == to[0] && from[1] == to[1])
        return weft_fail(r->dg, W1414, at, "this tier is the same as the one before");
    return WEFT_OK;
}

/* Of the tier with its neighbours: does it follow, and is there a number where one has to be? */
static weft_status check_tier(reader *r, const kpolicy *p, const tier_text *t, bool more)
{
    const kpolicy_tier *before = p->n_tier ? &p->tier[p->n_tier - 1] : NULL;
    if (p->n_tier == K_TIERS_MAX)
        return weft_fail(r->dg, W1414, loc_of(r, t->begin, t->end),
                         "a policy has at most %d tiers, f16 before codes included", K_TIERS_MAX);
    if (before)
        WEFT_TRY(check_forms(r, before, t));
    if (more && t->rest.src)
        return weft_fail(r->dg, W1414, t->rest, "`rest` is for the last tier");
    if (more && !t->has_last)
        return weft_fail(r->dg, W1414, loc_of(r, t->begin, t->end),
                         "only the last tier goes without `last=N`");
    if (!more && t->has_last)
        return weft_fail(r->dg, W1414, t->last,
                         "the last tier takes all older tokens; another one has to follow this");
    if (before && more && t->t.last <= before->last)
        return weft_fail(r->dg, W1414, t->last,
                         "last=%" PRId32 " is not more than that of the tier before, %" PRId32,
                         t->t.last, before->last);
    return WEFT_OK;
}

static weft_status read_policy(reader *r, kpolicy *p)
{
    bool more = true;
    while (more) {
        tier_text t;
        WEFT_TRY(read_tier(r, &t));
        WEFT_TRY(read_comma(r, &more));
        if (p->n_tier == 0) {
            kpolicy plain = kpolicy_plain(t.t.key, t.t.value);
            if (plain.n_tier > 1)
                p->tier[p->n_tier++] = plain.tier[0];
        }
        WEFT_TRY(check_tier(r, p, &t, more));
        t.t.last = more ? t.t.last : KPOLICY_REST;
        p->tier[p->n_tier++] = t.t;
    }
    return WEFT_OK;
}

weft_status policy_parse(weft_diag *dg, const char *name, str text, kpolicy *out)
{
    if (text.n > POLICY_TEXT_MAX)
        return weft_fail(dg, W1414, WEFT_NOWHERE, "%s is %zu bytes long; %d are enough", name,
                         text.n, POLICY_TEXT_MAX);
    arena *a = arena_create();
    const source *src = source_from_text(a, name, text);
    reader r = {.dg = dg, .src = src, .text = src->text};
    kpolicy p = {0};
    weft_status st = read_policy(&r, &p);
    if (st == WEFT_OK) {
        WEFT_ASSERT(!kpolicy_wrong(&p));
        *out = p;
    }
    arena_destroy(a);
    return st;
}
