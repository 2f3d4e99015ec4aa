/* ref_case.c - reads ref_cases.txt and runs kernels under guard. */
#include "tests/kernels/ref_case.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include "kernels/ref/dequant.h"

/* ---- reading ---- */

/* A line, and how far it is read. */
typedef struct {
    char *text, *at;
    size_t cap;
} line;

FILE *ref_cases_open(void)
{
    FILE *f = fopen(WEFT_SOURCE_DIR "/tests/kernels/ref_cases.txt", "r");
    ck_assert_ptr_nonnull(f);
    return f;
}

static bool line_next(FILE *f, line *l)
{
    ssize_t n = getline(&l->text, &l->cap, f);
    if (n < 0)
        return false;
    if (n > 0 && l->text[n - 1] == '\n')
        l->text[n - 1] = 0;
    l->at = l->text;
    return true;
}

/* The next word, copied; the colon is skipped over. */
static const char *line_word(line *l, char *to, size_t cap)
{
    l->at += strspn(l->at, " :");
    size_t n = strcspn(l->at, " ");
    ck_assert_uint_lt(n, cap);
    memcpy(to, l->at, n);
    to[n] = 0;
    l->at += n;
    return to;
}

static void line_rest(line *l, char *to, size_t cap)
{
    snprintf(to, cap, "%s", l->at + strspn(l->at, " "));
}

static double line_number(line *l)
{
    char *end;
    l->at += strspn(l->at, " :");
    double x = strtod(l->at, &end);
    ck_assert_msg(end != l->at, "a number is missing: %s", l->text);
    l->at = end;
    return x;
}

static int64_t line_int(line *l)
{
    return (int64_t)line_number(l);
}

static double *line_numbers(line *l, arena *a, int64_t n)
{
    double *x = ARENA_ARRAY(a, double, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++)
        x[i] = line_number(l);
    ck_assert_str_eq(l->at, "");
    return x;
}

/* "f32 COUNT : numbers", as f32 or i32. */
static const void *line_array(line *l, arena *a, bool *out_ids, int64_t *out_n)
{
    char type[8];
    *out_ids = strcmp(line_word(l, type, sizeof type), "i32") == 0;
    *out_n = line_int(l);
    const double *x = line_numbers(l, a, *out_n);
    int32_t *ids = ARENA_ARRAY(a, int32_t, (size_t)*out_n + 1);
    float *values = ARENA_ARRAY(a, float, (size_t)*out_n + 1);
    for (int64_t i = 0; i < *out_n; i++) {
        if (*out_ids)
            ids[i] = (int32_t)x[i];
        else
            values[i] = (float)x[i];
    }
    return *out_ids ? (const void *)ids : values;
}

static ref_out line_out(line *l, arena *a)
{
    char type[8];
    line_word(l, type, sizeof type);
    ref_kind kind = type[0] == 'f' ? OUT_F32 : type[0] == 'i' ? OUT_I32 : OUT_BYTES;
    int64_t n = line_int(l);
    return (ref_out){kind, n, line_numbers(l, a, n)};
}

/* Numbers as a weight: rows further apart than their bytes, at an odd address, noise between. */
static const char *weight_store(arena *a, dtype type, const double *x, int64_t rows, int64_t width,
                                int64_t *out_pitch)
{
    size_t each = dtype_row_of(type)->bytes;
    int64_t pitch = width * (int64_t)each + 6;
    char *w = (char *)arena_alloc(a, (size_t)(rows * pitch) + 2) + 1;
    memset(w, 0xff, (size_t)(rows * pitch));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < width; i++) {
            float value = (float)x[r * width + i];
            uint16_t half = type == DT_F16 ? f32_to_f16(value) : f32_to_bf16(value);
            const void *from = type == DT_F32 ? (const void *)&value : &half;
            memcpy(w + r * pitch + i * (int64_t)each, from, each);
        }
    *out_pitch = pitch;
    return w;
}

static dtype line_type(line *l)
{
    char name[16];
    dtype t;
    line_word(l, name, sizeof name);
    ck_assert_msg(dtype_from_name(str_of(name), &t), "no type %s", name);
    return t;
}

