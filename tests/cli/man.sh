#!/usr/bin/env bash
# man.sh - the man pages are there for every verb and read well: man.sh WEFT SHARE
# What judges them is what is installed: groff, mandoc, man.
set -euo pipefail
weft=$1 share=$2
export LC_ALL=C MANWIDTH=90 MANROFFOPT=''
failed=0
judges=''
for judge in groff mandoc man; do ! command -v "$judge" >/dev/null || judges="$judges $judge"; done

fail() { failed=1; echo "$*"; }
verbs=$("$weft" help --json | grep -o '"name":"[a-z]*","operands' | cut -d'"' -f4 | sort)
cd "$share/man/man1"
pages=$(printf '%s\n' weft-*.1 | sed 's/^weft-//; s/\.1$//' | sort)
[ "$verbs" = "$pages" ] || fail "pages: ${pages//$'\n'/ }; verbs: ${verbs//$'\n'/ }"

for page in weft.1 weft-*.1; do
    for judge in $judges; do
        case $judge in
        groff) said=$(groff -man -ww -Tutf8 "$page" 2>&1 >/dev/null) ;;
        # The pages carry no date, so that the same source builds the same bytes.
        mandoc) said=$(mandoc -T lint -W warning "$page" 2>&1 | grep -v 'missing date' || true) ;;
        man) said=$(man --warnings -l "$page" 2>&1 >/dev/null || true) ;;
        esac
        [ -z "$said" ] || fail "$judge on $page: $said"
    done
done
echo "$(printf '%s\n' weft*.1 | wc -l) pages, judged by${judges:- nobody}"
exit "$failed"
