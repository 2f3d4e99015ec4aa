/* serve_request.c - a body, field by field through the table, then what fields say together. */
#include "runtime/http/request_read.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

typedef enum {
    FIELD_IS_FN,
    FIELD_IS_BOOL,
    FIELD_IS_NOT,
    FIELD_IS_INT,
    FIELD_IS_NUM,
    FIELD_IS_OFF
} field_is;

typedef struct {
    serve_field_row pub; /* first, so that a row is one of those too */
    field_is is;
    size_t offset;
    double lo, hi;
    body_fn *fn;
} field_row;

/* The member's place, and a compile-time check of its type. */
#define MEMBER_AT(m, type)                                                                         \
    (offsetof(serve_request, m) + 0 * sizeof(_Generic(((serve_request *)0)->m, type : 1)))

/* clang-format off */
static const field_row fields[] = {
#define FIELD_FN(kinds, name, function)       {{#name, kinds, NULL}, FIELD_IS_FN, 0, 0, 0, function},
#define FIELD_BOOL(kinds, name, m)            {{#name, kinds, NULL}, FIELD_IS_BOOL, MEMBER_AT(m, bool), 0, 0, NULL},
#define FIELD_NOT(kinds, name, m)             {{#name, kinds, NULL}, FIELD_IS_NOT, MEMBER_AT(m, bool), 0, 0, NULL},
#define FIELD_INT(kinds, name, m, from, to)   {{#name, kinds, NULL}, FIELD_IS_INT, MEMBER_AT(m, int64_t), from, to, NULL},
#define FIELD_NUM(kinds, name, m, from, to)   {{#name, kinds, NULL}, FIELD_IS_NUM, MEMBER_AT(m, double), from, to, NULL},
#define FIELD_OFF(kinds, name, why)           {{#name, kinds, why},  FIELD_IS_OFF, 0, 0, 0, NULL},
#include "runtime/http/serve_fields.def"
};
/* clang-format on */

enum { FIELDS_N = sizeof fields / sizeof *fields };

const serve_field_row *serve_field_at(size_t i)
{
    return i < FIELDS_N ? &fields[i].pub : NULL;
}

sampler_options serve_sampler_defaults(void)
{
    sampler_options o = sampler_defaults();
    o.temp = 1;
    o.top_k = 0;
    o.top_p = 1;
    o.min_p = 0;
    o.last_n = -1;
    return o;
}

/* ---- what readers share ---- */

weft_status body_fail(body_reader *r, weft_code code, str param, const char *fmt, ...)
{
    va_list ap;
    strbuf text = {0};
    va_start(ap, fmt);
    strbuf_vadd(&text, fmt, ap);
    va_end(ap);
    r->rq->fault_param = arena_str(r->a, param);
    weft_status st =
        param.n ? weft_fail(r->dg, code, WEFT_NOWHERE, STR_FMT ": " STR_FMT, STR_ARG(param),
                            STR_ARG(strbuf_view(&text)))
                : weft_fail(r->dg, code, WEFT_NOWHERE, STR_FMT, STR_ARG(strbuf_view(&text)));
    strbuf_free(&text);
    return st;
}

const char *body_kind_name(const value *v)
{
    static const char *const names[] = {"null",     "a boolean", "a number", "a number",
                                        "a string", "a list",    "an object"};
    return names[value_kind_of(v)];
}

bool body_absent(const value *v)
{
    return value_kind_of(v) == VALUE_NULL;
}

const value *body_get(const value *v, const char *name)
{
    const value *m = value_get(v, str_of(name));
    return body_absent(m) ? NULL : m;
}

str body_under(body_reader *r, str param, const char *name)
{
    return param.n ? arena_printf(r->a, STR_FMT ".%s", STR_ARG(param), name)
                   : arena_str(r->a, str_of(name));
}

str body_at(body_reader *r, str param, size_t i)
{
    return arena_printf(r->a, STR_FMT "[%zu]", STR_ARG(param), i);
}

value body_object(body_reader *r, value_member *m, size_t n)
{
    value v;
    size_t twice;
    bool differ = value_of_members(r->a, m, n, &v, &twice);
    WEFT_ASSERT(differ);
    return v;
}

weft_status body_want(body_reader *r, str param, const value *v, value_kind kind)
{
    if (value_kind_of(v) == kind)
        return WEFT_OK;
    value want = {.type = kind == VALUE_BOOL    ? VT_BOOL
                          : kind == VALUE_STR   ? VT_STR
                          : kind == VALUE_ARRAY ? VT_ARRAY
                                                : VT_OBJECT};
    return body_fail(r, W1823, param, "is %s, expected %s", body_kind_name(v),
                     body_kind_name(&want));
}

