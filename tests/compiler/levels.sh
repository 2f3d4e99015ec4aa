#!/bin/sh
# levels.sh - what is planned here for the other architecture is what Weft plans there.
#
#   levels.sh BUILD_DIR OTHER_DIR WEFT SOURCE_DIR MODEL..
#
# OTHER_DIR has Weft for the other architecture (../other_weft.sh). Runs it under qemu-user as several processors, and compares
# the plans that it makes for those with what `weft graph --target --level` makes here: kernels, sizes, memory, every field. Then
# what it plans for this architecture with what is planned here. Exit status 77: the compiler, the emulator or a library of the
# other architecture is not there.
set -eu
dir=$1 other=$2 weft=$3 source=$4
shift 4

# processor:level that WEFT_CPU names, or its best:level that is planned for
case $(uname -m) in
aarch64 | arm64) arch=x86_64 here='aarch64-linux-gnu neon fhm dotprod i8mm bf16' runs='max::avx2 max:c:c' ;;
x86_64 | amd64) arch=aarch64 here='x86_64-linux-gnu avx2 avxvnni avx512 amx' runs='cortex-a72::neon neoverse-n1::dotprod max:fhm:fhm max:i8mm:i8mm max::bf16 max:c:c' ;;
*)
    echo "plan_levels: skipped: no other architecture is known for $(uname -m)"
    exit 77
    ;;
esac
target=$arch-linux-gnu
qemu=$(command -v "qemu-$arch-static" || command -v "qemu-$arch" || true)
"$source/tests/other_weft.sh" "$other" "$source"
mkdir -p "$dir"

failed=0
# same WHAT: the plans in own and planned
same() {
    if cmp "$dir/own" "$dir/planned"; then
        echo "same: $1, $(wc -c <"$dir/own") bytes"
    else
        failed=1
    fi
}
# there CPU CAP ARGUMENTS: Weft of the other architecture
there() {
    cpu=$1 cap=$2
    shift 2
    WEFT_CPU=$cap "$qemu" -cpu "$cpu" "$other/weft" "$@" >"$dir/own" 2>"$dir/errors" || {
        grep -v "TCG doesn't support requested feature" "$dir/errors" || true
        failed=1
    }
}

# Quantised weights have kernels of their own.
"$weft" quantize -q "$1" "$dir/q4.gguf" Q4_K_M
"$weft" quantize -q "$1" "$dir/q8.gguf" Q8_0
for model in "$dir/q4.gguf" "$dir/q8.gguf" "$@"; do
    plan="graph -m $model --stage plan --format json"
    name=$(basename "$model")
    for run in $runs; do
        level=${run##*:} cap=${run#*:}
        there "${run%%:*}" "${cap%:*}" $plan
        "$weft" $plan --target $target --level "$level" >"$dir/planned"
        same "$name, $level kernels as ${run%%:*} chooses them"
    done
    for level in ${here#* }; do
        there max '' $plan --target "${here%% *}" --level "$level"
        "$weft" $plan --target "${here%% *}" --level "$level" >"$dir/planned"
        same "$name, $level kernels planned on $arch"
    done
done
exit $failed
