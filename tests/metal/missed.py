#!/usr/bin/env python3
"""missed.py - which barriers of kernels/metal are missed when they are gone: missed.py BUILD [FILE[:LINE]...]

Each one is taken away in turn; the shaders are compiled for race mode and the kernel checker runs those kernels that come by
it. A barrier that nobody misses is either not needed or not tested. Takes some minutes, so it is not among the tests: run it when
barriers change."""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
BARRIER = re.compile(r'^\s*((?:group|simd)_sync\(\);)')
SECONDS = 120
# Kernels of the checker that come by the barriers of a file, quick ones first.
KERNELS = {
    'attend.msl': ['k_attend_metal'],
    'attend_fast.msl': ['k_attend_fast_metal'],
    'cell.msl': ['k_append_metal', 'k_attend_metal'],
    'group.msl': ['k_rms_norm_metal', 'k_layer_norm_metal', 'k_softmax_metal', 'k_route_metal', 'k_attend_metal'],
    'linear_many.msl': ['k_linear_Q4_K_many_metal'],
    'route.msl': ['k_route_metal'],
}


def variable(build, name):
    with open(f'{build}/CMakeCache.txt') as f:
        return re.search(rf'^{name}:\w+=(.*)$', f.read(), re.M).group(1)


def compiled(build, folder, out):
    """The shaders of another folder of kernels."""
    r = subprocess.run([sys.executable, f'{ROOT}/tests/metal/metalc.py', '--race', '--root', folder, '--clang',
                        variable(build, 'WEFT_METAL_CLANG'), '--lanes', f'{build}/tests/metal/libweft_lanes.so', '-o', out,
                        f'{folder}/kernels/metal/phase.metal'], capture_output=True, text=True)
    if r.returncode:
        sys.exit(r.stderr)


def is_missed(build, shaders, kernels):
    """The first thing that is told, or None."""
    for kernel in kernels:
        try:
            r = subprocess.run([f'{build}/tests/kernels/check_metal_race', kernel], capture_output=True, text=True,
                               timeout=SECONDS, env=dict(os.environ, WEFT_METAL_SHADERS=shaders))
        except subprocess.TimeoutExpired:
            print(f'{kernel} takes more than {SECONDS} s', file=sys.stderr)
            continue
        if r.returncode:
            said = re.search(r'race: [^,]*|which nobody wrote|is at \w+', r.stdout + r.stderr)
            return f'{kernel}: {said.group() if said else "wrong values"}'
    return None


def is_missed_by_models(build, number):
    """Barriers between steps: the checker's phases have one step alone, those of a model have more."""
    r = subprocess.run([f'{build}/tests/test_metal_race'], capture_output=True, text=True,
                       env=dict(os.environ, WEFT_FAKE_METAL=f'without_line={number}'))
    said = re.search(r'no_race_is_told.*?(race: [^,]*|which nobody wrote)', r.stdout, re.S)
    return f'test_metal_race: {said.group(1)}' if said else None


def barriers(folder, wanted):
    for name in sorted(os.listdir(folder)):
        if not name.endswith(('.msl', '.metal')):
            continue
        with open(f'{folder}/{name}') as f:
            for number, line in enumerate(f.read().split('\n'), 1):
                if BARRIER.match(line) and (not wanted or name in wanted or f'{name}:{number}' in wanted):
                    yield name, number


def main():
    build, wanted, unmissed = os.path.realpath(sys.argv[1]), sys.argv[2:], 0
    with tempfile.TemporaryDirectory(prefix='missed') as folder:
        os.mkdir(f'{folder}/kernels')
        for name in ('runtime', *(f'kernels/{f}' for f in os.listdir(f'{ROOT}/kernels') if f != 'metal')):
            os.symlink(f'{ROOT}/{name}', f'{folder}/{name}')
        subprocess.run(['cp', '-r', f'{ROOT}/kernels/metal', f'{folder}/kernels/metal'], check=True)
        for name, number in list(barriers(f'{folder}/kernels/metal', wanted)):
            if name == 'phase.metal':
                said = is_missed_by_models(build, number)
                unmissed += not said
                print(f'{name}:{number}: {said or "NOT MISSED"}', flush=True)
                continue
            path = f'{folder}/kernels/metal/{name}'
            with open(path) as f:
                text = f.read()
            lines = text.split('\n')
            lines[number - 1] = BARRIER.sub('', lines[number - 1])
            with open(path, 'w') as f:
                f.write('\n'.join(lines))
            compiled(build, folder, f'{folder}/shaders.so')
            said = is_missed(build, f'{folder}/shaders.so', KERNELS.get(name, []))
            unmissed += not said
            print(f'{name}:{number}: {said or "NOT MISSED"}', flush=True)
            with open(path, 'w') as f:
                f.write(text)
    return 1 if unmissed else 0


if __name__ == '__main__':
    sys.exit(main())