weft_status body_str(body_reader *r, str param, const value *v, size_t bytes_max, str *out)
{
    str s;
    WEFT_TRY(body_want(r, param, v, VALUE_STR));
    if (!value_str(v, &s))
        s = STR("");
    if (s.n > bytes_max)
        return body_fail(r, W1823, param, "has %zu bytes, the limit is %zu", s.n, bytes_max);
    *out = s;
    return WEFT_OK;
}

weft_status body_bool(body_reader *r, str param, const value *v, bool *out)
{
    WEFT_TRY(body_want(r, param, v, VALUE_BOOL));
    (void)value_bool(v, out);
    return WEFT_OK;
}

weft_status body_int(body_reader *r, str param, const value *v, int64_t lo, int64_t hi,
                     int64_t *out)
{
    int64_t x;
    double f;
    if (!value_int(v, &x)) {
        if (value_float(v, &f))
            return body_fail(r, W1823, param,
                             "is %.17g, expected a whole number from %" PRId64 " to %" PRId64, f,
                             lo, hi);
        return body_fail(r, W1823, param,
                         "is %s, expected a whole number from %" PRId64 " to %" PRId64,
                         body_kind_name(v), lo, hi);
    }
    if (x < lo || x > hi)
        return body_fail(r, W1823, param, "is %" PRId64 ", expected %" PRId64 " to %" PRId64, x, lo,
                         hi);
    *out = x;
    return WEFT_OK;
}

weft_status body_num(body_reader *r, str param, const value *v, double lo, double hi, double *out)
{
    double x;
    if (!value_float(v, &x))
        return body_fail(r, W1823, param, "is %s, expected a number from %g to %g",
                         body_kind_name(v), lo, hi);
    if (!(x >= lo && x <= hi))
        return body_fail(r, W1823, param, "is %g, expected %g to %g", x, lo, hi);
    *out = x;
    return WEFT_OK;
}

weft_status body_word(body_reader *r, str param, const value *v, const char *words, int *out_i)
{
    str s;
    WEFT_TRY(body_str(r, param, v, SERVE_WORD_MAX, &s));
    /* word_find takes one word; a blank in s would let it match across several. */
    int i = s.n && !memchr(s.p, ' ', s.n) ? word_find(words, s) : -1;
    if (i < 0)
        return body_fail(r, W1823, param, "is \"" STR_FMT "\", expected one of: %s", STR_ARG(s),
                         words);
    *out_i = i;
    return WEFT_OK;
}

weft_status body_ids(body_reader *r, str param, const value *v, const int32_t **out_ids,
                     size_t *out_n)
{
    WEFT_TRY(body_want(r, param, v, VALUE_ARRAY));
    size_t n = value_count(v);
    int32_t *ids = ARENA_ARRAY(r->a, int32_t, n ? n : 1);
    int64_t hi = r->rules->vocab > 0 ? r->rules->vocab - 1 : INT32_MAX;
    for (size_t i = 0; i < n; i++) {
        value item = value_at(v, i);
        int64_t id;
        /* The name of an item is made only where it is wrong: there may be many. */
        if (!value_int(&item, &id) || id < 0 || id > hi)
            return body_int(r, body_at(r, param, i), &item, 0, hi, &id);
        ids[i] = (int32_t)id;
    }
    *out_ids = ids;
    *out_n = n;
    return WEFT_OK;
}

weft_status body_members(body_reader *r, str param, const value *v, const char *words)
{
    WEFT_TRY(body_want(r, param, v, VALUE_OBJECT));
    for (size_t i = 0; i < v->as.object.n; i++) {
        const value_member *m = &v->as.object.members[i];
        bool known =
            m->name.n && !memchr(m->name.p, ' ', m->name.n) && word_find(words, m->name) >= 0;
        if (known || body_absent(&m->v))
            continue;
        str name = arena_str(r->a, m->name);
        weft_status st = body_fail(r, W1822, body_under(r, param, name.p),
                                   "there is no such field here; known are: %s", words);
        return st;
    }
    return WEFT_OK;
}

/* ---- the table ---- */

static weft_status read_off(body_reader *r, const field_row *f, str param, const value *v)
{
    bool on = true;
    bool empty = value_bool(v, &on) ? !on
                 : value_kind_of(v) == VALUE_ARRAY || value_kind_of(v) == VALUE_OBJECT
                     ? value_count(v) == 0
                     : false;
    return empty ? WEFT_OK : body_fail(r, W1825, param, "is not supported: %s", f->pub.refused);
}

