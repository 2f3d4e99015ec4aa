#!/usr/bin/env bash
# real_card.sh WEFT SOURCES: what bench/cuda.sh checks, on a real CUDA card. Skipped, with exit status 77, where there is no driver or
# no card; whatever else is in the way of a card that is there fails.
set -euo pipefail
weft=$(realpath "$1") sources=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! "$weft" eval --device cuda -m "$sources/models/stories-7m" --ids 1 >"$work/said" 2>&1; then
    if grep -q 'error\[W1608\]' "$work/said"; then
        echo "cuda_real_card: skipped: $(sed -n 's/.*error\[W1608\]: //p' "$work/said" | head -n 1)"
        exit 77
    fi
    cat "$work/said" >&2
    exit 1
fi
"$sources/bench/cuda.sh" --only check,forms --build "$(dirname "$weft")"
