/* shape_list.c - reads lines of words and numbers. */
#include "bench/shape_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 256, SIZE_MAX_VALUE = 1 << 24 };

static bool read_number(const char *word, int64_t *out)
{
    char *end;
    errno = 0;
    long long x = strtoll(word, &end, 10);
    *out = x;
    return end != word && !*end && !errno && x >= 0 && x <= SIZE_MAX_VALUE;
}

/* False if the line is none; an empty op for one that says nothing. */
static bool read_line(char *line, shape_entry *out)
{
    char *rest = NULL;
    *out = (shape_entry){.count = 0};
    line[strcspn(line, "#\r\n")] = 0;
    for (char *word = strtok_r(line, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        if (out->count > 0)
            return false; /* the count is the last */
        if (!out->op[0]) {
            if (strlen(word) >= sizeof out->op)
                return false;
            memcpy(out->op, word, strlen(word) + 1);
        } else if (word[0] == 'x') {
            if (!read_number(word + 1, &out->count) || out->count < 1)
                return false;
        } else if (out->n_size == SHAPE_SIZES_MAX ||
                   !read_number(word, &out->size[out->n_size++])) {
            return false;
        }
    }
    return !out->op[0] || (out->n_size > 0 && out->count > 0);
}

static void add_name(shape_entry *e, const char *name, size_t n)
{
    size_t have = strlen(e->models);
    if (have + n + 2 < sizeof e->models)
        snprintf(e->models + have, sizeof e->models - have, "%s%.*s", have ? "," : "", (int)n,
                 name);
}

static shape_entry *find(shape_list *list, const shape_entry *e)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->at[i].op, e->op) == 0 && list->at[i].n_size == e->n_size &&
            memcmp(list->at[i].size, e->size, sizeof e->size) == 0)
            return &list->at[i];
    return NULL;
}

static weft_status read_file(weft_diag *dg, const char *path, const char *name, shape_list *out)
{
    FILE *f = fopen(path, "r");
    char line[LINE_MAX_BYTES];
    weft_status st = WEFT_OK;
    size_t stem = strlen(name) - strlen(".txt");
    if (!f)
        return weft_fail(dg, W1001, WEFT_NOWHERE, "%s: %s", path, strerror(errno));
    for (int n = 1; st == WEFT_OK && fgets(line, sizeof line, f); n++) {
        shape_entry e, *same;
        if (!read_line(line, &e)) {
            st = weft_fail(dg, W1002, WEFT_NOWHERE,
                           "%s:%d: expected an operator, its sizes and xCOUNT", path, n);
        } else if (e.op[0]) {
            same = find(out, &e);
            if (!same) {
                VEC_PUSH(out, e);
                same = &out->at[out->n - 1];
            }
            add_name(same, name, stem);
        }
    }
    fclose(f);
    return st;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

weft_status shape_list_read(weft_diag *dg, const char *folder, const char *pattern, shape_list *out)
{
    VEC(const char *) names = {0};
    arena *a = arena_create();
    weft_status st = WEFT_OK;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (str_ends(str_of(e->d_name), STR(".txt")) && strstr(e->d_name, pattern))
            VEC_PUSH(&names, arena_printf(a, "%s", e->d_name).p);
    if (dir)
        closedir(dir);
    if (names.n == 0)
        st = weft_fail(dg, W1001, WEFT_NOWHERE, "%s has no shapes of '%s'", folder, pattern);
    else
        qsort(names.at, names.n, sizeof *names.at, by_name);
    for (size_t i = 0; st == WEFT_OK && i < names.n; i++)
        st = read_file(dg, arena_printf(a, "%s/%s", folder, names.at[i]).p, names.at[i], out);
    VEC_FREE(&names);
    arena_destroy(a);
    return st;
}
