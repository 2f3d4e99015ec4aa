/* attend_neon_asm.h - the inner loops of attend_neon_tile.h in assembly: compilers spill what fits, and reorder products
 * so that sums wait for each other.
 *
 * On Neoverse-V1 four fused products start a cycle where one of the two numbers multiplied comes from memory, else two:
 * here that is the query, or the weights. A conversion by fcvtl costs as much as three products, 0 + h * 1 by fmlal,
 * where there is one, as much as two. Sixteen products of four lanes take 4.2 cycles with f32, 5.8 with f16 by
 * fmlal, 8.0 by fcvtl. */
#ifndef WEFT_KERNELS_NEON_ATTEND_NEON_ASM_H
#define WEFT_KERNELS_NEON_ATTEND_NEON_ASM_H

#include "kernels/neon/neon.h"

/* How memory that is read some blocks later is asked for. */
#define LATER "pldl3keep"

/* Four numbers of 16 bits as floats: the lower or the upper half of register h. Register 15 has f16 ones. */
#ifdef __ARM_FEATURE_FP16_FML
#define F16_LOW(to, h) "movi v" #to ".2d, #0\n fmlal v" #to ".4s, v" #h ".4h, v15.4h\n"
#define F16_HIGH(to, h) "movi v" #to ".2d, #0\n fmlal2 v" #to ".4s, v" #h ".4h, v15.4h\n"
#else
#define F16_LOW(to, h) "fcvtl v" #to ".4s, v" #h ".4h\n"
#define F16_HIGH(to, h) "fcvtl2 v" #to ".4s, v" #h ".8h\n"
#endif
#define BF16_LOW(to, h) "shll v" #to ".4s, v" #h ".4h, #16\n"
#define BF16_HIGH(to, h) "shll2 v" #to ".4s, v" #h ".8h, #16\n"

/* Four queries (at x) times four columns of keys in registers 24 to 31, of which lane `l` is the column's. */
#define DOT8(x, l)                                                                                 \
    "fmla v0.4s, v" #x ".4s, v24.s[" #l "]\n fmla v1.4s, v" #x ".4s, v25.s[" #l "]\n"              \
    "fmla v2.4s, v" #x ".4s, v26.s[" #l "]\n fmla v3.4s, v" #x ".4s, v27.s[" #l "]\n"              \
    "fmla v4.4s, v" #x ".4s, v28.s[" #l "]\n fmla v5.4s, v" #x ".4s, v29.s[" #l "]\n"              \
    "fmla v6.4s, v" #x ".4s, v30.s[" #l "]\n fmla v7.4s, v" #x ".4s, v31.s[" #l "]\n"
#define EIGHT(convert)                                                                             \
    convert(24, 16) convert(25, 17) convert(26, 18) convert(27, 19) convert(28, 20)                \
        convert(29, 21) convert(30, 22) convert(31, 23)
#define SUMS_ZERO                                                                                  \
    "movi v0.2d, #0\n movi v1.2d, #0\n movi v2.2d, #0\n movi v3.2d, #0\n"                          \
    "movi v4.2d, #0\n movi v5.2d, #0\n movi v6.2d, #0\n movi v7.2d, #0\n"
#define SUMS_ZERO_UPPER                                                                            \
    "movi v8.2d, #0\n movi v9.2d, #0\n movi v10.2d, #0\n movi v11.2d, #0\n"                        \
    "movi v12.2d, #0\n movi v13.2d, #0\n movi v14.2d, #0\n movi v15.2d, #0\n"
#define VECTORS                                                                                    \
    "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", \
        "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", \
        "v28", "v29", "v30", "v31"

