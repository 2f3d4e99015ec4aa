#!/bin/bash
# build.sh WEFT SOURCE_DIR CC: programs that `weft build` makes of the demo model say what `weft run` says, wherever they are, and nothing when they
# were damaged.
set -eu
weft=$1 src=$2 cc=$3
model=$src/models/stories-7m
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "$*" >&2; exit 1; }
prompt='Once upon a time'
want=$("$weft" run -m "$model" -p "$prompt" -n 60 --temp 0)
ids() { sed -n 's/.*"ids":\(\[[^]]*\]\).*/\1/p'; }
want_ids=$("$weft" run -m "$model" -p "$prompt" -n 60 --temp 0 --json | sed 's/"prompt_ids":[^]]*],//' | ids)

# ---- the same text and tokens ----
"$weft" build -q -m "$model" -o story
[ "$(./story -p "$prompt" -n 60 --temp 0)" = "$want" ] || fail "another text than weft run"
[ "$(./story -p "$prompt" -n 60 --temp 0 --json | sed 's/"prompt_ids":[^]]*],//' | ids)" = "$want_ids" ] || fail "other tokens"
[ "$(printf %s "$prompt" | ./story - -n 60 --temp 0)" = "$want" ] || fail "another text from standard input"
tokens() { "$@" -p "$prompt" -n 200 --temp 0 --json | sed 's/"prompt_ids":[^]]*],//' | ids; }
want_200=$(tokens "$weft" run -m "$model")
[ "$(tokens ./story)" = "$want_200" ] || fail "other tokens further on"
# Weights lie as the best kernels here want them, once, and the plans of all levels read these.
for level in $([ "$(uname -m)" = x86_64 ] && echo c avx2 avx512 || echo neon dotprod i8mm); do
    ./story --info | grep -q "^levels .* $level\b" || fail "no plan for $level"
    if WEFT_CPU=$level "$weft" plan -m "$model" >/dev/null 2>&1; then
        [ "$(tokens env WEFT_CPU=$level ./story)" = "$want_200" ] || fail "other tokens with $level"
    fi
done

# ---- anywhere ----
mkdir jail ro
cp story jail/tale
if [ "$(id -u)" = 0 ] && chroot jail /tale --version >/dev/null 2>&1; then
    [ "$(chroot jail /tale -p "$prompt" -n 60 --temp 0)" = "$want" ] || fail "another text in an empty folder"
fi
[ "$(env -i jail/tale -p "$prompt" -n 60 --temp 0)" = "$want" ] || fail "another text renamed, without an environment"
cp story ro/story
chmod a-w ro ro/story
[ "$(cd ro && ./story -p "$prompt" -n 60 --temp 0)" = "$want" ] || fail "another text from a read-only folder"
[ "$(ls ro)" = story ] || fail "it left files"

# ---- what it says of itself ----
./story --help | grep -q -- '--bench' || fail "no help"
./story --info | grep -q '^weights    14.0 MiB' || fail "no info"
./story --version | grep -q '^weft ' || fail "no version"
./story --bench | grep -q '^tg' || fail "no measurement"
./story --info --json | grep -q '^{"model":"llama",.*"levels":\[.*"weights":14697472,.*}$' || fail "no info as JSON"
./story --bench --json | grep -q '^\[{"test":"pp","tokens":256,"tokens_per_second":.*{"test":"tg","tokens":64,.*}\]$' || fail "no measurement as JSON"
if WEFT_CPU=ref ./story -n 1 2>said; then fail "ran with another plan than WEFT_CPU names"; fi
grep -q 'error\[W1602\].*WEFT_CPU names ref' said || fail "WEFT_CPU=ref: $(cat said)"
if ./story -n 1 --kv-save nowhere/state >out 2>said; then fail "saved into a folder that is not there"; fi
[ ! -s out ] && grep -q 'error\[W1004\].*nowhere/state' said || fail "--kv-save: $(cat out said)"
if ./story -p one - </dev/null 2>said; then fail "took two prompts"; fi
grep -q 'error\[W1904\]: story takes one of' said || fail "two prompts: $(cat said)"

