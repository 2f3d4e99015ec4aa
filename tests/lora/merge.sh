#!/usr/bin/env bash
# merge.sh WEFT GOLDEN FOLDER - adapters merged into weights give the recorded values of PEFT.
#
# Every adapter of FOLDER is merged into its base, a Hugging Face folder and each GGUF file beside it, by way of its own
# format and converted to GGUF and back; all of them have the same numbers, and the model computes what PEFT recorded.
# Exit status 77: no such folder.
set -euo pipefail
weft=$1 golden=$2 folder=$3
[ -d "$folder" ] || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0

fail() { echo "merge.sh: $*"; exit 1; }
merge() { "$weft" lora merge -q --type F32 "$@" 2>"$work/said" || { cat "$work/said"; fail "merge $*"; }; }
convert() { "$weft" lora convert -q "$@" 2>"$work/said" || { cat "$work/said"; fail "convert $*"; }; }

for adapter in "$folder"/lora-*/; do
    adapter=${adapter%/}
    name=$(basename "$adapter")
    base=$folder/$(sed -n 's/.*"base_model_name_or_path": "\(.*\)".*/\1/p' "$adapter/adapter_config.json")
    case=$work/cases/$(basename "$base")
    if [ ! -d "$case" ]; then
        mkdir -p "$case"
        cp "$base"/{config.json,model.safetensors,expected.safetensors} "$case"
    fi
    for model in "$base" "$base"/model-*.gguf; do
        [ -e "$model" ] || continue
        kind=hf
        [ -d "$model" ] || kind=$(basename "$model" .gguf)
        n=$((n + 1))
        out=$case/model-$name-$kind.gguf
        cp "$adapter/expected.safetensors" "$case/expected-$name-$kind.safetensors"
        merge -m "$model" --lora "$adapter" -o "$out"
        # the other format, made for this checkpoint; and the way back
        convert "$adapter" -m "$model" -o "$work/there.gguf"
        convert "$work/there.gguf" -m "$model" -o "$work/back"
        for other in there.gguf back; do
            merge -m "$model" --lora "$work/$other" -o "$work/other.gguf"
            cmp "$out" "$work/other.gguf" || fail "$name on $kind: $other is another adapter"
        done
        for path in "$adapter" "$work/back"; do
            "$weft" lora show --json "$path" | sed 's/.*"pairs"//' >"$work/$(basename "$path").json"
        done
        cmp "$work/$name.json" "$work/back.json" || fail "$name on $kind: there and back is another adapter"
        rm -rf "$work/back"
    done
done
[ "$n" -gt 0 ] || fail "there is no adapter in $folder"
"$golden" --exec ref "$work/cases"
