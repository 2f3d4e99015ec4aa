#!/bin/sh
# cross.sh - the kernel checker, built for the other architecture and run by an emulator.
#
#   cross.sh BUILD_DIR [PATTERN [EMIT]]
#
# On aarch64 it builds for x86_64, and the other way round, with the distribution's cross compiler, and runs the
# program under qemu-user: x86_64 with what the emulator has (AVX2, FMA, F16C), aarch64 with all it has, as an armv8.2 with
# dot products, and as a plain armv8.0 (portable kernels with the first alone). Kernels that it cannot run are named as
# untested; of x86_64 their logic is then checked with the intrinsics in plain C (emulated/). EMIT is check_emit: maps that
# codegen/ makes here for aarch64 are then run there. Exit status 77: the compiler or the emulator is not there.
set -eu
dir=$1
pattern=${2:-}
emit=${3:-}
here=$(cd "$(dirname "$0")" && pwd)

case $(uname -m) in
aarch64 | arm64) arch=x86_64 prefix=x86_64-linux-gnu cpus=max ;;
x86_64 | amd64) arch=aarch64 prefix=aarch64-linux-gnu cpus='max neoverse-n1 cortex-a72' ;;
*)
    echo "kernel_check_cross: skipped: no other architecture is known for $(uname -m)"
    exit 77
    ;;
esac

# the first of some programs that is there
first_of() {
    for name; do
        if command -v "$name" >/dev/null 2>&1; then
            echo "$name"
            return
        fi
    done
}
cc=$(first_of "$prefix-gcc" "$prefix-gcc-14" "$prefix-gcc-13" "$prefix-gcc-12")
qemu=$(first_of "qemu-$arch-static" "qemu-$arch")
for need in "${cc:+there}:$prefix-gcc" "${qemu:+there}:qemu-$arch"; do
    if [ "${need%%:*}" = "" ]; then
        echo "kernel_check_cross: skipped: ${need#*:} is not installed"
        exit 77
    fi
done

mkdir -p "$dir"
emitted=
if [ -n "$emit" ] && [ "$arch" = aarch64 ]; then
    CHECK_OBJECT=$dir/emitted.o CHECK_KEYS=$dir/emitted_keys.h "$emit" map_jit >"$dir/emit.log" || {
        cat "$dir/emit.log"
        exit 1
    }
    emitted=$dir/emitted.o
fi
launcher=$(first_of ccache)
if ! {
    cmake -S "$here/cross" -B "$dir" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=$arch \
        -DCMAKE_C_COMPILER="$cc" -DCMAKE_BUILD_TYPE=Release -DEMITTED="$emitted" \
        ${launcher:+-DCMAKE_C_COMPILER_LAUNCHER="$launcher"} && cmake --build "$dir" -j 2
} >"$dir/log" 2>&1; then
    tail -n 40 "$dir/log"
    echo "kernel_check_cross: $arch: not built"
    exit 1
fi

failed=0 without=
for cpu in $cpus; do
    echo "== $arch, $qemu -cpu $cpu"
    # What an emulator prints about features of a processor that it lacks is no concern of the test.
    "$qemu" -cpu "$cpu" "$dir/check" $without $pattern 2>"$dir/errors" || failed=1
    grep -v "TCG doesn't support requested feature" "$dir/errors" || true
    # Portable kernels ask for no feature: on another processor they are the same instructions.
    [ -n "$pattern" ] || without='--without _c'
done
if [ -n "$emitted" ]; then
    echo "== $arch, generated maps"
    "$qemu" -cpu cortex-a72 "$dir/check_emitted" map_jit 2>>"$dir/errors" || failed=1
fi
# AVX-VNNI, AVX-512 and AMX with their intrinsics in plain C: the logic, not the instructions.
if [ -x "$dir/check_emulated" ]; then
    for variant in avxvnni avx512 amx; do
        case $pattern in '' | *$variant*) ;; *) continue ;; esac
        echo "== $arch, $variant with emulated intrinsics"
        "$qemu" -cpu max "$dir/check_emulated" "${pattern:-$variant}" \
            2>>"$dir/errors" || failed=1
    done
fi
exit $failed
