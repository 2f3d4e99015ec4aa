/* api_impl.h - what Weft's own programs may see behind weft.h; not for strangers. */
#ifndef WEFT_RUNTIME_API_API_IMPL_H
#define WEFT_RUNTIME_API_API_IMPL_H

#include "runtime/exec/session.h"
#include "runtime/weft.h"

const model_file *api_model_file(const weft_model *m);
session *api_session(const weft_session *s);

#endif
