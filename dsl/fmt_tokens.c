/* fmt_tokens.c - the tokens of a source, and the comments between them. */
#include "dsl/fmt.h"

#include "dsl/parse.h"
#include "parser.tab.h"
#include "runtime/base/utf8.h"

int fmt_width(str text)
{
    int width = 0;
    while (text.n > 0) {
        uint32_t point;
        size_t n = utf8_decode(text, &point);
        width += n > 0 ? utf8_cells(point) : 1;
        n += n == 0;
        text.p += n;
        text.n -= n;
    }
    return width;
}

/* Comments and blank lines between two tokens; t is the second. */
static void read_gap(fmt *f, uint32_t begin, uint32_t end, uint32_t *line, fmt_token *t)
{
    const char *p = f->src->text.p;
    bool own = begin == 0;
    int breaks = 0; /* since the last token or comment */
    t->comment_at = (uint32_t)f->comments.n;
    for (uint32_t i = begin; i < end; i++) {
        if (p[i] == '\n') {
            own = true;
            breaks++;
            ++*line;
        } else if (p[i] == '#') {
            str text = {p + i, 0};
            for (; i < end && p[i] != '\n'; i++)
                if (p[i] != ' ' && p[i] != '\t' && p[i] != '\r')
                    text.n = (size_t)(p + i + 1 - text.p);
            i--;
            fmt_comment c = {text, own, breaks > 1};
            VEC_PUSH(&f->comments, c);
            breaks = 0;
        }
    }
    t->n_comment = (uint32_t)f->comments.n - t->comment_at;
    t->blank = breaks > 1;
}

static bool trails(const fmt *f, const fmt_token *t)
{
    return t->n_comment > 0 && !f->comments.at[t->comment_at].own;
}

/* A comma, a `{` and what closes a bracket stay with the text before them, and comments that stood
 * between move behind: to the argument that follows, into the body, to the end of the statement. A
 * line may end there in each case. */
static bool moves_back(const fmt *f, const fmt_token *t)
{
    const fmt_token *after = t + 1;
    if (t->n_comment == 0 || t->starts)
        return false;
    if (t->kind == '{')
        return true;
    if (trails(f, after))
        return false;
    if (t->kind != ')' && t->kind != ']')
        return t->kind == ',';
    bool ends = after->starts || after->kind == ')' || after->kind == ']' || after->kind == ',' ||
                after->kind == '{';
    return ends && t->n_comment == 1 && trails(f, t);
}

/* From the end, so that the place behind is settled before something moves there. */
static void move_comments(fmt *f)
{
    for (size_t i = f->tokens.n - 1; i-- > 0;) {
        for (fmt_token *t = &f->tokens.at[i]; t->kind != END && moves_back(f, t); t++) {
            if (trails(f, t + 1))
                f->comments.at[t[1].comment_at].own = true;
            t[1].comment_at = t->comment_at;
            t[1].n_comment += t->n_comment;
            t->n_comment = 0;
        }
    }
}

void fmt_tokens_read(fmt *f, weft_diag *dg, arena *a, const source *src)
{
    parse_state *ps = ARENA_NEW(a, parse_state);
    *ps = (parse_state){.dg = dg, .a = a, .src = src};
    f->src = src;
    lex_begin(ps);
    uint32_t end = 0, line = 0;
    bool starts = false;
    fmt_token t;
    do {
        PARSE_STYPE value;
        parse_range at = {end, end};
        t = (fmt_token){.kind = parse_lex(&value, &at, ps)};
        if (t.kind == EOL) {
            starts = true;
            continue;
        }
        t.begin = t.kind == END ? (uint32_t)src->text.n : at.begin;
        t.text = t.kind == END ? STR("") : parse_text(ps, at);
        read_gap(f, end, t.begin, &line, &t);
        t.line = line;
        t.starts = starts;
        VEC_PUSH(&f->tokens, t);
        end = at.end;
        starts = false;
    } while (t.kind != END);
    lex_end(ps);
    move_comments(f);
}

uint32_t fmt_token_find(const fmt *f, uint32_t offset)
{
    uint32_t low = 0, high = (uint32_t)f->tokens.n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (f->tokens.at[mid].begin < offset)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}
