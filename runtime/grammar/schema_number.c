/* schema_number.c - numbers, and those between two bounds.
 *
 * Integers have up to 18 digits, other numbers up to 18 before the point, 17 behind it and two in the exponent: what a reader of
 * JSON keeps. A number with bounds is written without an exponent. */
#include "runtime/grammar/schema_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define INT_MOST 999999999999999999 /* 18 digits */
enum { DIGITS = 18, FRACTION = 17 };

static const part *digits(form *f, int64_t min, int64_t max)
{
    return part_repeat(f, part_char(f, '0', '9'), min, max);
}

const part *json_number(form *f, bool integer)
{
    const part *some = PART_SEQ_OF(f, part_char(f, '1', '9'), digits(f, 0, DIGITS - 1));
    const part *sign = part_repeat(f, part_text(f, "-"), 0, 1), *zero = part_text(f, "0");
    if (integer)
        return PART_ALT_OF(f, zero, PART_SEQ_OF(f, sign, some));
    static const char_range e[] = {{'E', 'E'}, {'e', 'e'}}, plus[] = {{'+', '+'}, {'-', '-'}};
    const part *fraction = PART_SEQ_OF(f, part_text(f, "."), digits(f, 1, FRACTION));
    const part *power =
        PART_SEQ_OF(f, part_set(f, e, 2, false), part_repeat(f, part_set(f, plus, 2, false), 0, 1),
                    digits(f, 1, 2));
    return PART_SEQ_OF(f, sign, PART_ALT_OF(f, zero, some), part_repeat(f, fraction, 0, 1),
                       part_repeat(f, power, 0, 1));
}

/* ---- whole numbers from lo to hi ---- */

static bool all_are(const char *z, size_t n, char c)
{
    for (size_t i = 0; i < n; i++)
        if (z[i] != c)
            return false;
    return true;
}

/* The digits a[0..n) to b[0..n). */
static const part *between(form *f, const char *a, const char *b, size_t n)
{
    static const char nines[] = "999999999999999999", zeros[] = "000000000000000000";
    part_vec way = {0};
    char lo = a[0], hi = b[0];
    if (n == 0)
        return part_empty(f);
    if (all_are(a, n, '0') && all_are(b, n, '9'))
        return digits(f, (int64_t)n, (int64_t)n);
    if (lo == hi)
        return PART_SEQ_OF(f, part_char(f, (uint32_t)lo, (uint32_t)lo),
                           between(f, a + 1, b + 1, n - 1));
    if (!all_are(a + 1, n - 1, '0')) {
        VEC_PUSH(&way, PART_SEQ_OF(f, part_char(f, (uint32_t)lo, (uint32_t)lo),
                                   between(f, a + 1, nines, n - 1)));
        lo++;
    }
    if (!all_are(b + 1, n - 1, '9')) {
        VEC_PUSH(&way, PART_SEQ_OF(f, part_char(f, (uint32_t)hi, (uint32_t)hi),
                                   between(f, zeros, b + 1, n - 1)));
        hi--;
    }
    if (lo <= hi)
        VEC_PUSH(&way, PART_SEQ_OF(f, part_char(f, (uint32_t)lo, (uint32_t)hi),
                                   digits(f, (int64_t)n - 1, (int64_t)n - 1)));
    const part *p = part_list(f, PART_ALT, way.at, way.n);
    VEC_FREE(&way);
    return p;
}

/* 0 <= lo; NEVER where hi is less. */
static const part *whole(form *f, int64_t lo, int64_t hi)
{
    part_vec way = {0};
    int64_t first = 1, last = 9; /* of all numbers with so many digits */
    for (int n = 1; n <= DIGITS && lo <= hi; n++) {
        int64_t a = n == 1 ? 0 : first, from = lo > a ? lo : a, to = hi < last ? hi : last;
        char x[24], y[24];
        if (from <= to) {
            snprintf(x, sizeof x, "%lld", (long long)from);
            snprintf(y, sizeof y, "%lld", (long long)to);
            VEC_PUSH(&way, between(f, x, y, (size_t)n));
        }
        first *= n < DIGITS ? 10 : 1;
        last = n < DIGITS ? last * 10 + 9 : last;
    }
    const part *p = part_list(f, PART_ALT, way.at, way.n);
    VEC_FREE(&way);
    return p;
}

