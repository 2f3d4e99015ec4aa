/* lib_header.c - the header of a shared library that `weft build --lib` makes. */
#include "runtime/build/build.h"

#include <ctype.h>

/* clang-format off */
/* Words of C and C++ and of the headers that the library's own includes: no type can have one as its name. */
static const char *const taken[] = {
    "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char", "class", "concept", "const", "constexpr",
    "continue", "decltype", "default", "delete", "do", "double", "else", "enum", "explicit", "export", "extern", "false", "float",
    "for", "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "nullptr", "operator",
    "or", "private", "protected", "public", "register", "requires", "restrict", "return", "short", "signed", "sizeof", "static",
    "struct", "switch", "template", "this", "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using",
    "virtual", "void", "volatile", "while", "xor", "size_t", "ptrdiff_t", "wchar_t", "uint64_t", "offsetof", "linux", "unix",
};
/* clang-format on */

void lib_name(const char *path, strbuf *out)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (strncmp(name, "lib", 3) == 0 && name[3])
        name += 3;
    size_t n = strcspn(name, ".");
    strbuf_reset(out);
    if (n == 0 || isdigit((unsigned char)*name))
        strbuf_putc(out, '_');
    for (size_t i = 0; i < n; i++)
        strbuf_putc(out, isalnum((unsigned char)name[i]) ? name[i] : '_');
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcmp(out->p, taken[i]) == 0) {
            strbuf_putc(out, '_');
            return;
        }
}

/* @ stands for the library's name. */
static const char text[] =
    "#ifdef __cplusplus\n"
    "extern \"C\" {\n"
    "#endif\n"
    "\n"
    "typedef struct @ @;\n"
    "\n"
    "/* The model; threads 0: as many as this process may use. NULL: it cannot be opened; why is "
    "in error, if there is room for it. */\n"
    "@ *@_open(int threads, char *error, size_t error_bytes);\n"
    "/* How the next prompts are continued; temperature 0: always the likeliest token. */\n"
    "bool @_sampling(@ *s, double temperature, int top_k, double top_p, uint64_t seed);\n"
    "/* Begin a text; chat: as a message of the user, in the model's own template. */\n"
    "bool @_prompt(@ *s, const char *text, bool chat);\n"
    "/* The next piece of text, valid until the next call. NULL: it has ended, or failed. */\n"
    "const char *@_next(@ *s);\n"
    "/* What went wrong; NULL: nothing. */\n"
    "const char *@_error(const @ *s);\n"
    "void @_close(@ *s); /* NULL is fine */\n"
    "\n"
    "#ifdef __cplusplus\n"
    "}\n"
    "#endif\n"
    "\n"
    "#endif\n";

void lib_header(const char *name, const char *file, strbuf *out)
{
    strbuf_add(out,
               "/* %s.h - the model in %s, built by weft. One thread at a time uses a %s; several "
               "may be open.\n *\n",
               name, file, name);
    strbuf_add(out,
               " *     %s *s = %s_open(0, error, sizeof error);\n *     %s_prompt(s, \"Once upon a "
               "time\", false);\n"
               " *     for (const char *piece; (piece = %s_next(s));)\n *         fputs(piece, "
               "stdout);\n *     %s_close(s); */\n",
               name, name, name, name, name);
    strbuf_add(out,
               "#ifndef %s_H\n#define %s_H\n\n#include <stdbool.h>\n#include <stddef.h>\n#include "
               "<stdint.h>\n\n",
               name, name);
    for (const char *p = text; *p; p++)
        if (*p == '@')
            strbuf_put(out, str_of(name));
        else
            strbuf_putc(out, *p);
}
