/* program_main.c - a built program: `weft run` and `weft chat` with the model that it carries. */
#include "runtime/base/clock.h"
#include "runtime/base/json_write.h"
#include "runtime/cli/talk.h"
#include "runtime/cli/version.h"
#include "runtime/engine/process_memory.h"
#include "runtime/program/program_model.h"

#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

enum {
    HELP_COLUMNS = 90,
    PREDICT_USUAL = -2,
    PREDICT_TEXT = 256,
    BENCH_TOKENS = 256,
    BENCH_ROUNDS = 5
};

typedef struct {
    run_options run;
    bool converse, info, bench, verify, version;
} program_flags;

/* clang-format off */
static const flag rows[] = {
    RUN_FLAG_ROWS   (program_flags, run.),
    FLAG_ROW_BOOL   (program_flags, converse, "converse", NULL, "hold a conversation; a terminal without -p and -f does, if the model has a template"),
    FLAG_ROW_INT    (program_flags, run.t.open.context, "ctx-size", "c", "N", "-1", -1, 1 << 30, "context, at most the one it was built for, which is the usual one"),
    FLAG_ROW_INT    (program_flags, run.t.n, "predict", "n", "N", "-2", -2, 1 << 30, "tokens to generate; -1: until the model ends; -2: that in a conversation, else 256"),
    FLAG_ROW_INT    (program_flags, run.t.open.threads, "threads", "t", "N", "0", 0, 1024, "threads; 0: as many as this process may use"),
    FLAG_ROW_STR    (program_flags, run.t.system, "system", "sys", "TEXT", NULL, "the system message"),
    FLAG_ROW_STR    (program_flags, run.t.chat_template, "chat-template", NULL, "NAME", NULL, "a built-in template or a file, in place of the model's"),
    SAMPLE_FLAG_ROWS(program_flags, run.t.),
    FLAG_ROW_BOOL   (program_flags, info,    "info",    NULL, "say what this program holds"),
    FLAG_ROW_BOOL   (program_flags, bench,   "bench",   NULL, "measure how fast it reads and writes"),
    FLAG_ROW_BOOL   (program_flags, verify,  "verify",  NULL, "compare all bytes of the weights with their checksums first"),
    FLAG_ROW_BOOL   (program_flags, version, "version", NULL, "print the version of Weft that built it"),
    FLAG_ROW_END    (program_flags),
};
/* clang-format on */

static const char *const no_examples[] = {NULL};
static const verb_page page = {
    rows, "The text goes to stdout as it comes, everything else to stderr. Ctrl-C stops.",
    no_examples};
static verb program_verb = {"program", "[-]", 0, 1, "continue a text", &page, NULL};

/* ---- how it comes to its model ---- */

static program_options how; /* set by main, before anything is opened */

/* The file of this process: what the system says, else what it was started as. */
static const char *own_path(void)
{
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    return n > 0 ? path : (const char *)getauxval(AT_EXECFN);
}

static weft_status carried_open(talk *t)
{
    t->from = how.name;
    return program_model_open(t->c->dg, &how, &t->m);
}

static weft_session_options carried_session(talk *t, progress *bar)
{
    (void)bar;
    return (weft_session_options){.size = sizeof(weft_session_options),
                                  .context = t->f->open.context,
                                  .threads = t->f->open.threads ? t->f->open.threads : -1,
                                  .no_weight_cache = true};
}

static weft_status carried_ready(talk *t)
{
    return program_model_ready(t->c->dg, t->m, t->s);
}

static const talk_kind talk_kind_carried = {
    .open = carried_open, .session = carried_session, .ready = carried_ready};

/* ---- what it says of itself ---- */

static uint64_t program_bytes; /* of the process, before it opens a session */

/* All but the mapping that the weights are in. */
static weft_session_options measured_session(talk *t, progress *bar)
{
    const program_model *m = program_model_of(t->m);
    const void *mapped = m->external ? m->external : (const void *)m->im.data;
    size_t bytes = m->external ? m->external_bytes : (size_t)m->im.bytes;
    program_bytes = process_memory(m->p, m->about.context, mapped, bytes);
    return carried_session(t, bar);
}

static const talk_kind talk_kind_measured = {
    .open = carried_open, .session = measured_session, .ready = carried_ready};

static void add_memory(strbuf *out, const talk *t)
{
    const double mib = 1 << 20;
    uint64_t opened = weft_session_bytes(t->s);
    strbuf_add(out, "memory     %.2f MiB besides the weights, with %lld thread%s",
               (double)(program_bytes + opened) / mib, (long long)t->about.threads,
               t->about.threads == 1 ? "" : "s");
    if (program_bytes)
        strbuf_add(out, ": session %.2f, program %.2f", (double)opened / mib,
                   (double)program_bytes / mib);
    strbuf_putc(out, '\n');
}

