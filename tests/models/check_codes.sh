#!/usr/bin/env bash
# check_codes.sh DOC DIAG_DEF - the language reference lists every code of the language.
set -u
doc=$1
def=$2
bad=0
n=0
while read -r code; do
    n=$((n + 1))
    grep -q "| $code |" "$doc" || { echo "$doc does not list $code"; bad=1; }
done < <(grep -o '^DIAG(W0[0-9]*' "$def" | cut -c6-)
while read -r code; do
    grep -q "^DIAG($code," "$def" || { echo "$doc lists $code, which does not exist"; bad=1; }
done < <(grep -o 'W[0-9]\{4\}' "$doc" | sort -u)
[ $n -gt 50 ] || { echo "only $n codes found in $def"; bad=1; }
echo "$n codes"
exit $bad
