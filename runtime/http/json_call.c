/* json_call.c - a machine with a state for every place between the members of an object.
 *
 * It is no judge of JSON: inside of arguments only brackets and strings count, so that what the model wrote reaches the client
 * as it is. */
#include "runtime/http/json_call.h"

enum {
    AT_START, /* before { */
    AT_KEY,   /* before a key, or } of an empty object */
    AT_IN_KEY,
    AT_COLON,
    AT_VALUE, /* before a value */
    AT_STRING,
    AT_NESTED,  /* inside of { or [ */
    AT_LITERAL, /* a number, true, false, null */
    AT_AFTER,   /* behind a value */
    AT_DONE,
    AT_BAD,
};

enum { OF_OTHER, OF_NAME, OF_ARGS };

enum { KEY_MAX = 256, NAME_MAX = 256, CALL_DEPTH_MAX = 256 };

void json_call_begin(json_call *c)
{
    strbuf key = c->key, name = c->name, args = c->args;
    strbuf_reset(&key);
    strbuf_reset(&name);
    strbuf_reset(&args);
    *c = (json_call){.key = key, .name = name, .args = args};
}

void json_call_free(json_call *c)
{
    strbuf_free(&c->key);
    strbuf_free(&c->name);
    strbuf_free(&c->args);
}

static bool is_blank(char b)
{
    return b == ' ' || b == '\t' || b == '\n' || b == '\r';
}

static void put_utf8(strbuf *out, uint32_t cp)
{
    if (cp < 0x80) {
        strbuf_putc(out, (char)cp);
    } else if (cp < 0x800) {
        strbuf_putc(out, (char)(0xc0 | cp >> 6));
        strbuf_putc(out, (char)(0x80 | (cp & 0x3f)));
    } else if (cp < 0x10000) {
        strbuf_putc(out, (char)(0xe0 | cp >> 12));
        strbuf_putc(out, (char)(0x80 | (cp >> 6 & 0x3f)));
        strbuf_putc(out, (char)(0x80 | (cp & 0x3f)));
    } else {
        strbuf_putc(out, (char)(0xf0 | cp >> 18));
        strbuf_putc(out, (char)(0x80 | (cp >> 12 & 0x3f)));
        strbuf_putc(out, (char)(0x80 | (cp >> 6 & 0x3f)));
        strbuf_putc(out, (char)(0x80 | (cp & 0x3f)));
    }
}

static void put_code_unit(json_call *c, strbuf *to)
{
    uint32_t unit = c->hex;
    if (c->high && unit >= 0xdc00 && unit < 0xe000) {
        put_utf8(to, 0x10000 + ((c->high - 0xd800) << 10) + (unit - 0xdc00));
        c->high = 0;
        return;
    }
    if (c->high)
        put_utf8(to, 0xfffd);
    c->high = unit >= 0xd800 && unit < 0xdc00 ? unit : 0;
    if (!c->high)
        put_utf8(to, unit >= 0xdc00 && unit < 0xe000 ? 0xfffd : unit);
}

/* A byte of a string that is unquoted into `to`. True at its end; *bad where it is none. */
static bool unquote(json_call *c, char b, strbuf *to, bool *bad)
{
    static const char from[] = "\"\\/bfnrt", as[] = "\"\\/\b\f\n\r\t";
    if (c->hex_left) {
        int d = b >= '0' && b <= '9'   ? b - '0'
                : b >= 'a' && b <= 'f' ? b - 'a' + 10
                : b >= 'A' && b <= 'F' ? b - 'A' + 10
                                       : -1;
        if (d < 0)
            return *bad = true;
        c->hex = c->hex << 4 | (uint32_t)d;
        if (--c->hex_left == 0)
            put_code_unit(c, to);
        return false;
    }
    if (c->escaped) {
        c->escaped = false;
        if (b == 'u') {
            c->hex_left = 4;
            c->hex = 0;
            return false;
        }
        const char *at = b ? strchr(from, b) : NULL;
        if (!at)
            return *bad = true;
        b = as[at - from];
    } else if (b == '\\') {
        c->escaped = true;
        return false;
    } else if (b == '"') {
        if (c->high)
            put_utf8(to, 0xfffd);
        c->high = 0;
        return true;
    }
    if (c->high)
        put_utf8(to, 0xfffd);
    c->high = 0;
    strbuf_putc(to, b);
    return false;
}

static void begin_string(json_call *c)
{
    c->escaped = false;
    c->hex_left = 0;
    c->high = 0;
}

