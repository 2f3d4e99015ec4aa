/* talk_converse.c - a conversation: `weft chat` and built programs. */
#include "runtime/base/clock.h"
#include "runtime/base/json_write.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/line_edit.h"
#include "runtime/base/vec.h"
#include "runtime/cli/session_json.h"
#include "runtime/cli/talk.h"
#include "runtime/formats/out_file.h"
#include "runtime/text/chat.h"

#include <errno.h>
#include <sys/stat.h>
#include <stdlib.h>
#include <unistd.h>

/* Conversations whose state stays while another one is loaded or the system message is changed. */
enum { PREFIXES = 4 };

typedef struct chat chat;

#define CHATCOMMAND(name, takes, meaning)                                                          \
    static void command_##name(chat *ch, const char *argument);
#include "runtime/cli/chat_commands.def"
#undef CHATCOMMAND

static const struct {
    const char *name, *argument, *meaning;
    void (*run)(chat *ch, const char *argument);
} commands[] = {
#define CHATCOMMAND(name, argument, meaning) {#name, argument, meaning, command_##name},
#include "runtime/cli/chat_commands.def"
#undef CHATCOMMAND
};
enum { N_COMMAND = sizeof commands / sizeof *commands };

struct chat {
    talk t;
    talk_flags flags; /* /set changes them */
    VEC(talk_message) messages;
    bool leaving, json;
    size_t n_answer;
    uint64_t answer_ns;
};

static void add_message(chat *ch, const char *role, str content)
{
    VEC_PUSH(&ch->messages, ((talk_message){str_of(role), arena_str(ch->t.a, content)}));
}

static bool last_is(const chat *ch, const char *role)
{
    return ch->messages.n > 0 && str_eqz(ch->messages.at[ch->messages.n - 1].role, role);
}

/* Reports the error; the conversation continues. */
static void report(chat *ch)
{
    cli_report(ch->t.c, ch->t.c->dg);
}

/* ---- answering ---- */

static double per_second(size_t n, uint64_t ns)
{
    return ns > 0 ? (double)n * 1e9 / (double)ns : 0;
}

/* An answer, if there is one, and what the session holds now. */
static void print_json(chat *ch, const talk_answer *a)
{
    const talk *t = &ch->t;
    strbuf out = {0};
    json_writer w = {.out = &out};
    json_open(&w, '{');
    if (a) {
        size_t n;
        const int32_t *ids = weft_generation_ids(t->g, &n);
        json_key_str(&w, "text", strbuf_view(&a->said));
        json_key_ids(&w, "ids", ids, n);
        json_key_text(&w, "stop", weft_end_name(a->end));
    }
    json_key_int(&w, "seed", (int64_t)t->seed);
    json_key_open(&w, "counts", '{');
    json_key_int(&w, "messages", (int64_t)ch->messages.n);
    if (a)
        json_key_int(&w, "prompt", (int64_t)a->n_prompt);
    json_key_int(&w, "generated", (int64_t)(a ? a->n : ch->n_answer));
    json_key_int(&w, "length", weft_length(t->s, 0));
    json_key_int(&w, "context", t->about.context);
    json_close(&w, '}');
    json_key_open(&w, "seconds", '{');
    if (a)
        json_key_double(&w, "prompt", clock_seconds(a->prompt_ns));
    json_key_double(&w, "generate", clock_seconds(a ? a->ns : ch->answer_ns));
    json_close(&w, '}');
    session_json(&w, t->s);
    json_close(&w, '}');
    strbuf_putc(&out, '\n');
    cli_print_all(t->c, &out);
}

static weft_status answer(chat *ch)
{
    talk *t = &ch->t;
    talk_answer r = {.end = WEFT_END_NONE};
    weft_status st = talk_render(t, ch->messages.at, ch->messages.n, &r);
    if (st == WEFT_OK)
        st = talk_go_on(t, !ch->json, STR(""), &r);
    if (st == WEFT_OK) {
        add_message(ch, "assistant", strbuf_view(&r.said));
        ch->n_answer += r.n;
        ch->answer_ns += r.ns;
        if (ch->json)
            print_json(ch, &r);
        else
            cli_print(t->c, STR("\n"));
        if (r.end == WEFT_END_CONTEXT)
            cli_say(t->c,
                    "the context of %lld tokens is full: /undo frees some, -c sets a longer one",
                    (long long)t->about.context);
    }
    interrupt_hold(false);
    talk_answer_free(&r);
    return st;
}

