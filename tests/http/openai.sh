#!/bin/sh
# openai.sh ECHO - PyPI's openai client against http_echo: chat, stream, tools, structured output, embeddings, errors.
set -eu
python3 -c 'import openai' 2>/dev/null || { echo "SKIP: python3's openai is missing"; exit 77; }
dir=$(mktemp -d)
mkfifo "$dir/in"
"$1" <"$dir/in" >"$dir/port" &
pid=$!
exec 9>"$dir/in"
trap 'exec 9>&-; wait $pid; rm -rf "$dir"' EXIT
for _ in $(seq 100); do [ -s "$dir/port" ] && break; sleep 0.05; done
python3 "$(dirname "$0")/openai_client.py" "http://127.0.0.1:$(cat "$dir/port")/v1" echo
