#include "runtime/cli/flags.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/base/vec.h"

enum { FLAGS_MAX = 128, HELP_COLUMN = 33 };

/* Where a row came from, so that its field can be reached. */
typedef struct {
    const flag *row;
    char *field;
} slot;

/* The nth row of all tables, counted through. */
static bool slot_at(const flag_set *sets, size_t set_n, size_t i, slot *out)
{
    for (size_t s = 0; s < set_n; s++)
        for (const flag *r = sets[s].rows; r && r->name; r++)
            if (i-- == 0) {
                *out = (slot){r, (char *)sets[s].options + r->offset};
                return true;
            }
    return false;
}

/* A word split into what it names and the value after '=', if any. */
typedef struct {
    str name; /* without dashes */
    bool is_long;
    const char *value; /* NULL: none joined on */
} word;

static bool word_is_flag(const char *arg)
{
    return arg[0] == '-' && arg[1] != '\0' && strcmp(arg, "--") != 0;
}

static word word_split(const char *arg)
{
    word w = {.is_long = arg[1] == '-'};
    const char *name = arg + (w.is_long ? 2 : 1);
    const char *eq = strchr(name, '=');
    w.name = eq ? (str){name, (size_t)(eq - name)} : str_of(name);
    w.value = eq ? eq + 1 : NULL;
    return w;
}

/* Names that flags once had still work. */
static const struct {
    const char *old, *now;
} renamed[] = {{"context", "ctx-size"}};

static bool name_matches(str name, const char *now)
{
    for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++)
        if (str_eqz(name, renamed[i].old) && strcmp(now, renamed[i].now) == 0)
            return true;
    return str_eqz(name, now);
}

/* Whether w names this row; *out_no: it does so as --no-name. */
static bool row_matches(const flag *r, word w, bool *out_no)
{
    *out_no = false;
    if (!w.is_long)
        return r->brief && str_eqz(w.name, r->brief);
    if (name_matches(w.name, r->name))
        return true;
    if (!r->negatable || !str_starts(w.name, STR("no-")))
        return false;
    *out_no = true;
    return str_eqz((str){w.name.p + 3, w.name.n - 3}, r->name);
}

/* The index of the row that w names, or -1. */
static int slot_find(const flag_set *sets, size_t set_n, word w, slot *out, bool *out_no)
{
    for (size_t i = 0; slot_at(sets, set_n, i, out); i++)
        if (row_matches(out->row, w, out_no))
            return (int)i;
    return -1;
}

static weft_status fail_unknown(weft_diag *dg, const char *verb, const flag_set *sets, size_t set_n,
                                word w)
{
    const char *dashes = w.is_long ? "--" : "-";
    weft_status st = weft_fail(dg, W1902, WEFT_NOWHERE, "%s: unknown flag %s" STR_FMT, verb, dashes,
                               STR_ARG(w.name));
    str_guess guess = {0};
    const char *guess_dashes = "--";
    slot s;
    for (size_t i = 0; slot_at(sets, set_n, i, &s); i++) {
        const char *nearest = guess.name.p;
        str_guess_try(&guess, w.name, str_of(s.row->name));
        if (guess.name.p != nearest)
            guess_dashes = "--";
        nearest = guess.name.p;
        if (s.row->brief)
            str_guess_try(&guess, w.name, str_of(s.row->brief));
        if (guess.name.p != nearest)
            guess_dashes = "-";
    }
    char shown[64];
    snprintf(shown, sizeof shown, "%s" STR_FMT, guess_dashes, STR_ARG(guess.name));
    guess.name = guess.name.n ? str_of(shown) : guess.name;
    if (!weft_suggest(dg, &guess))
        weft_note(dg, "`weft help %s` lists its flags", verb);
    return st;
}

/* A decimal integer with an optional power-of-1024 suffix; false if it is not one or overflows. */
static bool parse_int(const char *text, bool suffix, int64_t *out)
{
    const char *digits = text + (*text == '-' || *text == '+');
    if (*digits < '0' || *digits > '9')
        return false;
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno)
        return false;
    int64_t unit = 1;
    if (suffix && *end) {
        static const char units[] = "kMGT";
        const char *u = strchr(units, *end == 'K' ? 'k' : *end);
        if (!u)
            return false;
        unit = INT64_C(1) << (10 * (u - units + 1));
        end++;
    }
    if (*end || v > INT64_MAX / unit || v < INT64_MIN / unit)
        return false;
    *out = v * unit;
    return true;
}

