#!/usr/bin/env bash
# check_library.sh MODELS WEFT - every file of the library is clean, formatted, short and documented.
set -u
models=$1
weft=$2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
bad=0
fail()
{
    bad=$((bad + 1))
    echo "$1"
}

# The library as it stands in the tree, not the copy compiled into the program.
export WEFT_PATH=$models
n=0
for file in "$models"/*.weft "$models"/std/*.weft; do
    n=$((n + 1))
    name=${file#"$models"/}
    if ! "$weft" check "$file" >"$log" 2>&1 || [ -s "$log" ]; then
        fail "$name: does not check clean"
        sed 's/^/    /' "$log"
    fi
    "$weft" fmt --check "$file" >"$log" 2>&1 || fail "$name: not in the layout of weft fmt"
    awk 'length($0) > 120 { exit 1 }' "$file" || fail "$name: has a line of more than 120 columns"
    grep -q "\`$name\`" "$models/README.md" || fail "$name: has no line in README.md"
    case $name in
    deepseek_v3.weft) max=115 ;;
    std/*) max=100 ;;
    *) max=90 ;;
    esac
    lines=$(wc -l <"$file")
    [ "$lines" -lt "$max" ] || fail "$name: $lines lines; keep it under $max"
    case $name in
    std/*) ;;
    *) grep -q '^ *output resid\[l\]\[T\] = x' "$file" || fail "$name: exposes no resid[l]" ;;
    esac
done
for want in llama qwen2 qwen3 qwen3moe phi3 gemma2 gemma3 granite smollm3 mixtral olmo2 gpt_oss deepseek_v3 \
    std/prelude std/rope std/ffn std/moe std/mla std/alibi; do
    [ -f "$models/$want.weft" ] || fail "$want.weft is missing"
done
echo "$n files, $bad complaints"
[ $bad -eq 0 ]
