#!/usr/bin/env bash
# commands.sh - every command that Weft's pages print does what it says: commands.sh WEFT ROOT BUILD HELPERS
#
# Three places are read: the examples of `weft help VERB`, the list at the end of `./dev run`, and the
# Markdown pages of the tree (code in them that begins with weft VERB and has something behind it, or with
# build/). README.md's blocks with `$ ` are readme.sh's. Each command runs under bash in a folder where the files that
# examples speak of are made from the demo model; one that ends with another status than 0 fails the test.
# What is not run is listed in `skipped`, and benchmarks are cut short.
set -euo pipefail
weft=$1 root=$2 build=$3 helpers=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work XDG_CACHE_HOME=$work/cache LC_ALL=C PATH="$work/bin:$PATH"
unset WEFT_PATH WEFT_CPU 2>/dev/null || true

# Nothing here may change the tree: what a command writes to is a copy.
mkdir "$work/bin" "$work/at"
cd "$work/at"
ln -s "$weft" "$work/bin/weft"
ln -s "$build" build
ln -s "$root/tests" tests
mkdir models dsl
cp -R "$root"/models/*.weft "$root/models/std" models/
ln -s "$root/models/stories-7m" models/stories-7m
ln -s "$root/models/stories-7m-pirate" models/stories-7m-pirate
cp "$root/dsl/OPS.md" dsl/
if ! command -v jq >/dev/null; then # it is asked for valid JSON, no more
    printf '#!/bin/sh\nexec "%s/json_lint"\n' "$helpers" >"$work/bin/jq"
    chmod +x "$work/bin/jq"
fi

# ---- the files that examples name ----

mkdir dir
cp "$root"/models/stories-7m/*.{json,safetensors} dir/
echo '{"chat_template": "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"}' >dir/tokenizer_config.json
ln -s dir Qwen3-0.6B
ln -s dir Llama-3.2-1B
weft quantize -q dir model-f16.gguf F16
weft quantize -q dir model-q4.gguf Q4_K_M
weft quantize -q dir model.gguf Q8_0
cp model-f16.gguf in.gguf
cp models/llama.weft my.weft
cp models/llama.weft in.weft
cp models/llama.weft gpt_neox.weft
cp dir/tokenizer.json tokenizer.json
head -c 12000 "$root/tests/data/prose.txt" >text.txt
cp text.txt wiki.test.raw
head -c 300 text.txt | tee notes.txt >a
echo '1 400 28 9' >ids.txt
printf '{"text": "Once upon a time"}\n{"text": "a sun"}\n' >texts.jsonl
printf '{"ids": [1, 400, 28]}\n{"ids": [9]}\n' >ids.jsonl
echo '[{"role": "user", "content": "Why is the sky blue?"}]' >chat.json
echo '{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}' >t.jinja
ln -s models/stories-7m-pirate pirate
ln -s models/stories-7m-pirate poet
(umask 077 && echo 'a-key-of-some-length' >keys)
echo '{"type": "object", "properties": {"age": {"type": "integer", "maximum": 99}}, "required": ["age"]}' >person.json
weft perplexity -q -m model-f16.gguf -f text.txt --kl-save base.kl >/dev/null

# ---- what is printed ----

verbs=$(weft help | sed -nE 's/^  ([a-z]+) .*/\1/p' | paste -sd '|' -)

# "  command" and a remark, on its right or below it.
listed() { sed -nE 's/^  ([^ ].*)/\1/p' | sed -E 's/   *.*//'; }

