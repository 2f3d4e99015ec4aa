/* man.c - man pages, made from the tables of verbs and flags, in the man(7) macros. */
#include "runtime/cli/pages.h"
#include "runtime/cli/version.h"

/* Text as roff takes it: a dash that stays a dash, and no character that asks for something. */
static void put_part(strbuf *out, str text)
{
    static const char *const special[] = {
        ['\\'] = "\\e",  ['-'] = "\\-",   ['~'] = "\\(ti",
        ['^'] = "\\(ha", ['`'] = "\\(ga", ['\''] = "\\(aq",
    };
    for (size_t i = 0; i < text.n; i++) {
        unsigned char ch = (unsigned char)text.p[i];
        const char *s = ch < sizeof special / sizeof *special ? special[ch] : NULL;
        if (i == 0 && ch == '.')
            strbuf_add(out, "\\&");
        if (s)
            strbuf_add(out, "%s", s);
        else
            strbuf_putc(out, text.p[i]);
    }
}

static void put_text(strbuf *out, const char *text)
{
    put_part(out, str_of(text));
}

/* Between backquotes is code, and set in bold. */
static void put_prose(strbuf *out, const char *text)
{
    bool code = false;
    while (*text) {
        size_t n = strcspn(text, "`");
        put_part(out, (str){text, n});
        text += n;
        if (*text) {
            code = !code;
            strbuf_add(out, "%s", code ? "\\fB" : "\\fR");
            text++;
        }
    }
    strbuf_putc(out, '\n');
}

static void put_title(strbuf *out, const verb *v)
{
    strbuf_add(out,
               ".\\\" Made by `weft help --man` from the tables of verbs and flags.\n.TH \"WEFT");
    for (const char *p = v ? v->name : ""; *p; p++) {
        if (p == v->name)
            strbuf_putc(out, '-');
        strbuf_putc(out, *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p);
    }
    strbuf_add(out, "\" 1 \"\" \"Weft %s\" \"Weft\"\n.SH NAME\nweft", build_version);
    if (v)
        strbuf_add(out, "\\-%s", v->name);
    strbuf_add(out, " \\- ");
    put_prose(out, v ? v->summary : "a compiler and runtime for language models");
}

static void put_flags(strbuf *out, const flag *rows)
{
    for (const flag *r = rows; r->name; r++) {
        strbuf_add(out, ".TP\n");
        if (r->brief) {
            strbuf_add(out, "\\fB\\-");
            put_text(out, r->brief);
            strbuf_add(out, "\\fR, ");
        }
        strbuf_add(out, "\\fB\\-\\-%s", r->negatable ? "[no\\-]" : "");
        put_text(out, r->name);
        strbuf_add(out, "\\fR");
        if (r->value) {
            strbuf_add(out, " \\fI");
            put_text(out, r->value);
            strbuf_add(out, "\\fR");
        }
        strbuf_putc(out, '\n');
        put_text(out, r->help);
        if (r->initial) {
            strbuf_add(out, " (default: ");
            put_text(out, r->initial);
            strbuf_putc(out, ')');
        }
        strbuf_putc(out, '\n');
    }
}

static void put_exit_status(strbuf *out)
{
    static const char *const rows[] = {
        "0",   "done",       "1", "an error in the work", "2", "a mistake on the command line",
        "130", "interrupted"};
    strbuf_add(out, ".SH EXIT STATUS\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i += 2)
        strbuf_add(out, ".TP\n\\fB%s\\fR\n%s\n", rows[i], rows[i + 1]);
}

static void put_overview(strbuf *out)
{
    strbuf_add(out, ".SH SYNOPSIS\n\\fBweft\\fR \\fIVERB\\fR [\\fIFLAGS\\fR] [\\fIOPERANDS\\fR]\n"
                    ".SH DESCRIPTION\n"
                    "Weft compiles language models; a .weft file describes an architecture. "
                    "Results go to standard output, everything else to standard error.\n"
                    ".SH VERBS\n");
    for (size_t i = 0; i < verb_n; i++) {
        strbuf_add(out, ".TP\n\\fB%s\\fR\n", verbs[i].name);
        put_prose(out, verbs[i].summary);
    }
    strbuf_add(out, ".SH FLAGS OF EVERY VERB\n");
    put_flags(out, cli_common_flags);
}

static void put_verb(strbuf *out, const verb *v)
{
    strbuf_add(out, ".SH SYNOPSIS\n\\fBweft %s\\fR [\\fIFLAGS\\fR]", v->name);
    if (*v->operands) {
        strbuf_add(out, " \\fI");
        put_text(out, v->operands);
        strbuf_add(out, "\\fR");
    }
    strbuf_putc(out, '\n');
    if (v->page->about) {
        strbuf_add(out, ".SH DESCRIPTION\n");
        put_prose(out, v->page->about);
    }
    if (v->page->flags->name) {
        strbuf_add(out, ".SH FLAGS\n");
        put_flags(out, v->page->flags);
    }
    strbuf_add(out, ".SH FLAGS OF EVERY VERB\n");
    put_flags(out, cli_common_flags);
    strbuf_add(out, ".SH EXAMPLES\n");
    for (const char *const *e = v->page->examples; *e; e += 2) {
        strbuf_add(out, ".TP\n\\fB");
        put_text(out, e[0]);
        strbuf_add(out, "\\fR\n");
        put_prose(out, e[1]);
    }
}

void man_page(strbuf *out, const verb *v)
{
    put_title(out, v);
    if (v)
        put_verb(out, v);
    else
        put_overview(out);
    put_exit_status(out);
    strbuf_add(out, ".SH SEE ALSO\n");
    const char *comma = "";
    if (v) {
        strbuf_add(out, ".BR weft (1)");
        comma = ",\n";
    }
    for (size_t i = 0; i < verb_n; i++)
        if (&verbs[i] != v) {
            strbuf_add(out, "%s.BR weft\\-%s (1)", comma, verbs[i].name);
            comma = ",\n";
        }
    strbuf_putc(out, '\n');
}