static bool parse_float(const char *text, double *out)
{
    /* strtod also takes hex, "nan" and "inf"; a flag takes what a person writes. */
    if (!*text || text[strspn(text, "+-.0123456789eE")])
        return false;
    char *end;
    *out = strtod(text, &end);
    return *end == '\0' && isfinite(*out);
}

static bool parse_choice(const char *choices, const char *text, int *out, str_guess *guess)
{
    int i = 0;
    for (const char *at = choices; at; i++) {
        const char *bar = strchr(at, '|');
        str name = bar ? (str){at, (size_t)(bar - at)} : str_of(at);
        if (str_eqz(name, text)) {
            *out = i;
            return true;
        }
        str_guess_try(guess, str_of(text), name);
        at = bar ? bar + 1 : NULL;
    }
    return false;
}

/* What a value of this row has to be, for a message. */
static void expected(const flag *r, strbuf *out)
{
    if (r->kind == FLAG_CHOICE)
        strbuf_add(out, "one of %s", r->choices);
    else if (r->kind == FLAG_FLOAT)
        strbuf_add(out, "a number from %.15g to %.15g", r->lo, r->hi);
    else
        strbuf_add(out, "a whole number from %.0f to %.0f%s", r->lo, r->hi,
                   r->kind == FLAG_SIZE ? ", with k, M, G or T" : "");
}

/* Parse text into the field; false if it is no such value. */
static bool slot_set(slot s, const char *text, str_guess *guess)
{
    const flag *r = s.row;
    int64_t i;
    double d;
    int c;
    switch (r->kind) {
    case FLAG_BOOL:
        *(bool *)s.field = strcmp(text, "on") == 0;
        return *(bool *)s.field || strcmp(text, "off") == 0;
    case FLAG_INT:
    case FLAG_SIZE:
        if (!parse_int(text, r->kind == FLAG_SIZE, &i) || (double)i < r->lo || (double)i > r->hi)
            return false;
        *(int64_t *)s.field = i;
        return true;
    case FLAG_FLOAT:
        if (!parse_float(text, &d) || d < r->lo || d > r->hi)
            return false;
        *(double *)s.field = d;
        return true;
    case FLAG_STR:
        *(const char **)s.field = text;
        return true;
    case FLAG_CHOICE:
        if (!parse_choice(r->choices, text, &c, guess))
            return false;
        *(int *)s.field = c;
        return true;
    case FLAG_LIST:
        VEC_PUSH((flag_list *)s.field, text);
        return true;
    }
    return false;
}

size_t flags_bytes(const flag *rows)
{
    while (rows->name)
        rows++;
    return rows->offset;
}

void flags_init(const flag_set *sets, size_t set_n)
{
    slot s;
    str_guess guess = {0};
    size_t n = 0;
    for (; slot_at(sets, set_n, n, &s); n++) {
        bool good = !s.row->initial || slot_set(s, s.row->initial, &guess);
        WEFT_ASSERT(good);
    }
    WEFT_ASSERT(n <= FLAGS_MAX);
}

void flags_deinit(const flag_set *sets, size_t set_n)
{
    slot s;
    for (size_t n = 0; slot_at(sets, set_n, n, &s); n++)
        if (s.row->kind == FLAG_LIST)
            VEC_FREE((flag_list *)s.field);
}

/* The value of a flag: joined with '=', or the next word unless that is a flag itself. */
static const char *take_value(const flag_set *sets, size_t set_n, word w, int argc, char **argv,
                              int *at)
{
    if (w.value)
        return w.value;
    if (*at + 1 >= argc)
        return NULL;
    const char *next = argv[*at + 1];
    slot s;
    bool no;
    if (strcmp(next, "--") == 0 ||
        (word_is_flag(next) && slot_find(sets, set_n, word_split(next), &s, &no) >= 0))
        return NULL;
    ++*at;
    return next;
}

