#!/usr/bin/env bash
# run_fenced.sh DOC WEFT - check the model files in a Markdown page.
#
# A block fenced as ```weft is a complete file that must check clean. One fenced as ```weft-error CODE is
# a complete file whose check must fail with that code and no other. Other blocks are excerpts.
set -u
doc=$1
weft=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset WEFT_PATH

# One file per block, named after the line it starts on: 0042.weft, or 0042-W0302.weft.
awk -v dir="$dir" '
  !inside && /^```weft/ {
    inside = 1
    out = ""
    if ($0 == "```weft")
      out = sprintf("%s/%04d.weft", dir, NR)
    else if ($0 ~ /^```weft-error W[0-9]+$/)
      out = sprintf("%s/%04d-%s.weft", dir, NR, $2)
    else {
      print FILENAME ":" NR ": cannot read this fence" > "/dev/stderr"
      exit 1
    }
    next
  }
  /^```/              { inside = !inside; if (!inside && out != "") close(out); out = ""; next }
  inside && out != "" { print > out }
' "$doc" || exit 1

n=0
bad=0
fail()
{
    bad=$((bad + 1))
    echo "$doc:$line: $1"
    sed 's/^/    /' "$dir/log"
}
for file in "$dir"/*.weft; do
    [ -e "$file" ] || break
    n=$((n + 1))
    name=$(basename "$file" .weft)
    line=$((10#${name%%-*}))
    "$weft" check "$file" >"$dir/log" 2>&1
    status=$?
    if [ "$name" = "${name%-*}" ]; then
        if [ $status -ne 0 ] || [ -s "$dir/log" ]; then
            fail "the file in this block does not check clean (exit $status)"
        fi
    else
        code=${name#*-}
        codes=$(grep -o 'error\[W[0-9]*\]' "$dir/log" | sort -u | tr -d '\n')
        if [ $status -ne 1 ] || [ "$codes" != "error[$code]" ]; then
            fail "the file in this block should fail with $code alone (exit $status, ${codes:-no error})"
        fi
    fi
done
[ $n -gt 0 ] || { echo "$doc: no fenced model files"; exit 1; }
echo "$n blocks, $bad wrong"
[ $bad -eq 0 ]
