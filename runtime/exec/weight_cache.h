/* weight_cache.h - memory for interleaved weights, and the files that keep them for the next time.
 *
 * Repacking a model's weights takes about as long as reading them twice, so the result is kept in a folder and mapped
 * the next time. A file is named by what decides its bytes (cache_key.h). It takes its name when it is complete, so two
 * processes that repack at once do no harm: the later one's file replaces an equal one. Where there can be no file (no
 * folder, no room, a model in memory) the weights are repacked into memory.
 *
 * The folder is the one that the caller names, else $XDG_CACHE_HOME/weft/weights, else $HOME/.cache/weft/weights; both
 * variables count only where they begin with '/'. All its files together take no more than a bound, and a part of the
 * disk stays free: 1 GiB, or a twentieth of it where that is more. Files that were used longest ago make room for a new
 * one. A file that cannot fit is not made, and removes no other.
 *
 * Only files with names of ours are listed, counted or removed (cache_file.h): the folder may hold others.
 *
 * Every file has checksums. All of a file is checked when it is first opened after it has changed or the system was
 * started, at about 10 GB/s for each thread; files of more than 4 GiB, or more than the memory available, are not. Any
 * other time 64 chunks of 64 KiB are, others each time, or all with check_all. A file that is damaged is removed and
 * made again: W1508, a warning. One that becomes shorter while it is mapped raises SIGBUS, unless the checkpoint was
 * opened with `guard`: then what is missing reads as zeros, and weight_cache_check says so. */
#ifndef WEFT_RUNTIME_EXEC_WEIGHT_CACHE_H
#define WEFT_RUNTIME_EXEC_WEIGHT_CACHE_H

#include "compiler/plan.h"
#include "runtime/base/cancel.h"
#include "runtime/base/diag.h"
#include "runtime/base/str.h"
#include "runtime/base/weight_source.h"

typedef struct weight_cache weight_cache;

/* Bytes: what all files may take where nobody says more; and what is repacked faster than a file is made. */
#define CACHE_BYTES_MAX (UINT64_C(64) << 30)
#define CACHE_BYTES_MIN (UINT64_C(16) << 20)
/* A larger file is not checked all through when it is opened. So many bytes take one thread under half a second once
 * they are in memory. */
#define CACHE_CHECK_BYTES_MAX (UINT64_C(4) << 30)

typedef struct {
    bool keep;          /* use a file, and leave one for the next time; else memory */
    const char *dir;    /* the folder, made if it is not there; NULL or empty: the environment's */
    uint64_t bytes_max; /* of all files; 0: CACHE_BYTES_MAX */
    uint64_t bytes_min; /* weights of fewer are not kept; 0: CACHE_BYTES_MIN */
    int threads;        /* that make and compare checksums; 0: one */
    bool check_all;     /* compare all of them, whenever that was done last */
    uint64_t check_bytes_max;  /* larger files are only sampled; 0: CACHE_CHECK_BYTES_MAX */
    const cancel_flag *cancel; /* stops that; NULL: nothing does */
} cache_options;

/* p->interleaved_bytes of memory, in a file that is kept if opt says so. out_filled: another time's weights are there
 * already. W0902 if there is no memory, W1412. */
weft_status weight_cache_open(weft_diag *dg, const plan *p, const weight_source *src,
                              const cache_options *opt, weight_cache **out_s,
                              bool *out_filled) WEFT_MUST_USE;
bool weight_cache_is_file(const weight_cache *s); /* mapped, or in memory of its own? */
/* Would a file hold the repacked weights of p: is one there, or is there room to make one? Changes nothing on the
 * disk. */
bool weight_cache_would_keep(const plan *p, const weight_source *src, const cache_options *opt);
char *weight_cache_data(const weight_cache *s);
/* Once they are there: the interleaved weights of p, in its order, as tensors. Borrowed; p must outlive it. */
const weight_source *weight_cache_source(const weight_cache *s);
/* The weights are repacked: let the next process find them. W1412 and W1601, with nothing left behind. */
weft_status weight_cache_publish(weft_diag *dg, weight_cache *s) WEFT_MUST_USE;
/* W1012 if the file became shorter, so that weights read since then may be zeros. May be called from any thread. */
weft_status weight_cache_check(weft_diag *dg, const weight_cache *s) WEFT_MUST_USE;
void weight_cache_close(weight_cache *s); /* NULL is fine */

/* ---- what is kept: cache_list.c ---- */

typedef struct {
    const char *name; /* of the file */
    uint64_t bytes;
    int64_t used;       /* seconds since 1970 */
    const char *model;  /* what it was made of */
    bool other_version; /* another release made it, and may still use it */
} cache_file;

/* The folder: dir, or where that is NULL or empty the environment's; false if that names none. */
bool cache_folder(const char *dir, strbuf *out);
/* All files in the folder, those used last first, in a; returns how many. */
size_t cache_list(arena *a, const char *folder, cache_file **out_files);
/* Remove those used longest ago until at most bytes_max are left, and what a process that was ended left
 * behind; returns how many bytes went. */
uint64_t cache_prune(const char *folder, uint64_t bytes_max);

/* Compare all checksums of a file. out_fault: what is wrong with it, NULL if nothing is. Guards the map while it is
 * read, so it is for whoever owns the process (map_guard.h). W1601. cache_check.c */
weft_status cache_check(weft_diag *dg, const char *path, int threads,
                        const char **out_fault) WEFT_MUST_USE;
/* Remove one file and what is written of it; false if it cannot be. */
bool cache_remove(const char *path);

typedef struct {
    uint64_t free, all; /* bytes; all is 0 where the system does not say */
} cache_disk;

/* May a file of `need` bytes be made beside files of `kept` bytes, of which all may take bytes_max? out_keep: how many
 * bytes of them may stay. */
bool cache_room(uint64_t need, uint64_t kept, uint64_t bytes_max, cache_disk disk,
                uint64_t *out_keep) WEFT_MUST_USE;
/* Could there be room for such a file in the folder, if others went? The folder need not be there yet. */
bool cache_has_room(const char *folder, uint64_t need, uint64_t bytes_max);
/* Make room for such a file in the folder by removing others; false, with nothing removed, if it cannot fit. */
bool cache_make_room(const char *folder, uint64_t need, uint64_t bytes_max) WEFT_MUST_USE;

#endif
