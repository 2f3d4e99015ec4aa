/* verb_verify.c - `weft verify`: does the plan compute what the reference computes, on this model? */
#include "runtime/base/json_write.h"
#include "runtime/cli/cli.h"
#include "runtime/cli/id_list.h"
#include "runtime/cli/planned.h"
#include "runtime/cli/report_verify.h"
#include "runtime/text/tok.h"

#include <inttypes.h>
#include <stdlib.h>

enum { N_MAX = 4096, CTX_ENOUGH = 4096 }; /* no more state than that is set aside */

typedef struct {
    model_flags open;
    const char *text, *ids;
    int64_t n;
} verify_flags_options;

/* clang-format off */
static const flag verify_flags[] = {
    PLANNED_FLAG_ROWS(verify_flags_options, "32"),
    FLAG_ROW_STR   (verify_flags_options, text, "prompt", "p",  "TEXT", NULL, "the text to run; without it a built-in sentence"),
    FLAG_ROW_STR   (verify_flags_options, ids,  "ids",    NULL, "LIST", NULL, "token ids instead, such as 1,403,261"),
    FLAG_ROW_INT   (verify_flags_options, n,    "n",      "n",  "N", "24", 2, N_MAX, "tokens to take of it at most"),
    LORA_FLAG_ROWS (verify_flags_options, open),
    FLAG_ROW_END   (verify_flags_options),
};

static const char *const examples[] = {
    "weft verify -m model.gguf",                        "every value that the plan keeps, against the reference",
    "weft verify -m model.gguf -p 'int main(void)' -t 4", "on a text of your own",
    "weft verify -m model.gguf --kv bf16",              "what a shorter state costs",
    "weft verify --lora models/stories-7m-pirate -m models/stories-7m", "with an adapter",
    "weft verify -m model.gguf --json | jq .values[].error", "for programs",
    NULL,
};
/* clang-format on */

const verb_page verify_verb_page = {
    verify_flags,
    "The reference executor computes one node at a time in double precision; the plan is fused, "
    "threaded and may round. All run the same tokens with the same adapters: few rows, many, and "
    "one at a time. Every "
    "value "
    "that the plan keeps in memory is compared with a reference that rounds activations and state "
    "as the plan does, and then replaced by it, so that each error is a step's own. By layer, it "
    "also "
    "shows how far the plan drifts from a reference that rounds nothing. Exit status 1, and "
    "W1510 with the line of the model file, if a value is over its bound.",
    examples,
};

static const char sentence[] =
    "The interleaver counts the threads of the warp, sets the shuttle in motion, and row by row a "
    "pattern appears that nobody had drawn before.";

typedef struct {
    cli *c;
    const verify_flags_options *o;
    planned pl;
    graph *rewritten; /* NULL: the plan is the reference's own */
    plan *ref, *rounded, *original;
    plan_parts ref_parts, rounded_parts; /* of a model whose layers are on two devices */
    tok_ids ids;
    const char *source; /* of the ids */
} verify_job;

/* ---- what to run ---- */

/* Without a tokenizer and without --ids any ids will do. */
static void make_ids_up(verify_job *j)
{
    int64_t vocab = j->pl.made.p->n_vocab ? j->pl.made.p->n_vocab : 1;
    for (int64_t i = 0; i < j->o->n; i++)
        VEC_PUSH(&j->ids, (int32_t)((1 + i * 7919) % vocab));
    j->source = "made up without a tokenizer";
}

static weft_status encode(verify_job *j)
{
    weft_diag *quiet = diag_create();
    tok *t;
    bool given = j->o->text != NULL;
    weft_status st = tok_open_model(given ? j->c->dg : quiet, api_file_of(j->pl.m)->file, &t);
    if (st == WEFT_OK) {
        str text = str_of(given ? j->o->text : sentence);
        st = tok_encode(given ? j->c->dg : quiet, t, text, TOK_ENCODE_DEFAULT, &j->ids);
        tok_close(t);
    }
    diag_destroy(quiet);
    j->source = given ? "of -p" : "of a sentence";
    if (st != WEFT_OK && !given) {
        make_ids_up(j);
        return WEFT_OK;
    }
    return st;
}

static weft_status choose_ids(verify_job *j)
{
    j->source = "of --ids";
    WEFT_TRY(j->o->ids ? id_list_read(j->c->dg, "--ids", str_of(j->o->ids), &j->ids) : encode(j));
    if (j->ids.n < 1)
        return weft_fail(j->c->dg, W1903, WEFT_NOWHERE, "there is no token to run");
    int64_t n = j->o->n < j->pl.made.run.n_ctx ? j->o->n : j->pl.made.run.n_ctx;
    j->ids.n = (int64_t)j->ids.n > n ? (size_t)n : j->ids.n;
    return WEFT_OK;
}

