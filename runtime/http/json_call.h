/* json_call.h - one object {"name": .., "arguments": {..}}, read byte by byte as it comes.
 *
 * Takes "parameters" for "arguments", any order, and passes over other members. Arguments go on as they are written; a string
 * that holds them, as some models write, is unquoted. */
#ifndef WEFT_RUNTIME_HTTP_JSON_CALL_H
#define WEFT_RUNTIME_HTTP_JSON_CALL_H

#include "runtime/base/str.h"

typedef enum { JSON_CALL_MORE, JSON_CALL_DONE, JSON_CALL_BAD } json_call_state;

typedef struct {
    int at;               /* a state of json_call.c */
    int value_of;         /* whose value is being read */
    int depth;            /* brackets of that value */
    bool quoted, escaped; /* inside a string of a value that is passed on; behind a backslash */
    int hex_left;         /* digits of \uXXXX to come */
    uint32_t hex, high;   /* their value; the first half of a pair, or 0 */
    strbuf key, name;
    strbuf args;        /* what came of the arguments and was not taken yet */
    bool named, argued; /* the name is complete; there were arguments */
    bool foreign;       /* a member that calls do not have */
} json_call;

void json_call_begin(json_call *c); /* keeps its memory; all zeros is fine at first */
void json_call_free(json_call *c);
/* One byte more. The one that begins the object is '{', blanks before it do not count. */
json_call_state json_call_put(json_call *c, char byte);
bool json_call_between(const json_call *c); /* behind a member, before , or } */

#endif
