/* mutate.c - damage the library's files at random, and see that the checker points at the damage.
 *
 *   mutate [-v] FOLDER        the folder of the model library
 *
 * Every file is taken apart into tokens; each kind of damage below changes one of them (or a few, or a
 * line), at places drawn with a fixed seed. The checker must then tell of an error, or of a warning,
 * within one line of the damage, counting the places that its notes name. A line that is gone can be
 * missed only where what it bound is used, so the first such place counts as damaged too. Or the
 * damaged file is a legal one: then its tree must differ from the original's, and such files may be
 * at most 15 %. */
#include "dsl/dsl.h"
#include "runtime/base/vec.h"

#include <dirent.h>
#include <stdlib.h>

enum { PER_KIND = 60, TRIES = 40, LEGAL_PERCENT_MAX = 15 };

/* ---- tokens ---- */

typedef enum { TOK_NAME, TOK_WORD, TOK_NUMBER, TOK_STRING, TOK_SIGN } tok_kind;
typedef enum { IN_NOTHING, IN_PARAMS, IN_WEIGHTS, IN_STATE, IN_BODY } tok_place;

typedef struct {
    tok_kind kind;
    tok_place in;
    bool loop; /* inside a repeat */
    int body;  /* which block or entry it stands in; 0 outside */
    int round; /* open ( and [ */
    uint32_t begin, end, line;
} tok;

typedef VEC(tok) toks;

static const char *const words[] = {
    "weft",  "import", "as",      "fragment", "block",   "model",    "match", "gguf",
    "hf",    "in",     "include", "params",   "weights", "group",    "state", "ignore",
    "entry", "repeat", "output",  "require",  "let",     "return",   "when",  "if",
    "else",  "true",   "false",   "none",     "chat",    "tokenizer"};

static bool is_word(str s)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_eqz(s, words[i]))
            return true;
    return false;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static str tok_text(str text, const tok *t)
{
    return (str){text.p + t->begin, t->end - t->begin};
}

static bool tok_is(str text, const tok *t, const char *z)
{
    return str_eqz(tok_text(text, t), z);
}

/* Where a `{` leads, by the last word that can stand before one. */
static tok_place place_of(str word, tok_place outer)
{
    static const struct {
        const char *word;
        tok_place in;
    } by_word[] = {{"params", IN_PARAMS},
                   {"weights", IN_WEIGHTS},
                   {"state", IN_STATE},
                   {"entry", IN_BODY},
                   {"block", IN_BODY}};
    for (size_t i = 0; i < sizeof by_word / sizeof *by_word; i++)
        if (str_eqz(word, by_word[i].word))
            return by_word[i].in;
    return outer;
}

static void read_tokens(str text, toks *out)
{
    struct {
        tok_place in;
        bool loop;
        int body;
    } stack[64] = {{IN_NOTHING, false, 0}}, *top = stack;
    str head = STR(""); /* the last section word */
    int n_body = 0, round = 0;
    uint32_t line = 1;
    for (uint32_t i = 0; i < text.n;) {
        char c = text.p[i];
        uint32_t begin = i;
        if (c == '\n' || c == ' ' || c == '\t') {
            line += c == '\n';
            i++;
            continue;
        }
        if (c == '#') {
            while (i < text.n && text.p[i] != '\n')
                i++;
            continue;
        }
        tok t = {TOK_SIGN, top->in, top->loop, top->body, round, begin, 0, line};
        if (is_letter(c)) {
            while (i < text.n && (is_letter(text.p[i]) || is_digit(text.p[i])))
                i++;
            t.kind = is_word((str){text.p + begin, i - begin}) ? TOK_WORD : TOK_NAME;
        } else if (is_digit(c)) {
            while (i < text.n && (is_digit(text.p[i]) || text.p[i] == 'e' ||
                                  (text.p[i] == '.' && is_digit(text.p[i + 1])) ||
                                  (text.p[i] == '-' && text.p[i - 1] == 'e')))
                i++;
            t.kind = TOK_NUMBER;
        } else if (c == '"') {
            for (i++; i < text.n && text.p[i] != '"'; i++)
                i += text.p[i] == '\\';
            i++;
            t.kind = TOK_STRING;
        } else {
            static const char *const two[] = {"->", "=>", "??", "..", "||",
                                              "&&", "==", "!=", "<=", ">="};
            i++;
            for (size_t k = 0; k < sizeof two / sizeof *two; k++)
                if (begin + 1 < text.n && memcmp(text.p + begin, two[k], 2) == 0)
                    i = begin + 2;
        }
        t.end = i;
        str spelt = tok_text(text, &t);
        if (t.kind == TOK_WORD && !tok_is(text, &t, "gguf") && !tok_is(text, &t, "hf") &&
            !tok_is(text, &t, "if") && !tok_is(text, &t, "else") && !tok_is(text, &t, "in") &&
            !tok_is(text, &t, "group"))
            head = spelt;
        round += (c == '(' || c == '[') && t.kind == TOK_SIGN;
        round -= (c == ')' || c == ']') && t.kind == TOK_SIGN;
        if (t.kind == TOK_SIGN && c == '{') {
            top[1] = top[0];
            top++;
            top->in = place_of(head, top->in);
            if (str_eqz(head, "entry") || str_eqz(head, "block"))
                top->body = ++n_body;
            top->loop |= str_eqz(head, "repeat");
            head = STR("");
        }
        if (t.kind == TOK_SIGN && c == '}' && top > stack)
            top--;
        VEC_PUSH(out, t);
    }
}