static void answer_or_forget(chat *ch)
{
    if (answer(ch) == WEFT_OK)
        return;
    report(ch);
    if (last_is(ch, "user")) {
        ch->messages.n--;
        cli_say(ch->t.c, "the message was not taken");
    }
}

/* ---- commands ---- */

/* What reads files of messages is there only where something can. */
static bool offered(const chat *ch, int i)
{
    return ch->t.kind->messages || commands[i].run != command_load;
}

static void command_help(chat *ch, const char *argument)
{
    (void)argument;
    for (int i = 0; i < N_COMMAND; i++)
        if (offered(ch, i))
            cli_say(ch->t.c, "  /%s %-*s %s", commands[i].name,
                    (int)(14 - strlen(commands[i].name)), commands[i].argument,
                    commands[i].meaning);
}

static void command_system(chat *ch, const char *argument)
{
    bool has = ch->messages.n > 0 && str_eqz(ch->messages.at[0].role, "system");
    if (chat_check_text(ch->t.c->dg, "/system", str_of(argument)) != WEFT_OK) {
        report(ch);
        return;
    }
    if (*argument && has) {
        ch->messages.at[0].content = arena_str(ch->t.a, str_of(argument));
    } else if (*argument) {
        add_message(ch, "system", str_of(argument));
        talk_message m = ch->messages.at[ch->messages.n - 1];
        for (size_t i = ch->messages.n - 1; i > 0; i--)
            ch->messages.at[i] = ch->messages.at[i - 1];
        ch->messages.at[0] = m;
    } else if (has) {
        ch->messages.n--;
        for (size_t i = 0; i < ch->messages.n; i++)
            ch->messages.at[i] = ch->messages.at[i + 1];
    }
}

static void command_regen(chat *ch, const char *argument)
{
    (void)argument;
    if (!last_is(ch, "assistant")) {
        cli_say(ch->t.c, "there is no answer to give again");
        return;
    }
    ch->messages.n--;
    ch->flags.seed =
        (int64_t)((ch->t.seed + 1) & 0xffffffffu); /* another answer, not the same one */
    if (talk_change(&ch->t, &ch->flags) != WEFT_OK)
        report(ch);
    answer_or_forget(ch);
}

static void command_undo(chat *ch, const char *argument)
{
    (void)argument;
    if (last_is(ch, "assistant"))
        ch->messages.n--;
    if (last_is(ch, "user"))
        ch->messages.n--;
    else
        cli_say(ch->t.c, "there is nothing to undo");
}

/* Beside the messages. */
static const char *state_path(chat *ch, const char *path)
{
    return arena_printf(ch->t.a, "%s.kv", path).p;
}

static void command_save(chat *ch, const char *argument)
{
    strbuf out = {0};
    json_writer w = {.out = &out};
    json_open(&w, '{');
    json_key_open(&w, "messages", '[');
    for (size_t i = 0; i < ch->messages.n; i++) {
        json_open(&w, '{');
        json_key_str(&w, "role", ch->messages.at[i].role);
        json_key_str(&w, "content", ch->messages.at[i].content);
        json_close(&w, '}');
    }
    json_close(&w, ']');
    json_close(&w, '}');
    strbuf_putc(&out, '\n');
    weft_diag *dg = ch->t.c->dg;
    weft_status st = *argument ? out_file_write(dg, argument, strbuf_view(&out))
                               : weft_fail(dg, W1904, WEFT_NOWHERE, "/save takes a file");
    strbuf_free(&out);
    size_t n;
    weft_generation_text(ch->t.g, &n);
    if (st == WEFT_OK && n > 0)
        st = weft_generation_save(dg, ch->t.g, state_path(ch, argument));
    if (st != WEFT_OK)
        report(ch);
    else if (n > 0)
        cli_say(ch->t.c, "%zu messages are in %s, their state in %s", ch->messages.n, argument,
                state_path(ch, argument));
    else
        cli_say(ch->t.c, "%zu messages are in %s", ch->messages.n, argument);
}

/* The state of a conversation that was loaded, if it is there and fits; else its text is evaluated again. */
static bool load_state(chat *ch, const char *path)
{
    struct stat st;
    const char *file = state_path(ch, path);
    if (stat(file, &st) != 0)
        return false;
    if (weft_generation_load(ch->t.c->dg, ch->t.g, file) == WEFT_OK)
        return true;
    report(ch);
    cli_say(ch->t.c, "the state is not used; the conversation will be read again");
    return false;
}

