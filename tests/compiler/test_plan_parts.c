/* test_plan_parts.c - the suite of compiler/plan_parts.c: what goes where, and what cannot be cut. */
#include "compiler/compiler.h"
#include "compiler/passes.h"
#include "compiler/plan_check.h"
#include "compiler/plan_make.h"
#include "compiler/plan_parts.h"
#include "tests/base/suite.h"

#include <unistd.h>

enum { LAYERS = 4 };

typedef struct {
    weft_diag *dg;
    arena *a;
    model_file *mf;
    bound_model *bm;
    plan_parts parts;
    char path[32];
} cut;

/* llama.weft with pieces of text in the place of others: pairs, NULL ends. */
static void write_arch(cut *c, const char *const *edit)
{
    strcpy(c->path, "/tmp/weft-parts-XXXXXX.weft");
    FILE *to = fdopen(mkstemps(c->path, 5), "w"), *from = fopen(WEFT_MODELS "/llama.weft", "r");
    char line[512];
    ck_assert(to && from);
    while (fgets(line, sizeof line, from)) {
        char *at = edit[0] ? strstr(line, edit[0]) : NULL; /* in the order of the text */
        if (!at) {
            fputs(line, to);
            continue;
        }
        fprintf(to, "%.*s%s%s", (int)(at - line), line, edit[1], at + strlen(edit[0]));
        edit += 2;
    }
    fclose(from);
    fclose(to);
    ck_assert_ptr_null(edit[0]);
}

static cut open_model(const char *const *edit)
{
    cut c = {.dg = diag_create(), .a = arena_create()};
    write_arch(&c, edit);
    bind_options how = {.arch = c.path};
    ck_assert_int_eq(model_file_open(c.dg, WEFT_GOLDEN "/llama-mha", NULL, &c.mf), WEFT_OK);
    weft_status st = model_bind(c.dg, c.mf, &how, &c.bm);
    if (st != WEFT_OK)
        diag_print(c.dg, stderr, false);
    ck_assert_int_eq(st, WEFT_OK);
    ck_assert_int_eq(graph_layers(c.bm->graph), LAYERS);
    return c;
}

static void close_model(cut *c)
{
    unlink(c->path);
    bound_model_destroy(c->bm);
    model_file_close(c->mf);
    arena_destroy(c->a);
    diag_destroy(c->dg);
}

static target cpu_target(void)
{
    static const char *const outputs[] = {"logits", "resid.1"};
    return (target){.be = backend_cpu_best(),
                    .n_ctx = 32,
                    .n_seq = 2,
                    .n_tok_max = 16,
                    .n_out_max = 2,
                    .kv = DT_F16,
                    .outputs = outputs,
                    .n_output = 2};
}

static weft_status make(cut *c, const graph *g, int64_t n)
{
    target cpu = cpu_target(), card = cpu;
    card.be = backend_cuda();
    return plan_make_parts(c->dg, g, &cpu, &card, n, c->a, &c->parts);
}

static void layers_of(const plan *p, int32_t *first, int32_t *last)
{
    *first = LAYERS;
    *last = -1;
    for (int32_t i = 0; i < p->bucket[0].n_step; i++) {
        int32_t l = p->bucket[0].step[i].layer;
        *first = l >= 0 && l < *first ? l : *first;
        *last = l > *last ? l : *last;
    }
}

START_TEST(layers_and_their_cells_go_together)
{
    cut c = open_model((const char *[]){NULL});
    for (int64_t n = 1; n <= LAYERS; n++) {
        int32_t first, last;
        ck_assert_int_eq(make(&c, c.bm->graph, n), WEFT_OK);
        ck_assert_int_eq(c.parts.n_part, 3);
        for (int32_t i = 0; i < 3; i++) {
            const plan_part *x = &c.parts.part[i];
            ck_assert_int_eq(x->card, i == 1);
            ck_assert_str_eq(x->p->backend, x->card ? "cuda" : "cpu");
            ck_assert_int_eq(x->n_in, i > 0); /* the residual stream and nothing else */
            ck_assert_int_eq(x->p->n_cell, i == 1 ? n : i == 0 ? LAYERS - n : 0);
            ck_assert_int_eq(plan_check(c.dg, i == 1 ? backend_cuda() : backend_cpu_best(), x->p),
                             WEFT_OK);
        }
        layers_of(c.parts.part[1].p, &first, &last);
        ck_assert_int_eq(first, LAYERS - n);
        ck_assert_int_eq(last, LAYERS - 1);
        ck_assert_ptr_nonnull(plan_output_find(c.parts.part[2].p, "logits", -1));
        ck_assert_ptr_nonnull(plan_output_find(c.parts.part[n > 2].p, "resid", 1));
    }
    close_model(&c);
}
END_TEST

