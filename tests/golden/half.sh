#!/usr/bin/env bash
# half.sh GOLDEN CASE - latent attention with pairs in halves: the model in CASE, turned round by half.py, gives the same
# values. Status 77, for a test that was skipped, where there is no Python or no such model.
set -eu
command -v python3 >/dev/null && [ -e "$2/model.safetensors" ] || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 "$(dirname "$0")/half.py" "$2" "$work/half"
"$1" -t 2 "$work"
