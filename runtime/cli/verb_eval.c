/* verb_eval.c - `weft eval`: token ids in, tensors out. The tool of every comparison with a reference. */
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"
#include "runtime/cli/id_list.h"
#include "runtime/cli/lora_flags.h"
#include "runtime/engine/score.h"
#include "runtime/formats/json_read.h"
#include "runtime/formats/safetensors_write.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { ROWS_ALL, ROWS_LAST };
enum { IDS_BYTES_MAX = 64 << 20 };

typedef struct {
    model_flags open;
    const char *ids, *outputs, *batch, *out, *plan;
    int64_t chunk, greedy;
    int rows;
} eval_options;

/* clang-format off */
static const flag eval_flags[] = {
    MODEL_FLAG_ROW (eval_options, open, "the checkpoint"),
    FLAG_ROW_STR   (eval_options, ids,     "ids",     NULL, "IDS",   NULL, "token ids: 1,2,3 or @FILE"),
    FLAG_ROW_STR   (eval_options, batch,   "batch",   NULL, "FILE",  NULL, "rows of several sequences: a JSON list of {id, pos, seq, lora, out}; lora: the number of a --lora, from 1"),
    FLAG_ROW_INT   (eval_options, open.context, "ctx-size", "c",  "N", "0", 0, 1 << 30, "the session's context; 0: as many as there are ids"),
    FLAG_ROW_STR   (eval_options, outputs, "outputs", NULL, "NAMES", "logits", "which: logits,hidden,resid or resid.3"),
    FLAG_ROW_CHOICE(eval_options, rows,    "rows",    NULL, "all|last", "all", "the rows to keep"),
    FLAG_ROW_INT   (eval_options, chunk,   "chunk",   NULL, "N", "0", 0, 1 << 20, "rows in one call; 0: all of them"),
    FLAG_ROW_INT   (eval_options, greedy,  "greedy",  NULL, "N", "0", 0, 1 << 20, "then continue with the N likeliest tokens"),
    FLAG_ROW_STR   (eval_options, plan,    "plan",    NULL, "FILE", NULL, "run this plan, which `weft graph --stage plan --format binary` wrote"),
    FLAG_ROW_STR   (eval_options, out,     "out",     "o",  "FILE", NULL, "write the tensors there, as .safetensors"),
    LORA_FLAG_ROWS (eval_options, open),
    SESSION_FLAG_ROWS(eval_options, open, "1"),
    FILE_FLAG_ROWS (eval_options, open),
    FLAG_ROW_END   (eval_options),
};

static const char *const examples[] = {
    "weft eval -m model.gguf --ids 1,403,261 --out r.safetensors",     "logits of every row",
    "weft eval -m model.gguf --ids @ids.txt --rows last --greedy 20",  "and the twenty likeliest next",
    "weft eval -m dir/ --ids 1,2,3 --outputs logits,hidden,resid -o r.safetensors", "what stands between the layers",
    NULL,
};
/* clang-format on */

const verb_page eval_verb_page = {
    eval_flags,
    "Writes F32 tensors: `logits` [rows, vocab], `hidden`, `resid.0` and on, and with --greedy the "
    "I32 "
    "tensor `greedy_ids`. Without --out it prints the likeliest next tokens.",
    examples,
};

typedef VEC(weft_row) row_list;

/* Rows of one output, gathered over the calls. */
typedef struct {
    const char *name;  /* of the output, in the plan */
    const char *label; /* of the tensor: resid.3 */
    int index;
    int64_t width, rows;
    float *data;                        /* [rows, width], where they are to be written; else NULL */
    int64_t n_bad, bad_row, bad_column; /* values that are no numbers, and the first of them */
} gathered;

typedef struct {
    cli *c;
    const eval_options *o;
    weft_model *m;
    lora adapters;
    weft_session *s;
    const char **outputs;
    int n_output;
    gathered *got;
    int n_got;
    row_list rows;
    int64_t n_seq;
    bool has_next;
    int32_t next; /* the likeliest after the last row */
    VEC(int32_t) greedy_ids;
} eval_run;

static weft_status usage(eval_run *r, const char *what)
{
    return weft_fail(r->c->dg, W1904, WEFT_NOWHERE, "%s", what);
}

/* ---- what to evaluate ---- */

static weft_status parse_ids(eval_run *r, str text, const char *from)
{
    tok_ids ids = {0};
    weft_status st = id_list_read(r->c->dg, from, text, &ids);
    for (size_t i = 0; st == WEFT_OK && i < ids.n; i++)
        VEC_PUSH(&r->rows, ((weft_row){.token = ids.at[i], .pos = (int32_t)i, .want = true}));
    VEC_FREE(&ids);
    r->n_seq = 1;
    if (st == WEFT_OK && !r->rows.n)
        st = usage(r, "there is no token id to evaluate");
    return st;
}

