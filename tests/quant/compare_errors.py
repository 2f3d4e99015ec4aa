#!/usr/bin/env python3
"""compare_errors.py - how far two quantised files are from the file they were made of.

    compare_errors.py SOURCE OURS THEIRS

SOURCE is a GGUF file of F32 or F16 tensors. For each storage type: the root mean square error over all tensors that
both files store in it, of either file, and their ratio; the worst ratio of a single tensor; tensors whose types
differ. Needs the Python package `gguf`.
"""
import collections
import sys

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize


def numbers(tensor):
    return dequantize(tensor.data, tensor.tensor_type).astype(np.float32).reshape(-1)


def main():
    source, ours, theirs = ({t.name: t for t in GGUFReader(p).tensors} for p in sys.argv[1:4])
    square = collections.defaultdict(lambda: np.zeros(3))
    worst = collections.defaultdict(lambda: (0.0, ""))
    for name, t in ours.items():
        if theirs[name].tensor_type != t.tensor_type:
            print(f"{name}: {t.tensor_type.name} here, {theirs[name].tensor_type.name} there")
            continue
        truth = numbers(source[name]).astype(np.float64)
        a = float(np.sum((numbers(t) - truth) ** 2))
        b = float(np.sum((numbers(theirs[name]) - truth) ** 2))
        kind = t.tensor_type.name
        square[kind] += (a, b, truth.size)
        if b > 0:
            worst[kind] = max(worst[kind], ((a / b) ** 0.5, name))
    for kind, (a, b, n) in sorted(square.items()):
        ratio = (a / b) ** 0.5 if b else float("nan")
        print(f"{kind:6} rms {(a / n) ** 0.5:.6e} and {(b / n) ** 0.5:.6e}, ratio {ratio:.4f}; "
              f"worst {worst[kind][0]:.4f} {worst[kind][1]}")


if __name__ == "__main__":
    main()
