#!/usr/bin/env bash
# verbs_metal.sh WEFT SOURCES LIBRARY: the program itself on the tests' GPU, which it finds by LIBRARY as it would find the real one.
set -euo pipefail
weft=$(realpath "$1") sources=$(realpath "$2") library=$(realpath "$3")
golden=$sources/tests/golden/data stories=$sources/models/stories-7m
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache
cd "$work"
export WEFT_METAL_MAPS=off # shaders are compiled once
on_gpu() { WEFT_METAL=$library "$weft" "$@"; }
fail() { echo "verbs_metal.sh: $*" >&2; exit 1; }

on_gpu version >said
grep -q 'metal:0 (Apple GPU of the tests, 16.0 GiB, apple9)' said || fail "version: $(cat said)"
on_gpu eval --device metal -m "$golden/llama-mha" --ids 1,2,3 >gpu
"$weft" eval -m "$golden/llama-mha" --ids 1,2,3 >cpu
cmp -s gpu cpu || fail "the GPU says '$(cat gpu)', the CPU '$(cat cpu)'"

# Tokens that the GPU chooses are those that the host would choose; a bias of nothing keeps the choice on the host.
for more in '--temp 0' '--temp 1.5 --seed 3' '--temp 1.2 --top-k 0 --min-p 0 --seed 4'; do
    # shellcheck disable=SC2086 # several words
    on_gpu run --device metal -m "$stories" -p Once -n 3 $more --json >gpu
    # shellcheck disable=SC2086
    on_gpu run --device metal -m "$stories" -p Once -n 3 $more --json --logit-bias 5=0 >host
    grep -oE '"ids": *\[[^]]*\]' gpu >ids.gpu && grep -oE '"ids": *\[[^]]*\]' host >ids.host
    cmp -s ids.gpu ids.host || fail "$more: $(cat gpu) of the host: $(cat host)"
done

on_gpu verify --device metal -m "$golden/gpt_oss" -n 4 -ub 2 >said || fail "verify: $(cat said)"
on_gpu profile --device metal -m "$golden/llama-mha" -p 2 -n 1 >said || fail "profile: $(cat said)"
grep -q 'k_attend' said || fail "profile: $(cat said)"
on_gpu bench --device metal -m "$golden/llama-mha" -p 2 -n 1 -r 1 >said || fail "bench: $(cat said)"
grep -q 'METAL  ' said || fail "bench: $(cat said)"
on_gpu bench -dev metal -ngl 2 -m "$golden/llama-mha" -p 2 -n 1 -r 1 >said || fail "bench -ngl: $(cat said)"
grep -q 'CPU+METAL' said || fail "bench -ngl: $(cat said)"
on_gpu verify -dev metal -ngl 1 -m "$golden/llama-mha" -n 3 -ub 2 >said || fail "verify -ngl: $(cat said)"
grep -q '^  metal, layer 3$' said || fail "verify -ngl: $(cat said)"
on_gpu profile -dev metal -ngl 1 -m "$golden/llama-mha" -p 0 -n 1 >said || fail "profile -ngl: $(cat said)"
if on_gpu eval -dev metal -ngl 1 --round-bf16 -m "$golden/llama-mha" --ids 1 2>said; then fail 'Metal rounds'; fi
grep -q 'W1603.*no kernels of metal round to bf16' said || fail "-ngl --round-bf16: $(cat said)"

# What it takes is known, and whether that is there, mapped weights included.
WEFT_FAKE_METAL='working_set=100000' on_gpu plan --device metal -m "$golden/llama-mha" >said 2>&1 && fail 'it fits 100 kB'
grep -q 'W0902.*needs .* bytes and 100000 are available on metal:0' said || fail "plan for a small GPU: $(cat said)"
WEFT_FAKE_METAL='working_set=100000' on_gpu eval --device metal -m "$golden/llama-mha" --ids 1 2>said && fail 'it fits 100 kB'
grep -q "W0902.*available on metal:0 (Apple GPU of the tests)" said || fail "a small GPU: $(cat said)"
for fault in devices=0:W1614 family=5:W0901 broken_shader=1:W1615 no_queue=1:W1610 lost=1:W1610; do
    WEFT_FAKE_METAL=${fault%:*} on_gpu eval --device metal -m "$golden/llama-mha" --ids 1 2>said && fail "$fault is nothing"
    grep -q "error\[${fault#*:}\]" said || fail "$fault: $(cat said)"
done
echo ok
