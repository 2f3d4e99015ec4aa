/* blend.c - sums, elections and random choices over what adapters add. */
#include "runtime/lora/blend.h"

#include "runtime/base/mem.h"
#include "runtime/exec/pool.h"

#include <math.h>
#include <stdlib.h>

/* ---- one adapter's elements ---- */

/* B A at one row (or column) and some columns (or rows), the scale multiplied in. Sums go in the order of the rank
 * whichever way, so an element is the same number from both sides. */
static void product_line(const adapter_site *s, int64_t line, bool flip, int64_t first, int n,
                         double *out)
{
    for (int i = 0; i < n; i++)
        out[i] = 0;
    for (int64_t r = 0; r < s->rank; r++) {
        double by = flip ? s->a[r * s->in + line] : s->b[line * s->rank + r];
        const float *x = flip ? s->b + first * s->rank + r : s->a + r * s->in + first;
        int64_t step = flip ? s->rank : 1;
        for (int i = 0; i < n; i++)
            out[i] += by * x[i * step];
    }
}

static uint64_t mixed(uint64_t x) /* splitmix64 */
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static bool is_kept(const blend_part *p, int64_t element, double density)
{
    return (double)(mixed(p->key + (uint64_t)element) >> 11) * 0x1p-53 < density;
}

/* What ties compares: the element without its share, rounded as the threshold was. */
static float bare(const blend_part *p, double x)
{
    return (float)(x * p->site->scale);
}

/* ---- thresholds of ties ---- */

enum { HALF_BITS = 16, HALF_COUNT = 1 << HALF_BITS };

/* Elements counted by half of their bits; a thread counts some rows in a table of its own. */
typedef struct {
    const blend_part *p;
    int64_t *count; /* [threads, HALF_COUNT] */
    bool lower;     /* the lower half, of those with this upper one */
    uint32_t upper;
} tally;

static void count_line(const tally *t, const double *x, int n, int64_t *count)
{
    for (int k = 0; k < n; k++) {
        float v = fabsf(bare(t->p, x[k]));
        uint32_t bits;
        memcpy(&bits, &v, sizeof bits);
        if (!t->lower)
            count[bits >> HALF_BITS]++;
        else if (bits >> HALF_BITS == t->upper)
            count[bits & (HALF_COUNT - 1)]++;
    }
}

static void count_rows(void *ctx, int index, int n_thread)
{
    const tally *t = ctx;
    const adapter_site *s = t->p->site;
    double x[BLEND_COLUMNS];
    for (int64_t o = s->out * index / n_thread; o < s->out * (index + 1) / n_thread; o++)
        for (int64_t i = 0; i < s->in; i += BLEND_COLUMNS) {
            int n = (int)(s->in - i < BLEND_COLUMNS ? s->in - i : BLEND_COLUMNS);
            product_line(s, o, false, i, n, x);
            count_line(t, x, n, t->count + (int64_t)index * HALF_COUNT);
        }
}

/* All counts in the first table. */
static void count_all(tally *t, int threads)
{
    pool_gang g;
    memset(t->count, 0, (size_t)threads * HALF_COUNT * sizeof *t->count);
    pool_gather(&g, threads);
    pool_go(&g, count_rows, t);
    for (int k = 1; k < threads; k++)
        for (int64_t i = 0; i < HALF_COUNT; i++)
            t->count[i] += t->count[(int64_t)k * HALF_COUNT + i];
}

/* The bucket, from the top, in which the element of this place is; *place is then its place there. */
static uint32_t bucket_at(const int64_t *count, int64_t *place)
{
    uint32_t i = HALF_COUNT - 1;
    while (i > 0 && *place > count[i])
        *place -= count[i--];
    return i;
}

/* The magnitude that a share of all elements reaches: positive floats are in the order of their bits, so two counts of
 * 16 bits each find it without keeping one of them. */
static float magnitude_at(const blend_part *p, const blend_options *how)
{
    int threads = how->threads > 0 ? how->threads : 1;
    tally t = {.p = p};
    float least;
    int64_t place = llround(how->density * (double)p->site->out * (double)p->site->in);
    place = place < 1 ? 1 : place;
    t.count = mem_alloc((size_t)threads * HALF_COUNT * sizeof *t.count);
    count_all(&t, threads);
    t.upper = bucket_at(t.count, &place);
    t.lower = true;
    count_all(&t, threads);
    uint32_t bits = t.upper << HALF_BITS | bucket_at(t.count, &place);
    memcpy(&least, &bits, sizeof least);
    mem_free(t.count);
    return least;
}

/* ---- coefficients of slerp ---- */

/* The sum of the products of all elements of B A and D C: the trace of (B^T D) (C A^T). */
static double dot(const adapter_site *x, const adapter_site *y)
{
    double sum = 0;
    for (int64_t r = 0; r < x->rank; r++)
        for (int64_t q = 0; q < y->rank; q++) {
            double left = 0, right = 0;
            for (int64_t o = 0; o < x->out; o++)
                left += (double)x->b[o * x->rank + r] * y->b[o * y->rank + q];
            for (int64_t i = 0; i < x->in; i++)
                right += (double)x->a[r * x->in + i] * y->a[q * y->in + i];
            sum += left * right;
        }
    return sum * x->scale * y->scale;
}

/* How much of each lies at t on the arc; on a straight line where there is no arc. */
static void arc(blend_part *p, int n, double t)
{
    double by[2] = {1 - t, t};
    if (n == 2) {
        double length = sqrt(dot(p[0].site, p[0].site) * dot(p[1].site, p[1].site));
        double cosine = length > 0 ? dot(p[0].site, p[1].site) / length : 1;
        if (fabs(cosine) < 1 - 1e-7) {
            double angle = acos(cosine);
            by[0] = sin((1 - t) * angle) / sin(angle);
            by[1] = sin(t * angle) / sin(angle);
        }
        p[0].by = by[0];
        p[1].by = by[1];
    } else
        p[0].by = by[p[0].key]; /* which of the two it is */
    for (int i = 0; i < n; i++)
        p[i].by *= p[i].site->scale;
}

