/* request_fields.c - fields that are more than a number or a word: prompts, stops, biases, options of streams. */
#include "runtime/http/request_read.h"

#include <inttypes.h>
#include <math.h>

weft_status body_model(body_reader *r, str param, const value *v)
{
    serve_request *q = r->rq;
    const serve_rules *rules = r->rules;
    WEFT_TRY(body_str(r, param, v, SERVE_WORD_MAX, &q->model));
    str base = str_of(rules->model ? rules->model : "");
    if (!rules->model || str_eq(q->model, base))
        return WEFT_OK;
    str name = q->model;
    if (name.n > base.n && str_starts(name, base) && name.p[base.n] == ':')
        name = (str){name.p + base.n + 1, name.n - base.n - 1};
    for (size_t i = 0; i < rules->n_adapter; i++)
        if (str_eqz(name, rules->adapters[i])) {
            q->adapter = (int)i;
            return WEFT_OK;
        }
    strbuf list = {0};
    strbuf_add(&list, "%s", rules->model);
    for (size_t i = 0; i < rules->n_adapter && list.n < 4096; i++)
        strbuf_add(&list, ", %s:%s", rules->model, rules->adapters[i]);
    weft_status st =
        body_fail(r, W1826, param, "there is no model \"" STR_FMT "\"; there are: " STR_FMT,
                  STR_ARG(q->model), STR_ARG(strbuf_view(&list)));
    strbuf_free(&list);
    return st;
}

/* ---- prompts ---- */

static weft_status one_prompt(body_reader *r, str param, const value *v, serve_prompt *out)
{
    if (value_kind_of(v) == VALUE_STR)
        return body_str(r, param, v, SIZE_MAX, &out->text);
    if (value_kind_of(v) != VALUE_ARRAY)
        return body_fail(r, W1823, param, "is %s, expected a string or a list of token ids",
                         body_kind_name(v));
    if (value_count(v) == 0)
        return body_fail(r, W1823, param, "is an empty list");
    return body_ids(r, param, v, &out->ids, &out->n_id);
}

/* A string, a list of strings, a list of ids, or a list of such lists. */
weft_status body_prompt(body_reader *r, str param, const value *v)
{
    serve_request *q = r->rq;
    size_t n = value_count(v);
    value first = value_kind_of(v) == VALUE_ARRAY && n ? value_at(v, 0) : (value){0};
    int64_t unused;
    bool one = value_kind_of(v) != VALUE_ARRAY || n == 0 || value_int(&first, &unused);
    if (!one && n > SERVE_PROMPTS_MAX)
        return body_fail(r, W1823, param, "has %zu prompts, the limit is %d", n, SERVE_PROMPTS_MAX);
    serve_prompt *at = ARENA_ARRAY(r->a, serve_prompt, one ? 1 : n);
    if (one)
        WEFT_TRY(one_prompt(r, param, v, &at[0]));
    for (size_t i = 0; !one && i < n; i++) {
        value item = value_at(v, i);
        WEFT_TRY(one_prompt(r, body_at(r, param, i), &item, &at[i]));
    }
    q->prompts = at;
    q->n_prompt = one ? 1 : n;
    return WEFT_OK;
}

weft_status body_content(body_reader *r, str param, const value *v)
{
    serve_prompt *p = ARENA_NEW(r->a, serve_prompt);
    WEFT_TRY(body_str(r, param, v, SIZE_MAX, &p->text));
    r->rq->prompts = p;
    r->rq->n_prompt = 1;
    return WEFT_OK;
}

weft_status body_tokens(body_reader *r, str param, const value *v)
{
    serve_prompt *p = ARENA_NEW(r->a, serve_prompt);
    WEFT_TRY(body_ids(r, param, v, &p->ids, &p->n_id));
    r->rq->prompts = p;
    r->rq->n_prompt = 1;
    return WEFT_OK;
}

/* ---- choosing tokens ---- */

