#!/usr/bin/env bash
# Installs Weft into a fresh folder and uses it as a stranger would: pkg-config, CMake, the example.
#   installed.sh BUILD SOURCE CC
set -euo pipefail
build=$1 source=$2 cc=$3
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
die() { echo "installed.sh: $*" >&2; exit 1; }

cmake --install "$build" --prefix "$root" >"$root/log" || { cat "$root/log"; die "the install failed"; }
libdir=$(dirname "$(find "$root" \( -name 'libweft.so' -o -name 'libweft.dylib' \) -print -quit)")
sed -i "s|^prefix=.*|prefix=$root|; s|^libdir=.*|libdir=$libdir|; s|^includedir=.*|includedir=$root/include|" \
    "$libdir/pkgconfig/weft.pc"
export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir

# shellcheck disable=SC2046
$cc -std=c11 -Wall -Wextra -Werror "$source/runtime/api/example.c" $(pkg-config --cflags --libs weft) -o "$root/example"
"$root/example" "$source/tests/golden/data/llama-mha" 3 1 2 3 >"$root/ids" 2>"$root/says" || { cat "$root/says"; die "the example failed"; }
[ "$(wc -l <"$root/ids")" = 3 ] || die "the example printed $(wc -l <"$root/ids") ids, expected 3"
"$root/example" /nowhere 1 1 >/dev/null 2>"$root/says" && die "a missing model was accepted"
grep -q 'W1001' "$root/says" || die "a missing model is not named: $(cat "$root/says")"

# weft.h stands alone, in C and C++
for lang in c c++; do
    echo '#include <weft.h>' | $cc -x $lang -fsyntax-only -I"$root/include" - || die "weft.h does not compile as $lang"
done

# nothing but the interface is exported
nm -D --defined-only "$libdir/libweft.so" | awk '{print $3}' >"$root/names"
grep -vE '^(weft_|$)' "$root/names" >"$root/extra" && die "exported: $(head -3 "$root/extra")"
for name in $(grep -oE '\bweft_[a-z_]+\(' "$source/runtime/weft.h" | tr -d '(' | sort -u); do
    grep -qx "$name" "$root/names" || die "$name is declared and not exported"
done

# the installed library of model files serves the installed program
(cd "$root" && "$root/bin/weft" check -m "$source/tests/golden/data/gemma2") || die "the installed weft does not find its library"

# find_package
mkdir "$root/user"
cat >"$root/user/CMakeLists.txt" <<'CM'
cmake_minimum_required(VERSION 3.20)
project(user C)
find_package(weft REQUIRED)
add_executable(user example.c)
target_link_libraries(user PRIVATE weft::weft)
CM
cp "$source/runtime/api/example.c" "$root/user/"
cmake -S "$root/user" -B "$root/user/build" -DCMAKE_PREFIX_PATH="$root" >"$root/log" 2>&1 &&
    cmake --build "$root/user/build" >>"$root/log" 2>&1 || { cat "$root/log"; die "find_package(weft) failed"; }
"$root/user/build/user" "$source/tests/golden/data/llama-mha" 3 1 2 3 2>/dev/null | cmp - "$root/ids" || die "the two programs differ"
echo "installed, compiled, linked and run"
