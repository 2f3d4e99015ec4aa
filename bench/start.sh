#!/usr/bin/env bash
# start.sh - from the start of the process to the first token, with warm caches: how many times what reading the needed
# pages takes, and how many times as fast as the peer?
#
#     LLAMA_BENCH=.../llama-bench bench/start.sh MODEL.gguf...
#
# WEFT names the program (build/weft), BENCH_START the one that measures (build/bench/bench_start), THREADS the threads of
# all (2), ROUNDS how often each takes its turn (9). A run of ours is `weft eval --ids 1`, from the start of the process until it
# has printed the likeliest token: binding, planning, mapping the interleaved weights, one token. The pages are those of the interleaved
# weights on disk, else of the model. A run of the peer's makes one token too, without warming up. Without LLAMA_BENCH it is
# left out.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
weft=${WEFT:-$here/build/weft} bench=${BENCH_START:-$here/build/bench/bench_start}
threads=${THREADS:-2} rounds=${ROUNDS:-9}
[ $# -ge 1 ] || { sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 2; }

# The newest interleaved file of a model, or the model itself.
pages_of() {
    list=$("$weft" cache list --json)
    folder=$(sed -n 's/.*"folder":"\([^"]*\)".*/\1/p' <<<"$list")
    file=$(tr '{' '\n' <<<"$list" | grep -F "\"model\":\"$1\"" | head -n 1 | sed -n 's/.*"file":"\([^"]*\)".*/\1/p') || true
    if [ -n "$file" ]; then echo "$folder/$file"; else echo "$1"; fi
}

for model; do
    model=$(realpath "$model")
    ours="$weft eval -m $model --ids 1 -t $threads"
    $ours >/dev/null
    commands=("$ours")
    [ -z "${LLAMA_BENCH:-}" ] || commands+=("$LLAMA_BENCH -m $model -p 0 -n 1 -r 1 -t $threads --no-warmup")
    "$bench" -t "$threads" -r "$rounds" "$(pages_of "$model")" "${commands[@]}"
done
"$weft" version | sed -n 1p