/* ---- chance ---- */

static uint64_t chance = 0x9e3779b97f4a7c15u;

static uint32_t draw(uint32_t n)
{
    chance ^= chance >> 12;
    chance ^= chance << 25;
    chance ^= chance >> 27;
    return (uint32_t)((chance * 0x2545f4914f6cdd1du) >> 33) % n;
}

/* ---- damage ---- */

typedef struct {
    str text;
    toks t;
} original;

typedef struct {
    strbuf text;
    uint32_t line;  /* of the damage */
    uint32_t first; /* a removed line's: where what it bound is used first; 0 otherwise */
    char what[160];
} damage;

/* Replace [begin, end) by `by`. */
static void replace(const original *o, damage *d, uint32_t begin, uint32_t end, str by)
{
    strbuf_reset(&d->text);
    strbuf_put(&d->text, (str){o->text.p, begin});
    strbuf_put(&d->text, by);
    strbuf_put(&d->text, (str){o->text.p + end, o->text.n - end});
    d->line = 1;
    d->first = 0;
    for (uint32_t i = 0; i < begin; i++)
        d->line += o->text.p[i] == '\n';
    snprintf(d->what, sizeof d->what, "`%.*s` -> `%.*s`",
             (int)(end - begin > 60 ? 60 : end - begin), o->text.p + begin,
             (int)(by.n > 60 ? 60 : by.n), by.p);
}

static const tok *at(const original *o, size_t i)
{
    static const tok none = {.kind = TOK_SIGN};
    return i < o->t.n ? &o->t.at[i] : &none;
}

static bool sign_at(const original *o, size_t i, const char *z)
{
    return i < o->t.n && o->t.at[i].kind == TOK_SIGN && tok_is(o->text, &o->t.at[i], z);
}

/* A token of this kind, anywhere the filter likes. */
static const tok *pick(const original *o, bool (*likes)(const original *, size_t))
{
    for (int try = 0; try < 2000; try++) {
        size_t i = draw((uint32_t)o->t.n);
        if (likes(o, i))
            return &o->t.at[i];
    }
    return NULL;
}

static bool any_name(const original *o, size_t i)
{
    return at(o, i)->kind == TOK_NAME && at(o, i)->end - at(o, i)->begin > 1;
}

static bool misspell(const original *o, damage *d)
{
    const tok *t = pick(o, any_name);
    if (!t)
        return false;
    char name[128];
    str s = tok_text(o->text, t);
    uint32_t n = (uint32_t)s.n, k = draw(n);
    if (n + 2 > sizeof name)
        return false;
    memcpy(name, s.p, n);
    switch (draw(4)) {
    case 0: /* a letter is lost */
        memmove(name + k, name + k + 1, n - k - 1);
        n--;
        break;
    case 1: /* one is typed twice */
        memmove(name + k + 1, name + k, n - k);
        n++;
        break;
    case 2: /* two trade places */
        k = draw(n - 1);
        name[k] = s.p[k + 1];
        name[k + 1] = s.p[k];
        break;
    default: /* one is another */
        name[k] = (char)('a' + draw(26));
    }
    if (is_digit(name[0]) || is_word((str){name, n}) || str_eq(s, (str){name, n}))
        return false;
    replace(o, d, t->begin, t->end, (str){name, n});
    return true;
}