/* A value of the embedding that every layer reads crosses too, also to what stands behind them. */
START_TEST(whatever_is_read_later_is_handed_on)
{
    static const char *const edits[] = {"x = tok_embd(tokens)",
                                        "first = tok_embd(tokens)\n    x = first",
                                        "h = ffn_norm(x)",
                                        "h = ffn_norm(x + first)",
                                        "h = out_norm(x)",
                                        "h = out_norm(x + first)",
                                        NULL};
    cut c = open_model(edits);
    ck_assert_int_eq(make(&c, c.bm->graph, 2), WEFT_OK);
    ck_assert_int_eq(c.parts.n_part, 3);
    ck_assert_int_eq(c.parts.part[1].n_in, 2);
    ck_assert_int_eq(c.parts.part[2].n_in, 2);
    const plan_input *in = c.parts.part[2].in;
    ck_assert_int_eq(in[0].part + in[1].part, 1); /* one of each */
    ck_assert_int_ne(in[0].offset, in[1].offset);
    close_model(&c);
}
END_TEST

START_TEST(a_cell_of_both_sides_is_in_the_way)
{
    cut c = open_model(
        (const char *[]){"append(kv[l], k, v)", "append(kv[l < 2 ? l : 1], k, v)", NULL});
    ck_assert_int_eq(make(&c, c.bm->graph, 2), WEFT_ERR_DEVICE);
    diag_entry e = diag_at(c.dg, 0);
    ck_assert_int_eq(e.code, W1611);
    ck_assert_msg(strstr(e.message.p, "the last 2 of 4 layers cannot be on a device of their own: "
                                      "kv[1]: layers on both devices use it"),
                  "%s", e.message.p);
    ck_assert_int_eq(make(&c, c.bm->graph, 3), WEFT_OK);
    ck_assert_int_eq(make(&c, c.bm->graph, 4), WEFT_OK);
    close_model(&c);
}
END_TEST

START_TEST(a_model_without_layers_is_not_cut)
{
    cut c = open_model((const char *[]){NULL});
    graph *g = graph_copy(c.bm->graph);
    for (size_t i = 0; i < g->nodes.n; i++)
        g->nodes.at[i].layer = -1;
    ck_assert_int_eq(make(&c, g, 2), WEFT_ERR_DEVICE);
    ck_assert(strstr(diag_at(c.dg, 0).message.p, "llama has no layers to divide"));
    graph_destroy(g);
    close_model(&c);
}
END_TEST

/* Layers that are numbered against the order in which they run. */
START_TEST(an_earlier_layer_that_needs_a_later_one_is_not_cut)
{
    cut c = open_model((const char *[]){NULL});
    graph *g = graph_copy(c.bm->graph);
    for (size_t i = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i].layer >= 0)
            g->nodes.at[i].layer = LAYERS - 1 - g->nodes.at[i].layer;
    ck_assert_int_eq(make(&c, g, 1), WEFT_ERR_DEVICE);
    ck_assert(strstr(diag_at(c.dg, 0).message.p, "it needs what a later layer makes"));
    graph_destroy(g);
    close_model(&c);
}
END_TEST

static bool rounds(const plan *p)
{
    for (int32_t i = 0; i < p->n_kernel; i++)
        if (act_rounds_bf16(p->kernel[i].act))
            return true;
    return false;
}

/* Also where a part has nothing to round: what stands before the layers is a look-up, and a head has few rows. */
START_TEST(each_part_rounds_by_itself)
{
    cut c = open_model((const char *[]){NULL});
    target cpu = cpu_target(), card;
    cpu.be = backend_cpu_for(KARCH_X86_64, "amx_bf16");
    cpu.round_bf16 = true;
    cpu.n_tok_max = 32; /* few rows are not rounded */
    card = cpu;
    card.be = backend_cuda_rounding();
    for (int64_t n = 1; n <= LAYERS; n++) {
        ck_assert_int_eq(plan_make_parts(c.dg, c.bm->graph, &cpu, &card, n, c.a, &c.parts),
                         WEFT_OK);
        ck_assert_int_eq(rounds(c.parts.part[0].p), n < LAYERS);
        ck_assert(rounds(c.parts.part[1].p) && !rounds(c.parts.part[2].p));
    }
    close_model(&c);
}
END_TEST

static const plan_step *maker_of(const plan *p, int32_t id)
{
    for (int32_t i = 0; i < p->bucket->n_step; i++)
        for (int k = 0; k < p->bucket->step[i].n_out; k++)
            if (p->bucket->step[i].value[k] == id)
                return &p->bucket->step[i];
    return NULL;
}

