/* tool_impl.h - the inside of a tool parser. Private to this folder. */
#ifndef WEFT_RUNTIME_HTTP_TOOL_IMPL_H
#define WEFT_RUNTIME_HTTP_TOOL_IMPL_H

#include "runtime/http/json_call.h"
#include "runtime/http/tool_format.h"

typedef enum {
    S_START, /* nothing but blanks came, or a call has ended: marks, <think> and bare objects begin here */
    S_TEXT,
    S_THINK,  /* until </think> */
    S_BODY,   /* behind the mark that opens calls, before one */
    S_NAMED,  /* NAME of NAME{..} */
    S_CALL,   /* inside an object */
    S_NEXT,   /* behind one: another, or the end of the list */
    S_CLOSE,  /* before the mark that closes */
    S_HEADER, /* harmony: between messages */
    S_MESSAGE,
} tool_state;

struct tool_parser {
    const tool_format_row *row;
    tool_options o;
    tool_on_event *on;
    void *ctx;
    tool_state state;
    tool_event out_kind;
    strbuf out;  /* what goes out as one event of that kind */
    strbuf held; /* may be part of a mark */
    strbuf raw;  /* of a call that has no name yet: text, if it turns out to be none */
    json_call call;
    bool trim; /* blanks before what comes next are not part of the text */
    bool bare, listed,
        wrapped; /* the call at hand: without mark; inside [ ]; of the form NAME{..} */
    bool begun;  /* TOOL_CALL went out for it */
    bool called;
    size_t n_call;
    tool_event body; /* harmony: what the message is */
};

void tool_emit(tool_parser *p, tool_event kind, str text);
void tool_emit_byte(tool_parser *p, tool_event kind, char b);
void harmony_put(tool_parser *p, char b);
void harmony_end(tool_parser *p);

#endif
