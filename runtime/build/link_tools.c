/* link_tools.c - where the linker and what it takes are, and what to install where they are not. */
#include "runtime/build/linker.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

/* ---- targets ---- */

/* clang-format off */
const build_target build_targets[] = {
#define TARGET(name, machine, emulation, debian, levels) {name, machine, emulation, debian, levels},
#include "runtime/build/targets.def"
#undef TARGET
};
/* clang-format on */
const int build_target_n = sizeof build_targets / sizeof *build_targets;

const build_target *build_target_here(void)
{
    struct utsname u;
    for (int i = 0; uname(&u) == 0 && i < build_target_n; i++)
        if (strcmp(u.machine, build_targets[i].machine) == 0 && strcmp(u.sysname, "Linux") == 0)
            return &build_targets[i];
    return NULL;
}

weft_status build_target_find(weft_diag *dg, const char *name, const build_target **out)
{
    const build_target *here = build_target_here();
    for (int i = 0; i < build_target_n && name; i++)
        if (strcmp(name, build_targets[i].name) == 0)
            here = &build_targets[i];
    if (name ? here && strcmp(here->name, name) == 0 : here != NULL) {
        *out = here;
        return WEFT_OK;
    }
    weft_status st = weft_fail(dg, W1704, WEFT_NOWHERE, "programs cannot be built for %s",
                               name ? name : "this system");
    if (!name || !SUGGEST_ROW(dg, str_of(name), build_targets, build_target_n)) {
        strbuf all = {0};
        for (int i = 0; i < build_target_n; i++)
            strbuf_add(&all, "%s%s", i ? ", " : "", build_targets[i].name);
        weft_note(dg, "targets: %s", all.p);
        strbuf_free(&all);
    }
    return st;
}

/* ---- places ---- */

typedef enum { PLACE_LIBC, PLACE_GCC, PLACE_OTHER, PLACE_RUNTIME, PLACE_COUNT } link_place;

typedef struct {
    const char *name;
    link_place place;
    bool program, lib;
    const char *package, *package_cross;
} link_need;

/* clang-format off */
static const link_need needs[] = {
#define NEED(file, place, program, lib, package, cross) {file, PLACE_##place, program, lib, package, cross},
#include "runtime/build/link_needs.def"
#undef NEED
};

/* Folders to look in, in this order; %s is the target, * the newest of versions. Those of the first place that has a file win. */
static const char *const folders[PLACE_COUNT][6] = {
    [PLACE_LIBC]    = {"/usr/lib/%s", "/usr/%s/lib", "/usr/lib64", "/usr/lib"},
    [PLACE_GCC]     = {"/usr/lib/gcc/%s/*", "/usr/lib/gcc-cross/%s/*", "/usr/lib/gcc/*/*"},
    [PLACE_OTHER]   = {"/usr/lib/%s", "/usr/%s/lib", "/usr/local/lib/%s", "/usr/lib64", "/usr/lib"},
    [PLACE_RUNTIME] = {"%s"},
};
/* clang-format on */
enum { NEED_N = sizeof needs / sizeof *needs };
_Static_assert((int)NEED_N <= (int)LINK_NEEDS_MAX, "a place for each");

/* Folders without the target's name in them are those of the machine at hand. */
static bool folder_fits(const char *folder, const build_target *to)
{
    return strstr(folder, "%s") || to == build_target_here();
}

/* The file in the newest folder that the pattern fits: versions compare as numbers. */
static const char *newest(arena *a, const char *pattern)
{
    glob_t g;
    const char *best = NULL;
    double most = -1;
    if (glob(pattern, GLOB_NOSORT, NULL, &g) != 0)
        return NULL;
    for (size_t i = 0; i < g.gl_pathc; i++) {
        const char *end = strrchr(g.gl_pathv[i], '/'), *start = end;
        while (start > g.gl_pathv[i] && start[-1] != '/')
            start--;
        double version = atof(start);
        if (version > most || (version == most && strcmp(g.gl_pathv[i], best) < 0)) {
            most = version;
            best = arena_str(a, str_of(g.gl_pathv[i])).p;
        }
    }
    globfree(&g);
    return best;
}

static const char *find_file(arena *a, const build_target *to, const link_options *opt,
                             const link_need *n)
{
    const char *root = opt->sysroot ? opt->sysroot : "";
    for (int i = 0; i < 6 && folders[n->place][i]; i++) {
        const char *folder = folders[n->place][i];
        if (n->place == PLACE_RUNTIME || !folder_fits(folder, to))
            continue;
        /* Cut by hand: a format has to be a literal. */
        const char *hole = strstr(folder, "%s");
        size_t before = hole ? (size_t)(hole - folder) : strlen(folder);
        const char *found =
            newest(a, arena_printf(a, "%s%.*s%s%s/%s", root, (int)before, folder,
                                   hole ? to->name : "", hole ? hole + 2 : "", n->name)
                          .p);
        if (found)
            return found;
    }
    return NULL;
}