static weft_status take_flag(weft_diag *dg, const char *verb, const flag_set *sets, size_t set_n,
                             bool *seen, int argc, char **argv, int *at)
{
    const char *arg = argv[*at];
    word w = word_split(arg);
    slot s;
    bool no;
    int i = slot_find(sets, set_n, w, &s, &no);
    if (i < 0)
        return fail_unknown(dg, verb, sets, set_n, w);
    const flag *r = s.row;
    int shown = (int)strcspn(arg, "="); /* the flag as it was written, without its value */
    if (seen[i] && r->kind != FLAG_LIST)
        return weft_fail(dg, W1903, WEFT_NOWHERE, "%s: %.*s is given twice", verb, shown, arg);
    seen[i] = true;
    str_guess guess = {0};
    if (r->kind == FLAG_BOOL) {
        if (w.value)
            return weft_fail(dg, W1903, WEFT_NOWHERE, "%s: %.*s takes no value", verb, shown, arg);
        slot_set(s, no ? "off" : "on", &guess);
        return WEFT_OK;
    }
    const char *text = take_value(sets, set_n, w, argc, argv, at);
    if (!text)
        return weft_fail(dg, W1903, WEFT_NOWHERE, "%s: %.*s needs a value: %s", verb, shown, arg,
                         r->value);
    if (slot_set(s, text, &guess))
        return WEFT_OK;
    strbuf want = {0};
    expected(r, &want);
    weft_status st = weft_fail(dg, W1903, WEFT_NOWHERE, "%s: %.*s takes %s, not '%s'", verb, shown,
                               arg, want.p, text);
    weft_suggest(dg, &guess);
    strbuf_free(&want);
    return st;
}

weft_status flags_parse(weft_diag *dg, const char *verb, const flag_set *sets, size_t set_n,
                        int argc, char **argv, int *out_operand_n)
{
    bool seen[FLAGS_MAX] = {false};
    bool flags_end = false;
    int n = 0;
    for (int i = 0; i < argc; i++) {
        if (flags_end || !word_is_flag(argv[i])) {
            if (!flags_end && strcmp(argv[i], "--") == 0)
                flags_end = true;
            else
                argv[n++] = argv[i];
            continue;
        }
        WEFT_TRY(take_flag(dg, verb, sets, set_n, seen, argc, argv, &i));
    }
    *out_operand_n = n;
    return WEFT_OK;
}

void flags_wrap(const char *text, size_t column, size_t indent, size_t columns, strbuf *out)
{
    while (*text) {
        size_t n = strcspn(text, " ");
        if (column > indent && column + 1 + n > columns) {
            strbuf_putc(out, '\n');
            strbuf_fill(out, ' ', indent);
            column = indent;
        } else if (column > indent) {
            strbuf_putc(out, ' ');
            column++;
        }
        strbuf_put(out, (str){text, n});
        column += n;
        text += n;
        text += strspn(text, " ");
    }
}

void flags_print(const flag *rows, size_t columns, strbuf *out)
{
    for (const flag *r = rows; r && r->name; r++) {
        size_t begin = out->n;
        if (r->brief)
            strbuf_add(out, "  -%s, ", r->brief);
        else
            strbuf_add(out, "      ");
        strbuf_add(out, "--%s%s%s%s", r->negatable ? "[no-]" : "", r->name, r->value ? " " : "",
                   r->value ? r->value : "");
        size_t column = out->n - begin;
        if (column + 2 > HELP_COLUMN) {
            strbuf_putc(out, '\n');
            column = 0;
        }
        strbuf_fill(out, ' ', HELP_COLUMN - column);
        strbuf tail = {0};
        strbuf_add(&tail, "%s", r->help);
        if (r->initial)
            strbuf_add(&tail, " (default: %s)", r->initial);
        flags_wrap(tail.p, HELP_COLUMN, HELP_COLUMN, columns, out);
        strbuf_putc(out, '\n');
        strbuf_free(&tail);
    }
}

const char **names_split(arena *a, const char *const *texts, size_t n, int *out_n)
{
    size_t most = 0;
    for (size_t i = 0; i < n; i++)
        most += strlen(texts[i]);
    const char **names = ARENA_ARRAY(a, const char *, most + 1);
    *out_n = 0;
    for (size_t i = 0; i < n; i++)
        for (const char *p = texts[i]; *p;) {
            size_t len = strcspn(p, ",");
            if (len > 0)
                names[(*out_n)++] = arena_str(a, (str){p, len}).p;
            p += len + (p[len] == ',');
        }
    return names;
}
