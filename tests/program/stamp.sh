#!/bin/sh
# stamp.sh LINK_SMALL SOURCE_DIR CC: an image attached to linked files, for both architectures; programs and shared libraries.
set -eu
link=$1 src=$2 cc=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
printf '{ global: small_run; local: *; };\n' >exports.map
cat >host.c <<'END'
int small_run(void);
int main(void) { return small_run(); }
END
here=$(uname -m)-linux-gnu
want='WEFTIMG the image is here 5 Weft image end.'
for target in x86_64-linux-gnu aarch64-linux-gnu; do
    compile=$cc run=''
    if [ "$target" != "$here" ]; then
        compile=$target-gcc run="qemu-${target%%-*}"
        if ! command -v "$compile" >/dev/null || ! command -v "$run" >/dev/null; then
            echo "$target: skipped, $compile or $run is not there"
            continue
        fi
    fi
    flags="-O2 -fPIC -fvisibility=hidden -I$src"
    mkdir -p "lib/$target"
    $compile $flags -c "$src/runtime/program/stamp.c" -o stamp.o
    rm -f "lib/$target/libweft_core.a"
    ar rcD "lib/$target/libweft_core.a"
    rm -f "lib/$target/libweft_program.a"
    ar rcD "lib/$target/libweft_program.a" stamp.o
    $compile $flags -DSMALL_MAIN -c "$src/tests/program/small.c" -o main.o
    $compile $flags -c "$src/tests/program/small.c" -o part.o

    "$link" "$target" lib program "small-$target" 5 main.o
    got=$($run ./"small-$target")
    [ "$got" = "$want" ] || { echo "$target: program says '$got'"; exit 1; }
    cp "small-$target" first
    "$link" "$target" lib program "small-$target" 5 main.o
    cmp first "small-$target" || { echo "$target: another build has other bytes"; exit 1; }

    # strip keeps the image, which has a section.
    strip=strip
    [ -z "$run" ] || strip=$target-strip
    $strip -o stripped "small-$target"
    got=$($run ./stripped)
    [ "$got" = "$want" ] || { echo "$target: stripped program says '$got'"; exit 1; }

    "$link" "$target" lib lib libsmall.so 5 part.o
    # The loader that qemu takes is of this folder; a C library that is installed elsewhere for the target may be of another version.
    $compile host.c -o host -L. -lsmall -Wl,-rpath,"$dir${run:+:/usr/$target/lib}"
    got=$($run ${run:+-L /usr/$target} ./host)
    [ "$got" = "$want" ] || { echo "$target: library says '$got'"; exit 1; }
    echo "$target: fine"
done

# What is missing is named, with what to install.
mkdir empty
if "$link" "$here" empty program no 1 main.o 2>said; then echo "linked without the runtime"; exit 1; fi
grep -q 'error\[W1703\].*libweft_core.a' said
if PATH=/nowhere "$link" "$here" lib program no 1 main.o 2>said; then echo "linked without a linker"; exit 1; fi
grep -q 'error\[W1703\].*ld.lld' said
grep -q 'Debian and Ubuntu have them in: lld' said
if "$link" x86-64-linux-gnu lib program no 1 main.o 2>said; then echo "linked for an unknown target"; exit 1; fi
grep -q 'error\[W1704\].*x86-64-linux-gnu' said
grep -q 'did you mean `x86_64-linux-gnu`' said
if "$link" "$here" lib program no 1 exports.map 2>said; then echo "linked what is no object"; exit 1; fi
grep -q 'error\[W1705\]' said
[ ! -e no ] || { echo "a failed link left a file"; exit 1; }
