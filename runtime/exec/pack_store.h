/* pack_store.h - memory for woven weights, and the files that keep them for the next time.
 *
 * Weaving a model's weights takes about as long as reading them twice, so the result is kept under
 * $XDG_CACHE_HOME/weft/packed and mapped the next time; a file is named by a hash of the checkpoint's
 * files as the system knows them, and of what was woven how. It takes its name when it is complete, so two
 * processes that weave at once do no harm: the later one's file replaces an equal one. Where no file
 * can be had (no folder, a full disk, a model in memory) the weights are woven into memory. */
#ifndef WEFT_RUNTIME_EXEC_PACK_STORE_H
#define WEFT_RUNTIME_EXEC_PACK_STORE_H

#include "compiler/plan.h"
#include "runtime/base/diag.h"
#include "runtime/base/str.h"
#include "runtime/formats/model_file.h"

typedef struct pack_store pack_store;

/* p->packed_bytes of memory, in a file that is kept if `keep`. out_filled: another time's weights are there
 * already. W0902 if there is no memory. */
weft_status pack_store_open(weft_diag *dg, const plan *p, const model_file *mf, bool keep,
                            pack_store **out_s, bool *out_filled) WEFT_MUST_USE;
char *pack_store_data(const pack_store *s);
/* Have it mapped before it is read, as far as the system holds it. */
void pack_store_prefault(const pack_store *s, int threads);
/* The weights are woven: let the next process find them. */
void pack_store_publish(pack_store *s);
void pack_store_close(pack_store *s); /* NULL is fine */

/* ---- what is kept ---- */

typedef struct {
    const char *name; /* of the file */
    uint64_t bytes;
    int64_t used;      /* seconds since 1970 */
    const char *model; /* what it was made of */
} pack_file;

/* The folder; false if there is no home to have one in. */
bool pack_folder(strbuf *out);
/* All files that are kept, those used last first, in a; returns how many. */
size_t pack_list(arena *a, pack_file **out_files);
/* Remove those used longest ago until at most bytes_max are left, and what a process that was ended left
 * behind; returns how many bytes went. */
uint64_t pack_prune(uint64_t bytes_max);

#endif
