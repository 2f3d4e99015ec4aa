#!/usr/bin/env python3
"""Makes tests/arch/data/library: tiny random models of library files that have no recorded values elsewhere, in both
formats, and what Hugging Face transformers computes with them. GGUF names come from the Python gguf package, keys and
row orders are those that llama.cpp's converter writes. Recorded with torch 2.15.0, transformers 5.22.2, gguf 0.19.0.

    make_library.py [FOLDER]
"""
import json
import os
import sys

import gguf
import numpy as np
import torch
from safetensors.torch import load_file

from make import make

base = dict(vocab_size=72, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            intermediate_size=32, max_position_embeddings=64, bos_token_id=0, eos_token_id=0, pad_token_id=0)
linear = dict(rope_type="linear", factor=8.0, rope_theta=1e6)

# Case, class and its ForCausalLM, config, GGUF architecture, are q and k rows moved, the setting behind each other key.
CASES = [
    ("gemma3", "Gemma3Text", "Gemma3ForCausalLM",
     dict(base, num_hidden_layers=6, intermediate_size=24, num_attention_heads=2, num_key_value_heads=1, head_dim=16,
          sliding_window=7, query_pre_attn_scalar=16, rope_parameters=dict(full_attention=linear, sliding_attention=dict(
              rope_type="default", rope_theta=1e4))),
     gguf.MODEL_ARCH.GEMMA3, False, {"attention.sliding_window": "sliding_window"}),
    ("qwen3moe", "Qwen3Moe", "Qwen3MoeForCausalLM",
     dict(base, head_dim=12, moe_intermediate_size=16, num_experts=6, num_experts_per_tok=2, norm_topk_prob=True),
     gguf.MODEL_ARCH.QWEN3MOE, False,
     {"expert_count": "num_local_experts", "expert_used_count": "num_experts_per_tok",
      "expert_feed_forward_length": "moe_intermediate_size"}),
    ("granite", "Granite", "GraniteForCausalLM",
     dict(base, embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.2, logits_scaling=0.7),
     gguf.MODEL_ARCH.GRANITE, True,
     {"attention.scale": "attention_multiplier", "embedding_scale": "embedding_multiplier",
      "residual_scale": "residual_multiplier", "logit_scale": "logits_scaling"}),
    ("smollm3", "SmolLM3", "SmolLM3ForCausalLM",
     dict(base, num_hidden_layers=4, no_rope_layer_interval=4, num_key_value_heads=4),
     gguf.MODEL_ARCH.SMOLLM3, True, {}),
]


def as_published(case, config):
    """The layout of config.json on the hub, where it differs from what the newest transformers writes."""
    if case == "gemma3":
        del config["rope_parameters"], config["layer_types"]
        config.update(rope_theta=1e6, rope_local_base_freq=1e4, sliding_window_pattern=6,
                      rope_scaling=dict(rope_type="linear", factor=8.0))
    if case == "qwen3moe":
        config["num_experts"] = config.pop("num_local_experts")
    return config


def moved(w, heads):
    """Llama's rows as its converter moves them: from halves to pairs."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(w.shape)


def write_gguf(folder, case, arch, move, keys, config):
    name = gguf.MODEL_ARCH_NAMES[arch]
    names = gguf.get_tensor_name_map(arch, config["num_hidden_layers"])
    out = gguf.GGUFWriter(os.path.join(folder, "model-bf16.gguf"), name)
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    rope = config["rope_parameters"]
    rope = rope.get("full_attention", rope)
    out.add_vocab_size(config["vocab_size"])
    out.add_context_length(config["max_position_embeddings"])
    out.add_block_count(config["num_hidden_layers"])
    out.add_embedding_length(config["hidden_size"])
    out.add_feed_forward_length(config["intermediate_size"])
    out.add_head_count(config["num_attention_heads"])
    out.add_head_count_kv(config["num_key_value_heads"])
    out.add_key_length(head_dim)
    out.add_value_length(head_dim)
    out.add_layer_norm_rms_eps(config["rms_norm_eps"])
    out.add_rope_freq_base(rope["rope_theta"])
    if rope["rope_type"] == "linear":
        out.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        out.add_rope_scaling_factor(rope["factor"])
    for key, setting in keys.items():
        value = config[setting]
        (out.add_float32 if isinstance(value, float) else out.add_uint32)(f"{name}.{key}", value)
    tensors = {}
    for key, w in load_file(os.path.join(folder, "model.safetensors")).items():
        w = w.float().numpy()
        if case == "gemma3" and "norm" in key:
            w = w + 1
        for part, heads in ("q_proj", "num_attention_heads"), ("k_proj", "num_key_value_heads"):
            if move and f".{part}." in key:
                w = moved(w, config[heads])
        tensors[key] = w
    for l in range(config["num_hidden_layers"]):  # experts are stacked
        for part in "gate_proj", "up_proj", "down_proj":
            each = [k for k in (f"model.layers.{l}.mlp.experts.{e}.{part}.weight" for e in range(64)) if k in tensors]
            if each:
                tensors[f"model.layers.{l}.mlp.experts.{part}.weight"] = np.stack([tensors.pop(k) for k in each])
    for key, w in tensors.items():
        to = names.get_name(key, try_suffixes=(".weight", ".bias"))
        assert to, key
        if w.ndim == 1 or "ffn_gate_inp" in to:
            out.add_tensor(to, w)
        else:
            out.add_tensor(to, gguf.quants.quantize(w, gguf.GGMLQuantizationType.BF16),
                           raw_dtype=gguf.GGMLQuantizationType.BF16)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "data/library")
torch.manual_seed(5)
for case, cls, lm, settings, arch, move, keys in CASES:
    folder = os.path.join(root, case)
    make(folder, cls, settings, torch.bfloat16, lm, 0.0 if case == "gemma3" else 1.0)  # Gemma adds the 1 itself
    config = json.load(open(os.path.join(folder, "config.json")))
    write_gguf(folder, case, arch, move, keys, config)
    json.dump(as_published(case, config), open(os.path.join(folder, "config.json"), "w"), indent=2)
