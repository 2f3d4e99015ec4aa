/* verb_lora.c - `weft lora`: adapters described, merged, converted, taken out of a fine-tuned model. */
#include "runtime/cli/verb_lora.h"
#include "runtime/cli/lora_flags.h"

#include "runtime/base/threads.h"

#include <math.h>
#include <stdlib.h>

/* clang-format off */
static const flag lora_flags[] = {
    FLAG_ROW_STR   (lora_options, model,   "model",   "m",  "MODEL", NULL, "the checkpoint that is adapted; of extract the fine-tuned one"),
    FLAG_ROW_STR   (lora_options, base,    "base",    NULL, "MODEL", NULL, "of extract: the checkpoint that the fine-tuned one was made of"),
    FLAG_ROW_LIST  (lora_options, lora,    "lora",    NULL, "PATH[=SCALE]", "of merge: an adapter and its share, 1 if not given; as often as wanted"),
    FLAG_ROW_STR   (lora_options, out,     "out",     "o",  "FILE",  NULL, "what to write: a name that ends in .gguf is a GGUF file, any other a folder as Hugging Face has it"),
    FLAG_ROW_CHOICE(lora_options, method,  "method",  NULL, "linear|ties|dare|slerp", "linear", "of merge: how several adapters become one"),
    FLAG_ROW_FLOAT (lora_options, density, "density", NULL, "SHARE", "0.5", 1e-6, 1, "of ties and dare: how many of an adapter's elements stay"),
    FLAG_ROW_INT   (lora_options, seed,    "seed",    "s",  "N",     "0", 0, 9007199254740991.0, "of dare: which ones stay"),
    FLAG_ROW_BOOL  (lora_options, adapter, "adapter", NULL, "of merge: write one adapter instead of a model"),
    FLAG_ROW_INT   (lora_options, rank,    "rank",    "r",  "N",     "0", 0, 65536, "of an adapter that is written: its rank, by singular values; 0: of merge all that there is, of extract 16"),
    FLAG_ROW_STR   (lora_options, type,    "type",    NULL, "TYPE",  NULL, "of merge: the type of the weights, as `weft quantize` takes it; as they are if not given"),
    FLAG_ROW_STR   (lora_options, arch,    "arch",    NULL, "FILE",  NULL, "use this .weft file for the checkpoints"),
    FLAG_ROW_INT   (lora_options, threads, "threads", "t",  "N",     "0", 0, 1024, "threads; 0: as many as this process may use"),
    FLAG_ROW_END   (lora_options),
};

static const char *const examples[] = {
    "weft lora show models/stories-7m-pirate -m models/stories-7m", "what it adds to which weight, and how much",
    "weft lora merge -m models/stories-7m --lora models/stories-7m-pirate -o told.gguf", "weights with the adapter in them",
    "weft lora convert models/stories-7m-pirate -m models/stories-7m -o pirate.gguf", "for programs that read GGUF",
    "weft lora extract -m told.gguf --base models/stories-7m -r 8 -o told-lora", "a fine-tuned model as an adapter of its base",
    "weft lora merge -m dir --lora pirate.gguf --lora told-lora=0.3 --method ties -o out.gguf", "two adapters as one",
    NULL,
};

static const struct {
    const char *word;
    int paths; /* operands behind it */
    weft_status (*run)(lora_run *r);
} works[] = {
    {"show",    1, lora_show},
    {"merge",   0, lora_merge},
    {"convert", 1, lora_convert},
    {"extract", 0, lora_extract},
};
/* clang-format on */

const verb_page lora_verb_page = {
    lora_flags,
    "An adapter is a PEFT folder or a GGUF file; either fits a checkpoint of either format, "
    "because "
    "rows and names follow the model file. show prints what an adapter holds, and with -m where it "
    "goes. merge adds adapters to the weights and writes a GGUF file or a folder, or with "
    "--adapter one "
    "adapter: "
    "linear is the sum; ties keeps the largest elements of each and lets the heavier sign win; "
    "dare "
    "keeps random ones, scaled up; slerp goes from one adapter to the other, by their shares. "
    "convert "
    "writes the other format, with the same numbers. extract finds the adapter of a rank that is "
    "nearest to what fine-tuning changed, and says how near.",
    examples,
};

/* ---- shared ---- */

weft_status lora_model_open(lora_run *r, const char *path, const char *arch, lora_model *out)
{
    WEFT_TRY(model_file_open(r->dg, path, &(model_file_options){.guard = true}, &out->mf));
    return model_bind(r->dg, out->mf, &(bind_options){.arch = arch, .others = true, .sites = true},
                      &out->bm);
}

void lora_model_close(lora_model *m)
{
    bound_model_destroy(m->bm);
    model_file_close(m->mf);
}

const char *lora_base_name(arena *a, const char *path)
{
    str s = str_of(path);
    while (s.n > 1 && s.p[s.n - 1] == '/')
        s.n--;
    size_t at = s.n;
    while (at > 0 && s.p[at - 1] != '/')
        at--;
    return arena_str(a, (str){s.p + at, s.n - at}).p;
}

weft_status lora_spec(lora_run *r, arena *a, const char *text, const char **out_path,
                      double *out_scale)
{
    return lora_flag_read(r->dg, a, text, out_path, out_scale);
}

int lora_threads(const lora_run *r)
{
    return r->o->threads ? (int)r->o->threads : threads_default();
}

double lora_norm(const adapter_site *s)
{
    double sum = 0;
    for (int64_t r = 0; r < s->rank; r++)
        for (int64_t q = 0; q < s->rank; q++) {
            double left = 0, right = 0;
            for (int64_t o = 0; o < s->out; o++)
                left += (double)s->b[o * s->rank + r] * s->b[o * s->rank + q];
            for (int64_t i = 0; i < s->in; i++)
                right += (double)s->a[r * s->in + i] * s->a[q * s->in + i];
            sum += left * right;
        }
    return fabs(s->scale) * sqrt(sum > 0 ? sum : 0);
}

/* ---- the verb ---- */

static weft_status run(lora_run *r)
{
    const char *word = r->c->operand[0];
    size_t i = 0, n = sizeof works / sizeof *works;
    while (i < n && strcmp(works[i].word, word) != 0)
        i++;
    if (i == n) {
        weft_status st = weft_fail(r->dg, W1904, WEFT_NOWHERE, "there is no `weft lora %s`", word);
        weft_suggest_word(r->dg, str_of(word), "show merge convert extract");
        return st;
    }
    if (r->c->operand_n - 1 != works[i].paths)
        return weft_fail(r->dg, W1904, WEFT_NOWHERE, "`weft lora %s` takes %s", word,
                         works[i].paths ? "the path of an adapter" : "no path, but -m and --lora");
    r->path = works[i].paths ? r->c->operand[1] : NULL;
    return works[i].run(r);
}

int verb_lora(cli *c)
{
    lora_run r = {.c = c, .dg = c->dg, .o = c->options};
    weft_status st = run(&r);
    c->common.json = false; /* the document is written: messages go to stderr */
    return cli_exit_of(st);
}
