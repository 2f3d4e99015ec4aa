/* tok_pre.c - splitting: what each step looks for, and what becomes of it. */
#include "runtime/text/tok_pre.h"

#include "runtime/text/tok_unicode.h"

static weft_status pass(pre_run *r, size_t step, str piece, bool at_start)
{
    if (!piece.n)
        return WEFT_OK;
    if (piece.n > r->room)
        return weft_fail(r->dg, W1214, WEFT_NOWHERE,
                         "pre_tokenizer %zu of %zu makes more of the text than is allowed", step,
                         r->steps->n);
    r->room -= piece.n;
    if (step == r->steps->n)
        return r->piece(r->to, piece);
    return r->steps->at[step].apply(r, step, piece, at_start);
}

weft_status pre_split(pre_run *r, str text, bool at_start)
{
    return pass(r, 0, text, at_start);
}

/* Spans of a text come in from the left, each a match or not; pieces go out. */
typedef struct {
    pre_run *r;
    size_t step; /* the next one */
    str text;
    bool at_start;
    split_behavior behavior;
    bool invert;
    bool held; /* begin, end, match: the span that waits for its neighbour */
    bool match;
    size_t begin, end;
} splitter;

static weft_status emit(splitter *s, size_t begin, size_t end)
{
    return pass(s->r, s->step, (str){s->text.p + begin, end - begin}, s->at_start && begin == 0);
}

static weft_status hold(splitter *s, size_t begin, size_t end, bool match)
{
    if (s->held)
        WEFT_TRY(emit(s, s->begin, s->end));
    s->held = true;
    s->begin = begin;
    s->end = end;
    s->match = match;
    return WEFT_OK;
}

static weft_status put(splitter *s, size_t begin, size_t end, bool match)
{
    bool join = false;
    match ^= s->invert;
    switch (s->behavior) {
    case SPLIT_ISOLATED:
        return emit(s, begin, end);
    case SPLIT_REMOVED:
        return match ? WEFT_OK : emit(s, begin, end);
    case SPLIT_CONTIGUOUS:
        join = s->held && s->match == match;
        break;
    case SPLIT_MERGED_WITH_PREVIOUS:
        join = s->held && match && !s->match;
        break;
    case SPLIT_MERGED_WITH_NEXT:
        join = s->held && s->match && !match;
        break;
    }
    if (!join)
        return hold(s, begin, end, match);
    s->end = end;
    s->match = match;
    return WEFT_OK;
}

static weft_status finish(splitter *s)
{
    return s->held ? emit(s, s->begin, s->end) : WEFT_OK;
}

static splitter splitter_of(pre_run *r, size_t step, str text, bool at_start)
{
    const pre_step *p = &r->steps->at[step];
    return (splitter){.r = r,
                      .step = step + 1,
                      .text = text,
                      .at_start = at_start,
                      .behavior = p->behavior,
                      .invert = p->invert};
}

static weft_status apply_regex(pre_run *r, size_t step, str text, bool at_start)
{
    splitter s = splitter_of(r, step, text, at_start);
    tok_matches m = tok_matches_of(r->steps->at[step].re, text);
    size_t done = 0, begin, end;
    for (;;) {
        WEFT_TRY(tok_matches_next(r->dg, &m, &begin, &end));
        if (begin == SIZE_MAX)
            break;
        if (begin < done)
            continue;
        if (begin > done)
            WEFT_TRY(put(&s, done, begin, false));
        WEFT_TRY(put(&s, begin, end, true));
        done = end;
    }
    if (done < text.n)
        WEFT_TRY(put(&s, done, text.n, false));
    return finish(&s);
}

/* Digits by threes, counted from the end of each run, which the step's pattern finds. Patterns say it by looking ahead to
 * the end of the run from each group, which takes time that grows with the square of its length. */
