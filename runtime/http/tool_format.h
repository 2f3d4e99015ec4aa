/* tool_format.h - an answer in a model's own format taken apart while it streams: text, reasoning, calls of tools.
 *
 *     tool_parser *p = tool_parser_create(format, &options, on_event, ctx);
 *     tool_parser_put(p, piece);           events come before it returns
 *     tool_parser_end(p);                  what was held back comes out
 *
 * Text goes in as it is decoded, cut anywhere; the events, joined, do not depend on the cuts (tests try every one). What may be
 * the beginning of a mark is held back until it is known. A call that is not well formed before its name is known comes out as
 * text, with its marks: nothing that the model wrote is lost. One that breaks later ends where it broke. Memory is bounded by
 * TOOL_HELD_MAX beyond the piece at hand. Marks have to be shown in the text (tool_format_row.special). */
#ifndef WEFT_RUNTIME_HTTP_TOOL_FORMAT_H
#define WEFT_RUNTIME_HTTP_TOOL_FORMAT_H

#include "runtime/base/str.h"

typedef enum { TOOL_BODY_OBJECT, TOOL_BODY_LIST, TOOL_BODY_OBJECTS, TOOL_BODY_HARMONY } tool_body;

typedef struct {
    const char *name, *sign, *open, *close;
    tool_body body;
    bool bare, special;
    int id_letters;
} tool_format_row;

const tool_format_row *tool_format_at(size_t i); /* NULL past the end */
const tool_format_row *tool_format_find(const char *name);
/* Of a chat template's text, or of what it renders of a call. */
const tool_format_row *tool_format_detect(str text);

enum {
    TOOL_HELD_MAX = 1 << 20
}; /* bytes held back until a call has its name; longer ones are text */

typedef enum {
    TOOL_TEXT,      /* part of the answer */
    TOOL_REASONING, /* part of what stands before it: <think>, the channel analysis */
    TOOL_CALL,      /* a call begins; text is the name of its function */
    TOOL_ARGUMENTS, /* part of its arguments, as JSON */
    TOOL_CALL_END,  /* it has all of them */
} tool_event;

typedef void tool_on_event(void *ctx, tool_event kind, str text);

typedef struct {
    bool calls;       /* look for calls; false: only reasoning is taken apart */
    bool thinks;      /* the prompt ended inside of <think> */
    const str *names; /* of the tools: a bare object is a call only of one of these */
    size_t n_name;
} tool_options;

typedef struct tool_parser tool_parser;
/* names must outlive it. */
tool_parser *tool_parser_create(const tool_format_row *format, const tool_options *o,
                                tool_on_event *on, void *ctx);
void tool_parser_destroy(tool_parser *p); /* NULL is fine */
void tool_parser_put(tool_parser *p, str piece);
void tool_parser_end(tool_parser *p);
size_t tool_parser_calls(const tool_parser *p); /* begun so far */
bool tool_parser_called(const tool_parser *p);  /* one has ended: for answers with a single call */

#endif
