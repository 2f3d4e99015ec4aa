#!/usr/bin/env bash
# cuda.sh - a CUDA card in a few minutes: is what it computes right, and how fast is it beside llama.cpp on an H200?
#
#     bench/cuda.sh [--only GROUPS] [--models PATTERN] [--repeat N] [--build FOLDER] [RESULT.md]
#
# Prints card, driver, commit and date, what was checked, and a row for each test with the command that made it, and writes the same
# into RESULT.md, line by line: what was measured is there when a run is cut short. The peer's numbers are llama.cpp's of
# August 2026 with flash attention, measured on an H200: on another card they are a yardstick only.
#
#     --only GROUPS     some of these, with commas between them; they run in this order whatever theirs is:
#                         check     the demo model and small recorded models against the reference, memory over 10000 steps
#                         forms     long prompts, experts, state in other forms, adapters, calls that are cancelled
#                         decode    one sequence, contexts of 16 and 512 tokens
#                         batch     8 and 32 sequences
#                         prefill   prompts of 2048 tokens
#                         long      one sequence, 16384 tokens of context
#                         golden    further recorded models, where GOLDEN names their folder
#                         sanitize  compute-sanitizer, where it is found
#     --models PATTERN  those to measure, such as 'llama-1b:*' (all)
#     --repeat N        measurements of a test (5)
#     --build FOLDER    the programs: weft, and golden_models, adapters and cancels in it or in tests/ (build); without one of
#                       these what it checks is left out, which is said
#
# DEVICE is the card (cuda), ROWS a file of other rows, in the form of those below. CHECKED is a folder with weft and libweft_cuda.so
# of a build with WEFT_CUDA_CHECK=ON, for racecheck (kernels/cuda/README.md, Sanitizers).
#
# Ends with 1 if there is no card, or a check or a test fails; a slow row is no failure.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
groups='check forms decode batch prefill long golden sanitize' only='' models='*' repeat=5 build=$here/build result='' device=${DEVICE:-cuda}

help() { sed -n '2,/^set/p' "${BASH_SOURCE[0]}" | sed '$d; s/^# \{0,1\}//'; }
die() { echo "cuda.sh: $*" >&2; exit 2; }
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) help; exit ;;
    --only | --models | --repeat | --build)
        [ $# -ge 2 ] || die "$1 needs a value"
        case $1 in
        --only) only=$2 ;;
        --models) models=$2 ;;
        --repeat) repeat=$2 ;;
        --build) build=$2 ;;
        esac
        shift
        ;;
    -*) die "there is no flag $1; --help lists them" ;;
    *) [ -z "$result" ] || die "one file takes the result, not '$result' and '$1'"; result=$1 ;;
    esac
    shift
done
[[ $repeat =~ ^[1-9][0-9]*$ ]] || die "--repeat is '$repeat', not a number of measurements"
for group in ${only//,/ }; do
    case " $groups " in *" $group "*) ;; *) die "there is no group '$group': $groups" ;; esac
done
chosen() { [ -z "$only" ] || [[ ,$only, == *,$1,* ]]; } # GROUP

weft=$build/weft
# Where a program of the tests is.
program() { if [ -x "$build/$1" ]; then echo "$build/$1"; else echo "$build/tests/$1"; fi; } # NAME
[ -x "$weft" ] || { echo "cuda.sh: $weft cannot be run" >&2; exit 1; }
work=$(mktemp -d) finished=''
ended() {
    rm -rf "$work"
    [ -z "$finished" ] || return 0
    say ''
    say "Cut short after $SECONDS s."
}
# A line of the report.
say() {
    printf '%s\n' "$*"
    [ -z "$result" ] || printf '%s\n' "$*" >>"$result"
}
stories=$here/models/stories-7m small=$here/tests/golden/data

if ! "$weft" eval --device "$device" -m "$stories" --ids 1 >"$work/said" 2>&1; then
    echo "cuda.sh: nothing can be measured: a model does not run with --device $device" >&2
    cat "$work/said" >&2
    rm -rf "$work"
    exit 1
