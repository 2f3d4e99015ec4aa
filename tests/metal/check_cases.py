#!/usr/bin/env python3
"""check_cases.py - cases.txt through metalc.py: check_cases.py CASES METALC... Prints what is not as it should be."""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

ONE = 'uint i [[thread_position_in_grid]]'
HEAD = '#include <metal_stdlib>\nusing namespace metal;\n#line 1 "case"\n'


def run_case(case, metalc, folder, number):
    title, verdict, text = case.split('\n', 2)
    text = re.sub(r'\bF1\b', f'device float *y [[buffer(1)]], {ONE}', text)
    text = re.sub(r'\(F\b', f'(device float *y [[buffer(0)]], {ONE}', text)
    path = f'{folder}/{number}.metal'
    with open(path, 'w') as f:
        f.write(HEAD + text)
    r = subprocess.run(metalc + ['--check', path], capture_output=True, text=True)
    said = r.stderr.strip()
    if verdict == 'accepted':
        return None if r.returncode == 0 else f'{title}: refused:\n{said}'
    words = verdict.split(': ', 1)[1]
    words = 'case:' + words if re.match(r'\d', words) else words
    if r.returncode == 0:
        return f'{title}: accepted'
    return None if words in said else f'{title}: does not say "{words}":\n{said}'


def main():
    with open(sys.argv[1]) as f:
        cases = f.read().split('\n== ')[1:]
    with tempfile.TemporaryDirectory(prefix='metal_cases') as folder:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            bad = list(filter(None, pool.map(lambda n: run_case(cases[n], sys.argv[2:], folder, n), range(len(cases)))))
    for b in bad:
        print(b)
    print(f'{len(cases)} cases, {len(bad)} not as they should be')
    return 1 if bad or not cases else 0


if __name__ == '__main__':
    sys.exit(main())
