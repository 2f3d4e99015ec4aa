# weft_3.awk - weft.h as a man page, in the macros of man(7): awk -v version=V -f weft_3.awk weft.h
#
# The header's form is all it knows: the first comment opens the page, its indented lines are code; a comment
# `/* ---- name ---- */` begins a section; a comment before a declaration, or behind it, explains it; one that an
# empty line follows explains the section. Declarations of functions begin with WEFT_API; structs and enums are
# shown as they stand. Lines of the preprocessor are left out.

function trim(s) { sub(/^[ \t]+/, "", s); sub(/[ \t]+$/, "", s); return s }

# Text as roff takes it: a dash that stays a dash, and no character that asks for something.
function roff(s) {
    gsub(/\\/, "\\e", s)
    gsub(/-/, "\\-", s)
    gsub(/'/, "\\(aq", s)
    gsub(/\^/, "\\(ha", s)
    gsub(/~/, "\\(ti", s)
    return s
}

# A line of its own must not begin like a request.
function line(s) { print (s ~ /^\./ ? "\\&" s : s) }

# Between backquotes is code, and set in bold.
function prose(s,    n, part, i, out) {
    n = split(s, part, "`")
    for (i = 1; i <= n; i++)
        out = out (i == 1 ? "" : i % 2 ? "\\fR" : "\\fB") roff(part[i])
    if (n % 2 == 0)
        out = out "\\fR"
    line(out)
}

function heading(s) { code_end(); print ".SH " roff(toupper(s)) }

# Lines of code that follow each other are one block.
function code(s) {
    if (!in_code)
        print ".PP\n.EX"
    in_code = 1
    s = roff(s)
    gsub(/`/, "\\(ga", s)
    line(s == "" ? "\\&" : s)
}
function code_end() {
    if (in_code)
        print ".EE"
    in_code = 0
}

# What is inside a comment, without its marks.
function inside(s) { sub(/^[ \t]*\/\*/, "", s); sub(/\*\/[ \t]*$/, "", s); return trim(s) }

# ---- the opening ----

function opening(s) {
    sub(/^ ?\* ?/, "", s)
    if (s ~ /^    /) {
        code(substr(s, 5))
        return
    }
    code_end()
    if (trim(s) == "")
        print ".PP"
    else
        prose(trim(s))
}

# ---- declarations ----

# The comment that waits for a declaration explains the section instead.
function flush_note() {
    code_end()
    if (note != "") {
        print ".PP"
        prose(note)
    }
    note = ""
}

function explain(s) {
    if (s == "")
        return
    print ".RS 4"
    prose(s)
    print ".RE"
}

function show_function(text,    behind, at) {
    at = index(text, "/*")
    if (at) {
        behind = inside(substr(text, at))
        text = substr(text, 1, at - 1)
    }
    gsub(/[ \t]+/, " ", text)
    gsub(/\* /, "*", text)
    sub(/^WEFT_API /, "", text)
    text = roff(trim(text))
    gsub(/ /, " \\%", text) # names are not hyphenated
    code_end()
    print ".PP"
    print "\\fB\\%" text "\\fR"
    explain(note (note != "" && behind != "" ? " " : "") behind)
    note = ""
}

function show_type(text,    n, part, i) {
    if (note != "")
        flush_note()
    n = split(text, part, "\n")
    for (i = 1; i <= n; i++)
        code(part[i])
}

# Is everything that was opened closed, and the end there?
function is_whole(text,    bare, opened, closed) {
    bare = text
    while (match(bare, /\/\*([^*]|\*+[^*\/])*\*+\//))
        bare = substr(bare, 1, RSTART - 1) substr(bare, RSTART + RLENGTH)
    if (index(bare, "/*"))
        return 0
    opened = gsub(/\{/, "{", bare)
    closed = gsub(/\}/, "}", bare)
    return opened == closed && bare ~ /;[ \t\n]*$/
}

function finish(text) {
    if (text ~ /^WEFT_API/) {
        gsub(/\n[ \t]*\*?[ \t]*/, " ", text)
        show_function(text)
    } else {
        show_type(text)
    }
}

BEGIN {
    print ".\\\" Made from weft.h by weft_3.awk."
    print ".TH \"WEFT\" 3 \"\" \"Weft " version "\" \"Weft\""
    heading("name")
    place = "title"
}

place == "title" {
    sub(/^\/\* *[^ ]+ +- +/, "")
    sub(/\.$/, "")
    print "weft \\- " roff($0)
    heading("synopsis")
    print "\\fB#include <weft.h>\\fR"
    print ".PP"
    print roff("cc ... $(pkg-config --cflags --libs weft)")
    heading("description")
    print ".ad l"
    place = "opening"
    next
}

place == "opening" {
    last = sub(/ *\*\/[ \t]*$/, "")
    if (begun || $0 !~ /^ \*[ \t]*$/)
        opening($0)
    begun = 1
    if (last) {
        place = "body"
        heading("status and types")
    }
    next
}

# A comment of several lines before a declaration.
place == "comment" {
    last = sub(/\*\/[ \t]*$/, "")
    sub(/^ *\* ?/, "")
    note = note (note == "" ? "" : " ") trim($0)
    if (last)
        place = "body"
    next
}

place == "declaration" {
    held = held "\n" $0
    if (is_whole(held)) {
        finish(held)
        place = "body"
    }
    next
}

/^#/ || /^extern "C"/ || /^}/ { next }

/^\/\* ---- .* ---- \*\// {
    flush_note()
    sub(/^\/\* ---- /, "")
    sub(/ ---- \*\/.*/, "")
    heading($0)
    next
}

/^\/\*/ {
    if (note != "")
        flush_note()
    if ($0 ~ /\*\/[ \t]*$/)
        note = inside($0)
    else {
        note = trim(substr($0, 3))
        place = "comment"
    }
    next
}

/^[ \t]*$/ { flush_note(); next }

{
    held = $0
    if (is_whole(held))
        finish(held)
    else
        place = "declaration"
}

END {
    flush_note()
    heading("see also")
    print "\\fBweft\\fR(1)"
}
