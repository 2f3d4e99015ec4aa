/* verb_quantize.c - `weft quantize`: a checkpoint in, a GGUF file of smaller numbers out. */
#include "runtime/base/progress.h"
#include "runtime/base/threads.h"
#include "runtime/cli/cli.h"
#include "runtime/cli/interrupt.h"
#include "runtime/quant/job.h"

#include <inttypes.h>

typedef struct {
    const char *arch, *imatrix;
    flag_list tensor;
    int64_t threads;
    bool dry_run, allow_nan;
} quantize_options;

/* clang-format off */
static const flag quantize_flags[] = {
    FLAG_ROW_LIST  (quantize_options, tensor,  "tensor",  NULL, "PATTERN=TYPE", "tensors of such a name get this type; * is any run of characters, the first rule that fits counts"),
    FLAG_ROW_STR   (quantize_options, imatrix, "imatrix", NULL, "FILE", NULL, "what each column is worth: made by perplexity --imatrix-out"),
    FLAG_ROW_STR   (quantize_options, arch,    "arch",    NULL, "FILE", NULL, "read a Hugging Face folder with this .weft file"),
    FLAG_ROW_INT   (quantize_options, threads, "threads", "t",  "N", "0", 0, 1024, "threads; 0: as many as this process may use"),
    FLAG_ROW_BOOL  (quantize_options, allow_nan, "allow-nan", NULL, "write numbers that are NaN or infinite, too, or become so"),
    FLAG_ROW_BOOL  (quantize_options, dry_run, "dry-run", "n",  "print what would be written, and write nothing"),
    FLAG_ROW_END   (quantize_options),
};

static const char *const examples[] = {
    "weft quantize model-f16.gguf model-q4.gguf Q4_K_M", "the usual mix of four and six bits",
    "weft quantize Qwen3-0.6B/ qwen3.gguf Q8_0",         "a Hugging Face folder into one file",
    "weft quantize in.gguf out.gguf Q4_0 --tensor '*.ffn_down.*=Q5_1'", "with exceptions",
    NULL,
};
/* clang-format on */

const verb_page quantize_verb_page = {
    quantize_flags,
    "TYPE is F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K_S, Q4_K_M, Q5_K_S, Q5_K_M or Q6_K. "
    "Every key is "
    "kept; a folder gets the names, keys and tokenizer that other programs read, too. Norms, "
    "biases "
    "and routers stay as they are; the head gets Q6_K, and the mixes ending in "
    "S and M give "
    "some layers more bits. Rows that are no whole blocks of a type get the nearest one that fits. "
    "OUT appears when it "
    "is complete; interrupted or on a full disk it does not.",
    examples,
};

typedef struct {
    cli *c;
    const quantize_options *o;
    model_file *mf;
    imatrix *im;
    quant_job *job;
    const mix_preset *preset;
    mix_rules rules;
    progress bar;
    uint64_t bytes_out; /* of tensors */
} quantize_run;

static weft_status parse(quantize_run *r)
{
    r->preset = mix_find(r->c->operand[2]);
    if (!r->preset) {
        strbuf names = {0};
        mix_names(&names);
        weft_status st =
            weft_fail(r->c->dg, W1904, WEFT_NOWHERE, "there is no type '%s'", r->c->operand[2]);
        weft_note(r->c->dg, "types are %s", names.p);
        strbuf_free(&names);
        return st;
    }
    for (size_t i = 0; i < r->o->tensor.n; i++) {
        mix_rule rule;
        WEFT_TRY(mix_rule_parse(r->c->dg, r->o->tensor.at[i], &rule));
        VEC_PUSH(&r->rules, rule);
    }
    return WEFT_OK;
}

static bool falls_back_alike(const quant_tensor *a, const quant_tensor *b)
{
    return a->to == b->to && a->wanted == b->wanted && a->columns == b->columns;
}

/* A line for each kind of tensor that could not become what was asked for: -v names them all. */
static void say_fallbacks(quantize_run *r)
{
    size_t n = quant_job_count(r->job);
    for (size_t i = 0; i < n; i++) {
        const quant_tensor *t = quant_job_tensor(r->job, i);
        size_t first = t->to == t->wanted ? i + 1 : 0, more = 0;
        while (first < i && !falls_back_alike(t, quant_job_tensor(r->job, first)))
            first++;
        if (first != i) /* it is what was wanted, or has been reported */
            continue;
        for (size_t k = i + 1; k < n; k++)
            more += falls_back_alike(t, quant_job_tensor(r->job, k));
        char others[40] = "";
        if (more > 0)
            snprintf(others, sizeof others, " and %zu more", more);
        cli_say(r->c, STR_FMT "%s: rows of %" PRId64 " are no whole blocks of %s; %s %s",
                STR_ARG(t->name), others, t->columns, dtype_row_of(t->wanted)->name,
                more > 0 ? "they become" : "it becomes", dtype_row_of(t->to)->name);
    }
}

static void on_progress(void *ctx, uint64_t done)
{
    progress_update(&((quantize_run *)ctx)->bar, done);
}

