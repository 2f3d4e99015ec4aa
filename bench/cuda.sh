#!/usr/bin/env bash
# cuda.sh - a CUDA card in a few minutes: is what it computes right, and how fast is it beside llama.cpp on an H200?
#
#     bench/cuda.sh [RESULT.md]
#
# Writes a result file: machine, driver, commit, what was checked, and a row for each test with the command that made it. The peer's
# numbers are llama.cpp's of August 2026 with flash attention, measured on an H200: on another card they are a yardstick only.
#
# WEFT names the program (build/weft), TESTS the folder of the test programs (build/tests; none there: they are left out), GOLDEN
# a folder of further recorded models, DEVICE the card (cuda), REPEAT the measurements of a test (5), ONLY a pattern of the
# models to measure, such as 'llama-1b:*' (all; none: nothing is measured), ROWS a file of other rows, in the form of those
# below. compute-sanitizer runs where it is found.
#
# Ends with 1 if there is no card, or a check or a test fails; a slow row is no failure.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
weft=${WEFT:-$here/build/weft} tests=${TESTS:-$here/build/tests} device=${DEVICE:-cuda} repeat=${REPEAT:-5} only=${ONLY:-*}
result=${1:-}
[ $# -le 1 ] || { sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 2; }
[[ $repeat =~ ^[1-9][0-9]*$ ]] || { echo "cuda.sh: REPEAT is '$repeat', not a number of measurements" >&2; exit 2; }
command -v "$weft" >/dev/null || { echo "cuda.sh: $weft cannot be run" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stories=$here/models/stories-7m small=$here/tests/golden/data

if ! "$weft" eval --device "$device" -m "$stories" --ids 1 >"$work/said" 2>&1; then
    echo "cuda.sh: nothing can be measured: a model does not run with --device $device" >&2
    cat "$work/said" >&2
    exit 1
fi

# model|flags|test|peer|at least|goal
rows() {
    [ -z "${ROWS:-}" ] || { cat "$ROWS"; return; }
    cat <<'ROWS'
llama-1b:BF16|-p 2048 -n 0 -ub 2048|pp2048|91315|91000|130000
llama-1b:BF16|-p 0 -n 128 -d 16,512,16384|tg128 @ d16|769|1200|1500
llama-1b:BF16|-p 0 -n 128 -d 16,512,16384|tg128 @ d512|747|971|
llama-1b:BF16|-p 0 -n 128 -d 16,512,16384|tg128 @ d16384|636|827|
llama-1b:BF16|-p 0 -n 128 -d 512 -np 8,32|tg128 x8 @ d512|4005|5207|
llama-1b:BF16|-p 0 -n 128 -d 512 -np 8,32|tg128 x32 @ d512|11208|14570|
llama-1b:Q8_0|-p 0 -n 128 -d 16|tg128 @ d16|820|1600|2500
llama-1b:Q4_K_M|-p 0 -n 128 -d 16,512,16384|tg128 @ d16|865|1900|3300
llama-1b:Q4_K_M|-p 0 -n 128 -d 16,512,16384|tg128 @ d512|815|1223|
llama-1b:Q4_K_M|-p 0 -n 128 -d 16,512,16384|tg128 @ d16384|690|1035|
llama-1b:Q4_K_M|-p 0 -n 128 -d 512 -np 8,32|tg128 x8 @ d512|2906|5812|
llama-1b:Q4_K_M|-p 0 -n 128 -d 512 -np 8,32|tg128 x32 @ d512|8414|12621|
llama-8b:BF16|-p 2048 -n 0 -ub 2048|pp2048|25330|25000|35000
llama-8b:BF16|-p 0 -n 128 -d 16|tg128 @ d16|209|240|275
llama-8b:Q4_K_M|-p 2048 -n 0 -ub 2048|pp2048|9764|18000|29000
llama-8b:Q4_K_M|-p 0 -n 128 -d 16,512,16384|tg128 @ d16|262|480|700
llama-8b:Q4_K_M|-p 0 -n 128 -d 16,512,16384|tg128 @ d512|257|386|
llama-8b:Q4_K_M|-p 0 -n 128 -d 16,512,16384|tg128 @ d16384|213|320|
llama-8b:Q4_K_M|-p 0 -n 128 -d 512 -np 8,32|tg128 x8 @ d512|745|2800|4800
llama-8b:Q4_K_M|-p 0 -n 128 -d 512 -np 8,32|tg128 x32 @ d512|3087|4631|
llama-8b:Q8_0|-p 0 -n 128 -d 512,16384|tg128 @ d512|247|321|
llama-8b:Q8_0|-p 0 -n 128 -d 512,16384|tg128 @ d16384|205|267|
llama-8b:Q8_0|-p 0 -n 128 -d 512 -np 8,32|tg128 x8 @ d512|1051|1682|
llama-8b:Q8_0|-p 0 -n 128 -d 512 -np 8,32|tg128 x32 @ d512|3078|4001|
ROWS
}

failed=0
# check NAME COMMAND...: a line of what was checked.
check() {
    local name=$1
    shift
    if "$@" >"$work/said" 2>&1; then
        echo "- $name: passed"
    else
        failed=1
        echo "- $name: FAILED"
        tail -n 5 "$work/said" | sed 's/^/      /'
    fi
}

# Ten thousand decoded tokens: the card's memory in use, as its driver tells it, stays what it is after the first second.
check_growth() {
    command -v nvidia-smi >/dev/null || { echo '- 10000 steps without growth: not measured, there is no nvidia-smi'; return; }
    local first='' last='' used
    "$weft" bench --device "$device" -m "$stories" -p 0 -n 500 -r 20 >"$work/said" 2>&1 &
    local steps=$!
    sleep 1
    while kill -0 "$steps" 2>/dev/null; do
        used=$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | head -n 1)
        kill -0 "$steps" 2>/dev/null || break
        last=$used first=${first:-$used}
        sleep 0.2
    done
    if wait "$steps" && [ "${last:-1}" -le "${first:-0}" ]; then
        echo "- 10000 steps without growth: passed, $last MiB in use"
    else
        failed=1
        echo "- 10000 steps without growth: FAILED, ${first:-?} MiB, then ${last:-?}"
    fi
}

checks() {
    check 'the demo model, value by value against the reference' "$weft" verify --device "$device" -m "$stories"
    for folder in "$small" ${GOLDEN:+"$GOLDEN"}; do
        [ ! -x "$tests/golden_models" ] ||
            check "recorded models of $(basename "$(dirname "$folder")")/$(basename "$folder")" \
                "$tests/golden_models" --device "$device" "$folder"
    done
    check_growth
    local sanitizer
    sanitizer=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer) ||
        { echo '- compute-sanitizer: not found'; return; }
    for tool in memcheck racecheck synccheck; do
        check "compute-sanitizer $tool" "$sanitizer" --tool "$tool" --error-exitcode 1 \
            "$weft" eval --device "$device" -m "$small/llama-mha" --ids 1,2,3
    done
}

