/* verb_profile.c - `weft profile`: where the time goes, beside the text of the model file. */
#include "runtime/base/bandwidth.h"
#include "runtime/cli/cli.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/planned.h"
#include "runtime/cli/report_profile.h"
#include "runtime/exec/device.h"
#include "runtime/formats/out_file.h"

enum { PROMPT_USUAL = 512, DECODE_USUAL = 64 };

typedef struct {
    model_flags open;
    int64_t n_prompt, n_decode;
    const char *svg;
} profile_flags_options;

/* clang-format off */
static const flag profile_flags[] = {
    PLANNED_FLAG_ROWS(profile_flags_options, "512"),
    FLAG_ROW_INT   (profile_flags_options, n_prompt, "n-prompt", "p",  "N", "-1", -1, 1 << 20, "tokens of a prompt; -1: 512, or what the context leaves; 0: no prompt"),
    FLAG_ROW_INT   (profile_flags_options, n_decode, "n-gen",    "n",  "N", "-1", -1, 1 << 20, "tokens one by one after it; -1: 64, or what the context leaves; 0: none"),
    LORA_FLAG_ROWS (profile_flags_options, open),
    FLAG_ROW_STR   (profile_flags_options, svg,      "svg",      NULL, "FILE", NULL, "draw a picture into this file"),
    FLAG_ROW_END   (profile_flags_options),
};

static const char *const examples[] = {
    "weft profile -m model.gguf",                         "512 tokens at once, then 64 one by one",
    "weft profile -m model.gguf -p 0 -n 256 -t 1",        "decoding alone, on one thread",
    "weft profile -m model.gguf --svg profile.svg",       "with a picture",
    "weft profile -m model.gguf --json | jq .lines",      "for programs",
    NULL,
};
/* clang-format on */

const verb_page profile_verb_page = {
    profile_flags,
    "Shows the model file with the time of each line's steps, averaged over threads; a fused step "
    "counts for the line where it ends. The roof is the least time that a step's bytes and flops "
    "allow, at the memory bandwidth and the rate of the kernel's instructions measured here; data "
    "that stays in a cache may be faster. Every run is made twice, once untimed and once with each "
    "step timed, and both times are shown.",
    examples,
};

typedef struct {
    int64_t n_prompt, n_decode;
} lengths;

static int64_t at_most(int64_t n, int64_t most)
{
    return n < most ? n : most;
}

/* What was asked for; where nothing was, the usual numbers, made to fit. Of a short context half is prompt. */
static lengths fit(const profile_flags_options *o, int64_t context)
{
    lengths l = {o->n_prompt, o->n_decode};
    if (l.n_decode < 0)
        l.n_decode = at_most(DECODE_USUAL, l.n_prompt < 0         ? context / 2
                                           : l.n_prompt < context ? context - l.n_prompt
                                                                  : 0);
    if (l.n_prompt < 0)
        l.n_prompt = at_most(PROMPT_USUAL, l.n_decode < context ? context - l.n_decode : 0);
    return l;
}

static profile_limits limits_of_card(const device *d)
{
    device_rates card = device_rates_of(d);
    return (profile_limits){.threads = card.blocks, .bandwidth = card.bandwidth};
}

static profile_limits limits_of_cpu(int threads)
{
    profile_limits cpu = {.threads = threads, .bandwidth = bandwidth_read(threads)};
    peaks_measure(threads, &cpu.peaks);
    return cpu;
}

/* Of the device of each plan; the CPU is measured once. */
static void find_limits(const planned *pl, profile_limits *out)
{
    const plan_parts *parts = pl->made.run.parts;
    profile_limits cpu = {0};
    for (int32_t i = 0; i < (parts ? parts->n_part : 1); i++) {
        if (parts ? parts->part[i].card : pl->made.dev != NULL) {
            out[i] = limits_of_card(pl->made.dev);
            continue;
        }
        if (cpu.threads == 0)
            cpu = limits_of_cpu(pl->made.run.threads);
        out[i] = cpu;
    }
}

static weft_status run(cli *c, lengths l, planned *pl, arena *a, profile *out)
{
    session *s;
    profile_options how = {
        .n_prompt = l.n_prompt, .n_decode = l.n_decode, .interrupt = interrupt_flag()};
    find_limits(pl, how.limits);
    WEFT_TRY(session_create(c->dg, pl->made.p, pl->m->weights, &pl->made.run, &s));
    interrupt_hold(true);
    weft_status st = lora_load_run(c->dg, &pl->adapters, pl->made.p, s, LORA_MIX);
    if (st == WEFT_OK)
        st = profile_make(c->dg, s, &how, a, out);
    interrupt_hold(false);
    session_destroy(s);
    WEFT_TRY(st);
    return model_file_check(c->dg, api_file_of(pl->m)->file);
}

static weft_status open_plan(cli *c, const profile_flags_options *o, planned *pl, lengths *out)
{
    lengths l = fit(o, INT64_MAX); /* of a context that holds anything */
    *pl = (planned){0};
    if (l.n_prompt + l.n_decode == 0)
        return weft_fail(c->dg, W1903, WEFT_NOWHERE, "-p and -n are both 0: nothing would run");
    planned_options want = {.fill = true, .held = l.n_prompt + l.n_decode};
    WEFT_TRY(planned_open(c->dg, &o->open, &want, pl));
    l = fit(o, pl->made.run.n_ctx);
    if (l.n_prompt + l.n_decode > pl->made.run.n_ctx)
        return weft_fail(c->dg, W1404, WEFT_NOWHERE,
                         "%lld tokens are to be run, the context is %lld",
                         (long long)(l.n_prompt + l.n_decode), (long long)pl->made.run.n_ctx);
    *out = l;
    return WEFT_OK;
}

int verb_profile(cli *c)
{
    const profile_flags_options *o = c->options;
    planned pl;
    profile f;
    arena *a = arena_create();
    lengths l = {0, 0};
    weft_status st = open_plan(c, o, &pl, &l);
    bool stopped = false;
    if (st == WEFT_OK)
        st = run(c, l, &pl, a, &f);
    if (st == WEFT_OK) {
        strbuf out = {0};
        stopped = *interrupt_flag();
        (c->common.json ? profile_as_json : profile_as_text)(&f, &out);
        cli_print(c, strbuf_view(&out));
        strbuf_reset(&out);
        if (o->svg) {
            profile_as_svg(&f, &out);
            st = out_file_write(c->dg, o->svg, strbuf_view(&out));
        }
        strbuf_free(&out);
    }
    c->common.json = false; /* the document is the profile: messages go to stderr */
    cli_report(c, c->dg);
    planned_close(&pl);
    arena_destroy(a);
    return stopped ? CLI_INTERRUPTED : cli_exit_of(st);
}
