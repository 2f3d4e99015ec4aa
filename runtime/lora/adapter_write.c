/* adapter_write.c - factors under the names of a format, and the settings beside them. */
#include "runtime/lora/adapter_write.h"
#include "runtime/lora/factors.h"
#include "runtime/lora/store_map.h"

#include "runtime/base/file.h"
#include "runtime/base/json_write.h"
#include "runtime/formats/gguf_write.h"
#include "runtime/formats/out_file.h"
#include "runtime/formats/safetensors_write.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

/* One tensor's factors as they are stored: rank 3 where it is a stack. */
typedef struct {
    const store_tensor *t;
    int64_t rank;
    double scale;
    int axes;
    int64_t shape_a[3], shape_b[3];
    const float *a, *b;
} stored;

typedef struct {
    weft_diag *dg;
    const char *path, *base;
    const bound_model *bm;
    const adapter_site *site;
    arena *home;
    store_tensors tensors;
    stored *pair;
    size_t n;
} writing;

/* All of a stack with one rank and one scale: those of lower rank get zeros, scales that differ go into B. */
static stored gather(const writing *w, const store_tensor *t)
{
    int64_t n = t->stacked ? t->stacked : 1;
    store_pair *p = ARENA_ARRAY(w->home, store_pair, (size_t)n);
    stored s = {.t = t, .axes = t->stacked ? 3 : 2};
    bool alike = true;
    for (int64_t e = 0; e < n; e++) {
        p[e] = store_pair_of(t, e, w->site, w->home);
        if (p[e].rank > 0 && s.rank > 0)
            alike = alike && p[e].scale == s.scale;
        s.scale = p[e].rank > 0 ? p[e].scale : s.scale;
        s.rank = p[e].rank > s.rank ? p[e].rank : s.rank;
    }
    if (!t->stacked) {
        s.a = p->a;
        s.b = p->b;
        return s;
    }
    float *a = ARENA_ARRAY(w->home, float, (size_t)(n * s.rank * t->in));
    float *b = ARENA_ARRAY(w->home, float, (size_t)(n * s.rank * t->out));
    for (int64_t e = 0; e < n; e++) {
        if (p[e].rank > 0)
            memcpy(a + e * s.rank * t->in, p[e].a, (size_t)(p[e].rank * t->in) * sizeof *a);
        for (int64_t o = 0; o < t->out; o++)
            for (int64_t r = 0; r < p[e].rank; r++)
                b[(e * t->out + o) * s.rank + r] =
                    p[e].b[o * p[e].rank + r] * (alike ? 1 : (float)p[e].scale);
    }
    s.scale = alike ? s.scale : 1;
    s.a = a;
    s.b = b;
    return s;
}

static void set_shapes(stored *s)
{
    const store_tensor *t = s->t;
    int at = s->axes - 2;
    s->shape_a[0] = s->shape_b[0] = t->stacked;
    s->shape_a[at] = s->rank;
    s->shape_a[at + 1] = t->in;
    s->shape_b[at] = t->out;
    s->shape_b[at + 1] = s->rank;
}

/* A table [vocab, d] is stored the other way round: A [rank, vocab], B [d, rank]; GGUF has that A transposed. */
static void turn_table(const writing *w, stored *s, bool gguf)
{
    const float *rows = s->b, *columns = s->a; /* [vocab, rank], [rank, d] */
    int64_t vocab = s->t->out, d = s->t->in;
    s->a = gguf ? rows : matrix_transposed(w->home, rows, vocab, s->rank);
    s->b = matrix_transposed(w->home, columns, s->rank, d);
    s->shape_a[!gguf] = vocab;
    s->shape_a[gguf] = s->rank;
    s->shape_b[0] = d;
    s->shape_b[1] = s->rank;
}

static void fold_scale(const writing *w, stored *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->axes; i++)
        n *= s->shape_b[i];
    float *b = ARENA_ARRAY(w->home, float, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        b[i] = (float)(s->b[i] * s->scale);
    s->b = b;
    s->scale = 1;
}

static void gather_all(writing *w, bool gguf)
{
    w->pair = ARENA_ARRAY(w->home, stored, w->tensors.n + 1);
    for (size_t i = 0; i < w->tensors.n; i++) {
        stored s = gather(w, &w->tensors.at[i]);
        if (s.rank == 0)
            continue;
        set_shapes(&s);
        if (s.t->embedding)
            turn_table(w, &s, gguf);
        w->pair[w->n++] = s;
    }
}

/* ---- GGUF ---- */