static weft_status apply_digit_groups(pre_run *r, size_t step, str text, bool at_start)
{
    const pre_step *p = &r->steps->at[step];
    splitter s = splitter_of(r, step, text, at_start);
    tok_matches m = tok_matches_of(p->re, text);
    size_t done = 0, begin, end;
    for (;;) {
        WEFT_TRY(tok_matches_next(r->dg, &m, &begin, &end));
        if (begin == SIZE_MAX)
            break;
        size_t n = 0;
        for (size_t at = begin; at < end; at += uni_len(text.p[at]))
            n++;
        for (size_t at = begin; at < end; at += uni_len(text.p[at]), n--) {
            if (n % 3 != 0 && (p->cuts || at > begin))
                continue;
            WEFT_TRY(emit(&s, done, at));
            done = at;
        }
        if (!p->cuts) {
            WEFT_TRY(emit(&s, done, end));
            done = end;
        }
    }
    return emit(&s, done, text.n);
}

static weft_status apply_chars(pre_run *r, size_t step, str text, bool at_start)
{
    splitter s = splitter_of(r, step, text, at_start);
    size_t done = 0;
    uint32_t cp;
    for (size_t i = 0, n; i < text.n; i += n) {
        n = uni_next(text.p + i, &cp);
        if (!r->steps->at[step].is_match(cp))
            continue;
        if (i > done)
            WEFT_TRY(put(&s, done, i, false));
        WEFT_TRY(put(&s, i, i + n, true));
        done = i + n;
    }
    if (done < text.n)
        WEFT_TRY(put(&s, done, text.n, false));
    return finish(&s);
}

/* Whitespace: runs of word characters, and runs of what is neither word nor space. */
static weft_status apply_words(pre_run *r, size_t step, str text, bool at_start)
{
    enum { SPACE, WORD, OTHER } kind = SPACE, next = SPACE;
    size_t begin = 0;
    uint32_t cp;
    for (size_t i = 0, n; i <= text.n; i += n, kind = next) {
        n = 1;
        if (i < text.n) {
            n = uni_next(text.p + i, &cp);
            next = uni_is_word(cp) ? WORD : uni_is_space(cp) ? SPACE : OTHER;
        }
        if (i < text.n && next == kind)
            continue;
        if (kind != SPACE)
            WEFT_TRY(pass(r, step + 1, (str){text.p + begin, i - begin}, at_start && begin == 0));
        begin = i;
    }
    return WEFT_OK;
}

static weft_status apply_metaspace(pre_run *r, size_t step, str text, bool at_start)
{
    pre_step *p = &r->steps->at[step];
    bool prepend = p->prepend == PREPEND_ALWAYS || (p->prepend == PREPEND_FIRST && at_start);
    strbuf_reset(&p->text);
    if (prepend && text.p[0] != ' ' && !str_starts(text, p->mark))
        strbuf_put(&p->text, p->mark);
    for (size_t i = 0; i < text.n;) {
        const char *space = memchr(text.p + i, ' ', text.n - i);
        size_t end = space ? (size_t)(space - text.p) : text.n;
        strbuf_put(&p->text, (str){text.p + i, end - i});
        if (space)
            strbuf_put(&p->text, p->mark);
        i = end + 1;
    }
    text = strbuf_view(&p->text);
    if (!p->split)
        return pass(r, step + 1, text, at_start);
    return apply_regex(r, step, text, at_start);
}

/* The prefix space and the pattern are steps of their own; what is left is the map of bytes. */
static weft_status apply_byte_map(pre_run *r, size_t step, str text, bool at_start)
{
    pre_step *p = &r->steps->at[step];
    strbuf_reset(&p->text);
    for (size_t i = 0; i < text.n; i++)
        uni_add(&p->text, uni_of_byte((unsigned char)text.p[i]));
    return pass(r, step + 1, strbuf_view(&p->text), at_start);
}

static weft_status apply_nothing(pre_run *r, size_t step, str text, bool at_start)
{
    return pass(r, step + 1, text, at_start);
}

