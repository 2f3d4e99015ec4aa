#!/usr/bin/env python3
"""make_ref_cases.py - small cases for the reference kernels, worked out here on nested lists.

    python3 tests/kernels/make_ref_cases.py > tests/kernels/ref_cases.txt

Needs nothing but Python. It shares no code with the kernels: a sequence is a list of positions here,
not pages, and broadcasting goes by shapes, not strides. Inputs are multiples of 1/16, which every
float type holds exactly. ref_case.c reads the result; what a line means stands there.
"""
import itertools
import math
import os
import random
import re
import struct

rng = random.Random(4)
NAN, INF = math.nan, math.inf
FLT_MAX = (2 - 2.0 ** -23) * 2.0 ** 127

# The forms of activations by the numbers they have.
with open(os.path.join(os.path.dirname(__file__), "../../kernels/act.h")) as act_h:
    ACT = {name: i for i, name in enumerate(re.findall(r"^    ACT_(\w+),$", act_h.read(), re.M))}


def f32(x):
    try:
        return struct.unpack("f", struct.pack("f", x))[0]
    except OverflowError:
        return math.copysign(INF, x)


def number(low=-2, high=2):
    return rng.randint(low * 16, high * 16) / 16


def tensor(*shape):
    if not shape:
        return number()
    return [tensor(*shape[1:]) for _ in range(shape[0])]


def flat(x):
    return [v for y in x for v in flat(y)] if isinstance(x, list) else [x]


def shape_of(x):
    return [len(x)] + shape_of(x[0]) if isinstance(x, list) else []


def text(values):
    return " ".join("%d" % v if isinstance(v, int) else "%.9g" % f32(v) for v in values)


def line(*words):
    print(" ".join(str(w) for w in words))


def data(word, i, kind, x):
    x = flat(x)
    line(word, i, kind, len(x), ":", text(x))


def case(name, op, n, f=(), word=(), inputs=(), outs=(), strides=(), inplace=False, rows=None,
         code=(), pitch=None):
    """inputs: (kind, values), where kind is f32, i32, a weight `TYPE/rows`, or a table of addresses
    `table TYPE`; None where the op has no such input. code: (instruction, to, registers, numbers); pitch:
    bytes from row to row of input 0 and of the result, where rows alone do not tell."""
    print()
    line("case", op, name)
    line("n", len(n), ":", text(n))
    if f:
        line("f", len(f), ":", " ".join("%.17g" % v for v in f))
    if word:
        line("word", len(word), ":", text(word))
    for i, s in enumerate(strides):
        if s is not None:
            line("stride", i, len(s), ":", text(s))
    for op, to, at, numbers in code:
        line("code", op, to, ":", text((list(at) + [0, 0, 0])[:3]), text((list(numbers) + [0.0, 0.0])[:2]))
    if pitch:
        line("pitch", ":", text(pitch))
    for i, given in enumerate(inputs):
        if given is None:
            continue
        kind, x = given
        if kind.startswith("table"):
            e, m, width = shape_of(x)
            line("table", i, kind.split()[1], e, m, width, ":", text(flat(x)))
        elif kind.startswith("weight"):
            x = x if isinstance(x[0], list) else [x]
            line("weight", i, kind.split()[1], len(x), len(x[0]), ":", text(flat(x)))
        else:
            data("in", i, kind, x)
    if rows:
        line("rows", rows[0], len(rows[1]), ":", text(rows[1]))
    if inplace:
        line("inplace")
    for i, (kind, x) in enumerate(outs):
        data("out", i, kind, x)
    line("end")


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b))


def matvec(w, x, b=None):
    return [dot(row, x) + (b[i] if b else 0) for i, row in enumerate(w)]


# ---- weights ----

def embed_cases():
    for kind in "F32", "F16", "BF16":
        table, ids = tensor(5, 4), [3, 0, 4, 3]
        case(kind.lower(), "embed", [4, 4, 5], inputs=[("weight " + kind, table), ("i32", ids)],
             outs=[("f32", [table[i] for i in ids])])


