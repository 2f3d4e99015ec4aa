/* select.c - the best of many logits without sorting them all.
 *
 * For k of 150 000 a pass with a threshold beats a sort by far: almost every logit fails one comparison
 * with the k-th best so far. What passes is kept in a small buffer and cut back to k when it is full. */
#include "runtime/sample/sample_impl.h"

#include <math.h>

static bool better(candidate a, candidate b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/* Heapsort: no memory of its own (qsort may take some), and n log n whatever comes. */
static void sift(candidate *list, int64_t at, int64_t n, candidate_order *before)
{
    candidate c = list[at];
    for (int64_t kid; (kid = 2 * at + 1) < n; at = kid) {
        if (kid + 1 < n && before(list[kid], list[kid + 1]))
            kid++;
        if (!before(c, list[kid]))
            break;
        list[at] = list[kid];
    }
    list[at] = c;
}

void candidates_sort_by(candidate *list, int64_t n, candidate_order *before)
{
    for (int64_t i = n / 2; i-- > 0;)
        sift(list, i, n, before);
    for (int64_t end = n - 1; end > 0; end--) {
        candidate last = list[end];
        list[end] = list[0];
        list[0] = last;
        sift(list, 0, end, before);
    }
}

void candidates_sort(candidate *list, int64_t n)
{
    candidates_sort_by(list, n, better);
}

/* Move the k best to the front, in any order (quickselect; the middle of three as pivot). */
static void partition_best(candidate *list, int64_t n, int64_t k)
{
    int64_t lo = 0, hi = n - 1;
    while (lo < hi) {
        candidate a = list[lo], b = list[lo + (hi - lo) / 2], c = list[hi];
        candidate pivot = better(a, b) ? (better(b, c)   ? b
                                          : better(a, c) ? c
                                                         : a)
                                       : (better(a, c)   ? a
                                          : better(b, c) ? c
                                                         : b);
        int64_t i = lo, j = hi;
        while (i <= j) {
            while (better(list[i], pivot))
                i++;
            while (better(pivot, list[j]))
                j--;
            if (i <= j) {
                candidate t = list[i];
                list[i++] = list[j];
                list[j--] = t;
            }
        }
        if (k - 1 <= j)
            hi = j;
        else if (k - 1 >= i)
            lo = i;
        else
            return;
    }
}

int64_t select_top(const float *dense, int64_t n, candidate *list, int64_t k)
{
    int64_t kept = 0, room = k < n / 2 ? 2 * k : n, i = 0;
    float least = -INFINITY;
    for (; i < n && kept < k; i++)
        if (dense[i] > -INFINITY) /* what is impossible, or NaN, is never chosen */
            list[kept++] = (candidate){.logit = dense[i], .id = (int32_t)i};
    for (; i < n; i++) {
        if (!(dense[i] > least)) /* an equal one has the larger id: it is no better */
            continue;
        list[kept++] = (candidate){.logit = dense[i], .id = (int32_t)i};
        if (kept == room && kept > k) {
            partition_best(list, kept, k);
            kept = k;
            least = list[0].logit;
            for (int64_t m = 1; m < k; m++)
                least = list[m].logit < least ? list[m].logit : least;
        }
    }
    if (kept > k) {
        partition_best(list, kept, k);
        kept = k;
    }
    candidates_sort(list, kept);
    return kept;
}

int64_t select_above(const float *dense, int64_t n, candidate *list, float least)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (dense[i] >= least && dense[i] > -INFINITY)
            list[kept++] = (candidate){.logit = dense[i], .id = (int32_t)i};
    candidates_sort(list, kept);
    return kept;
}

void candidates_softmax(candidate *list, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        list[i].p = exp((double)list[i].logit - list[0].logit);
        sum += list[i].p;
    }
    for (int64_t i = 0; i < n; i++)
        list[i].p /= sum;
}

uint64_t candidates_weigh(candidate *list, int64_t n, int bits)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += list[i].weight = ksample_weight((double)list[i].logit - list[0].logit, bits);
    return sum;
}