static weft_status read_ids(eval_run *r, arena *a)
{
    source *src;
    if (r->o->ids[0] != '@')
        return parse_ids(r, str_of(r->o->ids), "--ids");
    WEFT_TRY(source_open(r->c->dg, a, r->o->ids + 1, IDS_BYTES_MAX, &src));
    return parse_ids(r, src->text, src->name);
}

static bool member_int(const value *row, const char *name, int64_t otherwise, int64_t *out)
{
    const value *v = value_get(row, str_of(name));
    *out = otherwise;
    return !v || (value_int(v, out) && *out >= 0 && *out <= INT32_MAX);
}

static weft_status read_batch(eval_run *r, arena *a)
{
    value list;
    json_limits limits = {.bytes_max = IDS_BYTES_MAX, .values_max = 8u << 20, .depth_max = 8};
    WEFT_TRY(json_read_file(r->c->dg, a, r->o->batch, limits, &list));
    if (value_kind_of(&list) != VALUE_ARRAY || value_count(&list) == 0)
        return weft_fail(r->c->dg, W1903, WEFT_NOWHERE, "%s: expected a list of rows", r->o->batch);
    for (size_t i = 0; i < value_count(&list); i++) {
        value row = value_at(&list, i);
        int64_t id, pos, seq, slot;
        bool want = true;
        const value *out = value_kind_of(&row) == VALUE_OBJECT ? value_get(&row, STR("out")) : NULL;
        if (value_kind_of(&row) != VALUE_OBJECT || !member_int(&row, "id", -1, &id) || id < 0 ||
            !member_int(&row, "pos", -1, &pos) || pos < 0 || !member_int(&row, "seq", 0, &seq) ||
            !member_int(&row, "lora", 0, &slot) || (out && !value_bool(out, &want)))
            return weft_fail(r->c->dg, W1903, WEFT_NOWHERE,
                             "%s: row %zu needs id and pos, and may have seq, lora and out",
                             r->o->batch, i);
        r->n_seq = seq + 1 > r->n_seq ? seq + 1 : r->n_seq;
        VEC_PUSH(&r->rows, ((weft_row){.token = (int32_t)id,
                                       .pos = (int32_t)pos,
                                       .seq = (int32_t)seq,
                                       .slot = (int32_t)slot,
                                       .want = want}));
    }
    return WEFT_OK;
}

/* ---- outputs ---- */

/* What was asked for, in that order, each once; within a name by index, as the plan has them. */
static void list_outputs(eval_run *r, arena *a)
{
    const plan *p = r->s->plan.p;
    bool *taken = ARENA_ARRAY(a, bool, (size_t)p->n_output + 1);
    r->got = ARENA_ARRAY(a, gathered, (size_t)p->n_output + 1);
    for (int i = 0; i < r->n_output; i++)
        for (int32_t k = 0; k < p->n_output; k++) {
            const plan_output *o = &p->output[k];
            if (taken[k] || !api_output_is(o, r->outputs[i]))
                continue;
            taken[k] = true;
            r->got[r->n_got++] = (gathered){
                .name = o->name,
                .index = o->index,
                .label = o->index < 0 ? o->name : arena_printf(a, "%s.%d", o->name, o->index).p,
            };
        }
}

/* The likeliest token after the last row of the newest call. W1410 if a NaN is in the way, or nothing can be chosen. */
static weft_status likeliest(eval_run *r, const weft_view *v, int32_t *out_id)
{
    const float *row = v->data + (v->rows - 1) * v->width;
    int64_t first, best = 0, bad = count_not_numbers(row, v->width, &first);
    if (bad > 0)
        return weft_fail(r->c->dg, W1410, WEFT_NOWHERE,
                         "no next token: %" PRId64 " of %" PRId64
                         " logits are not numbers, the first is that of token %" PRId64,
                         bad, v->width, first);
    for (int64_t i = 1; i < v->width; i++)
        if (row[i] > row[best])
            best = i;
    if (!(row[best] > -INFINITY))
        return weft_fail(r->c->dg, W1410, WEFT_NOWHERE,
                         "no next token: every logit is minus infinity");
    *out_id = (int32_t)best;
    return WEFT_OK;
}