static weft_status one_stop(body_reader *r, str param, const value *v, str *out, const char **out_z)
{
    WEFT_TRY(body_str(r, param, v, SERVE_STOP_BYTES_MAX, out));
    if (out->n == 0)
        return body_fail(r, W1823, param, "is empty, and would end every answer at once");
    if (memchr(out->p, 0, out->n))
        return body_fail(r, W1823, param, "has a NUL in it");
    *out_z = arena_str(r->a, *out).p;
    return WEFT_OK;
}

weft_status body_stop(body_reader *r, str param, const value *v)
{
    bool list = value_kind_of(v) == VALUE_ARRAY;
    size_t n = list ? value_count(v) : 1;
    if (n > SERVE_STOPS_MAX)
        return body_fail(r, W1823, param, "has %zu texts, the limit is %d", n, SERVE_STOPS_MAX);
    str *at = ARENA_ARRAY(r->a, str, n ? n : 1);
    const char **z = ARENA_ARRAY(r->a, const char *, n ? n : 1);
    for (size_t i = 0; i < n; i++) {
        value item = list ? value_at(v, i) : *v;
        WEFT_TRY(one_stop(r, list ? body_at(r, param, i) : param, &item, &at[i], &z[i]));
    }
    r->rq->stops = at;
    r->rq->stops_z = z;
    r->rq->n_stop = n;
    return WEFT_OK;
}

/* {"50256": -100}: the names are ids. -100 forbids a token, as OpenAI has it. */
weft_status body_logit_bias(body_reader *r, str param, const value *v)
{
    WEFT_TRY(body_want(r, param, v, VALUE_OBJECT));
    size_t n = value_count(v);
    if (n > SERVE_BIAS_MAX)
        return body_fail(r, W1823, param, "has %zu tokens, the limit is %d", n, SERVE_BIAS_MAX);
    logit_bias *at = ARENA_ARRAY(r->a, logit_bias, n ? n : 1);
    int64_t hi = r->rules->vocab > 0 ? r->rules->vocab - 1 : INT32_MAX;
    for (size_t i = 0; i < n; i++) {
        const value_member *m = &v->as.object.members[i];
        int64_t id = m->name.n ? 0 : -1;
        double bias;
        for (size_t k = 0; k < m->name.n && id >= 0; k++)
            id = m->name.p[k] >= '0' && m->name.p[k] <= '9' && id <= hi
                     ? id * 10 + (m->name.p[k] - '0')
                     : -1;
        if (id < 0 || id > hi)
            return body_fail(r, W1823, param,
                             "\"" STR_FMT "\" is not a token id from 0 to %" PRId64,
                             STR_ARG(((str){m->name.p, m->name.n < 32 ? m->name.n : 32})), hi);
        WEFT_TRY(body_num(r, param, &m->v, -100, 100, &bias));
        at[i] = (logit_bias){(int32_t)id, bias <= -100 ? -INFINITY : (float)bias};
    }
    r->rq->sampler.bias = at;
    r->rq->sampler.n_bias = n;
    return WEFT_OK;
}

/* A switch for chats; for completions how many of the likeliest, where 0 still gives those of the tokens that came. */
weft_status body_logprobs(body_reader *r, str param, const value *v)
{
    if (r->rq->kind == SERVE_CHAT)
        return body_bool(r, param, v, &r->rq->logprobs);
    WEFT_TRY(body_int(r, param, v, 0, SERVE_LOGPROBS_MAX, &r->rq->top_logprobs));
    r->rq->logprobs = true;
    return WEFT_OK;
}

weft_status body_seed(body_reader *r, str param, const value *v)
{
    int64_t seed;
    WEFT_TRY(body_int(r, param, v, INT64_MIN, INT64_MAX, &seed));
    r->rq->sampler.seed = (uint64_t)seed;
    r->rq->seeded = true;
    return WEFT_OK;
}

/* ---- the template ---- */

