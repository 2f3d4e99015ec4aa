/* kl_file.h - what a model thought likely at each place of a text, kept in a file for comparison.
 *
 * `weft perplexity --kl-save` writes one, `--kl-base` holds another model, or the same one stored
 * otherwise, against it. All numbers are little endian:
 *
 *     byte 0   "WEFTKL\r\n"
 *          8   u32 version, 1; u32 bytes of this header, 96
 *         16   u64 vocab, context, stride (0: the second half of each chunk is scored), chunks
 *         48   u64 n_token, n_row; u64[2] hash of the model (model_file_hash)
 *         80   i32 token put in front of each chunk, -1 for none; u32 steps, 2048; u64 zero
 *         96   i32[n_token]: the text; zeros up to a multiple of 8
 *              n_row rows of 16 + 2 * vocab bytes, each filled with zeros up to a multiple of 8:
 *                f32 log-probability of the token that came; u32 that token; u32 the likeliest one;
 *                f32 log of the sum of exp(logit - largest);
 *                u16[vocab] (largest - logit) * steps, rounded, 65535 for everything beyond
 *
 * A step of 1/2048 is finer than a half-precision number from 1 on, and what lies 32 below the
 * largest has a probability under 2e-14. A row is normalised again when it is used, so rounding costs
 * a divergence of 1e-8, and never a negative one.
 *
 * Rows are written and read in order, one in memory at a time. A file that is read may be anybody's:
 * W1005, W1006 and W1007 say what is wrong with it. One thread uses a writer or reader at a time. */
#ifndef WEFT_RUNTIME_FORMATS_KL_FILE_H
#define WEFT_RUNTIME_FORMATS_KL_FILE_H

#include "runtime/formats/model_file.h"

enum {
    KL_STEPS = 2048, /* of a unit of log-probability */
    KL_VOCAB_MAX = 1 << 24,
    KL_TOKENS_MAX = 1 << 28,
};

typedef struct {
    int64_t vocab, context, stride, chunks;
    int64_t n_token, n_row;
    model_hash model;
    int32_t bos;
} kl_head;

typedef struct {
    float logprob; /* of the token that came */
    uint32_t token, top;
    float log_sum;
    const uint16_t *below; /* [vocab] (largest - logit) * KL_STEPS */
} kl_row;

typedef struct kl_writer kl_writer;
/* Begin a file with h and its ids; it appears under its name only when it is finished. */
weft_status kl_writer_create(weft_diag *dg, const char *path, const kl_head *h, const int32_t *ids,
                             kl_writer **out_w) WEFT_MUST_USE;
/* The next row; row->below is made from logits [vocab], which are finite, and their largest. */
weft_status kl_writer_put(weft_diag *dg, kl_writer *w, const kl_row *row, const float *logits,
                          float largest) WEFT_MUST_USE;
const char *kl_writer_part(const kl_writer *w); /* where the rows are until it is finished */
/* After n_row rows. Destroy it afterwards all the same. */
weft_status kl_writer_finish(weft_diag *dg, kl_writer *w) WEFT_MUST_USE;
void kl_writer_destroy(kl_writer *w); /* NULL is fine; removes what is not finished */

typedef struct kl_reader kl_reader;
weft_status kl_reader_open(weft_diag *dg, const char *path, kl_reader **out_r) WEFT_MUST_USE;
const kl_head *kl_reader_head(const kl_reader *r);
const int32_t *kl_reader_ids(const kl_reader *r); /* [n_token] */
/* The next row, valid until the one after it; there are n_row. */
weft_status kl_reader_next(weft_diag *dg, kl_reader *r, kl_row *out_row) WEFT_MUST_USE;
void kl_reader_close(kl_reader *r); /* NULL is fine */

/* What a step count stands for, as a probability against the largest: exp(-i / KL_STEPS) for each u16. */
void kl_weights(float table[65536]);

#endif
