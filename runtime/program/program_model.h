/* program_model.h - the model that a built program carries, as a kind of weft_model (runtime/api/api_model.h).
 *
 * Opening checks the image: its length and its directory always, all bytes where there are few of them or it is asked for. Then it chooses the
 * best plan that this processor can run. No token is evaluated before that. */
#ifndef WEFT_RUNTIME_PROGRAM_PROGRAM_MODEL_H
#define WEFT_RUNTIME_PROGRAM_PROGRAM_MODEL_H

#include "runtime/api/api_model.h"
#include "runtime/program/facts.h"
#include "runtime/program/tensors.h"

enum { PROGRAM_CHECKED_BYTES = 64 << 20 }; /* images up to this are checked byte by byte */

typedef struct {
    const char *name; /* of the program, for messages */
    const char *path; /* of the file, to find external weights beside it; NULL: unknown */
    bool verify;      /* compare all bytes with their sums */
} program_options;

typedef struct {
    weft_model base;
    arena *a;
    const char *name;
    image im;
    facts about;
    image_source source;
    const image_part *plan; /* for this processor; its name is the level's */
    plan *p;                /* the same, read once for all sessions */
    int guard;              /* of map_guard.h */
    void *external;         /* weights of a file of their own; NULL: none */
    int external_guard;
    size_t external_bytes;
} program_model;

/* The image attached to this program. W1701, W1702; W1602 if the processor lacks what all of its plans need; W1001 without its external
 * weights. */
weft_status program_model_open(weft_diag *dg, const program_options *opt,
                               weft_model **out_model) WEFT_MUST_USE;
/* The same for an image in these bytes, whose directory has this sum. */
weft_status program_model_open_image(weft_diag *dg, const program_options *opt, const void *data,
                                     size_t bytes, uint64_t sum,
                                     weft_model **out_model) WEFT_MUST_USE;
/* Let the rows of a session of this model use the adapters that the program carries; nothing where it has none. */
weft_status program_model_ready(weft_diag *dg, const weft_model *m, weft_session *s) WEFT_MUST_USE;
static inline const program_model *program_model_of(const weft_model *m)
{
    return (const program_model *)(const void *)m;
}

/* External weights: a file that begins with a head of IMAGE_PAGE bytes; its first 64 are the magic, version, bytes of the weights, and the
 * sum of the table of tensors that they belong to. */
#define WEIGHTS_MAGIC "WEFTWGT"
enum { WEIGHTS_AT_VERSION = 8, WEIGHTS_AT_BYTES = 16, WEIGHTS_AT_SUM = 24 };

#endif
