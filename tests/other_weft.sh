#!/bin/sh
# other_weft.sh BUILD_DIR SOURCE_DIR: Weft and the runtime of programs for the other architecture, built with the distribution's cross
# compiler for the tests that run them in an emulator. They share BUILD_DIR and hold ctest's lock of it.
# Exit status 77: a compiler, a library or the emulator is not there.
set -eu
build=$1 src=$2
case $(uname -m) in
aarch64 | arm64) other=x86_64 ;;
x86_64 | amd64) other=aarch64 ;;
*) echo "skipped: no other architecture is known for $(uname -m)"; exit 77 ;;
esac
skip() { echo "skipped: $*"; exit 77; }
first_of() {
    for name; do command -v "$name" && return; done
    return 1
}
cc=$(first_of "$other-linux-gnu-gcc" "$other-linux-gnu-gcc-14" "$other-linux-gnu-gcc-13" "$other-linux-gnu-gcc-12") ||
    skip "no $other-linux-gnu-gcc"
first_of "qemu-$other-static" "qemu-$other" >/dev/null || skip "no qemu-$other"
# What Weft cannot do without, of that architecture.
export PKG_CONFIG_LIBDIR="/usr/lib/$other-linux-gnu/pkgconfig"
for library in libpcre2-8 libutf8proc libcjson; do
    pkg-config --exists $library || skip "no $library for $other"
done

launcher=$(first_of ccache) || true
generator=$(first_of ninja >/dev/null && echo Ninja || echo 'Unix Makefiles')
mkdir -p "$build"
if ! {
    cmake -G "$generator" -S "$src" -B "$build" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$other" \
        -DCMAKE_C_COMPILER="$cc" -DCMAKE_BUILD_TYPE=Release -DWEFT_LLVM=OFF -DWEFT_CUDA=OFF -DWEFT_TESTS=OFF -DWEFT_BENCH=OFF \
        ${launcher:+-DCMAKE_C_COMPILER_LAUNCHER="$launcher"} &&
        cmake --build "$build" -j 2 --target weft weft_core weft_program
} >"$build/log" 2>&1; then
    tail -n 40 "$build/log" >&2
    echo "$other: not built" >&2
    exit 1
fi
