#!/usr/bin/env bash
# check_codes.sh DOC DIAG_DEF [--update] - the language reference lists every code of the language, with the
# meaning diag.def gives it, and names no code that does not exist. --update writes its table.
set -u
doc=$1
def=$2
update=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

# The codes of the language, one half beside the other.
awk -F '"' '
  /^DIAG\(W0/ {
    code[++n] = substr($0, 6, 5)
    says[n] = ($1 ~ /WARNING/ ? "warning: " : "") $2
  }
  END {
    half = int((n + 1) / 2)
    print "| code | says | code | says |"
    print "|---|---|---|---|"
    for (i = 1; i <= half; i++)
      print "| " code[i] " | " says[i] " | " code[i + half] " | " says[i + half] " |"
  }
' "$def" >"$work/table"
if [ "$update" = --update ]; then
    awk -v table="$work/table" '
      /^\| code \| says \| code \| says \|$/ { while ((getline row < table) > 0) print row; skip = 1 }
      skip && !/^\|/ { skip = 0 }
      !skip
    ' "$doc" >"$work/page" && cat "$work/page" >"$doc"
fi
sed -n '/^| code | says | code | says |$/,/^$/p' "$doc" | sed '/^$/d' | diff - "$work/table" ||
    { bad=1; echo "$doc: the table of codes is not that of $def (< page, > diag.def)"; }
while read -r code; do
    grep -q "^DIAG($code," "$def" || { bad=1; echo "$doc names $code, which does not exist"; }
done < <(grep -o 'W[0-9]\{4\}' "$doc" | sort -u)
n=$(grep -o 'W0[0-9]*' "$work/table" | wc -l)
[ "$n" -gt 50 ] || { echo "only $n codes found in $def"; bad=1; }
echo "$n codes"
exit $bad
