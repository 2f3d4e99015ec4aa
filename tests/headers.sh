#!/usr/bin/env bash
# headers.sh - every header compiles on its own: headers.sh COMPILER. Run from the root of the tree.
set -euo pipefail
cc=$1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
n=0
failed=0
for header in $(find runtime dsl compiler codegen kernels -name '*.h' | sort); do
    n=$((n + 1))
    "$cc" -std=c11 -D_GNU_SOURCE -I. -Wall -Wextra -fsyntax-only -x c "$header" >"$log" 2>&1 ||
        { failed=1; echo "$header does not stand alone"; head -5 "$log"; }
done
echo "$n headers"
exit "$failed"