/* s[j][..] = q . key[j] for four queries q [width][4] and eight keys of 16 bits, `pitch` bytes apart. */
#define DOT8_OF(name, low, high)                                                                   \
    static inline void name(const float *q, const char *key, int64_t pitch, int64_t width,         \
                            float *s, const char *later)                                           \
    {                                                                                              \
        const char *k4 = key + 4 * pitch;                                                          \
        int64_t two = 2 * pitch, three = 3 * pitch;                                                \
        __asm__ volatile(                                                                          \
            SUMS_ZERO                                                                              \
            "movi v15.8h, #0x3c, lsl #8\n"                                                         \
            "1:\n"                                                                                 \
            "ldr q16, [%[a]]\n ldr q17, [%[a], %[p]]\n"                                            \
            "ldr q18, [%[a], %[p2]]\n ldr q19, [%[a], %[p3]]\n"                                    \
            "ldr q20, [%[b]]\n ldr q21, [%[b], %[p]]\n"                                            \
            "ldr q22, [%[b], %[p2]]\n ldr q23, [%[b], %[p3]]\n"                                    \
            "ldp q8, q9, [%[q]]\n ldp q10, q11, [%[q], #32]\n"                                     \
            "prfm " LATER ", [%[h]]\n"                                                             \
            "add %[a], %[a], #16\n add %[b], %[b], #16\n" EIGHT(low) DOT8(8, 0) DOT8(9, 1)         \
                DOT8(10, 2) DOT8(                                                                  \
                    11, 3) "ldp q8, q9, [%[q], #64]\n ldp q10, q11, [%[q], #96]\n"                 \
                           "prfm " LATER ", [%[h], #64]\n add %[h], %[h], #128\n"                  \
                           "add %[q], %[q], #128\n" EIGHT(high) DOT8(8, 0) DOT8(9, 1) DOT8(10, 2)  \
                               DOT8(11, 3) "subs %[n], %[n], #8\n b.gt 1b\n"                       \
                                           "stp q0, q1, [%[s]]\n stp q2, q3, [%[s], #32]\n"        \
                                           "stp q4, q5, [%[s], #64]\n stp q6, q7, [%[s], #96]\n"   \
            : [q] "+r"(q), [a] "+r"(key), [b] "+r"(k4), [n] "+r"(width), [h] "+r"(later)           \
            : [p] "r"(pitch), [p2] "r"(two), [p3] "r"(three), [s] "r"(s)                           \
            : "memory", "cc", VECTORS);                                                            \
    }

/* Four queries at x, y, z, w times a column of four keys in registers 16 to 19. */
#define DOT4X4(x, y, z, w, l)                                                                      \
    "fmla v0.4s, v" #x ".4s, v16.s[" #l "]\n fmla v1.4s, v" #x ".4s, v17.s[" #l "]\n"              \
    "fmla v2.4s, v" #x ".4s, v18.s[" #l "]\n fmla v3.4s, v" #x ".4s, v19.s[" #l "]\n"              \
    "fmla v4.4s, v" #y ".4s, v16.s[" #l "]\n fmla v5.4s, v" #y ".4s, v17.s[" #l "]\n"              \
    "fmla v6.4s, v" #y ".4s, v18.s[" #l "]\n fmla v7.4s, v" #y ".4s, v19.s[" #l "]\n"              \
    "fmla v8.4s, v" #z ".4s, v16.s[" #l "]\n fmla v9.4s, v" #z ".4s, v17.s[" #l "]\n"              \
    "fmla v10.4s, v" #z ".4s, v18.s[" #l "]\n fmla v11.4s, v" #z ".4s, v19.s[" #l "]\n"            \
    "fmla v12.4s, v" #w ".4s, v16.s[" #l "]\n fmla v13.4s, v" #w ".4s, v17.s[" #l "]\n"            \
    "fmla v14.4s, v" #w ".4s, v18.s[" #l "]\n fmla v15.4s, v" #w ".4s, v19.s[" #l "]\n"

/* s[g][j][..] = q[g] . key[j] for four panels q [width][4], q_pitch bytes apart, and four keys that are floats; results
 * of a panel are s_pitch bytes from those of the last. */
