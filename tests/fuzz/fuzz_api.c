/* fuzz_api.c - any sequence of calls of the public interface, with any numbers, on the demo model.
 *
 * Each byte chooses a call, and the bytes behind it its numbers. Calls may fail; nothing may crash, and what holds of a
 * session (lengths within the context, free pages within the pool) holds after each. Model and session stay from input to
 * input; what an input leaves in the sequences is dropped. */
#include "runtime/weft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CONTEXT = 24, SEQUENCES = 3, TEXTS = 3, CALLS_MAX = 40 };

static struct {
    weft_diag *dg;
    weft_model *m;
    weft_tokenizer *t;
    weft_session *s;
    weft_cancel *cancel;
} kit;

typedef struct {
    const uint8_t *p, *end;
    weft_generation *g[TEXTS];
} input;

static void need(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "fuzz_api: %s\n%s", what, weft_diag_text(kit.dg));
        abort();
    }
}

static uint8_t take(input *in)
{
    return in->p < in->end ? *in->p++ : 0;
}

/* Small as a rule, now and then anything. */
static int64_t number(input *in)
{
    uint8_t x = take(in);
    static const int64_t odd[] = {INT64_MIN, INT64_MAX, INT32_MAX, INT32_MIN, -1, 1 << 20};
    return x < 240 ? x % 32 : odd[x % (sizeof odd / sizeof *odd)];
}

static void call_eval(input *in)
{
    weft_row rows[8];
    int64_t n = take(in) % 9;
    for (int64_t i = 0; i < n; i++)
        rows[i] = (weft_row){.token = (int32_t)number(in),
                             .pos = (int32_t)number(in),
                             .seq = (int32_t)(take(in) % 4),
                             .slot = take(in) == 255,
                             .want = take(in) & 1};
    (void)weft_eval(kit.dg, kit.s, rows, n);
}

static void call_output(input *in)
{
    weft_view v;
    volatile float sum = 0; /* all of it can be read */
    const char *name = take(in) & 1 ? "logits" : "hidden";
    if (weft_output(kit.dg, kit.s, name, (int)number(in), &v) == WEFT_OK)
        for (int64_t i = 0; i < v.rows * v.width; i++)
            sum += v.data[i];
}

static void call_truncate(input *in)
{
    int64_t seq = number(in), length = number(in);
    (void)weft_truncate(kit.dg, kit.s, seq, length);
}

static void call_fork(input *in)
{
    int64_t from = number(in), to = number(in), length = number(in);
    (void)weft_fork(kit.dg, kit.s, from, to, length);
}

static weft_generation_options options(input *in, weft_sampler_options *pick)
{
    static const char *const stops[] = {" girl", "", "e"};
    *pick = (weft_sampler_options){.size = sizeof *pick};
    weft_sampler_defaults(pick);
    pick->seed = take(in);
    pick->temp = take(in) / 64.0;
    pick->top_k = number(in);
    pick->last_n = number(in);
    pick->repeat = 1 + take(in) / 128.0;
    pick->dry_multiplier = take(in) & 1;
    pick->mirostat = take(in) % 4;
    return (weft_generation_options){.size = sizeof(weft_generation_options),
                                     .seq = take(in) % 4,
                                     .max_tokens = number(in),
                                     .stops = stops,
                                     .n_stop = take(in) % 4,
                                     .ignore_end = take(in) & 1,
                                     .top_logprobs = take(in) % 5,
                                     .sampler = take(in) & 1 ? pick : NULL};
}

static void call_create(input *in)
{
    weft_sampler_options pick;
    weft_generation **g = &in->g[take(in) % TEXTS];
    weft_generation_options how = options(in, &pick);
    weft_generation_destroy(*g);
    *g = NULL;
    (void)weft_generation_create(kit.dg, kit.s, kit.t, &how, g);
}

static void call_change(input *in)
{
    weft_sampler_options pick;
    weft_generation *g = in->g[take(in) % TEXTS];
    weft_generation_options how = options(in, &pick);
    (void)weft_generation_change(kit.dg, g, &how);
}

static void call_prompt(input *in)
{
    int32_t ids[40];
    weft_generation *g = in->g[take(in) % TEXTS];
    size_t n = take(in) % 41;
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)number(in);
    (void)weft_generation_prompt(kit.dg, g, ids, n);
}

