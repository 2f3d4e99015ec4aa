/* bind_cover.c - coverage: which tensors of the checkpoint no weight line claims. */
#include "dsl/bind_impl.h"

/* Among the lines of a group a pattern may be whole, or begin after the group's prefix like theirs. */
void bind_ignore(binding *b, const ast *line)
{
    sema *s = b->s;
    if (origin_of(line->name) != b->from)
        return;
    const ast *prefixes =
        s->in_group ? bind_lines(s->in_group->decl->kid[GROUP_PREFIXES], b->from) : NULL;
    for (uint32_t k = 0; k < line->n_kid; k++) {
        str pattern = bind_text(s, line->kid[k]);
        VEC_PUSH(&b->ignores, pattern);
        for (uint32_t p = 0; prefixes && p < prefixes->n_kid; p++)
            VEC_PUSH(&b->ignores,
                     arena_printf(s->a, STR_FMT STR_FMT, STR_ARG(bind_text(s, prefixes->kid[p])),
                                  STR_ARG(pattern)));
    }
}

static bool ignored(const binding *b, str name)
{
    for (size_t i = 0; i < b->ignores.n; i++)
        if (str_glob(b->ignores.at[i], name))
            return true;
    return false;
}

/* Layer and expert numbers as `*`, so that names alike are reported once. */
static str pattern_of(sema *s, str name)
{
    strbuf b = {0};
    for (size_t i = 0; i < name.n; i++) {
        bool digits = name.p[i] >= '0' && name.p[i] <= '9' && (i == 0 || name.p[i - 1] == '.');
        size_t end = i;
        while (digits && end < name.n && name.p[end] >= '0' && name.p[end] <= '9')
            end++;
        if (digits && (end == name.n || name.p[end] == '.')) {
            strbuf_putc(&b, '*');
            i = end - 1;
        } else {
            strbuf_putc(&b, name.p[i]);
        }
    }
    str out = arena_str(s->a, strbuf_view(&b));
    strbuf_free(&b);
    return out;
}

/* The weight line whose tensor stands beside a leftover: its bias, most often. */
static const weight *neighbour(const binding *b, str name)
{
    const sema *s = b->s;
    const char *dot = NULL;
    for (size_t i = name.n; i-- > 0 && !dot;)
        dot = name.p[i] == '.' ? name.p + i : NULL;
    size_t stem = dot ? (size_t)(dot - name.p) + 1 : 0;
    for (size_t i = 0; stem && i < s->weights.n; i++) {
        const weight *w = s->weights.at[i];
        if (!w->bound || !w->bound->stored.piece || w->bound->stored.n_piece == 0)
            continue;
        str tensor =
            model_file_tensor_at(b->cp->file, (size_t)w->bound->stored.piece[0].tensor)->name;
        if (tensor.n > stem && memcmp(tensor.p, name.p, stem) == 0 &&
            !memchr(tensor.p + stem, '.', tensor.n - stem))
            return w;
    }
    return NULL;
}

typedef struct {
    str pattern, first;
    int n;
} leftover;

void bind_coverage(binding *b, const ast *model)
{
    sema *s = b->s;
    enum { PATTERNS_MAX = 8 };
    leftover left[PATTERNS_MAX];
    int n_left = 0, n_all = 0;
    for (size_t id = 0; id < model_file_tensor_count(b->cp->file); id++) {
        str name = model_file_tensor_at(b->cp->file, id)->name;
        if (b->claimed[id] || ignored(b, name))
            continue;
        str pattern = pattern_of(s, name);
        int i = 0;
        n_all++;
        while (i < n_left && !str_eq(left[i].pattern, pattern))
            i++;
        if (i < n_left)
            left[i].n++;
        else if (n_left < PATTERNS_MAX)
            left[n_left++] = (leftover){pattern, name, 1};
    }
    if (n_all == 0)
        return;
    const weight *w = neighbour(b, left[0].first);
    bool bias = w && str_ends(left[0].first, STR(".bias"));
    weft_fail(s->dg, W0505, w ? w->decl->name_loc : model->name_loc,
              "%d tensor%s in the file %s claimed by no weight", n_all, n_all == 1 ? "" : "s",
              n_all == 1 ? "is" : "are");
    for (int i = 0; i < n_left; i++) {
        strbuf text = {0};
        strbuf_put(&text, left[i].first);
        if (left[i].n > 1)
            strbuf_add(&text, " and %d like it", left[i].n - 1);
        if (i == 0)
            strbuf_add(&text, "; %s`ignore %s \"" STR_FMT "\"`",
                       bias ? "add `bias` here, or " : "declare it, or write ",
                       b->cp->gguf ? "gguf" : "hf", STR_ARG(left[i].pattern));
        weft_note(s->dg, "%s", text.p);
        strbuf_free(&text);
    }
}
