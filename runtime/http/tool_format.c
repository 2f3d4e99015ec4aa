/* tool_format.c - the parser of all formats but harmony, a byte at a time. */
#include "runtime/http/tool_impl.h"

#include "runtime/base/mem.h"

/* clang-format off */
static const tool_format_row rows[] = {
#define TOOL_FORMAT(name, sign, open, close, body, bare, special, id)                              \
    {#name, sign, open, close, TOOL_BODY_##body, bare, special, id},
#include "runtime/http/tool_formats.def"
#undef TOOL_FORMAT
};
/* clang-format on */

enum { ROWS_N = sizeof rows / sizeof *rows, NAMED_MAX = 256 };

const tool_format_row *tool_format_at(size_t i)
{
    return i < ROWS_N ? &rows[i] : NULL;
}

const tool_format_row *tool_format_find(const char *name)
{
    for (size_t i = 0; i < ROWS_N; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

const tool_format_row *tool_format_detect(str text)
{
    for (size_t i = 0; i < ROWS_N; i++)
        if (memmem(text.p, text.n, rows[i].sign, strlen(rows[i].sign)))
            return &rows[i];
    return &rows[ROWS_N - 1];
}

/* ---- going out ---- */

static void flush(tool_parser *p)
{
    if (p->out.n)
        p->on(p->ctx, p->out_kind, strbuf_view(&p->out));
    strbuf_reset(&p->out);
}

void tool_emit(tool_parser *p, tool_event kind, str text)
{
    if (kind == TOOL_CALL || kind == TOOL_CALL_END) { /* each is an event of its own */
        flush(p);
        p->on(p->ctx, kind, text);
        return;
    }
    if (p->out_kind != kind)
        flush(p);
    p->out_kind = kind;
    strbuf_put(&p->out, text);
}

void tool_emit_byte(tool_parser *p, tool_event kind, char b)
{
    tool_emit(p, kind, (str){&b, 1});
}

static str view(const strbuf *b)
{
    return b->n ? strbuf_view(b) : STR("");
}

static bool is_blank(char b)
{
    return b == ' ' || b == '\t' || b == '\n' || b == '\r';
}

static str without_blanks(str s)
{
    while (s.n && is_blank(s.p[0]))
        s = (str){s.p + 1, s.n - 1};
    return s;
}

/* Does the mark begin with s? An empty mark is none. */
static bool may_be(const char *mark, str s)
{
    return mark[0] && str_starts(str_of(mark), s);
}

static void put_byte(tool_parser *p, char b);

/* Bytes that were held back, once more from the beginning, in the state that the parser has now. */
static void replay(tool_parser *p, strbuf *from)
{
    strbuf copy = *from;
    *from = (strbuf){0};
    str s = view(&copy);
    if (p->trim)
        s = without_blanks(s);
    p->trim = false;
    for (size_t i = 0; i < s.n; i++)
        put_byte(p, s.p[i]);
    strbuf_free(&copy);
}

/* ---- calls ---- */

static void begin_calls(tool_parser *p)
{
    strbuf_reset(&p->raw);
    strbuf_put(&p->raw, view(&p->held));
    strbuf_reset(&p->held);
    p->bare = p->listed = p->wrapped = false;
    p->state = S_BODY;
}

static void begin_object(tool_parser *p)
{
    json_call_begin(&p->call);
    p->begun = false;
    p->state = S_CALL;
}

/* What looked like a call is none: its bytes are text. */
static void give_up(tool_parser *p)
{
    tool_emit(p, TOOL_TEXT, view(&p->raw));
    strbuf_reset(&p->raw);
    p->state = S_TEXT;
}

static bool known_name(const tool_parser *p, str name)
{
    for (size_t i = 0; i < p->o.n_name; i++)
        if (str_eq(p->o.names[i], name))
            return true;
    return false;
}

/* What is known of the call by now goes out. False: it is none. */
static bool show_call(tool_parser *p)
{
    if (!p->begun) {
        if (!p->call.named)
            return !(p->bare && p->call.foreign) && p->raw.n <= TOOL_HELD_MAX;
        if (p->bare && !known_name(p, view(&p->call.name)))
            return false;
        tool_emit(p, TOOL_CALL, view(&p->call.name));
        strbuf_reset(&p->raw);
        p->begun = true;
        p->n_call++;
    }
    if (p->call.args.n)
        tool_emit(p, TOOL_ARGUMENTS, view(&p->call.args));
    strbuf_reset(&p->call.args);
    return true;
}

static void end_call(tool_parser *p)
{
    tool_emit(p, TOOL_CALL_END, STR(""));
    p->begun = false;
    p->called = true;
    p->bare = p->row->body == TOOL_BODY_OBJECTS ? p->bare : false;
    strbuf_reset(&p->raw);
    p->trim = true;
    bool one = p->row->body == TOOL_BODY_OBJECT || (p->row->body == TOOL_BODY_LIST && !p->listed);
    p->state = !one ? S_NEXT : p->row->close[0] ? S_CLOSE : S_START;
}

static void in_call(tool_parser *p, char b)
{
    if (!p->begun)
        strbuf_putc(&p->raw, b);
    json_call_state st = json_call_put(&p->call, b);
    bool shown = show_call(p);
    if (p->wrapped && st == JSON_CALL_MORE && json_call_between(&p->call))
        st = json_call_put(&p->call, '}');
    if (st == JSON_CALL_MORE && shown)
        return;
    if (p->begun) { /* a call that breaks after its name ends there */
        end_call(p);
        return;
    }
    give_up(p);
}

/* NAME{..}: fed on as an object that has both. */
static void begin_named(tool_parser *p)
{
    str name = without_blanks(view(&p->held));
    const char *bracket = name.n ? memchr(name.p, '[', name.n) : NULL; /* [ARGS], [CALL_ID].. */
    if (bracket)
        name.n = (size_t)(bracket - name.p);
    while (name.n && is_blank(name.p[name.n - 1]))
        name.n--;
    bool ok = name.n > 0;
    for (size_t i = 0; i < name.n; i++)
        ok = ok && (unsigned char)name.p[i] > ' ' && name.p[i] != '"' && name.p[i] != '\\';
    if (!ok) {
        strbuf_reset(&p->held);
        give_up(p);
        return;
    }
    begin_object(p);
    p->wrapped = true;
    static const str before = {"{\"name\":\"", 9}, after = {"\",\"arguments\":", 14};
    for (size_t i = 0; i < before.n; i++)
        (void)json_call_put(&p->call, before.p[i]);
    for (size_t i = 0; i < name.n; i++)
        (void)json_call_put(&p->call, name.p[i]);
    for (size_t i = 0; i < after.n; i++)
        (void)json_call_put(&p->call, after.p[i]);
    strbuf_reset(&p->held);
}

static void in_body(tool_parser *p, char b)
{
    if (is_blank(b)) {
        strbuf_putc(&p->raw, b);
        return;
    }
    if (b == '{') {
        begin_object(p);
        in_call(p, b);
        return;
    }
    strbuf_putc(&p->raw, b);
    if (p->row->body != TOOL_BODY_LIST) {
        give_up(p);
    } else if (b == '[' && !p->listed) {
        p->listed = true;
    } else if (p->listed) {
        give_up(p);
    } else {
        strbuf_reset(&p->held);
        strbuf_putc(&p->held, b);
        p->state = S_NAMED;
    }
}

static void in_named(tool_parser *p, char b)
{
    if (b == '{') {
        begin_named(p);
        if (p->state == S_CALL)
            in_call(p, b);
        else
            put_byte(p, b);
        return;
    }
    strbuf_putc(&p->raw, b);
    strbuf_putc(&p->held, b);
    if (p->held.n > NAMED_MAX) {
        strbuf_reset(&p->held);
        give_up(p);
    }
}

static void in_next(tool_parser *p, char b)
{
    if (is_blank(b) || b == ',' || b == ';')
        return;
    if (b == '{') {
        begin_object(p);
        in_call(p, b);
        return;
    }
    p->trim = true;
    p->state = b == ']' && p->row->close[0] ? S_CLOSE : S_START;
    if (b != ']' || !p->listed)
        put_byte(p, b);
}

/* Blanks, then the mark; where something else comes, the call is over all the same. */
static void in_close(tool_parser *p, char b)
{
    strbuf_putc(&p->held, b);
    str s = without_blanks(view(&p->held));
    if (str_eqz(s, p->row->close)) {
        strbuf_reset(&p->held);
        p->trim = true;
        p->state = S_START;
    } else if (s.n && !may_be(p->row->close, s)) {
        p->state = S_START;
        p->trim = true;
        replay(p, &p->held);
    }
}

/* ---- text ---- */

static void at_start(tool_parser *p, char b)
{
    strbuf_putc(&p->held, b);
    str s = without_blanks(view(&p->held));
    if (s.n == 0 && p->held.n < NAMED_MAX)
        return;
    if (str_eqz(s, "<think>")) {
        strbuf_reset(&p->held);
        p->trim = true;
        p->state = S_THINK;
        return;
    }
    if (p->o.calls && p->row->open[0] && str_eqz(s, p->row->open)) {
        begin_calls(p);
        return;
    }
    if (s.n && (may_be("<think>", s) || (p->o.calls && may_be(p->row->open, s))))
        return;
    if (p->o.calls && p->row->bare && s.n == 1 && b == '{') {
        p->held.n--; /* the blanks before it */
        begin_calls(p);
        p->bare = true;
        begin_object(p);
        in_call(p, b);
        return;
    }
    p->state = S_TEXT;
    replay(p, &p->held);
}

/* Until a mark: all but what may be its beginning goes out. True: it came. */
static bool until(tool_parser *p, const char *mark, tool_event kind, char b)
{
    if (!mark[0]) {
        tool_emit_byte(p, kind, b);
        return false;
    }
    strbuf_putc(&p->held, b);
    str s = view(&p->held);
    if (str_eqz(s, mark))
        return true;
    size_t out = 0;
    while (out < s.n && !str_starts(str_of(mark), (str){s.p + out, s.n - out}))
        out++;
    if (out) {
        tool_emit(p, kind, (str){s.p, out});
        memmove(p->held.p, p->held.p + out, s.n - out);
        p->held.n -= out;
    }
    return false;
}

static void in_text(tool_parser *p, char b)
{
    if (until(p, p->o.calls ? p->row->open : "", TOOL_TEXT, b))
        begin_calls(p);
}

static void in_think(tool_parser *p, char b)
{
    if (p->trim && is_blank(b))
        return;
    p->trim = false;
    if (until(p, "</think>", TOOL_REASONING, b)) {
        strbuf_reset(&p->held);
        p->trim = true;
        p->state = S_START;
    }
}

static void put_byte(tool_parser *p, char b)
{
    static void (*const step[])(tool_parser *, char) = {
        [S_START] = at_start,      [S_TEXT] = in_text,   [S_THINK] = in_think,
        [S_BODY] = in_body,        [S_NAMED] = in_named, [S_CALL] = in_call,
        [S_NEXT] = in_next,        [S_CLOSE] = in_close, [S_HEADER] = harmony_put,
        [S_MESSAGE] = harmony_put,
    };
    step[p->state](p, b);
}

void tool_parser_put(tool_parser *p, str piece)
{
    for (size_t i = 0; i < piece.n; i++)
        put_byte(p, piece.p[i]);
    flush(p);
}

void tool_parser_end(tool_parser *p)
{
    str held = view(&p->held);
    switch (p->state) {
    case S_START:
        tool_emit(p, TOOL_TEXT, p->trim ? without_blanks(held) : held);
        break;
    case S_TEXT:
        tool_emit(p, TOOL_TEXT, held);
        break;
    case S_THINK:
        tool_emit(p, TOOL_REASONING, held);
        break;
    case S_BODY:
    case S_NAMED:
        give_up(p);
        break;
    case S_CALL: /* cut off: the client sees why by the finish reason */
        if (p->begun)
            end_call(p);
        else
            give_up(p);
        break;
    case S_NEXT:
    case S_CLOSE:
        break;
    case S_HEADER:
    case S_MESSAGE:
        harmony_end(p);
        break;
    }
    strbuf_reset(&p->held);
    flush(p);
    p->state = S_TEXT;
}

/* ---- as an object ---- */

tool_parser *tool_parser_create(const tool_format_row *format, const tool_options *o,
                                tool_on_event *on, void *ctx)
{
    tool_parser *p = mem_alloc(sizeof *p);
    *p = (tool_parser){.row = format, .o = *o, .on = on, .ctx = ctx};
    p->state = format->body == TOOL_BODY_HARMONY ? S_HEADER : o->thinks ? S_THINK : S_START;
    p->trim = p->state == S_THINK;
    p->body = TOOL_TEXT;
    return p;
}

void tool_parser_destroy(tool_parser *p)
{
    if (!p)
        return;
    strbuf_free(&p->out);
    strbuf_free(&p->held);
    strbuf_free(&p->raw);
    json_call_free(&p->call);
    mem_free(p);
}

size_t tool_parser_calls(const tool_parser *p)
{
    return p->n_call;
}

bool tool_parser_called(const tool_parser *p)
{
    return p->called;
}