def linear_cases():
    for name, rows, m, n, kind, bias in [("plain", 3, 2, 5, "F32", None), ("bias", 2, 3, 4, "F32", "F32"),
                                         ("half bias", 2, 3, 4, "F16", "BF16"), ("one", 1, 1, 1, "BF16", None)]:
        x, w, b = tensor(rows, n), tensor(m, n), tensor(m) if bias else None
        case(name, "linear", [rows, m, n],
             inputs=[("f32", x), ("weight " + kind, w), ("weight " + bias, b) if bias else None],
             outs=[("f32", [matvec(w, r, b) for r in x])])


def head_linear_cases():
    for name, bias in ("plain", None), ("bias", "F16"):
        x, w, b = tensor(2, 3, 4), tensor(3, 2, 4), tensor(3, 2)
        case(name, "head_linear", [2, 3, 2, 4],
             inputs=[("f32", x), ("table BF16", w), ("weight " + bias, b) if bias else None],
             outs=[("f32", [[matvec(w[h], r[h], b[h] if bias else None) for h in range(3)] for r in x])])


def experts_cases():
    ids = [[3, 1], [0, 3], [1, 1]]
    for name, each, bias in ("shared x", 0, None), ("own x", 1, None), ("bias", 0, "F32"), ("own x and bias", 1, "BF16"):
        x = tensor(3, 2, 5) if each else tensor(3, 5)
        w, b = tensor(4, 3, 5), tensor(4, 3)
        y = [[matvec(w[e], x[t][j] if each else x[t], b[e] if bias else None)
              for j, e in enumerate(ids[t])] for t in range(3)]
        case(name, "experts", [3, 2, 3, 5, 2 if each else 1, 4],
             inputs=[("f32", x), ("table F16", w), ("i32", ids), ("weight " + bias, b) if bias else None],
             outs=[("f32", y)])


def combine_cases():
    y, w = tensor(3, 2, 4), tensor(3, 2)
    case("plain", "combine", [3, 2, 4], inputs=[("f32", y), ("f32", w)],
         outs=[("f32", [[sum(w[t][j] * y[t][j][i] for j in range(2)) for i in range(4)] for t in range(3)])])


# ---- rows ----

def norm(x, w, b, eps, centred):
    n = len(x)
    mean = math.fsum(x) / n if centred else 0
    scale = 1 / math.sqrt(math.fsum((v - mean) ** 2 for v in x) / n + eps)
    return [(v - mean) * scale * (w[i] if w else 1) + (b[i] if b else 0) for i, v in enumerate(x)]


def norm_cases():
    for op in "rms_norm", "layer_norm":
        # name, rows, vectors, width, weight rows, has weight, has bias
        cases = [("plain", 2, 1, 5, 0, 0, 0), ("weight", 2, 1, 5, 1, 1, 0), ("each head alike", 2, 3, 4, 1, 1, 0),
                 ("each head its own", 2, 3, 4, 3, 1, 0), ("weights in turn", 1, 4, 3, 2, 1, 0), ("width one", 3, 1, 1, 1, 1, 0)]
        if op == "layer_norm":
            cases += [("bias", 2, 1, 5, 1, 1, 1), ("bias alone", 2, 1, 5, 1, 0, 1), ("biases of heads", 2, 3, 4, 3, 1, 1)]
        for kind in "F32", "F16":
            for name, rows, vectors, width, w_rows, has_w, has_b in cases:
                eps = 0.25 if name == "plain" else 1e-5
                x = tensor(rows, vectors, width)
                w = tensor(w_rows, width) if has_w else None
                b = tensor(w_rows, width) if has_b else None
                y = [[norm(v, w and w[i % w_rows], b and b[i % w_rows], eps, op == "layer_norm")
                      for i, v in enumerate(row)] for row in x]
                inputs = [("f32", x), ("weight " + kind, w) if w else None]
                if op == "layer_norm":
                    inputs.append(("weight " + kind, b) if b else None)
                case("%s %s" % (name, kind.lower()), op, [rows, vectors, width, w_rows], f=[eps],
                     inputs=inputs, outs=[("f32", y)], inplace=True)


def softmax(x):
    top = max(x)
    e = [math.exp(v - top) for v in x]
    return [v / math.fsum(e) for v in e]


