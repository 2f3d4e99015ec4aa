/* api_device.h - which device a session runs on, and that its other options fit it. For models from files: built programs have the
 * CPU alone. */
#ifndef WEFT_RUNTIME_API_API_DEVICE_H
#define WEFT_RUNTIME_API_API_DEVICE_H

#include "compiler/backend.h"
#include "runtime/api/api_model.h"

/* What the options name: to dev and run.dev of out, which are left alone for the CPU. layers: of the model. out_be: to compile for, NULL where
 * it is the CPU. W1605, W1608, W1609, W1611; W1406 for options that no card has. */
weft_status api_device_choose(weft_diag *dg, const api_wanted *w, int64_t layers, api_plan *out,
                              const struct backend **out_be) WEFT_MUST_USE;
/* Do the options ask for some of the model's layers on a card, and the rest on the CPU? */
bool api_device_divides(const weft_session_options *o, int64_t layers);
/* What the options ask for of activations for BF16 and F16 weights. */
backend_rounding api_rounding(const weft_session_options *o);
/* Does the name, which may be NULL, mean a card and nothing else? */
bool api_device_is_card(const char *name);

#endif
