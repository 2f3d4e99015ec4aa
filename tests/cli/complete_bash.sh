#!/usr/bin/env bash
# complete_bash.sh - what bash completes after the words given: complete_bash.sh SHARE
set -uo pipefail # as in a person's shell, a command that fails ends nothing
# shellcheck disable=SC1091
source "$1/bash-completion/completions/weft"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit
mkdir folder
touch "two words.weft" model.gguf
failed=0
n=0

# expect WORDS... : REPLIES... - the last word is the one being typed.
expect() {
    local got want
    COMP_WORDS=(weft)
    while [ "$1" != : ]; do COMP_WORDS+=("$1"); shift; done
    shift
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    _weft
    n=$((n + 1))
    got=$(printf '%s\n' "${COMPREPLY[@]}" | sort)
    want=$(printf '%s\n' "$@" | sort)
    [ "$got" = "$want" ] || { failed=1; printf '%s\n  gave: %s\n  not:  %s\n' "${COMP_WORDS[*]}" "${got//$'\n'/ }" "$*"; }
}

# has WORDS... : REPLY - this is among them.
has() {
    local reply=${*: -1}
    COMP_WORDS=(weft "${@:1:$#-2}")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    _weft
    n=$((n + 1))
    grep -qxF -e "$reply" <<<"$(printf '%s\n' "${COMPREPLY[@]}")" ||
        { failed=1; echo "${COMP_WORDS[*]} does not give $reply"; }
}

for verb in check fmt graph show eval ops help version; do has '' : "$verb"; done
expect vers : version
expect --v : --version
expect nonsense '' :
expect check --mo : --model
expect check --log : --log-file
expect cache --max : --max-size
expect perplexity --no-w : --no-weight-cache
has eval -- : --threads
has eval - : -t
expect fmt --color '' : auto always never
expect fmt --color a : auto always
expect fmt --color = a : auto always
expect fmt --color=a : --color=auto --color=always
expect help --completion z : zsh
expect eval --rows '' : all last
expect eval --ids '' :
expect eval --out m : model.gguf
expect eval -m '' : folder model.gguf 'two words.weft'
expect eval --model=mo : --model=model.gguf
expect check tw : 'two words.weft'
expect check --color auto f : folder
expect check -- - :
expect ops rms : rms_norm
expect help vers : version
expect version '' :
echo "$n completions"
exit "$failed"