/* One alpha serves all tensors if scale times rank is the same; otherwise there is none, and B has it. */
static double common_alpha(writing *w)
{
    double alpha = w->n ? w->pair[0].scale * (double)w->pair[0].rank : 0;
    for (size_t i = 1; i < w->n; i++)
        if (fabs(w->pair[i].scale * (double)w->pair[i].rank - alpha) > 1e-9 * fabs(alpha))
            alpha = 0;
    if ((double)(float)alpha != alpha)
        alpha = 0;
    for (size_t i = 0; i < w->n && alpha == 0; i++)
        fold_scale(w, &w->pair[i]);
    return alpha;
}

static weft_status write_gguf(writing *w)
{
    str arch = model_file_format(w->bm->file) == MODEL_GGUF && model_file_arch_count(w->bm->file)
                   ? model_file_arch(w->bm->file, 0)
                   : w->bm->others.arch;
    gguf_writer *out = gguf_writer_create();
    double alpha = common_alpha(w);
    if (arch.n)
        gguf_writer_key(out, STR("general.architecture"), value_of_str(arch));
    gguf_writer_key(out, STR("general.type"), value_of_str(STR("adapter")));
    gguf_writer_key(out, STR("general.file_type"), value_of_int(VT_U32, 0));
    if (w->base) {
        gguf_writer_key(out, STR("general.base_model.count"), value_of_int(VT_U32, 1));
        gguf_writer_key(out, STR("general.base_model.0.name"), value_of_str(str_of(w->base)));
    }
    gguf_writer_key(out, STR("adapter.type"), value_of_str(STR("lora")));
    gguf_writer_key(out, STR("adapter.lora.alpha"), value_of_float(VT_F32, alpha));
    for (size_t i = 0; i < w->n; i++) {
        const stored *s = &w->pair[i];
        const char *tail = s->t->raw ? "" : ".weight";
        gguf_writer_tensor_data(
            out, arena_printf(w->home, STR_FMT "%s.lora_a", STR_ARG(s->t->name), tail), DT_F32,
            s->axes, s->shape_a, s->a);
        gguf_writer_tensor_data(
            out, arena_printf(w->home, STR_FMT "%s.lora_b", STR_ARG(s->t->name), tail), DT_F32,
            s->axes, s->shape_b, s->b);
    }
    weft_status st =
        arch.n ? gguf_writer_write(w->dg, out, w->path)
               : weft_fail(w->dg, W0705, WEFT_NOWHERE,
                           "%s: the model has no name among GGUF's architectures", w->path);
    gguf_writer_destroy(out);
    return st;
}

/* ---- PEFT ---- */

static str last_word(str name)
{
    size_t n = name.n;
    while (n > 0 && name.p[n - 1] != '.')
        n--;
    return (str){name.p + n, name.n - n};
}

