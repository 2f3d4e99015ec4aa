/* keys.c - lines of keys. */
#include "runtime/http/keys.h"

#include "runtime/base/file.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEYS_FILE_MAX = 1 << 20, WORDS_MAX = 4 };

typedef VEC(api_key) key_list;

static weft_status line_fail(weft_diag *dg, const char *path, size_t line, const char *what)
{
    return weft_fail(dg, W1837, WEFT_NOWHERE, "%s: line %zu: %s", path, line, what);
}

static str next_word(str *rest)
{
    while (rest->n && (*rest->p == ' ' || *rest->p == '\t' || *rest->p == '\r'))
        *rest = (str){rest->p + 1, rest->n - 1};
    str w = {rest->p, 0};
    while (w.n < rest->n && w.p[w.n] != ' ' && w.p[w.n] != '\t' && w.p[w.n] != '\r')
        w.n++;
    *rest = (str){rest->p + w.n, rest->n - w.n};
    return w;
}

static bool read_setting(str word, const char *name, double lo, double hi, double *out)
{
    char text[32], *end;
    size_t n = strlen(name);
    if (!str_starts(word, str_of(name)) || word.n - n >= sizeof text)
        return false;
    memcpy(text, word.p + n, word.n - n);
    text[word.n - n] = 0;
    double x = strtod(text, &end);
    if (end == text || *end || !(x >= lo && x <= hi))
        return false;
    *out = x;
    return true;
}

static weft_status read_line(weft_diag *dg, const char *path, size_t line, str text, key_list *list)
{
    str word[WORDS_MAX];
    size_t n = 0, plain = 0;
    double priority = 0, weight = 1;
    for (str w = next_word(&text); w.n && w.p[0] != '#'; w = next_word(&text)) {
        if (n == WORDS_MAX)
            return line_fail(dg, path, line, "too many words");
        word[n++] = w;
    }
    if (n == 0)
        return WEFT_OK;
    while (plain < n && plain < 2 && !memchr(word[plain].p, '=', word[plain].n))
        plain++;
    /* A key may hold = itself, at its end as base64 has it: what is no setting is one. */
    double unused;
    if (plain < n && plain < 2 && !read_setting(word[plain], "priority=", -100, 100, &unused) &&
        !read_setting(word[plain], "weight=", 0.01, 100, &unused))
        plain++;
    if (plain == 0)
        return line_fail(dg, path, line, "there is no key");
    for (size_t i = plain; i < n; i++)
        if (!read_setting(word[i], "priority=", -100, 100, &priority) &&
            !read_setting(word[i], "weight=", 0.01, 100, &weight))
            return line_fail(dg, path, line,
                             "expected priority=N from -100 to 100, or weight=N from 0.01 to 100");
    api_key k = {.priority = (int)priority, .weight = weight};
    str key = word[plain - 1];
    if (key.n < KEY_BYTES_MIN || key.n > KEY_BYTES_MAX)
        return line_fail(dg, path, line, "a key has 8 to 256 characters");
    memcpy(k.key, key.p, key.n);
    k.key_n = key.n;
    if (plain == 2)
        snprintf(k.name, sizeof k.name, STR_FMT, STR_ARG(word[0]));
    else
        snprintf(k.name, sizeof k.name, "key-%zu", list->n + 1);
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i].key_n == k.key_n && memcmp(list->at[i].key, k.key, k.key_n) == 0)
            return line_fail(dg, path, line, "the same key stands in a line before");
    if (list->n == KEYS_MAX)
        return line_fail(dg, path, line, "there are more than 1000 keys");
    VEC_PUSH(list, k);
    return WEFT_OK;
}

weft_status keys_parse(weft_diag *dg, const char *path, str text, api_keys *out)
{
    key_list list = {0};
    weft_status st = WEFT_OK;
    size_t line = 0;
    if (text.n && memchr(text.p, 0, text.n))
        return weft_fail(dg, W1837, WEFT_NOWHERE, "%s: has a NUL byte in it", path);
    while (text.n && st == WEFT_OK) {
        const char *nl = memchr(text.p, '\n', text.n);
        size_t n = nl ? (size_t)(nl - text.p) : text.n;
        st = read_line(dg, path, ++line, (str){text.p, n}, &list);
        text = (str){text.p + n + (nl != NULL), text.n - n - (nl != NULL)};
    }
    if (st == WEFT_OK && list.n == 0)
        st = weft_fail(dg, W1837, WEFT_NOWHERE, "%s: holds no key", path);
    if (st == WEFT_OK)
        *out = (api_keys){list.at, list.n};
    else
        VEC_FREE(&list);
    return st;
}

weft_status keys_read(weft_diag *dg, const char *path, api_keys *out)
{
    strbuf text = {0};
    struct stat info;
    weft_status st = WEFT_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        int why = fd < 0 ? errno : EINVAL;
        if (fd >= 0)
            close(fd);
        return weft_fail(dg, W1837, WEFT_NOWHERE, "%s: cannot be read: %s", path, strerror(why));
    }
    if (info.st_mode & (S_IRGRP | S_IROTH))
        weft_warn(dg, W1836, WEFT_NOWHERE, "%s: others than its owner can read it (mode %03o)",
                  path, (unsigned)info.st_mode & 0777);
    if (info.st_size > KEYS_FILE_MAX)
        st = weft_fail(dg, W1837, WEFT_NOWHERE, "%s: has %lld bytes, the limit is %d", path,
                       (long long)info.st_size, KEYS_FILE_MAX);
    char block[4096];
    ssize_t n = 0;
    while (st == WEFT_OK && text.n <= KEYS_FILE_MAX && (n = read(fd, block, sizeof block)) > 0)
        strbuf_put(&text, (str){block, (size_t)n});
    close(fd);
    if (st == WEFT_OK && n < 0)
        st = weft_fail(dg, W1837, WEFT_NOWHERE, "%s: cannot be read: %s", path, strerror(errno));
    if (st == WEFT_OK)
        st = keys_parse(dg, path, text.n ? strbuf_view(&text) : STR(""), out);
    if (text.n)
        explicit_bzero(text.p, text.n);
    strbuf_free(&text);
    return st;
}

void keys_free(api_keys *k)
{
    if (k->at)
        explicit_bzero(k->at, k->n * sizeof *k->at);
    vec_release(k->at);
    *k = (api_keys){0};
}

int keys_find(const api_keys *k, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    int found = -1;
    if (!authorization || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return -1;
    const char *given = authorization + sizeof scheme - 1;
    size_t n = strlen(given);
    if (n > KEY_BYTES_MAX)
        return -1;
    /* All keys, all bytes: how long it takes says nothing of how much was right. */
    for (size_t i = 0; i < k->n; i++) {
        unsigned differ = k->at[i].key_n != n;
        for (size_t b = 0; b < KEY_BYTES_MAX; b++)
            differ |=
                (unsigned char)k->at[i].key[b] ^ (unsigned)(b < n ? (unsigned char)given[b] : 0);
        if (!differ)
            found = (int)i;
    }
    return found;
}
