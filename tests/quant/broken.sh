#!/usr/bin/env bash
# broken.sh WEFT MODEL - `weft quantize` on a full disk, interrupted, and with files that are not what they should
# be: an error with its code, the exit status it should have, and no OUT, nor a part of one.
set -u -m # with -m jobs in the background hear Ctrl-C
weft=$1 model=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# check WHAT STATUS CODE: of the last command, whose words are in said.
check() {
    local ok=1
    [ "$status" = "$2" ] || ok=0
    [ -z "$3" ] || grep -q "error\[$3\]" "$work/said" || ok=0
    ls "$work/out" | grep -q . && ok=0
    [ $ok = 1 ] && return
    echo "broken.sh: $1: exit status $status, expected $2 $3; left: $(ls "$work/out" | tr '\n' ' ')"
    cat "$work/said"
    failed=1
    rm -f "$work/out"/*
}
quantize() { "$weft" quantize "$@" >"$work/said" 2>&1; status=$?; }

mkdir "$work/out"
quantize -q "$model" "$work/in.gguf" F16
[ "$status" = 0 ] || { cat "$work/said"; exit 1; }

# A full disk; what was there before stays.
(ulimit -f 64; "$weft" quantize "$work/in.gguf" "$work/out/x.gguf" Q8_0) >"$work/said" 2>&1
status=$?
check 'a full disk' 1 W1004
echo before >"$work/old.gguf"
(ulimit -f 64; "$weft" quantize "$work/in.gguf" "$work/old.gguf" Q8_0) >"$work/said" 2>&1
status=$?
check 'a full disk over a file' 1 W1004
[ "$(cat "$work/old.gguf")" = before ] || { echo 'broken.sh: the old file is gone'; failed=1; }
[ "$(ls "$work" | grep -c part)" = 0 ] || { echo 'broken.sh: a part is left'; failed=1; }

# Ctrl-C and an end asked for, once the first bytes are there. A machine that is done sooner is given another try.
for signal in INT:130 TERM:143; do
    for _ in 1 2 3 4 5; do
        "$weft" quantize -t 1 "$work/in.gguf" "$work/out/x.gguf" Q6_K >"$work/said" 2>&1 &
        pid=$!
        for _ in $(seq 500); do
            ls "$work/out" | grep -q . && break
            sleep 0.002
        done
        kill -"${signal%:*}" "$pid" 2>/dev/null
        wait "$pid"
        status=$?
        [ "$status" = 0 ] || break
        rm -f "$work/out"/*
    done
    check "signal ${signal%:*}" "${signal#*:}" ''
done

# IN is OUT, by any name.
sum=$(cksum <"$work/in.gguf")
ln -s in.gguf "$work/link.gguf"
quantize "$work/in.gguf" "$work/in.gguf" Q8_0
check 'IN as OUT' 2 W1904
quantize "$work/in.gguf" "$work/link.gguf" Q8_0
check 'a link to IN as OUT' 2 W1904
[ "$(cksum <"$work/in.gguf")" = "$sum" ] || { echo 'broken.sh: IN changed'; failed=1; }

# Not what they should be.
quantize "$work/none.gguf" "$work/out/x.gguf" Q8_0
check 'no IN' 1 W1001
quantize "$work/in.gguf" "$work/nowhere/x.gguf" Q8_0
check 'no folder for OUT' 1 W1004
quantize "$work/in.gguf" "$work" Q8_0
check 'a folder as OUT' 1 W1002
quantize "$work/in.gguf" "$work/out/x.gguf" Q9
check 'no such type' 2 W1904
quantize "$work/in.gguf" "$work/out/x.gguf" Q8_0 --tensor 'nothing.*=F16'
check 'a rule for nothing' 2 W1903
quantize "$work/in.gguf" "$work/out/x.gguf" Q8_0 --tensor 'output'
check 'no rule' 2 W1903
quantize "$work/in.gguf" "$work/out/x.gguf" Q8_0 --imatrix "$work/in.gguf"
check 'a model as importance file' 1 W1017
head -c 5000 "$work/in.gguf" >"$work/short.gguf"
quantize "$work/short.gguf" "$work/out/x.gguf" Q8_0
check 'a file cut short' 1 ''
head -c 100000 /dev/urandom >"$work/noise.gguf"
quantize "$work/noise.gguf" "$work/out/x.gguf" Q8_0
check 'noise' 1 ''
mkdir "$work/empty"
quantize "$work/empty" "$work/out/x.gguf" Q8_0
check 'an empty folder' 1 ''

# A byte changed anywhere: done or refused, never a crash.
size=$(stat -c %s "$work/in.gguf" 2>/dev/null || stat -f %z "$work/in.gguf")
for i in $(seq 40); do
    at=$(( (i * 7919 * 13) % (i % 2 ? 4096 : 400000) % size ))
    cp "$work/in.gguf" "$work/bad.gguf"
    printf '\xff' | dd of="$work/bad.gguf" bs=1 seek=$at conv=notrunc 2>/dev/null
    quantize -q "$work/bad.gguf" "$work/out/x.gguf" Q4_0
    [ "$status" = 0 ] && rm -f "$work/out"/*
    [ "$status" -le 1 ] || { echo "broken.sh: byte $at changed: exit status $status"; failed=1; }
done
check 'changed bytes' "$status" ''
exit $failed
