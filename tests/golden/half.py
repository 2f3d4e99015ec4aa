"""half.py FROM TO - a DeepSeek-V3 checkpoint whose rotated elements pair up interleaved, as one where they pair up in
halves: the rows that are rotated change places, and the config says so. Its values are those of the first."""
import json, os, shutil, struct, sys

here, there = sys.argv[1:]
os.makedirs(there)
for name in ("config.json", "meta.json", "expected.safetensors", "model.safetensors"):
    shutil.copyfile(os.path.join(here, name), os.path.join(there, name))

path = os.path.join(there, "config.json")
with open(path) as f:
    config = json.load(f)
config["rope_interleave"] = False
with open(path, "w") as f:
    json.dump(config, f)
nope, turned, rank = (config[k] for k in ("qk_nope_head_dim", "qk_rope_head_dim", "kv_lora_rank"))

path = os.path.join(there, "model.safetensors")
with open(path, "rb") as f:
    data = bytearray(f.read())
n = struct.unpack("<Q", data[:8])[0]
head = json.loads(data[8 : 8 + n])


def turn_round(entry, first):
    """Rows first .. first + turned: 2i goes to i, 2i + 1 to i + turned / 2."""
    begin, end = (8 + n + at for at in entry["data_offsets"])
    row = (end - begin) // entry["shape"][0]
    old = bytes(data[begin:end])
    for i in range(turned):
        to = begin + (first + i % 2 * (turned // 2) + i // 2) * row
        data[to : to + row] = old[(first + i) * row : (first + i + 1) * row]


for name, entry in head.items():
    if name.endswith(("self_attn.q_b_proj.weight", "self_attn.q_proj.weight")):
        for first in range(nope, entry["shape"][0], nope + turned):
            turn_round(entry, first)
    if name.endswith("self_attn.kv_a_proj_with_mqa.weight"):
        turn_round(entry, rank)
with open(path, "wb") as f:
    f.write(data)
