#!/usr/bin/env bash
# convert.sh WEFT GOLDEN NEAR FOLDER - Hugging Face checkpoints into GGUF files that compute the same.
#
# Every case of FOLDER becomes f32, f16 and bf16 (which hold its weights exactly) and must give the recorded values;
# fewer bits move them as far as these allow. A file made of the f32 file has the bytes of one made of the folder, for any
# number of threads. Cases with a setting that GGUF has no key for are refused by name. Exit status 77: no such folder.
set -euo pipefail
weft=$1 golden=$2 near=$3 folder=$4
[ -d "$folder" ] || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/exact"
refused=' gemma2 gpt_oss ' # the query's scale; the clamp and the untruncated ramp
routed=' mixtral deepseek_v3 ' # another expert for one row, and all is different
declare -A most=([q8_0]=0.05 [q4_k_m]=0.4 [q4_0]=0.6) # random weights: nothing averages out
n=0

fail() { echo "convert.sh: $*"; exit 1; }

for case in "$folder"/*/; do
    name=$(basename "$case")
    [ -e "$case/config.json" ] && [ -e "$case/model.safetensors" ] || continue
    [ -e "$case/expected.safetensors" ] || continue
    n=$((n + 1))
    if [[ $refused == *" $name "* ]]; then
        status=0
        "$weft" quantize "$case" "$work/no.gguf" F32 2>"$work/said" || status=$?
        [ "$status" = 1 ] || fail "$name: exit status $status, expected 1"
        grep -q 'error\[W1016\]' "$work/said" || { cat "$work/said"; fail "$name: W1016 was expected"; }
        [ ! -e "$work/no.gguf" ] || fail "$name: a file was written all the same"
        continue
    fi
    mkdir "$work/exact/$name"
    cp "$case"/{config.json,model.safetensors,expected.safetensors} "$work/exact/$name"
    for type in f32 f16 bf16; do
        "$weft" quantize -q "$case" "$work/exact/$name/model-$type.gguf" $type
    done
    for type in q8_0 q4_k_m q4_0; do
        "$weft" quantize -q -t 1 "$case" "$work/a.gguf" $type
        "$weft" quantize -q -t 3 "$work/exact/$name/model-f32.gguf" "$work/b.gguf" $type
        cmp "$work/a.gguf" "$work/b.gguf" || fail "$name: $type differs by the way it was made"
        [[ $routed == *" $name "* ]] || "$near" "$case" "$work/a.gguf" "${most[$type]}"
    done
done
[ "$n" -gt 0 ] || fail "there is no case in $folder"
"$golden" --exec ref "$work/exact"
