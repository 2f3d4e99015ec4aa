/* serve_error.c - diagnostics as answers, by the table. */
#include "runtime/http/serve_error.h"

#include "runtime/base/json_write.h"

typedef struct {
    weft_code code;
    int http;
    const char *type, *word;
} error_row;

static const error_row rows[] = {
#define SERVE_ERROR(code, http, type, word) {code, http, type, word},
#include "runtime/http/serve_errors.def"
#undef SERVE_ERROR
};

typedef struct {
    weft_status status;
    int http;
    const char *type;
} status_row;

static const status_row statuses[] = {
#define SERVE_STATUS(status, http, type) {WEFT_ERR_##status, http, type},
#include "runtime/http/serve_errors.def"
#undef SERVE_STATUS
};

serve_error serve_error_of(weft_code code)
{
    const diag_row *d = diag_row_of(code);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].code == code)
            return (serve_error){.http = rows[i].http,
                                 .type = rows[i].type,
                                 .code = rows[i].word ? rows[i].word : d->name,
                                 .ours = rows[i].http >= 500};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == d->status)
            return (serve_error){.http = statuses[i].http,
                                 .type = statuses[i].type,
                                 .code = d->name,
                                 .ours = statuses[i].http >= 500};
    return (serve_error){.http = 500, .type = "server_error", .code = d->name, .ours = true};
}

/* Messages of faults that no request can cause may hold paths: only their meaning goes out. */
static str message_of(const serve_error *e, weft_code code, str message)
{
    return e->http == 500 ? str_of(diag_row_of(code)->meaning) : message;
}

static void write_object(const serve_error *e, str message, str param, strbuf *out)
{
    json_writer w = {.out = out};
    json_open(&w, '{');
    json_key_open(&w, "error", '{');
    json_key_str(&w, "message", message);
    json_key_text(&w, "type", e->type);
    if (param.n)
        json_key_str(&w, "param", param);
    else
        json_key_text(&w, "param", NULL);
    json_key_text(&w, "code", e->code);
    json_close(&w, '}');
    json_close(&w, '}');
}

int serve_error_say(weft_code code, str message, str param, strbuf *out)
{
    serve_error e = serve_error_of(code);
    write_object(&e, message_of(&e, code, message), param, out);
    return e.http;
}

int serve_error_write(const weft_diag *dg, str param, strbuf *out)
{
    for (size_t i = 0; i < diag_count(dg); i++) {
        diag_entry d = diag_at(dg, i);
        if (d.severity != DIAG_ERROR)
            continue;
        serve_error e = serve_error_of(d.code);
        write_object(&e, message_of(&e, d.code, d.message), param, out);
        return e.http;
    }
    serve_error none = {.http = 500, .type = "server_error", .code = "internal_error"};
    write_object(&none, STR("the request failed without a reason"), param, out);
    return none.http;
}
