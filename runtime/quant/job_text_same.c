/* job_text_same.c - do the usual tokenizer keys of GGUF stand for the folder's tokenizer?
 *
 * They name a family of tokenizers and leave details to the reader: the file's own tokenizer may take white space
 * along with an added token, or order merges as no score can. So the keys are made in memory and read like any file, and
 * both tokenizers get the same texts. */
#include "runtime/quant/job_impl.h"

#include "runtime/text/tok_probe.h"

typedef struct {
    quant_job *j;
    tok *own, *other;
    weft_diag *dg; /* of encoding: a text that fails in both is the same in both */
    tok_ids added; /* tokens looked for in the text */
    tok_ids ids, other_ids;
    strbuf text;
    uint64_t seed;
} comparison;

/* ---- texts ---- */

static void make_plain(comparison *c, size_t i)
{
    (void)i;
    tok_probe_text(i, &c->text);
}

/* Tokens as they may follow each other. */
static void make_words(comparison *c, size_t i)
{
    enum { WORDS = 8 };
    int32_t ids[WORDS];
    (void)i;
    for (size_t k = 0; k < WORDS; k++)
        ids[k] = (int32_t)(tok_probe_next(&c->seed) % (uint32_t)tok_vocab_size(c->own));
    if (tok_decode(c->dg, c->own, ids, WORDS, true, &c->text) != WEFT_OK)
        strbuf_reset(&c->text);
}

static str an_added(comparison *c)
{
    if (c->added.n == 0)
        return STR("");
    return tok_text(c->own, c->added.at[tok_probe_next(&c->seed) % c->added.n]);
}

static void make_spaced(comparison *c, size_t i)
{
    str text = an_added(c);
    strbuf_add(&c->text, i % 2 ? "a \n" STR_FMT "b" : "a" STR_FMT " \n b", STR_ARG(text));
}

static void make_joined(comparison *c, size_t i)
{
    str text = an_added(c), next = an_added(c);
    strbuf_add(&c->text, i % 2 ? "a" STR_FMT "b" : STR_FMT, STR_ARG(text));
    strbuf_put(&c->text, next);
    strbuf_put(&c->text, STR("word"));
}

static void make_around(comparison *c, size_t i)
{
    (void)i;
    strbuf_put(&c->text, STR("a"));
}

/* clang-format off */
static const struct {
    const char *what;
    size_t n;
    void (*make)(comparison *c, size_t i); /* adds text i to c->text */
    bool model;  /* too many others, and the keys are of no use */
    bool around;
} groups[] = {
    {"plain text",                         400, make_plain,  true,  false},
    {"words of the vocabulary",            400, make_words,  true,  false},
    {"white space beside an added token",  200, make_spaced, false, false},
    {"words beside an added token",        200, make_joined, false, false},
    {"the tokens put around a text",         1, make_around, false, true},
};
/* clang-format on */

enum { OTHERS_MAX = 5 }; /* one text in so many */

static bool encode(comparison *c, tok *t, bool around, tok_ids *ids)
{
    tok_encode_flags flags = {.add_special = around, .parse_special = true};
    ids->n = 0;
    diag_reset(c->dg);
    return tok_encode(c->dg, t, strbuf_view(&c->text), flags, ids) == WEFT_OK;
}

static bool text_same(comparison *c, bool around)
{
    bool fine = encode(c, c->own, around, &c->ids);
    if (fine != encode(c, c->other, around, &c->other_ids))
        return false;
    return c->ids.n == c->other_ids.n &&
           (!c->ids.n || memcmp(c->ids.at, c->other_ids.at, c->ids.n * sizeof *c->ids.at) == 0);
}

/* False if the keys are of no use. */
static bool group_same(weft_diag *dg, comparison *c, size_t g, const char **out_why)
{
    size_t others = 0;
    str shortest = {0};
    c->seed = g;
    for (size_t i = 0; i < groups[g].n; i++) {
        strbuf_reset(&c->text);
        groups[g].make(c, i);
        if (text_same(c, groups[g].around))
            continue;
        if (others++ == 0 || c->text.n < shortest.n)
            shortest = arena_str(c->j->a, strbuf_view(&c->text));
    }
    if (others == 0)
        return true;
    if (groups[g].model && others * OTHERS_MAX > groups[g].n) {
        *out_why = arena_printf(c->j->a, "%s gets other tokens, as '" STR_FMT "' does",
                                groups[g].what, STR_ARG(shortest))
                       .p;
        return false;
    }
    weft_fail(dg, W1212, WEFT_NOWHERE,
              "%s: by the usual keys of GGUF %s may get other tokens, as '" STR_FMT "' does",
              model_file_path(c->j->mf), groups[g].what, STR_ARG(shortest));
    return true;
}

/* ---- the keys as a file ---- */

static void find_added(comparison *c, const tok_keys *keys)
{
    enum { CONTROL = 3, USER = 4 };
    for (size_t i = 0; i < keys->n; i++) {
        const value *types = &keys->at[i].v;
        if (!str_eqz(keys->at[i].name, "tokenizer.ggml.token_type"))
            continue;
        for (size_t id = 0; id < value_count(types); id++) {
            value v = value_at(types, id);
            int64_t type;
            if (value_int(&v, &type) && (type == CONTROL || type == USER))
                VEC_PUSH(&c->added, (int32_t)id);
        }
    }
}

static void write_keys(const quant_job *j, const tok_keys *keys, strbuf *out)
{
    gguf_writer *w = gguf_writer_create();
    for (size_t i = 0; i < j->keys.n; i++)
        gguf_writer_key(w, j->keys.at[i].name, j->keys.at[i].v);
    for (size_t i = 0; i < keys->n; i++)
        gguf_writer_key(w, keys->at[i].name, keys->at[i].v);
    gguf_writer_head(w, out);
    gguf_writer_destroy(w);
}

static weft_status read_keys(comparison *c, str file)
{
    model_file *mf;
    WEFT_TRY(model_file_open_memory(c->dg, file.p, file.n, model_file_path(c->j->mf), &mf));
    weft_status st = tok_open_model(c->dg, mf, &c->other);
    model_file_close(mf);
    return st;
}

bool job_text_same(weft_diag *dg, quant_job *j, tok *t, const tok_keys *keys, const char **out_why)
{
    comparison c = {.j = j, .own = t, .dg = diag_create()};
    strbuf file = {0};
    write_keys(j, keys, &file);
    bool same = read_keys(&c, strbuf_view(&file)) == WEFT_OK;
    if (!same)
        *out_why = diag_count(c.dg) ? arena_str(j->a, diag_at(c.dg, 0).message).p : "it is damaged";
    find_added(&c, keys);
    for (size_t g = 0; same && g < sizeof groups / sizeof *groups; g++)
        same = group_same(dg, &c, g, out_why);
    tok_close(c.other);
    VEC_FREE(&c.added);
    VEC_FREE(&c.ids);
    VEC_FREE(&c.other_ids);
    strbuf_free(&c.text);
    strbuf_free(&file);
    diag_destroy(c.dg);
    return same;
}
