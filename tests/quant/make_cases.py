#!/usr/bin/env python3
"""make_cases.py - rows of numbers and what the Python package `gguf` makes of them: cases.txt, for test_quant.c.

    make_cases.py > cases.txt

A line "row NAME HEX" gives a row as little-endian f32; the lines "TYPE HEX" behind it what each type stores.
"""
import sys

import gguf
import numpy as np

TYPES = ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"]
N = 96


def rows():
    rng = np.random.default_rng(7)
    yield "normal", rng.standard_normal(N)
    yield "small", rng.standard_normal(N) * 1e-3
    yield "large", rng.standard_normal(N) * 3e4
    yield "tails", rng.standard_t(2, N)
    yield "positive", rng.random(N) + 0.25
    yield "negative", -rng.random(N) - 0.25
    yield "zeros", np.zeros(N)
    yield "signed_zeros", np.where(np.arange(N) % 2, 0.0, -0.0)
    yield "equal", np.full(N, 0.37)
    yield "one_each", np.where(np.arange(N) % 32 == 5, -1.5, 0.0)
    yield "both_ends", np.where(np.arange(N) % 2, 2.0, -2.0)
    # Halfway between two codes of Q8_0 and of the others, where rounding rules differ.
    yield "ties", np.concatenate([np.arange(32) * 4.0 + 0.5, np.arange(32) - 15.5, np.arange(32) * 0.5])
    yield "tiny", rng.standard_normal(N) * 1e-9  # the f16 scale is 0
    yield "steps", np.linspace(-1, 1, N)


def main():
    for name, x in rows():
        x = x.astype(np.float32)
        print("row", name, x.tobytes().hex())
        for t in TYPES:
            q = gguf.quantize(x.reshape(1, -1), gguf.GGMLQuantizationType[t])
            print(t, np.ascontiguousarray(q).tobytes().hex())


if __name__ == "__main__":
    sys.exit(main())
