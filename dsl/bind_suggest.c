/* bind_suggest.c - what was meant by a name that the checkpoint lacks: the nearest that it has.
 *
 * Names are dotted paths, of which long parts are the same for all, so only the parts that differ are
 * compared: of blk.0.attn_qq.weight and blk.0.attn_q.weight that is attn_qq and attn_q. Where nothing is
 * near, a name that ends in the same part serves: rope_scaling.factor for rope_parameters.factor. */
#include "dsl/bind_impl.h"

typedef struct {
    str_guess near; /* of the parts compared */
    str name;       /* to be offered, whole */
} suggestion;

/* a and b without the parts between dots that both begin or end with. */
static void strip_common(str *a, str *b)
{
    size_t begin = 0, end = 0, n = a->n < b->n ? a->n : b->n;
    for (size_t i = 0; i < n && a->p[i] == b->p[i]; i++)
        if (a->p[i] == '.')
            begin = i + 1;
    for (size_t i = 0; i < n - begin && a->p[a->n - 1 - i] == b->p[b->n - 1 - i]; i++)
        if (a->p[a->n - 1 - i] == '.')
            end = i + 1;
    *a = (str){a->p + begin, a->n - begin - end};
    *b = (str){b->p + begin, b->n - begin - end};
}

static str last_part(str name)
{
    size_t i = name.n;
    while (i > 0 && name.p[i - 1] != '.')
        i--;
    return (str){name.p + i, name.n - i};
}

/* True where name, of the checkpoint, is a better answer to want than the one so far: whoever calls
 * sets best->name then. */
static bool suggestion_try(suggestion *best, str want, str name)
{
    str a = want, b = name, part = last_part(want);
    str_guess next = best->near;
    if (str_eq(want, name)) /* it is there, and does not serve: a null */
        return false;
    strip_common(&a, &b);
    str_guess_try(&next, a, b);
    bool nearer = next.name.p && (!best->near.name.p || next.distance < best->near.distance);
    bool ends = !best->name.n && part.n > 1 && str_eq(part, last_part(name));
    if (nearer)
        best->near = (str_guess){STR("a name"), next.distance}; /* only its distance is asked for */
    return nearer || ends;
}

static void suggestion_note(binding *b, const suggestion *best)
{
    if (best->name.n)
        weft_note(b->s->dg, "did you mean `" STR_FMT "`, which %s has?", STR_ARG(best->name),
                  b->cp->path);
}

/* ---- keys ---- */

enum { CONFIG_DEPTH_MAX = 4 }; /* of the objects in a config.json whose members are offered */

static void try_members(arena *a, suggestion *best, str want, const value *object, str path,
                        int depth)
{
    if (value_kind_of(object) != VALUE_OBJECT || depth == CONFIG_DEPTH_MAX)
        return;
    for (size_t i = 0; i < object->as.object.n; i++) {
        const value_member *m = &object->as.object.members[i];
        strbuf name = {0};
        strbuf_add(&name, STR_FMT "%s" STR_FMT, STR_ARG(path), path.n ? "." : "", STR_ARG(m->name));
        if (suggestion_try(best, want, strbuf_view(&name)))
            best->name = arena_str(a, strbuf_view(&name));
        try_members(a, best, want, &m->v, strbuf_view(&name), depth + 1);
        strbuf_free(&name);
    }
}

void suggest_key(binding *b, const str *want, size_t n_want)
{
    suggestion best = {.name = {0}};
    const value *keys = model_file_keys(b->cp->file);
    str prefix = b->cp->prefix;
    for (size_t i = 0; i < n_want; i++) {
        if (!b->cp->gguf) {
            const value *inner = value_get(keys, STR("text_config"));
            try_members(b->s->a, &best, want[i], inner, STR(""), 0);
            try_members(b->s->a, &best, want[i], keys, STR(""), 0);
        }
        for (size_t k = 0; b->cp->gguf && prefix.n && k < keys->as.object.n; k++) {
            str name = keys->as.object.members[k].name;
            if (!str_starts(name, prefix))
                continue;
            name = (str){name.p + prefix.n, name.n - prefix.n};
            if (suggestion_try(&best, want[i], name))
                best.name = name;
        }
    }
    suggestion_note(b, &best);
}

/* ---- tensors ---- */

/* A name of the table as a pattern: * stands for what braces hold. */
static void put_pattern(strbuf *b, const ast *text)
{
    str t = text->name;
    for (size_t i = 0; i < t.n; i++) {
        const char *stop = t.p[i] == '{' ? memchr(t.p + i, '}', t.n - i) : NULL;
        strbuf_putc(b, stop ? '*' : t.p[i]);
        i = stop ? (size_t)(stop - t.p) : i;
    }
}

/* Does a line of the table, here of the group `open` or of none, name this tensor? Then it is that line's, bound already or still to be. */
static bool lines_name(const binding *b, const ast *list, const ast *open, str tensor)
{
    static const char *const tail[] = {"", ".weight", ".bias"};
    bool named = false;
    for (uint32_t i = 0; i < list->n_kid && !named; i++) {
        const ast *n = list->kid[i];
        if (n->kind == AST_GROUP) {
            named = lines_name(b, n->kid[GROUP_BODY], n, tensor);
        } else if (n->kind == AST_IF) {
            named = lines_name(b, n->kid[IF_THEN], open, tensor) ||
                    (n->kid[IF_ELSE] && lines_name(b, n->kid[IF_ELSE], open, tensor));
        } else if (n->kind == AST_WEIGHT) {
            const ast *keys = bind_lines(n->kid[WEIGHT_BINDINGS], b->from);
            const ast *prefixes = open ? bind_lines(open->kid[GROUP_PREFIXES], b->from) : NULL;
            for (uint32_t k = 0; keys && k < keys->n_kid && !named; k++) {
                for (uint32_t p = 0; p < (prefixes ? prefixes->n_kid : 1); p++) {
                    for (size_t e = 0; e < sizeof tail / sizeof *tail && !named; e++) {
                        strbuf name = {0};
                        if (prefixes)
                            put_pattern(&name, prefixes->kid[p]);
                        put_pattern(&name, keys->kid[k]);
                        strbuf_add(&name, "%s", tail[e]);
                        named = str_glob(strbuf_view(&name), tensor);
                        strbuf_free(&name);
                    }
                }
            }
        }
    }
    return named;
}

/* The table leaves out what most names end in. */
static str without_tail(str name)
{
    static const str tail[] = {STR(".weight"), STR(".bias")};
    for (size_t i = 0; i < sizeof tail / sizeof *tail; i++)
        if (str_ends(name, tail[i]))
            return (str){name.p, name.n - tail[i].n};
    return name;
}

void suggest_tensor(binding *b, const str *want, size_t n_want)
{
    suggestion best = {.name = {0}};
    for (size_t i = 0; i < n_want; i++) {
        for (size_t id = 0; id < model_file_tensor_count(b->cp->file); id++) {
            str name = model_file_tensor_at(b->cp->file, id)->name, stem = without_tail(name);
            suggestion before = best;
            if (b->claimed[id] || !suggestion_try(&best, want[i], stem))
                continue;
            best.name = name;
            if (b->table && lines_name(b, b->table, NULL, name))
                best = before;
        }
    }
    suggestion_note(b, &best);
}
