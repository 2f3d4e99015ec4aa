/* complete.c - completion for bash and zsh, made from the tables of verbs and flags.
 *
 * A value or an operand is completed by what its word in the tables says: a choice by its choices, FILE and
 * MODEL by files and folders, VERB by verbs, the operand NAME by operators. All else is the user's own. */
#include "dsl/ops.h"
#include "runtime/cli/pages.h"

typedef enum { WANT_NOTHING, WANT_FILES, WANT_VERBS, WANT_OPS, WANT_CHOICES } want;

static const struct {
    const char *word;
    bool operand; /* the word means this as an operand only */
    want want;
} meanings[] = {
    {"FILE", false, WANT_FILES}, {"MODEL", false, WANT_FILES}, {"DIR", false, WANT_FILES},
    {"VERB", true, WANT_VERBS},  {"NAME", true, WANT_OPS},
};

static want want_of_word(str word, bool operand)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (str_eqz(word, meanings[i].word) && (operand || !meanings[i].operand))
            return meanings[i].want;
    return WANT_NOTHING;
}

static want want_of_flag(const flag *r)
{
    return r->choices ? WANT_CHOICES : want_of_word(str_of(r->value), false);
}

/* The operand's bare word: NAME of [NAME...]. */
static str operand_word(const verb *v)
{
    const char *p = v->operands + strspn(v->operands, "[");
    return (str){p, strcspn(p, ".] ")};
}

static void put_verbs(strbuf *out)
{
    for (size_t i = 0; i < verb_n; i++)
        strbuf_add(out, "%s%s", i ? " " : "", verbs[i].name);
}

static void put_ops(strbuf *out)
{
    int lib_n;
    const lib_row *libs = lib_rows(&lib_n);
    for (int i = 0; i < OP_COUNT; i++)
        strbuf_add(out, "%s%s", i ? " " : "", op_row_of((op_code)i)->name);
    for (int i = 0; i < lib_n; i++)
        strbuf_add(out, " %s", libs[i].name);
}

static void put_choices(strbuf *out, const char *choices)
{
    for (const char *c = choices; *c; c++)
        strbuf_putc(out, *c == '|' ? ' ' : *c);
}

/* bash: one `case` gives the flags of the verb, and by the word before what is wanted: the name of a
 * kind, or the words themselves. */

static void bash_flag_names(strbuf *out, const flag *rows)
{
    for (const flag *r = rows; r->name; r++) {
        if (r->brief)
            strbuf_add(out, " -%s", r->brief);
        strbuf_add(out, " --%s", r->name);
        if (r->negatable)
            strbuf_add(out, " --no-%s", r->name);
    }
}

static void bash_values(strbuf *out, const flag *rows)
{
    for (const flag *r = rows; r->name; r++) {
        if (r->kind == FLAG_BOOL)
            continue;
        strbuf_add(out, "        ");
        if (r->brief)
            strbuf_add(out, "-%s | ", r->brief);
        strbuf_add(out, "--%s) want=", r->name);
        want w = want_of_flag(r);
        if (w == WANT_CHOICES) {
            strbuf_putc(out, '\'');
            put_choices(out, r->choices);
            strbuf_putc(out, '\'');
        } else {
            strbuf_add(out, "%s", w == WANT_FILES ? "FILES" : "NOTHING");
        }
        strbuf_add(out, " ;;\n");
    }
}

static void bash_verb(strbuf *out, const verb *v)
{
    strbuf_add(out, "    %s)\n        flags='", v->name);
    strbuf names = {0};
    bash_flag_names(&names, v->page->flags);
    bash_flag_names(&names, cli_common_flags);
    strbuf_add(out, "%s'\n        operand=", names.p + 1);
    strbuf_free(&names);
    switch (want_of_word(operand_word(v), true)) {
    case WANT_FILES:
        strbuf_add(out, "FILES\n");
        break;
    case WANT_VERBS:
        strbuf_add(out, "$verbs\n");
        break;
    case WANT_OPS:
        strbuf_putc(out, '\'');
        put_ops(out);
        strbuf_add(out, "'\n");
        break;
    default:
        strbuf_add(out, "NOTHING\n");
    }
    strbuf_add(out, "        case $prev in\n");
    bash_values(out, v->page->flags);
    bash_values(out, cli_common_flags);
    strbuf_add(out, "        esac ;;\n");
}

