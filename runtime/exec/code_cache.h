/* code_cache.h - generated code kept on disk: object files by a number of 128 bits that decides their bytes.
 *
 * Code is run as it is found, so a file is used only if nobody but us or root can have written it, its checksum is right and
 * it says itself that it is what its name says. Anything else there, such as a link, is not looked into: W1509, a warning,
 * and the code is made again. A file takes its name when it is complete and on the disk, so two processes that make one at
 * once do no harm. Where there can be no file (no folder, no rights, no room) nothing is kept: W1511, once in a process.
 *
 * The folder is the one that the caller names, else $XDG_CACHE_HOME/weft/code, else $HOME/.cache/weft/code. All its files
 * together take no more than 256 MiB: those used longest ago make room. */
#ifndef WEFT_RUNTIME_EXEC_CODE_CACHE_H
#define WEFT_RUNTIME_EXEC_CODE_CACHE_H

#include "runtime/exec/weight_cache.h"

typedef struct {
    uint64_t lo, hi;
} code_name;

/* As cache_folder. */
bool code_folder(const char *dir, strbuf *out);
/* The object of that name, added to `out`; false: there is none that can be used. */
bool code_cache_get(weft_diag *dg, const char *dir, code_name name, strbuf *out);
/* Keep it; model says for people what it was made of. */
void code_cache_put(weft_diag *dg, const char *dir, code_name name, const char *model, str object);

/* As those of weight_cache.h: what is kept, one file compared with its checksum, and removing. */
size_t code_cache_list(arena *a, const char *folder, cache_file **out_files);
const char *code_cache_check(const char *path); /* what is wrong with it; NULL: nothing */
uint64_t code_cache_prune(const char *folder, uint64_t bytes_max);

#endif