static inline void dot_panels4(const float *q, int64_t q_pitch, const char *key, int64_t pitch,
                               int64_t width, float *s, int64_t s_pitch)
{
    const char *q0 = (const char *)q, *q1 = q0 + q_pitch, *q2 = q1 + q_pitch, *q3 = q2 + q_pitch;
    char *s0 = (char *)s, *s1 = s0 + s_pitch, *s2 = s1 + s_pitch, *s3 = s2 + s_pitch;
    int64_t two = 2 * pitch, three = 3 * pitch;
    __asm__ volatile(
        SUMS_ZERO SUMS_ZERO_UPPER
        "1:\n"
        "ldr q16, [%[k]]\n ldr q17, [%[k], %[p]]\n"
        "ldr q18, [%[k], %[p2]]\n ldr q19, [%[k], %[p3]]\n"
        "ldp q20, q24, [%[q0]]\n ldp q21, q25, [%[q1]]\n"
        "ldp q22, q26, [%[q2]]\n ldp q23, q27, [%[q3]]\n"
        "add %[k], %[k], #16\n" DOT4X4(20, 21, 22, 23, 0) DOT4X4(
            24, 25, 26, 27,
            1) "ldp q20, q24, [%[q0], #32]\n ldp q21, q25, [%[q1], #32]\n"
               "ldp q22, q26, [%[q2], #32]\n ldp q23, q27, [%[q3], #32]\n"
               "add %[q0], %[q0], #64\n add %[q1], %[q1], #64\n"
               "add %[q2], %[q2], #64\n add %[q3], %[q3], #64\n" DOT4X4(20, 21, 22, 23, 2)
                   DOT4X4(24, 25, 26, 27, 3) "subs %[n], %[n], #4\n b.gt 1b\n"
                                             "stp q0, q1, [%[s0]]\n stp q2, q3, [%[s0], #32]\n"
                                             "stp q4, q5, [%[s1]]\n stp q6, q7, [%[s1], #32]\n"
                                             "stp q8, q9, [%[s2]]\n stp q10, q11, [%[s2], #32]\n"
                                             "stp q12, q13, [%[s3]]\n stp q14, q15, [%[s3], #32]\n"
        : [q0] "+r"(q0), [q1] "+r"(q1), [q2] "+r"(q2), [q3] "+r"(q3), [k] "+r"(key), [n] "+r"(width)
        : [p] "r"(pitch), [p2] "r"(two), [p3] "r"(three), [s0] "r"(s0), [s1] "r"(s1), [s2] "r"(s2),
          [s3] "r"(s3)
        : "memory", "cc", VECTORS);
}

/* Every fourth column from column `l` on, of four panels (whose pointers begin there) and four keys; to[g][j][..]. */
#define CHAIN4_OF(name, l)                                                                         \
    static inline void name(const char *q0, int64_t q_pitch, const char *key, int64_t pitch,       \
                            int64_t width, float *to)                                              \
    {                                                                                              \
        const char *q1 = q0 + q_pitch, *q2 = q1 + q_pitch, *q3 = q2 + q_pitch;                     \
        int64_t two = 2 * pitch, three = 3 * pitch;                                                \
        __asm__ volatile(                                                                          \
            SUMS_ZERO SUMS_ZERO_UPPER                                                              \
            "1:\n"                                                                                 \
            "ldr q16, [%[k]]\n ldr q17, [%[k], %[p]]\n"                                            \
            "ldr q18, [%[k], %[p2]]\n ldr q19, [%[k], %[p3]]\n"                                    \
            "ldr q20, [%[q0]], #64\n ldr q21, [%[q1]], #64\n"                                      \
            "ldr q22, [%[q2]], #64\n ldr q23, [%[q3]], #64\n"                                      \
            "add %[k], %[k], #16\n" DOT4X4(                                                        \
                20, 21, 22, 23, l) "subs %[n], %[n], #4\n b.gt 1b\n"                               \
                                   "stp q0, q1, [%[t]]\n stp q2, q3, [%[t], #32]\n"                \
                                   "stp q4, q5, [%[t], #64]\n stp q6, q7, [%[t], #96]\n"           \
                                   "stp q8, q9, [%[t], #128]\n stp q10, q11, [%[t], #160]\n"       \
                                   "stp q12, q13, [%[t], #192]\n stp q14, q15, [%[t], #224]\n"     \
            : [q0] "+r"(q0), [q1] "+r"(q1), [q2] "+r"(q2), [q3] "+r"(q3), [k] "+r"(key),           \
              [n] "+r"(width)                                                                      \
            : [p] "r"(pitch), [p2] "r"(two), [p3] "r"(three), [t] "r"(to)                          \
            : "memory", "cc", VECTORS);                                                            \
    }
CHAIN4_OF(chain4_0, 0)
CHAIN4_OF(chain4_1, 1)
CHAIN4_OF(chain4_2, 2)
CHAIN4_OF(chain4_3, 3)

