#!/bin/sh
# serve_peer.sh - weft serve beside llama-server (LLAMA_SERVER), on one model, turn by turn: tokens a second and times between tokens.
#
#     LLAMA_SERVER=.../llama-server bench/serve_peer.sh MODEL.gguf
#
# Both servers stay up; an idle one takes no time. Each round gives both the same requests, by build/bench/bench_serve, and other
# ones than the round before, so that nothing is cached but what a round itself shares. The table has medians over the rounds.
# Tokens per second of CPU time are the server's own (/proc): with THREADS=1, where nobody waits for another thread, what it would do
# on a core of its own, however busy the machine is.
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
finish() {
    # shellcheck disable=SC2086 # several
    [ -z "$pids" ] || kill $pids 2>/dev/null || true
    rm -rf "$tmp"
}
trap finish EXIT
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
weft_pid=$! peer_pid=
pids="$pids $weft_pid"
wait_for weft "$WEFT_PORT"
who=weft
if [ "$LLAMA_SERVER" ]; then
    # shellcheck disable=SC2086
    "$LLAMA_SERVER" -m "$model" --port "$PEER_PORT" -np "$most" -c $((per * most)) -t "$THREADS" -cb $PEER_FLAGS >"$tmp/peer.log" 2>&1 &
    peer_pid=$!
    pids="$pids $peer_pid"
    wait_for peer "$PEER_PORT"
    who="weft peer"
fi

cpu_of() { # PID: ticks that it has used
    awk '{ sub(/^.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"
}

load() { # WHO CLIENTS SEED
    port=$WEFT_PORT pid=$weft_pid
    [ "$1" = weft ] || { port=$PEER_PORT pid=$peer_pid; }
    before=$(cpu_of "$pid")
    "$bench" --port "$port" --clients "$2" --rate "$RATE" --requests "$REQUESTS" --prompt "$PROMPT" --answer "$ANSWER" \
        --shared "$SHARED" --vocab "$VOCAB" --seed "$3" --json
    echo $(($(cpu_of "$pid") - before))
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
python3 - "$tmp" "$ROUNDS" "$CLIENTS" "$who" "$(getconf CLK_TCK)" <<'PY'
import json, statistics, sys
tmp, rounds, clients, who, tick = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(), sys.argv[4].split(), float(sys.argv[5])

def read(w, n, i):
    first, second = open(f"{tmp}/{w}.{n}.{i + 1}").read().split("\n")[:2]
    r = json.loads(first)
    r["per_cpu_s"] = r["tokens"] / (max(int(second), 1) / tick)
    r["itl"], r["ttft"] = r["inter_token_ms"], r["first_token_ms"]
    return r

print("| clients | server | tokens/s | lowest to highest | tokens per s of CPU | inter-token p50, p99 ms | first token p50, p99 ms | answers, tokens |")
print("|---|---|---|---|---|---|---|---|")
for n in clients:
    runs = {w: [read(w, n, i) for i in range(rounds)] for w in who}
    for w in who:
        med = lambda get: statistics.median(get(r) for r in runs[w])
        speeds = [r["tokens_per_s"] for r in runs[w]]
        bad = sum(r["failed"] + r["refused"] for r in runs[w])
        print(f"| {n} | {w} | {statistics.median(speeds):.1f} | {min(speeds):.1f} to {max(speeds):.1f} | {med(lambda r: r['per_cpu_s']):.1f}"
              f" | {med(lambda r: r['itl']['p50']):.0f}, {med(lambda r: r['itl']['p99']):.0f}"
              f" | {med(lambda r: r['ttft']['p50']):.0f}, {med(lambda r: r['ttft']['p99']):.0f}"
              f" | {min(r['answer_min'] for r in runs[w])} to {max(r['answer_max'] for r in runs[w])}" + (f", {bad} failed |" if bad else " |"))
    if len(who) > 1:
        of = lambda k: [a[k] / b[k] for a, b in zip(*(runs[w] for w in who))]
        wall, cpu = of("tokens_per_s"), of("per_cpu_s")
        print(f"| {n} | ratio | {statistics.median(wall):.2f} | {min(wall):.2f} to {max(wall):.2f} | {statistics.median(cpu):.2f} | | | |")
print("load average at the end:", " ".join(open("/proc/loadavg").read().split()[:3]))
PY
