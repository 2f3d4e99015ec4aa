/* report_verify.h - what `weft verify` says of a comparison. */
#ifndef WEFT_RUNTIME_CLI_REPORT_VERIFY_H
#define WEFT_RUNTIME_CLI_REPORT_VERIFY_H

#include "runtime/engine/verify.h"

/* What was compared. */
typedef struct {
    const plan *p;    /* of the whole model */
    plan_parts plans; /* that ran: several where its layers are on two devices */
    int64_t n_token;
    const char *tokens; /* where they came from: "of --ids" */
    int threads;
} verify_subject;

void verify_as_text(const verify_subject *of, const verify_report *r, strbuf *out);
void verify_as_json(const verify_subject *of, const verify_report *r, strbuf *out);

/* A failure for the first value, or else output, that is over its bound: W1510, with the line of the
 * model file, the values and what may have caused it. WEFT_OK if there is none. */
weft_status verify_report_fault(weft_diag *dg, const verify_subject *of,
                                const verify_report *r) WEFT_MUST_USE;

#endif
