#!/usr/bin/env bash
# quality.sh - what each storage type costs: perplexity and divergence from f32, ours and the peer's, on the same files.
#
#     LLAMA_PERPLEXITY=.../llama-perplexity bench/quality.sh MODEL.gguf [TYPE...]
#
# MODEL is unpacked to F32 once, which is the truth, and quantised from there with `weft quantize`. WEFT names the program
# (build/weft), TEXT the text (tests/data/prose.txt), CHUNKS the chunks of 512 tokens (8), THREADS the threads (2), WORK a folder to
# keep the files in. Without LLAMA_PERPLEXITY only ours is measured. Prints a table in Markdown.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
weft=${WEFT:-$here/build/weft} text=${TEXT:-$here/tests/data/prose.txt} chunks=${CHUNKS:-8} threads=${THREADS:-2}
[ $# -ge 1 ] || { sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 2; }
model=$1
shift
types=("$@")
[ ${#types[@]} -gt 0 ] || types=(F16 BF16 Q8_0 Q6_K Q5_K_M Q5_1 Q5_0 Q4_K_M Q4_1 Q4_0)
work=${WORK:-$(mktemp -d)}
[ -n "${WORK:-}" ] || trap 'rm -rf "$work"' EXIT
mkdir -p "$work"

number() { sed -n "s/^.*\"$1\":\([-0-9.e+]*\).*/\1/p" | awk "{ printf \"%.4g\", \$1 }"; }
ours() { "$weft" perplexity -m "$1" -f "$text" -c 512 --chunks "$chunks" -t "$threads" --json "${@:2}"; }
theirs() { "$LLAMA_PERPLEXITY" -m "$1" -f "$text" -c 512 --chunks "$chunks" -t "$threads" "${@:2}" 2>&1; }

f32=$work/f32.gguf
[ -e "$f32" ] || "$weft" quantize -q "$model" "$f32" F32
ours "$f32" --kv f32 --kl-save "$work/ours.kl" >/dev/null
[ -z "${LLAMA_PERPLEXITY:-}" ] || theirs "$f32" -ctk f32 -ctv f32 --kl-divergence-base "$work/theirs.kl" >"$work/log"

echo "| type | perplexity | KL, nats a token | the peer's perplexity | its KL | ours / its KL |"
echo "|---|---|---|---|---|---|"
for type in "${types[@]}"; do
    file=$work/$type.gguf
    [ -e "$file" ] || "$weft" quantize -q "$f32" "$file" "$type"
    report=$(ours "$file" --kl-base "$work/ours.kl")
    ppl=$(number ppl <<<"$report") kl=$(number mean <<<"$report")
    their_ppl=- their_kl=- ratio=-
    if [ -n "${LLAMA_PERPLEXITY:-}" ]; then
        theirs "$file" --kl-divergence-base "$work/theirs.kl" --kl-divergence >"$work/log"
        their_ppl=$(sed -n 's/^Mean PPL(Q) *: *\([0-9.]*\).*/\1/p' "$work/log")
        their_kl=$(sed -n 's/^Mean *KLD: *\([0-9.]*\).*/\1/p' "$work/log")
        ratio=$(awk -v a="$kl" -v b="$their_kl" 'BEGIN { printf "%.3f", (b > 0 ? a / b : 0) }')
    fi
    echo "| $type | $ppl | $kl | $their_ppl | $their_kl | $ratio |"
done
