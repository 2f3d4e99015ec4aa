/* schema_number.c - numbers, and those between two bounds.
 *
 * Integers have up to 18 digits, other numbers up to 18 before the point, 17 behind it and two in the exponent: what a reader of
 * JSON keeps. A number with bounds is written without an exponent. */
#include "runtime/grammar/schema_impl.h"

#include <math.h>
#include <stdio.h>

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

/* ---- all numbers between two whole ones ---- */

typedef struct {
    int64_t lo, hi;      /* whole, within INT_MOST of 0 */
    bool lo_out, hi_out; /* the bound itself is not allowed */
} bounds;

/* lo <= x <= hi, both not negative, as digits. */
static const part *magnitude(form *f, bounds b)
{
    part_vec way = {0};
    const part *dot = part_text(f, "."), *zero = part_text(f, "0");
    const part *zeros =
        part_repeat(f, PART_SEQ_OF(f, dot, part_repeat(f, zero, 1, FRACTION)), 0, 1);
    const part *fraction = part_repeat(f, PART_SEQ_OF(f, dot, digits(f, 1, FRACTION)), 0, 1);
    if (b.lo == b.hi) {
        if (!b.lo_out && !b.hi_out)
            VEC_PUSH(&way, PART_SEQ_OF(f, whole(f, b.lo, b.lo), zeros));
    } else if (b.lo < b.hi) {
        const part *above = PART_SEQ_OF(f, dot, part_repeat(f, zero, 0, FRACTION - 1),
                                        part_char(f, '1', '9'), digits(f, 0, FRACTION - 1));
        VEC_PUSH(&way, PART_SEQ_OF(f, whole(f, b.lo, b.lo), b.lo_out ? above : fraction));
        VEC_PUSH(&way, PART_SEQ_OF(f, whole(f, b.lo + 1, b.hi - 1), fraction));
        if (!b.hi_out)
            VEC_PUSH(&way, PART_SEQ_OF(f, whole(f, b.hi, b.hi), zeros));
    }
    const part *p = part_list(f, PART_ALT, way.at, way.n);
    VEC_FREE(&way);
    return p;
}

static const part *numbers(form *f, bounds b)
{
    part_vec way = {0};
    if (b.hi > 0 || (b.hi == 0 && !b.hi_out)) {
        bounds up = b;
        if (b.lo < 0) {
            up.lo = 0;
            up.lo_out = false;
        }
        VEC_PUSH(&way, magnitude(f, up));
    }
    if (b.lo < 0) {
        bounds down = {.lo = -b.hi, .hi = -b.lo, .lo_out = b.hi_out, .hi_out = b.lo_out};
        if (b.hi >= 0) {
            down.lo = 0;
            down.lo_out = true;
        }
        VEC_PUSH(&way, PART_SEQ_OF(f, part_text(f, "-"), magnitude(f, down)));
    }
    const part *p = part_list(f, PART_ALT, way.at, way.n);
    VEC_FREE(&way);
    return p;
}

/* ---- the keywords ---- */

/* A bound as a whole number and whether it is itself outside; found false: there is none. */
static weft_status read_bound(schema *s, const schema_at *at, const value *v, const char *keyword,
                              bool integer, bool up, bool *found, int64_t *out)
{
    const value *b = value_get(v, str_of(keyword));
    double x;
    *found = b != NULL;
    if (!b)
        return WEFT_OK;
    if (!value_float(b, &x) || isnan(x))
        return schema_fail(s, W1801, SCHEMA_AT(at, str_of(keyword)), "%s is not a number", keyword);
    if (value_int(b, out) && *out >= -INT_MOST && *out <= INT_MOST)
        return WEFT_OK;
    if (x > (double)INT_MOST || x < -(double)INT_MOST) {
        *found = up == (x < 0); /* else it is further off than any number that is written */
        *out = x > 0 ? INT_MOST + 1 : -INT_MOST - 1;
        return WEFT_OK;
    }
    if (!integer)
        return schema_fail(s, W1802, SCHEMA_AT(at, str_of(keyword)),
                           "%s of %g: bounds with a fraction are supported for integers only",
                           keyword, x);
    *out = (int64_t)(up ? floor(x) : ceil(x));
    return WEFT_OK;
}

weft_status schema_number(schema *s, const schema_at *at, const value *v, bool integer,
                          const part **out)
{
    const struct {
        const char *keyword;
        bool up, outside;
    } row[] = {{"minimum", false, false},
               {"exclusiveMinimum", false, true},
               {"maximum", true, false},
               {"exclusiveMaximum", true, true}};
    bounds b = {.lo = -INT_MOST, .hi = INT_MOST};
    const value *multiple = value_get(v, STR("multipleOf"));
    bool any = false;
    int64_t one;
    if (multiple && !(integer && value_int(multiple, &one) && one == 1))
        return schema_fail(s, W1802, SCHEMA_AT(at, STR("multipleOf")),
                           "multipleOf is not supported");
    for (size_t i = 0; i < 4; i++) {
        bool found;
        int64_t x;
        double exact = 0;
        WEFT_TRY(read_bound(s, at, v, row[i].keyword, integer, row[i].up, &found, &x));
        if (!found)
            continue;
        any = true;
        value_float(value_get(v, str_of(row[i].keyword)), &exact);
        bool outside = row[i].outside && (double)x == exact; /* 1.5 was rounded to the inside */
        if (integer && outside) {
            x += row[i].up ? -1 : 1;
            outside = false;
        }
        if (row[i].up && (x < b.hi || (x == b.hi && outside))) {
            b.hi = x;
            b.hi_out = outside;
        } else if (!row[i].up && (x > b.lo || (x == b.lo && outside))) {
            b.lo = x;
            b.lo_out = outside;
        }
    }
    form *f = s->f;
    if (!any)
        *out = json_number(f, integer);
    else if (b.lo > b.hi)
        *out = part_never(f);
    else if (!integer)
        *out = numbers(f, b);
    else
        *out = PART_ALT_OF(
            f, whole(f, at_least(b.lo, 0), b.hi),
            PART_SEQ_OF(f, part_text(f, "-"),
                        b.lo < 0 ? whole(f, at_least(-b.hi, 1), -b.lo) : part_never(f)));
    return WEFT_OK;
}