/* A name in a body that stands for a value: not an attribute, not what is assigned to. */
static bool operand(const original *o, size_t i)
{
    const tok *t = at(o, i);
    return t->kind == TOK_NAME && t->in == IN_BODY && t->body > 0 && !sign_at(o, i + 1, "=") &&
           !sign_at(o, i + 1, ",") && !sign_at(o, i - 1, ".") && !sign_at(o, i + 1, ":");
}

static bool operand_or_listed(const original *o, size_t i)
{
    return operand(o, i) || (sign_at(o, i + 1, ",") && at(o, i)->kind == TOK_NAME &&
                             at(o, i)->in == IN_BODY && at(o, i)->body > 0 && at(o, i)->round > 0);
}

static bool swap_operand(const original *o, damage *d)
{
    const tok *t = pick(o, operand_or_listed), *u = NULL;
    for (int try = 0; t && try < 200 && !u; try++) {
        u = pick(o, operand_or_listed);
        if (u && (u->body != t->body || str_eq(tok_text(o->text, t), tok_text(o->text, u))))
            u = NULL;
    }
    if (!u)
        return false;
    replace(o, d, t->begin, t->end, tok_text(o->text, u));
    return true;
}

static bool in_shape(const original *o, size_t i)
{
    const tok *t = at(o, i);
    return t->kind == TOK_NAME && (t->in == IN_WEIGHTS || t->in == IN_STATE) && t->round > 0 &&
           !sign_at(o, i + 1, "=") && !sign_at(o, i + 1, "(");
}

static bool declared_size(const original *o, size_t i)
{
    return at(o, i)->kind == TOK_NAME && at(o, i)->in == IN_PARAMS && sign_at(o, i + 1, ":") &&
           tok_is(o->text, at(o, i + 2), "int") && !sign_at(o, i + 3, "?");
}

static bool change_dimension(const original *o, damage *d)
{
    const tok *t = pick(o, in_shape), *u = NULL;
    for (int try = 0; t && try < 200 && !u; try++) {
        u = pick(o, declared_size);
        if (u && str_eq(tok_text(o->text, t), tok_text(o->text, u)))
            u = NULL;
    }
    if (!u)
        return false;
    replace(o, d, t->begin, t->end, tok_text(o->text, u));
    return true;
}

static bool bracket(const original *o, size_t i)
{
    return at(o, i)->kind == TOK_SIGN && strchr("()[]{}", o->text.p[at(o, i)->begin]);
}

static bool drop_bracket(const original *o, damage *d)
{
    const tok *t = pick(o, bracket);
    if (!t)
        return false;
    replace(o, d, t->begin, t->end, STR(""));
    return true;
}

/* name = .. inside a call, in a body or the state. */
static bool attribute(const original *o, size_t i)
{
    return at(o, i)->kind == TOK_NAME && sign_at(o, i + 1, "=") && at(o, i)->round > 0 &&
           (at(o, i)->in == IN_BODY || at(o, i)->in == IN_STATE) &&
           (sign_at(o, i - 1, ",") || sign_at(o, i - 1, "("));
}

/* The argument with its comma, the one before it or else the one behind it. */
static bool drop_attribute(const original *o, damage *d)
{
    const tok *t = pick(o, attribute);
    if (!t)
        return false;
    size_t i = (size_t)(t - o->t.at), k = i;
    while (k < o->t.n && !((sign_at(o, k, ",") || sign_at(o, k, ")")) &&
                           o->t.at[k].round <= t->round + sign_at(o, k, ")")))
        k++;
    while (k < o->t.n && sign_at(o, k, ")") && o->t.at[k].round > t->round)
        k++;
    if (k >= o->t.n)
        return false;
    bool first = sign_at(o, i - 1, "(");
    uint32_t begin = first ? t->begin : o->t.at[i - 1].begin;
    uint32_t end = first && sign_at(o, k, ",") ? o->t.at[k].end : o->t.at[k].begin;
    replace(o, d, begin, end, STR(""));
    return true;
}

