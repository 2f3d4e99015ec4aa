#!/usr/bin/env bash
# headers.sh - every header compiles on its own: headers.sh COMPILER [LLVM_INCLUDE]. Run from the root of the tree.
set -euo pipefail
cc=$1
llvm=${2:-}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
n=0
failed=0
machine=$("$cc" -dumpmachine)
for header in $(find runtime dsl compiler codegen kernels -name '*.h' | sort); do
    # Those with an architecture's own instructions are for that one alone.
    isa=()
    case $header:$machine in
    kernels/neon/*:aarch64* | kernels/neon/*:arm64*) ;;
    kernels/x86/*:x86_64*) isa=(-mavx2 -mfma -mf16c -mavxvnni -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni) ;;
    kernels/neon/* | kernels/x86/*) continue ;;
    codegen/codegen_impl.h:*) # LLVM's types are in it
        [ -n "$llvm" ] || continue
        isa=(-isystem "$llvm")
        ;;
    esac
    n=$((n + 1))
    "$cc" "${isa[@]}" -std=c11 -D_GNU_SOURCE -I. -Wall -Wextra -fsyntax-only -x c "$header" >"$log" 2>&1 ||
        { failed=1; echo "$header does not stand alone"; head -5 "$log"; }
done
echo "$n headers"
exit "$failed"