# ---- Ctrl-C ends the text, not the line ----
mkfifo spoken
set -m # else a job behind & ignores the signal
./story -p "$prompt" -n 400 --temp 0 --ignore-eos >spoken &
pid=$!
{ head -c 40 >heard; kill -INT $pid; cat >>heard; } <spoken
set +m
rc=0
wait $pid || rc=$?
[ "$rc" = 130 ] && [ "$(tail -c 1 heard)" = "" ] || fail "interrupted: status $rc, $(cat heard)"
if ./story --temp hot 2>said; then fail "took a wrong value"; fi
grep -q 'W1903' said
if ./story -c 100000 -n 1 2>said; then fail "took a context that it was not built for"; fi
grep -q 'is for sequences of 512 tokens' said

# ---- size, and what it is made of ----
for cpu in native baseline auto; do
    "$weft" build --json -m "$model" -o small --strip --cpu "$cpu" >made
    weights=$(sed -n 's/.*"weights":\([0-9]*\).*/\1/p' made)
    besides=$(($(stat -c %s small) - weights))
    [ "$weights" -ge 14000000 ] && [ "$besides" -le 3000000 ] || fail "--cpu $cpu: $besides bytes besides $weights of weights"
    [ "$(./small -p "$prompt" -n 60 --temp 0)" = "$want" ] || fail "another text stripped, with --cpu $cpu"
done
nm story | grep -qE ' (gguf_|json_read|dsl_|graph_|model_bind|LLVM)' && fail "it has readers or the compiler in it"
nm story | grep -qE ' (jinja_(compile|render)|utf8proc_)' && fail "it has templates or tables of Unicode, which its model does not need"
if ./story --chat-template chatml --chat -p "$prompt" -n 1 2>said; then fail "it has a chat"; fi
grep -q 'error\[W1308\]' said && grep -q -- '--chat-template NAME' said || fail "no template: $(cat said)"
"$weft" build -q -m "$model" -o chats --chat-template chatml
[ "$(./chats --chat -p "$prompt" -n 20 --temp 0)" = "$("$weft" run -m "$model" --chat --chat-template chatml -p "$prompt" -n 20 --temp 0)" ] ||
    fail "another answer with a template that was chosen"
rm chats

# ---- the same bytes ----
cp story first
"$weft" build -q -m "$model" -o story
cmp first story || fail "another build has other bytes"

# ---- damaged ----
damaged() { # NAME: says so, exit 1, no text
    local out rc=0
    out=$(./"$1" -p "$prompt" -n 5 --temp 0 2>said) || rc=$?
    [ "$rc" = 1 ] && [ -z "$out" ] && grep -q 'error\[W1701\]' said || fail "$1: status $rc, '$out', $(cat said)"
}
bytes=$(stat -c %s story)
cp story broken
for cut in 1 17 4096 1000000 14000000; do
    head -c $((bytes - cut)) story >broken
    damaged broken
