#!/bin/sh
# serve_peer.sh - weft serve beside llama-server (LLAMA_SERVER), on one model, turn by turn: tokens a second and times between tokens.
#
#     LLAMA_SERVER=.../llama-server bench/serve_peer.sh MODEL.gguf
#
# Both servers stay up; an idle one takes no time. Each round gives both the same requests, by build/bench/bench_serve, and other
# ones than the round before, so that nothing is cached but what a round itself shares. The table has medians over the rounds.
# CLIENTS="8 32": at most so many at once. RATE: arrivals a second, Poisson; more than either can serve, so that all clients are busy
# (default), or less, for times at equal load. SHARED: ids at the beginning of all prompts. REQUESTS, ROUNDS, PROMPT, ANSWER, THREADS.
# PEER_FLAGS, WEFT_FLAGS: more flags. WEFT: another weft.
set -eu
model=${1:?usage: serve_peer.sh MODEL.gguf}
root=$(cd "$(dirname "$0")/.." && pwd)
weft=${WEFT:-$root/build/weft}
bench=${BENCH_SERVE:-$root/build/bench/bench_serve}
: "${LLAMA_SERVER:=}" "${CLIENTS:=8 32}" "${RATE:=1000}" "${SHARED:=0}" "${ROUNDS:=5}" "${PROMPT:=128}" "${ANSWER:=64}"
: "${THREADS:=$(nproc)}" "${REQUESTS:=64}" "${PEER_FLAGS:=}" "${WEFT_FLAGS:=}" "${WEFT_PORT:=8097}" "${PEER_PORT:=8098}" "${VOCAB:=4000}"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/weft-serve-peer-XXXXXX")
pids=
trap 'for p in $pids; do kill "$p" 2>/dev/null || true; done; rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM

most=0
for n in $CLIENTS; do
    [ "$n" -gt "$most" ] && most=$n
done
per=$((SHARED + PROMPT + ANSWER + 64))

wait_for() { # NAME PORT
    i=0
    until [ "$(curl -s -o "$tmp/health" -w '%{http_code}' "http://127.0.0.1:$2/health" || true)" = 200 ]; do
        i=$((i + 1))
        [ $i -lt 600 ] || { echo "serve_peer.sh: $1 does not answer" >&2; tail -5 "$tmp/$1.log" >&2; exit 1; }
        sleep 0.2
    done
}

# shellcheck disable=SC2086 # flags are several words
"$weft" serve -m "$model" --port "$WEFT_PORT" -np "$most" -c "$per" -t "$THREADS" $WEFT_FLAGS >"$tmp/weft.log" 2>&1 &
pids="$pids $!"
wait_for weft "$WEFT_PORT"
who=weft
if [ "$LLAMA_SERVER" ]; then
    # shellcheck disable=SC2086
    "$LLAMA_SERVER" -m "$model" --port "$PEER_PORT" -np "$most" -c $((per * most)) -t "$THREADS" -cb $PEER_FLAGS >"$tmp/peer.log" 2>&1 &
    pids="$pids $!"
    wait_for peer "$PEER_PORT"
    who="weft peer"
fi

load() { # WHO CLIENTS SEED
    port=$WEFT_PORT
    [ "$1" = peer ] && port=$PEER_PORT
    "$bench" --port "$port" --clients "$2" --rate "$RATE" --requests "$REQUESTS" --prompt "$PROMPT" --answer "$ANSWER" \
        --shared "$SHARED" --vocab "$VOCAB" --seed "$3" --warmup "${WARMUP:-0}" --json
}

round=0
while [ $round -lt "$ROUNDS" ]; do
    round=$((round + 1))
    for n in $CLIENTS; do
        for w in $who; do
            load "$w" "$n" $((round * 100 + n)) >"$tmp/$w.$n.$round"
        done
    done
done
python3 - "$tmp" "$ROUNDS" "$CLIENTS" "$who" <<'PY'
import json, statistics, sys
tmp, rounds, clients, who = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(), sys.argv[4].split()
load = open("/proc/loadavg").read().split()[0]
print("| clients | server | tokens/s | lowest to highest | inter-token p50, p99 ms | first token p50, p99 ms | answers, tokens |")
print("|---|---|---|---|---|---|---|")
for n in clients:
    speed = {}
    for w in who:
        runs = [json.load(open(f"{tmp}/{w}.{n}.{i + 1}")) for i in range(rounds)]
        med = lambda *k: statistics.median(r[k[0]][k[1]] if len(k) > 1 else r[k[0]] for r in runs)
        rates = [r["tokens_per_s"] for r in runs]
        speed[w] = med("tokens_per_s")
        bad = sum(r["failed"] + r["refused"] for r in runs)
        print(f"| {n} | {w} | {speed[w]:.0f} | {min(rates):.0f} to {max(rates):.0f} | {med('inter_token_ms', 'p50'):.1f}, {med('inter_token_ms', 'p99'):.1f}"
              f" | {med('first_token_ms', 'p50'):.0f}, {med('first_token_ms', 'p99'):.0f} | {min(r['answer_min'] for r in runs)} to {max(r['answer_max'] for r in runs)}"
              + (f", {bad} failed" if bad else "") + " |")
    if len(who) > 1:
        ratios = []
        for i in range(rounds):
            a, b = (json.load(open(f"{tmp}/{w}.{n}.{i + 1}"))["tokens_per_s"] for w in who)
            ratios.append(a / b)
        print(f"| {n} | ratio, median of rounds | {statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f} | | | |")
print(f"load of the machine at the end: {load}")
PY
