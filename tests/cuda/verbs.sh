#!/usr/bin/env bash
# verbs.sh WEFT SOURCES FAKES: the program itself on the tests' card, whose driver and kernels are in the folder FAKES. It finds
# both as it would find real ones.
set -euo pipefail
weft=$(realpath "$1") sources=$(realpath "$2") fakes=$(realpath "$3")
golden=$sources/tests/golden/data models=$sources/models
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache
cd "$work"

export WEFT_NVRTC=off # kernels as they are
on_card() { LD_LIBRARY_PATH=$fakes WEFT_CUDA=$fakes/libweft_cuda.so "$weft" "$@"; }
fail() { echo "verbs.sh: $*" >&2; exit 1; }

# The same words as on the CPU, with an adapter and without.
for more in '' "--lora $models/stories-7m-pirate"; do
    # shellcheck disable=SC2086 # two words, or none
    "$weft" run -m "$models/stories-7m" $more -p 'Once upon a time' -n 6 --temp 0 >cpu
    # shellcheck disable=SC2086
    on_card run --device cuda -m "$models/stories-7m" $more -p 'Once upon a time' -n 6 --temp 0 >card
    cmp -s cpu card || fail "the card says '$(cat card)', the CPU '$(cat cpu)'"
done
# The same by every form of launch, and no other.
for calls in persistent graph launches; do
    WEFT_CUDA_CALLS=$calls on_card run --device cuda -m "$models/stories-7m" -p 'Once upon a time' -n 6 --temp 0 >card
    WEFT_CUDA_CALLS=$calls on_card verify --device cuda -m "$golden/llama-mha" -n 4 >said || fail "verify, $calls: $(cat said)"
    "$weft" run -m "$models/stories-7m" -p 'Once upon a time' -n 6 --temp 0 >cpu
    cmp -s cpu card || fail "$calls: the card says '$(cat card)', the CPU '$(cat cpu)'"
done
if WEFT_CUDA_CALLS=fast on_card run --device cuda -m "$models/stories-7m" -p Once 2>said; then fail 'there is a fast way'; fi
grep -q 'W1618.*WEFT_CUDA_CALLS=fast: expected persistent, graph or launches' said || fail "fast: $(cat said)"
if WEFT_CUDA_CALLS=fast on_card run --device auto -m "$models/stories-7m" -p Once 2>said; then fail 'auto: there is a fast way'; fi
grep -q 'W1618.*WEFT_CUDA_CALLS=fast' said || fail "auto, fast: $(cat said)"
# A plan from a file rounds as the file says.
for rounds in '' --exact --round-bf16; do
    # shellcheck disable=SC2086 # a flag, or none
    on_card graph --device cuda $rounds -m "$golden/llama-mha/model-bf16.gguf" --stage plan --format binary -o file.plan
    # shellcheck disable=SC2086
    on_card eval --device cuda $rounds -m "$golden/llama-mha/model-bf16.gguf" --ids "$(seq -s, 1 20)" >made
    on_card eval --device cuda --plan file.plan -m "$golden/llama-mha/model-bf16.gguf" --ids "$(seq -s, 1 20)" >read 2>said ||
        fail "a plan $rounds: $(cat said)"
    cmp -s made read || fail "a plan $rounds: '$(cat read)', not '$(cat made)'"
