/* verb_cache.c - `weft cache`: what is kept on disk between runs: weights interleaved for this machine's kernels, and generated
 * code. */
#include "runtime/base/json_write.h"
#include "runtime/base/threads.h"
#include "runtime/base/utf8.h"
#include "runtime/cli/cli.h"
#include "runtime/exec/code_cache.h"

#include <inttypes.h>
#include <time.h>

typedef struct {
    const char *dir;
    int64_t max_mib;
} cache_verb_options;

/* clang-format off */
static const flag cache_flags[] = {
    FLAG_ROW_STR(cache_verb_options, dir, "dir", NULL, "DIR", NULL, "this folder, where a program keeps its files elsewhere"),
    FLAG_ROW_INT(cache_verb_options, max_mib, "max-size", NULL, "MIB", "0", 0, 1 << 30, "of prune: keep this many MiB of weights and of code, what was used last first"),
    FLAG_ROW_END(cache_verb_options),
};

static const char *const examples[] = {
    "weft cache list",                  "what is kept, for which model, and when it was used last",
    "weft cache check",                 "read all of it and compare checksums; what is damaged is removed",
    "weft cache prune",                 "remove all of it",
    "weft cache prune --max-size 8192", "keep 8 GiB of what was used last",
    NULL,
};
/* clang-format on */

const verb_page cache_verb_page = {
    cache_flags,
    "Kernels want the weights of some types interleaved. That is done once and kept under "
    "$XDG_CACHE_HOME/weft/weights, or $HOME/.cache/weft/weights: at most 64 GiB, and no file that "
    "would "
    "leave less than 1 GiB or a twentieth of the disk free; --no-weight-cache of other verbs does "
    "without. Removing any of it is safe at any time. "
    "A file is checked when it is first used after it has changed or the system was started; a few "
    "parts of it any other time, and where it has more than 4 GiB; all of it by check and by "
    "`weft verify`. A damaged file is removed and made again; check leaves with status 1 if it "
    "found one, and leaves files of another version alone. Files with names that weft does not "
    "give are never touched. Code that --exec jit has made of plans is kept under weft/code beside "
    "that, at most 256 MiB; with --dir both are in that folder.",
    examples,
};

/* What is kept. */
typedef struct {
    const char *name; /* in JSON; NULL: it is the object itself */
    bool (*folder)(const char *dir, strbuf *out);
    size_t (*list)(arena *a, const char *folder, cache_file **out_files);
    weft_status (*check)(weft_diag *dg, const char *path, const char **out_fault);
    uint64_t (*prune)(const char *folder, uint64_t bytes_max);
} kept_kind;

static weft_status check_weights(weft_diag *dg, const char *path, const char **out_fault)
{
    return cache_check(dg, path, threads_default(), out_fault);
}

static weft_status check_code(weft_diag *dg, const char *path, const char **out_fault)
{
    (void)dg;
    *out_fault = code_cache_check(path);
    return WEFT_OK;
}

