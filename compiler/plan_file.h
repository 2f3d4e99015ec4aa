/* plan_file.h - a plan as text for people, and as a file that can be run again; a public header of compiler/.
 *
 * A plan file is JSON. It belongs to one checkpoint (by model_file_hash), one kind of machine and one version
 * of Weft, and carries a checksum. It may be anybody's: whatever it says, reading it gives an error or a
 * plan that plan_check has proven. */
#ifndef WEFT_COMPILER_PLAN_FILE_H
#define WEFT_COMPILER_PLAN_FILE_H

#include "compiler/plan.h"
#include "runtime/formats/model_file.h"

/* Counts up when the layout of the file, of plans or of kernel arguments changes. */
enum { PLAN_FILE_VERSION = 3, PLAN_FILE_BYTES_MAX = 256 << 20 };

/* The steps for calls of n_tok rows, one a line, by phase; runs of steps that repeat, as layers do, are printed
 * once unless all. */
void plan_text(const plan *p, int64_t n_tok, bool all, strbuf *out);

/* All of it, for the checkpoint with this hash. */
void plan_json(const plan *p, model_hash model, strbuf *out);

/* The plan in this text, in a. W1504: not a plan, or of another version; W1507: damaged; W1505: for
 * another checkpoint than model; W1506: for another machine; then what plan_check says. name is for
 * messages. Steps keep the names, lines and columns of their places, not the text there. */
weft_status plan_read(weft_diag *dg, const char *name, str text, model_hash model, arena *a,
                      plan **out_p) WEFT_MUST_USE;
weft_status plan_read_file(weft_diag *dg, const char *path, model_hash model, arena *a,
                           plan **out_p) WEFT_MUST_USE;

/* Put the right checksum into a plan file's text, for tests that damage one on purpose; false if it is
 * none. */
bool plan_file_seal(char *text, size_t n);

#endif