def softmax_cases():
    for name, x in [("plain", tensor(2, 3, 4)), ("large", [[[1000.0, 999.0, -1000.0]]]), ("one", [[[3.0]]]),
                    ("masked", [[[-INF, 1.0, -INF, 2.0]]])]:
        case(name, "softmax", shape_of(x), inputs=[("f32", x)], outs=[("f32", [[softmax(v) for v in r] for r in x])],
             inplace=True)
    case("not a number", "softmax", [1, 1, 2], inputs=[("f32", [NAN, 1.0])], outs=[("f32", [NAN, NAN])])


def rope_cases():
    # name, heads, width, pairs, factor, order, positions
    for name, heads, width, pairs, factor, word, pos in [
            ("half", 2, 6, 3, 1.0, 1, [0, 1, 7]), ("interleaved", 2, 6, 3, 1.0, 2, [0, 1, 7]),
            ("partial half", 1, 7, 2, 1.0, 1, [3, 4]), ("partial interleaved", 1, 7, 2, 1.0, 2, [3, 4]),
            ("factor", 1, 4, 2, 1.25, 1, [5]), ("far", 1, 4, 2, 1.0, 2, [100000, 131071])]:
        x = tensor(len(pos), heads, width)
        freqs = [f32(10000 ** (-i / pairs)) for i in range(pairs)]
        y = [[list(v) for v in row] for row in x]
        for t, p in enumerate(pos):
            for h, i in itertools.product(range(heads), range(pairs)):
                a, b = (i, i + pairs) if word == 1 else (2 * i, 2 * i + 1)
                c, s = f32(math.cos(p * freqs[i]) * factor), f32(math.sin(p * freqs[i]) * factor)
                u, v = x[t][h][a], x[t][h][b]
                y[t][h][a], y[t][h][b] = u * c - v * s, v * c + u * s
        case(name, "rope", [len(pos), heads, width, pairs], f=[factor], word=[word],
             inputs=[("f32", x), ("i32", pos), ("f32", freqs)], outs=[("f32", y)], inplace=True)


# ---- moves ----

def move_cases():
    x = tensor(2, 3, 7)
    for name, first, width in ("front", 0, 2), ("middle", 2, 4), ("back", 6, 1), ("all", 0, 7):
        case(name, "split", [2, 3, 7, first, width], inputs=[("f32", x)],
             outs=[("f32", [[v[first:first + width] for v in r] for r in x])])
    y = tensor(2, 3, 2)
    case("plain", "concat", [2, 3, 7, 2], inputs=[("f32", x), ("f32", y)],
         outs=[("f32", [[x[t][h] + y[t][h] for h in range(3)] for t in range(2)])])
    x = tensor(5, 3)
    case("some", "take_rows", [2, 3], inputs=[("f32", x)], rows=(5, [1, 4]), outs=[("f32", [x[1], x[4]])])
    case("all", "take_rows", [5, 3], inputs=[("f32", x)], rows=(5, list(range(5))), outs=[("f32", x)])
    v, pos = tensor(4), [0, 3, 4, 100000, 2]
    case("plain", "at_pos", [5, 4], inputs=[("f32", v), ("i32", pos)], outs=[("f32", [v[min(p, 3)] for p in pos])])


# ---- element-wise ----

def broadcast_at(x, shape, index):
    """x is [..] with axes of 1 where it is stretched; rank as the result's."""
    for size, i in zip(shape, index):
        x = x[0 if size == 1 else i]
    return x


def strides_of(shape):
    out, step = [], 1
    for size in reversed(shape):
        out.insert(0, 0 if size == 1 else step)
        step *= size
    return out


def elementwise(name, op, shape, operands, fn, inplace=False):
    """operands: nested lists of the result's rank, or numbers."""
    tensors = [isinstance(x, list) for x in operands]
    result = []
    for index in itertools.product(*(range(s) for s in shape)):
        result.append(fn(*(broadcast_at(x, shape_of(x), index) if t else x for x, t in zip(operands, tensors))))
    case(name, op, list(shape), word=[len(shape)], f=[0 if t else x for x, t in zip(operands, tensors)],
         inputs=[("f32", x) if t else None for x, t in zip(operands, tensors)],
         strides=[strides_of(shape_of(x)) if t else None for x, t in zip(operands, tensors)],
         outs=[("f32", result)], inplace=inplace)


def larger(a, b):
    return NAN if a != a or b != b else max(a, b)


