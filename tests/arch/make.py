#!/usr/bin/env python3
"""Makes tests/arch/data: tiny random models of architectures that are not in the library, and what Hugging Face
transformers computes with them. Recorded with torch 2.15.0 and transformers 5.22.2 from PyPI.

    make.py [FOLDER]
"""
import os
import sys

import torch
import transformers
from safetensors.torch import save_file

N_IDS, N_PROMPT, N_GREEDY = 24, 8, 8

neox = dict(vocab_size=120, hidden_size=48, num_hidden_layers=2, num_attention_heads=3, intermediate_size=80,
            max_position_embeddings=64, bos_token_id=0, eos_token_id=0)
stablelm = dict(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                intermediate_size=48, max_position_embeddings=64, bos_token_id=0, eos_token_id=0)
falcon = dict(vocab_size=110, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, bias=False,
              parallel_attn=True, alibi=False, bos_token_id=0, eos_token_id=0)

# Architecture, case, class, config, the type the weights are stored in.
CASES = [
    ("gpt_neox", "parallel", "GPTNeoX", dict(neox, use_parallel_residual=True), torch.float32),
    ("gpt_neox", "in_turn", "GPTNeoX", dict(neox, use_parallel_residual=False, rotary_pct=0.5), torch.bfloat16),
    ("stablelm", "plain", "StableLm", dict(stablelm, use_qkv_bias=True), torch.float32),
    ("stablelm", "parallel", "StableLm", dict(stablelm, use_parallel_residual=True, qk_layernorm=True), torch.bfloat16),
    ("falcon", "grouped", "Falcon", dict(falcon, new_decoder_architecture=True, num_kv_heads=2), torch.float32),
    ("falcon", "multi_query", "Falcon", dict(falcon, new_decoder_architecture=False, multi_query=True), torch.bfloat16),
    ("gpt2", "plain", "GPT2", dict(vocab_size=130, n_positions=40, n_embd=48, n_layer=2, n_head=4, n_inner=64,
                                   bos_token_id=0, eos_token_id=0), torch.float32),
]


def randomise(model, around):
    """Norms and biases too, which are ones and zeros after initialisation and would hide a mistake."""
    for name, p in model.named_parameters():
        scale = 0.3 if p.dim() == 1 else 1.2 / p.shape[-1] ** 0.5
        p.data = torch.randn_like(p) * scale + (around if p.dim() == 1 and "weight" in name else 0.0)


def make(folder, name, settings, dtype, lm=None, around=1.0):
    os.makedirs(folder, exist_ok=True)
    config = getattr(transformers, name + "Config")(**settings)
    of_class = getattr(transformers, lm or name + ("LMHeadModel" if name == "GPT2" else "ForCausalLM"))
    model = of_class(config)
    randomise(model, around)
    model = model.to(dtype)
    model.tie_weights()
    model.save_pretrained(folder)
    # Read back, so that position tables do not go through the stored type.
    model = of_class.from_pretrained(folder, dtype=torch.float32).eval()
    ids = torch.randint(1, config.vocab_size, (1, N_IDS))
    with torch.no_grad():
        out = model(ids, output_hidden_states=True, use_cache=False)
        greedy, seq = [], ids[:, :N_PROMPT]
        for _ in range(N_GREEDY):
            greedy.append(int(model(seq, use_cache=False).logits[0, -1].argmax()))
            seq = torch.cat([seq, torch.tensor([[greedy[-1]]])], dim=1)
    tensors = {"input_ids": ids[0].to(torch.int32), "logits": out.logits[0].contiguous(),
               "greedy_ids": torch.tensor(greedy, dtype=torch.int32),
               "prompt_len": torch.tensor([N_PROMPT], dtype=torch.int32)}
    for i, h in enumerate(out.hidden_states):
        tensors[f"hidden.{i}"] = h[0].contiguous()
    save_file(tensors, os.path.join(folder, "expected.safetensors"))
    if os.path.exists(os.path.join(folder, "generation_config.json")):
        os.remove(os.path.join(folder, "generation_config.json"))
    print(folder, sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder)), "bytes")


if __name__ == "__main__":
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
    torch.manual_seed(4)
    for arch, case, name, settings, dtype in CASES:
        make(os.path.join(root, arch, case), name, settings, dtype)
