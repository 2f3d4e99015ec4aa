/* test_page_form.c - parts of pages in every form: what is read back is within the bounds that page_form.h states, q4
 * made of q8 is q4 made of floats, and odd sizes, numbers that are not finite and ranges of 0 come out as stated. */
#include "kernels/page_form.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include "kernels/ref/dequant.h"
#include "tests/base/suite.h"

enum { GUARD = 64 };

static const kform floats[] = {KFORM_F32, KFORM_F16, KFORM_BF16};
static const page_kind kinds[] = {PAGE_KEYS, PAGE_VALUES};
static const int64_t page_sizes[] = {1, 2, 3, 7, 16, 31, 63, 64, 128, 320};

static uint32_t seed = 1;

static float noise(void) /* from -1 to 1 */
{
    seed = seed * 1664525u + 1013904223u;
    return (float)(int32_t)seed * 0x1p-31f;
}

/* A part in memory of its own, with bytes on both sides that nothing may write. */
typedef struct {
    page_part is;
    char *mem, *at;
} part;

static part part_new(kform form, page_kind kind, int64_t page_tok, int64_t width)
{
    part p = {.is = page_part_of(form, kind, page_tok, width)};
    p.mem = malloc((size_t)p.is.bytes + 2 * GUARD);
    memset(p.mem, 0x5a, (size_t)p.is.bytes + 2 * GUARD);
    p.at = p.mem + GUARD;
    return p;
}

static void part_free(part *p)
{
    for (int i = 0; i < GUARD; i++) {
        ck_assert_int_eq(p->mem[i], 0x5a);
        ck_assert_int_eq(p->at[p->is.bytes + i], 0x5a);
    }
    free(p->mem);
}

/* A number of a float part. */
static void number_put(part *p, int64_t tok, int64_t col, float x)
{
    char *at = p->at + page_row(&p->is, tok) + col * (p->is.row_bytes / p->is.width);
    uint16_t h = p->is.form == KFORM_F16 ? f32_to_f16(x) : f32_to_bf16(x);
    if (p->is.form == KFORM_F32)
        memcpy(at, &x, sizeof x);
    else
        memcpy(at, &h, sizeof h);
}

static float number_at(const part *p, int64_t tok, int64_t col)
{
    float x;
    page_read(&p->is, p->at, tok, 1, col, 1, &x, 1);
    return x;
}

/* Channels far from 0, some of them large, as keys have them. */
static part part_random(kform form, page_kind kind, int64_t page_tok, int64_t width)
{
    part p = part_new(form, kind, page_tok, width);
    for (int64_t t = 0; t < page_tok; t++)
        for (int64_t c = 0; c < width; c++)
            number_put(&p, t, c,
                       (float)(c % 5) - 2 + noise() * (c % 7 == 3 ? 20 : 1) * (t % 9 == 4 ? 3 : 1));
    return p;
}

static part part_made(const part *from, kform form)
{
    part p = part_new(form, from->is.kind, from->is.page_tok, from->is.width);
    page_convert(&p.is, p.at, &from->is, from->at);
    return p;
}

static float half_at(const part *p, int64_t offset, int64_t i)
{
    uint16_t h;
    memcpy(&h, p->at + offset + 2 * i, sizeof h);
    return f16_to_f32(h);
}

/* The step and the middle that a number is stored with. */
static float step_at(const part *p, int64_t tok, int64_t col)
{
    int64_t block = page_block(&p->is, tok), in_block = tok % p->is.block_tok;
    return p->is.kind == PAGE_KEYS
               ? half_at(p, block, col)
               : half_at(p, block, col / PAGE_GROUP * p->is.block_tok + in_block);
}

static float mid_at(const part *p, int64_t tok, int64_t col)
{
    return p->is.kind == PAGE_KEYS ? half_at(p, page_block(&p->is, tok) + p->is.mid, col) : 0;
}

/* The largest distance from the middle among the numbers that share a step with this one. */
static double reach_of(const part *from, const part *p, int64_t tok, int64_t col)
{
    int64_t t0 = tok, t1 = tok + 1, c0 = col, c1 = col + 1;
    double most = 0, mid = mid_at(p, tok, col);
    if (p->is.kind == PAGE_KEYS) {
        t0 = tok / p->is.block_tok * p->is.block_tok;
        t1 = t0 + p->is.block_tok;
    } else {
        c0 = col / PAGE_GROUP * PAGE_GROUP;
        c1 = c0 + PAGE_GROUP < p->is.width ? c0 + PAGE_GROUP : p->is.width;
    }
    for (int64_t t = t0; t < t1; t++)
        for (int64_t c = c0; c < c1; c++)
            most = fmax(most, fabs(number_at(from, t, c) - mid));
    return most;
}

/* As page_form.h states them; slack is the rounding of the sums to f32. What is furthest from the middle is kept best,
 * where the step is not one of the small ones that f16 has few of. */