static bool change_attribute(const original *o, damage *d)
{
    if (draw(2))
        return drop_attribute(o, d);
    static const char *const other[] = {"eps",  "scale", "heads", "form",
                                        "kind", "size",  "k",     "window"};
    const tok *t = pick(o, attribute);
    if (!t)
        return false;
    str by = str_of(other[draw(sizeof other / sizeof *other)]);
    if (str_eq(by, tok_text(o->text, t)))
        return false;
    replace(o, d, t->begin, t->end, by);
    return true;
}

static bool size_digit(const original *o, size_t i)
{
    const tok *t = at(o, i);
    bool shaped = (t->in == IN_WEIGHTS || t->in == IN_STATE) && t->round > 0;
    return t->kind == TOK_NUMBER && !memchr(o->text.p + t->begin, '.', t->end - t->begin) &&
           !memchr(o->text.p + t->begin, 'e', t->end - t->begin) &&
           (shaped || (t->in == IN_BODY && t->round > 0));
}

static bool change_digit(const original *o, damage *d)
{
    const tok *t = pick(o, size_digit);
    if (!t)
        return false;
    char digit = (char)('0' + draw(10));
    uint32_t k = t->begin + draw(t->end - t->begin);
    if (digit == o->text.p[k])
        return false;
    replace(o, d, k, k + 1, (str){&digit, 1});
    return true;
}

static bool keyword(const original *o, size_t i)
{
    return at(o, i)->kind == TOK_WORD;
}

static bool damage_keyword(const original *o, damage *d)
{
    const tok *t = pick(o, keyword);
    if (!t)
        return false;
    char name[16];
    str s = tok_text(o->text, t);
    uint32_t k = draw((uint32_t)s.n);
    memcpy(name, s.p, s.n);
    name[k] = (char)('a' + draw(26));
    if (name[k] == s.p[k] || is_word((str){name, s.n}))
        return false;
    replace(o, d, t->begin, t->end, (str){name, s.n});
    return true;
}

static bool begins_line(const original *o, size_t i)
{
    return i > 0 && at(o, i)->loop && at(o, i)->line != at(o, i - 1)->line &&
           at(o, i)->round == 0 && !bracket(o, i);
}

static bool remove_line(const original *o, damage *d)
{
    const tok *t = pick(o, begins_line);
    if (!t)
        return false;
    const char *end = memchr(o->text.p + t->begin, '\n', o->text.n - t->begin);
    size_t first = (size_t)(t - o->t.at), next = first;
    while (next < o->t.n && o->t.at[next].line == t->line)
        next++;
    replace(o, d, t->begin, (uint32_t)(end - o->text.p), STR(""));
    for (size_t i = first; i < next; i++) { /* the targets: q = .., also inside an if on one line */
        bool target = o->t.at[i].kind == TOK_NAME && o->t.at[i].round == 0 &&
                      (sign_at(o, i + 1, "=") || sign_at(o, i + 1, ","));
        for (size_t k = next; target && k < o->t.n; k++) {
            if (!str_eq(tok_text(o->text, &o->t.at[i]), tok_text(o->text, &o->t.at[k])))
                continue;
            if (!d->first || o->t.at[k].line < d->first)
                d->first = o->t.at[k].line;
            break;
        }
    }
    return true;
}

static bool quoted(const original *o, size_t i)
{
    return at(o, i)->kind == TOK_STRING;
}

static bool drop_quote(const original *o, damage *d)
{
    const tok *t = pick(o, quoted);
    if (!t)
        return false;
    bool first = draw(2);
    replace(o, d, first ? t->begin : t->end - 1, first ? t->begin + 1 : t->end, STR(""));
    return true;
}

static bool sign(const original *o, size_t i)
{
    return at(o, i)->kind == TOK_SIGN && !bracket(o, i);
}

static bool drop_sign(const original *o, damage *d)
{
    const tok *t = pick(o, sign);
    if (!t)
        return false;
    replace(o, d, t->begin, t->end, STR(""));
    return true;
}

static bool member(const original *o, size_t i)
{
    const tok *t = at(o, i);
    return t->kind == TOK_NAME && sign_at(o, i + 1, "(") && t->in == IN_BODY && t->body > 0;
}

