#!/usr/bin/env bash
# run.sh GOLDEN WEFT ROOT - architectures that are not in the library, each added by one .weft file: its models
# (make.py) give the reference's values in every way golden.c knows, and a bias line left out is W0505.
set -u
golden=$1 weft=$2 root=$3
here=$root/tests/arch
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

# The finished file of the tutorial is the last one in it.
awk '/^```weft$/ { text = ""; on = 1; next } /^```$/ { on = 0 } on { text = text $0 "\n" } END { printf "%s", text }' \
    "$root/models/README.md" >"$work/gpt_neox.weft"
cp "$root/tests/dsl/arch/stablelm.weft" "$root/tests/dsl/arch/falcon.weft" "$here/gpt2.weft" "$work"

for arch in gpt_neox stablelm falcon gpt2; do
    "$weft" check "$work/$arch.weft" || bad=1
    for case in "$here/data/$arch"/*/; do # none of them is known without the file
        "$weft" check -m "$case" 2>&1 | grep -q 'error\[W0801\]' || { echo "$case: not W0801"; bad=1; }
    done
    for case in "$here/data/$arch"/*/; do # every key that matters is read, or its value harmless
        said=$("$weft" check "$work/$arch.weft" -m "$case" 2>&1)
        [ -z "$said" ] || { echo "$said"; bad=1; }
    done
    "$golden" --arch "$work/$arch.weft" "$here/data/$arch" || bad=1
done

# GGUF keeps in one tensor what the file takes apart: written there and read back it is the same model.
for arch in gpt_neox falcon; do
    for case in "$here/data/$arch"/*/; do
        to=$work/gguf/$arch/$(basename "$case")
        mkdir -p "$to"
        cp "$case"/* "$to"
        "$weft" quantize -q --arch "$work/$arch.weft" "$to" "$to/model-f32.gguf" F32 2>"$work/said" ||
            { cat "$work/said"; bad=1; }
    done
    "$golden" --arch "$work/$arch.weft" "$work/gguf/$arch" >"$work/said" || bad=1
    grep -q '^4 passed, 0 failed' "$work/said" || { cat "$work/said"; bad=1; }
done

# without ARCH CASE SED WANTED: the file edited so must be refused with this code and these words.
without() {
    sed "$3" "$work/$1.weft" >"$work/less.weft"
    cmp -s "$work/$1.weft" "$work/less.weft" && { echo "$1: $3 changes nothing"; bad=1; }
    "$weft" check "$work/less.weft" -m "$here/data/$1/$2" >"$work/said" 2>&1 && { echo "$1: $3 was accepted"; bad=1; }
    grep -qF "$4" "$work/said" || { echo "$1 without its line ($3) says:"; cat "$work/said"; bad=1; }
}
without gpt_neox parallel '/linear *down_proj/s/ bias / /' 'error[W0505]: 2 tensors in the file are claimed by no weight'
without gpt_neox parallel '/linear *down_proj/s/ bias / /' \
    'gpt_neox.layers.0.mlp.dense_4h_to_h.bias and 1 like it; add `bias` here, or `ignore hf "gpt_neox.layers.*.mlp.dense_4h_to_h.bias"`'
without stablelm plain '/linear *[qkv]_proj/s/ bias?//' 'error[W0505]: 6 tensors in the file are claimed by no weight'
without gpt2 plain '/pos_embd (/d; s/ + pos_embd(pos)//' 'error[W0505]: 1 tensor in the file is claimed by no weight'
exit $bad
