#!/usr/bin/env bash
# complete_zsh.sh - what zsh completes on a line that is typed in a terminal: complete_zsh.sh SHARE
# Skipped where there is no zsh.
set -euo pipefail
command -v zsh >/dev/null || { echo "skipped: there is no zsh"; exit 77; }
share=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
: >model.gguf
cat >drive.zsh <<'END'
zmodload zsh/zpty
typeset -i failed=0
# line TYPED COMPLETED: a tab behind TYPED must make it COMPLETED. The key ^X writes the line to a file.
zpty t "PS1= TERM=dumb zsh -f -i"
zpty -w t "fpath=($1/zsh/site-functions \$fpath); autoload -Uz compinit; compinit -u -D"
zpty -w t "show() { print -r -- \"\$BUFFER\" >line; BUFFER= }; zle -N show; bindkey '^X' show"
zpty -w t "unsetopt always_last_prompt list_beep beep; LISTMAX=1000; print ready >line"
for ((i = 0; i < 200; i++)) { [[ -s line ]] && break; sleep 0.05 }
line() {
    rm -f line
    zpty -n -w t "$1"$'\t\C-X'
    for ((i = 0; i < 200; i++)) { [[ -s line ]] && break; sleep 0.05; zpty -r -t t >/dev/null }
    local got="$(<line)"
    [[ $got = $2 ]] || { print -r -- "'$1' became '$got', not '$2'"; failed=1 }
}
line 'weft vers' 'weft version '
line 'weft fmt --color=al' 'weft fmt --color=always '
line 'weft eval --rows l' 'weft eval --rows last '
line 'weft eval -m mo' 'weft eval -m model.gguf '
line 'weft check mo' 'weft check model.gguf '
line 'weft check --log' 'weft check --log-file='
line 'weft ops rms' 'weft ops rms_norm '
line 'weft help vers' 'weft help version '
zpty -d t
exit failed
END
timeout 60 zsh -f drive.zsh "$share" 2>&1