static weft_status load(chat *ch, const char *path)
{
    static const char *const roles[] = {"system", "user", "assistant"};
    value all;
    const value *list = &all;
    weft_diag *dg = ch->t.c->dg;
    size_t before = ch->messages.n;
    WEFT_TRY(ch->t.kind->messages(&ch->t, path, &all));
    for (size_t i = 0; i < value_count(list); i++) {
        value m = value_at(list, i);
        str role = {0}, content = {0};
        const char *known = NULL;
        if (value_kind_of(&m) == VALUE_OBJECT && value_str(value_get(&m, STR("role")), &role) &&
            value_str(value_get(&m, STR("content")), &content))
            for (size_t k = 0; k < sizeof roles / sizeof *roles; k++)
                known = str_eqz(role, roles[k]) ? roles[k] : known;
        if (!known) {
            ch->messages.n = before;
            return weft_fail(dg, W1306, WEFT_NOWHERE,
                             "%s: message %zu has no role and content that chat knows", path, i);
        }
        add_message(ch, known, content);
    }
    for (size_t i = before; i < ch->messages.n; i++)
        ch->messages.at[i - before] = ch->messages.at[i];
    ch->messages.n -= before;
    return WEFT_OK;
}

static void command_load(chat *ch, const char *argument)
{
    weft_status st = *argument ? load(ch, argument)
                               : weft_fail(ch->t.c->dg, W1904, WEFT_NOWHERE, "/load takes a file");
    if (st != WEFT_OK) {
        report(ch);
        return;
    }
    if (load_state(ch, argument))
        cli_say(ch->t.c, "%zu messages and the state of %lld tokens", ch->messages.n,
                (long long)weft_length(ch->t.s, 0));
    else
        cli_say(ch->t.c, "%zu messages", ch->messages.n);
    if (last_is(ch, "user"))
        answer_or_forget(ch);
}

static void command_set(chat *ch, const char *argument)
{
    talk_flags next = ch->flags;
    const struct {
        const char *name;
        double *number;
        int64_t *integer;
    } knob[] = {
        {"temp", &next.pick.temp, NULL},
        {"top_k", NULL, &next.pick.top_k},
        {"top_p", &next.pick.top_p, NULL},
        {"min_p", &next.pick.min_p, NULL},
        {"repeat", &next.pick.repeat, NULL},
        {"seed", NULL, &next.seed},
        {"n", NULL, &next.n},
    };
    size_t len = strcspn(argument, " =");
    const char *x = argument + len + strspn(argument + len, " =");
    bool found = false;
    for (size_t i = 0; i < sizeof knob / sizeof *knob; i++) {
        if (!*argument && knob[i].number)
            cli_say(ch->t.c, "  %-7s %g", knob[i].name, *knob[i].number);
        else if (!*argument)
            cli_say(ch->t.c, "  %-7s %lld", knob[i].name, (long long)*knob[i].integer);
        if (!*argument || !str_eqz((str){argument, len}, knob[i].name))
            continue;
        char *end;
        errno = 0;
        double v = strtod(x, &end);
        found = *x && !*end && !errno && v == v && v > -9e15 && v < 9e15;
        if (found && knob[i].number)
            *knob[i].number = v;
        else if (found)
            *knob[i].integer = (int64_t)v;
    }
    if (!*argument)
        return;
    if (!found) {
        cli_say(ch->t.c, "/set takes a name and a number; /set alone shows them");
        return;
    }
    talk_flags was = ch->flags;
    ch->flags = next;
    if (talk_change(&ch->t, &ch->flags) != WEFT_OK) {
        ch->flags = was;
        report(ch);
    }
}

/* Which forms pages have stays; when they become coarser can change. */
static void command_kv(chat *ch, const char *argument)
{
    enum { SHOWN = 16 };
    weft_kv_tier t[SHOWN];
    if (*argument && weft_kv_change(ch->t.c->dg, ch->t.s, argument) != WEFT_OK) {
        report(ch);
        return;
    }
    int64_t n = weft_kv_tiers(ch->t.s, t, SHOWN);
    for (int64_t i = 0; i < n && i < SHOWN; i++) {
        char last[32] = "rest";
        if (t[i].last >= 0)
            snprintf(last, sizeof last, "last=%lld", (long long)t[i].last);
        cli_say(ch->t.c, "  %s/%s %s: %lld of %lld pages of %lld tokens, %.1f MiB", t[i].keys,
                t[i].values, last, (long long)(t[i].pages - t[i].pages_free), (long long)t[i].pages,
                (long long)t[i].page_tokens, (double)t[i].bytes / 1048576);
    }
}

