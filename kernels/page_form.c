/* page_form.c - quantise the part of a page, and read it. Work goes by strips: the 32 columns that a row of codes is
 * padded to, of all tokens of a block; columns beyond the width are 0. */
#include "kernels/page_form.h"

#include <math.h>
#include <string.h>
#include "kernels/c/half.h"

enum { STRIP = PAGE_PAD };

static int64_t columns_of(const page_part *p, int64_t col)
{
    return p->width - col < STRIP ? p->width - col : STRIP;
}

/* n numbers of a float form. */
static void floats_load(kform form, const char *from, float *to, int64_t n)
{
    if (form == KFORM_F16)
        halves_from_f16((const uint16_t *)(const void *)from, to, n);
    else if (form == KFORM_BF16)
        halves_from_bf16((const uint16_t *)(const void *)from, to, n);
    else
        memcpy(to, from, (size_t)n * sizeof *to);
}

static void floats_store(kform form, const float *from, char *to, int64_t n)
{
    uint16_t *half = (uint16_t *)(void *)to;
    if (form == KFORM_F16)
        halves_to_f16(from, half, n);
    else if (form == KFORM_BF16)
        for (int64_t i = 0; i < n; i++)
            half[i] = half_to_bf16(from[i]);
    else
        memcpy(to, from, (size_t)n * sizeof *from);
}

/* ---- quantising ---- */

/* Not less than x, so that x / step is no more than PAGE_CODE_MAX; infinite beyond f16. */
static uint16_t f16_above(float x)
{
    uint16_t h = half_to_f16(x);
    return half_from_f16(h) < x ? (uint16_t)(h + 1) : h;
}

static bool is_finite(float x)
{
    return (bits_of(x) & 0x7f800000u) != 0x7f800000u;
}

/* What a group is stored with: the numbers as f16, and as floats by which codes are found. */
typedef struct {
    uint16_t step, mid;
    float by, from; /* code = (x - from) * by, rounded */
} scale;

static scale scale_of(float low, float high, bool centred, bool finite)
{
    scale s = {.mid = centred ? half_to_f16(0.5f * low + 0.5f * high) : 0};
    s.from = half_from_f16(s.mid);
    float up = high - s.from, down = s.from - low, r = up > down ? up : down;
    s.step = f16_above(r / PAGE_CODE_MAX);
    float step = half_from_f16(s.step);
    if (!finite || !is_finite(s.from) || !is_finite(step))
        return (scale){.step = 0x7e00}; /* NaN; codes 0 */
    s.by = step > 0 ? 1 / step : 0;
    return s;
}

/* Whole numbers from -119 to 119; what is not finite has `by` 0 and becomes 0. */
static int8_t code_of(float x, float from, float by)
{
    const float magic = 0x1.8p23f; /* numbers near it have units of 1 */
    float whole = (x - from) * by + magic - magic;
    return (int8_t)(by == 0 ? 0 : (int32_t)whole);
}

/* A strip of a row of codes. */
static void codes_store(kform form, const int8_t *code, char *row, int64_t col)
{
    if (form == KFORM_Q8) {
        memcpy(row + col, code, STRIP);
        return;
    }
    uint8_t *to = (uint8_t *)row + col / 2;
    for (int i = 0; i < STRIP / 2; i++) {
        int low = ((code[i] + 8) >> 4) + 8, high = ((code[i + STRIP / 2] + 8) >> 4) + 8;
        to[i] = (uint8_t)(low | high << 4);
    }
}