/* As dot_panels4, with the sums of dot_tile_slim: columns equal modulo 4 are added first. */
static inline void dot_chains4(const float *q, int64_t q_pitch, const char *key, int64_t pitch,
                               int64_t width, float *s, int64_t s_pitch)
{
    float part[4][64]; /* [column modulo 4][panel, key, query] */
    const char *from = (const char *)q;
    chain4_0(from, q_pitch, key, pitch, width, part[0]);
    chain4_1(from + 16, q_pitch, key, pitch, width, part[1]);
    chain4_2(from + 32, q_pitch, key, pitch, width, part[2]);
    chain4_3(from + 48, q_pitch, key, pitch, width, part[3]);
    for (int i = 0; i < 64; i += 4) {
        float32x4_t low = vaddq_f32(vld1q_f32(part[0] + i), vld1q_f32(part[1] + i));
        float32x4_t high = vaddq_f32(vld1q_f32(part[2] + i), vld1q_f32(part[3] + i));
        vst1q_f32((float *)(void *)((char *)s + i / 16 * s_pitch) + i % 16, vaddq_f32(low, high));
    }
}

/* Sixteen columns of a value in registers x, y, z, w times the weights of four queries at p. */
#define ADD16(x, y, z, w, p)                                                                       \
    "fmla v0.4s, v" #x ".4s, v" #p ".s[0]\n fmla v4.4s, v" #x ".4s, v" #p ".s[1]\n"                \
    "fmla v8.4s, v" #x ".4s, v" #p ".s[2]\n fmla v12.4s, v" #x ".4s, v" #p ".s[3]\n"               \
    "fmla v1.4s, v" #y ".4s, v" #p ".s[0]\n fmla v5.4s, v" #y ".4s, v" #p ".s[1]\n"                \
    "fmla v9.4s, v" #y ".4s, v" #p ".s[2]\n fmla v13.4s, v" #y ".4s, v" #p ".s[3]\n"               \
    "fmla v2.4s, v" #z ".4s, v" #p ".s[0]\n fmla v6.4s, v" #z ".4s, v" #p ".s[1]\n"                \
    "fmla v10.4s, v" #z ".4s, v" #p ".s[2]\n fmla v14.4s, v" #z ".4s, v" #p ".s[3]\n"              \
    "fmla v3.4s, v" #w ".4s, v" #p ".s[0]\n fmla v7.4s, v" #w ".4s, v" #p ".s[1]\n"                \
    "fmla v11.4s, v" #w ".4s, v" #p ".s[2]\n fmla v16.4s, v" #w ".4s, v" #p ".s[3]\n"

/* One row of sums times lane l of keep, in register 31. */
#define SUM_LOAD(row, l, a, b, c, d)                                                               \
    "ldp q" #a ", q" #b ", [%[" #row "]]\n ldp q" #c ", q" #d ", [%[" #row "], #32]\n"             \
    "fmul v" #a ".4s, v" #a ".4s, v31.s[" #l "]\n fmul v" #b ".4s, v" #b ".4s, v31.s[" #l "]\n"    \
    "fmul v" #c ".4s, v" #c ".4s, v31.s[" #l "]\n fmul v" #d ".4s, v" #d ".4s, v31.s[" #l "]\n"
#define SUMS_LOAD                                                                                  \
    "ldr q31, [%[keep]]\n" SUM_LOAD(s0, 0, 0, 1, 2, 3) SUM_LOAD(s1, 1, 4, 5, 6, 7)                 \
        SUM_LOAD(s2, 2, 8, 9, 10, 11) SUM_LOAD(s3, 3, 12, 13, 14, 16)
#define SUMS_STORE                                                                                 \
    "stp q0, q1, [%[s0]]\n stp q2, q3, [%[s0], #32]\n"                                             \
    "stp q4, q5, [%[s1]]\n stp q6, q7, [%[s1], #32]\n"                                             \
    "stp q8, q9, [%[s2]]\n stp q10, q11, [%[s2], #32]\n"                                           \
    "stp q12, q13, [%[s3]]\n stp q14, q16, [%[s3], #32]\n"
#define ADD_OPERANDS                                                                               \
    : [p] "+r"(p), [v] "+r"(value), [n] "+r"(n), [h] "+r"(later)                                   \
    : [pitch] "r"(pitch), [keep] "r"(keep), [s0] "r"(sum), [s1] "r"(sum + sum_pitch),              \
      [s2] "r"(sum + 2 * sum_pitch), [s3] "r"(sum + 3 * sum_pitch)                                 \
    : "memory", "cc", VECTORS

