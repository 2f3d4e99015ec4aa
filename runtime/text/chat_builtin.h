/* chat_builtin.h - the built-in chat formats. Private to this folder. */
#ifndef WEFT_RUNTIME_TEXT_CHAT_BUILTIN_H
#define WEFT_RUNTIME_TEXT_CHAT_BUILTIN_H

#include "runtime/base/str.h"

const char *chat_builtin_find(const char *name); /* its template; NULL: there is none */

#endif