static const kept_kind kinds[] = {
    {NULL, cache_folder, cache_list, check_weights, cache_prune},
    {"code", code_folder, code_cache_list, check_code, code_cache_prune},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void put_file_json(json_writer *w, const cache_file *f)
{
    json_open(w, '{');
    json_key_text(w, "file", f->name);
    json_key_int(w, "bytes", (int64_t)f->bytes);
    json_key_int(w, "used", f->used);
    json_key_text(w, "model", f->model);
    json_close(w, '}');
}

static void list_json(json_writer *w, const char *folder, const cache_file *files, size_t n)
{
    json_key_text(w, "folder", folder);
    json_key_open(w, "files", '[');
    for (size_t i = 0; i < n; i++)
        put_file_json(w, &files[i]);
    json_close(w, ']');
}

static void list_text(strbuf *out, const char *folder, const cache_file *files, size_t n)
{
    uint64_t all = 0;
    for (size_t i = 0; i < n; i++) {
        char when[32] = "";
        time_t used = (time_t)files[i].used;
        struct tm tm;
        if (localtime_r(&used, &tm))
            strftime(when, sizeof when, "%Y-%m-%d %H:%M", &tm);
        strbuf_add(out, "%9.1f MiB  %s  ", (double)files[i].bytes / (1 << 20), when);
        utf8_put_safe(out, str_of(files[i].name));
        strbuf_put(out, STR("  "));
        utf8_put_safe(out, str_of(files[i].model));
        strbuf_putc(out, '\n');
        all += files[i].bytes;
    }
    strbuf_add(out, "%zu file%s, %.1f MiB in %s\n", n, n == 1 ? "" : "s", (double)all / (1 << 20),
               folder);
}

/* Weights, then code; people see the latter where there is some. */
static weft_status list(cli *c, const char *const *folder)
{
    arena *a = arena_create();
    strbuf out = {0};
    json_writer w = {.out = &out};
    bool json = c->common.json;
    if (json)
        json_open(&w, '{');
    for (int k = 0; k < KINDS; k++) {
        cache_file *files;
        size_t n = kinds[k].list(a, folder[k], &files);
        if (json && kinds[k].name)
            json_key_open(&w, kinds[k].name, '{');
        if (json)
            list_json(&w, folder[k], files, n);
        else if (n > 0 || k == 0)
            list_text(&out, folder[k], files, n);
        if (json && kinds[k].name)
            json_close(&w, '}');
    }
    if (json) {
        json_close(&w, '}');
        strbuf_putc(&out, '\n');
    }
    cli_print_all(c, &out);
    arena_destroy(a);
    return WEFT_OK;
}

/* ---- checking ---- */

/* What was found, and done. */
typedef struct {
    const char *fault; /* NULL: none */
    bool removed;
} checked;

static void put_checked_json(json_writer *w, const cache_file *f, checked how)
{
    json_open(w, '{');
    json_key_text(w, "file", f->name);
    json_key_int(w, "bytes", (int64_t)f->bytes);
    json_key_text(w, "fault", how.fault);
    json_key_bool(w, "removed", how.removed);
    json_close(w, '}');
}

static void put_checked_text(strbuf *out, const cache_file *f, checked how)
{
    strbuf_add(out, "%9.1f MiB  ", (double)f->bytes / (1 << 20));
    utf8_put_safe(out, str_of(f->name));
    if (how.fault)
        strbuf_add(out, "  %s: %s\n", how.removed ? "removed" : "not removed", how.fault);
    else
        strbuf_add(out, "  good\n");
}

/* A file of another version cannot be checked here, and is no damage. */
static weft_status check_file(cli *c, const kept_kind *kind, const char *path, const cache_file *f,
                              checked *out)
{
    *out = (checked){0};
    if (f->other_version) {
        out->fault = "it is of another version";
        return WEFT_OK;
    }
    WEFT_TRY(kind->check(c->dg, path, &out->fault));
    out->removed = out->fault && cache_remove(path);
    return WEFT_OK;
}

/* What was found so far. */
typedef struct {
    size_t seen, bad, gone;
} tally;

static weft_status check_kind(cli *c, const kept_kind *kind, const char *folder, strbuf *out,
                              json_writer *w, tally *t)
{
    arena *a = arena_create();
    cache_file *files;
    size_t n = kind->list(a, folder, &files);
    weft_status st = WEFT_OK;
    for (size_t i = 0; i < n && st == WEFT_OK; i++) {
        checked how;
        const char *path = arena_printf(a, "%s/%s", folder, files[i].name).p;
        st = check_file(c, kind, path, &files[i], &how);
        if (st != WEFT_OK)
            break;
        t->seen += !files[i].other_version;
        t->bad += how.fault && !files[i].other_version;
        t->gone += how.removed;
        if (w)
            put_checked_json(w, &files[i], how);
        else
            put_checked_text(out, &files[i], how);
    }
    arena_destroy(a);
    return st;
}

/* Exit status 1 if anything was damaged. What was done before an error is printed all the same. */
static weft_status check(cli *c, const char *const *folder)
{
    strbuf out = {0};
    json_writer w = {.out = &out};
    bool json = c->common.json;
    tally t = {0};
    weft_status st = WEFT_OK;
    if (json) {
        json_open(&w, '{');
        json_key_text(&w, "folder", folder[0]);
        json_key_open(&w, "files", '[');
    }
    for (int k = 0; k < KINDS && st == WEFT_OK; k++)
        st = check_kind(c, &kinds[k], folder[k], &out, json ? &w : NULL, &t);
    if (json) {
        json_close(&w, ']');
        json_key_int(&w, "removed", (int64_t)t.gone);
        json_close(&w, '}');
        strbuf_add(&out, "\n");
    } else {
        strbuf_add(&out, "%zu file%s checked in %s, %zu removed\n", t.seen, t.seen == 1 ? "" : "s",
                   folder[0], t.gone);
    }
    cli_print_all(c, &out);
    return st == WEFT_OK && t.bad ? WEFT_ERR_FORMAT : st;
}

/* ---- removing ---- */

static weft_status prune(cli *c, const char *const *folder)
{
    const cache_verb_options *o = c->options;
    uint64_t gone = 0;
    for (int k = 0; k < KINDS; k++)
        gone += kinds[k].prune(folder[k], (uint64_t)o->max_mib << 20);
    strbuf out = {0};
    if (c->common.json) {
        json_writer w = {.out = &out};
        json_open(&w, '{');
        json_key_int(&w, "removed_bytes", (int64_t)gone);
        json_close(&w, '}');
        strbuf_add(&out, "\n");
    } else {
        strbuf_add(&out, "%.1f MiB removed from %s\n", (double)gone / (1 << 20), folder[0]);
    }
    cli_print_all(c, &out);
    return WEFT_OK;
}

int verb_cache(cli *c)
{
    static const struct {
        const char *name;
        weft_status (*run)(cli *c, const char *const *folder);
    } actions[] = {{"list", list}, {"check", check}, {"prune", prune}};
    strbuf path[KINDS] = {{0}};
    const char *folder[KINDS];
    weft_status st = WEFT_OK;
    for (int k = 0; k < KINDS && st == WEFT_OK; k++) {
        if (!kinds[k].folder(((const cache_verb_options *)c->options)->dir, &path[k]))
            st = weft_fail(c->dg, W1001, WEFT_NOWHERE,
                           "there is no cache: neither XDG_CACHE_HOME nor HOME names a folder");
        folder[k] = path[k].p;
    }
    bool done = false;
    for (size_t i = 0; st == WEFT_OK && i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(c->operand[0], actions[i].name) == 0) {
            st = actions[i].run(c, folder);
            done = true;
        }
    if (st == WEFT_OK && !done)
        st = weft_fail(c->dg, W1904, WEFT_NOWHERE, "cache takes list, check or prune, not '%s'",
                       c->operand[0]);
    for (int k = 0; k < KINDS; k++)
        strbuf_free(&path[k]);
    return cli_exit_of(st);
}
