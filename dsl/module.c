/* module.c - a file and its imports: where they are found, each parsed once, and what they bring.
 *
 * `import std.rope` looks for std/rope.weft next to the importing file, in the folders of WEFT_PATH,
 * in the installed library, and last in the copy compiled into the program. std.prelude comes to
 * every file unasked. */
#include "dsl/builtin_library.h"
#include "dsl/sema.h"

#include <stdlib.h>
#include <sys/stat.h>

/* Of one check of a file: the names that an import brings. */
typedef struct module {
    const char *name; /* its path, or "std/rope.weft" for the compiled-in copy */
    scope *names;     /* NULL while it is being read: an import of it is a cycle */
    struct module *next;
} module;

/* Of the file, for as many checks as there are. */
typedef struct import {
    const char *name; /* as that of a module */
    const source *src;
    const ast *tree; /* NULL: it does not parse */
    struct import *next;
} import;

weft_status dsl_open(weft_diag *dg, const source *src, bool std_only, arena *home, dsl_file **out_f)
{
    arena *a = arena_create();
    dsl_file *f = ARENA_NEW(a, dsl_file);
    *f = (dsl_file){.a = a, .src = src, .std_only = std_only, .home = home ? home : a};
    weft_status st = dsl_parse(dg, a, src, &f->tree);
    if (st == WEFT_OK)
        *out_f = f;
    else
        dsl_close(f);
    return st;
}

void dsl_close(dsl_file *f)
{
    if (f)
        arena_destroy(f->a);
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* The folders to search, in order; the first is the importing file's own. */
static const char *find_file(sema *s, const source *from, const char *tail)
{
    const char *slash = strrchr(from->name, '/');
    bool compiled_in = from->name[0] == '<' && strcmp(from->name, "<stdin>") != 0;
    str dir = slash ? (str){from->name, (size_t)(slash - from->name) + 1} : (str){"", 0};
    const char *path = arena_printf(s->a, STR_FMT "%s", STR_ARG(dir), tail).p;
    if (!compiled_in && is_file(path))
        return path;
    const char *env = getenv("WEFT_PATH");
    for (const char *p = env; p && *p;) {
        size_t n = strcspn(p, ":");
        path = arena_printf(s->a, "%.*s/%s", (int)n, p, tail).p;
        if (n > 0 && is_file(path))
            return path;
        p += n;
        p += *p == ':';
    }
#ifdef WEFT_LIBRARY_DIR
    path = arena_printf(s->a, "%s/%s", WEFT_LIBRARY_DIR, tail).p;
    if (is_file(path))
        return path;
#endif
    return NULL;
}

static source *open_import(sema *s, const char *path, const char *tail, weft_loc loc)
{
    arena *home = s->file->home;
    source *src = NULL;
    if (path)
        return source_open(s->dg, home, path, DSL_SOURCE_MAX, &src) == WEFT_OK ? src : NULL;
    for (size_t i = 0; i < builtin_file_n; i++)
        if (strcmp(builtin_files[i].name, tail) == 0)
            return source_from_text(home, arena_printf(home, "<weft>/%s", tail).p,
                                    (str){builtin_files[i].text, builtin_files[i].size});
    weft_fail(s->dg, W0803, loc, "there is no %s", tail);
    weft_note(s->dg, s->file->std_only
                         ? "looked in the library that is compiled in"
                         : "looked next to the file, in WEFT_PATH, in the installed library "
                           "and in the one compiled in");
    return NULL;
}

static const import *import_find(sema *s, const char *path, const char *tail, weft_loc loc)
{
    dsl_file *f = s->file;
    const char *name = path ? path : tail;
    for (const import *it = f->imports; it; it = it->next)
        if (strcmp(it->name, name) == 0)
            return it;
    ast *tree = NULL;
    const source *src = open_import(s, path, tail, loc);
    if (src && dsl_parse(s->dg, f->a, src, &tree) != WEFT_OK)
        tree = NULL;
    import *made = ARENA_NEW(f->a, import);
    *made = (import){arena_str(f->a, str_of(name)).p, src, tree, f->imports};
    f->imports = made;
    return made;
}

/* A line `block NAME(` or `fragment NAME(` of the file. */
static bool declares(str text, str name)
{
    static const char *const kinds[] = {"block ", "fragment "};
    for (const char *p = text.p, *end = p + text.n; p < end;) {
        str line = {p, (size_t)(end - p)};
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            size_t n = strlen(kinds[k]);
            str rest = {p + n, line.n > n ? line.n - n : 0};
            if (str_starts(line, str_of(kinds[k])) && str_starts(rest, name) && rest.n > name.n &&
                rest.p[name.n] == '(')
                return true;
        }
        const char *eol = memchr(p, '\n', line.n);
        p = eol ? eol + 1 : end;
    }
    return false;
}