static int64_t at_least(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- all numbers between two ---- */

enum { PLACES_MAX = 12 }; /* of a bound behind the point */

/* A bound without its sign. */
typedef struct {
    int64_t whole;
    char place[PLACES_MAX + 1]; /* digits behind the point */
    size_t n;
    bool out; /* it is itself not allowed */
} bound;

typedef struct {
    form *f;
    const bound *lo, *hi; /* with the whole part that was written; NULL: any */
    int64_t n_place;      /* at most */
} fraction;

static bool zero_from(const bound *b, size_t i)
{
    for (; i < b->n; i++)
        if (b->place[i] != '0')
            return false;
    return true;
}

static char digit_at(const bound *b, size_t i)
{
    return i < b->n ? b->place[i] : '0';
}

/* What may follow i digits behind the point that are those of the bounds which still count (lo, hi); empty: nothing may. */
static const part *digits_from(const fraction *x, size_t i, bool lo, bool hi, bool empty)
{
    form *f = x->f;
    part_vec way = {0};
    int64_t left = x->n_place - (int64_t)i;
    lo = lo && !(zero_from(x->lo, i) && !x->lo->out); /* any digits are enough */
    bool none = !(lo || (hi && zero_from(x->hi, i) && x->hi->out));
    if (empty && none)
        VEC_PUSH(&way, part_empty(f));
    if (left > 0 && !lo && !hi) {
        VEC_PUSH(&way, digits(f, 1, left));
    } else if (left > 0) {
        uint32_t a = lo ? (uint32_t)digit_at(x->lo, i) : '0',
                 b = hi ? (uint32_t)digit_at(x->hi, i) : '9';
        if (a == b)
            VEC_PUSH(&way, PART_SEQ_OF(f, part_char(f, a, a), digits_from(x, i + 1, lo, hi, true)));
        else if (a < b) {
            if (lo)
                VEC_PUSH(&way, PART_SEQ_OF(f, part_char(f, a, a),
                                           digits_from(x, i + 1, true, false, true)));
            if (hi)
                VEC_PUSH(&way, PART_SEQ_OF(f, part_char(f, b, b),
                                           digits_from(x, i + 1, false, true, true)));
            uint32_t from = a + lo, to = b - hi;
            if (from <= to)
                VEC_PUSH(&way, PART_SEQ_OF(f, part_char(f, from, to), digits(f, 0, left - 1)));
        }
    }
    const part *p = part_list(f, PART_ALT, way.at, way.n);
    VEC_FREE(&way);
    return p;
}

/* A whole part, and behind it a point and digits or nothing. */
static const part *with_fraction(form *f, const part *whole_part, const bound *lo, const bound *hi,
                                 int64_t n_place)
{
    fraction x = {f, lo, hi, n_place};
    bool none = !(lo && !(zero_from(lo, 0) && !lo->out)) && !(hi && zero_from(hi, 0) && hi->out);
    const part *some =
        PART_SEQ_OF(f, part_text(f, "."), digits_from(&x, 0, lo != NULL, hi != NULL, false));
    return PART_SEQ_OF(f, whole_part, none ? PART_ALT_OF(f, part_empty(f), some) : some);
}

/* Digits behind the point near a bound: with more than 15 in all, another number could be read as the bound. */
static int64_t places_near(const bound *b, int64_t most)
{
    int64_t n = 15, least = (int64_t)b->n;
    if (b->whole == INT_MOST) /* there is none */
        return most;
    for (int64_t x = b->whole; x > 0; x /= 10)
        n--;
    n = n < least ? least : n;
    return n < most ? n : most;
}

/* lo <= x <= hi, both not negative, as digits. */
static const part *magnitude(form *f, const bound *lo, const bound *hi, int64_t n_place)
{
    part_vec way = {0};
    n_place = places_near(hi, places_near(lo, n_place));
    if (lo->whole == hi->whole) {
        VEC_PUSH(&way, with_fraction(f, whole(f, lo->whole, lo->whole), lo, hi, n_place));
    } else if (lo->whole < hi->whole) {
        VEC_PUSH(&way, with_fraction(f, whole(f, lo->whole, lo->whole), lo, NULL, n_place));
        VEC_PUSH(&way,
                 with_fraction(f, whole(f, lo->whole + 1, hi->whole - 1), NULL, NULL, n_place));
        VEC_PUSH(&way, with_fraction(f, whole(f, hi->whole, hi->whole), NULL, hi, n_place));
    }
    const part *p = part_list(f, PART_ALT, way.at, way.n);
    VEC_FREE(&way);
    return p;
}

/* ---- the keywords ---- */

typedef struct {
    double x;
    bool out;
    const value *v; /* as it is written; NULL: none was given */
} limit;

/* Digits of |x|, as short as they say it exactly. */
static bool bound_of(limit l, bound *b)
{
    char text[64];
    double x = fabs(l.x);
    *b = (bound){.out = l.out};
    if (x >= (double)INT_MOST) {
        b->whole = INT_MOST;
        return true;
    }
    for (int places = 0; places <= PLACES_MAX; places++) {
        snprintf(text, sizeof text, "%.*f", places, x);
        if (strtod(text, NULL) != x)
            continue;
        b->whole = strtoll(text, NULL, 10);
        b->n = (size_t)places;
        if (places)
            memcpy(b->place, strchr(text, '.') + 1, b->n);
        return true;
    }
    return false;
}

typedef struct {
    limit lo, hi;
    bool any;        /* one of them was given */
    int64_t n_place; /* digits behind the point */
} range;

static weft_status numbers(schema *s, const schema_at *at, range r, const part **out)
{
    form *f = s->f;
    static const bound zero_in = {0}, zero_out = {.out = true};
    bound lo, hi;
    if (!bound_of(r.lo, &lo) || !bound_of(r.hi, &hi))
        return schema_fail(s, W1802, at, "a bound with more than %d digits behind the point",
                           PLACES_MAX);
    const part *up = part_never(f), *down = part_never(f);
    if (r.hi.x >= 0)
        up = magnitude(f, r.lo.x < 0 ? &zero_in : &lo, &hi, r.n_place);
    if (r.lo.x < 0)
        down = PART_SEQ_OF(f, part_text(f, "-"),
                           magnitude(f, r.hi.x < 0 ? &hi : &zero_out, &lo, r.n_place));
    *out = PART_ALT_OF(f, up, down);
    return WEFT_OK;
}

static weft_status read_range(schema *s, const schema_at *at, const value *v, range *r)
{
    const struct {
        const char *keyword;
        bool up, outside;
    } row[] = {{"minimum", false, false},
               {"exclusiveMinimum", false, true},
               {"maximum", true, false},
               {"exclusiveMaximum", true, true}};
    for (size_t i = 0; i < 4; i++) {
        const value *b = value_get(v, str_of(row[i].keyword));
        double x;
        if (!b)
            continue;
        if (!value_float(b, &x) || isnan(x))
            return schema_fail(s, W1801, SCHEMA_AT(at, str_of(row[i].keyword)),
                               "%s is not a number", row[i].keyword);
        r->any = true;
        limit *l = row[i].up ? &r->hi : &r->lo;
        if (row[i].up ? x < l->x : x > l->x)
            *l = (limit){x, row[i].outside, b};
        else if (x == l->x)
            l->out = l->out || row[i].outside;
    }
    return WEFT_OK;
}

/* The first whole number inside a bound; doubles do not have all that a file can say. */
static int64_t whole_inside(limit l, bool up)
{
    int64_t x;
    if (!l.v || !value_int(l.v, &x)) {
        double d = up ? floor(l.x) : ceil(l.x);
        if (fabs(d) >= (double)INT_MOST)
            return d > 0 ? (up ? INT_MOST : INT_MOST + 1) : (up ? -INT_MOST - 1 : -INT_MOST);
        return (int64_t)d + (l.out && d == l.x ? (up ? -1 : 1) : 0);
    }
    if (x > INT_MOST || x < -INT_MOST)
        return x > 0 ? (up ? INT_MOST : INT_MOST + 1) : (up ? -INT_MOST - 1 : -INT_MOST);
    return x + (l.out ? (up ? -1 : 1) : 0);
}

static const part *integers(form *f, int64_t lo, int64_t hi)
{
    const part *up = hi >= 0 ? whole(f, at_least(lo, 0), hi) : part_never(f);
    const part *down = lo < 0 ? whole(f, at_least(-hi, 1), -lo) : part_never(f);
    return PART_ALT_OF(f, up, PART_SEQ_OF(f, part_text(f, "-"), down));
}

/* ---- multipleOf ---- */

/* The rule of digits, up to `left` of them, that make a multiple behind a number that leaves `rest`. */
static int32_t multiple_rule(int32_t first_rule, int64_t rest, int left)
{
    return first_rule + (int32_t)(rest * DIGITS + left);
}

static const part *one_digit(form *f, int64_t d)
{
    return part_char(f, (uint32_t)('0' + d), (uint32_t)('0' + d));
}

/* All multiples of k above 0 with up to DIGITS digits. */
static const part *multiples_any(form *f, int64_t k)
{
    int32_t first = (int32_t)f->rules.n;
    part_vec begin = {0};
    for (int64_t i = 0; i < k * DIGITS; i++)
        form_rule_add(f, STR(""), WEFT_NOWHERE);
    for (int64_t rest = 0; rest < k; rest++)
        for (int left = 0; left < DIGITS; left++) {
            part_vec way = {0};
            if (rest == 0)
                VEC_PUSH(&way, part_empty(f));
            for (int64_t d = 0; d < 10 && left > 0; d++) {
                int32_t next = multiple_rule(first, (rest * 10 + d) % k, left - 1);
                VEC_PUSH(&way, PART_SEQ_OF(f, one_digit(f, d), part_rule(f, next)));
            }
            f->rules.at[multiple_rule(first, rest, left)].body =
                part_list(f, PART_ALT, way.at, way.n);
            VEC_FREE(&way);
        }
    for (int64_t d = 1; d < 10; d++)
        VEC_PUSH(&begin, PART_SEQ_OF(f, one_digit(f, d),
                                     part_rule(f, multiple_rule(first, d % k, DIGITS - 1))));
    const part *p = part_list(f, PART_ALT, begin.at, begin.n);
    VEC_FREE(&begin);
    return p;
}

static int64_t power_of_ten(int n)
{
    int64_t x = 1;
    while (n-- > 0)
        x *= 10;
    return x;
}

static weft_status multiples(schema *s, const schema_at *at, int64_t k, int64_t lo, int64_t hi,
                             const part **out)
{
    enum { LISTED = 2000, RULES_OF = 64 };
    form *f = s->f;
    part_vec way = {0};
    int64_t from = lo / k * k;
    from += from < lo ? k : 0;
    if (lo > hi) {
        *out = part_never(f);
        return WEFT_OK;
    }
    if ((hi - from) / k < LISTED) {
        for (int64_t x = from; x <= hi; x += k) {
            char text[24];
            snprintf(text, sizeof text, "%lld", (long long)x);
            VEC_PUSH(&way, part_text(f, text));
        }
        *out = part_list(f, PART_ALT, way.at, way.n);
        VEC_FREE(&way);
        return WEFT_OK;
    }
    bool all = hi >= INT_MOST && (lo <= -INT_MOST || (lo >= 0 && lo <= k));
    const part *above = NULL;
    for (int n = 1; n < DIGITS && all; n++) /* 10, 100, ..: zeros at the end */
        if (k == power_of_ten(n))
            above =
                PART_SEQ_OF(f, whole(f, 1, INT_MOST / k), part_repeat(f, part_text(f, "0"), n, n));
    if (!above && k <= RULES_OF && all)
        above = multiples_any(f, k);
    if (!above)
        return schema_fail(s, W1802, SCHEMA_AT(at, STR("multipleOf")),
                           "multipleOf %lld is supported up to %d without bounds, or with bounds "
                           "that have at most %d multiples between them",
                           (long long)k, RULES_OF, LISTED);
    const part *sign = part_repeat(f, part_text(f, "-"), 0, 1);
    above = lo < 0 ? PART_SEQ_OF(f, sign, above) : above;
    *out = lo <= 0 ? PART_ALT_OF(f, part_text(f, "0"), above) : above;
    return WEFT_OK;
}

/* Where multipleOf is 0.1, 0.01, ..: so many places, else -1. */
static int places_of(double multiple)
{
    for (int n = 1; n <= 9; n++)
        if (multiple == 1.0 / (double)power_of_ten(n))
            return n;
    return -1;
}

weft_status schema_number(schema *s, const schema_at *at, const value *v, bool integer,
                          const part **out)
{
    range r = {.lo = {.x = -(double)INT_MOST}, .hi = {.x = (double)INT_MOST}, .n_place = FRACTION};
    const value *multiple = value_get(v, STR("multipleOf"));
    double m = 1;
    str format;
    WEFT_TRY(read_range(s, at, v, &r));
    if (value_str(value_get(v, STR("format")), &format) && str_eqz(format, "int32")) {
        r.any = true;
        r.lo = r.lo.x < INT32_MIN ? (limit){INT32_MIN, false, NULL} : r.lo;
        r.hi = r.hi.x > INT32_MAX ? (limit){INT32_MAX, false, NULL} : r.hi;
    }
    if (multiple && (!value_float(multiple, &m) || !(m > 0)))
        return schema_fail(s, W1801, SCHEMA_AT(at, STR("multipleOf")),
                           "multipleOf is not a number above 0");
    bool whole_multiple = multiple && m == floor(m) && m < 1e15;
    if (multiple && !whole_multiple) {
        if (places_of(m) < 0)
            return schema_fail(s, W1802, SCHEMA_AT(at, STR("multipleOf")),
                               "multipleOf %g is not supported: whole numbers, 0.1, 0.01, .. are",
                               m);
        r.n_place = places_of(m); /* of which every integer is a multiple */
        r.any = r.any || !integer;
    }
    int64_t lo = whole_inside(r.lo, false), hi = whole_inside(r.hi, true);
    if (whole_multiple && m > 1)
        return multiples(s, at, (int64_t)m, lo, hi, out);
    if (whole_multiple)
        integer = true;
    if (!r.any)
        *out = json_number(s->f, integer);
    else if (r.lo.x > r.hi.x || (r.lo.x == r.hi.x && (r.lo.out || r.hi.out)))
        *out = part_never(s->f);
    else if (!integer)
        return numbers(s, at, r, out);
    else
        *out = lo > hi ? part_never(s->f) : integers(s->f, lo, hi);
    return WEFT_OK;
}
