/* session_json.h - what a session holds, as JSON: pages and bytes of its state by tier, and what it keeps for prompts that
 * begin the same. One form for all verbs. */
#ifndef WEFT_RUNTIME_CLI_SESSION_JSON_H
#define WEFT_RUNTIME_CLI_SESSION_JSON_H

#include "runtime/base/json_write.h"
#include "runtime/weft.h"

enum { HELD_TIERS_MAX = 16 };

/* The tiers of a session at one moment. */
typedef struct {
    weft_kv_tier at[HELD_TIERS_MAX];
    int64_t n;
} held_tiers;

held_tiers held_tiers_now(const weft_session *s);
/* "state": a list of them. */
void held_tiers_json(json_writer *w, const held_tiers *t);
/* That, and "prefixes": texts that are kept, and how often one of them was of use. */
void session_json(json_writer *w, const weft_session *s);

#endif
