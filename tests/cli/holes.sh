#!/usr/bin/env bash
# holes.sh WEFT MODEL [sanitized] - files that are mostly a hole: huge, and free to make.
#
# What they claim is inside the file, so only limits refuse it: an error with its code in SECONDS_MAX of processor
# time, no crash. A sanitized build is slow: the time is left out.
set -euo pipefail

SECONDS_MAX=4
WALL_MAX=100

weft=$1 model=$2
limited=yes
[ "${3:-}" != sanitized ] || limited=
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Numbers as GGUF stores them.
number() { local x=$1 i; for ((i = 0; i < $2; i++)); do printf "\\x$(printf %x $((x & 255)))"; x=$((x >> 8)); done; }
u32() { number "$1" 4; }
u64() { number "$1" 8; }
text() { u64 ${#1}; printf %s "$1"; }
key() { text "$1"; u32 8; text "$2"; }
begin() { printf GGUF; u32 3; u64 "$1"; u64 "$2"; } # TENSORS KEYS
list() { text "$1"; u32 9; u32 "$2"; u64 "$3"; }   # NAME TYPE ITEMS

STRING=8 BOOL=7 I32=5
tokenizer() { # FAMILY BYTES: a vocabulary of one long token
    begin 0 2
    key tokenizer.ggml.model "$1"
    list tokenizer.ggml.tokens $STRING 1
    u64 "$2"
}

begin 0 1 >bools.gguf
list flags $BOOL $((16 << 30)) >>bools.gguf
tokenizer llama $((5 << 30)) >token_5g.gguf
tokenizer llama $((10 << 20)) >token_10m.gguf
tokenizer t5 $((40 << 20)) >token_40m.gguf
{
    begin 0 4
    key tokenizer.ggml.model llama
    list tokenizer.ggml.token_type $I32 40000
    # shellcheck disable=SC2046
    printf '\3\0\0\0%.0s' $(seq 40000)
    list tokenizer.ggml.tokens $STRING 40000
} >name.gguf
truncate -s "+$((8 * 40000))" name.gguf # that many texts of no length
{
    text general.name
    u32 8
    u64 $((16 << 20))
} >>name.gguf
{
    begin 2 1
    key general.type imatrix
    for tensor in in_sum2 counts; do
        columns=$((1 << 30)) at=0
        [ $tensor = in_sum2 ] || { columns=1 at=$((1 << 34)); }
        text a.$tensor
        u32 2
        u64 $columns
        u64 4
        u32 0
        u64 $at
    done
} >importance.gguf

failed=0
n=0
# attempt CODE SIZE FILE VERB ARGUMENTS..: FILE gets SIZE bytes
attempt() {
    local code=$1 size=$2 file=$3 status=0
    shift 3
    truncate -s "$size" "$file" 2>/dev/null || { echo "no file of $size bytes here: $file is left out"; return; }
    n=$((n + 1))
    (
        [ -z "$limited" ] || ulimit -t "$SECONDS_MAX"
        ulimit -c 0
        exec timeout -k 1 "$WALL_MAX" "$weft" "$@"
    ) </dev/null >out 2>err || status=$?
    if [ "$status" != 1 ] || ! grep -q "error\[$code\]" err; then
        failed=1
        echo "FAILED: weft $* exited with $status, expected 1 and $code"
        cat err
    fi
}

attempt W1105 20G bools.gguf show bools.gguf
attempt W1105 6G token_5g.gguf tokenize -m token_5g.gguf hello
attempt W1209 11M token_10m.gguf tokenize -m token_10m.gguf hello
attempt W1209 41M token_40m.gguf tokenize -m token_40m.gguf hello
attempt W1203 18M name.gguf tokenize -m name.gguf hello
attempt W1105 20G importance.gguf quantize "$model" out.gguf Q8_0 --imatrix importance.gguf
echo "$n runs"
exit "$failed"