/* f(x) -> x, where f is called with one thing: the step is forgotten. */
static bool forget_call(const original *o, damage *d)
{
    const tok *t = pick(o, member);
    if (!t)
        return false;
    size_t i = (size_t)(t - o->t.at) + 1;
    size_t k = i + 1;
    while (k < o->t.n && !(sign_at(o, k, ")") && o->t.at[k].round == o->t.at[i].round + 1))
        if (sign_at(o, k++, ",") && o->t.at[k - 1].round == o->t.at[i].round + 1)
            return false;
    if (k >= o->t.n || k == i + 1)
        return false;
    strbuf inside = {0};
    strbuf_put(&inside, (str){o->text.p + o->t.at[i].end, o->t.at[k].begin - o->t.at[i].end});
    replace(o, d, t->begin, o->t.at[k].end, strbuf_view(&inside));
    strbuf_free(&inside);
    return true;
}

static bool comma(const original *o, size_t i)
{
    return sign_at(o, i, ",") && at(o, i)->round > 0 && at(o, i)->in != IN_NOTHING &&
           at(o, i - 1)->kind == TOK_NAME && at(o, i + 1)->kind == TOK_NAME &&
           (sign_at(o, i - 2, "(") || sign_at(o, i - 2, ",") || sign_at(o, i - 2, "[")) &&
           (sign_at(o, i + 2, ")") || sign_at(o, i + 2, ",") || sign_at(o, i + 2, "]"));
}

/* f(a, b) -> f(b, a) */
static bool exchange_arguments(const original *o, damage *d)
{
    const tok *t = pick(o, comma);
    if (!t || str_eq(tok_text(o->text, t - 1), tok_text(o->text, t + 1)))
        return false;
    strbuf by = {0};
    strbuf_put(&by, tok_text(o->text, t + 1));
    strbuf_put(&by, STR(", "));
    strbuf_put(&by, tok_text(o->text, t - 1));
    replace(o, d, t[-1].begin, t[1].end, strbuf_view(&by));
    strbuf_free(&by);
    return true;
}

static const struct {
    const char *name;
    bool (*make)(const original *, damage *);
} kinds[] = {
    {"a name misspelt", misspell},
    {"an operand swapped for another in scope", swap_operand},
    {"a dimension changed", change_dimension},
    {"a bracket dropped", drop_bracket},
    {"an attribute dropped or renamed", change_attribute},
    {"a digit of a size changed", change_digit},
    {"a keyword damaged", damage_keyword},
    {"a line of a loop removed", remove_line},
    {"a quote dropped", drop_quote},
    {"a sign dropped", drop_sign},
    {"a call forgotten", forget_call},
    {"two arguments exchanged", exchange_arguments},
};
enum { N_KIND = sizeof kinds / sizeof *kinds };

/* ---- judging ---- */

typedef enum { TOLD, TOLD_BY_NOTE, LEGAL, FAR, SAME, N_VERDICT } verdict;

static bool near(uint32_t line, const damage *d)
{
    return (line + 1 >= d->line && line <= d->line + 1) || (d->first && line == d->first);
}

/* Does any "line": N, or "at line N" of a note, stand near the damage? Lines of other files do not
 * count: their "file" differs. */
static bool note_near(const strbuf *json, const char *file, const damage *d)
{
    strbuf key = {0};
    strbuf_add(&key, "\"file\":\"%s\",\"line\":", file);
    bool found = false;
    for (const char *p = json->p; (p = strstr(p, key.p)) != NULL && !found; p += key.n)
        found = near((uint32_t)strtoul(p + key.n, NULL, 10), d);
    for (const char *p = json->p; (p = strstr(p, " at line ")) != NULL && !found; p += 9)
        found = near((uint32_t)strtoul(p + 9, NULL, 10), d);
    strbuf_free(&key);
    return found;
}

