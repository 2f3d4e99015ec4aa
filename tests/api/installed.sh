#!/usr/bin/env bash
# Installs Weft into fresh folders and uses it as a stranger would, with the files as they were installed:
# pkg-config, CMake, shared and static, C and C++.
#   installed.sh BUILD SOURCE CC
set -euo pipefail
build=$1 source=$2 cc=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() { echo "installed.sh: $*" >&2; exit 1; }
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; die "failed: $*"; }; }

libdir_of() { dirname "$(find "$1" \( -name 'libweft.so' -o -name 'libweft.dylib' \) -print -quit)"; }
model=$source/models/stories-7m
story="Once upon a time"
example=$source/runtime/api/example.c
strict='-Wall -Wextra -Wpedantic -Werror'

# The prefix is chosen when installing; with DESTDIR; and the tree may be moved afterwards.
quietly cmake --install "$build" --prefix "$work/first"
quietly env DESTDIR="$work/stage" cmake --install "$build" --prefix /opt/weft
[ -f "$work/stage/opt/weft/include/weft.h" ] || die "DESTDIR is not honoured"
cp -R "$work/first" "$work/copy"
mv "$work/copy" "$work/moved"
for place in first stage/opt/weft moved; do
    libdir=$(libdir_of "$work/$place")
    export PKG_CONFIG_PATH=$libdir/pkgconfig
    grep -q "$work" "$libdir/pkgconfig/weft.pc" "$libdir"/cmake/weft/*.cmake && die "a path is written into the files of $place"
    # shellcheck disable=SC2046
    $cc -std=c11 $strict "$example" $(pkg-config --cflags --libs weft) -o "$work/example" ||
        die "pkg-config does not find what is in $place"
    LD_LIBRARY_PATH=$libdir "$work/example" "$model" "$story" >"$work/text" 2>"$work/says" ||
        { cat "$work/says"; die "the example failed in $place"; }
    grep -q '^, there was a little girl named Lily\.' "$work/text" || die "the example says: $(cat "$work/text")"
done
rm -rf "$work/first" "$work/stage"
root=$work/moved
same() { "$1" "$model" "$story" 2>/dev/null | cmp - "$work/text" || die "$1 prints another text"; }

LD_LIBRARY_PATH=$libdir "$work/example" /nowhere "$story" >/dev/null 2>"$work/says" && die "a missing model was accepted"
grep -q 'W1001' "$work/says" || die "a missing model is not named: $(cat "$work/says")"

# weft.h stands alone, and a program in C++ is compiled, linked and run
echo '#include <weft.h>' | $cc -std=c11 $strict -x c -fsyntax-only -I"$root/include" - || die "weft.h is not C11"
for cxx in ${CXX:-} c++ g++ clang++; do ! command -v "$cxx" >/dev/null || break; done
if command -v "$cxx" >/dev/null; then
    # shellcheck disable=SC2046
    $cxx -std=c++17 $strict "$source/runtime/api/example.cpp" $(pkg-config --cflags --libs weft) -o "$work/several" ||
        die "weft.h does not serve C++"
    LD_LIBRARY_PATH=$libdir "$work/several" "$model" "$story" 3 >"$work/three" || die "the example in C++ failed"
    [ "$(grep -c "^$story" "$work/three")" = 3 ] || die "the example in C++ says: $(cat "$work/three")"
else
    echo "there is no C++ compiler: C++ is left out"
fi

# Python, where there is one
if command -v python3 >/dev/null; then
    WEFT_LIBRARY=$(find "$libdir" -name 'libweft.so' -o -name 'libweft.dylib') python3 "$source/runtime/api/example.py" \
        "$model" "$story" chatml >"$work/chat" || die "the example in Python failed"
    grep -qE '^\[(length|end)\]$' "$work/chat" || die "the example in Python says: $(cat "$work/chat")"
else
    echo "there is no Python: its example is left out"
fi

# Static: with our library alone, and where the machine has the others in that form too, with nothing shared.
static=$(pkg-config --static --cflags --libs weft)
# shellcheck disable=SC2086
$cc -std=c11 "$example" ${static/-lweft/$libdir/libweft.a} -o "$work/static" || die "libweft.a does not link"
same "$work/static"
if echo 'int main(void) { return 0; }' | $cc -x c - -static ${static/-lweft/} -o "$work/bare" 2>/dev/null; then
    # shellcheck disable=SC2086
    $cc -std=c11 -static "$example" $static -o "$work/static" || die "libweft.a does not link with -static"
    same "$work/static"
fi

# Nothing but the interface is seen from outside: in the shared library with a version, in the static one as the only
# names that could meet those of a program.
names=$(tr '\n' ' ' <"$source/runtime/weft.h" | grep -oE 'WEFT_API [^;(]*\(' | grep -oE 'weft_[a-z0-9_]+\($' | tr -d '(' | sort -u)
[ "$(wc -w <<<"$names")" -ge 20 ] || die "weft.h is not understood"
nm -g --defined-only "$libdir/libweft.a" | awk 'NF == 3 {print $3}' | sort >"$work/archived"
diff <(printf '%s\n' "$names") "$work/archived" || die "libweft.a has other names than weft.h"
if [ -e "$libdir/libweft.so" ]; then
    nm -D --defined-only --with-symbol-versions "$libdir/libweft.so" | awk '$2 != "A" {print $3}' | sort >"$work/exported"
    grep -v '@@WEFT_[0-9]' "$work/exported" && die "a symbol has no version"
    diff <(printf '%s\n' "$names") <(sed 's/@@.*//' "$work/exported" | sort) || die "libweft.so exports other names than weft.h"
    # The library ends nobody's process and prints nothing: what is left is fprintf and abort, for bugs.
    nm -D --undefined-only "$libdir/libweft.so" | grep -E ' (exit|_exit|_Exit|quick_exit|printf|vprintf|puts|fputs|putchar|perror|system|signal)(@|$)' &&
        die "libweft.so can end or print for its host"
    readelf -d "$libdir/libweft.so" | grep -q 'soname: \[libweft\.so\.[0-9]*\]' || die "libweft.so has no soname with a number"
fi

# the pages of section 3
for name in weft $names; do
    [ -s "$root/share/man/man3/$name.3" ] || die "there is no page $name(3)"
done

# the installed library of model files serves the installed program
(cd "$root" && "$root/bin/weft" check -m "$source/tests/golden/data/gemma2") || die "the installed weft does not find its library"

# find_package, of both libraries
mkdir "$work/user"
cat >"$work/user/CMakeLists.txt" <<'CM'
cmake_minimum_required(VERSION 3.20)
project(user C)
find_package(weft REQUIRED)
add_executable(user example.c)
target_link_libraries(user PRIVATE weft::weft)
add_executable(user_static example.c)
target_link_libraries(user_static PRIVATE weft::weft_static)
CM
cp "$example" "$work/user/"
quietly cmake -S "$work/user" -B "$work/user/build" -DCMAKE_PREFIX_PATH="$root" -DCMAKE_C_COMPILER="$cc"
quietly cmake --build "$work/user/build"
same "$work/user/build/user"
same "$work/user/build/user_static"
echo "installed, moved, compiled, linked and run"