fi
[ -z "$result" ] || : >"$result"
trap ended EXIT
trap 'exit 130' INT TERM HUP

# group|model|flags|test|peer|at least|goal; without `at least` a row is for information
rows() {
    [ -z "${ROWS:-}" ] || { cat "$ROWS"; return; }
    cat <<'ROWS'
decode|llama-1b:BF16|-p 0 -n 128 -d 16|tg128 @ d16|769|1200|1500
decode|llama-1b:BF16|-p 0 -n 128 -d 512|tg128 @ d512|747|971|
decode|llama-1b:Q8_0|-p 0 -n 128 -d 16|tg128 @ d16|820|1600|2500
decode|llama-1b:Q4_K_M|-p 0 -n 128 -d 16|tg128 @ d16|865|1900|3300
decode|llama-1b:Q4_K_M|-p 0 -n 128 -d 512|tg128 @ d512|815|1223|
decode|llama-8b:BF16|-p 0 -n 128 -d 16|tg128 @ d16|209|240|275
decode|llama-8b:Q4_K_M|-p 0 -n 128 -d 16|tg128 @ d16|262|480|700
decode|llama-8b:Q4_K_M|-p 0 -n 128 -d 512|tg128 @ d512|257|386|
decode|llama-8b:Q8_0|-p 0 -n 128 -d 512|tg128 @ d512|247|321|
batch|llama-1b:BF16|-p 0 -n 128 -d 512 -np 8,32|tg128 x8 @ d512|4005|5207|
batch|llama-1b:BF16|-p 0 -n 128 -d 512 -np 8,32|tg128 x32 @ d512|11208|14570|
batch|llama-1b:BF16|-p 0 -n 128 -d 512 -np 32 --exact|tg128 x32 @ d512|11208||
batch|llama-1b:Q4_K_M|-p 0 -n 128 -d 512 -np 8,32|tg128 x8 @ d512|2906|5812|
batch|llama-1b:Q4_K_M|-p 0 -n 128 -d 512 -np 8,32|tg128 x32 @ d512|8414|12621|
batch|llama-8b:Q4_K_M|-p 0 -n 128 -d 512 -np 8,32|tg128 x8 @ d512|745|2800|4800
batch|llama-8b:Q4_K_M|-p 0 -n 128 -d 512 -np 8,32|tg128 x32 @ d512|3087|4631|
batch|llama-8b:Q8_0|-p 0 -n 128 -d 512 -np 8,32|tg128 x8 @ d512|1051|1682|
batch|llama-8b:Q8_0|-p 0 -n 128 -d 512 -np 8,32|tg128 x32 @ d512|3078|4001|
prefill|llama-1b:BF16|-p 2048 -n 0 -ub 2048|pp2048|91315|91000|130000
prefill|llama-8b:BF16|-p 2048 -n 0 -ub 2048|pp2048|25330|25000|35000
prefill|llama-1b:BF16|-p 2048 -n 0 -ub 2048 --exact|pp2048|91315||
prefill|llama-8b:BF16|-p 2048 -n 0 -ub 2048 --exact|pp2048|25330||
prefill|llama-1b:BF16|-p 2048 -n 0 -ub 2048 --round-bf16|pp2048|91315|91000|130000
prefill|llama-8b:BF16|-p 2048 -n 0 -ub 2048 --round-bf16|pp2048|25330|25000|35000
prefill|llama-8b:Q4_K_M|-p 2048 -n 0 -ub 2048|pp2048|9764|18000|29000
long|llama-1b:BF16|-p 0 -n 128 -d 16384|tg128 @ d16384|636|827|
long|llama-1b:Q4_K_M|-p 0 -n 128 -d 16384|tg128 @ d16384|690|1035|
long|llama-8b:Q4_K_M|-p 0 -n 128 -d 16384|tg128 @ d16384|213|320|
long|llama-8b:Q8_0|-p 0 -n 128 -d 16384|tg128 @ d16384|205|267|
ROWS
}

