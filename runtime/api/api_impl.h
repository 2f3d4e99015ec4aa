/* api_impl.h - what Weft's own programs may see behind weft.h; not for strangers. */
#ifndef WEFT_RUNTIME_API_API_IMPL_H
#define WEFT_RUNTIME_API_API_IMPL_H

#include "runtime/exec/session.h"
#include "runtime/weft.h"

const model_file *api_model_file(const weft_model *m);
session *api_session(const weft_session *s);
/* As weft_session_create, but for session_watch: every linear reads from the session's arena, all rows of a call, and a whole tensor. Not
 * with a plan of a file, which is as it is. */
weft_status api_session_create_watched(weft_diag *dg, const weft_model *m,
                                       const weft_session_options *options,
                                       weft_session **out_session) WEFT_MUST_USE;

#endif
