#!/usr/bin/env bash
# made.sh WEFT SOURCES FAKES: the program on the tests' card with kernels made for plans, by the compiler of the tests: the same words
# as with the kernels of all plans, with quantised weights and with an adapter; and it says which kernels it used.
set -euo pipefail
weft=$(realpath "$1") sources=$(realpath "$2") fakes=$(realpath "$3")
models=$sources/models
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache LD_LIBRARY_PATH=$fakes WEFT_CUDA=$fakes/libweft_cuda.so WEFT_FAKE_THREADS=32 TMPDIR=$work
cd "$work"

made() { WEFT_NVRTC=$fakes/libfake_nvrtc.so "$weft" "$@"; }
all() { WEFT_NVRTC=off "$weft" "$@"; }
fail() { echo "made.sh: $*" >&2; exit 1; }

"$weft" quantize -q "$models/stories-7m" small.gguf Q4_K_M
"$weft" quantize -q "$models/stories-7m" small8.gguf Q8_0
for model in small.gguf small8.gguf "$models/stories-7m --lora $models/stories-7m-pirate"; do
    # shellcheck disable=SC2086 # several words
    all run --device cuda -m $model -p 'Once upon a time' -n 4 --temp 0 >want
    for time in first cached; do
        # shellcheck disable=SC2086
        made run --device cuda -m $model -p 'Once upon a time' -n 4 --temp 0 >got 2>said
        cmp -s want got || fail "$model, $time: '$(cat got)', the kernels of all plans say '$(cat want)'"
        [ ! -s said ] || fail "$model, $time: $(cat said)"
    done
done
# Each phase by itself, with steps that in other launches meet the gate of their phase.
made verify --device cuda -m small.gguf -n 4 >said 2>&1 || fail "verify: $(cat said)"
all run --device cuda -m small.gguf -p 'Once upon a time' -n 4 --temp 0 >want.gguf
[ "$(find cache/weft/code -type f | wc -l)" = 3 ] || fail "kept: $(ls cache/weft/code)"

made bench --device cuda -m small.gguf -p 4 -n 1 -r 1 --json >said
grep -q '"exec":"made"' said || fail "bench: $(cat said)"
all bench --device cuda -m small.gguf -p 4 -n 1 -r 1 --json >said
grep -q '"exec":"plan"' said || fail "bench: $(cat said)"
made profile --device cuda -m small.gguf -p 4 -n 2 >said
grep -q 'for few rows made for this plan' said || fail "profile: $(cat said)"
made version >said
grep -q "nvrtc .*libfake_nvrtc.so" said || fail "version: $(cat said)"
all version >said
grep -q 'nvrtc .*off, by WEFT_NVRTC' said || fail "version: $(cat said)"

# A library that is none, or that is not there: said, and the kernels of all plans do it.
for library in "$fakes/libcuda.so.1" "$work/none.so"; do
    WEFT_NVRTC=$library "$weft" run --device cuda -m small.gguf -p 'Once upon a time' -n 4 --temp 0 >got 2>said
    grep -q 'warning\[W1613\]' said || fail "$library: $(cat said)"
    cmp -s got want.gguf || fail "$library: $(cat got)"
done
