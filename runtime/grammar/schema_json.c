/* schema_json.c - any JSON: white space, strings, values. */
#include "runtime/base/utf8.h"
#include "runtime/grammar/schema_impl.h"

#include <stdlib.h>

/* White space stands behind , and : and at the inside of brackets that are not empty: nothing, a blank, or a line break with up
 * to 20 blanks or 8 tabs. So no text is white space without end. */
static const part *white_space(form *f)
{
    enum { BLANKS = 20, TABS = 8 };
    const part *indent = PART_ALT_OF(f, part_repeat(f, part_char(f, ' ', ' '), 0, BLANKS),
                                     part_repeat(f, part_char(f, '\t', '\t'), 1, TABS));
    return PART_ALT_OF(f, part_empty(f), part_text(f, " "),
                       PART_SEQ_OF(f, part_text(f, "\n"), indent));
}

static const part *hex(form *f, const char_range *r, size_t n)
{
    return part_set(f, r, n, false);
}

/* \uXXXX: one character, so a surrogate never stands alone. */
static const part *unicode_escape(form *f)
{
    static const char_range any[] = {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
    static const char_range not_d[] = {{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}};
    static const char_range d[] = {{'D', 'D'}, {'d', 'd'}};
    static const char_range high[] = {{'8', '9'}, {'A', 'B'}, {'a', 'b'}};
    static const char_range low[] = {{'C', 'F'}, {'c', 'f'}};
    const part *x = hex(f, any, 3), *xd = hex(f, d, 2), *u = part_text(f, "u");
    const part *plain = PART_SEQ_OF(f, hex(f, not_d, 5), x, x, x);
    const part *below = PART_SEQ_OF(f, xd, part_char(f, '0', '7'), x, x);
    const part *pair =
        PART_SEQ_OF(f, xd, hex(f, high, 3), x, x, part_text(f, "\\u"), xd, hex(f, low, 2), x, x);
    return PART_SEQ_OF(f, u, PART_ALT_OF(f, plain, below, pair));
}

static const part *plain_char(form *f)
{
    static const char_range r[] = {{0x20, 0x21}, {0x23, 0x5b}, {0x5d, 0x10ffff}};
    return part_set(f, r, 3, false);
}

const part *json_string_char(form *f)
{
    static const char_range letters[] = {{'"', '"'}, {'/', '/'}, {'\\', '\\'}, {'b', 'b'},
                                         {'f', 'f'}, {'n', 'n'}, {'r', 'r'},   {'t', 't'}};
    const part *escape = PART_ALT_OF(f, part_set(f, letters, 8, false), unicode_escape(f));
    return PART_ALT_OF(f, plain_char(f), PART_SEQ_OF(f, part_text(f, "\\"), escape));
}

void json_rules_add(schema *s)
{
    form *f = s->f;
    s->ws = form_rule_add(f, STR("white space"), WEFT_NOWHERE);
    s->string = form_rule_add(f, STR("string"), WEFT_NOWHERE);
    s->object = form_rule_add(f, STR("object"), WEFT_NOWHERE);
    s->value = form_rule_add(f, STR("value"), WEFT_NOWHERE);
    const part *ws = part_rule(f, s->ws), *string = part_rule(f, s->string),
               *any = part_rule(f, s->value), *quote = part_text(f, "\"");
    const part *comma = PART_SEQ_OF(f, part_text(f, ","), ws);
    const part *member = PART_SEQ_OF(f, string, part_text(f, ":"), ws, any);
    const part *members = PART_SEQ_OF(
        f, ws, member, part_repeat(f, PART_SEQ_OF(f, comma, member), 0, REPEAT_NO_END), ws);
    const part *items =
        PART_SEQ_OF(f, ws, any, part_repeat(f, PART_SEQ_OF(f, comma, any), 0, REPEAT_NO_END), ws);
    s->text_char = json_string_char(f);
    f->rules.at[s->ws].body = white_space(f);
    f->rules.at[s->string].body =
        PART_SEQ_OF(f, quote, part_repeat(f, s->text_char, 0, REPEAT_NO_END), quote);
    f->rules.at[s->object].body =
        PART_SEQ_OF(f, part_text(f, "{"), part_repeat(f, members, 0, 1), part_text(f, "}"));
    f->rules.at[s->value].body = PART_ALT_OF(
        f, string, part_rule(f, s->object), json_number(f, false), part_text(f, "true"),
        part_text(f, "false"), part_text(f, "null"),
        PART_SEQ_OF(f, part_text(f, "["), part_repeat(f, items, 0, 1), part_text(f, "]")));
}

void json_object_form(form *f)
{
    schema s = {.f = f};
    json_rules_add(&s);
    f->root = s.object;
}

/* ---- names that others have ---- */

static int str_order(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

/* What may follow the first `at` bytes that these names, which are sorted, have in common, up to the closing quote. */
static const part *rest_except(form *f, const str *names, size_t n, size_t at)
{
    part_vec way = {0};
    range_vec taken = {0};
    const part *any = part_repeat(f, plain_char(f), 0, REPEAT_NO_END), *quote = part_text(f, "\"");
    if (n == 0 || names[0].n > at)
        VEC_PUSH(&way, quote);
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = utf8_decode((str){names[i].p + at, names[i].n - at}, &c), to = i + 1;
        if (names[i].n == at) { /* the name itself */
            i++;
            continue;
        }
        if (len == 0 || form_full(f))
            break;
        while (to < n && names[to].n >= at + len &&
               memcmp(names[to].p + at, names[i].p + at, len) == 0)
            to++;
        if (c >= 0x20 && c != '"' &&
            c != '\\') /* others need an escape, which these names have not */
            VEC_PUSH(&way, PART_SEQ_OF(f, part_char(f, c, c),
                                       rest_except(f, names + i, to - i, at + len)));
        VEC_PUSH(&taken, ((char_range){c, c}));
        i = to;
    }
    static const char_range never[] = {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}};
    for (size_t i = 0; i < 3; i++)
        VEC_PUSH(&taken, never[i]);
    VEC_PUSH(&way, PART_SEQ_OF(f, part_set(f, taken.at, taken.n, true), any, quote));
    const part *p = part_list(f, PART_ALT, way.at, way.n);
    VEC_FREE(&way);
    VEC_FREE(&taken);
    return p;
}

const part *json_key_except(form *f, const str *names, size_t n)
{
    str *sorted = ARENA_ARRAY(f->a, str, n + 1);
    for (size_t i = 0; i < n; i++)
        sorted[i] = names[i];
    qsort(sorted, n, sizeof *sorted, str_order);
    return PART_SEQ_OF(f, part_text(f, "\""), rest_except(f, sorted, n, 0));
}