# The median of a test in what `weft bench --json` printed.
median() { # FILE TEST
    tr '{' '\n' <"$1" | grep -F "\"test\":\"$2\"," | sed -n 's/.*"median_ts":\([0-9.e+]*\).*/\1/p'
}

# Each command once, in the order of the rows: results by the command's number.
measure() {
    local model flags rest last='' n=0
    while IFS='|' read -r model flags rest; do
        # shellcheck disable=SC2254 # a pattern
        case $model in $only) ;; *) continue ;; esac
        if [ "$model $flags" != "$last" ]; then
            last="$model $flags" n=$((n + 1))
            # shellcheck disable=SC2086 # several words
            if ! "$weft" bench --device "$device" --random "$model" $flags -r "$repeat" --json >"$work/$n.json" 2>"$work/$n.said"; then
                failed=1
                sed "s/^/cuda.sh: $model: /" "$work/$n.said" >&2
            fi
        fi
        put_row "$work/$n.json" "$model" "$flags" "$rest"
    done < <(rows)
}

put_row() { # FILE MODEL FLAGS TEST|PEER|LEAST|GOAL
    local test peer least goal speed
    IFS='|' read -r test peer least goal <<<"$4"
    speed=$(median "$1" "$test") || true
    [ -n "$speed" ] || failed=1
    awk -v m="$2" -v t="$test" -v s="$speed" -v p="$peer" -v l="$least" -v g="$goal" -v f="$3" 'BEGIN {
        printf "| %s | %s | %s | %s | %s | %s | %s | `%s` |\n", m, t, s == "" ? "failed" : sprintf("%.0f", s), p,
            s == "" ? "" : sprintf("%.2f", s / p), l (s != "" && s >= l ? " met" : ""), g (g != "" && s != "" && s >= g ? " met" : ""), f }'
}

report() {
    echo '# Weft on a CUDA card'
    echo
    if command -v nvidia-smi >/dev/null; then
        echo "Card: $(nvidia-smi --query-gpu=name,memory.total --format=csv,noheader | head -n 1); driver" \
            "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)."
    else
        echo "Card: ${device}, its name is not known: there is no nvidia-smi."
    fi
    echo "Host: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1) $(uname -m), $(nproc) CPUs. Commit" \
        "$("$weft" version | sed -n 's/^  commit *//p')."
    echo "Made by \`bench/cuda.sh\`; weights and tokens are random, numbers are tokens per second, medians of $repeat."
    echo
    checks
    echo
    echo "| model | test | weft | llama.cpp | ratio | at least | goal | \`weft bench --device $device --random MODEL -r $repeat\` with |"
    echo '|---|---|---|---|---|---|---|---|'
    measure
}

started=$SECONDS
report >"$work/report"
echo >>"$work/report"
echo "All of it took $((SECONDS - started)) s." >>"$work/report"
if [ -n "$result" ]; then cat "$work/report" >"$result"; else cat "$work/report"; fi
exit $failed
