/* id_list.h - token ids and what is added to their logits, as flags, operands and files write them.
 *
 * Nothing is skipped: a part that is empty or is not a number is W1903, and the message names the
 * part, the byte it is at, and `from`, the flag or file that has it. */
#ifndef WEFT_RUNTIME_CLI_ID_LIST_H
#define WEFT_RUNTIME_CLI_ID_LIST_H

#include "runtime/base/diag.h"
#include "runtime/text/tok.h"

enum { ID_LIST_MAX = 1 << 22 }; /* ids in one list */

/* Adds the ids of text, which has blanks, line ends or a comma between them; blanks may stand around
 * a comma. Text without any id adds none. W1103 for more than ID_LIST_MAX. */
weft_status id_list_read(weft_diag *dg, const char *from, str text, tok_ids *ids) WEFT_MUST_USE;

/* One ID=NUMBER; the number may be -inf, which forbids the token, but is neither NaN nor +inf. */
weft_status id_bias_read(weft_diag *dg, const char *from, const char *text, int32_t *out_id,
                         float *out_bias) WEFT_MUST_USE;

#endif
