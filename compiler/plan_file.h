/* plan_file.h - a plan as a file that can be run again, and as text and JSON for people; a public header of compiler/.
 *
 * A plan file belongs to one checkpoint (by model_file_hash), one kind of machine and one build of Weft, and carries a
 * checksum. It may be anybody's: whatever it says, reading it gives an error or a plan that plan_check has proven.
 *
 *     offset  bytes
 *     0       8       "weftplan"
 *     8       8       the version, PLAN_FILE_VERSION
 *     16      8       bytes of the file
 *     24      8       checksum.h of all that follows
 *     32      8       plan_fields_sum: changes with the tables of plan_fields.c and with what a step's arguments are
 *     40              the fields of plan_head_record, plan_tail_record and plan_body_record, in the order of the tables
 *
 * All is little-endian. Fields follow each other without keys or gaps:
 *
 *     integer, word, type, bool    a number: 7 bits a byte, the lowest first, bit 7 set in all but the last; its sign in
 *                                  bit 0 (2 x, or -2 x - 1); in its shortest form. Words and types are their place in the list
 *     place                        a number: 0 for none, else that of the list of places, from 1
 *     float                        its 4 or 8 bytes
 *     text                         how many bytes, then those, of which none is 0
 *     bytes, list, array, records  how many items, then those; of an array without a count, defaults at its end are left out
 *     operand                      ends after a space that is none */
#ifndef WEFT_COMPILER_PLAN_FILE_H
#define WEFT_COMPILER_PLAN_FILE_H

#include "compiler/backend.h"
#include "runtime/formats/model_file.h"

/* Counts up when the head or the forms above change, or what a field means. */
enum { PLAN_FILE_VERSION = 4, PLAN_FILE_BYTES_MAX = 256 << 20 };

/* The steps for calls of n_tok rows, one a line, by phase; runs of steps that repeat, as layers do, are printed
 * once unless all. */
void plan_text(const plan *p, int64_t n_tok, bool all, strbuf *out);

/* All of it as JSON: a view, which nothing reads back. */
void plan_json(const plan *p, model_hash model, strbuf *out);

/* The file, for the checkpoint with this hash. The same plan gives the same bytes. */
void plan_write(const plan *p, model_hash model, strbuf *out);

/* The plan of a file with these bytes, in a. W1504: not a plan, or of another version; W1507: damaged; W1505: for
 * another checkpoint than model; W1506: for another machine; then what plan_check says. name is for
 * messages. Steps keep the names, lines and columns of their places, not the text there. */
weft_status plan_read(weft_diag *dg, const char *name, str bytes, model_hash model, arena *a,
                      plan **out_p) WEFT_MUST_USE;
/* The same for a back end that need not be this machine's (backend_cpu_for). */
weft_status plan_read_for(weft_diag *dg, const char *name, str bytes, model_hash model,
                          const backend *be, arena *a, plan **out_p) WEFT_MUST_USE;
/* The same of a file; be NULL: this machine's. */
weft_status plan_read_file(weft_diag *dg, const char *path, model_hash model, const backend *be,
                           arena *a, plan **out_p) WEFT_MUST_USE;

/* Put the right length and checksum into the head of a plan file: the last step of writing one, and of tests that damage one
 * on purpose. False if it is none. */
bool plan_file_seal(char *bytes, size_t n);

#endif
