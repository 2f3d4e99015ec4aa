#!/bin/bash
# cross.sh WEFT SOURCE_DIR BUILD_DIR: programs for the other architecture, in both directions.
#
# BUILD_DIR has Weft for the other architecture (../other_weft.sh). This machine's Weft makes a program for that architecture,
# which runs in an emulator; and that one's Weft, in the emulator, makes a program for this machine: the same bytes as this machine's Weft makes.
# Exit status 77: a compiler, a library or the emulator is not there.
set -eu
weft=$1 src=$2 build=$3
model=$src/models/stories-7m
here=$(uname -m)
other=$([ "$here" = x86_64 ] && echo aarch64 || echo x86_64)
fail() { echo "$*" >&2; exit 1; }
skip() { echo "skipped: $*"; exit 77; }
first_of() { for name; do command -v "$name" && return; done; }
"$src/tests/other_weft.sh" "$build" "$src"
qemu=$(first_of "qemu-$other-static" "qemu-$other")

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
prompt='Once upon a time'
want=$("$weft" run -m "$model" -p "$prompt" -n 20 --temp 0)

# ---- made here, for there ----
if ! "$weft" build -q -m "$model" -o foreign --target "$other-linux-gnu" --runtime "$build/lib/weft" 2>said; then
    grep -q 'error\[W1703\]' said && skip "$(cat said)"
    fail "$other: $(cat said)"
fi
[ "$("$qemu" ./foreign -p "$prompt" -n 20 --temp 0)" = "$want" ] || fail "another text on $other"
if [ "$other" = aarch64 ]; then # a processor without dotprod and i8mm
    "$qemu" -cpu cortex-a53 ./foreign --info | grep -q '^levels     neon (used here)' || fail "cortex-a53: another plan"
    "$weft" build -q -m "$model" -o foreign --target aarch64-linux-gnu --cpu i8mm --runtime "$build/lib/weft"
    if "$qemu" -cpu cortex-a53 ./foreign -n 1 2>said; then fail "ran without i8mm"; fi
    grep -q 'error\[W1602\].*lacks.*i8mm' said || fail "cortex-a53: $(cat said)"
fi

# ---- made there, for here ----
for cpu in baseline "$([ "$here" = x86_64 ] && echo avx2,amx || echo dotprod)"; do
    "$qemu" "$build/weft" build -q -m "$model" -o there --target "$here-linux-gnu" --cpu "$cpu" --code none --runtime "$(dirname "$weft")/lib/weft"
    "$weft" build -q -m "$model" -o here --cpu "$cpu" --code none
    cmp there here || fail "--cpu $cpu: other bytes when built on $other"
done
./there --version >/dev/null || fail "it does not run"