/* So that values of both can be compared, from part to part. */
START_TEST(the_reference_is_cut_as_the_plan_is)
{
    static const char *const edits[] = {"x = tok_embd(tokens)",
                                        "first = tok_embd(tokens)\n    x = first",
                                        "h = ffn_norm(x)",
                                        "h = ffn_norm(x + first)",
                                        "h = out_norm(x)",
                                        "h = out_norm(x + first)",
                                        NULL};
    cut c = open_model(edits);
    target cpu = cpu_target(), card = cpu, ref = cpu;
    plan_parts as;
    card.be = backend_cuda();
    ref.be = backend_reference();
    ref.kv = DT_F32;
    ck_assert_int_eq(make(&c, c.bm->graph, 2), WEFT_OK);
    ck_assert_int_eq(plan_make_parts_as(c.dg, c.bm->graph, &cpu, &card, 2, &ref, c.a, &as),
                     WEFT_OK);
    ck_assert_int_eq(as.n_part, c.parts.n_part);
    for (int32_t i = 0; i < as.n_part; i++) {
        const plan_part *x = &as.part[i], *of = &c.parts.part[i];
        int seen = 0;
        ck_assert(!x->card);
        ck_assert_int_eq(x->n_in, of->n_in);
        ck_assert_int_eq(plan_check(c.dg, backend_reference(), x->p), WEFT_OK);
        for (int32_t s = 0; s < of->p->bucket->n_step; s++) {
            const plan_step *step = &of->p->bucket->step[s], *made;
            if (step->n_out < 1 || step->value[0] < 0)
                continue;
            made = maker_of(x->p, step->value[0]);
            ck_assert_ptr_nonnull(made);
            ck_assert_int_eq(made->layer, step->layer);
            seen++;
        }
        ck_assert_int_gt(seen, 0);
        for (int32_t k = 0; k < x->n_in; k++) { /* what is given stays there until the end */
            ck_assert_int_eq(x->in[k].output, of->in[k].output);
            for (int32_t s = 0; s < x->p->bucket->n_step; s++)
                for (int o = 0; o < x->p->bucket->step[s].n_out; o++)
                    ck_assert_int_ge(x->p->bucket->step[s].out[o].offset,
                                     (int64_t)x->p->input_bytes);
        }
    }
    close_model(&c);
}
END_TEST

/* Values of a fixed number of rows, of which a card has as many as the vocabulary, and of one row beside it. */
START_TEST(values_without_rows_of_the_call_are_items_of_their_own)
{
    static const char *const logits[] = {"logits"};
    static const char head[] = "linear   lm_head  (d -> vocab)  gguf \"output\"       hf "
                               "\"lm_head\"  when !tied  ?? tok_embd";
    cut c = open_model((const char *[]){"rms_norm out_norm (d, eps)", "tensor on (d)", head,
                                        "tensor ow (vocab, d) gguf \"output\" hf \"lm_head\"",
                                        "out_norm(x)", "x", "lm_head(h)", "linear(h, ow * exp(on))",
                                        NULL});
    target card = {.be = backend_cuda(),
                   .n_ctx = 128,
                   .n_seq = 1,
                   .n_tok_max = 128,
                   .kv = DT_F16,
                   .outputs = logits,
                   .n_output = 1};
    plan *p;
    ck_assert_int_eq(plan_make(c.dg, c.bm->graph, &card, NULL, c.a, &p), WEFT_OK);
    ck_assert_int_eq(plan_check(c.dg, card.be, p), WEFT_OK);
    close_model(&c);
}
END_TEST

static int32_t card_phases(cut *c, int64_t n_ctx)
{
    static const char *const logits[] = {"logits"};
    target card = {.be = backend_cuda(),
                   .n_ctx = n_ctx,
                   .n_seq = 1,
                   .n_tok_max = 1,
                   .kv = DT_F16,
                   .outputs = logits,
                   .n_output = 1};
    plan *p;
    ck_assert_int_eq(plan_make(c->dg, c->bm->graph, &card, NULL, c->a, &p), WEFT_OK);
    ck_assert_int_eq(plan_check(c->dg, card.be, p), WEFT_OK);
    return p->bucket[0].n_phase;
}

/* Stretches of a context are merged by every block, and many of them once. */
START_TEST(long_contexts_are_merged_in_a_phase)
{
    cut c = open_model((const char *[]){NULL});
    const int32_t few = card_phases(&c, 512), some = card_phases(&c, 8192);
    ck_assert_int_eq(some, few);
    ck_assert_int_eq(card_phases(&c, 16384), some + LAYERS);
    close_model(&c);
}
END_TEST

SUITE_MAIN("plan_parts", layers_and_their_cells_go_together, whatever_is_read_later_is_handed_on,
           a_cell_of_both_sides_is_in_the_way, a_model_without_layers_is_not_cut,
           an_earlier_layer_that_needs_a_later_one_is_not_cut, each_part_rounds_by_itself,
           the_reference_is_cut_as_the_plan_is,
           values_without_rows_of_the_call_are_items_of_their_own,
           long_contexts_are_merged_in_a_phase)