static void call_split(input *in)
{
    weft_generation *from = in->g[take(in) % TEXTS], *to = in->g[take(in) % TEXTS];
    (void)weft_generation_fork(kit.dg, from, to, take(in) & 1);
}

static void call_step(input *in)
{
    weft_generation *list[4];
    size_t n = take(in) % 5;
    for (size_t i = 0; i < n; i++)
        list[i] = in->g[take(in) % TEXTS];
    (void)weft_step(kit.dg, kit.s, list, n);
}

static void call_generate(input *in)
{
    weft_generation *g = in->g[take(in) % TEXTS];
    weft_end end;
    if (weft_generate(kit.dg, g, NULL, NULL, &end) == WEFT_OK)
        need(end != WEFT_END_NONE && weft_generation_piece(g)->end == end, "a generation ends");
}

static void call_text(input *in)
{
    char text[32], *back = NULL;
    size_t n = take(in) % 33, n_id = 0, bytes = 0;
    int32_t *ids = NULL;
    for (size_t i = 0; i < n; i++)
        text[i] = (char)take(in);
    if (weft_encode(kit.dg, kit.t, text, n, take(in) % 4, &ids, &n_id) == WEFT_OK &&
        weft_decode(kit.dg, kit.t, ids, n_id, take(in) & 1, &back, &bytes) == WEFT_OK)
        need(back[bytes] == 0, "a text ends with a NUL");
    weft_free(ids);
    weft_free(back);
}

static void call_cancel(input *in)
{
    if (take(in) & 1)
        weft_cancel_set(kit.cancel);
    else
        weft_cancel_clear(kit.cancel);
}

static void call_clear(input *in)
{
    (void)in;
    weft_diag_clear(kit.dg);
}

static void (*const calls[])(input *in) = {
    call_eval,  call_output, call_truncate, call_fork,     call_create, call_change, call_prompt,
    call_split, call_step,   call_step,     call_generate, call_text,   call_cancel, call_clear,
};

static void open_kit(void)
{
    kit.dg = weft_diag_create();
    kit.cancel = weft_cancel_create();
    weft_session_options how = {.size = sizeof how,
                                .context = CONTEXT,
                                .sequences = SEQUENCES,
                                .batch = 7,
                                .wants = 2,
                                .pages = 7,
                                .page_tokens = 4,
                                .cancel = kit.cancel,
                                .no_weight_cache = true};
    need(weft_model_open(kit.dg, WEFT_SOURCE_DIR "/models/stories-7m", NULL, &kit.m) == WEFT_OK &&
             weft_tokenizer_of_model(kit.dg, kit.m, &kit.t) == WEFT_OK &&
             weft_session_create(kit.dg, kit.m, &how, &kit.s) == WEFT_OK,
         "the demo model opens");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {.p = data, .end = data + size};
    weft_session_info about = {.size = sizeof about};
    if (!kit.s)
        open_kit();
    for (int i = 0; i < CALLS_MAX && in.p < in.end; i++) {
        calls[take(&in) % (sizeof calls / sizeof *calls)](&in);
        for (int64_t seq = 0; seq < SEQUENCES; seq++)
            need(weft_length(kit.s, seq) >= 0 && weft_length(kit.s, seq) <= CONTEXT,
                 "a sequence is within its context");
    }
    for (int i = 0; i < TEXTS; i++)
        weft_generation_destroy(in.g[i]);
    weft_cancel_clear(kit.cancel);
    weft_diag_text(kit.dg);
    weft_diag_clear(kit.dg);
    for (int64_t seq = 0; seq < SEQUENCES; seq++)
        need(weft_truncate(kit.dg, kit.s, seq, 0) == WEFT_OK, "a sequence is emptied");
    need(weft_session_about(kit.dg, kit.s, &about) == WEFT_OK &&
             about.pages_free + about.prefix_pages == about.pages,
         "what is not free is held by texts that were kept");
    weft_prefixes_drop(kit.s);
    need(weft_session_about(kit.dg, kit.s, &about) == WEFT_OK && about.pages_free == about.pages,
         "all pages are free again");
    return 0;
}