static int by_text(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

/* How many of these end in this word; sorted by their last word. */
static size_t count_word(const str *words, size_t n, str word)
{
    size_t low = 0, high = n, first;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (str_cmp(words[mid], word) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    for (first = low; low < n && str_eq(words[low], word);)
        low++;
    return low - first;
}

/* target_modules: a module's last word if all modules of that word are adapted, otherwise its whole name. */
static void put_targets(const writing *w, json_writer *j)
{
    size_t n_all = 0;
    for (size_t i = 0; i < w->bm->sites.n; i++)
        n_all += w->bm->sites.at[i].gguf ? 0 : w->bm->sites.at[i].n_tensor;
    str *all = ARENA_ARRAY(w->home, str, n_all + 1), *mine = ARENA_ARRAY(w->home, str, w->n + 1);
    n_all = 0;
    for (size_t i = 0; i < w->bm->sites.n; i++)
        for (size_t k = 0; !w->bm->sites.at[i].gguf && k < w->bm->sites.at[i].n_tensor; k++)
            all[n_all++] = last_word(w->bm->sites.at[i].tensor[k]);
    for (size_t i = 0; i < w->n; i++)
        mine[i] = last_word(w->pair[i].t->name);
    qsort(all, n_all, sizeof *all, by_text);
    qsort(mine, w->n, sizeof *mine, by_text);
    json_key_open(j, "target_modules", '[');
    for (size_t i = 0; i < w->n; i++)
        if ((i == 0 || !str_eq(mine[i], mine[i - 1])) &&
            count_word(mine, w->n, mine[i]) == count_word(all, n_all, mine[i]))
            json_str(j, mine[i]);
    for (size_t i = 0; i < w->n; i++) {
        str word = last_word(w->pair[i].t->name);
        if (count_word(mine, w->n, word) != count_word(all, n_all, word))
            json_str(j, w->pair[i].t->name);
    }
    json_close(j, ']');
}

/* A pattern that fits this module alone. */
static void put_pattern(strbuf *to, json_writer *j, str name, double x)
{
    strbuf_reset(to);
    for (size_t i = 0; i < name.n; i++)
        strbuf_add(to, name.p[i] == '.' ? "\\%c" : "%c", name.p[i]);
    json_key(j, to->p);
    if (x == floor(x) && fabs(x) < 1e9)
        json_int(j, (int64_t)x);
    else
        json_double(j, x);
}

static void put_patterns(const writing *w, json_writer *j, const char *key, bool alphas,
                         double usual)
{
    strbuf name = {0};
    json_key_open(j, key, '{');
    for (size_t i = 0; i < w->n; i++) {
        const stored *s = &w->pair[i];
        double x = alphas ? s->scale * (double)s->rank : (double)s->rank;
        if (x != usual)
            put_pattern(&name, j, s->t->name, x);
    }
    json_close(j, '}');
    strbuf_free(&name);
}

static void put_config(const writing *w, strbuf *out)
{
    json_writer j = {.out = out};
    const stored *first = &w->pair[0];
    double alpha = first->scale * (double)first->rank;
    bool turned = false;
    for (size_t i = 0; i < w->n; i++)
        turned |= w->pair[i].t->turned;
    json_open(&j, '{');
    json_key_text(&j, "peft_type", "LORA");
    json_key_text(&j, "task_type", "CAUSAL_LM");
    json_key_text(&j, "base_model_name_or_path", w->base ? w->base : "");
    json_key_int(&j, "r", first->rank);
    json_key_double(&j, "lora_alpha", alpha);
    put_patterns(w, &j, "rank_pattern", false, (double)first->rank);
    put_patterns(w, &j, "alpha_pattern", true, alpha);
    put_targets(w, &j);
    json_key_double(&j, "lora_dropout", 0);
    json_key_text(&j, "bias", "none");
    json_key_bool(&j, "fan_in_fan_out", turned);
    json_key_bool(&j, "use_rslora", false);
    json_key_bool(&j, "use_dora", false);
    json_key_bool(&j, "inference_mode", true);
    json_close(&j, '}');
    strbuf_putc(out, '\n');
}

static weft_status make_folder(weft_diag *dg, const char *path)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return WEFT_OK;
    return weft_fail(dg, W1004, WEFT_NOWHERE, "cannot make %s: %s", path,
                     file_reason_of(errno).text);
}

static weft_status write_peft(writing *w)
{
    safetensors_item *items = ARENA_ARRAY(w->home, safetensors_item, 2 * w->n + 1);
    for (size_t i = 0; i < w->n; i++) {
        const stored *s = &w->pair[i];
        bool table = s->t->embedding;
        if (s->axes != 2)
            return weft_fail(w->dg, W0705, WEFT_NOWHERE,
                             "%s: PEFT has no LoRA modules for " STR_FMT
                             ", whose experts are one tensor",
                             w->path, STR_ARG(s->t->name));
        items[2 * i] = (safetensors_item){
            arena_printf(w->home, "base_model.model." STR_FMT "%s", STR_ARG(s->t->name),
                         table ? ".lora_embedding_A" : ".lora_A.weight")
                .p,
            DT_F32, 2, s->shape_a, s->a};
        items[2 * i + 1] = (safetensors_item){
            arena_printf(w->home, "base_model.model." STR_FMT "%s", STR_ARG(s->t->name),
                         table ? ".lora_embedding_B" : ".lora_B.weight")
                .p,
            DT_F32, 2, s->shape_b, s->b};
    }
    strbuf config = {0};
    put_config(w, &config);
    weft_status st = make_folder(w->dg, w->path);
    if (st == WEFT_OK)
        st = safetensors_write(w->dg,
                               arena_printf(w->home, "%s/adapter_model.safetensors", w->path).p,
                               items, 2 * w->n, NULL);
    if (st == WEFT_OK)
        st = out_file_write(w->dg, arena_printf(w->home, "%s/adapter_config.json", w->path).p,
                            strbuf_view(&config));
    strbuf_free(&config);
    return st;
}

bool adapter_path_is_gguf(const char *path)
{
    return str_ends(str_of(path), STR(".gguf"));
}

weft_status adapter_write(weft_diag *dg, const char *path, const bound_model *bm,
                          const adapter_site *site, size_t n, const char *base)
{
    bool gguf = adapter_path_is_gguf(path);
    writing w = {.dg = dg, .path = path, .base = base, .bm = bm, .site = site};
    w.home = arena_create();
    weft_status st = store_map(dg, bm, site, n, gguf, w.home, &w.tensors);
    if (st == WEFT_OK) {
        gather_all(&w, gguf);
        st = w.n == 0 ? weft_fail(dg, W0705, WEFT_NOWHERE, "%s: nothing is adapted", path)
             : gguf   ? write_gguf(&w)
                      : write_peft(&w);
    }
    VEC_FREE(&w.tensors);
    arena_destroy(w.home);
    return st;
}
