/* state_file.h - what a sequence holds, in a file, and back.
 *
 * In chunks with checksums (chunk_file.h), magic "WEFTSEQ\n", version 3; numbers are little endian:
 *
 *     u64[2] identity of the model (of its weight_source); u64 its adapters
 *     u64 n; char[n]: what the cells are (state_describe)
 *     u64 length, n; i32[length + n]: the ids that the sequence holds, and n (0 or 1) that come next in its text
 *     u64 n; { u64 first, n, stays }[n]: the entries it has in each table (state_span)
 *     the rows of those pages (state_parts.h)
 *
 * A file takes the place of another when it is whole and on disk (out_file.h). It is read whole before anything changes: one that
 * is damaged or does not fit leaves the sequence as it was. Memory of the state is read and written by the copies of whoever
 * owns it. */
#ifndef WEFT_RUNTIME_KV_STATE_FILE_H
#define WEFT_RUNTIME_KV_STATE_FILE_H

#include "runtime/base/weight_source.h"
#include "runtime/kv/state.h"

/* A token that was chosen and not evaluated yet belongs to the text, and not to the state. */
enum { STATE_FILE_VERSION = 3, STATE_FILE_NEXT_MAX = 1 };

/* Between the host and the memory that the state is bound to. */
typedef struct {
    weft_status (*out)(void *ctx, weft_diag *dg, void *to, const void *from, size_t bytes);
    weft_status (*in)(void *ctx, weft_diag *dg, void *to, const void *from, size_t bytes);
    void *ctx;
} state_copies;

/* What state depends on besides its layout. */
typedef struct {
    model_hash model;
    uint64_t adapters; /* the set of them; 0: none */
    int64_t n_vocab;   /* ids of a file are below this; 0: any */
} state_owner;

/* ids: those that the sequence holds, and n_next, at most STATE_FILE_NEXT_MAX, behind them. W1403, W1004 and what the copy may fail
 * with; then what had the name is as it was. */
weft_status state_file_save(weft_diag *dg, const char *path, const state *st, int64_t seq,
                            const int32_t *ids, int64_t n_next, const state_owner *who,
                            const state_copies *copy) WEFT_MUST_USE;

typedef struct state_file state_file;

/* Open a file and check all of it: W1001, W1005, W1006, W1007 for the file itself, W1416, W1418, W1419 where it is of another
 * model, of other adapters or of another layout than st, W1404 if it holds more tokens than a sequence of st may. */
weft_status state_file_open(weft_diag *dg, const char *path, state *st, const state_owner *who,
                            state_file **out_f) WEFT_MUST_USE;
void state_file_close(state_file *f); /* NULL is fine */
/* out_n of them the sequence holds; out_next more follow. */
const int32_t *state_file_ids(const state_file *f, int64_t *out_n, int64_t *out_next);
/* Is there room for it in seq? It gives back what it holds. */
bool state_file_room(const state_file *f, const state *st, int64_t seq);
/* Let seq hold it, and nothing else. W1403; W1401 where there is no room, and nothing has changed. If the file is changed while it is
 * read (W1006), or a copy fails, seq holds nothing. */
weft_status state_file_load(weft_diag *dg, state_file *f, state *st, int64_t seq,
                            const state_copies *copy) WEFT_MUST_USE;

#endif