static void append_rows(gathered *g, const float *rows, int64_t n, int64_t width)
{
    size_t bytes = mem_product((size_t)width, sizeof *rows);
    g->data = mem_realloc(g->data, mem_product((size_t)(g->rows + n), bytes));
    memcpy(g->data + g->rows * width, rows, (size_t)n * bytes);
}

static weft_status gather(eval_run *r, bool last_call)
{
    for (int i = 0; i < r->n_got; i++) {
        gathered *g = &r->got[i];
        weft_view v;
        WEFT_TRY(weft_output(r->c->dg, r->s, g->name, g->index, &v));
        int64_t first = r->o->rows == ROWS_LAST ? (last_call && v.rows ? v.rows - 1 : v.rows) : 0;
        if (r->o->out)
            append_rows(g, v.data + first * v.width, v.rows - first, v.width);
        for (int64_t k = first; k < v.rows; k++) {
            int64_t column = 0, n = count_not_numbers(v.data + k * v.width, v.width, &column);
            if (n > 0 && g->n_bad == 0) {
                g->bad_row = g->rows + k - first;
                g->bad_column = column;
            }
            g->n_bad += n;
        }
        g->width = v.width;
        g->rows += v.rows - first;
    }
    return WEFT_OK;
}

/* ---- running ---- */

static weft_status run_greedy(eval_run *r)
{
    int32_t pos = (int32_t)r->rows.n, id;
    for (int64_t i = 0; i < r->o->greedy; i++) {
        weft_view v;
        WEFT_TRY(weft_output(r->c->dg, r->s, "logits", -1, &v));
        if (v.rows < 1)
            return usage(r, "the last row asks for no output");
        WEFT_TRY(likeliest(r, &v, &id));
        VEC_PUSH(&r->greedy_ids, id);
        if (i + 1 == r->o->greedy)
            break;
        weft_row row = {.token = id, .pos = pos++, .want = true};
        WEFT_TRY(weft_eval(r->c->dg, r->s, &row, 1));
    }
    return WEFT_OK;
}

/* What text shows after logits, if they are the first output and a row of the last call has some. */
static weft_status find_next(eval_run *r)
{
    weft_view v;
    if (r->o->out || r->c->common.json || !r->n_got || strcmp(r->got[0].label, "logits") != 0)
        return WEFT_OK;
    WEFT_TRY(weft_output(r->c->dg, r->s, "logits", -1, &v));
    r->has_next = v.rows > 0;
    return r->has_next ? likeliest(r, &v, &r->next) : WEFT_OK;
}

static void warn_not_numbers(eval_run *r)
{
    for (int i = 0; i < r->n_got; i++) {
        const gathered *g = &r->got[i];
        if (g->n_bad > 0)
            weft_fail(r->c->dg, W1411, WEFT_NOWHERE,
                      "%s: %" PRId64 " of %" PRId64
                      " values are not numbers, the first is in row %" PRId64 ", column %" PRId64,
                      g->label, g->n_bad, g->rows * g->width, g->bad_row, g->bad_column);
    }
}

static weft_status run(eval_run *r, arena *a)
{
    const eval_options *o = r->o;
    int64_t n = (int64_t)r->rows.n, chunk = o->chunk && o->chunk < n ? o->chunk : n;
    int64_t longest = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t length = (int64_t)r->rows.at[i].pos + 1;
        longest = length > longest ? length : longest;
    }
    longest =
        longest < n ? longest : n; /* more only where positions leave a gap, which is an error */
    progress bar = {0};
    api_source from = model_flags_source(&o->open);
    weft_session_options how = model_flags_session(&o->open, &bar);
    if (!how.context)
        how.context = longest + o->greedy;
    how.sequences = r->n_seq;
    how.batch = chunk;
    how.outputs = r->outputs;
    how.n_output = r->n_output;
    how.plan = o->plan;
    WEFT_TRY(api_model_open(r->c->dg, &from, &r->m));
    WEFT_TRY(lora_open(r->c->dg, r->m, &o->open, &r->adapters));
    lora_want(&r->adapters, &how);
    WEFT_TRY(weft_session_create(r->c->dg, r->m, &how, &r->s));
    WEFT_TRY(lora_load(r->c->dg, &r->adapters, r->s, o->batch ? LORA_SLOTS : LORA_MIX));
    list_outputs(r, a);
    cli_say_verbose(r->c, "%s: %" PRIu64 " bytes of tensors, %" PRIu64 " bytes for the session",
                    weft_model_name(r->m), weft_model_bytes(r->m), weft_session_bytes(r->s));
    for (int64_t i = 0; i < n; i += chunk) {
        int64_t part = n - i < chunk ? n - i : chunk;
        WEFT_TRY(weft_eval(r->c->dg, r->s, r->rows.at + i, part));
        WEFT_TRY(gather(r, i + part == n));
    }
    WEFT_TRY(find_next(r));
    if (o->greedy)
        WEFT_TRY(run_greedy(r));
    warn_not_numbers(r);
    return weft_model_check(r->c->dg, r->m);
}