static void command_stats(chat *ch, const char *argument)
{
    (void)argument;
    const talk *t = &ch->t;
    if (ch->json) {
        print_json(ch, NULL);
        return;
    }
    cli_say(t->c, "  context  %lld of %lld tokens", (long long)weft_length(t->s, 0),
            (long long)t->about.context);
    cli_say(t->c, "  answers  %zu tokens, %.1f a second", ch->n_answer,
            per_second(ch->n_answer, ch->answer_ns));
    weft_session_info now = {.size = sizeof now};
    if (weft_session_about(t->c->dg, t->s, &now) == WEFT_OK)
        cli_say(t->c, "  kept     %lld texts; %llu of %llu prompts began with one, %llu tokens",
                (long long)now.prefixes_used, (unsigned long long)now.prefix_hits,
                (unsigned long long)now.prefix_lookups,
                (unsigned long long)now.prefix_tokens_saved);
    cli_say(t->c, "  seed     %llu", (unsigned long long)t->seed);
}

static void command_exit(chat *ch, const char *argument)
{
    (void)argument;
    ch->leaving = true;
}

static void command(chat *ch, const char *line)
{
    size_t n = strcspn(line, " ");
    const char *argument = line + n + strspn(line + n, " ");
    str_guess best = {0};
    for (int i = 0; i < N_COMMAND; i++) {
        if (!offered(ch, i))
            continue;
        if (str_eqz((str){line, n}, commands[i].name)) {
            commands[i].run(ch, argument);
            return;
        }
        str_guess_try(&best, (str){line, n}, str_of(commands[i].name));
    }
    cli_say(ch->t.c, "there is no /%.*s%s" STR_FMT "%s; /help lists the commands", (int)n, line,
            best.name.n ? ", did you mean /" : "", STR_ARG(best.name), best.name.n ? "?" : "");
}

/* ---- the loop ---- */

/* A message: one line, or several where each but the last ends in a backslash. */
static line_status read_message(strbuf *line, strbuf *message)
{
    strbuf_reset(message);
    bool any = false, more = true, whole = true;
    while (more) {
        line_status st = line_edit_read(any ? ". " : "> ", line);
        if (st == LINE_END)
            break;
        any = true;
        more = line->n > 0 && line->p[line->n - 1] == '\\';
        whole = whole && st == LINE_READ && line->n < LINE_BYTES_MAX - message->n;
        if (whole)
            strbuf_put(message, (str){line->p, line->n - more});
        if (whole && more)
            strbuf_putc(message, '\n');
    }
    return !any ? LINE_END : whole ? LINE_READ : LINE_LONG;
}

static void converse(chat *ch)
{
    cli *c = ch->t.c;
    strbuf line = {0}, message = {0};
    const char *home = getenv("HOME");
    line_edit_begin(home ? arena_printf(ch->t.a, "%s/.weft_history", home).p : NULL);
    if (isatty(STDIN_FILENO))
        cli_say(c, "%s; /help lists the commands", weft_model_name(ch->t.m));
    for (line_status st;
         !ch->leaving && c->out_error == 0 && (st = read_message(&line, &message)) != LINE_END;) {
        if (st == LINE_LONG) {
            (void)weft_fail(c->dg, W1307, WEFT_NOWHERE,
                            "the message has more than %d bytes and was not taken", LINE_BYTES_MAX);
            report(ch);
            continue;
        }
        if (message.n == 0)
            continue;
        if (message.p[0] == '/') {
            command(ch, message.p + 1);
            continue;
        }
        add_message(ch, "user", strbuf_view(&message));
        answer_or_forget(ch);
    }
    line_edit_end();
    strbuf_free(&line);
    strbuf_free(&message);
}

int talk_converse(cli *c, const talk_flags *f, const talk_kind *kind)
{
    chat ch = {.flags = *f, .json = c->common.json};
    c->common.json = false; /* a record for each answer, and messages go to stderr as they come */
    ch.flags.prefixes = PREFIXES;
    weft_status st = talk_open(c, &ch.flags, kind, &ch.t);
    if (st == WEFT_OK)
        st = talk_template(&ch.t);
    if (st == WEFT_OK) {
        if (f->system)
            st = chat_check_text(c->dg, "--system", str_of(f->system));
    }
    if (st == WEFT_OK) {
        if (f->system)
            add_message(&ch, "system", str_of(f->system));
        converse(&ch);
    }
    cli_report(c, c->dg);
    VEC_FREE(&ch.messages);
    talk_close(&ch.t);
    return cli_exit_of(st);
}