static weft_status read_field(body_reader *r, const field_row *f, const value *v)
{
    str param = str_of(f->pub.name);
    void *at = (char *)r->rq + f->offset;
    switch (f->is) {
    case FIELD_IS_FN:
        return f->fn(r, param, v);
    case FIELD_IS_BOOL:
        return body_bool(r, param, v, at);
    case FIELD_IS_NOT: {
        bool b;
        WEFT_TRY(body_bool(r, param, v, &b));
        *(bool *)at = !b;
        return WEFT_OK;
    }
    case FIELD_IS_INT:
        return body_int(r, param, v, (int64_t)f->lo, (int64_t)f->hi, at);
    case FIELD_IS_NUM:
        return body_num(r, param, v, f->lo, f->hi, at);
    case FIELD_IS_OFF:
        break;
    }
    return read_off(r, f, param, v);
}

/* A member that no row of this kind has. */
static weft_status check_known(body_reader *r, const value_member *m)
{
    str_guess best = {0};
    for (size_t i = 0; i < FIELDS_N; i++) {
        if (!(fields[i].pub.kinds & (int)r->rq->kind))
            continue;
        if (str_eqz(m->name, fields[i].pub.name))
            return WEFT_OK;
        str_guess_try(&best, m->name, str_of(fields[i].pub.name));
    }
    str name = m->name.n > SERVE_WORD_MAX ? (str){m->name.p, SERVE_WORD_MAX} : m->name;
    if (best.name.n)
        return body_fail(r, W1822, name, "there is no such field here; did you mean `" STR_FMT "`?",
                         STR_ARG(best.name));
    return body_fail(r, W1822, name, "there is no such field here");
}

/* In the order of the table, so that a field may look at what those before it gave. */
static weft_status read_fields(body_reader *r)
{
    for (size_t i = 0; i < r->body->as.object.n; i++)
        WEFT_TRY(check_known(r, &r->body->as.object.members[i]));
    for (size_t i = 0; i < FIELDS_N; i++) {
        const value *v =
            fields[i].pub.kinds & (int)r->rq->kind ? body_get(r->body, fields[i].pub.name) : NULL;
        if (v)
            WEFT_TRY(read_field(r, &fields[i], v));
    }
    return WEFT_OK;
}

/* ---- what fields say together ---- */