void complete_bash(strbuf *out)
{
    strbuf_add(out,
               "# Completion of weft for bash, made by `weft help --completion bash`.\n"
               "_weft() {\n"
               "    local cur=${COMP_WORDS[COMP_CWORD]} prev='' want='' flags='' operand=NOTHING "
               "joined='' line i\n"
               "    [ \"$COMP_CWORD\" -lt 1 ] || prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
               "    local verbs='");
    put_verbs(out);
    strbuf_add(out,
               "'\n"
               "    COMPREPLY=()\n"
               "    # --name=value: one word, or three where readline breaks at the equals sign.\n"
               "    case $cur in\n"
               "    --*=*) prev=${cur%%%%=*} joined=${cur%%%%=*}= cur=${cur#*=} ;;\n"
               "    =) cur='' ;;\n"
               "    *) [ \"$prev\" != = ] || prev=${COMP_WORDS[COMP_CWORD - 2]} ;;\n"
               "    esac\n"
               "    if [ \"$COMP_CWORD\" -le 1 ]; then\n"
               "        want=\"$verbs --help --version\"\n"
               "    else case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; i < verb_n; i++)
        bash_verb(out, &verbs[i]);
    strbuf_add(
        out, "    esac fi\n"
             "    # Behind a bare -- there are only operands.\n"
             "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
             "        [ \"${COMP_WORDS[i]}\" != -- ] || want=$operand\n"
             "    done\n"
             "    if [ -z \"$want\" ]; then\n"
             "        case $cur in -*) want=$flags ;; *) want=$operand ;; esac\n"
             "    fi\n"
             "    case $want in\n"
             "    NOTHING) return ;;\n"
             "    FILES)\n"
             "        compopt -o filenames 2>/dev/null\n"
             "        while IFS= read -r line; do COMPREPLY+=(\"$joined$line\"); done < <(compgen "
             "-f -- \"$cur\") ;;\n"
             "    *)\n"
             "        while IFS= read -r line; do COMPREPLY+=(\"$joined$line\"); done < <(compgen "
             "-W \"$want\" -- \"$cur\") ;;\n"
             "    esac\n"
             "}\n"
             "complete -F _weft weft\n");
}

/* zsh: _arguments takes a specification for each flag. Within one, colons, brackets and backslashes
 * of texts are escaped, and a quote ends the shell's string. */
static void zsh_text(strbuf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'') {
            strbuf_add(out, "'\\''");
            continue;
        }
        if (strchr("\\:[]", *text))
            strbuf_putc(out, '\\');
        strbuf_putc(out, *text);
    }
}

static void zsh_want(strbuf *out, str name, want w, const char *choices)
{
    strbuf_putc(out, ':');
    if (w == WANT_CHOICES)
        strbuf_add(out, "choice"); /* the choices stand behind it */
    else
        strbuf_put(out, name);
    strbuf_putc(out, ':');
    switch (w) {
    case WANT_FILES:
        strbuf_add(out, "_files");
        break;
    case WANT_CHOICES:
        strbuf_putc(out, '(');
        put_choices(out, choices);
        strbuf_putc(out, ')');
        break;
    case WANT_VERBS:
        strbuf_add(out, "->verb");
        break;
    case WANT_OPS:
        strbuf_putc(out, '(');
        put_ops(out);
        strbuf_putc(out, ')');
        break;
    case WANT_NOTHING:
        strbuf_putc(out, ' ');
        break;
    }
}

static void zsh_flags(strbuf *out, const flag *rows)
{
    for (const flag *r = rows; r->name; r++) {
        const char *eq = r->kind == FLAG_BOOL ? "" : "=";
        strbuf_add(out, " \\\n            ");
        if (r->kind == FLAG_LIST)
            strbuf_add(out, "'*'");
        else if (r->brief)
            strbuf_add(out, "'(-%s --%s)'", r->brief, r->name);
        if (r->brief)
            strbuf_add(out, "{-%s,--%s%s}'[", r->brief, r->name, eq);
        else
            strbuf_add(out, "'--%s%s[", r->name, eq);
        zsh_text(out, r->help);
        strbuf_putc(out, ']');
        if (r->kind != FLAG_BOOL)
            zsh_want(out, str_of(r->value), want_of_flag(r), r->choices);
        strbuf_putc(out, '\'');
        if (r->negatable)
            strbuf_add(out, " \\\n            '(--%s)--no-%s[not so]'", r->name, r->name);
    }
}

void complete_zsh(strbuf *out)
{
    strbuf_add(out, "#compdef weft\n"
                    "# Completion of weft for zsh, made by `weft help --completion zsh`.\n"
                    "local curcontext=$curcontext state line ret=1\n"
                    "local -a verbs\n"
                    "verbs=(\n");
    for (size_t i = 0; i < verb_n; i++) {
        strbuf_add(out, "    '%s:", verbs[i].name);
        zsh_text(out, verbs[i].summary);
        strbuf_add(out, "'\n");
    }
    strbuf_add(out, ")\n"
                    "_arguments -C '1:verb:->verb' '*::operand:->rest' && ret=0\n"
                    "if [[ $state = rest ]]; then\n"
                    "    curcontext=${curcontext%%:*:*}:weft-$words[1]:\n"
                    "    case $words[1] in\n");
    for (size_t i = 0; i < verb_n; i++) {
        const verb *v = &verbs[i];
        strbuf_add(out, "    %s)\n        _arguments -C", v->name);
        zsh_flags(out, v->page->flags);
        zsh_flags(out, cli_common_flags);
        str word = operand_word(v);
        if (word.n) {
            strbuf_add(out, " \\\n            '%s", v->most == 1 ? "1" : "*");
            zsh_want(out, word, want_of_word(word, true), NULL);
            strbuf_putc(out, '\'');
        }
        strbuf_add(out, " && ret=0 ;;\n");
    }
    strbuf_add(out, "    esac\n"
                    "fi\n"
                    "[[ $state = verb ]] && _describe -t verbs verb verbs && ret=0\n"
                    "return ret\n");
}
