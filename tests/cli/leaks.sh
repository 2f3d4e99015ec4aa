#!/usr/bin/env bash
# leaks.sh - each verb once, in success and in failure, in a build that checks for leaks: leaks.sh WEFT
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/files"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0
while read -r expected words; do
    status=0
    # shellcheck disable=SC2086
    "$1" $words >/dev/null 2>"$log" || status=$?
    [ "$status" = "$expected" ] || { failed=1; echo "weft $words: exit $status"; cat "$log"; }
done <<'END'
2 hlp
1 graph broken.weft
1 check tiny.weft shape.weft missing.weft --json
1 fmt --check loose.weft broken.weft
0 ops attend
END
exit "$failed"
