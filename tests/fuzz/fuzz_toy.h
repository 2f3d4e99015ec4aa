/* fuzz_toy.h - a small checkpoint that carries the text of a model file. */
#ifndef WEFT_TESTS_FUZZ_FUZZ_TOY_H
#define WEFT_TESTS_FUZZ_FUZZ_TOY_H

#include "tests/formats/gguf_bytes.h"

static const gguf_row toy_tensors[] = {
    {"token_embd.weight", DT_F32, 2, {32, 8}},
    {"output_norm.weight", DT_F32, 1, {32}},
    {"norm.bias", DT_F32, 1, {32}},
    {"blk.0.attn_q.weight", DT_Q8_0, 2, {32, 32}},
    {"blk.0.attn_q.bias", DT_F32, 1, {32}},
    {"blk.0.qkv.weight", DT_BF16, 2, {32, 96}},
    {"blk.0.exps.weight", DT_Q8_0, 3, {32, 4, 2}},
    {"blk.0.exp.0.weight", DT_F32, 2, {32, 4}},
    {"blk.0.exp.1.weight", DT_F32, 2, {32, 4}},
    {"blk.1.attn_q.weight", DT_F32, 2, {32, 32}},
    {"rope_freqs.weight", DT_F32, 1, {4}},
};

static inline void put_toy(strbuf *b, const uint8_t *text, size_t n)
{
    size_t n_tensor = sizeof toy_tensors / sizeof *toy_tensors;
    put_head(b, 3, n_tensor, 10);
    put_key_str(b, "general.architecture", "toy");
    put_key_u32(b, "toy.block_count", 2);
    put_key_u32(b, "toy.embedding_length", 32);
    put_key_u32(b, "toy.attention.head_count", 4);
    put_key_u32(b, "toy.vocab_size", 8);
    put_key_u32(b, "toy.expert_count", 2);
    put_key_u32(b, "toy.feed_forward_length", 4);
    put_key_u32(b, "toy.context_length", 64);
    put_key_str(b, "toy.word", "half");
    put_text(b, "weft.graph");
    put_u32(b, 8);
    put_u64(b, n);
    strbuf_put(b, (str){(const char *)text, n});
    strbuf_fill(b, 0, put_rows(b, toy_tensors, n_tensor));
}

#endif