static void add_levels(strbuf *out, const program_model *m)
{
    for (int i = 0; i < m->im.n_part; i++)
        if (m->im.part[i].kind == IMAGE_PLAN)
            strbuf_add(out, " %s%s", m->im.part[i].name,
                       &m->im.part[i] == m->plan ? " (used here)" : "");
    strbuf_putc(out, '\n');
}

static void info_text(const talk *t, const program_model *m, strbuf *out)
{
    const image_part *w = image_find(&m->im, IMAGE_WEIGHTS, NULL);
    char kv[KPOLICY_TEXT_MAX];
    strbuf_add(
        out, "model      %s\nbuilt by   weft %s\ncontext    %lld token%s, state in %s\nlevels    ",
        m->about.name, m->about.weft, (long long)m->about.context, m->about.context == 1 ? "" : "s",
        plan_kv_text(t->s->plan.p, kv));
    add_levels(out, m);
    strbuf_add(out, "weights    %.1f MiB in %llu tensors%s\n", (double)w->bytes / (1 << 20),
               (unsigned long long)m->source.n,
               w->external ? ", in a file beside the program" : "");
    strbuf_add(out, "template   %s\n", image_find(&m->im, IMAGE_TEMPLATE, NULL) ? "yes" : "none");
    add_memory(out, t);
}

static void info_json(const talk *t, const program_model *m, strbuf *out)
{
    const image_part *w = image_find(&m->im, IMAGE_WEIGHTS, NULL);
    char kv[KPOLICY_TEXT_MAX];
    json_writer j = {.out = out};
    json_open(&j, '{');
    json_key_text(&j, "model", m->about.name);
    json_key_text(&j, "weft", m->about.weft);
    json_key_int(&j, "context", m->about.context);
    json_key_text(&j, "kv", plan_kv_text(t->s->plan.p, kv));
    json_key_open(&j, "levels", '[');
    for (int i = 0; i < m->im.n_part; i++)
        if (m->im.part[i].kind == IMAGE_PLAN)
            json_str(&j, str_of(m->im.part[i].name));
    json_close(&j, ']');
    json_key_text(&j, "level", m->plan->name);
    json_key_int(&j, "weights", (int64_t)w->bytes);
    json_key_int(&j, "tensors", (int64_t)m->source.n);
    json_key_bool(&j, "external", w->external);
    json_key_bool(&j, "template", image_find(&m->im, IMAGE_TEMPLATE, NULL) != NULL);
    json_key_int(&j, "memory", (int64_t)(program_bytes + weft_session_bytes(t->s)));
    json_key_int(&j, "session", (int64_t)weft_session_bytes(t->s));
    json_key_int(&j, "threads", t->about.threads);
    json_close(&j, '}');
    strbuf_putc(out, '\n');
}

static int info(cli *c, const program_flags *o)
{
    talk t;
    weft_status st = talk_open(c, &o->run.t, &talk_kind_measured, &t);
    if (st == WEFT_OK) {
        strbuf out = {0};
        (c->common.json ? info_json : info_text)(&t, program_model_of(t.m), &out);
        cli_print_all(c, &out);
    }
    talk_close(&t);
    return cli_exit_of(st);
}

/* A new text in `calls` calls of so many rows each. */
static weft_status read_text(talk *t, weft_row *row, int64_t rows_each, int64_t calls)
{
    WEFT_TRY(weft_truncate(t->c->dg, t->s, 0, 0));
    for (int64_t i = 0; i < calls; i++) {
        int64_t at = weft_length(t->s, 0);
        for (int64_t k = 0; k < rows_each; k++)
            row[k] = (weft_row){.token = (int32_t)(1 + (at + k) % 100),
                                .pos = (int32_t)(at + k),
                                .want = k == rows_each - 1};
        WEFT_TRY(weft_eval(t->c->dg, t->s, row, rows_each));
    }
    return WEFT_OK;
}