static int key_kind(str key)
{
    if (str_eqz(key, "name"))
        return OF_NAME;
    return str_eqz(key, "arguments") || str_eqz(key, "parameters") ? OF_ARGS : OF_OTHER;
}

static str view(const strbuf *b)
{
    return b->n ? strbuf_view(b) : STR("");
}

static int begin_value(json_call *c, char b)
{
    c->value_of = key_kind(view(&c->key));
    c->foreign |= c->value_of == OF_OTHER && word_find("type id function", view(&c->key)) < 0;
    if ((c->value_of == OF_NAME && (c->named || b != '"')) || (c->value_of == OF_ARGS && c->argued))
        return AT_BAD;
    if (c->value_of == OF_ARGS)
        c->argued = true;
    begin_string(c);
    if (b == '"')
        return AT_STRING;
    c->quoted = false;
    c->depth = 1;
    bool nested = b == '{' || b == '[';
    strbuf_reset(&c->key); /* a literal is kept there until it is known whether it is null */
    if (c->value_of == OF_ARGS)
        strbuf_putc(nested ? &c->args : &c->key, b);
    return nested ? AT_NESTED : AT_LITERAL;
}

static int in_nested(json_call *c, char b)
{
    if (c->value_of == OF_ARGS)
        strbuf_putc(&c->args, b);
    if (c->quoted) {
        bool escaped = c->escaped;
        c->escaped = !escaped && b == '\\';
        c->quoted = escaped || b != '"';
        return AT_NESTED;
    }
    c->quoted = b == '"';
    c->depth += b == '{' || b == '[';
    c->depth -= b == '}' || b == ']';
    return c->depth == 0 ? AT_AFTER : c->depth > CALL_DEPTH_MAX ? AT_BAD : AT_NESTED;
}

static int in_string(json_call *c, char b)
{
    bool bad = false;
    strbuf *to = c->value_of == OF_NAME ? &c->name : c->value_of == OF_ARGS ? &c->args : &c->key;
    if (!unquote(c, b, to, &bad)) {
        if (to == &c->key) /* passed over: only how it ends counts */
            strbuf_reset(to);
        return to == &c->name && c->name.n > NAME_MAX ? AT_BAD : AT_STRING;
    }
    if (bad)
        return AT_BAD;
    if (c->value_of == OF_NAME)
        c->named = c->name.n > 0;
    return c->value_of == OF_NAME && !c->named ? AT_BAD : AT_AFTER;
}

static int after_value(json_call *c, char b)
{
    if (b == ',') {
        strbuf_reset(&c->key);
        return AT_KEY;
    }
    if (b != '}' || !c->named)
        return AT_BAD;
    if (!c->argued)
        strbuf_put(&c->args, STR("{}"));
    return AT_DONE;
}

static int next_state(json_call *c, char b)
{
    bool bad = false;
    bool between = c->at == AT_START || c->at == AT_KEY || c->at == AT_COLON || c->at == AT_VALUE ||
                   c->at == AT_AFTER;
    if (between && is_blank(b))
        return c->at;
    switch (c->at) {
    case AT_START:
        return b == '{' ? AT_KEY : AT_BAD;
    case AT_KEY:
        begin_string(c);
        return b == '"' ? AT_IN_KEY : AT_BAD;
    case AT_IN_KEY:
        if (!unquote(c, b, &c->key, &bad))
            return c->key.n > KEY_MAX ? AT_BAD : AT_IN_KEY;
        return bad ? AT_BAD : AT_COLON;
    case AT_COLON:
        return b == ':' ? AT_VALUE : AT_BAD;
    case AT_VALUE:
        return begin_value(c, b);
    case AT_STRING:
        return in_string(c, b);
    case AT_NESTED:
        return in_nested(c, b);
    case AT_LITERAL:
        if (b == ',' || b == '}') {
            if (c->value_of == OF_ARGS)
                strbuf_put(&c->args, str_eqz(view(&c->key), "null") ? STR("{}") : view(&c->key));
            return after_value(c, b);
        }
        if (c->value_of == OF_ARGS && !is_blank(b))
            strbuf_putc(&c->key, b);
        return c->key.n > KEY_MAX ? AT_BAD : AT_LITERAL;
    case AT_AFTER:
        return after_value(c, b);
    default:
        return c->at;
    }
}

bool json_call_between(const json_call *c)
{
    return c->at == AT_AFTER;
}

json_call_state json_call_put(json_call *c, char byte)
{
    c->at = next_state(c, byte);
    return c->at == AT_DONE ? JSON_CALL_DONE : c->at == AT_BAD ? JSON_CALL_BAD : JSON_CALL_MORE;
}
