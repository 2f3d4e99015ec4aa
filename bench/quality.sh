#!/usr/bin/env bash
# quality.sh - what each storage type costs: perplexity and divergence from f32, ours and the peer's, on the same files.
#
#     LLAMA_PERPLEXITY=.../llama-perplexity LLAMA_QUANTIZE=.../llama-quantize bench/quality.sh MODEL.gguf [TYPE...]
#
# MODEL is unpacked to F32 once, which is the truth: each program is held against its own logits of that file. A type's file has
# every matrix in it whose rows are whole blocks of 32; of types with blocks of 256, whose rows MODEL may not have, ffn_down alone,
# the rest in F32. `weft quantize` makes it, or LLAMA_QUANTIZE where that has no such type. State is f32 everywhere. With
# ALONE=1 the same file unpacked to F32 is measured too: what weights alone cost, which no arithmetic can win back.
#
# WEFT names the program (build/weft), TEXT the text (tests/data/prose.txt), CHUNKS the chunks of 512 tokens (4), THREADS the
# threads (2), WORK a folder to keep everything in: what is there already is not done again. Without LLAMA_PERPLEXITY only ours is
# measured. Prints a table in Markdown.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
weft=${WEFT:-$here/build/weft} text=${TEXT:-$here/tests/data/prose.txt} chunks=${CHUNKS:-4} threads=${THREADS:-2}
[ $# -ge 1 ] || { sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 2; }
model=$1
shift
types=("$@")
[ ${#types[@]} -gt 0 ] || types=(F16 BF16 Q8_0 Q5_1 Q5_0 Q4_1 Q4_0 IQ4_NL MXFP4 Q6_K Q5_K Q4_K IQ4_XS Q3_K Q2_K)
work=${WORK:-$(mktemp -d)}
[ -n "${WORK:-}" ] || trap 'rm -rf "$work"' EXIT
mkdir -p "$work"

# A file appears when it is whole.
made() {
    [ -e "$1" ] && return
    "${@:2}" >"$1.log" 2>&1 || { tail -n 5 "$1.log" >&2; exit 1; }
    [ -e "$1.part" ] && mv "$1.part" "$1" || mv "$1.log" "$1"
}
quantize() { # FILE TYPE
    local what='.*weight'
    case $2 in *_K | IQ4_XS) what='.*ffn_down.weight' ;; esac
    case $2 in
    IQ4* | MXFP4 | Q2_K | Q3_K)
        "${LLAMA_QUANTIZE:?names no program, and weft quantize does not make $2}" --tensor-type "$what=${2,,}" \
            --tensor-type '.=f32' "$work/f32.gguf" "$1.part" Q8_0 "$threads" # which type matters not
        ;;
    *)
        "$weft" quantize -q --tensor '*_norm.weight=F32' --tensor "${what/./}=$2" "$work/f32.gguf" "$1.part" F32
        ;;
    esac
}
ours() {
    "$weft" perplexity -m "$1" -f "$text" -c 512 --chunks "$chunks" -t "$threads" --kv f32 --no-weight-cache --json "${@:2}"
}
theirs() {
    "$LLAMA_PERPLEXITY" -m "$1" -f "$text" -c 512 --chunks "$chunks" -t "$threads" -ctk f32 -ctv f32 "${@:2}" 2>&1
}
number() { sed -n "s/^.*\"$1\":\([-0-9.e+]*\).*/\1/p" "$2"; }
their_number() { sed -n "s/^$1 *: *\([-0-9.]*\).*/\1/p" "$2"; }

f32=$work/f32.gguf
made "$f32" "$weft" quantize -q "$model" "$f32.part" F32
made "$work/ours" ours "$f32" --kl-save "$work/ours.kl"
[ -z "${LLAMA_PERPLEXITY:-}" ] || made "$work/theirs" theirs "$f32" --kl-divergence-base "$work/theirs.kl"

echo "F32: perplexity $(number ppl "$work/ours"), the peer's $(sed -n 's/.*estimate: PPL = \([0-9.]*\).*/\1/p' "$work/theirs" 2>/dev/null)"
echo
echo "| type | KL of weights alone | ours | the peer's | ours / the peer's | perplexity: ours | the peer's |"
echo "|---|---|---|---|---|---|---|"
for type in "${types[@]}"; do
    file=$work/$type.gguf
    made "$file" quantize "$file" "$type"
    made "$work/$type.ours" ours "$file" --kl-base "$work/ours.kl"
    [ -z "${LLAMA_PERPLEXITY:-}" ] ||
        made "$work/$type.theirs" theirs "$file" --kl-divergence-base "$work/theirs.kl" --kl-divergence
    if [ -n "${ALONE:-}" ]; then
        made "$work/$type.flat.gguf" "$weft" quantize -q "$file" "$work/$type.flat.gguf.part" F32
        made "$work/$type.weights" ours "$work/$type.flat.gguf" --kl-base "$work/ours.kl"
    fi
    touch "$work/$type.theirs" "$work/$type.weights"
    for x in "$type" "$(number mean "$work/$type.weights")" "$(number mean "$work/$type.ours")" \
        "$(their_number 'Mean *KLD' "$work/$type.theirs")" "$(number ppl "$work/$type.ours")" \
        "$(their_number 'Mean PPL(Q)' "$work/$type.theirs")"; do
        echo "${x:--}"
    done | paste -sd ' ' | awk '
        function six(x) { return x == "-" ? x : sprintf("%.6f", x) }
        {
            ratio = $4 > 0 ? sprintf("%.3f", $3 / $4) : "-"
            printf "| %s | %s | %s | %s | %s | %.3f | %s |\n", $1, six($2), six($3), $4, ratio, $5, $6
        }'
    [ -s "$work/$type.theirs" ] || rm "$work/$type.theirs"
    [ -s "$work/$type.weights" ] || rm "$work/$type.weights"
done
