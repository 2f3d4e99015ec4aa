/* parse_habit.c - what other languages write, and what Weft has instead; for syntax errors. */
#include "dsl/parse.h"

#include "dsl/ops.h"
#include "parser.tab.h"

typedef struct {
    const char *text, *advice;
} habit;

#define LOOP "a loop is `repeat l in blk { .. }`: over a group, a count, or a range a .. b"
#define BLOCK_HELP "what is used more than once is a block: block name(x) { .. return y }"
#define BIND "`let x = ..` names a constant; a tensor is bound without it: x = .."
#define ARMS "the arms of an if stand in braces: if c { .. } else { .. }"

/* The first word of the line. */
static const habit first_words[] = {
    {"for", LOOP},
    {"foreach", LOOP},
    {"loop", LOOP},
    {"while", LOOP "; nothing depends on data"},
    {"do", LOOP},
    {"def", BLOCK_HELP},
    {"fn", BLOCK_HELP},
    {"func", BLOCK_HELP},
    {"function", BLOCK_HELP},
    {"lambda", BLOCK_HELP},
    {"class", "a model is `model name { .. }`; parts that models share are blocks and fragments"},
    {"var", BIND},
    {"val", BIND},
    {"const", BIND},
    {"auto", BIND},
    {"elif", "there is no `elif`; write else { if .. { .. } }"},
    {"elsif", "there is no `elsif`; write else { if .. { .. } }"},
    {"switch", "a choice of values is c ? a : b, one of statements if c { .. } else { .. }"},
    {"case", "a choice of values is c ? a : b, one of statements if c { .. } else { .. }"},
    {"assert", "what must hold is stated with `require c, \"message\"`"},
    {"break", "a loop runs all its turns: " LOOP},
    {"continue", "a loop runs all its turns: " LOOP},
    {"pass", "a body may be empty: { }"},
    {"from", "write `import std.rope`, or `import std.rope as r`"},
    {"use", "write `import std.rope`, or `import std.rope as r`"},
    {"include",
     "a fragment is included with its arguments: include rotary(dim = head_dim, ctx = ctx) as rot"},
};

/* The word found, or the one before it. */
static const habit words[] = {
    {"or", "`or` is written ||"},
    {"and", "`and` is written &&"},
    {"not", "`not` is written !"},
    {"is", "`is` is written =="},
    {"mod", "`mod` is written %"},
    {"div", "a division that drops the remainder is idiv(a, b)"},
    {"then", ARMS},
    {"begin", ARMS},
};

/* Signs, from the token found or from the one before it. */
static const habit signs[] = {
    {"+=", "there is no `+=`; write x = x + .."},
    {"-=", "there is no `-=`; write x = x - .."},
    {"*=", "there is no `*=`; write x = x * .."},
    {"/=", "there is no `/=`; write x = x / .."},
    {"^=", "there is no `^=`; write x = x ^ .."},
    {"%=", "there is no `%=`; write x = x % .."},
    {"|=", "there is no `|=`; write x = x || .."},
    {"++", "there is no `++`; write x = x + 1"},
    {"--", "there is no `--`; write x = x - 1"},
    {"**", "a power is written ^"},
    {"//", "a division that drops the remainder is idiv(a, b); a comment begins with #"},
    {"/*", "a comment begins with # and ends with its line"},
    {"===", "`===` is written =="},
    {"!==", "`!==` is written !="},
    {"<>", "`<>` is written !="},
    {"<<", "there are no shifts; a power of two is 2.0 ^ n"},
    {">>", "there are no shifts; idiv(a, b) divides and drops the remainder"},
    {":=", "a name is bound with ="},
    {"...", "a range is a .. b"},
};

static const char *find_word(const habit *row, size_t n, str word)
{
    for (size_t i = 0; i < n; i++)
        if (str_eqz(word, row[i].text))
            return row[i].advice;
    return NULL;
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}

/* The word that ends at `end`, spaces aside. */
static str word_before(str text, size_t end)
{
    while (end > 0 && text.p[end - 1] == ' ')
        end--;
    size_t begin = end;
    while (begin > 0 && is_name(text.p[begin - 1]))
        begin--;
    return (str){text.p + begin, end - begin};
}

static str first_word(str text, size_t at)
{
    while (at > 0 && text.p[at - 1] != '\n')
        at--;
    while (at < text.n && (text.p[at] == ' ' || text.p[at] == '\t'))
        at++;
    size_t end = at;
    while (end < text.n && is_name(text.p[end]))
        end++;
    return (str){text.p + at, end - at};
}

/* A run of signs that begins where the token does, or up to two characters before it. */
static const char *find_sign(str text, size_t at)
{
    for (size_t back = 0; back <= 2 && back <= at; back++) {
        str rest = {text.p + at - back, text.n - (at - back)};
        const char *best = NULL;
        size_t longest = back; /* the token itself is part of it */
        for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
            str sign = str_of(signs[i].text);
            if (sign.n > longest && str_starts(rest, sign)) {
                best = signs[i].advice;
                longest = sign.n;
            }
        }
        if (best)
            return best;
    }
    return NULL;
}

const char *habit_advice(const parse_state *ps, const char *found, parse_range at, bool binds)
{
    str text = ps->src->text, first = first_word(text, at.begin), before;
    char open = ps->n_bracket > 0 ? text.p[ps->open[ps->n_bracket - 1].begin] : 0;
    bool begins = at.begin == (size_t)(first.p - text.p);
    const char *advice = find_sign(text, at.begin);
    if (advice)
        return advice;
    advice = find_word(words, sizeof words / sizeof *words, parse_text(ps, at));
    before = word_before(text, at.begin);
    if (!advice && before.p != first.p + first.n)
        advice = find_word(words, sizeof words / sizeof *words, before);
    if (!advice && !begins)
        advice = find_word(first_words, sizeof first_words / sizeof *first_words, first);
    if (advice)
        return advice;
    if (strcmp(found, "':'") == 0 && open == '[')
        return "there are no slices: split(x, [a, b]) cuts the last axis of a tensor, rows(a, b) "
               "and "
               "take(axis, a, b) a stored weight";
    if (strcmp(found, "':'") == 0 && (str_eqz(first, "if") || str_eqz(first, "else")))
        return ARMS;
    if (strcmp(found, "'='") == 0 && (str_eqz(first, "if") || str_eqz(first, "require")))
        return "`=` binds a name; == compares";
    if (strcmp(found, "==") == 0)
        return "`==` compares; a name is bound with =";
    if (strcmp(found, "return") == 0)
        return "`return` is the last line of a block; an entry gives its results with output "
               "name[R] = ..";
    if (strcmp(found, "if") == 0 && !begins && ps->before_token != ELSE)
        return "a choice of values is c ? a : b";
    if (strcmp(found, "'('") == 0 && before.p == first.p && before.n > 0 && binds &&
        !transform_find(first))
        return "a call is not a statement: bind its result, as in y = f(x)";
    return NULL;
}
