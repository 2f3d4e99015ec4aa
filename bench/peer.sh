#!/usr/bin/env bash
# peer.sh - the same GGUF files, `weft bench` beside llama-bench, turn by turn: how many times as fast are we?
#
#     LLAMA_BENCH=.../llama-bench bench/peer.sh MODEL...
#
# A model is a GGUF file, or what weft bench takes besides: a folder, or SHAPE:TYPE for random weights (llama-1b:Q4_K_M).
#
# WEFT names the program (build/weft), THREADS the threads of both (2), PROMPT and GEN the tokens of a prompt and of an
# answer (512, 64; 0: no such test), ROUNDS how often both take their turn (5), REPEAT the measurements of a turn (1), FLAGS
# further flags of weft bench. Turns alternate so that whatever else the machine does meets both alike. Prints median and
# best of all measurements in tokens per second, the ratios ours : theirs, and for generating the share of the read
# bandwidth that `weft bench` measured (its best turn's).
#
# Without LLAMA_BENCH it measures Weft alone; OTHER names a second weft, perhaps of another commit, to take the peer's turns.
# COMPETITORS is a number of processes that do nothing but compute while both are measured (0): a busy machine. They
# end with the script, however it ends.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
weft=${WEFT:-$here/build/weft}
threads=${THREADS:-2} prompt=${PROMPT:-512} gen=${GEN:-64} rounds=${ROUNDS:-5} repeat=${REPEAT:-1}
[ $# -ge 1 ] || { sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 2; }
competitors=${COMPETITORS:-0}
peer=${LLAMA_BENCH:-${OTHER:-}}
for program in "$weft" ${peer:+"$peer"}; do
    command -v "$program" >/dev/null || { echo "peer: $program cannot be run" >&2; exit 1; }
done
for number in "$threads" "$prompt" "$gen" "$rounds" "$repeat" "$competitors"; do
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
    # shellcheck disable=SC2086 # FLAGS are words
    "$2" bench $from "$3" -t "$threads" -p "$prompt" -n "$gen" -r "$repeat" --json ${FLAGS:-} >"$work/out" ||
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
    if [ -z "${LLAMA_BENCH:-}" ]; then
        weft_bench peer "$peer" "$1"
        return
    fi
    "$LLAMA_BENCH" -m "$1" -t "$threads" -p "$prompt" -n "$gen" -r "$repeat" -o jsonl >"$work/out" 2>"$work/err" ||
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
    sort -k1,2 -k3,3g "$work/lines" | awk -v model="$1" -v alone="$([ -n "$peer" ] && echo 0 || echo 1)" '
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
                    printf "%-32s %-8s %10.2f %10.2f %10s %10s %9s %9s %8s %8s\n", model, test, median(a), v[a, n[a]],
                        "-", "-", "-", "-", share(median(a), test), "-"
                    continue
                }
                if (!n[a] || !n[b]) { printf "%-32s %-8s measured by one of them only\n", model, test; continue }
                printf "%-32s %-8s %10.2f %10.2f %10.2f %10.2f %8.2fx %8.2fx %8s %8s\n", model, test, median(a),
                    v[a, n[a]], median(b), v[b, n[b]], median(a) / median(b), v[a, n[a]] / v[b, n[b]],
                    share(median(a), test), share(median(b), test)
            }
        }' | sort -k2,2
}

printf '%-32s %-8s %21s %21s %17s %17s\n' '' '' 'weft, tokens/s' 'peer, tokens/s' 'ratio' 'of memory'
printf '%-32s %-8s %10s %10s %10s %10s %9s %9s %8s %8s\n' model test median best median best median best weft peer
for model; do
    [ -r "$model" ] || [[ $model =~ ^[a-z0-9.-]+:[A-Z0-9_]+$ ]] || { echo "peer: $model cannot be read" >&2; exit 1; }
    : >"$work/lines"
    for ((round = 0; round < rounds; round++)); do
        if [ -z "$peer" ]; then order=ours; elif ((round % 2)); then order='theirs ours'; else order='ours theirs'; fi
        for who in $order; do "$who" "$model" >>"$work/lines"; done
    done
    table "$(basename "$model")"
done
echo
if [ -n "${LLAMA_BENCH:-}" ]; then
    build=$(sed -n 's/.*"build_commit": *"\([^"]*\)".*"build_number": *\([0-9]*\).*/build \2, \1/p' "$work/peer" | sed -n 1p)
    peer_is="; llama-bench ${build:-of unknown build}"
elif [ -n "$peer" ]; then peer_is="; peer: $("$peer" version | sed -n 1p)"
else peer_is=''
fi
echo "$rounds rounds of $repeat, $threads threads, $competitors competitors; $("$weft" version | sed -n 1p)$peer_is"