/* The strip at column `col` of a block of keys; x [block_tok][STRIP]. */
static void keys_store(const page_part *p, char *block, int64_t col, float (*x)[STRIP])
{
    float low[STRIP], high[STRIP], by[STRIP], from[STRIP];
    uint32_t most[STRIP] = {0}; /* of the magnitudes' bits */
    uint16_t *step = (uint16_t *)(void *)block + col;
    uint16_t *mid = (uint16_t *)(void *)(block + p->mid) + col;
    memcpy(low, x[0], sizeof low);
    memcpy(high, x[0], sizeof high);
    for (int64_t t = 0; t < p->block_tok; t++)
        for (int c = 0; c < STRIP; c++) {
            uint32_t magnitude = bits_of(x[t][c]) & 0x7fffffffu;
            low[c] = x[t][c] < low[c] ? x[t][c] : low[c];
            high[c] = x[t][c] > high[c] ? x[t][c] : high[c];
            most[c] = magnitude > most[c] ? magnitude : most[c];
        }
    for (int c = 0; c < STRIP; c++) {
        scale s = scale_of(low[c], high[c], true, most[c] < 0x7f800000u);
        step[c] = s.step;
        mid[c] = s.mid;
        by[c] = s.by;
        from[c] = s.from;
    }
    for (int64_t t = 0; t < p->block_tok; t++) {
        int8_t code[STRIP];
        for (int c = 0; c < STRIP; c++)
            code[c] = code_of(x[t][c], from[c], by[c]);
        codes_store(p->form, code, block + p->codes + t * p->row_bytes, col);
    }
}

/* Token t of a block of values: the group at column `col`, n columns of it; x [PAGE_GROUP], 0 beyond them. */
static void values_store(const page_part *p, char *block, int64_t t, int64_t col, int64_t n,
                         const float *x)
{
    uint32_t most = 0;
    for (int64_t c = 0; c < PAGE_GROUP; c++) {
        uint32_t magnitude = bits_of(x[c]) & 0x7fffffffu;
        most = magnitude > most ? magnitude : most;
    }
    bool finite = most < 0x7f800000u;
    scale s = scale_of(0, finite ? float_of(most) : 0, false, finite);
    ((uint16_t *)(void *)block)[t * p->groups + col / PAGE_GROUP] = s.step;
    for (int64_t i = 0; i < n; i += STRIP) {
        int8_t code[STRIP];
        for (int c = 0; c < STRIP; c++)
            code[c] = code_of(x[i + c], 0, s.by);
        codes_store(p->form, code, block + p->codes + t * p->row_bytes, col + i);
    }
}

static void keys_quantise(const page_part *to, char *block, const page_part *from, const char *rows)
{
    int64_t bytes = from->row_bytes / from->width;
    for (int64_t col = 0; col < to->width; col += STRIP) {
        float x[PAGE_BLOCK][STRIP] = {0};
        for (int64_t t = 0; t < to->block_tok; t++)
            floats_load(from->form, rows + t * from->row_bytes + col * bytes, x[t],
                        columns_of(to, col));
        keys_store(to, block, col, x);
    }
}

static void values_quantise(const page_part *to, char *block, const page_part *from,
                            const char *rows)
{
    int64_t bytes = from->row_bytes / from->width, steps = to->block_tok * to->groups * 2;
    memset(block + steps, 0, (size_t)(to->codes - steps));
    for (int64_t t = 0; t < to->block_tok; t++)
        for (int64_t col = 0; col < to->width; col += PAGE_GROUP) {
            int64_t left = to->width - col, n = left < PAGE_GROUP ? left : PAGE_GROUP;
            float x[PAGE_GROUP] = {0};
            floats_load(from->form, rows + t * from->row_bytes + col * bytes, x, n);
            values_store(to, block, t, col, n, x);
        }
}

/* q8 to q4: what is before the codes stays. */
static void codes_halve(const page_part *to, char *dst, const page_part *from, const char *src)
{
    memcpy(dst, src, (size_t)to->codes);
    for (int64_t t = 0; t < to->block_tok; t++)
        for (int64_t col = 0; col < from->row_bytes; col += STRIP)
            codes_store(to->form, (const int8_t *)(src + from->codes + t * from->row_bytes + col),
                        dst + to->codes + t * to->row_bytes, col);
}

static void floats_convert(const page_part *to, char *dst, const page_part *from, const char *src)
{
    int64_t n = to->page_tok * to->width, to_bytes = to->row_bytes / to->width;
    int64_t from_bytes = from->row_bytes / from->width;
    for (int64_t i = 0; i < n; i += STRIP) {
        float x[STRIP];
        int64_t some = n - i < STRIP ? n - i : STRIP;
        floats_load(from->form, src + i * from_bytes, x, some);
        floats_store(to->form, x, dst + i * to_bytes, some);
    }
}