# Code of a Markdown page: lines of its blocks, and what stands between backticks.
code_of() {
    awk '
        function flush(    n, part, i) {
            n = split(text, part, "`")
            for (i = 2; i <= n; i += 2) print part[i]
            text = ""
        }
        /^ *```/        { flush(); block = !block; next }
        block || /^    / { flush(); sub(/^ +/, ""); sub(/  *#.*/, ""); print; next }
        /^ *$/          { flush(); next }
                        { text = text " " $0 }
        END             { flush() }' "$1"
}

# Those that are commands of this program. What sets a machine up before them is left out.
commands_of() {
    code_of "$1" | sed -E 's/^([A-Z_]+=[^ ]+ |chrt -f [0-9]+ |taskset -c [0-9,]+ )*//' |
        grep -E "^((build/)?weft ($verbs) |build/(bench|tests)/|ctest )" || true
}

# complete COMMAND: sentences leave out what they have said before, and have words for any name.
complete() {
    local c=$1 flag
    c=$(sed -E 's/-m (FILE|MODEL)/-m model.gguf/; s/--json-schema FILE/--json-schema person.json/; s/ \[.*\]$//; s/(-o|--plan) FILE/\1 p.plan/; s/\bFILE\b/my.weft/
                s/\bVERB\b/check/; s/\bNAME\b/attend/; s/^build\/weft/weft/' <<<"$c")
    case $c in
    'weft fmt --write') c+=' my.weft' ;;
    'weft eval '* | 'weft bench '*) case $c in *' -m '* | *--random*) ;; *) c+=' -m model.gguf' ;; esac ;;
    esac
    case $c in *'eval '*--plan*) c+=' --ids 1' ;; esac
    case $c in
    'weft bench '* | 'build/bench/bench_jit '*) c=$(sed -E 's/ -n [0-9]+/ -n 2/; s/ -r [0-9]+/ -r 1/' <<<"$c") ;;
    esac
    case $c in
    'weft bench '*)
        for flag in '-p 8' '-n 2' '-r 1'; do
            case $c in *" ${flag% *} "*) ;; *) c+=" $flag" ;; esac
        done ;;
    'build/bench/bench_lora '*) c+=' tiny:Q8_0' ;;
    'weft serve '*) # once it listens it is asked to stop, and does
        c="$c --port 0 --json >line & until [ -s line ] || ! kill -0 \$!; do sleep 0.1; done; rm line; kill \$!; wait \$!" ;;
    esac
    printf '%s\n' "$c"
}

skipped='
./dev *                             builds, or fetches a model
ctest *                             this is a test of that suite
build/bench/bench_kernels --quick   takes minutes
build/bench/bench_kernels -t 2 *    takes minutes
build/bench/bench_prefix *          takes minutes
build/bench/bench_serve *           needs a server
curl *                              needs a server
weft bench *--device cuda*          needs a card
weft profile *--device cuda*        needs a card
weft bench *--device metal*         needs a Mac
weft profile *--device metal*       needs a Mac
weft verify *--device metal*        needs a Mac
weft build *                        needs a linker; tests/program/build.sh has all of it
'
# Without LLVM nothing shows or runs code.
[ -e "$build/libweft_llvm.so" ] || skipped="$skipped
*--stage llvm*  needs LLVM
*--stage asm*  needs LLVM
*--stage obj*  needs LLVM
*bench_jit*  needs LLVM"

is_skipped() {
    local pattern
    while IFS= read -r pattern; do
        # shellcheck disable=SC2254
        case $1 in ${pattern%%  *}) return 0 ;; esac
    done < <(grep . <<<"$skipped")
    return 1
}

{
    for verb in ${verbs//|/ }; do
        weft help "$verb" | sed -n '/^examples:/,$p' | listed | sed "s|^|help $verb	|"
    done
    sed -n '/^What to try next:/,/^END/p' "$root/dev" | listed | sed 's|^|./dev run	|'
    (cd "$root" && git ls-files '*.md' 2>/dev/null || find . -name '*.md' -not -path './build/*') | while read -r page; do
        commands_of "$root/$page" | sed "s|^|$page	|"
    done
} >list

# Each place is read, or the test would pass when its layout changes.
for place in 'help run' 'help quantize' './dev run' compiler/README.md; do
    grep -q "^$place	" list || { echo "commands.sh: found no command in $place"; exit 1; }
done

# ---- running them ----

failed=0 n=0 left_out=0
while IFS='	' read -r place command; do
    if is_skipped "$command"; then
        left_out=$((left_out + 1))
        continue
    fi
    now=$(complete "$command")
    n=$((n + 1))
    status=0
    bash -o pipefail -c "$now" </dev/null >said 2>&1 || status=$?
    [ "$status" = 0 ] && continue
    failed=1
    echo "$place prints \`$command\`; \`$now\` ends with status $status:"
    tail -n 8 said | sed 's/^/    /'
done <list
echo "$n commands, $left_out left out"
exit "$failed"