static weft_status write_tensors(eval_run *r)
{
    safetensors_item *item = calloc((size_t)r->n_got + 1, sizeof *item);
    int64_t(*shape)[2] = calloc((size_t)r->n_got + 1, sizeof *shape);
    size_t n = 0;
    weft_status st = WEFT_ERR_FILE;
    if (item && shape) {
        for (; n < (size_t)r->n_got; n++) {
            shape[n][0] = r->got[n].rows;
            shape[n][1] = r->got[n].width;
            item[n] = (safetensors_item){r->got[n].label, DT_F32, 2, shape[n], r->got[n].data};
        }
        if (r->greedy_ids.n) {
            shape[n][0] = (int64_t)r->greedy_ids.n;
            item[n] = (safetensors_item){"greedy_ids", DT_I32, 1, shape[n], r->greedy_ids.at};
            n++;
        }
        st = safetensors_write(r->c->dg, r->o->out, item, n, NULL);
    }
    free(item);
    free(shape);
    return st;
}

/* ---- printing ---- */

static void print_result(eval_run *r)
{
    strbuf out = {0};
    json_writer w = {.out = &out};
    bool json = r->c->common.json;
    json_open(&w, '{');
    json_key_int(&w, "rows", (int64_t)r->rows.n);
    json_key_open(&w, "tensors", '{');
    for (int i = 0; i < r->n_got; i++) {
        json_key_open(&w, r->got[i].label, '[');
        json_int(&w, r->got[i].rows);
        json_int(&w, r->got[i].width);
        json_close(&w, ']');
    }
    json_close(&w, '}');
    json_key_ids(&w, "greedy_ids", r->greedy_ids.at, r->greedy_ids.n);
    json_close(&w, '}');
    strbuf_putc(&out, '\n');
    if (!json) {
        strbuf_reset(&out);
        for (int i = 0; i < r->n_got; i++)
            strbuf_add(&out, "%-12s f32 [%" PRId64 ", %" PRId64 "]\n", r->got[i].label,
                       r->got[i].rows, r->got[i].width);
        for (size_t i = 0; i < r->greedy_ids.n; i++)
            strbuf_add(&out, "%s%d%s", i ? "," : "greedy_ids   ", (int)r->greedy_ids.at[i],
                       i + 1 == r->greedy_ids.n ? "\n" : "");
        if (r->has_next)
            strbuf_add(&out, "next         %d\n", (int)r->next);
    }
    cli_print_all(r->c, &out);
}

int verb_eval(cli *c)
{
    eval_run r = {.c = c, .o = c->options};
    arena *a = arena_create();
    const model_flags *f = &r.o->open;
    weft_status st = model_flags_check(c->dg, f);
    if (st == WEFT_OK && !r.o->ids == !r.o->batch)
        st = usage(&r, "eval takes either --ids or --batch");
    if (st == WEFT_OK && r.o->plan &&
        (f->exec || model_flags_stores(f) || f->deterministic || f->round_bf16 || f->exact))
        st = usage(&r, "--plan brings its own executor: leave out --exec, --kv, --deterministic, "
                       "--round-bf16, --exact");
    if (st == WEFT_OK && r.o->greedy && r.o->batch)
        st = usage(&r, "--greedy goes with --ids");
    if (st == WEFT_OK)
        st = r.o->ids ? read_ids(&r, a) : read_batch(&r, a);
    r.outputs = names_split(a, &r.o->outputs, 1, &r.n_output);
    if (st == WEFT_OK && !r.n_output)
        st = usage(&r, "--outputs names none");
    if (st == WEFT_OK)
        st = run(&r, a);
    if (st == WEFT_OK && r.o->out)
        st = write_tensors(&r);
    if (st == WEFT_OK && (!r.o->out || c->common.json))
        print_result(&r);
    c->common.json = false; /* the document is written: messages go to stderr */
    weft_session_destroy(r.s);
    lora_close(&r.adapters);
    weft_model_close(r.m);
    for (int i = 0; i < r.n_got; i++)
        free(r.got[i].data);
    VEC_FREE(&r.rows);
    VEC_FREE(&r.greedy_ids);
    arena_destroy(a);
    return cli_exit_of(st);
}
