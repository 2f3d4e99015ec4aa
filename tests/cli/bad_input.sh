#!/usr/bin/env bash
# bad_input.sh - hostile files through the program: bad_input.sh WEFT [sanitized]
#
# Each must give a diagnostic and exit 1 within SECONDS_MAX of processor time and MEMORY_MAX_KB of address
# space, and never crash; WALL_MAX ends one that sleeps. `check` sees all of them; `fmt` and `graph` may find nothing wrong, so they only must
# not crash or overrun. A sanitized build reserves terabytes and is slow: both bounds are left out.
set -euo pipefail

SECONDS_MAX=2
WALL_MAX=60
MEMORY_MAX_KB=524288

weft=$1
limited=yes
[ "${2:-}" != sanitized ] || limited=
work=$(mktemp -d)
trap 'chmod -R u+rwx "$work"; rm -rf "$work"' EXIT
chmod 755 "$work"
cp "$weft" "$work/weft"
cd "$work"

repeat() { head -c "$2" /dev/zero | tr '\0' "$1"; } # CHARACTER COUNT
lines() { repeat '\n' "$2" | sed "s/^/$1/"; }         # TEXT COUNT
wrapped() { printf 'weft 1\nmodel m "M" {\n  let x = '; cat; printf '\n}\n'; }

entry() { printf 'weft 1\nmodel m "M" {\n  entry decode(tokens: i32[T], pos: i32[T]) {\n%s' "$1"; }

# The files. Names say what is wrong with them.
printf 'weft 1\nmodel m "M\0M" {\n}\n' >nul.weft
repeat '\0' 4096 >nuls.weft
printf 'weft 1\nmodel m "\xff\xfe\xc0\x80" {\n}\n' >not_utf8.weft
head -c 65536 "$weft" >binary.weft
repeat '(' 100000000 >parens_100mb.weft
repeat '(' 1000000 >parens_1mb.weft
repeat '{' 1000000 >braces_1mb.weft
repeat '-' 500000 | wrapped >minuses.weft
repeat '"' 500001 >quotes.weft
repeat '9' 1000000 | wrapped >digits.weft
{ echo -n '0.'; repeat '9' 1000000; } | wrapped >decimals.weft
{ echo -n '1e'; repeat '9' 1000; } | wrapped >exponent.weft
repeat 'a' 1000000 >name_1mb.weft
repeat '\n' 1000000 >line_ends.weft
{ echo 'weft 1'; lines 'block b() {' 80000; } >blocks_80000.weft
{ echo 'weft 1'; lines 'block b() {' 100000; } >blocks_100000.weft
{ entry ''; lines 'if true {' 100000; } >ifs_100000.weft
{ echo 'weft 1'; lines 'import a.b' 90000; } >imports.weft
lines 'weft 1' 100000 >versions.weft
{ entry ''; lines 'x=a' 250000; printf '}\n}\n'; } >statements.weft
{ entry 'x=[a'; repeat ',' 400000 | sed 's/,/,a/g'; printf ']\n}\n}\n'; } >list.weft
{ entry 'x=a'; repeat '+' 400000 | sed 's/+/+a/g'; printf '\n}\n}\n'; } >sum.weft
{ entry 'x=a'; repeat '^' 400000 | sed 's/\^/^a/g'; printf '\n}\n}\n'; } >powers.weft
{ entry 'x=a'; repeat '(' 400000 | sed 's/(/()/g'; printf '\n}\n}\n'; } >calls.weft
printf 'weft 1\nimport self_import\nmodel m "M" {\n}\n' >self_import.weft
printf 'weft 1\nimport cycle_b\n' >cycle_a.weft
printf 'weft 1\nimport cycle_a\n' >cycle_b.weft
printf 'weft 1\nmodel m "M" {' >cut_off.weft
printf 'weft 1\n\xef\xbb\xbf\xe2\x80\xae model m "M" {\n}\n' >bidi.weft
printf 'weft 99999999999999999999999\n' >version_huge.weft
: >empty.weft
mkdir folder.weft
mkfifo fifo.weft
ln -s loop.weft loop.weft
ln -s /dev/zero zero.weft
echo 'weft 1' >unreadable.weft
chmod 000 unreadable.weft

as=''
if [ "$(id -u)" = 0 ]; then # root reads everything
    if command -v setpriv >/dev/null; then as='setpriv --reuid=65534 --regid=65534 --clear-groups'
    else rm -f unreadable.weft; fi
fi

failed=0
n=0
# attempt VERB FILE MOST-EXIT [STDIN]
attempt() {
    local verb=$1 file=$2 most=$3 status=0 why=''
    n=$((n + 1))
    (
        if [ -n "$limited" ]; then ulimit -v "$MEMORY_MAX_KB" -t "$SECONDS_MAX"; fi
        ulimit -c 0
        # shellcheck disable=SC2086
        exec timeout -k 1 "$WALL_MAX" ${4:+$as} ./weft "$verb" "$file"
    ) <"${5:-/dev/null}" >out 2>err || status=$?
    case $status in
    0) [ "$most" = 0 ] || why='was accepted' ;;
    1) grep -q 'error\[W[0-9][0-9][0-9][0-9]\]' err || why='gave no diagnostic' ;;
    124 | 137 | 152) why="took more than $SECONDS_MAX s, or was killed" ;;
    *) why="exited with $status" ;;
    esac
    [ "$(wc -c <err)" -le 100000 ] || why="said $(wc -c <err) bytes"
    [ -z "$why" ] || { failed=1; echo "FAILED: weft $verb ${file:0:60} $why"; head -c 600 err; }
}

for file in *.weft missing.weft missing/folder.weft /dev/null "$(repeat 'n' 5000)"; do
    user=''
    [ "$file" != unreadable.weft ] || user=yes
    attempt check "$file" 1 "$user"
    for verb in fmt graph; do attempt $verb "$file" 0 "$user"; done
done
for file in parens_100mb.weft nuls.weft binary.weft empty.weft /dev/zero; do
    attempt check - 1 '' "$file"
    attempt fmt - 0 '' "$file"
done

[ -n "$limited" ] && bounds="$SECONDS_MAX s and $MEMORY_MAX_KB KiB each" || bounds="not measured, sanitized"
echo "$n runs ($bounds)"
exit "$failed"
