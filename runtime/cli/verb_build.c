/* verb_build.c - `weft build`: a model into one program. */
#include "runtime/build/build.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/lora_flags.h"

typedef struct {
    model_flags open;
    const char *out, *target, *cpu, *linker, *sysroot, *runtime, *chat_template;
    int weights, code;
    bool strip, lib;
} build_flags;

enum { WEIGHTS_INSIDE, WEIGHTS_EXTERNAL };

/* clang-format off */
static const flag rows[] = {
    MODEL_FLAG_ROW (build_flags, open, "the checkpoint"),
    FLAG_ROW_STR   (build_flags, open.arch, "arch", NULL, "FILE", NULL, "read it with this .weft file"),
    FLAG_ROW_STR   (build_flags, out,    "output", "o", "PROGRAM", NULL, "the file to write"),
    FLAG_ROW_STR   (build_flags, target, "target", NULL, "NAME", NULL, "x86_64-linux-gnu or aarch64-linux-gnu; without it this machine's"),
    FLAG_ROW_STR   (build_flags, cpu,    "cpu", NULL, "LEVELS", "auto", "auto: as weft run does here, and plainer processors that can read the same weights (with --target baseline); baseline: any processor of the architecture; native: this one; or names with commas, such as avx2,amx"),
    FLAG_ROW_INT   (build_flags, open.context, "ctx-size", "c", "N", "-1", -1, 1 << 30, "context, the most that the program can have; 0: the trained one; -1: that, 8192 at most"),
    BATCH_FLAG_ROW (build_flags, open, "512"),
    KV_FLAG_ROW    (build_flags, open),
    FLAG_ROW_LIST  (build_flags, open.lora, "lora", NULL, "PATH[=SCALE]", "carry this adapter, which every text uses; several: their sum"),
    FLAG_ROW_STR   (build_flags, chat_template, "chat-template", NULL, "NAME", NULL, "carry a built-in template or that of a file, in place of the model's; a program of a model without one has no chats"),
    FLAG_ROW_CHOICE(build_flags, weights, "weights", NULL, "inside|external", "inside", "in the program, or beside it in PROGRAM.weights"),
    FLAG_ROW_CHOICE(build_flags, code, "code", NULL, "auto|llvm|none", "auto", "generated code for decoding: where LLVM is there, always, or never, which makes it smaller"),
    FLAG_ROW_BOOL  (build_flags, lib,    "lib",   NULL, "a shared library and its header instead of a program"),
    FLAG_ROW_BOOL  (build_flags, strip,  "strip", NULL, "leave out what debuggers need: names of functions, and how to unwind them"),
    FLAG_ROW_STR   (build_flags, linker, "linker", NULL, "PATH", NULL, "LLVM's linker, 14 or later; without it ld.lld of PATH"),
    FLAG_ROW_STR   (build_flags, sysroot, "sysroot", NULL, "FOLDER", NULL, "where the target's /usr is"),
    FLAG_ROW_STR   (build_flags, runtime, "runtime", NULL, "FOLDER", NULL, "where NAME/libweft_core.a of each target is; without it where Weft was built or installed"),
    FLAG_ROW_END   (build_flags),
};

static const char *const examples[] = {
    "weft build -m model.gguf -o story",                             "one program, which needs nothing beside it",
    "weft build -m model.gguf -o story --cpu native --strip",        "for this processor alone",
    "weft build -m model.gguf -o story --cpu baseline",              "for any processor of this architecture",
    "weft build -m model.gguf -o story --target aarch64-linux-gnu",  "for another architecture",
    "weft build -m model.gguf -o libstory.so --lib",                 "a library, with story.h beside it",
    NULL,
};
/* clang-format on */

const verb_page build_verb_page = {
    rows,
    "Writes one file that holds the compiled plan, the kernels it uses, tokenizer, chat template "
    "and weights. It is statically linked and opens no "
    "file, so it runs anywhere: ./story -p \"Once\" -n 100, --info, --bench, --help. By itself it "
    "holds the plan and the repacked weights that weft run would use on this machine, and plans "
    "for "
    "all other levels that can read these, or need at most 32 MiB of weights of their own; where "
    "none of its plans can run, a program says so. With --cpu baseline weights stay as the "
    "checkpoint stores them, once for all levels; for levels that are named they are repacked for "
    "the kernels of each.",
    examples,
};

static void report_weights(void *ctx, uint64_t done, uint64_t total)
{
    progress *bar = ctx;
    if (!bar->label)
        progress_start(bar, "writing weights", total, PROGRESS_BYTES);
    progress_update(bar, done);
    if (done == total)
        progress_end(bar);
}

enum { CONTEXT_DEFAULT = 8192, PREFIXES_OF_CHAT = 4 };

static int64_t context_of(const weft_model *m, int64_t asked)
{
    int64_t trained = weft_model_context(m);
    if (asked > 0)
        return asked;
    if (trained == 0 || (asked < 0 && trained > CONTEXT_DEFAULT))
        return CONTEXT_DEFAULT;
    return trained;
}