const char *module_offering(sema *s, str name)
{
    for (size_t i = 0; i < builtin_file_n; i++) {
        const builtin_file *f = &builtin_files[i];
        str file = str_of(f->name);
        if (str_starts(file, STR("std/")) && declares((str){f->text, f->size}, name))
            return arena_printf(s->a, "std.%.*s", (int)file.n - 9, file.p + 4).p; /* .weft */
    }
    return NULL;
}

static void add_name(sema *s, scope *sc, str name, sym_class class, val v, weft_loc loc)
{
    sym *y = scope_find_here(sc, name);
    if (y && (y->v.block != v.block || y->class != class)) {
        weft_fail(s->dg, W0202, loc, "`" STR_FMT "` is already %s", STR_ARG(name),
                  sym_class_name(y->class));
        weft_note_at(s->dg, y->loc, "first declared here");
    } else if (!y) {
        scope_add(sc, name, class, v, loc);
    }
}

/* Blocks and fragments of a file; those of its own, not what it imports. */
static void export_names(sema *s, const scope *from, scope *to, weft_loc loc)
{
    for (uint32_t i = 0; i < from->n_bucket; i++)
        for (const sym *y = from->bucket[i]; y; y = y->next)
            if ((y->class == SYM_BLOCK || y->class == SYM_FRAGMENT) && y->v.home == from)
                add_name(s, to, y->name, y->class, y->v, loc);
}

scope *module_scope(sema *s, const ast *file, const source *src)
{
    scope *names = scope_create(s->a, s->base);
    bool prelude = str_ends(str_of(src->name), STR("std/prelude.weft"));
    if (!prelude) {
        scope *std = module_import(s, src, STR("std.prelude"), WEFT_NOWHERE);
        if (std)
            names->up = std;
    }
    for (uint32_t i = FILE_ITEMS; i < file->n_kid; i++) {
        const ast *n = file->kid[i];
        if (n->kind == AST_BLOCK || n->kind == AST_FRAGMENT)
            add_name(s, names, n->name, n->kind == AST_BLOCK ? SYM_BLOCK : SYM_FRAGMENT,
                     (val){.kind = VAL_BLOCK, .block = n, .home = names}, n->name_loc);
    }
    for (uint32_t i = FILE_ITEMS; i < file->n_kid; i++) {
        const ast *n = file->kid[i];
        if (n->kind != AST_IMPORT)
            continue;
        const ast *alias = n->kid[IMPORT_ALIAS];
        size_t errors = diag_errors(s->dg);
        scope *from = module_import(s, src, n->kid[IMPORT_PATH]->name, n->kid[IMPORT_PATH]->loc);
        s->import_failed |= diag_errors(s->dg) > errors;
        if (from && alias)
            sema_declare(s, names, alias->name, SYM_MODULE, (val){.kind = VAL_SCOPE, .scope = from},
                         alias->loc);
        else if (from)
            export_names(s, from, names, n->loc);
    }
    return names;
}

scope *module_import(sema *s, const source *from, str path, weft_loc loc)
{
    strbuf b = {0};
    for (size_t i = 0; i < path.n; i++)
        strbuf_putc(&b, path.p[i] == '.' ? '/' : path.p[i]);
    strbuf_add(&b, ".weft");
    const char *tail = arena_str(s->a, strbuf_view(&b)).p;
    strbuf_free(&b);
    if (s->file->std_only && !str_starts(path, STR("std."))) {
        weft_fail(s->dg, W0803, loc, "a model file inside a checkpoint may import std only, not %s",
                  tail);
        return NULL;
    }
    const char *found = s->file->std_only ? NULL : find_file(s, from, tail);
    const char *name = found ? found : tail;
    for (const module *m = s->modules; m; m = m->next) {
        if (strcmp(m->name, name) != 0)
            continue;
        if (!m->names)
            weft_fail(s->dg, W0803, loc, "%s imports itself, directly or through others", tail);
        return m->names;
    }
    if (s->n_module == DSL_IMPORTS_MAX) {
        weft_fail(s->dg, W1103, loc, "more than %d files are imported", DSL_IMPORTS_MAX);
        return NULL;
    }
    size_t errors = diag_errors(s->dg);
    module *m = ARENA_NEW(s->a, module);
    *m = (module){name, NULL, s->modules};
    s->modules = m;
    s->n_module++;
    const import *it = import_find(s, found, tail, loc);
    if (it->tree)
        m->names = module_scope(s, it->tree, it->src);
    if (diag_errors(s->dg) > errors && it->src && loc.src)
        weft_note_at(s->dg, loc, "imported here");
    if (!m->names)
        m->names = scope_create(s->a, s->base);
    return m->names;
}
