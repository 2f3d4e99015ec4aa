#!/usr/bin/env bash
# readme.sh - what the root README shows is what happens: readme.sh WEFT ROOT
#
# Indented blocks that begin with `$ ` are run, in a folder with models/ and build/weft, and must print
# the indented lines that follow. The excerpt of a model must stand in models/llama.weft.
set -euo pipefail
weft=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/build"
ln -s "$weft" "$work/build/weft"
ln -s "$root/models" "$work/models"
cd "$work"
failed=0

blocks() { sed -n '/^    \$ /,/^$/p' "$root/README.md" | sed 's/^    //'; }
while IFS= read -r line; do
    [ -z "$line" ] || printf '%s\n' "$line"
    case $line in '$ '*) bash -c "${line#'$ '}" 2>&1 || true ;; esac
done < <(blocks | grep '^\$ ') >now
blocks | grep -v '^$' >expected
diff expected now || { failed=1; echo "README.md: a command prints something else (< README, > now)"; }

while IFS= read -r line; do
    grep -qF -- "$line" models/llama.weft || { failed=1; echo "not in llama.weft: $line"; }
done < <(sed -n '/^```$/,/^```$/p' "$root/README.md" | grep -v '^```')

echo "$(grep -c '^\$ ' expected) commands"
exit "$failed"