/* Another variable of the template; one that is there already is replaced. */
static void add_variable(body_reader *r, const char *name, value v)
{
    size_t n = r->rq->variables ? r->rq->variables->as.object.n : 0, k = 0;
    value_member *m = ARENA_ARRAY(r->a, value_member, n + 1);
    for (size_t i = 0; i < n; i++)
        if (!str_eqz(r->rq->variables->as.object.members[i].name, name))
            m[k++] = r->rq->variables->as.object.members[i];
    m[k++] = (value_member){str_of(name), v};
    value *all = ARENA_NEW(r->a, value);
    *all = body_object(r, m, k);
    r->rq->variables = all;
}

weft_status body_kwargs(body_reader *r, str param, const value *v)
{
    WEFT_TRY(body_want(r, param, v, VALUE_OBJECT));
    if (value_count(v) > 64)
        return body_fail(r, W1823, param, "has %zu members, the limit is 64", value_count(v));
    for (size_t i = 0; i < v->as.object.n; i++) {
        str name = v->as.object.members[i].name;
        if (str_eqz(name, "messages") || str_eqz(name, "tools") ||
            str_eqz(name, "add_generation_prompt"))
            return body_fail(r, W1823, body_under(r, param, arena_str(r->a, name).p),
                             "is a field of the request itself");
    }
    r->rq->variables = v;
    return WEFT_OK;
}

weft_status body_reasoning_effort(body_reader *r, str param, const value *v)
{
    static const char words[] = "none minimal low medium high xhigh max";
    int i;
    WEFT_TRY(body_word(r, param, v, words, &i));
    add_variable(r, "reasoning_effort", value_of_str(word_at(words, i)));
    r->rq->effort = true;
    /* What templates of models that can do without call it. */
    if (i == 0)
        add_variable(r, "enable_thinking", value_of_bool(false));
    return WEFT_OK;
}

weft_status body_reasoning(body_reader *r, str param, const value *v)
{
    static const struct {
        const char *name, *usual, *why; /* usual: the value that asks for nothing */
    } no[] = {
        {"summary", NULL, "reasoning is not summed up"},
        {"generate_summary", NULL, "reasoning is not summed up"},
        {"context", "auto", "the chat template decides which reasoning the model sees again"},
        {"mode", "standard", "there is one mode"},
    };
    WEFT_TRY(body_members(r, param, v, "effort summary generate_summary context mode"));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        str s, p = body_under(r, param, no[i].name);
        if (!body_get(v, no[i].name))
            continue;
        WEFT_TRY(body_str(r, p, body_get(v, no[i].name), SERVE_WORD_MAX, &s));
        if (!no[i].usual || !str_eqz(s, no[i].usual))
            return body_fail(r, W1825, p, "\"" STR_FMT "\" is not supported: %s", STR_ARG(s),
                             no[i].why);
    }
    const value *effort = body_get(v, "effort");
    return effort ? body_reasoning_effort(r, body_under(r, param, "effort"), effort) : WEFT_OK;
}

weft_status body_documents(body_reader *r, str param, const value *v)
{
    WEFT_TRY(body_want(r, param, v, VALUE_ARRAY));
    r->rq->documents = value_count(v) ? v : NULL;
    return WEFT_OK;
}

/* ---- the answer's way back ---- */

weft_status body_stream_options(body_reader *r, str param, const value *v)
{
    WEFT_TRY(body_members(r, param, v, "include_usage include_obfuscation"));
    const value *usage = body_get(v, "include_usage"), *hide = body_get(v, "include_obfuscation");
    bool obfuscate = false;
    if (usage)
        WEFT_TRY(body_bool(r, body_under(r, param, "include_usage"), usage, &r->rq->stream_usage));
    if (hide)
        WEFT_TRY(body_bool(r, body_under(r, param, "include_obfuscation"), hide, &obfuscate));
    if (obfuscate)
        return body_fail(r, W1825, body_under(r, param, "include_obfuscation"),
                         "is not supported: events are as long as their text");
    return WEFT_OK;
}