/* ---- Weft's own archive ---- */

/* Beside the program where it was built or installed, or where it was to be installed. */
static const char *find_runtime(arena *a, const build_target *to, const link_options *opt,
                                const char *file)
{
    char self[4096];
    const char *place[4] = {opt->runtime};
    int n = opt->runtime ? 1 : 0;
    ssize_t length = opt->runtime ? 0 : readlink("/proc/self/exe", self, sizeof self - 1);
    if (length > 0) {
        self[length] = 0;
        int folder = (int)(strrchr(self, '/') - self);
        place[n++] = arena_printf(a, "%.*s/lib/weft", folder, self).p;
        place[n++] = arena_printf(a, "%.*s/../lib/weft", folder, self).p;
    }
    if (!opt->runtime)
        place[n++] = WEFT_RUNTIME_INSTALLED;
    for (int i = 0; i < n; i++) {
        const char *path = arena_printf(a, "%s/%s/%s", place[i], to->name, file).p;
        if (access(path, R_OK) == 0)
            return path;
    }
    return NULL;
}

/* ---- the linker ---- */

enum { LLD_OLDEST = 14, LLD_NEWEST = 40 };

static const char *on_path(arena *a, const char *name)
{
    const char *path = getenv("PATH");
    for (const char *p = path ? path : "/usr/bin:/bin"; p;) {
        const char *end = strchrnul(p, ':');
        const char *full = arena_printf(a, "%.*s/%s", (int)(end - p), p, name).p;
        if (end > p && access(full, X_OK) == 0)
            return full;
        p = *end ? end + 1 : NULL;
    }
    return NULL;
}

static const char *find_linker(arena *a, const link_options *opt)
{
    if (opt->linker)
        return access(opt->linker, X_OK) == 0 ? opt->linker : on_path(a, opt->linker);
    const char *found = on_path(a, "ld.lld");
    for (int v = LLD_NEWEST; !found && v >= LLD_OLDEST; v--)
        found = on_path(a, arena_printf(a, "ld.lld-%d", v).p);
    return found;
}

/* ---- all of it ---- */

typedef struct {
    strbuf files, packages;
    bool runtime; /* Weft's own is missing */
} missing;

static void miss(missing *m, const build_target *to, const char *file, const char *package,
                 const char *cross)
{
    strbuf_add(&m->files, "%s%s", m->files.n ? ", " : "", file);
    if (!package) {
        m->runtime = true;
        return;
    }
    strbuf name = {0};
    if (to == build_target_here() || !cross) {
        strbuf_add(&name, " %s", package);
    } else {
        const char *hole = strstr(cross, "%s");
        bool compiler = strncmp(cross, "gcc-", 4) == 0;
        strbuf_add(&name, " %.*s%s%s", (int)(hole - cross), cross, compiler ? to->name : to->debian,
                   hole + 2);
    }
    strbuf_putc(&name, ' ');
    strbuf_putc(&m->packages, ' '); /* whole words are compared */
    if (!strstr(m->packages.p, name.p))
        strbuf_put(&m->packages, (str){name.p + 1, name.n - 2});
    else
        m->packages.p[--m->packages.n] = 0;
    strbuf_free(&name);
}

static weft_status tell(weft_diag *dg, const build_target *to, const missing *m)
{
    weft_status st = weft_fail(dg, W1703, WEFT_NOWHERE, "to build for %s these are missing: %s",
                               to->name, m->files.p);
    if (m->packages.n)
        weft_note(dg, "Debian and Ubuntu have them in:%s", m->packages.p);
    if (m->runtime)
        weft_note(dg, "libweft_core.a and libweft_program.a are built with Weft; for another "
                      "architecture by ./dev setup cross");
    else if (to != build_target_here())
        weft_note(dg, "./dev setup cross installs them");
    return st;
}

weft_status link_tools_find(weft_diag *dg, arena *a, const build_target *to,
                            const link_options *opt, link_tools *out)
{
    missing m = {0};
    link_tools t = {
        .to = to, .lib = opt->lib, .sysroot = opt->sysroot, .linker = find_linker(a, opt)};
    if (!t.linker)
        miss(&m, to, opt->linker ? opt->linker : "ld.lld", "lld", NULL);
    for (int i = 0; i < NEED_N; i++) {
        const link_need *n = &needs[i];
        if (!(opt->lib ? n->lib : n->program))
            continue;
        t.file[i] = n->place == PLACE_RUNTIME ? find_runtime(a, to, opt, n->name)
                                              : find_file(a, to, opt, n);
        if (!t.file[i])
            miss(&m, to, n->name, n->package, n->package_cross);
    }
    weft_status st = m.files.n ? tell(dg, to, &m) : WEFT_OK;
    strbuf_free(&m.files);
    strbuf_free(&m.packages);
    if (st == WEFT_OK)
        *out = t;
    return st;
}
