/* tool_harmony.c - the format of gpt-oss: messages on channels.
 *
 *     <|channel|>analysis<|message|>..<|end|><|start|>assistant<|channel|>final<|message|>..<|return|>
 *     <|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{..}<|call|>
 *
 * The prompt ends with <|start|>assistant, so an answer begins inside a header. analysis is reasoning; what goes to a function is
 * a call, whose message is its arguments; all else is text. https://cookbook.openai.com/articles/openai-harmony */
#include "runtime/http/tool_impl.h"

enum { HEADER_MAX = 1024 };

static const char *const body_ends[] = {"<|end|>", "<|call|>", "<|return|>", "<|start|>",
                                        "<|channel|>"};
enum { BODY_ENDS_N = sizeof body_ends / sizeof *body_ends };

static str view(const strbuf *b)
{
    return b->n ? strbuf_view(b) : STR("");
}

/* The word behind `mark` in the header, up to a blank or another mark; empty where there is none. */
static str word_behind(str header, const char *mark)
{
    size_t n = strlen(mark);
    const char *at = header.n ? memmem(header.p, header.n, mark, n) : NULL;
    if (!at)
        return STR("");
    str s = {at + n, (size_t)(header.p + header.n - at) - n};
    size_t len = 0;
    while (len < s.n && s.p[len] != ' ' && s.p[len] != '<' && s.p[len] != '\n')
        len++;
    return (str){s.p, len};
}

static void begin_message(tool_parser *p)
{
    static const str functions = {"functions.", 10};
    str header = view(&p->held);
    str to = word_behind(header, "to="), channel = word_behind(header, "<|channel|>");
    p->body = str_eqz(channel, "analysis") ? TOOL_REASONING : TOOL_TEXT;
    if (to.n && p->o.calls) {
        str name = str_starts(to, functions) ? (str){to.p + functions.n, to.n - functions.n} : to;
        tool_emit(p, TOOL_CALL, name);
        p->body = TOOL_ARGUMENTS;
        p->begun = true;
        p->n_call++;
    }
    strbuf_reset(&p->held);
    p->state = S_MESSAGE;
}

static void end_message(tool_parser *p)
{
    if (p->begun) {
        tool_emit(p, TOOL_CALL_END, STR(""));
        p->called = true;
    }
    p->begun = false;
    p->body = TOOL_TEXT;
    strbuf_reset(&p->held);
    p->state = S_HEADER;
}

static void in_header(tool_parser *p, char b)
{
    strbuf_putc(&p->held, b);
    str s = view(&p->held);
    if (str_ends(s, STR("<|message|>"))) {
        p->held.n -= 11;
        begin_message(p);
    } else if (s.n > HEADER_MAX) { /* no header: a model that does not keep to the format */
        tool_emit(p, TOOL_TEXT, s);
        strbuf_reset(&p->held);
        p->state = S_MESSAGE;
    }
}

static void in_message(tool_parser *p, char b)
{
    strbuf_putc(&p->held, b);
    str s = view(&p->held);
    size_t out = 0;
    for (; out < s.n; out++) {
        str rest = {s.p + out, s.n - out};
        bool begins = false;
        for (int i = 0; i < BODY_ENDS_N; i++) {
            if (str_eqz(rest, body_ends[i])) {
                tool_emit(p, p->body, (str){s.p, out});
                end_message(p);
                if (i == BODY_ENDS_N - 1) /* a new header that lacks its <|start|> */
                    strbuf_put(&p->held, str_of(body_ends[i]));
                return;
            }
            begins |= str_starts(str_of(body_ends[i]), rest);
        }
        if (begins)
            break;
    }
    tool_emit(p, p->body, (str){s.p, out});
    memmove(p->held.p, p->held.p + out, s.n - out);
    p->held.n -= out;
}

void harmony_put(tool_parser *p, char b)
{
    if (p->state == S_HEADER)
        in_header(p, b);
    else
        in_message(p, b);
}

void harmony_end(tool_parser *p)
{
    str held = view(&p->held);
    if (p->state == S_MESSAGE) {
        tool_emit(p, p->body, held);
        end_message(p);
    } else if (!memmem(held.p, held.n, "<|", 2) && !p->called &&
               !str_starts(held, STR("assistant"))) {
        tool_emit(p, TOOL_TEXT, held); /* an answer without any mark */
    }
    strbuf_reset(&p->held);
}
