#!/usr/bin/env bash
# man3.sh - weft(3) has all of weft.h, and reads well: man3.sh PAGE HEADER
# Every function is declared in it, every word of every comment is there as often as in the header, and
# what is installed of groff, mandoc and man has nothing to say against it.
set -euo pipefail
page=$1 header=$2
export LC_ALL=C MANWIDTH=90 MANROFFOPT=''
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { failed=1; echo "weft.3: $*"; }

# The page without roff's marks: what a reader would see.
sed -E 's/\\f[BR]//g; s/\\%//g; s/\\&//g; s/\\\(aq/'\''/g; s/\\\(ga/`/g; s/\\\(ha/^/g; s/\\\(ti/~/g; s/\\-/-/g; s/\\e/\\/g' "$page" >"$work/page"
names=$(tr '\n' ' ' <"$header" | grep -oE 'WEFT_API [^;(]*\(' | grep -oE 'weft_[a-z0-9_]+\($' | tr -d '(' | sort -u)
[ "$(wc -w <<<"$names")" -ge 20 ] || fail "the header is not understood"
for name in $names; do
    # A declaration is a line of its own that ends with a semicolon.
    grep -qE "^[a-z].*[ *]$name\(.*\);$" "$work/page" || fail "$name is not declared in it"
done
types=$(grep -oE '^} weft_[a-z_]+;|^typedef struct weft_[a-z_]+ |^typedef enum \{.*\} weft_[a-z_]+;' "$header" | grep -oE 'weft_[a-z_]+' | sort -u)
for name in $types; do
    grep -qE "[ }] *$name;|struct $name " "$work/page" || fail "the type $name is not in it"
done

words() { grep -oE '[A-Za-z0-9_]+' | sort | uniq -c | awk '{print $2, $1}'; }
# Comments of the header, but for its title, its headings, and what stands on lines of the preprocessor.
sed -e '1d' -e '/^#/d' -e '/^\/\* ---- /d' "$header" | tr '\n' '\001' |
    grep -oE '/\*([^*]|\*+[^*/])*\*+/|^([^*]|\*+[^*/])*\*+/' | words >"$work/said"
words <"$work/page" >"$work/shown"
missing=$(awk 'NR == FNR {shown[$1] = $2; next} shown[$1] < $2 {printf " %s", $1}' "$work/shown" "$work/said")
[ -z "$missing" ] || fail "words are missing:$missing"
[ "$(wc -l <"$work/said")" -ge 100 ] || fail "the header's comments are not understood"

judges=''
for judge in groff mandoc man; do
    command -v "$judge" >/dev/null || continue
    judges="$judges $judge"
    case $judge in
    groff) said=$(groff -man -ww -Tutf8 "$page" 2>&1 >/dev/null) ;;
    # The page carries no date, so that the same source builds the same bytes.
    mandoc) said=$(mandoc -T lint -W warning "$page" 2>&1 | grep -v 'missing date' || true) ;;
    man) said=$(man --warnings -l "$page" 2>&1 >/dev/null || true) ;;
    esac
    [ -z "$said" ] || fail "$judge: $said"
done
echo "$(wc -w <<<"$names") functions, judged by${judges:- nobody}"
exit "$failed"
