/* bucket_make.c - the stage of the CPU: a bucket of steps for each size of calls, its items in phases and its values in
 * memory. */
#include "compiler/bucket_impl.h"

enum { BUCKETS_MAX = 32 };

/* 1, 2, 4, 8 and so on up to the largest call. */
static int bucket_sizes(const target *t, int64_t *sizes)
{
    int n = 0;
    for (int64_t size = 1; size < t->n_tok_max; size *= 2)
        sizes[n++] = size;
    sizes[n++] = t->n_tok_max;
    return n;
}

static weft_status make_bucket(lower *lo, int64_t n_tok, plan_bucket *out)
{
    bucket b = {.lo = lo, .a = arena_create()};
    lo->n_tok = n_tok;
    lo->n_out = lo->p->n_out_max < n_tok ? lo->p->n_out_max : n_tok;
    lo->n_seq = lo->p->n_seq_max < n_tok ? lo->p->n_seq_max : n_tok;
    weft_status status = bucket_steps(&b);
    if (status == WEFT_OK) {
        bucket_schedule(&b);
        status = bucket_place(&b, out);
    }
    VEC_FREE(&b.steps);
    VEC_FREE(&b.values);
    VEC_FREE(&b.items);
    VEC_FREE(&b.edges);
    VEC_FREE(&b.cells);
    VEC_FREE(&b.waits);
    arena_destroy(b.a);
    return status;
}

weft_status lower_buckets(lower *lo)
{
    int64_t sizes[BUCKETS_MAX];
    int n = bucket_sizes(lo->t, sizes);
    plan_bucket *buckets = ARENA_ARRAY(lo->a, plan_bucket, (size_t)n);
    for (int i = 0; i < n; i++)
        WEFT_TRY(make_bucket(lo, sizes[i], &buckets[i]));
    lo->p->bucket = buckets;
    lo->p->n_bucket = n;
    return WEFT_OK;
}