/* ---- plans ---- */

/* Of the graph that the passes left, and in parts where the plan is. */
static weft_status make_reference(verify_job *j, const graph *after, const target *ref, plan **out,
                                  plan_parts *out_parts)
{
    const api_plan *made = &j->pl.made;
    WEFT_TRY(plan_make(j->c->dg, after, ref, NULL, made->a, out));
    if (!made->run.parts)
        return WEFT_OK;
    return plan_make_parts_as(j->c->dg, api_file_of(j->pl.m)->bound->graph, made->t, made->t_card,
                              j->o->open.device_layers, ref, made->a, out_parts);
}

static weft_status make_plans(verify_job *j)
{
    weft_diag *dg = j->c->dg;
    planned_options want = {.fill = true,
                            .wants = j->o->open.batch,
                            .held = j->o->n > CTX_ENOUGH ? j->o->n : CTX_ENOUGH};
    WEFT_TRY(planned_open(dg, &j->o->open, &want, &j->pl));
    target ref = *j->pl.made.t;
    ref.be = backend_reference();
    ref.kv = DT_F32;
    ref.tiers = (kpolicy){0};
    const graph *before = api_file_of(j->pl.m)->bound->graph, *after = before;
    if (j->pl.made.t->be->fuses || j->pl.made.run.parts) {
        WEFT_TRY(plan_graph(dg, before, j->pl.made.t, NULL, &j->rewritten));
        WEFT_TRY(plan_make(dg, before, &ref, NULL, j->pl.made.a, &j->original));
        after = j->rewritten;
    }
    WEFT_TRY(make_reference(j, after, &ref, &j->ref, &j->ref_parts));
    ref.kv = j->pl.made.t->kv;
    ref.tiers = j->pl.made.t->tiers;
    return make_reference(j, after, &ref, &j->rounded, &j->rounded_parts);
}

/* ---- the verb ---- */

static weft_status load_adapters(void *ctx, weft_diag *dg, const plan *p, session *s)
{
    return lora_load_run(dg, ctx, p, s, LORA_MIX);
}

static weft_status compare(verify_job *j, arena *a, verify_report *out)
{
    verify_options how = {.ref = j->ref,
                          .rounded = j->rounded,
                          .original = j->original,
                          .p = j->pl.made.p,
                          .ref_parts = j->pl.made.run.parts ? &j->ref_parts : NULL,
                          .rounded_parts = j->pl.made.run.parts ? &j->rounded_parts : NULL,
                          .src = j->pl.m->weights,
                          .run = j->pl.made.run,
                          .prepare = load_adapters,
                          .prepare_ctx = &j->pl.adapters,
                          .ids = j->ids.at,
                          .n_id = (int64_t)j->ids.n};
    WEFT_TRY(verify_run(j->c->dg, &how, a, out));
    return model_file_check(j->c->dg, api_file_of(j->pl.m)->file);
}

int verb_verify(cli *c)
{
    verify_job j = {.c = c, .o = c->options};
    arena *a = arena_create();
    verify_report r;
    weft_status st = WEFT_OK;
    if (j.o->text && j.o->ids)
        st = weft_fail(c->dg, W1904, WEFT_NOWHERE, "verify takes either -p or --ids");
    if (st == WEFT_OK)
        st = make_plans(&j);
    if (st == WEFT_OK)
        st = choose_ids(&j);
    if (st == WEFT_OK)
        st = compare(&j, a, &r);
    if (st == WEFT_OK) {
        strbuf out = {0};
        verify_subject of = {.p = j.pl.made.p,
                             .plans = plan_parts_or(j.pl.made.run.parts, j.pl.made.p),
                             .n_token = (int64_t)j.ids.n,
                             .tokens = j.source,
                             .threads = j.pl.made.run.threads};
        (c->common.json ? verify_as_json : verify_as_text)(&of, &r, &out);
        cli_print_all(c, &out);
        st = verify_report_fault(c->dg, &of, &r);
    }
    c->common.json = false; /* the document is the comparison: messages go to stderr */
    cli_report(c, c->dg);
    if (j.rewritten)
        graph_destroy(j.rewritten);
    planned_close(&j.pl);
    VEC_FREE(&j.ids);
    arena_destroy(a);
    return cli_exit_of(st);
}
