#!/usr/bin/env bash
# program.sh - how fast does a built program decode, beside `weft run` with the executor's loop and with generated code?
#
#     bench/program.sh MODEL...
#
# A model is a folder or a GGUF file, or SHAPE:TYPE for random weights (llama-1b:Q8_0), which needs a GGUF file with a tokenizer:
# TOKENIZER. WEFT names the program (build/weft), THREADS the threads (1; several numbers: one after the other), TOKENS how many are
# decoded (300), ROUNDS how often each takes its turn (7), CPU what --cpu is (auto). Prints the median of all turns and the best, in
# tokens per second, and both over those of the plan. QUIET is put before every measurement.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
weft=${WEFT:-$here/build/weft}
[ $# -ge 1 ] || { sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

rate() { # EXEC THREADS
    local run=("$work/program")
    [ "$1" = program ] || run=("$weft" run --exec "$1" -m "$model")
    ${QUIET:-} "${run[@]}" -q -p Once -n "${TOKENS:-300}" --temp 0 --ignore-eos -t "$2" --json |
        sed 's/.*"generated":\([0-9]*\).*"generate":\([0-9.e-]*\).*/\1 \2/' | awk '{ print $1 / $2 }'
}

for given in "$@"; do
    model=$given
    if [ ! -e "$given" ]; then
        model=$work/model.gguf
        "$here/build/bench/random_file" "$given" "${TOKENIZER:?names a GGUF file with a tokenizer}" "$model"
    fi
    "$weft" build -q -m "$model" -o "$work/program" --cpu "${CPU:-auto}" --strip
    for threads in ${THREADS:-1}; do
        rm -f "$work"/rates.*
        for ((i = 0; i < ${ROUNDS:-7}; i++)); do
            for kind in plan jit program; do rate "$kind" "$threads" >>"$work/rates.$kind"; done
        done
        for kind in plan jit program; do
            sort -g "$work/rates.$kind" | awk -v kind="$kind" -v name="$given, $threads threads" -v seen="$work/plan" '
                { r[NR] = $1 }
                END {
                    median = (r[int((NR + 1) / 2)] + r[int(NR / 2) + 1]) / 2
                    if (kind == "plan") print median, r[NR] >seen
                    close(seen)
                    getline <seen
                    printf "%-32s %-8s median %8.1f  best %8.1f tokens/s   %.3f, %.3f of plan\n", name, kind, median, r[NR], median / $1, r[NR] / $2
                }'
        done
    done
done