static weft_status apply_prefix_space(pre_run *r, size_t step, str text, bool at_start)
{
    pre_step *p = &r->steps->at[step];
    if (text.p[0] == ' ')
        return pass(r, step + 1, text, at_start);
    strbuf_reset(&p->text);
    strbuf_putc(&p->text, ' ');
    strbuf_put(&p->text, text);
    return pass(r, step + 1, strbuf_view(&p->text), at_start);
}

/* ---- by number ---- */

enum { NEEDS_REGEX = 1, NEEDS_MATCH = 2, NEEDS_MARK = 4, MAPS_BYTES = 8 };

/* Numbers are in images that were written before: both lists grow at their ends. */
static const struct {
    pre_fn *apply;
    unsigned needs;
} numbered[] = {
    {apply_regex, NEEDS_REGEX},
    {apply_digit_groups, NEEDS_REGEX},
    {apply_chars, NEEDS_MATCH},
    {apply_words, 0},
    {apply_metaspace, NEEDS_REGEX | NEEDS_MARK},
    {apply_byte_map, MAPS_BYTES},
    {apply_prefix_space, 0},
};
static bool (*const matches[])(uint32_t cp) = {uni_is_space, uni_is_numeric, uni_is_punct};

int pre_number(const pre_step *s)
{
    for (int k = 0; k < (int)(sizeof numbered / sizeof *numbered); k++)
        if (s->maps_bytes ? (numbered[k].needs & MAPS_BYTES) != 0 : numbered[k].apply == s->apply)
            return k + 1;
    return 0;
}

const char *pre_set_number(pre_step *s, int number)
{
    if (number < 1 || number > (int)(sizeof numbered / sizeof *numbered))
        return "has a step of no kind";
    unsigned needs = numbered[number - 1].needs;
    s->apply = numbered[number - 1].apply;
    s->maps_bytes = needs & MAPS_BYTES;
    if ((needs & NEEDS_REGEX && !s->re) || (needs & NEEDS_MATCH && !s->is_match))
        return "has a step without its pattern";
    if (needs & NEEDS_MARK && (!s->mark.n || s->mark.n != uni_len(s->mark.p[0])))
        return "marks spaces with what is not one character";
    return NULL;
}

int pre_match_number(bool (*is_match)(uint32_t cp))
{
    for (int k = 0; k < (int)(sizeof matches / sizeof *matches); k++)
        if (matches[k] == is_match)
            return k + 1;
    return 0;
}

bool (*pre_match_of_number(int number))(uint32_t cp)
{
    return number >= 1 && number <= (int)(sizeof matches / sizeof *matches) ? matches[number - 1]
                                                                            : NULL;
}

bool pre_needs_tables(const pre_step *s)
{
    return s->apply == apply_words || s->is_match == uni_is_numeric || s->is_match == uni_is_punct;
}

/* ---- loading ---- */

static const char byte_level_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* Patterns of real tokenizers that do the same as apply_digit_groups, and the runs it does it with. */
static const struct {
    const char *pattern, *runs;
    bool cuts; /* the groups are cut from each other, but the last one not from what follows */
} digit_groups[] = {
    {"\\d{1,3}(?=(?:\\d{3})*\\b)", "(?<!\\d)\\d++\\b", false}, /* Cohere, Aya */
    {"(?=(\\d{3})+(?!\\d))", "(?<!\\d)\\d++", true},           /* SuperBPE */
};

static weft_status create_isolating(weft_diag *dg, str pattern, pre_step *s)
{
    for (size_t k = 0; k < sizeof digit_groups / sizeof *digit_groups; k++)
        if (str_eqz(pattern, digit_groups[k].pattern)) {
            s->apply = apply_digit_groups;
            s->cuts = digit_groups[k].cuts;
            pattern = str_of(digit_groups[k].runs);
            break;
        }
    return tok_regex_create(dg, pattern, &s->re);
}