weft_status body_encoding_format(body_reader *r, str param, const value *v)
{
    int i;
    WEFT_TRY(body_word(r, param, v, "float base64", &i));
    r->rq->base64 = i == 1;
    return WEFT_OK;
}

weft_status body_priority(body_reader *r, str param, const value *v)
{
    int64_t p;
    WEFT_TRY(body_int(r, param, v, -100, 100, &p));
    if (p > r->rules->priority_max)
        return body_fail(r, W1823, param, "is %" PRId64 ", this key may ask for %d", p,
                         r->rules->priority_max);
    r->rq->priority = (int)p;
    return WEFT_OK;
}

weft_status body_service_tier(body_reader *r, str param, const value *v)
{
    int i;
    WEFT_TRY(body_word(r, param, v, "auto default flex priority scale", &i));
    if (i > 1)
        return body_fail(r, W1825, param,
                         "is not supported: there is one tier; `priority` orders requests");
    return WEFT_OK;
}

weft_status body_truncation(body_reader *r, str param, const value *v)
{
    int i;
    WEFT_TRY(body_word(r, param, v, "disabled auto", &i));
    if (i == 1)
        return body_fail(r, W1825, param,
                         "is not supported: what does not fit the context is refused");
    return WEFT_OK;
}

weft_status body_include(body_reader *r, str param, const value *v)
{
    WEFT_TRY(body_want(r, param, v, VALUE_ARRAY));
    for (size_t i = 0; i < value_count(v); i++) {
        value item = value_at(v, i);
        str s;
        WEFT_TRY(body_str(r, body_at(r, param, i), &item, SERVE_WORD_MAX, &s));
        if (!str_eqz(s, "message.output_text.logprobs"))
            return body_fail(r, W1825, body_at(r, param, i),
                             "\"" STR_FMT
                             "\" is not supported; \"message.output_text.logprobs\" is",
                             STR_ARG(s));
        r->rq->logprobs = true;
    }
    return WEFT_OK;
}

/* Sent back with the response, which is all that a server without a store can do with it. */
weft_status body_metadata(body_reader *r, str param, const value *v)
{
    WEFT_TRY(body_want(r, param, v, VALUE_OBJECT));
    if (value_count(v) > 16)
        return body_fail(r, W1823, param, "has %zu members, the limit is 16", value_count(v));
    for (size_t i = 0; i < v->as.object.n; i++) {
        str s;
        str name = arena_str(r->a, v->as.object.members[i].name);
        WEFT_TRY(body_str(r, body_under(r, param, name.p), &v->as.object.members[i].v,
                          SERVE_WORD_MAX, &s));
    }
    r->rq->metadata = v;
    return WEFT_OK;
}

weft_status body_modalities(body_reader *r, str param, const value *v)
{
    WEFT_TRY(body_want(r, param, v, VALUE_ARRAY));
    for (size_t i = 0; i < value_count(v); i++) {
        value item = value_at(v, i);
        str s;
        WEFT_TRY(body_str(r, body_at(r, param, i), &item, SERVE_WORD_MAX, &s));
        if (!str_eqz(s, "text"))
            return body_fail(r, W1825, body_at(r, param, i),
                             "\"" STR_FMT "\" is not supported: the model writes text", STR_ARG(s));
    }
    return WEFT_OK;
}

weft_status body_verbosity(body_reader *r, str param, const value *v)
{
    int i;
    WEFT_TRY(body_word(r, param, v, "low medium high", &i));
    if (i != 1)
        return body_fail(r, W1825, param,
                         "is not supported: say in a message how long answers should be");
    return WEFT_OK;
}

weft_status body_label(body_reader *r, str param, const value *v)
{
    str s;
    return body_str(r, param, v, SERVE_WORD_MAX, &s);
}