static weft_status write_out(quantize_run *r)
{
    quant_write_options how = {.threads = r->o->threads ? (int)r->o->threads : threads_default(),
                               .allow_nan = r->o->allow_nan,
                               .progress = on_progress,
                               .ctx = r,
                               .part = interrupt_removes};
    progress_start(&r->bar, "quantize", quant_job_bytes(r->job), PROGRESS_BYTES);
    interrupt_waits();
    weft_status st = quant_job_write(r->c->dg, r->job, r->c->operand[1], &how);
    interrupt_removes(NULL);
    progress_end(&r->bar);
    return st;
}

static weft_status run(quantize_run *r)
{
    weft_diag *dg = r->c->dg;
    WEFT_TRY(parse(r));
    WEFT_TRY(model_file_open(dg, r->c->operand[0], &(model_file_options){.guard = true}, &r->mf));
    WEFT_TRY(model_file_spare(dg, r->mf, r->c->operand[1]));
    if (r->o->imatrix)
        WEFT_TRY(imatrix_read(dg, r->o->imatrix, &r->im));
    WEFT_TRY(quant_job_create(dg, r->mf, r->o->arch, &r->job));
    WEFT_TRY(quant_job_choose(dg, r->job, r->preset, &r->rules, r->im));
    say_fallbacks(r);
    return r->o->dry_run ? WEFT_OK : write_out(r);
}

/* ---- printing ---- */

typedef struct {
    int64_t tensors;
    uint64_t bytes;
} share;

static void count(quantize_run *r, share *by_type)
{
    for (size_t i = 0; i < quant_job_count(r->job); i++) {
        const quant_tensor *t = quant_job_tensor(r->job, i);
        size_t row;
        if (!dtype_bytes(t->to, t->columns, &row))
            continue;
        by_type[t->to].tensors++;
        by_type[t->to].bytes += (uint64_t)t->rows * row;
        r->bytes_out += (uint64_t)t->rows * row;
    }
}

static void print_json(quantize_run *r, const share *by_type, strbuf *out)
{
    json_writer w = {.out = out};
    json_open(&w, '{');
    json_key_text(&w, "type", r->preset->name);
    json_key_int(&w, "bytes_in", (int64_t)quant_job_bytes(r->job));
    json_key_int(&w, "bytes_out", (int64_t)r->bytes_out);
    json_key_open(&w, "types", '{');
    for (int t = 0; t < DT_COUNT; t++) {
        if (!by_type[t].tensors)
            continue;
        json_key_open(&w, dtype_row_of((dtype)t)->name, '{');
        json_key_int(&w, "tensors", by_type[t].tensors);
        json_key_int(&w, "bytes", (int64_t)by_type[t].bytes);
        json_close(&w, '}');
    }
    json_close(&w, '}');
    json_key_open(&w, "tensors", '[');
    for (size_t i = 0; i < quant_job_count(r->job); i++) {
        const quant_tensor *t = quant_job_tensor(r->job, i);
        json_open(&w, '{');
        json_key_str(&w, "name", t->name);
        json_key_text(&w, "from", dtype_row_of(t->from)->name);
        json_key_text(&w, "to", dtype_row_of(t->to)->name);
        json_key_bool(&w, "importance", t->importance != NULL);
        json_close(&w, '}');
    }
    json_close(&w, ']');
    json_close(&w, '}');
    strbuf_putc(out, '\n');
}

static void print_result(quantize_run *r)
{
    share by_type[DT_COUNT] = {{0}};
    strbuf out = {0};
    count(r, by_type);
    if (r->c->common.json) {
        print_json(r, by_type, &out);
    } else {
        for (size_t i = 0; r->c->common.verbose && i < quant_job_count(r->job); i++) {
            const quant_tensor *t = quant_job_tensor(r->job, i);
            strbuf_add(&out, "%-40.*s %-8s %s%s\n", (int)t->name.n, t->name.p,
                       dtype_row_of(t->from)->name, dtype_row_of(t->to)->name,
                       t->importance ? "  weighed" : "");
        }
        for (int t = 0; t < DT_COUNT; t++)
            if (by_type[t].tensors)
                strbuf_add(&out, "%-8s %6" PRId64 " tensor%s %12.1f MiB\n",
                           dtype_row_of((dtype)t)->name, by_type[t].tensors,
                           by_type[t].tensors == 1 ? " " : "s",
                           (double)by_type[t].bytes / (1 << 20));
        strbuf_add(&out, "all      %6zu tensors %12.1f MiB, from %.1f MiB\n",
                   quant_job_count(r->job), (double)r->bytes_out / (1 << 20),
                   (double)quant_job_bytes(r->job) / (1 << 20));
    }
    cli_print_all(r->c, &out);
}

int verb_quantize(cli *c)
{
    quantize_run r = {.c = c, .o = c->options};
    weft_status st = run(&r);
    if (st == WEFT_OK && !c->common.quiet)
        print_result(&r);
    c->common.json = false; /* the document is written: messages go to stderr */
    quant_job_destroy(r.job);
    imatrix_destroy(r.im);
    model_file_close(r.mf);
    VEC_FREE(&r.rules);
    return cli_exit_of(st);
}