static verdict judge(const char *file, const original *o, const damage *d, bool show)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    source *src = source_from_text(a, file, strbuf_view(&d->text));
    verdict v = FAR;
    weft_status st = dsl_check(dg, src, true);
    for (size_t i = 0; i < diag_count(dg); i++) {
        diag_entry e = diag_at(dg, i);
        if (e.loc.src != src)
            continue;
        for (uint32_t line = source_find(src, e.loc.begin).line;
             line <= source_find(src, e.loc.end).line; line++)
            v = near(line, d) ? TOLD : v;
    }
    strbuf json = {0};
    diag_json(dg, &json);
    if (v == FAR && st != WEFT_OK && note_near(&json, file, d))
        v = TOLD_BY_NOTE;
    if (v == FAR && st == WEFT_OK) {
        ast *was, *is;
        source *before = source_from_text(a, file, o->text);
        bool both =
            dsl_parse(dg, a, before, &was) == WEFT_OK && dsl_parse(dg, a, src, &is) == WEFT_OK;
        v = both && !ast_equal(was, is) ? LEGAL : SAME;
    }
    if (show || v == FAR || v == SAME) {
        static const char *const text[] = {"told", "told by a note", "legal", "FAR", "SAME TREE"};
        printf("%s:%u: %s: %s\n", file, (unsigned)d->line, text[v], d->what);
        if (v == FAR)
            diag_print(dg, stdout, false);
    }
    strbuf_free(&json);
    diag_destroy(dg);
    arena_destroy(a);
    return v;
}

/* ---- the library ---- */

typedef struct {
    char name[256];
    source *src;
    original o;
} library_file;

typedef VEC(library_file) library;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const library_file *)a)->name, ((const library_file *)b)->name);
}

static void read_folder(weft_diag *dg, arena *a, const char *folder, const char *prefix,
                        library *out)
{
    DIR *d = opendir(folder);
    if (!d) {
        fprintf(stderr, "mutate: cannot read %s\n", folder);
        exit(2);
    }
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[1024];
        size_t n = strlen(e->d_name);
        library_file f = {.src = NULL};
        if (n < 5 || strcmp(e->d_name + n - 5, ".weft") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        snprintf(f.name, sizeof f.name, "%s%s", prefix, e->d_name);
        if (source_open(dg, a, path, DSL_SOURCE_MAX, &f.src) != WEFT_OK)
            exit(2);
        f.o.text = f.src->text;
        read_tokens(f.o.text, &f.o.t);
        VEC_PUSH(out, f);
    }
    closedir(d);
}

int main(int argc, char **argv)
{
    bool show = argc > 2 && strcmp(argv[1], "-v") == 0;
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    library lib = {0};
    damage d = {.line = 0};
    int count[N_KIND][N_VERDICT] = {{0}}, sum[N_VERDICT] = {0}, total = 0;
    if (argc < 2)
        return 2;
    char std[1024];
    snprintf(std, sizeof std, "%s/std", argv[argc - 1]);
    read_folder(dg, a, argv[argc - 1], "", &lib);
    read_folder(dg, a, std, "std/", &lib);
    qsort(lib.at, lib.n, sizeof *lib.at, by_name);
    for (int k = 0; k < N_KIND; k++) {
        int made = 0;
        for (int try = 0; made < PER_KIND && try < PER_KIND * TRIES; try++) {
            const library_file *f = &lib.at[draw((uint32_t)lib.n)];
            if (!kinds[k].make(&f->o, &d))
                continue;
            count[k][judge(f->name, &f->o, &d, show)]++;
            made++;
        }
    }
    printf("%-42s %5s %5s %6s %5s\n", "", "told", "note", "legal", "far");
    for (int k = 0; k < N_KIND; k++) {
        printf("%-42s", kinds[k].name);
        for (int v = 0; v < N_VERDICT; v++) {
            if (v != SAME)
                printf(" %*d", v == LEGAL ? 6 : 5, count[k][v]);
            sum[v] += count[k][v];
            total += count[k][v];
        }
        printf("\n");
    }
    printf(
        "%d mutations of %zu files: %d told within a line, %d by a note, %d legal (%d %%), %d told "
        "elsewhere, %d with the same tree\n",
        total, lib.n, sum[TOLD], sum[TOLD_BY_NOTE], sum[LEGAL],
        sum[LEGAL] * 100 / (total ? total : 1), sum[FAR], sum[SAME]);
    for (size_t i = 0; i < lib.n; i++)
        VEC_FREE(&lib.at[i].o.t);
    VEC_FREE(&lib);
    strbuf_free(&d.text);
    diag_destroy(dg);
    arena_destroy(a);
    bool fine = total >= 300 && sum[FAR] == 0 && sum[SAME] == 0 &&
                sum[LEGAL] * 100 <= total * LEGAL_PERCENT_MAX;
    return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}
