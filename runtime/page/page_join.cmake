# Joins the page and writes it as C: cmake -DDIR= -DNAMES= -DOUT= -P page_join.cmake. For tests, which need no compiler, the same
# page is written as OUT/index.html and the headers that go with it as OUT/headers.txt.

# The standard's 64 letters for a number in hexadecimal, as Content-Security-Policy spells hashes.
function(base64_of_hex hex out)
  set(letters "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  string(LENGTH "${hex}" n)
  set(text "")
  set(i 0)
  while(i LESS n) # three bytes, six digits, are four letters; fewer at the end are padded
    string(SUBSTRING "${hex}" ${i} 6 group)
    string(LENGTH "${group}" have)
    string(SUBSTRING "${group}0000" 0 6 group)
    foreach(shift 18 12 6 0)
      math(EXPR index "(0x${group} >> ${shift}) & 63")
      string(SUBSTRING "${letters}" ${index} 1 letter)
      string(APPEND text "${letter}")
    endforeach()
    math(EXPR i "${i} + 6")
  endwhile()
  string(LENGTH "${text}" n)
  if(have EQUAL 4)
    math(EXPR n "${n} - 1")
    string(SUBSTRING "${text}" 0 ${n} text)
    string(APPEND text "=")
  elseif(have EQUAL 2)
    math(EXPR n "${n} - 2")
    string(SUBSTRING "${text}" 0 ${n} text)
    string(APPEND text "==")
  endif()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

function(source_of text out)
  string(SHA256 hash "${text}")
  base64_of_hex("${hash}" hash)
  set(${out} "'sha256-${hash}'" PARENT_SCOPE)
endfunction()

# ---- the page ----

set(script "(function () {\n\"use strict\";\n\n")
string(REPLACE "," ";" NAMES "${NAMES}")
foreach(name ${NAMES})
  file(READ ${DIR}/${name} text)
  if(text MATCHES "</script|<!--")
    message(FATAL_ERROR "${name} has \"${CMAKE_MATCH_0}\", which ends or changes the script that it becomes a part of")
  endif()
  string(APPEND script "${text}\n")
endforeach()
string(APPEND script "})();\n")
file(READ ${DIR}/page.css style)
file(READ ${DIR}/page.html html)
string(REPLACE "@STYLE@" "${style}" html "${html}")
string(REPLACE "@SCRIPT@" "${script}" html "${html}")
file(WRITE ${OUT}/index.html "${html}")

# ---- what goes with it ----

source_of("${script}" script_source)
source_of("${style}" style_source)
string(SHA256 etag "${html}")
string(SUBSTRING "${etag}" 0 32 etag)
string(CONCAT policy "default-src 'none'; script-src ${script_source}; style-src ${style_source}; connect-src 'self'; img-src blob: data:; "
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
set(rows "")
set(lines "")
macro(header name value)
  string(APPEND rows "    {\"${name}\", \"${value}\"},\n")
  string(APPEND lines "${name}: ${value}\n")
endmacro()
header("Content-Type" "text/html; charset=utf-8")
header("Content-Security-Policy" "${policy}")
header("X-Content-Type-Options" "nosniff")
header("Referrer-Policy" "no-referrer")
header("Cross-Origin-Opener-Policy" "same-origin")
header("Cross-Origin-Resource-Policy" "same-origin")
header("Cache-Control" "no-cache")
file(WRITE ${OUT}/headers.txt "${lines}")

# ---- as C ----

file(READ ${OUT}/index.html hex HEX)
string(LENGTH "${hex}" size)
math(EXPR size "${size} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n    " bytes "${bytes}")
file(WRITE ${OUT}/page_text.c "/* Generated from runtime/page by page_join.cmake. */
#include \"runtime/page/page.h\"

static const unsigned char html[] = {
    ${bytes}0};

static const page_header headers[] = {
${rows}};

const page page_index = {(const char *)html, ${size}, \"\\\"${etag}\\\"\", headers, (int)(sizeof headers / sizeof *headers)};
")
