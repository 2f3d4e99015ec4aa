#!/usr/bin/env bash
# golden.sh - runs the program as its users do and compares what it says:
#     golden.sh [--update] WEFT HELPERS CASES...
# A case file holds cases of this form; parts that are empty are left out, and exit is 0 unless said:
#     === a title
#     $ weft version --json | json_lint
#     $ further lines of the same script
#     --- stdout
#     --- stderr
#     --- exit 2
# Each script runs under bash in an empty folder, with `weft`, the programs of the folder HELPERS and
# the files of tests/cli/files at hand; `models` is the folder of that name, `golden` has the small models of
# tests/golden. --update rewrites the case files; review the diff.
set -euo pipefail

update=
if [ "$1" = --update ]; then update=yes; shift; fi
weft=$(realpath "$1") helpers=$(realpath "$2")
shift 2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
ln -s "$weft" "$work/bin/weft"
export PATH="$work/bin:$helpers:$PATH" LC_ALL=C XDG_CACHE_HOME="$work/cache"
unset NO_COLOR CLICOLOR_FORCE COLUMNS WEFT_PATH TERM 2>/dev/null || true

# A last line without its end is marked, so that the difference shows.
section() {
    [ -s "$2" ] || return 0
    echo "--- $1"
    cat "$2"
    [ -z "$(tail -c 1 "$2")" ] || printf '\n%%no line end\n'
}

# run_case TITLE SCRIPT: prints the case with what it says now.
run_case() {
    local folder=$work/case status=0
    rm -rf "$folder" "$XDG_CACHE_HOME"
    mkdir "$folder"
    cp -R "$here/files/." "$folder"
    ln -s "$here/../../models" "$folder/models"
    ln -s "$here/../golden/data" "$folder/golden"
    (cd "$folder" && bash -c "$2") </dev/null >"$work/stdout" 2>"$work/stderr" || status=$?
    echo "=== $1"
    printf '%s' "$2" | sed 's/^/$ /'
    section stdout "$work/stdout"
    section stderr "$work/stderr"
    [ "$status" = 0 ] || echo "--- exit $status"
    echo
}

# run_file: the whole file as it would have to be.
run_file() {
    local line title='' script='' n=0
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in
        '=== '*)
            [ -z "$title" ] || run_case "$title" "$script"
            title=${line#=== } script='' n=$((n + 1)) ;;
        '$ '*) script+=${line#'$ '}$'\n' ;;
        *) [ -n "$title" ] || printf '%s\n' "$line" ;;
        esac
    done <"$1"
    [ -z "$title" ] || run_case "$title" "$script"
    echo "$n" >"$work/count"
}

failed=0
for file in "$@"; do
    run_file "$file" >"$work/now"
    if cmp -s "$file" "$work/now"; then
        echo "$(basename "$file"): $(cat "$work/count") cases"
    elif [ -n "$update" ]; then
        cp "$work/now" "$file"
        echo "$(basename "$file"): rewritten"
    else
        echo "$(basename "$file"): the program says something else (- expected, + now)"
        diff -U 3 "$file" "$work/now" || true
        failed=1
    fi
done
exit "$failed"