static void read_weight(line *l, arena *a, kargs *k)
{
    int64_t i = line_int(l);
    k->type[i] = line_type(l);
    int64_t rows = line_int(l), width = line_int(l);
    const double *x = line_numbers(l, a, rows * width);
    k->in[i] = weight_store(a, k->type[i], x, rows, width, &k->pitch[i]);
}

static void read_table(line *l, arena *a, kargs *k)
{
    int64_t i = line_int(l);
    k->type[i] = line_type(l);
    int64_t n = line_int(l), rows = line_int(l), width = line_int(l);
    const double *x = line_numbers(l, a, n * rows * width);
    const void **table = ARENA_ARRAY(a, const void *, (size_t)n);
    for (int64_t e = n - 1; e >= 0; e--) /* not in the order of the table */
        table[e] = weight_store(a, k->type[i], x + e * rows * width, rows, width, &k->pitch[i]);
    k->in[i] = table;
}

static void read_rows(line *l, arena *a, ref_case *c)
{
    kbatch counts = {.n_tok = line_int(l)};
    counts.n_out = line_int(l);
    const double *x = line_numbers(l, a, counts.n_out);
    kbatch *b = arena_alloc(a, kbatch_bytes(&counts));
    *b = counts;
    for (int64_t i = 0; i < b->n_out; i++)
        kbatch_room(b, KBATCH_OUT)[i] = (int32_t)x[i];
    c->k.batch = b;
}

/* A count, then as many whole numbers. */
static void read_ints(line *l, int64_t *to)
{
    int64_t n = line_int(l);
    for (int64_t i = 0; i < n; i++)
        to[i] = line_int(l);
}

static void read_in(line *l, arena *a, kargs *k)
{
    int64_t i = line_int(l), n;
    bool ids;
    k->in[i] = line_array(l, a, &ids, &n);
    k->type[i] = ids ? DT_I32 : DT_F32;
}

static uint8_t map_op_of(const char *name)
{
    static const char *const names[] = {
#define MAP(op, ...) #op,
#include "kernels/map.def"
#undef MAP
    };
    uint8_t op = 0;
    while (op < MAP_COUNT && strcmp(names[op], name) != 0)
        op++;
    ck_assert_msg(op < MAP_COUNT, "no instruction %s", name);
    return op;
}

static void read_code(line *l, ref_case *c)
{
    char name[16];
    ck_assert_int_lt(c->k.n_code, (int64_t)(sizeof c->code / sizeof c->code[0]));
    kinstr *to = &c->code[c->k.n_code++];
    to->op = map_op_of(line_word(l, name, sizeof name));
    to->to = (uint8_t)line_int(l);
    for (int i = 0; i < 3; i++)
        to->at[i] = (uint8_t)line_int(l);
    for (int i = 0; i < 2; i++)
        to->f[i] = (float)line_number(l);
    c->k.code = c->code;
}

static void read_field(line *l, arena *a, const char *word, ref_case *c)
{
    kargs *k = &c->k;
    if (strcmp(word, "n") == 0) {
        read_ints(l, k->n);
    } else if (strcmp(word, "f") == 0) {
        int64_t n = line_int(l);
        memcpy(k->f, line_numbers(l, a, n), (size_t)n * sizeof k->f[0]);
    } else if (strcmp(word, "word") == 0) {
        int64_t words[K_WORDS_MAX] = {0};
        read_ints(l, words);
        for (int i = 0; i < K_WORDS_MAX; i++)
            k->word[i] = (int32_t)words[i];
    } else if (strcmp(word, "stride") == 0) {
        read_ints(l, k->stride[line_int(l)]);
    } else if (strcmp(word, "code") == 0) {
        read_code(l, c);
    } else if (strcmp(word, "pitch") == 0) {
        k->pitch[0] = line_int(l);
        k->out_pitch[0] = line_int(l);
    } else if (strcmp(word, "in") == 0) {
        read_in(l, a, k);
    } else if (strcmp(word, "weight") == 0) {
        read_weight(l, a, k);
    } else if (strcmp(word, "table") == 0) {
        read_table(l, a, k);
    } else if (strcmp(word, "rows") == 0) {
        read_rows(l, a, c);
    } else if (strcmp(word, "inplace") == 0) {
        c->inplace = true;
    } else if (strcmp(word, "out") == 0) {
        c->n_out = (int)line_int(l) + 1;
        c->out[c->n_out - 1] = line_out(l, a);
    } else {
        ck_abort_msg("what is '%s'?", word);
    }
}

