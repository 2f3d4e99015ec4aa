#!/usr/bin/env bash
# kv_quality.sh - what each way to store keys and values costs: perplexity, and divergence from f32.
#
#     bench/kv_quality.sh MODEL [POLICY...]
#
# WEFT names the program (build/weft), TEXT the text (tests/data/prose.txt), CTX the tokens of a chunk (4096). Prints a table in
# Markdown.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
weft=${WEFT:-$here/build/weft} text=${TEXT:-$here/tests/data/prose.txt} ctx=${CTX:-4096}
[ $# -ge 1 ] || { sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 2; }
model=$1
shift
policies=("$@")
[ ${#policies[@]} -gt 0 ] || policies=(f16 bf16 q8 'f16 last=256, q8 rest' q8/q4 'f16 last=256, q8 last=1024, q4 rest'
    'f16 last=256, q4 rest' q4/q8 q4)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

measure() { # POLICY FLAGS...
    "$weft" perplexity -q -m "$model" -f "$text" -c "$ctx" --kv "$1" "${@:2}" >"$work/out"
}
value() { awk -v name="$1" '$1 == name || $1 " " $2 == name { n = split(name, w, " "); print $(n + 1); exit }' "$work/out"; }

measure f32 --kl-save "$work/base"
echo '| policy | perplexity | divergence, nats a token | same likeliest token |'
echo '|---|---|---|---|'
echo "| f32 | $(value perplexity) | | |"
for policy in "${policies[@]}"; do
    measure "$policy" --kl-base "$work/base"
    echo "| $policy | $(value perplexity) | $(value divergence) | $(value 'same top') % |"
done
