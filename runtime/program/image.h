/* image.h - all that a built program carries besides code: plans, tokenizer, template, facts and weights.
 *
 * An image is one block of bytes, little-endian, which the system maps with the program:
 *
 *     header      64 bytes: magic "WEFTIMG\0", version u32, parts u32, bytes u64 (of all, with the end mark), directory sum u64, zeros
 *     directory   64 bytes a part: name[24], kind u32, external u32, offset u64, bytes u64, sum u64, zero u64
 *     parts       in the order of the directory, each at a multiple of 64, weights at one of IMAGE_PAGE, zeros between them
 *     end mark    16 bytes, so that a file that was cut ends with something else
 *
 * The directory's sum covers header and directory, with 0 in its own place, and is also known to the program (stamp.h). A part's
 * sum covers its bytes; weights have none, but one for each tensor, in the part of tensors (tensors.h). External weights
 * lie in a file of their own; the directory then has their bytes, and offset 0.
 *
 * Bytes may be anybody's: image_open gives an image all of whose parts lie inside it, or W1701. */
#ifndef WEFT_RUNTIME_PROGRAM_IMAGE_H
#define WEFT_RUNTIME_PROGRAM_IMAGE_H

#include "runtime/base/diag.h"

enum {
    IMAGE_VERSION = 2,
    IMAGE_PAGE = 65536, /* the largest page of the systems that programs are built for */
    IMAGE_ALIGN = 64,
    IMAGE_HEAD_BYTES = 64,
    IMAGE_ROW_BYTES = 64, /* of the directory */
    IMAGE_END_BYTES = 16,
    IMAGE_NAME_MAX = 23,
    IMAGE_PARTS_MAX = 64,
};

typedef enum {
    IMAGE_FACTS,     /* what the model is (facts.h) */
    IMAGE_TOKENIZER, /* runtime/text/tok_image.h */
    IMAGE_TEMPLATE,  /* of chats; none: the model has none */
    IMAGE_PLAN, /* for the level that is its name (compiler/plan_file.h), packed (runtime/base/pack.h) */
    IMAGE_ADAPTER, /* adapter_image.h */
    IMAGE_TENSORS, /* tensors.h */
    IMAGE_WEIGHTS,
    IMAGE_KIND_COUNT
} image_kind;

typedef struct {
    char name[IMAGE_NAME_MAX + 1];
    image_kind kind;
    bool external; /* weights in a file of their own: data is NULL */
    const unsigned char *data;
    uint64_t offset, bytes, sum;
} image_part;

typedef struct {
    const unsigned char *data;
    uint64_t bytes, sum; /* of the directory */
    int n_part;
    image_part part[IMAGE_PARTS_MAX];
} image;

/* The image in these bytes, which must outlive it. `name` is for messages. W1701; W1702 for one of another version. */
weft_status image_open(weft_diag *dg, const char *name, const void *data, size_t bytes,
                       image *out) WEFT_MUST_USE;
/* The bytes of one part against its sum: W1701. Weights pass. */
weft_status image_check(weft_diag *dg, const char *name, const image_part *p) WEFT_MUST_USE;
/* Are the bytes between the parts zeros? W1701. */
weft_status image_check_gaps(weft_diag *dg, const char *name, const image *im) WEFT_MUST_USE;
/* The first part of this kind, and of this name where there is one; NULL: none. */
const image_part *image_find(const image *im, image_kind kind, const char *name);

/* For writers: where a part goes that follows something that ends at `at`. */
uint64_t image_place(image_kind kind, uint64_t at);
/* Header and directory of an image; `parts` have name, kind, external, bytes and sum, and get their offsets. out_bytes: of the
 * whole image; out_sum: of the directory. */
void image_write_head(image_part *parts, int n, strbuf *out, uint64_t *out_bytes,
                      uint64_t *out_sum);
extern const char image_end_mark[IMAGE_END_BYTES];

#endif