weft_status pre_add_regex(weft_diag *dg, const char *pattern, pre_list *to)
{
    pre_step s = {.apply = apply_regex, .behavior = SPLIT_ISOLATED};
    WEFT_TRY(create_isolating(dg, str_of(pattern), &s));
    VEC_PUSH(to, s);
    return WEFT_OK;
}

static void add_chars(pre_list *to, bool (*is_match)(uint32_t cp), split_behavior behavior)
{
    VEC_PUSH(to, ((pre_step){.apply = apply_chars, .is_match = is_match, .behavior = behavior}));
}

void pre_add_bytes(pre_list *to)
{
    VEC_PUSH(to, ((pre_step){.apply = apply_byte_map, .maps_bytes = true}));
}

void pre_add_bert(pre_list *to)
{
    add_chars(to, uni_is_space, SPLIT_REMOVED);
    add_chars(to, uni_is_punct, SPLIT_ISOLATED);
}

bool pre_ends_in_bytes(const pre_list *l)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < l->n; i++)
        n_bytes += l->at[i].maps_bytes;
    return n_bytes == 1 && l->at[l->n - 1].maps_bytes;
}

void pre_keep_bytes(pre_list *l)
{
    l->at[l->n - 1].apply = apply_nothing;
}

static weft_status read_behavior(weft_diag *dg, const char *what, const value *v,
                                 split_behavior *io_behavior)
{
    static const char *const names[] = {
        [SPLIT_REMOVED] = "Removed",
        [SPLIT_ISOLATED] = "Isolated",
        [SPLIT_CONTIGUOUS] = "Contiguous",
        [SPLIT_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
        [SPLIT_MERGED_WITH_NEXT] = "MergedWithNext",
    };
    str name;
    WEFT_TRY(field_str_or_none(dg, what, v, "behavior", &name));
    if (!name.n)
        return WEFT_OK;
    for (int k = 0; k < (int)(sizeof names / sizeof *names); k++)
        if (str_eqz(name, names[k])) {
            *io_behavior = (split_behavior)k;
            return WEFT_OK;
        }
    return field_unknown(dg, "split behavior", name);
}

/* Adds the steps that v stands for. */
typedef weft_status load_fn(weft_diag *dg, arena *a, const value *v, pre_list *to);

static weft_status load_split(weft_diag *dg, arena *a, const value *v, pre_list *to)
{
    pre_step s = {.apply = apply_regex, .behavior = SPLIT_ISOLATED};
    (void)a;
    WEFT_TRY(read_behavior(dg, "Split", v, &s.behavior));
    WEFT_TRY(field_bool(dg, "Split", v, "invert", &s.invert));
    str regex;
    if (s.behavior == SPLIT_ISOLATED && !s.invert &&
        value_str(value_get(value_get(v, STR("pattern")), STR("Regex")), &regex))
        WEFT_TRY(create_isolating(dg, regex, &s));
    else
        WEFT_TRY(field_pattern(dg, "Split", v, &s.re));
    VEC_PUSH(to, s);
    return WEFT_OK;
}

static weft_status load_byte_level(weft_diag *dg, arena *a, const value *v, pre_list *to)
{
    bool prefix = true, pattern = true;
    (void)a;
    WEFT_TRY(field_bool(dg, "ByteLevel", v, "add_prefix_space", &prefix));
    WEFT_TRY(field_bool(dg, "ByteLevel", v, "use_regex", &pattern));
    if (prefix)
        VEC_PUSH(to, ((pre_step){.apply = apply_prefix_space}));
    if (pattern)
        WEFT_TRY(pre_add_regex(dg, byte_level_pattern, to));
    pre_add_bytes(to);
    return WEFT_OK;
}

static weft_status load_digits(weft_diag *dg, arena *a, const value *v, pre_list *to)
{
    bool individual = false;
    (void)a;
    WEFT_TRY(field_bool(dg, "Digits", v, "individual_digits", &individual));
    add_chars(to, uni_is_numeric, individual ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS);
    return WEFT_OK;
}

static weft_status load_metaspace(weft_diag *dg, arena *a, const value *v, pre_list *to)
{
    static const char what[] = "Metaspace";
    pre_step s = {.apply = apply_metaspace,
                  .behavior = SPLIT_MERGED_WITH_NEXT,
                  .prepend = PREPEND_ALWAYS,
                  .split = true};
    str mark = STR("\xe2\x96\x81"), scheme;
    bool prefix = true;
    WEFT_TRY(field_bool(dg, what, v, "add_prefix_space", &prefix));
    WEFT_TRY(field_bool(dg, what, v, "split", &s.split));
    WEFT_TRY(field_str_or_none(dg, what, v, "prepend_scheme", &scheme));
    if (value_get(v, STR("replacement")))
        WEFT_TRY(field_str(dg, what, v, "replacement", &mark));
    if (!mark.n || mark.n != uni_len(mark.p[0]))
        return weft_fail(dg, W1203, WEFT_NOWHERE, "Metaspace: 'replacement' is not one character");
    if (str_eqz(scheme, "first"))
        s.prepend = PREPEND_FIRST;
    else if (str_eqz(scheme, "never") || !prefix)
        s.prepend = PREPEND_NEVER;
    else if (scheme.n && !str_eqz(scheme, "always"))
        return field_unknown(dg, "prepend scheme", scheme);
    s.mark = arena_str(a, mark);
    s.re = tok_regex_literal(mark);
    VEC_PUSH(to, s);
    return WEFT_OK;
}

static weft_status load_whitespace(weft_diag *dg, arena *a, const value *v, pre_list *to)
{
    (void)dg, (void)a, (void)v;
    VEC_PUSH(to, ((pre_step){.apply = apply_words}));
    return WEFT_OK;
}

static weft_status load_whitespace_split(weft_diag *dg, arena *a, const value *v, pre_list *to)
{
    (void)dg, (void)a, (void)v;
    add_chars(to, uni_is_space, SPLIT_REMOVED);
    return WEFT_OK;
}

static weft_status load_punctuation(weft_diag *dg, arena *a, const value *v, pre_list *to)
{
    split_behavior behavior = SPLIT_ISOLATED;
    (void)a;
    WEFT_TRY(read_behavior(dg, "Punctuation", v, &behavior));
    add_chars(to, uni_is_punct, behavior);
    return WEFT_OK;
}

static weft_status load_bert(weft_diag *dg, arena *a, const value *v, pre_list *to)
{
    (void)dg, (void)a, (void)v;
    pre_add_bert(to);
    return WEFT_OK;
}

/* clang-format off */
static const struct {
    const char *name;
    load_fn *load;
} rows[] = {
    {"Split",            load_split},
    {"ByteLevel",        load_byte_level},
    {"Digits",           load_digits},
    {"Metaspace",        load_metaspace},
    {"Whitespace",       load_whitespace},
    {"WhitespaceSplit",  load_whitespace_split},
    {"Punctuation",      load_punctuation},
    {"BertPreTokenizer", load_bert},
};
/* clang-format on */

static weft_status load_step(weft_diag *dg, arena *a, const value *v, str type, void *to)
{
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (str_eqz(type, rows[k].name))
            return rows[k].load(dg, a, v, to);
    return field_unknown(dg, "pre_tokenizer", type);
}

weft_status pre_load(weft_diag *dg, arena *a, const value *v, pre_list *to)
{
    static const step_kind kind = {"pre_tokenizer", "pretokenizers", load_step};
    WEFT_TRY(field_steps(dg, a, &kind, v, to));
    return field_steps_check(dg, &kind, to->n);
}

void pre_free(pre_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        tok_regex_destroy(l->at[i].re);
        strbuf_free(&l->at[i].text);
    }
    VEC_FREE(l);
}
