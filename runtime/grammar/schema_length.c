/* schema_length.c - texts of an expression that have a length between two bounds.
 *
 * Lengths are characters of the string, not bytes of its JSON. Where one repetition decides the length, all such texts are
 * found. Where several do, the room is shared out among them: each text of the result is one of those, but not the other way
 * round. */
#include "runtime/grammar/schema_impl.h"

#include <math.h>

enum { LENGTH_DEPTH = 64 };
#define NO_END INT64_MAX

typedef struct {
    int64_t lo, hi;
    bool known;
} lengths;

static int64_t plus(int64_t a, int64_t b)
{
    return a == NO_END || b == NO_END || a > SCHEMA_COUNT_CAP || b > SCHEMA_COUNT_CAP ? NO_END
                                                                                      : a + b;
}

static int64_t times(int64_t a, int64_t b)
{
    if (a == 0 || b == 0)
        return 0;
    return a == NO_END || b == NO_END || a > SCHEMA_COUNT_CAP || b > SCHEMA_COUNT_CAP ? NO_END
                                                                                      : a * b;
}

/* What a part's texts may have. Bytes are an escape: one character, or none. */
static lengths lengths_of(const part *p, int depth)
{
    lengths all = {0, 0, depth < LENGTH_DEPTH};
    if (!all.known)
        return all;
    switch (p->kind) {
    case PART_BYTES:
        all.lo = all.hi = p->bytes.n > 0;
        break;
    case PART_SET:
        all.lo = all.hi = 1;
        break;
    case PART_SEQ:
        for (size_t i = 0; i < p->n && all.known; i++) {
            lengths x = lengths_of(p->item[i], depth + 1);
            all = (lengths){plus(all.lo, x.lo), plus(all.hi, x.hi), x.known};
        }
        break;
    case PART_ALT:
        all.lo = NO_END;
        for (size_t i = 0; i < p->n && all.known; i++) {
            lengths x = lengths_of(p->item[i], depth + 1);
            all = (lengths){x.lo < all.lo ? x.lo : all.lo, x.hi > all.hi ? x.hi : all.hi, x.known};
        }
        break;
    case PART_REPEAT: {
        lengths x = lengths_of(p->item[0], depth + 1);
        all = (lengths){times(x.lo, p->min), times(x.hi, p->max == REPEAT_NO_END ? NO_END : p->max),
                        x.known};
        break;
    }
    default:
        all.known = false;
    }
    return all;
}

static const part *fit(form *f, const part *p, int64_t min, int64_t max, int depth);

static const part *fit_repeat(form *f, const part *p, int64_t min, int64_t max, int depth)
{
    lengths x = lengths_of(p->item[0], depth);
    int64_t most = p->max == REPEAT_NO_END ? NO_END : p->max, least = p->min, each = x.lo;
    const part *item = p->item[0];
    if (x.hi == 0)
        return min == 0 ? p : part_never(f);
    if (x.lo != x.hi) { /* so many items of up to so many characters */
        if (max == NO_END || max < 1)
            return NULL;
        int64_t n = (int64_t)sqrt((double)max);
        n = n < least ? least : n > most ? most : n;
        n = x.lo > 0 && n > max / x.lo ? max / x.lo : n;
        if (n < least || n < 1)
            return least == 0 && min == 0 ? part_empty(f) : NULL;
        each = max / n;
        item = fit(f, item, x.lo, each, depth + 1);
        if (!item)
            return NULL;
        /* As few as are long enough, if the shortest are not. */
        int64_t shortest = x.lo > 0 ? x.lo : 0;
        if (times(shortest, least) < min)
            least = shortest > 0 ? (min + shortest - 1) / shortest : n + 1;
        return least <= n ? part_repeat(f, item, least, n) : NULL;
    }
    int64_t from = (min + each - 1) / each, to = max == NO_END ? NO_END : max / each;
    least = from > least ? from : least;
    most = to < most ? to : most;
    if (least > most)
        return part_never(f);
    return part_repeat(f, item, least, most == NO_END ? REPEAT_NO_END : most);
}

static const part *fit_sequence(form *f, const part *p, int64_t min, int64_t max, int depth)
{
    int64_t fixed = 0, n_open = 0;
    for (size_t i = 0; i < p->n; i++) {
        lengths x = lengths_of(p->item[i], depth);
        fixed = plus(fixed, x.lo);
        n_open += x.lo != x.hi;
    }
    if (fixed > max || n_open == 0)
        return fixed > max || fixed < min ? part_never(f) : p;
    /* What is beyond the least of all is shared out; the first one is as long as it must. */
    int64_t room = max == NO_END ? NO_END : (max - fixed) / n_open, missing = min - fixed;
    part_vec list = {0};
    bool ok = true;
    for (size_t i = 0; i < p->n && ok; i++) {
        lengths x = lengths_of(p->item[i], depth);
        const part *one = p->item[i];
        if (x.lo != x.hi) {
            int64_t extra = missing > 0 ? missing : 0, able = plus(room, x.lo);
            able = x.hi < able ? x.hi : able;
            extra = extra > able - x.lo ? able - x.lo : extra;
            missing -= extra;
            one = fit(f, one, x.lo + extra, able, depth + 1);
        }
        ok = one != NULL;
        VEC_PUSH(&list, one);
    }
    const part *r = ok && missing <= 0 ? part_list(f, PART_SEQ, list.at, list.n) : NULL;
    VEC_FREE(&list);
    return r;
}

static const part *fit_choice(form *f, const part *p, int64_t min, int64_t max, int depth)
{
    part_vec list = {0};
    bool ok = true;
    for (size_t i = 0; i < p->n && ok; i++) {
        const part *one = fit(f, p->item[i], min, max, depth + 1);
        ok = one != NULL;
        VEC_PUSH(&list, one);
    }
    const part *r = ok ? part_list(f, PART_ALT, list.at, list.n) : NULL;
    VEC_FREE(&list);
    return r;
}

static const part *fit(form *f, const part *p, int64_t min, int64_t max, int depth)
{
    lengths x = lengths_of(p, depth);
    if (!x.known || form_full(f))
        return NULL;
    if (x.lo >= min && x.hi <= max)
        return p;
    if (x.hi < min || x.lo > max)
        return part_never(f);
    return p->kind == PART_REPEAT ? fit_repeat(f, p, min, max, depth)
           : p->kind == PART_SEQ  ? fit_sequence(f, p, min, max, depth)
           : p->kind == PART_ALT  ? fit_choice(f, p, min, max, depth)
                                  : NULL;
}

const part *part_of_length(form *f, const part *p, int64_t min, int64_t max)
{
    return fit(f, p, min, max == REPEAT_NO_END ? NO_END : max, 0);
}
