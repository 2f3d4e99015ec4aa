#!/usr/bin/env python3
"""metalc.py - compiles .metal files as C++ for tests/metal, to a shared library with a table of their kernels.

    metalc.py --check FILE                refuses what Metal does not have, and mixed address spaces
    metalc.py [--race] -o OUT FILE        the same, then a library
    metalc.py [--race] --cache DIR FILE   the same, unless DIR has it; prints where it is, or copies it to OUT

Needs --clang PROGRAM, --root DIR (of the sources) and, for libraries, --lanes LIBRARY (what runs shaders). Includes are looked
for from the root. Messages name the shader's own files and lines."""
import argparse
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

import msl_rules
from msl_shader import Shader
from msl_tokens import Wrong, text_of, tokens_of

HERE = os.path.dirname(os.path.realpath(__file__))
OWN = os.path.dirname(os.path.dirname(HERE))  # where msl.h is included from
LANGUAGE = ['-std=c++17', '-fsigned-char', '-ffp-contract=off', '-fno-math-errno', '-fno-strict-aliasing',
            '-fno-exceptions', '-fno-rtti', '-fno-threadsafe-statics', '-fvisibility=hidden', '-Xclang',
            '-cl-single-precision-constant']
WARNINGS = ['-Wall', '-Werror', '-Wno-duplicate-decl-specifier', '-Wno-unused-function', '-Wno-unused-const-variable',
            '-Wno-unknown-pragmas', '-Wno-missing-braces', '-Wno-unused-local-typedef', '-Wno-pass-failed']
RACE = ['-DMSL_RACE', '-fsanitize=thread', '-mllvm', '-tsan-instrument-func-entry-exit=0', '-mllvm',
        '-tsan-instrument-atomics=0']
LINES = ['-gline-tables-only', '-gdwarf-4', '-fdebug-compilation-dir=.']  # what addr2line reads, with the shader's own names
WRAPPED = ['memcpy', 'memmove', 'memset']  # what clang before 16 leaves out of the instrumentation


class Failed(Exception):
    pass


def run(command, text=None):
    r = subprocess.run(command, input=text, capture_output=True, text=True)
    if r.returncode:
        raise Failed(r.stderr or f'{command[0]}: ended with {r.returncode}')
    return r.stdout


def preprocess(a):
    """Metal's headers are empty here (words/), so that only the shader's own text comes out."""
    defines = ['-D' + d for d in a.define] + ['-D__METAL_VERSION__=310', '-D__METAL__=1']
    deps = ['-MD', '-MF', a.depfile, '-MT', a.out] if a.depfile else []
    return run([a.clang, '-E', '-x', 'c++', '-std=c++17', '-undef', '-nostdinc', '-I', a.root, '-isystem', HERE + '/words']
               + defines + deps + [a.file])


def check_recursion(a, shader, path):
    """Names may be overloads: what clang makes of them decides."""
    if not msl_rules.cycle_in(msl_rules.calls_of(shader)):
        return
    text = run([a.clang, '-S', '-emit-llvm', '-O0', '-o', '-', '-I', OWN] + LANGUAGE + ['-Wno-everything', path])
    calls, now = {}, None
    for row in text.split('\n'):
        m = re.match(r'define .*?@("?[\w.$]+"?)\(', row)
        if m:
            now = calls.setdefault(m.group(1), set())
        elif now is not None:
            now.update(re.findall(r'(?:call|invoke) .*?@("?[\w.$]+"?)\(', row))
    ring = msl_rules.cycle_in(calls)
    if ring:
        f = next((f for f in shader.functions if f.name in ring), shader.functions[0])
        raise Wrong(f.head[0], f'{f.name} calls itself: recursion does not exist in Metal')


def compile_shader(a, text, out):
    """The check pass; then the library, where `out` is not None."""
    with tempfile.TemporaryDirectory(prefix='metalc') as t:
        for check in (True, False):
            tokens = tokens_of(text, a.root)
            shader = Shader(tokens, check)
            if check:
                msl_rules.check(shader)
            path = f'{t}/{"check" if check else "run"}.cpp'
            with open(path, 'w') as f:
                f.write('#include "tests/metal/msl.h"\n' + text_of(tokens) + '#line 1 "<kernels>"\n' + shader.tail())
            if check:
                version = int(run([a.clang, '-dumpversion']).split('.')[0])
                halves = '-fnative-half-arguments-and-returns' if version >= 16 else '-fallow-half-arguments-and-returns'
                run([a.clang, '-fsyntax-only', '-DMSL_CHECK', '-Xclang', halves, '-I', OWN] + LANGUAGE + WARNINGS + [path])
                continue
            check_recursion(a, shader, path)
            if out is None:
                return
            race = RACE if a.race else []
            run([a.clang, '-O2', '-fPIC', '-I', OWN, '-c', path, '-o', t + '/run.o'] + LINES + LANGUAGE + WARNINGS + race)
            wrap = ['-Wl,--wrap=' + w for w in WRAPPED] if a.race else []
            part = f'{out}.{os.getpid()}'
            run([a.clang, '-shared', '-nostdlib++', t + '/run.o', '-o', part, a.lanes,
                 '-Wl,-rpath,' + os.path.dirname(a.lanes), '-lm'] + wrap)
            os.replace(part, out)


def cached(a, text):
    """By the text, includes and all, and by everything that has a part in the result."""
    h = hashlib.sha256(('race' if a.race else 'plain').encode() + a.clang.encode() + a.lanes.encode())
    parts = [f for f in sorted(os.listdir(HERE)) if f.startswith('msl') or f in ('metalc.py', 'shader.h')]
    for f in parts:
        with open(f'{HERE}/{f}', 'rb') as part:
            h.update(part.read())
    for t in tokens_of(text, a.root):  # with their lines, however the text came to be one
        if t.kind != 'line':
            h.update(f'{t.file}:{t.line}:{t.text}\n'.encode())
    os.makedirs(a.cache, exist_ok=True)
    out = f'{a.cache}/{h.hexdigest()[:24]}{"-race" if a.race else ""}.so'
    with open(out + '.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another test may be making it
        if not os.path.exists(out):
            compile_shader(a, text, out)
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--clang', default='clang++')
    p.add_argument('--root', default=OWN)
    p.add_argument('--lanes', default='')
    p.add_argument('--race', action='store_true')
    p.add_argument('--check', action='store_true')
    p.add_argument('--cache')
    p.add_argument('--depfile')
    p.add_argument('-o', dest='out')
    p.add_argument('-D', dest='define', action='append', default=[])
    p.add_argument('file')
    a = p.parse_args()
    a.root = os.path.realpath(a.root)
    try:
        text = preprocess(a)
        if a.cache and a.out:
            shutil.copy(cached(a, text), a.out)
        elif a.cache:
            print(cached(a, text))
        else:
            compile_shader(a, text, None if a.check else a.out)
    except (Failed, Wrong) as e:
        print(e, file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
