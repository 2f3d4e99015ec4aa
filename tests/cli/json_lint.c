/* json_lint.c - exits 0 if standard input is one JSON document (RFC 8259) and a line end, else says
 * where it goes wrong and exits 1. Written apart from the writer it checks. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *at, *text;

static void fail(const char *what)
{
    printf("not JSON at byte %td: %s\n", at - text, what);
    exit(1);
}

static void blanks(void)
{
    while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')
        at++;
}

static void expect(const char *word)
{
    size_t n = strlen(word);
    if (strncmp(at, word, n) != 0)
        fail(word);
    at += n;
}

static void digits(void)
{
    if (!isdigit((unsigned char)*at))
        fail("a digit is missing");
    while (isdigit((unsigned char)*at))
        at++;
}

static void number(void)
{
    if (*at == '-')
        at++;
    if (*at == '0')
        at++;
    else
        digits();
    if (*at == '.') {
        at++;
        digits();
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        if (*at == '+' || *at == '-')
            at++;
        digits();
    }
}

static void string(void)
{
    expect("\"");
    while (*at != '"') {
        if ((unsigned char)*at < 0x20)
            fail("a control character in a string");
        if (*at++ != '\\')
            continue;
        if (*at == 'u') {
            for (int i = 1; i <= 4; i++)
                if (!isxdigit((unsigned char)at[i]))
                    fail("a bad \\u escape");
            at += 4;
        } else if (!*at || !strchr("\"\\/bfnrt", *at)) {
            fail("an unknown escape");
        }
        at++;
    }
    at++;
}

static void value(int depth)
{
    if (depth > 1000)
        fail("nested too deeply");
    blanks();
    if (*at == '{' || *at == '[') {
        bool object = *at == '{';
        char close = object ? '}' : ']';
        at++;
        blanks();
        for (bool first = true; *at != close; first = false) {
            if (!first)
                expect(",");
            blanks();
            if (object) {
                string();
                blanks();
                expect(":");
            }
            value(depth + 1);
            blanks();
        }
        at++;
    } else if (*at == '"') {
        string();
    } else if (*at == 't') {
        expect("true");
    } else if (*at == 'f') {
        expect("false");
    } else if (*at == 'n') {
        expect("null");
    } else {
        number();
    }
}

int main(void)
{
    size_t n = 0, cap = 1 << 16;
    char *buf = malloc(cap);
    while (buf && (n += fread(buf + n, 1, cap - n - 1, stdin)) == cap - 1)
        buf = realloc(buf, cap *= 2);
    if (!buf)
        return 1;
    buf[n] = '\0';
    at = text = buf;
    value(0);
    if (strcmp(at, "\n") != 0)
        fail("something follows the document, or its line end is missing");
    free(buf);
    puts("valid JSON");
    return 0;
}
