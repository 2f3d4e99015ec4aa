#!/usr/bin/env python3
"""Write the vectors of test_dequant.c: random blocks and what the Python package `gguf` makes of them.

usage: make_dequant_vectors.py FOLDER   (needs: pip install gguf numpy; made with gguf 0.19.0)

FOLDER/TYPE.bin is stored blocks, then their numbers as f32, n of them where the size of the file is
n / elems * bytes + 4 n. MXFP4_HF.bin is blocks, then scales, then numbers; the package has no such
type, so its arithmetic is written out below, after convert_moe_packed_tensors of transformers.
halves.txt has, for f16 and bf16, the FNV-1a hash of all 65536 numbers as f32, NaNs made quiet."""
import pathlib
import sys

import numpy as np
import gguf
from gguf import GGMLQuantizationType as Q

out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(20)

# Where the f16 fields of a block lie. They get every kind of finite value; other bytes are random.
HALVES = {
    Q.Q4_0: [0], Q.Q4_1: [0, 2], Q.Q5_0: [0], Q.Q5_1: [0, 2], Q.Q8_0: [0],
    Q.Q2_K: [80, 82], Q.Q3_K: [108], Q.Q4_K: [0, 2], Q.Q5_K: [0, 2], Q.Q6_K: [208],
    Q.IQ4_NL: [0], Q.IQ4_XS: [0], Q.MXFP4: [],
}
# Zero, subnormal, small, ordinary and the largest, of both signs.
SCALES = [0x0000, 0x8000, 0x0001, 0x03ff, 0x8200, 0x0400, 0x1c00, 0x9c33, 0x2e66, 0xae66, 0x3c00, 0xbc00, 0x7bff, 0xfbff]


def blocks_of(kind):
    elems, size = gguf.GGML_QUANT_SIZES[kind]
    n = 40 if elems == 32 else 8
    b = rng.integers(0, 256, size=(n, size), dtype=np.uint8)
    for k, at in enumerate(HALVES[kind]):
        for i in range(n):
            half = SCALES[i % len(SCALES)] if k == 0 else SCALES[int(rng.integers(len(SCALES)))]
            if elems == 256 and k == 0:
                half = SCALES[(3 * i + 2) % len(SCALES)]
            b[i, at:at + 2] = (half & 255, half >> 8)
    if kind == Q.MXFP4:
        b[:8, 0] = (0, 1, 2, 3, 126, 127, 253, 255)
    return b


for kind in HALVES:
    b = blocks_of(kind)
    with np.errstate(over="ignore", invalid="ignore"):
        x = gguf.dequantize(b.reshape(1, -1), kind)
    (out / f"{kind.name}.bin").write_bytes(b.tobytes() + x.astype("<f4").tobytes())

values = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6], dtype=np.float32)
blocks = rng.integers(0, 256, size=(40, 16), dtype=np.uint8)
scales = rng.integers(90, 160, size=40, dtype=np.uint8)
scales[:7] = (0, 1, 2, 126, 127, 253, 254)
x = np.empty((40, 32), dtype=np.float32)
x[:, 0::2] = values[blocks & 15]
x[:, 1::2] = values[blocks >> 4]
with np.errstate(over="ignore"):
    x *= np.exp2(scales.astype(np.float64) - 127).astype(np.float32)[:, None]
(out / "MXFP4_HF.bin").write_bytes(blocks.tobytes() + scales.tobytes() + x.astype("<f4").tobytes())


def fnv(data):
    h = 0xcbf29ce484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return h


every = np.arange(65536, dtype=np.uint16)
with (out / "halves.txt").open("w") as f:
    for name, kind in (("F16", Q.F16), ("BF16", Q.BF16)):
        x = gguf.dequantize(every.view(np.uint8).reshape(1, -1), kind).view(np.uint32).ravel().copy()
        x[(x & 0x7fffffff) > 0x7f800000] |= 0x00400000
        f.write(f"{name} {fnv(x.tobytes()):016x}\n")