static void bounds_check(const part *from, const part *p)
{
    double steps = p->is.form == KFORM_Q8 ? 0.5 : 8.5;
    for (int64_t t = 0; t < p->is.page_tok; t++)
        for (int64_t c = 0; c < p->is.width; c++) {
            double x = number_at(from, t, c), y = number_at(p, t, c), step = step_at(p, t, c);
            double slack = 1e-6 * (fabs(x) + fabs(y));
            ck_assert_double_le(fabs(x - y), steps * step + slack);
            if (t % 5 != 0)
                continue;
            double reach = reach_of(from, p, t, c);
            ck_assert_double_le(step, reach / PAGE_CODE_MAX * (1 + 0x1p-10) + 0x1p-24);
            if (step >= 0x1p-14 && fabs(x - mid_at(p, t, c)) >= reach)
                ck_assert_double_le(fabs(x - y), 0.5 * step + slack);
        }
}

static void same_part(const part *a, const part *b)
{
    ck_assert_int_eq(a->is.bytes, b->is.bytes);
    ck_assert_int_eq(memcmp(a->at, b->at, (size_t)a->is.bytes), 0);
}

static void forms_check(kform form, page_kind kind, int64_t page_tok, int64_t width)
{
    part from = part_random(form, kind, page_tok, width);
    part q8 = part_made(&from, KFORM_Q8), q4 = part_made(&from, KFORM_Q4);
    part once_more = part_made(&q8, KFORM_Q4), copy = part_made(&q4, KFORM_Q4);
    bounds_check(&from, &q8);
    bounds_check(&from, &q4);
    same_part(&q4, &once_more);
    same_part(&q4, &copy);
    part_free(&from);
    part_free(&q8);
    part_free(&q4);
    part_free(&once_more);
    part_free(&copy);
}

START_TEST(within_bounds)
{
    for (size_t f = 0; f < COUNT_OF(floats); f++)
        for (size_t k = 0; k < COUNT_OF(kinds); k++) {
            for (int64_t width = 1; width <= 300; width += width < 70 ? 1 : 23)
                forms_check(floats[f], kinds[k], 4, width);
            for (size_t i = 0; i < COUNT_OF(page_sizes); i++)
                forms_check(floats[f], kinds[k], page_sizes[i], 80);
        }
}
END_TEST

/* Sizes as the layout has them. */
START_TEST(sizes)
{
    page_part p = page_part_of(KFORM_F16, PAGE_KEYS, 16, 80);
    ck_assert_int_eq(p.bytes, 16 * 80 * 2);
    p = page_part_of(KFORM_Q8, PAGE_KEYS, 128, 64);
    ck_assert_int_eq(p.block_bytes, 128 + 128 + 64 * 64);
    ck_assert_int_eq(p.bytes, 2 * p.block_bytes);
    p = page_part_of(KFORM_Q8, PAGE_VALUES, 128, 64);
    ck_assert_int_eq(p.block_bytes, 128 + 64 * 64);
    p = page_part_of(KFORM_Q4, PAGE_KEYS, 64, 128);
    ck_assert_int_eq(p.bytes, 256 + 256 + 64 * 64);
    p = page_part_of(KFORM_Q4, PAGE_VALUES, 64, 128);
    ck_assert_int_eq(p.bytes, 256 + 64 * 64);
    p = page_part_of(KFORM_Q4, PAGE_VALUES, 3, 65); /* 12 bytes of steps, 8 tokens */
    ck_assert_int_eq(p.bytes, 64 + 4 * 96);
    ck_assert(page_form_has(KFORM_Q8, 1) && page_form_has(KFORM_Q4, 63));
    ck_assert(page_form_has(KFORM_Q8, 64) && page_form_has(KFORM_Q8, 192));
    ck_assert(!page_form_has(KFORM_Q8, 65) && !page_form_has(KFORM_Q4, 100));
    ck_assert(page_form_has(KFORM_F16, 65));
}
END_TEST

/* Any columns of any tokens read as they do one at a time, and nothing else is written. */
START_TEST(pieces)
{
    static const kform all[] = {KFORM_F32, KFORM_F16, KFORM_BF16, KFORM_Q8, KFORM_Q4};
    enum { TOK = 128, WIDTH = 83, PITCH = 90 };
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        for (size_t f = 0; f < COUNT_OF(all); f++) {
            part from = part_random(KFORM_F32, kinds[k], TOK, WIDTH), p = part_made(&from, all[f]);
            static const int64_t cut[][4] = {{0, TOK, 0, WIDTH}, {5, 7, 31, 34},   {60, 9, 1, 82},
                                             {127, 1, 82, 1},    {63, 65, 32, 32}, {1, 126, 64, 5}};
            for (size_t i = 0; i < COUNT_OF(cut); i++) {
                const int64_t *at = cut[i];
                float got[TOK * PITCH];
                for (int64_t j = 0; j < TOK * PITCH; j++)
                    got[j] = 777;
                page_read(&p.is, p.at, at[0], at[1], at[2], at[3], got, PITCH);
                for (int64_t t = 0; t < at[1]; t++)
                    for (int64_t c = 0; c < PITCH; c++)
                        ck_assert_float_eq(got[t * PITCH + c],
                                           c < at[3] ? number_at(&p, at[0] + t, at[2] + c) : 777);
            }
            part_free(&from);
            part_free(&p);
        }
}
END_TEST

