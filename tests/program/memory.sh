#!/bin/bash
# memory.sh WEFT SOURCE_DIR RESIDENT: what `weft plan` and a built program's --info say that a run has in memory besides mapped weights is
# what it has, within 3 %, when a text fills the context.
set -eu
weft=$1 src=$2 resident=$3
model=$src/models/stories-7m
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
for _ in $(seq 21); do # 504 tokens of the 512 that fit
    printf 'Once upon a time there was a little dog who liked to play in the park with a big red ball . '
done >text
bad=0
compare() { # NAME SAID COMMAND...
    local name=$1 said=$2 has rc=0
    shift 2
    has=$("$resident" "$@" -f text -n 8 --temp 0 --ignore-eos 2>messages) || rc=$?
    [ "$rc" != 77 ] || { cat messages; exit 77; }
    [ "$rc" = 0 ] || { cat messages; exit 1; }
    awk -v n="$name" -v s="$said" -v h="$has" 'BEGIN {
        off = (s / h - 1) * 100
        printf "%-28s said %.2f MiB, has %.2f MiB: %+.2f %%\n", n, s / 1048576, h / 1048576, off
        exit !(off >= -3 && off <= 3) }' || bad=1
}
info_says() { # COMMAND...: in bytes
    "$@" --info | awk '$1 == "memory" && / program / { printf "%.0f", $2 * 1048576 }'
}
plan_says() { "$weft" plan -m "$model" --bandwidth 10 --json "$@" | sed -n 's/.*"resident":\([0-9]*\).*/\1/p'; }

compare 'weft run -t 1' "$(plan_says -t 1)" "$weft" run -m "$model" -t 1
"$weft" build -q -m "$model" -o story
compare 'program -t 1' "$(info_says ./story -t 1)" ./story -t 1
# Several threads, with kernels and calls that use all of the memory that each has for itself: those of AMX keep room for longer rows than this model
# has, and calls of 512 rows use less than those of 128.
WEFT_CPU=$([ "$(uname -m)" = x86_64 ] && echo c || echo neon)
export WEFT_CPU
compare 'weft run -t 2 -ub 128' "$(plan_says -t 2 -ub 128)" "$weft" run -m "$model" -t 2 -ub 128
"$weft" build -q -m "$model" -o story -ub 128
compare 'program -t 2 of -ub 128' "$(info_says ./story -t 2)" ./story -t 2
exit $bad
