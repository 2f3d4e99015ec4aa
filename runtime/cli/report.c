#include "runtime/cli/report.h"

/* The arrays of several files become one: what stands between the brackets is joined. */
static void add_found(report *r, const weft_diag *dg)
{
    strbuf one = {0};
    diag_json(dg, &one);
    if (one.n > 2) {
        if (r->found.n)
            strbuf_putc(&r->found, ',');
        strbuf_put(&r->found, (str){one.p + 1, one.n - 2});
    }
    strbuf_free(&one);
}

json_writer report_file(report *r, cli *c, const char *name, bool ok)
{
    r->errors += diag_errors(c->dg);
    r->warnings += diag_warnings(c->dg);
    if (!ok) {
        r->failed_n++;
        r->failed_last = name;
    }
    if (c->common.json)
        add_found(r, c->dg);
    cli_report(c, c->dg);

    if (r->files.n)
        strbuf_putc(&r->files, ',');
    json_writer w = {.out = &r->files};
    json_open(&w, '{');
    json_key_text(&w, "file", name);
    json_key_bool(&w, "ok", ok);
    return w;
}

void report_file_end(json_writer *w)
{
    json_close(w, '}');
}

static void print_json(report *r, cli *c)
{
    strbuf out = {0};
    strbuf_put(&out, STR("{\"files\":["));
    strbuf_put(&out, strbuf_view(&r->files));
    strbuf_put(&out, STR("],\"diagnostics\":["));
    strbuf_put(&out, strbuf_view(&r->found));
    strbuf_add(&out, "],\"errors\":%zu,\"warnings\":%zu}\n", r->errors, r->warnings);
    cli_print_all(c, &out);
}

int report_finish(report *r, cli *c)
{
    const char *s = r->errors == 1 ? "" : "s";
    if (c->common.json)
        print_json(r, c);
    else if (r->failed_n == 1)
        cli_say(c, "%zu error%s in %s", r->errors, s, r->failed_last);
    else if (r->failed_n)
        cli_say(c, "%zu error%s in %d of %d files", r->errors, s, r->failed_n, c->operand_n);
    strbuf_free(&r->files);
    strbuf_free(&r->found);
    return r->failed_n ? CLI_FAILED : CLI_DONE;
}
