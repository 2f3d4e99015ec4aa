/* keys.h - who may use the server: a file with a line for each key.
 *
 *     # NAME KEY [priority=N] [weight=N]
 *     alice  sk-3b1f...        priority=10
 *     sk-77aa...               a key alone: its name is key-2
 *
 * Keys have 8 to 256 characters and no blanks. They are compared in a time that does not depend on where they differ. A file that
 * others may read is warned of (W1836). */
#ifndef WEFT_RUNTIME_HTTP_KEYS_H
#define WEFT_RUNTIME_HTTP_KEYS_H

#include "runtime/base/diag.h"

enum { KEYS_MAX = 1000, KEY_BYTES_MIN = 8, KEY_BYTES_MAX = 256 };

typedef struct {
    char name[64];
    char key[KEY_BYTES_MAX + 1];
    size_t key_n;
    int priority;  /* a request of it may have at most */
    double weight; /* of its fair share */
} api_key;

typedef struct {
    api_key *at;
    size_t n;
} api_keys;

/* Messages name `path`; the bytes of a text go by the name "keys". */
weft_status keys_read(weft_diag *dg, const char *path, api_keys *out) WEFT_MUST_USE;
weft_status keys_parse(weft_diag *dg, const char *path, str text, api_keys *out) WEFT_MUST_USE;
void keys_free(api_keys *k);
/* Of the value of the header Authorization, "Bearer KEY"; -1: none such. */
int keys_find(const api_keys *k, const char *authorization);

#endif
