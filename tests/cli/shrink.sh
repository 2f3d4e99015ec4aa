#!/usr/bin/env bash
# shrink.sh WEFT MODEL - a checkpoint that is cut short while `weft eval` works on it: an error, W1012, and no
# crash. The program is stopped once it has mapped the file, so that the cut falls into its work.
set -u
weft=$1 model=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
seq 1 80 >"$work/ids"

for _ in $(seq 20); do # one that is done before it can be stopped is given another try
    cp "$model"/config.json "$model"/model.safetensors "$work"
    "$weft" eval -m "$work" --ids "@$work/ids" --chunk 1 -o "$work/out" 2>"$work/said" &
    pid=$!
    for _ in $(seq 200); do
        [ -r "/proc/$pid/maps" ] || { sleep 0.3; break; } # no such folder here: a guess will do
        grep -q model.safetensors "/proc/$pid/maps" && break
        sleep 0.01
    done
    kill -STOP "$pid" 2>/dev/null
    truncate -s 100000 "$work/model.safetensors"
    kill -CONT "$pid" 2>/dev/null
    wait "$pid"
    status=$?
    [ "$status" = 0 ] || break
    rm "$work/out"
done

cat "$work/said"
[ "$status" = 1 ] || { echo "exit status $status, expected 1"; exit 1; }
grep -q 'error\[W1012\]' "$work/said" || { echo "W1012 was expected"; exit 1; }
[ ! -e "$work/out" ] || { echo "results were written all the same"; exit 1; }