/* Fields of which one is another name for the other, and ways to say the form of an answer: one at most. */
static weft_status check_once(body_reader *r)
{
    static const char *const same[][2] = {
        {"max_tokens", "max_completion_tokens"},
        {"repeat_penalty", "repetition_penalty"},
        {"grammar", "regex"},
        {"grammar", "json_schema"},
        {"regex", "json_schema"},
        {"response_format", "grammar"},
        {"response_format", "regex"},
        {"response_format", "json_schema"},
        {"text", "grammar"},
        {"text", "regex"},
        {"text", "json_schema"},
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (body_get(r->body, same[i][0]) && body_get(r->body, same[i][1]))
            return body_fail(r, W1823, str_of(same[i][1]),
                             "stands beside `%s`; send one of the two", same[i][0]);
    return WEFT_OK;
}

static weft_status check_present(body_reader *r)
{
    static const struct {
        serve_kind kind;
        const char *name;
    } needed[] = {
        {SERVE_CHAT, "messages"},     {SERVE_TEMPLATE, "messages"}, {SERVE_RESPONSE, "input"},
        {SERVE_COMPLETION, "prompt"}, {SERVE_EMBEDDING, "input"},   {SERVE_TOKENIZE, "content"},
        {SERVE_DETOKENIZE, "tokens"},
    };
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (needed[i].kind == r->rq->kind && !body_get(r->body, needed[i].name))
            return body_fail(r, W1824, str_of(needed[i].name), "is missing");
    return WEFT_OK;
}

static weft_status check_choices(body_reader *r)
{
    serve_request *q = r->rq;
    int64_t most = r->rules->choices_max > 0 ? r->rules->choices_max : SERVE_CHOICES_MAX;
    int64_t prompts = q->kind == SERVE_COMPLETION ? (int64_t)q->n_prompt : 1;
    if (q->best_of == 0)
        q->best_of = q->n;
    if (q->best_of < q->n)
        return body_fail(r, W1823, STR("best_of"), "is %" PRId64 ", less than n, which is %" PRId64,
                         q->best_of, q->n);
    if (q->best_of > q->n && q->stream)
        return body_fail(r, W1823, STR("best_of"),
                         "which answers are the best is known at the end: not with `stream`");
    if (prompts * q->best_of > most)
        return body_fail(r, W1823, body_get(r->body, "best_of") ? STR("best_of") : STR("n"),
                         "asks for %" PRId64 " answers to %" PRId64
                         " prompts, the server gives %" PRId64 " at once",
                         q->best_of, prompts, most);
    return WEFT_OK;
}

/* Calls that may come, or not. What the model writes around a call of its own is free text, so that only an answer which has to be
 * JSON anyway can be kept to the tools' schemas. */
static weft_status check_auto(body_reader *r)
{
    serve_request *q = r->rq;
    if (q->tool_choice != SERVE_TOOLS_AUTO)
        return WEFT_OK;
    if (q->format.kind == SERVE_FORMAT_REGEX || q->format.kind == SERVE_FORMAT_GRAMMAR)
        return body_fail(r, W1825, STR("tools"),
                         "are not supported beside a regular expression or a grammar, which leave "
                         "no room for a call: set `tool_choice` to \"none\"");
    for (size_t i = 0; q->format.kind == SERVE_FORMAT_TEXT && i < q->n_tool; i++)
        if (q->tool_at[i].strict)
            return body_fail(
                r, W1825,
                body_under(r, body_at(r, STR("tools"), i),
                           q->kind == SERVE_RESPONSE ? "strict" : "function.strict"),
                "is not supported where a call may come or not: set `tool_choice` to \"required\" "
                "or to a function, or `strict` to false");
    return WEFT_OK;
}

static weft_status check_together(body_reader *r)
{
    serve_request *q = r->rq;
    WEFT_TRY(check_present(r));
    if (!(q->kind & SERVE_GENERATES))
        return WEFT_OK;
    WEFT_TRY(check_once(r));
    WEFT_TRY(check_choices(r));
    if (q->kind == SERVE_CHAT && q->top_logprobs > 0 && !q->logprobs)
        return body_fail(r, W1823, STR("top_logprobs"), "needs `logprobs` to be true");
    if (q->kind == SERVE_RESPONSE && q->top_logprobs > 0 && !q->logprobs)
        return body_fail(r, W1823, STR("top_logprobs"),
                         "needs \"message.output_text.logprobs\" in `include`");
    if (q->echo && q->logprobs)
        return body_fail(r, W1825, STR("echo"),
                         "is not supported together with `logprobs`: a prompt's tokens have none");
    if (!q->stream && body_get(r->body, "stream_options"))
        return body_fail(r, W1823, STR("stream_options"), "needs `stream` to be true");
    if (q->no_answer && q->kind == SERVE_CHAT && q->format.kind != SERVE_FORMAT_TEXT)
        return body_fail(r, W1823, STR("add_generation_prompt"),
                         "an answer of a given form needs the place where it begins");
    if (q->max_tokens && q->min_tokens > q->max_tokens)
        return body_fail(r, W1823, STR("min_tokens"),
                         "is %" PRId64 ", more than `max_tokens`, which is %" PRId64, q->min_tokens,
                         q->max_tokens);
    if (q->n_tool == 0 &&
        (q->tool_choice == SERVE_TOOLS_REQUIRED || q->tool_choice == SERVE_TOOLS_ONE))
        return body_fail(r, W1823, STR("tool_choice"), "asks for a call, and there are no `tools`");
    if (q->format.kind != SERVE_FORMAT_TEXT &&
        (q->tool_choice == SERVE_TOOLS_REQUIRED || q->tool_choice == SERVE_TOOLS_ONE))
        return body_fail(r, W1823, STR("tool_choice"),
                         "asks for a call, and the answer has to be of another form");
    WEFT_TRY(check_auto(r));
    /* OpenAI's own default, without which a base model goes on until the context is full. */
    if (q->kind == SERVE_COMPLETION && !q->max_tokens)
        q->max_tokens = 16;
    return WEFT_OK;
}

weft_status serve_request_read(weft_diag *dg, arena *a, serve_kind kind, str body,
                               const serve_rules *rules, serve_request *out_rq)
{
    value v;
    *out_rq = (serve_request){
        .kind = kind,
        .adapter = -1,
        .sampler = rules->sampler,
        .n = 1,
        .tool_one = -1,
        .timeout_ms = rules->timeout_ms,
        .parallel_tool_calls = true,
        .skip_special = false,
    };
    body_reader r = {.dg = dg, .a = a, .rules = rules, .body = &v, .rq = out_rq};
    if (body.n > rules->body_max)
        return body_fail(&r, W1829, (str){0}, "the body has %zu bytes, the limit is %zu", body.n,
                         rules->body_max);
    WEFT_TRY(json_read(dg, a, "body", body,
                       (json_limits){.bytes_max = rules->body_max,
                                     .values_max = SERVE_VALUES_MAX,
                                     .depth_max = SERVE_DEPTH_MAX,
                                     .exact = true},
                       &v));
    if (value_kind_of(&v) != VALUE_OBJECT)
        return body_fail(&r, W1821, (str){0}, "the body is %s, expected an object",
                         body_kind_name(&v));
    WEFT_TRY(read_fields(&r));
    return check_together(&r);
}
