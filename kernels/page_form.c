/* page_form.c - quantise the part of a page, and read it. Codes are found row by row, as numbers from -120 to 120, and then
 * put where they belong, a *strip* at a time: 32 columns of some tokens; columns beyond the width are 0. */
#include "kernels/page_form.h"

#include <math.h>
#include <string.h>
#include "kernels/c/half.h"

enum { STRIP = PAGE_PAD };

/* Columns from `col` on, `most` at most. */
static int64_t columns_of(const page_part *p, int64_t col, int64_t most)
{
    return p->width - col < most ? p->width - col : most;
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

/* A whole number from -120 to 120, and PAGE_OFFSET; what is not finite has `by` 0 and becomes 0. */
static uint8_t code_of(float x, float from, float by)
{
    const float magic = 0x1.8p23f; /* numbers near it have units of 1 */
    float whole = (x - from) * by + magic - magic;
    return (uint8_t)((by == 0 ? 0 : (int32_t)whole) + PAGE_OFFSET);
}

/* Two bytes of q8 as q4 keeps them: their upper halves. */
static uint8_t nibbles_of(uint8_t low, uint8_t high)
{
    return (uint8_t)(low >> 4 | (high & 0xf0));
}

/* Two quads of n bytes each become one of nibbles. */
static void quads_halve(const uint8_t *low, const uint8_t *high, uint8_t *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = nibbles_of(low[i], high[i]);
}

/* n_quad quads of q8, quad [n_quad][bytes], from the i-th of a block on, `at` bytes into each. */
static void quads_store(const page_part *p, char *block, int64_t i, int64_t n_quad, int64_t at,
                        int64_t bytes, const uint8_t *quad)
{
    uint8_t *to = (uint8_t *)block + p->codes + at;
    if (p->form == KFORM_Q8)
        for (int64_t j = 0; j < n_quad; j++)
            memcpy(to + (i + j) * p->quad_bytes, quad + j * bytes, (size_t)bytes);
    else
        for (int64_t j = 0; j < n_quad; j += 2)
            quads_halve(quad + j * bytes, quad + (j + 1) * bytes, to + (i + j) / 2 * p->quad_bytes,
                        bytes);
}

/* The strip at column `col` of a block of keys; x [block_tok][STRIP]. */
static void keys_store(const page_part *p, char *block, int64_t col, float (*x)[STRIP])
{
    float low[STRIP], high[STRIP], by[STRIP], from[STRIP];
    uint32_t most[STRIP] = {0}; /* of the magnitudes' bits */
    uint8_t quad[STRIP / PAGE_QUAD][PAGE_BLOCK * PAGE_QUAD];
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
    int64_t bytes = p->block_tok * PAGE_QUAD;
    for (int64_t t = 0; t < p->block_tok; t++) {
        uint8_t code[STRIP];
        for (int c = 0; c < STRIP; c++)
            code[c] = code_of(x[t][c], from[c], by[c]);
        for (int c = 0; c < STRIP; c += PAGE_QUAD)
            memcpy(&quad[0][0] + c / PAGE_QUAD * bytes + t * PAGE_QUAD, code + c, PAGE_QUAD);
    }
    quads_store(p, block, col / PAGE_QUAD, STRIP / PAGE_QUAD, 0, bytes, &quad[0][0]);
}

/* The step of a token of values and a group of columns x, 0 beyond the width; what codes are multiplied by. */
static float value_step(const float *x, uint16_t *step)
{
    uint32_t most = 0;
    for (int64_t c = 0; c < PAGE_GROUP; c++) {
        uint32_t magnitude = bits_of(x[c]) & 0x7fffffffu;
        most = magnitude > most ? magnitude : most;
    }
    bool finite = most < 0x7f800000u;
    scale s = scale_of(0, finite ? float_of(most) : 0, false, finite);
    *step = s.step;
    return s.by;
}

/* Eight tokens from t on, of which `n` are there, and the group of columns at `col`. */
static void values_store(const page_part *p, char *block, int64_t t, int64_t n, int64_t col,
                         float (*x)[PAGE_GROUP])
{
    uint16_t *step = (uint16_t *)(void *)block + col / PAGE_GROUP * p->block_tok + t;
    float by[PAGE_TOK_PAD] = {0};
    for (int64_t i = 0; i < n; i++)
        by[i] = value_step(x[i], &step[i]);
    for (int64_t at = 0; at < PAGE_GROUP && col + at < p->width; at += STRIP) {
        uint8_t quad[PAGE_TOK_PAD / PAGE_QUAD][STRIP * PAGE_QUAD];
        for (int i = 0; i < PAGE_TOK_PAD; i++)
            for (int c = 0; c < STRIP; c++)
                quad[i / PAGE_QUAD][c * PAGE_QUAD + i % PAGE_QUAD] =
                    code_of(x[i][at + c], 0, by[i]);
        quads_store(p, block, t / PAGE_QUAD, PAGE_TOK_PAD / PAGE_QUAD, (col + at) * PAGE_QUAD,
                    STRIP * PAGE_QUAD, &quad[0][0]);
    }
}

static void keys_quantise(const page_part *to, char *block, const page_part *from, const char *rows)
{
    int64_t bytes = from->row_bytes / from->width;
    for (int64_t col = 0; col < to->width; col += STRIP) {
        float x[PAGE_BLOCK][STRIP] = {0};
        for (int64_t t = 0; t < to->block_tok; t++)
            floats_load(from->form, rows + t * from->row_bytes + col * bytes, x[t],
                        columns_of(to, col, STRIP));
        keys_store(to, block, col, x);
    }
}

static void values_quantise(const page_part *to, char *block, const page_part *from,
                            const char *rows)
{
    int64_t bytes = from->row_bytes / from->width;
    memset(block, 0, (size_t)to->codes);
    for (int64_t t = 0; t < to->block_tok; t += PAGE_TOK_PAD)
        for (int64_t col = 0; col < to->width; col += PAGE_GROUP) {
            int64_t left = to->block_tok - t, n = left < PAGE_TOK_PAD ? left : PAGE_TOK_PAD;
            float x[PAGE_TOK_PAD][PAGE_GROUP] = {0};
            for (int64_t i = 0; i < n; i++)
                floats_load(from->form, rows + (t + i) * from->row_bytes + col * bytes, x[i],
                            columns_of(to, col, PAGE_GROUP));
            values_store(to, block, t, n, col, x);
        }
}

/* All codes of a block, padded. */
static int64_t codes_bytes(const page_part *p)
{
    int64_t quad = p->form == KFORM_Q8 ? PAGE_QUAD : 2 * PAGE_QUAD;
    int64_t along = p->kind == PAGE_KEYS ? p->padded : page_pad(p->block_tok, PAGE_TOK_PAD);
    return along / quad * p->quad_bytes;
}

/* q8 to q4: what is before the codes stays; two quads of bytes become one of nibbles. */
static void codes_halve(const page_part *to, char *dst, const page_part *from, const char *src)
{
    const uint8_t *code = (const uint8_t *)src + from->codes;
    uint8_t *pair = (uint8_t *)dst + to->codes;
    int64_t quad = to->quad_bytes, n = codes_bytes(to) / quad;
    memcpy(dst, src, (size_t)to->codes);
    for (int64_t i = 0; i < n; i++)
        quads_halve(code + 2 * i * quad, code + (2 * i + 1) * quad, pair + i * quad, quad);
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
    int64_t used = to->codes + codes_bytes(to);
    memset(dst + used, 0, (size_t)(to->block_bytes - used));
    if (!kform_is_float(from->form))
        codes_halve(to, dst, from, src);
    else if (to->kind == PAGE_KEYS)
        keys_quantise(to, dst, from, src);
    else
        values_quantise(to, dst, from, src);
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

/* The bytes of a strip of a token of keys, of q4 their upper halves: its channels are four and four. */
static void codes_of_key(const page_part *p, const uint8_t *codes, int64_t t, int64_t col,
                         uint8_t *to)
{
    int each = p->form == KFORM_Q8 ? PAGE_QUAD : 2 * PAGE_QUAD;
    for (int c = 0; c < STRIP; c += each) {
        const uint8_t *from = codes + (col + c) / each * p->quad_bytes + t * PAGE_QUAD;
        for (int i = 0; i < PAGE_QUAD; i++) {
            to[c + i] = p->form == KFORM_Q8 ? from[i] : (uint8_t)(from[i] << 4);
            if (p->form == KFORM_Q4)
                to[c + PAGE_QUAD + i] = from[i] & 0xf0;
        }
    }
}

/* The same of values: those of a token are four bytes apart. */
static void codes_of_value(const page_part *p, const uint8_t *codes, int64_t t, int64_t col,
                           uint8_t *to)
{
    int each = p->form == KFORM_Q8 ? PAGE_QUAD : 2 * PAGE_QUAD;
    int shift = p->form == KFORM_Q4 && t % each < PAGE_QUAD ? 4 : 0;
    int mask = p->form == KFORM_Q8 ? 0xff : 0xf0;
    const uint8_t *from = codes + t / each * p->quad_bytes + col * PAGE_QUAD + t % PAGE_QUAD;
    for (int c = 0; c < STRIP; c++)
        to[c] = (uint8_t)(from[c * PAGE_QUAD] << shift & mask);
}

/* What is taken from bytes to get codes; q4's bytes are upper halves. */
static int offset_of(const page_part *p)
{
    return p->form == KFORM_Q8 ? PAGE_OFFSET : PAGE_CODE_MAX;
}

/* The codes of a strip of a token as floats. */
static void codes_load(const page_part *p, const char *block, int64_t t, int64_t col, float *x)
{
    const uint8_t *codes = (const uint8_t *)block + p->codes;
    int offset = offset_of(p);
    uint8_t code[STRIP];
    if (p->kind == PAGE_KEYS)
        codes_of_key(p, codes, t, col, code);
    else
        codes_of_value(p, codes, t, col, code);
    for (int i = 0; i < STRIP; i++)
        x[i] = (float)(code[i] - offset);
}

/* Strip `col` of token t of a block, of which columns [begin, end) are wanted. */
static void strip_read(const page_part *p, const char *block, int64_t t, int64_t col,
                       const float *step, const float *mid, int64_t begin, int64_t end, float *to)
{
    float x[STRIP];
    codes_load(p, block, t, col, x);
    for (int i = 0; i < STRIP; i++)
        x[i] = mid[i] + step[i] * x[i];
    memcpy(to, x + begin, (size_t)(end - begin) * sizeof *to);
}

/* Four channels of n_tok tokens of keys, from the low or the high nibbles or from bytes. */
static inline void quad_read(const uint8_t *from, int64_t n_tok, int shift, int mask, int offset,
                             const float *step, const float *mid, float *to, int64_t pitch)
{
    for (int64_t t = 0; t < n_tok; t++)
        for (int i = 0; i < PAGE_QUAD; i++) {
            float code = (float)((from[t * PAGE_QUAD + i] << shift & mask) - offset);
            to[t * pitch + i] = mid[i] + step[i] * code;
        }
}

/* The first channels of a block of keys, a multiple of 8 of them: quad by quad, which is how they lie. */
static void keys_read(const page_part *p, const char *block, int64_t t, int64_t n_tok,
                      int64_t n_col, float *to, int64_t pitch)
{
    const uint16_t *steps = (const uint16_t *)(const void *)block;
    const uint16_t *mids = (const uint16_t *)(const void *)(block + p->mid);
    const uint8_t *codes = (const uint8_t *)block + p->codes + t * PAGE_QUAD;
    bool half = p->form == KFORM_Q4;
    for (int64_t c = 0; c < n_col; c += PAGE_QUAD) {
        float step[PAGE_QUAD], mid[PAGE_QUAD];
        int64_t quad = c / PAGE_QUAD;
        for (int i = 0; i < PAGE_QUAD; i++) {
            step[i] = half_from_f16(steps[c + i]);
            mid[i] = half_from_f16(mids[c + i]);
        }
        const uint8_t *from = codes + quad / (half ? 2 : 1) * p->quad_bytes;
        if (!half) /* constants, so that each becomes vector code */
            quad_read(from, n_tok, 0, 0xff, PAGE_OFFSET, step, mid, to + c, pitch);
        else if (quad % 2 == 0)
            quad_read(from, n_tok, 4, 0xf0, PAGE_CODE_MAX, step, mid, to + c, pitch);
        else
            quad_read(from, n_tok, 0, 0xf0, PAGE_CODE_MAX, step, mid, to + c, pitch);
    }
}

/* Tokens of one block. */
static void block_read(const page_part *p, const char *block, int64_t t, int64_t n_tok, int64_t col,
                       int64_t n_col, float *to, int64_t pitch)
{
    const uint16_t *steps = (const uint16_t *)(const void *)block;
    if (p->kind == PAGE_KEYS && col == 0) {
        int64_t whole = n_col / (2 * PAGE_QUAD) * (2 * PAGE_QUAD);
        keys_read(p, block, t, n_tok, whole, to, pitch);
        col += whole;
        n_col -= whole;
        to += whole;
    }
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
                float one = half_from_f16(steps[at / PAGE_GROUP * p->block_tok + t + i]);
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
