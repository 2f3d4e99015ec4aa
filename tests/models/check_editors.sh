#!/usr/bin/env bash
# check_editors.sh LEXER DSL - the grammars for editors, and the reference, know the reserved words: all of
# them, and no others.
set -u
export LC_ALL=C
lexer=$1
dsl=$2
bad=0

reserved=$(sed -n 's/^"\([a-z]*\)" *{ return [A-Z]*; }$/\1/p' "$lexer" | sort)
compare() # NAME: the words on standard input against the reserved ones
{
    found=$(tr -cs 'a-z' '\n' | sed '/^$/d' | sort -u)
    missing=$(comm -23 <(echo "$reserved") <(echo "$found") | xargs)
    extra=$(comm -13 <(echo "$reserved") <(echo "$found") | xargs)
    [ -z "$missing" ] || { bad=1; echo "$1 does not know: $missing"; }
    [ -z "$extra" ] || { bad=1; echo "$1 takes these for reserved words: $extra"; }
}

# weftBuiltin has names that are always there, which are not reserved.
sed -n 's/^syntax keyword weft\([A-Z][a-z]*\) */\1 /p' "$dsl/editors/vim/syntax/weft.vim" |
    sed '/^Builtin /d; s/^[A-Za-z]* //' | compare vim/syntax/weft.vim

# The patterns of "keyword", up to the next entry of the repository.
sed -n '/^    "keyword": {/,/^    }/p' "$dsl/editors/vscode/syntaxes/weft.tmLanguage.json" |
    grep -o '(?:[a-z|]*)' | tr -d '(?:)' | compare vscode/syntaxes/weft.tmLanguage.json

awk '/^- Reserved words:/ { on = 1; next } on && /```/ { if (inside) exit; inside = 1; next } inside' "$dsl/LANGUAGE.md" |
    compare LANGUAGE.md

n=$(echo "$reserved" | wc -l)
[ "$n" -gt 25 ] || { echo "only $n reserved words found in $lexer"; bad=1; }
echo "$n reserved words"
exit $bad