static int by_time(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Tokens a second of such a text: the median of some, after one that warms up. */
static weft_status measure(talk *t, int64_t rows_each, int64_t calls, double *out)
{
    weft_row *row = ARENA_ARRAY(t->a, weft_row, (size_t)rows_each);
    uint64_t ns[BENCH_ROUNDS];
    WEFT_TRY(read_text(t, row, rows_each, 1));
    for (int i = 0; i < BENCH_ROUNDS; i++) {
        uint64_t start = clock_ns();
        WEFT_TRY(read_text(t, row, rows_each, calls));
        ns[i] = clock_ns() - start;
    }
    qsort(ns, BENCH_ROUNDS, sizeof *ns, by_time);
    *out = (double)(rows_each * calls) / clock_seconds(ns[BENCH_ROUNDS / 2]);
    return WEFT_OK;
}

/* A line of a measurement, or its object. */
static void put_speed(cli *c, json_writer *w, const char *name, int64_t n, double speed)
{
    if (!c->common.json) {
        strbuf_add(w->out, "%s%lld %10.1f tokens/s\n", name, (long long)n, speed);
        return;
    }
    json_open(w, '{');
    json_key_text(w, "test", name);
    json_key_int(w, "tokens", n);
    json_key_double(w, "tokens_per_second", speed);
    json_close(w, '}');
}

static int bench(cli *c, const program_flags *o)
{
    talk t;
    double read = 0, write = 0;
    weft_status st = talk_open(c, &o->run.t, &talk_kind_carried, &t);
    int64_t n = BENCH_TOKENS, written;
    if (st == WEFT_OK && t.about.context / 2 < n)
        n = t.about.context > 1 ? t.about.context / 2 : 1;
    int64_t once = st == WEFT_OK && t.about.batch < n ? t.about.batch : n;
    written = n / 4 > 0 ? n / 4 : 1;
    if (st == WEFT_OK)
        st = measure(&t, once, 1, &read);
    if (st == WEFT_OK)
        st = measure(&t, 1, written, &write);
    if (st == WEFT_OK) {
        strbuf out = {0};
        json_writer w = {.out = &out};
        if (c->common.json)
            json_open(&w, '[');
        put_speed(c, &w, "pp", once, read);
        put_speed(c, &w, "tg", written, write);
        if (c->common.json) {
            json_close(&w, ']');
            strbuf_putc(&out, '\n');
        }
        cli_print_all(c, &out);
    }
    talk_close(&t);
    return cli_exit_of(st);
}

static int help(cli *c)
{
    strbuf out = {0};
    strbuf_add(&out,
               "%s - a language model, built by weft %s\n\nusage: %s [FLAGS] [-]\n\n%s\n\nflags:\n",
               how.name, build_version, how.name, page.about);
    flags_print(rows, HELP_COLUMNS, &out);
    strbuf_add(&out, "\nflags of every program:\n");
    flags_print(cli_common_flags, HELP_COLUMNS, &out);
    cli_print_all(c, &out);
    return CLI_DONE;
}

/* ---- main ---- */

static bool has_template(void)
{
    weft_diag *quiet = diag_create();
    weft_model *m;
    bool has = program_model_open(quiet, &how, &m) == WEFT_OK;
    if (has) {
        has = image_find(&program_model_of(m)->im, IMAGE_TEMPLATE, NULL) != NULL;
        weft_model_close(m);
    }
    diag_destroy(quiet);
    return has;
}

static int start(cli *c, const program_flags *o)
{
    if (c->common.help)
        return help(c);
    if (o->version) {
        strbuf out = {0};
        strbuf_add(&out, "weft %s (%s)\n", build_version, build_commit);
        cli_print_all(c, &out);
        return CLI_DONE;
    }
    if (o->info)
        return info(c, o);
    if (o->bench)
        return bench(c, o);
    bool prompted = o->run.prompt || o->run.file || o->run.kv_load || c->operand_n;
    if (o->converse ||
        (!prompted && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && has_template())) {
        talk_flags f = o->run.t;
        f.n = f.n == PREDICT_USUAL ? -1 : f.n;
        return talk_converse(c, &f, &talk_kind_carried);
    }
    run_options run = o->run;
    run.t.n = run.t.n == PREDICT_USUAL ? PREDICT_TEXT : run.t.n;
    return talk_run(c, &run, &talk_kind_carried);
}

int main(int argc, char **argv)
{
    cli c;
    cli_begin(&c);
    arena *a = arena_create();
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    how.name = slash ? slash + 1 : argc > 0 && *argv[0] ? argv[0] : "program";
    how.path = own_path();
    program_verb.name = how.name;
    c.verb = &program_verb;

    flag_set sets[2] = {{0}};
    weft_status st = cli_parse(&c, a, sets, 1, argc, argv);
    const program_flags *o = c.options;
    how.verify = o->verify;
    int exit_status = st == WEFT_OK ? start(&c, o) : cli_exit_of(st);
    exit_status = cli_end(&c, exit_status);
    flags_deinit(sets, 2);
    diag_destroy(c.dg);
    arena_destroy(a);
    return exit_status;
}
