#!/usr/bin/env bash
# run_fenced.sh DOC WEFT [--update] - check the model files in a Markdown page.
#
# A block fenced as ```weft is a complete file that must check clean. One fenced as ```weft-error CODE
# must fail with that code and no other, one fenced as ```weft-warning CODE must pass with that warning
# and no other. All are laid out as `weft fmt` does it. A block fenced as ```weft-says holds all that the
# check of the block before it prints, with the file named after its model; ```weft-says s/A/B/ makes that
# change first, with sed. The lines of a block fenced as ```weft-part stand in one of the page's ```weft
# blocks, spaces aside. --update lays the files out and writes what the checks say.
set -u
doc=$(realpath "$1")
weft=$(realpath "$2")
update=${3:-}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset WEFT_PATH

# A folder for each block, named after the line of its fence: `want` has the fence, model.weft the file,
# `says` what should be printed, says_line and says_edit where that stands and what changes first.
awk -v dir="$dir" '
  !inside && /^```weft-says( s\/.*)?$/ {
    inside = 1
    print NR > (at "/says_line")
    print substr($0, 14) > (at "/says_edit")
    close(at "/says_edit")
    out = at "/says"
    printf "" > out
    next
  }
  !inside && /^```weft-part$/ { inside = 1; out = dir "/part." NR; next }
  !inside && /^```weft/ {
    if ($0 !~ /^```weft$|^```weft-(error|warning) W[0-9]+$/) {
      print FILENAME ":" NR ": cannot read this fence" > "/dev/stderr"
      exit 1
    }
    inside = 1
    at = sprintf("%s/%05d", dir, NR)
    system("mkdir " at)
    print substr($0, 4) > (at "/want")
    close(at "/want")
    out = at "/model.weft"
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
    sed 's/^/    /' log
}
replace() # LINE FILE: the block whose fence is on that line gets the text of the file
{
    awk -v at="$1" -v file="$2" '
      NR == at      { print; while ((getline text < file) > 0) print text; skip = 1; next }
      skip && /^```/ { skip = 0 }
      !skip
    ' "$doc" >"$dir/page" && cat "$dir/page" >"$doc"
}

# From the last to the first, so that an update leaves the lines of those to come alone.
for block in $(ls -r "$dir"); do
    [ -d "$dir/$block" ] || continue
    cd "$dir/$block" || exit 1
    n=$((n + 1))
    line=$((10#$block))
    read -r want code <want
    file=$(sed -n 's/^model \([a-z0-9_]*\).*/\1/p' model.weft).weft
    [ "$file" = model.weft ] || mv model.weft "$file"
    [ "$update" != --update ] || "$weft" fmt --write "$file"
    "$weft" check --color never "$file" >log 2>&1
    status=$?
    codes=$(grep -o '[a-z]*\[W[0-9]*\]' log | sort -u | tr -d '\n')
    case $want in
    weft)
        [ $status -eq 0 ] && [ ! -s log ] || fail "this file does not check clean (exit $status)"
        ;;
    weft-error)
        [ $status -eq 1 ] && [ "$codes" = "error[$code]" ] ||
            fail "this file should fail with $code alone (exit $status, ${codes:-nothing reported})"
        ;;
    weft-warning)
        [ $status -eq 0 ] && [ "$codes" = "warning[$code]" ] ||
            fail "this file should pass with $code alone (exit $status, ${codes:-nothing reported})"
        ;;
    esac
    if [ -f says ]; then
        mkdir edited && sed -e "$(cat says_edit)" "$file" >"edited/$file"
        (cd edited && "$weft" check --color never "$file" >../log 2>&1)
    fi
    if [ "$update" = --update ]; then
        [ ! -f says ] || replace "$(cat says_line)" log
        replace "$line" "$file"
        continue
    fi
    [ $want != weft ] || tr -s ' ' <"$file" >>"$dir/all"
    [ ! -f says ] || cmp -s log says || fail "the check of this file says something else:"
    "$weft" fmt "$file" 2>log | diff "$file" - >>log || fail "this file is not in the layout of weft fmt"
done
for part in "$dir"/part.*; do
    [ -e "$part" ] && [ "$update" != --update ] || continue
    tr -s ' ' <"$part" | grep -vxF -f "$dir/all" >"$dir/log" || continue
    echo "$doc:${part##*.}: these lines stand in no file of this page:"
    sed 's/^/    /' "$dir/log"
    bad=$((bad + 1))
done
[ $n -gt 0 ] || { echo "$doc: no fenced model files"; exit 1; }
echo "$n blocks, $bad wrong"
[ $bad -eq 0 ]
