/* facts.c - facts of a model as lines of text. */
#include "runtime/program/facts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

void facts_write(const facts *f, strbuf *out)
{
    strbuf_add(out, "weft %s\nname %s\ncontext %" PRId64 "\n", f->weft, f->name, f->context);
    for (int i = 0; i < f->n_param; i++) {
        int64_t x;
        double d;
        const fact_param *p = &f->param[i];
        if (value_kind_of(&p->v) == VALUE_INT && value_int(&p->v, &x))
            strbuf_add(out, "int %s %" PRId64 "\n", p->name, x);
        else if (value_kind_of(&p->v) == VALUE_FLOAT && value_float(&p->v, &d))
            strbuf_add(out, "float %s %.17g\n", p->name, d);
    }
}

static bool read_int(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long x = strtoll(text, &end, 10);
    *out = x;
    return *text && !*end && !errno;
}

static bool read_float(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return *text && !*end;
}

static bool read_param(facts *f, const char *kind, char *rest)
{
    char *blank = strchr(rest, ' ');
    int64_t x = 0;
    double d = 0;
    bool is_int = strcmp(kind, "int") == 0;
    if (!blank || f->n_param == FACTS_PARAMS_MAX || (!is_int && strcmp(kind, "float") != 0))
        return false;
    *blank = 0;
    if (is_int ? !read_int(blank + 1, &x) : !read_float(blank + 1, &d))
        return false;
    value v = is_int ? value_of_int(VT_I64, x) : value_of_float(VT_F64, d);
    f->param[f->n_param++] = (fact_param){rest, v};
    return true;
}

static bool read_line(facts *f, char *line)
{
    char *blank = strchr(line, ' ');
    if (!blank)
        return false;
    *blank = 0;
    if (strcmp(line, "weft") == 0)
        f->weft = blank + 1;
    else if (strcmp(line, "name") == 0)
        f->name = blank + 1;
    else if (strcmp(line, "context") == 0)
        return read_int(blank + 1, &f->context) && f->context > 0 && f->context <= INT32_MAX;
    else
        return read_param(f, line, blank + 1);
    return true;
}

weft_status facts_read(weft_diag *dg, const char *program, const image_part *p, arena *a,
                       facts *out)
{
    facts f = {.param = ARENA_ARRAY(a, fact_param, FACTS_PARAMS_MAX)};
    bool fine = p->bytes <= FACTS_BYTES_MAX && !memchr(p->data, 0, p->bytes);
    char *text =
        fine ? (char *)(uintptr_t)arena_str(a, (str){(const char *)p->data, p->bytes}).p : NULL;
    for (char *line = text; fine && *line;) {
        char *end = strchr(line, '\n');
        fine = end != NULL;
        if (!fine)
            break;
        *end = 0;
        fine = read_line(&f, line);
        line = end + 1;
    }
    if (!fine || !f.weft || !f.name || f.context == 0)
        return weft_fail(dg, W1701, WEFT_NOWHERE,
                         "%s: what it says of its model is not well formed", program);
    *out = f;
    return WEFT_OK;
}