/* ---- making one ---- */

static int by_place(const void *a, const void *b)
{
    const blend_part *x = a, *y = b;
    if (x->site->weight != y->site->weight)
        return x->site->weight < y->site->weight ? -1 : 1;
    if (x->site->index != y->site->index)
        return x->site->index < y->site->index ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

static weft_status check(weft_diag *dg, const blend_input *in, size_t n, const blend_options *how)
{
    if (n < 1 || n > BLEND_MAX)
        return weft_fail(dg, W0705, WEFT_NOWHERE, "%zu adapters, and 1 to %d can be blended", n,
                         BLEND_MAX);
    if (how->method == BLEND_SLERP && n != 2)
        return weft_fail(dg, W0705, WEFT_NOWHERE,
                         "slerp goes from one adapter to another: it takes two, not %zu", n);
    if (how->method == BLEND_SLERP &&
        !(in[0].share >= 0 && in[1].share >= 0 && in[0].share + in[1].share > 0))
        return weft_fail(dg, W0705, WEFT_NOWHERE,
                         "slerp takes shares of at least 0, not both of them 0");
    return WEFT_OK;
}

/* Of one weight: parts in the order of the adapters; key is still the adapter's number. */
static blend_site make_site(const blend *b, const blend_input *in, blend_part *p, int n)
{
    blend_site s = {.n_part = n, .part = p, .place = *p[0].site};
    double both = b->how.method == BLEND_SLERP ? in[0].share + in[1].share : 1;
    s.place.a = s.place.b = NULL;
    s.place.rank = 0;
    s.place.scale = 1;
    for (int i = 0; i < n; i++) {
        s.place.rank += p[i].site->rank;
        p[i].by = in[p[i].key].share * p[i].site->scale;
        if (b->how.method == BLEND_TIES)
            p[i].least = magnitude_at(&p[i], &b->how);
    }
    if (b->how.method == BLEND_SLERP)
        arc(p, n, in[1].share / both);
    for (int i = 0; i < n; i++)
        p[i].key =
            mixed(b->how.seed ^ mixed(str_hash(s.place.name) ^
                                      mixed((uint64_t)(s.place.index + 1) * BLEND_MAX + p[i].key)));
    return s;
}

weft_status blend_create(weft_diag *dg, const blend_input *in, size_t n, const blend_options *how,
                         blend **out)
{
    WEFT_TRY(check(dg, in, n, how));
    arena *home = arena_create();
    blend *b = ARENA_NEW(home, blend);
    *b = (blend){.home = home, .how = *how};
    size_t n_part = 0;
    for (size_t i = 0; i < n; i++)
        n_part += in[i].from->n_site;
    blend_part *part = ARENA_ARRAY(home, blend_part, n_part + 1);
    blend_site *site = ARENA_ARRAY(home, blend_site, n_part + 1);
    n_part = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < in[i].from->n_site; k++)
            part[n_part++] = (blend_part){.site = &in[i].from->site[k], .key = i};
    qsort(part, n_part, sizeof *part, by_place);
    for (size_t i = 0, k; i < n_part; i = k) {
        for (k = i + 1; k < n_part && part[k].site->weight == part[i].site->weight &&
                        part[k].site->index == part[i].site->index;)
            k++;
        site[b->n_site++] = make_site(b, in, part + i, (int)(k - i));
        if (how->progress)
            how->progress(how->ctx, k);
    }
    b->site = site;
    *out = b;
    return WEFT_OK;
}

void blend_destroy(blend *b)
{
    if (b)
        arena_destroy(b->home);
}

bool blend_is_sum(const blend *b)
{
    return b->how.method == BLEND_LINEAR || b->how.method == BLEND_SLERP;
}

/* ---- lines ---- */

static void elect(const blend_site *s, double (*x)[BLEND_COLUMNS], int n, double *out)
{
    for (int i = 0; i < n; i++) {
        double all = 0, sum = 0;
        int agree = 0;
        for (int p = 0; p < s->n_part; p++) {
            if (fabsf(bare(&s->part[p], x[p][i])) < s->part[p].least)
                x[p][i] = 0;
            x[p][i] *= s->part[p].by;
            all += x[p][i];
        }
        for (int p = 0; p < s->n_part; p++)
            if (x[p][i] != 0 && (x[p][i] > 0) == (all > 0)) {
                sum += x[p][i];
                agree++;
            }
        out[i] = agree ? sum / agree : 0;
    }
}

void blend_line(const blend *b, const blend_site *s, int64_t line, bool flip, int64_t first, int n,
                double *out)
{
    double x[BLEND_MAX][BLEND_COLUMNS];
    for (int p = 0; p < s->n_part; p++)
        product_line(s->part[p].site, line, flip, first, n, x[p]);
    if (b->how.method == BLEND_TIES) {
        elect(s, x, n, out);
        return;
    }
    bool drops = b->how.method == BLEND_DARE;
    for (int i = 0; i < n; i++) {
        int64_t at = first + i, element = flip ? at * s->place.in + line : line * s->place.in + at;
        out[i] = 0;
        for (int p = 0; p < s->n_part; p++)
            if (!drops || is_kept(&s->part[p], element, b->how.density))
                out[i] += x[p][i] * s->part[p].by / (drops ? b->how.density : 1);
    }
}
