#!/usr/bin/env bash
# perplexity_peer.sh - one text, one model, two programs: do their perplexities agree?
#
#     LLAMA_PERPLEXITY=.../llama-perplexity bench/perplexity_peer.sh MODEL.gguf [WEFT-FLAGS...]
#
# WEFT names the program (build/weft), TEXT the text (tests/data/prose.txt), CONTEXT the tokens of a chunk (512), CHUNKS
# how many of them (0: all), THREADS the threads of both (2). Prints both, their times and the ratio; exit 1 if they are
# more than BOUND (0.005) apart. Without LLAMA_PERPLEXITY only ours is printed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
weft=${WEFT:-$here/build/weft}
text=${TEXT:-$here/tests/data/prose.txt}
context=${CONTEXT:-512} chunks=${CHUNKS:-0} threads=${THREADS:-2} bound=${BOUND:-0.005}
[ $# -ge 1 ] || { sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 2; }
model=$1
shift

field() { sed -n "s/.*\"$1\":\([-0-9.e+]*\).*/\1/p" <<<"$ours"; }
ours=$("$weft" perplexity -m "$model" -f "$text" -c "$context" --chunks "$chunks" -t "$threads" --json "$@")
ppl=$(field ppl)
printf '%-16s perplexity %9.4f +- %.4f, %d chunks, %.1f s\n' weft "$ppl" "$(field ppl_error)" "$(field chunks)" "$(field seconds)"

if [ -z "${LLAMA_PERPLEXITY:-}" ]; then
    echo "LLAMA_PERPLEXITY names no program: nothing to compare with"
    exit 0
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
start=$(date +%s.%N)
"$LLAMA_PERPLEXITY" -m "$model" -f "$text" -c "$context" -t "$threads" \
    --chunks "$([ "$chunks" = 0 ] && echo -1 || echo "$chunks")" >"$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }
end=$(date +%s.%N)
theirs=$(sed -n 's/.*Final estimate: PPL = \([0-9.]*\) +\/- \([0-9.]*\).*/\1 \2/p' "$log")
[ -n "$theirs" ] || { tail -n 20 "$log" >&2; exit 1; }
awk -v ours="$ppl" -v theirs="$theirs" -v seconds="$(awk "BEGIN { print $end - $start }")" -v bound="$bound" 'BEGIN {
    split(theirs, t, " ")
    printf "%-16s perplexity %9.4f +- %.4f, %.1f s with loading\n", "llama-perplexity", t[1], t[2], seconds
    printf "%-16s %.6f\n", "ratio", ours / t[1]
    off = ours / t[1] - 1
    if (off < 0) off = -off
    exit off > bound
}'