failed=0
# The first lines of a file, which say what is wrong as a rule, and the last.
ends() { # FILE
    if [ "$(wc -l <"$1")" -le 12 ]; then cat "$1"; else head -n 8 "$1"; echo '...'; tail -n 4 "$1"; fi
}

# check NAME COMMAND...: a line of what was checked.
check() {
    local name=$1
    shift
    if "$@" >"$work/said" 2>&1; then
        say "- $name: passed"
    else
        failed=1
        say "- $name: FAILED"
        say "$(ends "$work/said" | sed 's/^/      /')"
    fi
}

# check_by PROGRAM NAME ARGUMENTS...: a program of the tests, whose lines are said as they come.
check_by() {
    local by name=$2 line
    by=$(program "$1")
    shift 2
    [ -x "$by" ] || { say "- $name: not checked, there is no $by"; return; }
    say "- $name:"
    if "$by" --device "$device" "$@" 2>&1 | while read -r line; do say "      ${line/"$here/"/}"; done; then
        say "- $name: passed"
    else
        failed=1
        say "- $name: FAILED"
    fi
}

# check_golden FOLDER [FLAGS...]: recorded models.
check_golden() {
    local folder=$1
    shift
    check_by golden_models "recorded models of $(basename "$(dirname "$folder")")/$(basename "$folder")${*:+ with $*}" "$@" "$folder"
}

# Ten thousand decoded tokens: the card's memory in use, as its driver tells it, stays what it is after the first second.
check_growth() {
    command -v nvidia-smi >/dev/null || { say '- 10000 steps without growth: not measured, there is no nvidia-smi'; return; }
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
        say "- 10000 steps without growth: passed, $last MiB in use"
    else
        failed=1
        say "- 10000 steps without growth: FAILED, ${first:-?} MiB, then ${last:-?}"
    fi
}

check_first() {
    check 'the demo model, value by value against the reference' "$weft" verify --device "$device" -m "$stories"
    check_golden "$small"
    check_golden "$small" --round none
    check_growth
}

check_forms() {
    local ids kv
    ids=$(seq -s, 3 5 1998)
    check 'a prompt of 400 tokens in one call' "$weft" verify --device "$device" -m "$stories" --ids "$ids" -n 400 -ub 512
    check 'the same, with all bits of activations' "$weft" verify --device "$device" -m "$stories" --ids "$ids" -n 400 -ub 512 --exact
    check 'the same, rounded to bf16' "$weft" verify --device "$device" -m "$stories" --ids "$ids" -n 400 -ub 512 --round-bf16
    ids=$(seq -s, 1 3 480)
    for kv in Q4_K Q8_0 F32; do
        check "experts of $kv" "$weft" verify --device "$device" --random "tiny-mixtral:$kv" --ids "$ids" -n 160 -ub 160
    done
    for kv in q8 q4; do check_golden "$small" --kv "$kv" --skip gemma2; done
    check_golden "$small" --kv 'f16 last=8, q8 last=20, q4 rest' --skip gemma2,gpt_oss
    check_by adapters 'adapters' "$small/llama-mha" "$small/lora-llama" "$small/lora-mix-b"
    check_by cancels 'calls that are cancelled' 300 "$stories"
}

# Racecheck follows all calls of a build that was made for it, of others those of a few rows (kernels/cuda/README.md, Sanitizers).
check_sanitizer() {
    local sanitizer tool rows model by=$weft
    sanitizer=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer) ||
        { say '- compute-sanitizer: not found'; return; }
    sanitized() { # TOOL MODEL ROWS FLAGS..
        check "compute-sanitizer $1, $2, $3 rows${4:+ and some of one}${WEFT_NVRTC:+, NVRTC $WEFT_NVRTC}" "$sanitizer" --tool "$1" \
            --error-exitcode 1 "$by" eval --device "$device" -m "$small/$2" --ids "$(seq -s, 3 $(($3 + 2)))" "${@:4}"
    }
    for tool in memcheck synccheck; do
        for rows in 3 80; do sanitized $tool llama-mha $rows --greedy 3; done # calls of few rows and of many; then of one
    done
    if [ -z "${CHECKED:-}" ]; then
        sanitized racecheck llama-mha 3
        say '- compute-sanitizer racecheck, calls of one row and of many: not checked, CHECKED names no build'
        return
    fi
    by=$CHECKED/weft
    local -x WEFT_CUDA=$CHECKED/libweft_cuda.so
    sanitized racecheck llama-mha 3 --greedy 3
    local -x WEFT_NVRTC=off # the image of all kernels
    for model in llama-mha gemma2 gpt_oss; do
        for rows in 3 80; do sanitized racecheck $model $rows --greedy 3; done
    done
}