def smaller(a, b):
    return NAN if a != a or b != b else min(a, b)


def binary_cases():
    ops = [("add", lambda a, b: a + b), ("sub", lambda a, b: a - b), ("mul", lambda a, b: a * b),
           ("div", lambda a, b: a / b), ("max", larger), ("min", smaller)]
    for op, fn in ops:
        divisor = [[1.5, -0.25, 3.0], [0.125, 7.0, -2.0]]
        elementwise("same shape", op, (2, 3), [tensor(2, 3), divisor], fn, inplace=True)
        elementwise("number second", op, (2, 3), [tensor(2, 3), 0.1], fn, inplace=True)
        elementwise("number first", op, (2, 3), [0.1, divisor], fn)
        elementwise("trailing vector", op, (3, 3), [tensor(3, 3), [[1.5, -0.25, 3.0]]], fn, inplace=True)
        elementwise("one per row", op, (2, 3), [tensor(2, 3), [[1.5], [-0.25]]], fn, inplace=True)
    add = ops[0][1]
    elementwise("rank one", "add", (4,), [tensor(4), tensor(4)], add)
    elementwise("stretched head axis", "mul", (2, 3, 4), [tensor(2, 1, 4), tensor(1, 3, 1)], ops[2][1])
    elementwise("stretched both ways", "sub", (2, 2, 1, 3, 2, 2),
                [tensor(2, 1, 1, 3, 1, 2), tensor(1, 2, 1, 3, 2, 1)], ops[1][1])
    strange = [[NAN, 1.0, NAN, INF, -INF]]
    others = [[1.0, NAN, NAN, -INF, 2.0]]
    elementwise("strange", "max", (1, 5), [strange, others], larger)
    elementwise("strange", "min", (1, 5), [strange, others], smaller)
    choose = lambda c, a, b: a if c > 0 else b
    c = [[1.0, 0.0, -1.0], [-0.0, 0.5, NAN]]
    elementwise("tensors", "select", (2, 3), [c, tensor(2, 3), tensor(2, 3)], choose)
    elementwise("numbers", "select", (2, 3), [c, 2.5, -1.0], choose)
    elementwise("stretched", "select", (2, 3), [[[1.0], [-1.0]], tensor(1, 3), 0.25], choose)


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def unary(name, op, fn, x, **more):
    case(name, op, shape_of(x), inputs=[("f32", x)], outs=[("f32", [fn(v) for v in flat(x)])], inplace=True, **more)


def unary_cases():
    x = [[0.0, -0.0, 1.0, -1.0], [0.5, -3.0, 6.0, -6.0], [20.0, -20.0, 80.0, -80.0]]
    x = x + tensor(2, 4)
    gelu = {0: lambda v: v * 0.5 * math.erfc(-v / math.sqrt(2)),
            1: lambda v: 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ** 3))),
            2: lambda v: v * sigmoid(1.702 * v)}
    for form, word in enumerate(["erf", "tanh", "quick"]):
        unary(word, "gelu", gelu[form], x, word=[form])
    for op, fn in [("neg", lambda v: -v), ("silu", lambda v: v * sigmoid(v)), ("tanh", math.tanh), ("sigmoid", sigmoid),
                   ("relu", lambda v: v if v > 0 else 0.0), ("exp", math.exp),
                   ("softplus", lambda v: max(v, 0) + math.log1p(math.exp(-abs(v))))]:
        unary("plain", op, fn, x)
    unary("far", "exp", lambda v: INF if v > 0 else 0.0, [[1000.0, -1000.0]])
    unary("far", "silu", lambda v: v if v > 0 else 0.0, [[1000.0, -1000.0]])
    unary("far", "softplus", lambda v: v if v > 0 else 0.0, [[1000.0, -1000.0]])
    unary("plain", "sqrt", math.sqrt, [[0.0, 1.0, 2.0, 0.0625, 1e-30, 1e30]])
    low, high = -0.75, 1.5
    for name, word in ("none", 0), ("low", 1), ("high", 2), ("both", 3):
        def clamp(v):
            v = max(v, low) if word & 1 else v
            return min(v, high) if word & 2 else v
        unary(name, "clamp", clamp, x, f=[low, high], word=[word])
    for op in "neg", "silu", "gelu", "tanh", "sigmoid", "relu", "exp", "sqrt", "softplus", "clamp":
        unary("not a number", op, lambda v: NAN, [[NAN]], f=[-1, 1], word=[3 if op == "clamp" else 0])


