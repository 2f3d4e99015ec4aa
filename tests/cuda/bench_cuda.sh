#!/usr/bin/env bash
# bench_cuda.sh WEFT SOURCES FAKES: bench/cuda.sh on the tests' card (see verbs.sh), with rows that this card has the time for; and
# with programs that only pretend, for what becomes of a run that is cut short.
set -euo pipefail
weft=$(realpath "$1") sources=$(realpath "$2") fakes=$(realpath "$3")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache WEFT_NVRTC=off
cd "$work"
fail() { echo "bench_cuda.sh: $*" >&2; exit 1; }
has() { grep -q -- "$1" result || fail "no '$1': $(cat result)"; }
lacks() { ! grep -q -- "$1" result || fail "a '$1': $(cat result)"; }

mkdir real
ln -s "$weft" real/weft
on_card() {
    LD_LIBRARY_PATH=$fakes WEFT_CUDA=$fakes/libweft_cuda.so WEFT_FAKE_THREADS=32 ROWS=$work/rows \
        "$sources/bench/cuda.sh" --build real --repeat 1 "$@"
}
cat >rows <<'ROWS'
prefill|tiny:F32|-p 4 -n 0|pp4|10|1|1000000000
batch|tiny:Q8_0|-p 0 -n 1 -d 1 -np 1,2|tg1 x2 @ d1|10|1|
batch|tiny:Q8_0|-p 0 -n 1 -d 1 -np 2 --exact|tg1 x2 @ d1|10||
ROWS
on_card --only prefill,batch,check result >said || fail "$(cat said result)"
cmp -s said result || fail "printed: $(cat said) written: $(cat result)"
has '^| tiny:F32 | pp4 | [0-9]* | 10 | .* | 1 met | 1000000000 |'
has '^| tiny:Q8_0 | tg1 x2 @ d1 | [0-9].* | 1 met |'
has '^| tiny:Q8_0 | tg1 x2 @ d1 | [0-9]* | 10 | [0-9.]* |  |  | `.*--exact` |'
has '^- the demo model.*: passed'
has '^- recorded models.*: not checked'
echo 'prefill|tiny:F32|-p 4 -n 0|pp5|10|1|' >rows
if on_card --only prefill result >said; then fail 'a row without a result is one'; fi
has '^| tiny:F32 | pp5 | failed'
lacks '^- the demo model'
if WEFT_FAKE_CARDS=0 on_card none 2>said; then fail 'no card is needed'; fi
grep -q 'nothing can be measured' said && [ ! -e none ] || fail "without a card: $(cat said)"

# Programs that pretend. Measuring the model `end` ends the script by the signal END.
mkdir pretended
cat >pretended/weft <<'STANDIN'
#!/bin/sh
case "$*" in
*' --random end '*) kill -"$END" $PPID; exit 1 ;;
version*) echo '  commit     0123abc' ;;
bench*) echo '{"rows":[{"test":"tg1","median_ts":100.5},{"test":"pp1","median_ts":7}]}' ;;
esac
STANDIN
printf '#!/bin/sh\necho "ok     one"\necho "ok     two"\n' >pretended/golden_models
printf '#!/bin/sh\necho "FAILED $2 $3"\nexit 1\n' >pretended/cancels
chmod +x pretended/*
cat >rows <<'ROWS'
prefill|last|-p 1|pp1|7|1|
decode|first|-n 1|tg1|50|1|200
batch|second|-n 1 -np 8|tg1|50|101|200
long|end|-n 1|tg1|1|1|
ROWS
pretend() { ROWS=$work/rows "$sources/bench/cuda.sh" --build pretended "$@"; }
for END in KILL TERM; do
    export END
    if (pretend result) >said 2>&1; then fail "ended by $END: $(cat said)"; fi
    has 'Commit 0123abc\. [0-9]* [A-Z][a-z]* 20[0-9][0-9]\.$'
    has '^      ok     two$'
    has '^| first | tg1 | 100 | 50 | 2.01 | 1 met | 200 | `-n 1` |$'
    [ "$(grep -E '^\| (first|second|last|end)' result | cut -d' ' -f2 | tr '\n' ' ')" = 'first second last ' ] || fail "$(cat result)"
done
has '^Cut short after'
GOLDEN=$work/more pretend --only golden,decode --models 'f*' result >said || fail "$(cat said)"
has '^| first '
has '^- recorded models of .*/more: passed'
has '^All of it took'
lacks '^| last '
lacks '^- the demo model'
if pretend --only forms result >said; then fail 'what failed did not'; fi
has '^- a prompt of 400 tokens in one call: passed'
has '^- recorded models of golden/data with --kv q4 --skip gemma2: passed'
has '^- adapters: not checked, there is no'
has '^      FAILED cuda 300$'
has '^- calls that are cancelled: FAILED'
for wrong in '--only fast' '--repeat 0' '--faster' 'one two'; do
    # shellcheck disable=SC2086 # two words
    if pretend $wrong >said 2>&1; then fail "$wrong is fine"; fi
    [ "$(wc -l <said)" = 1 ] || fail "$wrong: $(cat said)"
done
pretend --help | grep -q -- '--only GROUPS' || fail 'no help'