/* Moves to a line that begins with this word. */
static bool find_line(FILE *f, line *l, const char *word)
{
    char first[16];
    while (line_next(f, l))
        if (strcmp(line_word(l, first, sizeof first), word) == 0)
            return true;
    return false;
}

bool ref_case_next(FILE *f, arena *a, ref_case *out_case)
{
    line l = {0};
    char word[16];
    bool found = find_line(f, &l, "case");
    *out_case = (ref_case){0};
    if (found) {
        line_word(&l, out_case->op, sizeof out_case->op);
        line_rest(&l, out_case->name, sizeof out_case->name);
        while (line_next(f, &l) && strcmp(line_word(&l, word, sizeof word), "end") != 0)
            read_field(&l, a, word, out_case);
    }
    free(l.text);
    return found;
}

static void read_attend_field(line *l, arena *a, const char *word, attend_case *c)
{
    if (strcmp(word, "shape") == 0) {
        c->heads = line_int(l);
        c->cell_heads = line_int(l);
        c->k = line_int(l);
        c->v = line_int(l);
        c->latent = line_int(l) != 0;
        c->window = line_int(l);
        c->chunk = line_int(l);
        c->n_row = line_int(l);
        c->n_seq = line_int(l);
        ck_assert_int_le(c->n_seq, ATTEND_SEQ_MAX);
        return;
    }
    if (strcmp(word, "scale") == 0) {
        c->scale = line_number(l);
        c->softcap = line_number(l);
        return;
    }
    if (strcmp(word, "seq") == 0 || strcmp(word, "pos") == 0) {
        int64_t n = line_int(l);
        int32_t *x = ARENA_ARRAY(a, int32_t, (size_t)n);
        for (int64_t i = 0; i < n; i++)
            x[i] = (int32_t)line_int(l);
        *(word[0] == 's' ? &c->seq : &c->pos) = x;
        return;
    }
    int64_t i = line_int(l), n;
    if (strcmp(word, "out") == 0) {
        c->out = line_out(l, a);
        return;
    }
    bool ids;
    const float *x = line_array(l, a, &ids, &n);
    if (strcmp(word, "keys") == 0) {
        c->keys[i] = x;
        c->len[i] = n / (c->cell_heads * c->k);
    } else if (strcmp(word, "values") == 0) {
        c->values[i] = x;
    } else if (strcmp(word, "q") == 0) {
        c->q = x;
    } else if (strcmp(word, "sinks") == 0) {
        c->sinks = x;
    } else if (strcmp(word, "slopes") == 0) {
        c->slopes = x;
    } else {
        ck_abort_msg("what is '%s'?", word);
    }
}

bool attend_case_next(FILE *f, arena *a, attend_case *out_case)
{
    line l = {0};
    char word[16];
    bool found = find_line(f, &l, "attend");
    *out_case = (attend_case){0};
    if (found) {
        line_rest(&l, out_case->name, sizeof out_case->name);
        while (line_next(f, &l) && strcmp(line_word(&l, word, sizeof word), "end") != 0)
            read_attend_field(&l, a, word, out_case);
    }
    free(l.text);
    return found;
}

/* ---- running ---- */

enum { GUARD = 64, GUARD_BYTE = 0xa5, NOISE_BYTE = 0xff };

/* Memory with a guard on both sides, filled with noise: NaNs, or ids far out of range. */
typedef struct {
    unsigned char *block;
    size_t bytes;
} guarded;

static guarded guarded_create(size_t bytes)
{
    guarded g = {malloc(bytes + 2 * GUARD), bytes};
    memset(g.block, GUARD_BYTE, bytes + 2 * GUARD);
    memset(g.block + GUARD, NOISE_BYTE, bytes);
    return g;
}

static void *guarded_data(guarded g)
{
    return g.block + GUARD;
}

