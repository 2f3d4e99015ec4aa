/* chat.c - handing a chat template what transformers would. */
#include "runtime/text/chat.h"

#include "runtime/base/vec.h"
#include "runtime/text/chat_builtin.h"
#include "runtime/text/chat_impl.h"
#include "runtime/text/text_parts.h"

/* ---- making one ---- */

chat_template *chat_create(void)
{
    arena *home = arena_create();
    chat_template *ct = ARENA_NEW(home, chat_template);
    ct->home = home;
    return ct;
}

void chat_add_special(chat_template *ct, str variable, str text)
{
    WEFT_ASSERT(ct->n_special < CHAT_SPECIALS_MAX);
    value v = value_of_str(arena_str(ct->home, text));
    ct->specials[ct->n_special++] = (jinja_var){variable, v};
}

weft_status chat_compile(weft_diag *dg, chat_template *ct, const char *name, str text, bool tools)
{
    *(tools ? &ct->tools_text : &ct->usual_text) = arena_str(ct->home, text);
    return jinja_here()->compile(dg, ct->home, name, text, tools ? &ct->with_tools : &ct->usual);
}

weft_status chat_compile_file(weft_diag *dg, chat_template *ct, const char *path, bool tools)
{
    source *src;
    WEFT_TRY(source_open(dg, ct->home, path, JINJA_SOURCE_MAX, &src));
    return chat_compile(dg, ct, src->name, src->text, tools);
}

weft_status chat_choose(weft_diag *dg, chat_template *ct, const char *choice, bool file_only)
{
    const char *text = file_only ? NULL : chat_builtin_find(choice);
    if (text) {
        ct->origin = arena_printf(ct->home, "%s (built in)", choice).p;
        return chat_compile(dg, ct, ct->origin, str_of(text), false);
    }
    ct->origin = arena_str(ct->home, str_of(choice)).p;
    weft_status st = chat_compile_file(dg, ct, choice, false);
    if (st == WEFT_ERR_FILE && !file_only && !strchr(choice, '/')) {
        strbuf names = {0};
        for (size_t i = 0; i < chat_builtin_count(); i++)
            strbuf_add(&names, "%s%s", i ? ", " : "", chat_builtin_name(i));
        weft_note(dg, "the built-in templates are " STR_FMT, STR_ARG(names));
        strbuf_free(&names);
    }
    return st;
}

void chat_close(chat_template *ct)
{
    if (ct)
        arena_destroy(ct->home);
}

const char *chat_origin(const chat_template *ct)
{
    return ct->origin;
}

/* ---- rendering ---- */

typedef VEC(jinja_var) var_list;

static void push(var_list *vars, str name, const value *v)
{
    VEC_PUSH(vars, ((jinja_var){name, v ? *v : (value){.type = VT_NULL}}));
}

static void push_all(var_list *vars, const value *object)
{
    for (size_t i = 0; value_kind_of(object) == VALUE_OBJECT && i < object->as.object.n; i++)
        push(vars, object->as.object.members[i].name, &object->as.object.members[i].v);
}

weft_status chat_check_text(weft_diag *dg, const char *what, str text)
{
    size_t bad;
    if (uni_check(text, &bad))
        return WEFT_OK;
    return weft_fail(dg, W1207, WEFT_NOWHERE, "%s is not UTF-8: byte 0x%02x at %zu", what,
                     (unsigned char)text.p[bad], bad);
}

/* All texts inside v; `what` names it. A value from JSON nests as deep as its reader allows. */
static weft_status check_texts(weft_diag *dg, const char *what, const value *v)
{
    str text;
    if (value_str(v, &text))
        return chat_check_text(dg, what, text);
    for (size_t i = 0; value_kind_of(v) == VALUE_ARRAY && i < value_count(v); i++) {
        value item = value_at(v, i);
        WEFT_TRY(check_texts(dg, what, &item));
    }
    for (size_t i = 0; value_kind_of(v) == VALUE_OBJECT && i < v->as.object.n; i++)
        WEFT_TRY(check_texts(dg, what, &v->as.object.members[i].v));
    return WEFT_OK;
}

static weft_status check_message(weft_diag *dg, size_t i, const value *m)
{
    if (value_kind_of(m) != VALUE_OBJECT)
        return weft_fail(dg, W1306, WEFT_NOWHERE, "message %zu is not an object", i);
    for (size_t k = 0; k < m->as.object.n; k++) {
        strbuf what = {0};
        strbuf_add(&what, "`" STR_FMT "` of message %zu", STR_ARG(m->as.object.members[k].name), i);
        weft_status st = check_texts(dg, what.p, &m->as.object.members[k].v);
        strbuf_free(&what);
        if (st != WEFT_OK)
            return st;
    }
    return WEFT_OK;
}

static weft_status check_messages(weft_diag *dg, const value *messages)
{
    if (value_kind_of(messages) != VALUE_ARRAY)
        return weft_fail(dg, W1306, WEFT_NOWHERE, "messages are a list");
    for (size_t i = 0; i < value_count(messages); i++) {
        value m = value_at(messages, i);
        WEFT_TRY(check_message(dg, i, &m));
    }
    return WEFT_OK;
}

weft_status chat_render(weft_diag *dg, const chat_template *ct, const chat_request *rq, strbuf *out)
{
    WEFT_TRY(check_messages(dg, rq->messages));
    struct tm now = {0};
    time_t clock = time(NULL);
    if (rq->now)
        now = *rq->now;
    else
        localtime_r(&clock, &now);
    var_list vars = {0};
    value generate = value_of_bool(rq->generate);
    for (size_t i = 0; i < ct->n_special; i++)
        VEC_PUSH(&vars, ct->specials[i]);
    push(&vars, STR("messages"), rq->messages);
    push(&vars, STR("tools"), rq->tools);
    push(&vars, STR("documents"), rq->documents);
    push_all(&vars, rq->variables);
    push(&vars, STR("add_generation_prompt"), &generate);
    push_all(&vars, rq->overrides);
    bool tools = value_kind_of(rq->tools) == VALUE_ARRAY;
    weft_status st = jinja_here()->render(dg, tools && ct->with_tools ? ct->with_tools : ct->usual,
                                          vars.at, vars.n, &now, NULL, out);
    VEC_FREE(&vars);
    return st;
}

value chat_messages(arena *a, const chat_message *messages, size_t n)
{
    value *items = ARENA_ARRAY(a, value, n);
    for (size_t i = 0; i < n; i++) {
        value_member *m = ARENA_ARRAY(a, value_member, 2);
        size_t twice;
        m[0] = (value_member){STR("role"), value_of_str(messages[i].role)};
        m[1] = (value_member){STR("content"), value_of_str(messages[i].content)};
        value_of_members(a, m, 2, &items[i], &twice);
    }
    return value_of_array(VT_NULL, items, n);
}
