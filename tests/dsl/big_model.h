/* big_model.h - honest model files of any length, for tests and benchmarks.
 *
 * MANY: a library in one file, one model after the other. LONG: one model, its layers written out
 * one by one instead of repeated. */
#ifndef WEFT_TESTS_DSL_BIG_MODEL_H
#define WEFT_TESTS_DSL_BIG_MODEL_H

#include "runtime/base/str.h"
#include <stdio.h>

typedef enum { BIG_MANY, BIG_LONG } big_kind;

#define BIG_PARAMS                                                                                 \
    "  params {\n"                                                                                 \
    "    vocab    : int    gguf \"vocab_size\"                hf \"vocab_size\"\n"                 \
    "    ctx      : int    gguf \"context_length\"            hf \"max_position_embeddings\" ?? "  \
    "2048\n"                                                                                       \
    "    layers   : int    gguf \"block_count\"               hf \"num_hidden_layers\"\n"          \
    "    d        : int    gguf \"embedding_length\"          hf \"hidden_size\"\n"                \
    "    ff       : int    gguf \"feed_forward_length\"       hf \"intermediate_size\"\n"          \
    "    heads    : int    gguf \"attention.head_count\"      hf \"num_attention_heads\"\n"        \
    "    kv_heads : int    gguf \"attention.head_count_kv\"   hf \"num_key_value_heads\" ?? "      \
    "heads\n"                                                                                      \
    "    head_dim : int    gguf \"attention.key_length\"      hf \"head_dim\" ?? d / heads\n"      \
    "    eps      : float  gguf \"attention.norm_epsilon\"    hf \"rms_norm_eps\" ?? 1e-6\n"       \
    "    window   : int?   gguf \"attention.sliding_window\"  hf \"sliding_window\"\n"             \
    "    tied     : bool                                    hf \"tie_word_embeddings\" ?? "        \
    "false\n"                                                                                      \
    "  }\n"                                                                                        \
    "  require heads % kv_heads == 0\n"                                                            \
    "  include rotary(dim = head_dim, ctx = ctx) as rot\n"

#define BIG_WEIGHTS                                                                                \
    "  weights {\n"                                                                                \
    "    embed    tok_embd (vocab, d)    gguf \"token_embd\"   hf \"model.embed_tokens\"\n"        \
    "    rms_norm out_norm (d, eps)      gguf \"output_norm\"  hf \"model.norm\"\n"                \
    "    linear   lm_head  (d -> vocab)  gguf \"output\"       hf \"lm_head\" when !tied ?? "      \
    "tok_embd\n"                                                                                   \
    "    group blk[l < layers] gguf \"blk.{l}.\" hf \"model.layers.{l}.\" {\n"                     \
    "      rms_norm attn_norm (d, eps) gguf \"attn_norm\" hf \"input_layernorm\"\n"                \
    "      linear q_proj (d -> heads * head_dim) bias?\n"                                          \
    "        gguf \"attn_q\" pairs(interleaved, head_dim) hf \"self_attn.q_proj\" pairs(half, "    \
    "head_dim)\n"                                                                                  \
    "      linear k_proj (d -> kv_heads * head_dim) bias?\n"                                       \
    "        gguf \"attn_k\" pairs(interleaved, head_dim) hf \"self_attn.k_proj\" pairs(half, "    \
    "head_dim)\n"                                                                                  \
    "      linear v_proj (d -> kv_heads * head_dim) gguf \"attn_v\" hf \"self_attn.v_proj\"\n"     \
    "      linear o_proj (heads * head_dim -> d) gguf \"attn_output\" hf \"self_attn.o_proj\"\n"   \
    "      rms_norm ffn_norm (d, eps) gguf \"ffn_norm\" hf \"post_attention_layernorm\"\n"         \
    "      linear gate_proj (d -> ff) gguf \"ffn_gate\" hf \"mlp.gate_proj\"\n"                    \
    "      linear up_proj (d -> ff) gguf \"ffn_up\" hf \"mlp.up_proj\"\n"                          \
    "      linear down_proj (ff -> d) gguf \"ffn_down\" hf \"mlp.down_proj\"\n"                    \
    "    }\n"                                                                                      \
    "  }\n"                                                                                        \
    "  state { kv[l < layers] : kv_cache(heads = kv_heads, k = head_dim, v = head_dim) }\n"        \
    "  entry decode(tokens: i32[T], pos: i32[T]) {\n"                                              \
    "    x = tok_embd(tokens)\n"

/* One layer; %1$s stands before the weights' names, %2$s is the index. */
#define BIG_LAYER                                                                                  \
    "      h = %1$sattn_norm(x)\n"                                                                 \
    "      q = rope(to_heads(%1$sq_proj(h), heads), pos, rot.table)\n"                             \
    "      k = rope(to_heads(%1$sk_proj(h), kv_heads), pos, rot.table)\n"                          \
    "      v = to_heads(%1$sv_proj(h), kv_heads)\n"                                                \
    "      a = attend(q, append(kv[%2$s], k, v), scale = head_dim ^ -0.5, window = window)\n"      \
    "      x = x + %1$so_proj(from_heads(a))\n"                                                    \
    "      h = %1$sffn_norm(x)\n"                                                                  \
    "      x = x + %1$sdown_proj(silu(%1$sgate_proj(h)) * %1$sup_proj(h))\n"

#define BIG_END                                                                                    \
    "    h = out_norm(x)\n"                                                                        \
    "    output hidden[T] = h\n"                                                                   \
    "    output logits[R] = lm_head(h)\n"                                                          \
    "  }\n"                                                                                        \
    "}\n"

static inline size_t big_lines(const strbuf *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++)
        n += b->p[i] == '\n';
    return n;
}

/* A file of at least that many lines, and at most a model or a layer more. */
static inline void big_model(strbuf *out, big_kind kind, size_t lines)
{
    size_t n_line = 2;
    strbuf_add(out, "weft 1\nimport std.rope\n");
    for (int i = 0; kind == BIG_MANY && n_line < lines; i++) {
        strbuf_add(out, "model m%d {\n  match gguf \"m%d\"\n  match hf \"M%d\"\n", i, i, i);
        strbuf_put(out, STR(BIG_PARAMS BIG_WEIGHTS "    repeat l in blk {\n"));
        strbuf_add(out, BIG_LAYER, "", "l");
        strbuf_put(out, STR("    }\n" BIG_END));
        n_line = i == 0 ? big_lines(out) : n_line + (n_line - 2) / (size_t)i;
    }
    if (kind == BIG_MANY)
        return;
    strbuf_put(out,
               STR("model m {\n  match gguf \"m\"\n  match hf \"M\"\n" BIG_PARAMS BIG_WEIGHTS));
    n_line = big_lines(out) + 5;
    for (int i = 0; n_line < lines; i++, n_line += 8) {
        char name[32], index[16];
        snprintf(name, sizeof name, "blk[%d].", i);
        snprintf(index, sizeof index, "%d", i);
        strbuf_add(out, BIG_LAYER, name, index);
    }
    strbuf_put(out, STR(BIG_END));
}

#endif
