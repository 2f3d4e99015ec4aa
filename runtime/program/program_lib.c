/* program_lib.c - the model of a shared library: open, prompt, next, close. */
#include "runtime/program/program_lib.h"

#include "runtime/api/api_impl.h"
#include "runtime/program/program_model.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct program_lib {
    weft_diag *dg;
    weft_model *m;
    weft_tokenizer *text;
    weft_session *s;
    weft_template *chat; /* NULL before the first message */
    weft_generation *g;
    bool ended;
    char *piece;
    size_t piece_bytes; /* that there is room for */
};

/* The file of this library, for external weights; its name in messages. */
static program_options own_file(void)
{
    Dl_info at;
    program_options o = {.name = "library"};
    if (dladdr((const void *)(uintptr_t)program_lib_open, &at) && at.dli_fname) {
        const char *slash = strrchr(at.dli_fname, '/');
        o.path = at.dli_fname;
        o.name = slash ? slash + 1 : at.dli_fname;
    }
    return o;
}

static weft_status open_all(program_lib *s, int threads)
{
    program_options from = own_file();
    WEFT_TRY(program_model_open(s->dg, &from, &s->m));
    WEFT_TRY(weft_tokenizer_of_model(s->dg, s->m, &s->text));
    weft_session_options how = {.size = sizeof how,
                                .threads = threads > 0 ? threads : -1,
                                .wants = 1,
                                .no_weight_cache = true};
    WEFT_TRY(weft_session_create(s->dg, s->m, &how, &s->s));
    WEFT_TRY(program_model_ready(s->dg, s->m, s->s));
    return weft_generation_create(s->dg, s->s, s->text, NULL, &s->g);
}

program_lib *program_lib_open(int threads, char *error, size_t error_bytes)
{
    program_lib *s = calloc(1, sizeof *s);
    if (s)
        s->dg = weft_diag_create();
    if (!s || !s->dg) {
        free(s);
        return NULL;
    }
    s->ended = true;
    if (open_all(s, threads) == WEFT_OK)
        return s;
    if (error && error_bytes)
        snprintf(error, error_bytes, "%s", program_lib_error(s));
    program_lib_close(s);
    return NULL;
}

bool program_lib_sampling(program_lib *s, double temperature, int top_k, double top_p,
                          uint64_t seed)
{
    weft_sampler_options pick = {.size = sizeof pick};
    weft_sampler_defaults(&pick);
    pick.temp = temperature;
    pick.top_k = top_k;
    pick.top_p = top_p;
    pick.seed = seed;
    weft_generation_options o = {.size = sizeof o, .sampler = &pick};
    diag_reset(s->dg);
    return weft_generation_change(s->dg, s->g, &o) == WEFT_OK;
}

static weft_status encode_message(program_lib *s, const char *text, int32_t **ids, size_t *n)
{
    arena *a = arena_create();
    chat_message one = {STR("user"), str_of(text)};
    value all = chat_messages(a, &one, 1);
    chat_request rq = {.messages = &all, .generate = true};
    strbuf out = {0};
    weft_status st = s->chat ? WEFT_OK : weft_template_open(s->dg, s->m, NULL, &s->chat);
    if (st == WEFT_OK)
        st = chat_render(s->dg, s->chat->chat, &rq, &out);
    if (st == WEFT_OK)
        st = weft_encode(s->dg, s->text, out.p ? out.p : "", out.n, WEFT_PARSE_SPECIAL, ids, n);
    strbuf_free(&out);
    arena_destroy(a);
    return st;
}

bool program_lib_prompt(program_lib *s, const char *text, bool chat)
{
    API_SCOPE_OR(false);
    int32_t *ids = NULL;
    size_t n = 0;
    diag_reset(s->dg);
    weft_status st = chat ? encode_message(s, text, &ids, &n)
                          : weft_encode(s->dg, s->text, text, strlen(text),
                                        WEFT_ADD_SPECIAL | WEFT_PARSE_SPECIAL, &ids, &n);
    if (st == WEFT_OK)
        st = weft_generation_prompt(s->dg, s->g, ids, n);
    weft_free(ids);
    s->ended = st != WEFT_OK;
    return st == WEFT_OK;
}

/* The text of a step, with a NUL behind it; NULL without memory for it. */
static const char *keep_piece(program_lib *s, const weft_piece *p)
{
    if (p->bytes + 1 > s->piece_bytes) {
        char *more = realloc(s->piece, p->bytes + 1);
        if (!more)
            return NULL;
        s->piece = more;
        s->piece_bytes = p->bytes + 1;
    }
    memcpy(s->piece, p->text, p->bytes);
    s->piece[p->bytes] = 0;
    return s->piece;
}

const char *program_lib_next(program_lib *s)
{
    while (!s->ended) {
        if (weft_step(s->dg, s->s, &s->g, 1) != WEFT_OK) {
            s->ended = true;
            return NULL;
        }
        const weft_piece *p = weft_generation_piece(s->g);
        s->ended = p->end != WEFT_END_NONE;
        if (p->bytes > 0)
            return keep_piece(s, p);
    }
    return NULL;
}

const char *program_lib_error(const program_lib *s)
{
    return diag_errors(s->dg) ? diag_shown(s->dg) : NULL;
}

void program_lib_close(program_lib *s)
{
    if (!s)
        return;
    weft_generation_destroy(s->g);
    weft_template_close(s->chat);
    weft_session_destroy(s->s);
    weft_tokenizer_close(s->text);
    weft_model_close(s->m);
    weft_diag_destroy(s->dg);
    free(s->piece);
    free(s);
}