done
image=$(readelf -SW story | awk '$2 == ".weft" { print $5 } $3 == ".weft" { print $6 }' | head -1)
image=$((16#$image))
for at in $image $((image + 30)) $((image + 100)) $((image + 1000)) $((image + 200000)) $((bytes - 5000000)) $((bytes - 20)) $((bytes - 1)); do
    cp story broken
    old=$(dd if=story bs=1 skip="$at" count=1 2>/dev/null | od -An -tu1)
    printf "\\$(printf %o $(((old + 1) % 256)))" | dd of=broken bs=1 seek="$at" conv=notrunc 2>/dev/null
    damaged broken
done

# ---- weights beside it ----
"$weft" build -q -m "$model" -o apart --weights external
[ "$(stat -c %s apart)" -lt 5000000 ] || fail "weights are inside all the same"
[ "$(./apart -p "$prompt" -n 60 --temp 0)" = "$want" ] || fail "another text with weights beside it"
cp apart.weights kept
head -c -1 kept >apart.weights && damaged apart
{ head -c 5000000 kept; printf 'xyz'; tail -c +5000004 kept; } >apart.weights && damaged apart
"$weft" build -q -m "$model" -o other --weights external -c 128 >/dev/null
{ head -c 24 kept; printf '12345678'; tail -c +33 kept; } >apart.weights && damaged apart
grep -q 'another program' said
rm apart.weights
if ./apart -n 1 2>said; then fail "ran without its weights"; fi
grep -q 'error\[W1001\].*apart.weights' said

# cut while it runs: it is mapped by then, but no prompt has come
cp kept apart.weights
mkfifo slowly
./apart - -n 5 --temp 0 <slowly >out 2>said &
pid=$!
exec 9>slowly
until grep -q apart.weights /proc/$pid/maps; do kill -0 $pid || fail "it ended early: $(cat said)"; done
sleep 0.1
truncate -s 70000 apart.weights
printf %s "$prompt" >&9
exec 9>&-
rc=0
wait $pid || rc=$?
[ "$rc" = 1 ] && grep -qE 'error\[W(1012|1701)\]' said || fail "weights cut while it runs: status $rc, $(cat said)"

# ---- a library ----
"$weft" build -q -m "$model" -o libtale.so --lib
cp "$src/runtime/program/example.c" .
$cc -Wall -Werror -I. example.c -o example -L. -ltale -Wl,-rpath,"$dir"
[ "$(./example "$prompt" 60)" = "$want" ] || fail "another text from the library"
[ "$(nm -D --defined-only libtale.so | grep -vc tale_)" = 0 ] || fail "the library exports more than its own names"

readelf -d libtale.so | grep -q 'SONAME.*\[libtale.so\]' || fail "the library has no name of its own"
"$weft" build -q -m "$model" -o libint.so --lib # a word of the language
printf '#include "int_.h"\nint main(void) { int__close(0); return 0; }\n' >word.c
$cc -Wall -Werror -I. word.c -o word -L. -lint -Wl,-rpath,"$dir" && ./word || fail "a library called int"
rm -f int_.h libint.so && mkdir int_.h
if "$weft" build -q -m "$model" -o libint.so --lib 2>said; then fail "wrote a header over a folder"; fi
[ ! -e libint.so ] && grep -q 'error\[W1002\].*int_.h' said || fail "a library without its header: $(cat said)"

# ---- an adapter ----
pirate=$src/models/stories-7m-pirate
"$weft" build -q -m "$model" --lora "$pirate=0.75" -o pirate
[ "$(./pirate -p "$prompt" -n 40 --temp 0)" = "$("$weft" run -m "$model" --lora "$pirate=0.75" -p "$prompt" -n 40 --temp 0)" ] ||
    fail "another text with an adapter"

# ---- a chat model, where it is there: weights repacked as weft run does, which plainer processors cannot read ----
chat=${WEFT_MODELS:-${HOME:-}/.cache/weft/models}/SmolLM2-135M-Instruct.Q4_1.gguf
if [ -f "$chat" ]; then
    "$weft" build -m "$chat" -o sky >said 2>&1
    for question in 'Why is the sky blue?' 'Tell me a story about a cat.'; do
        answer() { "$@" --chat -p "$question" -n 120 --temp 0 --json | sed 's/"prompt_ids":[^]]*],//' | ids; }
        [ -n "$(answer ./sky)" ] && [ "$(answer ./sky)" = "$(answer "$weft" run -m "$chat")" ] || fail "another answer than weft run"
    done
    if ./sky --info | grep -q '^levels     avx512'; then
        grep -q 'kernels of avx512 and better' said || fail "it does not say who cannot run it: $(cat said)"
        if WEFT_CPU=avx2 ./sky -n 1 2>said; then fail "ran below the level it was built for"; fi
        grep -q 'error\[W1602\].*built for processors with avx512 and better' said || fail "avx2: $(cat said)"
        WEFT_CPU=avx2 "$weft" build -q -m "$chat" -o sky # as on a machine without AVX-512: as stored, for all
        ./sky --info | grep -q '^levels     c avx2 avx512' || fail "built with avx2: $(./sky --info)"
        [ "$(answer env WEFT_CPU=avx2 ./sky)" = "$(answer env WEFT_CPU=avx2 "$weft" run -m "$chat")" ] || fail "another answer with avx2"
    fi
    [ "$(echo 'Why is the sky blue?' | ./sky --converse -n 20 --temp 0)" = "$(./sky --chat -p 'Why is the sky blue?' -n 20 --temp 0)" ] ||
        fail "another answer in a conversation"
    rm sky
else
    echo "SmolLM2: skipped, it is not there"
fi

# ---- what cannot be ----
refused() { # CODE WORDS ARGUMENTS...
    local code=$1 words=$2
    shift 2
    if "$weft" build -q -m "$model" "$@" 2>said; then fail "built with $*"; fi
    grep -q "error\[$code\]" said && grep -q -- "$words" said || fail "$*: $(cat said)"
    [ ! -e no ] || fail "$*: left a file"
}
refused W1704 'did you mean `x86_64-linux-gnu`' -o no --target x86_64-linux-gn
refused W1704 'did you mean `avx512`' -o no --target x86_64-linux-gnu --cpu avx2,avx521
refused W1904 'native is this machine' -o no --cpu native --target "$([ "$(uname -m)" = x86_64 ] && echo aarch64 || echo x86_64)-linux-gnu"
refused W1703 'ld.lld-none' -o no --linker ld.lld-none
refused W1703 'libweft_core.a' -o no --runtime "$dir"
refused W1703 'libc6-dev' -o no --sysroot "$dir"
refused W1704 'native stands alone' -o no --cpu native,c
refused W1705 'wrote nothing' -o no --linker true
refused W1904 '-o PROGRAM'
refused W1001 'nosuch' -o no --chat-template nosuch
refused W1004 'nowhere' -o nowhere/no
cp -r "$model" own
if "$weft" build -q -m own -o own/model.safetensors 2>said; then fail "wrote over the model"; fi
grep -q 'error\[W1904\].*read and written at once' said && cmp own/model.safetensors "$model/model.safetensors" || fail "the model's own file: $(cat said)"

# ---- interrupted, it leaves nothing ----
mkdir work
printf '#!/bin/sh\nkill -INT $PPID\nexit 1\n' >interrupting
chmod +x interrupting
rc=0
TMPDIR=$dir/work "$weft" build -q -m "$model" -o no --linker ./interrupting 2>said || rc=$?
[ "$rc" = 130 ] && [ ! -s said ] && [ ! -e no ] && [ -z "$(ls work)" ] || fail "interrupted: status $rc, $(cat said), $(ls work)"

# ---- a processor that lacks what it was built for: said, not SIGILL ----
if [ "$(uname -m)" = x86_64 ] && command -v qemu-x86_64 >/dev/null; then
    [ "$(qemu-x86_64 -cpu Nehalem ./story -p "$prompt" -n 4 --temp 0 2>said)" = "$(./story -p "$prompt" -n 4 --temp 0)" ] ||
        fail "an old processor: $(cat said)"
    "$weft" build -q -m "$model" -o new --cpu avx2,amx
    if qemu-x86_64 -cpu Nehalem ./new -n 1 >out 2>said; then fail "ran without avx2"; fi
    [ ! -s out ] && grep -q 'error\[W1602\].*lacks.*avx2' said || fail "without avx2: $(cat out said)"
fi