static void guarded_check(guarded g, const char *what, const char *part)
{
    for (size_t i = 0; i < GUARD; i++)
        if (g.block[i] != GUARD_BYTE || g.block[GUARD + g.bytes + i] != GUARD_BYTE)
            ck_abort_msg("%s wrote outside its %s", what, part);
}

enum { SPLIT_NONE, SPLIT_EACH, SPLIT_TWO, SPLIT_EMPTY, SPLIT_COUNT };

/* Runs all units, cut up in one way, into out. */
static void run_split(const char *what, const kernel_row *row, const kargs *k, const guarded *out,
                      int n_out, int split)
{
    int64_t units = kernel_units(row, k);
    guarded scratch = guarded_create(kernel_scratch(row, k));
    kthread t = {0, 1, guarded_data(scratch), scratch.bytes};
    kargs mine = *k;
    for (int i = 0; i < n_out; i++)
        mine.out[i] = guarded_data(out[i]);
    switch (split) {
    case SPLIT_NONE:
        row->fn(&mine, &t, 0, units);
        break;
    case SPLIT_EACH: /* one by one, from the last */
        for (int64_t u = units - 1; u >= 0; u--)
            row->fn(&mine, &t, u, u + 1);
        break;
    case SPLIT_TWO:
        row->fn(&mine, &t, units / 3, units);
        row->fn(&mine, &t, 0, units / 3);
        break;
    default: /* nothing to do */
        row->fn(&mine, &t, 0, 0);
        row->fn(&mine, &t, units, units);
    }
    guarded_check(scratch, what, "scratch");
    for (int i = 0; i < n_out; i++)
        guarded_check(out[i], what, "result");
    free(scratch.block);
}

/* The kernel rounds once from double, and so was the recorded number, printed with nine
 * digits: two units in the last place, and next to 0 (where large terms cancelled) 2^-30. */
static bool near(double got, double want)
{
    if (isnan(want) || isinf(want))
        return isnan(want) ? isnan(got) : got == want;
    return fabs(got - want) <= 0x1p-22 * fabs(want) + 0x1p-30;
}

static void compare(const char *what, const ref_out *out, const void *got)
{
    const float *values = got;
    const int32_t *ids = got;
    const uint8_t *bytes = got;
    for (int64_t i = 0; i < out->n; i++) {
        double x = out->kind == OUT_F32 ? values[i] : out->kind == OUT_I32 ? ids[i] : bytes[i];
        if (out->kind == OUT_BYTES && out->want[i] < 0)
            continue;
        if (!near(x, out->want[i]))
            ck_abort_msg("%s: number %d is %.9g, expected %.9g", what, (int)i, x, out->want[i]);
    }
}

void run_checked(const char *what, const kernel_row *row, const kargs *k, const ref_out *out,
                 int n_out, bool inplace)
{
    guarded whole[K_OUT_MAX], parts[K_OUT_MAX];
    for (int split = 0; split < SPLIT_COUNT; split++) {
        guarded *to = split == SPLIT_NONE ? whole : parts;
        for (int i = 0; i < n_out; i++)
            to[i] = guarded_create((size_t)out[i].n * (out[i].kind == OUT_BYTES ? 1 : 4));
        run_split(what, row, k, to, n_out, split);
        for (int i = 0; i < n_out; i++) {
            if (split == SPLIT_NONE) {
                compare(what, &out[i], guarded_data(whole[i]));
                continue;
            }
            if (split == SPLIT_EMPTY)
                memset(guarded_data(whole[i]), NOISE_BYTE, whole[i].bytes);
            if (memcmp(guarded_data(parts[i]), guarded_data(whole[i]), whole[i].bytes) != 0)
                ck_abort_msg("%s: split %d gives other bits", what, split);
            free(parts[i].block);
        }
    }
    if (inplace) {
        kargs over = *k;
        over.in[0] = guarded_data(whole[0]);
        memcpy(guarded_data(whole[0]), k->in[0], whole[0].bytes);
        run_split(what, row, &over, whole, 1, SPLIT_NONE);
        compare(what, &out[0], guarded_data(whole[0]));
    }
    for (int i = 0; i < n_out; i++)
        free(whole[i].block);
}
