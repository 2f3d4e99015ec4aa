/* debug_emit.c - lines of the model file for generated code: gdb and perf then show the node that runs.
 *
 * Only lines and the names of functions: nothing is said of variables, of which there are none. */
#include "codegen/codegen_impl.h"

#include <llvm-c/DebugInfo.h>
#include <stdlib.h>

typedef struct {
    const source *src;
    LLVMMetadataRef file;
} debug_file;

struct debug_info {
    LLVMDIBuilderRef b;
    LLVMMetadataRef unit, type, fn, fn_file; /* of the function under way; NULL: none */
    debug_file *files;
    size_t n_file;
};

/* ---- places ---- */

typedef struct {
    unsigned line, column;
} place;

static place place_of(weft_loc loc)
{
    place at = {1, 1};
    for (uint32_t i = 0; i < loc.begin && i < loc.src->text.n; i++) {
        bool ends = loc.src->text.p[i] == '\n';
        at.line += ends;
        at.column = ends ? 1 : at.column + 1;
    }
    return at;
}

/* "models/llama.weft" is in models; what is compiled into the program is nowhere. */
static LLVMMetadataRef file_of(debug_info *d, const source *src)
{
    for (size_t i = 0; i < d->n_file; i++)
        if (d->files[i].src == src)
            return d->files[i].file;
    const char *name = src ? src->name : "plan", *slash = strrchr(name, '/');
    str base = str_of(slash ? slash + 1 : name);
    size_t folder = slash ? (size_t)(slash - name) : 0;
    LLVMMetadataRef file = LLVMDIBuilderCreateFile(d->b, base.p, base.n, name, folder);
    d->files = realloc(d->files, (d->n_file + 1) * sizeof *d->files);
    if (!d->files)
        abort(); /* as LLVM does without memory */
    d->files[d->n_file++] = (debug_file){src, file};
    return file;
}

/* ---- functions ---- */

void debug_function(emitter *e, LLVMValueRef fn, weft_loc loc)
{
    debug_info *d = e->debug;
    if (!d || !loc.src)
        return; /* without lines, like a function of a library */
    size_t n;
    const char *name = LLVMGetValueName2(fn, &n);
    LLVMMetadataRef file = file_of(d, loc.src);
    unsigned line = place_of(loc).line;
    d->fn = LLVMDIBuilderCreateFunction(d->b, file, name, n, name, n, file, line, d->type, 1, 1,
                                        line, LLVMDIFlagZero, 1);
    d->fn_file = file;
    LLVMSetSubprogram(fn, d->fn);
    debug_line(e, loc);
}

void debug_line(emitter *e, weft_loc loc)
{
    debug_info *d = e->debug;
    if (!d || !d->fn)
        return;
    LLVMMetadataRef scope = d->fn, file = file_of(d, loc.src);
    place at = loc.src ? place_of(loc) : (place){0, 0};
    if (file != d->fn_file)
        scope = LLVMDIBuilderCreateLexicalBlockFile(d->b, scope, file, 0);
    LLVMSetCurrentDebugLocation2(
        e->b, LLVMDIBuilderCreateDebugLocation(e->cx, at.line, at.column, scope, NULL));
}

void debug_function_end(emitter *e)
{
    if (!e->debug)
        return;
    e->debug->fn = NULL;
    LLVMSetCurrentDebugLocation2(e->b, NULL);
}

/* ---- the whole ---- */

static void add_flag(emitter *e, const char *name, unsigned value)
{
    LLVMAddModuleFlag(e->m, LLVMModuleFlagBehaviorWarning, name, strlen(name),
                      LLVMValueAsMetadata(LLVMConstInt(e->i32, value, 0)));
}

void debug_begin(emitter *e)
{
    if (!e->job->debug)
        return;
    debug_info *d = calloc(1, sizeof *d);
    if (!d)
        abort();
    e->debug = d;
    add_flag(e, "Debug Info Version", LLVMDebugMetadataVersion());
    add_flag(e, "Dwarf Version", 4);
    d->b = LLVMCreateDIBuilder(e->m);
    const plan *p = e->job->p;
    bool any = p->n_bucket > 0 && p->bucket[0].n_step > 0;
    LLVMMetadataRef file = file_of(d, any ? p->bucket[0].step[0].loc.src : NULL);
    static const char producer[] = "weft";
    d->unit = LLVMDIBuilderCreateCompileUnit(
        d->b, LLVMDWARFSourceLanguageC, file, producer, sizeof producer - 1, 1, "", 0, 0, "", 0,
        LLVMDWARFEmissionLineTablesOnly, 0, 0, 0, "", 0, "", 0);
    d->type = LLVMDIBuilderCreateSubroutineType(d->b, file, NULL, 0, LLVMDIFlagZero);
}

void debug_end(emitter *e)
{
    debug_info *d = e->debug;
    if (!d)
        return;
    LLVMDIBuilderFinalize(d->b);
    LLVMDisposeDIBuilder(d->b);
    free(d->files);
    free(d);
    e->debug = NULL;
}