# The median of a test in what `weft bench --json` printed.
median() { # FILE TEST
    tr '{' '\n' <"$1" | grep -F "\"test\":\"$2\"," | sed -n 's/.*"median_ts":\([0-9.e+]*\).*/\1/p'
}

# The rows of a group: each command once, then the rows that it measures.
measure() { # GROUP
    local group model flags rest last='' out=$work/measured
    while IFS='|' read -r group model flags rest; do
        [ "$group" = "$1" ] || continue
        # shellcheck disable=SC2254 # a pattern
        case $model in $models) ;; *) continue ;; esac
        if [ "$model $flags" != "$last" ]; then
            last="$model $flags"
            # shellcheck disable=SC2086 # several words
            if ! "$weft" bench --device "$device" --random "$model" $flags -r "$repeat" --json >"$out" 2>"$work/said" </dev/null; then
                failed=1
                sed "s/^/cuda.sh: $model: /" "$work/said" >&2
            fi
        fi
        put_row "$out" "$model" "$flags" "$rest"
    done < <(rows)
}

put_row() { # FILE MODEL FLAGS TEST|PEER|LEAST|GOAL
    local test peer least goal speed
    IFS='|' read -r test peer least goal <<<"$4"
    speed=$(median "$1" "$test") || true
    [ -n "$speed" ] || failed=1
    say "$(awk -v m="$2" -v t="$test" -v s="$speed" -v p="$peer" -v l="$least" -v g="$goal" -v f="$3" 'BEGIN {
        printf "| %s | %s | %s | %s | %s | %s | %s | `%s` |", m, t, s == "" ? "failed" : sprintf("%.0f", s), p,
            s == "" ? "" : sprintf("%.2f", s / p), l (l != "" && s != "" && s >= l ? " met" : ""), g (g != "" && s != "" && s >= g ? " met" : ""), f }')"
}

put_head() {
    say '# Weft on a CUDA card'
    say ''
    if command -v nvidia-smi >/dev/null; then
        say "Card: $(nvidia-smi --query-gpu=name,memory.total --format=csv,noheader | head -n 1); driver" \
            "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)."
    else
        say "Card: ${device}, its name is not known: there is no nvidia-smi."
    fi
    say "Host: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1) $(uname -m), $(nproc) CPUs. Commit" \
        "$("$weft" version | sed -n 's/^  commit *//p'). $(date -u '+%-d %B %Y')."
    say "Made by \`bench/cuda.sh${only:+ --only $only}\`; weights and tokens are random, numbers are tokens per second, medians of $repeat."
    say ''
}

# The table's head, once, before its first rows; and an empty line behind it.
table=''
begin_table() {
    [ -z "$table" ] || return 0
    table=open
    say ''
    say "| model | test | weft | llama.cpp | ratio | at least | goal | \`weft bench --device $device --random MODEL -r $repeat\` with |"
    say '|---|---|---|---|---|---|---|---|'
}
end_table() {
    [ "$table" = open ] || return 0
    table=closed
    say ''
}

put_head
for group in $groups; do
    chosen "$group" || continue
    case $group in
    check) check_first ;;
    forms) check_forms ;;
    golden) end_table; [ -z "${GOLDEN:-}" ] || check_golden "$GOLDEN" ;;
    sanitize) end_table; check_sanitizer ;;
    *) begin_table; measure "$group" ;;
    esac
done
finished=yes
say ''
say "All of it took $SECONDS s."
exit $failed
