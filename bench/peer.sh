#!/usr/bin/env bash
# peer.sh - the same GGUF files, `weft bench` beside llama-bench, turn by turn: how many times as fast are we?
#
#     LLAMA_BENCH=.../llama-bench bench/peer.sh MODEL...
#
# A model is a GGUF file, or what weft bench takes besides: a folder, or SHAPE:TYPE for random weights (llama-1b:Q4_K_M).
#
# WEFT names the program (build/weft), THREADS the threads of both (2; several numbers: one after the other), PROMPT and
# GEN the tokens of a prompt and of an answer (512, 64; 0: no such test), ROUNDS how often both take their turn (5), REPEAT
# the measurements of a turn (1), FLAGS further flags of weft bench. Turns alternate so that whatever else the machine does
# meets both alike. Prints median and best of all measurements in tokens per second, the ratios ours : theirs, and for
# generating the share of the read bandwidth that `weft bench` measured (its best turn's).
#
# LEVELS compares instruction sets, each with a peer that was built for the same one: words LEVEL=PROGRAM, where LEVEL is
# what WEFT_CPU may be and PROGRAM a llama-bench; LEVEL alone has the peer that LLAMA_BENCH or OTHER names, if any.
#
#     LEVELS='avx2=.../avx2/llama-bench amx=.../amx/llama-bench' THREADS='2 8' bench/peer.sh MODEL...
#
# Without LLAMA_BENCH it measures Weft alone; OTHER names a second weft, perhaps of another commit, to take the peer's turns.
# COMPETITORS is a number of processes that do nothing but compute while both are measured (0): a busy machine. They
# end with the script, however it ends.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
weft=${WEFT:-$here/build/weft}
threads=${THREADS:-2} prompt=${PROMPT:-512} gen=${GEN:-64} rounds=${ROUNDS:-5} repeat=${REPEAT:-1}
read -ra levels <<<"${LEVELS:-native}"
[ $# -ge 1 ] || { sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 2; }
competitors=${COMPETITORS:-0}

# The level and the peer of a word of LEVELS.
level_of() {
    level=${1%%=*} llama_bench=${LLAMA_BENCH:-}
    [ "$level" = "$1" ] || llama_bench=${1#*=}
    peer=${llama_bench:-${OTHER:-}}
}
for word in "${levels[@]}"; do
    level_of "$word"
    for program in "$weft" ${peer:+"$peer"}; do
        command -v "$program" >/dev/null || { echo "peer: $program cannot be run" >&2; exit 1; }
    done
done
for number in $threads "$prompt" "$gen" "$rounds" "$repeat" "$competitors"; do
    [[ $number =~ ^[0-9]+$ ]] || { echo "peer: '$number' is not a whole number" >&2; exit 2; }
done
work=$(mktemp -d)
spinning=()
finish() {
    [ ${#spinning[@]} -eq 0 ] || kill "${spinning[@]}" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# A competitor also ends by itself when this script is gone, should it be killed without a chance to end it.
compete() {
    local i
    while kill -0 "$1" 2>/dev/null; do
        for ((i = 0; i < 100000; i++)); do :; done
    done
}
for ((i = 0; i < competitors; i++)); do
    compete $$ &
    spinning+=($!)
done

# Lines "who test rate" for each measurement, and "limit bandwidth bytes" for a token. Both programs print JSON; each
# object is brought on a line of its own first.
ours() { weft_bench weft "$weft" "$1"; }

# weft_bench WHO PROGRAM MODEL
weft_bench() {
    local from=-m
    [ -e "$3" ] || from=--random
    local cpu=()
    [ "$level" = native ] || cpu=("WEFT_CPU=$level")
    # shellcheck disable=SC2086 # FLAGS are words
    env "${cpu[@]}" "$2" bench $from "$3" -t "$n_thread" -p "$prompt" -n "$gen" -r "$repeat" --json ${FLAGS:-} >"$work/out" ||
        { cat "$work/out" >&2; return 1; }
    bandwidth=$(sed -n 's/.*"bandwidth":\([0-9.e+]*\).*/\1/p' "$work/out")
    sed 's/{"test"/\n&/g' "$work/out" | while IFS= read -r line; do
        test=$(sed -n 's/^{"test":"\([a-z0-9]*\)".*/\1/p' <<<"$line")
        [ -n "$test" ] || continue
        samples "$1" "$test" "$line"
        bytes=$(sed -n 's/.*"bytes_per_token":\([0-9.e+]*\).*/\1/p' <<<"$line")
        [ -z "$bytes" ] || echo "limit ${bandwidth:-0} $bytes"
    done
}

theirs() {
    if [ -z "$llama_bench" ]; then
        weft_bench peer "$peer" "$1"
        return
    fi
    "$llama_bench" -m "$1" -t "$n_thread" -p "$prompt" -n "$gen" -r "$repeat" -o jsonl >"$work/out" 2>"$work/err" ||
        { tail -n 20 "$work/err" >&2; return 1; }
    while IFS= read -r line; do
        p=$(sed -n 's/.*"n_prompt": *\([0-9]*\).*/\1/p' <<<"$line")
        n=$(sed -n 's/.*"n_gen": *\([0-9]*\).*/\1/p' <<<"$line")
        [ -n "$p$n" ] || continue
        if [ "$p" != 0 ]; then samples peer "pp$p" "$line"; else samples peer "tg$n" "$line"; fi
    done <"$work/out"
    mv "$work/out" "$work/peer"
}

# samples WHO TEST LINE: the numbers of samples_ts.
samples() {
    sed -n 's/.*"samples_ts": *\[\([^]]*\)\].*/\1/p' <<<"$3" | tr ',' '\n' |
        awk -v who="$1" -v test="$2" '$1 > 0 { print who, test, $1 }'
}

table() {
    sort -k1,2 -k3,3g "$work/lines" | awk -v model="$1" -v level="$level" -v threads="$n_thread" -v alone="$([ -n "$peer" ] && echo 0 || echo 1)" '
        $1 == "limit" { if ($2 > bandwidth) bandwidth = $2; bytes = $3; next }
        { key = $1 " " $2; v[key, ++n[key]] = $3; tests[$2] = 1 }
        function median(key) { return (v[key, int((n[key] + 1) / 2)] + v[key, int(n[key] / 2) + 1]) / 2 }
        function share(rate, test) {
            return test ~ /^tg/ && bandwidth > 0 ? sprintf("%.0f %%", 100 * rate * bytes / bandwidth) : "-"
        }
        END {
            for (test in tests) {
                a = "weft " test; b = "peer " test
                if (n[a] && alone) {
                    printf "%-28s %-8s %3s %-6s %10.2f %10.2f %10s %10s %9s %9s %8s %8s\n", model, level, threads, test, median(a), v[a, n[a]],
                        "-", "-", "-", "-", share(median(a), test), "-"
                    continue
                }
                if (!n[a] || !n[b]) { printf "%-28s %-8s %3s %-6s measured by one of them only\n", model, level, threads, test; continue }
                printf "%-28s %-8s %3s %-6s %10.2f %10.2f %10.2f %10.2f %8.2fx %8.2fx %8s %8s\n", model, level, threads, test, median(a),
                    v[a, n[a]], median(b), v[b, n[b]], median(a) / median(b), v[a, n[a]] / v[b, n[b]],
                    share(median(a), test), share(median(b), test)
            }
        }' | sort -k4,4
}

printf '%-28s %-8s %3s %-6s %21s %21s %17s %17s\n' '' '' '' '' 'weft, tokens/s' 'peer, tokens/s' 'ratio' 'of memory'
printf '%-28s %-8s %3s %-6s %10s %10s %10s %10s %9s %9s %8s %8s\n' model level t test median best median best median best weft peer
for model; do
    [ -r "$model" ] || [[ $model =~ ^[a-z0-9.-]+:[A-Z0-9_]+$ ]] || { echo "peer: $model cannot be read" >&2; exit 1; }
done

# take_turns MODEL: both programs, at the level and with the threads at hand
take_turns() {
    local round order who
    : >"$work/lines"
    for ((round = 0; round < rounds; round++)); do
        if [ -z "$peer" ]; then order=ours; elif ((round % 2)); then order='theirs ours'; else order='ours theirs'; fi
        for who in $order; do "$who" "$1" >>"$work/lines"; done
    done
    table "$(basename "$1")"
}
for word in "${levels[@]}"; do
    level_of "$word"
    for n_thread in $threads; do
        for model; do take_turns "$model"; done
    done
done
echo
if [ -n "$llama_bench" ]; then
    build=$(sed -n 's/.*"build_commit": *"\([^"]*\)".*"build_number": *\([0-9]*\).*/build \2, \1/p' "$work/peer" | sed -n 1p)
    peer_is="; llama-bench ${build:-of unknown build}"
elif [ -n "$peer" ]; then peer_is="; peer: $("$peer" version | sed -n 1p)"
else peer_is=''
fi
echo "$rounds rounds of $repeat, $competitors competitors; $("$weft" version | sed -n 1p)$peer_is"
