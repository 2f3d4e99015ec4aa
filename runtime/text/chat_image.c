/* chat_image.c - the texts of a chat template, written and read by one function. */
#include "runtime/text/chat_image.h"

#include "runtime/text/chat_impl.h"
#include "runtime/text/image_io.h"
#include "runtime/text/text_parts.h"

enum { VERSION = 1, NAME_MAX_BYTES = 4096 };
static const char magic[4] = {'W', 'C', 'H', 'T'};

typedef struct {
    str origin, usual, tools; /* tools: empty where the usual one does that too */
    size_t n_special;
    str name[CHAT_SPECIALS_MAX], text[CHAT_SPECIALS_MAX];
} chat_parts;

static void parts_io(image_io *x, chat_parts *p)
{
    x->part = "header";
    io_head(x, magic, VERSION);
    io_text(x, &p->origin, NAME_MAX_BYTES);
    x->part = "special tokens";
    p->n_special = io_count(x, p->n_special, 8, CHAT_SPECIALS_MAX);
    for (size_t i = 0; i < p->n_special; i++) {
        io_text(x, &p->name[i], NAME_MAX_BYTES);
        io_text(x, &p->text[i], JINJA_SOURCE_MAX);
    }
    x->part = "template";
    io_text(x, &p->usual, JINJA_SOURCE_MAX);
    io_text(x, &p->tools, JINJA_SOURCE_MAX);
}

void chat_image_write(const chat_template *ct, strbuf *out)
{
    image_io x = {.out = out};
    chat_parts p = {.origin = str_of(ct->origin),
                    .usual = ct->usual_text,
                    .tools = ct->with_tools == ct->usual ? STR("") : ct->tools_text,
                    .n_special = ct->n_special};
    for (size_t i = 0; i < ct->n_special; i++) {
        p.name[i] = ct->specials[i].name;
        bool is_text = value_str(&ct->specials[i].v, &p.text[i]);
        WEFT_ASSERT(is_text);
    }
    parts_io(&x, &p);
}

static weft_status read_parts(weft_diag *dg, const char *name, str bytes, chat_parts *out)
{
    image_io x = {.in = bytes};
    chat_parts p = {0};
    if (bytes.n) {
        parts_io(&x, &p);
        WEFT_TRY(io_done(dg, &x, W1301, name, "chat template"));
    }
    *out = p;
    return WEFT_OK;
}

static weft_status compile_parts(weft_diag *dg, const char *name, chat_template *ct,
                                 const chat_parts *p)
{
    if (!p->usual.n)
        return weft_fail(dg, W1305, WEFT_NOWHERE, "%s has no chat template", name);
    ct->origin = arena_str(ct->home, p->origin).p;
    WEFT_TRY(chat_compile(dg, ct, ct->origin, p->usual, false));
    return p->tools.n ? chat_compile(dg, ct, ct->origin, p->tools, true) : WEFT_OK;
}

weft_status chat_image_open(weft_diag *dg, const char *name, str bytes, const char *choice,
                            chat_template **out_ct)
{
    chat_parts p;
    if (!jinja_here())
        return weft_fail(dg, W1308, WEFT_NOWHERE,
                         "%s was built of a model without a chat template, and renders none", name);
    WEFT_TRY(read_parts(dg, name, bytes, &p));
    chat_template *ct = chat_create();
    for (size_t i = 0; i < p.n_special; i++)
        chat_add_special(ct, arena_str(ct->home, p.name[i]), p.text[i]);
    weft_status st = choice ? chat_choose(dg, ct, choice, false) : compile_parts(dg, name, ct, &p);
    if (st == WEFT_OK)
        *out_ct = ct;
    else
        chat_close(ct);
    return st;
}
