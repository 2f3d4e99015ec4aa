/* chat_builtin.c - the table of chat_builtin.def, and the pieces its templates share. */
#include "runtime/text/chat_builtin.h"

#include "runtime/text/chat.h"

/* clang-format off */
#define CHAT_PRELUDE                                                                               \
    "{%- macro text(m) -%}"                                                                        \
    "{%- if m.content is string -%}{{- m.content -}}"                                              \
    "{%- elif m.content is iterable -%}"                                                           \
    "{%- for part in m.content if part.type == 'text' -%}{{- part.text -}}{%- endfor -%}"          \
    "{%- endif -%}"                                                                                \
    "{%- endmacro -%}"

/* `turns` without a leading system message, whose text is ns.system. */
#define CHAT_SYSTEM_FIRST                                                                          \
    "{%- set ns = namespace(system='') -%}"                                                        \
    "{%- set turns = messages -%}"                                                                 \
    "{%- if messages and messages[0].role == 'system' -%}"                                         \
    "{%- set ns.system = text(messages[0])|trim -%}"                                               \
    "{%- set turns = messages[1:] -%}"                                                             \
    "{%- endif -%}"

#define CHAT_ALTERNATE                                                                             \
    "{%- for m in turns -%}"                                                                       \
    "{%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}"                                      \
    "{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') -}}" \
    "{%- endif -%}"                                                                                \
    "{%- endfor -%}"
/* clang-format on */

static const struct {
    const char *name, *text;
} builtins[] = {
#define CHAT_BUILTIN(name, ...) {name, CHAT_PRELUDE __VA_ARGS__},
#include "runtime/text/chat_builtin.def"
#undef CHAT_BUILTIN
};

size_t chat_builtin_count(void)
{
    return sizeof builtins / sizeof *builtins;
}

const char *chat_builtin_name(size_t i)
{
    return builtins[i].name;
}

const char *chat_builtin_find(const char *name)
{
    for (size_t i = 0; i < chat_builtin_count(); i++)
        if (strcmp(name, builtins[i].name) == 0)
            return builtins[i].text;
    return NULL;
}