static void block_convert(const page_part *to, char *dst, const page_part *from, const char *src)
{
    if (!kform_is_float(from->form))
        codes_halve(to, dst, from, src);
    else if (to->kind == PAGE_KEYS)
        keys_quantise(to, dst, from, src);
    else
        values_quantise(to, dst, from, src);
    int64_t used = to->codes + to->block_tok * to->row_bytes;
    memset(dst + used, 0, (size_t)(to->block_bytes - used));
}

void page_convert(const page_part *to, void *dst, const page_part *from, const void *src)
{
    if (to->form == from->form)
        memcpy(dst, src, (size_t)to->bytes);
    else if (kform_is_float(to->form))
        floats_convert(to, dst, from, src);
    else
        for (int64_t tok = 0; tok < to->page_tok; tok += to->block_tok) {
            const char *at = kform_is_float(from->form) ? (const char *)src + page_row(from, tok)
                                                        : (const char *)src + page_block(from, tok);
            block_convert(to, (char *)dst + page_block(to, tok), from, at);
        }
}

/* ---- reading ---- */

/* The codes of a strip as floats; q4's are 16 times what it stores. */
static void codes_load(kform form, const char *row, int64_t col, float *x)
{
    if (form == KFORM_Q8) {
        const int8_t *code = (const int8_t *)row + col;
        for (int i = 0; i < STRIP; i++)
            x[i] = code[i];
        return;
    }
    const uint8_t *pair = (const uint8_t *)row + col / 2;
    for (int i = 0; i < STRIP / 2; i++) {
        x[i] = (float)(((pair[i] & 15) - 8) * 16);
        x[i + STRIP / 2] = (float)(((pair[i] >> 4) - 8) * 16);
    }
}

/* Strip `col` of token t of a block, of which columns [begin, end) are wanted. */
static void strip_read(const page_part *p, const char *block, int64_t t, int64_t col,
                       const float *step, const float *mid, int64_t begin, int64_t end, float *to)
{
    float x[STRIP];
    codes_load(p->form, block + p->codes + t * p->row_bytes, col, x);
    for (int i = 0; i < STRIP; i++)
        x[i] = mid[i] + step[i] * x[i];
    memcpy(to, x + begin, (size_t)(end - begin) * sizeof *to);
}

/* Tokens of one block. */
static void block_read(const page_part *p, const char *block, int64_t t, int64_t n_tok, int64_t col,
                       int64_t n_col, float *to, int64_t pitch)
{
    const uint16_t *steps = (const uint16_t *)(const void *)block;
    for (int64_t at = col / STRIP * STRIP; at < col + n_col; at += STRIP) {
        float step[STRIP], mid[STRIP] = {0};
        int64_t begin = col > at ? col - at : 0;
        int64_t end = col + n_col - at < STRIP ? col + n_col - at : STRIP;
        if (p->kind == PAGE_KEYS) {
            halves_from_f16(steps + at, step, STRIP);
            halves_from_f16((const uint16_t *)(const void *)(block + p->mid) + at, mid, STRIP);
        }
        for (int64_t i = 0; i < n_tok; i++) {
            if (p->kind == PAGE_VALUES) {
                float one = half_from_f16(steps[(t + i) * p->groups + at / PAGE_GROUP]);
                for (int c = 0; c < STRIP; c++)
                    step[c] = one;
            }
            strip_read(p, block, t + i, at, step, mid, begin, end,
                       to + i * pitch + at + begin - col);
        }
    }
}

void page_read(const page_part *p, const void *part, int64_t tok, int64_t n_tok, int64_t col,
               int64_t n_col, float *to, int64_t pitch)
{
    const char *from = part;
    if (kform_is_float(p->form)) {
        for (int64_t i = 0; i < n_tok; i++)
            floats_load(p->form, from + page_row(p, tok + i) + col * (p->row_bytes / p->width),
                        to + i * pitch, n_col);
        return;
    }
    for (int64_t i = 0; i < n_tok;) {
        int64_t t = (tok + i) % p->block_tok, left = p->block_tok - t;
        int64_t n = n_tok - i < left ? n_tok - i : left;
        block_read(p, from + page_block(p, tok + i), t, n, col, n_col, to + i * pitch, pitch);
        i += n;
    }
}