/* sum[l][..] = keep[l] sum[l][..] + p[0][l] value[0][..] + p[1][l] value[1][..] + ... for four queries, sixteen columns
 * and n values, `pitch` bytes apart; n is even. */
#define ADD16_OF(name, low, high)                                                                  \
    static inline void name(const float *p, const float *keep, const char *value, int64_t pitch,   \
                            int64_t n, float *sum, int64_t sum_pitch, const char *later)           \
    {                                                                                              \
        __asm__ volatile(                                                                          \
            "movi v15.8h, #0x3c, lsl #8\n" SUMS_LOAD "1:\n"                                        \
            "ldp q30, q31, [%[p]], #32\n prfm " LATER ", [%[h]]\n add %[h], %[h], #64\n"           \
            "ldp q17, q18, [%[v]]\n add %[v], %[v], %[pitch]\n"                                    \
            "ldp q27, q28, [%[v]]\n add %[v], %[v], %[pitch]\n" low(19, 17) high(20, 17)           \
                low(21, 18) high(22, 18) low(23, 27) high(24, 27) low(25, 28) high(26, 28)         \
                    ADD16(19, 20, 21, 22, 30)                                                      \
                        ADD16(23, 24, 25, 26,                                                      \
                              31) "subs %[n], %[n], #2\n b.gt 1b\n" SUMS_STORE ADD_OPERANDS);      \
    }

static inline void add16_F32(const float *p, const float *keep, const char *value, int64_t pitch,
                             int64_t n, float *sum, int64_t sum_pitch, const char *later)
{
    __asm__ volatile(
        SUMS_LOAD
        "1:\n"
        "ldr q31, [%[p]], #16\n prfm " LATER ", [%[h]]\n add %[h], %[h], #64\n"
        "ldp q20, q21, [%[v]]\n ldp q22, q23, [%[v], #32]\n"
        "add %[v], %[v], %[pitch]\n" ADD16(
            20, 21, 22, 23, 31) "subs %[n], %[n], #1\n b.gt 1b\n" SUMS_STORE ADD_OPERANDS);
}

static inline void dot8_F32(const float *q, const char *key, int64_t pitch, int64_t width, float *s,
                            const char *later)
{
    const char *k4 = key + 4 * pitch;
    int64_t two = 2 * pitch, three = 3 * pitch;
    __asm__ volatile(SUMS_ZERO
                     "1:\n"
                     "ldr q24, [%[a]]\n ldr q25, [%[a], %[p]]\n"
                     "ldr q26, [%[a], %[p2]]\n ldr q27, [%[a], %[p3]]\n"
                     "ldr q28, [%[b]]\n ldr q29, [%[b], %[p]]\n"
                     "ldr q30, [%[b], %[p2]]\n ldr q31, [%[b], %[p3]]\n"
                     "ldp q8, q9, [%[q]]\n ldp q10, q11, [%[q], #32]\n"
                     "prfm " LATER ", [%[h]]\n prfm " LATER ", [%[h], #64]\n add %[h], %[h], #128\n"
                     "add %[a], %[a], #16\n add %[b], %[b], #16\n add %[q], %[q], #64\n" DOT8(8, 0)
                         DOT8(9, 1) DOT8(10, 2)
                             DOT8(11, 3) "subs %[n], %[n], #4\n b.gt 1b\n"
                                         "stp q0, q1, [%[s]]\n stp q2, q3, [%[s], #32]\n"
                                         "stp q4, q5, [%[s], #64]\n stp q6, q7, [%[s], #96]\n"
                     : [q] "+r"(q), [a] "+r"(key), [b] "+r"(k4), [n] "+r"(width), [h] "+r"(later)
                     : [p] "r"(pitch), [p2] "r"(two), [p3] "r"(three), [s] "r"(s)
                     : "memory", "cc", VECTORS);
}

DOT8_OF(dot8_F16, F16_LOW, F16_HIGH)
DOT8_OF(dot8_BF16, BF16_LOW, BF16_HIGH)
ADD16_OF(add16_F16, F16_LOW, F16_HIGH)
ADD16_OF(add16_BF16, BF16_LOW, BF16_HIGH)

#endif