# ---- what plans make of nodes: map, quantize ----

def map_fns(lo=-INF, hi=INF):
    return {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
            "max": larger, "min": smaller, "select": lambda c, a, b: a if c > 0 else b, "neg": lambda v: -v,
            "silu": lambda v: v * sigmoid(v), "gelu_erf": lambda v: v * 0.5 * math.erfc(-v / math.sqrt(2)),
            "gelu_tanh": lambda v: 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ** 3))),
            "gelu_quick": lambda v: v * sigmoid(1.702 * v), "tanh": math.tanh, "sigmoid": sigmoid,
            "relu": lambda v: v if v > 0 else 0.0, "softplus": lambda v: max(v, 0) + math.log1p(math.exp(-abs(v))),
            "exp": math.exp, "sqrt": lambda v: math.sqrt(v) if v >= 0 else NAN,
            "clamp": lambda v: NAN if v != v else min(max(v, lo), hi)}


def map_case(name, shape, operands, code, inplace=False):
    """shape: rows, then the axes of a row; operands: nested lists of that rank, with axes of 1 where they are
    stretched. Stored registers become results in the order of their outputs."""
    outs = {}
    for index in itertools.product(*(range(s) for s in shape)):
        reg = {}
        for op, to, at, numbers in code:
            if op == "load":
                reg[to] = broadcast_at(operands[at[0]], shape_of(operands[at[0]]), index)
            elif op == "number":
                reg[to] = f32(numbers[0])
            elif op == "store":
                outs.setdefault(to, []).append(reg[at[0]])
            else:
                reg[to] = map_fns(*(f32(v) for v in numbers))[op](*(reg[r] for r in at))
    per_row = math.prod(shape[1:])
    case(name, "map", [shape[0], per_row] + list(shape[1:]), word=[len(shape) - 1], code=code,
         inputs=[("f32", x) for x in operands], strides=[strides_of(shape_of(x)) for x in operands],
         outs=[("f32", outs[i]) for i in sorted(outs)], inplace=inplace)


def map_cases():
    def unary_code(op, *numbers):
        return [("load", 0, [0], []), (op, 1, [0], numbers), ("store", 0, [1], [])]

    x = [[0.0, -0.0, 1.0, -1.0], [0.5, -3.0, 6.0, -6.0], [20.0, -20.0, 80.0, -80.0]] + tensor(2, 4)
    for op in "neg silu gelu_erf gelu_tanh gelu_quick tanh sigmoid relu softplus exp".split():
        map_case(op, (5, 4), [x], unary_code(op), inplace=True)
    map_case("sqrt", (1, 4), [[[0.0, 2.0, 1e-30, 1e30]]], unary_code("sqrt"))
    for name, low, high in ("no clamp", -INF, INF), ("clamp", -0.75, 1.5), ("clamp below", -0.75, INF):
        map_case(name, (5, 4), [x], unary_code("clamp", low, high), inplace=True)
    for op in "add sub mul div max min".split():
        map_case(op, (2, 3), [tensor(2, 3), [[1.5, -0.25, 3.0], [0.125, 7.0, -2.0]]],
                 [("load", 0, [0], []), ("load", 1, [1], []), (op, 0, [0, 1], []), ("store", 0, [0], [])])
    map_case("select", (2, 3), [[[1.0, 0.0, -1.0], [-0.0, 0.5, NAN]], tensor(2, 3)],
             [("load", 0, [0], []), ("load", 1, [1], []), ("number", 2, [], [0.1]), ("select", 3, [0, 1, 2], []),
              ("store", 0, [3], [])])
    map_case("gate", (2, 2, 3), [tensor(2, 2, 3), tensor(2, 2, 3)],
             [("load", 0, [0], []), ("silu", 0, [0], []), ("load", 1, [1], []), ("mul", 1, [0, 1], []),
              ("store", 0, [1], [])], inplace=True)
    map_case("stretched", (2, 3, 2, 2), [tensor(2, 1, 2, 1), tensor(1, 3, 2, 2), tensor(2, 3, 1, 1)],
             [("load", 15, [0], []), ("load", 1, [1], []), ("load", 2, [2], []), ("mul", 15, [15, 1], []),
              ("sub", 15, [15, 2], []), ("store", 0, [15], [])])
    map_case("two results", (3, 5), [tensor(3, 5), tensor(1, 5)],
             [("load", 0, [0], []), ("load", 1, [1], []), ("add", 2, [0, 1], []), ("store", 1, [2], []),
              ("mul", 2, [2, 0], []), ("store", 0, [2], [])])


