#!/bin/sh
# openai.sh ECHO | openai.sh WEFT MODEL - PyPI's openai client against http_echo, or against `weft serve`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# Where `./dev test` puts it: beside the models, which ctest names (tests/environment.cmake.in).
packages=$(dirname "${WEFT_MODELS:-${XDG_CACHE_HOME:-${HOME:-build}/.cache}/weft/models}")/clients
PYTHONPATH=$packages${PYTHONPATH:+:$PYTHONPATH}
export PYTHONPATH
command -v python3 >/dev/null || { echo "SKIP: python3 is missing"; exit 77; }
python3 -c 'import openai, pydantic' 2>/dev/null || { echo "SKIP: PyPI's openai is missing (./dev test fetches it)"; exit 77; }
if [ $# = 2 ]; then
    exec python3 -B "$here/openai_client.py" --serve "$1" "$2"
fi
dir=$(mktemp -d)
mkfifo "$dir/in"
"$1" <"$dir/in" >"$dir/port" &
pid=$!
exec 9>"$dir/in"
trap 'exec 9>&-; wait $pid; rm -rf "$dir"' EXIT
for _ in $(seq 100); do [ -s "$dir/port" ] && break; sleep 0.05; done
python3 -B "$here/openai_client.py" "http://127.0.0.1:$(cat "$dir/port")/v1" echo