static void print_result(cli *c, const build_flags *o, const build_target *to,
                         const build_result *r)
{
    strbuf out = {0};
    json_writer w = {.out = &out};
    if (c->common.json) {
        json_open(&w, '{');
        json_key_text(&w, "file", o->out);
        json_key_text(&w, "target", to->name);
        json_key_int(&w, "bytes", (int64_t)r->bytes);
        json_key_int(&w, "weights", (int64_t)r->weights);
        json_key_bool(&w, "code", r->code);
        json_key_open(&w, "levels", '[');
        for (int i = 0; i < r->n_level; i++)
            json_str(&w, str_of(r->level[i]));
        json_close(&w, ']');
        json_key_open(&w, "left_out", '[');
        for (int i = r->n_left_out - 1; i >= 0; i--)
            json_str(&w, str_of(r->left_out[i]));
        json_close(&w, ']');
        json_close(&w, '}');
        strbuf_putc(&out, '\n');
        cli_print_all(c, &out);
        return;
    }
    for (int i = 0; i < r->n_level; i++)
        strbuf_add(&out, "%s%s", i ? ", " : "", r->level[i]);
    cli_say(c, "%s: %.1f MiB for %s (%s), of which weights %.1f MiB%s", o->out,
            (double)r->bytes / (1 << 20), to->name, out.p, (double)r->weights / (1 << 20),
            o->weights == WEIGHTS_EXTERNAL ? " beside it" : "");
    if (r->n_left_out > 0)
        cli_say(c,
                "its weights lie as kernels of %s and better want them: other processors are told "
                "that they lack it; --cpu baseline is for all",
                r->level[0]);
    if (*r->without)
        cli_say(c, "without generated code: %s", r->without);
    strbuf_free(&out);
}

/* The adapters of --lora, for the session and for the file. */
static weft_status carry_adapters(cli *c, const lora *l, arena *a, build_options *how)
{
    const adapter_source **list = ARENA_ARRAY(a, const adapter_source *, l->n + 1);
    for (size_t i = 0; i < l->n; i++) {
        if (!l->adapter[i])
            return weft_fail(c->dg, W1904, WEFT_NOWHERE, "a program carries no random adapters");
        list[i] = &l->adapter[i]->from;
    }
    lora_want(l, &how->session.how);
    how->adapter = list;
    how->scale = l->scale;
    how->n_adapter = l->n;
    return WEFT_OK;
}

static void want_session(const build_flags *o, const weft_model *m, progress *bar, api_wanted *w)
{
    w->how = model_flags_session(&o->open, bar);
    w->how.context = context_of(m, o->open.context);
    w->how.wants = 1;
    w->how.prefixes = PREFIXES_OF_CHAT;
}

static weft_status build(cli *c, const build_flags *o)
{
    const build_target *to;
    weft_model *m = NULL;
    build_result made;
    lora named = {0};
    progress bar = {0};
    if (!o->out)
        return weft_fail(c->dg, W1904, WEFT_NOWHERE, "build needs a file to write: -o PROGRAM");
    WEFT_TRY(model_flags_check(c->dg, &o->open));
    WEFT_TRY(build_target_find(c->dg, o->target, &to));
    build_options how = {
        .out = o->out,
        .to = to,
        .cpu = o->cpu,
        .tools = {.linker = o->linker, .sysroot = o->sysroot, .runtime = o->runtime, .lib = o->lib},
        .strip = o->strip,
        .chat_template = o->chat_template,
        .code = (build_code_choice)o->code,
        .external = o->weights == WEIGHTS_EXTERNAL,
        .stop = interrupt_flag(),
        .report = report_weights,
        .ctx = &bar};
    api_source from = model_flags_source(&o->open);
    WEFT_TRY(api_model_open(c->dg, &from, &m));
    want_session(o, m, &bar, &how.session);
    arena *a = arena_create();
    weft_status st = model_file_spare(c->dg, api_file_of(m)->file, o->out);
    if (st == WEFT_OK)
        st = lora_open(c->dg, m, &o->open, &named);
    if (st == WEFT_OK)
        st = carry_adapters(c, &named, a, &how);
    if (st == WEFT_OK)
        st = build_program(c->dg, m, &how, &made);
    if (st == WEFT_OK)
        print_result(c, o, to, &made);
    lora_close(&named);
    arena_destroy(a);
    weft_model_close(m);
    return st;
}

int verb_build(cli *c)
{
    interrupt_hold(true); /* so that what was begun is removed */
    weft_status st = build(c, c->options);
    bool interrupted = st != WEFT_OK && *interrupt_flag();
    interrupt_hold(false);
    if (!interrupted)
        return cli_exit_of(st);
    diag_reset(c->dg); /* the linker had the signal too, and died of it */
    return CLI_INTERRUPTED;
}
