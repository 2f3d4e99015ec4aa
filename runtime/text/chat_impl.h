/* chat_impl.h - the inside of a chat template, for the files that open one. Private to this folder. */
#ifndef WEFT_RUNTIME_TEXT_CHAT_IMPL_H
#define WEFT_RUNTIME_TEXT_CHAT_IMPL_H

#include "runtime/text/chat.h"

enum { CHAT_SPECIALS_MAX = 8 };

struct chat_template {
    arena *home;
    const char *origin;
    const jinja *usual;
    const jinja *with_tools;    /* NULL: the usual one does that too */
    str usual_text, tools_text; /* what they were made of */
    jinja_var specials[CHAT_SPECIALS_MAX];
    size_t n_special;
};

chat_template *chat_create(void); /* chat_close closes it */
/* A token that templates may name; `variable` outlives the template, text is copied. No more than CHAT_SPECIALS_MAX. */
void chat_add_special(chat_template *ct, str variable, str text);
/* The usual template, or the one for tools. */
weft_status chat_compile(weft_diag *dg, chat_template *ct, const char *name, str text,
                         bool tools) WEFT_MUST_USE;
weft_status chat_compile_file(weft_diag *dg, chat_template *ct, const char *path,
                              bool tools) WEFT_MUST_USE;
/* What a choice names: a built-in template unless file_only, else a file. */
weft_status chat_choose(weft_diag *dg, chat_template *ct, const char *choice,
                        bool file_only) WEFT_MUST_USE;

#endif