/* What is not finite takes its group along, and no other. */
START_TEST(not_finite)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        for (size_t b = 0; b < COUNT_OF(bad); b++)
            for (int q = 0; q < 2; q++) {
                part from = part_random(KFORM_F16, kinds[k], 128, 130);
                number_put(&from, 70, 66, bad[b]);
                part p = part_made(&from, q ? KFORM_Q8 : KFORM_Q4);
                for (int64_t t = 0; t < 128; t++)
                    for (int64_t c = 0; c < 130; c++) {
                        bool of_group = kinds[k] == PAGE_KEYS ? c == 66 && t >= 64
                                                              : t == 70 && c >= 64 && c < 128;
                        ck_assert_int_eq(isnan(number_at(&p, t, c)) != 0, of_group);
                    }
                part_free(&from);
                part_free(&p);
            }
}
END_TEST

/* One number in all of a group is kept as f16 keeps it; a range too small for a step has the smallest one. */
START_TEST(no_range)
{
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        for (int q = 0; q < 2; q++) {
            part from = part_new(KFORM_F32, kinds[k], 64, 70);
            for (int64_t t = 0; t < 64; t++)
                for (int64_t c = 0; c < 70; c++)
                    number_put(&from, t, c,
                               kinds[k] == PAGE_VALUES ? 0
                               : c < 69                ? (float)c - 3.5f
                                                       : 1 + (float)(t % 2) * FLT_EPSILON);
            part p = part_made(&from, q ? KFORM_Q8 : KFORM_Q4);
            for (int64_t t = 0; t < 64; t++)
                for (int64_t c = 0; c < 69; c++) {
                    ck_assert_float_eq(number_at(&p, t, c), number_at(&from, t, c));
                    ck_assert_float_eq(step_at(&p, t, c), 0);
                }
            bounds_check(&from, &p);
            part_free(&from);
            part_free(&p);
        }
}
END_TEST

/* Numbers beyond f16: a middle that it lacks is NaN; a wide range around 0 is kept. */
START_TEST(large)
{
    part from = part_new(KFORM_F32, PAGE_KEYS, 64, 4);
    for (int64_t t = 0; t < 64; t++) {
        number_put(&from, t, 0, 1e6f + (float)t);
        number_put(&from, t, 1, t % 2 ? 1e6f : -1e6f);
        number_put(&from, t, 2, t % 2 ? FLT_MAX : -FLT_MAX);
        number_put(&from, t, 3, t % 2 ? 65504.0f : -65504.0f);
    }
    part p = part_made(&from, KFORM_Q8);
    ck_assert(isnan(number_at(&p, 3, 0)));
    ck_assert_float_eq_tol(number_at(&p, 3, 1), 1e6f, 2e3f);
    ck_assert(isnan(number_at(&p, 3, 2)));
    ck_assert_float_eq_tol(number_at(&p, 2, 3), -65504.0f, 70);
    part_free(&from);
    part_free(&p);
}
END_TEST

/* Every machine and compiler makes the same bytes. The numbers are whole, so that nothing here is rounded before. */
START_TEST(same_everywhere)
{
    static const uint64_t want[2][2] = {{0x12622e4479373f70, 0x86a6a1fe6aa06080},
                                        {0x38347945d0cb8397, 0x6b6b6bd35d89e35e}};
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        for (int q = 0; q < 2; q++) {
            part from = part_new(KFORM_BF16, kinds[k], 128, 100);
            uint32_t x = 12345;
            for (int64_t t = 0; t < 128; t++)
                for (int64_t c = 0; c < 100; c++) {
                    x = x * 1664525u + 1013904223u;
                    number_put(&from, t, c,
                               (float)((int32_t)x >> 20) * (c % 3 ? 0x1p-9f : 0x1p-24f));
                }
            part p = part_made(&from, q ? KFORM_Q8 : KFORM_Q4);
            uint64_t hash = 14695981039346656037u; /* FNV-1a */
            for (int64_t i = 0; i < p.is.bytes; i++)
                hash = (hash ^ (uint8_t)p.at[i]) * 1099511628211u;
            ck_assert_msg(hash == want[k][q], "kind %d, q%d: %#llx", (int)k, q ? 8 : 4,
                          (unsigned long long)hash);
            part_free(&from);
            part_free(&p);
        }
}
END_TEST

/* A float form made of another is what append would have written. */
START_TEST(float_forms)
{
    for (size_t f = 0; f < COUNT_OF(floats); f++) {
        part from = part_random(KFORM_F32, PAGE_KEYS, 5, 77), p = part_made(&from, floats[f]);
        part want = part_new(floats[f], PAGE_KEYS, 5, 77);
        for (int64_t t = 0; t < 5; t++)
            for (int64_t c = 0; c < 77; c++)
                number_put(&want, t, c, number_at(&from, t, c));
        same_part(&p, &want);
        part_free(&from);
        part_free(&p);
        part_free(&want);
    }
}
END_TEST

SUITE_MAIN("page_form", sizes, within_bounds, pieces, not_finite, no_range, large, same_everywhere,
           float_forms)