done
# Experts of many rows, with all who chose one together; with fewer stages, where shared memory is less; and where it is too little.
for what in Q4_K:227 BF16:227 'BF16:227 --exact' F16:227 'F16:227 --exact' Q4_K:163; do
    shared=${what#*:}
    # shellcheck disable=SC2086 # a flag, or none
    WEFT_FAKE_SHARED=$((${shared%% *} << 10)) on_card verify --device cuda --random "tiny-mixtral:${what%%:*}" -ub 160 ${shared#"${shared%% *}"} \
        --ids "$(seq -s, 1 3 480)" -n 160 >said 2>&1 || fail "verify of $what experts: $(cat said)"
    if grep -q 'to 160 rows are slow' said; then fail "$what: $(cat said)"; fi
done
WEFT_FAKE_SHARED=$((99 << 10)) on_card verify --device cuda --random tiny-mixtral:Q4_K -ub 160 --ids 1,2,3 -n 3 >said 2>&1 ||
    fail "little shared memory: $(cat said)"
grep -q 'W1616.*calls of [12] to 160 rows are slow' said || fail "little shared memory: $(cat said)"
# Experts of few rows, whose rows of weights are whole pieces, or begin anywhere.
for type in BF16 F16 Q5_K Q6_K Q4_0 MXFP4; do
    on_card verify --device cuda --random tiny-mixtral:$type -ub 24 --ids "$(seq -s, 1 5 120)" -n 24 >said 2>/dev/null ||
        fail "verify of few rows of $type experts: $(cat said)"
done
# All of it there, or some layers: of eight the last one, most, all without what stands before and behind them; with an adapter too.
for more in '' "--lora $models/stories-7m-pirate"; do
    # shellcheck disable=SC2086 # two words, or none
    "$weft" run -m "$models/stories-7m" $more -p 'Once upon a time' -n 6 --temp 0 >cpu
    for layers in 1 5 8 9; do
        # shellcheck disable=SC2086
        on_card run -ngl $layers -m "$models/stories-7m" $more -p 'Once upon a time' -n 6 --temp 0 >card
        cmp -s cpu card || fail "-ngl $layers $more: '$(cat card)', the CPU '$(cat cpu)'"
    done
done
on_card bench -ngl 2 -m "$golden/llama-mha" -p 4 -n 2 -r 1 >said
grep -q 'CPU+CUDA' said || fail "bench -ngl: $(cat said)"
on_card eval -ngl 2 --kv 'f16 last=4, q8 rest' -m "$golden/gemma2" --ids 1,2,3,4,5,6 >said || fail "eval -ngl: $(cat said)"
on_card plan -ngl 2 -m "$golden/llama-mha" >said
grep -q 'fits: 256.0 MiB available on cuda:0' said || fail "plan -ngl: $(cat said)"
[ "$(grep -c '^fits' said)" = 2 ] || fail "plan -ngl: $(cat said)"
if on_card plan -ngl 2 -m "$golden/llama-mha" --memory 100000 >said 2>&1; then fail 'a card of 100 kB is enough'; fi
grep -q W0902 said || fail "plan -ngl, a small card: $(cat said)"
for verb in verify profile; do
    if on_card $verb -ngl 2 -m "$golden/llama-mha" 2>said; then fail "$verb looks at two plans"; fi
    grep -q W1611 said || fail "$verb -ngl: $(cat said)"
done
sed 's/append(kv\[l\]/append(kv[l < 2 ? l : 1]/' "$models/llama.weft" >shared.weft
if on_card eval -ngl 2 --arch shared.weft -m "$golden/llama-mha" --ids 1 2>said; then fail 'a cell is on two devices'; fi
grep -q 'W1611.*kv\[1\]' said && grep -q '3 of them can be' said || fail "a shared cell: $(cat said)"
on_card eval -ngl 3 --arch shared.weft -m "$golden/llama-mha" --ids 1 >said || fail "3 layers: $(cat said)"

# Tokens chosen on the card are those that the host would choose, and neither a stop text nor the end of the context finds
# anything of the call that was queued ahead: the same words, ids, end and state. A bias of nothing keeps the choice on the host.
number() { grep -o "\"$1\": *[0-9]*" "$2" | grep -o '[0-9]*$'; }
while read -r seed end more; do
    # shellcheck disable=SC2086
    on_card run --device cuda -m "$models/stories-7m" -p 'Once upon a time' --json --seed "$seed" $more --kv-save kv.card >card
    # shellcheck disable=SC2086
    on_card run --device cuda -m "$models/stories-7m" -p 'Once upon a time' --json --seed "$seed" $more --kv-save kv.host \
        --logit-bias 5=0 >host
    for key in text ids stop; do
        [ "$(grep -oE "\"$key\": *(\"[^\"]*\"|\[[^]]*\])" card)" = "$(grep -oE "\"$key\": *(\"[^\"]*\"|\[[^]]*\])" host)" ] ||
            fail "$more: $key of the card: $(cat card) of the host: $(cat host)"
    done
    grep -qE "\"stop\": *\"$end\"" card || fail "$more does not end by $end: $(cat card)"
    cmp -s kv.card kv.host || fail "$more: the states differ"
    [ "$(number tokens_on_device card)" = "$(number generated card)" ] && [ "$(number tokens_on_device host)" = 0 ] ||
        fail "$more: the card chose $(number tokens_on_device card) of $(number generated card)"
done <<'END'
1 length -n 5 --temp 1.5
2 length -n 5 --temp 1.2 --top-k 0 --min-p 0
3 stop -n 20 --temp 0 -r little
4 context -c 9 --temp 0.8
END
on_card run --device cuda -m "$models/stories-7m" -p Once -n 1 --repeat-penalty 1.1 -v >/dev/null 2>said
grep -q 'chosen on the host, because of penalties' said || fail "-v: $(cat said)"

# Value by value, over several forms of state.
for model in llama-mha gemma2 gpt_oss; do
    for kv in f16 'f16 last=4, q8 rest'; do
        on_card verify --device cuda -m "$golden/$model" -n 8 -ub 4 --kv "$kv" >said ||
            fail "verify of $model with state in $kv: $(cat said)"
    done
done

# Calls of many rows: weights of bf16 and such as are made bf16 first, attention by tiles.
export WEFT_FAKE_THREADS=32
ids=$(seq -s, 1 280),$(seq -s, 1 280)
for what in 'tiny:BF16 -n 140' 'tiny:BF16 -n 140 --exact' 'tiny:BF16 -n 140 --round-bf16' 'tiny:F16 -n 140' 'tiny:F16 -n 140 --exact' \
    'tiny:F16 -n 140 --round-bf16' 'tiny:Q4_K_M -n 560'; do
    # shellcheck disable=SC2086 # several words
    on_card verify --device cuda --random $what --ids "$ids" -ub 512 -c 1024 >said || fail "verify of $what: $(cat said)"
done
unset WEFT_FAKE_THREADS

# The other verbs that run models.
printf 'Once upon a time there was a little girl who had a red ball and a dog.' >text
on_card perplexity --device cuda -m "$models/stories-7m" -f text -c 16 >said || fail "perplexity: $(cat said)"
on_card bench --device auto -m "$golden/llama-mha" -p 4 -n 2 -r 1 >said
grep -q CUDA said || fail "bench: $(cat said)"
on_card profile --device cuda -m "$golden/llama-mha" -p 4 -n 2 >said
grep -q k_attend_few_cuda said || fail "profile: $(cat said)"
on_card eval --device cuda:0 -m "$golden/llama-mha" --ids 1,2,3 >said || fail "eval: $(cat said)"

# What it takes, on this card, and on one that has less.
on_card plan --device cuda -m "$golden/llama-mha" >said
grep -q 'fits: 256.0 MiB available on cuda:0' said || fail "plan: $(cat said)"
if on_card eval --device cuda -m "$golden/llama-mha" -c 4000000 --ids 1 2>said; then fail 'no card is that large'; fi
grep -q W0902 said && grep -q 'available on cuda:0' said || fail "too large: $(cat said)"
if on_card run --device cuda:1 -m "$models/stories-7m" -p Once 2>said; then fail 'there is one card'; fi
grep -q 'W1605.*this machine has 1 card' said || fail "cuda:1: $(cat said)"

# Kernels of another build, and none.
if LD_LIBRARY_PATH=$fakes WEFT_CUDA=$fakes/libcuda.so.1 "$weft" run --device cuda -m "$models/stories-7m" -p Once 2>said; then
    fail 'a library of anything will do'
fi
grep -q 'W1609.*another build' said || fail "another build: $(cat said)"
if LD_LIBRARY_PATH=$fakes WEFT_CUDA=$work/none.so "$weft" run --device cuda -m "$models/stories-7m" -p Once 2>said; then
    fail 'no library is needed'
fi
grep -q W1609 said || fail "no kernels: $(cat said)"
