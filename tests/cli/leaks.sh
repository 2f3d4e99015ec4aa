#!/usr/bin/env bash
# leaks.sh - each verb once, in success and in failure, in a build that checks for leaks: leaks.sh WEFT
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/files"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0
while read -r expected words; do
    status=0
    # shellcheck disable=SC2086
    "$1" $words </dev/null >/dev/null 2>"$log" || status=$?
    [ "$status" = "$expected" ] || { failed=1; echo "weft $words: exit $status"; cat "$log"; }
done <<'END'
2 hlp
1 graph broken.weft
1 check tiny.weft shape.weft missing.weft --json
1 fmt --check loose.weft broken.weft
0 ops attend
0 show ../../../models/stories-7m --json
0 run --temp 0 -n 3 --json
0 run --temp 0 -n 3 --lora ../../../models/stories-7m-pirate --logit-bias 5=1 -r Lily
2 run --samplers nonsense
1 run --chat -n 1
0 bench --random tiny-mixtral:Q4_K_M -p 4 -n 2 -np 1,2 -r 1 --json
2 bench --random tiny
0 perplexity -m ../../../models/stories-7m -f story.txt -c 32 --chunks 1
1 perplexity -m ../../../models/stories-7m -f story.txt -c 32 --kl-base story.txt
0 quantize ../../../models/stories-7m /dev/null Q4_K_M -n --json
0 quantize ../../../models/stories-7m /dev/null Q4_K_M -n --tensor *.ffn_down.*=Q5_1 --tensor *norm*=F32
2 quantize ../../../models/stories-7m /dev/null Q4_K_M -n --tensor *.ffn_down.*=nonsense
2 quantize ../../../models/stories-7m --tensor *=F16
1 quantize ../../golden/data/gemma2 /dev/null F16
0 lora show ../../../models/stories-7m-pirate -m ../../../models/stories-7m --json
1 lora merge -m ../../../models/stories-7m --lora ../../golden/data/lora-llama -o none.gguf
0 tokenize -m ../../../models/stories-7m Once
0 chat --chat-template chatml -n 3
1 template --chat-template chatml --messages broken.weft
END
exit "$failed"