def quantized_block(x):
    """The codes of a block, and its scale."""
    largest = max(abs(v) for v in x)
    if any(v != v or abs(v) == INF for v in x):
        return [1] * len(x), NAN
    if largest == 0:
        return [0] * len(x), 0.0
    inverse = min(f32(127 / largest), FLT_MAX)  # the smallest numbers have none
    return [round(f32(v * inverse)) for v in x], f32(largest / 127)


def quantized_form(kind, values, pad):
    data = list(struct.pack("<%d%s" % (len(values), kind), *values))
    return data + [None] * (-len(data) % pad)


def quantized(x, b, twice=False):
    """The bytes of a quantized row, None where nothing is written; every 8 codes perhaps twice."""
    blocks = [quantized_block(x[at:at + b]) for at in range(0, len(x), b)]
    q = [code for block in blocks for code in block[0]]
    sums = [sum(q[i:i + 16]) for i in range(0, len(q), 16)]
    codes = [v for i in range(0, len(q), 8) for v in q[i:i + 8] * 2] if twice else q
    return quantized_form("b", codes, 64) + quantized_form("f", [d for _, d in blocks], 64) + quantized_form("h", sums, 64)


def quantized4(rows, b):
    """The same of four rows interleaved; each row's part is padded to 64 bytes."""
    n = len(rows[0])
    blocks = [[quantized_block(row[at:at + b]) for at in range(0, n, b)] for row in rows]
    q = [[code for block in row for code in block[0]] for row in blocks]
    codes = [v for at in range(0, n, 8) for row in q for v in row[at:at + 8]]
    scales = [blocks[r][i][1] for i in range(n // b) for r in (0, 1, 0, 1, 2, 3, 2, 3)]
    sums = [[sum(row[at:at + 32]) for at in range(0, n, 32)] for row in q]
    if b == 32:
        last = quantized_form("f", [f32(f32(sums[r][i]) * blocks[r][i][1]) for i in range(n // 32) for r in range(4)], 256)
    else:
        last = quantized_form("b", [part(sums[r][i + j]) for i in range(0, n // 32, 8)
                                 for part in (lambda s: s % 128, lambda s: s // 128)
                                 for r in range(4) for j in range(8)], 256)
    return quantized_form("b", codes, 256) + quantized_form("f", scales, 256) + last


def quantize_cases():
    def spread(n):
        return [f32(rng.uniform(-1, 1) * 4.0 ** rng.randint(-4, 4)) for _ in range(n)]

    halves = [127.0] + [v + 0.5 for v in range(-16, 15)]  # ties, which go to the even one
    strange = spread(32) + [NAN] + spread(31) + spread(31) + [INF] + [0.0] * 32
    for name, act, b, rows in [("q8", "Q8", 32, [spread(64), spread(64)]), ("q8 one block", "Q8", 32, [halves]),
                               ("q8 strange", "Q8", 32, [strange]), ("q8k", "Q8K", 256, [spread(512), halves * 8 + [0.0] * 256]),
                               ("q8 small", "Q8", 32, [[f32(v * 1e-40) for v in range(32)]]),
                               ("q8 twice", "Q8D", 32, [spread(96), spread(96)]), ("q8k twice", "Q8KD", 256, [spread(256)])]:
        out = [quantized(row, b, act.endswith("D")) for row in rows]
        case(name, "quantize", [len(rows), len(rows[0])], word=[ACT[act]], inputs=[("f32", rows)],
             outs=[("bytes", [[-1 if v is None else v for v in row] for row in out])],
             pitch=[4 * len(rows[0]), len(out[0])])
    for name, act, b, rows in [("q8", "Q8X4", 32, [spread(96) for _ in range(5)]), ("q8 strange", "Q8X4", 32, [strange]),
                               ("q8k", "Q8KX4", 256, [spread(512) for _ in range(3)])]:
        n = len(rows[0])
        filled = rows + [[0.0] * n] * (-len(rows) % 4)
        out = [quantized4(filled[at:at + 4], b) for at in range(0, len(filled), 4)]
        case(name, "quantize4", [len(rows), n], word=[ACT[act]], inputs=[("f32", rows)],
             outs=[("bytes", [[-1 if v is None else v for v in group] for group in out])],
             pitch=[4 * n, len(out[0]) // 4])


# ---- route ----

def route(logits, k, score, renorm, scale, bias=None, groups=1, top_groups=1, group_score="top2"):
    e = len(logits)
    scores = {"softmax": lambda: softmax(logits), "sigmoid": lambda: [sigmoid(v) for v in logits],
              "sqrt_softplus": lambda: [math.sqrt(math.log1p(math.exp(v))) for v in logits],
              "softmax_topk": lambda: list(logits)}[score]()
    merit = [s + (bias[i] if bias else 0) for i, s in enumerate(scores)]
    size = e // groups
    worth = []
    for g in range(groups):
        best = sorted(merit[g * size:(g + 1) * size], reverse=True)
        worth.append(best[0] if group_score == "max" else sum(best[:2]))
    kept = sorted(range(groups), key=lambda g: (-worth[g], g))[:top_groups]
    ids = sorted((i for i in range(e) if i // size in kept), key=lambda i: (-merit[i], i))[:k]
    w = [scores[i] for i in ids]
    if score == "softmax_topk":
        w = softmax(w)
    if renorm:
        w = [v / sum(w) for v in w]
    return ids, [v * scale for v in w]


def route_cases():
    words = ["softmax", "sigmoid", "sqrt_softplus", "softmax_topk"]
    logits = [rng.sample([i / 8 for i in range(-16, 16)], 8) for _ in range(3)]  # no two alike
    bias = [0.5, -0.25, 0.0, 1.0, -1.0, 0.125, 0.25, 0.0]
    variants = []
    for score in words:
        for renorm in 0, 1:
            variants.append(("%s%s" % (score, " renorm" if renorm else ""), logits, dict(k=3, score=score, renorm=renorm, scale=1.0)))
        variants.append((score + " bias", logits, dict(k=3, score=score, renorm=1, scale=2.5, bias=bias)))
        for group_score in "top2", "max":
            variants.append(("%s groups %s" % (score, group_score), logits,
                             dict(k=3, score=score, renorm=1, scale=1.5, bias=bias, groups=4, top_groups=2, group_score=group_score)))
    variants.append(("groups without bias", logits, dict(k=2, score="sigmoid", renorm=0, scale=1.0, groups=2, top_groups=1)))
    variants.append(("groups of one", logits, dict(k=3, score="softmax", renorm=0, scale=1.0, groups=8, top_groups=4)))
    variants.append(("all experts", logits, dict(k=8, score="softmax", renorm=1, scale=1.0)))
    variants.append(("one expert", [[0.5], [-3.0]], dict(k=1, score="softmax_topk", renorm=0, scale=1.0)))
    ties = [[1.0] * 8, [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0], [-1.0, -1.0, 2.0, -1.0, -1.0, -1.0, 2.0, -1.0]]
    for score in words:
        variants.append(("ties " + score, ties, dict(k=3, score=score, renorm=0, scale=1.0)))
    variants.append(("tied groups", ties, dict(k=3, score="sigmoid", renorm=0, scale=1.0, groups=4, top_groups=2)))
    for name, rows, how in variants:
        results = [route(row, **how) for row in rows]
        given = how.get("bias")
        case(name, "route", [len(rows), len(rows[0]), how["k"], how.get("groups", 1), how.get("top_groups", 1)],
             f=[how["scale"]],
             word=[words.index(how["score"]), how["renorm"], ["top2", "max"].index(how.get("group_score", "top2"))],
             inputs=[("f32", rows), ("f32", given) if given else None],
             outs=[("i32", [r[0] for r in results]), ("f32", [r[1] for r in results])])


# ---- attention ----

def attend_case(name, heads, cell_heads, k, v, rows, lengths, latent=False, window=0, chunk=0, scale=0.5, softcap=0.0,
                sinks=None, slopes=None):
    """rows: (seq, pos) of the call, the last ones of each sequence; lengths: of each, the call's included."""
    keys = [tensor(n, cell_heads, k) for n in lengths]
    values = [[[r[0][:v]] for r in s] for s in keys] if latent else [tensor(n, cell_heads, v) for n in lengths]
    q = tensor(len(rows), heads, k)
    out = []
    for t, (s, p) in enumerate(rows):
        for h in range(heads):
            g = h // (heads // cell_heads)
            seen = [j for j in range(p + 1) if (not window or p - j < window) and (not chunk or j // chunk == p // chunk)]
            logits = [scale * dot(q[t][h], keys[s][j][g]) for j in seen]
            if softcap:
                logits = [softcap * math.tanh(x / softcap) for x in logits]
            if slopes:
                logits = [x + slopes[h] * (j - p) for x, j in zip(logits, seen)]
            w = softmax(logits + [sinks[h]] if sinks else logits)
            out.append([sum(w[i] * values[s][j][g][d] for i, j in enumerate(seen)) for d in range(v)])
    print()
    line("attend", name)
    line("shape", heads, cell_heads, k, v, int(latent), window, chunk, len(rows), len(lengths))
    line("scale", "%.17g" % scale, "%.17g" % softcap)
    for s, n in enumerate(lengths):
        data("keys", s, "f32", keys[s])
        if not latent:
            data("values", s, "f32", values[s])
    line("seq", len(rows), ":", text([s for s, _ in rows]))
    line("pos", len(rows), ":", text([p for _, p in rows]))
    data("q", 0, "f32", q)
    if sinks:
        data("sinks", 0, "f32", sinks)
    if slopes:
        data("slopes", 0, "f32", slopes)
    data("out", 0, "f32", out)
    line("end")


def attend_cases():
    one = [(0, p) for p in range(5)]
    mixed = [(0, 3), (1, 6), (0, 4), (1, 7), (1, 8), (0, 5)]  # two sequences, turn by turn
    sinks, slopes = [0.5, -1.0, 2.0, 0.0], [0.5, 0.25, 0.125, 0.0625]
    attend_case("first token", 2, 2, 3, 2, [(0, 0)], [1])
    attend_case("prefill", 2, 2, 3, 2, one, [5])
    attend_case("decode", 2, 2, 3, 2, [(0, 6)], [7])
    attend_case("two sequences", 2, 2, 3, 2, mixed, [6, 9])
    attend_case("grouped heads", 4, 2, 3, 4, mixed, [6, 9])
    attend_case("one cell head", 4, 1, 2, 3, mixed, [6, 9])
    attend_case("value wider than key", 2, 1, 1, 5, one, [5])
    attend_case("window", 2, 1, 3, 2, mixed, [6, 9], window=3)
    attend_case("window of one", 2, 1, 3, 2, mixed, [6, 9], window=1)
    attend_case("wide window", 2, 1, 3, 2, mixed, [6, 9], window=100)
    attend_case("chunk", 2, 1, 3, 2, mixed, [6, 9], chunk=4)
    attend_case("window and chunk", 2, 1, 3, 2, mixed, [6, 9], window=3, chunk=4)
    attend_case("softcap", 2, 1, 3, 2, mixed, [6, 9], scale=2.0, softcap=1.5)
    attend_case("sinks", 4, 2, 3, 2, mixed, [6, 9], sinks=sinks)
    attend_case("slopes", 4, 2, 3, 2, mixed, [6, 9], slopes=slopes)
    attend_case("everything", 4, 2, 3, 2, mixed, [6, 9], scale=1.5, window=4, softcap=2.0, sinks=sinks, slopes=slopes)
    attend_case("latent", 4, 1, 5, 3, mixed, [6, 9], latent=True)
    attend_case("latent window", 2, 1, 5, 5, mixed, [6, 9], latent=True, window=2)


print("# Made by make_ref_cases.py; ref_case.h tells how to read it.")
embed_cases()
linear_cases()
head_linear_cases()
experts_cases()
combine_cases()
norm_cases()
softmax_cases()
rope_cases()
move_cases()
binary_cases()
unary_cases()
route_cases()
attend_cases()
map_cases()
quantize_cases()
